//! How liveliness travels (RTPS 2.5 §8.4.13).
//!
//! AUTOMATIC and MANUAL_BY_PARTICIPANT by messages of the participant: a writer and a reader that the
//! standard defines (`BuiltinParticipantMessageWriter` and `-Reader`), reliable, TRANSIENT_LOCAL, KEEP_LAST
//! 1, an instance a kind. MANUAL_BY_TOPIC by samples, and by HEARTBEATs with a flag.
//!
//! Nothing is sent for an infinite lease, which is the default. For AUTOMATIC a message leaves three times in
//! the shortest lease of this participant's writers, so that two may be lost; for MANUAL_BY_PARTICIPANT when
//! the user asserts or writes, at once after a silence and no more often than that. A message that is still
//! unsent when the next one is due has been kept back by more urgent work, and leaves before all else.
//!
//! Two participants of isolane connect these endpoints only when a match of theirs has a lease. Others expect
//! them to be connected as those of SEDP are, and ask for it again and again: with them they are.

use core::time::Duration;

use isolane_wire::{
    discovery::{BuiltinEndpoints, ParticipantMessage},
    guid::{EntityId, Guid, GuidPrefix},
    qos::LivelinessKind,
    rtps::Data,
    time::Instant,
};

use super::{ProxyClock, liveliness::Turn, period};
use crate::{
    engine::{Engine, Subject},
    history::ChangeKind,
    ids::WriterId,
    limits::{ASSERTIONS_PER_LEASE, MIN_PERIOD},
    matching::Refusal,
    priority::Priority,
    reader::WriterProxy,
    work::WorkKind,
    write::WriteSample,
    writer::ReaderProxy,
};

/// Index of the built-in writer, and of the built-in reader, of messages.
pub(crate) const MESSAGES: u16 = 2;

/// The kinds that messages tell of, in the order of their timers.
pub(crate) const TOLD: [LivelinessKind; 2] = [
    LivelinessKind::Automatic,
    LivelinessKind::ManualByParticipant,
];

/// What the user of a participant has said for all its writers.
#[derive(Debug, Default)]
pub(crate) struct Assertions {
    /// When, last.
    at: Option<Instant>,
    /// It is yet to be told.
    is_untold: bool,
}

impl Assertions {
    pub(crate) fn at(&self) -> Option<Instant> {
        self.at
    }
}

impl Engine {
    /// The user says that a writer is alive (DDS 1.4 §2.2.2.4.2.22): as by writing, without a sample. For
    /// AUTOMATIC, and for an infinite lease, there is nothing to say.
    pub fn assert_liveliness(&mut self, now: Instant, id: WriterId) {
        let writer = self.writers.get_mut(id.0);
        let Some(clock) = writer.and_then(|writer| writer.clock.as_mut()) else {
            return;
        };
        let Some(signal) = &clock.signal else {
            return;
        };
        let is_by_topic = signal.kind == LivelinessKind::ManualByTopic;
        clock.asserts |= is_by_topic;
        self.assert_writer(now, id.0);
        if is_by_topic {
            self.file_assertion(id.0);
        }
    }

    /// The user says that it is alive for all its writers with MANUAL_BY_PARTICIPANT (§2.2.2.2.1.21).
    pub fn assert_participant(&mut self, now: Instant) {
        self.assertions.at = self.assertions.at.max(Some(now));
        self.assertions.is_untold = true;
        for index in 0..self.writers.end() {
            let writer = self.writers.get_mut(index);
            let signal = writer.and_then(|writer| writer.clock.as_mut()?.signal.as_mut());
            if let Some(signal) = signal
                && signal.kind == LivelinessKind::ManualByParticipant
            {
                signal.assert(now);
                self.wind_writer(now, index);
            }
        }
        // Is the timer armed, the last message is younger than its share of the lease. Else it is due at once, by the
        // clock that arms it again: here it may be a time stamp that lies ahead, where the wall clock has been set.
        let timer = Subject::message(1, &self.config.limits);
        if !self.timers.is_armed(timer) {
            self.timers.arm(timer, Instant::new(0));
        }
    }

    /// A writer's user has asserted it, or written.
    pub(super) fn assert_writer(&mut self, at: Instant, index: u16) {
        let writer = self.writers.get_mut(index);
        let signal = writer.and_then(|writer| writer.clock.as_mut()?.signal.as_mut());
        let Some(signal) = signal else { return };
        signal.assert(at);
        let ends = at + signal.lease;
        if signal.kind == LivelinessKind::ManualByParticipant {
            self.assert_participant(at);
        }
        let timer = Subject::writer_clock(index, &self.config.limits);
        self.timers.bring_forward(timer, ends);
    }

    /// Files a HEARTBEAT that says that a writer is alive.
    fn file_assertion(&mut self, index: u16) {
        let Some(writer) = self.writers.get_mut(index) else {
            return;
        };
        let priority = writer.protocol_priority();
        if !core::mem::replace(&mut writer.heartbeat_filed, true) {
            self.file(priority, WorkKind::Heartbeat, index);
        }
    }

