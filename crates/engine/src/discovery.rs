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

use alloc::{boxed::Box, vec, vec::Vec};

use heapless::Vec as BoundedVec;
use isolane_wire::{
    discovery::{
        BuiltinEndpoints, EndpointData, EndpointKey, ParticipantData, emit_key_guid, parse_key_guid,
    },
    guid::{EntityId, Guid, GuidPrefix},
    locator::Locator,
    rtps::{Data, DataHead, PayloadKind, StatusInfo, VENDOR_ID, VERSION},
    sequence::SequenceNumber,
    time::Instant,
};

use crate::{
    engine::{Engine, Subject},
    history::ChangeKind,
    limits::{DISCOVERY_SLOT_BYTES, LEASE_GRACE, MAX_LEASE},
    priority::Priority,
    reader::WriterProxy,
    work::{Destinations, Work, WorkKind},
    write::WriteSample,
    writer::ReaderProxy,
};

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
    /// When its announcement was last heard.
    pub heard: Instant,
    pub(crate) announce_filed: bool,
    /// When a discovery step found its lease run out.
    missed: Option<Instant>,
    /// It has said that it is reached elsewhere; this of all endpoints is the next to follow it.
    moved: Option<u16>,
}

/// An endpoint of somebody else.
#[derive(Debug, Clone)]
pub struct RemoteEndpoint {
    /// What was announced of it.
    pub data: EndpointData,
    /// Which end it is.
    pub kind: EndpointKind,
    pub(crate) participant: u16,
}

/// SPDP announcements that wait for the discovery job, oldest first.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    /// Prefix of the sender, length, and whether it says good-bye.
    slots: Vec<(GuidPrefix, usize, bool)>,
    first: usize,
    used: usize,
}

impl Inbox {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            bytes: vec![0; slots * DISCOVERY_SLOT_BYTES].into_boxed_slice(),
            slots: vec![(GuidPrefix::UNKNOWN, 0, false); slots],
            first: 0,
            used: 0,
        }
    }

    /// Whether there was room.
    fn put(&mut self, prefix: GuidPrefix, payload: &[u8], is_farewell: bool) -> bool {
        if self.used == self.slots.len() || payload.len() > DISCOVERY_SLOT_BYTES {
            return false;
        }
        let at = (self.first + self.used) % self.slots.len();
        self.bytes[at * DISCOVERY_SLOT_BYTES..][..payload.len()].copy_from_slice(payload);
        self.slots[at] = (prefix, payload.len(), is_farewell);
        self.used += 1;
        true
    }

    fn oldest(&self) -> Option<(GuidPrefix, &[u8], bool)> {
        if self.used == 0 {
            return None;
        }
        let (prefix, length, is_farewell) = self.slots[self.first];
        let payload = &self.bytes[self.first * DISCOVERY_SLOT_BYTES..][..length];
        Some((prefix, payload, is_farewell))
    }

    fn remove_oldest(&mut self) {
        self.first = (self.first + 1) % self.slots.len();
        self.used -= 1;
    }
}

/// The SEDP endpoints: ours, and the peer's bits and entities that go with them.
struct Sedp {
    writer: EntityId,
    reader: EntityId,
    announcer: u32,
    detector: u32,
}

const SEDP: [Sedp; 2] = [
    Sedp {
        writer: EntityId::SEDP_PUBLICATIONS_WRITER,
        reader: EntityId::SEDP_PUBLICATIONS_READER,
        announcer: BuiltinEndpoints::PUBLICATIONS_ANNOUNCER,
        detector: BuiltinEndpoints::PUBLICATIONS_DETECTOR,
    },
    Sedp {
        writer: EntityId::SEDP_SUBSCRIPTIONS_WRITER,
        reader: EntityId::SEDP_SUBSCRIPTIONS_READER,
        announcer: BuiltinEndpoints::SUBSCRIPTIONS_ANNOUNCER,
        detector: BuiltinEndpoints::SUBSCRIPTIONS_DETECTOR,
    },
];

