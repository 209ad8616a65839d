//! NACK_FRAG submessage (RTPS 2.5 §8.3.8.12).

use super::submessage::{SUBMESSAGE_HEADER_BYTES, SubmessageId, write_header};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::{FragmentNumberSet, SequenceNumber},
};

/// NACK_FRAG: a reader's request for missing fragments of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NackFrag {
    /// Entity id of the reader that sends this NACK_FRAG.
    pub reader: EntityId,
    /// Entity id of the destination writer.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sequence: SequenceNumber,
    /// Missing, requested fragments. Unlike in an ACKNACK, those below the base are not acknowledged.
    pub state: FragmentNumberSet,
    /// Incremented with each new NACK_FRAG, so that duplicates are detected.
    pub count: i32,
}

impl NackFrag {
    /// Parses the submessage body.
    ///
    /// # Errors
    /// [`Error::InvalidSequenceNumber`] if `sequence < 1`; [`Error::InvalidSet`];
    /// [`Error::Truncated`].
    #[inline]
    pub fn parse(flags: u8, body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(body, order_of(flags));
        Ok(Self {
            reader: EntityId(*reader.array()?),
            writer: EntityId(*reader.array()?),
            sequence: SequenceNumber::read_positive(&mut reader)?,
            state: FragmentNumberSet::read(&mut reader)?,
            count: reader.i32()?,
        })
    }

    fn body_len(&self) -> usize {
        16 + self.state.buffer_len() + 4
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
        write_header(&mut writer, SubmessageId::NACK_FRAG, 0, self.body_len());
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.sequence.write(&mut writer);
        self.state.write(&mut writer);
        writer.i32(self.count);
        writer.len()
    }
}