    /// Time between two messages of a kind; `None`: no writer needs them.
    fn message_period(&self, kind: LivelinessKind) -> Option<Duration> {
        let of_kind = |writer: &crate::writer::Writer| {
            let liveliness = writer.data.qos.liveliness;
            let is_it = writer.level.is_some() && liveliness.kind == kind;
            period(liveliness.lease).filter(|_| is_it)
        };
        let leases = self.writers.iter();
        let shortest = leases.filter_map(|(_, writer)| of_kind(writer)).min()?;
        Some((shortest / ASSERTIONS_PER_LEASE).max(MIN_PERIOD))
    }

    /// Arms the timer for messages, if a writer needs them.
    pub(super) fn wind_messages(&mut self, now: Instant, index: u16) {
        let writer = self.writers.get(index);
        if writer.is_some_and(|writer| writer.data.qos.liveliness.kind == TOLD[0]) {
            let timer = Subject::message(0, &self.config.limits);
            if let Some(period) = self.message_period(TOLD[0]) {
                self.timers.bring_forward(timer, now + period);
            }
        }
    }

    /// The time has come for the message of a kind, by its place in [`TOLD`].
    pub(crate) fn message_due(&mut self, now: Instant, which: u8) {
        let kind = TOLD[usize::from(which)];
        let Some(period) = self.message_period(kind) else {
            return;
        };
        let is_manual = kind == LivelinessKind::ManualByParticipant;
        if is_manual && !core::mem::take(&mut self.assertions.is_untold) {
            return;
        }
        self.write_message(now, kind);
        let timer = Subject::message(which, &self.config.limits);
        self.timers.arm(timer, now + period);
    }

    /// Writes a message to whoever is connected.
    fn write_message(&mut self, now: Instant, kind: LivelinessKind) {
        let is_automatic = kind == LivelinessKind::Automatic;
        let message = ParticipantMessage {
            participant: self.guid_prefix(),
            kind: match is_automatic {
                true => ParticipantMessage::KIND_AUTOMATIC_LIVELINESS,
                false => ParticipantMessage::KIND_MANUAL_LIVELINESS,
            },
            data: &[],
        };
        let Some(writer) = self.writers.get(MESSAGES) else {
            return;
        };
        if writer.proxies.is_empty() {
            return;
        }
        let was_kept_back = writer.data_filed;
        let entity = EntityId(message.kind);
        let key_hash = Some(self.guid(entity).to_bytes());
        let sample = WriteSample {
            kind: ChangeKind::Alive,
            key_hash,
            timestamp: self.timestamp(now),
        };
        let id = WriterId(MESSAGES);
        let emitted = match self.reserve(id, key_hash, 0) {
            Ok(slot) => message.emit(slot).ok(),
            Err(_) => None,
        };
        // KEEP_LAST 1 with a place for each of the two kinds has room always.
        debug_assert!(emitted.is_some(), "a message fits its slot");
        if let Some(length) = emitted {
            let committed = self.commit(id, &sample, length);
            debug_assert!(committed.is_ok());
        }
        if was_kept_back {
            self.board.withdraw(&[WorkKind::Data], MESSAGES);
            self.file(Priority::HIGHEST, WorkKind::Data, MESSAGES);
        }
    }

    /// A message of a participant has come. Taken note of at once, since discovery's turn may come later than
    /// leases run out; nothing but two times is written.
    pub(crate) fn hear_participant(&mut self, now: Instant, prefix: GuidPrefix, data: &Data<'_>) {
        let Ok(message) = ParticipantMessage::parse(data.bytes) else {
            self.counters.malformed_announcements += 1;
            return;
        };
        let which = match message.kind {
            ParticipantMessage::KIND_AUTOMATIC_LIVELINESS => 0,
            ParticipantMessage::KIND_MANUAL_LIVELINESS => 1,
            _ => return,
        };
        let found = self.participant_by_prefix.get(&prefix);
        let participant = found.and_then(|&index| self.participants.get_mut(index));
        // A participant speaks for itself.
        let Some(participant) = participant.filter(|_| message.participant == prefix) else {
            return;
        };
        let before = participant.asserted[which].replace(now);
        if before.is_some_and(|before| now.saturating_since(before) < MIN_PERIOD) {
            // No lease is shorter: what that message has revived still lives.
            return;
        }
        for index in 0..self.readers.end() {
            let reader = self.readers.get(index);
            if reader.is_some_and(|reader| reader.liveliness.has_silent()) {
                self.file_reader_clock(index);
            }
        }
    }

    /// When a participant was last heard to say that its writers of a kind are alive.
    pub(super) fn heard_of_participant(
        &self,
        now: Instant,
        prefix: GuidPrefix,
        kind: LivelinessKind,
    ) -> Option<Instant> {
        let which = TOLD.iter().position(|&told| told == kind)?;
        if prefix == self.guid_prefix() {
            return match kind {
                LivelinessKind::Automatic => Some(now),
                _ => self.assertions.at,
            };
        }
        let &index = self.participant_by_prefix.get(&prefix)?;
        self.participants.get(index)?.asserted[which]
    }

