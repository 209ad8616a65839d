//! Local writer, and the tables of writers and of their proxies of matched readers.

pub(crate) mod batching;
pub(crate) mod destinations;
mod filtered_changes;
mod filtering;
mod flight;
pub(crate) mod fragments;
pub(crate) mod history;
pub(crate) mod registered_instances;
pub(crate) mod reliability;
mod repair;
pub(crate) mod write;

use alloc::{boxed::Box, vec::Vec};

use bitflags::bitflags;
use isolane_wire::{
    builtin_data::EndpointData,
    guid::{EntityId, Guid, GuidPrefix},
    level::Level,
    locator::Locator,
    message::{Heartbeat, SamplePrefix},
    qos::{DurabilityKind, ReliabilityKind},
    sequence::SequenceNumber,
    time::Timestamp,
};

use crate::{
    coherent_access::{Publisher, WriterPresents},
    config::ParticipantConfig,
    content_filter::CompileFilter,
    counters::WriterLedger,
    hash::{Index, PeerIndex, index},
    limits::MAX_GROUPS,
    matching::{Incompatible, RefusedMatches, TopicIndex},
    participant::{BUILTIN_ENDPOINTS, Shared},
    slab::{PublisherId, ReaderProxyId, Slab, WriterId},
    status::MatchTally,
    timed_qos::{Assertions, WriterTimedQos},
    work::{Priority, Queue},
    writer::{
        batching::Batch, filtering::Filters, flight::Flight, fragments::Fragmenter,
        history::History, registered_instances::RegisteredInstances, reliability::ReaderProxy,
        write::WriteError,
    },
};

bitflags! {
    /// Status changes of a writer since they were last read (DDS 1.4 §2.2.4.1).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct WriterStatus: u8 {
        /// The number of matched readers changed.
        const PUBLICATION_MATCHED = 1;
        /// A reader requests more than offered.
        const OFFERED_INCOMPATIBLE_QOS = 2;
        /// A full history has room again.
        const ROOM = 4;
        /// Every matched reliable reader has acknowledged all written samples.
        const ALL_ACKNOWLEDGED = 8;
        /// An instance was not written for a whole period.
        const OFFERED_DEADLINE_MISSED = 16;
        /// The user did not assert the writer's liveliness for a whole lease.
        const LIVELINESS_LOST = 32;
        /// A matched reader is known to receive from the writer
        /// ([`matched_readers`](crate::LocalParticipant::matched_readers)).
        const READER_HEARD = 64;
    }
}

/// Value of `lowest_acknowledged` without reliable readers.
pub(crate) const NO_RELIABLE_READER: SequenceNumber = SequenceNumber(i64::MAX);

