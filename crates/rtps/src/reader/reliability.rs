//! Reliable protocol of a reader: reception of HEARTBEAT and GAP (RTPS 2.5 §8.3.8.6, §8.3.8.4), transmission of
//! ACKNACK.
//!
//! HEARTBEAT and GAP advance the writer's proxies past samples that will never arrive. For missing samples that may
//! still arrive, they file an ACKNACK.
//!
//! # ACKNACK of taken samples
//!
//! A KEEP_ALL reader has the slots that its RESOURCE_LIMITS name, and its acknowledgements let the writer advance. If
//! it acknowledged every received sample, the writer could send as many again while the slots are still in use. The
//! reader would refuse these samples, and the writer would repair them. Therefore, while samples wait for the user, the
//! reader acknowledges only taken samples, in steps of a part of the slots. When none wait, the full ACKNACK follows,
//! which may request samples.

use isolane_wire::{
    guid::{EntityId, Guid},
    message::{AckNack, Gap, Heartbeat, NackFrag},
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

use crate::{
    coherent_access::{Admission, admit},
    content_filter::drop_filtered,
    limits::{LAST_SEQUENCE, TAKEN_SHARE, WINDOW},
    participant::{Facts, Shared},
    reader::{
        Origin, Reader, ReaderStatus, Readers, Verdict, WriterProxy,
        cache::{Cache, Refused},
        reassembly::SampleId,
    },
    receiver::MessageReceiver,
    slab::{ReaderId, WriterProxyId},
    timed_qos::{Claimant, check_waiting},
    work::{Filed, Work, WorkKind},
};

/// Response required by a HEARTBEAT or GAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Nothing,
    AckNack,
}

impl Readers {
    /// Processes a HEARTBEAT; `first` is the first proxy of its writer. Returns whether an ACKNACK is filed in answer.
    pub(crate) fn receive_heartbeat(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        now: Instant,
        message: &MessageReceiver,
        first: Option<WriterProxyId>,
        heartbeat: &Heartbeat,
    ) -> bool {
        shared.latest = now;
        let mut next = first;
        let suppression_ns = shared.timing().nack_suppression.as_nanos() as u64;
        let mut is_answered = false;
        while let Some((index, after)) = self.addressed_proxy(next, heartbeat.reader) {
            next = after;
            let proxy = &self.proxies[index];
            if proxy.may_jump(heartbeat) {
                match self.judge_heartbeat(shared, facts, now, message, index, heartbeat) {
                    Verdict::Jump(to) => self.advance_to(shared, facts, index, to),
                    Verdict::Back(to) => self.return_to_writer(index, to),
                    Verdict::Refuted => {}
                    Verdict::Provisional => {
                        is_answered |= self.ask_to_confirm(shared, now, index);
                        continue;
                    }
                }
            }
            let proxy = &mut self.proxies[index];
            if let Some(lease) = &mut proxy.clock.lease
                && lease.is_heard_by(heartbeat)
            {
                let (was_alive, reader) = (lease.is_alive, proxy.reader);
                lease.hear(now);
                if !was_alive {
                    self.schedule_reader_timed_qos(shared, reader);
                }
            }
            let proxy = &mut self.proxies[index];
            let reader = &mut self.table[proxy.reader];
            if !proxy.reliable || !proxy.accept_heartbeat(now, heartbeat) {
                continue;
            }
            // Later sequence numbers would not fit any sequence number set.
            let last = heartbeat.last.min(LAST_SEQUENCE);
            if !core::mem::replace(&mut proxy.started, true) {
                proxy.history_end = last;
                // The reader starts at the writer's first available sample, or after the last one if it skips history.
                // Earlier samples are not lost.
                let begin = if proxy.skips_history && !proxy.begun {
                    last.next()
                } else {
                    heartbeat.first
                };
                if begin > proxy.expected && reader.cache.is_some() {
                    // Samples received before the first HEARTBEAT are kept, even if the writer has removed them.
                    self.advance_to(shared, facts, index, begin);
                }
            } else if heartbeat.first > proxy.expected {
                self.advance_to(shared, facts, index, heartbeat.first);
            } else if last.next() < proxy.expected && !proxy.begun {
                let begin = match proxy.skips_history {
                    true => last.next(),
                    false => heartbeat.first,
                };
                proxy.go_back(begin, &mut reader.ledger);
            }
            let proxy = &mut self.proxies[index];
            proxy.last = last;
            let answer = proxy.answer(heartbeat.is_final, now, suppression_ns);
            if proxy.expected > heartbeat.last && proxy.progress.is_numbered() {
                let current = heartbeat.group.as_ref().map(|group| group.current);
                self.hear_group(shared, facts, index, current);
            }
            if answer == Answer::AckNack {
                self.schedule_acknack(shared, index);
                is_answered = true;
            }
        }
        is_answered
    }

