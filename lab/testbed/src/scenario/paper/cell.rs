//! Experiments, as their files state them, and the configuration and the result of each cell.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;

use isolane_bench::experiment::{self, Load};
use isolane_bench::report::{Place, Run, Stage};
use isolane_bench::scenario::rtt::{Config, Outcome};
use isolane_bench::scenario::transport::{Lanes, Transport};
use isolane_support::Result;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::set_up::SetUp;
use super::table::value_of;
use crate::inside::tools::Counters;

/// Experiment: a file of `lab/testbed/scenarios`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    /// Title of the result.
    pub(super) title: String,
    /// Text under the title.
    pub(super) about: String,
    /// Boots of each seed, whose results must be identical.
    pub(super) boots: NonZeroUsize,
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
    /// Cells in the order of measurement.
    #[serde(skip)]
    pub(super) cells: Vec<Cell>,
}

/// Name of a set-up, and a disturbance.
pub(super) type CellName = (String, Load);

/// Aim for a ratio of two cells in all seeds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Aim {
    pub(super) of: CellName,
    pub(super) to: CellName,
    /// Column of the table of times.
    pub(super) measure: String,
    #[serde(flatten)]
    pub(super) limit: Limit,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// Set-up under one of its disturbances.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) set_up: SetUp,
    pub(super) disturbance: Load,
    /// Values of the measurement.
    values: experiment::Cell,
}

impl Experiment {
    /// Parses a file and checks its cells and all names.
    pub(super) fn parse(text: &str) -> Result<Experiment> {
        let mut experiment: Experiment = toml::from_str(text)?;
        let mut cells: Vec<Cell> = Vec::new();
        for set_up in &experiment.set_ups {
            if set_up.disturbances.is_empty() {
                return Err(format!("set-up {:?} has no disturbances", set_up.name).into());
            }
            for &disturbance in &set_up.disturbances {
                let cell = Cell::new(&experiment.set, set_up, disturbance);
                let cell = cell.map_err(|error| format!("set-up {:?}: {error}", set_up.name))?;
                if cells.iter().any(|other| other.name() == cell.name()) {
                    return Err(format!("set-up {:?} stands twice", set_up.name).into());
                }
                cells.push(cell);
            }
        }
        let bases = cells
            .iter()
            .map(|cell| (experiment.base.clone(), cell.disturbance));
        let of_aims = experiment.aims.iter().flat_map(|aim| [&aim.of, &aim.to]);
        for named in bases.chain(of_aims.cloned()) {
            if !cells.iter().any(|cell| cell.name() == named) {
                return Err(format!("there is no cell {named:?}").into());
            }
        }
        for Aim { measure, .. } in &experiment.aims {
            value_of(measure).ok_or_else(|| format!("there is no measure {measure:?}"))?;
        }
        experiment.cells = cells;
        Ok(experiment)
    }
}

impl Cell {
    fn new(set: &Table, set_up: &SetUp, disturbance: Load) -> Result<Cell> {
        if !matches!(disturbance, Load::None | Load::Flood) {
            return Err(format!("{disturbance:?} is not none or flood").into());
        }
        let mut table = set.clone();
        table.extend(set_up.set.clone());
        let values = experiment::Cell {
            place: Some(Place::Devices),
            disturbance,
            ..experiment::Cell::deserialize(Value::Table(table))?
        };
        values.check()?;
        let cell = Cell {
            set_up: set_up.clone(),
            disturbance,
            values,
        };
        cell.config().check()?;
        Ok(cell)
    }

    fn name(&self) -> CellName {
        (self.set_up.name.clone(), self.disturbance)
    }

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

    use super::super::{ABLATION, BRIEF, PAPER};
    use super::*;

    fn parsed(text: &str) -> Experiment {
        Experiment::parse(text).expect("an experiment")
    }

    #[test]
    fn every_cell_has_four_thousand_round_trips_of_its_datapath() {
        assert_eq!(parsed(PAPER).cells.len(), 8);
        for cell in [PAPER, ABLATION]
            .into_iter()
            .flat_map(|text| parsed(text).cells)
        {
            assert_eq!(cell.config().samples(), 4_000, "{cell:?}");
            let is_lane = cell.set_up.set["datapath"].as_str() == Some("xdp");
            assert_eq!(cell.config().takes_lanes(), is_lane, "{cell:?}");
        }
    }

    #[test]
    fn nothing_is_tuned_before_what_is_untuned_has_been_measured() {
        for text in [PAPER, BRIEF, ABLATION] {
            assert!(
                parsed(text)
                    .cells
                    .is_sorted_by_key(|cell| cell.set_up.tuned)
            );
        }
    }

    #[test]
    fn the_lane_is_set_up_alike_in_all_experiments() {
        let lane = |text: &str| {
            let experiment = parsed(text);
            let mut lanes = experiment.cells.into_iter();
            let cell = lanes.find(|cell| {
                cell.set_up.name == experiment.base && cell.disturbance == Load::Flood
            });
            let mut cell = cell.expect("the base under the flood");
            (cell.set_up.name, cell.values.seconds) = (String::new(), 1);
            (cell, experiment.tuned)
        };
        assert_eq!(lane(BRIEF), lane(PAPER));
        assert_eq!(lane(ABLATION), lane(PAPER));
    }

    #[test]
    fn an_ablated_lane_lacks_at_most_one_stage_and_has_the_same_flood() {
        let ablated = parsed(ABLATION).cells.into_iter();
        let flooded = ablated.filter(|cell| cell.disturbance == Load::Flood);
        let mut lanes = flooded
            .map(|cell| cell.config())
            .filter(Config::takes_lanes);
        let full = lanes.next().expect("the full set-up");
        let mut left_out = Vec::new();
        for changed in lanes {
            assert_eq!(changed.flood, full.flood);
            let lacks = |stage: &&Stage| !changed.settings.stages.contains(stage);
            left_out.extend(
                full.settings
                    .stages
                    .iter()
                    .copied()
                    .filter(|stage| lacks(&stage)),
            );
            let has_budgets = changed.settings.stages.contains(&Stage::Budgets);
            assert_eq!(changed.policing != Policing::default(), has_budgets);
        }
        assert_eq!(left_out, [Stage::Budgets, Stage::Lanes]);
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_reason() {
        for (from, to, why) in [
            ("boots", "boot", "unknown field `boot`"),
            ("boots = 2", "boots = 0", "nonzero"),
            (
                "rate_hz",
                "rate",
                "set-up \"sockets untuned\": unknown field `rate`",
            ),
            (
                "payload_bytes = 64",
                "payload_bytes = 1",
                "set-up \"sockets untuned\": ",
            ),
            (
                "base = \"lane",
                "base = \"lanes",
                "no cell (\"lanes tuned\", None)",
            ),
            (
                "of = [\"lane tuned\"",
                "of = [\"lane\"",
                "no cell (\"lane\", Flood)",
            ),
            ("\"p99.9\"", "\"p98\"", "no measure \"p98\""),
            ("\"sockets tuned\"", "\"sockets real-time\"", "stands twice"),
            ("[\"none\", \"flood\"]", "[]", "has no disturbances"),
            (
                "[\"none\", \"flood\"]",
                "[\"storm\"]",
                "Storm is not none or flood",
            ),
        ] {
            let text = PAPER.replace(from, to);
            assert_ne!(text, PAPER);
            let error = Experiment::parse(&text).expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
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
