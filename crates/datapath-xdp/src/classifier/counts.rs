//! What the classifier has counted, added up over its queues.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::decision::{FlowReason, OthersReason};
use super::flow::FlowSlot;
use super::layout::{Row, Shared};
use crate::limits::MAX_FLOWS;

/// What became of the frames of one flow, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts([u64; FlowReason::COUNT]);

impl FlowCounts {
    /// Frames of this reason.
    #[must_use]
    pub const fn get(&self, reason: FlowReason) -> u64 {
        self.0[reason as usize]
    }

    /// All frames of the flow.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each reason's name and frames.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let reasons = FlowReason::ALL.iter();
        reasons.map(|reason| (reason.name(), self.get(*reason)))
    }

    pub(super) fn note(&mut self, reason: FlowReason) {
        self.0[reason as usize] += 1;
    }
}

/// What became of the frames of no flow, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OthersCounts([u64; OthersReason::COUNT]);

impl OthersCounts {
    /// Frames of this reason.
    #[must_use]
    pub const fn get(&self, reason: OthersReason) -> u64 {
        self.0[reason as usize]
    }

    /// All frames of no flow.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each reason's name and frames.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let reasons = OthersReason::ALL.iter();
        reasons.map(|reason| (reason.name(), self.get(*reason)))
    }

    pub(super) fn note(&mut self, reason: OthersReason) {
        self.0[reason as usize] += 1;
    }
}

/// All that the classifier of one interface has counted since it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// By slot. A slot that is given to another flow counts on.
    pub flows: [FlowCounts; MAX_FLOWS],
    /// Of no flow.
    pub others: OthersCounts,
    /// Frames that were handed on although so few buffers were free that recycling would have dropped
    /// them: 0 while it is enforced.
    pub touched_fill: u64,
    /// Frames of flows that are not critical and took from the interface's reserve: 0 while it is
    /// enforced.
    pub touched_reserve: u64,
    /// Frames whose stamp the driver had no room for.
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
    /// Of one flow; a slot that does not exist has counted nothing.
    #[must_use]
    pub fn flow(&self, slot: FlowSlot) -> FlowCounts {
        let counts = self.flows.get(usize::from(slot.0));
        counts.copied().unwrap_or_default()
    }

    /// All frames that were looked at.
    #[must_use]
    pub fn total(&self) -> u64 {
        let flows: u64 = self.flows.iter().map(FlowCounts::total).sum();
        flows + self.others.total()
    }

    /// Reads the counters of all queues. Frames that arrive meanwhile are in or not.
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
