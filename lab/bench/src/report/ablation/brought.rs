//! Effect of each step of an ablation: the ratio to the step it builds on, with a confidence interval.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::interval::{Interval, Unit, ratio};
use super::{Step, beside, block_of, blocks, heading, steps_of};
use crate::cable::Arbiter;
use crate::report::comparison::aligned;
use crate::report::{Disturbance, Of, Run};

/// Baseline of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// Another step under the same disturbance.
    Step(Step),
    /// The same step, undisturbed.
    Undisturbed,
}

impl Against {
    /// Description of the baseline.
    pub fn words(self) -> &'static str {
        match self {
            Against::Step(step) => step.name(),
            Against::Undisturbed => "the same, undisturbed",
        }
    }
}

/// Effect of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Brought {
    /// Message size in bytes.
    pub payload_bytes: u32,
    /// Disturbance of the runs.
    pub disturbance: Option<Disturbance>,
    /// True when the disturbance addressed a bulk reader of the participants.
    pub is_read: bool,
    /// Arbiter of the link.
    pub arbiter: Option<Arbiter>,
    /// Step whose effect is measured.
    pub step: Step,
    /// Baseline of the ratio.
    pub against: Against,
    /// Unit of the p99 values.
    pub unit: Unit,
    /// Number of values of the step.
    pub values: usize,
    /// Ratio of the round trip's p99; null with too few values.
    pub rtt: Option<Interval>,
    /// Ratio of the p99 of the hosts' share.
    pub host: Option<Interval>,
    /// Shares of lost pings of the step and of its baseline. Percentiles do not include them.
    pub lost: [f64; 2],
}

impl Brought {
    /// Returns whether there are enough values to compare either time.
    pub fn has_verdict(&self) -> bool {
        self.rtt.is_some() || self.host.is_some()
    }

    /// Description of the disturbance and the link.
    pub fn beside(&self) -> String {
        beside_in_words(self.disturbance, self.is_read, self.arbiter)
    }
}

pub(super) fn beside_in_words(
    disturbance: Option<Disturbance>,
    is_read: bool,
    arbiter: Option<Arbiter>,
) -> String {
    let word = disturbance.map_or("undisturbed", |disturbance| disturbance.word());
    let reader = if is_read { " for a bulk reader" } else { "" };
    let link = arbiter.map_or("none", Arbiter::word);
    format!("{word}{reader}, link {link}")
}

/// Effects of all steps of all blocks.
pub fn brought(runs: &[Run]) -> Vec<Brought> {
    let blocks = blocks(runs);
    let of_block = |block: &Vec<&Run>| brought_in(block, undisturbed(&blocks, block));
    blocks.iter().flat_map(of_block).collect()
}

/// Undisturbed counterpart of a disturbed block. Its link may have another arbiter, which is irrelevant on an idle
/// link.
pub(super) fn undisturbed<'a>(blocks: &'a [Vec<&'a Run>], block: &[&Run]) -> &'a [&'a Run] {
    let (payload_bytes, disturbance, _, arbiter, publisher) = block_of(block[0]);
    if disturbance.is_none() {
        return &[];
    }
    let is_quiet = |other: &&Vec<&Run>| {
        let (bytes, disturbance, _, _, by) = block_of(other[0]);
        (bytes, by) == (payload_bytes, publisher) && disturbance.is_none()
    };
    let quiet = || blocks.iter().filter(is_quiet);
    let same_link = quiet().find(|other| other[0].arbiter() == arbiter);
    same_link
        .or_else(|| quiet().next())
        .map_or(&[], Vec::as_slice)
}

fn brought_in(block: &[&Run], quiet: &[&Run]) -> Vec<Brought> {
    let steps = steps_of(block);
    let mut all = Vec::new();
    for &step in &steps {
        let row = rows_of(block, step);
        for other in step.against(&steps) {
            let base = rows_of(block, other);
            all.extend(compared(&row, &base, block, (step, Against::Step(other))));
        }
        let base = rows_of(quiet, step);
        let both = [block, quiet].concat();
        all.extend(compared(&row, &base, &both, (step, Against::Undisturbed)));
    }
    all
}

fn rows_of<'a>(block: &[&'a Run], step: Step) -> Vec<&'a Run> {
    let of_step = block.iter().copied();
    of_step
        .filter(|run| Step::of_run(run) == Some(step) && run.invalid.is_none())
        .collect()
}

