//! Effect of each step of an ablation: the ratio to the step it builds on, with a confidence interval.
//!
//! An [`Effect`] compares all runs of one payload. An [`Overall`] effect covers all payloads: on a noisy machine three
//! repetitions of one payload say little; three repetitions of three payloads say more. An overall effect averages the
//! logarithms of the ratios of pairs, with Student's interval (95 %), which includes the differences between payloads.
//! A pair is a run of the step and one of its baseline with the same payload, link and repetition. The two are close in
//! time, so slow drift of the machine affects both. Links stay separate, because a step's effect under a flood depends
//! on the link.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{Step, block_of, blocks, disturbance_words, steps_of};
use crate::cable::Arbiter;
use crate::report::text_table::{Align, aligned, cells};
use crate::report::{Disturbance, Of, Publisher, Run};
use crate::statistics::{Interval, paired_ratio, unpaired_ratio};

/// Baseline of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// Another step under the same disturbance.
    Step(Step),
    /// The same step, undisturbed.
    Undisturbed,
}

impl Baseline {
    /// Description of the baseline.
    pub fn words(self) -> &'static str {
        match self {
            Baseline::Step(step) => step.word(),
            Baseline::Undisturbed => "the same, undisturbed",
        }
    }
}

/// Compared step and baseline, with the conditions of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Disturbance of the runs.
    pub disturbance: Option<Disturbance>,
    /// True when the disturbance addressed a bulk reader of the participants.
    pub is_read: bool,
    /// Arbiter of the link.
    pub arbiter: Option<Arbiter>,
    /// Sender of the pings.
    pub publisher: Publisher,
    /// Step whose effect is measured.
    pub step: Step,
    /// Baseline of the ratio.
    pub baseline: Baseline,
}

impl Compared {
    fn of(run: &Run, step: Step, baseline: Baseline) -> Compared {
        Compared {
            disturbance: run.disturbance,
            is_read: run.bulk_reader.is_some(),
            arbiter: run.arbiter(),
            publisher: run.publisher,
            step,
            baseline,
        }
    }

    /// Description of the disturbance, the link and the sender.
    pub fn conditions(&self) -> String {
        let disturbance = disturbance_words(self.disturbance, self.is_read);
        let link = self.arbiter.map_or("none", Arbiter::word);
        let publisher = self.publisher.word();
        format!("{disturbance}, link {link}, written by a {publisher}")
    }

    /// Line of a text table, with `last` as its last cell.
    fn row(&self, rtt: Option<Interval>, host: Option<Interval>, last: String) -> Vec<String> {
        let words = |interval: Option<Interval>| {
            interval.map_or_else(|| "too few values".to_owned(), |interval| interval.words())
        };
        vec![
            self.step.word().to_owned(),
            self.baseline.words().to_owned(),
            words(rtt),
            words(host),
            last,
        ]
    }
}

/// Time span of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A whole run.
    Repetition,
    /// A second of a run. Seconds of one run are not independent, so an interval from seconds is narrower than one from
    /// repetitions.
    Second,
}

/// Effect of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Message size in bytes.
    pub payload_bytes: u32,
    /// Step, baseline and conditions.
    #[serde(flatten)]
    pub compared: Compared,
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

impl Effect {
    /// Returns whether there are enough values to compare the round trips or the hosts' share.
    pub fn has_verdict(&self) -> bool {
        self.rtt.is_some() || self.host.is_some()
    }
}

/// Effects of all steps of all blocks.
pub fn effects(runs: &[Run]) -> Vec<Effect> {
    let blocks = blocks(runs);
    let of_block = |block: &Vec<&Run>| effects_in(block, undisturbed(&blocks, block));
    blocks.iter().flat_map(of_block).collect()
}

/// Undisturbed counterpart of a disturbed block. Its link may have another arbiter, which is irrelevant on an idle
/// link.
fn undisturbed<'a>(blocks: &'a [Vec<&'a Run>], block: &[&Run]) -> &'a [&'a Run] {
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

fn effects_in(block: &[&Run], quiet: &[&Run]) -> Vec<Effect> {
    let steps = steps_of(block);
    let mut all = Vec::new();
    for &step in &steps {
        let row = rows_of(block, step);
        for other in step.against(&steps) {
            let base = rows_of(block, other);
            all.extend(effect(&row, &base, (step, Baseline::Step(other))));
        }
        let base = rows_of(quiet, step);
        all.extend(effect(&row, &base, (step, Baseline::Undisturbed)));
    }
    all
}

fn rows_of<'a>(block: &[&'a Run], step: Step) -> Vec<&'a Run> {
    let of_step = block.iter().copied();
    of_step
        .filter(|run| Step::of_run(run) == Some(step) && run.invalid.is_none())
        .collect()
}

