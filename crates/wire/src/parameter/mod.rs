//! Parameter lists of inline QoS and discovery (RTPS 2.5 §9.4.2.11).
//!
//! Parsing walks the list once to find its end and check every length, so later iteration cannot fail.

use crate::{
    BufferTooSmall, ByteOrder, Error,
    bytes::{Reader, u16_of},
};

pub mod pid;

/// Must-understand flag: a receiver that does not know the parameter must ignore the enclosing data.
pub const MUST_UNDERSTAND: u16 = 0x4000;

/// Vendor-specific flag: the meaning of the identifier depends on the vendor.
pub const VENDOR_SPECIFIC: u16 = 0x8000;

pub(crate) const SENTINEL_BYTES: usize = 4;

/// Parameter, borrowed from its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// Identifier: one of [`pid`], without the bit [`MUST_UNDERSTAND`].
    pub id: u16,
    /// Must-understand flag.
    pub must_understand: bool,
    /// Value including padding, a multiple of four bytes.
    pub value: &'a [u8],
}

/// Checked parameter list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterList<'a> {
    /// Parameters without the sentinel.
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> ParameterList<'a> {
    /// Checks the list at the start of `bytes` up to its sentinel. Returns the list, and its size in bytes including
    /// the sentinel.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the input ends before the sentinel; [`Error::InvalidParameter`] if a length is
    /// not a multiple of four.
    #[inline]
    pub fn parse(bytes: &'a [u8], order: ByteOrder) -> Result<(Self, usize), Error> {
        let mut position = 0;
        loop {
            match next_position(bytes, position, order)? {
                Some(next) => position = next,
                None => {
                    let bytes = &bytes[..position];
                    return Ok((Self { bytes, order }, position + SENTINEL_BYTES));
                }
            }
        }
    }

    /// Checks a list that ends with its sentinel or at the end of `bytes`.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse).
    pub(crate) fn parse_to_end(bytes: &'a [u8], order: ByteOrder) -> Result<Self, Error> {
        let mut position = 0;
        while position < bytes.len() {
            match next_position(bytes, position, order)? {
                Some(next) => position = next,
                None => break,
            }
        }
        let bytes = bytes.get(..position).ok_or(Error::Truncated)?;
        Ok(Self { bytes, order })
    }

    /// Writes the list with a sentinel. The list must be little-endian, as all output is.
    pub(crate) fn write(&self, writer: &mut crate::bytes::Writer<'_>) {
        writer.put(self.bytes);
        writer.u16(pid::SENTINEL);
        writer.u16(0);
    }

    /// Byte order of the values.
    #[inline]
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Raw parameters without the sentinel.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Iterates over the parameters in wire order, without padding parameters.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> Parameters<'a> {
        Parameters {
            rest: self.bytes,
            order: self.order,
        }
    }

    /// Returns the value of the first parameter with identifier `id`.
    #[inline]
    #[must_use]
    pub fn find(&self, id: u16) -> Option<&'a [u8]> {
        self.iter()
            .find(|parameter| parameter.id == id)
            .map(|parameter| parameter.value)
    }

    pub(crate) fn reader(&self, value: &'a [u8]) -> Reader<'a> {
        Reader::new(value, self.order)
    }
}

/// Position after the parameter at `position`; `None` if that parameter is the sentinel.
#[inline]
fn next_position(bytes: &[u8], position: usize, order: ByteOrder) -> Result<Option<usize>, Error> {
    let head = bytes.get(position..).and_then(<[u8]>::first_chunk::<4>);
    let [a, b, c, d] = *head.ok_or(Error::Truncated)?;
    let id = u16_of(order, [a, b]);
    if id & !MUST_UNDERSTAND == pid::SENTINEL {
        return Ok(None);
    }
    let length = u16_of(order, [c, d]);
    if !length.is_multiple_of(4) {
        return Err(Error::InvalidParameter(id));
    }
    Ok(Some(position + 4 + usize::from(length)))
}

impl<'a> IntoIterator for &ParameterList<'a> {
    type Item = Parameter<'a>;
    type IntoIter = Parameters<'a>;

    fn into_iter(self) -> Parameters<'a> {
        self.iter()
    }
}

