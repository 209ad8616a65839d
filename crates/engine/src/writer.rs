//! A local writer, and what it knows of each reader it is matched with.
//!
//! [`ReaderProxy`] is the writer's side of the reliable protocol (RTPS 2.5 §8.4.7.5, §8.4.9): what
//! a reader has acknowledged, what it asks for, and how far its share of the history was sent.

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
    /// What has changed at a writer since it was last asked (DDS 1.4 §2.2.4.1).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct WriterStatus: u8 {
        /// The number of matched readers changed.
        const PUBLICATION_MATCHED = 1;
        /// A reader requests more than is offered.
        const OFFERED_INCOMPATIBLE_QOS = 2;
        /// A full history has room again.
        const ROOM = 4;
        /// Every matched reliable reader has acknowledged all that was written.
        const ALL_ACKNOWLEDGED = 8;
        /// An instance was not written for a whole period.
        const OFFERED_DEADLINE_MISSED = 16;
        /// The user has not said for a whole lease that the writer is alive.
        const LIVELINESS_LOST = 32;
        /// A matched reader is known to hear the writer ([`matched_readers`](crate::Engine::matched_readers)).
        const READER_HEARD = 64;
    }
}

/// What became of a writer's samples on this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriterLedger {
    /// Accepted from the user: the last sequence number.
    pub written: u64,
    /// Of those numbers the ones that are no samples: ends of coherent sets; beside the balance.
    pub set_ends: u64,
    /// Sent for the first time.
    pub sent: u64,
    /// Nobody was matched when they were to be sent.
    pub unmatched: u64,
    /// None of the readers matched wants them, as their content filters say: nothing was sent.
    pub unwanted: u64,
    /// Pushed out of the history (KEEP_LAST) before they were sent at all.
    pub evicted_unsent: u64,
    /// Outlived their LIFESPAN before they were sent at all.
    pub expired_unsent: u64,
    /// Filed, not yet sent.
    pub pending: u64,
    /// Acknowledged by all readers, and replaced for want of room (KEEP_ALL with TRANSIENT_LOCAL):
    /// later joiners do not get them; beside the balance.
    pub replaced: u64,
    /// Outlived their LIFESPAN in the history, sent before: readers that lack them and later joiners do not
    /// get them; beside the balance.
    pub expired: u64,
    /// Refused with an error: never written; beside the balance.
    pub refused: u64,
    /// Sent again because a reader asked; beside the balance.
    pub repaired: u64,
    /// Sent from the history to late joiners; beside the balance.
    pub history: u64,
    /// Numbers answered with GAP; beside the balance.
    pub gaps: u64,
    /// HEARTBEATs sent; beside the balance.
    pub heartbeats: u64,
    /// Fragments sent for the first time; beside the balance, which counts their samples.
    pub fragments: u64,
    /// Fragments sent again because a reader asked for them, or for all of their sample; beside the balance.
    pub fragments_repaired: u64,
}

impl WriterLedger {
    /// Whether every written sample is accounted for exactly once.
    #[must_use]
    pub fn balances(&self) -> bool {
        let unsent = self.evicted_unsent + self.expired_unsent + self.pending;
        self.written == self.sent + self.unmatched + self.unwanted + unsent
    }
}

/// What all reliable readers have acknowledged where there is none: everything.
pub(crate) const NO_RELIABLE_READER: SequenceNumber = SequenceNumber(i64::MAX);

