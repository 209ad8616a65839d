//! Reading values behind one another from a slice.

use super::encoder::padding;
use super::limits::{MAX_DEPTH, UNBOUNDED};
use super::{
    ByteOrder, CdrError, CdrType, Encapsulation, Encoder, Extensibility, KeySource, Primitive,
    Representation,
};

/// Reads CDR from a slice that begins where alignment is counted from: behind the encapsulation
/// header.
///
/// A decoder is a position in borrowed bytes: it is copied freely, and what is read from it lives
/// as long as the bytes. It ends where the innermost delimited value ends, so nothing can be read
/// past what a DHEADER announces.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    /// From the origin of alignment to the end of the innermost delimited value.
    bytes: &'a [u8],
    position: usize,
    representation: Representation,
    order: ByteOrder,
    /// Whether the next structure begins with a DHEADER, if the encapsulation has said so.
    announced: Option<bool>,
    /// The structure around this place is of another extensibility in the writer's type.
    is_foreign: bool,
    /// Structures that may still be entered.
    depth_left: u8,
    /// Of the member being read: most elements or bytes of its `Vec`s and `String`s.
    bound: usize,
}

impl<'a> Decoder<'a> {
    /// A decoder at the start of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8], representation: Representation, order: ByteOrder) -> Self {
        Self {
            bytes,
            position: 0,
            representation,
            order,
            announced: None,
            is_foreign: false,
            depth_left: MAX_DEPTH,
            bound: UNBOUNDED,
        }
    }

    /// A decoder of a payload that begins with its encapsulation header.
    ///
    /// Whether the outermost structure has a DHEADER is then decided by the header, not by the
    /// reader's type: a system that declared the same members final on one side and appendable on
    /// the other still understands itself, unless structures are nested in it: whether those begin with a
    /// DHEADER nobody says.
    ///
    /// # Errors
    /// Those of [`Encapsulation::split`].
    #[inline]
    pub fn of_payload(payload: &'a [u8]) -> Result<Self, CdrError> {
        let (encapsulation, body) = Encapsulation::split(payload)?;
        let mut decoder = Self::new(body, encapsulation.representation, encapsulation.order);
        decoder.announced = Some(encapsulation.delimited);
        Ok(decoder)
    }

    /// Bytes read so far, padding between members included.
    #[inline]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Bytes left in the innermost delimited value.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.position)
    }

    /// The order of bytes being read.
    #[inline]
    pub(super) const fn order(&self) -> ByteOrder {
        self.order
    }

    /// Most elements of a `Vec`, or bytes of a `String`, in the member being read.
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

    /// The bytes of `count` primitives behind one another, from the alignment of the first.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn primitives<P: Primitive>(&mut self, count: usize) -> Result<&'a [u8], CdrError> {
        self.take_primitives(P::BYTES, count)
    }

    /// The bytes of `count` primitives of `size` bytes each, from the alignment of the first.
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

    /// Reads a string of at most `bound` bytes, its NUL not counted.
    ///
    /// # Errors
    /// [`CdrError::BoundExceeded`]; [`CdrError::InvalidString`] without a NUL at its end, with one
    /// before, or if it is not UTF-8; [`CdrError::Truncated`].
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

    /// Reads the number of elements of a sequence of `T`, and checks that so many can follow: every
    /// element takes a byte at least. So a loop over them is never longer than the input.
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

    /// Reads a structure: its DHEADER where it has one, then what `read` asks of its members. Members
    /// behind those asked for are skipped if there is a DHEADER, and otherwise can stand only at the
    /// end of the payload, where nobody looks.
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
        let delimited = self.announced.unwrap_or(declared);
        self.enter(extensibility, delimited, delimited != declared, read)
    }

    #[inline]
    fn enter<R>(
        &mut self,
        extensibility: Extensibility,
        delimited: bool,
        is_foreign: bool,
        read: impl FnOnce(&mut Members<'a>) -> Result<R, CdrError>,
    ) -> Result<R, CdrError> {
        if self.is_foreign {
            return Err(CdrError::OtherExtensibility);
        }
        let mut inner = if delimited { self.delimited()? } else { *self };
        inner.announced = None;
        inner.is_foreign = is_foreign;
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

    /// Reads what `read` makes of a key of its own, as a dispose or unregister carries it. Cyclone DDS 0.10 writes the
    /// key of an appendable type without DHEADERs under an encapsulation that promises them (`D_CDR2`); what
    /// cannot be read with them, and is of that very length without, is therefore read without.
    ///
    /// # Errors
    /// Those of `read`.
    pub(super) fn lone_key<R>(
        self,
        mut read: impl FnMut(KeySource, &mut Self) -> Result<R, CdrError>,
    ) -> Result<R, CdrError> {
        let (mut delimited, mut plain) = (self, self);
        let key = read(KeySource::Key, &mut delimited);
        if key.is_ok() || self.announced != Some(true) {
            return key;
        }
        match read(KeySource::Hash, &mut plain) {
            Ok(found) if plain.remaining() == 0 => Ok(found),
            _ => key,
        }
    }

    /// Reads a structure of which a key is made.
    ///
    /// # Errors
    /// As [`structure`](Self::structure).
    #[inline]
    pub fn key_structure<R>(
        &mut self,
        source: KeySource,
        extensibility: Extensibility,
        read: impl FnOnce(&mut Members<'a>) -> Result<R, CdrError>,
    ) -> Result<R, CdrError> {
        match source {
            // None is delimited there, whatever its type.
            KeySource::Hash => self.enter(extensibility, false, false, read),
            _ => self.structure(extensibility, read),
        }
    }

    /// Reads a collection: in XCDR2 its DHEADER if its elements `need_delimiter`, then what `read`
    /// asks.
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

    /// Reads a DHEADER and gives a decoder that ends where it says.
    #[inline]
    fn delimited(&mut self) -> Result<Self, CdrError> {
        let length = self.primitive::<u32>()? as usize;
        let mut inner = *self;
        self.take(length)?;
        inner.bytes = self.bytes.get(..self.position).unwrap_or_default();
        Ok(inner)
    }

    /// Takes the next `length` bytes.
    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], CdrError> {
        let rest = self.bytes.get(self.position..).ok_or(CdrError::Truncated)?;
        let taken = rest.get(..length).ok_or(CdrError::Truncated)?;
        self.position += length;
        Ok(taken)
    }
}

/// The members of one structure, in the order of declaration.
///
/// A structure of an appendable type may end early, because the writer knows an older version of
/// the type: the members behind its end get their initial values (XTypes 1.3 §7.2.2.4.4.4.7),
/// see [`CdrType::initial`]. In XCDR1, which has no DHEADER, that can only be seen at the
/// end of the payload.
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

    /// Reads the next member as a value of its own.
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

    /// Reads the next member into one that exists.
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

    /// Reads the next member and writes it as part of a key.
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
