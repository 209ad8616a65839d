//! Reliable protocol of a writer (RTPS 2.5 §8.4.9), with its proxies of matched readers (§8.4.7.5).
//!
//! The writer sends HEARTBEATs to all readers, keeps their timer, and releases acknowledged changes (§8.4.9.2). It
//! receives ACKNACK (§8.3.8.1) and NACK_FRAG (§8.3.8.12). A [`ReaderProxy`] records what its reader has acknowledged
//! and requested, and how far the reader's share of the history was sent. `repair` sends the requested samples.

use alloc::boxed::Box;
use core::time::Duration;

use isolane_wire::{
    guid::Guid,
    locator::Locator,
    message::{AckNack, Heartbeat, NackFrag},
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

use crate::{
    limits::{
        MAX_PREEMPTIVE_ACKNACKS, MAX_UNANSWERED_HEARTBEATS, PARTICIPANTS_PER_HEARTBEAT_PERIOD,
    },
    participant::{BUILTIN_ENDPOINTS, LocalParticipant, Shared},
    reader::is_news,
    receiver::MessageReceiver,
    slab::{ReaderProxyId, WriterId},
    work::{Filed, Work, WorkKind},
    work_queue::Timer,
    writer::{
        Writer, WriterStatus, Writers, filtered_changes::FilteredChanges, fragments::OwedFragments,
    },
};

/// Proxy of a matched reader at one writer.
#[derive(Debug)]
pub(crate) struct ReaderProxy {
    pub(crate) writer: WriterId,
    pub(crate) guid: Guid,
    pub(crate) unicast: Option<Locator>,
    pub(crate) multicast: Option<Locator>,
    pub(crate) reliable: bool,
    /// The reader gets samples written before its match.
    pub(crate) wants_history: bool,
    /// The address is validated, so samples are sent to it.
    pub(crate) is_reachable: bool,
    /// Source address of the last ACKNACK checked for validation; the next one from there is not checked.
    pub(crate) answered_from: Option<[u8; 4]>,
    /// Some destination of the writer reaches the reader.
    pub(crate) is_reached: bool,
    /// Number of periodic HEARTBEATs sent before the reader's first answer.
    pub(crate) unanswered: u8,
    /// Number of preemptive ACKNACKs received before any other ACKNACK.
    preemptive: u8,
    /// The reader is known to receive from the writer.
    pub(crate) is_joined: bool,
    /// Numbers below are not for this reader, which is VOLATILE and joined later.
    pub(crate) start: SequenceNumber,
    /// Every number below is acknowledged.
    pub(crate) acknowledged: SequenceNumber,
    pub(crate) requested: SequenceNumberSet,
    pub(crate) fragments: OwedFragments,
    /// Next number of the history to send unrequested.
    pub(crate) history_next: Option<SequenceNumber>,
    /// End of the history. Later numbers reach this reader by their first transmission.
    pub(crate) history_end: SequenceNumber,
    pub(crate) repair_filed: bool,
    pub(crate) history_filed: bool,
    /// Number of the filter evaluated by the writer.
    pub(crate) filter: Option<u8>,
    /// Filtered and unacknowledged numbers; `None` if the reader never had such a filter.
    pub(crate) filtered_changes: Option<Box<FilteredChanges>>,
    /// Count and arrival of the last accepted ACKNACK.
    acknack_count: Option<(i32, Instant)>,
}

impl ReaderProxy {
    /// Returns whether the reader knows this writer. A reliable reader shows this by its first ACKNACK. For a
    /// best-effort reader, which sends nothing, the validation of its address counts.
    pub(crate) fn is_ready(&self) -> bool {
        if self.reliable {
            self.acknack_count.is_some()
        } else {
            self.is_reachable
        }
    }

    /// Returns whether this ACKNACK shows for the first time that the reader has received a HEARTBEAT.
    ///
    /// A VOLATILE reader begins after the last number of its first HEARTBEAT, and never requests samples written
    /// before. So the user learns of the reader only after that HEARTBEAT has arrived. A preemptive ACKNACK does not
    /// show this: it requests the HEARTBEAT, which may be lost.
    pub(crate) fn begins(&mut self, acknack: &AckNack) -> bool {
        if self.is_joined {
            return false;
        }
        let is_preemptive = is_preemptive(acknack);
        self.preemptive += u8::from(is_preemptive);
        !is_preemptive || self.preemptive >= MAX_PREEMPTIVE_ACKNACKS
    }

    /// Returns whether the reader's first answer to a HEARTBEAT is awaited.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.is_joined && self.unanswered < MAX_UNANSWERED_HEARTBEATS
    }

    /// Returns whether the reader has answered none of the maximum number of HEARTBEATs, and is no longer awaited.
    pub(crate) fn is_silent(&self) -> bool {
        !self.is_ready() && self.unanswered >= MAX_UNANSWERED_HEARTBEATS
    }

    /// Returns whether the reader is owed a history that waits for the validation of its address.
    pub(crate) fn waits_for_history(&self) -> bool {
        self.reliable && self.is_ready() && self.history_next.is_some() && !self.history_filed
    }

    /// Drops the reader's requests, which the reader repeats.
    pub(crate) fn forget_requests(&mut self) {
        self.requested = SequenceNumberSet::new(self.acknowledged);
        self.fragments.repair = None;
    }

    /// Returns whether samples are sent to its address: it is validated, and this is not a silent reliable reader.
    pub(crate) fn is_sent_to(&self) -> bool {
        self.is_reachable && !(self.reliable && self.is_silent())
    }

    pub(crate) fn new(writer: WriterId, guid: Guid, reliable: bool) -> Self {
        Self {
            writer,
            guid,
            unicast: None,
            multicast: None,
            reliable,
            wants_history: false,
            is_reachable: false,
            answered_from: None,
            // Until the destinations are computed.
            is_reached: true,
            unanswered: 0,
            preemptive: 0,
            is_joined: false,
            start: SequenceNumber(1),
            acknowledged: SequenceNumber(1),
            requested: SequenceNumberSet::new(SequenceNumber(1)),
            fragments: OwedFragments::default(),
            history_next: None,
            history_end: SequenceNumber(1),
            repair_filed: false,
            history_filed: false,
            filter: None,
            filtered_changes: None,
            acknack_count: None,
        }
    }

    /// Returns the lowest number that the reader has not acknowledged.
    pub(crate) fn done_to(&self) -> SequenceNumber {
        self.acknowledged.max(self.start)
    }

    /// Returns the address for datagrams to this reader alone.
    pub(crate) fn address(&self) -> Option<Locator> {
        self.unicast.or(self.multicast)
    }

    /// Returns whether this ACKNACK is new. A preemptive one always is: the reader does not know this writer, or has
    /// lost and rediscovered it, and may restart its count. (A late duplicate costs one answer.)
    pub(crate) fn accept_acknack(&mut self, now: Instant, acknack: &AckNack) -> bool {
        let is_preemptive = is_preemptive(acknack);
        let is_new = is_news(self.acknack_count, acknack.count, now);
        if is_new || is_preemptive {
            self.acknack_count = Some((acknack.count, now));
        }
        is_new || is_preemptive
    }

    /// Returns the arrival of the last accepted ACKNACK.
    pub(crate) fn last_heard(&self) -> Option<Instant> {
        self.acknack_count.map(|(_, at)| at)
    }

    /// Notes that the reader has all numbers below `base`; returns whether that is an increase.
    pub(crate) fn acknowledge(&mut self, base: SequenceNumber) -> bool {
        let is_more = base > self.acknowledged;
        if is_more || self.wants_history {
            // On a decrease, the reader has lost this writer and begins again: it is owed HEARTBEATs until it has all
            // samples.
            self.acknowledged = base.max(self.start);
        } else {
            // A VOLATILE reader that begins again already had all samples that it acknowledged.
            self.start = self.acknowledged.max(self.start);
        }
        is_more
    }
}

