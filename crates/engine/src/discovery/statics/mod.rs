//! Static discovery: participants and endpoints that are described on all sides, and so need not be found.
//!
//! A participant that is described ([`StaticParticipant`]) gives its described endpoints the names that follow from the
//! description, and announces none of them. One that is described as a peer
//! ([`Engine::add_static_peer`]) lies in the tables from then on, with its endpoints, as if it had been discovered:
//! they match when they are created, and samples go where the description says.
//!
//! What no description can say is which start of the peer it is. Its GUID prefix ends in zeros until the first
//! datagram of it comes from the address that is described; from then on it has that datagram's. A prefix of another
//! start means that it has started again: it is parted from, like one that says good-bye, and entered anew under
//! that name, so that nothing of the reliable protocol outlives a start. All this begins where a sender is known to
//! nobody, and so costs nothing on the way of a sample.
//!
//! A peer that announces itself by SPDP lives as long as its lease, the first one counted from when it was described;
//! one that is gone, by its word or by its silence, is entered again as soon as something comes of it. One that
//! announces nothing is taken to be alive. What SEDP brings of described endpoints is not believed: the description holds.

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

/// What a described participant says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Announces {
    /// Itself, and its endpoints that are not described (SPDP and SEDP).
    #[default]
    All,
    /// Itself alone (SPDP): it lives as long as its lease. All its endpoints are described.
    Itself,
    /// Nothing, and it hears nobody that is not described: it is taken to be alive.
    Nothing,
}

/// A participant as it is described, the same on all sides.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticParticipant {
    name: BoundedString<64>,
    address: [u8; 4],
    announces: Announces,
    endpoints: Vec<EndpointData>,
}

impl StaticParticipant {
    /// One without endpoints. Its name is its GUID, but for the start; its datagrams come from `address`.
    #[must_use]
    pub fn new(name: &str, address: [u8; 4], announces: Announces) -> Self {
        Self {
            name: bounded(name),
            address,
            announces,
            endpoints: Vec::new(),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Describes an endpoint of it: names, key, policies and locators count.
    ///
    /// # Errors
    /// [`StaticError`]; nothing was added then.
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

    /// What stands for all of its endpoints in its announcement.
    #[must_use]
    pub fn digest(&self) -> u64 {
        digest_of(&self.endpoints)
    }

    /// Its GUID prefix as long as nothing is known of its start.
    #[must_use]
    pub fn prefix_of_none(&self) -> GuidPrefix {
        prefix_of(&self.name, NOT_HEARD)
    }

    /// Its GUID prefix at a start, which no other start of it may have had.
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

/// Why a description is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StaticError {
    /// There are as many as there can be.
    #[error(
        "{MAX_STATIC_PEERS} participants are described already: describe those that talk with this one"
    )]
    TooManyPeers,
    /// It has as many endpoints as it can have.
    #[error(
        "a described participant has at most {MAX_STATIC_ENDPOINTS} endpoints: leave others to discovery"
    )]
    TooManyEndpoints,
    /// Two participants, or two endpoints of one, could not be told apart.
    #[error(
        "two described participants, or two endpoints of one, would have the same GUID: give one another name"
    )]
    SameName,
    /// The participant's own table is full.
    #[error(
        "there is no room for what is described: raise limits.participants or limits.remote_endpoints"
    )]
    NoRoom,
    /// As for any endpoint.
    #[error(transparent)]
    Endpoint(#[from] CreateError),
}

/// What is known of a described peer now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticPeerState<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its GUID prefix; the last four bytes are zeros as long as nothing has come of it.
    pub prefix: GuidPrefix,
    /// It counts as alive, and its endpoints are matched.
    pub is_present: bool,
    /// What it announces of its description is not what is described here.
    pub disagrees: bool,
    /// Times that it was found to have started again.
    pub restarts: u32,
}
