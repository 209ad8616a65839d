//! ACKNACK submessage (RTPS 2.5 §8.3.8.1).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::SequenceNumberSet,
};

/// Flag F: no response is required.
const FINAL: u8 = 0x02;

/// ACKNACK: a reader's acknowledgment and repair request to a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckNack {
    /// Entity id of the reader that sends this ACKNACK.
    pub reader: EntityId,
    /// Entity id of the destination writer.
    pub writer: EntityId,
    /// readerSNState: all changes below the base are acknowledged; the members are missing and requested.
    pub state: SequenceNumberSet,
    /// Incremented with each new ACKNACK, so that duplicates are detected.
    pub count: i32,
    /// Final flag: the writer need not respond with a HEARTBEAT.
    pub is_final: bool,
}

impl AckNack {
    /// Parses the submessage body. An empty set with base 0, not allowed by the standard, is accepted: some
    /// implementations send it before they have received a HEARTBEAT.
    ///
    /// # Errors
    /// [`Error::InvalidSet`] or [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        let parsed = Self {
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            state: SequenceNumberSet::read(&mut reader, 0)?,
            count: reader.i32()?,
            is_final: flags & FINAL != 0,
        };
        if parsed.state.base().get() == 0 && !parsed.state.is_empty() {
            return Err(Error::InvalidSet);
        }
        Ok(parsed)
    }

    fn body_len(&self) -> usize {
        8 + self.state.buffer_len() + 4
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[inline]
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        SUBMESSAGE_HEADER_BYTES + self.body_len()
    }

    /// Writes the submessage with its header; returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len).
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut writer = Writer::new(buffer);
        let flags = if self.is_final { FINAL } else { 0 };
        write_header(&mut writer, SubmessageId::ACKNACK, flags, self.body_len());
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.state.write(&mut writer);
        writer.i32(self.count);
        writer.len()
    }
}