/// Value of `filtered_from` without filtered samples.
pub(crate) const NOTHING_FILTERED: SequenceNumber = SequenceNumber(i64::MAX);

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) guid: Guid,
    pub(crate) data: EndpointData,
    /// `None` for built-in writers.
    pub(crate) level: Option<Level>,
    pub(crate) reliable: bool,
    pub(crate) volatile: bool,
    pub(crate) max_payload_bytes: usize,
    /// Bytes of its sample memory.
    pub(crate) sample_bytes: usize,
    /// Maximum payload of a disabled writer once it is enabled; `None` if it is enabled.
    pub(crate) limit_when_enabled: Option<usize>,
    /// Prebuilt head of DATA, for a writer without history.
    pub(crate) head: SamplePrefix,
    /// `None` for a best-effort writer that keeps nothing.
    pub(crate) history: Option<History>,
    pub(crate) fragmenter: Fragmenter,
    pub(crate) last: SequenceNumber,
    /// Lowest number not yet sent for the first time.
    pub(crate) next_unsent: SequenceNumber,
    /// Every number below was acknowledged by some reader.
    pub(crate) highest_acknowledged: SequenceNumber,
    /// Every number below was acknowledged by every reliable reader. Cached, so that samples and acknowledgements need
    /// not scan the proxies.
    pub(crate) lowest_acknowledged: SequenceNumber,
    pub(crate) proxies: Vec<ReaderProxyId>,
    /// Destinations of first transmissions, sorted.
    pub(crate) destinations: Vec<Locator>,
    pub(crate) data_filed: bool,
    pub(crate) heartbeat_filed: bool,
    pub(crate) heartbeat_count: i32,
    /// Current heartbeat period.
    pub(crate) heartbeat_period_ns: u64,
    /// Samples sent since the last HEARTBEAT that demands an answer (not final).
    pub(crate) since_demand: u32,
    /// Payload bytes of these samples.
    pub(crate) bytes_since_demand: usize,
    /// Payload bytes of all samples written.
    pub(crate) written_bytes: u64,
    /// Bytes in flight; exact if the history keeps all.
    pub(crate) flight: Flight,
    /// Reasons why matches with readers of this participant were refused.
    pub(crate) refused: RefusedMatches,
    /// A write was refused for lack of room.
    pub(crate) wants_room: bool,
    /// Batching state (LATENCY_BUDGET).
    pub(crate) batch: Option<Batch>,
    /// Compiler of the filters that its readers announce.
    pub(crate) compile: Option<CompileFilter>,
    /// Some reader's filter is evaluated before a sample is sent.
    pub(crate) has_filters: bool,
    /// Compiled filters; allocated with the first one.
    pub(crate) filters: Option<Box<Filters>>,
    /// Lowest number filtered out for a reader that has not acknowledged it.
    pub(crate) filtered_from: SequenceNumber,
    pub(crate) status: WriterStatus,
    /// The writer is in the queue of status changes.
    pub(crate) noted: bool,
    pub(crate) incompatible: Option<Incompatible>,
    /// State of time-based policies.
    pub(crate) clock: Option<Box<WriterTimedQos>>,
    /// Index of its group.
    pub(crate) publisher: Option<PublisherId>,
    /// Instances to unregister when it is deleted; `None` if keys are not kept.
    pub(crate) registered: Option<Box<RegisteredInstances>>,
    /// State of coherent or ordered access of its group.
    pub(crate) presents: Option<Box<WriterPresents>>,
    /// Time stamp of its last sample, a lower bound for the next (DESTINATION_ORDER BY_SOURCE_TIMESTAMP).
    pub(crate) last_stamp: Option<Timestamp>,
    pub(crate) matched: MatchTally,
    /// Number of matched readers known to receive from the writer.
    pub(crate) joined: u32,
    pub(crate) ledger: WriterLedger,
}

impl Writer {
    pub(crate) fn data_priority(&self) -> Priority {
        self.level.map_or(Priority::DISCOVERY, Priority::of_data)
    }

    pub(crate) fn protocol_priority(&self) -> Priority {
        self.level
            .map_or(Priority::DISCOVERY, Priority::of_protocol)
    }

    pub(crate) fn data_queue(&self) -> Queue {
        self.level.map_or_else(
            || Queue::of_builtin(self.guid.entity),
            |level| Queue::Of(Priority::of_data(level)),
        )
    }

    pub(crate) fn protocol_queue(&self) -> Queue {
        self.level.map_or_else(
            || Queue::of_builtin(self.guid.entity),
            |level| Queue::Of(Priority::of_protocol(level)),
        )
    }

    pub(crate) fn ledger(&self) -> WriterLedger {
        let pending = match &self.history {
            Some(_) => (self.last.get() + 1 - self.next_unsent.get()) as u64,
            None => 0,
        };
        WriterLedger {
            written: self.last.get() as u64,
            pending,
            ..self.ledger
        }
    }

    /// Returns the lowest number in the history, or one past the last if it is empty.
    pub(crate) fn first_kept(&self) -> SequenceNumber {
        let kept = self.history.as_ref().and_then(History::first);
        kept.unwrap_or(self.last.next())
    }

