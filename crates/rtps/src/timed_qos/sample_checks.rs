//! Timed policies applied to received samples.
//!
//! A sample of a reliable reader is checked when its turn in the sequence comes, so waiting samples are checked in
//! order. This module handles only readers and writers with such policies, or with a content filter.

use isolane_wire::{message::Data, time::Instant};

use crate::{
    coherent_access::note_place,
    counters::ReaderLedger,
    participant::{Facts, Shared},
    reader::{Reader, Readers, WriterProxy, cache::Cache, read_take::SampleInfo},
    slab::WriterProxyId,
    timed_qos::{ReaderTimedQos, lifespan::expiry, ownership::Claimant},
    writer::history::ChangeKind,
};

/// Decision about a received sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Store it; it expires at this time.
    Take(Option<Instant>),
    /// Finished: dropped and counted, or held back.
    Done,
}

/// Checks the sample of a DATA submessage. `index` is that of the proxy, `wall_ns` the time of the wall clock.
/// `expired` counts samples whose LIFESPAN was over on arrival.
#[inline(never)]
pub(crate) fn judge(
    index: WriterProxyId,
    proxy: &mut WriterProxy,
    reader: &mut Reader,
    mut info: SampleInfo,
    data: &Data<'_>,
    wall_ns: u64,
    expired: &mut u64,
) -> Check {
    if let Some(lease) = &mut proxy.clock.lease {
        lease.hear(info.received);
    }
    if let Some(announced) = proxy.clock.lifespan
        && info.kind == ChangeKind::Alive
    {
        let sent_along = data.lifespan();
        let lifespan = sent_along.map_or(Some(announced), |lifespan| lifespan.to_core());
        let (received, source) = (info.received, info.source_timestamp);
        let least_age = &mut proxy.clock.least_age;
        info.expires =
            lifespan.map(|lifespan| expiry(received, wall_ns, source, lifespan, least_age));
        *expired += u64::from(info.expires.is_some_and(|expires| expires <= received));
    }
    let is_in_turn = reader.cache.as_ref().is_some_and(Cache::groups);
    if is_in_turn {
        note_place(
            proxy,
            reader,
            info.sequence,
            &data.coherent_set_info(),
            false,
        );
    }
    if is_in_turn || info.sequence != proxy.expected {
        // The other policies are checked when its turn comes.
        return Check::Take(info.expires);
    }
    let judged = if info.expires.is_some_and(|expires| expires <= info.received) {
        reader.ledger.expired += 1;
        Check::Done
    } else if reader.is_filtered_out(info.kind, data.bytes) {
        reader.ledger.content_filtered += 1;
        Check::Done
    } else {
        let claimant = Claimant {
            proxy: index,
            guid: proxy.guid,
            strength: proxy.clock.strength,
        };
        reader.check_next(claimant, info, data.bytes)
    };
    if judged == Check::Done {
        proxy.begun = true;
        proxy.advance();
        reader.ledger.account();
    }
    judged
}

impl Reader {
    /// Returns whether the reader's own policies require checks of received samples.
    pub(super) fn judges(&self) -> bool {
        let is_in_turn = self.cache.as_ref().is_some_and(Cache::groups);
        self.clock.is_some() || self.content_filter.is_some() || is_in_turn
    }

    /// Checks the next sample of a writer in sequence order.
    fn check_next(&mut self, writer: Claimant, info: SampleInfo, payload: &[u8]) -> Check {
        let keeps_back = self.reliable;
        let (Some(clock), cache, ledger) = (&mut self.clock, &mut self.cache, &mut self.ledger)
        else {
            return Check::Take(info.expires);
        };
        if !clock.is_of_owner(writer, &info, cache.as_mut()) {
            ledger.not_owner += 1;
            return Check::Done;
        }
        if clock.is_outdated(&info, cache.as_ref()) {
            note_unseen(writer, &info, cache.as_mut());
            ledger.outdated += 1;
            return Check::Done;
        }
        if clock.is_shown(writer.proxy, &info, cache.as_mut(), ledger) {
            return Check::Take(info.expires);
        }
        note_unseen(writer, &info, cache.as_mut());
        let kept = cache.as_mut().filter(|_| keeps_back).and_then(|cache| {
            clock.drop_kept(&info, cache, ledger);
            cache.hold(writer.proxy, info, payload)
        });
        clock.keep_back(&info, kept, ledger);
        Check::Done
    }
}

