//! Preformatted head of a message with one sample: header, INFO_TS and the head of a DATA.
//!
//! Between a writer's samples without inline QoS only timestamp, sequence number and length differ. The rest
//! is formatted once and copied for each sample.

use super::{
    DataHead, HEADER_BYTES, Header, INFO_TIMESTAMP_BYTES, InfoTimestamp, PayloadKind,
    data::{BEFORE_COUNTED, FIXED_BYTES},
    submessage::{SUBMESSAGE_HEADER_BYTES, length_field},
};
use crate::{bytes::Writer, guid::EntityId, sequence::SequenceNumber, time::Timestamp};

/// Size of header, INFO_TS and the head of a DATA without inline QoS, in bytes.
pub const SAMPLE_HEAD_BYTES: usize = DATA_AT + SUBMESSAGE_HEADER_BYTES + FIXED_BYTES;

const DATA_AT: usize = HEADER_BYTES + INFO_TIMESTAMP_BYTES;
const TIMESTAMP_AT: usize = HEADER_BYTES + SUBMESSAGE_HEADER_BYTES;
/// Offset of the length field, after the submessage's id and flags.
const LENGTH_AT: usize = DATA_AT + 2;
/// Offset of the sequence number, after the two entity ids.
const SEQUENCE_AT: usize = DATA_AT + SUBMESSAGE_HEADER_BYTES + BEFORE_COUNTED + 8;

/// Head of one writer's samples to all readers, without inline QoS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleHead {
    bytes: [u8; SAMPLE_HEAD_BYTES],
}

impl SampleHead {
    /// Formats the constant parts of a writer's samples.
    #[must_use]
    pub fn new(header: &Header, writer: EntityId) -> Self {
        let mut bytes = [0; SAMPLE_HEAD_BYTES];
        let data = DataHead {
            reader: EntityId::UNKNOWN,
            writer,
            sequence: SequenceNumber::UNKNOWN,
            key_hash: None,
            status: None,
            payload: PayloadKind::Data,
        };
        header.emit(&mut bytes);
        InfoTimestamp(Some(Timestamp::ZERO)).emit(&mut bytes[HEADER_BYTES..]);
        data.emit(&mut bytes[DATA_AT..], 0);
        Self { bytes }
    }

    /// Writes the head of one sample. `payload_len` is that of [`DataHead::emit`]; the DATA is the last submessage of
    /// its message.
    #[inline]
    pub fn emit(
        &self,
        heads: &mut [u8; SAMPLE_HEAD_BYTES],
        timestamp: Timestamp,
        sequence: SequenceNumber,
        payload_len: usize,
    ) {
        *heads = self.bytes;
        timestamp.write(&mut Writer::new(&mut heads[TIMESTAMP_AT..]));
        Writer::new(&mut heads[LENGTH_AT..]).u16(length_field(FIXED_BYTES + payload_len));
        sequence.write(&mut Writer::new(&mut heads[SEQUENCE_AT..]));
    }
}
