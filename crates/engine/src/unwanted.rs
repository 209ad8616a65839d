//! Samples filtered out by a writer for one reader (RTPS 2.5 §8.7.4), from the evaluation of the filter until the
//! reader has acknowledged them.
//!
//! This record is separate from the history: KEEP_LAST or LIFESPAN may remove a change before the reader has learnt
//! that it was filtered out, and the GAP must say filtered, not gone. The record covers one window of numbers from the
//! last acknowledged one. Samples further ahead are sent, filtered out or not.

use core::ops::Range;

use isolane_wire::{
    guid::EntityId,
    rtps::Gap,
    sequence::{SequenceNumber, SequenceNumberSet},
};

use crate::{
    limits::WINDOW,
    window::{WORDS, words},
};

/// Filtered numbers of a reader's window, by bit (number mod WINDOW).
#[derive(Debug)]
pub(crate) struct Unwanted {
    /// Numbers below are acknowledged, or unknown.
    base: i64,
    /// Numbers that the reader's filter rejects.
    judged: [u64; WORDS],
    /// Rejected numbers neither sent to the reader nor reported in a GAP.
    untold: [u64; WORDS],
}

/// Iterates over the numbers of a range whose bit is set, ascending.
fn numbers(bits: &[u64; WORDS], range: Range<i64>) -> impl Iterator<Item = i64> {
    let mut at = range.start;
    words(range).flat_map(move |(word, mask)| {
        let start = at;
        let shift = mask.trailing_zeros();
        at = start + i64::from(mask.count_ones());
        let mut left = (bits[word] & mask) >> shift;
        core::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(start + i64::from(bit))
        })
    })
}

impl Unwanted {
    /// Creates the record of a reader that has acknowledged all numbers below `base`.
    pub(crate) fn new(base: SequenceNumber) -> Self {
        Self {
            base: base.get(),
            judged: [0; WORDS],
            untold: [0; WORDS],
        }
    }

    fn window(&self) -> Range<i64> {
        self.base..self.base.saturating_add(i64::from(WINDOW))
    }

    /// Returns whether a number is in the window.
    pub(crate) fn has_place(&self, sequence: SequenceNumber) -> bool {
        self.window().contains(&sequence.get())
    }

    /// Notes a number that the filter rejects; `is_withheld` if it is not sent.
    pub(crate) fn note(&mut self, sequence: SequenceNumber, is_withheld: bool) {
        let number = sequence.get();
        if !self.has_place(sequence) {
            return;
        }
        for (word, bit) in words(number..number + 1) {
            self.judged[word] |= bit;
            if is_withheld {
                self.untold[word] |= bit;
            }
        }
    }

    /// Notes numbers that are filtered out and reported to the reader.
    pub(crate) fn note_told(&mut self, told: &Range<SequenceNumber>) {
        let window = self.window();
        let start = told.start.get().max(window.start);
        for (word, bits) in words(start..told.end.get().min(window.end)) {
            self.judged[word] |= bits;
            self.untold[word] &= !bits;
        }
    }

    /// Advances the window: the reader has acknowledged all numbers below `to`.
    pub(crate) fn pass(&mut self, to: SequenceNumber) {
        let window = self.window();
        let to = to.get();
        for (word, passed) in words(window.start..to.min(window.end)) {
            self.judged[word] &= !passed;
            self.untold[word] &= !passed;
        }
        self.base = self.base.max(to);
    }

    pub(crate) fn first(&self) -> Option<SequenceNumber> {
        let first = numbers(&self.judged, self.window()).next();
        first.map(SequenceNumber)
    }

    /// Returns the next filtered number from `sequence` on.
    pub(crate) fn next_from(&self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        let window = self.window();
        let start = sequence.get().max(window.start);
        let next = numbers(&self.judged, start..window.end).next();
        next.map(SequenceNumber)
    }

    /// Returns the run of filtered numbers from `sequence` on; empty if that one is not filtered.
    pub(crate) fn run_from(&self, sequence: SequenceNumber) -> Range<SequenceNumber> {
        let window = self.window();
        let mut end = sequence.get();
        if window.contains(&end) {
            for number in numbers(&self.judged, end..window.end) {
                if number != end {
                    break;
                }
                end += 1;
            }
        }
        sequence..SequenceNumber(end)
    }

