//! HTML tables with all numbers of a report.

use maud::{Markup, html};

use super::super::{Brought, Interval, Overall, Ratio, Report, Run};
use super::groups;
use crate::report::one_way::CHECKED;

/// Placeholder of unknown values.
const UNKNOWN: &str = "–";

/// Table of all runs: the columns of paper 000's tables, the percentiles, losses and late sends.
pub(super) fn all_runs(runs: &[Run]) -> Markup {
    html! {
        h2 { "All runs" }
        div.table {
            table #runs {
                caption { "Times in µs, variance in µs². Host: the round trip without the link's part. 1 s p99: the median of one-second windows' p99. "
                    "A percentile with fewer than ten samples beyond it is left out (" (UNKNOWN) ")." }
                thead { tr {
                    th { "run" } th { "payload" } th { "published by" }
                    th { "RTT min" } th { "median" } th { "p99" } th { "1 s p99" } th { "p99.9" } th { "max" } th { "variance" }
                    th { "OWD median" } th { "host median" } th { "host p99" } th { "link median" }
                    th { "samples" } th { "lost" } th { "late" } th { "sender late max" } th { "link late max" }
                } }
                tbody { @for run in runs { (row(run)) } }
            }
        }
    }
}

fn row(run: &Run) -> Markup {
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
    html! {
        tr.invalid[run.invalid.is_some()] {
            td { (groups::name(run)) }
            td { (run.payload_bytes) " B" }
            td { (run.publisher.word()) }
            @for time in times { td { (micros(time)) } }
            td { (run.samples) } td { (run.lost) } td { (run.late_sends) }
            td { (micros(run.sender_late_max_us)) } td { (micros(run.cable_late_max_us)) }
        }
    }
}

/// Table of the components of round trips with a shared clock.
pub(super) fn one_way(runs: &[Run]) -> Markup {
    let (told, refused): (Vec<&Run>, Vec<&Run>) =
        runs.iter().partition(|run| run.one_way.refused.is_none());
    let mut clocks: Vec<&str> = told
        .iter()
        .filter_map(|run| run.one_way.clock.as_deref())
        .collect();
    clocks.dedup();
    let mut reasons: Vec<&str> = refused
        .iter()
        .filter_map(|run| run.one_way.refused.as_deref())
        .collect();
    reasons.dedup();
    html! {
        @if !runs.is_empty() { h2 { "One way" } }
        @if !told.is_empty() {
            div.table {
                table #one-way {
                    caption {
                        "Times in µs, of the round trips that came back; the way there counts from the intended time of sending. Both ends "
                        "stamp by " (clocks.join(", ")) ", which each of them says; " (CHECKED) "."
                    }
                    thead { tr {
                        th { "run" } th { "payload" } th { "there median" } th { "p99" } th { "p99.9" } th { "max" } th { "turnaround median" }
                        th { "back median" } th { "p99" } th { "p99.9" } th { "max" } th { "rounds" }
                    } }
                    tbody { @for run in told { (ways(run)) } }
                }
            }
        }
        @for why in reasons { p.warning { (why) "." } }
    }
}

fn ways(run: &Run) -> Markup {
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
    html! {
        tr.invalid[run.invalid.is_some()] {
            td { (groups::name(run)) }
            td { (run.payload_bytes) " B" }
            @for time in times { td { (micros(time)) } }
            td { (parts.rounds) }
        }
    }
}

/// Table of the executor's counters under inside disturbances, and of their achievement.
pub(super) fn inside(runs: &[Run]) -> Markup {
    let mut disturbed = runs.iter().filter(|run| run.disturbed.is_some()).peekable();
    html! {
        @if disturbed.peek().is_some() {
            h2 { "Priority inversions" }
            div.table {
                table {
                    caption {
                        "Inversion: an activation of less critical work that was started while a sample of level 7 waited in its "
                        "socket. Shown late: stamped by the kernel before that start, but readable only after it; no fault of the executor."
                    }
                    thead { tr {
                        th { "run" } th { "inversions" } th { "at the ping end" } th { "at the pong end" } th { "shown late" }
                        th { "host p99" } th { "p99" } th { "p99.9" } th { "max" } th { "disturbance, a second" }
                    } }
                    tbody { @for run in disturbed {
                        tr.invalid[run.invalid.is_some()] {
                            td { (groups::name(run)) }
                            td { (run.inversions.total) } td { (run.inversions.ping) } td { (run.inversions.pong) }
                            td { (run.kernel_late.total) }
                            td { (micros(run.host_us.p99)) } td { (micros(run.rtt_us.p99)) }
                            td { (micros(run.rtt_us.p99_9)) } td { (micros(run.rtt_us.max)) }
                            td { (run.disturbed.as_ref().map_or_else(|| UNKNOWN.to_owned(), |disturbed| digits(disturbed.achieved_per_s))) }
                        }
                    } }
                }
            }
        }
    }
}

