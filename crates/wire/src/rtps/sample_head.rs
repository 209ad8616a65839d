//! What stands in front of a sample that is a whole message: header, INFO_TS, and the head of a DATA.
//!
//! Of a writer's samples without inline QoS only time, number and length differ there. The rest
//! is laid out once, and a sample takes a copy of it.

use super::{
    DataHead, HEADER_BYTES, Header, INFO_TIMESTAMP_BYTES, InfoTimestamp, PayloadKind,
    data::{BEFORE_COUNTED, FIXED_BYTES},
    submessage::{SUBMESSAGE_HEADER_BYTES, length_field},
};
use crate::{bytes::Writer, guid::EntityId, sequence::SequenceNumber, time::Timestamp};

/// Bytes of header, INFO_TS and the head of a DATA without inline QoS.
pub const SAMPLE_HEAD_BYTES: usize = DATA_AT + SUBMESSAGE_HEADER_BYTES + FIXED_BYTES;

const DATA_AT: usize = HEADER_BYTES + INFO_TIMESTAMP_BYTES;
const TIMESTAMP_AT: usize = HEADER_BYTES + SUBMESSAGE_HEADER_BYTES;
/// Behind the submessage's identifier and flags.
const LENGTH_AT: usize = DATA_AT + 2;
/// Behind the two entity identifiers.
const SEQUENCE_AT: usize = DATA_AT + SUBMESSAGE_HEADER_BYTES + BEFORE_COUNTED + 8;

/// The heads of one writer's samples, for all its readers, without inline QoS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleHead {
    bytes: [u8; SAMPLE_HEAD_BYTES],
}

impl SampleHead {
    /// Lays out what all samples of a writer have in common.
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

    /// Writes the heads of one sample. `payload_len` as of [`DataHead::emit`]; the DATA is the last
    /// submessage of its message.
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
