//! SPDP (RTPS 2.5 §8.5.3): announcements and farewell of this participant, and inbox of received ones.
//!
//! An announcement is a datagram built on demand. It goes periodically to all configured addresses, and to each
//! participant that these addresses do not reach. A newly discovered participant is answered at once.
//!
//! # Inbox
//!
//! The inbox fills up when the discovery job gets no time, or when announcements arrive faster than it processes them.
//! No peer can fill it alone: of each participant only its latest announcement and its farewell wait. Unknown
//! participants share half of the slots, so that a crowd of them, real or forged, cannot block the lease renewals of
//! known ones. Announcements that find no slot are counted; they are periodic and arrive again.
//!
//! # Address changes
//!
//! The addresses of this host may change while the participant runs, for example by DHCP or roaming. Ports stay, so an
//! endpoint's new unicast locators are its port at each new address. SPDP announces the participant again at once and
//! repeats this as often as at its start (RTPS 2.5 §8.5.3). SEDP announces the endpoints again (§8.5.4), one a
//! discovery step. Statically described endpoints are not announced and keep their described locators.

use alloc::{boxed::Box, vec, vec::Vec};
use core::time::Duration;

use heapless::Vec as BoundedVec;
use isolane_wire::{
    builtin_data::{
        BuiltinEndpoints, EndpointData, KeyKind, LocatorList, ParticipantData, emit_key_guid,
    },
    guid::{EntityId, GuidPrefix},
    locator::Locator,
    message::{DataPrefix, PayloadKind, StatusInfo, VENDOR_ID, VERSION},
    sequence::SequenceNumber,
    time::Instant,
};

use crate::{
    config::{Network, Zeroed},
    discovery::{Announces, Discovery, PUBLICATIONS, RemoteParticipant, SUBSCRIPTIONS},
    hash::Fingerprint,
    limits::DISCOVERY_SLOT_BYTES,
    matching::choose_own,
    participant::{LocalParticipant, Shared},
    slab::{EndpointId, LocalId, ReaderId, RemoteParticipantId, WriterId},
    work::{Destinations, Filed, Priority, Work, WorkKind},
    work_queue::Timer,
    writer::history::ChangeKind,
};

impl LocalParticipant {
    /// Handles the announcement timer: files the next announcement.
    pub(crate) fn announce_due(&mut self, now: Instant) {
        let period = self.discovery.announce_period(&self.shared);
        self.shared.timers.arm(Timer::Announce, now + period);
        self.ask_silent_peers();
        if self.discovery.move_from.is_some() {
            self.shared.schedule_discovery();
        }
        if self.shared.announces() == Announces::Nothing {
            self.discovery.announcements_sent = self.discovery.announcements_sent.saturating_add(1);
            return;
        }
        if self.discovery.announce_filed {
            // More urgent work has delayed the announcement for a whole period. Peers would consider this participant
            // gone and drop the very topics that keep it busy. One urgent datagram a period costs less.
            self.shared.work_queue.withdraw(&[Filed::Announce(None)]);
            self.shared
                .schedule(Priority::HIGHEST, Filed::Announce(None));
        } else {
            self.discovery.schedule_announcement(&mut self.shared, None);
        }
        self.discovery
            .schedule_announcements_to_unlisted(&mut self.shared);
    }

    /// Writes the farewell, which disposes this participant at every peer, and returns its length in bytes. It must be
    /// the last datagram sent, [to all](LocalParticipant::farewell_to) addresses.
    pub fn farewell(&mut self, buffer: &mut [u8]) -> usize {
        if self.shared.announces() == Announces::Nothing {
            return 0;
        }
        let mut payload = [0; 64];
        let guid = self.shared.guid(EntityId::PARTICIPANT);
        let Ok(length) = emit_key_guid(KeyKind::Participant, guid, &mut payload) else {
            return 0;
        };
        let status = Some(StatusInfo {
            disposed: true,
            unregistered: true,
        });
        self.shared
            .emit_announcement(buffer, PayloadKind::Key, status, &payload[..length])
    }

    /// Returns the addresses of the farewell: the configured ones, and one of each known participant that these do not
    /// reach.
    pub fn farewell_to(&self) -> impl Iterator<Item = Locator> {
        let unlisted = self
            .remote_participants()
            .filter(|peer| self.shared.is_unlisted(peer));
        let address =
            |peer: &RemoteParticipant| self.shared.choose_of(peer, &peer.data.metatraffic_unicast);
        let listed = self.shared.config.announce_to.iter().copied();
        listed.chain(unlisted.filter_map(address))
    }
}