/// Table of each step's effect.
pub(super) fn brought(brought: &[Brought]) -> Markup {
    let words = |interval: Option<Interval>| {
        interval.map_or_else(|| UNKNOWN.to_owned(), |interval| interval.words())
    };
    let brought: Vec<&Brought> = brought.iter().filter(|one| one.has_verdict()).collect();
    html! {
        @if !brought.is_empty() {
            h2 { "What each step brought" }
            div.table {
                table {
                    caption { "p99, with the 95 % interval of its ratio, from the machine's noise between repetitions, or between the seconds of one run." }
                    thead { tr { th { "step" } th { "against" } th { "beside" } th { "payload" } th { "hosts' part" } th { "round trip" } } }
                    tbody { @for one in brought { tr {
                        td { (one.step.name()) }
                        td { (one.against.words()) }
                        td { (one.beside()) }
                        td { (one.payload_bytes) " B" }
                        td { (words(one.host)) }
                        td { (words(one.rtt)) }
                    } } }
                }
            }
        }
    }
}

/// Table of each step's effect over all payloads.
pub(super) fn overall(overall: &[Overall]) -> Markup {
    let words = |interval: Option<Interval>| {
        interval.map_or_else(|| UNKNOWN.to_owned(), |interval| interval.words())
    };
    html! {
        @if !overall.is_empty() {
            h2 { "What each step brought, over all payloads" }
            div.table {
                table {
                    caption { "p99, with the 95 % interval of the ratio, from pairs of runs of the same payload and repetition." }
                    thead { tr { th { "step" } th { "against" } th { "beside" } th { "hosts' part" } th { "round trip" } th { "pairs" } } }
                    tbody { @for one in overall { tr {
                        td { (one.step.name()) }
                        td { (one.against.words()) }
                        td { (one.beside()) }
                        td { (words(one.host)) }
                        td { (words(one.rtt)) }
                        td { (one.pairs) }
                    } } }
                }
            }
        }
    }
}

/// Table of all comparisons, with their ranges.
pub(super) fn ratios(ratios: &[Ratio]) -> Markup {
    html! {
        @if !ratios.is_empty() {
            h2 { "Ratios" }
            div.table {
                table {
                    caption { "Range: the smallest and largest ratio of the same one-second windows of both runs." }
                    thead { tr { th { "what is divided by what" } th { "payload" } th { "ratio" } th { "range" } } }
                    tbody { @for ratio in ratios { tr {
                        td { (ratio.name) }
                        td { (ratio.payload_bytes) " B" }
                        td { (ratio.value.map_or_else(|| UNKNOWN.to_owned(), digits)) }
                        td { (range(ratio)) }
                    } } }
                }
            }
        }
    }
}

fn range(ratio: &Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{} to {}", digits(low), digits(high)),
        _ => UNKNOWN.to_owned(),
    }
}

/// Section with the environment of the measurement.
pub(super) fn environment(report: &Report) -> Markup {
    let environment = &report.environment;
    let realtime = if environment.realtime_kernel {
        "yes"
    } else {
        "no"
    };
    let root = if environment.root { "yes" } else { "no" };
    let cable = &report.cable;
    html! {
        h2 { "Where and how" }
        dl {
            dt { "Command" } dd { code { (environment.command) } }
            dt { "Built from" } dd { (environment.commit.as_deref().unwrap_or("an unknown commit")) }
            dt { "Kernel" } dd { (environment.kernel) }
            dt { "PREEMPT_RT" } dd { (realtime) }
            dt { "Processor" } dd { (environment.cpu.as_deref().unwrap_or(UNKNOWN)) ", " (environment.cores) " cores" }
            dt { "As root" } dd { (root) }
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
