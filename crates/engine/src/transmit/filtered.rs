//! First transmissions with writer-side content filters (RTPS 2.5 §8.7.4).
//!
//! A step evaluates the filters for a run of samples, as many as one datagram holds. Each address gets the samples that
//! any of its readers wants, and addresses with the same samples share a datagram. The first datagram is sent by the
//! step that evaluates, the others one a step. Readers without a filter, some of which may be best effort, come first.
//!
//! Withheld samples are covered by a GAP (`told.rs`): with the next wanted sample, when a quarter of the history awaits
//! acknowledgement, or on request. A run of samples that no reader wants thus costs one GAP a reader. Filtered numbers
//! are recorded until acknowledged (`unwanted.rs`), so that they count as filtered even after KEEP_LAST or LIFESPAN has
//! removed the samples.
//!
//! Samples longer than a frame are sent to all. Filters come from peers, so their number and cost are bounded (by
//! `limits` and the filter compiler).

use heapless::Vec as BoundedVec;
use isolane_wire::{
    guid::GuidPrefix,
    rtps::{HEADER_BYTES, HEARTBEAT_BYTES, INFO_DESTINATION_BYTES, MessageWriter},
    sequence::SequenceNumber,
    time::Instant,
};

use super::first::Unsent;
use crate::{
    clock::Expired,
    engine::Engine,
    filters::{AddressBits, FilterBits, Part, Run, SampleBits, SampleOfRun},
    history::History,
    ids::WriterId,
    limits::{BATCH_BYTES, FILTERED_RUN, MAX_FILTERED_ADDRESSES, WHOLE_BYTES, WINDOW},
    work::{Destinations, Work, WorkKind},
    writer::{ReaderProxy, Writer},
};

/// Samples of a run for each destination, by its index.
type Gets = [SampleBits; MAX_FILTERED_ADDRESSES];

/// Size in bytes of a datagram without its samples and GAPs.
const AROUND_BYTES: usize = HEADER_BYTES + INFO_DESTINATION_BYTES + HEARTBEAT_BYTES;

/// Filters that reject each sample of a run.
type Asked = BoundedVec<FilterBits, FILTERED_RUN>;

impl Writer {
    /// Counts a sample that no reader wants as done.
    fn note_unwanted(&mut self, sequence: SequenceNumber) {
        self.pass_unsent(sequence);
        self.next_unsent = sequence.next();
        self.ledger.unwanted += 1;
        self.since_demand += 1;
    }

    /// Number of withheld samples after which readers get a GAP: a quarter of the history if that waits for
    /// acknowledgements. It is at most half of the window of records.
    fn tell_after(&self) -> u32 {
        let history = self.history.as_ref();
        let waits = |history: &History| history.depth() < history.capacity();
        let waits = history.is_some_and(|history| history.keeps_all() || waits(history));
        match waits {
            true => self.demand_after().min(WINDOW / 2),
            false => WINDOW / 2,
        }
    }

    /// Returns whether datagrams of the current run are still to be sent.
    pub(crate) fn has_part(&self) -> bool {
        let filters = self.filters.as_ref();
        filters.is_some_and(|filters| !filters.run.parts.is_empty())
    }

    /// Maximum size in bytes of the next datagram of a run, at least one frame to leave room for GAPs; `None` if none
    /// is to be sent.
    pub(super) fn next_part_bytes(&self) -> Option<usize> {
        let run = &self.filters.as_ref()?.run;
        let samples = self.samples_of(run, *run.parts.last()?);
        let bytes: usize = samples.map(|sample| sample.bytes()).sum();
        Some((AROUND_BYTES + bytes).max(BATCH_BYTES))
    }

