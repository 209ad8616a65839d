//! Liveliness protocol (RTPS 2.5 §8.4.13).
//!
//! AUTOMATIC and MANUAL_BY_PARTICIPANT are asserted by participant messages, from `BuiltinParticipantMessageWriter` to
//! `BuiltinParticipantMessageReader`: reliable, TRANSIENT_LOCAL, KEEP_LAST 1, one instance a kind. MANUAL_BY_TOPIC is
//! asserted by samples and by HEARTBEATs with the liveliness flag.
//!
//! An infinite lease, the default, sends nothing. For AUTOMATIC a message is sent three times in the shortest lease of
//! the local writers, so that two may be lost. For MANUAL_BY_PARTICIPANT a message is sent when the user asserts or
//! writes, at most at the same rate. A message still unsent when the next one is due was delayed by more urgent work,
//! and is sent with highest priority.
//!
//! Between isolane participants these endpoints are matched only for a match with a lease. With other vendors they are
//! always matched, because those expect a match, as for SEDP, and repeat their requests until they get it.

use core::time::Duration;

use isolane_wire::{
    builtin_data::{BuiltinEndpoints, ParticipantMessage},
    guid::{EntityId, Guid, GuidPrefix},
    message::Data,
    qos::LivelinessKind,
    time::Instant,
};

use crate::{
    discovery::Discovery,
    limits::{ASSERTIONS_PER_LEASE, MIN_PERIOD},
    matching::Refusal,
    participant::{Facts, LocalParticipant, Shared},
    reader::{Readers, WriterProxy},
    slab::{ReaderId, RemoteParticipantId, WriterId, WriterProxyId},
    timed_qos::{WriterLiveness, liveliness::LivelinessTransition, period},
    work::{Filed, Priority},
    work_queue::Timer,
    writer::{Writers, history::ChangeKind, reliability::ReaderProxy, write::WriteSample},
};

/// Index of the built-in participant message writer and reader.
pub(crate) const MESSAGES: u16 = 2;

/// Kinds asserted by participant messages, in the order of their timers.
pub(crate) const PARTICIPANT_LIVELINESS_KINDS: [LivelinessKind; 2] = [
    LivelinessKind::Automatic,
    LivelinessKind::ManualByParticipant,
];

/// Assertions of the user for the whole participant.
#[derive(Debug, Default)]
pub(crate) struct Assertions {
    /// Time of the last assertion.
    at: Option<Instant>,
    /// True until a participant message for this assertion is written.
    is_untold: bool,
}

impl Assertions {
    pub(crate) fn at(&self) -> Option<Instant> {
        self.at
    }
}

impl LocalParticipant {
    /// Asserts the liveliness of a writer (DDS 1.4 §2.2.2.4.2.22), as writing a sample does. No effect for AUTOMATIC or
    /// an infinite lease.
    pub fn assert_liveliness(&mut self, now: Instant, id: WriterId) {
        let writer = self.writers.get_mut(id);
        let Some(clock) = writer.and_then(|writer| writer.clock.as_mut()) else {
            return;
        };
        let Some(signal) = &clock.signal else {
            return;
        };
        let is_by_topic = signal.kind == LivelinessKind::ManualByTopic;
        clock.asserts |= is_by_topic;
        self.writers.assert_writer(&mut self.shared, now, id);
        if is_by_topic {
            self.writers.schedule_assertion(&mut self.shared, id);
        }
    }

    /// Asserts the liveliness of all writers with MANUAL_BY_PARTICIPANT (§2.2.2.2.1.21).
    pub fn assert_participant(&mut self, now: Instant) {
        self.writers.assert_participant(&mut self.shared, now);
    }

