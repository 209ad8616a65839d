//! Summary of a result: a few bars for one screen, and a conclusion from their ratios.
//!
//! Each question has a disturbance and two bars to compare: one without isolane's mechanisms, one with them. The table
//! `QUESTIONS` defines both the runs of the short demo and how the summary finds them in a result.

use std::fmt::Write;

use super::comparison::{self, Kind, Measure, Ratio};
use super::{Disturbance, Place, Publisher, Run, Scenario, Step};
use crate::cable::Arbiter;
use crate::scenario::in_process_load::LINK_BITS_PER_S;
use crate::scenario::plan::{self, EXECUTOR_PAYLOAD_BYTES};
use crate::scenario::rtt::Config;

/// Question with the bars that answer it.
#[derive(Debug)]
pub struct Question {
    /// Heading of the bars.
    pub title: &'static str,
    /// Disturbance in the conclusion, with its preposition.
    under: &'static str,
    /// Connection of the hosts.
    place: Place,
    bars: &'static [Bar],
}

/// Bar of a question: the round trips of one run.
#[derive(Debug)]
pub struct Bar {
    /// Name of the run in the summary.
    pub label: &'static str,
    role: Role,
    /// Datapath of a run without test hosts; `None` for the datapath of the step.
    datapath: Option<&'static str>,
    disturbance: Option<Disturbance>,
    step: Step,
    arbiter: Arbiter,
}

/// Role of a bar in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Undisturbed run, for reference.
    Alone,
    /// Disturbed run without the mechanisms: the dividend.
    Without,
    /// Disturbed run with the mechanisms: the divisor.
    With,
}

impl Bar {
    const fn alone(label: &'static str, arbiter: Arbiter) -> Bar {
        Bar {
            label,
            role: Role::Alone,
            datapath: None,
            disturbance: None,
            step: Step::SocketALevel,
            arbiter,
        }
    }

    const fn disturbed(
        label: &'static str,
        role: Role,
        disturbance: Disturbance,
        step: Step,
        arbiter: Arbiter,
    ) -> Bar {
        Bar {
            label,
            role,
            datapath: None,
            disturbance: Some(disturbance),
            step,
            arbiter,
        }
    }

    const fn without_hosts(label: &'static str, datapath: &'static str) -> Bar {
        Bar {
            datapath: Some(datapath),
            ..Bar::alone(label, Arbiter::Fifo)
        }
    }
}

/// All questions in display order.
const QUESTIONS: &[Question] = &[
    Question {
        title: "A flood fills the link of 40 Mbit/s",
        under: "under the flood",
        place: Place::Link,
        bars: &[
            Bar::alone("alone", Arbiter::Strict),
            Bar::disturbed(
                "flood, plain sockets",
                Role::Without,
                Disturbance::Flood,
                Step::OneSocket,
                Arbiter::Fifo,
            ),
            Bar::disturbed(
                "flood, isolane",
                Role::With,
                Disturbance::Flood,
                Step::SocketALevel,
                Arbiter::Strict,
            ),
        ],
    },
    Question {
        title: "A bulk topic in the same processes, on a link of 10000 Mbit/s",
        under: "beside bulk in the same process",
        place: Place::FastLink,
        bars: &[
            Bar::alone("alone, fast link", Arbiter::Fifo),
            Bar::disturbed(
                "bulk, jobs in FIFO order",
                Role::Without,
                Disturbance::Bulk,
                Step::OneSocket,
                Arbiter::Fifo,
            ),
            Bar::disturbed(
                "bulk, isolane",
                Role::With,
                Disturbance::Bulk,
                Step::SocketALevel,
                Arbiter::Fifo,
            ),
        ],
    },
    Question {
        title: "A multicast storm that both hosts receive, on AF_XDP lanes and the link of 40 Mbit/s",
        under: "under the storm",
        place: Place::Link,
        bars: &[
            Bar::disturbed(
                "storm, no budgets",
                Role::Without,
                Disturbance::Storm,
                Step::Lane,
                Arbiter::Strict,
            ),
            Bar::disturbed(
                "storm, isolane",
                Role::With,
                Disturbance::Storm,
                Step::Budgets,
                Arbiter::Strict,
            ),
        ],
    },
    Question {
        title: "Without test hosts: nothing disturbs",
        under: "",
        place: Place::Link,
        bars: &[
            Bar::without_hosts("sockets on 127.0.0.1", "udp-loopback"),
            Bar::without_hosts("in memory, one thread", "memory"),
        ],
    },
];

