//! Dropped coherent sets: for lack of room, and after the removal of a writer.
//!
//! **No slot** is left for a sample of a set. If a complete set waits because the user takes too slowly, the sample
//! waits as well and is not acknowledged. Otherwise all held samples belong to sets that have not ended, and no action
//! of the user frees a slot. The sample then waits a while for other sets to end. If none ends, or if the sample's own
//! set has all slots, the set with most slots is dropped as a whole. So a set larger than the room is itself dropped,
//! and a set that never ends does not block smaller ones. The reader's timer drops at most one set a step.
//!
//! **A writer is deleted.** A set that has ended at all writers becomes available, whatever the room. Any other set
//! with samples of the writer is dropped at all readers. A set is also dropped if it ended while the writer existed and
//! no message of the writer mentions it, because the writer's part is unknown. The end of a set has a digest of the
//! group's writers (RTPS 2.5 §8.7.6, PID_WRITER_GROUP_INFO). If the digest differs from that of the present writers,
//! the deleted writer was among them (`coherent_group`). If the writer is only unmatched, all sets that had not ended
//! at all writers are dropped.
//!
//! **A writer without group sequence numbers** (RTPS 2.5 §8.7.5, PID_GROUP_SEQ_NUM), although it offers GROUP access,
//! is treated as a group by itself. Its sets have TOPIC scope (§8.7.6, PID_COHERENT_SET), its samples become available
//! as they arrive, and no other writer waits for it. The same holds for a writer that numbers its samples, but never
//! sends its group progress in HEARTBEATs.

use core::ops::RangeInclusive;

use isolane_wire::{sequence::SequenceNumber, time::Instant};

use crate::{
    coherent_access::{coherent_group::CoherentGroup, group_delivery::Step, progress::Progress},
    limits::SET_PATIENCE,
    participant::{Facts, Shared},
    reader::{Readers, cache::Refused},
    slab::{ReaderId, WriterProxyId},
};

impl Readers {
    /// Schedules a reader whose set was refused; slots for sets may be free again.
    pub(crate) fn go_on_with_sets(&mut self, shared: &mut Shared, index: ReaderId) {
        let cache = self.cache_of(index);
        if cache.is_some_and(|cache| cache.has_refused_set()) {
            self.schedule_reader_timed_qos(shared, index);
        }
    }

    /// Handles a sample of a set that found no slot: waits, or drops the largest set.
    pub(crate) fn make_set_room(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        now: Instant,
        index: ReaderId,
    ) {
        let cache = self.cache_of(index);
        let Some(cache) = cache.filter(|cache| cache.has_refused_set()) else {
            return;
        };
        if !cache.has_set_room() && cache.is_still_refused() {
            let largest = cache.largest_set();
            if self.waits_for_user(index) {
                if let Some(reader) = self.table.get_mut(index) {
                    reader.refuse(Refused::Full);
                }
                return;
            }
            let cache = self.table.get_mut(index).and_then(|it| it.cache.as_mut());
            let until = cache.and_then(|cache| cache.refused_until(now, SET_PATIENCE));
            if let Some(until) = until.filter(|&until| now < until) {
                self.look_at(shared, index, until);
                return;
            }
            if let Some((proxy, set)) = largest {
                self.discard_set(shared, proxy, set);
            }
        }
        let Some(reader) = self.table.get_mut(index) else {
            return;
        };
        if let Some(cache) = &mut reader.cache {
            cache.forget_refused_set();
        }
        reader.refused_for_share = true;
        self.resume(shared, facts, index);
    }

    /// Returns whether a complete set at this reader waits only for a user to take samples or to end access. This can
    /// be the user of another reader in the ring.
    fn waits_for_user(&mut self, index: ReaderId) -> bool {
        self.looks += 1;
        for nth in 0.. {
            let found = self.table.get(index);
            let Some(&proxy) = found.and_then(|reader| reader.proxies.get(nth)) else {
                break;
            };
            let Some(circle) = self.circle_to_look_at(proxy) else {
                continue;
            };
            let settled = self.survey(&circle).settled();
            let settled = settled.filter(|it| self.is_whole_everywhere(&circle, it.set));
            if let Some(settled) = settled
                && (self.is_accessed(&circle) || !self.has_room_everywhere(&circle, settled.set))
            {
                return true;
            }
        }
        false
    }

    fn has_room_everywhere(&mut self, circle: &CoherentGroup, set: SequenceNumber) -> bool {
        let mut has_room = true;
        self.for_each_reader(circle, |protocol, reader| {
            let reader = protocol.table.get_mut(reader);
            let cache = reader.and_then(|reader| reader.cache.as_mut());
            has_room &= cache.is_none_or(|cache| cache.has_room_for_set(circle.publisher, set));
        });
        has_room
    }

