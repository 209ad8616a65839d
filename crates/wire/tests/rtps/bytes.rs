//! Bodies of submessages as a peer would build them, in either byte order. They do not use the code under test, which
//! writes little-endian only.

use isolane_wire::{
    ByteOrder,
    guid::EntityId,
    message::{HEADER_BYTES, Submessage, Submessages},
};

pub(crate) const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

pub(crate) const READER: EntityId = EntityId([0, 0, 9, 7]);
pub(crate) const WRITER: EntityId = EntityId([0, 0, 8, 2]);

/// Growing byte buffer.
#[derive(Clone)]
pub(crate) struct Bytes {
    pub(crate) order: ByteOrder,
    pub(crate) bytes: Vec<u8>,
}

impl Bytes {
    pub(crate) fn new(order: ByteOrder) -> Self {
        Self {
            order,
            bytes: Vec::new(),
        }
    }

    /// Starts with the reader and writer entity ids, as most bodies do.
    pub(crate) fn from_writer_to_reader(order: ByteOrder) -> Self {
        Self::new(order).raw(&READER.0).raw(&WRITER.0)
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u16(self, value: u16) -> Self {
        match self.order {
            ByteOrder::Big => self.raw(&value.to_be_bytes()),
            ByteOrder::Little => self.raw(&value.to_le_bytes()),
        }
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        match self.order {
            ByteOrder::Big => self.raw(&value.to_be_bytes()),
            ByteOrder::Little => self.raw(&value.to_le_bytes()),
        }
    }

    /// Appends a sequence number: high half, low half.
    pub(crate) fn sequence(self, value: i64) -> Self {
        self.u32((value >> 32) as u32).u32(value as u32)
    }

    /// Appends a set of sequence numbers.
    pub(crate) fn set(self, base: i64, num_bits: u32, words: &[u32]) -> Self {
        self.sequence(base).bitmap(num_bits, words)
    }

    /// Appends a number of bits, and the words of the bitmap.
    pub(crate) fn bitmap(self, num_bits: u32, words: &[u32]) -> Self {
        words
            .iter()
            .fold(self.u32(num_bits), |bytes, word| bytes.u32(*word))
    }

    /// Flags, with the bit of this byte order.
    pub(crate) fn flags(&self, flags: u8) -> u8 {
        match self.order {
            ByteOrder::Big => flags,
            ByteOrder::Little => flags | 1,
        }
    }

    /// Whole message with only this submessage.
    pub(crate) fn message(&self, id: u8, flags: u8) -> Vec<u8> {
        let length = u16::try_from(self.bytes.len()).unwrap();
        Self::new(self.order)
            .raw(&[0; HEADER_BYTES])
            .raw(&[id, self.flags(flags)])
            .u16(length)
            .raw(&self.bytes)
            .bytes
    }
}

/// Parses one emitted submessage, and checks that its length field is right.
pub(crate) fn reread(bytes: &[u8]) -> Submessage<'_> {
    let mut submessages = Submessages::new(bytes, 0);
    let first = submessages.next().unwrap().unwrap();
    assert_eq!(submessages.offset(), bytes.len());
    first
}
