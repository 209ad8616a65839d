//! SPDP announcements received: discovery of participants, their addresses and leases.
//!
//! A participant is known from its first announcement until its farewell or the end of its lease. Its SEDP endpoints,
//! which are never announced, are matched and unmatched with it.

use isolane_wire::{
    builtin_data::{BuiltinEndpoints, ParticipantData},
    guid::{EntityId, Guid, GuidPrefix},
    locator::Locator,
    message::{Data, VENDOR_ID},
    time::Instant,
};

use crate::{
    discovery::{
        Announces, Discovery, DiscoveryChange, DiscoveryEvent, RemoteParticipant,
        amplification::AROUND_ANNOUNCEMENT_BYTES,
        spdp::{Put, Sender},
    },
    limits::{MAX_ANSWERS_AGAIN, MAX_LEASE},
    matching::RefusedMatches,
    participant::{BUILTIN_ENDPOINTS, LocalParticipant, Shared},
    reader::WriterProxy,
    receiver::MessageReceiver,
    slab::{EndpointId, ReaderId, RemoteParticipantId, WriterId},
    work_queue::Timer,
    writer::reliability::ReaderProxy,
};

/// Pair of SEDP endpoints with the peer's flags for them in `BuiltinEndpoints`.
pub(super) struct Sedp {
    pub(super) writer: EntityId,
    pub(super) reader: EntityId,
    announcer: u32,
    detector: u32,
}