impl Question {
    fn scenario(&self, bar: &Bar) -> Scenario {
        let publisher = match (self.place, bar.datapath) {
            (Place::Link, None) => Publisher::Thread,
            _ => Publisher::Job,
        };
        let scenario = plan::scenario("udp", publisher, EXECUTOR_PAYLOAD_BYTES, bar.disturbance);
        let mut scenario = bar.step.of(scenario);
        if let Some(datapath) = bar.datapath {
            datapath.clone_into(&mut scenario.datapath);
        }
        scenario
    }

    /// Returns whether a run with this scenario and link belongs to the bar. On an idle link the arbiter is irrelevant.
    fn has(&self, bar: &Bar, scenario: &Scenario, link: Option<(u64, Arbiter)>) -> bool {
        let is_link = link.is_none_or(|(bits_per_s, arbiter)| {
            let is_fast = bits_per_s == LINK_BITS_PER_S;
            is_fast == (self.place == Place::FastLink)
                && (arbiter == bar.arbiter || bar.disturbance.is_none())
        });
        is_link && *scenario == self.scenario(bar)
    }
}

/// Runs of the summary between test hosts, in display order.
pub fn plan(seconds: u32) -> Vec<Config> {
    let questions = QUESTIONS.iter();
    let bars = questions.flat_map(|question| question.bars.iter().map(move |bar| (question, bar)));
    let between_hosts = bars.filter(|(_, bar)| bar.datapath.is_none());
    between_hosts
        .map(|(question, bar)| {
            let scenario = question.scenario(bar);
            plan::in_place(question.place, scenario, seconds).through(bar.arbiter)
        })
        .collect()
}

/// Name in the summary of a run with this scenario and link; `None` if the summary does not have it.
fn label_of(scenario: &Scenario, link: Option<(u64, Arbiter)>) -> Option<&'static str> {
    let mut bars = QUESTIONS
        .iter()
        .flat_map(|question| question.bars.iter().map(move |bar| (question, bar)));
    let found = bars.find(|(question, bar)| question.has(bar, scenario, link));
    found.map(|(_, bar)| bar.label)
}

/// Name in the summary of a planned run.
pub fn planned_label(config: &Config) -> Option<&'static str> {
    let link = (config.cable.bits_per_s, config.cable.arbiter);
    label_of(&config.scenario, Some(link)).filter(|_| config.bulk_reader.is_none())
}

/// Name in the summary of a completed run.
pub fn label(run: &Run) -> Option<&'static str> {
    label_of(&Scenario::of_run(run), link_of(run)).filter(|_| run.bulk_reader.is_none())
}

fn link_of(run: &Run) -> Option<(u64, Arbiter)> {
    run.cable
        .as_ref()
        .map(|cable| (cable.bits_per_s, cable.arbiter))
}

/// Answer of a result to a question: the valid runs of its bars.
pub(super) struct Answer<'a> {
    pub(super) question: &'static Question,
    pub(super) bars: Vec<(&'static Bar, &'a Run)>,
}

