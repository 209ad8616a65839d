//! Reader-side proxy of a matched writer, with the reliable protocol's state (RTPS 2.5 §8.4.10.4).
//!
//! One window of [`WINDOW`](crate::limits::WINDOW) bits, from the lowest missing number on, marks the sequence numbers
//! that were received or will never arrive.
//!
//! Runs of numbers are marked and searched a word of the window at a time, not number by number.

use alloc::boxed::Box;
use core::{iter, ops::Range};

use isolane_wire::{
    guid::Guid, locator::Locator, message::Heartbeat, sequence::SequenceNumber, time::Instant,
};

use crate::{
    coherent_access::Progress,
    limits::{COUNT_MEMORY, WINDOW},
    reader::{
        filtering::FilteredNumbers,
        sequence_jump::{Anchor, Claim, Former},
    },
    slab::{ReaderId, WriterProxyId},
    timed_qos::WriterLiveness,
};

/// Matched writer, as one reader sees it.
#[derive(Debug)]
pub(crate) struct WriterProxy {
    pub(crate) reader: ReaderId,
    pub(crate) guid: Guid,
    /// Destination address of ACKNACKs.
    pub(crate) reply_to: Option<Locator>,
    pub(crate) reliable: bool,
    /// Set while the VOLATILE reader skips the writer's history, whose end the writer does not reliably announce.
    /// Cleared by the first sample that arrives without a request, at which the reader starts.
    pub(crate) skips_history: bool,
    /// State of the timed policies.
    pub(crate) clock: WriterLiveness,
    /// Progress in coherent sets and group order.
    pub(crate) progress: Progress,
    /// Next proxy of the same writer, at another reader.
    pub(crate) next_of_writer: Option<WriterProxyId>,
    /// Lowest sequence number not received.
    pub(crate) expected: SequenceNumber,
    /// Bit (number mod WINDOW) for numbers in `expected..expected + WINDOW` that need not be requested.
    pub(crate) received: [u64; WORDS],
    /// Numbers of the window that the writer has filtered out for this reader.
    pub(crate) held_back: Option<Box<FilteredNumbers>>,
    /// True for a writer of another implementation.
    pub(crate) is_foreign: bool,
    /// Missing numbers below this one are irrelevant, as a writer of another implementation has declared.
    pub(crate) irrelevant_to: SequenceNumber,
    /// Highest sequence number known to exist.
    pub(crate) last: SequenceNumber,
    /// True once a HEARTBEAT has arrived.
    pub(crate) started: bool,
    /// Last sequence number in the first HEARTBEAT.
    pub(crate) history_end: SequenceNumber,
    /// True once a sample was accepted or rejected. Missing samples from then on count as lost.
    pub(crate) begun: bool,
    /// Reception time of its last sample or fragment.
    pub(crate) heard: Instant,
    /// Count and time of the last new HEARTBEAT.
    heartbeat_count: Option<(i32, Instant)>,
    /// Count and time of the last new HEARTBEAT_FRAG.
    fragments_count: Option<(i32, Instant)>,
    /// Unconfirmed far jump of a reliable reader.
    pub(super) claim: Option<Claim>,
    /// Position before an unconfirmed far jump of a best-effort reader.
    pub(super) former: Option<Former>,
    /// Last sample of a best-effort reader known to be the writer's own.
    pub(super) anchor: Anchor,
    /// Time of the first ignored GAP beyond the window from another address than the writer's.
    pub(super) gap_doubted_since: Option<Instant>,
    /// Time of the writer's first own HEARTBEAT that ended below the window.
    pub(super) astray_since: Option<Instant>,
    /// Time of the last request to confirm a jump.
    pub(super) confirm_asked_at: Option<Instant>,
    /// Samples accepted after jumps that were reverted.
    pub(super) strays: u64,
    pub(crate) acknack_filed: bool,
    /// Base of the last ACKNACK.
    pub(crate) acknowledged: SequenceNumber,
    pub(super) nacked_until: SequenceNumber,
    pub(super) nacked_at: Instant,
    /// Time of the last request for fragments.
    pub(crate) fragments_asked_at: Instant,
}