pub(super) const SEDP: [Sedp; 2] = [
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

/// Participant message endpoints, matched on demand.
pub(super) const MESSAGE_ENDPOINTS: [EntityId; 2] =
    [EntityId::P2P_MESSAGE_READER, EntityId::P2P_MESSAGE_WRITER];

impl LocalParticipant {
    /// Puts a received SPDP announcement or farewell into the inbox.
    pub(crate) fn schedule_participant_announcement(
        &mut self,
        now: Instant,
        message: &MessageReceiver,
        data: Data<'_>,
    ) {
        let prefix = message.sender();
        if prefix == self.shared.guid_prefix() || !self.is_enabled() {
            return;
        }
        let is_farewell = data.status_info().disposed || data.status_info().unregistered;
        if self.discovery.uses_descriptions(&self.shared)
            && !self.admits(now, prefix, message.source(), is_farewell)
        {
            return;
        }
        let is_known = self.discovery.by_prefix.contains_key(&prefix);
        let sender = Sender {
            prefix,
            source: message.source(),
            is_known,
        };
        match self.discovery.inbox.put(sender, data.bytes, is_farewell) {
            Put::StoredAnnouncement => self.shared.schedule_discovery(),
            Put::Replaced => self.shared.counters.announcements_replaced += 1,
            Put::Refused => self.shared.counters.announcements_dropped += 1,
        }
    }

    pub(super) fn take_in_participant(&mut self, now: Instant) -> bool {
        let Some((sender, payload, is_farewell)) = self.discovery.inbox.oldest() else {
            return false;
        };
        let prefix = sender.prefix;
        let parsed = (!is_farewell).then(|| ParticipantData::parse(payload));
        let bytes = payload.len() + AROUND_ANNOUNCEMENT_BYTES;
        // A participant announces itself only: the sender's prefix must be its own.
        let domain = self.shared.config.domain;
        let is_addressed = |data: &ParticipantData| {
            data.guid.prefix == prefix && data.domain_id.is_none_or(|it| it == domain)
        };
        if let Some(Ok(data)) = &parsed
            && is_addressed(data)
            && self.displaces(now, sender, data)
        {
            // Processed by a later step, when the place is free.
            return true;
        }
        self.discovery.inbox.remove_oldest();
        match parsed {
            None => {
                if let Some(&index) = self.discovery.by_prefix.get(&prefix) {
                    self.discovery.remove_participant(&mut self.shared, index);
                }
            }
            Some(Err(_)) => self.shared.counters.malformed_announcements += 1,
            Some(Ok(data)) => {
                if !is_addressed(&data) {
                    self.shared.counters.malformed_announcements += 1;
                } else if !self
                    .discovery
                    .is_ignored_participant(&mut self.shared, prefix)
                {
                    self.update_participant(now, data);
                    self.discovery.credit(prefix, bytes);
                }
            }
        }
        true
    }

    /// Removes another participant if a new one finds the table full, and returns whether it did. It removes the oldest
    /// one without a validated address, so that forged announcements block no place for a whole lease. If there is
    /// none, it removes the former start of the new participant.
    fn displaces(&mut self, now: Instant, sender: Sender, data: &ParticipantData) -> bool {
        let prefix = sender.prefix;
        let is_newcomer = !self.discovery.by_prefix.contains_key(&prefix)
            && self.discovery.is_undescribed(prefix)
            && !self.discovery.ignored.has_participant(prefix);
        if !is_newcomer || self.discovery.has_participant_place() {
            return false;
        }
        let unproven = self
            .discovery
            .participants
            .iter()
            .filter(|(_, peer)| !peer.is_proven() && !peer.is_leaving());
        let unproven = unproven.min_by_key(|(_, peer)| peer.since);
        let displaced = match unproven {
            Some((index, _)) => Some(index),
            None => self.former_start(now, sender.source, data),
        };
        let Some(index) = displaced else {
            return false;
        };
        self.shared.counters.participants_displaced += 1;
        self.discovery.remove_participant(&mut self.shared, index);
        true
    }

    /// Finds the former start of a participant that was restarted without a farewell. It has the same unicast
    /// metatraffic addresses and has been silent for half of its lease. Both must be of isolane, because two running
    /// isolane participants never share an address; participants of other vendors may. The announcement must come from
    /// one of these addresses.
    fn former_start(
        &mut self,
        now: Instant,
        source: Locator,
        data: &ParticipantData,
    ) -> Option<RemoteParticipantId> {
        let addresses = &data.metatraffic_unicast;
        let is_from =
            |locator: &Locator| source.ipv4().is_some() && locator.ipv4() == source.ipv4();
        if data.vendor != VENDOR_ID || !addresses.iter().any(is_from) {
            return None;
        }
        let index = self.discovery.participants.find(|peer| {
            let is_same = peer.data.metatraffic_unicast == *addresses;
            is_same && peer.data.vendor == VENDOR_ID && peer.is_silent(now) && !peer.is_leaving()
        })?;
        if !self
            .discovery
            .is_undescribed(self.discovery.participants.get(index)?.data.guid.prefix)
        {
            return None;
        }
        self.note_life_of_endpoints(index);
        let is_silent = self.discovery.participants.get(index)?.is_silent(now);
        is_silent.then_some(index)
    }

    fn update_participant(&mut self, now: Instant, data: ParticipantData) {
        let guid = data.guid;
        let prefix = guid.prefix;
        let lease = data.lease.min(MAX_LEASE);
        let octets_cut = u64::from(data.user_data.is_truncated());
        self.shared.counters.leases_shortened += u64::from(lease < data.lease);
        let (mut is_first_word, mut is_assumed_alive) = (false, false);
        let index = match self.discovery.by_prefix.get(&prefix) {
            Some(&index) => {
                if let Some(known) = self.discovery.participants.get_mut(index) {
                    is_first_word = core::mem::take(&mut known.awaits_announcement);
                    is_assumed_alive = known.is_assumed_alive;
                    let moved = !is_reached_alike(&known.data, &data);
                    let is_changed = known.data != data;
                    known.data = data;
                    known.heard = now;
                    known.missed = None;
                    if moved {
                        known.follow_from = Some(EndpointId(0));
                        self.discovery.has_following = true;
                    }
                    if is_changed {
                        self.shared.counters.octets_cut += octets_cut;
                        self.discovery.note_event(
                            &mut self.shared,
                            DiscoveryEvent::Participant(guid, DiscoveryChange::Changed),
                        );
                    }
                }
                if is_first_word {
                    self.connect_newcomer(now, index, prefix);
                }
                self.discovery.compare_digest(&mut self.shared, index);
                self.discovery.answer_again(&mut self.shared, now, index);
                self.ask_again(index, prefix);
                index
            }
            None => {
                if !self.discovery.is_undescribed(prefix) {
                    // The description enters it in a later step.
                    return;
                }
                self.shared.counters.octets_cut += octets_cut;
                let found = RemoteParticipant::new(data, now);
                let has_place = self.discovery.has_participant_place();
                let inserted = has_place.then(|| self.discovery.participants.insert(found));
                let Some(Ok(index)) = inserted else {
                    self.shared.counters.participants_refused += 1;
                    return;
                };
                self.enter_participant(prefix, index);
                self.connect_newcomer(now, index, prefix);
                self.discovery.note_event(
                    &mut self.shared,
                    DiscoveryEvent::Participant(guid, DiscoveryChange::Found),
                );
                index
            }
        };
        if !is_assumed_alive {
            self.shared.timers.arm(Timer::Lease(index), now + lease);
        }
    }

    /// Registers a participant that has a place in the table.
    pub(super) fn enter_participant(&mut self, prefix: GuidPrefix, index: RemoteParticipantId) {
        self.discovery.by_prefix.insert(prefix, index);
        self.shared.remote_participants = self.discovery.participants.len();
        self.shared.timers.reserve(Timer::Lease(index));
        self.make_room_to_file();
    }

    /// Answers the first announcement of a participant and matches its built-in endpoints.
    fn connect_newcomer(&mut self, now: Instant, index: RemoteParticipantId, prefix: GuidPrefix) {
        // The participant may have started after our last announcement.
        self.discovery
            .schedule_announcement(&mut self.shared, Some(index));
        self.connect_sedp(now, index);
        let is_described = !self.discovery.is_undescribed(prefix);
        if is_described || !self.discovery.is_isolane(&self.shared, prefix) {
            // Other vendors assume that these endpoints are matched, and ask until they are answered. A described peer
            // was matched before its endpoints could be reached.
            self.connect_message_reader(prefix);
            self.connect_message_writer(now, prefix);
        }
    }

    /// Repeats ACKNACKs to writers of a participant that lack a first HEARTBEAT or have samples missing. Repeats
    /// HEARTBEATs to readers that have not answered or whose address is not validated. An earlier message may be lost,
    /// or the endpoint may have been unreachable for longer than periodic HEARTBEATs last. A writer that knew us before
    /// we forgot it sends nothing by itself.
    ///
    /// Without a validated address only the participant's SEDP endpoints are addressed.
    pub(super) fn ask_again(&mut self, index: RemoteParticipantId, prefix: GuidPrefix) {
        self.ask_for_refused(index);
        self.request_revoked(index);
        let Some(participant) = self.discovery.participants.get(index) else {
            return;
        };
        let first_unasked = if participant.is_proven() {
            u16::MAX
        } else {
            BUILTIN_ENDPOINTS
        };
        for index in self.readers.proxies.ids() {
            let waits = self.readers.proxies.get(index).is_some_and(|proxy| {
                proxy.guid.prefix == prefix
                    && proxy.reader.0 < first_unasked
                    && proxy.reliable
                    && (!proxy.started || proxy.is_missing_any())
            });
            if waits {
                self.readers.schedule_acknack(&mut self.shared, index);
            }
        }
        for index in self.writers.proxies.ids() {
            let waits = self.writers.proxies.get(index).is_some_and(|proxy| {
                proxy.guid.prefix == prefix
                    && proxy.writer.0 < first_unasked
                    && proxy.reliable
                    && !(proxy.is_joined && proxy.is_reachable)
            });
            if waits {
                self.writers.schedule_repair(&mut self.shared, index);
            }
        }
    }

    fn follow_participant(&mut self, index: RemoteParticipantId) {
        let participant = &self.discovery.participants[index];
        let data = &participant.data;
        let prefix = data.guid.prefix;
        let unicast = self
            .shared
            .choose_of(participant, &data.metatraffic_unicast);
        let address = (
            unicast,
            self.shared.group_of(&data.metatraffic_multicast, unicast),
        );
        let entities = SEDP.iter().flat_map(|sedp| [sedp.reader, sedp.writer]);
        for entity in entities.chain(MESSAGE_ENDPOINTS) {
            self.follow(Guid { prefix, entity }, address);
        }
    }

    /// Updates the addresses of one endpoint of a participant that has moved or become reachable. Its built-in
    /// endpoints come first.
    pub(super) fn follow_endpoint(&mut self) -> bool {
        if !self.discovery.has_following {
            return false;
        }
        let follows = |(index, peer): (RemoteParticipantId, &RemoteParticipant)| {
            Some((index, peer.follow_from?))
        };
        let next = self.discovery.participants.iter().find_map(follows);
        let Some((index, from)) = next else {
            self.discovery.has_following = false;
            return false;
        };
        if from == EndpointId(0) {
            self.follow_participant(index);
        }
        let found = self.discovery.endpoints.ids_from(from).find_map(|at| {
            let endpoint = self.discovery.endpoints.get(at)?;
            let is_its = endpoint.participant == index;
            is_its.then(|| {
                let data = endpoint.data(&self.discovery.announcements);
                (
                    at,
                    data.guid,
                    self.discovery.address_of(&self.shared, &data, index),
                )
            })
        });
        if let Some(participant) = self.discovery.participants.get_mut(index) {
            participant.follow_from = found.map(|(at, ..)| EndpointId(at.0 + 1));
        }
        if let Some((_, guid, address)) = found {
            self.follow(guid, address);
        }
        true
    }

    /// Matches the local SEDP endpoints with those of a participant, where not yet matched.
    pub(super) fn connect_sedp(&mut self, now: Instant, index: RemoteParticipantId) {
        if self.shared.announces() != Announces::All {
            return;
        }
        let Some(participant) = self.discovery.participants.get(index) else {
            return;
        };
        let prefix = participant.data.guid.prefix;
        let has = participant.data.builtin_endpoints;
        let unicast = self
            .shared
            .choose_of(participant, &participant.data.metatraffic_unicast);
        let multicast = self
            .shared
            .group_of(&participant.data.metatraffic_multicast, unicast);
        let is_reachable = self
            .discovery
            .is_validated(&self.shared, prefix, unicast.or(multicast));
        let mut refused = RefusedMatches::default();
        for (kind, sedp) in (0u16..).zip(&SEDP) {
            let guid = |entity| Guid { prefix, entity };
            let reader = guid(sedp.reader);
            if has & sedp.detector != 0
                && !self
                    .writers
                    .proxy_by_reader
                    .contains_key(&(WriterId(kind), reader))
            {
                let mut proxy = ReaderProxy::new(WriterId(kind), reader, true);
                proxy.is_reachable = is_reachable;
                (proxy.unicast, proxy.multicast) = (unicast, multicast);
                refused.readers |= self.add_reader_proxy(now, proxy, true);
            }
            let writer = guid(sedp.writer);
            if has & sedp.announcer != 0
                && self
                    .readers
                    .proxy_of_writer_at(writer, ReaderId(kind))
                    .is_none()
            {
                let mut proxy = WriterProxy::new(ReaderId(kind), writer, true);
                proxy.reply_to = unicast.or(multicast);
                refused.writers |= self.add_writer_proxy(proxy);
            }
        }
        self.discovery.has_refused |= refused.is_any();
        if let Some(participant) = self.discovery.participants.get_mut(index) {
            participant.refused = refused;
        }
    }
}

impl Discovery {
    /// Answers a participant again that keeps announcing itself without having acknowledged anything. The first answer
    /// may be lost, and a peer that does not know us ignores our SEDP messages. Answers are at least one initial
    /// announcement period apart, since the peer may do the same.
    fn answer_again(&mut self, shared: &mut Shared, now: Instant, index: RemoteParticipantId) {
        let period = shared.config.timing.announce_initial_period;
        let participant = &mut self.participants[index];
        let is_due = !participant.is_proven()
            && participant.answers_again < MAX_ANSWERS_AGAIN
            && now >= participant.answered + period;
        if is_due {
            participant.answered = now;
            participant.answers_again += 1;
            self.schedule_announcement(shared, Some(index));
        }
    }
}

/// Returns whether two announcements of a participant list the same addresses.
fn is_reached_alike(one: &ParticipantData, other: &ParticipantData) -> bool {
    one.metatraffic_unicast == other.metatraffic_unicast
        && one.metatraffic_multicast == other.metatraffic_multicast
        && one.default_unicast == other.default_unicast
        && one.default_multicast == other.default_multicast
}
