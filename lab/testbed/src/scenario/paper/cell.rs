//! Cells of the scenarios, and the configuration and the result of each.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use isolane_bench::experiment::{self, Datapath, Load};
use isolane_bench::report::{Place, Publisher, Run, Stage};
use isolane_bench::scenario::rtt::{Config, Outcome};
use isolane_bench::scenario::transport::{Lanes, Transport};
use serde::{Deserialize, Serialize};

use super::set_up::{ABLATED, COMPARED, LANE_TUNED, SOCKETS_UNTUNED, SetUp};
use crate::inside::tools::Counters;

/// Rate of the round trips of each cell, and the duration of the measurement.
const RATE_HZ: u32 = 1_000;
const SECONDS: u32 = 4;
const SECONDS_IN_BRIEF: u32 = 1;
/// Payload of the critical message, as in the other benchmarks.
const PAYLOAD_BYTES: u32 = 64;
/// Flood factor: the load of the usual link of 40 Mbit/s, in each direction. Together with the round trips, this load
/// exceeds the capacity of the one processor for both hosts.
const FLOOD_FACTOR: f64 = 1.0;
const FLOOD_PAYLOAD_BYTES: u32 = 512;

#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) set_up: SetUp,
    /// True with a flood in each direction and a busy loop.
    pub(super) is_disturbed: bool,
}

/// Cells of a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All cells of `paper`.
    Paper,
    /// Only the compared cells of `paper`, briefly, to check that the scenario works.
    Brief,
    Ablation,
}

impl Extent {
    /// Name of the scenario.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Extent::Paper => "paper",
            Extent::Brief => "brief",
            Extent::Ablation => "ablation",
        }
    }

    /// Cells in the order of measurement.
    pub(super) fn cells(self) -> Vec<Cell> {
        let set_ups = match self {
            Extent::Ablation => ABLATED,
            Extent::Paper | Extent::Brief => COMPARED,
        };
        let cells = set_ups.iter().flat_map(|&set_up| {
            set_up.loads.iter().map(move |&is_disturbed| Cell {
                set_up,
                is_disturbed,
            })
        });
        let is_compared = |cell: &Cell| {
            cell.set_up.name == LANE_TUNED.name
                || cell.set_up.name == SOCKETS_UNTUNED.name && cell.is_disturbed
        };
        cells
            .filter(|cell| self != Extent::Brief || is_compared(cell))
            .collect()
    }

    /// Duration of each cell.
    pub(super) fn seconds(self) -> u32 {
        match self {
            Extent::Paper | Extent::Ablation => SECONDS,
            Extent::Brief => SECONDS_IN_BRIEF,
        }
    }

    /// Number of boots of a seed, whose results are compared.
    pub(super) fn boots(self) -> usize {
        match self {
            Extent::Paper | Extent::Brief => 2,
            Extent::Ablation => 1,
        }
    }
}

impl Cell {
    /// Configuration of the cell's measurement. The middleware is the same in all cells, as in Meszlényi et al.
    pub(super) fn config(self, seconds: u32) -> Config {
        let set_up = self.set_up;
        let cell = experiment::Cell {
            datapath: set_up.datapath,
            place: Some(Place::Devices),
            disturbance: match self.is_disturbed {
                true => Load::Flood,
                false => Load::None,
            },
            publisher: Some(Publisher::Thread),
            payload_bytes: PAYLOAD_BYTES,
            rate_hz: Some(RATE_HZ),
            seconds,
            queues: Some(1),
            budgets: set_up.datapath == Datapath::Xdp && set_up.without != Some(Stage::Budgets),
            flood_factor: FLOOD_FACTOR,
            flood_payload_bytes: Some(FLOOD_PAYLOAD_BYTES),
            ..experiment::Cell::default()
        };
        let mut config = cell.round_trips();
        let settings = &mut config.settings;
        if set_up.is_tuned {
            settings.stages.push(Stage::Tune);
        }
        settings
            .stages
            .retain(|&stage| Some(stage) != set_up.without);
        if let Transport::Xdp(lanes) = &mut config.transport {
            *lanes = Lanes::of(settings);
        }
        config
    }
}

/// Result of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) set_up: String,
    pub(super) is_disturbed: bool,
    /// Hash of all round trips in nanoseconds, in their order.
    pub(super) samples_hash: String,
    pub(super) median_us: f64,
    pub(super) p99_us: f64,
    /// 99.9th percentile; four of 4,000 samples lie beyond it.
    pub(super) p99_9_us: f64,
    pub(super) max_us: f64,
    /// Frames of both hosts' queues, and drops.
    pub(super) frames: [Counters; 2],
    /// Result of isolane's benchmark.
    pub(super) run: Run,
}

