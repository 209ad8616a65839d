//! First transmissions of a writer that knows what some of its readers do not want (RTPS 2.5 §8.7.4).
//!
//! A step asks the filters about a run of samples: as many as one datagram holds. Each address gets those that any of
//! its readers wants, and all addresses that get the same share one datagram. So readers without a filter share one as
//! they would without the others, and readers of the same filter share theirs. The first datagram leaves with the
//! step that asks, the others one a step: readers without a filter, some of which may be best effort, come first.
//!
//! What an address does not get its readers are told by a GAP (`told.rs`), with the next sample that they want, or,
//! where none comes, when a quarter of the history waits to be acknowledged, or when they ask. So a run of samples
//! that nobody wants costs one GAP a reader. Each is noted until it is acknowledged (`unwanted.rs`), so that it
//! is called unwanted also when KEEP_LAST or LIFESPAN has taken it from the history meanwhile.
//!
//! What is longer than a frame goes to all. Filters come from peers: how many are asked, and what they may cost, is
//! bounded (`limits`, and whoever compiles them).

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

/// What each address gets of a run, by its place.
type Gets = [SampleBits; MAX_FILTERED_ADDRESSES];

/// What a datagram of a run has beside its samples, and the GAPs that tell what is not among them.
const AROUND_BYTES: usize = HEADER_BYTES + INFO_DESTINATION_BYTES + HEARTBEAT_BYTES;

/// The filters that hold back each sample of a run.
type Asked = BoundedVec<FilterBits, FILTERED_RUN>;

impl Writer {
    /// Nobody wants the sample: it counts as done.
    fn note_unwanted(&mut self, sequence: SequenceNumber) {
        self.pass_unsent(sequence);
        self.next_unsent = sequence.next();
        self.ledger.unwanted += 1;
        self.since_demand += 1;
    }

    /// Samples after which readers are told what was not sent to them: a quarter of the history, as far as it waits
    /// for them to acknowledge, but never more than half of what can be noted.
    fn tell_after(&self) -> u32 {
        let history = self.history.as_ref();
        let waits = |history: &History| history.depth() < history.capacity();
        let waits = history.is_some_and(|history| history.keeps_all() || waits(history));
        match waits {
            true => self.demand_after().min(WINDOW / 2),
            false => WINDOW / 2,
        }
    }

    /// Whether something is still to be sent of a run.
    pub(crate) fn has_part(&self) -> bool {
        let filters = self.filters.as_ref();
        filters.is_some_and(|filters| !filters.run.parts.is_empty())
    }

    /// Bytes of the next datagram of a run, if one is still to be sent: as much as its samples take, and a GAP in front of
    /// them where there is room in a frame that others have as well.
    pub(super) fn next_part_bytes(&self) -> Option<usize> {
        let run = &self.filters.as_ref()?.run;
        let samples = self.samples_of(run, *run.parts.last()?);
        let bytes: usize = samples.map(|sample| sample.bytes()).sum();
        Some((AROUND_BYTES + bytes).max(BATCH_BYTES))
    }

    /// What is still there of the samples of a part. What was pushed out since it was asked about is asked for, and told
    /// then.
    fn samples_of(&self, run: &Run, part: Part) -> impl Iterator<Item = Unsent<'_>> + Clone {
        let samples = run.samples.iter().enumerate();
        let samples = samples.filter(move |(at, _)| part.samples >> at & 1 == 1);
        samples.filter_map(|(_, of)| self.sample(of.gone_from, of.sequence))
    }

    /// Where first transmissions for this reader go, by its place among the destinations; `None`: it is reached by
    /// none of them, is served alone, and asks.
    pub(super) fn place_of(&self, proxy: &ReaderProxy) -> Option<usize> {
        if !proxy.is_reachable || !proxy.is_reached {
            return None;
        }
        let place = |to| self.destinations.iter().position(|there| *there == to);
        let group = proxy.multicast.and_then(place);
        group.or_else(|| place(proxy.address()?))
    }

    /// The samples that wait, as many as a datagram of so many bytes holds and may be asked about in a step; which
    /// filters hold each back.
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
            // Both are as long as a run can be.
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
    /// Which samples of a run the reader wants.
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

/// The bits of so many samples.
fn all_of(samples: usize) -> SampleBits {
    SampleBits::MAX
        .checked_shr(SampleBits::BITS.saturating_sub(samples as u32))
        .unwrap_or(0)
}

impl Engine {
    /// First transmission of the next samples to those that want them. `None`: as by a writer without filters.
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
                // What comes first now may be longer than the buffer was chosen for.
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

    /// Asks about the next samples, notes who does not want them, and divides them among the addresses.
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

    /// Counts the samples of a run, and files what each address gets of it.
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
        // Whoever gets all is sent to first.
        let all = all_of(samples.len());
        run.parts.sort_unstable_by_key(|part| part.samples == all);
    }

    /// Files what readers were not sent, where it is time that they acknowledge it, and no part tells them.
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

    /// Writes what some addresses get of a run: in front of it what their readers were not sent, behind it a
    /// HEARTBEAT where one is due.
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
                // What follows is for everybody again (RTPS 2.5 §8.3.8.8).
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
            // Where it finds no room the timer's heartbeat follows.
            let _ = message.heartbeat(&heartbeat);
        }
        message.len()
    }
}

/// Addresses that get the same share a part.
fn parts_of(gets: &Gets) -> BoundedVec<Part, MAX_FILTERED_ADDRESSES> {
    let mut parts = BoundedVec::<Part, MAX_FILTERED_ADDRESSES>::new();
    for (place, &samples) in gets.iter().enumerate() {
        let to: AddressBits = 1 << place;
        if samples == 0 {
            continue;
        }
        match parts.iter_mut().find(|part| part.samples == samples) {
            Some(part) => part.to |= to,
            // No more parts than addresses.
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
