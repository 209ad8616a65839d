//! What a writer knows of the samples that one of its readers does not want (RTPS 2.5 §8.7.4), from when the
//! reader's filter was asked about them until the reader has acknowledged them.
//!
//! Not what the history has: a change may be pushed out of it, or expire, before the reader has heard that it was
//! not for it, and must be called unwanted all the same, not gone. So what is noted here is no longer than one window
//! of numbers behind the last acknowledged one. What lies further on is sent, wanted or not.

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

/// Numbers of one reader's window, by bit (number mod WINDOW).
#[derive(Debug)]
pub(crate) struct Unwanted {
    /// Numbers below are acknowledged, or nothing is known of them.
    base: i64,
    /// The reader does not want these.
    judged: [u64; WORDS],
    /// Of these, what was not sent to the reader, and what it was not told of yet.
    untold: [u64; WORDS],
}

/// The numbers of a range that have a bit, ascending.
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
    /// Of a reader that has acknowledged all below `base`.
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

    /// Whether there is a place to note a number.
    pub(crate) fn has_place(&self, sequence: SequenceNumber) -> bool {
        self.window().contains(&sequence.get())
    }

    /// The reader does not want this number; `is_withheld`: and was not sent it.
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

    /// The reader does not want these, and is told so.
    pub(crate) fn note_told(&mut self, told: &Range<SequenceNumber>) {
        let window = self.window();
        let start = told.start.get().max(window.start);
        for (word, bits) in words(start..told.end.get().min(window.end)) {
            self.judged[word] |= bits;
            self.untold[word] &= !bits;
        }
    }

    /// The reader has acknowledged all below `to`.
    pub(crate) fn pass(&mut self, to: SequenceNumber) {
        let window = self.window();
        let to = to.get();
        for (word, passed) in words(window.start..to.min(window.end)) {
            self.judged[word] &= !passed;
            self.untold[word] &= !passed;
        }
        self.base = self.base.max(to);
    }

    /// The lowest number that is noted.
    pub(crate) fn first(&self) -> Option<SequenceNumber> {
        let first = numbers(&self.judged, self.window()).next();
        first.map(SequenceNumber)
    }

    /// The next number that is noted, from this one on.
    pub(crate) fn next_from(&self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        let window = self.window();
        let start = sequence.get().max(window.start);
        let next = numbers(&self.judged, start..window.end).next();
        next.map(SequenceNumber)
    }

    /// The run of numbers from this one on that are noted; none: this one is not.
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

    /// How many numbers the reader was not told of.
    pub(crate) fn untold(&self) -> u32 {
        self.untold.iter().map(|word| word.count_ones()).sum()
    }

    /// One GAP over all that the reader was not told of; it counts as told. `None`: there is nothing.
    pub(crate) fn take_untold(&mut self, writer: EntityId, reader: EntityId) -> Option<Gap> {
        let mut untold = numbers(&self.untold, self.window()).peekable();
        let start = untold.next()?;
        let mut end = start + 1;
        while untold.next_if_eq(&end).is_some() {
            end += 1;
        }
        let mut list = SequenceNumberSet::new(SequenceNumber(end));
        for number in untold {
            // One window holds them all.
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
