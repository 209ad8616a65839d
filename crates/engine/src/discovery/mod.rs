//! Discovery: SPDP for participants, SEDP for their endpoints (RTPS 2.5 §8.5).
//!
//! Both are work at the lowest but one priority. What comes in is only put aside: SPDP
//! announcements in a small box, SEDP announcements in the caches of the two built-in readers,
//! which are readers like any other, reliable ones. [`take_in_announcement`] takes one of them a
//! step, so that a burst of peers delays nothing more urgent by more than one.
//!
//! Going out, SPDP is a datagram made on the spot; SEDP is two writers like any other, reliable
//! and TRANSIENT_LOCAL, whose instances are this participant's endpoints.
//!
//! [`take_in_announcement`]: Engine::take_in_announcement

mod announce;
mod announced;
mod endpoints;
mod events;
mod ignored;
mod inbox;
mod leaving;
mod own_addresses;
mod participants;
mod rate;
mod reach;
mod refused;
mod statics;

use heapless::Vec as BoundedVec;
use isolane_wire::{
    discovery::{EndpointData, ParticipantData},
    sequence::SequenceNumber,
    time::Instant,
};

use crate::{
    engine::Engine,
    limits::MAX_LEASE,
    matching::RefusedMatches,
    priority::Priority,
    work::{Destinations, Work, WorkKind},
};

pub(crate) use announced::{Announcements, EndpointRecord};
pub(crate) use events::Events;
pub use events::{DiscoveryChange, DiscoveryEvent};
pub use ignored::IgnoreError;
pub(crate) use ignored::Ignored;
pub(crate) use inbox::Inbox;
pub(crate) use reach::Validated;
pub(crate) use refused::RefusedEndpoints;
pub(crate) use statics::StaticPeer;
pub use statics::{Announces, StaticError, StaticParticipant, StaticPeerState};

/// Which end an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// A DataWriter.
    Writer,
    /// A DataReader.
    Reader,
}

/// A participant of somebody else.
#[derive(Debug, Clone)]
pub struct RemoteParticipant {
    /// What it announced.
    pub data: ParticipantData,
    /// When its announcement was last heard. Once the lease is over, or when another participant announces the same
    /// addresses, messages of its matched endpoints count, too.
    pub heard: Instant,
    pub(crate) announce_filed: bool,
    /// Addresses from which its readers have answered.
    validated: Validated,
    /// Bytes that may be sent to its other addresses.
    credit_bytes: u32,
    /// When it was answered last by an announcement, and how often again until then.
    answered: Instant,
    answers_again: u8,
    /// When it was entered.
    since: Instant,
    /// Pieces that the announcements of its endpoints count as, and matches of those.
    pieces: usize,
    pub(crate) matches: u16,
    /// When a discovery step found its lease run out.
    missed: Option<Instant>,
    /// It is reached elsewhere, or reached at all, now; this of all endpoints is the next to follow it.
    follow_from: Option<u16>,
    /// It is gone; this of all endpoints is the next to go with it.
    leave_from: Option<u16>,
    /// Why its SEDP endpoints found no place among the matches.
    refused: RefusedMatches,
    /// The same of its endpoints for messages.
    pub(crate) messages_refused: RefusedMatches,
    /// When its messages last said that its writers of a kind are alive, in the order of
    /// [`TOLD`](crate::clock::TOLD).
    pub(crate) asserted: [Option<Instant>; 2],
    /// Why endpoints it announced found no place, or no room for a change: its writers, its readers.
    pub(crate) refused_endpoints: [RefusedEndpoints; 2],
    /// Lowest number of an announcement that a later one in its name took back: its writers, its readers.
    doubted: [Option<SequenceNumber>; 2],
    /// It is described, and announces nothing.
    is_assumed_alive: bool,
    /// It is described, and has not announced itself yet.
    awaits_first_word: bool,
}

impl RemoteParticipant {
    fn new(data: ParticipantData, now: Instant) -> Self {
        Self {
            data,
            heard: now,
            announce_filed: false,
            validated: Validated::default(),
            credit_bytes: 0,
            answered: now,
            answers_again: 0,
            since: now,
            pieces: 0,
            matches: 0,
            missed: None,
            follow_from: None,
            leave_from: None,
            refused: RefusedMatches::default(),
            messages_refused: RefusedMatches::default(),
            asserted: [None; 2],
            refused_endpoints: [RefusedEndpoints::default(); 2],
            doubted: [None; 2],
            is_assumed_alive: false,
            awaits_first_word: false,
        }
    }

    /// When its lease ends.
    fn lease_ends(&self) -> Instant {
        self.heard + self.data.lease.min(MAX_LEASE)
    }

    /// Whether it has been silent for half of its lease.
    fn is_silent(&self, now: Instant) -> bool {
        now.saturating_since(self.heard) >= self.data.lease.min(MAX_LEASE) / 2
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leave_from.is_some()
    }

    /// Whether one of its addresses is validated: its readers have answered from there. Until then its announcement can
    /// be anybody's.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.validated.is_any()
    }
}

/// An endpoint of somebody else.
#[derive(Debug, Clone)]
pub struct RemoteEndpoint {
    /// What was announced of it.
    pub data: EndpointData,
    /// Which end it is.
    pub kind: EndpointKind,
}

/// Index of the built-in writer, and of the built-in reader, for publications and subscriptions.
pub(crate) const PUBLICATIONS: u16 = 0;
pub(crate) const SUBSCRIPTIONS: u16 = 1;

/// What [`Engine::take_in_next`] chooses from.
const DISCOVERY_SOURCES: u8 = 6;

impl Engine {
    pub(crate) fn file_discovery(&mut self) {
        if !core::mem::replace(&mut self.discovery_filed, true) {
            self.file(Priority::DISCOVERY, WorkKind::Discovery, 0);
        }
    }

    /// One step: part of a farewell, one announcement, or what comes of one.
    pub(crate) fn take_in_announcement(&mut self, now: Instant) -> Option<Work> {
        self.discovery_filed = false;
        // What goes, goes before anything comes: so nothing comes back while it is half gone.
        let took = self.part_one(now) || self.enter_static(now) || self.take_in_next(now);
        if took {
            // There may be more.
            self.file_discovery();
        }
        let to = Destinations::Listed(BoundedVec::new());
        Some(Work {
            kind: WorkKind::Discovery,
            level: None,
            bytes: 0,
            to,
        })
    }

    /// One step of one of the things discovery does, each in its turn: a peer that announces without
    /// end must keep neither another's endpoints nor the end of a lease from being seen.
    fn take_in_next(&mut self, now: Instant) -> bool {
        (0..DISCOVERY_SOURCES).any(|_| {
            self.discovery_turn = (self.discovery_turn + 1) % DISCOVERY_SOURCES;
            match self.discovery_turn {
                0 => self.take_in_participant(now),
                1 => self.take_in_endpoint(now, PUBLICATIONS, EndpointKind::Writer),
                2 => self.take_in_endpoint(now, SUBSCRIPTIONS, EndpointKind::Reader),
                3 => self.move_own_endpoint(now) || self.follow_endpoint(),
                4 => self.forget_silent_participant(now),
                _ => self.join_refused(now),
            }
        })
    }
}