/// Records that a writer writes or unregisters an instance, although its sample is dropped. The instance is alive as
/// long as any writer writes it, and the reader must be told when its last writer is gone.
fn note_unseen(writer: Claimant, info: &SampleInfo, cache: Option<&mut Cache>) {
    if let Some(cache) = cache {
        cache.note_other_writer(writer.proxy, info);
    }
}

/// Checks the first waiting sample of a writer in a reliable reader's cache, when it is next in order. Returns `true`
/// if the sample was dropped or held back.
#[inline(never)]
pub(crate) fn check_waiting(
    clock: &mut ReaderTimedQos,
    cache: &mut Cache,
    ledger: &mut ReaderLedger,
    writer: Claimant,
) -> bool {
    let index = writer.proxy;
    let Some(&info) = cache.waiting_info(index) else {
        return false;
    };
    if !clock.is_of_owner(writer, &info, Some(cache)) {
        ledger.not_owner += 1;
        cache.forget_first_waiting(index);
        return true;
    }
    if clock.is_outdated(&info, Some(cache)) {
        note_unseen(writer, &info, Some(cache));
        ledger.outdated += 1;
        cache.forget_first_waiting(index);
        return true;
    }
    if clock.is_shown(index, &info, Some(cache), ledger) {
        return false;
    }
    note_unseen(writer, &info, Some(cache));
    clock.drop_kept(&info, cache, ledger);
    let kept = cache.hold_waiting(index);
    clock.keep_back(&info, kept, ledger);
    true
}

/// Checks a sample of a coherent set that is about to be delivered. Returns `false`, and counts the sample, if it must
/// not be delivered.
#[inline(never)]
pub(crate) fn check_held(
    clock: &mut ReaderTimedQos,
    cache: &mut Cache,
    ledger: &mut ReaderLedger,
    writer: Claimant,
    info: &SampleInfo,
) -> bool {
    if !clock.is_of_owner(writer, info, Some(cache)) {
        ledger.not_owner += 1;
        return false;
    }
    if clock.is_outdated(info, Some(cache)) {
        note_unseen(writer, info, Some(cache));
        ledger.outdated += 1;
        return false;
    }
    let is_shown = clock.is_shown(writer.proxy, info, Some(cache), ledger);
    // TIME_BASED_FILTER does not hold back samples of sets.
    ledger.time_filtered += u64::from(!is_shown);
    is_shown
}

impl Reader {
    /// Removes a writer's ownership of all instances, when the writer is removed or no longer alive.
    pub(crate) fn release_owner(&mut self, index: WriterProxyId) {
        let owners = self.clock.as_mut().and_then(|clock| clock.owners.as_mut());
        if let Some(owners) = owners {
            owners.release_all(index);
        }
    }

    /// Delivers or drops the held samples of a removed writer.
    pub(crate) fn forget_held(&mut self, index: WriterProxyId) {
        if let (Some(clock), Some(cache)) = (&mut self.clock, &mut self.cache)
            && let Some(filter) = &mut clock.filter
        {
            self.ledger.time_filtered += filter.writer_gone(index, cache);
        }
    }
}

impl Readers {
    /// Sets the reader's timer after a sample was checked, and processes the samples that waited for it.
    #[inline(never)]
    pub(crate) fn count_checked(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        index: WriterProxyId,
    ) {
        let proxy = &self.proxies[index];
        let (reader, is_alive) = (proxy.reader, proxy.clock.is_alive());
        if !is_alive {
            // The writer counts as alive again once the timed-QoS step has checked its lease.
            self.schedule_reader_timed_qos(shared, reader);
        }
        if let Some(judged) = self.table.get_mut(reader) {
            let (clock, cache) = (judged.clock.as_mut(), judged.cache.as_mut());
            shared.counters.unwatched += clock.map_or(0, |clock| clock.take_unwatched());
            shared.counters.instance_ends_unseen += cache.map_or(0, Cache::take_unseen);
        }
        self.advance_proxy(shared, facts, index);
        self.arm_reader(shared, reader);
    }
}

