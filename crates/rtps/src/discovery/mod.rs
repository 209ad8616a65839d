//! Discovery: SPDP for participants, SEDP for their endpoints (RTPS 2.5 §8.5).
//!
//! Both run at the second-lowest priority. Received SPDP announcements wait in an `Inbox`, SEDP announcements in the
//! caches of the two built-in readers, which are ordinary reliable readers. [`take_in_announcement`] processes one of
//! them a step, so a burst of peers delays more urgent work by one step at most.
//!
//! SPDP announcements are sent as datagrams built on demand. SEDP is sent by two ordinary reliable TRANSIENT_LOCAL
//! writers whose instances are this participant's endpoints.
//!
//! [`take_in_announcement`]: LocalParticipant::take_in_announcement
//!
//! # Discovery events for the built-in topics (DDS 1.4 §2.2.5)
//!
//! Events are queued from [`LocalParticipant::watch_discovery`] on, which allocates the queue. When the queue is full,
//! its last event becomes [`Missed`](DiscoveryEvent::Missed). The lists of participants and endpoints then give the
//! current state.

mod amplification;
mod announcement_store;
mod ignored;
mod participants;
pub(crate) mod rate_limit;
mod removal;
mod sedp;
mod spdp;
mod static_discovery;

use alloc::{collections::VecDeque, vec::Vec};

use heapless::Vec as BoundedVec;
use isolane_wire::{
    builtin_data::{EndpointData, ParticipantData},
    guid::{Guid, GuidPrefix},
    sequence::SequenceNumber,
    time::Instant,
};

use crate::{
    config::ParticipantConfig,
    discovery::rate_limit::TokenBucket,
    hash::PeerIndex,
    limits::{
        DISCOVERY_SLOT_BYTES, MAX_DISCOVERY_EVENTS, MAX_LEASE, SPDP_INBOX_SLOTS,
        UNVALIDATED_BYTES_PER_S,
    },
    matching::RefusedMatches,
    participant::{LocalParticipant, Shared, local_endpoints::CreateError},
    slab::{EndpointId, ReaderId, RemoteParticipantId, Slab},
    work::{Destinations, Work, WorkKind},
};

pub use self::{
    ignored::IgnoreError,
    static_discovery::{Announces, StaticError, StaticParticipant, StaticPeerState},
};

pub(crate) use self::{
    amplification::Validated,
    announcement_store::{Announcements, EndpointRecord},
    ignored::Ignored,
    removal::RefusedEndpoints,
    spdp::Inbox,
    static_discovery::StaticPeer,
};

/// Kind of an endpoint: writer or reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// A DataWriter.
    Writer,
    /// A DataReader.
    Reader,
}

/// Remote participant.
#[derive(Debug, Clone)]
pub struct RemoteParticipant {
    /// Data of its latest announcement.
    pub data: ParticipantData,
    /// Time of its latest announcement. Messages of its matched endpoints also set this time, but only when its lease
    /// has expired or another participant announces the same addresses.
    pub heard: Instant,
    pub(crate) announce_filed: bool,
    /// Addresses from which one of its readers has sent an ACKNACK.
    validated: Validated,
    /// Bytes that may still be sent to its addresses that are not validated.
    credit_bytes: u32,
    /// Time of the last announcement sent to it in answer.
    answered: Instant,
    /// Answers sent since the first one, up to `MAX_ANSWERS_AGAIN`.
    answers_again: u8,
    /// Time at which it was entered in the table.
    since: Instant,
    /// Pieces of its stored announcements, charged to its share of the tables.
    pieces: usize,
    /// Number of matches of its endpoints, charged to its share of the tables.
    pub(crate) matches: u16,
    /// Time of the discovery step that found its lease expired.
    missed: Option<Instant>,
    /// Index of the next endpoint whose proxies get a new address, set when an address of the participant has changed
    /// or was validated.
    follow_from: Option<EndpointId>,
    /// Index of the next endpoint to unmatch, set when the participant is being removed.
    leave_from: Option<EndpointId>,
    /// Reasons why matches of its SEDP endpoints were refused.
    refused: RefusedMatches,
    /// Reasons why matches of its participant message endpoints were refused.
    pub(crate) messages_refused: RefusedMatches,
    /// Times of its latest liveliness assertions, by kind in the order of
    /// [`PARTICIPANT_LIVELINESS_KINDS`](crate::timed_qos::PARTICIPANT_LIVELINESS_KINDS).
    pub(crate) asserted: [Option<Instant>; 2],
    /// Reasons why endpoints it announced, or changes of them, were refused: writers, then readers.
    pub(crate) refused_endpoints: [RefusedEndpoints; 2],
    /// Lowest sequence number of an announcement that a later one replaced or disposed: writers, then readers.
    revoked: [Option<SequenceNumber>; 2],
    /// True for a statically described participant that announces nothing.
    is_assumed_alive: bool,
    /// True for a statically described participant that has not announced itself yet.
    awaits_announcement: bool,
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
            revoked: [None; 2],
            is_assumed_alive: false,
            awaits_announcement: false,
        }
    }

    fn lease_ends(&self) -> Instant {
        self.heard + self.data.lease.min(MAX_LEASE)
    }

    /// Returns whether no announcement has arrived for half of its lease.
    fn is_silent(&self, now: Instant) -> bool {
        now.saturating_since(self.heard) >= self.data.lease.min(MAX_LEASE) / 2
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leave_from.is_some()
    }

    /// Returns whether one of its addresses is validated: one of its readers has answered from there. Until then
    /// anybody can have sent its announcement.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.validated.is_any()
    }
}

