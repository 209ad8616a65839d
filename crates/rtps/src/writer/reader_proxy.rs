//! Writer-side proxy of a matched reader, with the reliable protocol's state (RTPS 2.5 §8.4.7.5).

use alloc::boxed::Box;

use isolane_wire::{
    guid::Guid,
    locator::Locator,
    message::AckNack,
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

use crate::{
    limits::{MAX_PREEMPTIVE_ACKNACKS, MAX_UNANSWERED_HEARTBEATS},
    reader::is_news,
    slab::WriterId,
    writer::{filtered_changes::FilteredChanges, fragments::OwedFragments},
};

/// Proxy of a matched reader at one writer.
#[derive(Debug)]
pub(crate) struct ReaderProxy {
    pub(crate) writer: WriterId,
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
    pub(crate) filtered_changes: Option<Box<FilteredChanges>>,
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

    pub(crate) fn new(writer: WriterId, guid: Guid, reliable: bool) -> Self {
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
            filtered_changes: None,
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
