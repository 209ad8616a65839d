//! Result as one self-contained HTML page, without scripts, fonts or network access.
//!
//! The page begins with the conclusion and the bars of labelled runs. Then come each block's figures, the tables of the
//! terminal, missing and invalid runs, and the machine and command. It is computed from the report alone, so a page can
//! be made again from the JSON.

mod curves;
mod figure;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Report, Run, bars, table, unique};
use curves::Figure;
use figure::Curve;

/// Style sheet for light and dark mode, narrow and wide screens, and paper.
const STYLE: &str = include_str!("style.css");

/// Columns of the tables on the page, which scroll.
const TABLE_COLUMNS: usize = 140;

/// Page of a report.
pub fn page(report: &Report) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "isolane: " (report.scenario.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(report))
                (bars(report))
                @for index in 0..report.scenario.blocks.len() { (block(report, index)) }
                (numbers(report))
                (no_results(report))
                (environment(report))
            }
        }
    };
    markup.into_string()
}

fn head(report: &Report) -> Markup {
    let environment = &report.environment;
    let conclusion = bars::conclusion(&bars::groups(report));
    html! {
        h1 { (report.scenario.title) }
        @for sentence in conclusion { p.conclusion { (sentence) } }
        @if !report.is_complete { p.warning { "This result is incomplete: " (report.runs.len()) " runs had ended." } }
        p.faint {
            "isolane on " (environment.cpu.as_deref().unwrap_or("an unnamed processor"))
            ", " (environment.cores) " cores, Linux " (environment.kernel) ". "
            "A critical topic of level 7 makes round trips between two hosts, on schedule, whether or not earlier "
            "replies have come back. The hosts, the link and the disturbance share this machine's cores: compare "
            "ratios, not times."
        }
    }
}

/// Bars of the labelled runs.
fn bars(report: &Report) -> Markup {
    let groups = bars::groups(report);
    let longest_us = bars::longest_us(&groups).max(1.0);
    let percent = |us: Option<f64>| format!("width:{:.2}%", us.unwrap_or(0.0) / longest_us * 100.0);
    html! {
        @for group in &groups {
            h3 { (group.block.title) }
            ul.bars {
                @for (label, run) in &group.runs {
                    li class=[run.settings.disturbance.is_none().then_some("quiet")] style={ "--colour:" (curves::style(run).css_colour()) } {
                        span { (label) }
                        div { i style=(percent(run.rtt_us.p99)) {} b style=(percent(run.rtt_us.median)) {} }
                        span.times { (bars::milliseconds(run.rtt_us.median)) " / " (bars::milliseconds(run.rtt_us.p99)) }
                        span.faint { (bars::remark(run)) }
                    }
                }
            }
        }
        @if !groups.is_empty() {
            p.faint {
                "Median / p99. A bar is dark up to the median and light up to p99; the scale is linear from 0 to "
                (bars::milliseconds(Some(longest_us))) ". A striped bar or a dashed curve is undisturbed. A colour means the same mechanism everywhere."
            }
        }
    }
}

/// Explanation and figures of a block.
fn block(report: &Report, index: usize) -> Markup {
    let block = &report.scenario.blocks[index];
    let figures = curves::figures(report, index);
    html! {
        @if !figures.is_empty() {
            h2 { (block.title) }
            @if !block.meaning.is_empty() {
                details { summary { "How to read these runs" } p { (block.meaning) } }
            }
            @for figure in &figures { (pictures(figure)) }
        }
    }
}

fn pictures(figure: &Figure<'_>) -> Markup {
    html! {
        @if !figure.title.is_empty() { h3 { (figure.title) } }
        ul.key {
            @for (run, curve) in figure.runs.iter().zip(&figure.curves) {
                li class=[curve.style.is_dashed.then_some("quiet")] style={ "--colour:" (curve.style.css_colour()) } {
                    span {} (key(run, curve))
                }
            }
        }
        div.pictures {
            (picture(figure::distributions(&figure.curves), "Distribution: the share of round trips in each interval of time."))
            (picture(figure::tails(&figure.curves), "Tail: the share of round trips that took longer. A lost round trip counts as longer than all others."))
            (picture(figure::boxes(&figure.curves), "Box plots in the order above: from 25 to 75 %, with the median; whiskers from 0.01 to 99.99 %, and each round trip beyond."))
            (picture(figure::courses(&figure.curves), "Course of the runs: median (line) and maximum (point) of each two-hundredth. Shaded: the sender of a run was stalled. A disturbed run is disturbed from its beginning to its end."))
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

/// Tables of the terminal.
fn numbers(report: &Report) -> Markup {
    html! {
        @if !report.runs.is_empty() {
            h2 { "All numbers" }
            p.faint {
                "hosts: the round trip without the link's part. late: pings sent more than half a period late. A percentile "
                "with fewer than ten samples beyond it is left out (-). Wide tables scroll sideways."
            }
            @for table in table::tables(report, TABLE_COLUMNS) { pre.table { (table) } }
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
                    li.warning { (curves::name(report, run)) ": " (run.invalid.as_deref().unwrap_or_default()) }
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
            dt { "Scenario" } dd { "SHA-256 " code { (report.scenario_sha256) } }
            dt { "Command" } dd { code { (environment.command) } }
            @for resumed in &report.resumed {
                dt { "Resumed" }
                dd {
                    (resumed.began.as_deref().unwrap_or("at an unknown time")) ": " code { (resumed.command) } ", built from "
                    (resumed.commit.as_deref().unwrap_or("an unknown commit")) ", kernel " (resumed.kernel)
                }
            }
            dt { "Built from" } dd { (environment.commit.as_deref().unwrap_or("an unknown commit")) }
            dt { "Kernel" } dd { (environment.kernel) }
            dt { "PREEMPT_RT" } dd { (word(environment.realtime_kernel)) }
            dt { "Processor" } dd { (environment.cpu.as_deref().unwrap_or("–")) ", " (environment.cores) " cores" }
            dt { "As root" } dd { (word(environment.root)) }
            dt { "Clock" } dd { (environment.clock.words()) }
            dt { "Link" } dd {
                (cable.bits_per_s as f64 / 1e6) " Mbit/s each way, queue of " (cable.queue_frames) " frames, seed " (cable.seed)
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
    let sentences = unique(report.runs.iter().flat_map(of_run));
    html! { @if !sentences.is_empty() { ul { @for sentence in sentences { li { (sentence) } } } } }
}

#[cfg(test)]
mod tests;
