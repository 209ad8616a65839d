//! Receivers of the bulk traffic of a flood or storm.
//!
//! Bulk for a level goes to its multicast group in domain 0. Each datagram is a complete RTPS message with one sample
//! of an unknown writer. A participant with a reader of that level receives and parses it, and finds no matching
//! reader. The datagram therefore costs a participant the receive work of bulk without affecting its sample counts.

use std::net::{Ipv4Addr, SocketAddrV4};

use isolane_wire::guid::{EntityId, GuidPrefix};
use isolane_wire::level::Level;
use isolane_wire::message::{DataPrefix, HEADER_BYTES, Header, PayloadKind};
use isolane_wire::sequence::SequenceNumber;
use serde::{Deserialize, Serialize};

/// Receivers of bulk traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Sockets of other programs on the hosts, unrelated to isolane.
    #[default]
    Strangers,
    /// Readers of a level, 0 to 7, of the participants under test.
    Level(u8),
}

impl Target {
    /// Payload of about `payload_bytes`.
    pub(crate) fn content(self, payload_bytes: u32) -> Vec<u8> {
        let mut content = vec![0; payload_bytes as usize];
        if let Target::Level(_) = self
            && let Some(length) = write_sample(&mut content)
        {
            content.truncate(length);
        }
        content
    }

    /// Returns whether the level is valid.
    pub(crate) fn exists(self) -> bool {
        match self {
            Target::Strangers => true,
            Target::Level(level) => Level::new(level).is_some(),
        }
    }
}

/// Multicast address of a level's readers in domain 0 (definitions: 239.255.(16 + level).0:7401).
pub(crate) fn level_group(level: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(239, 255, 16 + level, 0), 7401)
}

/// Fills a datagram with the longest sample that fits. Returns `None` without a change if none fits.
fn write_sample(datagram: &mut [u8]) -> Option<usize> {
    let heads = HEADER_BYTES + HEAD.buffer_len();
    let room = datagram.len().checked_sub(heads + ENCAPSULATION.len())? & !3;
    let sample = message_with(&vec![0; room]);
    datagram.get_mut(..sample.len())?.copy_from_slice(&sample);
    Some(sample.len())
}

/// RTPS message with one serialised sample of an unknown writer. The sample is padded to a multiple of four and ends
/// the message.
fn message_with(sample: &[u8]) -> Vec<u8> {
    let payload = [&ENCAPSULATION, sample].concat();
    let heads = HEADER_BYTES + HEAD.buffer_len();
    let padded = payload.len().next_multiple_of(4);
    let mut message = vec![0; heads + padded];
    Header::new(STRANGER).emit(&mut message);
    HEAD.emit(&mut message[HEADER_BYTES..], padded);
    message[heads..][..payload.len()].copy_from_slice(&payload);
    message
}

const STRANGER: GuidPrefix = GuidPrefix([0xb0; 12]);
/// CDR, little-endian.
const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];
const HEAD: DataPrefix = DataPrefix {
    reader: EntityId::UNKNOWN,
    // A user-defined writer without a key (RTPS 2.5 §9.3.1.2).
    writer: EntityId([0, 0, 1, 0x03]),
    sequence: SequenceNumber(1),
    key_hash: None,
    status: None,
    payload: PayloadKind::Data,
};

#[cfg(test)]
mod tests {
    use super::*;
    use isolane_wire::message::Submessages;

    #[test]
    fn bulk_for_a_level_is_a_message_as_long_as_asked_for() {
        for bytes in [64, 512, 1024, 1472] {
            let content = Target::Level(1).content(bytes);
            assert_eq!(content.len(), bytes as usize);
            assert!(Header::parse(&content).is_ok());
            assert_eq!(Submessages::new(&content, HEADER_BYTES).count(), 1);
        }
        assert_eq!(Target::Level(1).content(10), [0; 10], "none fits");
    }

    #[test]
    fn bulk_for_strangers_is_no_message() {
        let content = Target::Strangers.content(512);
        assert!(Header::parse(&content).is_err());
    }

    #[test]
    fn a_levels_group_is_as_defined() {
        assert_eq!(level_group(1).to_string(), "239.255.17.0:7401");
    }
}