    /// Returns the first proxy, from `at` on along a writer's chain, whose reader is addressed, and the one after it.
    pub(crate) fn addressed_proxy(
        &self,
        mut at: Option<WriterProxyId>,
        meant: EntityId,
    ) -> Option<(WriterProxyId, Option<WriterProxyId>)> {
        while let Some(index) = at {
            let proxy = self.proxies.get(index)?;
            if self.table.get(proxy.reader)?.is_addressed(meant) {
                return Some((index, proxy.next_of_writer));
            }
            at = proxy.next_of_writer;
        }
        None
    }

    /// Checks a HEARTBEAT that advances a reader far ahead, or follows one that does.
    #[cold]
    fn judge_heartbeat(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        now: Instant,
        message: &MessageReceiver,
        index: WriterProxyId,
        heartbeat: &Heartbeat,
    ) -> Verdict {
        let is_own = facts.is_own_address(shared, message.prefix, message.source);
        let proxy = &mut self.proxies[index];
        let verdict = proxy.judge_jump(heartbeat, Origin { now, is_own });
        shared.counters.jumps_doubted += u64::from(verdict == Verdict::Provisional);
        verdict
    }

    /// Requests a confirmation of a far jump. Returns `false` within the suppression time. The suppression prevents a
    /// loop: a writer with an unannounced address answers at once, and its answer confirms nothing.
    #[cold]
    fn ask_to_confirm(&mut self, shared: &mut Shared, now: Instant, index: WriterProxyId) -> bool {
        let suppression = shared.timing().nack_suppression;
        let proxy = self.proxies.get_mut(index);
        let asks = proxy.is_some_and(|proxy| proxy.asks_to_confirm(now, suppression));
        if asks {
            self.schedule_acknack(shared, index);
        }
        asks
    }

    /// Returns to a position of the writer, after an advance that no sample of it has confirmed.
    #[cold]
    fn return_to_writer(&mut self, index: WriterProxyId, to: SequenceNumber) {
        if let Some(proxy) = self.proxies.get_mut(index)
            && let Some(reader) = self.table.get_mut(proxy.reader)
        {
            if let Some(cache) = &mut reader.cache {
                cache.forget_waiting(index);
            }
            proxy.go_back(to, &mut reader.ledger);
        }
    }

