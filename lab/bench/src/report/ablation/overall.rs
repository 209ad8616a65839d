//! Effect of each step over all payloads. On a noisy machine three repetitions of one payload say little; those of
//! three payloads say more.
//!
//! A pair is a run of the step and one of its baseline with the same payload, link and repetition. The two are close in
//! time, so slow drift of the machine affects both. The logarithms of the pairs' ratios are averaged, with Student's
//! interval (95 %), which includes the differences between payloads. Links stay separate, because a step's effect under
//! a flood depends on the link.

use serde::{Deserialize, Serialize};

use super::brought::{Against, beside_in_words, left_aligned, undisturbed, words};
use super::interval::{Interval, paired};
use super::{Step, beside, blocks, steps_of};
use crate::cable::Arbiter;
use crate::report::{Disturbance, Of, Run};

/// Effect of a step over all measured payloads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overall {
    /// Message sizes in bytes.
    pub payload_bytes: Vec<u32>,
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
    /// Number of pairs of runs.
    pub pairs: usize,
    /// Ratio of the round trip's p99; null with too few pairs.
    pub rtt: Option<Interval>,
    /// Ratio of the p99 of the hosts' share.
    pub host: Option<Interval>,
}

/// Effects of all steps under each disturbance, on each link. Empty if only one payload was measured, because
/// [`brought`](super::brought) covers it.
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
        let is_same = |group: &&mut Vec<&[&Run]>| beside_what(group[0][0]) == beside_what(block[0]);
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(block),
            None => groups.push(vec![block]),
        }
    }
    groups
}

/// Common properties of a group's blocks, as text.
fn beside_what(run: &Run) -> String {
    format!("{}, {:?}, {:?}", beside(run), run.arbiter(), run.publisher)
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
            rows.extend(row(group, step, Against::Step(other), pairs.collect()));
        }
        let pairs = group
            .iter()
            .flat_map(|block| pairs(block, step, undisturbed(blocks, block), step));
        rows.extend(row(group, step, Against::Undisturbed, pairs.collect()));
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

fn row(
    group: &[&[&Run]],
    step: Step,
    against: Against,
    pairs: Vec<(&Run, &Run)>,
) -> Option<Overall> {
    let first = group[0][0];
    let of = |part: Of| {
        let p99 = |run: &Run| match part {
            Of::Rtt => run.rtt_us.p99,
            Of::Host => run.host_us.p99,
        };
        let ratios = pairs
            .iter()
            .filter_map(|(run, other)| Some(p99(run)? / p99(other)?));
        paired(&ratios.collect::<Vec<f64>>())
    };
    (!pairs.is_empty()).then(|| Overall {
        payload_bytes: group.iter().map(|block| block[0].payload_bytes).collect(),
        disturbance: first.disturbance,
        is_read: first.bulk_reader.is_some(),
        arbiter: first.arbiter(),
        step,
        against,
        pairs: pairs.len(),
        rtt: of(Of::Rtt),
        host: of(Of::Host),
    })
}

impl Overall {
    /// Description of the disturbance and the link.
    pub fn beside(&self) -> String {
        beside_in_words(self.disturbance, self.is_read, self.arbiter)
    }

    fn sizes(&self) -> String {
        let sizes = self.payload_bytes.iter();
        let words: Vec<String> = sizes.map(|bytes| format!("{bytes} B")).collect();
        words.join(", ")
    }
}

/// Text table of the effects. Empty without a comparison.
pub fn overall_table(runs: &[Run]) -> String {
    let all = overall(runs);
    let mut tables = Vec::new();
    for group in all.chunk_by(|one, next| one.beside() == next.beside()) {
        let mut rows = vec![
            ["what it brought", "against", "RTT", "hosts' part", "pairs"]
                .map(str::to_owned)
                .to_vec(),
        ];
        rows.extend(group.iter().map(|one| {
            vec![
                one.step.name().to_owned(),
                one.against.words().to_owned(),
                words(one.rtt),
                words(one.host),
                one.pairs.to_string(),
            ]
        }));
        let title = format!("All of {}; {}\n", group[0].sizes(), group[0].beside());
        tables.push(title + &left_aligned(rows));
    }
    if tables.is_empty() {
        return String::new();
    }
    tables.join("\n")
        + "Ratios of p99s of runs of the same payload and repetition, in brackets their 95 % interval: how payloads \
           differ is in it.\n"
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::*;

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
        let is_meant = |one: &Overall| one.against == Against::Step(Step::OneSocket);
        overall(runs).into_iter().find(is_meant).unwrap()
    }

    #[test]
    fn what_touches_both_runs_of_a_pair_does_not_hide_what_a_step_brought() {
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
    fn the_table_says_of_what_and_beside_what() {
        let text = overall_table(&runs(0.5, &[64, 512]));
        assert!(text.starts_with("All of 64 B, 512 B; "), "{text}");
        let of_second = |line: &&str| line.starts_with("a socket a level");
        let line = text.lines().find(of_second).unwrap();
        assert!(line.contains("2.00 times shorter (2.00 to 2.00)"), "{text}");
        assert!(line.trim_end().ends_with('6'), "{text}");
    }
}