/// Compares two rows; `None` if one has no runs.
fn effect(row: &[&Run], base: &[&Run], (step, baseline): (Step, Baseline)) -> Option<Effect> {
    let (first, _) = (row.first()?, base.first()?);
    let unit = match row.len().min(base.len()) {
        1 => Unit::Second,
        _ => Unit::Repetition,
    };
    let of = |part: Of| unpaired_ratio(&p99s(row, part, unit), &p99s(base, part, unit));
    Some(Effect {
        payload_bytes: first.payload_bytes,
        compared: Compared::of(first, step, baseline),
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
pub(in crate::report) fn effects_table(runs: &[Run]) -> String {
    let blocks = blocks(runs);
    let mut tables = Vec::new();
    let mut units = Vec::new();
    for block in &blocks {
        let mut all = effects_in(block, undisturbed(&blocks, block));
        all.retain(Effect::has_verdict);
        if all.is_empty() {
            continue;
        }
        units.extend(all.iter().map(|effect| effect.unit));
        tables.push(table_of(&all));
    }
    if tables.is_empty() {
        return String::new();
    }
    let values = match units.contains(&Unit::Second) {
        true => "one-second windows of one run (narrower than intervals from repetitions)",
        false => "repetitions",
    };
    let mut text = tables.join("\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "Ratios of p99s; in brackets, their 95 % interval, computed from {values}.\nIf the interval contains 1, no difference was seen. Percentiles do not include lost pings."
    );
    text
}

fn table_of(effects: &[Effect]) -> String {
    let headings = ["effect of", "baseline", "RTT", "hosts' part", "lost"];
    let mut rows = vec![cells(headings)];
    for one in effects {
        let [of_step, of_base] = one.lost.map(|share| share * 100.0);
        let lost = format!("{of_base:.1} % -> {of_step:.1} %");
        rows.push(one.compared.row(one.rtt, one.host, lost));
    }
    let first = &effects[0];
    let title = format!(
        "{} B, {}\n",
        first.payload_bytes,
        first.compared.conditions()
    );
    title + &aligned(&rows, Align::Left)
}

/// Effect of a step over all measured payloads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overall {
    /// Message sizes in bytes.
    pub payload_bytes: Vec<u32>,
    /// Step, baseline and conditions.
    #[serde(flatten)]
    pub compared: Compared,
    /// Number of pairs of runs.
    pub pairs: usize,
    /// Ratio of the round trip's p99; null with too few pairs.
    pub rtt: Option<Interval>,
    /// Ratio of the p99 of the hosts' share.
    pub host: Option<Interval>,
}

/// Effects of all steps under each disturbance, on each link. Empty if only one payload was measured, because
/// [`effects`] covers it.
pub fn overall(runs: &[Run]) -> Vec<Overall> {
    let blocks = blocks(runs);
    groups(&blocks)
        .iter()
        .filter(|group| group.len() > 1)
        .flat_map(|group| overall_in(group, &blocks))
        .collect()
}

/// Groups of blocks that differ only in payload.
fn groups<'b, 'a>(blocks: &'b [Vec<&'a Run>]) -> Vec<Vec<&'b [&'a Run]>> {
    let mut groups: Vec<Vec<&[&Run]>> = Vec::new();
    for block in blocks {
        let is_same =
            |group: &&mut Vec<&[&Run]>| condition_key(group[0][0]) == condition_key(block[0]);
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(block),
            None => groups.push(vec![block]),
        }
    }
    groups
}

/// Common properties of a group's blocks, as text.
fn condition_key(run: &Run) -> String {
    let disturbance = disturbance_words(run.disturbance, run.bulk_reader.is_some());
    format!("{disturbance}, {:?}, {:?}", run.arbiter(), run.publisher)
}