/// From where on readers do not want something, where there is nothing like that.
pub(crate) const NOTHING_UNWANTED: SequenceNumber = SequenceNumber(i64::MAX);

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) guid: Guid,
    pub(crate) data: EndpointData,
    /// `None`: discovery.
    pub(crate) level: Option<Level>,
    pub(crate) reliable: bool,
    pub(crate) volatile: bool,
    pub(crate) max_payload_bytes: usize,
    /// Bytes that its samples have.
    pub(crate) sample_bytes: usize,
    /// What that will be; `None`: it is enabled.
    pub(crate) limit_when_enabled: Option<usize>,
    /// What stands in front of its samples where nothing is kept.
    pub(crate) head: SampleHead,
    /// `None`: best effort, nothing is kept.
    pub(crate) history: Option<History>,
    /// What of it leaves in fragments.
    pub(crate) fragmenter: Fragmenter,
    pub(crate) last: SequenceNumber,
    /// The lowest number not yet sent for the first time.
    pub(crate) next_unsent: SequenceNumber,
    /// Every number below has been acknowledged by some reader: those that live have all.
    pub(crate) highest_acknowledged: SequenceNumber,
    /// Every number below has been acknowledged by every reliable reader. Kept beside the proxies,
    /// so that neither a sample nor an acknowledgement costs a look at all of them.
    pub(crate) lowest_acknowledged: SequenceNumber,
    pub(crate) proxies: Vec<u16>,
    /// Where first transmissions go, in the order of the addresses.
    pub(crate) destinations: Vec<Locator>,
    pub(crate) data_filed: bool,
    pub(crate) heartbeat_filed: bool,
    pub(crate) heartbeat_count: i32,
    /// The present time between heartbeats.
    pub(crate) heartbeat_period_ns: u64,
    /// Samples sent since a heartbeat demanded an answer.
    pub(crate) since_demand: u32,
    /// Why matches with readers of this participant found no place.
    pub(crate) refused: RefusedMatches,
    /// A write was refused for want of room.
    pub(crate) wants_room: bool,
    /// What it keeps back for a while (LATENCY_BUDGET).
    pub(crate) batch: Option<Batch>,
    /// What makes functions of the filters its readers announce.
    pub(crate) compile: Option<CompileFilter>,
    /// Some reader's filter is asked before a sample is sent.
    pub(crate) has_filters: bool,
    /// Those, once there was one.
    pub(crate) filters: Option<Box<Filters>>,
    /// From here on there are numbers that readers do not want and have not acknowledged.
    pub(crate) unwanted_from: SequenceNumber,
    pub(crate) status: WriterStatus,
    /// It is on the list of endpoints with something to tell.
    pub(crate) noted: bool,
    pub(crate) incompatible: Option<Incompatible>,
    /// What its policies of time need.
    pub(crate) clock: Option<Box<WriterClock>>,
    /// The group it belongs to.
    pub(crate) publisher: Option<u16>,
    /// Instances that it unregisters at its end; `None`: keys are not kept.
    pub(crate) registered: Option<Box<RegisteredInstances>>,
    /// What the group's access scope asks of it.
    pub(crate) presents: Option<Box<WriterPresents>>,
    /// The time stamp of its last sample, which the next does not fall behind (DESTINATION_ORDER
    /// BY_SOURCE_TIMESTAMP).
    pub(crate) last_stamp: Option<Timestamp>,
    pub(crate) matched: MatchTally,
    /// Matched readers that are known to hear the writer.
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

    /// The lowest number still in the history; one past the last if it is empty.
    pub(crate) fn first_kept(&self) -> SequenceNumber {
        let kept = self.history.as_ref().and_then(History::first);
        kept.unwrap_or(self.last.next())
    }

    /// The next HEARTBEAT: what has been sent and is still kept. What waits for its first
    /// transmission is not announced, or readers would ask for it before it is due.
    pub(crate) fn heartbeat(&mut self, is_final: bool) -> Heartbeat {
        let last = SequenceNumber(self.next_unsent.get() - 1);
        // What a reader does not want, and was not sent, is not gone: until it has acknowledged it, it is to ask.
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

    /// The next HEARTBEAT for one reader alone, which is to answer it; the others are not asked by it.
    pub(crate) fn heartbeat_to(&mut self, reader: EntityId) -> Heartbeat {
        let since_demand = self.since_demand;
        let heartbeat = Heartbeat {
            reader,
            ..self.heartbeat(false)
        };
        self.since_demand = since_demand;
        heartbeat
    }

    /// The numbers up to `end` are passed without having been sent: their samples were pushed out, or have
    /// expired.
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

    /// The lowest number that is not yet sent, or that a reliable reader has not acknowledged.
    pub(crate) fn lowest_unacknowledged(&self) -> SequenceNumber {
        self.next_unsent.min(self.lowest_acknowledged)
    }

    /// Whether a reliable reader is matched and not silent: HEARTBEATs without one would be read by nobody.
    pub(crate) fn has_reliable_reader(&self) -> bool {
        self.lowest_acknowledged != NO_RELIABLE_READER
    }

    /// The lowest number that a reliable reader has not acknowledged; the last there is, if there
    /// is no such reader, or only silent ones.
    pub(crate) fn lowest_of(&self, proxies: &Table<ReaderProxy>) -> SequenceNumber {
        let reliable = self.proxies.iter().filter_map(|&proxy| proxies.get(proxy));
        reliable
            .filter(|proxy| proxy.reliable && !proxy.is_silent())
            .map(ReaderProxy::done_to)
            .min()
            .unwrap_or(NO_RELIABLE_READER)
    }

    /// Whether a full history may drop its oldest change for a new one, all below `lowest` being
    /// acknowledged: see the history's prose.
    pub(crate) fn may_replace(&self, lowest: SequenceNumber) -> bool {
        !self.volatile
            && self.history.as_ref().is_some_and(|history| {
                history.keeps_all() && history.first_sample().is_some_and(|first| first < lowest)
            })
    }

    /// Whether a sample of so many bytes can pass by the history.
    #[cold]
    pub(crate) fn sends_at_once(&self, payload_bytes: usize) -> bool {
        !self.reliable
            && self.batch.is_none()
            && self.next_unsent > self.last
            && !self.fragmenter.is_cut(payload_bytes)
    }

    /// Number of sent samples after which an acknowledgement is demanded at once: a quarter of the history, so that it is
    /// free again before a steady writer has filled the rest. A long sample counts by the memory it takes.
    pub(crate) fn demand_after(&self) -> u32 {
        self.history
            .as_ref()
            .map_or(u32::MAX, |history| (history.capacity() as u32 / 4).max(1))
    }
}

