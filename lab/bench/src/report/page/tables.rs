//! HTML tables with all numbers of a report.

use maud::{Markup, html};

use super::groups;
use crate::report::text_table::CHECKED;
use crate::report::{Compared, Effect, Interval, Overall, Ratio, Report, Run};

/// Placeholder of unknown values.
const UNKNOWN: &str = "–";

/// Line of a table.
struct Row {
    /// True for a run that is no result.
    is_invalid: bool,
    cells: Vec<String>,
}

impl Row {
    /// Line about a run, beginning with its name and payload.
    fn of(run: &Run, cells: impl IntoIterator<Item = String>) -> Row {
        let first = [groups::name(run), format!("{} B", run.payload_bytes)];
        Row {
            is_invalid: run.invalid.is_some(),
            cells: first.into_iter().chain(cells).collect(),
        }
    }

    fn new(cells: impl IntoIterator<Item = String>) -> Row {
        Row {
            is_invalid: false,
            cells: cells.into_iter().collect(),
        }
    }
}

/// Table under a heading; nothing without rows.
fn table(
    title: &str,
    id: Option<&str>,
    caption: &str,
    headings: &[&str],
    rows: Vec<Row>,
) -> Markup {
    html! {
        @if !rows.is_empty() {
            h2 { (title) }
            div.table {
                table id=[id] {
                    caption { (caption) }
                    thead { tr { @for heading in headings { th { (heading) } } } }
                    tbody { @for row in rows {
                        tr.invalid[row.is_invalid] { @for cell in row.cells { td { (cell) } } }
                    } }
                }
            }
        }
    }
}

/// Table of all runs: the columns of the tables of Meszlényi et al., the percentiles, losses and late sends.
pub(super) fn all_runs(runs: &[Run]) -> Markup {
    let row = |run: &Run| {
        let times = [
            run.rtt_us.min,
            run.rtt_us.median,
            run.rtt_us.p99,
            run.window_p99_median_us,
            run.rtt_us.p99_9,
            run.rtt_us.max,
            run.rtt_us.variance,
            run.owd_us.median,
            run.host_us.median,
            run.host_us.p99,
            run.cable_us.median,
        ];
        let counts = [run.samples, run.lost, run.late_sends].map(|count| count.to_string());
        let late = [run.sender_late_max_us, run.cable_late_max_us].map(micros);
        let publisher = run.publisher.word().to_owned();
        let cells = std::iter::once(publisher).chain(times.map(micros));
        Row::of(run, cells.chain(counts).chain(late))
    };
    table(
        "All runs",
        Some("runs"),
        "Times in µs, variance in µs². Host: the round trip without the link's part. 1 s p99: the median of one-second windows' p99. \
         A percentile with fewer than ten samples beyond it is left out (–).",
        &[
            "run",
            "payload",
            "published by",
            "RTT min",
            "median",
            "p99",
            "1 s p99",
            "p99.9",
            "max",
            "variance",
            "OWD median",
            "host median",
            "host p99",
            "link median",
            "samples",
            "lost",
            "late",
            "sender late max",
            "link late max",
        ],
        runs.iter().map(row).collect(),
    )
}

/// Table of the components of round trips with a shared clock, and the reasons why other runs have none.
pub(super) fn one_way(runs: &[Run]) -> Markup {
    let (measured, refused): (Vec<&Run>, Vec<&Run>) =
        runs.iter().partition(|run| run.one_way.refused.is_none());
    let clocks = measured
        .iter()
        .filter_map(|run| run.one_way.clock.as_deref());
    let mut clocks: Vec<&str> = clocks.collect();
    clocks.dedup();
    let reasons = refused
        .iter()
        .filter_map(|run| run.one_way.refused.as_deref());
    let mut reasons: Vec<&str> = reasons.collect();
    reasons.dedup();
    let row = |run: &&Run| {
        let parts = &run.one_way;
        let times = [
            parts.there_us.median,
            parts.there_us.p99,
            parts.there_us.p99_9,
            parts.there_us.max,
            parts.turnaround_us.median,
            parts.back_us.median,
            parts.back_us.p99,
            parts.back_us.p99_9,
            parts.back_us.max,
        ];
        let rounds = std::iter::once(parts.rounds.to_string());
        Row::of(run, times.map(micros).into_iter().chain(rounds))
    };
    let caption = format!(
        "Times in µs, of the round trips that came back; the way there counts from the intended time of sending. Both ends \
         report {} as the clock of their timestamps; {CHECKED}.",
        clocks.join(", ")
    );
    let measured = table(
        "One way",
        Some("one-way"),
        &caption,
        &[
            "run",
            "payload",
            "there median",
            "p99",
            "p99.9",
            "max",
            "turnaround median",
            "back median",
            "p99",
            "p99.9",
            "max",
            "rounds",
        ],
        measured.iter().map(row).collect(),
    );
    html! {
        (measured)
        @if clocks.is_empty() && !reasons.is_empty() { h2 { "One way" } }
        @for why in reasons { p.warning { (why) "." } }
    }
}

