//! Counters of a participant, a writer and a reader.
//!
//! A reader's counters account for its samples: each finished sequence number is in exactly one count. A writer's
//! ledger accounts for the sequence numbers that it assigned.

use crate::status::RejectReason;

/// Counters of received messages, and of what was malformed, dropped, refused or limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Messages with a readable header.
    pub messages: u64,
    /// Datagrams that are not RTPS messages, or do not match their header extension.
    pub malformed_messages: u64,
    /// Submessages that could not be read.
    pub malformed_submessages: u64,
    /// Submessages of kinds that this protocol does not use.
    pub skipped_submessages: u64,
    /// Submessages for another participant.
    pub for_others: u64,
    /// DATA of writers without a matched local reader.
    pub unmatched_data: u64,
    /// ACKNACKs of readers without a matched local writer.
    pub unmatched_acknacks: u64,
    /// Announcements that could not be read, or were larger than a slot.
    pub malformed_announcements: u64,
    /// SPDP announcements dropped because the queue was full.
    pub announcements_dropped: u64,
    /// Participants refused because the table was full.
    pub participants_refused: u64,
    /// Endpoints refused because the table was full, and announcements or changes of endpoints refused for lack of
    /// memory.
    pub endpoints_refused: u64,
    /// Matches refused because a table was full.
    pub matches_refused: u64,
    /// Endpoints and matches refused because a participant has its share of the tables
    /// ([`GUARANTEED_ENTRIES`](crate::limits::GUARANTEED_ENTRIES)).
    pub shares_exceeded: u64,
    /// Participants removed to make room for a new one: an unvalidated one, or the previous incarnation of the new one.
    pub participants_displaced: u64,
    /// Readers that no first transmission reaches because their participant has announced more addresses than
    /// [`MAX_DESTINATIONS`](crate::limits::MAX_DESTINATIONS).
    pub destinations_full: u64,
    /// Datagrams that did not fit the caller's buffer.
    pub buffer_too_small: u64,
    /// Participants whose lease expired.
    pub leases_expired: u64,
    /// Announcements of a lease longer than the maximum.
    pub leases_shortened: u64,
    /// Ends of instances that found no room in a cache.
    pub instance_ends_unseen: u64,
    /// Datagrams not sent to an unvalidated address because of
    /// [`AMPLIFICATION_FACTOR`](crate::limits::AMPLIFICATION_FACTOR) (anti-amplification).
    pub answers_withheld: u64,
    /// Datagrams not sent to an unvalidated address because of
    /// [`UNVALIDATED_BYTES_PER_S`](crate::limits::UNVALIDATED_BYTES_PER_S).
    pub unvalidated_limited: u64,
    /// Times that SEDP waited for its rate limit
    /// ([`discovery_bytes_per_s`](crate::ParticipantConfig::discovery_bytes_per_s)).
    pub discovery_limited: u64,
    /// ACKNACKs of readers at an unvalidated address that came from an address not announced by their participant; such
    /// an ACKNACK validates no address.
    pub answers_elsewhere: u64,
    /// Readers at an unvalidated address whose participant answers from another one; they get no samples.
    pub readers_unvalidated: u64,
    /// Readers no longer waited for because they never answered.
    pub readers_silent: u64,
    /// Samples rejected by a reader because their encapsulation or payload is not of its type.
    pub samples_unreadable: u64,
    /// Samples whose LIFESPAN was over on arrival; counted at each arrival.
    pub expired_on_arrival: u64,
    /// Samples larger than their reader accepts.
    pub samples_too_large: u64,
    /// Samples of instances that found no entry to be tracked for DEADLINE or TIME_BASED_FILTER.
    pub unwatched: u64,
    /// USER_DATA, TOPIC_DATA and GROUP_DATA cut to the first [`MAX_OCTETS`](isolane_wire::limits::MAX_OCTETS).
    pub octets_cut: u64,
    /// SPDP announcements that replaced an older, still queued one of their participant.
    pub announcements_replaced: u64,
    /// Announcements of ignored participants, endpoints and topics.
    pub announcements_ignored: u64,
    /// Fragments that a reader did not use: duplicates, fragments of finished samples, or fragments whose sizes
    /// contradict the first one.
    pub fragments_unused: u64,
    /// Fragments of samples that found no reassembly place at a reader.
    pub assemblies_refused: u64,
    /// Incomplete samples displaced by another, or restarted because later fragments contradicted the first.
    pub assemblies_dropped: u64,
    /// Writers with GROUP access that do not number their samples in the group; each was treated as a group of one.
    pub groups_unnumbered: u64,
    /// Static peers that announced another description of themselves, and announcements of described endpoints that
    /// differ from the description.
    pub static_disagreements: u64,
    /// Datagrams in the name of a static participant that come from an address not described, have no incarnation, or
    /// announce a participant described as silent; and datagrams in this participant's own name.
    pub static_impostors: u64,
    /// HEARTBEATs, GAPs and DATA with sequence numbers beyond the window of a started writer. They are provisional
    /// until another message from an address of the writer's participant confirms them.
    pub jumps_doubted: u64,
}

impl Counters {
    pub(crate) fn count_rejected(&mut self, reason: RejectReason) {
        self.samples_unreadable += u64::from(matches!(
            reason,
            RejectReason::NotOfType | RejectReason::Encapsulation(_)
        ));
    }
}

