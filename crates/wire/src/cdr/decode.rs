//! CDR decoder, and functions that read payloads.

use super::encode::padding;
use super::limits::{MAX_DEPTH, UNBOUNDED};
use super::{
    ByteOrder, CdrError, CdrType, Encapsulation, Encoder, Extensibility, KeySource, Primitive,
    Representation, TopicType,
};

/// Reads CDR from a slice whose start is the origin of alignment, after the encapsulation header.
///
/// A decoder is a position in borrowed bytes. It is cheap to copy, and its results live as long as the bytes.
/// The bytes end with the innermost value that has a DHEADER, so no read passes the end of that value.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    /// Bytes from the origin of alignment to the end of the innermost value that has a DHEADER.
    bytes: &'a [u8],
    position: usize,
    representation: Representation,
    order: ByteOrder,
    /// Whether the next structure has a DHEADER according to the encapsulation; `None` if the reader's type decides.
    has_dheader: Option<bool>,
    /// True inside a structure whose extensibility differs from that of the writer's type.
    extensibility_mismatch: bool,
    depth_left: u8,
    /// Bound of the member being read: elements of its `Vec`s, bytes of its `String`s.
    bound: usize,
}

impl<'a> Decoder<'a> {
    /// Creates a decoder at the start of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8], representation: Representation, order: ByteOrder) -> Self {
        Self {
            bytes,
            position: 0,
            representation,
            order,
            has_dheader: None,
            extensibility_mismatch: false,
            depth_left: MAX_DEPTH,
            bound: UNBOUNDED,
        }
    }

    /// Creates a decoder of a payload, which begins with its encapsulation header.
    ///
    /// The encapsulation header, not the reader's type, decides whether the outermost structure has a DHEADER. So
    /// a type declared final on one side and appendable on the other can still be read. This does not hold for a type
    /// with nested structures, whose DHEADERs no header describes.
    ///
    /// # Errors
    /// Those of [`Encapsulation::split`].
    #[inline]
    pub fn of_payload(payload: &'a [u8]) -> Result<Self, CdrError> {
        let (encapsulation, body) = Encapsulation::split(payload)?;
        let mut decoder = Self::new(body, encapsulation.representation, encapsulation.order);
        decoder.has_dheader = Some(encapsulation.delimited);
        Ok(decoder)
    }

    /// Number of bytes read so far, including padding.
    #[inline]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Number of bytes left in the innermost value that has a DHEADER.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.position)
    }

    #[inline]
    pub(super) const fn order(&self) -> ByteOrder {
        self.order
    }

    /// Bound of the member being read: elements of a `Vec`, or bytes of a `String`.
    #[inline]
    pub const fn bound(&self) -> usize {
        self.bound
    }

    /// Reads a primitive at its alignment.
    ///
    /// # Errors
    /// [`CdrError::Truncated`]; [`CdrError::InvalidBoolean`].
    #[inline]
    pub fn primitive<P: Primitive>(&mut self) -> Result<P, CdrError> {
        let order = self.order;
        P::get(self.primitives::<P>(1)?, order)
    }

    /// Returns the bytes of `count` consecutive primitives, after aligning to the first.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn primitives<P: Primitive>(&mut self, count: usize) -> Result<&'a [u8], CdrError> {
        self.take_primitives(P::BYTES, count)
    }

    /// Returns the bytes of `count` consecutive primitives of `size` bytes each, after aligning to the first.
    #[inline]
    pub(super) fn take_primitives(
        &mut self,
        size: usize,
        count: usize,
    ) -> Result<&'a [u8], CdrError> {
        if count == 0 {
            return Ok(&[]);
        }
        let alignment = size.min(self.representation.max_alignment());
        self.take(padding(self.position, alignment))?;
        self.take(count.checked_mul(size).ok_or(CdrError::Truncated)?)
    }

    /// Reads a string of at most `bound` bytes without its NUL.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`]; [`CdrError::InvalidString`] if the final NUL is missing, another NUL
    /// precedes it, or the text is not UTF-8; [`CdrError::Truncated`].
    #[inline]
    pub fn string(&mut self, bound: usize) -> Result<&'a str, CdrError> {
        let length = self.primitive::<u32>()? as usize;
        let bytes = self.take(length)?;
        let Some((0, text)) = bytes.split_last() else {
            return Err(CdrError::InvalidString);
        };
        if text.len() > bound {
            return Err(CdrError::BoundExceeded);
        }
        if text.contains(&0) {
            return Err(CdrError::InvalidString);
        }
        core::str::from_utf8(text).map_err(|_| CdrError::InvalidString)
    }

    /// Reads the length of a sequence of `T` and checks that the input has enough bytes for the elements. Each element
    /// takes at least one byte, so a loop over the elements is never longer than the input.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`]; [`CdrError::Truncated`].
    #[inline]
    pub fn length<T: CdrType>(&mut self, bound: usize) -> Result<usize, CdrError> {
        let length = self.primitive::<u32>()? as usize;
        if length > bound {
            return Err(CdrError::BoundExceeded);
        }
        match length.checked_mul(T::KIND.min_bytes()) {
            Some(bytes) if bytes <= self.remaining() => Ok(length),
            _ => Err(CdrError::Truncated),
        }
    }

    /// Reads a structure: its DHEADER if present, then the members that `read` takes. With a DHEADER, members that
    /// `read` does not take are skipped. Without a DHEADER, such members can only be at the end of the payload.
    ///
    /// # Errors
    /// [`CdrError::NestedTooDeep`]; [`CdrError::Truncated`]; [`CdrError::OtherExtensibility`]; those of `read`.
    #[inline]
    pub fn structure<R>(
        &mut self,
        extensibility: Extensibility,
        read: impl FnOnce(&mut Members<'a>) -> Result<R, CdrError>,
    ) -> Result<R, CdrError> {
        let declared = extensibility == Extensibility::Appendable
            && self.representation == Representation::Xcdr2;
        let delimited = self.has_dheader.unwrap_or(declared);
        self.enter(extensibility, delimited, delimited != declared, read)
    }

    #[inline]
    fn enter<R>(
        &mut self,
        extensibility: Extensibility,
        delimited: bool,
        extensibility_mismatch: bool,
        read: impl FnOnce(&mut Members<'a>) -> Result<R, CdrError>,
    ) -> Result<R, CdrError> {
        if self.extensibility_mismatch {
            return Err(CdrError::OtherExtensibility);
        }
        let mut inner = if delimited { self.delimited()? } else { *self };
        inner.has_dheader = None;
        inner.extensibility_mismatch = extensibility_mismatch;
        inner.depth_left = self
            .depth_left
            .checked_sub(1)
            .ok_or(CdrError::NestedTooDeep)?;
        let mut members = Members {
            decoder: inner,
            may_end_early: extensibility == Extensibility::Appendable,
        };
        let value = read(&mut members)?;
        self.position = if delimited {
            members.decoder.bytes.len()
        } else {
            members.decoder.position
        };
        Ok(value)
    }

    /// Reads the serialized key of a dispose or unregister. Cyclone DDS 0.10 writes the key of an appendable type
    /// without DHEADERs under an encapsulation that requires them (`D_CDR2`). So if the key cannot be read with
    /// DHEADERs, it is read without; that result is used only if no byte is left.
    ///
    /// # Errors
    /// Those of `read`.
    pub(super) fn key_payload<R>(
        self,
        mut read: impl FnMut(KeySource, &mut Self) -> Result<R, CdrError>,
    ) -> Result<R, CdrError> {
        let (mut delimited, mut plain) = (self, self);
        let key = read(KeySource::Key, &mut delimited);
        if key.is_ok() || self.has_dheader != Some(true) {
            return key;
        }
        match read(KeySource::Hash, &mut plain) {
            Ok(found) if plain.remaining() == 0 => Ok(found),
            _ => key,
        }
    }

    /// Reads a structure that is part of a key.
    ///
    /// # Errors
    /// See [`structure`](Self::structure).
    #[inline]
    pub fn key_structure<R>(
        &mut self,
        source: KeySource,
        extensibility: Extensibility,
        read: impl FnOnce(&mut Members<'a>) -> Result<R, CdrError>,
    ) -> Result<R, CdrError> {
        match source {
            // Key hashes have no DHEADERs.
            KeySource::Hash => self.enter(extensibility, false, false, read),
            _ => self.structure(extensibility, read),
        }
    }

    /// Reads a collection: its DHEADER in XCDR2 if `needs_delimiter`, then the elements with `read`.
    ///
    /// # Errors
    /// [`CdrError::Truncated`]; those of `read`.
    #[inline]
    pub fn collection<R>(
        &mut self,
        needs_delimiter: bool,
        read: impl FnOnce(&mut Self) -> Result<R, CdrError>,
    ) -> Result<R, CdrError> {
        if !needs_delimiter || self.representation == Representation::Xcdr1 {
            return read(self);
        }
        let mut inner = self.delimited()?;
        let value = read(&mut inner)?;
        self.position = inner.bytes.len();
        Ok(value)
    }

    /// Reads a DHEADER and returns a decoder that ends with the delimited value.
    #[inline]
    fn delimited(&mut self) -> Result<Self, CdrError> {
        let length = self.primitive::<u32>()? as usize;
        let mut inner = *self;
        self.take(length)?;
        inner.bytes = self.bytes.get(..self.position).unwrap_or_default();
        Ok(inner)
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], CdrError> {
        let rest = self.bytes.get(self.position..).ok_or(CdrError::Truncated)?;
        let taken = rest.get(..length).ok_or(CdrError::Truncated)?;
        self.position += length;
        Ok(taken)
    }
}

/// Members of one structure, in the order of declaration.
///
/// An appendable structure may end early if the writer has an older version of the type. The missing
/// members get their initial values (XTypes 1.3 §7.2.2.4.4.4.7), see [`CdrType::initial`]. XCDR1 has no
/// DHEADERs, so there missing members are detected only at the end of the payload.
#[derive(Debug)]
pub struct Members<'a> {
    decoder: Decoder<'a>,
    may_end_early: bool,
}

impl<'a> Members<'a> {
    /// Reads the next member as a view.
    ///
    /// # Errors
    /// Those of [`CdrType::view`].
    #[inline]
    pub fn view<T: CdrType>(&mut self, bound: usize) -> Result<T::View<'a>, CdrError> {
        if self.at_early_end() {
            return Ok(T::initial_view());
        }
        T::view(self.bounded(bound))
    }

    /// Reads the next member as an owned value.
    ///
    /// # Errors
    /// Those of [`CdrType::decode`].
    #[inline]
    pub fn decode<T: CdrType>(&mut self, bound: usize) -> Result<T, CdrError> {
        if self.at_early_end() {
            return Ok(T::initial());
        }
        T::decode(self.bounded(bound))
    }

    /// Reads the next member into an existing value.
    ///
    /// # Errors
    /// Those of [`CdrType::decode_into`].
    #[inline]
    pub fn decode_into<T: CdrType>(&mut self, value: &mut T, bound: usize) -> Result<(), CdrError> {
        if self.at_early_end() {
            value.reset();
            return Ok(());
        }
        value.decode_into(self.bounded(bound))
    }

    /// Reads the next member as part of a key.
    ///
    /// # Errors
    /// Those of [`CdrType::decode_key`].
    #[inline]
    pub fn decode_key<T: CdrType>(
        &mut self,
        source: KeySource,
        bound: usize,
    ) -> Result<T, CdrError> {
        if self.at_early_end() {
            return Ok(T::initial());
        }
        T::decode_key(source, self.bounded(bound))
    }

    /// Copies the next member to `encoder` as part of a key.
    ///
    /// # Errors
    /// Those of [`CdrType::transcribe_key`].
    #[inline]
    pub fn transcribe_key<T: CdrType>(
        &mut self,
        source: KeySource,
        encoder: &mut Encoder<'_>,
        bound: usize,
    ) -> Result<(), CdrError> {
        if self.at_early_end() {
            return encoder.key_member(&T::initial(), bound);
        }
        T::transcribe_key(source, self.bounded(bound), encoder)
    }

    #[inline]
    const fn at_early_end(&self) -> bool {
        self.may_end_early && self.decoder.remaining() == 0
    }

    #[inline]
    const fn bounded(&mut self, bound: usize) -> &mut Decoder<'a> {
        self.decoder.bound = bound;
        &mut self.decoder
    }
}

/// Reads a sample in place: strings and collections borrow from `payload`.
///
/// # Errors
/// The decoding error of an invalid payload.
#[inline]
pub fn view_payload<T: TopicType>(payload: &[u8]) -> Result<T::View<'_>, CdrError> {
    T::view(&mut Decoder::of_payload(payload)?)
}

/// Reads a sample as an owned value.
///
/// # Errors
/// The decoding error of an invalid payload.
#[inline]
pub fn read_payload<T: TopicType>(payload: &[u8]) -> Result<T, CdrError> {
    T::decode(&mut Decoder::of_payload(payload)?)
}

/// Reads a sample into `value`, reusing its allocations. After an error, `value` is valid, but contains parts of the
/// earlier and of the new sample.
///
/// # Errors
/// The decoding error of an invalid payload.
#[inline]
pub fn read_payload_into<T: TopicType>(payload: &[u8], value: &mut T) -> Result<(), CdrError> {
    value.decode_into(&mut Decoder::of_payload(payload)?)
}
