//! How readers are told of the samples that were not sent to them because they do not want them: by GAPs all of whose
//! numbers count as filtered (RTPS 2.5 §8.3.8.4), each for one reader alone, since another at the same address may be
//! new, and its filter not yet known.

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

/// Bytes of the longest GAP for one reader alone: INFO_DST, and a GAP with a full list and a count.
const GAP_TO_ONE_BYTES: usize = INFO_DESTINATION_BYTES + 4 + 16 + 12 + 32 + 8;

/// Numbers that a reader does not want.
pub(super) type Numbers = core::ops::Range<SequenceNumber>;

/// A GAP over numbers all of which a filter holds back.
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
    /// Appends, in so many bytes, what the readers at some of its addresses were not sent; how many numbers. What finds
    /// no room waits for the next datagram, or to be asked for.
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
    /// Whether there is something that it was not sent, and not told of.
    pub(super) fn has_untold(&self) -> bool {
        self.unwanted.as_ref().is_some_and(|it| it.untold() > 0)
    }

    /// A GAP over all of that.
    fn take_untold(&mut self, writer: &Writer) -> Option<Gap> {
        let unwanted = self.unwanted.as_mut()?;
        unwanted.take_untold(writer.guid.entity, self.guid.entity)
    }

    /// The next number from `sequence` on that is noted as unwanted.
    pub(super) fn next_unwanted(&self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        self.unwanted.as_ref()?.next_from(sequence)
    }

    /// It has acknowledged so much; true: it may be that nothing is noted of it any more.
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
    /// A GAP over what a reader was not sent, and a HEARTBEAT that demands its acknowledgement. `None`: there is
    /// nothing like that.
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

    /// The run of numbers from `sequence` on that a reader asks for, or is due to get, and does not want: as was noted,
    /// else as its filter says of what is kept. `None`: it wants that one, or it is gone, or the reader has no filter. One
    /// that leaves in fragments was sent to all, and is none.
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

    /// A GAP over numbers that a reader does not want, in front of it one over those from `gone_from` on, which are
    /// gone.
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

    /// A GAP over what a reader asks for and does not want.
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