impl ReaderTimedQos {
    /// Raises the time at which samples checked now count as delivered.
    pub(crate) fn note_time(&mut self, at: Instant) {
        self.latest = self.latest.max(at);
    }

    fn take_unwatched(&mut self) -> u64 {
        let of_filter = self.filter.as_mut().map(|filter| &mut filter.unwatched);
        let of_filter = of_filter.map_or(0, core::mem::take);
        of_filter + core::mem::take(&mut self.unwatched)
    }

    /// Returns whether a sample comes from the owner of its instance; always true for shared ownership.
    fn is_of_owner(
        &mut self,
        writer: Claimant,
        info: &SampleInfo,
        cache: Option<&mut Cache>,
    ) -> bool {
        let Some(owners) = &mut self.owners else {
            return true;
        };
        let key = info.key_hash.unwrap_or_default();
        if !owners.is_owner(key, writer, info.received) {
            note_unseen(writer, info, cache);
            return false;
        }
        if info.kind.unregisters() {
            owners.release(key);
        }
        true
    }

    /// Returns whether a sample is older than the latest one of its instance. Otherwise records it as the latest. A
    /// sample for which the cache has no room is not recorded, because it is checked again when it is resent.
    fn is_outdated(&mut self, info: &SampleInfo, cache: Option<&Cache>) -> bool {
        let Some(order) = &mut self.source_order else {
            return false;
        };
        let key = info.key_hash.unwrap_or_default();
        let is_outdated = order.is_outdated(key, info);
        // Members of a set are checked again in any case.
        let is_taken = |cache: &Cache| cache.groups() || cache.has_place(key);
        if !is_outdated && cache.is_none_or(is_taken) {
            order.note(key, info);
        }
        is_outdated
    }

    /// Records a sample for DEADLINE and TIME_BASED_FILTER. Returns `false` if it comes too soon to be delivered.
    fn is_shown(
        &mut self,
        proxy: WriterProxyId,
        info: &SampleInfo,
        cache: Option<&mut Cache>,
        ledger: &mut ReaderLedger,
    ) -> bool {
        let key = info.key_hash.unwrap_or_default();
        self.note_time(info.received);
        if let Some(deadline) = &mut self.deadline {
            match info.kind {
                ChangeKind::Alive => {
                    let is_watched = deadline.touch(key, self.latest);
                    self.unwatched += u64::from(!is_watched);
                }
                ChangeKind::Dispose | ChangeKind::DisposeAndUnregister => deadline.end(key),
                // Another writer may still write the instance, and only a cache records that.
                ChangeKind::Unregister if cache.is_some() => {}
                ChangeKind::Unregister => deadline.end(key),
            }
        }
        let Some(filter) = &mut self.filter else {
            return true;
        };
        if info.kind == ChangeKind::Alive && filter.is_too_soon(key, self.latest) {
            return false;
        }
        if cache
            .as_ref()
            .is_some_and(|cache| !cache.instances.is_seen(key, proxy, info.kind))
        {
            // Other writers still write the instance, so its held sample stays.
            return true;
        }
        // A sample for which the cache has no room is refused, resent and checked again.
        if cache.as_ref().is_none_or(|cache| cache.has_place(key)) {
            let replaced = match info.kind {
                ChangeKind::Alive => filter.pass(key, self.latest),
                _ => filter.end(key),
            };
            if let (Some(slot), Some(cache)) = (replaced, cache) {
                cache.drop_held(slot);
                ledger.time_filtered += 1;
            }
        }
        true
    }

    /// Drops the held sample of an instance.
    fn drop_kept(&mut self, info: &SampleInfo, cache: &mut Cache, ledger: &mut ReaderLedger) {
        let key = info.key_hash.unwrap_or_default();
        if let Some(slot) = self.filter.as_mut().and_then(|filter| filter.end(key)) {
            cache.drop_held(slot);
            ledger.time_filtered += 1;
        }
    }

    /// Records the slot of a sample that came too soon, or counts the sample if no slot holds it.
    fn keep_back(&mut self, info: &SampleInfo, slot: Option<u16>, ledger: &mut ReaderLedger) {
        let key = info.key_hash.unwrap_or_default();
        match (slot, &mut self.filter) {
            (Some(slot), Some(filter)) => filter.keep_back(key, slot),
            _ => ledger.time_filtered += 1,
        }
    }
}