    /// Processes a GAP. Returns whether an ACKNACK is filed in answer.
    pub(crate) fn receive_gap(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        now: Instant,
        message: &MessageReceiver,
        gap: &Gap,
    ) -> bool {
        let writer = Guid {
            prefix: message.prefix,
            entity: gap.writer,
        };
        shared.latest = now;
        let mut next = self.by_writer.recall(&writer);
        let suppression_ns = shared.timing().nack_suppression.as_nanos() as u64;
        let mut is_answered = false;
        while let Some((index, after)) = self.addressed_proxy(next, gap.reader) {
            next = after;
            let mut proxy = &mut self.proxies[index];
            if !proxy.reliable {
                continue;
            }
            let base = gap.list.base();
            if gap.start <= proxy.expected && proxy.is_far(base) {
                let is_own = facts.is_own_address(shared, message.prefix, message.source);
                let again = &mut self.proxies[index];
                proxy = again;
                if !proxy.follows_gap(base, Origin { now, is_own }) {
                    shared.counters.jumps_doubted += 1;
                    is_answered |= self.ask_to_confirm(shared, now, index);
                    continue;
                }
            }
            if gap.filtered.is_some() {
                proxy.note_held_back(gap);
            }
            if gap.start <= proxy.expected {
                proxy.note_irrelevant(base);
                self.advance_to(shared, facts, index, base);
            } else {
                let window_end = proxy.expected.get().saturating_add(i64::from(WINDOW));
                let end = base.get().min(window_end);
                proxy.mark_run(gap.start.get()..end);
            }
            let proxy = &mut self.proxies[index];
            for sequence in gap.list.iter() {
                if proxy.in_window(sequence) {
                    proxy.mark(sequence);
                }
            }
            self.advance_proxy(shared, facts, index);
            let proxy = &self.proxies[index];
            if proxy.is_missing_any() && proxy.answer(true, now, suppression_ns) == Answer::AckNack
            {
                self.schedule_acknack(shared, index);
                is_answered = true;
            }
        }
        is_answered
    }

    /// Advances a reliable proxy past all received samples and makes them available.
    pub(crate) fn advance_proxy(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        proxy_index: WriterProxyId,
    ) {
        self.advance_to(shared, facts, proxy_index, SequenceNumber(0));
    }

    /// Advances a reliable proxy to `to`, since missing samples below it will never arrive, and on past all received
    /// samples. A run without a waiting sample is one step, whatever its length.
    fn advance_to(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        proxy_index: WriterProxyId,
        to: SequenceNumber,
    ) {
        if self.advance_alone(shared, proxy_index, to) {
            self.present(shared, facts, proxy_index);
        }
    }

    /// Advances a proxy, but makes no samples of coherent sets or group order available. Returns whether the reader
    /// uses these, so that `present` must follow.
    pub(crate) fn advance_alone(
        &mut self,
        shared: &mut Shared,
        proxy_index: WriterProxyId,
        to: SequenceNumber,
    ) -> bool {
        let proxy = &mut self.proxies[proxy_index];
        let (reader_index, before) = (proxy.reader, proxy.expected);
        let reader = &mut self.table[reader_index];
        let mut refused = None;
        let mut groups = false;
        let incomplete = reader.ledger.incomplete;
        if let Some(cache) = &mut reader.cache {
            groups = cache.groups();
            let mut waiting = cache.first_waiting(proxy_index);
            while proxy.reliable {
                if waiting == Some(proxy.expected) {
                    let filter = reader.content_filter.as_ref();
                    let turn = match groups {
                        false => Ok(Admission::Show),
                        true => admit(proxy_index, proxy, cache, &mut reader.ledger, filter),
                    };
                    let turn = match turn {
                        Ok(turn) => turn,
                        Err(why) => {
                            refused = Some(why);
                            break;
                        }
                    };
                    let is_left = groups && turn != Admission::Done;
                    let number = is_left.then(|| cache.first_waiting_number(proxy_index));
                    // Samples held for a set were filtered before they were stored.
                    let is_filtered_out = turn == Admission::Show
                        && filter.is_some_and(|filter| drop_filtered(filter, cache, proxy_index));
                    reader.ledger.content_filtered += u64::from(is_filtered_out);
                    let is_done_with = is_filtered_out
                        || turn == Admission::Done
                        // Samples held for a set are checked when they are delivered.
                        || reader.clock.as_mut().filter(|_| turn == Admission::Show).is_some_and(|clock| {
                            clock.note_time(shared.latest);
                            let writer = Claimant {
                                proxy: proxy_index,
                                guid: proxy.guid,
                                strength: proxy.clock.strength,
                            };
                            check_waiting(clock, cache, &mut reader.ledger, writer)
                        });
                    if !is_done_with {
                        match cache.take_turn(turn, proxy_index, proxy.expected) {
                            Ok(()) => {}
                            Err(why) => {
                                refused = Some(why);
                                break;
                            }
                        }
                    }
                    if let Some(number) = number.flatten() {
                        proxy.progress.reach(number);
                    }
                    proxy.begun = true;
                    proxy.advance();
                    reader.ledger.account();
                    waiting = cache.first_waiting(proxy_index);
                    continue;
                }
                let end = proxy.first_unmarked().max(to);
                let end = waiting.map_or(end, |waiting| end.min(waiting));
                if end <= proxy.expected {
                    break;
                }
                let passed = (end.get() - proxy.expected.get()) as u64;
                let held_back = proxy.take_held_back(proxy.expected.get()..end.get());
                reader.ledger.withhold(held_back);
                let missing = passed - held_back;
                // Samples filtered by the writer were written after the match.
                proxy.begun |= held_back > 0;
                let mut lost = missing;
                if missing > 0 && proxy.is_foreign {
                    let announced = proxy.irrelevant_among(proxy.expected.get()..end.get());
                    let irrelevant = announced.saturating_sub(held_back).min(missing);
                    reader.ledger.pass_irrelevant(irrelevant, proxy.begun);
                    lost -= irrelevant;
                }
                if reader.ledger.lose(lost, proxy.begun) {
                    reader.status |= ReaderStatus::SAMPLE_LOST;
                }
                if groups && missing > 0 {
                    proxy.progress.lose();
                    reader.ledger.incomplete += cache.drop_open_set(proxy_index, &proxy.progress);
                }
                proxy.pass(end);
            }
            if cache.available() > 0 {
                reader.status |= ReaderStatus::DATA_AVAILABLE;
            }
        }
        let is_watched = proxy.clock.is_watched;
        let has_passed = proxy.expected > before;
        let has_dropped = reader.ledger.incomplete > incomplete;
        if let Some(why) = refused {
            // Continues when the user takes a sample.
            reader.refuse(why);
        }
        if refused == Some(Refused::Sets) || has_dropped {
            self.go_on_with_sets(shared, reader_index);
        }
        self.note_reader(shared, reader_index);
        if is_watched {
            if has_passed {
                self.end_if_silent(shared, proxy_index);
            }
            self.arm_reader(shared, reader_index);
        }
        groups
    }