impl Answer<'_> {
    /// Ratio of a statistic without and with the mechanisms. `None` unless both runs are there.
    fn ratio(&self, measure: Measure) -> Option<Ratio> {
        let run_of = |role| {
            let mut bars = self.bars.iter();
            bars.find(|(bar, _)| bar.role == role).map(|(_, run)| *run)
        };
        let (dividend, divisor) = (run_of(Role::Without)?, run_of(Role::With)?);
        Some(comparison::between(
            Kind::Isolation,
            dividend,
            divisor,
            measure,
        ))
    }

    /// Words for the ratio of the p99s, and for that of the medians if only the medians differ. One stall of the
    /// machine can hide the difference between the p99s of short runs.
    fn findings(&self) -> Option<String> {
        let p99 = self.ratio(Measure::P99)?;
        let words = finding(&p99)?;
        let median = self.ratio(Measure::Median);
        let median = median.filter(|median| is_clear(median) && !is_clear(&p99));
        Some(match median.as_ref().and_then(finding) {
            Some(median) => format!("{words}, but the median is {median},"),
            None => words,
        })
    }
}

/// Answers to all questions for which the result has two bars or a disturbed one.
pub(super) fn answers(runs: &[Run]) -> Vec<Answer<'_>> {
    let answer = |question: &'static Question| {
        let run_of = |bar: &Bar| {
            let mut valid = runs
                .iter()
                .filter(|run| run.invalid.is_none() && run.bulk_reader.is_none());
            valid.find(|run| question.has(bar, &Scenario::of_run(run), link_of(run)))
        };
        let bars = question.bars.iter();
        Answer {
            question,
            bars: bars.filter_map(|bar| Some((bar, run_of(bar)?))).collect(),
        }
    };
    let answers = QUESTIONS.iter().map(answer);
    let is_shown = |answer: &Answer<'_>| {
        let mut bars = answer.bars.iter();
        answer.bars.len() >= 2 || bars.any(|(bar, _)| bar.role != Role::Alone)
    };
    answers.filter(is_shown).collect()
}

/// Ratios of the summary.
pub(super) fn ratios(runs: &[Run]) -> Vec<Ratio> {
    let answers = answers(runs);
    let of_answer =
        |answer: &Answer<'_>| [Measure::Median, Measure::P99].map(|measure| answer.ratio(measure));
    answers.iter().flat_map(of_answer).flatten().collect()
}

