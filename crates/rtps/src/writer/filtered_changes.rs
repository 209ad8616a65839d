//! Samples filtered out by a writer for one reader (RTPS 2.5 §8.7.4), from the evaluation of the filter until the
//! reader has acknowledged them.
//!
//! This record is separate from the history: KEEP_LAST or LIFESPAN may remove a change before the reader has learnt
//! that it was filtered out, and the GAP must say filtered, not gone. The record covers one window of numbers from the
//! last acknowledged one. A sample beyond the window is sent even if the filter rejects it.
//!
//! GAPs for these samples count all their numbers as filtered (RTPS 2.5 §8.3.8.4). Each GAP is for one reader, because
//! the writer may not yet know the filter of another reader at the same address.

use core::ops::Range;

use isolane_wire::{
    BufferTooSmall,
    guid::{EntityId, Guid},
    message::{Gap, HEADER_BYTES, HEARTBEAT_BYTES, INFO_DESTINATION_BYTES, MessageWriter},
    sequence::{SequenceNumber, SequenceNumberSet},
};

use crate::{
    limits::{BATCH_BYTES, MAX_DATA_PAYLOAD_BYTES, WINDOW},
    participant::Shared,
    reader::writer_proxy::{WORDS, words},
    slab::{ReaderProxyId, Slab},
    work::Work,
    writer::{
        Writer, Writers, filtering::AddressBits, history::ChangeKind, reliability::ReaderProxy,
        write::gap,
    },
};

/// Set of filtered numbers in a reader's window: bit (number mod WINDOW).
#[derive(Debug)]
pub(crate) struct FilteredChanges {
    /// First number of the window. Numbers below it are acknowledged, or unknown.
    base: i64,
    /// Numbers that the reader's filter rejects.
    judged: [u64; WORDS],
    /// Rejected numbers neither sent to the reader nor reported in a GAP.
    unannounced: [u64; WORDS],
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

impl FilteredChanges {
    /// Creates the record of a reader that has acknowledged all numbers below `base`.
    pub(crate) fn new(base: SequenceNumber) -> Self {
        Self {
            base: base.get(),
            judged: [0; WORDS],
            unannounced: [0; WORDS],
        }
    }

    fn window(&self) -> Range<i64> {
        self.base..self.base.saturating_add(i64::from(WINDOW))
    }

    /// Returns whether a number is in the window.
    pub(crate) fn has_place(&self, sequence: SequenceNumber) -> bool {
        self.window().contains(&sequence.get())
    }

    /// Notes a number that the filter rejects; `is_withheld` is true if the sample is not sent.
    pub(crate) fn note(&mut self, sequence: SequenceNumber, is_withheld: bool) {
        let number = sequence.get();
        if !self.has_place(sequence) {
            return;
        }
        for (word, bit) in words(number..number + 1) {
            self.judged[word] |= bit;
            if is_withheld {
                self.unannounced[word] |= bit;
            }
        }
    }

    /// Notes numbers that are filtered out and reported to the reader.
    pub(crate) fn mark_announced(&mut self, announced: &Range<SequenceNumber>) {
        let window = self.window();
        let start = announced.start.get().max(window.start);
        for (word, bits) in words(start..announced.end.get().min(window.end)) {
            self.judged[word] |= bits;
            self.unannounced[word] &= !bits;
        }
    }