impl Shared {
    /// Minimum time between two HEARTBEATs of a writer that await a response. For the built-in writers it grows with
    /// the number of participants ([`PARTICIPANTS_PER_HEARTBEAT_PERIOD`]).
    fn shortest_heartbeat_period_ns(&self, writer_index: WriterId) -> u64 {
        let timing = &self.config.timing;
        let period_ns = timing.heartbeat_period.as_nanos() as u64;
        if writer_index >= WriterId(BUILTIN_ENDPOINTS) {
            return period_ns;
        }
        let periods = self.remote_participants / PARTICIPANTS_PER_HEARTBEAT_PERIOD;
        let longest_ns = timing.heartbeat_period_max.as_nanos() as u64;
        let spread_ns = period_ns.saturating_mul(periods as u64).min(longest_ns);
        period_ns.max(spread_ns)
    }
}

impl Writers {
    pub(crate) fn send_heartbeat(
        &mut self,
        shared: &mut Shared,
        index: WriterId,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let group = self.heartbeat_group(index);
        let writer = self.table.get_mut(index)?;
        writer.heartbeat_filed = false;
        let clock = writer.clock.as_mut();
        let liveliness = clock.is_some_and(|clock| core::mem::take(&mut clock.asserts));
        if writer.destinations.is_empty() || !liveliness && !writer.has_reliable_reader() {
            // The HEARTBEAT was filed for reliable readers that have been removed.
            return None;
        }
        let heartbeat = Heartbeat {
            liveliness,
            group,
            // A best-effort writer needs no response.
            ..writer.heartbeat(!writer.reliable)
        };
        let level = writer.level;
        let bytes = shared.emit_message(buffer, |message| message.heartbeat(&heartbeat));
        Some(Work::new(WorkKind::Heartbeat, level, bytes, index))
    }

