//! What can be a member of a topic's type.

use core::fmt::Debug;

use super::{CdrError, Decoder, Encoder, FieldKind, FieldPath, FieldValue, MaxSize};

/// A type that can be a member of a structure, or an element of a sequence or array.
///
/// Implemented here for the primitives, [`Char8`](super::Char8), strings, sequences and arrays, and
/// by `#[derive(TopicType)]` for structures and for enumerations.
///
/// Reading comes in two forms. [`view`](Self::view) checks everything once and borrows: the result
/// holds numbers by value, and strings and collections as references into the bytes.
/// [`decode`](Self::decode) gives a value of its own. Both accept exactly the same bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no CDR form, so it cannot be a member of a topic's type",
    label = "not a type of DDS",
    note = "members are u8..u64, i8..i64, f32, f64, bool, `Char8`, `BoundedString<N>`, `BoundedSequence<T, N>`, `String`, `Vec<T>`, arrays of these, and structs and fieldless enums with #[derive(TopicType)]",
    note = "use `Char8` or a string for `char`, `u32` or `u64` for `usize`, and a sequence of at most one element for `Option`"
)]
pub trait CdrType: Sized {
    /// What the type is to a collection that holds it.
    const KIND: Kind;

    /// Most elements or bytes, where the type carries that bound.
    const BOUND: Option<usize> = None;

    /// The value as it is read without copying.
    type View<'a>: Copy + Debug;

    /// The value of a member that the writer's older type does not have: zero, false, empty, the
    /// first enumerator; member by member for structures (XTypes 1.3 §7.2.2.4.4.4.7).
    fn initial() -> Self;

    /// The view of [`initial`](Self::initial).
    fn initial_view<'a>() -> Self::View<'a>;

    /// Becomes [`initial`](Self::initial), keeping memory that `self` has reserved.
    #[inline]
    fn reset(&mut self) {
        *self = Self::initial();
    }

    /// Writes the value.
    ///
    /// # Errors
    /// [`CdrError::NoRoom`]; [`CdrError::BoundExceeded`]; [`CdrError::InvalidString`].
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError>;

    /// Reads the value, borrowing from the bytes.
    ///
    /// # Errors
    /// Whatever of [`CdrError`] is wrong with the bytes.
    fn view<'a>(decoder: &mut Decoder<'a>) -> Result<Self::View<'a>, CdrError>;

    /// Reads the value.
    ///
    /// # Errors
    /// Whatever of [`CdrError`] is wrong with the bytes.
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, CdrError>;

    /// Reads the value into `self`, reusing memory that `self` has reserved. After an error `self`
    /// is valid but holds parts of both values.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    #[inline]
    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
        *self = Self::decode(decoder)?;
        Ok(())
    }

    /// Writes the value as part of a key. A structure that marks key members writes only those; one
    /// that marks none writes all (XTypes 1.3 §7.2.2.4.4.4.8).
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    #[inline]
    fn encode_as_key(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        self.encode(encoder)
    }

    /// Reads a value and writes it as [`encode_as_key`](Self::encode_as_key) would.
    ///
    /// # Errors
    /// Those of reading and writing.
    fn transcribe_key(
        source: KeySource,
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), CdrError>;

    /// Reads a value of which only what belongs to a key counts: the members of a structure that do not are
    /// [`initial`](Self::initial).
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    #[inline]
    fn decode_key(_source: KeySource, decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Self::decode(decoder)
    }

    /// Adds the most bytes that [`encode_as_key`](Self::encode_as_key) can write.
    fn measure_key(size: &mut MaxSize);

    /// Adds the most bytes that [`encode`](Self::encode) can write.
    #[inline]
    fn measure(size: &mut MaxSize) {
        Self::measure_key(size);
    }

    /// Elements of a sequence, or bytes of a string; of a sequence of those, the most that one of them has.
    /// `None`: a value has no length of its own.
    #[inline]
    fn length(&self) -> Option<usize> {
        None
    }

    /// Calls `visit` for each member that is a string or a sequence, members of nested structures included.
    #[inline]
    fn lengths(&self, _visit: &mut dyn FnMut(MemberLength)) {}

    /// Writes values behind one another; in one copy where the type allows.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    #[inline]
    fn encode_elements(values: &[Self], encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        values.iter().try_for_each(|value| value.encode(encoder))
    }

    /// Reads values behind one another into those that exist; in one copy where the type allows.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    #[inline]
    fn decode_elements(values: &mut [Self], decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
        values
            .iter_mut()
            .try_for_each(|value| value.decode_into(decoder))
    }

    /// What the value at the end of this path can be compared with; `None`: the type has no such member, or
    /// nothing to compare there.
    fn field_kind(path: FieldPath<'_>) -> Option<FieldKind>;

    /// The value at the end of this path; `None` also for an element that a sequence does not have.
    fn field<'a>(view: Self::View<'a>, path: FieldPath<'_>) -> Option<FieldValue<'a>>;

    /// Checks `count` values behind one another and goes past them; without looking at each where
    /// every pattern of bits is a value.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    #[inline]
    fn skip_elements(count: usize, decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
        (0..count).try_for_each(|_| Self::view(decoder).map(|_| ()))
    }
}

/// What a type is to a collection that holds it: decides about the DHEADER and about skipping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A primitive of so many bytes.
    Primitive {
        /// Size in bytes.
        bytes: usize,
    },
    /// An array, of one or more dimensions, of primitives.
    PrimitiveArray,
    /// An array of anything else.
    Array,
    /// A string, sequence, enumeration or structure.
    Other,
}

impl Kind {
    /// Whether it is a primitive.
    #[inline]
    pub const fn is_primitive(self) -> bool {
        matches!(self, Self::Primitive { .. })
    }

    /// Whether a sequence of these has a DHEADER in XCDR2 (XTypes 1.3 §7.4.3.5, rules 11 and 12).
    /// Enumerations are not primitives there.
    #[inline]
    pub const fn delimits_sequence(self) -> bool {
        !self.is_primitive()
    }

    /// Whether an array of these has a DHEADER in XCDR2 (the same, for arrays). An array of arrays is one
    /// array of several dimensions.
    #[inline]
    pub const fn delimits_array(self) -> bool {
        !matches!(self, Self::Primitive { .. } | Self::PrimitiveArray)
    }

    /// The fewest bytes one of these takes.
    #[inline]
    pub const fn min_bytes(self) -> usize {
        match self {
            Self::Primitive { bytes } => bytes,
            _ => 1,
        }
    }
}

/// A string or sequence of a value, by its member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberLength {
    /// The member's name.
    pub name: &'static str,
    /// Bytes of the string, or elements of the sequence.
    pub length: usize,
    /// The bound that the member states: `#[topic(bound = N)]`, or that of its type.
    pub bound: Option<usize>,
}

/// What a key is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A whole sample: members that are not part of the key are passed over.
    Sample,
    /// The key alone.
    Key,
    /// The key as a key hash is made of it: structures have no DHEADER there.
    Hash,
}

/// Marks the types that `#[topic(bound = N)]` applies to: those without a bound in the type.
#[diagnostic::on_unimplemented(
    message = "`#[topic(bound = N)]` does not apply to `{Self}`",
    label = "has no bound of its own to set",
    note = "the bound is for `String` and `Vec<T>`, and for arrays of these; `BoundedString<N>` and `BoundedSequence<T, N>` carry theirs in the type"
)]
pub trait LocallyBounded: CdrType {}

impl<T: LocallyBounded, const N: usize> LocallyBounded for [T; N] {}