fn overall_in(group: &[&[&Run]], blocks: &[Vec<&Run>]) -> Vec<Overall> {
    let all: Vec<&Run> = group.iter().copied().flatten().copied().collect();
    let steps = steps_of(&all);
    let mut rows = Vec::new();
    for &step in &steps {
        for other in step.against(&steps) {
            let pairs = group
                .iter()
                .flat_map(|block| pairs(block, step, block, other));
            rows.extend(overall_effect(
                group,
                step,
                Baseline::Step(other),
                pairs.collect(),
            ));
        }
        let pairs = group
            .iter()
            .flat_map(|block| pairs(block, step, undisturbed(blocks, block), step));
        rows.extend(overall_effect(
            group,
            step,
            Baseline::Undisturbed,
            pairs.collect(),
        ));
    }
    rows
}

/// Pairs of a step's runs with the baseline's runs of the same repetition.
fn pairs<'a>(
    block: &[&'a Run],
    step: Step,
    base: &[&'a Run],
    other: Step,
) -> Vec<(&'a Run, &'a Run)> {
    let is_of = |run: &&Run, step| Step::of_run(run) == Some(step) && run.invalid.is_none();
    let of_step = block.iter().copied().filter(|run| is_of(run, step));
    let partner = |run: &'a Run| {
        let mut others = base.iter().copied().filter(|run| is_of(run, other));
        let other = others.find(|other| other.repetition == run.repetition)?;
        Some((run, other))
    };
    of_step.filter_map(partner).collect()
}

fn overall_effect(
    group: &[&[&Run]],
    step: Step,
    baseline: Baseline,
    pairs: Vec<(&Run, &Run)>,
) -> Option<Overall> {
    let of = |part: Of| {
        let p99 = |run: &Run| match part {
            Of::Rtt => run.rtt_us.p99,
            Of::Host => run.host_us.p99,
        };
        let ratios = pairs
            .iter()
            .filter_map(|(run, other)| Some(p99(run)? / p99(other)?));
        paired_ratio(&ratios.collect::<Vec<f64>>())
    };
    (!pairs.is_empty()).then(|| Overall {
        payload_bytes: group.iter().map(|block| block[0].payload_bytes).collect(),
        compared: Compared::of(group[0][0], step, baseline),
        pairs: pairs.len(),
        rtt: of(Of::Rtt),
        host: of(Of::Host),
    })
}

/// Text table of the effects over all payloads. Empty without a comparison.
pub(in crate::report) fn overall_table(runs: &[Run]) -> String {
    let all = overall(runs);
    let mut tables = Vec::new();
    let conditions = |one: &Overall| one.compared.conditions();
    for group in all.chunk_by(|one, next| conditions(one) == conditions(next)) {
        let headings = ["effect of", "baseline", "RTT", "hosts' part", "pairs"];
        let mut rows = vec![cells(headings)];
        let row = |one: &Overall| one.compared.row(one.rtt, one.host, one.pairs.to_string());
        rows.extend(group.iter().map(row));
        let sizes = group[0].payload_bytes.iter();
        let sizes: Vec<String> = sizes.map(|bytes| format!("{bytes} B")).collect();
        let title = format!("{} together; {}\n", sizes.join(", "), conditions(&group[0]));
        tables.push(title + &aligned(&rows, Align::Left));
    }
    if tables.is_empty() {
        return String::new();
    }
    tables.join("\n")
        + "Ratios of p99s of runs of the same payload and repetition; in brackets, their 95 % interval, which includes \
           the differences between payloads.\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ablation::tests::run;

    /// Three repetitions of each step: with the given p99, slightly more and slightly less.
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
    fn the_effect_of_a_step_follows_from_its_numbers() {
        let runs = runs(&[
            (Step::OneSocket, 1_000.0),
            (Step::SocketALevel, 500.0),
            (Step::Lane, 502.0),
        ]);
        let text = effects_table(&runs);
        let line = |step: &str, against: &str| {
            let mut lines = text.lines();
            let line = lines.find(|line| line.starts_with(step) && line.contains(against));
            line.unwrap_or_else(|| panic!("{text}")).to_owned()
        };
        assert!(line("a socket a level", "one socket").contains("2.00 times shorter (1."));
        assert!(line("+ lane", "a socket a level").contains("no difference seen (0."));
        assert!(text.contains("from repetitions"), "{text}");
        assert_eq!(effects_table(&[]), "");
    }

    #[test]
    fn a_disturbed_step_is_also_read_against_itself_undisturbed() {
        let mut runs = runs(&[(Step::Lane, 400.0), (Step::Budgets, 200.0)]);
        for mut quiet in runs.clone() {
            quiet.disturbance = None;
            quiet.host_us.p99 = quiet.host_us.p99.map(|us| us / 2.0);
            runs.push(quiet);
        }
        let all = effects(&runs);
        let is_meant = |one: &&Effect| {
            one.compared.step == Step::Budgets && one.compared.baseline == Baseline::Undisturbed
        };
        let host = all.iter().find(is_meant).unwrap().host.unwrap();
        assert!((host.value - 2.0).abs() < 1e-9 && host.is_difference());
        let quiet = all.iter().filter(|one| one.compared.disturbance.is_none());
        assert!(quiet.clone().count() > 0);
        assert!(
            quiet
                .into_iter()
                .all(|one| one.compared.baseline != Baseline::Undisturbed)
        );
    }

    #[test]
    fn two_repetitions_carry_no_verdict() {
        let mut runs = runs(&[(Step::OneSocket, 1_000.0), (Step::SocketALevel, 500.0)]);
        assert!(effects(&runs).iter().all(Effect::has_verdict));
        runs.retain(|run| run.repetition < 3);
        let two = effects(&runs);
        assert!(!two.is_empty() && !two.iter().any(Effect::has_verdict));
        assert_eq!(effects_table(&runs), "");
    }

    #[test]
    fn a_run_that_is_none_says_nothing() {
        let mut runs = runs(&[(Step::OneSocket, 1_000.0), (Step::SocketALevel, 500.0)]);
        for run in &mut runs[..3] {
            run.invalid = Some("the ledger is off".into());
        }
        assert!(effects(&runs).is_empty());
    }
}

