//! Sets that are given up: of which a writer has gone, and those there is no room for.
//!
//! **No slot is left** for a sample of a set. Where a set that is ready to be seen waits for the user, who takes too
//! slowly, that sample waits for him, too, and is not acknowledged. Else what is held belongs to sets that go on: nothing
//! the user does frees a slot. Others may end, and are waited for, for a while; then, or where all slots are of its own
//! set, the set that holds most of them is dropped whole. So a set larger than all there is room for ends
//! itself, and one that never ends does not keep smaller ones from being seen. That is done by the reader's clock, a set
//! a step.
//!
//! **A writer goes.** A set that has ended at all is shown, room or not. A set it has sent a part of is dropped at all
//! readers. So is one that ended while it was there, and of which nothing has come of it: nobody can tell what it wrote.
//! That is known by the ends of sets, which say which writers the group had (RTPS 2.5 §8.7.6,
//! PID_WRITER_GROUP_INFO): where these are others than those that are known now, the one that has gone was
//! among them ([`super::membership`]). Where it was parted from, and is still there, all that had not ended everywhere is
//! dropped.
//!
//! **A writer that does not number its samples** in its group (RTPS 2.5 §8.7.5, PID_GROUP_SEQ_NUM), though it offers GROUP
//! access, says nothing by which its sets or its samples could be seen together with those of others. It counts as a
//! group of its own: its sets are those of TOPIC scope (§8.7.6, PID_COHERENT_SET), its samples are seen as they come, and
//! nobody waits for it. So does one that numbers them and never says in its HEARTBEATs how far its group is.

use core::ops::RangeInclusive;

use isolane_wire::{sequence::SequenceNumber, time::Instant};

use super::{circle::Circle, progress::Progress, showing::Step};
use crate::{cache::Refused, engine::Engine, limits::SET_PATIENCE};

impl Engine {
    /// Slots for sets may be free again: who was refused one is looked at.
    pub(crate) fn go_on_with_sets(&mut self, index: u16) {
        let cache = self.cache_of(index);
        if cache.is_some_and(|cache| cache.has_refused_set()) {
            self.file_reader_clock(index);
        }
    }

    /// Where a sample of a set found no slot: others are shown or dropped meanwhile, or one is dropped now.
    pub(crate) fn make_set_room(&mut self, now: Instant, index: u16) {
        let cache = self.cache_of(index);
        let Some(cache) = cache.filter(|cache| cache.has_refused_set()) else {
            return;
        };
        if !cache.has_set_room() && cache.is_still_refused() {
            let largest = cache.largest_set();
            if self.waits_for_user(index) {
                if let Some(reader) = self.readers.get_mut(index) {
                    reader.refuse(Refused::Full);
                }
                return;
            }
            let cache = self.readers.get_mut(index).and_then(|it| it.cache.as_mut());
            let until = cache.and_then(|cache| cache.refused_until(now, SET_PATIENCE));
            if let Some(until) = until.filter(|&until| now < until) {
                self.look_at(index, until);
                return;
            }
            if let Some((proxy, set)) = largest {
                self.tear_set(proxy, set);
            }
        }
        let Some(reader) = self.readers.get_mut(index) else {
            return;
        };
        if let Some(cache) = &mut reader.cache {
            cache.forget_refused_set();
        }
        reader.put_off = true;
        self.go_on(index);
    }