    pub(crate) fn schedule_heartbeat(&mut self, shared: &mut Shared, writer_index: WriterId) {
        let writer = &mut self.table[writer_index];
        if !writer.reliable {
            return;
        }
        let queue = writer.protocol_queue();
        if !core::mem::replace(&mut writer.heartbeat_filed, true) {
            shared.schedule(queue, Filed::Heartbeat(writer_index));
        }
        for at in 0.. {
            let writer = self.table.get(writer_index);
            let Some(&index) = writer.and_then(|writer| writer.proxies.get(at)) else {
                return;
            };
            let proxy = self.proxies.get(index);
            if proxy.is_some_and(|proxy| !proxy.is_reached && !proxy.is_silent()) {
                self.schedule_repair(shared, index);
            }
        }
    }

    /// Returns whether a reliable reader has not acknowledged all sent samples, or is still awaited to answer for the
    /// first time.
    fn owes_heartbeat(&self, writer: &Writer) -> bool {
        writer.reliable
            && writer.has_reliable_reader()
            && writer.proxies.iter().any(|&proxy| {
                self.proxies.get(proxy).is_some_and(|proxy| {
                    proxy.reliable
                        && !proxy.is_silent()
                        && (proxy.is_awaited() || proxy.done_to() < writer.next_unsent)
                })
            })
    }

    /// Starts the heartbeat timer if a HEARTBEAT is owed. A running timer stays as it is; on expiry it checks again.
    pub(crate) fn arm_heartbeat(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        writer_index: WriterId,
    ) {
        let timer = Timer::Heartbeat(writer_index);
        if shared.timers.is_armed(timer) {
            return;
        }
        let shortest_ns = shared.shortest_heartbeat_period_ns(writer_index);
        let writer = self.table.get(writer_index);
        if let Some(writer) = writer.filter(|writer| self.owes_heartbeat(writer)) {
            let period_ns = writer.heartbeat_period_ns.max(shortest_ns);
            shared
                .timers
                .arm(timer, now + Duration::from_nanos(period_ns));
        }
    }