    /// Returns the next HEARTBEAT, for the numbers sent and still kept. Unsent numbers are not announced, or readers
    /// would request them too early.
    pub(crate) fn heartbeat(&mut self, is_final: bool) -> Heartbeat {
        let last = SequenceNumber(self.next_unsent.get() - 1);
        // Filtered samples are not gone: a reader must be able to request them until it has acknowledged them.
        let first = self.first_kept().min(self.next_unsent);
        let first = first.min(self.filtered_from);
        self.heartbeat_count = self.heartbeat_count.wrapping_add(1);
        if !is_final {
            self.since_demand = 0;
            self.bytes_since_demand = 0;
        }
        self.ledger.heartbeats += 1;
        Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: self.guid.entity,
            group: None,
            first,
            last,
            count: self.heartbeat_count,
            is_final,
            liveliness: false,
        }
    }

    /// Returns the next HEARTBEAT for one reader, which must answer it. It does not count as a demand to the others.
    pub(crate) fn heartbeat_to(&mut self, reader: EntityId) -> Heartbeat {
        let since_demand = (self.since_demand, self.bytes_since_demand);
        let heartbeat = Heartbeat {
            reader,
            ..self.heartbeat(false)
        };
        (self.since_demand, self.bytes_since_demand) = since_demand;
        heartbeat
    }

    /// Passes the numbers below `end` as unsent: their samples were replaced, or have expired.
    pub(crate) fn pass_unsent(&mut self, end: SequenceNumber) {
        let passed = (end.get() - self.next_unsent.get()) as u64;
        let mut expired = 0;
        if let Some(clock) = &mut self.clock {
            expired = passed.min(clock.expired_unsent);
            clock.expired_unsent -= expired;
        }
        self.ledger.expired_unsent += expired;
        self.ledger.evicted_unsent += passed - expired;
        self.next_unsent = end;
    }

    /// Returns the lowest number that is unsent, or not acknowledged by a reliable reader.
    pub(crate) fn lowest_unacknowledged(&self) -> SequenceNumber {
        self.next_unsent.min(self.lowest_acknowledged)
    }

    /// Returns whether a reliable reader is matched and not silent; only then are HEARTBEATs needed.
    pub(crate) fn has_reliable_reader(&self) -> bool {
        self.lowest_acknowledged != NO_RELIABLE_READER
    }

    /// Returns the lowest number not acknowledged by a reliable reader; silent readers do not count.
    pub(crate) fn lowest_of(&self, proxies: &Slab<ReaderProxyId, ReaderProxy>) -> SequenceNumber {
        self.lowest_where(proxies, |_| true)
    }

    /// Returns the lowest number not acknowledged by a reliable reader that meets a condition and is not silent.
    fn lowest_where(
        &self,
        proxies: &Slab<ReaderProxyId, ReaderProxy>,
        counts: impl Fn(&ReaderProxy) -> bool,
    ) -> SequenceNumber {
        let reliable = self.proxies.iter().filter_map(|&proxy| proxies.get(proxy));
        reliable
            .filter(|proxy| proxy.reliable && !proxy.is_silent() && counts(proxy))
            .map(ReaderProxy::done_to)
            .min()
            .unwrap_or(NO_RELIABLE_READER)
    }

    /// Returns whether a full history may replace its oldest change, given that all numbers below `lowest` are
    /// acknowledged; see the module documentation of `history`.
    pub(crate) fn may_replace(&self, lowest: SequenceNumber) -> bool {
        !self.volatile
            && self.history.as_ref().is_some_and(|history| {
                history.keeps_all() && history.first_sample().is_some_and(|first| first < lowest)
            })
    }

    /// Returns whether a sample of this size bypasses the history.
    #[cold]
    pub(crate) fn sends_at_once(&self, payload_bytes: usize) -> bool {
        !self.reliable
            && self.batch.is_none()
            && self.next_unsent > self.last
            && !self.fragmenter.is_fragmented(payload_bytes)
    }

    /// Returns the number of sent samples after which an acknowledgement is demanded at once: a quarter of the history.
    /// A steady writer has this quarter free again before it fills the rest. A long sample counts by the memory it
    /// takes.
    pub(crate) fn demand_after(&self) -> u32 {
        self.history
            .as_ref()
            .map_or(u32::MAX, |history| (history.capacity() as u32 / 4).max(1))
    }

    /// Returns whether the next HEARTBEAT demands an answer: after a quarter of the history, or of the bytes in flight.
    pub(crate) fn demands_answer(&self) -> bool {
        self.since_demand >= self.demand_after()
            || self.keeps_all() && self.bytes_since_demand >= self.flight.demand_after()
    }

    fn keeps_all(&self) -> bool {
        self.history.as_ref().is_some_and(History::keeps_all)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.limit_when_enabled.is_none()
    }

    /// Returns the maximum payload size in bytes, also of a disabled writer.
    pub(crate) fn payload_limit(&self) -> usize {
        self.limit_when_enabled.unwrap_or(self.max_payload_bytes)
    }

    pub(crate) fn disable(&mut self) {
        self.limit_when_enabled = Some(core::mem::take(&mut self.max_payload_bytes));
    }

    /// Returns the error for a payload above the maximum size.
    #[cold]
    pub(crate) fn why_too_large(&self) -> WriteError {
        match self.is_enabled() {
            true => WriteError::TooLarge {
                limit: self.max_payload_bytes,
            },
            false => WriteError::NotEnabled,
        }
    }
}