/// Index of the built-in writer, and of the built-in reader, for publications and subscriptions.
pub(crate) const PUBLICATIONS: u16 = 0;
pub(crate) const SUBSCRIPTIONS: u16 = 1;

impl Engine {
    /// This participant, as it is announced.
    fn participant_data(&self) -> ParticipantData {
        ParticipantData {
            guid: self.guid(EntityId::PARTICIPANT),
            version: VERSION,
            vendor: VENDOR_ID,
            lease: self.config.timing.lease,
            builtin_endpoints: BuiltinEndpoints::PARTICIPANT_ANNOUNCER
                | BuiltinEndpoints::PARTICIPANT_DETECTOR
                | BuiltinEndpoints::PUBLICATIONS_ANNOUNCER
                | BuiltinEndpoints::PUBLICATIONS_DETECTOR
                | BuiltinEndpoints::SUBSCRIPTIONS_ANNOUNCER
                | BuiltinEndpoints::SUBSCRIPTIONS_DETECTOR,
            domain_id: Some(self.config.domain),
            metatraffic_unicast: self.config.metatraffic_unicast.clone(),
            metatraffic_multicast: self.config.metatraffic_multicast.clone(),
            default_unicast: self.config.default_unicast.clone(),
            default_multicast: Default::default(),
            entity_name: self.config.name.clone(),
        }
    }

    /// Files an announcement: to all (0), or to the participant with the index below.
    pub(crate) fn file_announcement(&mut self, subject: u16) {
        let is_filed = match subject.checked_sub(1) {
            None => core::mem::replace(&mut self.announce_filed, true),
            Some(index) => self.participants.get_mut(index).is_none_or(|participant| {
                core::mem::replace(&mut participant.announce_filed, true)
            }),
        };
        if !is_filed {
            self.file(Priority::DISCOVERY, WorkKind::Announce, subject);
        }
    }

    /// Whether what is sent to all does not reach a participant: it lists us, and we do not list it.
    fn is_unlisted(&self, peer: &RemoteParticipant) -> bool {
        let is_reached = |locator: &Locator| self.config.announce_to.contains(locator);
        !peer.data.metatraffic_unicast.iter().any(is_reached)
            && !peer.data.metatraffic_multicast.iter().any(is_reached)
    }

    /// Files announcements to the participants that those to all do not reach.
    pub(crate) fn file_announcements_to_unlisted(&mut self) {
        for index in 0..self.participants.end() {
            let peer = self.participants.get(index);
            if peer.is_some_and(|peer| self.is_unlisted(peer)) {
                self.file_announcement(index + 1);
            }
        }
    }

    /// Makes the SPDP announcement, for all (0) or for one newly found.
    pub(crate) fn announce(&mut self, subject: u16, buffer: &mut [u8]) -> Option<Work> {
        let to = match subject.checked_sub(1) {
            None => {
                self.announce_filed = false;
                self.announcements_sent = self.announcements_sent.saturating_add(1);
                Destinations::Announce
            }
            Some(index) => {
                let participant = self.participants.get_mut(index)?;
                participant.announce_filed = false;
                let locators = &participant.data.metatraffic_unicast;
                let locator = crate::matching::choose(locators, &self.config.networks)?;
                Destinations::Listed(BoundedVec::from_iter([locator]))
            }
        };
        let mut payload = [0; DISCOVERY_SLOT_BYTES];
        let length = self.participant_data().emit(&mut payload).ok()?;
        let bytes = self.emit_announcement(buffer, PayloadKind::Data, None, &payload[..length]);
        Some(Work {
            kind: WorkKind::Announce,
            level: None,
            bytes,
            to,
        })
    }

