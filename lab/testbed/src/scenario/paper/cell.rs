//! Experiments, as their files state them, and the configuration and the result of each cell.

use std::hash::{DefaultHasher, Hash, Hasher};

use isolane_bench::experiment::{self, Load};
use isolane_bench::report::{Place, Run, Stage};
use isolane_bench::scenario::rtt::{Config, Outcome};
use isolane_bench::scenario::transport::{Lanes, Transport};
use isolane_support::Result;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::set_up::SetUp;
use crate::inside::tools::Counters;

/// Experiment: a file of `lab/testbed/scenarios`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    /// Title of the result.
    pub(super) title: String,
    /// Text under the title.
    pub(super) about: String,
    /// Boots of each seed, whose results are compared.
    pub(super) boots: usize,
    /// Name of the set-up with which the others are compared.
    pub(super) base: String,
    /// Values of all cells, by their names in [`experiment::Cell`].
    set: Table,
    /// Command lines of the host set-up for each device, `{}`. With one processor, the driver has one queue for all
    /// frames in both directions, so there is nothing to steer.
    pub(super) tuned: Vec<String>,
    /// Set-ups in the order of measurement.
    #[serde(rename = "set_up")]
    set_ups: Vec<SetUp>,
    #[serde(default, rename = "aim")]
    pub(super) aims: Vec<Aim>,
}

/// Aim for a ratio of two cells, each a set-up and a disturbance, in all seeds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Aim {
    pub(super) of: (String, Load),
    pub(super) to: (String, Load),
    pub(super) measure: Quantile,
    #[serde(flatten)]
    pub(super) limit: Limit,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) enum Quantile {
    #[serde(rename = "p99.9")]
    P999,
    #[serde(rename = "max")]
    Max,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// Set-up under one of its disturbances.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) set_up: SetUp,
    pub(super) disturbance: Load,
    /// Values of the measurement.
    values: experiment::Cell,
}

impl Experiment {
    /// Parses a file and checks all cells.
    pub(super) fn parse(text: &str) -> Result<Experiment> {
        let experiment: Experiment = toml::from_str(text)?;
        for cell in experiment.cells()? {
            cell.config().check()?;
        }
        Ok(experiment)
    }

    /// Cells in the order of measurement.
    pub(super) fn cells(&self) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for set_up in &self.set_ups {
            let mut table = self.set.clone();
            table.extend(set_up.set.clone());
            for &disturbance in &set_up.disturbances {
                cells.push(Cell {
                    set_up: set_up.clone(),
                    disturbance,
                    values: experiment::Cell {
                        place: Some(Place::Devices),
                        disturbance,
                        ..experiment::Cell::deserialize(Value::Table(table.clone()))?
                    },
                });
            }
        }
        Ok(cells)
    }
}

impl Cell {
    /// Configuration of the measurement. The middleware is the same in all cells, as in Meszlényi et al.
    pub(super) fn config(&self) -> Config {
        let mut config = self.values.round_trips();
        let settings = &mut config.settings;
        if self.set_up.tuned {
            settings.stages.push(Stage::Tune);
        }
        if self.set_up.one_lane {
            settings.stages.retain(|&stage| stage != Stage::Lanes);
        }
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
    pub(super) disturbance: Load,
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
    pub(super) fn of(cell: &Cell, outcome: Outcome, frames: [Counters; 2]) -> Measured {
        let rtt_ns = outcome.rounds.rtt_ns();
        let mut hasher = DefaultHasher::new();
        rtt_ns.hash(&mut hasher);
        let mut sorted_ns = rtt_ns;
        sorted_ns.sort_unstable();
        Measured {
            set_up: cell.set_up.name.clone(),
            disturbance: cell.disturbance,
            samples_hash: format!("{:016x}", hasher.finish()),
            median_us: percentile_us(&sorted_ns, 500),
            p99_us: percentile_us(&sorted_ns, 990),
            p99_9_us: percentile_us(&sorted_ns, 999),
            max_us: percentile_us(&sorted_ns, 1_000),
            frames,
            run: outcome.run,
        }
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
    use isolane_bench::scenario::transport::Policing;

    use super::super::{ABLATION, BRIEF, PAPER, Source};
    use super::*;

    fn cells(source: Source) -> Vec<Cell> {
        let experiment = Experiment::parse(source.text).expect(source.name);
        experiment.cells().expect("cells")
    }

    #[test]
    fn every_cell_has_four_thousand_round_trips_of_its_datapath() {
        assert_eq!(cells(PAPER).len(), 8);
        for cell in [PAPER, ABLATION].into_iter().flat_map(cells) {
            assert_eq!(cell.config().samples(), 4_000, "{cell:?}");
            let is_lane = cell.set_up.set["datapath"].as_str() == Some("xdp");
            assert_eq!(cell.config().takes_lanes(), is_lane, "{cell:?}");
        }
    }

    #[test]
    fn nothing_is_tuned_before_what_is_untuned_has_been_measured() {
        for source in [PAPER, BRIEF, ABLATION] {
            assert!(cells(source).is_sorted_by_key(|cell| cell.set_up.tuned));
        }
    }

    #[test]
    fn the_brief_cells_are_those_of_paper_but_shorter() {
        let all = cells(PAPER);
        for cell in cells(BRIEF) {
            let is_same = |other: &&Cell| {
                (&other.set_up.name, other.disturbance) == (&cell.set_up.name, cell.disturbance)
            };
            let of_paper = all.iter().find(is_same).expect("a cell of paper");
            let values = experiment::Cell {
                seconds: 1,
                ..of_paper.values.clone()
            };
            assert_eq!(cell.values, values);
        }
    }

    #[test]
    fn an_ablated_lane_lacks_at_most_one_stage_and_has_the_same_flood() {
        let ablated = cells(ABLATION);
        let mut flooded = ablated
            .iter()
            .filter(|cell| cell.disturbance == Load::Flood);
        let full = flooded.next().expect("the full set-up").config();
        assert!(full.policing != Policing::default());
        for cell in flooded.filter(|cell| cell.config().takes_lanes()) {
            let changed = cell.config();
            assert_eq!(changed.flood, full.flood);
            let has_budgets = cell.set_up.set.contains_key("budgets");
            let left_out = full.settings.stages.len() - changed.settings.stages.len();
            let expected = usize::from(!has_budgets) + usize::from(cell.set_up.one_lane);
            assert_eq!(left_out, expected, "{cell:?}");
            assert_eq!(changed.policing != Policing::default(), has_budgets);
        }
    }

    #[test]
    fn an_unknown_value_and_an_impossible_cell_are_refused() {
        let error = |from: &str, to: &str| {
            let text = PAPER.text.replace(from, to);
            assert_ne!(text, PAPER.text);
            let error = Experiment::parse(&text).expect_err("a wrong file");
            error.to_string()
        };
        assert!(error("boots", "boot").contains("boot"));
        assert!(error("rate_hz", "rate").contains("rate"));
        assert!(error("payload_bytes = 64", "payload_bytes = 1").contains('1'));
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