    /// Drops a set as a whole, even before its end.
    fn discard_set(&mut self, shared: &mut Shared, index: WriterProxyId, set: SequenceNumber) {
        if let Some(circle) = self.circle_of(index) {
            self.for_each_peer(&circle, |progress| progress.mark_incomplete(set));
            self.drop_sets(shared, &circle, set..=set);
        }
    }

    /// Drops the held samples of some sets.
    pub(super) fn drop_sets(
        &mut self,
        shared: &mut Shared,
        circle: &CoherentGroup,
        sets: RangeInclusive<SequenceNumber>,
    ) {
        self.for_each_reader(circle, |protocol, index| {
            if let Some(reader) = protocol.table.get_mut(index)
                && let Some(cache) = &mut reader.cache
            {
                reader.ledger.incomplete += cache.drop_sets(circle.publisher, &sets);
            }
            protocol.go_on_with_sets(shared, index);
        });
    }

    /// Removes a writer from a reader. The writer's sets become available or are dropped, and its proxy leaves the
    /// ring. Returns another proxy of the ring, which may proceed now.
    pub(crate) fn part_sets(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        index: WriterProxyId,
    ) -> Option<WriterProxyId> {
        let circle = self.circle_of(index)?;
        let progress = self.proxies.get(index)?.progress;
        if let Some(ended) = progress.ended
            && self.is_whole_everywhere(&circle, ended.set)
            && !self.has_lost_a_writer(shared, facts, &circle, &ended)
        {
            self.show_set(shared, &circle, ended.set);
            self.drop_sets_to(shared, &circle, ended.set);
        }
        if progress.is_deleted {
            let parts = [
                progress.open.map(|it| it.set),
                progress.ended.map(|it| it.set),
            ];
            for set in parts.into_iter().flatten() {
                self.discard_set(shared, index, set);
            }
            self.for_each_peer(&circle, |progress| progress.is_doubtful = true);
        } else if self.peer_after(&circle, index).is_some() {
            self.for_each_peer(&circle, Progress::mark_all_incomplete);
            self.drop_sets(
                shared,
                &circle,
                SequenceNumber(0)..=SequenceNumber(i64::MAX),
            );
        }
        self.drop_part(shared, index);
        self.leave_circle(index)
    }

    /// Drops the held samples of one writer.
    fn drop_part(&mut self, shared: &mut Shared, index: WriterProxyId) {
        let reader = self.proxies.get(index).map(|proxy| proxy.reader);
        let Some(reader) = reader else { return };
        if let Some(reader) = self.table.get_mut(reader)
            && let Some(cache) = &mut reader.cache
        {
            reader.ledger.incomplete += cache.drop_sets_of(index);
        }
        self.go_on_with_sets(shared, reader);
    }

    /// Removes a reader from its rings, so that other readers proceed without it.
    pub(crate) fn leave_circles(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        reader: ReaderId,
    ) {
        for nth in 0.. {
            let found = self.table.get(reader);
            let Some(&index) = found.and_then(|reader| reader.proxies.get(nth)) else {
                return;
            };
            self.drop_part(shared, index);
            if let Some(proxy) = self.proxies.get_mut(index) {
                (proxy.progress.open, proxy.progress.ended) = (None, None);
            }
            if let Some(other) = self.leave_circle(index) {
                self.present(shared, facts, other);
            }
        }
    }

    /// Makes a writer a group by itself; returns the ring of the others.
    #[cold]
    pub(super) fn leave_group(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        index: WriterProxyId,
    ) -> Option<CoherentGroup> {
        let other = self.part_sets(shared, facts, index);
        let proxy = self.proxies.get_mut(index)?;
        let before = SequenceNumber(proxy.expected.get() - 1);
        proxy.progress.number_alone(proxy.guid.entity, before);
        shared.counters.groups_unnumbered += 1;
        self.advance_alone(shared, index, SequenceNumber(0));
        let alone = self.circle_of(index)?;
        while let Step::Made = self.present_next(shared, facts, &alone) {}
        self.circle_of(other?)
    }

    /// Processes the group progress in a HEARTBEAT of a writer whose samples have all arrived.
    pub(crate) fn hear_group(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        index: WriterProxyId,
        current: Option<SequenceNumber>,
    ) {
        let proxy = &mut self.proxies[index];
        match current {
            Some(current) => proxy.progress.hear(current),
            None if proxy.progress.question.retries_exhausted() => proxy.progress.note_stranger(),
            None => return,
        }
        self.present(shared, facts, index);
    }
}