    /// Says good-bye: the datagram that tells every peer that this participant is gone, to be sent
    /// [to all](Self::farewell_to) as the last thing. Returns its length.
    pub fn farewell(&mut self, buffer: &mut [u8]) -> usize {
        let mut payload = [0; 64];
        let guid = self.guid(EntityId::PARTICIPANT);
        let Ok(length) = emit_key_guid(EndpointKey::Participant, guid, &mut payload) else {
            return 0;
        };
        let status = Some(StatusInfo {
            disposed: true,
            unregistered: true,
        });
        self.emit_announcement(buffer, PayloadKind::Key, status, &payload[..length])
    }

    /// Where the good-bye goes: where participants are announced, and to each known one that this
    /// does not reach.
    pub fn farewell_to(&self) -> impl Iterator<Item = Locator> {
        let unlisted = self
            .remote_participants()
            .filter(|peer| self.is_unlisted(peer));
        let address = |peer: &RemoteParticipant| {
            crate::matching::choose(&peer.data.metatraffic_unicast, &self.config.networks)
        };
        let listed = self.config.announce_to.iter().copied();
        listed.chain(unlisted.filter_map(address))
    }

    fn emit_announcement(
        &mut self,
        buffer: &mut [u8],
        kind: PayloadKind,
        status: Option<StatusInfo>,
        payload: &[u8],
    ) -> usize {
        let header = self.header;
        let guid = self.guid(EntityId::PARTICIPANT);
        let head = DataHead {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SPDP_WRITER,
            sequence: SequenceNumber(if status.is_some() { 2 } else { 1 }),
            key_hash: status.map(|_| guid.to_bytes()),
            status,
            payload: kind,
        };
        self.finish(
            buffer,
            |message| message.data(&head, payload).map(|_| ()),
            header,
        )
    }

    /// Puts an SPDP announcement into the box.
    pub(crate) fn file_participant_announcement(&mut self, prefix: GuidPrefix, data: &Data<'_>) {
        if prefix == self.guid_prefix() {
            return;
        }
        let is_farewell = data.status_info().disposed || data.status_info().unregistered;
        if self.inbox.put(prefix, data.bytes, is_farewell) {
            self.file_discovery();
        } else {
            self.counters.announcements_dropped += 1;
        }
    }

    pub(crate) fn file_discovery(&mut self) {
        if !core::mem::replace(&mut self.discovery_filed, true) {
            self.file(Priority::DISCOVERY, WorkKind::Discovery, 0);
        }
    }

