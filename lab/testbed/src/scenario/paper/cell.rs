//! Cells of the scenario, the result of each, and the tables: the cells of a seed, and the worst seed.

use std::fmt::{self, Write as _};

use isolane_bench::report::{Disturbance, Place, Publisher, ReceiveWork, Run, Scenario, Stage};
use isolane_bench::scenario::plan;
use isolane_bench::scenario::rtt::{Config, Outcome};
use serde::{Deserialize, Serialize};

use super::Seed;
use super::trace::Traced;
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

/// Datapath of critical samples, with the host set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Path {
    /// Kernel sockets with the distribution's defaults; the applications have the ordinary priority.
    SocketsUntuned,
    /// Kernel sockets with the distribution's defaults; the applications have a real-time priority. The baseline of
    /// Meszlényi et al.
    SocketsRealTime,
    /// Kernel sockets with the host set-up ([`apply`](super::ablation::apply)).
    SocketsTuned,
    /// AF_XDP lanes with the same host set-up, and rate limits for unvalidated senders.
    LaneTuned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) path: Path,
    /// True with a flood in each direction and a busy loop.
    pub(super) is_disturbed: bool,
}

/// Extent of the measurement in a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All cells.
    Whole,
    /// Only the compared cells, briefly, to check that the scenario works.
    Brief,
}

impl Extent {
    /// Word in a guest's task.
    pub(super) fn word(self) -> &'static str {
        match self {
            Extent::Whole => "whole",
            Extent::Brief => "brief",
        }
    }

    /// Extent with this word.
    pub(super) fn of(word: Option<&str>) -> Option<Extent> {
        [Extent::Whole, Extent::Brief]
            .into_iter()
            .find(|extent| Some(extent.word()) == word)
    }

    /// Cells in the order of measurement, so that the host set-up is applied only once.
    pub(super) fn cells(self) -> Vec<Cell> {
        let of_path = |path| [false, true].map(|is_disturbed| Cell { path, is_disturbed });
        let mut cells: Vec<Cell> = Path::ALL.into_iter().flat_map(of_path).collect();
        if self == Extent::Brief {
            let untuned = Cell {
                path: Path::SocketsUntuned,
                is_disturbed: true,
            };
            cells.retain(|&cell| cell.path == Path::LaneTuned || cell == untuned);
        }
        cells
    }

    fn seconds(self) -> u32 {
        match self {
            Extent::Whole => SECONDS,
            Extent::Brief => SECONDS_IN_BRIEF,
        }
    }
}

impl Path {
    pub(super) const ALL: [Path; 4] = [
        Path::SocketsUntuned,
        Path::SocketsRealTime,
        Path::SocketsTuned,
        Path::LaneTuned,
    ];

    pub(super) fn is_tuned(self) -> bool {
        matches!(self, Path::SocketsTuned | Path::LaneTuned)
    }

    /// Returns true when the applications have a real-time priority.
    pub(super) fn is_real_time(self) -> bool {
        self != Path::SocketsUntuned
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Path::SocketsUntuned => "sockets untuned",
            Path::SocketsRealTime => "sockets real-time",
            Path::SocketsTuned => "sockets tuned",
            Path::LaneTuned => "lane tuned",
        })
    }
}

impl Cell {
    /// Configuration of the cell's measurement. The middleware is the same in all cells, as in Meszlényi et al.
    pub(super) fn config(self, extent: Extent) -> Config {
        let datapath = match self.path {
            Path::SocketsUntuned | Path::SocketsRealTime | Path::SocketsTuned => "udp",
            Path::LaneTuned => "xdp",
        };
        let disturbance = self.is_disturbed.then_some(Disturbance::Flood);
        let mut scenario = Scenario {
            rate_hz: RATE_HZ,
            receive_work: ReceiveWork::Softirq,
            ..plan::scenario(datapath, Publisher::Thread, PAYLOAD_BYTES, disturbance)
        };
        if self.path == Path::LaneTuned {
            scenario.stages.push(Stage::Budgets);
        }
        if self.path.is_tuned() {
            scenario.stages.push(Stage::Tune);
        }
        let mut config = plan::in_place(Place::Devices, scenario, extent.seconds());
        config.flood.factor = FLOOD_FACTOR;
        config.flood.payload_bytes = FLOOD_PAYLOAD_BYTES;
        config
    }
}

