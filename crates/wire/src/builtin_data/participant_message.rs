//! Participant messages: liveliness assertions and vendor-defined data (`ParticipantMessageData`,
//! RTPS 2.5 §8.4.13.5, §9.6.3.1).

use crate::{
    BufferTooSmall, ByteOrder, Error,
    bytes::{Reader, Writer},
    guid::GuidPrefix,
};

const CDR_BE: u16 = 0x0000;
const CDR_LE: u16 = 0x0001;

/// Encapsulation header, prefix, kind, and length of the data.
const FIXED_BYTES: usize = 4 + 12 + 4 + 4;

/// Participant message, borrowed from its payload. Its key is the prefix and the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParticipantMessage<'a> {
    /// GUID prefix of the sender.
    pub participant: GuidPrefix,
    /// Kind: a `KIND_*`, or a vendor's if the first bit is set.
    pub kind: [u8; 4],
    /// Data of the kind; empty for liveliness assertions.
    pub data: &'a [u8],
}

impl<'a> ParticipantMessage<'a> {
    /// Reserved kind.
    pub const KIND_UNKNOWN: [u8; 4] = [0, 0, 0, 0];
    /// Asserts the participant's writers with AUTOMATIC liveliness.
    pub const KIND_AUTOMATIC_LIVELINESS: [u8; 4] = [0, 0, 0, 1];
    /// Asserts the participant's writers with MANUAL_BY_PARTICIPANT liveliness.
    pub const KIND_MANUAL_LIVELINESS: [u8; 4] = [0, 0, 0, 2];

    /// Parses a payload.
    ///
    /// # Errors
    /// [`Error::UnknownEncapsulation`] if it is not plain CDR; [`Error::Truncated`].
    pub fn parse(payload: &'a [u8]) -> Result<Self, Error> {
        let (&[a, b, _, _], rest) = payload.split_first_chunk::<4>().ok_or(Error::Truncated)?;
        let order = match u16::from_be_bytes([a, b]) {
            CDR_BE => ByteOrder::Big,
            CDR_LE => ByteOrder::Little,
            other => return Err(Error::UnknownEncapsulation(other)),
        };
        let mut reader = Reader::new(rest, order);
        let participant = GuidPrefix(*reader.array()?);
        let kind = *reader.array()?;
        let length = reader.u32()? as usize;
        Ok(Self {
            participant,
            kind,
            data: reader.take(length)?,
        })
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        FIXED_BYTES + self.data.len()
    }

    /// Writes the payload, little-endian, and returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let room = buffer.get_mut(..self.buffer_len()).ok_or(BufferTooSmall)?;
        let mut writer = Writer::new(room);
        writer.put(&CDR_LE.to_be_bytes());
        writer.put(&[0, 0]);
        writer.put(&self.participant.0);
        writer.put(&self.kind);
        writer.u32(self.data.len() as u32);
        writer.put(self.data);
        Ok(writer.len())
    }
}
