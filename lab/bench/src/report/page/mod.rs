//! Result as one self-contained HTML page, without scripts, fonts or network access.
//!
//! The page begins with the conclusion and the bars of the summary, followed by the ratios of all other comparisons,
//! the figures of each comparison, the tables of the terminal, the missing or invalid runs, and the machine and command. It is computed from the report alone, so
//! a page can be regenerated from the JSON.

mod figure;
mod groups;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Kind, Measure, Of, Order, Ratio, Report, Run, Shown, summary, tables};
use figure::Curve;
use groups::{Group, Subject};

/// Style sheet for light and dark mode, narrow and wide screens, and paper.
const STYLE: &str = include_str!("style.css");

/// Page of a report.
pub fn page(report: &Report) -> String {
    let groups = groups::of(&report.runs);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "isolane: round trips under disturbances" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(report))
                (bars(&report.runs))
                (answers(report))
                @for subject in Subject::ALL {
                    (comparisons(subject, &groups))
                }
                (numbers(&report.runs))
                (no_results(report))
                (environment(report))
            }
        }
    };
    markup.into_string()
}

fn head(report: &Report) -> Markup {
    let environment = &report.environment;
    let conclusion = summary::conclusion(&summary::answers(&report.runs));
    html! {
        h1 { "Round trips of a critical topic under disturbances" }
        @if let Some(conclusion) = conclusion { p.conclusion { (conclusion) } }
        p.faint {
            "isolane on " (environment.cpu.as_deref().unwrap_or("an unnamed processor"))
            ", " (environment.cores) " cores, Linux " (environment.kernel) ". "
            "A critical topic of level 7 makes round trips between two hosts, on schedule, whether or not earlier "
            "replies have come back. The hosts, the link and the disturbance share this machine's cores: compare "
            "ratios, not times."
        }
    }
}

/// Bars of the summary.
fn bars(runs: &[Run]) -> Markup {
    let answers = summary::answers(runs);
    let longest_us = summary::longest_us(&answers).max(1.0);
    let percent = |us: Option<f64>| format!("width:{:.2}%", us.unwrap_or(0.0) / longest_us * 100.0);
    html! {
        @for answer in &answers {
            h3 { (answer.question.title) }
            ul.bars {
                @for (bar, run) in &answer.bars {
                    li class=[run.disturbance.is_none().then_some("quiet")] style={ "--colour:" (groups::style(run).css_colour()) } {
                        span { (bar.label) }
                        div { i style=(percent(run.rtt_us.p99)) {} b style=(percent(run.rtt_us.median)) {} }
                        span.times { (summary::milliseconds(run.rtt_us.median)) " / " (summary::milliseconds(run.rtt_us.p99)) }
                        span.faint { (summary::remark(run)) }
                    }
                }
            }
        }
        @if !answers.is_empty() {
            p.faint {
                "Median / p99. A bar is dark up to the median and light up to p99; the scale is linear from 0 to "
                (summary::milliseconds(Some(longest_us))) ". A striped bar or a dashed curve is undisturbed. A colour means the same mechanism everywhere."
            }
        }
    }
}

/// Median ratio of each kind of comparison, with its range and meaning.
fn answers(report: &Report) -> Markup {
    let headlines = [
        Kind::Flood,
        Kind::Arbiter,
        Kind::Order,
        Kind::Storm,
        Kind::Large,
    ]
    .into_iter()
    .flat_map(|kind| answer(report, kind))
    .chain(inversions(&report.runs));
    // The bars show the same comparisons.
    let is_summary = report.runs.iter().all(|run| summary::label(run).is_some());
    html! { @if !is_summary { ul.answers { @for (times, sentence) in headlines { li { strong { (times) } (sentence) } } } } }
}

