//! First transmissions of a writer that knows what some of its readers do not want (RTPS 2.5 §8.7.4).
//!
//! A sample goes to the addresses of those that want it. A reader that does not, and whose address is none of
//! these, is told by a GAP, with the next sample that it wants, or, where none comes, when a quarter of the history
//! waits to be acknowledged, or when it asks. So a run of samples that nobody wants costs one GAP a reader. Where
//! readers share an address, or more addresses want a sample than one step can list, it goes to all, and each reader
//! asks its own filter, as it does in any case.
//!
//! What is longer than a frame goes to all, and so does everything of a KEEP_LAST writer. Filters come from peers: how many are asked, and what one may cost, is
//! bounded (`limits`, and whoever compiles them).

use heapless::Vec as BoundedVec;
use isolane_wire::{
    guid::{Guid, GuidPrefix},
    locator::Locator,
    qos::{Liveliness, LivelinessKind},
    rtps::{Gap, HEADER_BYTES, HEARTBEAT_BYTES, INFO_DESTINATION_BYTES, MessageWriter},
    sequence::SequenceNumber,
    time::{Duration, Instant},
};

use super::{gap, to_one};
use crate::{
    content_filter::FilterText,
    engine::Engine,
    history::{ChangeKind, History},
    ids::WriterId,
    limits::{BATCH_BYTES, FILTERED_RUN, MAX_FILTERS, WHOLE_BYTES, WINDOW},
    work::{Destinations, Work, WorkKind},
    writer::{ReaderProxy, Writer},
};

/// Bytes of a GAP for one reader alone: INFO_DST, and a GAP with an empty list and a count.
const GAP_TO_ONE_BYTES: usize = INFO_DESTINATION_BYTES + 4 + 16 + 12 + 8;

/// Numbers that were not sent to a reader, because it does not want their samples.
pub(crate) type Withheld = core::ops::Range<SequenceNumber>;

/// Who wants a sample.
struct Judged {
    /// Addresses of those that do.
    to: BoundedVec<Locator, 4>,
    /// Readers that do not, and are not reached by these.
    unwanted: BoundedVec<u16, MAX_FILTERS>,
    /// More addresses want it than can be listed: it goes to all.
    is_for_all: bool,
}

/// A GAP over numbers all of which a filter holds back.
fn filtered_gap(writer: &Writer, reader: Guid, numbers: &Withheld) -> Gap {
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
    /// Whether it may leave samples out. Not where what pushes one out of the history would make a loss of it
    /// (KEEP_LAST), and not where its samples alone say that it is alive.
    fn may_withhold(&self) -> bool {
        let Liveliness { kind, lease } = self.data.qos.liveliness;
        let is_heard_by_samples =
            kind == LivelinessKind::ManualByTopic && lease != Duration::INFINITE;
        let keeps_all = self.history.as_ref().is_some_and(History::keeps_all);
        keeps_all && !is_heard_by_samples
    }

    /// Nobody wants the sample: it counts as done.
    fn note_unwanted(&mut self, sequence: SequenceNumber) {
        self.pass_unsent(sequence);
        self.next_unsent = sequence.next();
        self.ledger.unwanted += 1;
        self.since_demand += 1;
    }
}

impl ReaderProxy {
    /// Whether so many numbers in a row, and it was told of none yet.
    fn withholds(&self, numbers: u32) -> bool {
        let withheld = self.withheld.as_ref();
        withheld.is_some_and(|it| it.end.get() - it.start.get() >= i64::from(numbers))
    }
}

impl Engine {
    /// Gives the proxy of a reader the filter that its writer can make of what the reader announces.
    pub(crate) fn set_proxy_filter(&mut self, index: u16, text: Option<&FilterText>) {
        let Some(proxy) = self.reader_proxies.get(index) else {
            return;
        };
        let (writer_index, is_reliable) = (proxy.writer, proxy.reliable);
        let Some(writer) = self.writers.get(writer_index) else {
            return;
        };
        let is_other = |&&other: &&u16| other != index;
        let others = writer.proxies.iter().filter(is_other);
        let filters = others
            .filter_map(|&other| self.reader_proxies.get(other)?.filter.as_ref())
            .count();
        let compile = writer
            .compile
            .filter(|_| is_reliable && filters < MAX_FILTERS && writer.may_withhold());
        let filter = text
            .zip(compile)
            .and_then(|(text, compile)| text.compiled(compile));
        if let Some(proxy) = self.reader_proxies.get_mut(index) {
            proxy.filter = filter;
        }
        self.refresh_filters(writer_index);
    }

    /// Works out whether any reader of a writer has a filter.
    pub(crate) fn refresh_filters(&mut self, writer_index: u16) {
        if let Some(writer) = self.writers.get_mut(writer_index) {
            writer.has_filters = writer.proxies.iter().any(|&proxy| {
                let proxy = self.reader_proxies.get(proxy);
                proxy.is_some_and(|proxy| proxy.filter.is_some())
            });
        }
    }