    /// Samples of a part that are still in the history. Samples removed since the evaluation are requested by the
    /// readers and then covered by a GAP.
    fn samples_of(&self, run: &Run, part: Part) -> impl Iterator<Item = Unsent<'_>> + Clone {
        let samples = run.samples.iter().enumerate();
        let samples = samples.filter(move |(at, _)| part.samples >> at & 1 == 1);
        samples.filter_map(|(_, of)| self.sample(of.gone_from, of.sequence))
    }

    /// Index of the destination that serves a reader; `None` if none does, so that the reader is served alone on
    /// request.
    pub(super) fn place_of(&self, proxy: &ReaderProxy) -> Option<usize> {
        if !proxy.is_reachable || !proxy.is_reached {
            return None;
        }
        let place = |to| self.destinations.iter().position(|there| *there == to);
        let group = proxy.multicast.and_then(place);
        group.or_else(|| place(proxy.address()?))
    }

    /// Returns the next run of waiting samples, bounded by the datagram and the step, and the filters that reject each
    /// sample.
    fn next_run(
        &self,
        buffer_bytes: usize,
    ) -> Option<(BoundedVec<SampleOfRun, FILTERED_RUN>, Asked)> {
        let filters = self.filters.as_ref()?;
        let (mut samples, mut asked) = (BoundedVec::new(), Asked::new());
        let limit_bytes = self.batch_bytes().min(buffer_bytes);
        let mut bytes = HEADER_BYTES + HEARTBEAT_BYTES;
        let mut cursor = self.next_unsent;
        while samples.len() < filters.run_length()
            && let Some(next) = self.unsent_from(cursor)
        {
            bytes += next.bytes();
            let is_cut = self.fragmenter.is_cut(next.payload.len());
            if !samples.is_empty() && (is_cut || bytes > limit_bytes) {
                break;
            }
            let sequence = next.sequence;
            let held_back = match next.payload.len() <= WHOLE_BYTES {
                true => filters.holding_back(next.kind, next.payload),
                false => 0,
            };
            // Both have room for a whole run.
            let _ = asked.push(held_back);
            let _ = samples.push(SampleOfRun {
                sequence,
                bytes: next.payload.len(),
                gone_from: cursor,
            });
            cursor = sequence.next();
        }
        Some((samples, asked))
    }
}

impl ReaderProxy {
    /// Returns the samples of a run that the reader wants.
    fn wants(&self, samples: &[SampleOfRun], asked: &Asked) -> SampleBits {
        let all = all_of(samples.len());
        let Some((filter, unwanted)) = self.filter.zip(self.unwanted.as_ref()) else {
            return all;
        };
        let mut wants = all;
        for (at, (sample, held_back)) in samples.iter().zip(asked).enumerate() {
            let is_held_back = held_back >> filter & 1 == 1;
            if is_held_back && unwanted.has_place(sample.sequence) {
                wants &= !(1 << at);
            }
        }
        wants
    }
}

/// Bit set of the first `samples` samples.
fn all_of(samples: usize) -> SampleBits {
    SampleBits::MAX
        .checked_shr(SampleBits::BITS.saturating_sub(samples as u32))
        .unwrap_or(0)
}

impl Engine {
    /// Sends the next samples to the readers that want them. `None` if the unfiltered path applies.
    #[inline(never)]
    pub(super) fn send_filtered(
        &mut self,
        now: Instant,
        index: u16,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let writer = self.writers.get_mut(index)?;
        writer.data_filed = false;
        if !writer.has_part() {
            if writer.clock.is_some() && self.expire_history(now, index) != Expired::Nothing {
                // The next sample may be larger than the buffer was chosen for.
                self.file_first(index);
                return Some(self.data_work(index, 0, Destinations::Writer(WriterId(index))));
            }
            let writer = self.writers.get(index)?;
            let first = writer.unsent()?;
            if writer.fragmenter.is_cut(first.payload.len()) || writer.destinations.is_empty() {
                return None;
            }
            self.begin_run(index, buffer.len());
        }
        let mut bytes = 0;
        let mut to = Destinations::Writer(WriterId(index));
        let parts = &mut self.writers.get_mut(index)?.filters.as_mut()?.run.parts;
        if let Some(part) = parts.pop() {
            bytes = self.emit_part(index, part, buffer);
            if self.writers.get(index)?.destinations.len() != part.to.count_ones() as usize {
                to = Destinations::Subset(WriterId(index), part.to);
            }
        }
        let writer = self.writers.get_mut(index)?;
        if writer.has_part() {
            writer.data_filed = true;
            let priority = writer.data_priority();
            self.file(priority, WorkKind::Data, index);
        } else {
            let begins = writer.filters.as_ref()?.run.begins;
            self.file_after_first(now, index, begins);
        }
        Some(self.data_work(index, bytes, to))
    }