    /// Stops the heartbeat timer when everything is acknowledged, to avoid needless wakeups.
    fn rest_heartbeat(&mut self, shared: &mut Shared, writer_index: WriterId) {
        let timer = Timer::Heartbeat(writer_index);
        let writer = self.table.get(writer_index);
        if shared.timers.is_armed(timer)
            && writer.is_some_and(|writer| !self.owes_heartbeat(writer))
        {
            shared.timers.disarm(timer);
        }
    }

    /// Resets the heartbeat period to the minimum after a sign of life of a reader. A dead reader that has let the
    /// period grow must not delay repairs for the others.
    pub(crate) fn hasten_heartbeat(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        writer_index: WriterId,
    ) {
        let period_ns = shared.shortest_heartbeat_period_ns(writer_index);
        let timer = Timer::Heartbeat(writer_index);
        if let Some(writer) = self.table.get_mut(writer_index) {
            writer.heartbeat_period_ns = period_ns;
            if shared.timers.is_armed(timer) {
                let due = now + Duration::from_nanos(period_ns);
                shared.timers.bring_forward(timer, due);
            }
        }
    }

    /// Handles the heartbeat timer: files a HEARTBEAT and doubles the period.
    pub(crate) fn heartbeat_due(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        writer_index: WriterId,
    ) {
        let max_ns = shared.config.timing.heartbeat_period_max.as_nanos() as u64;
        let writer = self.table.get(writer_index);
        if writer.is_none_or(|writer| !self.owes_heartbeat(writer)) {
            return;
        }
        let still_waits = writer.is_some_and(|writer| writer.heartbeat_filed);
        self.schedule_heartbeat(shared, writer_index);
        if !still_waits {
            self.count_unanswered(shared, writer_index);
        }
        let writer = &mut self.table[writer_index];
        writer.heartbeat_period_ns = writer.heartbeat_period_ns.saturating_mul(2).min(max_ns);
        self.arm_heartbeat(shared, now, writer_index);
    }

    /// Counts another HEARTBEAT for readers that have never answered. Readers that reach the maximum number are no
    /// longer waited for.
    fn count_unanswered(&mut self, shared: &mut Shared, writer_index: WriterId) {
        let writer = &self.table[writer_index];
        let mut gone_silent = 0;
        let mut last = None;
        for &index in &writer.proxies {
            if let Some(proxy) = self.proxies.get_mut(index)
                && proxy.reliable
                && proxy.is_awaited()
            {
                proxy.unanswered += 1;
                if proxy.is_silent() {
                    gone_silent += 1;
                    last = Some((writer_index, proxy.guid));
                }
            }
        }
        if gone_silent > 0 {
            shared.counters.readers_silent += gone_silent;
            self.last_silent = last;
            self.refresh_destinations(shared, writer_index);
            self.refresh_lowest(writer_index);
            self.release_acknowledged(shared, writer_index);
        }
    }

    /// Recomputes the lowest sequence number acknowledged by all reliable readers.
    pub(crate) fn refresh_lowest(&mut self, writer_index: WriterId) {
        if let Some(writer) = self.table.get_mut(writer_index) {
            writer.lowest_acknowledged = writer.lowest_of(&self.proxies);
            writer.refresh_in_flight(&self.proxies);
        }
    }

