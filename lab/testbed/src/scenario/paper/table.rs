//! Results of all seeds: the table of each seed, and the ratios of `paper` with their aims.

use std::fmt::{Display, Write as _};

use serde::Serialize;

use super::cell::Measured;
use super::set_up::{LANE_TUNED, SOCKETS_UNTUNED};

/// Aims for lanes under the flood relative to lanes without a flood, at p99.9 and at the maximum.
const AIM_P99_9: f64 = 1.2;
const AIM_MAX: f64 = 1.5;
/// Aim for the maximum of untuned sockets relative to the lane's, both under the flood.
const AIM_SOCKETS: f64 = 10.0;

#[derive(Debug, Serialize)]
pub(super) struct Seed {
    pub(super) seed: u64,
    /// True when all boots of the seed gave the same result.
    pub(super) is_repeatable: bool,
    pub(super) cells: Vec<Measured>,
}

impl Seed {
    /// Table of the cells, each relative to the tuned lane under the same load.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "{:53} {:>5} {:>8} {:>8} {:>8} {:>8} {:>5}  {:16} {:>10} {:>8}\n",
            "microseconds",
            "flood",
            "median",
            "p99",
            "p99.9",
            "max",
            "lost",
            "hash of samples",
            "p99.9/lane",
            "max/lane"
        );
        for cell in &self.cells {
            let mut cells = self.cells.iter();
            let lane = cells.find(|other| other.is_of(&LANE_TUNED, cell.is_disturbed));
            let over_lane =
                |of: fn(&Measured) -> f64| lane.map_or(f64::NAN, |lane| of(cell) / of(lane));
            let _ = writeln!(
                text,
                "{cell} {:>10.2} {:>8.2}",
                over_lane(|cell| cell.p99_9_us),
                over_lane(|cell| cell.max_us)
            );
            if let Some(reason) = &cell.run.invalid {
                let _ = writeln!(text, "INVALID: {reason}");
            }
        }
        text
    }

    /// Ratios of `paper`: of the lane under the flood to the lane without, at p99.9 and the maximum, and of untuned
    /// sockets to the lane, both under the flood, at the maximum.
    fn ratios(&self) -> Option<[f64; 3]> {
        let cell = |set_up, is_disturbed| {
            let mut cells = self.cells.iter();
            cells.find(|cell| cell.is_of(set_up, is_disturbed))
        };
        let quiet = cell(&LANE_TUNED, false)?;
        let lane = cell(&LANE_TUNED, true)?;
        let sockets = cell(&SOCKETS_UNTUNED, true)?;
        Some([
            lane.p99_9_us / quiet.p99_9_us,
            lane.max_us / quiet.max_us,
            sockets.max_us / lane.max_us,
        ])
    }

    /// Faults that invalidate the numbers: aims may be missed, but reproducibility may not.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.is_repeatable {
            faults.push(format!(
                "seed {}: two boots reported different values",
                self.seed
            ));
        }
        for cell in &self.cells {
            if let Some(reason) = &cell.run.invalid {
                faults.push(format!("seed {}, {}: {reason}", self.seed, cell.set_up));
            }
        }
        faults
    }
}

/// Table of the ratios, with the worst seed of each and its aim. Empty when no seed has all compared cells.
pub(super) fn ratios(seeds: &[Seed]) -> String {
    let ratios = seeds
        .iter()
        .filter_map(|seed| Some((seed.seed, seed.ratios()?)));
    let ratios: Vec<(u64, [f64; 3])> = ratios.collect();
    let worst = |index: usize, worse: fn(f64, f64) -> f64| {
        let of_seeds = ratios.iter().map(|(_, ratios)| ratios[index]);
        of_seeds.reduce(worse)
    };
    let (Some(p99_9), Some(max), Some(sockets)) =
        (worst(0, f64::max), worst(1, f64::max), worst(2, f64::min))
    else {
        return String::new();
    };
    let row = |first: &dyn Display, [p99_9, max, sockets]: [String; 3]| {
        format!("{first:>6} {p99_9:>24} {max:>24} {sockets:>34}\n")
    };
    let numbers = |ratios: [f64; 3]| ratios.map(|ratio| format!("{ratio:.2}"));
    let headings = [
        "lane, flood/quiet p99.9",
        "lane, flood/quiet max",
        "untuned sockets/lane, flood, max",
    ];
    let mut text = row(&"seed", headings.map(str::to_owned));
    for (seed, ratios) in &ratios {
        text += &row(seed, numbers(*ratios));
    }
    text += &row(&"worst", numbers([p99_9, max, sockets]));
    let aims = [
        (AIM_P99_9, p99_9 <= AIM_P99_9),
        (AIM_MAX, max <= AIM_MAX),
        (AIM_SOCKETS, sockets >= AIM_SOCKETS),
    ];
    let word = |is_met: bool| if is_met { "met" } else { "missed" };
    text + &row(
        &"aim",
        aims.map(|(aim, is_met)| format!("{aim}: {}", word(is_met))),
    )
}