    /// Processes a received participant message. It is handled at once because discovery may run later than leases
    /// expire.
    pub(crate) fn hear_participant(&mut self, now: Instant, prefix: GuidPrefix, data: &Data<'_>) {
        let Ok(message) = ParticipantMessage::parse(data.bytes) else {
            self.shared.counters.malformed_announcements += 1;
            return;
        };
        let which = match message.kind {
            ParticipantMessage::KIND_AUTOMATIC_LIVELINESS => 0,
            ParticipantMessage::KIND_MANUAL_LIVELINESS => 1,
            _ => return,
        };
        let found = self.discovery.by_prefix.get(&prefix);
        let participant = found.and_then(|&index| self.discovery.participants.get_mut(index));
        // A participant asserts its own liveliness only.
        let Some(participant) = participant.filter(|_| message.participant == prefix) else {
            return;
        };
        let before = participant.asserted[which].replace(now);
        if before.is_some_and(|before| now.saturating_since(before) < MIN_PERIOD) {
            // No lease is shorter than this period: writers revived by the previous message are still alive.
            return;
        }
        for index in self.readers.table.ids() {
            let reader = self.readers.get(index);
            if reader.is_some_and(|reader| reader.liveliness.has_silent()) {
                self.readers
                    .schedule_reader_timed_qos(&mut self.shared, index);
            }
        }
    }

    /// Starts or updates the monitoring of a matched writer, after a match or another announcement.
    pub(crate) fn watch_writer(
        &mut self,
        now: Instant,
        index: WriterProxyId,
        clock: WriterLiveness,
    ) {
        let Some(proxy) = self.readers.proxies.get_mut(index) else {
            return;
        };
        let was_alive = proxy.clock.is_alive();
        proxy.clock = proxy.clock.followed_by(clock);
        let (reader, guid, lease) = (proxy.reader, proxy.guid, proxy.clock.lease);
        if !was_alive && lease.is_none() {
            // Without a lease the writer counts as alive, and no check would change that.
            self.readers.turn_writer(
                &mut self.shared,
                now,
                reader,
                index,
                guid,
                LivelinessTransition::Back,
            );
            self.readers.note_reader(&mut self.shared, reader);
        }
        let of_reader = self.readers.get_mut(reader);
        if let Some(owners) = of_reader.and_then(|reader| reader.clock.as_mut()?.owners.as_mut()) {
            owners.set_strength(index, clock.strength);
        }
        let Some(lease) = lease else { return };
        // The timed-QoS step arms the timer for the end of the lease.
        self.readers
            .schedule_reader_timed_qos(&mut self.shared, reader);
        if PARTICIPANT_LIVELINESS_KINDS.contains(&lease.kind) {
            self.connect_message_reader(guid.prefix);
        }
    }

    /// Matches the participant message writer with a participant whose reader needs assertions from this writer.
    pub(crate) fn connect_for_liveliness(
        &mut self,
        now: Instant,
        index: WriterId,
        prefix: GuidPrefix,
    ) {
        let liveliness = self.writers.get(index).map(|it| it.data.qos.liveliness);
        let is_reported = liveliness.is_some_and(|liveliness| {
            PARTICIPANT_LIVELINESS_KINDS.contains(&liveliness.kind)
                && period(liveliness.lease).is_some()
        });
        if is_reported {
            self.connect_message_writer(now, prefix);
        }
    }

    /// Matches the participant message reader with a participant. A refused match is retried together with those of the
    /// participant's SEDP endpoints.
    pub(crate) fn connect_message_reader(&mut self, prefix: GuidPrefix) {
        let writer = Guid {
            prefix,
            entity: EntityId::P2P_MESSAGE_WRITER,
        };
        let Some(&index) = self.discovery.by_prefix.get(&prefix) else {
            return;
        };
        let participant = &self.discovery.participants[index];
        let data = &participant.data;
        let has_it = data.builtin_endpoints & BuiltinEndpoints::P2P_MESSAGE_WRITER != 0;
        if !has_it
            || self
                .readers
                .proxy_of_writer_at(writer, ReaderId(MESSAGES))
                .is_some()
        {
            return;
        }
        let unicast = self
            .shared
            .choose_of(participant, &data.metatraffic_unicast);
        let multicast = self.shared.group_of(&data.metatraffic_multicast, unicast);
        let mut proxy = WriterProxy::new(ReaderId(MESSAGES), writer, true);
        proxy.reply_to = unicast.or(multicast);
        let writers = self.add_writer_proxy(proxy);
        self.discovery
            .note_messages_refused(index, Refusal::empty(), writers);
    }