    pub(crate) fn schedule_acknack(&mut self, shared: &mut Shared, proxy_index: WriterProxyId) {
        let proxy = &mut self.proxies[proxy_index];
        let reader = &self.table[proxy.reader];
        if !core::mem::replace(&mut proxy.acknack_filed, true) {
            let queue = reader.protocol_queue();
            shared.schedule(queue, Filed::AckNack(proxy_index));
        }
    }
}

impl Readers {
    /// Returns the cache of a KEEP_ALL reader, and the number of a writer's oldest sample that the user has not taken.
    fn untaken(&self, index: WriterProxyId) -> Option<(&Cache, SequenceNumber)> {
        let proxy = self.proxies.get(index)?;
        let cache = self.table.get(proxy.reader)?.cache.as_ref()?;
        Some((cache, cache.first_untaken(index)?))
    }

    pub(crate) fn has_untaken(&self, index: WriterProxyId) -> bool {
        self.untaken(index).is_some()
    }

    /// Acknowledges the samples taken by the user, if they are worth a datagram. The full ACKNACK stays filed.
    pub(crate) fn send_taken(
        &mut self,
        shared: &mut Shared,
        index: WriterProxyId,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let (cache, untaken) = self.untaken(index)?;
        let step = (cache.keeps() / TAKEN_SHARE).max(1);
        let proxy = self.proxies.get_mut(index)?;
        let untaken = untaken.min(proxy.expected);
        let reader = self.table.get_mut(proxy.reader)?;
        let is_worth_it = untaken.get().saturating_sub(proxy.acknowledged.get()) >= step as i64;
        let (to, level, prefix) = (proxy.reply_to, reader.level, proxy.guid.prefix);
        let queue = reader.protocol_queue();
        let mut bytes = 0;
        if is_worth_it {
            proxy.acknowledged = untaken;
            reader.acknack_count = reader.acknack_count.wrapping_add(1);
            let acknack = AckNack {
                reader: reader.guid.entity,
                writer: proxy.guid.entity,
                state: SequenceNumberSet::new(untaken),
                count: reader.acknack_count,
                is_final: true,
            };
            bytes = shared.emit_message(buffer, |message| {
                message.info_destination(prefix)?.acknack(&acknack)
            });
        }
        shared.schedule(queue, Filed::AckNack(index));
        Some(Work::new(WorkKind::AckNack, level, bytes, to))
    }
}

