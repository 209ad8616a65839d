//! `CdrType` for `String` and `Vec` (feature `alloc`).
//!
//! The member that holds them states their bound, `#[topic(bound = N)]`, or they have none
//! ([`UNBOUNDED`](super::limits::UNBOUNDED)). Decoding allocates only for elements whose bytes are present;
//! decoding into a value with enough capacity does not allocate.

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;

use super::{
    CdrError, CdrType, Decoder, Encoder, FieldKind, FieldPath, FieldValue, KeySource, Kind,
    LocallyBounded, MaxSize, MemberLength, SequenceView, sequence, string,
};

impl LocallyBounded for String {}

impl CdrType for String {
    const KIND: Kind = Kind::Other;
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
    fn reset(&mut self) {
        self.clear();
    }

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        string::encode(self, encoder.bound(), encoder)
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

    #[inline]
    fn length(&self) -> Option<usize> {
        Some(self.len())
    }

    fn field_kind(path: FieldPath<'_>) -> Option<FieldKind> {
        string::field_kind(path)
    }

    fn field<'a>(view: Self::View<'a>, path: FieldPath<'_>) -> Option<FieldValue<'a>> {
        string::field(view, path)
    }
}

impl<T: CdrType> LocallyBounded for Vec<T> {}

impl<T: CdrType> CdrType for Vec<T> {
    const KIND: Kind = Kind::Other;
    type View<'a> = SequenceView<'a, T>;

    #[inline]
    fn initial() -> Self {
        Self::new()
    }

    #[inline]
    fn initial_view<'a>() -> SequenceView<'a, T> {
        SequenceView::EMPTY
    }

    #[inline]
    fn reset(&mut self) {
        self.clear();
    }

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        if self.len() > encoder.bound() {
            return Err(CdrError::BoundExceeded);
        }
        sequence::encode(self, encoder)
    }

    #[inline]
    fn view<'a>(decoder: &mut Decoder<'a>) -> Result<SequenceView<'a, T>, CdrError> {
        sequence::view(decoder, decoder.bound())
    }

    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let mut values = Self::new();
        values.decode_into(decoder)?;
        Ok(values)
    }

    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
        decoder.collection(T::KIND.delimits_sequence(), |decoder| {
            let length = decoder.length::<T>(decoder.bound())?;
            if T::KIND.is_primitive() {
                // `length` has checked that the bytes of all elements are present.
                self.resize_with(length, T::initial);
                return T::decode_elements(self, decoder);
            }
            self.truncate(length);
            T::decode_elements(self, decoder)?;
            while self.len() < length {
                self.push(T::decode(decoder)?);
            }
            Ok(())
        })
    }

    #[inline]
    fn encode_as_key(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        if self.len() > encoder.bound() {
            return Err(CdrError::BoundExceeded);
        }
        sequence::encode_as_key(self, encoder)
    }

    #[inline]
    fn transcribe_key(
        source: KeySource,
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        sequence::transcribe_key::<T>(source, decoder, encoder, decoder.bound())
    }

    fn decode_key(source: KeySource, decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let mut values = Self::new();
        sequence::decode_key(source, decoder, decoder.bound(), |value| {
            values.push(value);
            Ok(())
        })?;
        Ok(values)
    }

    #[inline]
    fn measure_key(size: &mut MaxSize) {
        match size.bound() {
            Some(bound) => sequence::measure_key::<T>(size, bound),
            None => size.unbounded(),
        }
    }

    fn length(&self) -> Option<usize> {
        sequence::length(self)
    }

    fn lengths(&self, visit: &mut dyn FnMut(MemberLength)) {
        self.iter().for_each(|value| value.lengths(visit));
    }

    fn field_kind(path: FieldPath<'_>) -> Option<FieldKind> {
        sequence::field_kind::<T>(path)
    }

    fn field<'a>(view: Self::View<'a>, path: FieldPath<'_>) -> Option<FieldValue<'a>> {
        sequence::field(view, path)
    }
}
