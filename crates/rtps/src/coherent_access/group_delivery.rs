//! Release of held sets and ordered samples to the user.
//!
//! The decision depends on the progress of the *peers*: the writers of one publisher that readers of one subscriber are
//! matched with; without GROUP access, a single writer. A set becomes available when it has ended at all peers and no
//! sample is missing. It is dropped when all peers are past its end, but at one of them the set has not ended, or not
//! completely. An ordered sample becomes available when no other peer can have an earlier one.
//!
//! Policies on the samples of a set (ownership of an instance, latest sample) are applied when the set becomes
//! available. A dropped set has no effect on these policies.

use isolane_wire::{guid::Guid, sequence::SequenceNumber};

use crate::{
    coherent_access::{coherent_group::CoherentGroup, progress::EndedSet},
    participant::{Facts, Shared},
    reader::{
        ReaderStatus, Readers,
        cache::{Cache, Refused},
    },
    slab::{ReaderId, WriterProxyId},
    timed_qos::{Claimant, check_held},
};

/// Common progress of the peers of a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Survey {
    /// Number up to which everything from every peer was processed.
    known: SequenceNumber,
    /// Ended set with the lowest end.
    ended: Option<EndedSet>,
    /// Lowest number of a sample that waits, and its proxy.
    candidate: Option<(SequenceNumber, WriterProxyId)>,
    /// Peer that does not number its samples in its group.
    stranger: Option<WriterProxyId>,
}

impl Survey {
    /// Returns the set whose end all peers have passed.
    pub(super) fn settled(&self) -> Option<EndedSet> {
        self.ended.filter(|ended| self.known >= ended.end)
    }
}

/// Result of one step.
pub(super) enum Step {
    /// Something became available or was dropped; there may be more.
    Made,
    None,
    /// Nothing happens until this peer leaves the ring.
    Without(WriterProxyId),
}

impl Step {
    fn of(is_made: bool) -> Self {
        match is_made {
            true => Self::Made,
            false => Self::None,
        }
    }
}

impl Readers {
    /// Makes all ready sets and samples available after a message of a writer; `index` is that of its proxy.
    #[inline(never)]
    pub(crate) fn present(&mut self, shared: &mut Shared, facts: Facts<'_>, index: WriterProxyId) {
        self.forget_displaced(index);
        let mut at = self.circle_of(index);
        while let Some(circle) = at {
            if self.is_accessed(&circle) {
                return;
            }
            at = match self.present_next(shared, facts, &circle) {
                Step::Made => Some(circle),
                Step::None => None,
                Step::Without(peer) => self.leave_group(shared, facts, peer),
            };
        }
    }

    pub(super) fn is_accessed(&self, circle: &CoherentGroup) -> bool {
        let subscriber = circle.subscriber.and_then(|it| self.subscribers.get(it));
        subscriber.is_some_and(|subscriber| subscriber.is_accessed)
    }

    /// Makes all ready sets and samples of a reader's writers available, each ring once.
    pub(crate) fn present_all_of(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        reader: ReaderId,
    ) {
        self.looks += 1;
        self.present_rest_of(shared, facts, reader);
    }

