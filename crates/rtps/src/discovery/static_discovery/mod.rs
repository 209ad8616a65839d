//! Static discovery: participants and endpoints that all sides know by description.
//!
//! A described participant ([`StaticParticipant`]) derives the GUIDs of its described endpoints from the description
//! and does not announce them. A described peer ([`LocalParticipant::add_static_peer`]) is entered in the tables with
//! its endpoints at once; samples go to the described addresses.
//!
//! The description cannot tell which start (incarnation) of the peer runs. The peer's GUID prefix ends in zeros until
//! its first datagram, from the described address, supplies the rest. A prefix of another start means a restart. The
//! peer is then removed as after a farewell and entered again, so that no protocol state outlives a start. All this
//! concerns unknown senders only and costs the sample path nothing.
//!
//! A peer that announces itself by SPDP has a lease, which first counts from the entry of its description. After a
//! farewell or an expired lease it is entered again when it sends something. A peer that announces nothing is assumed
//! alive. SEDP data about described endpoints is ignored.
//!
//! # GUIDs
//!
//! All sides derive the same GUIDs from the same names, so they need not be announced. A participant's GUID prefix
//! consists of the vendor id, six bytes hashed from its name, and four bytes for its start. The start differs every
//! time, since a GUID must not be reused (RTPS 2.5 §8.2.4.2, §9.3.1.5), and is zero until a datagram arrives. An
//! endpoint's entity key is hashed from topic and type, never from a position in a list. Where descriptions differ,
//! endpoints thus stay unmatched rather than match wrong ones. The key's highest bit is set; numbered entity keys never
//! reach it.

mod peers;

use alloc::vec::Vec;

use heapless::String as BoundedString;
use isolane_wire::{
    builtin_data::EndpointData,
    guid::{EntityId, EntityKind, Guid, GuidPrefix},
    message::VENDOR_ID,
};
use thiserror::Error;

use crate::{
    discovery::EndpointKind,
    hash::Fingerprint,
    limits::{MAX_STATIC_ENDPOINTS, MAX_STATIC_PEERS},
    participant::{
        LocalParticipant, Shared,
        local_endpoints::{CreateError, EndpointConfig, endpoint_data},
    },
};

pub(crate) use self::peers::StaticPeer;

/// Discovery announcements made by a described participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Announces {
    /// SPDP and SEDP: announces itself and its endpoints that are not described.
    #[default]
    All,
    /// SPDP only: announces itself and has a lease. All its endpoints are described.
    Itself,
    /// No announcements. The participant is assumed alive, and ignores participants that are not described.
    Nothing,
}

/// Static description of a participant, identical on all sides.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticParticipant {
    name: BoundedString<64>,
    address: [u8; 4],
    announces: Announces,
    endpoints: Vec<EndpointData>,
}

impl StaticParticipant {
    /// Creates a description without endpoints. The name determines the GUID prefix except for the start; datagrams
    /// come from `address`.
    #[must_use]
    pub fn new(name: &str, address: [u8; 4], announces: Announces) -> Self {
        Self {
            name: bounded(name),
            address,
            announces,
            endpoints: Vec::new(),
        }
    }

    /// Name of the participant.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a described endpoint. Its names, key, policies and locators are used.
    ///
    /// # Errors
    /// [`StaticError`]; nothing is added then.
    pub fn add(
        &mut self,
        kind: EndpointKind,
        config: &EndpointConfig<'_>,
    ) -> Result<(), StaticError> {
        if self.endpoints.len() >= MAX_STATIC_ENDPOINTS {
            return Err(StaticError::TooManyEndpoints);
        }
        let entity = entity_of(kind, config.keyed, config.topic_name, config.type_name);
        if self
            .endpoints
            .iter()
            .any(|other| other.guid.entity == entity)
        {
            return Err(StaticError::SameName);
        }
        let prefix = prefix_of(&self.name, NOT_HEARD);
        let data = endpoint_data(Guid { prefix, entity }, config, None)?;
        self.endpoints.push(data);
        Ok(())
    }

    /// Digest of all its described endpoints, which its SPDP announcement carries.
    #[must_use]
    pub fn digest(&self) -> u64 {
        digest_of(&self.endpoints)
    }

    /// GUID prefix while its start is unknown.
    #[must_use]
    pub fn prefix_before_start(&self) -> GuidPrefix {
        prefix_of(&self.name, NOT_HEARD)
    }

    /// GUID prefix at a given start. No two starts of the participant may use the same value.
    #[must_use]
    pub fn prefix(&self, start: [u8; 4]) -> GuidPrefix {
        let start = if start == NOT_HEARD {
            [0, 0, 0, 1]
        } else {
            start
        };
        prefix_of(&self.name, start)
    }
}