    /// Matches the participant message writer with a participant, as `connect_message_reader` does for the reader.
    pub(crate) fn connect_message_writer(&mut self, now: Instant, prefix: GuidPrefix) {
        let reader = Guid {
            prefix,
            entity: EntityId::P2P_MESSAGE_READER,
        };
        let Some(&index) = self.discovery.by_prefix.get(&prefix) else {
            return;
        };
        let participant = &self.discovery.participants[index];
        let data = &participant.data;
        let has_it = data.builtin_endpoints & BuiltinEndpoints::P2P_MESSAGE_READER != 0;
        if !has_it
            || self
                .writers
                .proxy_by_reader
                .contains_key(&(WriterId(MESSAGES), reader))
        {
            return;
        }
        let unicast = self
            .shared
            .choose_of(participant, &data.metatraffic_unicast);
        let multicast = self.shared.group_of(&data.metatraffic_multicast, unicast);
        let is_reachable = self
            .discovery
            .is_validated(&self.shared, prefix, unicast.or(multicast));
        let mut proxy = ReaderProxy::new(WriterId(MESSAGES), reader, true);
        proxy.is_reachable = is_reachable;
        (proxy.unicast, proxy.multicast) = (unicast, multicast);
        let readers = self.add_reader_proxy(now, proxy, true);
        self.discovery
            .note_messages_refused(index, readers, Refusal::empty());
    }
}

impl Writers {
    pub(crate) fn assert_participant(&mut self, shared: &mut Shared, now: Instant) {
        self.assertions.at = self.assertions.at.max(Some(now));
        self.assertions.is_untold = true;
        for index in self.table.ids() {
            let writer = self.table.get_mut(index);
            let signal = writer.and_then(|writer| writer.clock.as_mut()?.signal.as_mut());
            if let Some(signal) = signal
                && signal.kind == LivelinessKind::ManualByParticipant
            {
                signal.assert(now);
                self.arm_writer(shared, now, index);
            }
        }
        // An armed timer means that the last message is recent enough. Otherwise the timer fires at once and sends one.
        // Only the timer uses the participant's time: `now` may be a source timestamp ahead of it, if the wall clock
        // was set.
        let timer = Timer::Message(1);
        if !shared.timers.is_armed(timer) {
            shared.timers.arm(timer, Instant::new(0));
        }
    }

    /// Asserts the liveliness of one writer, after a write or an assertion by the user.
    pub(super) fn assert_writer(&mut self, shared: &mut Shared, at: Instant, index: WriterId) {
        let writer = self.table.get_mut(index);
        let signal = writer.and_then(|writer| writer.clock.as_mut()?.signal.as_mut());
        let Some(signal) = signal else { return };
        signal.assert(at);
        let ends = at + signal.lease;
        if signal.kind == LivelinessKind::ManualByParticipant {
            self.assert_participant(shared, at);
        }
        let timer = Timer::WriterTimedQos(index);
        shared.timers.bring_forward(timer, ends);
    }

    /// Files a HEARTBEAT that asserts a writer's liveliness.
    fn schedule_assertion(&mut self, shared: &mut Shared, index: WriterId) {
        let Some(writer) = self.table.get_mut(index) else {
            return;
        };
        let queue = writer.protocol_queue();
        if !core::mem::replace(&mut writer.heartbeat_filed, true) {
            shared.schedule(queue, Filed::Heartbeat(index));
        }
    }

    /// Time between two messages of a kind; `None` if no writer needs them.
    fn message_period(&self, kind: LivelinessKind) -> Option<Duration> {
        let of_kind = |writer: &crate::writer::Writer| {
            let liveliness = writer.data.qos.liveliness;
            let is_it = writer.level.is_some() && liveliness.kind == kind;
            period(liveliness.lease).filter(|_| is_it)
        };
        let leases = self.table.iter();
        let shortest = leases.filter_map(|(_, writer)| of_kind(writer)).min()?;
        Some((shortest / ASSERTIONS_PER_LEASE).max(MIN_PERIOD))
    }