    /// Removes changes that all reliable readers have acknowledged and no late joiner will request.
    pub(crate) fn release_acknowledged(&mut self, shared: &mut Shared, writer_index: WriterId) {
        let writer = &mut self.table[writer_index];
        debug_assert_eq!(writer.lowest_acknowledged, writer.lowest_of(&self.proxies));
        let lowest = writer.lowest_unacknowledged();
        let all_acknowledged = lowest > writer.last;
        let mut removed = 0;
        if (writer.volatile || !writer.reliable)
            && let Some(history) = &mut writer.history
        {
            removed = history.remove_below(lowest);
        }
        if all_acknowledged {
            writer.status |= WriterStatus::ALL_ACKNOWLEDGED;
        }
        if writer.wants_room && (removed > 0 || writer.may_replace(lowest)) {
            writer.wants_room = false;
            writer.status |= WriterStatus::ROOM;
        }
        if !writer.status.is_empty() {
            self.note_writer(shared, writer_index);
        }
        if all_acknowledged {
            self.rest_heartbeat(shared, writer_index);
        }
        let writer = &mut self.table[writer_index];
        if writer.is_released() {
            self.schedule_first(shared, writer_index);
        }
    }
}

impl LocalParticipant {
    pub(crate) fn receive_acknack(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        acknack: &AckNack,
    ) {
        let reader = Guid {
            prefix: message.prefix,
            entity: acknack.reader,
        };
        let Some(&writer_index) = self.writers.by_entity.get(&acknack.writer) else {
            self.shared.counters.unmatched_acknacks += 1;
            return;
        };
        let mut known = self
            .writers
            .proxy_by_reader
            .get(&(writer_index, reader))
            .copied();
        if known.is_none()
            && self.discovery.uses_descriptions(&self.shared)
            && self.match_static_peer(now, message.prefix, message.source)
        {
            known = self
                .writers
                .proxy_by_reader
                .get(&(writer_index, reader))
                .copied();
        }
        let Some(index) = known else {
            self.shared.counters.unmatched_acknacks += 1;
            return;
        };
        let proxy = &mut self.writers.proxies[index];
        if !proxy.reliable {
            return;
        }
        let before = (proxy.is_ready(), proxy.is_silent());
        let is_news = proxy.accept_acknack(now, acknack);
        // A peer with several interfaces may send each ACKNACK from all of them; each copy validates its source
        // address.
        if proxy.answered_from != message.source.ipv4() || !proxy.is_reachable {
            let bytes = message.count(acknack.buffer_len());
            self.discovery.credit(message.prefix, bytes);
            self.note_answer(index, message.source);
        }
        if is_news {
            self.writers
                .apply_acknack(&mut self.shared, now, index, acknack, before);
        }
    }
}

impl Writers {
    /// Applies an ACKNACK that is newer than the reader's last one. The pair tells whether the proxy was ready and
    /// silent.
    fn apply_acknack(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: ReaderProxyId,
        acknack: &AckNack,
        (was_ready, was_silent): (bool, bool),
    ) {
        let proxy = &mut self.proxies[index];
        let writer_index = proxy.writer;
        let writer = &mut self.table[writer_index];
        // A peer cannot acknowledge samples not sent yet.
        let base = acknack.state.base().min(writer.next_unsent);
        let begins = proxy.begins(acknack);
        let before = proxy.done_to();
        let progress = proxy.acknowledge(base);
        let after = proxy.done_to();
        let had_filtered = progress && proxy.pass_filtered();
        let lowest = writer.lowest_acknowledged;
        writer.highest_acknowledged = writer.highest_acknowledged.max(base);
        let gets_history = self.proxies[index].history_next.is_some();
        let asks = self.schedule_requested(shared, index, !was_ready, acknack);
        if was_silent || before != after && (before <= lowest || after < lowest) {
            // This reader had, or now has, the lowest acknowledgement of all.
            self.refresh_lowest(writer_index);
        } else if before != after && !self.table[writer_index].volatile {
            // A reader that still gets the history may have the lowest one, and does not count.
            self.table[writer_index].refresh_in_flight(&self.proxies);
        }
        let writer = &mut self.table[writer_index];
        if asks && !gets_history {
            // History on its way may be requested, and is no loss.
            writer.flight.note_loss(now);
        } else if writer.lowest_acknowledged > lowest {
            writer.flight.note_progress(now);
        }
        if was_silent {
            // Its address is a destination again.
            self.refresh_destinations(shared, writer_index);
        }
        if had_filtered {
            self.refresh_filtered(writer_index);
        }
        if begins {
            self.join_reader(shared, index);
        }
        if progress || !was_ready || begins {
            self.release_acknowledged(shared, writer_index);
            self.note_writer(shared, writer_index);
        }
        // Unconditional, since a reader may also have restarted from the beginning.
        self.arm_heartbeat(shared, now, writer_index);
        if progress {
            self.hasten_heartbeat(shared, now, writer_index);
        }
    }