impl WriterProxy {
    pub(crate) fn new(reader: ReaderId, guid: Guid, reliable: bool) -> Self {
        Self {
            reader,
            guid,
            reply_to: None,
            reliable,
            skips_history: false,
            clock: WriterLiveness::default(),
            progress: Progress::NONE,
            next_of_writer: None,
            expected: SequenceNumber(1),
            received: [0; WORDS],
            held_back: None,
            is_foreign: false,
            irrelevant_to: SequenceNumber(0),
            last: SequenceNumber(0),
            started: false,
            history_end: SequenceNumber(0),
            begun: false,
            heard: Instant::new(0),
            heartbeat_count: None,
            fragments_count: None,
            claim: None,
            former: None,
            anchor: Anchor::NONE,
            gap_doubted_since: None,
            astray_since: None,
            confirm_asked_at: None,
            strays: 0,
            acknack_filed: false,
            acknowledged: SequenceNumber(1),
            nacked_until: SequenceNumber(0),
            nacked_at: Instant::new(0),
            fragments_asked_at: Instant::new(0),
        }
    }

    /// Reception time of its last sample, new HEARTBEAT or new HEARTBEAT_FRAG.
    pub(crate) fn last_heard(&self) -> Instant {
        let counts = [self.heartbeat_count, self.fragments_count];
        let heard = counts.into_iter().flatten().map(|(_, at)| at);
        heard.fold(self.heard, Instant::max)
    }

    pub(crate) fn in_window(&self, sequence: SequenceNumber) -> bool {
        let ahead = sequence.get().wrapping_sub(self.expected.get());
        (0..i64::from(WINDOW)).contains(&ahead)
    }