/// Sample counts of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriterLedger {
    /// Last sequence number, including the numbers in `set_ends`.
    pub written: u64,
    /// Numbers of `written` that are no samples: ends of coherent sets, and the number skipped before the end of an
    /// incomplete set. Not a term of the balance.
    pub set_ends: u64,
    /// Sent for the first time.
    pub sent: u64,
    /// Not sent because no reader was matched.
    pub unmatched: u64,
    /// Not sent because the content filters of all matched readers reject them.
    pub content_filtered: u64,
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
        self.written == self.sent + self.unmatched + self.content_filtered + unsent
    }
}

/// Counts of a reader's samples. `accounted` always equals the sum of the other counts except the last four; see
/// [`Self::balances`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReaderLedger {
    /// Sequence numbers this reader is finished with.
    pub accounted: u64,
    /// Taken by the user.
    pub delivered: u64,
    /// Available in the cache, not taken yet.
    pub available: u64,
    /// Lost in transit (best effort), or removed by the writer before they were received.
    pub lost: u64,
    /// Declared irrelevant by a GAP from a writer of another implementation. Such a GAP does not distinguish filtered
    /// samples from removed ones.
    pub irrelevant: u64,
    /// Replaced by newer ones (KEEP_LAST) before they were taken. Includes ends of instances that found no room next to
    /// unread values; the instance state shows such an end.
    pub evicted: u64,
    /// Received and rejected: no room (best effort), or not of the type.
    pub rejected: u64,
    /// Received with a payload larger than the reader's `max_bytes`: acknowledged, and reported by SAMPLE_LOST.
    pub too_large: u64,
    /// LIFESPAN expired before they were taken or received.
    pub expired: u64,
    /// Dropped by TIME_BASED_FILTER.
    pub time_filtered: u64,
    /// Held back by TIME_BASED_FILTER until the separation has passed.
    pub held: u64,
    /// Written by a writer that does not own the instance (OWNERSHIP EXCLUSIVE).
    pub not_owner: u64,
    /// Rejected by the reader's content filter, at the reader or, as reported by the writer, at the writer.
    pub content_filtered: u64,
    /// Older than an accepted sample of the same instance (DESTINATION_ORDER BY_SOURCE_TIMESTAMP).
    pub outdated: u64,
    /// Part of a coherent set that was incomplete or too large.
    pub incomplete: u64,
    /// Received, and held until their coherent set has ended.
    pub in_sets: u64,
    /// Ends of coherent sets, which take a sequence number but are no samples.
    pub set_ends: u64,
    /// Unregistrations without effect: other writers still write the instance, it had already ended, or it is unknown.
    /// They are recorded but are no samples.
    pub unregistered: u64,
    /// Purged by READER_DATA_LIFECYCLE.
    pub purged: u64,
    /// Received out of order, waiting for earlier ones. Not in `accounted`.
    pub waiting: u64,
    /// Received again, or out of order by a best-effort reader. Not in `accounted`.
    pub duplicates: u64,
    /// Received and refused for now, to be requested again. Not in `accounted`.
    pub deferred: u64,
    /// Sequence numbers before a writer's first received sample: history that is gone or was never for this reader. Not
    /// in `accounted`; `accounted` + `skipped` is the sum of finished sequence numbers over all matches.
    pub skipped: u64,
}

impl ReaderLedger {
    /// Returns whether each finished sequence number is in exactly one count.
    #[must_use]
    pub fn balances(&self) -> bool {
        // `lost` depends on sequence numbers that writers claim, so it can have any value.
        let came = self.delivered + self.available + self.evicted + self.rejected + self.too_large;
        let timed = self.expired + self.time_filtered + self.held + self.purged;
        let not_for_it = self.not_owner + self.content_filtered + self.outdated;
        let never_came = self.lost.wrapping_add(self.irrelevant);
        let of_sets = self.incomplete + self.in_sets + self.set_ends;
        let not_samples = of_sets + self.unregistered;
        self.accounted == never_came.wrapping_add(came + timed + not_for_it + not_samples)
    }

    /// Counts one finished sequence number. The count depends on claims of writers, as `lost` does, and may wrap.
    pub(crate) fn account(&mut self) {
        self.accounted = self.accounted.wrapping_add(1);
    }

    /// Counts samples withheld by the writer's filter for this reader.
    pub(crate) fn withhold(&mut self, count: u64) {
        self.content_filtered = self.content_filtered.wrapping_add(count);
        self.accounted = self.accounted.wrapping_add(count);
    }

    /// Counts sequence numbers that will never arrive. Returns `true` if SAMPLE_LOST must be raised.
    pub(crate) fn lose(&mut self, count: u64, has_begun: bool) -> bool {
        if has_begun {
            self.lost = self.lost.wrapping_add(count);
            self.accounted = self.accounted.wrapping_add(count);
        } else {
            self.skipped = self.skipped.wrapping_add(count);
        }
        has_begun && count > 0
    }

    /// Reverts the count of numbers counted as lost that the writer has not reached. Returns how many were counted
    /// otherwise, as samples of another sender.
    #[cold]
    pub(crate) fn take_back_lost(&mut self, count: u64) -> u64 {
        let lost = count.min(self.lost);
        self.lost -= lost;
        self.accounted = self.accounted.wrapping_sub(lost);
        count - lost
    }

    /// Counts sequence numbers that a writer declared irrelevant for this reader.
    #[cold]
    pub(crate) fn pass_irrelevant(&mut self, count: u64, has_begun: bool) {
        if has_begun {
            self.irrelevant = self.irrelevant.wrapping_add(count);
            self.accounted = self.accounted.wrapping_add(count);
        } else {
            self.skipped = self.skipped.wrapping_add(count);
        }
    }
}