#[cfg(test)]
mod overall_tests {
    use super::*;
    use crate::report::ablation::tests::run;

    /// Two steps with three repetitions and payloads each. The second step takes `factor` times as long, whatever the
    /// noise of a repetition.
    fn runs(factor: f64, payloads: &[u32]) -> Vec<Run> {
        let mut runs = Vec::new();
        for &payload_bytes in payloads {
            for (repetition, noise) in (1..).zip([1.0, 4.0, 0.5]) {
                for (step, times) in [(Step::OneSocket, 1.0), (Step::SocketALevel, factor)] {
                    let mut run = run(step, repetition);
                    let p99 = f64::from(payload_bytes) * noise * times;
                    run.payload_bytes = payload_bytes;
                    run.rtt_us.p99 = Some(p99);
                    run.host_us.p99 = Some(p99 * (1.0 + 0.01 * f64::from(repetition)));
                    runs.push(run);
                }
            }
        }
        runs
    }

    fn of_second(runs: &[Run]) -> Overall {
        let is_meant = |one: &Overall| one.compared.baseline == Baseline::Step(Step::OneSocket);
        overall(runs).into_iter().find(is_meant).unwrap()
    }

    #[test]
    fn what_touches_both_runs_of_a_pair_does_not_hide_the_effect_of_a_step() {
        let overall = of_second(&runs(0.5, &[64, 512, 1_024]));
        assert_eq!(overall.pairs, 9);
        assert_eq!(overall.payload_bytes, [64, 512, 1_024]);
        let rtt = overall.rtt.unwrap();
        assert!((rtt.value - 0.5).abs() < 1e-9 && rtt.is_difference());
    }

    #[test]
    fn a_run_that_is_none_leaves_its_pair_out() {
        let mut runs = runs(0.5, &[64, 512]);
        runs[0].invalid = Some("the ledger is off".into());
        assert_eq!(of_second(&runs).pairs, 5);
    }

    #[test]
    fn of_one_payload_nothing_is_said_twice() {
        assert!(overall(&runs(0.5, &[64])).is_empty());
        assert_eq!(overall_table(&runs(0.5, &[64])), "");
    }

    #[test]
    fn the_table_names_its_payloads_and_conditions() {
        let text = overall_table(&runs(0.5, &[64, 512]));
        assert!(text.starts_with("64 B, 512 B together; "), "{text}");
        assert!(
            text.lines().next().unwrap().ends_with(", written by a job"),
            "{text}"
        );
        let of_second = |line: &&str| line.starts_with("a socket a level");
        let line = text.lines().find(of_second).unwrap();
        assert!(line.contains("2.00 times shorter (2.00 to 2.00)"), "{text}");
        assert!(line.trim_end().ends_with('6'), "{text}");
    }
}