    /// Advances the window: the reader has acknowledged all numbers below `to`.
    pub(crate) fn pass(&mut self, to: SequenceNumber) {
        let window = self.window();
        let to = to.get();
        for (word, passed) in words(window.start..to.min(window.end)) {
            self.judged[word] &= !passed;
            self.unannounced[word] &= !passed;
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

    /// Returns the run of filtered numbers from `sequence` on; empty if `sequence` itself is not filtered.
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
    pub(crate) fn unannounced(&self) -> u32 {
        self.unannounced.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns one GAP for all numbers not yet reported, and marks them as reported; `None` if there are none.
    pub(crate) fn take_unannounced(&mut self, writer: EntityId, reader: EntityId) -> Option<Gap> {
        let mut unannounced = numbers(&self.unannounced, self.window()).peekable();
        let start = unannounced.next()?;
        let mut end = start + 1;
        while unannounced.next_if_eq(&end).is_some() {
            end += 1;
        }
        let mut list = SequenceNumberSet::new(SequenceNumber(end));
        for number in unannounced {
            // The list of one GAP has room for the whole window.
            list.insert(SequenceNumber(number));
        }
        let count = self.unannounced();
        self.unannounced = [0; WORDS];
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

/// Size in bytes of the longest GAP to one reader: INFO_DST, and GAP with full list and filteredCount.
const GAP_TO_ONE_BYTES: usize = INFO_DESTINATION_BYTES + 4 + 16 + 12 + 32 + 8;

/// Sequence numbers that a reader's filter rejects.
pub(crate) type Numbers = Range<SequenceNumber>;

/// Builds a GAP over filtered sequence numbers.
fn filtered_gap(writer: &Writer, reader: Guid, numbers: &Numbers) -> Gap {
    Gap {
        filtered: Some(numbers.end.get() - numbers.start.get()),
        ..gap(
            writer.guid.entity,
            reader.entity,
            numbers.start,
            numbers.end,
        )
    }
}

impl Writer {
    /// Appends GAPs for samples withheld from the readers at some of the writer's addresses, in at most `room` bytes.
    /// Returns the count of sequence numbers. GAPs that do not fit wait for the next datagram or a request.
    pub(crate) fn tell(
        &self,
        proxies: &mut Slab<ReaderProxyId, ReaderProxy>,
        to: AddressBits,
        mut room: usize,
        message: &mut MessageWriter<'_>,
    ) -> Result<u64, BufferTooSmall> {
        let mut announced = 0;
        for &index in &self.proxies {
            let Some(proxy) = proxies.get_mut(index) else {
                continue;
            };
            if room < GAP_TO_ONE_BYTES {
                break;
            }
            let has_unannounced = proxy
                .filtered_changes
                .as_ref()
                .is_some_and(|it| it.unannounced() > 0);
            let is_of_part = |place| to >> place & 1 == 1;
            if !has_unannounced || !self.place_of(proxy).is_some_and(is_of_part) {
                continue;
            }
            let reader = proxy.guid;
            let Some(gap) = proxy.take_unannounced(self) else {
                continue;
            };
            room -= INFO_DESTINATION_BYTES + gap.buffer_len();
            announced += gap.filtered.unwrap_or(0).unsigned_abs();
            message.info_destination(reader.prefix)?.gap(&gap)?;
        }
        Ok(announced)
    }
}

impl ReaderProxy {
    /// Returns whether samples were withheld from the reader without a GAP so far.
    pub(crate) fn has_unannounced(&self) -> bool {
        self.filtered_changes
            .as_ref()
            .is_some_and(|it| it.unannounced() > 0)
    }

    /// Returns a GAP over all withheld samples not yet covered by one.
    fn take_unannounced(&mut self, writer: &Writer) -> Option<Gap> {
        let filtered_changes = self.filtered_changes.as_mut()?;
        filtered_changes.take_unannounced(writer.guid.entity, self.guid.entity)
    }

    /// Next sequence number from `sequence` on that is recorded as filtered for this reader.
    pub(crate) fn next_filtered(&self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        self.filtered_changes.as_ref()?.next_from(sequence)
    }

    /// Drops records of filtered samples that the reader has acknowledged. Returns whether the reader has a filter.
    pub(crate) fn pass_filtered(&mut self) -> bool {
        let done_to = self.done_to();
        let filtered_changes = self.filtered_changes.as_mut();
        filtered_changes.is_some_and(|filtered_changes| {
            filtered_changes.pass(done_to);
            true
        })
    }
}

impl Writers {
    /// Sends a GAP for withheld samples, and a HEARTBEAT that demands a response. `None` if no such samples exist.
    pub(crate) fn send_unannounced(
        &mut self,
        shared: &mut Shared,
        index: ReaderProxyId,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let proxy = self.proxies.get_mut(index)?;
        let writer = self.table.get_mut(proxy.writer)?;
        let announced = proxy.take_unannounced(writer)?;
        let run = (announced.start.get()..announced.list.base().get()).map(SequenceNumber);
        for number in run.chain(&announced.list) {
            proxy.requested.remove(number);
        }
        let (guid, to) = (proxy.guid, proxy.address());
        let level = writer.level;
        writer.ledger.gaps += announced.filtered.unwrap_or(0).unsigned_abs();
        let heartbeat = writer.heartbeat_to(guid.entity);
        let bytes = shared.emit_message(buffer, |message| {
            let message = message.info_destination(guid.prefix)?.gap(&announced)?;
            message.heartbeat(&heartbeat)
        });
        Some(self.repaired(shared, index, level, bytes, to))
    }

    /// Returns the run of sequence numbers from `sequence` on that the reader's filter rejects, from the records or
    /// else by evaluating the filter. Returns `None` if the reader has no filter or wants that sample, or if the sample
    /// is gone. Fragmented samples are sent to all readers and are in no run.
    pub(crate) fn filtered_run(
        &self,
        index: ReaderProxyId,
        sequence: SequenceNumber,
    ) -> Option<Numbers> {
        let proxy = self.proxies.get(index)?;
        let noted = proxy.filtered_changes.as_ref()?.run_from(sequence);
        if !noted.is_empty() {
            return Some(noted);
        }
        let number = proxy.filter?;
        let writer = self.table.get(proxy.writer)?;
        let filters = writer.filters.as_ref()?;
        let history = writer.history.as_ref()?;
        let is_filtered_out = |sequence: SequenceNumber| {
            let found = history.get(sequence);
            sequence < writer.next_unsent
                && found.is_some_and(|(change, payload)| {
                    change.kind == ChangeKind::Alive
                        && payload.len() <= MAX_DATA_PAYLOAD_BYTES
                        && !writer.fragmenter.is_fragmented(payload.len())
                        && !filters.wants(number, payload)
                })
        };
        let mut end = sequence;
        for _ in 0..filters.run_length() {
            if !is_filtered_out(end) {
                break;
            }
            end = end.next();
        }
        (end > sequence).then_some(sequence..end)
    }

    /// Sends a GAP for filtered samples, preceded by one for removed samples from `gone_from` on.
    pub(crate) fn emit_filtered_gap(
        &mut self,
        shared: &mut Shared,
        index: ReaderProxyId,
        gone_from: SequenceNumber,
        numbers: &Numbers,
        buffer: &mut [u8],
    ) -> usize {
        let proxy = &mut self.proxies[index];
        let (reader, writer_index) = (proxy.guid, proxy.writer);
        if let Some(filtered_changes) = &mut proxy.filtered_changes {
            filtered_changes.mark_announced(numbers);
        }
        let writer = &mut self.table[writer_index];
        writer.filtered_from = writer.filtered_from.min(numbers.start);
        writer.ledger.gaps += (numbers.end.get() - gone_from.get()).unsigned_abs();
        let announced = filtered_gap(writer, reader, numbers);
        let gone = gap(writer.guid.entity, reader.entity, gone_from, numbers.start);
        shared.emit_message(buffer, |message| {
            message.info_destination(reader.prefix)?;
            if gone_from < numbers.start {
                message.gap(&gone)?;
            }
            message.gap(&announced)
        })
    }

    /// Answers a request for filtered samples with a GAP.
    pub(crate) fn answer_filtered(
        &mut self,
        shared: &mut Shared,
        index: ReaderProxyId,
        numbers: &Numbers,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let proxy = self.proxies.get_mut(index)?;
        for announced in proxy.requested.iter() {
            if numbers.contains(&announced) {
                proxy.requested.remove(announced);
            }
        }
        let (to, writer) = (proxy.address(), proxy.writer);
        let level = self.table.get(writer)?.level;
        let bytes = self.emit_filtered_gap(shared, index, numbers.start, numbers, buffer);
        Some(self.repaired(shared, index, level, bytes, to))
    }
}

const _: () = assert!(
    HEADER_BYTES + GAP_TO_ONE_BYTES + HEARTBEAT_BYTES <= BATCH_BYTES,
    "a GAP for one reader and a HEARTBEAT fit a shared datagram"
);

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const WINDOW: i64 = super::WINDOW as i64;

    fn noted(base: i64, all: &[i64]) -> FilteredChanges {
        let mut filtered_changes = FilteredChanges::new(SequenceNumber(base));
        for &number in all {
            filtered_changes.note(SequenceNumber(number), true);
        }
        filtered_changes
    }

    fn announced(gap: &Gap) -> Vec<i64> {
        let run = gap.start.get()..gap.list.base().get();
        run.chain(gap.list.iter().map(SequenceNumber::get))
            .collect()
    }

    #[test]
    fn recorded_numbers_are_announced_once_whatever_they_are() {
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
                let mut filtered_changes = noted(base, &all);
                assert_eq!(filtered_changes.first(), Some(SequenceNumber(all[0])));
                let gap = filtered_changes
                    .take_unannounced(EntityId::UNKNOWN, EntityId::UNKNOWN)
                    .expect("something was noted");
                assert_eq!(announced(&gap), all, "from {base} on");
                assert_eq!(gap.filtered, Some(all.len() as i64));
                let again = filtered_changes.take_unannounced(EntityId::UNKNOWN, EntityId::UNKNOWN);
                assert_eq!(again, None);
                assert_eq!(
                    filtered_changes.first(),
                    Some(SequenceNumber(all[0])),
                    "it is not acknowledged"
                );
            }
        }
    }

    #[test]
    fn what_is_acknowledged_makes_room_for_as_many_more() {
        let mut filtered_changes = noted(1, &[1, 2, 3]);
        let beyond = SequenceNumber(1 + WINDOW);
        assert!(!filtered_changes.has_place(beyond));
        filtered_changes.note(beyond, true);
        assert_eq!(
            filtered_changes.unannounced(),
            3,
            "a number beyond the window changes no other"
        );
        filtered_changes.pass(SequenceNumber(3));
        assert!(filtered_changes.has_place(beyond));
        assert_eq!(filtered_changes.first(), Some(SequenceNumber(3)));
        filtered_changes.note(beyond, true);
        assert_eq!(filtered_changes.run_from(beyond), beyond..beyond.next());
        filtered_changes.pass(SequenceNumber(10 * WINDOW));
        assert_eq!(filtered_changes.first(), None);
        filtered_changes.pass(SequenceNumber(5));
        assert!(
            !filtered_changes.has_place(SequenceNumber(6)),
            "it never goes back"
        );
    }

    #[test]
    fn a_run_ends_at_the_first_number_that_is_not_noted() {
        let mut filtered_changes = noted(250, &[251, 252, 253, 255, 256, 257]);
        let run = |filtered_changes: &FilteredChanges, from: i64| {
            let run = filtered_changes.run_from(SequenceNumber(from));
            run.start.get()..run.end.get()
        };
        assert_eq!(run(&filtered_changes, 250), 250..250);
        assert_eq!(run(&filtered_changes, 252), 252..254);
        assert_eq!(run(&filtered_changes, 255), 255..258);
        assert_eq!(run(&filtered_changes, 10_000), 10_000..10_000);
        let next =
            |filtered_changes: &FilteredChanges| filtered_changes.next_from(SequenceNumber(254));
        assert_eq!(next(&filtered_changes), Some(SequenceNumber(255)));
        filtered_changes.mark_announced(&(SequenceNumber(100)..SequenceNumber(100_000)));
        assert_eq!(run(&filtered_changes, 250), 250..250 + WINDOW);
        assert_eq!(filtered_changes.unannounced(), 0);
    }
}