    pub(crate) fn has(&self, sequence: SequenceNumber) -> bool {
        let bit = sequence.get() as u64 % u64::from(WINDOW);
        self.received[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// Returns whether a sequence number was received or will never arrive.
    #[inline(never)]
    pub(crate) fn is_done_with(&self, sequence: SequenceNumber) -> bool {
        sequence < self.expected || (self.in_window(sequence) && self.has(sequence))
    }

    pub(crate) fn mark(&mut self, sequence: SequenceNumber) {
        let bit = sequence.get() as u64 % u64::from(WINDOW);
        self.received[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    /// Marks a run of numbers, all in the window.
    pub(crate) fn mark_run(&mut self, run: Range<i64>) {
        for (word, marked) in words(run) {
            self.received[word] |= marked;
        }
    }

    pub(crate) fn unmark(&mut self, sequence: SequenceNumber) {
        let bit = sequence.get() as u64 % u64::from(WINDOW);
        self.received[(bit / 64) as usize] &= !(1 << (bit % 64));
    }

    /// Advances past `expected`, which was received or will never arrive.
    pub(crate) fn advance(&mut self) {
        self.unmark(self.expected);
        self.expected = self.expected.next();
    }

    /// Moves to `sequence` and clears the window.
    pub(crate) fn jump(&mut self, sequence: SequenceNumber) {
        self.expected = sequence;
        self.received = [0; WORDS];
        if let Some(held_back) = &mut self.held_back {
            **held_back = FilteredNumbers::default();
        }
    }

    /// Advances to `sequence` and clears the marks before it.
    pub(crate) fn pass(&mut self, sequence: SequenceNumber) {
        let ahead = sequence.get() - self.expected.get();
        if ahead >= i64::from(WINDOW) {
            self.jump(sequence);
            return;
        }
        for (word, passed) in words(self.expected.get()..sequence.get()) {
            self.received[word] &= !passed;
        }
        self.expected = sequence;
    }

    /// Resets the reception state, so that all of the writer's samples are requested again.
    pub(crate) fn restart(&mut self) {
        self.restart_from(SequenceNumber(1));
        (self.last, self.irrelevant_to) = (SequenceNumber(0), SequenceNumber(0));
        self.started = false;
    }

    /// Resets the reception state from a sequence number on, so that samples from there are requested again.
    pub(crate) fn restart_from(&mut self, sequence: SequenceNumber) {
        self.jump(sequence);
        (self.begun, self.claim) = (false, None);
        self.heartbeat_count = None;
        self.acknowledged = sequence;
        self.nacked_until = SequenceNumber(0);
    }

    pub(crate) fn is_missing_any(&self) -> bool {
        self.lowest_missing().is_some()
    }

    /// Returns whether samples were received since the last ACKNACK.
    pub(crate) fn has_unacknowledged(&self) -> bool {
        self.acknowledged < self.expected
    }

    /// Last number in the window that is known to exist.
    pub(super) fn window_last(&self) -> SequenceNumber {
        let window_last = self.expected.get().saturating_add(i64::from(WINDOW) - 1);
        SequenceNumber(self.last.get().min(window_last))
    }

    pub(super) fn lowest_missing(&self) -> Option<SequenceNumber> {
        let lowest = self.first_unmarked();
        (lowest <= self.window_last()).then_some(lowest)
    }

    /// First number from `expected` on not received, or the one after the window. Searches word by word, because every
    /// GAP calls it.
    pub(crate) fn first_unmarked(&self) -> SequenceNumber {
        let end = self.expected.get().saturating_add(i64::from(WINDOW));
        let mut at = self.expected.get();
        while at < end {
            let bit = at as u64 % u64::from(WINDOW);
            let unmarked = !self.received[(bit / 64) as usize] >> (bit % 64);
            if unmarked != 0 {
                return SequenceNumber(at.saturating_add(i64::from(unmarked.trailing_zeros())));
            }
            at = at.saturating_add(64 - (bit % 64) as i64);
        }
        SequenceNumber(end)
    }

    /// Returns whether all requested samples were received and other samples are missing.
    pub(crate) fn may_ask_for_more(&self) -> bool {
        self.reliable && self.expected > self.nacked_until && self.is_missing_any()
    }

    /// Returns whether a HEARTBEAT is new: its count has increased (RTPS 2.5 §8.3.8.6.4), or the last new one is long
    /// ago.
    pub(crate) fn accept_heartbeat(&mut self, now: Instant, heartbeat: &Heartbeat) -> bool {
        let is_new = is_news(self.heartbeat_count, heartbeat.count, now);
        if is_new {
            self.heartbeat_count = Some((heartbeat.count, now));
        }
        is_new
    }

    /// Returns whether a HEARTBEAT_FRAG is new (§8.3.8.7).
    pub(crate) fn accept_fragments(&mut self, now: Instant, count: i32) -> bool {
        let is_new = is_news(self.fragments_count, count, now);
        if is_new {
            self.fragments_count = Some((count, now));
        }
        is_new
    }
}

/// Returns whether a count is higher than the last one, or the last one is too old to compare.
pub(crate) fn is_news(last: Option<(i32, Instant)>, count: i32, now: Instant) -> bool {
    last.is_none_or(|(last, at)| {
        count.wrapping_sub(last) > 0 || now.saturating_since(at) > COUNT_MEMORY
    })
}

/// Words of a window.
pub(crate) const WORDS: usize = (WINDOW / 64) as usize;

/// Iterates over the words that a run of numbers spans, each with the bits of its numbers. The bit of a number is
/// (number mod [`WINDOW`]); a run is no longer than the window.
pub(crate) fn words(numbers: Range<i64>) -> impl Iterator<Item = (usize, u64)> {
    debug_assert!(numbers.end.saturating_sub(numbers.start) <= i64::from(WINDOW));
    let Range { mut start, end } = numbers;
    iter::from_fn(move || {
        let left = u64::try_from(end.checked_sub(start)?).ok()?;
        let bit = start as u64 % u64::from(WINDOW);
        let (word, first) = ((bit / 64) as usize, bit % 64);
        let count = left.min(64 - first);
        if count == 0 {
            return None;
        }
        start += count as i64;
        Some((word, u64::MAX >> (64 - count) << first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_numbers_has_the_bits_of_its_numbers() {
        let window = i64::from(WINDOW);
        for start in [1, 63, 64, 65, 200, 255, 256, 1_000_003, i64::MAX - window] {
            for length in [0, 1, 2, 63, 64, 65, 128, 255, 256] {
                let mut bits = [0; WORDS];
                for (word, mask) in words(start..start + length) {
                    assert_eq!(bits[word] & mask, 0, "each number once");
                    bits[word] |= mask;
                }
                let mut expected = [0; WORDS];
                for number in start..start + length {
                    let bit = (number % window) as usize;
                    expected[bit / 64] |= 1 << (bit % 64);
                }
                assert_eq!(bits, expected, "{start} + {length}");
            }
        }
        let (start, end) = (5, 3);
        assert_eq!(
            words(start..end).count(),
            0,
            "one that has ended before it begins"
        );
    }
}