impl Shared {
    pub(crate) fn participant_data(&self) -> ParticipantData {
        ParticipantData {
            guid: self.guid(EntityId::PARTICIPANT),
            version: VERSION,
            vendor: VENDOR_ID,
            lease: self.config.timing.lease,
            builtin_endpoints: self.builtin_endpoints(),
            domain_id: Some(self.config.domain),
            metatraffic_unicast: self.config.metatraffic_unicast.clone(),
            metatraffic_multicast: self.config.metatraffic_multicast.clone(),
            default_unicast: self.config.default_unicast.clone(),
            default_multicast: Default::default(),
            entity_name: self.config.name.clone(),
            user_data: self.config.user_data.clone(),
            static_digest: self.own_digest(),
        }
    }

    fn builtin_endpoints(&self) -> u32 {
        let of_participants = BuiltinEndpoints::PARTICIPANT_ANNOUNCER
            | BuiltinEndpoints::PARTICIPANT_DETECTOR
            | BuiltinEndpoints::P2P_MESSAGE_WRITER
            | BuiltinEndpoints::P2P_MESSAGE_READER;
        match self.announces() {
            Announces::Itself | Announces::Nothing => of_participants,
            Announces::All => {
                of_participants
                    | BuiltinEndpoints::PUBLICATIONS_ANNOUNCER
                    | BuiltinEndpoints::PUBLICATIONS_DETECTOR
                    | BuiltinEndpoints::SUBSCRIPTIONS_ANNOUNCER
                    | BuiltinEndpoints::SUBSCRIPTIONS_DETECTOR
            }
        }
    }

    /// Returns whether announcements to the configured addresses do not reach a participant: none of its metatraffic
    /// addresses is configured.
    fn is_unlisted(&self, peer: &RemoteParticipant) -> bool {
        let listed = &self.config.announce_to;
        let is_reached = |locator: &Locator| listed.binary_search(locator).is_ok();
        !peer.data.metatraffic_unicast.iter().any(is_reached)
            && !peer.data.metatraffic_multicast.iter().any(is_reached)
    }

    fn emit_announcement(
        &mut self,
        buffer: &mut [u8],
        kind: PayloadKind,
        status: Option<StatusInfo>,
        payload: &[u8],
    ) -> usize {
        let guid = self.guid(EntityId::PARTICIPANT);
        let head = DataPrefix {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SPDP_WRITER,
            sequence: SequenceNumber(if status.is_some() { 2 } else { 1 }),
            key_hash: status.map(|_| guid.to_bytes()),
            status,
            payload: kind,
        };
        self.emit_message(buffer, |message| message.data(&head, payload))
    }
}

impl Discovery {
    /// Returns the time until the next periodic announcement.
    ///
    /// Participants that start together, as when a machine is switched on, would announce themselves together forever.
    /// They would overflow each other's inboxes in the same order every time. Therefore each participant waits once,
    /// after its initial announcements, for a part of the period derived from its GUID.
    pub(crate) fn announce_period(&mut self, shared: &Shared) -> Duration {
        let timing = shared.config.timing;
        let (first, period) = (timing.announce_initial_period, timing.announce_period);
        if self.announcements_sent < u32::from(timing.announce_initial_count) {
            return first;
        }
        if core::mem::replace(&mut self.is_in_phase, true) || first >= period {
            return period;
        }
        let part = Fingerprint::NEW.with(&shared.guid_prefix().0).part();
        let spread_ns = (period - first).as_nanos() as u64;
        let waits_ns = (u128::from(spread_ns) * u128::from(part)) >> 16;
        first + Duration::from_nanos(waits_ns as u64)
    }

    /// Files an announcement: for one participant, or for all addresses.
    pub(crate) fn schedule_announcement(
        &mut self,
        shared: &mut Shared,
        only: Option<RemoteParticipantId>,
    ) {
        if shared.announces() == Announces::Nothing {
            return;
        }
        let is_filed = match only {
            None => core::mem::replace(&mut self.announce_filed, true),
            Some(index) => self.participants.get_mut(index).is_none_or(|participant| {
                core::mem::replace(&mut participant.announce_filed, true)
            }),
        };
        if !is_filed {
            shared.schedule(Priority::DISCOVERY, Filed::Announce(only));
        }
    }

    /// Files an announcement for all addresses, and for each participant that these do not reach.
    pub(crate) fn announce_now(&mut self, shared: &mut Shared) {
        self.schedule_announcement(shared, None);
        for index in self.participants.ids() {
            let peer = self.participants.get(index);
            if peer.is_some_and(|peer| !peer.is_leaving() && shared.is_unlisted(peer)) {
                self.schedule_announcement(shared, Some(index));
            }
        }
    }