/// Remote endpoint.
#[derive(Debug, Clone)]
pub struct RemoteEndpoint {
    /// Announced data.
    pub data: EndpointData,
    /// Writer or reader.
    pub kind: EndpointKind,
}

/// Index of the built-in writer and reader for publications.
pub(crate) const PUBLICATIONS: u16 = 0;
/// Index of the built-in writer and reader for subscriptions.
pub(crate) const SUBSCRIPTIONS: u16 = 1;

/// Number of tasks among which [`LocalParticipant::take_in_next`] alternates.
const DISCOVERY_SOURCES: u8 = 6;

/// Remote participants and endpoints, what they have announced, and this participant's own announcements.
#[derive(Debug)]
pub(crate) struct Discovery {
    pub(crate) participants: Slab<RemoteParticipantId, RemoteParticipant>,
    pub(crate) by_prefix: PeerIndex<GuidPrefix, RemoteParticipantId>,
    pub(crate) endpoints: Slab<EndpointId, EndpointRecord>,
    /// Announced data of `endpoints`.
    pub(crate) announcements: Announcements,
    pub(crate) by_guid: PeerIndex<Guid, EndpointId>,
    pub(crate) inbox: Inbox,
    pub(crate) ignored: Ignored,
    pub(crate) statics: Vec<StaticPeer>,
    pub(crate) events: Events,
    /// Rate limit for all unvalidated addresses together.
    pub(crate) unvalidated: TokenBucket,
    pub(crate) rate: TokenBucket,
    pub(crate) announcements_sent: u32,
    /// Announcements were shifted to this participant's own phase of the period.
    pub(crate) is_in_phase: bool,
    pub(crate) announce_filed: bool,
    /// Discovery task that had its turn last.
    pub(crate) turn: u8,
    /// Next local endpoint to announce with new locators, writers before readers; `None` when all are announced.
    pub(crate) move_from: Option<u32>,
    /// Endpoint of a peer that is being removed.
    pub(crate) leaving_endpoint: Option<EndpointId>,
    /// Some match was refused.
    pub(crate) has_refused: bool,
    /// A match has ended since the last retry, so a refused one may find room.
    pub(crate) has_place: bool,
    /// Some participant may be leaving.
    pub(crate) has_leaving: bool,
    pub(crate) has_following: bool,
    /// Some participant's lease may have expired.
    pub(crate) leases_due: bool,
}

impl Discovery {
    pub(crate) fn try_new(config: &ParticipantConfig) -> Result<Self, CreateError> {
        let limits = &config.limits;
        let is_fixed = limits.fixed_memory;
        let participants = usize::from(limits.participants);
        let remote = usize::from(limits.remote_endpoints);
        let endpoints = Slab::with_kept(remote, is_fixed);
        // Includes the entries reserved for the highest level.
        let known = endpoints.room();
        let inbox = Inbox::try_new(SPDP_INBOX_SLOTS, config.zeroed);
        Ok(Self {
            participants: Slab::new(participants, is_fixed),
            by_prefix: PeerIndex::new(participants, is_fixed, config.salted_seed(4)),
            endpoints,
            announcements: Announcements::new(remote, is_fixed),
            by_guid: PeerIndex::new(known, is_fixed, config.salted_seed(5)),
            inbox: inbox.ok_or(CreateError::NoMemory {
                bytes: SPDP_INBOX_SLOTS * DISCOVERY_SLOT_BYTES,
            })?,
            ignored: Ignored::new(),
            statics: Vec::new(),
            events: Events::default(),
            unvalidated: TokenBucket::new(UNVALIDATED_BYTES_PER_S.into()),
            rate: TokenBucket::new(config.discovery_bytes_per_s),
            announcements_sent: 0,
            is_in_phase: false,
            announce_filed: false,
            turn: 0,
            move_from: None,
            leaving_endpoint: None,
            has_refused: false,
            has_place: false,
            has_leaving: false,
            has_following: false,
            leases_due: false,
        })
    }
}