/// Local writers, their groups, and their proxies of matched readers.
#[derive(Debug)]
pub(crate) struct Writers {
    pub(crate) table: Slab<WriterId, Writer>,
    pub(crate) proxies: Slab<ReaderProxyId, ReaderProxy>,
    pub(crate) by_entity: Index<EntityId, WriterId>,
    /// Proxies by local writer and remote reader.
    pub(crate) proxy_by_reader: PeerIndex<(WriterId, Guid), ReaderProxyId>,
    pub(crate) by_topic: TopicIndex<WriterId>,
    pub(crate) publishers: Slab<PublisherId, Publisher>,
    /// Liveliness assertions of the user for all writers.
    pub(crate) assertions: Assertions,
    /// Reader that became silent last, and its writer.
    pub(crate) last_silent: Option<(WriterId, Guid)>,
    /// Scratch space for a writer's destinations; empty between calls.
    pub(crate) reached: Vec<(GuidPrefix, Locator)>,
}

impl Writers {
    #[inline]
    pub(crate) fn get(&self, id: WriterId) -> Option<&Writer> {
        self.table.get(id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: WriterId) -> Option<&mut Writer> {
        self.table.get_mut(id)
    }

    pub(crate) fn new(config: &ParticipantConfig) -> Self {
        let limits = &config.limits;
        let is_fixed = limits.fixed_memory;
        let local = usize::from(limits.local_endpoints + BUILTIN_ENDPOINTS);
        let proxies = Slab::with_kept(limits.matches.into(), is_fixed);
        // Includes the entries reserved for the highest level.
        let matches = proxies.room();
        Self {
            table: Slab::new(local, is_fixed),
            proxies,
            by_entity: index(local, config.salted_seed(3)),
            proxy_by_reader: PeerIndex::new(matches, is_fixed, config.salted_seed(2)),
            by_topic: TopicIndex::new(local, config.salted_seed(6)),
            publishers: Slab::new(MAX_GROUPS.into(), is_fixed),
            assertions: Assertions::default(),
            last_silent: None,
            reached: Vec::with_capacity(if is_fixed { matches } else { 0 }),
        }
    }

    /// Creates a writer that has written nothing.
    pub(crate) fn writer(
        &self,
        shared: &Shared,
        guid: Guid,
        data: EndpointData,
        level: Option<Level>,
        history: Option<History>,
        max_payload_bytes: usize,
    ) -> Writer {
        Writer {
            guid,
            level,
            reliable: data.qos.reliability.kind == ReliabilityKind::Reliable,
            volatile: data.qos.durability == DurabilityKind::Volatile,
            data,
            max_payload_bytes,
            limit_when_enabled: None,
            sample_bytes: 0,
            history,
            fragmenter: Fragmenter::NONE,
            last: SequenceNumber(0),
            next_unsent: SequenceNumber(1),
            highest_acknowledged: SequenceNumber(1),
            lowest_acknowledged: NO_RELIABLE_READER,
            proxies: Vec::with_capacity(shared.matches_at_start(self.proxies.room())),
            head: SamplePrefix::new(&shared.header, guid.entity),
            destinations: Vec::with_capacity(shared.matches_at_start(self.proxies.room())),
            data_filed: false,
            heartbeat_filed: false,
            heartbeat_count: 0,
            heartbeat_period_ns: shared.config.timing.heartbeat_period.as_nanos() as u64,
            since_demand: 0,
            bytes_since_demand: 0,
            written_bytes: 0,
            flight: Flight::NONE,
            refused: RefusedMatches::default(),
            wants_room: false,
            batch: None,
            compile: None,
            has_filters: false,
            filters: None,
            filtered_from: NOTHING_FILTERED,
            status: WriterStatus::empty(),
            noted: false,
            incompatible: None,
            clock: None,
            publisher: None,
            registered: None,
            presents: None,
            last_stamp: None,
            matched: MatchTally::default(),
            joined: 0,
            ledger: WriterLedger::default(),
        }
    }
}