/// Table of the executor's counters under disturbances inside the participants, and of their achievement.
pub(super) fn in_process(runs: &[Run]) -> Markup {
    let row = |run: &Run| {
        let disturbed = run.disturbed.as_ref()?;
        let counts = [
            run.inversions.total,
            run.inversions.ping,
            run.inversions.pong,
            run.kernel_late.total,
        ];
        let times = [
            run.host_us.p99,
            run.rtt_us.p99,
            run.rtt_us.p99_9,
            run.rtt_us.max,
        ];
        let cells = counts.into_iter().map(|count| count.to_string());
        let cells = cells
            .chain(times.map(micros))
            .chain([digits(disturbed.achieved_per_s)]);
        let cells = std::iter::once(groups::name(run)).chain(cells).collect();
        Some(Row {
            is_invalid: run.invalid.is_some(),
            cells,
        })
    };
    table(
        "Priority inversions",
        None,
        "Inversion: an activation of less critical work that was started while a sample of level 7 waited in its \
         socket. Shown late: stamped by the kernel before that start, but readable only after it; no fault of the executor.",
        &[
            "run",
            "inversions",
            "at the ping end",
            "at the pong end",
            "shown late",
            "host p99",
            "p99",
            "p99.9",
            "max",
            "disturbance, a second",
        ],
        runs.iter().filter_map(row).collect(),
    )
}

/// First cells of an effect: step, baseline, disturbance and link.
fn compared(compared: &Compared) -> [String; 3] {
    let (step, baseline) = (compared.step.name(), compared.baseline.words());
    [step.to_owned(), baseline.to_owned(), compared.conditions()]
}

fn words(interval: Option<Interval>) -> String {
    interval.map_or_else(|| UNKNOWN.to_owned(), |interval| interval.words())
}

/// Table of each step's effect.
pub(super) fn effects(effects: &[Effect]) -> Markup {
    let row = |one: &Effect| {
        let rest = [
            format!("{} B", one.payload_bytes),
            words(one.host),
            words(one.rtt),
        ];
        Row::new(compared(&one.compared).into_iter().chain(rest))
    };
    table(
        "Effect of each step",
        None,
        "p99, with the 95 % interval of its ratio, from the machine's noise between repetitions, or between the seconds of one run.",
        &[
            "step",
            "baseline",
            "disturbance",
            "payload",
            "hosts' part",
            "round trip",
        ],
        effects
            .iter()
            .filter(|one| one.has_verdict())
            .map(row)
            .collect(),
    )
}

/// Table of each step's effect over all payloads.
pub(super) fn overall(overall: &[Overall]) -> Markup {
    let row = |one: &Overall| {
        let rest = [words(one.host), words(one.rtt), one.pairs.to_string()];
        Row::new(compared(&one.compared).into_iter().chain(rest))
    };
    table(
        "Effect of each step, over all payloads",
        None,
        "p99, with the 95 % interval of the ratio, from pairs of runs of the same payload and repetition.",
        &[
            "step",
            "baseline",
            "disturbance",
            "hosts' part",
            "round trip",
            "pairs",
        ],
        overall.iter().map(row).collect(),
    )
}

/// Table of all comparisons, with their ranges.
pub(super) fn ratios(ratios: &[Ratio]) -> Markup {
    let unknown = || UNKNOWN.to_owned();
    let row = |ratio: &Ratio| {
        let range = ratio.low.zip(ratio.high);
        Row::new([
            ratio.name.clone(),
            format!("{} B", ratio.payload_bytes),
            ratio.value.map_or_else(unknown, digits),
            range.map_or_else(unknown, |(low, high)| {
                format!("{} to {}", digits(low), digits(high))
            }),
        ])
    };
    table(
        "Ratios",
        None,
        "Range: the smallest and largest ratio of the same one-second windows of both runs.",
        &["dividend / divisor", "payload", "ratio", "range"],
        ratios.iter().map(row).collect(),
    )
}

/// Section with the environment of the measurement.
pub(super) fn environment(report: &Report) -> Markup {
    let environment = &report.environment;
    let word = |is_so: bool| if is_so { "yes" } else { "no" };
    let cable = &report.cable;
    html! {
        h2 { "Where and how" }
        dl {
            dt { "Command" } dd { code { (environment.command) } }
            dt { "Built from" } dd { (environment.commit.as_deref().unwrap_or("an unknown commit")) }
            dt { "Kernel" } dd { (environment.kernel) }
            dt { "PREEMPT_RT" } dd { (word(environment.realtime_kernel)) }
            dt { "Processor" } dd { (environment.cpu.as_deref().unwrap_or(UNKNOWN)) ", " (environment.cores) " cores" }
            dt { "As root" } dd { (word(environment.root)) }
            dt { "Clock" } dd { (environment.clock.words()) }
            dt { "Link" } dd {
                (digits(cable.bits_per_s as f64 / 1e6)) " Mbit/s each way, queue of " (cable.queue_frames) " frames, seed " (cable.seed)
                ", " (cable.ingress_drops) " frames dropped before it"
            }
        }
        (notes(report))
    }
}

/// Distinct notes on refused steps and remarks on the runs.
fn notes(report: &Report) -> Markup {
    let mut sentences: Vec<String> = Vec::new();
    for run in &report.runs {
        let notes = run.notes.iter().map(ToString::to_string);
        for sentence in notes.chain(run.remarks.iter().cloned()) {
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
    }
    html! { @if !sentences.is_empty() { ul { @for sentence in sentences { li { (sentence) } } } } }
}

fn micros(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| format!("{value:.1}"))
}

/// Formats a ratio with three digits.
pub(super) fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}
