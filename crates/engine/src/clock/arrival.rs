//! What the policies of time say of a sample that has come.
//!
//! A sample is judged when its turn has come: in order where its reader is reliable, so that those that wait
//! are judged as they follow. Only where reader or writer have such a policy is it asked for at all.

use isolane_wire::{rtps::Data, time::Instant};

use super::{ReaderClock, lifespan::expiry, ownership::Claimant};
use crate::{
    cache::{Cache, SampleInfo},
    engine::Engine,
    history::ChangeKind,
    presentation::note_place,
    reader::{Reader, ReaderLedger, WriterProxy},
};

/// What becomes of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judged {
    /// It is taken in, and expires then.
    Take(Option<Instant>),
    /// It is done with: counted, or kept back.
    Done,
}

/// Judges a sample of a DATA. `index` is the proxy's; the wall clock shows `wall_ns`; `expired` counts samples whose
/// LIFESPAN was over when they arrived.
#[inline(never)]
pub(crate) fn judge(
    index: u16,
    proxy: &mut WriterProxy,
    reader: &mut Reader,
    mut info: SampleInfo,
    data: &Data<'_>,
    wall_ns: u64,
    expired: &mut u64,
) -> Judged {
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
        note_place(proxy, reader, info.sequence, &data.set_mark(), false);
    }
    if is_in_turn || info.sequence != proxy.expected {
        // It is judged further when its turn has come.
        return Judged::Take(info.expires);
    }
    let judged = if info.expires.is_some_and(|expires| expires <= info.received) {
        reader.ledger.expired += 1;
        Judged::Done
    } else if reader.is_unwanted(info.kind, data.bytes) {
        reader.ledger.unwanted += 1;
        Judged::Done
    } else {
        let claimant = Claimant {
            proxy: index,
            guid: proxy.guid,
            strength: proxy.clock.strength,
        };
        reader.judge_next(claimant, info, data.bytes)
    };
    if judged == Judged::Done {
        proxy.begun = true;
        proxy.advance();
        reader.ledger.account();
    }
    judged
}

impl Reader {
    /// Whether it asks for more than what comes.
    pub(super) fn judges(&self) -> bool {
        let is_in_turn = self.cache.as_ref().is_some_and(Cache::groups);
        self.clock.is_some() || self.content_filter.is_some() || is_in_turn
    }

    /// Judges the next sample of a writer in order.
    fn judge_next(&mut self, writer: Claimant, info: SampleInfo, payload: &[u8]) -> Judged {
        let keeps_back = self.reliable;
        let (Some(clock), cache, ledger) = (&mut self.clock, &mut self.cache, &mut self.ledger)
        else {
            return Judged::Take(info.expires);
        };
        if !clock.is_of_owner(writer, &info, cache.as_mut()) {
            ledger.not_owner += 1;
            return Judged::Done;
        }
        if clock.is_outdated(&info, cache.as_ref()) {
            note_unseen(writer, &info, cache.as_mut());
            ledger.outdated += 1;
            return Judged::Done;
        }
        if clock.is_shown(writer.proxy, &info, cache.as_mut(), ledger) {
            return Judged::Take(info.expires);
        }
        note_unseen(writer, &info, cache.as_mut());
        let kept = cache.as_mut().filter(|_| keeps_back).and_then(|cache| {
            clock.drop_kept(&info, cache, ledger);
            cache.hold(writer.proxy, info, payload)
        });
        clock.keep_back(&info, kept, ledger);
        Judged::Done
    }
}

/// A sample is not seen, but its writer writes the instance all the same, or no longer does: that is alive as long as
/// somebody does, and where the last one leaves so it is seen.
fn note_unseen(writer: Claimant, info: &SampleInfo, cache: Option<&mut Cache>) {
    if let Some(cache) = cache {
        cache.note_other_writer(writer.proxy, info);
    }
}