/// Result of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Result {
    pub(super) cell: Cell,
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

impl Result {
    pub(super) fn of(cell: Cell, outcome: Outcome, frames: [Counters; 2]) -> Result {
        let rtt_ns = outcome.rounds.rtt_ns();
        let mut sorted_ns = rtt_ns.clone();
        sorted_ns.sort_unstable();
        Result {
            cell,
            samples_hash: format!("{:016x}", hash(&rtt_ns)),
            median_us: percentile_us(&sorted_ns, 500),
            p99_us: percentile_us(&sorted_ns, 990),
            p99_9_us: percentile_us(&sorted_ns, 999),
            max_us: percentile_us(&sorted_ns, 1_000),
            frames,
            run: outcome.run,
        }
    }
}

/// Smallest sample that at least `per_mille` of a thousand samples do not exceed; 0 without samples.
fn percentile_us(sorted_ns: &[u64], per_mille: usize) -> f64 {
    let rank = (sorted_ns.len() * per_mille).div_ceil(1000);
    let sample = rank.checked_sub(1).and_then(|index| sorted_ns.get(index));
    sample.map_or(0.0, |&ns| ns as f64 / 1e3)
}

/// FNV-1a over the samples' bytes, to compare two runs. There is no adversary.
fn hash(samples_ns: &[u64]) -> u64 {
    let bytes = samples_ns.iter().flat_map(|sample| sample.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Aims for lanes under the flood relative to lanes without a flood, at p99.9 and at the maximum.
const AIM_P99_9: f64 = 1.2;
const AIM_MAX: f64 = 1.5;
/// Aim for the maximum of untuned sockets relative to the lane's, both under the flood.
const AIM_SOCKETS: f64 = 10.0;

/// Table of a seed's cells.
pub(super) fn of_seed(cells: &[Result]) -> String {
    let mut text = format!(
        "{:16} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}  hash of the samples\n",
        "microseconds", "disturbed", "median", "p99", "p99.9", "max", "lost"
    );
    for result in cells {
        let disturbed = if result.cell.is_disturbed {
            "yes"
        } else {
            "no"
        };
        let _ = writeln!(
            text,
            "{:16} {disturbed:>9} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>6}  {}",
            result.cell.path,
            result.median_us,
            result.p99_us,
            result.p99_9_us,
            result.max_us,
            result.run.lost,
            result.samples_hash
        );
        if let Some(reason) = &result.run.invalid {
            let _ = writeln!(text, "INVALID: {reason}");
        }
    }
    text
}

/// Table of processor time in round trips: mean and slowest, without and under the flood.
pub(super) fn of_traced(cells: &[Traced]) -> String {
    let mut text = String::new();
    for traced in cells {
        let condition = match (traced.is_disturbed, traced.with_locks) {
            (false, _) => "undisturbed",
            (true, false) => "under the flood",
            (true, true) => "under the flood, with locks",
        };
        let _ = writeln!(
            text,
            "lane {condition}: p99.9 {:.1} us, max {:.1} us\n{:44} {:>9} {:>9}",
            traced.p99_9_us, traced.max_us, "on average in a trip", "all", "slowest"
        );
        let account = &traced.account;
        for share in &account.slow {
            let mut all = account.all.iter();
            let of_all = all.find(|other| other.what == share.what);
            let of_all = of_all.map_or(0.0, |other| other.mean);
            let _ = writeln!(text, "{:44} {of_all:>9.1} {:>9.1}", share.what, share.mean);
        }
        let _ = writeln!(text, "the slowest:");
        for line in &account.slowest {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// Ratios of a seed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratios {
    seed: u64,
    /// Lanes under the flood relative to lanes without a flood.
    p99_9: f64,
    max: f64,
    /// Untuned sockets relative to lanes, both under the flood.
    sockets_max: f64,
}

impl Ratios {
    fn of(seed: &Seed) -> Option<Ratios> {
        let cell = |path: Path, is_disturbed: bool| {
            let mut cells = seed.cells.iter();
            cells.find(|result| result.cell == Cell { path, is_disturbed })
        };
        let quiet = cell(Path::LaneTuned, false)?;
        let lane = cell(Path::LaneTuned, true)?;
        let sockets = cell(Path::SocketsUntuned, true)?;
        Some(Ratios {
            seed: seed.seed,
            p99_9: lane.p99_9_us / quiet.p99_9_us,
            max: lane.max_us / quiet.max_us,
            sockets_max: sockets.max_us / lane.max_us,
        })
    }
}

/// Summary over all seeds.
#[derive(Debug)]
pub(super) struct Summary {
    ratios: Vec<Ratios>,
    /// Faults that invalidate the result.
    faults: Vec<String>,
}

impl Summary {
    pub(super) fn of(seeds: &[Seed]) -> Summary {
        let mut faults = Vec::new();
        for seed in seeds {
            if !seed.is_repeatable {
                faults.push(format!(
                    "seed {}: two boots reported different values",
                    seed.seed
                ));
            }
            for result in &seed.cells {
                if let Some(reason) = &result.run.invalid {
                    faults.push(format!(
                        "seed {}, {}: {reason}",
                        seed.seed, result.cell.path
                    ));
                }
            }
        }
        Summary {
            ratios: seeds.iter().filter_map(Ratios::of).collect(),
            faults,
        }
    }

    /// Returns true when the numbers are valid: aims may be missed, but reproducibility may not.
    pub(super) fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>6} {:>24} {:>24} {:>34}",
            "seed",
            "lane, flood/quiet p99.9",
            "lane, flood/quiet max",
            "untuned sockets/lane, flood, max"
        )?;
        for ratios in &self.ratios {
            writeln!(
                f,
                "{:>6} {:>24.2} {:>24.2} {:>34.2}",
                ratios.seed, ratios.p99_9, ratios.max, ratios.sockets_max
            )?;
        }
        let largest = |of: fn(&Ratios) -> f64| self.ratios.iter().map(of).fold(0.0, f64::max);
        let smallest = self.ratios.iter().map(|ratios| ratios.sockets_max);
        let worst = [
            largest(|ratios| ratios.p99_9),
            largest(|ratios| ratios.max),
            smallest.fold(f64::INFINITY, f64::min),
        ];
        writeln!(
            f,
            "{:>6} {:>24.2} {:>24.2} {:>34.2}",
            "worst", worst[0], worst[1], worst[2]
        )?;
        let met = |is_met: bool| if is_met { "met" } else { "missed" };
        writeln!(
            f,
            "{:>6} {:>24} {:>24} {:>34}",
            "aim",
            format!("{AIM_P99_9}: {}", met(worst[0] <= AIM_P99_9)),
            format!("{AIM_MAX}: {}", met(worst[1] <= AIM_MAX)),
            format!("{AIM_SOCKETS}: {}", met(worst[2] >= AIM_SOCKETS)),
        )?;
        self.faults
            .iter()
            .try_for_each(|fault| writeln!(f, "FAILED: {fault}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_four_thousand_round_trips_and_can_be_measured() {
        let cells = Extent::Whole.cells();
        assert_eq!(cells.len(), 8);
        for cell in cells {
            let config = cell.config(Extent::Whole);
            assert!(config.samples() >= 4_000);
            assert_eq!(config.check(), Ok(()));
            assert_eq!(config.takes_lanes(), cell.path == Path::LaneTuned);
        }
    }

    #[test]
    fn nothing_is_tuned_before_what_is_untuned_has_been_measured() {
        for extent in [Extent::Whole, Extent::Brief] {
            let cells = extent.cells();
            assert!(cells.is_sorted_by_key(|cell| cell.path.is_tuned()));
            assert_eq!(Extent::of(Some(extent.word())), Some(extent));
        }
        assert_eq!(Extent::Brief.cells().len(), 3);
        assert_eq!(Extent::of(None), None);
    }

    #[test]
    fn the_maximum_is_the_thousandth_per_mille() {
        let sorted: Vec<u64> = (1..=4_000).map(|us| us * 1_000).collect();
        assert_eq!(percentile_us(&sorted, 500), 2_000.0);
        assert_eq!(percentile_us(&sorted, 999), 3_996.0);
        assert_eq!(percentile_us(&sorted, 1_000), 4_000.0);
        assert_eq!(percentile_us(&[], 999), 0.0);
    }

    #[test]
    fn a_hash_is_of_the_order_too() {
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
        assert_eq!(hash(&[1, 2]), hash(&[1, 2]));
        assert_ne!(hash(&[]), hash(&[0]));
    }
}
