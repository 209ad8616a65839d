//! Writer-side content filters: each distinct filter is evaluated once, however many readers have it, on a run of
//! samples.

use alloc::{boxed::Box, vec::Vec};

use heapless::Vec as BoundedVec;
use isolane_wire::{
    qos::{Liveliness, LivelinessKind},
    sequence::SequenceNumber,
    time::Duration,
};

use crate::{
    content_filter::{CompileFilter, ContentFilter, FilterText},
    engine::Engine,
    history::ChangeKind,
    limits::{FILTERED_RUN, MAX_FILTER_STEPS, MAX_FILTERED_ADDRESSES, MAX_FILTERS},
    unwanted::Unwanted,
    writer::{NOTHING_UNWANTED, Writer},
};

/// Set of a writer's filters, one bit each.
pub(crate) type FilterBits = u16;

/// Set of a writer's addresses, one bit each, by index in [`destinations`](crate::Engine::destinations).
pub(crate) type AddressBits = u64;

/// Set of the samples of a [`Run`], one bit each.
pub(crate) type SampleBits = u16;

/// Filters evaluated by a writer, by number.
#[derive(Debug)]
pub(crate) struct Filters {
    asked: Vec<Option<Asked>>,
    pub(crate) run: Run,
}

#[derive(Debug)]
struct Asked {
    text: FilterText,
    filter: ContentFilter,
}

/// Samples evaluated and sent together: one datagram for all addresses that get the same of them.
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
        let asked = Some(Asked { text, filter });
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

impl Engine {
    /// Sets the filter of a reader proxy to the one that its writer can compile from the announced text.
    pub(crate) fn set_proxy_filter(&mut self, index: u16, text: Option<&FilterText>) {
        let Some(proxy) = self.reader_proxies.get_mut(index) else {
            return;
        };
        let (writer_index, is_reliable) = (proxy.writer, proxy.reliable);
        // The former filter makes room, unless the new one is equal.
        let former = proxy.filter.take();
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
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
                    let filters = &mut self.writers.get_mut(writer_index)?.filters;
                    let filters = filters.get_or_insert_with(Filters::new);
                    filters.ask(text, compile)
                })
            }
        };
        if let Some(proxy) = self.reader_proxies.get_mut(index) {
            let base = proxy.done_to();
            proxy.filter = filter;
            if filter.is_some() && proxy.unwanted.is_none() {
                proxy.unwanted = Some(Box::new(Unwanted::new(base)));
            }
        }
        self.refresh_filters(writer_index);
    }

    /// Recomputes the filters in use by a writer's readers. Readers request what was still to be sent to the former
    /// addresses.
    pub(crate) fn refresh_filters(&mut self, writer_index: u16) {
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        let Some(filters) = &mut writer.filters else {
            return;
        };
        let proxies = writer.proxies.iter();
        let used = proxies.filter_map(|&proxy| self.reader_proxies.get(proxy)?.filter);
        let used = used.fold(0, |bits: FilterBits, filter| bits | 1 << filter);
        filters.keep(used);
        filters.run.parts.clear();
        writer.has_filters = used != 0 && writer.destinations.len() <= MAX_FILTERED_ADDRESSES;
        self.refresh_unwanted(writer_index);
    }

    /// Recomputes the lowest filtered number that some reader has not acknowledged.
    pub(crate) fn refresh_unwanted(&mut self, writer_index: u16) {
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        let noted = writer.proxies.iter().filter_map(|&proxy| {
            let proxy = self.reader_proxies.get(proxy)?;
            // A silent reader would keep it forever.
            let proxy = Some(proxy).filter(|proxy| !proxy.is_silent())?;
            proxy.unwanted.as_ref()?.first()
        });
        writer.unwanted_from = noted.min().unwrap_or(NOTHING_UNWANTED);
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
    use isolane_wire::discovery::ContentFilterProperty;

    use super::*;

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
    fn the_same_question_is_asked_once_whoever_asks_it() {
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
    fn there_are_no_more_than_so_many_and_they_take_no_more_than_so_many_steps() {
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
