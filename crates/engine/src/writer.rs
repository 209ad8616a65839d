//! Local writer, and its proxies of matched readers.
//!
//! [`ReaderProxy`] is the writer's side of the reliable protocol (RTPS 2.5 §8.4.7.5, §8.4.9): what a reader has
//! acknowledged and requested, and how far its share of the history was sent.

use alloc::{boxed::Box, vec::Vec};

use bitflags::bitflags;
use isolane_wire::{
    discovery::EndpointData,
    guid::{EntityId, Guid},
    level::Level,
    locator::Locator,
    rtps::{AckNack, Heartbeat, SampleHead},
    sequence::{SequenceNumber, SequenceNumberSet},
    time::{Instant, Timestamp},
};

use crate::{
    batch::Batch,
    clock::WriterClock,
    content_filter::CompileFilter,
    filters::Filters,
    fragmenter::{Fragmenter, OwedFragments},
    history::History,
    limits::{MAX_PREEMPTIVE_ACKNACKS, MAX_UNANSWERED_HEARTBEATS},
    matching::{Incompatible, RefusedMatches},
    presentation::WriterPresents,
    priority::Priority,
    reader::is_news,
    registered::RegisteredInstances,
    status::MatchTally,
    table::Table,
    unwanted::Unwanted,
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
        /// A matched reader is known to receive from the writer ([`matched_readers`](crate::Engine::matched_readers)).
        const READER_HEARD = 64;
    }
}

/// Sample counts of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriterLedger {
    /// Accepted from the user: the last sequence number.
    pub written: u64,
    /// Numbers of `written` that are ends of coherent sets, not samples; not in the balance.
    pub set_ends: u64,
    /// Sent for the first time.
    pub sent: u64,
    /// Not sent because no reader was matched.
    pub unmatched: u64,
    /// Not sent because the content filters of all matched readers reject them.
    pub unwanted: u64,
    /// Removed from the history (KEEP_LAST) before they were sent.
    pub evicted_unsent: u64,
    /// Expired (LIFESPAN) before they were sent.
    pub expired_unsent: u64,
    /// Filed, not yet sent.
    pub pending: u64,
    /// Acknowledged by all readers, and replaced for lack of room (KEEP_ALL with TRANSIENT_LOCAL): late joiners do not
    /// get them; not in the balance.
    pub replaced: u64,
    /// Expired (LIFESPAN) in the history after they were sent: readers that lack them and late joiners do not get them;
    /// not in the balance.
    pub expired: u64,
    /// Refused with an error and never written; not in the balance.
    pub refused: u64,
    /// Sent again at the request of a reader; not in the balance.
    pub repaired: u64,
    /// Sent from the history to late joiners; not in the balance.
    pub history: u64,
    /// Numbers answered with GAP; not in the balance.
    pub gaps: u64,
    /// HEARTBEATs sent; not in the balance.
    pub heartbeats: u64,
    /// Fragments sent for the first time; not in the balance, which counts their samples.
    pub fragments: u64,
    /// Fragments sent again because they, or their whole sample, were requested; not in the balance.
    pub fragments_repaired: u64,
}

impl WriterLedger {
    /// Returns whether every written sample is accounted for exactly once.
    #[must_use]
    pub fn balances(&self) -> bool {
        let unsent = self.evicted_unsent + self.expired_unsent + self.pending;
        self.written == self.sent + self.unmatched + self.unwanted + unsent
    }
}

/// Value of `lowest_acknowledged` without reliable readers.
pub(crate) const NO_RELIABLE_READER: SequenceNumber = SequenceNumber(i64::MAX);