    /// Whether a set of which a reader may hold a part is ready to be seen as soon as users have taken something, or have
    /// looked: those of any reader that it is seen at.
    fn waits_for_user(&mut self, index: u16) -> bool {
        self.looks += 1;
        for nth in 0.. {
            let found = self.readers.get(index);
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

    fn has_room_everywhere(&mut self, circle: &Circle, set: SequenceNumber) -> bool {
        let mut has_room = true;
        self.for_each_reader(circle, |engine, reader| {
            let reader = engine.readers.get_mut(reader);
            let cache = reader.and_then(|reader| reader.cache.as_mut());
            has_room &= cache.is_none_or(|cache| cache.has_room_for_set(circle.publisher, set));
        });
        has_room
    }

    /// A set of a writer is dropped whole, though it may not have ended.
    fn tear_set(&mut self, index: u16, set: SequenceNumber) {
        if let Some(circle) = self.circle_of(index) {
            self.for_each_peer(&circle, |progress| progress.tear(set));
            self.drop_sets(&circle, set..=set);
        }
    }

    /// Nothing is held any more of some sets.
    pub(super) fn drop_sets(&mut self, circle: &Circle, sets: RangeInclusive<SequenceNumber>) {
        self.for_each_reader(circle, |engine, index| {
            if let Some(reader) = engine.readers.get_mut(index)
                && let Some(cache) = &mut reader.cache
            {
                reader.ledger.incomplete += cache.drop_sets(circle.publisher, &sets);
            }
            engine.go_on_with_sets(index);
        });
    }

    /// A writer goes from a reader: what it has sent of sets is shown or dropped, and it leaves the ring. Returns another
    /// proxy of that, for which something may follow from it.
    pub(crate) fn part_sets(&mut self, index: u16) -> Option<u16> {
        let circle = self.circle_of(index)?;
        let progress = self.writer_proxies.get(index)?.progress;
        if let Some(ended) = progress.ended
            && self.is_whole_everywhere(&circle, ended.set)
            && !self.has_lost_a_writer(&circle, &ended)
        {
            self.show_set(&circle, ended.set);
            self.drop_sets_to(&circle, ended.set);
        }
        if progress.is_deleted {
            let parts = [
                progress.open.map(|it| it.set),
                progress.ended.map(|it| it.set),
            ];
            for set in parts.into_iter().flatten() {
                self.tear_set(index, set);
            }
            self.for_each_peer(&circle, |progress| progress.is_doubtful = true);
        } else if self.peer_after(&circle, index).is_some() {
            self.for_each_peer(&circle, Progress::tear_all);
            self.drop_sets(&circle, SequenceNumber(0)..=SequenceNumber(i64::MAX));
        }
        self.drop_part(index);
        self.leave_circle(index)
    }

    /// Nothing is held any more of one writer.
    fn drop_part(&mut self, index: u16) {
        let reader = self.writer_proxies.get(index).map(|proxy| proxy.reader);
        let Some(reader) = reader else { return };
        if let Some(reader) = self.readers.get_mut(reader)
            && let Some(cache) = &mut reader.cache
        {
            reader.ledger.incomplete += cache.drop_sets_of(index);
        }
        self.go_on_with_sets(reader);
    }

    /// A reader goes: others see without it what they would have seen together with it.
    pub(crate) fn leave_circles(&mut self, reader: u16) {
        for nth in 0.. {
            let found = self.readers.get(reader);
            let Some(&index) = found.and_then(|reader| reader.proxies.get(nth)) else {
                return;
            };
            self.drop_part(index);
            if let Some(proxy) = self.writer_proxies.get_mut(index) {
                (proxy.progress.open, proxy.progress.ended) = (None, None);
            }
            if let Some(other) = self.leave_circle(index) {
                self.present(other);
            }
        }
    }

    /// A writer turns out to be a group of its own. Returns the ring of those that go on without it.
    #[cold]
    pub(super) fn leave_group(&mut self, index: u16) -> Option<Circle> {
        let other = self.part_sets(index);
        let proxy = self.writer_proxies.get_mut(index)?;
        let before = SequenceNumber(proxy.expected.get() - 1);
        proxy.progress.number_alone(proxy.guid.entity, before);
        self.counters.groups_unnumbered += 1;
        self.advance_alone(index, SequenceNumber(0));
        let alone = self.circle_of(index)?;
        while let Step::Made = self.present_next(&alone) {}
        self.circle_of(other?)
    }

    /// A HEARTBEAT of a writer all of whose samples have come says how far its group is, or nothing of that.
    pub(crate) fn hear_group(&mut self, index: u16, current: Option<SequenceNumber>) {
        let Some(proxy) = self.writer_proxies.get_mut(index) else {
            return;
        };
        match current {
            Some(current) => proxy.progress.hear(current),
            None if proxy.progress.question.is_in_vain() => proxy.progress.note_stranger(),
            None => return,
        }
        self.present(index);
    }
}