/// A matched reader, as one writer sees it.
#[derive(Debug)]
pub(crate) struct ReaderProxy {
    pub(crate) writer: u16,
    pub(crate) guid: Guid,
    pub(crate) unicast: Option<Locator>,
    pub(crate) multicast: Option<Locator>,
    pub(crate) reliable: bool,
    /// It wants what was written before it came.
    pub(crate) wants_history: bool,
    /// Its address is validated: samples are sent there.
    pub(crate) is_reachable: bool,
    /// Source address of the last ACKNACK that was looked at for validation: the next one from there is not.
    pub(crate) answered_from: Option<[u8; 4]>,
    /// One of the writer's destinations leads to it.
    pub(crate) is_reached: bool,
    /// HEARTBEATs by the clock that it has not answered, as long as it has answered none.
    pub(crate) unanswered: u8,
    /// Preemptive ACKNACKs it has sent, as long as nothing else came.
    preemptive: u8,
    /// It is known to hear the writer.
    pub(crate) is_joined: bool,
    /// Numbers below are not for this reader: it joined later and is VOLATILE.
    pub(crate) start: SequenceNumber,
    /// Every number below is acknowledged.
    pub(crate) acknowledged: SequenceNumber,
    pub(crate) requested: SequenceNumberSet,
    /// What it is owed of samples in fragments.
    pub(crate) fragments: OwedFragments,
    /// The next number of the history to send unasked.
    pub(crate) history_next: Option<SequenceNumber>,
    /// Where that ends: what was sent from the match on, was sent to this reader too.
    pub(crate) history_end: SequenceNumber,
    pub(crate) repair_filed: bool,
    pub(crate) history_filed: bool,
    /// The number of the filter that its writer asks for it before it sends.
    pub(crate) filter: Option<u8>,
    /// What it does not want, and has not acknowledged; none, where it never had such a filter.
    pub(crate) unwanted: Option<Box<Unwanted>>,
    /// Of the last ACKNACK that was news, and when that was.
    acknack_count: Option<(i32, Instant)>,
}

