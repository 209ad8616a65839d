//! What is counted, and what is switched off to show that it counts.

use serde::{Deserialize, Serialize};

use crate::report::Run;
use crate::scenario::flow::Flow;

/// What is switched off in a companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Jobs by priority, and a lane a level: both, since one lane for all has the one order of its ring.
    PrioritiesAndLanes,
    /// The link's strict order of classes.
    StrictLink,
    /// Bulk gives buffers back before it costs what is reserved for the most critical lane.
    Recycling,
    /// Drops have names: the link loses some frames, and books them as handed over.
    Ledger,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// Priority inversions, of all levels at both ends.
    Inversions,
    /// Critical round trips that did not come back.
    Lost,
    /// Looks at both ends that found fewer buffers free than are reserved; those that the critical lane had taken
    /// itself do not count.
    Touched,
    /// Critical samples in no count with a name, hop by hop.
    Unaccounted,
}

impl Mechanism {
    /// All.
    pub const ALL: [Mechanism; 4] = [
        Mechanism::PrioritiesAndLanes,
        Mechanism::StrictLink,
        Mechanism::Recycling,
        Mechanism::Ledger,
    ];

    /// What counts when it is off.
    pub fn counter(self) -> Counter {
        match self {
            Mechanism::PrioritiesAndLanes => Counter::Inversions,
            Mechanism::StrictLink => Counter::Lost,
            Mechanism::Recycling => Counter::Touched,
            Mechanism::Ledger => Counter::Unaccounted,
        }
    }

    /// In words.
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
    /// All, in the order they are shown in.
    pub const ALL: [Counter; 4] = [
        Counter::Inversions,
        Counter::Lost,
        Counter::Touched,
        Counter::Unaccounted,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Inversions => "inversions",
            Counter::Lost => "lost",
            Counter::Touched => "touched",
            Counter::Unaccounted => "unaccounted",
        }
    }
}

/// The counters of a run. `None`, in results null: the run has nothing of the kind, or nothing that could
/// count was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// See [`Counter::Inversions`]. `None` if an end has handed over samples that were not judged: without
    /// the stamp of their arrival nothing is known to have come before them.
    pub inversions: Option<u64>,
    /// See [`Counter::Lost`].
    pub lost: Option<u64>,
    /// See [`Counter::Touched`]. `None` if an end reserves nothing: sockets.
    pub touched: Option<u64>,
    /// See [`Counter::Unaccounted`]. `None` unless both ways were written to.
    pub unaccounted: Option<u64>,
}

impl Counts {
    /// Those of a run.
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

    /// One of them.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        match counter {
            Counter::Inversions => self.inversions,
            Counter::Lost => self.lost,
            Counter::Touched => self.touched,
            Counter::Unaccounted => self.unaccounted,
        }
    }
}