/// Value of `unwanted_from` without filtered samples.
pub(crate) const NOTHING_UNWANTED: SequenceNumber = SequenceNumber(i64::MAX);

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
    pub(crate) head: SampleHead,
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
    pub(crate) proxies: Vec<u16>,
    /// Destinations of first transmissions, sorted.
    pub(crate) destinations: Vec<Locator>,
    pub(crate) data_filed: bool,
    pub(crate) heartbeat_filed: bool,
    pub(crate) heartbeat_count: i32,
    /// Current heartbeat period.
    pub(crate) heartbeat_period_ns: u64,
    /// Samples sent since the last HEARTBEAT that demands an answer (not final).
    pub(crate) since_demand: u32,
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
    pub(crate) unwanted_from: SequenceNumber,
    pub(crate) status: WriterStatus,
    /// The writer is in the queue of status changes.
    pub(crate) noted: bool,
    pub(crate) incompatible: Option<Incompatible>,
    /// State of time-based policies.
    pub(crate) clock: Option<Box<WriterClock>>,
    /// Index of its group.
    pub(crate) publisher: Option<u16>,
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
        // Filtered samples are not gone: the reader must request them until it has acknowledged them.
        let first = self.first_kept().min(self.next_unsent);
        let first = first.min(self.unwanted_from);
        self.heartbeat_count = self.heartbeat_count.wrapping_add(1);
        if !is_final {
            self.since_demand = 0;
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
        let since_demand = self.since_demand;
        let heartbeat = Heartbeat {
            reader,
            ..self.heartbeat(false)
        };
        self.since_demand = since_demand;
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
    pub(crate) fn lowest_of(&self, proxies: &Table<ReaderProxy>) -> SequenceNumber {
        let reliable = self.proxies.iter().filter_map(|&proxy| proxies.get(proxy));
        reliable
            .filter(|proxy| proxy.reliable && !proxy.is_silent())
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
            && !self.fragmenter.is_cut(payload_bytes)
    }

    /// Returns the number of sent samples after which an acknowledgement is demanded at once: a quarter of the history,
    /// to be free again before a steady writer has filled the rest. A long sample counts by the memory it takes.
    pub(crate) fn demand_after(&self) -> u32 {
        self.history
            .as_ref()
            .map_or(u32::MAX, |history| (history.capacity() as u32 / 4).max(1))
    }
}

/// Proxy of a matched reader at one writer.
#[derive(Debug)]
pub(crate) struct ReaderProxy {
    pub(crate) writer: u16,
    pub(crate) guid: Guid,
    pub(crate) unicast: Option<Locator>,
    pub(crate) multicast: Option<Locator>,
    pub(crate) reliable: bool,
    /// The reader gets samples written before its match.
    pub(crate) wants_history: bool,
    /// The address is validated, so samples are sent to it.
    pub(crate) is_reachable: bool,
    /// Source address of the last ACKNACK checked for validation; the next one from there is not checked.
    pub(crate) answered_from: Option<[u8; 4]>,
    /// Some destination of the writer reaches the reader.
    pub(crate) is_reached: bool,
    /// Periodic HEARTBEATs not answered, while none was.
    pub(crate) unanswered: u8,
    /// Preemptive ACKNACKs received, while nothing else was.
    preemptive: u8,
    /// The reader is known to receive from the writer.
    pub(crate) is_joined: bool,
    /// Numbers below are not for this reader, which is VOLATILE and joined later.
    pub(crate) start: SequenceNumber,
    /// Every number below is acknowledged.
    pub(crate) acknowledged: SequenceNumber,
    pub(crate) requested: SequenceNumberSet,
    pub(crate) fragments: OwedFragments,
    /// Next number of the history to send unrequested.
    pub(crate) history_next: Option<SequenceNumber>,
    /// End of the history; numbers sent since the match went to this reader too.
    pub(crate) history_end: SequenceNumber,
    pub(crate) repair_filed: bool,
    pub(crate) history_filed: bool,
    /// Number of the filter evaluated by the writer.
    pub(crate) filter: Option<u8>,
    /// Filtered and unacknowledged numbers; `None` if it never had such a filter.
    pub(crate) unwanted: Option<Box<Unwanted>>,
    /// Count and arrival of the last accepted ACKNACK.
    acknack_count: Option<(i32, Instant)>,
}

impl ReaderProxy {
    /// Returns whether the reader is known to know this writer: a reliable one by its first ACKNACK, a best-effort one,
    /// which never sends anything, by the validation of its address.
    pub(crate) fn is_ready(&self) -> bool {
        if self.reliable {
            self.acknack_count.is_some()
        } else {
            self.is_reachable
        }
    }