    /// Files announcements for the participants that the configured addresses do not reach. An announcement that is
    /// still filed has waited for a whole period. For a validated participant it then gets the highest priority, as the
    /// periodic announcement does.
    pub(crate) fn schedule_announcements_to_unlisted(&mut self, shared: &mut Shared) {
        for index in self.participants.ids() {
            let peer = self.participants.get(index);
            let Some(peer) = peer.filter(|peer| !peer.is_leaving() && shared.is_unlisted(peer))
            else {
                continue;
            };
            let is_starved = peer.announce_filed && peer.is_proven();
            if is_starved {
                shared.work_queue.withdraw(&[Filed::Announce(Some(index))]);
                shared.schedule(Priority::HIGHEST, Filed::Announce(Some(index)));
            } else {
                self.schedule_announcement(shared, Some(index));
            }
        }
    }

    /// Writes the SPDP announcement for one participant, or for all addresses.
    pub(crate) fn announce(
        &mut self,
        shared: &mut Shared,
        only: Option<RemoteParticipantId>,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let mut unlisted = None;
        let to = match only {
            None => {
                self.announce_filed = false;
                self.announcements_sent = self.announcements_sent.saturating_add(1);
                Destinations::Announce
            }
            Some(index) => {
                self.participants.get_mut(index)?.announce_filed = false;
                let participant = self.participants.get(index)?;
                let locators = &participant.data.metatraffic_unicast;
                let locator = shared.choose_of(participant, locators)?;
                unlisted = Some((participant.data.guid.prefix, locator));
                Destinations::Listed(BoundedVec::from_iter([locator]))
            }
        };
        let mut payload = [0; DISCOVERY_SLOT_BYTES];
        let length = shared.participant_data().emit(&mut payload).ok()?;
        let emitted = shared.emit_announcement(buffer, PayloadKind::Data, None, &payload[..length]);
        let bytes = unlisted.map_or(emitted, |(prefix, to)| {
            self.debit(shared, prefix, Some(&to), emitted)
        });
        Some(Work::new(WorkKind::Announce, None, bytes, to))
    }
}

/// Ring of SPDP announcements that wait for the discovery job, oldest first.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    slots: Vec<Waiting>,
    first: usize,
    used: usize,
}

/// Slot in use.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    sender: Sender,
    length: usize,
    is_farewell: bool,
}

/// Sender of an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) prefix: GuidPrefix,
    /// Source address of the datagram.
    pub(super) source: Locator,
    /// True if the participant was known on arrival.
    pub(super) is_known: bool,
}

/// Result of `Inbox::put`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// Stored in a free slot.
    StoredAnnouncement,
    /// Stored in place of an older announcement of the same participant.
    Replaced,
    /// Dropped: no slot is free for it.
    Refused,
}

impl Inbox {
    /// Creates an inbox with `slots` slots; `None` if memory is exhausted.
    pub(crate) fn try_new(slots: usize, zeroed: Zeroed) -> Option<Self> {
        let empty = Waiting {
            sender: Sender {
                prefix: GuidPrefix::UNKNOWN,
                source: Locator::INVALID,
                is_known: false,
            },
            length: 0,
            is_farewell: false,
        };
        Some(Self {
            bytes: zeroed(slots * DISCOVERY_SLOT_BYTES)?,
            slots: vec![empty; slots],
            first: 0,
            used: 0,
        })
    }

    /// Indices of the slots in use, oldest first.
    fn places(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.used).map(|nth| (self.first + nth) % self.slots.len())
    }

    /// Stores an announcement.
    pub(super) fn put(&mut self, sender: Sender, payload: &[u8], is_farewell: bool) -> Put {
        if payload.len() > DISCOVERY_SLOT_BYTES {
            return Put::Refused;
        }
        let is_its = |&at: &usize| self.slots[at].sender.prefix == sender.prefix;
        let mut of_sender = self.places().rev().filter(is_its);
        let newest = of_sender.next();
        let is_another = of_sender.next().is_some();
        drop(of_sender);
        if let Some(at) = newest.filter(|&at| self.slots[at].is_farewell == is_farewell) {
            self.fill(at, sender, payload, is_farewell);
            return Put::Replaced;
        }
        let is_unknown = |&at: &usize| !self.slots[at].sender.is_known;
        let are_strangers_full =
            !sender.is_known && self.places().filter(is_unknown).count() >= self.slots.len() / 2;
        if is_another || are_strangers_full || self.used == self.slots.len() {
            return Put::Refused;
        }
        let at = (self.first + self.used) % self.slots.len();
        self.fill(at, sender, payload, is_farewell);
        self.used += 1;
        Put::StoredAnnouncement
    }

    fn fill(&mut self, at: usize, sender: Sender, payload: &[u8], is_farewell: bool) {
        self.bytes[at * DISCOVERY_SLOT_BYTES..][..payload.len()].copy_from_slice(payload);
        self.slots[at] = Waiting {
            sender,
            length: payload.len(),
            is_farewell,
        };
    }

    pub(super) fn oldest(&self) -> Option<(Sender, &[u8], bool)> {
        if self.used == 0 {
            return None;
        }
        let waiting = &self.slots[self.first];
        let payload = &self.bytes[self.first * DISCOVERY_SLOT_BYTES..][..waiting.length];
        Some((waiting.sender, payload, waiting.is_farewell))
    }

    pub(super) fn remove_oldest(&mut self) {
        self.first = (self.first + 1) % self.slots.len();
        self.used -= 1;
    }

    /// Returns whether an announcement of a participant waits.
    pub(super) fn has(&self, prefix: GuidPrefix) -> bool {
        self.places()
            .any(|at| self.slots[at].sender.prefix == prefix)
    }
}