/// Conclusion from the ratios of all questions, in one sentence. `None` without bars.
pub(super) fn conclusion(answers: &[Answer<'_>]) -> Option<String> {
    answers.first()?;
    let clauses: Vec<String> = answers
        .iter()
        .filter_map(|answer| Some(format!("{} {}", answer.findings()?, answer.question.under)))
        .collect();
    let text = match clauses.as_slice() {
        [] => "Nothing is compared, because no disturbed run has a counterpart.".to_owned(),
        [one] => format!("With isolane, p99 is {one}."),
        [first @ .., last] => format!("With isolane, p99 is {}, and {last}.", first.join(", ")),
    };
    Some(text)
}

/// Returns whether a ratio shows a difference: its range over single seconds does not include 1.
fn is_clear(ratio: &Ratio) -> bool {
    let (low, high) = (ratio.low.or(ratio.value), ratio.high.or(ratio.value));
    low.is_some_and(|low| low > 1.0) || high.is_some_and(|high| high < 1.0)
}

/// Words for a ratio.
fn finding(ratio: &Ratio) -> Option<String> {
    let value = ratio.value?;
    let (low, high) = ratio.low.zip(ratio.high).unwrap_or((value, value));
    let range = match ratio.low {
        Some(_) => format!(" ({low:.1} to {high:.1})"),
        None => String::new(),
    };
    Some(if low > 1.0 {
        format!("{value:.1} times shorter{range}")
    } else if high < 1.0 {
        format!("{:.1} times longer", 1.0 / value)
    } else {
        format!("not clearly different ({low:.1} to {high:.1} times shorter)")
    })
}

/// Greatest p99 of all bars in microseconds, which is the length of a full bar.
pub(super) fn longest_us(answers: &[Answer<'_>]) -> f64 {
    let bars = answers.iter().flat_map(|answer| &answer.bars);
    bars.filter_map(|(_, run)| run.rtt_us.p99)
        .fold(0.0, f64::max)
}

/// Loss and priority inversions of a run, where they say something.
pub(super) fn remark(run: &Run) -> String {
    let mut words = Vec::new();
    if run.lost > 0 {
        words.push(format!("{} lost", run.lost));
    }
    if run.disturbed.is_some() {
        words.push(format!("{} inversions", run.inversions.total));
    }
    words.join(", ")
}

/// Time in milliseconds with three digits.
pub(super) fn milliseconds(us: Option<f64>) -> String {
    let Some(us) = us else {
        return "-".to_owned();
    };
    let decimals = match us {
        us if us >= 9_995.0 => 1,
        us if us >= 99.5 => 2,
        _ => 4,
    };
    format!("{:.decimals$} ms", us / 1e3)
}

/// Cells of a full bar on a terminal.
const BAR_CELLS: usize = 24;

/// Bars and conclusion for a terminal, at most 100 columns wide. Empty without bars.
pub(super) fn text(runs: &[Run]) -> String {
    let answers = answers(runs);
    let Some(conclusion) = conclusion(&answers) else {
        return String::new();
    };
    let longest_us = longest_us(&answers);
    // Writing to a string cannot fail.
    let mut text = format!(
        "{:<26} {:<BAR_CELLS$} {:>10} {:>10}\n",
        "Round trips", "", "median", "p99"
    );
    for answer in &answers {
        let _ = writeln!(text, "{}", answer.question.title);
        for (bar, run) in &answer.bars {
            let line = format!(
                "  {:<24} {} {:>10} {:>10}  {}",
                bar.label,
                bar_cells(run, longest_us),
                milliseconds(run.rtt_us.median),
                milliseconds(run.rtt_us.p99),
                remark(run)
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    let _ = writeln!(
        text,
        "Bars are linear from 0 to {}: \u{2588} up to the median, \u{2591} up to p99.\n",
        milliseconds(Some(longest_us))
    );
    text + &wrapped(&conclusion)
}

/// Bar of [`BAR_CELLS`] cells: full up to the median, light up to p99.
fn bar_cells(run: &Run, longest_us: f64) -> String {
    let cells = |us: Option<f64>| us.map_or(0.0, |us| us / longest_us.max(1.0) * BAR_CELLS as f64);
    let p99 = (cells(run.rtt_us.p99).round() as usize).min(BAR_CELLS);
    let median = cells(run.rtt_us.median).min(BAR_CELLS as f64);
    let eighths = (median * 8.0).round().max(1.0) as usize;
    let (full, rest) = (eighths / 8, eighths % 8);
    let mut bar = "\u{2588}".repeat(full);
    // U+258F is an eighth of a cell, U+2589 seven eighths.
    bar.extend((rest > 0).then(|| {
        [
            '\u{258f}', '\u{258e}', '\u{258d}', '\u{258c}', '\u{258b}', '\u{258a}', '\u{2589}',
        ][rest - 1]
    }));
    let used = full + usize::from(rest > 0);
    bar.push_str(&"\u{2591}".repeat(p99.saturating_sub(used)));
    let used = used.max(p99);
    bar + &" ".repeat(BAR_CELLS.saturating_sub(used))
}

/// Columns of the summary.
const COLUMNS: usize = 98;

/// Text in lines of at most `COLUMNS` characters.
pub fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("one line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= COLUMNS {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Cable;
    use crate::report::tests::silent_run;

    /// Run of a planned configuration with this median and p99.
    fn run(config: &Config, median_us: f64, p99_us: f64) -> Run {
        let mut run = silent_run(config.scenario.disturbance);
        run.datapath.clone_from(&config.scenario.datapath);
        run.stages.clone_from(&config.scenario.stages);
        run.receive_work = config.scenario.receive_work;
        run.publisher = config.scenario.publisher;
        run.order = config.scenario.order;
        run.cable = Some(Cable::of(&config.cable));
        run.lost = 0;
        run.rtt_us.median = Some(median_us);
        run.rtt_us.p99 = Some(p99_us);
        run
    }

    /// All planned runs. The p99 without the mechanisms is this multiple of the p99 with them.
    fn runs(factor: f64) -> Vec<Run> {
        let is_without = |config: &Config| {
            matches!(
                planned_label(config),
                Some("flood, plain sockets" | "bulk, jobs in FIFO order" | "storm, no budgets")
            )
        };
        let run_of = |config: &Config| match is_without(config) {
            true => run(config, 500.0, 1_000.0 * factor),
            false => run(config, 250.0, 1_000.0),
        };
        plan(3).iter().map(run_of).collect()
    }

    #[test]
    fn every_planned_run_has_its_bar_and_every_pair_its_ratio() {
        let runs = runs(2.0);
        let found = answers(&runs);
        assert_eq!(
            found.iter().map(|answer| answer.bars.len()).sum::<usize>(),
            runs.len()
        );
        let pairs: Vec<Option<f64>> = ratios(&runs).iter().map(|ratio| ratio.value).collect();
        assert_eq!(pairs, [Some(2.0); 6]);
    }

    #[test]
    fn the_conclusion_says_what_the_run_shows() {
        let conclude = |factor| {
            let runs = runs(factor);
            conclusion(&answers(&runs)).unwrap()
        };
        assert!(
            conclude(4.0).starts_with("With isolane, p99 is 4.0 times shorter under the flood, ")
        );
        assert!(conclude(0.5).contains("2.0 times longer under the storm"));
        assert!(conclude(1.0).starts_with(
            "With isolane, p99 is not clearly different (1.0 to 1.0 times shorter), but the median is 2.0 times shorter, \
             under the flood, "
        ));
        let ratio = |low, high| Ratio {
            low: Some(low),
            high: Some(high),
            ..ratios(&runs(2.0)).remove(1)
        };
        assert_eq!(
            finding(&ratio(0.8, 3.0)).unwrap(),
            "not clearly different (0.8 to 3.0 times shorter)"
        );
        assert_eq!(
            finding(&ratio(1.5, 3.0)).unwrap(),
            "2.0 times shorter (1.5 to 3.0)"
        );
    }

    #[test]
    fn an_invalid_run_has_no_bar_and_its_pair_no_ratio() {
        let mut runs = runs(2.0);
        let flood = runs
            .iter_mut()
            .find(|run| label(run) == Some("flood, isolane"));
        flood.unwrap().invalid = Some("frames were dropped before the cable".into());
        let text = text(&runs);
        assert!(!text.contains("flood, isolane"), "{text}");
        assert_eq!(ratios(&runs).len(), 4);
        assert!(!text.contains("under the flood"), "{text}");
    }

    #[test]
    fn the_summary_fits_on_one_screen() {
        let mut runs = runs(1_000.0);
        for run in &mut runs {
            run.lost = 6_000;
            run.inversions.total = 100_000;
        }
        let text = text(&runs);
        assert!(text.lines().count() <= 20, "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        assert_eq!(super::text(&[]), "");
    }

    #[test]
    fn a_bar_is_full_up_to_the_median_and_light_up_to_p99() {
        let config = plan(3).remove(0);
        let bar = bar_cells(&run(&config, 500.0, 750.0), 1_000.0);
        assert_eq!(
            bar,
            "\u{2588}".repeat(12) + &"\u{2591}".repeat(6) + &" ".repeat(6)
        );
        let short = bar_cells(&run(&config, 10.0, 1_000.0), 1_000.0);
        assert!(short.starts_with("\u{258e}\u{2591}"), "{short}");
        assert_eq!(short.chars().count(), BAR_CELLS);
    }

    #[test]
    fn times_have_three_digits() {
        let times = [Some(4.26), Some(364.0), Some(12_613.0), None].map(milliseconds);
        assert_eq!(times, ["0.0043 ms", "0.36 ms", "12.6 ms", "-"]);
    }
}
