//! ACKNACK: a reader acknowledges and asks (RTPS 2.5 §8.3.8.1).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::SequenceNumberSet,
};

/// Flag F: no answer is needed.
const FINAL: u8 = 0x02;

/// A reader tells a writer what it has and what it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckNack {
    /// Who tells.
    pub reader: EntityId,
    /// Who is told.
    pub writer: EntityId,
    /// All below the base have arrived; the members are missing and asked for.
    pub state: SequenceNumberSet,
    /// Grows with each new one, so that a repeated one is known.
    pub count: i32,
    /// Whether the writer need not answer with a heartbeat.
    pub is_final: bool,
}

impl AckNack {
    /// Reads a body. A base of 0, which the standard does not allow, is accepted in an empty set:
    /// some implementations send it before they have heard of the writer's state.
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
