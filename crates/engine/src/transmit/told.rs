//! GAPs for samples that the writer's content filters have withheld from readers, with all numbers counted as filtered
//! (RTPS 2.5 §8.3.8.4). Each GAP is for one reader: another reader at the same address may be new, its filter not yet
//! known.

use isolane_wire::{
    BufferTooSmall,
    guid::Guid,
    rtps::{Gap, HEADER_BYTES, HEARTBEAT_BYTES, INFO_DESTINATION_BYTES, MessageWriter},
    sequence::SequenceNumber,
};

use super::gap;
use crate::{
    engine::Engine,
    filters::AddressBits,
    history::ChangeKind,
    limits::{BATCH_BYTES, WHOLE_BYTES},
    table::Table,
    work::Work,
    writer::{ReaderProxy, Writer},
};

/// Size in bytes of the longest GAP to one reader: INFO_DST, and GAP with full list and filteredCount.
const GAP_TO_ONE_BYTES: usize = INFO_DESTINATION_BYTES + 4 + 16 + 12 + 32 + 8;

/// Sequence numbers that a reader's filter rejects.
pub(super) type Numbers = core::ops::Range<SequenceNumber>;

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
    pub(super) fn tell(
        &self,
        proxies: &mut Table<ReaderProxy>,
        to: AddressBits,
        mut room: usize,
        message: &mut MessageWriter<'_>,
    ) -> Result<u64, BufferTooSmall> {
        let mut told = 0;
        for &index in &self.proxies {
            let Some(proxy) = proxies.get_mut(index) else {
                continue;
            };
            if room < GAP_TO_ONE_BYTES {
                break;
            }
            let is_untold = proxy.unwanted.as_ref().is_some_and(|it| it.untold() > 0);
            let is_of_part = |place| to >> place & 1 == 1;
            if !is_untold || !self.place_of(proxy).is_some_and(is_of_part) {
                continue;
            }
            let reader = proxy.guid;
            let Some(gap) = proxy.take_untold(self) else {
                continue;
            };
            room -= INFO_DESTINATION_BYTES + gap.buffer_len();
            told += gap.filtered.unwrap_or(0).unsigned_abs();
            message.info_destination(reader.prefix)?.gap(&gap)?;
        }
        Ok(told)
    }
}

impl ReaderProxy {
    /// Returns whether samples were withheld from the reader without a GAP so far.
    pub(super) fn has_untold(&self) -> bool {
        self.unwanted.as_ref().is_some_and(|it| it.untold() > 0)
    }

    /// Returns a GAP over all withheld samples not yet covered by one.
    fn take_untold(&mut self, writer: &Writer) -> Option<Gap> {
        let unwanted = self.unwanted.as_mut()?;
        unwanted.take_untold(writer.guid.entity, self.guid.entity)
    }

    /// Next sequence number from `sequence` on that is recorded as filtered for this reader.
    pub(super) fn next_unwanted(&self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        self.unwanted.as_ref()?.next_from(sequence)
    }

    /// Drops records of filtered samples that the reader has acknowledged. Returns whether it has a filter.
    pub(crate) fn pass_unwanted(&mut self) -> bool {
        let done_to = self.done_to();
        let unwanted = self.unwanted.as_mut();
        unwanted.is_some_and(|unwanted| {
            unwanted.pass(done_to);
            true
        })
    }
}

impl Engine {
    /// Sends a GAP for withheld samples, and a HEARTBEAT that demands a response. `None` if no such samples exist.
    pub(super) fn send_untold(&mut self, index: u16, buffer: &mut [u8]) -> Option<Work> {
        let header = self.header;
        let proxy = self.reader_proxies.get_mut(index)?;
        let writer = self.writers.get_mut(proxy.writer)?;
        let told = proxy.take_untold(writer)?;
        let run = (told.start.get()..told.list.base().get()).map(SequenceNumber);
        for number in run.chain(&told.list) {
            proxy.requested.remove(number);
        }
        let (guid, to) = (proxy.guid, proxy.address());
        let level = writer.level;
        writer.ledger.gaps += told.filtered.unwrap_or(0).unsigned_abs();
        let heartbeat = writer.heartbeat_to(guid.entity);
        let bytes = self.finish(
            buffer,
            |message| {
                let message = message.info_destination(guid.prefix)?.gap(&told)?;
                message.heartbeat(&heartbeat).map(drop)
            },
            header,
        );
        Some(self.repaired(index, level, bytes, to))
    }