    /// Files the requested samples, and after a reader's first ACKNACK also the history. Returns whether there are any
    /// requests.
    fn schedule_requested(
        &mut self,
        shared: &mut Shared,
        index: ReaderProxyId,
        is_first: bool,
        acknack: &AckNack,
    ) -> bool {
        let proxy = &mut self.proxies[index];
        let writer = &self.table[proxy.writer];
        // Requests for samples received meanwhile are dropped.
        let base = acknack.state.base();
        for had in proxy.requested.iter().take_while(|&had| had < base) {
            proxy.requested.remove(had);
        }
        proxy.fragments.acknowledge(base);
        let begins_history = is_first && proxy.is_reachable && proxy.history_next.is_some();
        let mut requested = SequenceNumberSet::new(base.max(SequenceNumber(1)));
        for sequence in acknack.state.iter() {
            // History is sent once and in order, without requests.
            let is_history = begins_history && sequence < proxy.history_end;
            let comes = proxy.fragments.comes(sequence);
            if sequence < writer.next_unsent && !is_history && !comes {
                requested.insert(sequence);
            }
        }
        let asks = !requested.is_empty();
        if asks {
            proxy.requested = requested;
        }
        if begins_history {
            self.schedule_history(shared, index);
        }
        if asks || !acknack.is_final {
            // Without requests the answer is a HEARTBEAT.
            self.schedule_repair(shared, index);
        }
        asks
    }
}

impl Writers {
    /// Files the repair of the requested fragments. Only the latest NACK_FRAG of a reader is stored; the reader
    /// requests other missing fragments later.
    pub(crate) fn receive_nack_frag(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        message: &MessageReceiver,
        nack: &NackFrag,
    ) {
        let reader = Guid {
            prefix: message.prefix,
            entity: nack.reader,
        };
        let found = self.by_entity.get(&nack.writer).copied();
        let found = found.and_then(|writer| self.proxy_by_reader.get(&(writer, reader)).copied());
        let Some(index) = found else {
            shared.counters.unmatched_acknacks += 1;
            return;
        };
        let proxy = &mut self.proxies[index];
        let writer_index = proxy.writer;
        let writer = &self.table[writer_index];
        // A reader that never acknowledged anything gets no repair.
        let is_ready = proxy.reliable && proxy.is_ready() && writer.fragmenter.cuts();
        if !is_ready || !proxy.fragments.accept(now, nack.count) {
            return;
        }
        let under_way = writer.fragmenter.under_way.map(|at| at.sequence);
        let is_sent = nack.sequence < writer.next_unsent || under_way == Some(nack.sequence);
        // A sample sent as one DATA has no fragments.
        if !is_sent || nack.state.is_empty() || writer.goes_whole(nack.sequence) {
            return;
        }
        proxy.fragments.ask_for(nack.sequence, &nack.state);
        self.table[writer_index].flight.note_loss(now);
        self.schedule_repair(shared, index);
        // The NACK_FRAG shows progress of the reader.
        self.hasten_heartbeat(shared, now, writer_index);
    }
}

/// Returns whether an ACKNACK is preemptive, sent before the reader has received anything: base 0 or 1, empty, not
/// final.
fn is_preemptive(acknack: &AckNack) -> bool {
    let state = &acknack.state;
    state.base().get() <= 1 && state.is_empty() && !acknack.is_final
}
