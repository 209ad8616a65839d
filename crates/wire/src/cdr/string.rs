//! CDR strings: `CdrType` for [`BoundedString`] and, with feature `alloc`, `String`.
//!
//! A `String` member has the bound of its attribute `#[topic(bound = N)]`; without the attribute it is
//! [`UNBOUNDED`](super::limits::UNBOUNDED).

use super::{
    BoundedString, CdrError, CdrType, Decoder, ElementKind, Encoder, FieldKind, FieldPath,
    FieldValue, KeySource, MaxSize,
};

#[inline]
fn encode(value: &str, bound: usize, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
    if value.len() > bound {
        return Err(CdrError::BoundExceeded);
    }
    encoder.string(value)
}

/// Items of [`CdrType`] that both kinds of strings have.
macro_rules! string_items {
    () => {
        const KIND: ElementKind = ElementKind::Other;
        type View<'a> = &'a str;

        #[inline]
        fn initial() -> Self {
            Self::new()
        }

        #[inline]
        fn initial_view<'a>() -> &'a str {
            ""
        }

        #[inline]
        fn length(&self) -> Option<usize> {
            Some(self.len())
        }

        fn field_kind(path: FieldPath<'_>) -> Option<FieldKind> {
            path.is_at_end().then_some(FieldKind::Text)
        }

        fn field<'a>(text: Self::View<'a>, path: FieldPath<'_>) -> Option<FieldValue<'a>> {
            path.is_at_end().then_some(FieldValue::Text(text))
        }
    };
}

impl<const N: usize> CdrType for BoundedString<N> {
    const BOUND: Option<usize> = Some(N);

    string_items!();

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        encode(self, N, encoder)
    }

    #[inline]
    fn view<'a>(decoder: &mut Decoder<'a>) -> Result<&'a str, CdrError> {
        decoder.string(N)
    }

    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Self::try_from(decoder.string(N)?).map_err(|_| CdrError::BoundExceeded)
    }

    #[inline]
    fn transcribe_key(
        _: KeySource,
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        encoder.string(decoder.string(N)?)
    }

    #[inline]
    fn measure_key(size: &mut MaxSize) {
        size.string(N);
    }
}

#[cfg(feature = "alloc")]
impl super::AcceptsBound for alloc::string::String {}

#[cfg(feature = "alloc")]
impl CdrType for alloc::string::String {
    string_items!();

    #[inline]
    fn reset(&mut self) {
        self.clear();
    }

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        encode(self, encoder.bound(), encoder)
    }

    #[inline]
    fn view<'a>(decoder: &mut Decoder<'a>) -> Result<&'a str, CdrError> {
        decoder.string(decoder.bound())
    }

    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Self::view(decoder).map(Self::from)
    }

    #[inline]
    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
        let value = Self::view(decoder)?;
        self.clear();
        self.push_str(value);
        Ok(())
    }

    #[inline]
    fn transcribe_key(
        _: KeySource,
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        encoder.string(Self::view(decoder)?)
    }

    #[inline]
    fn measure_key(size: &mut MaxSize) {
        match size.bound() {
            Some(bound) => size.string(bound),
            None => size.unbounded(),
        }
    }
}