    /// Returns the number of filtered samples not reported to the reader.
    pub(crate) fn untold(&self) -> u32 {
        self.untold.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns one GAP for all numbers not yet reported, and marks them as reported; `None` if there are none.
    pub(crate) fn take_untold(&mut self, writer: EntityId, reader: EntityId) -> Option<Gap> {
        let mut untold = numbers(&self.untold, self.window()).peekable();
        let start = untold.next()?;
        let mut end = start + 1;
        while untold.next_if_eq(&end).is_some() {
            end += 1;
        }
        let mut list = SequenceNumberSet::new(SequenceNumber(end));
        for number in untold {
            // One GAP covers the whole window.
            list.insert(SequenceNumber(number));
        }
        let count = self.untold();
        self.untold = [0; WORDS];
        Some(Gap {
            reader,
            writer,
            group: None,
            filtered: Some(count.into()),
            start: SequenceNumber(start),
            list,
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const WINDOW: i64 = super::WINDOW as i64;

    fn noted(base: i64, all: &[i64]) -> Unwanted {
        let mut unwanted = Unwanted::new(SequenceNumber(base));
        for &number in all {
            unwanted.note(SequenceNumber(number), true);
        }
        unwanted
    }

    fn told(gap: &Gap) -> Vec<i64> {
        let run = gap.start.get()..gap.list.base().get();
        run.chain(gap.list.iter().map(SequenceNumber::get))
            .collect()
    }

    #[test]
    fn what_was_noted_is_told_once_whatever_the_numbers_are() {
        for base in [1, 60, 250, 255, 256, 1_000_003] {
            for steps in [&[1, 1, 1][..], &[1, 2, 1, 60], &[70, 1, 1, 100], &[255]] {
                let mut at = base - 1;
                let all: Vec<i64> = steps
                    .iter()
                    .map(|step| {
                        at += step;
                        at
                    })
                    .collect();
                let mut unwanted = noted(base, &all);
                assert_eq!(unwanted.first(), Some(SequenceNumber(all[0])));
                let gap = unwanted
                    .take_untold(EntityId::UNKNOWN, EntityId::UNKNOWN)
                    .expect("something was noted");
                assert_eq!(told(&gap), all, "from {base} on");
                assert_eq!(gap.filtered, Some(all.len() as i64));
                let again = unwanted.take_untold(EntityId::UNKNOWN, EntityId::UNKNOWN);
                assert_eq!(again, None);
                assert_eq!(
                    unwanted.first(),
                    Some(SequenceNumber(all[0])),
                    "it is not acknowledged"
                );
            }
        }
    }

    #[test]
    fn what_is_acknowledged_makes_room_for_as_many_more() {
        let mut unwanted = noted(1, &[1, 2, 3]);
        let beyond = SequenceNumber(1 + WINDOW);
        assert!(!unwanted.has_place(beyond));
        unwanted.note(beyond, true);
        assert_eq!(
            unwanted.untold(),
            3,
            "what has no place takes nobody else's"
        );
        unwanted.pass(SequenceNumber(3));
        assert!(unwanted.has_place(beyond));
        assert_eq!(unwanted.first(), Some(SequenceNumber(3)));
        unwanted.note(beyond, true);
        assert_eq!(unwanted.run_from(beyond), beyond..beyond.next());
        unwanted.pass(SequenceNumber(10 * WINDOW));
        assert_eq!(unwanted.first(), None);
        unwanted.pass(SequenceNumber(5));
        assert!(!unwanted.has_place(SequenceNumber(6)), "it never goes back");
    }

    #[test]
    fn a_run_ends_at_the_first_number_that_is_not_noted() {
        let mut unwanted = noted(250, &[251, 252, 253, 255, 256, 257]);
        let run = |unwanted: &Unwanted, from: i64| {
            let run = unwanted.run_from(SequenceNumber(from));
            run.start.get()..run.end.get()
        };
        assert_eq!(run(&unwanted, 250), 250..250);
        assert_eq!(run(&unwanted, 252), 252..254);
        assert_eq!(run(&unwanted, 255), 255..258);
        assert_eq!(run(&unwanted, 10_000), 10_000..10_000);
        let next = |unwanted: &Unwanted| unwanted.next_from(SequenceNumber(254));
        assert_eq!(next(&unwanted), Some(SequenceNumber(255)));
        unwanted.note_told(&(SequenceNumber(100)..SequenceNumber(100_000)));
        assert_eq!(run(&unwanted, 250), 250..250 + WINDOW);
        assert_eq!(unwanted.untold(), 0);
    }
}