    fn data_work(&self, index: u16, bytes: usize, to: Destinations) -> Work {
        Work {
            kind: WorkKind::Data,
            level: self.writers.get(index).and_then(|writer| writer.level),
            bytes,
            to,
        }
    }

    /// Evaluates the filters for the next run, records filtered samples, and assigns the others to destinations.
    fn begin_run(&mut self, index: u16, buffer_bytes: usize) {
        let Some(writer) = self.writers.get(index) else {
            return;
        };
        let begins = writer.highest_acknowledged >= writer.next_unsent;
        let Some((samples, asked)) = writer.next_run(buffer_bytes) else {
            return;
        };
        let mut gets: Gets = [0; MAX_FILTERED_ADDRESSES];
        for &proxy in &writer.proxies {
            let proxy = self.reader_proxies.get(proxy);
            let place = proxy.and_then(|proxy| writer.place_of(proxy));
            if let (Some(proxy), Some(place)) = (proxy, place) {
                gets[place] |= proxy.wants(&samples, &asked);
            }
        }
        let mut unwanted_from = writer.unwanted_from;
        for &proxy in &writer.proxies {
            let Some(proxy) = self.reader_proxies.get_mut(proxy) else {
                continue;
            };
            let Some(place) = writer.place_of(proxy) else {
                continue;
            };
            let unwanted_bits = !proxy.wants(&samples, &asked);
            let Some(unwanted) = &mut proxy.unwanted else {
                continue;
            };
            for (at, sample) in samples.iter().enumerate() {
                if unwanted_bits >> at & 1 == 1 {
                    unwanted.note(sample.sequence, gets[place] >> at & 1 == 0);
                    unwanted_from = unwanted_from.min(sample.sequence);
                }
            }
        }
        if let Some(writer) = self.writers.get_mut(index) {
            writer.unwanted_from = unwanted_from;
        }
        self.enter_run(index, &samples, &gets, begins);
        self.tell_in_time(index, &gets);
    }

    /// Counts the samples of a run, and sets up its parts.
    fn enter_run(&mut self, index: u16, samples: &[SampleOfRun], gets: &Gets, begins: bool) {
        let Some(writer) = self.writers.get_mut(index) else {
            return;
        };
        let is_wanted = gets.iter().fold(0, |all, gets| all | gets);
        for (at, sample) in samples.iter().enumerate() {
            match is_wanted >> at & 1 {
                0 => writer.note_unwanted(sample.sequence),
                _ => writer.note_first(sample.sequence, sample.bytes, true),
            }
        }
        let demands = writer.since_demand >= writer.demand_after();
        let is_last = writer.next_unsent > writer.last;
        let has_reliable_reader = writer.has_reliable_reader();
        let run = writer.filters.as_mut().map(|filters| &mut filters.run);
        let Some(run) = run else { return };
        *run = Run {
            samples: samples.iter().copied().collect(),
            parts: parts_of(gets),
            heartbeat: (has_reliable_reader && (demands || is_last)).then_some(!demands),
            begins,
        };
        // A part with all samples is sent first.
        let all = all_of(samples.len());
        run.parts.sort_unstable_by_key(|part| part.samples == all);
    }