/// Reason why a description is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StaticError {
    /// The maximum number of peers is described.
    #[error(
        "{MAX_STATIC_PEERS} participants are described already: describe those that talk with this one"
    )]
    TooManyPeers,
    /// The maximum number of endpoints is described.
    #[error(
        "a described participant has at most {MAX_STATIC_ENDPOINTS} endpoints: leave others to discovery"
    )]
    TooManyEndpoints,
    /// Two participants, or two endpoints of one, would have the same GUID.
    #[error(
        "two described participants, or two endpoints of one, would have the same GUID: give one another name"
    )]
    SameName,
    /// The table of participants or remote endpoints is full.
    #[error(
        "there is no room for what is described: raise limits.participants or limits.remote_endpoints"
    )]
    NoRoom,
    /// The endpoint itself is invalid.
    #[error(transparent)]
    Endpoint(#[from] CreateError),
}

/// Current state of a described peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticPeerState<'a> {
    /// Name of the peer.
    pub name: &'a str,
    /// GUID prefix; the last four bytes are zero until a datagram of the peer arrives.
    pub prefix: GuidPrefix,
    /// True while it counts as alive and its endpoints are matched.
    pub is_present: bool,
    /// True if it announces another digest than that of the local description.
    pub disagrees: bool,
    /// Number of restarts detected.
    pub restarts: u32,
}

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
            .with(&qos.transport_priority.to_be_bytes())
            .with(&qos.deadline.seconds.to_be_bytes())
            .with(&qos.deadline.fraction.to_be_bytes());
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

impl LocalParticipant {
    /// Returns which announcements this participant makes.
    #[must_use]
    pub fn announces(&self) -> Announces {
        self.shared.announces()
    }

    /// Returns whether peers may know this participant by a description.
    #[must_use]
    pub fn has_description(&self) -> bool {
        self.shared.config.described.is_some()
    }

    /// Returns the entity id of a new endpoint if it is described; `None` if it gets a number.
    pub(crate) fn described_entity(
        &self,
        kind: EndpointKind,
        config: &EndpointConfig<'_>,
    ) -> Result<Option<EntityId>, CreateError> {
        let Some(described) = &self.shared.config.described else {
            return Ok(None);
        };
        let mut endpoints = described.endpoints.iter();
        let found = endpoints.find(|endpoint| {
            endpoint.topic_name == config.topic_name && kind_of(endpoint.guid.entity) == kind
        });
        let Some(found) = found else {
            return match described.announces {
                Announces::All => Ok(None),
                Announces::Itself | Announces::Nothing => Err(CreateError::NotDescribed),
            };
        };
        let (is, wanted) = (&config.qos, &found.qos);
        let checks = [
            (found.type_name == config.type_name, "its type"),
            (found.is_keyed() == config.keyed, "whether it has a key"),
            (
                is.transport_priority == wanted.transport_priority,
                "its level",
            ),
            (
                is.reliability.kind == wanted.reliability.kind,
                "RELIABILITY",
            ),
            (is.durability == wanted.durability, "DURABILITY"),
            (
                kind == EndpointKind::Reader
                    || is.data_representation == wanted.data_representation,
                "DATA_REPRESENTATION",
            ),
            // Peers match the described DEADLINE, so this one must be compatible where that is.
            (
                match kind {
                    EndpointKind::Writer => is.deadline <= wanted.deadline,
                    EndpointKind::Reader => is.deadline >= wanted.deadline,
                },
                "DEADLINE",
            ),
        ];
        if let Some(&(_, what)) = checks.iter().find(|(agrees, _)| !agrees) {
            return Err(CreateError::NotAsDescribed(what));
        }
        let entity = found.guid.entity;
        let is_taken = match kind {
            EndpointKind::Writer => self.writers.by_entity.contains_key(&entity),
            EndpointKind::Reader => self
                .readers
                .table
                .find(|reader| reader.guid.entity == entity)
                .is_some(),
        };
        match is_taken {
            true => Err(CreateError::DescribedOnce),
            false => Ok(Some(entity)),
        }
    }
}

impl Shared {
    pub(crate) fn announces(&self) -> Announces {
        let described = self.config.described.as_ref();
        described.map_or(Announces::All, |described| described.announces)
    }

    /// Digest of this participant's own description, for its announcement.
    pub(in crate::discovery) fn own_digest(&self) -> Option<u64> {
        self.config
            .described
            .as_ref()
            .map(StaticParticipant::digest)
    }

    /// Returns whether an endpoint of this participant is described, and therefore not announced.
    pub(crate) fn is_described(&self, entity: EntityId) -> bool {
        let described = self.config.described.as_ref();
        described.is_some_and(|described| {
            let mut endpoints = described.endpoints.iter();
            endpoints.any(|endpoint| endpoint.guid.entity == entity)
        })
    }

    /// Returns whether a destination prefix names this participant without a start, as used by a peer that does not
    /// know the start yet.
    pub(crate) fn is_any_start_of_this(&self, prefix: GuidPrefix) -> bool {
        self.config.described.is_some() && start_of(self.guid_prefix(), prefix) == Some(NOT_HEARD)
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::{guid::Guid, time::Duration};

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
        let mut with_deadline = one.clone();
        with_deadline.qos.deadline = Duration::from_millis(10);
        assert_ne!(both, digest_of(&[with_deadline, other.clone()]));
        assert_ne!(both, digest_of(&[one]));
        assert_ne!(both, digest_of(&[other, endpoint("A", 6)]));
    }
}
