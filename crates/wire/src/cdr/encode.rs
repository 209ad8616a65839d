//! CDR encoder, and functions that write payloads.

use super::limits::UNBOUNDED;
use super::{
    ByteOrder, CdrError, CdrType, ENCAPSULATION_BYTES, Encapsulation, Extensibility, Primitive,
    Representation, TopicType,
};

/// Writes CDR to a slice whose start is the origin of alignment, after the encapsulation header.
///
/// Padding is written as zeros, so earlier contents of the buffer are never sent. After an error, the buffer's
/// content is unspecified, and the value must be encoded again from its start.
#[derive(Debug)]
pub struct Encoder<'a> {
    buffer: &'a mut [u8],
    position: usize,
    representation: Representation,
    order: ByteOrder,
    /// False for key hashes, for which every structure counts as final (XTypes 1.3 §7.6.8).
    delimits_structures: bool,
    /// Bound of the member being written: elements of its `Vec`s, bytes of its `String`s.
    bound: usize,
}

impl<'a> Encoder<'a> {
    /// Creates an encoder at the start of `buffer`.
    #[inline]
    pub const fn new(
        buffer: &'a mut [u8],
        representation: Representation,
        order: ByteOrder,
    ) -> Self {
        Self {
            buffer,
            position: 0,
            representation,
            order,
            delimits_structures: true,
            bound: UNBOUNDED,
        }
    }

    /// Creates an encoder for the input of a key hash: big-endian XCDR2, without DHEADERs of structures.
    #[inline]
    pub(super) const fn of_key_hash(buffer: &'a mut [u8]) -> Self {
        let mut encoder = Self::new(buffer, Representation::Xcdr2, ByteOrder::Big);
        encoder.delimits_structures = false;
        encoder
    }