impl Readers {
    pub(crate) fn send_acknack(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: WriterProxyId,
        buffer: &mut [u8],
    ) -> Option<Work> {
        self.release_assemblies(index);
        let proxy = self.proxies.get_mut(index)?;
        proxy.acknack_filed = false;
        let reader = self.table.get_mut(proxy.reader)?;
        let acknack = proxy.acknack(index, reader, now);
        let nack_frag = proxy.nack_frag(index, reader);
        if nack_frag.is_some() {
            proxy.fragments_asked_at = now;
        }
        let (to, level, prefix) = (proxy.reply_to, reader.level, proxy.guid.prefix);
        let bytes = shared.emit_message(buffer, |message| {
            message.info_destination(prefix)?.acknack(&acknack)?;
            match &nack_frag {
                Some(nack_frag) => message.nack_frag(nack_frag),
                None => Ok(message),
            }
        });
        Some(Work::new(WorkKind::AckNack, level, bytes, to))
    }
}

impl WriterProxy {
    /// Decides whether to answer a HEARTBEAT (§8.4.12.2). A final one is answered only if samples are missing, and not
    /// twice for the same samples within the suppression time.
    pub(crate) fn answer(&self, is_final: bool, now: Instant, suppression_ns: u64) -> Answer {
        if !is_final {
            return Answer::AckNack;
        }
        let Some(missing) = self.lowest_missing() else {
            return Answer::Nothing;
        };
        let asked_lately =
            now.saturating_since(self.nacked_at).as_nanos() < u128::from(suppression_ns);
        if asked_lately && missing <= self.nacked_until && self.last <= self.nacked_until {
            Answer::Nothing
        } else {
            Answer::AckNack
        }
    }

    /// Builds the ACKNACK for currently missing samples. A blocked reader requests none, since it could not store them.
    ///
    /// Samples partly received in fragments are requested by [`nack_frag`](Self::nack_frag) instead. `index` is that of
    /// this proxy.
    pub(crate) fn acknack(
        &mut self,
        index: WriterProxyId,
        reader: &mut Reader,
        now: Instant,
    ) -> AckNack {
        let mut state = SequenceNumberSet::new(self.expected);
        self.acknowledged = self.expected;
        if !reader.refused_for_room && self.claim.is_none() {
            let end = self.window_last();
            let mut room = reader.cache.as_ref().map_or(usize::MAX, Cache::room);
            room = room.min(reader.room_without_assemblies(index, now));
            if room == 0 {
                // Nothing is requested, so only room is awaited.
                self.nacked_until = SequenceNumber(self.expected.get() - 1);
            }
            for sequence in (self.expected.get()..=end.get()).map(SequenceNumber) {
                if !self.has(sequence) {
                    if reader.has_begun((index, sequence), now) {
                        self.nacked_until = sequence;
                        self.nacked_at = now;
                        continue;
                    }
                    if room == 0 {
                        reader.requested_partially = true;
                        break;
                    }
                    room -= 1;
                    state.insert(sequence);
                    self.nacked_until = sequence;
                    self.nacked_at = now;
                }
            }
        }
        // A non-final ACKNACK requests a HEARTBEAT: before the first HEARTBEAT, and to confirm a jump.
        let asks = core::mem::take(&mut self.progress.asks) || self.claim.is_some();
        let is_final = self.started && !asks;
        reader.acknack_count = reader.acknack_count.wrapping_add(1);
        AckNack {
            reader: reader.guid.entity,
            writer: self.guid.entity,
            state,
            count: reader.acknack_count,
            is_final,
        }
    }

