//! Numbers that the writers of a reliable reader have filtered out (RTPS 2.5 §8.3.8.4, `filteredCount` of GAP). They
//! count as filtered, not lost.
//!
//! Without `filteredCount` a GAP only says that its numbers are irrelevant to the reader (§8.4.12,
//! `irrelevant_change_set`): they were filtered out or removed. Writers of isolane always set `filteredCount`, so their
//! other GAP numbers count as lost. The GAP numbers of other implementations count as irrelevant. Of these writers'
//! numbers, only those below firstSN of a HEARTBEAT count as lost (`lost_changes_update`).

use alloc::boxed::Box;
use core::ops::Range;

use isolane_wire::{message::Gap, sequence::SequenceNumber};

use crate::{
    limits::WINDOW,
    reader::{
        Reader, Readers, WriterProxy,
        writer_proxy::{WORDS, words},
    },
    slab::ReaderId,
};

/// Set of the filtered numbers in the proxy's window: bit (number mod WINDOW).
#[derive(Debug, Default)]
pub(crate) struct FilteredNumbers([u64; WORDS]);

impl FilteredNumbers {
    /// Creates the record for a writer of a reader that announces a filter.
    pub(crate) fn of(reader: &Reader) -> Option<Box<Self>> {
        reader.filter_text().map(|_| Box::default())
    }
}

impl WriterProxy {
    /// Records the numbers of a GAP whose `filteredCount` covers all its numbers, except for those already received.
    pub(crate) fn note_held_back(&mut self, gap: &Gap) {
        let (expected, base) = (self.expected.get(), gap.list.base().get());
        let numbers = base.saturating_sub(gap.start.get());
        let numbers = numbers.saturating_add(gap.list.iter().count() as i64);
        if gap.filtered.is_none_or(|filtered| filtered < numbers) {
            return;
        }
        let window_end = expected.saturating_add(i64::from(WINDOW));
        let run = gap.start.get().max(expected)..base.min(window_end);
        let received = self.received;
        if let Some(held_back) = &mut self.held_back {
            for (word, marked) in words(run) {
                held_back.0[word] |= marked & !received[word];
            }
            let singles = gap.list.iter().map(SequenceNumber::get);
            for number in singles.filter(|number| (expected..window_end).contains(number)) {
                for (word, marked) in words(number..number + 1) {
                    held_back.0[word] |= marked & !received[word];
                }
            }
        }
    }

    /// Removes and counts the filtered numbers of `run`, which begins at the start of the window.
    pub(crate) fn take_held_back(&mut self, run: Range<i64>) -> u64 {
        let window_end = run.start.saturating_add(i64::from(WINDOW));
        let Some(held_back) = &mut self.held_back else {
            return 0;
        };
        let mut count = 0;
        for (word, passed) in words(run.start..run.end.min(window_end)) {
            count += u64::from((held_back.0[word] & passed).count_ones());
            held_back.0[word] &= !passed;
        }
        count
    }

    /// Notes that a writer of another implementation declared the numbers below `to` irrelevant.
    #[inline]
    pub(crate) fn note_irrelevant(&mut self, to: SequenceNumber) {
        if self.is_foreign {
            self.irrelevant_to = self.irrelevant_to.max(to);
        }
    }

    /// Returns how many numbers of `run`, which begins at the start of the window, a writer of another implementation
    /// has declared irrelevant. No sample with a number of `run` waits in the cache.
    #[cold]
    pub(crate) fn irrelevant_among(&self, run: Range<i64>) -> u64 {
        if !self.is_foreign {
            return 0;
        }
        let announced_to = self.irrelevant_to.get().clamp(run.start, run.end);
        let window_end = run.start.saturating_add(i64::from(WINDOW));
        let marked = words(announced_to.min(window_end)..run.end.min(window_end))
            .map(|(word, numbers)| u64::from((self.received[word] & numbers).count_ones()));
        announced_to.abs_diff(run.start) + marked.sum::<u64>()
    }
}

impl Readers {
    /// Lets the proxies of a reader record filtered numbers, when the reader announces a new filter.
    pub(crate) fn withhold_from(&mut self, reader_index: ReaderId) {
        for at in 0.. {
            let Some(reader) = self.table.get(reader_index) else {
                return;
            };
            let Some(&proxy) = reader.proxies.get(at) else {
                return;
            };
            let held_back = FilteredNumbers::of(reader);
            if let Some(proxy) = self.proxies.get_mut(proxy)
                && proxy.held_back.is_none()
            {
                proxy.held_back = held_back;
            }
        }
    }
}
