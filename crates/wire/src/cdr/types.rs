//! Types of members and topics.

use core::fmt::Debug;

use super::{
    CdrError, Decoder, Encoder, Extensibility, FieldKind, FieldPath, FieldValue, KeySource, MaxSize,
};

/// Type of a member of a structure, or of an element of a sequence or array.
///
/// Implemented here for the primitives, [`Char8`](super::Char8), strings, sequences and arrays;
/// `#[derive(TopicType)]` implements it for structures and enumerations.
///
/// There are two ways to read. [`view`](Self::view) checks the input once and returns a view: it has numbers by
/// value, and strings and collections as references to the input. [`decode`](Self::decode) returns an owned value.
/// Both accept exactly the same input.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no CDR form, so it cannot be a member of a topic's type",
    label = "not a type of DDS",
    note = "members are u8..u64, i8..i64, f32, f64, bool, `Char8`, `BoundedString<N>`, `BoundedSequence<T, N>`, `String`, `Vec<T>`, arrays of these, and structs and fieldless enums with #[derive(TopicType)]",
    note = "use `Char8` or a string for `char`, `u32` or `u64` for `usize`, and a sequence of at most one element for `Option`"
)]
pub trait CdrType: Sized {
    /// Category of the type as an element of a collection.
    const KIND: ElementKind;

    /// Maximum number of elements or bytes, if the type itself is bounded.
    const BOUND: Option<usize> = None;

    /// Borrowed form of a value.
    type View<'a>: Copy + Debug;

    /// Returns the value of a member that the writer's older type does not have (XTypes 1.3 §7.2.2.4.4.4.7): zero,
    /// false, empty, or the first enumerator. A structure has the initial value of each member.
    fn initial() -> Self;

    /// Returns the view of [`initial`](Self::initial).
    fn initial_view<'a>() -> Self::View<'a>;

    /// Resets to [`initial`](Self::initial), keeping allocated capacity.
    #[inline]
    fn reset(&mut self) {
        *self = Self::initial();
    }

    /// Writes the value.
    ///
    /// # Errors
    /// [`CdrError::NoRoom`]; [`CdrError::BoundExceeded`]; [`CdrError::InvalidString`].
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError>;

    /// Reads the value, borrowing from the input.
    ///
    /// # Errors
    /// The decoding error of invalid input.
    fn view<'a>(decoder: &mut Decoder<'a>) -> Result<Self::View<'a>, CdrError>;

    /// Reads the value.
    ///
    /// # Errors
    /// The decoding error of invalid input.
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, CdrError>;

    /// Reads the value into `self`, reusing its allocations. After an error, `self` is valid, but contains parts of the
    /// earlier and of the new value.
    ///
    /// # Errors
    /// Those of [`decode`](Self::decode).
    #[inline]
    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
        *self = Self::decode(decoder)?;
        Ok(())
    }

    /// Writes the value as part of a key. Of a structure with key members, only these are written; of a structure
    /// without key members, all members are written (XTypes 1.3 §7.2.2.4.4.4.8).
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode).
    #[inline]
    fn encode_as_key(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        self.encode(encoder)
    }

    /// Reads a value and writes it, encoded as by [`encode_as_key`](Self::encode_as_key).
    ///
    /// # Errors
    /// Those of reading and writing.
    fn transcribe_key(
        source: KeySource,
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), CdrError>;

    /// Reads the key members of a value; the other members are [`initial`](Self::initial).
    ///
    /// # Errors
    /// Those of [`decode`](Self::decode).
    #[inline]
    fn decode_key(_source: KeySource, decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Self::decode(decoder)
    }

    /// Adds the maximum number of bytes that [`encode_as_key`](Self::encode_as_key) writes to `size`.
    fn measure_key(size: &mut MaxSize);

    /// Adds the maximum number of bytes that [`encode`](Self::encode) writes to `size`.
    #[inline]
    fn measure(size: &mut MaxSize) {
        Self::measure_key(size);
    }

    /// Number of elements of a sequence, or of bytes of a string. For a sequence of sequences or strings, the largest
    /// of these numbers. `None` for types without a length.
    #[inline]
    fn length(&self) -> Option<usize> {
        None
    }

    /// Calls `visit` for each string or sequence member, including those of nested structures.
    #[inline]
    fn lengths(&self, _visit: &mut dyn FnMut(MemberLength)) {}

    /// Writes consecutive values, in one copy if the type allows.
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode).
    #[inline]
    fn encode_elements(values: &[Self], encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        values.iter().try_for_each(|value| value.encode(encoder))
    }

    /// Reads consecutive values into `values`, in one copy if the type allows.
    ///
    /// # Errors
    /// Those of [`decode`](Self::decode).
    #[inline]
    fn decode_elements(values: &mut [Self], decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
        values
            .iter_mut()
            .try_for_each(|value| value.decode_into(decoder))
    }

    /// Type of the field that `path` names; `None` if the type has no such member, or the member cannot be compared.
    fn field_kind(path: FieldPath<'_>) -> Option<FieldKind>;

    /// Value of the field that `path` names; `None` also if a sequence has no such element.
    fn field<'a>(view: Self::View<'a>, path: FieldPath<'_>) -> Option<FieldValue<'a>>;

    /// Checks and skips `count` consecutive values. Takes constant time for types without invalid bit patterns.
    ///
    /// # Errors
    /// Those of [`view`](Self::view).
    #[inline]
    fn skip_elements(count: usize, decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
        (0..count).try_for_each(|_| Self::view(decoder).map(|_| ()))
    }
}