    /// Asks the filters of a writer's readers about one of its changes.
    fn judge(&self, writer_index: u16, sequence: SequenceNumber) -> Option<Judged> {
        let writer = self.writers.get(writer_index)?;
        let (change, payload) = writer.history.as_ref()?.get(sequence)?;
        let mut judged = Judged {
            to: BoundedVec::new(),
            unwanted: BoundedVec::new(),
            is_for_all: payload.len() > WHOLE_BYTES,
        };
        if judged.is_for_all {
            return Some(judged);
        }
        // Indexed as `unwanted`.
        let mut addresses = BoundedVec::<Locator, MAX_FILTERS>::new();
        for &index in &writer.proxies {
            let Some(proxy) = self.reader_proxies.get(index) else {
                continue;
            };
            // Who is reached by no destination is served alone, and asks.
            if !proxy.is_reachable || !proxy.is_reached {
                continue;
            }
            let group = proxy.multicast;
            let group = group.filter(|group| writer.destinations.contains(group));
            let Some(to) = group.or(proxy.address()) else {
                continue;
            };
            let filter = proxy.filter.as_ref();
            // A reader's window of numbers says of so many that they are unwanted, and no more.
            let filter = filter.filter(|_| !proxy.withholds(WINDOW));
            if filter.is_some_and(|filter| filter.holds_back(change.kind, payload)) {
                // No more filters than there are places.
                let _ = judged.unwanted.push(index);
                let _ = addresses.push(to);
            } else if !judged.to.contains(&to) && judged.to.push(to).is_err() {
                judged.is_for_all = true;
            }
        }
        if judged.is_for_all {
            judged.unwanted.clear();
        } else {
            let mut addresses = addresses.iter();
            let to = &judged.to;
            judged.unwanted.retain(|_| {
                addresses
                    .next()
                    .is_some_and(|address| !to.contains(address))
            });
        }
        Some(judged)
    }

    /// First transmission of the next unsent sample to those that want it.
    pub(super) fn send_filtered(
        &mut self,
        now: Instant,
        index: u16,
        begins_run: bool,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let writer = self.writers.get(index)?;
        let (level, sequence) = (writer.level, writer.unsent()?.sequence);
        let judged = self.judge(index, sequence)?;
        let is_wanted = judged.is_for_all || !judged.to.is_empty();
        let demands = writer.since_demand + 1 >= writer.demand_after();
        let bytes = if is_wanted {
            self.emit_wanted(index, sequence, &judged, buffer)
        } else {
            self.writers.get_mut(index)?.note_unwanted(sequence);
            0
        };
        for &proxy in &judged.unwanted {
            self.withhold(proxy, sequence);
        }
        if demands {
            // Those that the HEARTBEAT behind a sample does not reach hold the history back as well.
            self.writers.get_mut(index)?.since_demand = 0;
            self.file_withheld(index);
        }
        self.file_after_first(now, index, begins_run);
        Some(Work {
            kind: WorkKind::Data,
            level,
            bytes,
            to: match judged.is_for_all {
                true => Destinations::Writer(WriterId(index)),
                false => Destinations::Listed(judged.to),
            },
        })
    }

    /// The sample, in front of it what its readers have not been sent before it, behind it a HEARTBEAT where one
    /// is due.
    fn emit_wanted(
        &mut self,
        index: u16,
        sequence: SequenceNumber,
        judged: &Judged,
        buffer: &mut [u8],
    ) -> usize {
        let header = self.header;
        let gaps = self.take_withheld(index, judged);
        let Some(writer) = self.writers.get(index) else {
            return 0;
        };
        let Some(sample) = writer.unsent() else {
            return 0;
        };
        let written = MessageWriter::new(buffer, &header).and_then(|mut message| {
            for (reader, numbers) in &gaps {
                let told = filtered_gap(writer, *reader, numbers);
                message.info_destination(reader.prefix)?.gap(&told)?;
            }
            if !gaps.is_empty() {
                // What follows is for everybody again (RTPS 2.5 §8.3.8.8).
                message.info_destination(GuidPrefix::UNKNOWN)?;
            }
            sample.emit(&mut message, None)?;
            Ok(message)
        });
        let Some(writer) = self.writers.get_mut(index) else {
            return 0;
        };
        let told: i64 = gaps
            .iter()
            .map(|(_, numbers)| numbers.end.get() - numbers.start.get())
            .sum();
        writer.ledger.gaps += told.unsigned_abs();
        writer.note_first(sequence, true);
        match written {
            Ok(mut message) => {
                writer.add_heartbeat(&mut message);
                message.len()
            }
            Err(_) => {
                self.counters.buffer_too_small += 1;
                0
            }
        }
    }