    /// Returns whether this ACKNACK shows for the first time that the reader has received a HEARTBEAT.
    ///
    /// A VOLATILE reader begins after the last number of its first HEARTBEAT. Samples written before may be history to
    /// it, which it never requests; so the user learns of the match afterwards. A preemptive ACKNACK requests that
    /// HEARTBEAT, which may be lost.
    pub(crate) fn begins(&mut self, acknack: &AckNack) -> bool {
        if self.is_joined {
            return false;
        }
        let is_preemptive = is_preemptive(acknack);
        self.preemptive += u8::from(is_preemptive);
        !is_preemptive || self.preemptive >= MAX_PREEMPTIVE_ACKNACKS
    }

    /// Returns whether its first answer to a HEARTBEAT is awaited.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.is_joined && self.unanswered < MAX_UNANSWERED_HEARTBEATS
    }

    /// Returns whether it has answered none of the maximum number of HEARTBEATs, and is no longer awaited.
    pub(crate) fn is_silent(&self) -> bool {
        !self.is_ready() && self.unanswered >= MAX_UNANSWERED_HEARTBEATS
    }

    /// Returns whether it is owed a history that waits for the validation of its address.
    pub(crate) fn waits_for_history(&self) -> bool {
        self.reliable && self.is_ready() && self.history_next.is_some() && !self.history_filed
    }

    /// Drops its requests; the reader repeats them.
    pub(crate) fn forget_requests(&mut self) {
        self.requested = SequenceNumberSet::new(self.acknowledged);
        self.fragments.repair = None;
    }

    /// Returns whether samples are sent to its address: it is validated, and this is not a silent reliable reader.
    pub(crate) fn is_sent_to(&self) -> bool {
        self.is_reachable && !(self.reliable && self.is_silent())
    }

    pub(crate) fn new(writer: u16, guid: Guid, reliable: bool) -> Self {
        Self {
            writer,
            guid,
            unicast: None,
            multicast: None,
            reliable,
            wants_history: false,
            is_reachable: false,
            answered_from: None,
            // Until the destinations are computed.
            is_reached: true,
            unanswered: 0,
            preemptive: 0,
            is_joined: false,
            start: SequenceNumber(1),
            acknowledged: SequenceNumber(1),
            requested: SequenceNumberSet::new(SequenceNumber(1)),
            fragments: OwedFragments::default(),
            history_next: None,
            history_end: SequenceNumber(1),
            repair_filed: false,
            history_filed: false,
            filter: None,
            unwanted: None,
            acknack_count: None,
        }
    }

    /// Returns the lowest number that the reader has not acknowledged.
    pub(crate) fn done_to(&self) -> SequenceNumber {
        self.acknowledged.max(self.start)
    }

    /// Returns the address for datagrams to this reader alone.
    pub(crate) fn address(&self) -> Option<Locator> {
        self.unicast.or(self.multicast)
    }

    /// Returns whether this ACKNACK is new. A preemptive one always is: the reader does not know this writer, or has
    /// lost and rediscovered it, and may restart its count. (A late duplicate costs one answer.)
    pub(crate) fn accept_acknack(&mut self, now: Instant, acknack: &AckNack) -> bool {
        let is_preemptive = is_preemptive(acknack);
        let is_new = is_news(self.acknack_count, acknack.count, now);
        if is_new || is_preemptive {
            self.acknack_count = Some((acknack.count, now));
        }
        is_new || is_preemptive
    }

    /// Returns the arrival of the last accepted ACKNACK.
    pub(crate) fn last_heard(&self) -> Option<Instant> {
        self.acknack_count.map(|(_, at)| at)
    }

    /// Notes that the reader has all numbers below `base`; returns whether that is an increase.
    pub(crate) fn acknowledge(&mut self, base: SequenceNumber) -> bool {
        let is_more = base > self.acknowledged;
        if is_more || self.wants_history {
            // On a decrease, the reader has lost this writer and begins again: it is owed HEARTBEATs until it has all
            // samples.
            self.acknowledged = base.max(self.start);
        } else {
            // A VOLATILE reader that begins again has had all that it acknowledged.
            self.start = self.acknowledged.max(self.start);
        }
        is_more
    }
}

/// Returns whether an ACKNACK is preemptive, sent before the reader has received anything: base 0 or 1, empty, not
/// final.
fn is_preemptive(acknack: &AckNack) -> bool {
    let state = &acknack.state;
    state.base().get() <= 1 && state.is_empty() && !acknack.is_final
}