    /// Returns the run of sequence numbers from `sequence` on that the reader's filter rejects, from the records or
    /// else by evaluating the filter. Returns `None` if the reader has no filter or wants that sample, or if the sample
    /// is gone. Fragmented samples are sent to all readers and are in no run.
    pub(super) fn unwanted_run(&self, index: u16, sequence: SequenceNumber) -> Option<Numbers> {
        let proxy = self.reader_proxies.get(index)?;
        let noted = proxy.unwanted.as_ref()?.run_from(sequence);
        if !noted.is_empty() {
            return Some(noted);
        }
        let number = proxy.filter?;
        let writer = self.writers.get(proxy.writer)?;
        let filters = writer.filters.as_ref()?;
        let history = writer.history.as_ref()?;
        let is_unwanted = |sequence: SequenceNumber| {
            let found = history.get(sequence);
            sequence < writer.next_unsent
                && found.is_some_and(|(change, payload)| {
                    change.kind == ChangeKind::Alive
                        && payload.len() <= WHOLE_BYTES
                        && !writer.fragmenter.is_cut(payload.len())
                        && !filters.wants(number, payload)
                })
        };
        let mut end = sequence;
        for _ in 0..filters.run_length() {
            if !is_unwanted(end) {
                break;
            }
            end = end.next();
        }
        (end > sequence).then_some(sequence..end)
    }

    /// Sends a GAP for filtered samples, preceded by one for removed samples from `gone_from` on.
    pub(super) fn emit_unwanted(
        &mut self,
        index: u16,
        gone_from: SequenceNumber,
        numbers: &Numbers,
        buffer: &mut [u8],
    ) -> usize {
        let header = self.header;
        let Some(proxy) = self.reader_proxies.get_mut(index) else {
            return 0;
        };
        let (reader, writer_index) = (proxy.guid, proxy.writer);
        if let Some(unwanted) = &mut proxy.unwanted {
            unwanted.note_told(numbers);
        }
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return 0;
        };
        writer.unwanted_from = writer.unwanted_from.min(numbers.start);
        writer.ledger.gaps += (numbers.end.get() - gone_from.get()).unsigned_abs();
        let told = filtered_gap(writer, reader, numbers);
        let gone = gap(writer.guid.entity, reader.entity, gone_from, numbers.start);
        self.finish(
            buffer,
            |message| {
                message.info_destination(reader.prefix)?;
                if gone_from < numbers.start {
                    message.gap(&gone)?;
                }
                message.gap(&told).map(drop)
            },
            header,
        )
    }

    /// Answers a request for filtered samples with a GAP.
    pub(super) fn answer_unwanted(
        &mut self,
        index: u16,
        numbers: &Numbers,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let proxy = self.reader_proxies.get_mut(index)?;
        for told in proxy.requested.iter() {
            if numbers.contains(&told) {
                proxy.requested.remove(told);
            }
        }
        let (to, writer) = (proxy.address(), proxy.writer);
        let level = self.writers.get(writer)?.level;
        let bytes = self.emit_unwanted(index, numbers.start, numbers, buffer);
        Some(self.repaired(index, level, bytes, to))
    }
}

const _: () = assert!(
    HEADER_BYTES + GAP_TO_ONE_BYTES + HEARTBEAT_BYTES <= BATCH_BYTES,
    "a GAP for one reader and a HEARTBEAT fit a shared datagram"
);
