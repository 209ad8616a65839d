//! GUIDs derived from a static description.
//!
//! All sides derive the same GUIDs from the same names, so they need not be announced. A participant's GUID prefix
//! consists of the vendor id, six bytes hashed from its name, and four bytes for its start. The start differs every
//! time, since a GUID must not be reused (RTPS 2.5 §8.2.4.2, §9.3.1.5), and is zero until a datagram arrives. An
//! endpoint's entity key is hashed from topic and type, never from a position in a list. Where descriptions differ,
//! endpoints thus stay unmatched rather than match wrong ones. The key's highest bit is set; numbered entity keys never
//! reach it.

use heapless::String as BoundedString;
use isolane_wire::{
    discovery::EndpointData,
    guid::{EntityId, EntityKind, GuidPrefix},
    rtps::VENDOR_ID,
};

use crate::{discovery::EndpointKind, fingerprint::Fingerprint};

/// Number of GUID prefix bytes that are the same at every start.
const NAMED: usize = 8;

/// Number of a start (incarnation) of a described participant.
pub(crate) type Start = [u8; 4];

/// Value before any datagram has arrived.
pub(crate) const NOT_HEARD: Start = [0; 4];

/// Returns the GUID prefix of a described participant at a given start.
pub(crate) fn prefix_of(name: &str, start: Start) -> GuidPrefix {
    Named::new(name).at(start)
}

/// Leading bytes common to the GUID prefixes of all starts. Cached, because every unknown sender is compared with all
/// described peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named(u64);

impl Named {
    pub(crate) fn new(name: &str) -> Self {
        let [a, b, c, d, e, f, g, h] = Fingerprint::NEW
            .with(name.as_bytes())
            .number()
            .to_be_bytes();
        let [v, w] = VENDOR_ID;
        // The two bytes that do not fit are folded into the others.
        Self(u64::from_be_bytes([v, w, a ^ g, b ^ h, c, d, e, f]))
    }

    /// Returns the GUID prefix at a given start.
    pub(crate) fn at(self, start: Start) -> GuidPrefix {
        let mut prefix = [0; 12];
        prefix[..NAMED].copy_from_slice(&self.0.to_be_bytes());
        prefix[NAMED..].copy_from_slice(&start);
        GuidPrefix(prefix)
    }
}

/// Splits a prefix into the bytes derived from the name, and the start.
pub(crate) fn split(prefix: GuidPrefix) -> (Named, Start) {
    let [a, b, c, d, e, f, g, h, start @ ..] = prefix.0;
    (Named(u64::from_be_bytes([a, b, c, d, e, f, g, h])), start)
}

/// Returns the start in `prefix` if it has the same name as `named`.
pub(crate) fn start_of(named: GuidPrefix, prefix: GuidPrefix) -> Option<Start> {
    let ((named, _), (other, start)) = (split(named), split(prefix));
    (other == named).then_some(start)
}

pub(crate) fn entity_of(kind: EndpointKind, keyed: bool, topic: &str, type_name: &str) -> EntityId {
    let hash = Fingerprint::NEW
        .with(topic.as_bytes())
        .with(&[0])
        .with(type_name.as_bytes())
        .number();
    let folded = (hash ^ (hash >> 23) ^ (hash >> 46)) as u32;
    let key = (1 << 23) | (folded & ((1 << 23) - 1));
    let kind = match (kind, keyed) {
        (EndpointKind::Writer, true) => EntityKind::WRITER_WITH_KEY,
        (EndpointKind::Writer, false) => EntityKind::WRITER_NO_KEY,
        (EndpointKind::Reader, true) => EntityKind::READER_WITH_KEY,
        (EndpointKind::Reader, false) => EntityKind::READER_NO_KEY,
    };
    EntityId::user(key, kind)
}

pub(crate) fn kind_of(entity: EntityId) -> EndpointKind {
    match entity.is_writer() {
        true => EndpointKind::Writer,
        false => EndpointKind::Reader,
    }
}

/// Digest of the endpoint data on which both sides must agree: entity id (topic and type), QoS relevant for a match,
/// and unicast locators. The order of the endpoints does not matter.
pub(crate) fn digest_of(endpoints: &[EndpointData]) -> u64 {
    let of_one = |endpoint: &EndpointData| {
        let qos = &endpoint.qos;
        let mut hash = Fingerprint::NEW
            .with(&endpoint.guid.entity.0)
            .with(&qos.reliability.kind.number().to_be_bytes())
            .with(&qos.durability.number().to_be_bytes())
            .with(&qos.transport_priority.to_be_bytes());
        for locator in &endpoint.unicast {
            hash = hash
                .with(&locator.address)
                .with(&locator.port.to_be_bytes());
        }
        hash.number()
    };
    endpoints.iter().map(of_one).fold(0, u64::wrapping_add)
}

/// Truncates a name to the capacity of its buffer.
pub(crate) fn bounded(name: &str) -> BoundedString<64> {
    let mut bounded = BoundedString::new();
    for character in name.chars() {
        if bounded.push(character).is_err() {
            break;
        }
    }
    bounded
}

#[cfg(test)]
mod tests {
    use isolane_wire::guid::Guid;

    use super::*;

    #[test]
    fn a_participant_is_called_alike_at_every_start_but_for_four_bytes() {
        let (first, second) = (prefix_of("brake", [1; 4]), prefix_of("brake", [2; 4]));
        assert_ne!(first, second);
        assert_eq!(start_of(first, second), Some([2; 4]));
        assert_eq!(start_of(first, prefix_of("steer", [1; 4])), None);
        assert_eq!(first.0[..2], VENDOR_ID);
    }

    #[test]
    fn an_endpoint_is_called_by_topic_type_key_and_end() {
        let writer = entity_of(EndpointKind::Writer, false, "Brake", "t::Brake");
        assert!(writer.is_writer() && !writer.is_keyed() && !writer.is_builtin());
        assert!(writer.0[0] >= 0x80);
        for other in [
            entity_of(EndpointKind::Writer, false, "Brake", "t::Brakes"),
            entity_of(EndpointKind::Writer, false, "Brakes", "t::Brake"),
            entity_of(EndpointKind::Writer, true, "Brake", "t::Brake"),
            entity_of(EndpointKind::Reader, false, "Brake", "t::Brake"),
            // The separator between topic and type counts.
            entity_of(EndpointKind::Writer, false, "Braket::", "Brake"),
        ] {
            assert_ne!(writer, other);
        }
    }

    #[test]
    fn a_digest_tells_what_is_known_alike_and_not_in_which_order() {
        let endpoint = |topic, level| {
            let entity = entity_of(EndpointKind::Reader, false, topic, "t::T");
            let mut data = EndpointData::new(Guid {
                prefix: GuidPrefix::UNKNOWN,
                entity,
            });
            data.qos.transport_priority = level;
            data
        };
        let (one, other) = (endpoint("A", 7), endpoint("B", 7));
        let both = digest_of(&[one.clone(), other.clone()]);
        assert_eq!(both, digest_of(&[other.clone(), one.clone()]));
        assert_ne!(both, digest_of(&[one]));
        assert_ne!(both, digest_of(&[other, endpoint("A", 6)]));
    }
}