/// Median of a kind's p99 ratios with its range, and a sentence about it.
fn answer(report: &Report, kind: Kind) -> Option<(String, String)> {
    // Executor and receive work affect the hosts' share; the link affects the whole round trip.
    let of = match kind {
        Kind::Flood | Kind::Arbiter | Kind::Large | Kind::Isolation => Of::Rtt,
        Kind::Order | Kind::Storm => Of::Host,
    };
    let mut ratios: Vec<&Ratio> = report
        .ratios
        .iter()
        .filter(|ratio| ratio.kind == kind && ratio.of == of && ratio.measure == Measure::P99)
        .filter(|ratio| ratio.value.is_some() && ratio.disturbance.is_some())
        .collect();
    ratios.sort_by(|a, b| a.value.unwrap_or(0.0).total_cmp(&b.value.unwrap_or(0.0)));
    // The lower median: a headline must not exceed what most runs show.
    let median = *ratios.get(ratios.len().checked_sub(1)? / 2)?;
    Some((times(median.value), range(median) + &sentence(median)?))
}

/// Text "(5.5 to 17) ", or an empty string without a range.
fn range(ratio: &Ratio) -> String {
    let ends = ratio.low.zip(ratio.high);
    ends.map_or_else(String::new, |(low, high)| {
        format!("({} to {}) ", digits(low), digits(high))
    })
}

fn sentence(ratio: &Ratio) -> Option<String> {
    let disturbance = ratio
        .disturbance
        .map_or("nothing", |disturbance| disturbance.word());
    let payload_bytes = ratio.payload_bytes;
    Some(match ratio.kind {
        Kind::Flood => format!(
            "as long as undisturbed round trips at p99, under a {disturbance} on a first-in-first-out link \
             ({payload_bytes} B)"
        ),
        Kind::Arbiter => format!(
            "as long on a first-in-first-out link as on a link that sends the most critical frame first, at p99 under \
             a {disturbance} ({payload_bytes} B)"
        ),
        Kind::Order => format!(
            "as long with jobs in the order in which they became ready as with the most critical job first: the \
             hosts' part at p99, under {disturbance} inside the participant ({payload_bytes} B)"
        ),
        Kind::Storm => format!(
            "as long as undisturbed: the hosts' part at p99, under a {disturbance} of receive work ({payload_bytes} B)"
        ),
        Kind::Large => format!(
            "as long as undisturbed round trips at p99, with samples of a mebibyte in the same participants \
             ({payload_bytes} B)"
        ),
        Kind::Isolation => return None,
    })
}

/// Priority inversions of all runs with a disturbance inside the participants, in both job orders.
fn inversions(runs: &[Run]) -> Option<(String, String)> {
    let of_order = |order| {
        let mut disturbed = runs
            .iter()
            .filter(|run| run.disturbed.is_some() && run.order == order)
            .peekable();
        disturbed.peek()?;
        Some(disturbed.map(|run| run.inversions.total).sum::<u64>())
    };
    let (by_priority, fifo) = (of_order(Order::Priority)?, of_order(Order::Fifo)?);
    let sentence = format!(
        "priority inversions with the most critical job first; {fifo} with jobs in the order in which they became ready"
    );
    Some((by_priority.to_string(), sentence))
}

fn times(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{} ×", digits(value)))
}

