//! Byte-order-aware reader and writer of integers in a slice.

use crate::{Error, cdr::ByteOrder};

/// Byte order given by a submessage's endianness flag (RTPS 2.5 §9.4.5.1.2).
#[inline]
pub(crate) const fn order_of(flags: u8) -> ByteOrder {
    if flags & 1 == 0 {
        ByteOrder::Big
    } else {
        ByteOrder::Little
    }
}

/// Decodes a 16-bit integer in the given byte order.
#[inline]
pub(crate) const fn u16_of(order: ByteOrder, bytes: [u8; 2]) -> u16 {
    match order {
        ByteOrder::Big => u16::from_be_bytes(bytes),
        ByteOrder::Little => u16::from_le_bytes(bytes),
    }
}

/// Cursor that reads from the front of a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    order: ByteOrder,
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { rest: bytes, order }
    }

    /// Creates a reader of exactly the first `N` bytes. Their number is known at compile time, so the following
    /// reads need no bounds checks.
    #[inline]
    pub(crate) fn fixed<const N: usize>(bytes: &'a [u8], order: ByteOrder) -> Result<Self, Error> {
        let fixed = bytes.first_chunk::<N>().ok_or(Error::Truncated)?;
        Ok(Self::new(fixed, order))
    }

    #[inline]
    pub(crate) const fn order(&self) -> ByteOrder {
        self.order
    }

    /// Bytes not read yet.
    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads a CDR string: its length including the NUL, its bytes, the NUL. Length 0 without a NUL is
    /// accepted as an empty string, because some implementations send it. `None` if the final NUL is missing, or the
    /// string contains another NUL or is not UTF-8.
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        let length = self.u32().ok()? as usize;
        let bytes = match self.take(length).ok()? {
            [] => &[],
            [bytes @ .., 0] => bytes,
            _ => return None,
        };
        let text = core::str::from_utf8(bytes).ok()?;
        (!text.contains('\0')).then_some(text)
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Returns the next `N` bytes by reference. If they were returned by value, they would be copied byte by byte.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Error> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16_of(self.order, *self.array()?))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        let bytes = *self.array()?;
        Ok(match self.order {
            ByteOrder::Big => u32::from_be_bytes(bytes),
            ByteOrder::Little => u32::from_le_bytes(bytes),
        })
    }

    #[inline]
    pub(crate) fn i32(&mut self) -> Result<i32, Error> {
        Ok(self.u32()? as i32)
    }
}

/// Little-endian writer to the front of a slice. The caller provides a slice that is long enough.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> Writer<'a> {
    #[inline]
    pub(crate) fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, length: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.buffer[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    #[inline]
    pub(crate) fn u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn i32(&mut self, value: i32) {
        self.put(&value.to_le_bytes());
    }

    /// Writes a CDR string with its padding, [`string_bytes`] in all.
    pub(crate) fn string(&mut self, text: &str) {
        let length = text.len() + 1;
        self.u32(length as u32);
        self.put(text.as_bytes());
        self.put(&[0; 4][..length.next_multiple_of(4) - text.len()]);
    }
}

/// Size of a CDR string in bytes: length, text, NUL, and padding to a multiple of four.
pub(crate) const fn string_bytes(text: &str) -> usize {
    4 + (text.len() + 1).next_multiple_of(4)
}
