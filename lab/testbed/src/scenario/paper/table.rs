//! Results of all seeds: a table of each seed, the ranges over the seeds, and the ratios with their aims.

use isolane_bench::experiment::Load;
use isolane_bench::report::aligned;
use serde::Serialize;

use super::super::range;
use super::cell::{Aim, Experiment, Limit, Measured};

#[derive(Debug, Serialize)]
pub(super) struct Seed {
    pub(super) seed: u64,
    /// True when all boots of the seed gave the same result.
    pub(super) is_repeatable: bool,
    pub(super) cells: Vec<Measured>,
}

/// Heading and value of a column.
type Column = (&'static str, fn(&Measured) -> f64);

const COLUMNS: &[Column] = &[
    ("median", |cell| cell.median_us),
    ("p99", |cell| cell.p99_us),
    ("p99.9", |cell| cell.p99_9_us),
    ("max", |cell| cell.max_us),
    ("lost", |cell| cell.run.lost as f64),
];

/// Columns that are compared with the base.
const COMPARED: [&str; 2] = ["p99.9", "max"];

/// Value of a column.
pub(super) fn value_of(heading: &str) -> Option<fn(&Measured) -> f64> {
    let column = COLUMNS.iter().find(|(known, _)| *known == heading);
    column.map(|(_, value)| *value)
}

/// Tables of all cells, in microseconds and relative to the base, and the ratios with an aim. Each value is the range
/// over the seeds.
pub(super) fn text(experiment: &Experiment, seeds: &[Seed]) -> String {
    let over = match seeds {
        [only] => format!("seed {}", only.seed),
        _ => format!("range over {} seeds", seeds.len()),
    };
    let base = &experiment.base;
    let times = table(&format!("microseconds, {over}"), COLUMNS, None, seeds);
    let compared = COLUMNS
        .iter()
        .filter(|(heading, _)| COMPARED.contains(heading));
    let compared: Vec<Column> = compared.copied().collect();
    let ratios = table(
        &format!("relative to {base}, {over}"),
        &compared,
        Some(base),
        seeds,
    );
    let aims = experiment.aims.iter().map(|aim| aim.text(seeds));
    let aims = aims.collect::<String>();
    [times, ratios, aims].join("\n")
}

/// Table of all cells; of ratios, if there is a base.
fn table(heading: &str, columns: &[Column], base: Option<&str>, seeds: &[Seed]) -> String {
    let headings = columns.iter().map(|(heading, _)| *heading);
    let headings = [heading, "load"].into_iter().chain(headings);
    let mut rows: Vec<Vec<String>> = vec![headings.map(str::to_owned).collect()];
    let cells = seeds.first().map_or(&[][..], |seed| &seed.cells);
    for cell in cells {
        let (set_up, disturbance) = (&cell.set_up, cell.disturbance);
        let word: &str = disturbance.into();
        let mut row = vec![set_up.clone(), word.to_owned()];
        for (_, value) in columns {
            let values = seeds.iter().filter_map(|seed| {
                let cell = value(seed.cell(set_up, disturbance)?);
                Some(match base {
                    Some(base) => cell / value(seed.cell(base, disturbance)?),
                    None => cell,
                })
            });
            row.push(range(values, if base.is_some() { 2 } else { 0 }));
        }
        rows.push(row);
    }
    aligned(&rows, 2)
}

impl Seed {
    /// Result of a set-up under a disturbance.
    fn cell(&self, set_up: &str, disturbance: Load) -> Option<&Measured> {
        let mut cells = self.cells.iter();
        cells.find(|cell| cell.set_up == set_up && cell.disturbance == disturbance)
    }

    /// Faults that make the numbers invalid. A missed aim is none.
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

impl Aim {
    /// Line with the ratio, and whether all seeds meet the aim.
    fn text(&self, seeds: &[Seed]) -> String {
        let measure = &self.measure;
        let ratio = |seed: &Seed| {
            let value = value_of(measure)?;
            let [of, to] = [&self.of, &self.to].map(|(set_up, load)| seed.cell(set_up, *load));
            // A cell without samples has the time 0.
            let ratio = value(of?) / value(to?);
            (ratio.is_finite() && ratio > 0.0).then_some(ratio)
        };
        let ratios: Option<Vec<f64>> = seeds.iter().map(ratio).collect();
        let ratios = ratios.unwrap_or_default();
        let mut all = ratios.iter();
        let (limit, is_kept) = match self.limit {
            Limit::AtMost(most) => (format!("at most {most}"), all.all(|&ratio| ratio <= most)),
            Limit::AtLeast(least) => (
                format!("at least {least}"),
                all.all(|&ratio| ratio >= least),
            ),
        };
        let is_met = is_kept && !ratios.is_empty();
        let word = if is_met { "met" } else { "missed" };
        let [of, to] = [&self.of, &self.to].map(|(set_up, load)| {
            let load: &str = load.into();
            format!("{set_up} ({load})")
        });
        let range = range(ratios.into_iter(), 2);
        format!("{measure}, {of} / {to}: {range}; aim {limit}: {word}\n")
    }
}

#[cfg(test)]
mod tests {
    use isolane_bench::report::{Run, RunSettings};

    use super::super::PAPER;
    use super::*;

    fn seed(seed: u64, times_us: [f64; 3]) -> Seed {
        let cell = |set_up: &str, disturbance, time_us| Measured {
            set_up: set_up.to_owned(),
            disturbance,
            samples_hash: String::new(),
            median_us: time_us,
            p99_us: time_us,
            p99_9_us: time_us,
            max_us: time_us,
            frames: Default::default(),
            run: Run::new(
                &RunSettings::default(),
                &isolane_bench::record::Rounds::none(),
                None,
            ),
        };
        Seed {
            seed,
            is_repeatable: true,
            cells: vec![
                cell("lane tuned", Load::None, times_us[0]),
                cell("lane tuned", Load::Flood, times_us[1]),
                cell("sockets untuned", Load::Flood, times_us[2]),
            ],
        }
    }

    #[test]
    fn an_aim_is_met_if_all_seeds_meet_it() {
        let experiment = Experiment::parse(PAPER).unwrap();
        let ends = |seeds: &[Seed]| {
            let texts = experiment.aims.iter().map(|aim| aim.text(seeds));
            texts
                .map(|text| text.rsplit(": ").next().unwrap().trim().to_owned())
                .collect::<Vec<_>>()
        };
        let fast = || seed(1, [100.0, 110.0, 1_100.0]);
        assert_eq!(ends(&[fast()]), ["met", "met", "met"]);
        let slow = seed(2, [100.0, 121.0, 1_200.0]);
        assert_eq!(ends(&[fast(), slow]), ["missed", "met", "missed"]);
        assert_eq!(ends(&[fast(), seed(2, [100.0, 0.0, 1.0])]), ["missed"; 3]);
        let mut without = seed(2, [100.0, 110.0, 1_100.0]);
        without.cells.truncate(2);
        assert_eq!(ends(&[without]), ["met", "met", "missed"]);
        assert_eq!(ends(&[]), ["missed"; 3]);
    }

    #[test]
    fn a_row_has_the_range_over_the_seeds_and_the_ratio_to_the_base() {
        let experiment = Experiment::parse(PAPER).unwrap();
        let text = text(
            &experiment,
            &[
                seed(1, [100.0, 110.0, 1_100.0]),
                seed(2, [100.0, 120.0, 1_200.0]),
            ],
        );
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|cell| !cell.is_empty())
                    .collect()
            })
            .collect();
        assert!(rows.contains(&vec![
            "sockets untuned",
            "flood",
            "1100 to 1200",
            "1100 to 1200",
            "1100 to 1200",
            "1100 to 1200",
            "0"
        ]));
        assert!(rows.contains(&vec!["sockets untuned", "flood", "10.00", "10.00"]));
    }
}
