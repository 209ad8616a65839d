//! First transmissions with writer-side content filters (RTPS 2.5 §8.7.4).
//!
//! A step evaluates the filters for a run of samples, as many as one datagram holds. Each address gets the samples that
//! any of its readers wants, and addresses with the same samples share a datagram. The step that evaluates sends the
//! first datagram, and each further step sends one more. The datagram with all samples, for readers without a filter,
//! comes first.
//!
//! A GAP covers the samples withheld from a reader (`filtered_changes`). It is sent with the next sample that the
//! reader wants, when a quarter of the history awaits acknowledgement, or on request. A run of samples that no reader
//! wants thus costs one GAP a reader. Filtered numbers are recorded until acknowledged, so that they count as filtered
//! even after KEEP_LAST or LIFESPAN has removed the samples.
//!
//! Samples longer than an Ethernet frame are sent to all readers. Filters come from peers, so `limits` and the filter
//! compiler bound their number and cost.
//!
//! Each distinct filter is evaluated once on a run of samples, however many readers have it.

use alloc::{boxed::Box, vec::Vec};

use heapless::Vec as BoundedVec;
use isolane_wire::{
    guid::GuidPrefix,
    message::{HEADER_BYTES, HEARTBEAT_BYTES, INFO_DESTINATION_BYTES, MessageWriter},
    qos::{Liveliness, LivelinessKind},
    sequence::SequenceNumber,
    time::{Duration, Instant},
};

use crate::{
    content_filter::{CompileFilter, ContentFilter, FilterText},
    limits::{
        BATCH_BYTES, FILTERED_RUN, MAX_DATA_PAYLOAD_BYTES, MAX_FILTER_STEPS,
        MAX_FILTERED_ADDRESSES, MAX_FILTERS, WINDOW,
    },
    participant::Shared,
    slab::{ReaderProxyId, WriterId},
    timed_qos::Expired,
    work::{Destinations, Filed, Work, WorkKind},
    writer::{
        NOTHING_FILTERED, Writer, Writers,
        filtered_changes::FilteredChanges,
        history::{ChangeKind, History},
        reliability::ReaderProxy,
        write::Unsent,
    },
};

/// Samples of a run for each destination, by its index.
type Gets = [SampleBits; MAX_FILTERED_ADDRESSES];

/// Size in bytes of a datagram without its samples and GAPs.
const AROUND_BYTES: usize = HEADER_BYTES + INFO_DESTINATION_BYTES + HEARTBEAT_BYTES;

/// For each sample of a run, the filters that reject it.
type Asked = BoundedVec<FilterBits, FILTERED_RUN>;

impl Writer {
    /// Counts a sample that no reader wants as filtered.
    fn note_filtered(&mut self, sequence: SequenceNumber) {
        self.pass_unsent(sequence);
        self.next_unsent = sequence.next();
        self.ledger.content_filtered += 1;
        self.since_demand += 1;
    }