/// All groups of one subject, under its heading.
fn comparisons(subject: Subject, groups: &[Group<'_>]) -> Markup {
    let mut about = groups
        .iter()
        .filter(|group| group.subject == subject)
        .peekable();
    html! {
        @if about.peek().is_some() {
            h2 { (subject.title()) }
            details {
                summary { "How to read these runs" }
                @for part in subject.explanation() { p { (part.meaning()) } }
            }
            @for group in about { (pictures(group)) }
        }
    }
}

fn pictures(group: &Group<'_>) -> Markup {
    let curves = group.curves();
    html! {
        h3 { (group.title) }
        ul.key {
            @for (run, curve) in group.runs.iter().zip(&curves) {
                li class=[curve.style.is_dashed.then_some("quiet")] style={ "--colour:" (curve.style.css_colour()) } {
                    span {} (key(run, curve))
                }
            }
        }
        div.pictures {
            (picture(figure::distributions(&curves), "Distribution: the share of round trips in each interval of time."))
            (picture(figure::tails(&curves), "Tail: the share of round trips that took longer. A lost round trip counts as longer than all others."))
        }
    }
}

fn key(run: &Run, curve: &Curve) -> String {
    let lost = match run.lost {
        0 => String::new(),
        lost => format!(", {lost} of {} lost", run.samples),
    };
    let p99 = run
        .rtt_us
        .p99
        .map(|p99| format!(", p99 {}", figure::time(p99)));
    let invalid = match run.invalid {
        Some(_) => ", invalid",
        None => "",
    };
    format!("{}{}{lost}{invalid}", curve.name, p99.unwrap_or_default())
}

fn picture(svg: Option<String>, caption: &str) -> Markup {
    html! {
        figure {
            @match svg {
                Some(svg) => (PreEscaped(svg)),
                None => p.faint { "No round trip came back." },
            }
            figcaption { (caption) }
        }
    }
}

/// Tables of the terminal; the first has a line per run.
fn numbers(runs: &[Run]) -> Markup {
    html! {
        @if !runs.is_empty() {
            h2 { "All numbers" }
            p.faint {
                "hosts: the round trip without the link's part. 1 s p99: the median of the p99s of one-second windows. late: "
                "pings sent more than half a period late. A percentile with fewer than ten samples beyond it is left out (-). "
                "Wide tables scroll sideways."
            }
            @for (number, table) in tables(runs, Shown::EachRun).iter().enumerate() {
                pre.table id=[(number == 0).then_some("runs")] { (table) }
            }
        }
    }
}

/// Missing and invalid runs.
fn no_results(report: &Report) -> Markup {
    let invalid: Vec<&Run> = report
        .runs
        .iter()
        .filter(|run| run.invalid.is_some())
        .collect();
    html! {
        @if !invalid.is_empty() || !report.missing.is_empty() {
            h2 { "No results" }
            ul {
                @for run in invalid {
                    li.warning { (groups::name(run)) ", " (run.payload_bytes) " B: " (run.invalid.as_deref().unwrap_or_default()) }
                }
                @for missing in &report.missing {
                    li.warning { (missing.row) ": not measured: " (missing.why) }
                }
            }
        }
    }
}

/// Section with the environment of the measurement.
fn environment(report: &Report) -> Markup {
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
            dt { "Processor" } dd { (environment.cpu.as_deref().unwrap_or("–")) ", " (environment.cores) " cores" }
            dt { "As root" } dd { (word(environment.root)) }
            dt { "Clock" } dd { (environment.clock.words()) }
            dt { "Link" } dd {
                (digits(cable.bits_per_s as f64 / 1e6)) " Mbit/s each way, queue of " (cable.queue_frames) " frames, seed " (cable.seed)
                ", " (cable.ingress_drops) " frames dropped before the link"
            }
        }
        (notes(report))
    }
}

/// Distinct notes on refused steps and remarks on the runs.
fn notes(report: &Report) -> Markup {
    let of_run = |run: &Run| {
        let notes = run.notes.iter().map(ToString::to_string);
        notes.chain(run.remarks.clone()).collect::<Vec<String>>()
    };
    let sentences = groups::distinct(report.runs.iter().flat_map(of_run));
    html! { @if !sentences.is_empty() { ul { @for sentence in sentences { li { (sentence) } } } } }
}

