//! Static discovery: participants and endpoints that all sides know by description.
//!
//! A described participant ([`StaticParticipant`]) derives the GUIDs of its described endpoints from the description
//! and does not announce them. A described peer ([`Engine::add_static_peer`]) is entered in the tables with its
//! endpoints at once; samples go to the described addresses.
//!
//! The description cannot tell which start (incarnation) of the peer runs. The peer's GUID prefix ends in zeros until
//! its first datagram, from the described address, supplies the rest. A prefix of another start means a restart. The
//! peer is then removed as after a farewell and entered again, so that no protocol state outlives a start. All this
//! concerns unknown senders only and costs the sample path nothing.
//!
//! A peer that announces itself by SPDP has a lease, which first counts from its description. After a farewell or an
//! expired lease it is entered again when it sends something. A peer that announces nothing is assumed alive. SEDP data
//! about described endpoints is ignored.

mod impostors;
mod names;
mod own;
mod peers;

use alloc::vec::Vec;

use heapless::String as BoundedString;
use isolane_wire::{
    discovery::EndpointData,
    guid::{Guid, GuidPrefix},
};
use thiserror::Error;

use self::names::{NOT_HEARD, bounded, digest_of, entity_of, prefix_of};
use super::EndpointKind;
use crate::{
    endpoints::{CreateError, EndpointConfig, endpoint_data},
    limits::{MAX_STATIC_ENDPOINTS, MAX_STATIC_PEERS},
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
    /// No announcements. It is assumed alive, and it ignores participants that are not described.
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
    pub fn prefix_of_none(&self) -> GuidPrefix {
        prefix_of(&self.name, NOT_HEARD)
    }

    /// GUID prefix at a given start. No two starts of it may use the same value.
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