impl Measured {
    pub(super) fn of(cell: Cell, outcome: Outcome, frames: [Counters; 2]) -> Measured {
        let rtt_ns = outcome.rounds.rtt_ns();
        let mut hasher = DefaultHasher::new();
        rtt_ns.hash(&mut hasher);
        let mut sorted_ns = rtt_ns;
        sorted_ns.sort_unstable();
        Measured {
            set_up: cell.set_up.name.into(),
            is_disturbed: cell.is_disturbed,
            samples_hash: format!("{:016x}", hasher.finish()),
            median_us: percentile_us(&sorted_ns, 500),
            p99_us: percentile_us(&sorted_ns, 990),
            p99_9_us: percentile_us(&sorted_ns, 999),
            max_us: percentile_us(&sorted_ns, 1_000),
            frames,
            run: outcome.run,
        }
    }

    /// Returns true for the result of this cell.
    pub(super) fn is_of(&self, set_up: &SetUp, is_disturbed: bool) -> bool {
        self.set_up == set_up.name && self.is_disturbed == is_disturbed
    }
}

/// Row of a table.
impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:53} {:>5} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>5}  {}",
            self.set_up,
            if self.is_disturbed { "yes" } else { "no" },
            self.median_us,
            self.p99_us,
            self.p99_9_us,
            self.max_us,
            self.run.lost,
            self.samples_hash
        )
    }
}

/// Smallest sample that at least `per_mille` of a thousand samples do not exceed; 0 without samples. The benchmark's
/// own statistics leave a percentile out when fewer than ten samples lie beyond it.
fn percentile_us(sorted_ns: &[u64], per_mille: usize) -> f64 {
    let rank = (sorted_ns.len() * per_mille).div_ceil(1000);
    let sample = rank.checked_sub(1).and_then(|index| sorted_ns.get(index));
    sample.map_or(0.0, |&ns| ns as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolane_bench::scenario::transport::Policing;

    #[test]
    fn every_cell_has_four_thousand_round_trips_and_can_be_measured() {
        assert_eq!(Extent::Paper.cells().len(), 8);
        for extent in [Extent::Paper, Extent::Ablation] {
            for cell in extent.cells() {
                let config = cell.config(extent.seconds());
                assert!(config.samples() >= 4_000);
                assert_eq!(config.check(), Ok(()), "{cell:?}");
                let is_lane = cell.set_up.datapath == LANE_TUNED.datapath;
                assert_eq!(config.takes_lanes(), is_lane, "{cell:?}");
            }
        }
    }

    #[test]
    fn nothing_is_tuned_before_what_is_untuned_has_been_measured() {
        for extent in [Extent::Paper, Extent::Brief, Extent::Ablation] {
            let cells = extent.cells();
            assert!(cells.is_sorted_by_key(|cell| cell.set_up.is_tuned));
        }
        assert_eq!(Extent::Brief.cells().len(), 3);
    }

    #[test]
    fn an_ablated_lane_lacks_at_most_one_stage_and_has_the_same_flood() {
        let config = |set_up| {
            let cell = Cell {
                set_up,
                is_disturbed: true,
            };
            cell.config(SECONDS)
        };
        let full = config(LANE_TUNED);
        assert!(full.policing != Policing::default());
        for &set_up in ABLATED
            .iter()
            .filter(|it| it.datapath == LANE_TUNED.datapath)
        {
            let changed = config(set_up);
            assert_eq!(changed.flood, full.flood);
            let left_out = full.settings.stages.len() - changed.settings.stages.len();
            assert_eq!(
                left_out,
                usize::from(set_up.without.is_some()),
                "{set_up:?}"
            );
            let has_budgets = set_up.without != Some(Stage::Budgets);
            let is_policed = changed.policing != Policing::default();
            assert_eq!(is_policed, has_budgets, "{set_up:?}");
        }
    }

    #[test]
    fn the_maximum_is_the_thousandth_per_mille() {
        let sorted: Vec<u64> = (1..=4_000).map(|us| us * 1_000).collect();
        assert_eq!(percentile_us(&sorted, 500), 2_000.0);
        assert_eq!(percentile_us(&sorted, 999), 3_996.0);
        assert_eq!(percentile_us(&sorted, 1_000), 4_000.0);
        assert_eq!(percentile_us(&[], 999), 0.0);
    }
}
