//! CDR primitives: numbers, booleans and 8-bit characters.

use core::fmt::{self, Debug};

use super::{
    ByteOrder, CdrError, CdrType, Decoder, ElementKind, Encoder, FieldKind, FieldPath, FieldValue,
    KeySource, MaxSize,
};

mod sealed {
    pub trait Sealed {}
}

/// Primitive type (XTypes 1.3 §7.2.2.2): fixed size, aligned to its size.
pub trait Primitive: Copy + Debug + Default + sealed::Sealed {
    /// Size in bytes: 1, 2, 4 or 8.
    const BYTES: usize;

    /// True if every bit pattern is a valid value.
    const ALL_PATTERNS: bool;

    /// Writes the value to `target`, which is [`BYTES`](Self::BYTES) long.
    fn put(self, target: &mut [u8], order: ByteOrder);

    /// Reads the value from `source`, which is [`BYTES`](Self::BYTES) long.
    ///
    /// # Errors
    /// [`CdrError::InvalidBoolean`]; [`CdrError::Truncated`] if `source` is shorter.
    fn get(source: &[u8], order: ByteOrder) -> Result<Self, CdrError>;

    /// Writes `values` to `target`, which has exactly their size.
    #[inline]
    fn put_all(values: &[Self], target: &mut [u8], order: ByteOrder) {
        // The byte order is constant within the loop, and each step has a constant size. So the compiler emits a block
        // copy for this machine's byte order, and vector shuffles for the other one.
        for (target, value) in target.chunks_exact_mut(Self::BYTES).zip(values) {
            value.put(target, order);
        }
    }

    /// Reads `values` from `source`, which has exactly their size.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    #[inline]
    fn get_all(values: &mut [Self], source: &[u8], order: ByteOrder) -> Result<(), CdrError> {
        for (value, source) in values.iter_mut().zip(source.chunks_exact(Self::BYTES)) {
            *value = Self::get(source, order)?;
        }
        Ok(())
    }
}

macro_rules! number {
    ($($number:ty),*) => {$(
        impl sealed::Sealed for $number {}

        impl Primitive for $number {
            const BYTES: usize = size_of::<Self>();
            const ALL_PATTERNS: bool = true;

            #[inline]
            fn put(self, target: &mut [u8], order: ByteOrder) {
                if let Some(target) = target.first_chunk_mut() {
                    *target = match order {
                        ByteOrder::Big => self.to_be_bytes(),
                        ByteOrder::Little => self.to_le_bytes(),
                    };
                }
            }

            #[inline]
            fn get(source: &[u8], order: ByteOrder) -> Result<Self, CdrError> {
                let bytes = *source.first_chunk().ok_or(CdrError::Truncated)?;
                Ok(match order {
                    ByteOrder::Big => Self::from_be_bytes(bytes),
                    ByteOrder::Little => Self::from_le_bytes(bytes),
                })
            }
        }
    )*};
}

number!(u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl sealed::Sealed for u8 {}

impl Primitive for u8 {
    const BYTES: usize = 1;
    const ALL_PATTERNS: bool = true;

    #[inline]
    fn put(self, target: &mut [u8], _: ByteOrder) {
        if let Some(target) = target.first_mut() {
            *target = self;
        }
    }

    #[inline]
    fn get(source: &[u8], _: ByteOrder) -> Result<Self, CdrError> {
        source.first().copied().ok_or(CdrError::Truncated)
    }

    #[inline]
    fn put_all(values: &[Self], target: &mut [u8], _: ByteOrder) {
        if target.len() == values.len() {
            target.copy_from_slice(values);
        }
    }

    #[inline]
    fn get_all(values: &mut [Self], source: &[u8], _: ByteOrder) -> Result<(), CdrError> {
        if values.len() != source.len() {
            return Err(CdrError::Truncated);
        }
        values.copy_from_slice(source);
        Ok(())
    }
}

impl sealed::Sealed for bool {}

impl Primitive for bool {
    const BYTES: usize = 1;
    const ALL_PATTERNS: bool = false;

    #[inline]
    fn put(self, target: &mut [u8], order: ByteOrder) {
        u8::from(self).put(target, order);
    }

    #[inline]
    fn get(source: &[u8], order: ByteOrder) -> Result<Self, CdrError> {
        match u8::get(source, order)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(CdrError::InvalidBoolean),
        }
    }
}