    /// Number of bytes written so far, including padding.
    #[inline]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Returns the bytes written so far.
    #[inline]
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.position).unwrap_or_default()
    }

    /// Bound of the member being written: elements of a `Vec`, or bytes of a `String`.
    #[inline]
    pub const fn bound(&self) -> usize {
        self.bound
    }

    /// Writes a primitive, aligned to its size, but at most to [`Representation::max_alignment`]
    /// (XTypes 1.3 §7.4.1 and §7.4.2).
    ///
    /// # Errors
    /// [`CdrError::NoRoom`].
    #[inline]
    pub fn primitive<P: Primitive>(&mut self, value: P) -> Result<(), CdrError> {
        self.align(P::BYTES)?;
        let order = self.order;
        value.put(self.claim(P::BYTES)?, order);
        Ok(())
    }

    /// Writes consecutive primitives without a length. In this machine's byte order, this is a single copy.
    ///
    /// # Errors
    /// [`CdrError::NoRoom`].
    #[inline]
    pub fn primitives<P: Primitive>(&mut self, values: &[P]) -> Result<(), CdrError> {
        if values.is_empty() {
            // An empty collection adds no alignment padding.
            return Ok(());
        }
        self.align(P::BYTES)?;
        let order = self.order;
        P::put_all(values, self.claim(size_of_val(values))?, order);
        Ok(())
    }

    /// Writes the number of elements or bytes that follow, as `u32`.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`] beyond `u32::MAX`; [`CdrError::NoRoom`].
    #[inline]
    pub fn length(&mut self, length: usize) -> Result<(), CdrError> {
        let length = u32::try_from(length).map_err(|_| CdrError::BoundExceeded)?;
        self.primitive(length)
    }

    /// Writes a string: its length including the NUL, its bytes, the NUL.
    ///
    /// # Errors
    /// [`CdrError::InvalidString`] if the text contains a NUL, at which readers would end the string;
    /// [`CdrError::NoRoom`].
    #[inline]
    pub fn string(&mut self, value: &str) -> Result<(), CdrError> {
        let bytes = value.as_bytes();
        if bytes.contains(&0) {
            return Err(CdrError::InvalidString);
        }
        self.length(bytes.len().saturating_add(1))?;
        self.primitives(bytes)?;
        self.primitive(0_u8)
    }

    /// Writes a structure: its DHEADER if needed, then the members with `write`.
    ///
    /// # Errors
    /// [`CdrError::NoRoom`], and those of `write`.
    #[inline]
    pub fn structure(
        &mut self,
        extensibility: Extensibility,
        write: impl FnOnce(&mut Self) -> Result<(), CdrError>,
    ) -> Result<(), CdrError> {
        // The members overwrite `bound`. It is restored for the elements that follow in the enclosing member.
        let bound = self.bound;
        let delimited = self.delimits_structures
            && extensibility == Extensibility::Appendable
            && self.representation == Representation::Xcdr2;
        self.maybe_delimited(delimited, write)?;
        self.bound = bound;
        Ok(())
    }

    /// Writes a collection: its DHEADER in XCDR2 if `needs_delimiter`, then the elements with `write`.
    ///
    /// # Errors
    /// [`CdrError::NoRoom`], and those of `write`.
    #[inline]
    pub fn collection(
        &mut self,
        needs_delimiter: bool,
        write: impl FnOnce(&mut Self) -> Result<(), CdrError>,
    ) -> Result<(), CdrError> {
        let delimited = needs_delimiter && self.representation == Representation::Xcdr2;
        self.maybe_delimited(delimited, write)
    }

    /// Writes a member whose `Vec`s and `String`s hold at most `bound` elements or bytes.
    ///
    /// # Errors
    /// Those of the member's [`CdrType::encode`].
    #[inline]
    pub fn member<T: CdrType>(&mut self, value: &T, bound: usize) -> Result<(), CdrError> {
        self.bound = bound;
        value.encode(self)
    }

    /// Writes a member as part of a key. Of a structure with key members, only these are written.
    ///
    /// # Errors
    /// Those of the member's [`CdrType::encode_as_key`].
    #[inline]
    pub fn key_member<T: CdrType>(&mut self, value: &T, bound: usize) -> Result<(), CdrError> {
        self.bound = bound;
        value.encode_as_key(self)
    }

    /// Pads with zeros to a multiple of `alignment` (a power of two), at most the representation's maximum.
    #[inline]
    pub(super) fn align(&mut self, alignment: usize) -> Result<(), CdrError> {
        let alignment = alignment.min(self.representation.max_alignment());
        let padding = padding(self.position, alignment);
        if padding > 0 {
            self.claim(padding)?.fill(0);
        }
        Ok(())
    }

    /// Returns the next `length` bytes, to be written by the caller.
    #[inline]
    pub(super) fn claim(&mut self, length: usize) -> Result<&mut [u8], CdrError> {
        let rest = self
            .buffer
            .get_mut(self.position..)
            .ok_or(CdrError::NoRoom)?;
        let claimed = rest.get_mut(..length).ok_or(CdrError::NoRoom)?;
        self.position += length;
        Ok(claimed)
    }

    /// Calls `write`, preceded by a DHEADER (XTypes 1.3 §7.4.3.4: the number of bytes that follow) if
    /// `delimited`.
    #[inline]
    fn maybe_delimited(
        &mut self,
        delimited: bool,
        write: impl FnOnce(&mut Self) -> Result<(), CdrError>,
    ) -> Result<(), CdrError> {
        if !delimited {
            return write(self);
        }
        self.length(0)?;
        let start = self.position;
        write(self)?;
        let end = self.position;
        // The length is known only after the value was written.
        self.position = start - size_of::<u32>();
        self.length(end - start)?;
        self.position = end;
        Ok(())
    }
}

/// Bytes from `position` to the next multiple of `alignment`, a power of two.
#[inline]
pub(super) const fn padding(position: usize, alignment: usize) -> usize {
    position.wrapping_neg() & (alignment - 1)
}

/// Writes a sample with its encapsulation header, little-endian, padded to a multiple of 4 bytes. Returns the
/// number of bytes.
///
/// # Errors
/// Those of [`CdrType::encode`].
#[inline]
pub fn write_payload<T: TopicType>(
    value: &T,
    representation: Representation,
    out: &mut [u8],
) -> Result<usize, CdrError> {
    encapsulate(representation, T::EXTENSIBILITY, out, |encoder| {
        value.encode(encoder)
    })
}

/// Writes a payload: the encapsulation header, the body with `write`, and padding to a multiple of 4 bytes.
#[inline]
pub(super) fn encapsulate(
    representation: Representation,
    extensibility: Extensibility,
    out: &mut [u8],
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Result<usize, CdrError> {
    let (header, body) = out
        .split_first_chunk_mut::<ENCAPSULATION_BYTES>()
        .ok_or(CdrError::NoRoom)?;
    let order = ByteOrder::Little;
    let mut encoder = Encoder::new(body, representation, order);
    write(&mut encoder)?;
    let end = encoder.position();
    encoder.align(4)?;
    let padding = (encoder.position() - end) as u8;
    *header = Encapsulation::of(representation, extensibility, order).header(padding);
    Ok(ENCAPSULATION_BYTES + encoder.position())
}