/// Compares two rows, with the noise estimated from all rows; `None` if one has no runs.
fn compared(
    row: &[&Run],
    base: &[&Run],
    all: &[&Run],
    (step, against): (Step, Against),
) -> Option<Brought> {
    let (first, _) = (row.first()?, base.first()?);
    let unit = match row.len().min(base.len()) {
        1 => Unit::Second,
        _ => Unit::Repetition,
    };
    let of = |part: Of| {
        let mut groups: Vec<Vec<&Run>> = Vec::new();
        for &run in all.iter().filter(|run| run.invalid.is_none()) {
            let is_same = |group: &&mut Vec<&Run>| {
                let other = group[0];
                (block_of(other), Step::of_run(other)) == (block_of(run), Step::of_run(run))
            };
            match groups.iter_mut().find(is_same) {
                Some(group) => group.push(run),
                None => groups.push(vec![run]),
            }
        }
        let all: Vec<Vec<f64>> = groups.iter().map(|runs| p99s(runs, part, unit)).collect();
        ratio(&p99s(row, part, unit), &p99s(base, part, unit), &all)
    };
    Some(Brought {
        payload_bytes: first.payload_bytes,
        disturbance: first.disturbance,
        is_read: first.bulk_reader.is_some(),
        arbiter: first.arbiter(),
        step,
        against,
        unit,
        values: p99s(row, Of::Host, unit).len(),
        rtt: of(Of::Rtt),
        host: of(Of::Host),
        lost: [lost(row), lost(base)],
    })
}

/// p99 values of a row.
fn p99s(runs: &[&Run], of: Of, unit: Unit) -> Vec<f64> {
    let of_run = |run: &&Run| -> Vec<f64> {
        let (whole, windows) = match of {
            Of::Rtt => (&run.rtt_us, &run.windows.rtt_us),
            Of::Host => (&run.host_us, &run.windows.host_us),
        };
        match unit {
            Unit::Repetition => whole.p99.into_iter().collect(),
            Unit::Second => windows.iter().filter_map(|window| window.p99).collect(),
        }
    };
    runs.iter().flat_map(of_run).collect()
}

fn lost(runs: &[&Run]) -> f64 {
    let samples: u64 = runs.iter().map(|run| run.samples).sum();
    let lost: u64 = runs.iter().map(|run| run.lost).sum();
    lost as f64 / samples.max(1) as f64
}

/// Text table of the effects, one line per step and baseline. Empty without a comparison.
pub fn brought_table(runs: &[Run]) -> String {
    let blocks = blocks(runs);
    let mut tables = Vec::new();
    let mut units = Vec::new();
    for block in &blocks {
        let mut all = brought_in(block, undisturbed(&blocks, block));
        all.retain(Brought::has_verdict);
        if all.is_empty() {
            continue;
        }
        units.extend(all.iter().map(|brought| brought.unit));
        tables.push(table_of(block, &all));
    }
    if tables.is_empty() {
        return String::new();
    }
    let of_what = match units.contains(&Unit::Second) {
        true => "one-second windows of a run each, which is less than repetitions would say",
        false => "repetitions",
    };
    let mut text = tables.join("\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "Ratios of p99s, in brackets their 95 % interval from {of_what}, with the noise of all rows of a \
         block.\nWhere it covers 1, no difference was seen. What was lost is in no percentile."
    );
    text
}