/// Structure whose values are the samples of a topic. Implemented by `#[derive(TopicType)]`.
///
/// [`CdrType`] defines the encoding. Nested structures implement only [`CdrType`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the type of a topic",
    note = "put #[derive(TopicType)] on the struct; enumerations, numbers and collections can only be members"
)]
pub trait TopicType: CdrType {
    /// Type name that discovery compares, for example `vehicle::BrakePressure`.
    const TYPE_NAME: &'static str;

    /// True if members are marked as key. The topic then has an instance for each key value.
    const KEYED: bool;

    /// Extensibility of the type.
    const EXTENSIBILITY: Extensibility;

    /// Writes the key members in the order of their ids, which is the order of declaration. Writes nothing for a
    /// type without key.
    ///
    /// # Errors
    /// Those of [`CdrType::encode`].
    #[inline]
    fn encode_key(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        if Self::KEYED {
            self.encode_as_key(encoder)
        } else {
            Ok(())
        }
    }

    /// Reads a sample or a key and writes the key, encoded as by [`encode_key`](Self::encode_key).
    ///
    /// # Errors
    /// Those of reading and writing.
    #[inline]
    fn copy_key(
        source: KeySource,
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        if Self::KEYED {
            Self::transcribe_key(source, decoder, encoder)
        } else {
            Ok(())
        }
    }

    /// Returns the maximum size in bytes of a key as input of the key hash (big-endian XCDR2). `None` if the size is
    /// unbounded or above [`MAX_KEY_BYTES`](super::limits::MAX_KEY_BYTES).
    #[inline]
    fn max_key_bytes() -> Option<usize> {
        if Self::KEYED {
            MaxSize::of_key::<Self>()
        } else {
            Some(0)
        }
    }
}

/// Category of an element type. It decides whether a collection has a DHEADER, and how its elements are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// A primitive.
    Primitive {
        /// Size in bytes.
        bytes: usize,
    },
    /// An array of primitives, of one or more dimensions.
    PrimitiveArray,
    /// An array of other elements.
    Array,
    /// A string, sequence, enumeration or structure.
    Other,
}

impl ElementKind {
    /// Returns true for a primitive.
    #[inline]
    pub const fn is_primitive(self) -> bool {
        matches!(self, Self::Primitive { .. })
    }

    /// Returns true if a sequence of this type has a DHEADER in XCDR2 (XTypes 1.3 §7.4.3.5, rules 11 and 12).
    /// In these rules, enumerations are not primitives.
    #[inline]
    pub const fn delimits_sequence(self) -> bool {
        !self.is_primitive()
    }

    /// Returns true if an array of this type has a DHEADER in XCDR2 (XTypes 1.3 §7.4.3.5). An array of arrays
    /// counts as one array of several dimensions.
    #[inline]
    pub const fn delimits_array(self) -> bool {
        !matches!(self, Self::Primitive { .. } | Self::PrimitiveArray)
    }

    /// Minimum serialized size in bytes.
    #[inline]
    pub const fn min_bytes(self) -> usize {
        match self {
            Self::Primitive { bytes } => bytes,
            _ => 1,
        }
    }
}

/// Length of a string or sequence member of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberLength {
    /// Name of the member.
    pub name: &'static str,
    /// Bytes of the string, or elements of the sequence.
    pub length: usize,
    /// Bound of the member, `#[topic(bound = N)]`, or of its type.
    pub bound: Option<usize>,
}

/// Marks types that accept `#[topic(bound = N)]`: those without a bound in the type.
#[diagnostic::on_unimplemented(
    message = "`#[topic(bound = N)]` does not apply to `{Self}`",
    label = "its bound cannot be set",
    note = "the bound is for `String` and `Vec<T>`, and for arrays of these; `BoundedString<N>` and `BoundedSequence<T, N>` carry theirs in the type"
)]
pub trait AcceptsBound: CdrType {}

impl<T: AcceptsBound, const N: usize> AcceptsBound for [T; N] {}
