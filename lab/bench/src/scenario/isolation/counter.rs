//! Isolation counters, and the mechanisms that companion runs turn off.

use serde::{Deserialize, Serialize};

use crate::report::Run;
use crate::scenario::flow::Flow;

/// Mechanism that a companion turns off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Jobs by priority, and a lane per level. Both go together, because a single lane has a single order.
    PrioritiesAndLanes,
    /// Strict priority of classes on the link.
    StrictLink,
    /// Recycling: bulk returns buffers before it takes any reserved for the most critical lane.
    Recycling,
    /// Named drops: the companion's link counts some lost frames as delivered.
    Ledger,
}

/// Isolation counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// Priority inversions of all levels at both ends.
    Inversions,
    /// Critical round trips that did not return.
    Lost,
    /// Polls at both ends that found fewer free buffers than are reserved, except for those the critical lane itself
    /// took.
    Touched,
    /// Critical samples in no named count, summed over the hops.
    Unaccounted,
}

impl Mechanism {
    /// All mechanisms.
    pub const ALL: [Mechanism; 4] = [
        Mechanism::PrioritiesAndLanes,
        Mechanism::StrictLink,
        Mechanism::Recycling,
        Mechanism::Ledger,
    ];

    /// Counter that rises when this mechanism is off.
    pub fn counter(self) -> Counter {
        match self {
            Mechanism::PrioritiesAndLanes => Counter::Inversions,
            Mechanism::StrictLink => Counter::Lost,
            Mechanism::Recycling => Counter::Touched,
            Mechanism::Ledger => Counter::Unaccounted,
        }
    }

    /// Descriptive name.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::PrioritiesAndLanes => "jobs by priority and a lane a level",
            Mechanism::StrictLink => "a strict link",
            Mechanism::Recycling => "recycling of bulk",
            Mechanism::Ledger => "names of drops",
        }
    }
}

impl Counter {
    /// All counters in display order.
    pub const ALL: [Counter; 4] = [
        Counter::Inversions,
        Counter::Lost,
        Counter::Touched,
        Counter::Unaccounted,
    ];

    /// Display name.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Inversions => "inversions",
            Counter::Lost => "lost",
            Counter::Touched => "touched",
            Counter::Unaccounted => "unaccounted",
        }
    }
}

/// Counters of a run. `None`, null in results, marks a counter the run does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Counter [`Counter::Inversions`]. `None` if an end delivered samples without a receive timestamp, for which
    /// inversions cannot be detected.
    pub inversions: Option<u64>,
    /// Counter [`Counter::Lost`].
    pub lost: Option<u64>,
    /// Counter [`Counter::Touched`]. `None` if an end reserves no buffers (sockets).
    pub touched: Option<u64>,
    /// Counter [`Counter::Unaccounted`]. `None` unless both directions were written to.
    pub unaccounted: Option<u64>,
}

impl Counts {
    pub(super) fn of(run: &Run) -> Counts {
        let ways: Option<&[Flow; 2]> = run.flows.as_slice().try_into().ok();
        let judged = run.inversions.judged;
        let are_judged = ways.is_some_and(|[pings, pongs]| {
            judged.pong >= pings.delivered.max(1) && judged.ping >= pongs.delivered.max(1)
        });
        let are_written = ways.filter(|ways| ways.iter().all(|way| way.written > 0));
        let touched = run.lanes.as_ref().and_then(|lanes| {
            let (ping, pong) = (lanes.ping.reserve_touched, lanes.pong.reserve_touched);
            Some(ping? + pong?)
        });
        Counts {
            inversions: are_judged.then_some(run.inversions.all_levels),
            lost: (run.samples > 0).then_some(run.lost),
            touched,
            unaccounted: are_written.map(|ways| ways.iter().map(Flow::unaccounted).sum()),
        }
    }

    /// Value of one counter.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        match counter {
            Counter::Inversions => self.inversions,
            Counter::Lost => self.lost,
            Counter::Touched => self.touched,
            Counter::Unaccounted => self.unaccounted,
        }
    }
}