fn table_of(block: &[&Run], all: &[Brought]) -> String {
    let mut rows = vec![
        ["what it brought", "against", "RTT", "hosts' part", "lost"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for one in all {
        let [of_step, of_base] = one.lost.map(|share| share * 100.0);
        rows.push(vec![
            one.step.name().to_owned(),
            one.against.words().to_owned(),
            words(one.rtt),
            words(one.host),
            format!("{of_base:.1} % -> {of_step:.1} %"),
        ]);
    }
    let title = match block.first() {
        Some(run) => format!(
            "{} B, {}, link {}\n",
            run.payload_bytes,
            beside(run),
            run.arbiter().map_or("none", Arbiter::word)
        ),
        None => heading(block),
    };
    title + &left_aligned(rows)
}

pub(super) fn words(interval: Option<Interval>) -> String {
    interval.map_or_else(|| "too few values".to_owned(), |interval| interval.words())
}

/// Aligns a table of text to the left.
pub(super) fn left_aligned(mut rows: Vec<Vec<String>>) -> String {
    for column in 0..rows[0].len() {
        let width = rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        for row in &mut rows {
            row[column] = format!("{:<width$}", row[column]);
        }
    }
    aligned(&rows)
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::*;

    /// Three repetitions of each step: with that p99, slightly more and slightly less.
    fn runs(p99s: &[(Step, f64)]) -> Vec<Run> {
        let mut runs = Vec::new();
        for &(step, p99) in p99s {
            for (repetition, factor) in (1..).zip([1.0, 1.05, 0.95]) {
                let mut run = run(step, repetition);
                run.rtt_us.p99 = Some(p99 * factor);
                run.host_us.p99 = Some(p99 * factor);
                run.lost = 0;
                runs.push(run);
            }
        }
        runs
    }

    #[test]
    fn what_a_step_brought_is_told_from_its_numbers() {
        let runs = runs(&[
            (Step::OneSocket, 1_000.0),
            (Step::SocketALevel, 500.0),
            (Step::Lane, 502.0),
        ]);
        let text = brought_table(&runs);
        let line = |step: &str, against: &str| {
            let mut lines = text.lines();
            let line = lines.find(|line| line.starts_with(step) && line.contains(against));
            line.unwrap_or_else(|| panic!("{text}")).to_owned()
        };
        assert!(line("a socket a level", "one socket").contains("2.00 times shorter (1."));
        assert!(line("+ lane", "a socket a level").contains("no difference seen (0."));
        assert!(text.contains("from repetitions"), "{text}");
        assert_eq!(brought_table(&[]), "");
    }

    #[test]
    fn a_disturbed_step_is_also_read_against_itself_undisturbed() {
        let mut runs = runs(&[(Step::Lane, 400.0), (Step::Budgets, 200.0)]);
        for mut quiet in runs.clone() {
            quiet.disturbance = None;
            quiet.host_us.p99 = quiet.host_us.p99.map(|us| us / 2.0);
            runs.push(quiet);
        }
        let all = brought(&runs);
        let is_meant =
            |one: &&Brought| one.step == Step::Budgets && one.against == Against::Undisturbed;
        let host = all.iter().find(is_meant).unwrap().host.unwrap();
        assert!((host.value - 2.0).abs() < 1e-9 && host.is_difference());
        let quiet = all.iter().filter(|one| one.disturbance.is_none());
        assert!(quiet.clone().count() > 0);
        assert!(
            quiet
                .into_iter()
                .all(|one| one.against != Against::Undisturbed)
        );
    }

    #[test]
    fn two_repetitions_carry_no_verdict() {
        let mut runs = runs(&[(Step::OneSocket, 1_000.0), (Step::SocketALevel, 500.0)]);
        assert!(brought(&runs).iter().all(Brought::has_verdict));
        runs.retain(|run| run.repetition < 3);
        let two = brought(&runs);
        assert!(!two.is_empty() && !two.iter().any(Brought::has_verdict));
        assert_eq!(brought_table(&runs), "");
    }

    #[test]
    fn a_run_that_is_none_says_nothing() {
        let mut runs = runs(&[(Step::OneSocket, 1_000.0), (Step::SocketALevel, 500.0)]);
        for run in &mut runs[..3] {
            run.invalid = Some("the ledger is off".into());
        }
        assert!(brought(&runs).is_empty());
    }
}