/// IDL's `char`: one byte, by convention a character of ISO 8859-1 (IDL 4.2 §7.4.1.4.4).
///
/// This is not Rust's `char`, which is any Unicode scalar value.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Char8(pub u8);

impl Debug for Char8 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&char::from(*self), formatter)
    }
}

impl From<Char8> for char {
    fn from(value: Char8) -> Self {
        Self::from(value.0)
    }
}

impl TryFrom<char> for Char8 {
    type Error = core::char::TryFromCharError;

    fn try_from(value: char) -> Result<Self, Self::Error> {
        u8::try_from(value).map(Self)
    }
}

impl sealed::Sealed for Char8 {}

impl Primitive for Char8 {
    const BYTES: usize = 1;
    const ALL_PATTERNS: bool = true;

    #[inline]
    fn put(self, target: &mut [u8], order: ByteOrder) {
        self.0.put(target, order);
    }

    #[inline]
    fn get(source: &[u8], order: ByteOrder) -> Result<Self, CdrError> {
        u8::get(source, order).map(Self)
    }
}

macro_rules! primitive_type {
    ($kind:expr, $value:expr; $($primitive:ty),*) => {$(
        impl CdrType for $primitive {
            const KIND: ElementKind = ElementKind::Primitive { bytes: <Self as Primitive>::BYTES };
            type View<'a> = Self;

            #[inline]
            fn initial() -> Self {
                Self::default()
            }

            #[inline]
            fn initial_view<'a>() -> Self::View<'a> {
                Self::default()
            }

            #[inline]
            fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
                encoder.primitive(*self)
            }

            #[inline]
            fn view<'a>(decoder: &mut Decoder<'a>) -> Result<Self, CdrError> {
                decoder.primitive()
            }

            #[inline]
            fn decode(decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
                decoder.primitive()
            }

            #[inline]
            fn transcribe_key(
                _: KeySource,
                decoder: &mut Decoder<'_>,
                encoder: &mut Encoder<'_>,
            ) -> Result<(), CdrError> {
                encoder.primitive(decoder.primitive::<Self>()?)
            }

            #[inline]
            fn measure_key(size: &mut MaxSize) {
                size.primitives(<Self as Primitive>::BYTES, 1);
            }

            #[inline]
            fn encode_elements(
                values: &[Self],
                encoder: &mut Encoder<'_>,
            ) -> Result<(), CdrError> {
                encoder.primitives(values)
            }

            #[inline]
            fn decode_elements(
                values: &mut [Self],
                decoder: &mut Decoder<'_>,
            ) -> Result<(), CdrError> {
                let source = decoder.primitives::<Self>(values.len())?;
                Self::get_all(values, source, decoder.order())
            }

            #[inline]
            fn skip_elements(count: usize, decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
                let mut elements = *decoder;
                decoder.primitives::<Self>(count)?;
                if !Self::ALL_PATTERNS {
                    for _ in 0..count {
                        elements.primitive::<Self>()?;
                    }
                }
                Ok(())
            }

            fn field_kind(path: FieldPath<'_>) -> Option<FieldKind> {
                path.is_at_end().then_some($kind)
            }

            fn field<'a>(view: Self::View<'a>, path: FieldPath<'_>) -> Option<FieldValue<'a>> {
                path.is_at_end().then(|| $value(view.into()))
            }
        }
    )*};
}

primitive_type!(FieldKind::Integer, FieldValue::Integer; u8, u16, u32, u64, i8, i16, i32, i64);
primitive_type!(FieldKind::Float, FieldValue::Float; f32, f64);
primitive_type!(FieldKind::Boolean, FieldValue::Boolean; bool);
primitive_type!(FieldKind::Character, FieldValue::Character; Char8);