impl LocalParticipant {
    /// Processes one discovery step: part of a removal, one announcement, or one consequence of an announcement.
    pub(crate) fn take_in_announcement(&mut self, now: Instant) -> Option<Work> {
        self.shared.discovery_filed = false;
        // Removal comes first, so that nothing is entered again while it is half removed.
        let took = self.remove_one(now) || self.enter_static(now) || self.take_in_next(now);
        if took {
            self.shared.schedule_discovery();
        }
        let to = Destinations::Listed(BoundedVec::new());
        Some(Work::new(WorkKind::Discovery, None, 0, to))
    }

    /// Runs one step of the next discovery task that has work, round-robin. A peer that announces without end must not
    /// delay another peer's endpoints or the end of a lease.
    fn take_in_next(&mut self, now: Instant) -> bool {
        (0..DISCOVERY_SOURCES).any(|_| {
            self.discovery.turn = (self.discovery.turn + 1) % DISCOVERY_SOURCES;
            match self.discovery.turn {
                0 => self.take_in_participant(now),
                1 => self.take_in_endpoint(now, ReaderId(PUBLICATIONS), EndpointKind::Writer),
                2 => self.take_in_endpoint(now, ReaderId(SUBSCRIPTIONS), EndpointKind::Reader),
                3 => self.move_own_endpoint(now) || self.follow_endpoint(),
                4 => self.expire_lease(now),
                _ => self.join_refused(now),
            }
        })
    }
}

/// Change of a remote participant or endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiscoveryChange {
    /// Newly discovered.
    Found,
    /// Announced with different data.
    Changed,
    /// Removed: disposed, lease expired, or ignored.
    Gone,
}

/// Discovery event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiscoveryEvent {
    /// Participant (*DCPSParticipant*).
    Participant(Guid, DiscoveryChange),
    /// Writer (*DCPSPublication*).
    Writer(Guid, DiscoveryChange),
    /// Reader (*DCPSSubscription*).
    Reader(Guid, DiscoveryChange),
    /// Overflow of the queue: the current state must be looked up in the lists.
    Missed,
}

impl DiscoveryEvent {
    fn endpoint(kind: EndpointKind, guid: Guid, change: DiscoveryChange) -> Self {
        match kind {
            EndpointKind::Writer => Self::Writer(guid, change),
            EndpointKind::Reader => Self::Reader(guid, change),
        }
    }
}

/// Events not fetched yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Queue with a capacity of 0 until discovery is watched.
    kept: VecDeque<DiscoveryEvent>,
}

impl Events {
    fn put(&mut self, event: DiscoveryEvent) {
        let room = self.kept.capacity().min(MAX_DISCOVERY_EVENTS);
        if self.kept.len() < room {
            self.kept.push_back(event);
        } else if let Some(last) = self.kept.back_mut() {
            *last = DiscoveryEvent::Missed;
        }
    }
}

impl LocalParticipant {
    /// Starts queuing events for [`LocalParticipant::next_discovery_event`], and allocates the queue.
    pub fn watch_discovery(&mut self) {
        self.discovery
            .events
            .kept
            .reserve_exact(MAX_DISCOVERY_EVENTS);
    }

    /// Removes and returns the oldest event.
    pub fn next_discovery_event(&mut self) -> Option<DiscoveryEvent> {
        self.discovery.events.kept.pop_front()
    }

    /// Returns whether an event is queued.
    #[must_use]
    pub fn has_discovery_event(&self) -> bool {
        !self.discovery.events.kept.is_empty()
    }
}

impl Discovery {
    /// Queues an event and notifies the user of the change.
    fn note_event(&mut self, shared: &mut Shared, event: DiscoveryEvent) {
        self.events.put(event);
        shared.note_discovery();
    }
}
