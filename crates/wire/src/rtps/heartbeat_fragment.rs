//! HEARTBEAT_FRAG: a writer says which fragments of a change it has (RTPS 2.5 §8.3.8.7).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::SequenceNumber,
};

/// Bytes of a HEARTBEAT_FRAG with its submessage header.
pub const HEARTBEAT_FRAG_BYTES: usize = SUBMESSAGE_HEADER_BYTES + 24;

/// A writer tells readers how many fragments of a change they can have by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatFrag {
    /// Who is told; [`EntityId::UNKNOWN`]: all readers matched.
    pub reader: EntityId,
    /// Who tells.
    pub writer: EntityId,
    /// The change.
    pub sequence: SequenceNumber,
    /// Fragments 1 up to this one are there.
    pub last_fragment: u32,
    /// Grows with each new one, so that a repeated one is known.
    pub count: i32,
}

impl HeartbeatFrag {
    /// Reads a body.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if `sequence < 1`; [`Error::InvalidFragment`] if
    /// `last_fragment` is 0; [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        let parsed = Self {
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            sequence: SequenceNumber::read_positive(&mut reader)?,
            last_fragment: reader.u32()?,
            count: reader.i32()?,
        };
        if parsed.last_fragment == 0 {
            return Err(Error::InvalidFragment);
        }
        Ok(parsed)
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[inline]
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEARTBEAT_FRAG_BYTES
    }

    /// Writes the submessage with its header; returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len).
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut writer = Writer::new(buffer);
        write_header(&mut writer, SubmessageId::HEARTBEAT_FRAG, 0, 24);
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.sequence.write(&mut writer);
        writer.u32(self.last_fragment);
        writer.i32(self.count);
        writer.len()
    }
}