    /// Arms the timer of AUTOMATIC messages if the writer needs them.
    pub(super) fn arm_messages(&mut self, shared: &mut Shared, now: Instant, index: WriterId) {
        let writer = self.table.get(index);
        if writer.is_some_and(|writer| {
            writer.data.qos.liveliness.kind == PARTICIPANT_LIVELINESS_KINDS[0]
        }) {
            let timer = Timer::Message(0);
            if let Some(period) = self.message_period(PARTICIPANT_LIVELINESS_KINDS[0]) {
                shared.timers.bring_forward(timer, now + period);
            }
        }
    }

    /// Handles the timer of a message kind, given by its index in [`PARTICIPANT_LIVELINESS_KINDS`].
    pub(crate) fn message_due(&mut self, shared: &mut Shared, now: Instant, which: u8) {
        let kind = PARTICIPANT_LIVELINESS_KINDS[usize::from(which)];
        let Some(period) = self.message_period(kind) else {
            return;
        };
        let is_manual = kind == LivelinessKind::ManualByParticipant;
        if is_manual && !core::mem::take(&mut self.assertions.is_untold) {
            return;
        }
        self.write_message(shared, now, kind);
        let timer = Timer::Message(which);
        shared.timers.arm(timer, now + period);
    }

    fn write_message(&mut self, shared: &mut Shared, now: Instant, kind: LivelinessKind) {
        let is_automatic = kind == LivelinessKind::Automatic;
        let message = ParticipantMessage {
            participant: shared.guid_prefix(),
            kind: match is_automatic {
                true => ParticipantMessage::KIND_AUTOMATIC_LIVELINESS,
                false => ParticipantMessage::KIND_MANUAL_LIVELINESS,
            },
            data: &[],
        };
        let Some(writer) = self.table.get(WriterId(MESSAGES)) else {
            return;
        };
        if writer.proxies.is_empty() {
            return;
        }
        let was_kept_back = writer.data_filed;
        let entity = EntityId(message.kind);
        let key_hash = Some(shared.guid(entity).to_bytes());
        let sample = WriteSample {
            kind: ChangeKind::Alive,
            key_hash,
            timestamp: shared.timestamp(now),
        };
        let id = WriterId(MESSAGES);
        let emitted = match self.reserve(id, key_hash, 0) {
            Ok(slot) => message.emit(slot).ok(),
            Err(_) => None,
        };
        // KEEP_LAST 1 with a slot for each of the two kinds always has room.
        debug_assert!(emitted.is_some(), "a message fits its slot");
        if let Some(length) = emitted {
            let committed = self.commit(shared, id, &sample, length);
            debug_assert!(committed.is_ok());
        }
        if was_kept_back {
            shared
                .work_queue
                .withdraw(&[Filed::Data(WriterId(MESSAGES))]);
            shared.schedule(Priority::HIGHEST, Filed::Data(WriterId(MESSAGES)));
        }
    }
}

impl Readers {
    /// Discards received participant messages, which are processed on reception.
    pub(crate) fn forget_messages(&mut self) {
        let Some(reader) = self.table.get_mut(ReaderId(MESSAGES)) else {
            return;
        };
        while let Some(is_counted) = reader.cache.as_mut().and_then(|cache| cache.pop()) {
            reader.ledger.delivered += u64::from(is_counted);
        }
    }
}

impl Discovery {
    /// Records why matches of the participant message endpoints were refused.
    fn note_messages_refused(
        &mut self,
        index: RemoteParticipantId,
        readers: Refusal,
        writers: Refusal,
    ) {
        if let Some(participant) = self.participants.get_mut(index) {
            participant.messages_refused.note(readers, writers);
            self.has_refused |= participant.messages_refused.is_any();
        }
    }
}

impl Facts<'_> {
    /// Time of the last message in which a participant asserted its writers of a kind.
    pub(super) fn heard_of_participant(
        &self,
        shared: &Shared,
        now: Instant,
        prefix: GuidPrefix,
        kind: LivelinessKind,
    ) -> Option<Instant> {
        let which = PARTICIPANT_LIVELINESS_KINDS
            .iter()
            .position(|&reported| reported == kind)?;
        if prefix == shared.header.prefix {
            return match kind {
                LivelinessKind::Automatic => Some(now),
                _ => self.writers.assertions.at,
            };
        }
        let &index = self.discovery.by_prefix.get(&prefix)?;
        self.discovery.participants.get(index)?.asserted[which]
    }
}