/// Judges the nearest sample of a writer that waits in a reliable reader's cache, and whose turn has come.
/// True: it is done with.
#[inline(never)]
pub(crate) fn judge_waiting(
    clock: &mut ReaderClock,
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

/// Judges a sample of a coherent set that is about to be shown. True: the user sees it; otherwise it is counted.
#[inline(never)]
pub(crate) fn judge_held(
    clock: &mut ReaderClock,
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
    // TIME_BASED_FILTER does not go with sets.
    ledger.filtered += u64::from(!is_shown);
    is_shown
}

impl Reader {
    /// A writer is not alive, or gone: it owns nothing.
    pub(crate) fn release_owner(&mut self, index: u16) {
        let owners = self.clock.as_mut().and_then(|clock| clock.owners.as_mut());
        if let Some(owners) = owners {
            owners.release_all(index);
        }
    }

    /// A writer is gone: what was kept back of its samples is shown, or goes.
    pub(crate) fn forget_held(&mut self, index: u16) {
        if let (Some(clock), Some(cache)) = (&mut self.clock, &mut self.cache)
            && let Some(filter) = &mut clock.filter
        {
            self.ledger.filtered += filter.writer_gone(index, cache);
        }
    }
}

impl Engine {
    /// A sample was judged: what comes of it by the clock, and those that wait behind it.
    #[inline(never)]
    pub(crate) fn note_judged(&mut self, index: u16) {
        let Some(proxy) = self.writer_proxies.get(index) else {
            return;
        };
        let (reader, is_alive) = (proxy.reader, proxy.clock.is_alive());
        if !is_alive {
            // It was heard, which its lease does not know yet.
            self.file_reader_clock(reader);
        }
        if let Some(judged) = self.readers.get_mut(reader) {
            let (clock, cache) = (judged.clock.as_mut(), judged.cache.as_mut());
            self.counters.unwatched += clock.map_or(0, |clock| clock.take_unwatched());
            self.counters.instance_ends_unseen += cache.map_or(0, Cache::take_unseen);
        }
        self.advance_proxy(index);
        self.wind_reader(reader);
    }
}

impl ReaderClock {
    /// Samples that are judged now were seen no earlier than this.
    pub(crate) fn note_time(&mut self, at: Instant) {
        self.latest = self.latest.max(at);
    }

    fn take_unwatched(&mut self) -> u64 {
        let of_filter = self.filter.as_mut().map(|filter| &mut filter.unwatched);
        let of_filter = of_filter.map_or(0, core::mem::take);
        of_filter + core::mem::take(&mut self.unwatched)
    }

    /// Whether a sample in order is of its instance's owner, if one writer owns it alone.
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

    /// Whether a sample in order is older than the latest of its instance, which it is from now on if it is not:
    /// unless it finds no room, comes again, and is judged then.
    fn is_outdated(&mut self, info: &SampleInfo, cache: Option<&Cache>) -> bool {
        let Some(order) = &mut self.source_order else {
            return false;
        };
        let key = info.key_hash.unwrap_or_default();
        let is_outdated = order.is_outdated(key, info);
        // What waits for its turn with others comes again in any case.
        let is_taken = |cache: &Cache| cache.groups() || cache.has_place(key);
        if !is_outdated && cache.is_none_or(is_taken) {
            order.note(key, info);
        }
        is_outdated
    }

    /// Takes note of a sample in order. True: the user may see it now; false: it comes too soon.
    fn is_shown(
        &mut self,
        proxy: u16,
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
                // Another writer may still write it; without a cache nobody knows.
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
            // Others write the instance: what is kept back of it stays so.
            return true;
        }
        // What finds no room now is refused, comes again, and is judged then.
        if cache.as_ref().is_none_or(|cache| cache.has_place(key)) {
            let replaced = match info.kind {
                ChangeKind::Alive => filter.pass(key, self.latest),
                _ => filter.end(key),
            };
            if let (Some(slot), Some(cache)) = (replaced, cache) {
                cache.drop_held(slot);
                ledger.filtered += 1;
            }
        }
        true
    }

    /// What is kept back of an instance gives way.
    fn drop_kept(&mut self, info: &SampleInfo, cache: &mut Cache, ledger: &mut ReaderLedger) {
        let key = info.key_hash.unwrap_or_default();
        if let Some(slot) = self.filter.as_mut().and_then(|filter| filter.end(key)) {
            cache.drop_held(slot);
            ledger.filtered += 1;
        }
    }

    /// A sample came too soon, and is kept back in this slot, or in none.
    fn keep_back(&mut self, info: &SampleInfo, slot: Option<u16>, ledger: &mut ReaderLedger) {
        let key = info.key_hash.unwrap_or_default();
        match (slot, &mut self.filter) {
            (Some(slot), Some(filter)) => filter.keep_back(key, slot),
            _ => ledger.filtered += 1,
        }
    }
}
