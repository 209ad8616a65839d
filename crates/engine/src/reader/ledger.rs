//! Where a reader's samples went: each number it is done with is in exactly one count.

/// Where a reader's samples went. `accounted` = the sum of the others but the last four, at
/// every moment; see [`Self::balances`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReaderLedger {
    /// Sequence numbers this reader is done with.
    pub accounted: u64,
    /// Handed to the user.
    pub delivered: u64,
    /// In the cache, not yet taken.
    pub available: u64,
    /// Never came: best effort lost them on the way, or the writer no longer had them.
    pub lost: u64,
    /// Never came, because a writer of another implementation said by a GAP that they are not for this reader. It
    /// need not say why: what its filter holds back, and what its history no longer has, look alike.
    pub irrelevant: u64,
    /// Pushed out of the cache by younger ones (KEEP_LAST) before they were taken; and ends of instances that found no
    /// room beside values that were not seen yet, which tell them.
    pub evicted: u64,
    /// Came and were not taken in: no room (best effort), or not of the type.
    pub rejected: u64,
    /// Came and are larger than the reader's `max_bytes`: acknowledged, and reported by SAMPLE_LOST.
    pub too_large: u64,
    /// Outlived their LIFESPAN before they were taken, or before they came.
    pub expired: u64,
    /// Came sooner after another of their instance than TIME_BASED_FILTER lets through.
    pub filtered: u64,
    /// Came so, and are kept back until it does.
    pub held: u64,
    /// Came of writers that do not own their instance (OWNERSHIP EXCLUSIVE).
    pub not_owner: u64,
    /// Did not pass the reader's content filter, here or, of what a writer said that it held them back for it,
    /// there.
    pub unwanted: u64,
    /// Older than what was taken in of their instance (DESTINATION_ORDER BY_SOURCE_TIMESTAMP).
    pub outdated: u64,
    /// Of coherent sets of which something is missing, or that are larger than there is room for.
    pub incomplete: u64,
    /// Came and are held until their coherent set has ended.
    pub in_sets: u64,
    /// Ends of coherent sets: no samples, and yet numbers.
    pub set_ends: u64,
    /// Said that a writer writes an instance no longer which others write, which had ended, or which is not known: taken
    /// note of, and no samples.
    pub unregistered: u64,
    /// Were not taken for so long after the end of their instance that READER_DATA_LIFECYCLE let them go.
    pub purged: u64,
    /// Came and wait for earlier ones; not yet accounted.
    pub waiting: u64,
    /// Came again, or out of order at a best-effort reader; counted beside the balance.
    pub duplicates: u64,
    /// Came and were refused for now, to be asked for again; counted beside the balance.
    pub deferred: u64,
    /// Numbers before the first sample of a writer that came: history that is gone, or was never
    /// for this reader. Counted beside the balance; `accounted` + `skipped` is the sum over all
    /// matches of the numbers this reader is done with.
    pub skipped: u64,
}

impl ReaderLedger {
    /// Whether every sample is accounted for exactly once.
    #[must_use]
    pub fn balances(&self) -> bool {
        // What is lost is what writers say they have written, and so can be anything.
        let came = self.delivered + self.available + self.evicted + self.rejected + self.too_large;
        let timed = self.expired + self.filtered + self.held + self.purged;
        let not_for_it = self.not_owner + self.unwanted + self.outdated;
        let never_came = self.lost.wrapping_add(self.irrelevant);
        let of_sets = self.incomplete + self.in_sets + self.set_ends;
        let not_samples = of_sets + self.unregistered;
        self.accounted == never_came.wrapping_add(came + timed + not_for_it + not_samples)
    }

    /// Counts one number this reader is done with. Like what is lost, the sum is made of what
    /// writers say, and may come round.
    pub(crate) fn account(&mut self) {
        self.accounted = self.accounted.wrapping_add(1);
    }

    /// Counts numbers that the writer has held back because of the reader's filter.
    pub(crate) fn withhold(&mut self, count: u64) {
        self.unwanted = self.unwanted.wrapping_add(count);
        self.accounted = self.accounted.wrapping_add(count);
    }

    /// Counts numbers that will never come; the user is to be told if `true`.
    pub(crate) fn lose(&mut self, count: u64, has_begun: bool) -> bool {
        if has_begun {
            self.lost = self.lost.wrapping_add(count);
            self.accounted = self.accounted.wrapping_add(count);
        } else {
            self.skipped = self.skipped.wrapping_add(count);
        }
        has_begun && count > 0
    }

    /// Takes back numbers that were counted as lost and that the writer has not reached. Returns how many of them were
    /// counted otherwise, as samples of another sender.
    #[cold]
    pub(crate) fn take_back_lost(&mut self, count: u64) -> u64 {
        let lost = count.min(self.lost);
        self.lost -= lost;
        self.accounted = self.accounted.wrapping_sub(lost);
        count - lost
    }

    /// Counts numbers that a writer says are not for this reader.
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