impl ReaderProxy {
    /// Whether the reader is known to know this writer. A reliable one shows it by its first
    /// ACKNACK. A best-effort one never says anything; that its address is validated shows it.
    pub(crate) fn is_ready(&self) -> bool {
        if self.reliable {
            self.acknack_count.is_some()
        } else {
            self.is_reachable
        }
    }

    /// Whether by this ACKNACK the reader shows for the first time that it has heard a HEARTBEAT. A VOLATILE
    /// one begins behind the last number of its first HEARTBEAT, so what is written before it has one may be
    /// history to it, which it never asks for: the user is told of the match when it has. A preemptive
    /// ACKNACK is the question for that HEARTBEAT, which may be lost.
    pub(crate) fn begins(&mut self, acknack: &AckNack) -> bool {
        if self.is_joined {
            return false;
        }
        let is_preemptive = is_preemptive(acknack);
        self.preemptive += u8::from(is_preemptive);
        !is_preemptive || self.preemptive >= MAX_PREEMPTIVE_ACKNACKS
    }

    /// Whether its first answer to a HEARTBEAT is waited for.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.is_joined && self.unanswered < MAX_UNANSWERED_HEARTBEATS
    }

    /// Whether it has left so many heartbeats unanswered, and never answered one, that it is no longer
    /// waited for.
    pub(crate) fn is_silent(&self) -> bool {
        !self.is_ready() && self.unanswered >= MAX_UNANSWERED_HEARTBEATS
    }

    /// Whether it is owed a history that was not begun because its address was not validated.
    pub(crate) fn waits_for_history(&self) -> bool {
        self.reliable && self.is_ready() && self.history_next.is_some() && !self.history_filed
    }

    /// Forgets what it has asked for: it asks again.
    pub(crate) fn forget_requests(&mut self) {
        self.requested = SequenceNumberSet::new(self.acknowledged);
        self.fragments.repair = None;
    }

    /// Whether samples are sent to its address: it is validated, and this is not a reliable reader that
    /// has gone silent.
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
            // Until the destinations are worked out.
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

    /// The lowest number this reader still owes an acknowledgement for.
    pub(crate) fn done_to(&self) -> SequenceNumber {
        self.acknowledged.max(self.start)
    }

    /// Where what is meant for this reader alone goes.
    pub(crate) fn address(&self) -> Option<Locator> {
        self.unicast.or(self.multicast)
    }

    /// Whether this ACKNACK is news. A preemptive one always is: the reader knows nothing yet, or has forgotten this writer and found it again, and
    /// may count from the beginning. (An old one that comes late costs an answer, no more.)
    pub(crate) fn accept_acknack(&mut self, now: Instant, acknack: &AckNack) -> bool {
        let is_preemptive = is_preemptive(acknack);
        let is_new = is_news(self.acknack_count, acknack.count, now);
        if is_new || is_preemptive {
            self.acknack_count = Some((acknack.count, now));
        }
        is_new || is_preemptive
    }

    /// When its last ACKNACK came that was news.
    pub(crate) fn last_heard(&self) -> Option<Instant> {
        self.acknack_count.map(|(_, at)| at)
    }

    /// Takes note that the reader has all below `base`; returns whether that is more than before.
    pub(crate) fn acknowledge(&mut self, base: SequenceNumber) -> bool {
        let is_more = base > self.acknowledged;
        if is_more || self.wants_history {
            // Where it is less, the reader has forgotten this writer and begins again: it is owed
            // heartbeats until it has all again.
            self.acknowledged = base.max(self.start);
        } else {
            // The same, but what it had acknowledged it has had.
            self.start = self.acknowledged.max(self.start);
        }
        is_more
    }
}

/// Whether an ACKNACK is one that a reader sends before it has heard of anything: from 0 or 1 on, nothing asked
/// for, not final.
fn is_preemptive(acknack: &AckNack) -> bool {
    let state = &acknack.state;
    state.base().get() <= 1 && state.is_empty() && !acknack.is_final
}