    /// Lets the messages that have come go: what they say was taken note of.
    pub(crate) fn forget_messages(&mut self) {
        let Some(reader) = self.readers.get_mut(MESSAGES) else {
            return;
        };
        while let Some(is_counted) = reader.cache.as_mut().and_then(|cache| cache.pop()) {
            reader.ledger.delivered += u64::from(is_counted);
        }
    }

    /// A writer is matched with a reader here, or has announced itself again.
    pub(crate) fn watch_writer(&mut self, now: Instant, index: u16, clock: ProxyClock) {
        let Some(proxy) = self.writer_proxies.get_mut(index) else {
            return;
        };
        let was_alive = proxy.clock.is_alive();
        proxy.clock = proxy.clock.followed_by(clock);
        let (reader, guid, lease) = (proxy.reader, proxy.guid, proxy.clock.lease);
        if !was_alive && lease.is_none() {
            // Nobody looks at it any more: what has no lease is alive.
            self.turn_writer(now, reader, index, guid, Turn::Back);
            self.note_reader(reader);
        }
        let of_reader = self.readers.get_mut(reader);
        if let Some(owners) = of_reader.and_then(|reader| reader.clock.as_mut()?.owners.as_mut()) {
            owners.set_strength(index, clock.strength);
        }
        let Some(lease) = lease else { return };
        // It looks when the lease ends.
        self.file_reader_clock(reader);
        if TOLD.contains(&lease.kind) {
            self.connect_message_reader(guid.prefix);
        }
    }

    /// A writer here is matched with a reader of this participant.
    pub(crate) fn tell_of_liveliness(&mut self, now: Instant, index: u16, prefix: GuidPrefix) {
        let liveliness = self.writers.get(index).map(|it| it.data.qos.liveliness);
        let is_told = liveliness.is_some_and(|liveliness| {
            TOLD.contains(&liveliness.kind) && period(liveliness.lease).is_some()
        });
        if is_told {
            self.connect_message_writer(now, prefix);
        }
    }

    /// Connects the reader of messages with a participant, for what a match needs. What finds no place is tried
    /// again with the participant's endpoints of SEDP.
    pub(crate) fn connect_message_reader(&mut self, prefix: GuidPrefix) {
        let writer = Guid {
            prefix,
            entity: EntityId::P2P_MESSAGE_WRITER,
        };
        let Some(&index) = self.participant_by_prefix.get(&prefix) else {
            return;
        };
        let Some(participant) = self.participants.get(index) else {
            return;
        };
        let data = &participant.data;
        let has_it = data.builtin_endpoints & BuiltinEndpoints::P2P_MESSAGE_WRITER != 0;
        if !has_it || self.proxy_of_writer_at(writer, MESSAGES).is_some() {
            return;
        }
        let unicast = self.choose_of(participant, &data.metatraffic_unicast);
        let multicast = self.group_of(&data.metatraffic_multicast, unicast);
        let mut proxy = WriterProxy::new(MESSAGES, writer, true);
        proxy.reply_to = unicast.or(multicast);
        let writers = self.add_writer_proxy(proxy);
        self.note_messages_refused(index, Refusal::empty(), writers);
    }

    /// The same for the writer of messages.
    pub(crate) fn connect_message_writer(&mut self, now: Instant, prefix: GuidPrefix) {
        let reader = Guid {
            prefix,
            entity: EntityId::P2P_MESSAGE_READER,
        };
        let Some(&index) = self.participant_by_prefix.get(&prefix) else {
            return;
        };
        let Some(participant) = self.participants.get(index) else {
            return;
        };
        let data = &participant.data;
        let has_it = data.builtin_endpoints & BuiltinEndpoints::P2P_MESSAGE_READER != 0;
        if !has_it || self.proxy_of_reader.contains_key(&(MESSAGES, reader)) {
            return;
        }
        let unicast = self.choose_of(participant, &data.metatraffic_unicast);
        let multicast = self.group_of(&data.metatraffic_multicast, unicast);
        let is_reachable = self.is_validated(prefix, unicast.or(multicast));
        let mut proxy = ReaderProxy::new(MESSAGES, reader, true);
        proxy.is_reachable = is_reachable;
        (proxy.unicast, proxy.multicast) = (unicast, multicast);
        let readers = self.add_reader_proxy(now, proxy, true);
        self.note_messages_refused(index, readers, Refusal::empty());
    }

    /// Notes why the reader or the writer of messages found no place for a participant's.
    fn note_messages_refused(&mut self, index: u16, readers: Refusal, writers: Refusal) {
        if let Some(participant) = self.participants.get_mut(index) {
            participant.messages_refused.note(readers, writers);
            self.has_refused |= participant.messages_refused.is_any();
        }
    }
}
