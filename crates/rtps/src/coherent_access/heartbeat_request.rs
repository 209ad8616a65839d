//! Requests for the group progress of silent writers, while samples of other writers of the group wait for it.
//!
//! A silent writer may have nothing to send, or its messages may be lost. An ACKNACK requests a HEARTBEAT, which
//! carries the group sequence number (RTPS 2.5 §8.3.8.6). The request is repeated while samples wait for the writer,
//! after 20 ms and then with doubled periods up to one second. Each proxy has the state of its request. One reader of
//! the group has the timer for all proxies.

use isolane_wire::{sequence::SequenceNumber, time::Instant};

use crate::{
    coherent_access::coherent_group::CoherentGroup,
    limits::{ASK_AGAIN, ASK_AGAIN_MAX, UNANSWERED_QUESTIONS},
    participant::{Facts, Shared},
    reader::{Reader, Readers},
    slab::ReaderId,
    work_queue::Timer,
};

/// Request for the progress of one writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeartbeatRequest {
    /// Group sequence number of the waiting sample. The writer must report all its numbers below this one.
    number: SequenceNumber,
    is_asked: bool,
    /// Number of unanswered requests.
    unanswered: u8,
    /// Time of the next request; `None` if no sample waits for the writer.
    again_at: Option<Instant>,
}

impl HeartbeatRequest {
    pub(super) const NONE: Self = Self {
        number: SequenceNumber(0),
        is_asked: false,
        unanswered: 0,
        again_at: None,
    };

    /// Waits for `number` at a writer whose progress is `known`; returns true if a request is to be sent now.
    fn put(
        &mut self,
        number: SequenceNumber,
        known: SequenceNumber,
        now: Instant,
        asks_now: bool,
    ) -> bool {
        if known.next() >= self.number {
            // The number waited for is reached, or none was waited for.
            *self = Self::NONE;
        }
        self.number = self.number.max(number);
        let is_due = self.again_at.is_some_and(|at| at <= now);
        let asks = is_due || (asks_now && !self.is_asked);
        if is_due && self.is_asked {
            self.unanswered = self.unanswered.saturating_add(1);
        }
        if asks || self.again_at.is_none() {
            let doubled = ASK_AGAIN * (1 << self.unanswered.min(7));
            self.again_at = Some(now + doubled.min(ASK_AGAIN_MAX));
        }
        self.is_asked |= asks;
        asks
    }

    /// Returns whether `UNANSWERED_QUESTIONS` requests brought no group sequence number.
    pub(super) fn retries_exhausted(&self) -> bool {
        self.unanswered >= UNANSWERED_QUESTIONS
    }
}

impl Readers {
    /// Schedules HEARTBEAT requests to each writer of the group that has not reported all group sequence numbers below
    /// `number`: now, or when `ASK_AGAIN` passes without an answer.
    pub(super) fn wait_for(
        &mut self,
        shared: &mut Shared,
        circle: &CoherentGroup,
        number: SequenceNumber,
        asks_now: bool,
    ) {
        let now = shared.latest;
        let mut keeper = circle.first;
        let mut due: Option<Instant> = None;
        let mut at = Some(circle.first);
        while let Some(peer) = at {
            at = self.peer_after(circle, peer);
            keeper = keeper.min(peer);
            let known = self.known(peer);
            let proxy = &mut self.proxies[peer];
            if known.next() >= number {
                continue;
            }
            let question = &mut proxy.progress.question;
            let asks = question.put(number, known, now, asks_now);
            due = [due, question.again_at].into_iter().flatten().min();
            if asks {
                proxy.progress.asks = true;
                self.schedule_acknack(shared, peer);
            }
        }
        let keeper = self.proxies.get(keeper).map(|proxy| proxy.reader);
        if let (Some(due), Some(keeper)) = (due, keeper) {
            self.look_at(shared, keeper, due);
        }
    }

    /// Schedules the next check of a reader's waiting samples.
    pub(super) fn look_at(&mut self, shared: &mut Shared, index: ReaderId, due: Instant) {
        let reader = &mut self.table[index];
        reader.ask_at = Some(reader.ask_at.map_or(due, |at| at.min(due)));
        let timer = Timer::ReaderTimedQos(index);
        shared.timers.bring_forward(timer, due);
    }

    /// Repeats the requests of a reader that still waits.
    pub(crate) fn ask_writers_again(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        now: Instant,
        index: ReaderId,
    ) {
        let reader = self.table.get_mut(index);
        let is_due = |reader: &mut Reader| reader.ask_at.take_if(|at| *at <= now).is_some();
        if reader.is_some_and(is_due) {
            self.present_all_of(shared, facts, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_is_asked_half_as_often_each_time_down_to_a_bound() {
        let mut question = HeartbeatRequest::NONE;
        let (number, known) = (SequenceNumber(5), SequenceNumber(3));
        let asked: alloc::vec::Vec<u64> = (0..10_000)
            .filter(|&ms| question.put(number, known, Instant::new(ms * 1_000_000), true))
            .collect();
        assert_eq!(asked[..8], [0, 20, 60, 140, 300, 620, 1260, 2260]);
        assert_eq!(asked.len(), 15);
        // An answer ends the request, so the next one is sent at once.
        let later = Instant::new(10_000_000_000);
        assert!(question.put(SequenceNumber(6), SequenceNumber(4), later, true));
        assert_eq!(question.unanswered, 0);
    }
}