/// Formats a ratio with three digits.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cable;
    use crate::record::{PingRecorder, PongRecorder};
    use crate::report::tests::rounds;
    use crate::report::{Disturbance, Environment, Order, Publisher, ReceiveWork, Scenario, Stage};

    /// Run whose round trips took 200 us, and every hundredth `slow_us`.
    fn run(disturbance: Option<Disturbance>, order: Order, slow_us: u64) -> Run {
        const SAMPLES: u32 = 6_000;
        let scenario = Scenario {
            datapath: "udp".into(),
            stages: vec![Stage::Executor],
            receive_work: ReceiveWork::Softirq,
            publisher: Publisher::Job,
            order,
            disturbance,
            payload_bytes: 64,
            rate_hz: 2_000,
            bound_us: None,
        };
        let (mut ping, pong) = (PingRecorder::new(SAMPLES, 1), PongRecorder::new(SAMPLES, 1));
        for id in 0..SAMPLES {
            let start_ns = 1 + u64::from(id) * scenario.period_ns();
            let rtt_us = if id % 100 == 0 { slow_us } else { 200 };
            ping.sent(id, start_ns, start_ns);
            ping.returned(id, ping.nonce(id), start_ns + rtt_us * 1_000);
        }
        let rounds = rounds(ping, pong, scenario.period_ns());
        Run::new(&scenario, &rounds, None)
    }

    fn report(runs: Vec<Run>) -> Report {
        let mut report = Report::new(Environment::probe(), &cable::Config::default());
        runs.into_iter().for_each(|run| report.add(run));
        report.ratios = super::super::ratios(&report.runs);
        report
    }

    #[test]
    fn each_comparison_has_both_pictures_and_each_run_a_row() {
        let report = report(vec![
            run(None, Order::Priority, 300),
            run(Some(Disturbance::Bulk), Order::Fifo, 9_000),
            run(Some(Disturbance::Bulk), Order::Priority, 400),
            run(Some(Disturbance::Joining), Order::Fifo, 5_000),
        ]);
        let html = page(&report);
        assert_eq!(html.matches("<svg").count(), 4, "bulk and joining: {html}");
        assert!(html.contains("jobs by priority") && html.contains("jobs first in first out"));
        let (_, rows) = html.split_once("id=\"runs\"").unwrap();
        let (rows, _) = rows.split_once("</pre>").unwrap();
        let of_runs = rows
            .lines()
            .filter(|line| line.trim_start().starts_with("64 B"));
        assert_eq!(of_runs.count(), report.runs.len());
    }

    #[test]
    fn one_way_delays_stand_there_or_why_they_do_not() {
        // These ends do not report their clocks.
        let unknown = page(&report(vec![run(None, Order::Priority, 300)]));
        assert!(
            unknown.contains("the boot id of an end is unknown")
                && !unknown.contains("One way over")
        );
        let mut known = run(None, Order::Priority, 300);
        known.one_way.refused = None;
        known.one_way.clock = Some("the <clock>".into());
        known.one_way.back_us.median = Some(123.25);
        let html = page(&report(vec![known]));
        assert!(
            html.contains("One way over") && html.contains(" 123.2 "),
            "{html}"
        );
        assert!(html.contains("the &lt;clock&gt;"), "escaped");
        assert!(
            html.contains("they add up with any clocks"),
            "no proof of it"
        );
    }

    #[test]
    fn a_headline_is_the_median_of_its_ratios_and_stands_in_its_range() {
        let mut runs = Vec::new();
        for (payload_bytes, flood_p99_us) in [(64, 2_000.0), (512, 9_000.0), (1_024, 4_000.0)] {
            for (disturbance, p99_us) in [(None, 200.0), (Some(Disturbance::Flood), flood_p99_us)] {
                let mut run = run(disturbance, Order::Priority, 200);
                run.payload_bytes = payload_bytes;
                // Differs from the p99 of every second.
                run.rtt_us.p99 = Some(p99_us);
                runs.push(run);
            }
        }
        let report = report(runs);
        let (times, sentence) = answer(&report, Kind::Flood).unwrap();
        assert_eq!(times, "20.0 ×");
        assert!(
            sentence.contains("(1.00 to 20.0)") && sentence.contains("1024 B"),
            "{sentence}"
        );
        for ratio in &report.ratios {
            let (Some(low), Some(value), Some(high)) = (ratio.low, ratio.value, ratio.high) else {
                continue;
            };
            assert!(low <= value && value <= high, "{ratio:?}");
        }
    }

    #[test]
    fn the_page_loads_nothing_and_runs_nothing() {
        let html = page(&report(vec![run(None, Order::Priority, 300)]));
        for outside in ["<script", "<link", "<img", "@import", "url(", "src="] {
            assert!(!html.contains(outside), "{outside}");
        }
        let addresses = html.matches("http").count();
        assert_eq!(
            addresses,
            html.matches("http://www.w3.org/2000/svg").count()
        );
    }

    #[test]
    fn what_is_no_result_is_said_with_its_reason() {
        let mut invalid = run(Some(Disturbance::Flood), Order::Priority, 300);
        invalid.invalid = Some("3 frames before the <cable>".into());
        let html = page(&report(vec![invalid]));
        assert!(html.contains("No results"));
        assert!(
            html.contains("3 frames before the &lt;cable&gt;"),
            "escaped"
        );
    }

    #[test]
    fn a_report_without_runs_is_a_page_without_pictures() {
        let html = page(&report(vec![]));
        assert!(!html.contains("<svg") && html.contains("Where and how"));
    }
}