    /// One announcement of a peer.
    pub(crate) fn take_in_announcement(&mut self, now: Instant) -> Option<Work> {
        self.discovery_filed = false;
        let took = self.take_in_participant(now)
            || self.take_in_endpoint(now, PUBLICATIONS, EndpointKind::Writer)
            || self.take_in_endpoint(now, SUBSCRIPTIONS, EndpointKind::Reader)
            || self.follow_endpoint()
            || self.forget_silent_participant(now);
        if took {
            // There may be more; the step that finds nothing ends it.
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

    fn take_in_participant(&mut self, now: Instant) -> bool {
        let Some((prefix, payload, is_farewell)) = self.inbox.oldest() else {
            return false;
        };
        let parsed = (!is_farewell).then(|| ParticipantData::parse(payload));
        self.inbox.remove_oldest();
        match parsed {
            None => {
                if let Some(&index) = self.participant_by_prefix.get(&prefix) {
                    self.remove_participant(now, index);
                }
            }
            Some(Err(_)) => self.counters.malformed_announcements += 1,
            Some(Ok(data)) => {
                let is_other_domain = data
                    .domain_id
                    .is_some_and(|domain| domain != self.config.domain);
                // A participant speaks for itself: the sender's prefix is its own.
                if data.guid.prefix != prefix || is_other_domain {
                    self.counters.malformed_announcements += 1;
                } else {
                    self.update_participant(now, data);
                }
            }
        }
        true
    }

    fn update_participant(&mut self, now: Instant, data: ParticipantData) {
        let prefix = data.guid.prefix;
        let lease = data.lease.min(MAX_LEASE);
        self.counters.leases_shortened += u64::from(lease < data.lease);
        let index = match self.participant_by_prefix.get(&prefix) {
            Some(&index) => {
                if let Some(known) = self.participants.get_mut(index) {
                    let moved = !is_reached_alike(&known.data, &data);
                    known.data = data;
                    known.heard = now;
                    known.missed = None;
                    if moved {
                        known.moved = Some(0);
                        self.follow_participant(index);
                    }
                }
                self.ask_again(prefix);
                index
            }
            None => {
                let found = RemoteParticipant {
                    data,
                    heard: now,
                    announce_filed: false,
                    missed: None,
                    moved: None,
                };
                let Ok(index) = self.participants.insert(found) else {
                    self.counters.participants_refused += 1;
                    return;
                };
                self.participant_by_prefix.insert(prefix, index);
                self.connect_sedp(now, index);
                // It may have started after our last announcement.
                self.file_announcement(index + 1);
                self.note_discovery();
                index
            }
        };
        self.timers.arm(Subject::lease(index), now + lease);
    }

    /// Asks writers of a participant again for their first heartbeat, or for what is missing: the
    /// question may have been lost, and a writer that thinks we have all it has, because we had it
    /// before we forgot the writer, says nothing by itself.
    fn ask_again(&mut self, prefix: GuidPrefix) {
        for index in 0..self.writer_proxies.end() {
            let waits = self.writer_proxies.get(index).is_some_and(|proxy| {
                proxy.guid.prefix == prefix
                    && proxy.reliable
                    && (!proxy.started || proxy.is_missing_any())
            });
            if waits {
                self.file_acknack(index);
            }
        }
    }

    /// The SEDP endpoints of a participant that has moved follow it.
    fn follow_participant(&mut self, index: u16) {
        let Some(participant) = self.participants.get(index) else {
            return;
        };
        let data = &participant.data;
        let prefix = data.guid.prefix;
        let unicast = crate::matching::choose(&data.metatraffic_unicast, &self.config.networks);
        let address = (unicast, self.group_of(&data.metatraffic_multicast, unicast));
        for sedp in &SEDP {
            for entity in [sedp.reader, sedp.writer] {
                self.follow(Guid { prefix, entity }, address);
            }
        }
    }

    /// One endpoint of a participant that has moved follows it.
    fn follow_endpoint(&mut self) -> bool {
        let moved = |(index, peer): (u16, &RemoteParticipant)| Some((index, peer.moved?));
        let next = self.participants.iter().find_map(moved);
        let Some((index, from)) = next else {
            return false;
        };
        let found = (from..self.endpoints.end()).find_map(|at| {
            let endpoint = self.endpoints.get(at)?;
            let is_its = endpoint.participant == index;
            is_its.then(|| (at, endpoint.data.guid, self.address_of(endpoint)))
        });
        if let Some(participant) = self.participants.get_mut(index) {
            participant.moved = found.map(|(at, ..)| at + 1);
        }
        if let Some((_, guid, address)) = found {
            self.follow(guid, address);
        }
        true
    }

    /// Matches the built-in endpoints with a new participant's.
    fn connect_sedp(&mut self, now: Instant, index: u16) {
        let Some(participant) = self.participants.get(index) else {
            return;
        };
        let prefix = participant.data.guid.prefix;
        let has = participant.data.builtin_endpoints;
        let networks = &self.config.networks;
        let unicast = crate::matching::choose(&participant.data.metatraffic_unicast, networks);
        let multicast = self.group_of(&participant.data.metatraffic_multicast, unicast);
        for (kind, sedp) in (0u16..).zip(&SEDP) {
            if has & sedp.detector != 0 {
                let guid = Guid {
                    prefix,
                    entity: sedp.reader,
                };
                let mut proxy = ReaderProxy::new(kind, guid, true);
                proxy.unicast = unicast;
                proxy.multicast = multicast;
                self.add_reader_proxy(now, proxy, true);
            }
            if has & sedp.announcer != 0 {
                let guid = Guid {
                    prefix,
                    entity: sedp.writer,
                };
                let mut proxy = WriterProxy::new(kind, guid, true);
                proxy.reply_to = unicast.or(multicast);
                self.add_writer_proxy(proxy);
            }
        }
    }

    fn take_in_endpoint(&mut self, now: Instant, reader: u16, kind: EndpointKind) -> bool {
        let Some(cache) = self
            .readers
            .get(reader)
            .and_then(|reader| reader.cache.as_ref())
        else {
            return false;
        };
        let Some((info, payload, _)) = cache.get(0) else {
            return false;
        };
        let prefix = info.writer.prefix;
        let announced = if info.kind == ChangeKind::Alive {
            let parsed = match kind {
                EndpointKind::Writer => EndpointData::parse_writer(payload),
                EndpointKind::Reader => EndpointData::parse_reader(payload),
            };
            parsed.map(Some)
        } else {
            Ok(None)
        };
        let ended = parse_key_guid(payload).or(info.key_hash.map(Guid::from_bytes));
        self.discard_oldest(reader);
        match announced {
            // A participant announces its own endpoints only.
            Ok(Some(data)) if data.guid.prefix == prefix => self.update_endpoint(now, data, kind),
            Ok(None) => {
                if let Some(guid) = ended.filter(|guid| guid.prefix == prefix) {
                    self.remove_endpoint(now, guid);
                }
            }
            _ => self.counters.malformed_announcements += 1,
        }
        true
    }

    fn update_endpoint(&mut self, now: Instant, data: EndpointData, kind: EndpointKind) {
        let guid = data.guid;
        let Some(&participant) = self.participant_by_prefix.get(&guid.prefix) else {
            return;
        };
        if let Some(&known) = self.endpoint_by_guid.get(&guid) {
            // Changed QoS: what no longer fits is parted, what now fits is joined.
            let changed = self.endpoints.get_mut(known).is_some_and(|endpoint| {
                core::mem::replace(&mut endpoint.data, data) != endpoint.data
            });
            if changed {
                self.match_remote(now, known);
            }
            return;
        }
        let Ok(index) = self.endpoints.insert(RemoteEndpoint {
            data,
            kind,
            participant,
        }) else {
            self.counters.endpoints_refused += 1;
            return;
        };
        self.endpoint_by_guid.insert(guid, index);
        self.note_discovery();
        self.match_remote(now, index);
    }

    fn remove_endpoint(&mut self, now: Instant, guid: Guid) {
        let Some(index) = self.endpoint_by_guid.remove(&guid) else {
            return;
        };
        self.endpoints.remove(index);
        self.unmatch(now, guid);
        self.note_discovery();
    }

    /// A participant is gone: by its own word, or because its lease ran out.
    fn remove_participant(&mut self, now: Instant, index: u16) {
        let Some(gone) = self.participants.remove(index) else {
            return;
        };
        let prefix = gone.data.guid.prefix;
        self.participant_by_prefix.remove(&prefix);
        self.timers.disarm(Subject::lease(index));
        self.board.withdraw(&[WorkKind::Announce], index + 1);
        for endpoint in 0..self.endpoints.end() {
            let guid = match self.endpoints.get(endpoint) {
                Some(endpoint) if endpoint.participant == index => endpoint.data.guid,
                _ => continue,
            };
            self.remove_endpoint(now, guid);
        }
        for sedp in &SEDP {
            self.unmatch(
                now,
                Guid {
                    prefix,
                    entity: sedp.reader,
                },
            );
            self.unmatch(
                now,
                Guid {
                    prefix,
                    entity: sedp.writer,
                },
            );
        }
        self.note_discovery();
    }

    /// A lease timer has run out. That decides nothing yet: announcements may wait to be read.
    pub(crate) fn lease_due(&mut self) {
        self.leases_due = true;
        self.file_discovery();
    }

    /// Forgets one participant whose lease has run out (RTPS 2.5 §8.5.3.2), [`LEASE_GRACE`] after
    /// that was found out at this same priority, all announcements that came until then taken in.
    fn forget_silent_participant(&mut self, now: Instant) -> bool {
        if !self.leases_due {
            return false;
        }
        for index in 0..self.participants.end() {
            let Some(participant) = self.participants.get_mut(index) else {
                continue;
            };
            if now < participant.heard + participant.data.lease.min(MAX_LEASE) {
                continue;
            }
            let waited = participant.missed.map(|since| now.saturating_since(since));
            match waited {
                Some(waited) if waited < LEASE_GRACE => {}
                Some(waited) if waited <= 2 * LEASE_GRACE => {
                    self.counters.leases_expired += 1;
                    self.remove_participant(now, index);
                    return true;
                }
                _ => {
                    participant.missed = Some(now);
                    self.timers.arm(Subject::lease(index), now + LEASE_GRACE);
                }
            }
        }
        self.leases_due = false;
        false
    }

    /// Announces a local endpoint, or its end.
    pub(crate) fn announce_endpoint(
        &mut self,
        now: Instant,
        builtin: u16,
        data: &EndpointData,
        kind: ChangeKind,
    ) -> Result<(), crate::write::WriteError> {
        let key_hash = Some(data.guid.to_bytes());
        let id = crate::ids::WriterId(builtin);
        let timestamp = self.timestamp(now);
        if !self.has_room(id, key_hash)
            && let Some(writer) = self.writers.get_mut(builtin)
        {
            // The end of an endpoint is kept as long as there is room, for a peer that has not
            // heard of us for a while and still knows it; of those all others know the oldest goes.
            let lowest = writer.lowest_unacknowledged();
            if let Some(history) = &mut writer.history {
                history.remove_oldest_end_below(lowest);
                if history.room_for(key_hash).is_err() {
                    // A peer that acknowledges nothing must not keep the user from creating
                    // endpoints; it will not learn of that end.
                    history.remove_oldest_end_below(SequenceNumber(i64::MAX));
                }
            }
        }
        let slot = self.reserve(id, key_hash)?;
        let emitted = match kind {
            ChangeKind::Alive => data.emit(slot),
            _ => emit_key_guid(EndpointKey::Endpoint, data.guid, slot),
        };
        let limit = DISCOVERY_SLOT_BYTES;
        let length = emitted.map_err(|_| crate::write::WriteError::TooLarge { limit })?;
        self.commit(
            now,
            id,
            &WriteSample {
                kind,
                key_hash,
                timestamp,
            },
            length,
        )?;
        Ok(())
    }

    /// The address of an endpoint: its own locator, or its participant's default.
    pub(crate) fn address_of(
        &self,
        endpoint: &RemoteEndpoint,
    ) -> (Option<Locator>, Option<Locator>) {
        let networks = &self.config.networks;
        let own = crate::matching::choose(&endpoint.data.unicast, networks);
        let participant = self.participants.get(endpoint.participant);
        let default =
            participant.and_then(|p| crate::matching::choose(&p.data.default_unicast, networks));
        let unicast = own.or(default);
        let group = self.group_of(&endpoint.data.multicast, unicast);
        match (own, group, participant) {
            (None, None, Some(participant)) => {
                let group = self.group_of(&participant.data.default_multicast, unicast);
                (unicast, group)
            }
            _ => (unicast, group),
        }
    }
}

/// Whether two announcements of a participant name the same addresses.
fn is_reached_alike(one: &ParticipantData, other: &ParticipantData) -> bool {
    one.metatraffic_unicast == other.metatraffic_unicast
        && one.metatraffic_multicast == other.metatraffic_multicast
        && one.default_unicast == other.default_unicast
        && one.default_multicast == other.default_multicast
}