    /// What the readers that get the next sample were not sent before it, as far as it fits the datagram.
    fn take_withheld(
        &mut self,
        index: u16,
        judged: &Judged,
    ) -> BoundedVec<(Guid, Withheld), MAX_FILTERS> {
        let mut gaps = BoundedVec::new();
        let Some(writer) = self.writers.get(index) else {
            return gaps;
        };
        let sample_bytes = writer.next_bytes();
        let mut room = BATCH_BYTES.saturating_sub(sample_bytes + INFO_DESTINATION_BYTES);
        for at in 0.. {
            let writer = self.writers.get(index);
            let Some(&proxy_index) = writer.and_then(|writer| writer.proxies.get(at)) else {
                break;
            };
            let Some(proxy) = self.reader_proxies.get_mut(proxy_index) else {
                continue;
            };
            if proxy.withheld.is_none() || judged.unwanted.contains(&proxy_index) {
                continue;
            }
            let has_room = room >= GAP_TO_ONE_BYTES && !gaps.is_full();
            if let Some(numbers) = proxy.withheld.take_if(|_| has_room) {
                room -= GAP_TO_ONE_BYTES;
                let _ = gaps.push((proxy.guid, numbers));
            } else {
                self.file_repair(proxy_index);
            }
        }
        gaps
    }

    /// A sample was not sent to a reader that does not want it.
    fn withhold(&mut self, proxy_index: u16, sequence: SequenceNumber) {
        let Some(proxy) = self.reader_proxies.get_mut(proxy_index) else {
            return;
        };
        let start = match &proxy.withheld {
            Some(numbers) if numbers.end == sequence => numbers.start,
            // What lay before is asked for, and answered then.
            _ => sequence,
        };
        proxy.withheld = Some(start..sequence.next());
        if sequence.get() - start.get() >= i64::from(WINDOW) - 1 {
            self.file_repair(proxy_index);
        }
    }

    /// Files what readers were not sent, so that they acknowledge it.
    fn file_withheld(&mut self, index: u16) {
        for at in 0.. {
            let writer = self.writers.get(index);
            let Some(&proxy_index) = writer.and_then(|writer| writer.proxies.get(at)) else {
                return;
            };
            let proxy = self.reader_proxies.get(proxy_index);
            if proxy.is_some_and(|proxy| proxy.withheld.is_some()) {
                self.file_repair(proxy_index);
            }
        }
    }

    /// A GAP over what a reader was not sent, and a HEARTBEAT that demands its acknowledgement. `None`: there is
    /// nothing like that.
    pub(super) fn send_withheld(&mut self, index: u16, buffer: &mut [u8]) -> Option<Work> {
        let header = self.header;
        let proxy = self.reader_proxies.get_mut(index)?;
        let numbers = proxy.withheld.take()?;
        for told in proxy.requested.iter() {
            if numbers.contains(&told) {
                proxy.requested.remove(told);
            }
        }
        let (guid, to, writer_index) = (proxy.guid, proxy.address(), proxy.writer);
        let writer = self.writers.get_mut(writer_index)?;
        let level = writer.level;
        writer.ledger.gaps += (numbers.end.get() - numbers.start.get()).unsigned_abs();
        let told = filtered_gap(writer, guid, &numbers);
        let heartbeat = writer.heartbeat_to(guid.entity);
        let bytes = self.finish(
            buffer,
            |message| {
                let message = message.info_destination(guid.prefix)?.gap(&told)?;
                message.heartbeat(&heartbeat).map(drop)
            },
            header,
        );
        self.file_rest_of_repair(index);
        Some(Work {
            kind: WorkKind::Repair,
            level,
            bytes,
            to: to_one(to),
        })
    }

    /// The run of changes from `sequence` on that a reader asks for, or is due to get, and does not want; `None`: it
    /// wants that one, or has no filter. One that leaves in fragments was sent to all, and is none.
    pub(super) fn unwanted_run(&self, index: u16, sequence: SequenceNumber) -> Option<Withheld> {
        let proxy = self.reader_proxies.get(index)?;
        let filter = proxy.filter.as_ref()?;
        let writer = self.writers.get(proxy.writer)?;
        let history = writer.history.as_ref()?;
        let is_unwanted = |sequence: SequenceNumber| {
            let found = history.get(sequence);
            sequence < writer.next_unsent
                && found.is_some_and(|(change, payload)| {
                    change.kind == ChangeKind::Alive
                        && payload.len() <= WHOLE_BYTES
                        && !writer.fragmenter.is_cut(payload.len())
                        && !filter.wants(payload)
                })
        };
        let mut end = sequence;
        while end.get() - sequence.get() < FILTERED_RUN && is_unwanted(end) {
            end = end.next();
        }
        (end > sequence).then_some(sequence..end)
    }

    /// A GAP over changes that a reader does not want.
    pub(super) fn emit_filtered_gap(
        &mut self,
        writer_index: u16,
        numbers: &Withheld,
        reader: Guid,
        buffer: &mut [u8],
    ) -> usize {
        let header = self.header;
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return 0;
        };
        writer.ledger.gaps += (numbers.end.get() - numbers.start.get()).unsigned_abs();
        let told = filtered_gap(writer, reader, numbers);
        self.finish(
            buffer,
            |message| {
                let message = message.info_destination(reader.prefix)?;
                message.gap(&told).map(drop)
            },
            header,
        )
    }
}

const _: () = assert!(
    HEADER_BYTES + GAP_TO_ONE_BYTES + HEARTBEAT_BYTES <= BATCH_BYTES,
    "a GAP for one reader and a HEARTBEAT fit a shared datagram"
);
