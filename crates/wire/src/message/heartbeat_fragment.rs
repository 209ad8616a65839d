//! HEARTBEAT_FRAG submessage (RTPS 2.5 §8.3.8.7).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::SequenceNumber,
};

/// Size of a HEARTBEAT_FRAG in bytes, including its submessage header.
pub const HEARTBEAT_FRAG_BYTES: usize = SUBMESSAGE_HEADER_BYTES + 24;

/// HEARTBEAT_FRAG: the fragments of a change that a writer has available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatFrag {
    /// Destination reader; [`EntityId::UNKNOWN`] for all matched readers.
    pub reader: EntityId,
    /// Entity id of the writer that sends this HEARTBEAT_FRAG.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sequence: SequenceNumber,
    /// Number of the last available fragment; all from 1 are available.
    pub last_fragment: u32,
    /// Incremented with each new HEARTBEAT_FRAG, so that duplicates are detected.
    pub count: i32,
}

impl HeartbeatFrag {
    /// Parses the submessage body.
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
