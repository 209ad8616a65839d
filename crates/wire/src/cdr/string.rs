//! `CdrType` for bounded strings, and the functions common to all strings.

use heapless::String;

use super::encoder::Encoder;
use super::{
    CdrError, CdrType, Decoder, FieldKind, FieldPath, FieldValue, KeySource, Kind, MaxSize,
};

#[inline]
pub(super) fn encode(value: &str, bound: usize, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
    if value.len() > bound {
        return Err(CdrError::BoundExceeded);
    }
    encoder.string(value)
}

/// Field type of a string: text, if the path ends here.
pub(super) fn field_kind(path: FieldPath<'_>) -> Option<FieldKind> {
    path.is_at_end().then_some(FieldKind::Text)
}

pub(super) fn field<'a>(text: &'a str, path: FieldPath<'_>) -> Option<FieldValue<'a>> {
    path.is_at_end().then_some(FieldValue::Text(text))
}

impl<const N: usize> CdrType for String<N> {
    const KIND: Kind = Kind::Other;
    const BOUND: Option<usize> = Some(N);
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

    #[inline]
    fn length(&self) -> Option<usize> {
        Some(self.len())
    }

    fn field_kind(path: FieldPath<'_>) -> Option<FieldKind> {
        field_kind(path)
    }

    fn field<'a>(view: Self::View<'a>, path: FieldPath<'_>) -> Option<FieldValue<'a>> {
        field(view, path)
    }
}
