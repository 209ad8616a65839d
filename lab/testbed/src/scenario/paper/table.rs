//! Results of all seeds: a table of each seed, the ranges over the seeds, and the ratios with their aims.

use std::fmt::Write as _;

use isolane_bench::experiment::Load;
use isolane_bench::report::aligned;
use serde::Serialize;

use super::cell::{Aim, Experiment, Limit, Measured, Quantile};

#[derive(Debug, Serialize)]
pub(super) struct Seed {
    pub(super) seed: u64,
    /// True when all boots of the seed gave the same result.
    pub(super) is_repeatable: bool,
    pub(super) cells: Vec<Measured>,
}

/// Heading, number of decimals, and value of a cell, whose base is given too.
type Column = (&'static str, usize, fn(&Measured, &Measured) -> f64);

const TIMES: &[Column] = &[
    ("median", 0, |cell, _| cell.median_us),
    ("p99", 0, |cell, _| cell.p99_us),
    ("p99.9", 0, |cell, _| cell.p99_9_us),
    ("max", 0, |cell, _| cell.max_us),
    ("lost", 0, |cell, _| cell.run.lost as f64),
];

const RATIOS: &[Column] = &[
    ("p99.9", 2, |cell, base| cell.p99_9_us / base.p99_9_us),
    ("max", 2, |cell, base| cell.max_us / base.max_us),
];

/// Tables of all cells, in microseconds and relative to the base, and the ratios with an aim. Each value is the range
/// over the seeds.
pub(super) fn text(experiment: &Experiment, seeds: &[Seed]) -> String {
    let over = match seeds {
        [only] => format!("seed {}", only.seed),
        _ => format!("range over {} seeds", seeds.len()),
    };
    let mut text = table(&format!("microseconds, {over}"), TIMES, experiment, seeds);
    let base = &experiment.base;
    let heading = format!("relative to {base}, {over}");
    let _ = write!(text, "\n{}", table(&heading, RATIOS, experiment, seeds));
    for aim in &experiment.aims {
        let _ = write!(text, "\n{}", aim.text(seeds));
    }
    text
}

fn table(heading: &str, columns: &[Column], experiment: &Experiment, seeds: &[Seed]) -> String {
    let headings = [heading, "load"].into_iter();
    let headings = headings.chain(columns.iter().map(|(heading, ..)| *heading));
    let mut rows: Vec<Vec<String>> = vec![headings.map(str::to_owned).collect()];
    let cells = seeds.first().map_or(&[][..], |seed| &seed.cells);
    for cell in cells {
        let mut row = vec![cell.set_up.clone(), word(cell.disturbance)];
        for (_, decimals, value) in columns {
            let values = seeds.iter().filter_map(|seed| {
                let [cell, base] = [&cell.set_up, &experiment.base]
                    .map(|set_up| seed.cell(set_up, cell.disturbance));
                Some(value(cell?, base?))
            });
            row.push(range(values, *decimals));
        }
        rows.push(row);
    }
    aligned(&rows, 2)
}

/// Word of a scenario file.
fn word(load: Load) -> String {
    let value = toml::Value::try_from(load);
    value
        .ok()
        .and_then(|value| Some(value.as_str()?.to_owned()))
        .unwrap_or_default()
}

/// Lowest and highest value as text; one number where they are printed alike, and a dash without values.
fn range(values: impl Iterator<Item = f64> + Clone, decimals: usize) -> String {
    let text = |value: Option<f64>| value.map(|value| format!("{value:.decimals$}"));
    let low = text(values.clone().reduce(f64::min));
    let high = text(values.reduce(f64::max));
    match (low, high) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (low, _) => low.unwrap_or_else(|| "-".to_owned()),
    }
}

impl Seed {
    /// Result of a set-up under a disturbance.
    fn cell(&self, set_up: &str, disturbance: Load) -> Option<&Measured> {
        let mut cells = self.cells.iter();
        cells.find(|cell| cell.set_up == set_up && cell.disturbance == disturbance)
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

impl Aim {
    /// Line with the ratio and whether the aim is met in all seeds.
    fn text(&self, seeds: &[Seed]) -> String {
        let value = |cell: &Measured| match self.measure {
            Quantile::P999 => cell.p99_9_us,
            Quantile::Max => cell.max_us,
        };
        let cell =
            |seed: &Seed, (set_up, load): &(String, Load)| seed.cell(set_up, *load).map(value);
        let ratio = |seed: &Seed| Some(cell(seed, &self.of)? / cell(seed, &self.to)?);
        let ratios: Vec<f64> = seeds.iter().filter_map(ratio).collect();
        let (limit, is_met) = match self.limit {
            Limit::AtMost(most) => (
                format!("at most {most}"),
                ratios.iter().all(|&ratio| ratio <= most),
            ),
            Limit::AtLeast(least) => (
                format!("at least {least}"),
                ratios.iter().all(|&ratio| ratio >= least),
            ),
        };
        let [of, to] =
            [&self.of, &self.to].map(|(set_up, load)| format!("{set_up} ({})", word(*load)));
        let measure = match self.measure {
            Quantile::P999 => "p99.9",
            Quantile::Max => "max",
        };
        let range = range(ratios.iter().copied(), 2);
        let met = if is_met && !ratios.is_empty() {
            "met"
        } else {
            "missed"
        };
        format!("{measure}, {of} / {to}: {range}; aim {limit}: {met}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_equal_numbers_is_one_number() {
        assert_eq!(range([1.26, 1.34].into_iter(), 1), "1.3");
        assert_eq!(range([2.0, 1.0, 3.0].into_iter(), 0), "1 to 3");
        assert_eq!(range([].into_iter(), 0), "-");
    }
}