    /// Number of withheld samples after which readers get a GAP: half of the window of records. If the history waits
    /// for acknowledgements, a quarter of the history instead, if that is less.
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
    pub(crate) fn next_part_bytes(&self) -> Option<usize> {
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
    pub(crate) fn place_of(&self, proxy: &ReaderProxy) -> Option<usize> {
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
            let is_fragmented = self.fragmenter.is_fragmented(next.payload.len());
            if !samples.is_empty() && (is_fragmented || bytes > limit_bytes) {
                break;
            }
            let sequence = next.sequence;
            let held_back = match next.payload.len() <= MAX_DATA_PAYLOAD_BYTES {
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
        let Some((filter, filtered_changes)) = self.filter.zip(self.filtered_changes.as_ref())
        else {
            return all;
        };
        let mut wants = all;
        for (at, (sample, held_back)) in samples.iter().zip(asked).enumerate() {
            let is_held_back = held_back >> filter & 1 == 1;
            if is_held_back && filtered_changes.has_place(sample.sequence) {
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

impl Writers {
    /// Sends the next samples to the readers that want them. `None` if the unfiltered path applies.
    #[inline(never)]
    pub(crate) fn send_filtered(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: WriterId,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let writer = self.table.get_mut(index)?;
        writer.data_filed = false;
        if !writer.has_part() {
            if writer.clock.is_some() && self.expire_history(shared, now, index) != Expired::Nothing
            {
                // The next sample may be larger than the buffer was chosen for.
                self.schedule_first(shared, index);
                return Some(self.data_work(index, 0, Destinations::Writer(index)));
            }
            let writer = self.table.get_mut(index)?;
            let first_bytes = writer.unsent()?.payload.len();
            if writer.fragmenter.is_fragmented(first_bytes)
                || writer.destinations.is_empty()
                || writer.holds_for_window()
            {
                return None;
            }
            self.begin_run(shared, index, buffer.len());
        }
        let mut bytes = 0;
        let mut to = Destinations::Writer(index);
        let parts = &mut self.table.get_mut(index)?.filters.as_mut()?.run.parts;
        if let Some(part) = parts.pop() {
            bytes = self.emit_part(shared, index, part, buffer);
            if self.table.get(index)?.destinations.len() != part.to.count_ones() as usize {
                to = Destinations::Subset(index, part.to);
            }
        }
        let writer = self.table.get_mut(index)?;
        if writer.has_part() {
            writer.data_filed = true;
            let queue = writer.data_queue();
            shared.schedule(queue, Filed::Data(index));
        } else {
            let begins = writer.filters.as_ref()?.run.begins;
            self.schedule_after_first(shared, now, index, begins);
        }
        Some(self.data_work(index, bytes, to))
    }

    fn data_work(&self, index: WriterId, bytes: usize, to: Destinations) -> Work {
        Work {
            kind: WorkKind::Data,
            level: self.table.get(index).and_then(|writer| writer.level),
            bytes,
            to,
        }
    }

    /// Evaluates the filters for the next run, records filtered samples, and assigns the others to destinations.
    fn begin_run(&mut self, shared: &mut Shared, index: WriterId, buffer_bytes: usize) {
        let writer = &self.table[index];
        let begins = writer.highest_acknowledged >= writer.next_unsent;
        let Some((samples, asked)) = writer.next_run(buffer_bytes) else {
            return;
        };
        let mut gets: Gets = [0; MAX_FILTERED_ADDRESSES];
        for &proxy in &writer.proxies {
            let proxy = self.proxies.get(proxy);
            let place = proxy.and_then(|proxy| writer.place_of(proxy));
            if let (Some(proxy), Some(place)) = (proxy, place) {
                gets[place] |= proxy.wants(&samples, &asked);
            }
        }
        let mut filtered_from = writer.filtered_from;
        for &proxy in &writer.proxies {
            let proxy = &mut self.proxies[proxy];
            let Some(place) = writer.place_of(proxy) else {
                continue;
            };
            let rejected_bits = !proxy.wants(&samples, &asked);
            let Some(filtered_changes) = &mut proxy.filtered_changes else {
                continue;
            };
            for (at, sample) in samples.iter().enumerate() {
                if rejected_bits >> at & 1 == 1 {
                    filtered_changes.note(sample.sequence, gets[place] >> at & 1 == 0);
                    filtered_from = filtered_from.min(sample.sequence);
                }
            }
        }
        if let Some(writer) = self.table.get_mut(index) {
            writer.filtered_from = filtered_from;
        }
        self.enter_run(index, &samples, &gets, begins);
        self.tell_in_time(shared, index, &gets);
    }

    /// Counts the samples of a run, and sets up its parts.
    fn enter_run(&mut self, index: WriterId, samples: &[SampleOfRun], gets: &Gets, begins: bool) {
        let writer = &mut self.table[index];
        let is_wanted = gets.iter().fold(0, |all, gets| all | gets);
        for (at, sample) in samples.iter().enumerate() {
            match is_wanted >> at & 1 {
                0 => writer.note_filtered(sample.sequence),
                _ => writer.note_first(sample.sequence, sample.bytes, true),
            }
        }
        let demands = writer.demands_answer();
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
    fn tell_in_time(&mut self, shared: &mut Shared, index: WriterId, gets: &Gets) {
        let writer = &mut self.table[index];
        let tell_after = writer.tell_after();
        let is_due = writer.since_demand >= tell_after;
        if is_due {
            writer.since_demand = 0;
        }
        for at in 0.. {
            let writer = &self.table[index];
            let Some(&proxy_index) = writer.proxies.get(at) else {
                return;
            };
            let proxy = &self.proxies[proxy_index];
            let unannounced = proxy
                .filtered_changes
                .as_ref()
                .map_or(0, |it| it.unannounced());
            let is_announced = || writer.place_of(proxy).is_some_and(|place| gets[place] != 0);
            let is_time = unannounced > 0 && is_due || unannounced >= WINDOW / 2;
            if is_time && !is_announced() {
                self.schedule_repair(shared, proxy_index);
            }
        }
    }

    /// Writes one part of a run: GAPs for withheld samples, the samples, and a HEARTBEAT where one is due.
    fn emit_part(
        &mut self,
        shared: &mut Shared,
        index: WriterId,
        part: Part,
        buffer: &mut [u8],
    ) -> usize {
        let header = shared.header;
        let writer = &self.table[index];
        let Some(run) = writer.filters.as_ref().map(|filters| &filters.run) else {
            return 0;
        };
        let samples = writer.samples_of(run, part);
        let heartbeat = run.heartbeat;
        let bytes: usize = samples.clone().map(|sample| sample.bytes()).sum();
        let room = writer.batch_bytes().min(buffer.len());
        let room = room.saturating_sub(AROUND_BYTES + bytes);
        let written = MessageWriter::new(buffer, &header).and_then(|mut message| {
            let announced = writer.tell(&mut self.proxies, part.to, room, &mut message)?;
            if announced > 0 {
                // The following submessages are for all participants again (RTPS 2.5 §8.3.8.8).
                message.info_destination(GuidPrefix::UNKNOWN)?;
            }
            let mut last = None;
            for sample in samples {
                sample.emit(&mut message, last)?;
                last = Some(sample.timestamp);
            }
            Ok((message, announced))
        });
        let Ok((mut message, announced)) = written else {
            shared.counters.buffer_too_small += 1;
            return 0;
        };
        let writer = &mut self.table[index];
        writer.ledger.gaps += announced;
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

/// Set of a writer's filters, one bit each.
pub(crate) type FilterBits = u16;

/// Set of a writer's addresses, one bit each, by index in [`destinations`](crate::LocalParticipant::destinations).
pub(crate) type AddressBits = u64;

/// Set of the samples of a [`Run`], one bit each.
pub(crate) type SampleBits = u16;

/// Filters evaluated by a writer, by number.
#[derive(Debug)]
pub(crate) struct Filters {
    asked: Vec<Option<CompiledFilter>>,
    pub(crate) run: Run,
}

#[derive(Debug)]
struct CompiledFilter {
    text: FilterText,
    filter: ContentFilter,
}

/// Samples evaluated and sent together. Addresses that get the same of these samples share a datagram.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) samples: BoundedVec<SampleOfRun, FILTERED_RUN>,
    /// Datagrams still to be sent; the last one is next.
    pub(crate) parts: BoundedVec<Part, MAX_FILTERED_ADDRESSES>,
    /// Appends a HEARTBEAT to each part; the value is its final flag.
    pub(crate) heartbeat: Option<bool>,
    /// Some reader had acknowledged everything before the run.
    pub(crate) begins: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleOfRun {
    pub(crate) sequence: SequenceNumber,
    /// Payload size in bytes.
    pub(crate) bytes: usize,
    /// Numbers from this one up to `sequence` are gone.
    pub(crate) gone_from: SequenceNumber,
}

/// Samples for a set of addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) samples: SampleBits,
    pub(crate) to: AddressBits,
}

impl Filters {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            asked: Vec::new(),
            run: Run::default(),
        })
    }

    /// Returns the number of the filter with this text, compiling it if needed. Returns `None` if it cannot be
    /// compiled, or the number or cost of filters is at its bound.
    pub(crate) fn ask(&mut self, text: &FilterText, compile: CompileFilter) -> Option<u8> {
        let mut there = (0..self.asked.len()).filter_map(|number| u8::try_from(number).ok());
        if let Some(there) = there.find(|&number| self.asks(number, text)) {
            return Some(there);
        }
        if self.asked.iter().flatten().count() >= MAX_FILTERS {
            return None;
        }
        let filter = text.compiled(compile)?;
        if self.steps() + filter.steps() > MAX_FILTER_STEPS {
            return None;
        }
        let text = text.clone();
        let asked = Some(CompiledFilter { text, filter });
        let place = match self.asked.iter().position(Option::is_none) {
            Some(place) => {
                self.asked[place] = asked;
                place
            }
            None => {
                self.asked.push(asked);
                self.asked.len() - 1
            }
        };
        u8::try_from(place).ok()
    }

    /// Returns whether filter `number` equals the announced one.
    pub(crate) fn asks(&self, number: u8, text: &FilterText) -> bool {
        let asked = self.asked.get(usize::from(number));
        let asked = asked.and_then(Option::as_ref);
        asked.is_some_and(|asked| asked.text.asks_the_same(text))
    }

    pub(crate) fn keep(&mut self, used: FilterBits) {
        for (number, asked) in self.asked.iter_mut().enumerate() {
            if used >> number & 1 == 0 {
                *asked = None;
            }
        }
    }

    /// Returns the filters that reject a sample.
    pub(crate) fn holding_back(&self, kind: ChangeKind, payload: &[u8]) -> FilterBits {
        let mut bits = 0;
        for (number, asked) in self.asked.iter().enumerate() {
            let asked = asked.as_ref();
            let holds_back = asked.is_some_and(|it| it.filter.holds_back(kind, payload));
            bits |= FilterBits::from(holds_back) << number;
        }
        bits
    }

    pub(crate) fn wants(&self, number: u8, payload: &[u8]) -> bool {
        let asked = self.asked.get(usize::from(number));
        let asked = asked.and_then(Option::as_ref);
        asked.is_none_or(|asked| asked.filter.wants(payload))
    }

    /// Returns the steps of all filters for one sample.
    fn steps(&self) -> u32 {
        let asked = self.asked.iter().flatten();
        asked.map(|asked| asked.filter.steps()).sum()
    }

    /// Returns the number of samples that may be evaluated in one step.
    pub(crate) fn run_length(&self) -> usize {
        let steps = self.steps().max(1);
        ((MAX_FILTER_STEPS / steps) as usize).clamp(1, FILTERED_RUN)
    }
}

impl Writer {
    /// Returns whether the writer may leave samples out: not if only samples assert its liveliness.
    fn may_withhold(&self) -> bool {
        let Liveliness { kind, lease } = self.data.qos.liveliness;
        kind != LivelinessKind::ManualByTopic || lease == Duration::INFINITE
    }
}

impl Writers {
    /// Sets the filter of a reader proxy to the one that its writer can compile from the announced text.
    pub(crate) fn set_proxy_filter(&mut self, index: ReaderProxyId, text: Option<&FilterText>) {
        let proxy = &mut self.proxies[index];
        let (writer_index, is_reliable) = (proxy.writer, proxy.reliable);
        // The former filter makes room, unless the new one is equal.
        let former = proxy.filter.take();
        let writer = &mut self.table[writer_index];
        let compile = writer.compile;
        let compile = compile.filter(|_| is_reliable && writer.may_withhold());
        let asks = text.zip(compile);
        let is_same = former.is_some_and(|former| {
            let filters = writer.filters.as_ref();
            asks.is_some_and(|(text, _)| filters.is_some_and(|it| it.asks(former, text)))
        });
        let filter = match is_same {
            true => former,
            false => {
                self.refresh_filters(writer_index);
                asks.and_then(|(text, compile)| {
                    let filters = &mut self.table.get_mut(writer_index)?.filters;
                    let filters = filters.get_or_insert_with(Filters::new);
                    filters.ask(text, compile)
                })
            }
        };
        if let Some(proxy) = self.proxies.get_mut(index) {
            let base = proxy.done_to();
            proxy.filter = filter;
            if filter.is_some() && proxy.filtered_changes.is_none() {
                proxy.filtered_changes = Some(Box::new(FilteredChanges::new(base)));
            }
        }
        self.refresh_filters(writer_index);
    }

    /// Recomputes the filters in use by a writer's readers. Drops the unsent datagrams of the current run, whose
    /// samples the readers request.
    pub(crate) fn refresh_filters(&mut self, writer_index: WriterId) {
        let writer = &mut self.table[writer_index];
        let Some(filters) = &mut writer.filters else {
            return;
        };
        let proxies = writer.proxies.iter();
        let used = proxies.filter_map(|&proxy| self.proxies.get(proxy)?.filter);
        let used = used.fold(0, |bits: FilterBits, filter| bits | 1 << filter);
        filters.keep(used);
        filters.run.parts.clear();
        writer.has_filters = used != 0 && writer.destinations.len() <= MAX_FILTERED_ADDRESSES;
        self.refresh_filtered(writer_index);
    }

    /// Recomputes the lowest filtered number that some reader has not acknowledged.
    pub(crate) fn refresh_filtered(&mut self, writer_index: WriterId) {
        let writer = &mut self.table[writer_index];
        let noted = writer.proxies.iter().filter_map(|&proxy| {
            let proxy = self.proxies.get(proxy)?;
            // A silent reader never acknowledges, so it would keep the lowest number forever.
            let proxy = Some(proxy).filter(|proxy| !proxy.is_silent())?;
            proxy.filtered_changes.as_ref()?.first()
        });
        writer.filtered_from = noted.min().unwrap_or(NOTHING_FILTERED);
    }
}

const _: () = assert!(
    MAX_FILTERS <= FilterBits::BITS as usize
        && MAX_FILTERED_ADDRESSES <= AddressBits::BITS as usize
        && FILTERED_RUN <= SampleBits::BITS as usize,
    "there is a bit for each"
);

#[cfg(test)]
mod tests {
    use isolane_wire::builtin_data::ContentFilterProperty;

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

    /// Accepts payloads of the length in the expression.
    fn compile(property: &ContentFilterProperty<'_>) -> Option<ContentFilter> {
        let (length, steps) = property.expression.split_once(' ')?;
        let length: usize = length.parse().ok()?;
        let filter = ContentFilter::new(move |payload| payload.len() == length);
        Some(filter.taking(steps.parse().ok()?))
    }

    fn text(name: &str, expression: &str) -> FilterText {
        let property = ContentFilterProperty {
            filtered_topic_name: name,
            related_topic_name: "Topic",
            class_name: ContentFilterProperty::DDSSQL,
            expression,
            parameters: Default::default(),
        };
        let filter = ContentFilter::new(|_| true).announced(&property);
        filter.text().cloned().expect("it is short enough")
    }

    #[test]
    fn equal_filters_are_evaluated_once() {
        let mut filters = Filters::new();
        let first = filters.ask(&text("Mine", "3 10"), compile);
        assert_eq!(first, Some(0));
        assert_eq!(filters.ask(&text("Yours", "3 10"), compile), Some(0));
        assert_eq!(filters.ask(&text("Mine", "4 10"), compile), Some(1));
        assert_eq!(filters.holding_back(ChangeKind::Alive, &[0; 3]), 0b10);
        assert_eq!(filters.holding_back(ChangeKind::Dispose, &[0; 3]), 0);
        filters.keep(0b10);
        assert_eq!(filters.holding_back(ChangeKind::Alive, &[0; 3]), 0b10);
        assert_eq!(filters.ask(&text("Mine", "5 10"), compile), Some(0));
    }

    #[test]
    fn filters_and_their_steps_are_bounded() {
        let mut filters = Filters::new();
        for number in 0..MAX_FILTERS {
            let asked = filters.ask(&text("A", &alloc::format!("{number} 10")), compile);
            assert_eq!(asked.map(usize::from), Some(number));
        }
        assert_eq!(filters.ask(&text("A", "99 10"), compile), None);
        assert_eq!(filters.run_length(), FILTERED_RUN);
        let mut filters = Filters::new();
        let most = MAX_FILTER_STEPS - 1;
        let dear = text("A", &alloc::format!("1 {most}"));
        assert_eq!(filters.ask(&dear, compile), Some(0));
        assert_eq!(filters.ask(&text("A", "2 2"), compile), None);
        assert_eq!(filters.run_length(), 1);
    }
}
