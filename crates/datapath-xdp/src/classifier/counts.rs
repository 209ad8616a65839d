//! Classifier counters, summed over the queues.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::decision::{FlowReason, OthersReason};
use super::flow::FlowSlot;
use super::layout::{Row, Shared};
use crate::limits::MAX_FLOWS;

/// Frames of one flow, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts([u64; FlowReason::COUNT]);

impl FlowCounts {
    /// Number of frames with this reason.
    #[must_use]
    pub const fn get(&self, reason: FlowReason) -> u64 {
        self.0[reason as usize]
    }

    /// Number of all frames of the flow.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Name and frame count of each reason.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let reasons = FlowReason::ALL.iter();
        reasons.map(|reason| (reason.name(), self.get(*reason)))
    }

    pub(super) fn note(&mut self, reason: FlowReason) {
        self.0[reason as usize] += 1;
    }
}

/// Frames that belong to no flow, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OthersCounts([u64; OthersReason::COUNT]);

impl OthersCounts {
    /// Number of frames with this reason.
    #[must_use]
    pub const fn get(&self, reason: OthersReason) -> u64 {
        self.0[reason as usize]
    }

    /// Number of all frames that belong to no flow.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Name and frame count of each reason.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let reasons = OthersReason::ALL.iter();
        reasons.map(|reason| (reason.name(), self.get(*reason)))
    }

    pub(super) fn note(&mut self, reason: OthersReason) {
        self.0[reason as usize] += 1;
    }
}

/// Counters of one interface's classifier since it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Counters by slot. A slot reused for another flow continues its counters.
    pub flows: [FlowCounts; MAX_FLOWS],
    /// Counters of frames that belong to no flow.
    pub others: OthersCounts,
    /// Frames handed on below the low-water mark, which recycling would have dropped. 0 while
    /// recycling is enforced.
    pub touched_fill: u64,
    /// Frames of non-critical flows charged to the interface's reserve. 0 while the reserve is
    /// enforced.
    pub touched_reserve: u64,
    /// Frames without a stamp, because the driver left no metadata room.
    pub unstamped: u64,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            flows: [FlowCounts::default(); MAX_FLOWS],
            others: OthersCounts::default(),
            touched_fill: 0,
            touched_reserve: 0,
            unstamped: 0,
        }
    }
}

impl Counts {
    /// Counters of one flow; zeros for a slot that does not exist.
    #[must_use]
    pub fn flow(&self, slot: FlowSlot) -> FlowCounts {
        let counts = self.flows.get(usize::from(slot.0));
        counts.copied().unwrap_or_default()
    }

    /// Number of all frames examined.
    #[must_use]
    pub fn total(&self) -> u64 {
        let flows: u64 = self.flows.iter().map(FlowCounts::total).sum();
        flows + self.others.total()
    }

    /// Reads the counters of all queues. Frames arriving meanwhile may or may not be included.
    pub(super) fn read(shared: &Shared) -> Box<Counts> {
        let mut counts = Box::<Counts>::default();
        shared.rows.iter().for_each(|row| counts.add(row));
        counts
    }

    fn add(&mut self, row: &Row) {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        for (sum, counter) in self.others.0.iter_mut().zip(&row.others) {
            *sum += read(counter);
        }
        for (flow, counters) in self.flows.iter_mut().zip(&row.flows) {
            for (sum, counter) in flow.0.iter_mut().zip(counters) {
                *sum += read(counter);
            }
        }
        self.touched_fill += read(&row.touched_fill);
        self.touched_reserve += read(&row.touched_reserve);
        self.unstamped += read(&row.unstamped);
    }
}