    /// Continues the current pass for the rings of a reader that it has not visited.
    pub(super) fn present_rest_of(
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
            if self.circle_to_look_at(index).is_some() {
                self.present(shared, facts, index);
            }
        }
    }

    /// Returns the number of a peer's next sample, if it has arrived and waits.
    fn next_number(&self, index: WriterProxyId) -> Option<SequenceNumber> {
        let proxy = self.proxies.get(index)?;
        let cache = self.cache_of(proxy.reader)?;
        let is_next = cache.first_waiting(index) == Some(proxy.expected);
        let place = cache.first_waiting_place(index).filter(|_| is_next);
        place.map(|place| place.number)
    }

    /// Returns the number up to which everything from a peer was processed.
    pub(super) fn known(&self, index: WriterProxyId) -> SequenceNumber {
        let proxy = self.proxies.get(index);
        let horizon = proxy.map_or(SequenceNumber(0), |proxy| proxy.progress.horizon);
        let next = self.next_number(index);
        next.map_or(horizon, |next| horizon.max(SequenceNumber(next.get() - 1)))
    }

    pub(super) fn survey(&self, circle: &CoherentGroup) -> Survey {
        let mut survey = Survey {
            known: SequenceNumber(i64::MAX),
            ended: None,
            candidate: None,
            stranger: None,
        };
        for peer in self.peers(circle) {
            survey.known = survey.known.min(self.known(peer));
            let proxy = &self.proxies[peer];
            if proxy.progress.is_undescribed() {
                survey.stranger = Some(peer);
            }
            if let Some(ended) = proxy.progress.ended {
                let first = survey.ended.filter(|first| first.end <= ended.end);
                survey.ended = first.or(Some(ended));
            } else if let Some(next) = self.next_number(peer) {
                let first = survey.candidate.filter(|&(first, _)| first <= next);
                survey.candidate = first.or(Some((next, peer)));
            }
        }
        survey
    }

    /// Makes the next set or sample available, if possible.
    pub(super) fn present_next(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        circle: &CoherentGroup,
    ) -> Step {
        let survey = self.survey(circle);
        if let Some(stranger) = survey.stranger {
            return Step::Without(stranger);
        }
        if let Some(settled) = survey.settled() {
            return Step::of(self.settle(shared, facts, circle, settled));
        }
        if let Some(ended) = survey.ended {
            // The other ends are in transit, and repaired if lost.
            self.wait_for(shared, circle, ended.end.next(), false);
        }
        let Some((number, peer)) = survey.candidate.filter(|_| circle.is_ordered) else {
            return Step::None;
        };
        if survey.ended.is_some_and(|ended| ended.set < number) {
            return Step::None;
        }
        // Group numbers are unique, so a peer past the previous number has nothing earlier. Proxies of the same writer
        // at other readers have the same sample.
        let comes_first = |other| other != peer && self.known(other).next() < number;
        if self.peers(circle).any(comes_first) {
            self.wait_for(shared, circle, number, true);
            return Step::None;
        }
        Step::of(self.show_next(shared, peer, number))
    }

    /// Makes the next sample of a peer available; returns false if there is no room.
    fn show_next(
        &mut self,
        shared: &mut Shared,
        index: WriterProxyId,
        number: SequenceNumber,
    ) -> bool {
        let proxy = &self.proxies[index];
        let (before, reader) = (proxy.expected, proxy.reader);
        self.permit(reader, number);
        self.advance_alone(shared, index, SequenceNumber(0));
        self.permit(reader, SequenceNumber(0));
        let after = self.proxies.get(index).map(|proxy| proxy.expected);
        after.is_some_and(|after| after > before)
    }

    fn permit(&mut self, reader: ReaderId, number: SequenceNumber) {
        self.shown += 1;
        let (shown, reader) = (self.shown, self.table.get_mut(reader));
        if let Some(cache) = reader.and_then(|reader| reader.cache.as_mut()) {
            cache.permit(number, shown);
        }
    }

    /// Releases or drops a set whose end all peers have passed; returns false if its readers have no room now.
    fn settle(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        circle: &CoherentGroup,
        ended: EndedSet,
    ) -> bool {
        let has_lost = self.has_lost_a_writer(shared, facts, circle, &ended);
        if !has_lost && self.is_whole_everywhere(circle, ended.set) {
            let mut has_room = true;
            self.for_each_reader(circle, |protocol, reader| {
                has_room &= protocol.makes_room_for(reader, circle.publisher, ended.set);
            });
            if !has_room {
                return false;
            }
            self.show_set(shared, circle, ended.set);
        }
        self.drop_sets_to(shared, circle, ended.set);
        let mut at = Some(circle.first);
        while let Some(peer) = at {
            at = self.peer_after(circle, peer);
            self.advance_alone(shared, peer, SequenceNumber(0));
        }
        true
    }

    pub(super) fn is_whole_everywhere(&self, circle: &CoherentGroup, set: SequenceNumber) -> bool {
        self.peers(circle).all(|peer| {
            let proxy = self.proxies.get(peer);
            let ended = proxy.and_then(|proxy| proxy.progress.ended);
            ended.is_some_and(|ended| ended.set == set && ended.is_whole)
        })
    }

    /// Returns whether a reader has room for a set. If not, the reader continues when the user has taken samples.
    fn makes_room_for(&mut self, index: ReaderId, publisher: Guid, set: SequenceNumber) -> bool {
        let reader = &mut self.table[index];
        let cache = reader.cache.as_mut();
        let has_room = cache.is_none_or(|cache| cache.has_room_for_set(publisher, set));
        if !has_room {
            reader.refuse(Refused::Full);
        }
        has_room
    }

    pub(super) fn show_set(
        &mut self,
        shared: &mut Shared,
        circle: &CoherentGroup,
        set: SequenceNumber,
    ) {
        self.shown += 1;
        self.for_each_reader(circle, |protocol, reader| {
            if protocol.show_set_at(shared, reader, circle.publisher, set) > 0 {
                if let Some(reader) = protocol.table.get_mut(reader) {
                    reader.status |= ReaderStatus::DATA_AVAILABLE;
                }
                protocol.note_reader(shared, reader);
                protocol.arm_reader(shared, reader);
            }
        });
        let mut at = Some(circle.first);
        while let Some(peer) = at {
            at = self.peer_after(circle, peer);
            self.end_if_silent(shared, peer);
        }
    }

    /// Releases the samples of a set at one reader, as far as its policies allow; returns their number.
    fn show_set_at(
        &mut self,
        shared: &Shared,
        index: ReaderId,
        publisher: Guid,
        set: SequenceNumber,
    ) -> usize {
        let (shown, latest, proxies) = (self.shown, shared.latest, &self.proxies);
        let reader = &mut self.table[index];
        let (Some(cache), clock, ledger) =
            (&mut reader.cache, &mut reader.clock, &mut reader.ledger)
        else {
            return 0;
        };
        cache.show_set(publisher, set, shown, |cache, proxy, info| {
            let Some(clock) = clock else { return true };
            clock.note_time(latest);
            let strength = proxies.get(proxy).map_or(0, |it| it.clock.strength);
            let writer = Claimant {
                proxy,
                guid: info.writer,
                strength,
            };
            check_held(clock, cache, ledger, writer, info)
        })
    }

    /// Drops the held samples of a set and of all earlier sets.
    pub(super) fn drop_sets_to(
        &mut self,
        shared: &mut Shared,
        circle: &CoherentGroup,
        set: SequenceNumber,
    ) {
        self.drop_sets(shared, circle, SequenceNumber(0)..=set);
        self.for_each_peer(circle, |progress| {
            progress.ended.take_if(|ended| ended.set <= set);
            if let Some(open) = progress.open.as_mut().filter(|open| open.set <= set) {
                open.is_whole = false;
            }
        });
    }

    /// Clears the mark of a sample displaced by one that is next in order, so that it is requested again.
    fn forget_displaced(&mut self, index: WriterProxyId) {
        let reader = self.proxies.get(index).map(|proxy| proxy.reader);
        let Some(reader) = reader.and_then(|reader| self.table.get_mut(reader)) else {
            return;
        };
        let displaced = reader.cache.as_mut().and_then(Cache::take_displaced);
        if let Some((proxy, sequence)) = displaced {
            reader.ledger.deferred += 1;
            if let Some(proxy) = self.proxies.get_mut(proxy) {
                proxy.unmark(sequence);
            }
        }
    }
}