    /// Builds the NACK_FRAG for the first incomplete sample; `None` if the complete sample could not be stored. `index`
    /// is that of this proxy.
    pub(crate) fn nack_frag(&self, index: WriterProxyId, reader: &mut Reader) -> Option<NackFrag> {
        let has_room = reader.cache.as_ref().is_none_or(|cache| cache.room() > 0);
        let assemblies = reader.assemblies.as_ref().filter(|_| has_room)?;
        let (sequence, state) = assemblies.missing(index, self.expected, self.last)?;
        reader.nack_count = reader.nack_count.wrapping_add(1);
        Some(NackFrag {
            reader: reader.guid.entity,
            writer: self.guid.entity,
            sequence,
            state,
            count: reader.nack_count,
        })
    }
}

impl Reader {
    /// Returns whether a sample is partly received and still makes progress. A sample without progress is requested by
    /// ACKNACK, because its writer may not support NACK_FRAG.
    fn has_begun(&self, subject: SampleId, now: Instant) -> bool {
        let assemblies = self.assemblies.as_ref();
        assemblies.is_some_and(|assemblies| assemblies.gets_on(subject, now))
    }

    /// Number of further samples of a writer that may start arriving in fragments. Any requested sample may arrive in
    /// fragments.
    fn room_without_assemblies(&self, writer: WriterProxyId, now: Instant) -> usize {
        let assemblies = self.assemblies.as_ref();
        assemblies.map_or(usize::MAX, |assemblies| assemblies.room(writer, now))
    }
}

impl Readers {
    pub(crate) fn discard_oldest(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        index: ReaderId,
    ) {
        let Some(reader) = self.table.get_mut(index) else {
            return;
        };
        let Some(cache) = &mut reader.cache else {
            return;
        };
        if cache.pop() == Some(true) {
            reader.ledger.delivered += 1;
        }
        self.resume(shared, facts, index);
    }

    /// Removes samples from a reader's cache, and requests samples that now have room. `remove` returns whether
    /// it removed any.
    pub(crate) fn remove_samples(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        index: ReaderId,
        remove: impl FnOnce(&mut Cache) -> bool,
    ) {
        let reader = self.table.get_mut(index);
        let cache = reader.and_then(|reader| reader.cache.as_mut());
        if cache.is_some_and(remove) {
            self.resume(shared, facts, index);
        }
    }

    /// Requests the samples that a reader refused for lack of room; its cache has room again.
    pub(crate) fn resume(&mut self, shared: &mut Shared, facts: Facts<'_>, index: ReaderId) {
        let Some(reader) = self.table.get_mut(index) else {
            return;
        };
        let is_blocked = core::mem::take(&mut reader.refused_for_room);
        let was_blocked = core::mem::take(&mut reader.refused_for_share) || is_blocked;
        if !was_blocked && !reader.requested_partially {
            return;
        }
        let (mut is_missing_any, mut groups) = (false, false);
        for at in 0.. {
            let proxy = self
                .table
                .get(index)
                .and_then(|reader| reader.proxies.get(at));
            let Some(&proxy) = proxy else { break };
            if was_blocked {
                groups |= self.advance_alone(shared, proxy, SequenceNumber(0));
            }
            let found = self.proxies.get(proxy);
            let is_missing = found.is_some_and(WriterProxy::is_missing_any);
            is_missing_any |= is_missing;
            // A writer whose samples have all arrived and were acknowledged needs no ACKNACK.
            let is_owed = is_missing || found.is_some_and(WriterProxy::has_unacknowledged);
            if was_blocked && is_owed || found.is_some_and(WriterProxy::may_ask_for_more) {
                self.schedule_acknack(shared, proxy);
            }
        }
        if groups {
            // All proxies have advanced as far as they can by themselves.
            self.present_all_of(shared, facts, index);
        }
        if !is_missing_any && let Some(reader) = self.table.get_mut(index) {
            reader.requested_partially = false;
        }
    }
}
