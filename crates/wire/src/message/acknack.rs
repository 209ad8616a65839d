//! ACKNACK and NACK_FRAG: what a reader acknowledges and requests (RTPS 2.5 §8.3.8.1, §8.3.8.12).

use super::submessage::{SubmessageBody, SubmessageId};
use crate::{
    Error,
    bytes::{Reader, Writer, order_of},
    guid::EntityId,
    sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet},
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
}

impl SubmessageBody for AckNack {
    const ID: u8 = SubmessageId::ACKNACK;

    #[inline]
    fn flags(&self) -> u8 {
        if self.is_final { FINAL } else { 0 }
    }

    #[inline]
    fn body_len(&self) -> usize {
        8 + self.state.buffer_len() + 4
    }

    #[inline]
    fn write_body(&self, writer: &mut Writer<'_>) {
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.state.write(writer);
        writer.i32(self.count);
    }
}

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
}

impl SubmessageBody for NackFrag {
    const ID: u8 = SubmessageId::NACK_FRAG;

    #[inline]
    fn body_len(&self) -> usize {
        16 + self.state.buffer_len() + 4
    }

    #[inline]
    fn write_body(&self, writer: &mut Writer<'_>) {
        writer.put(&self.reader.0);
        writer.put(&self.writer.0);
        self.sequence.write(writer);
        self.state.write(writer);
        writer.i32(self.count);
    }
}