/// Iterator of [`ParameterList::iter`].
#[derive(Debug, Clone)]
pub struct Parameters<'a> {
    rest: &'a [u8],
    order: ByteOrder,
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Parameter<'a>;

    #[inline]
    fn next(&mut self) -> Option<Parameter<'a>> {
        loop {
            let (&[a, b, c, d], rest) = self.rest.split_first_chunk::<4>()?;
            let id = u16_of(self.order, [a, b]);
            let length = u16_of(self.order, [c, d]);
            let (value, rest) = rest.split_at_checked(usize::from(length))?;
            self.rest = rest;
            if id & !MUST_UNDERSTAND != pid::PAD {
                return Some(Parameter {
                    id: id & !MUST_UNDERSTAND,
                    must_understand: id & MUST_UNDERSTAND != 0,
                    value,
                });
            }
        }
    }
}

/// Writer of a little-endian parameter list.
///
/// A parameter that does not fit is omitted, together with all later ones, and [`finish`](Self::finish) returns
/// the error. So callers check for an error only once, at the end.
#[derive(Debug)]
pub struct ParameterWriter<'a> {
    buffer: &'a mut [u8],
    length: usize,
    overflowed: bool,
}

impl<'a> ParameterWriter<'a> {
    /// Starts a list at the front of `buffer`.
    #[must_use]
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Self {
            buffer,
            length: 0,
            overflowed: false,
        }
    }

    /// Writes identifier and length of a parameter, and reserves `length` zeroed bytes for its value. `None` if the
    /// parameter does not fit. Values are padded with zeros to a multiple of four.
    fn reserve(&mut self, id: u16, length: usize) -> Option<&mut [u8]> {
        let padded = length.next_multiple_of(4);
        let room = match u16::try_from(padded) {
            Ok(wire_length) if !self.overflowed => self
                .buffer
                .get_mut(self.length..)
                .and_then(|rest| rest.get_mut(..4 + padded))
                .map(|room| (room, wire_length)),
            _ => None,
        };
        let Some((room, wire_length)) = room else {
            self.overflowed = true;
            return None;
        };
        self.length += room.len();
        let (head, value) = room.split_at_mut(4);
        head[..2].copy_from_slice(&id.to_le_bytes());
        head[2..].copy_from_slice(&wire_length.to_le_bytes());
        value.fill(0);
        Some(value)
    }

    /// Adds a value of raw bytes.
    pub fn put(&mut self, id: u16, value: &[u8]) -> &mut Self {
        if let Some(room) = self.reserve(id, value.len()) {
            room[..value.len()].copy_from_slice(value);
        }
        self
    }

    /// Adds a one-byte value.
    pub fn put_u8(&mut self, id: u16, value: u8) -> &mut Self {
        self.put(id, &[value])
    }

    /// Adds an unsigned long.
    pub fn put_u32(&mut self, id: u16, value: u32) -> &mut Self {
        self.put(id, &value.to_le_bytes())
    }

    /// Adds a long.
    pub fn put_i32(&mut self, id: u16, value: i32) -> &mut Self {
        self.put(id, &value.to_le_bytes())
    }

    /// Adds a string: length including the NUL, bytes, NUL.
    pub fn put_str(&mut self, id: u16, value: &str) -> &mut Self {
        self.put_with(id, 4 + value.len() + 1, |writer| {
            writer.u32(value.len() as u32 + 1);
            writer.put(value.as_bytes());
        })
    }

    /// Adds a value of `length` bytes that `write` writes.
    pub(crate) fn put_with(
        &mut self,
        id: u16,
        length: usize,
        write: impl FnOnce(&mut crate::bytes::Writer<'_>),
    ) -> &mut Self {
        if let Some(room) = self.reserve(id, length) {
            write(&mut crate::bytes::Writer::new(room));
        }
        self
    }

    /// Writes the sentinel and returns the length of the list in bytes, including the sentinel.
    ///
    /// # Errors
    /// [`BufferTooSmall`] if any parameter, or the sentinel, did not fit.
    pub fn finish(mut self) -> Result<usize, BufferTooSmall> {
        self.put(pid::SENTINEL, &[]);
        if self.overflowed {
            return Err(BufferTooSmall);
        }
        Ok(self.length)
    }
}