    /// Files GAPs for withheld samples of readers that get no part of this run, when an acknowledgement is due.
    fn tell_in_time(&mut self, index: u16, gets: &Gets) {
        let Some(writer) = self.writers.get_mut(index) else {
            return;
        };
        let tell_after = writer.tell_after();
        let is_due = writer.since_demand >= tell_after;
        if is_due {
            writer.since_demand = 0;
        }
        for at in 0.. {
            let Some(writer) = self.writers.get(index) else {
                return;
            };
            let Some(&proxy_index) = writer.proxies.get(at) else {
                return;
            };
            let Some(proxy) = self.reader_proxies.get(proxy_index) else {
                continue;
            };
            let untold = proxy.unwanted.as_ref().map_or(0, |it| it.untold());
            let is_told = || writer.place_of(proxy).is_some_and(|place| gets[place] != 0);
            let is_time = untold > 0 && is_due || untold >= WINDOW / 2;
            if is_time && !is_told() {
                self.file_repair(proxy_index);
            }
        }
    }

    /// Writes one part of a run: GAPs for withheld samples, the samples, and a HEARTBEAT where one is due.
    fn emit_part(&mut self, index: u16, part: Part, buffer: &mut [u8]) -> usize {
        let header = self.header;
        let Some(writer) = self.writers.get(index) else {
            return 0;
        };
        let Some(run) = writer.filters.as_ref().map(|filters| &filters.run) else {
            return 0;
        };
        let samples = writer.samples_of(run, part);
        let heartbeat = run.heartbeat;
        let bytes: usize = samples.clone().map(|sample| sample.bytes()).sum();
        let room = writer.batch_bytes().min(buffer.len());
        let room = room.saturating_sub(AROUND_BYTES + bytes);
        let written = MessageWriter::new(buffer, &header).and_then(|mut message| {
            let told = writer.tell(&mut self.reader_proxies, part.to, room, &mut message)?;
            if told > 0 {
                // The following submessages are for all participants again (RTPS 2.5 §8.3.8.8).
                message.info_destination(GuidPrefix::UNKNOWN)?;
            }
            let mut last = None;
            for sample in samples {
                sample.emit(&mut message, last)?;
                last = Some(sample.timestamp);
            }
            Ok((message, told))
        });
        let Ok((mut message, told)) = written else {
            self.counters.buffer_too_small += 1;
            return 0;
        };
        let Some(writer) = self.writers.get_mut(index) else {
            return 0;
        };
        writer.ledger.gaps += told;
        if let Some(is_final) = heartbeat {
            let heartbeat = writer.heartbeat(is_final);
            // If it does not fit, the timer's HEARTBEAT follows.
            let _ = message.heartbeat(&heartbeat);
        }
        message.len()
    }
}

/// Groups destinations with the same samples into parts.
fn parts_of(gets: &Gets) -> BoundedVec<Part, MAX_FILTERED_ADDRESSES> {
    let mut parts = BoundedVec::<Part, MAX_FILTERED_ADDRESSES>::new();
    for (place, &samples) in gets.iter().enumerate() {
        let to: AddressBits = 1 << place;
        if samples == 0 {
            continue;
        }
        match parts.iter_mut().find(|part| part.samples == samples) {
            Some(part) => part.to |= to,
            // There are at most as many parts as addresses.
            None => drop(parts.push(Part { samples, to })),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_get_the_same_share_a_datagram() {
        let mut gets: Gets = [0; MAX_FILTERED_ADDRESSES];
        gets[..6].copy_from_slice(&[0b111, 0b010, 0b111, 0, 0b010, 0b100]);
        let parts = parts_of(&gets);
        let found = parts.iter().map(|part| (part.samples, part.to));
        let expected = [(0b111, 0b101), (0b010, 0b1_0010), (0b100, 0b10_0000)];
        assert!(found.eq(expected), "{parts:?}");
    }

    #[test]
    fn there_is_a_bit_for_each_sample() {
        assert_eq!((all_of(0), all_of(1), all_of(3)), (0, 1, 0b111));
        assert_eq!(all_of(FILTERED_RUN), SampleBits::MAX);
    }
}
