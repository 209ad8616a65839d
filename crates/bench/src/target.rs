//! Whose bulk a flood or a storm is: nobody's that isolane knows, or that of a level of the
//! participants under test.
//!
//! What is sent to a level goes to its group in domain 0 and is a whole RTPS message with one sample,
//! from a writer that nobody has heard of: a participant with a reader of that level receives it, reads
//! it, and finds no reader for it. So it costs what bulk costs on its way in, and disturbs no count of
//! samples.

use std::net::{Ipv4Addr, SocketAddrV4};

use isolane_wire::guid::{EntityId, GuidPrefix};
use isolane_wire::level::Level;
use isolane_wire::rtps::{DataHead, Header, MessageWriter, PayloadKind};
use isolane_wire::sequence::SequenceNumber;
use serde::{Deserialize, Serialize};

/// Who bulk is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Sockets of other programs on the hosts: isolane has no flow for it.
    #[default]
    Strangers,
    /// The readers of a level, 0 to 7, of the participants under test.
    Level(u8),
}

impl Target {
    /// A payload of about that many bytes.
    pub(crate) fn content(self, payload_bytes: u32) -> Vec<u8> {
        let mut content = vec![0; payload_bytes as usize];
        if let Target::Level(_) = self
            && let Some(length) = write_sample(&mut content)
        {
            content.truncate(length);
        }
        content
    }

    /// Whether there is such a level.
    pub(crate) fn exists(self) -> bool {
        match self {
            Target::Strangers => true,
            Target::Level(level) => Level::new(level).is_some(),
        }
    }
}

/// Where the readers of a level listen in domain 0 (definitions: 239.255.(16 + level).0:7401).
pub(crate) fn level_group(level: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(239, 255, 16 + level, 0), 7401)
}

/// Fills a datagram with a sample as long as fits; `None`, and it is as it was, if none does.
fn write_sample(datagram: &mut [u8]) -> Option<usize> {
    const STRANGER: GuidPrefix = GuidPrefix([0xb0; 12]);
    /// Of user-defined writers without a key (RTPS 2.5 §9.3.1.2).
    const WRITER: EntityId = EntityId([0, 0, 1, 0x03]);
    /// CDR, little-endian.
    const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];
    let head = DataHead {
        reader: EntityId::UNKNOWN,
        writer: WRITER,
        sequence: SequenceNumber(1),
        key_hash: None,
        status: None,
        payload: PayloadKind::Data,
    };
    let mut message = MessageWriter::new(datagram, &Header::new(STRANGER)).ok()?;
    let room = message.remaining().checked_sub(head.buffer_len())? & !3;
    let mut payload = vec![0; room.max(ENCAPSULATION.len())];
    payload[..ENCAPSULATION.len()].copy_from_slice(&ENCAPSULATION);
    message.data(&head, &payload).ok()?;
    Some(message.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolane_wire::rtps::{HEADER_BYTES, Submessages};

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
