//! Accounting of a reader's samples: each finished sequence number is in exactly one count.

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
    /// unread values, whose instance state shows the end.
    pub evicted: u64,
    /// Received and rejected: no room (best effort), or not of the type.
    pub rejected: u64,
    /// Received with a payload larger than the reader's `max_bytes`: acknowledged, and reported by SAMPLE_LOST.
    pub too_large: u64,
    /// LIFESPAN expired before they were taken or received.
    pub expired: u64,
    /// Dropped by TIME_BASED_FILTER.
    pub filtered: u64,
    /// Held back by TIME_BASED_FILTER until the separation has passed.
    pub held: u64,
    /// Written by a writer that does not own the instance (OWNERSHIP EXCLUSIVE).
    pub not_owner: u64,
    /// Rejected by the reader's content filter, at the reader or, as reported by the writer, at the writer.
    pub unwanted: u64,
    /// Older than an accepted sample of the same instance (DESTINATION_ORDER BY_SOURCE_TIMESTAMP).
    pub outdated: u64,
    /// Part of a coherent set that was incomplete or too large.
    pub incomplete: u64,
    /// Received, and held until their coherent set has ended.
    pub in_sets: u64,
    /// Ends of coherent sets, which take a sequence number but are no samples.
    pub set_ends: u64,
    /// Unregistrations without effect on the instance, which other writers still write, which had ended, or which is
    /// unknown. They are recorded but are no samples.
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
    /// Returns whether every sample is in exactly one count.
    #[must_use]
    pub fn balances(&self) -> bool {
        // `lost` depends on sequence numbers that writers claim, so it can have any value.
        let came = self.delivered + self.available + self.evicted + self.rejected + self.too_large;
        let timed = self.expired + self.filtered + self.held + self.purged;
        let not_for_it = self.not_owner + self.unwanted + self.outdated;
        let never_came = self.lost.wrapping_add(self.irrelevant);
        let of_sets = self.incomplete + self.in_sets + self.set_ends;
        let not_samples = of_sets + self.unregistered;
        self.accounted == never_came.wrapping_add(came + timed + not_for_it + not_samples)
    }

    /// Counts one finished sequence number. Like `lost` it depends on claims of writers, and may wrap.
    pub(crate) fn account(&mut self) {
        self.accounted = self.accounted.wrapping_add(1);
    }

    /// Counts samples withheld by the writer's filter for this reader.
    pub(crate) fn withhold(&mut self, count: u64) {
        self.unwanted = self.unwanted.wrapping_add(count);
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