impl LocalParticipant {
    /// Replaces the networks of this host after a change of its addresses. Announces the new locators and selects each
    /// peer's address again.
    pub fn set_networks(&mut self, now: Instant, networks: Vec<Network>) {
        if self.shared.config.networks == networks {
            return;
        }
        let own = &mut self.shared.config;
        for locators in [&mut own.metatraffic_unicast, &mut own.default_unicast] {
            *locators = moved(locators, &networks);
        }
        own.networks = networks;
        for index in self.discovery.participants.ids() {
            let participant = self.discovery.participants.get_mut(index);
            if let Some(participant) = participant.filter(|peer| !peer.is_leaving()) {
                participant.follow_from = Some(EndpointId(0));
            }
        }
        self.discovery.has_following = true;
        self.discovery.move_from = Some(0);
        self.shared.schedule_discovery();
        if self.is_enabled() {
            self.discovery.announcements_sent = 0;
            self.discovery.announce_now(&mut self.shared);
            let period = self.discovery.announce_period(&self.shared);
            self.shared.timers.arm(Timer::Announce, now + period);
        }
    }

    /// Announces the next user endpoint with its new locators. Returns `false` if none is left, or if the SEDP history
    /// is full; the step is then retried after the participant's next announcement.
    pub(super) fn move_own_endpoint(&mut self, now: Instant) -> bool {
        let Some(from) = self.discovery.move_from else {
            return false;
        };
        let writers = u32::from(self.writers.table.end());
        let end = writers + u32::from(self.readers.table.end());
        for place in from..end {
            let (own, builtin) = match place.checked_sub(writers) {
                None => (LocalId::Writer(WriterId(place as u16)), PUBLICATIONS),
                Some(reader) => (LocalId::Reader(ReaderId(reader as u16)), SUBSCRIPTIONS),
            };
            let Some((data, is_enabled)) = self.own_endpoint(own) else {
                continue;
            };
            let unicast = moved(&data.unicast, &self.shared.config.networks);
            if unicast == data.unicast || self.shared.is_described(data.guid.entity) {
                continue;
            }
            let data = EndpointData {
                unicast,
                ..data.clone()
            };
            if is_enabled
                && self
                    .announce_endpoint(now, WriterId(builtin), &data, ChangeKind::Alive)
                    .is_err()
            {
                self.discovery.move_from = Some(place);
                return false;
            }
            let unicast = choose_own(&data.unicast, &self.shared.config.networks);
            let address = (unicast, self.shared.group_of(&data.multicast, unicast));
            self.follow(data.guid, address);
            match own {
                LocalId::Writer(writer) => self.writers.table[writer].data = data,
                LocalId::Reader(reader) => self.readers.table[reader].data = data,
            }
            self.discovery.move_from = Some(place + 1);
            return true;
        }
        self.discovery.move_from = None;
        false
    }

    /// Returns a user endpoint and whether it is enabled.
    fn own_endpoint(&self, own: LocalId) -> Option<(&EndpointData, bool)> {
        match own {
            LocalId::Writer(writer) => {
                let writer = self.writers.get(writer)?;
                writer.level.map(|_| (&writer.data, writer.is_enabled()))
            }
            LocalId::Reader(reader) => {
                let reader = self.readers.get(reader)?;
                reader.level.map(|_| (&reader.data, reader.is_enabled))
            }
        }
    }
}

/// Replaces the addresses of `locators` by this host's current ones, with the port kept, up to the list's capacity.
fn moved(locators: &LocatorList, networks: &[Network]) -> LocatorList {
    let Some(port) = locators.first().map(|locator| locator.port) else {
        return LocatorList::new();
    };
    let port = u16::try_from(port).unwrap_or(0);
    let at = |network: &Network| Locator::udpv4(network.address, port);
    let announced = networks.iter().take(locators.capacity());
    announced.map(at).collect()
}
