//! What `demo` and `bench rtt` have in common: runs are made one after the other, then shown.

use std::fmt::Write;

use isolane_bench::report::{
    Charset, Environment, Report, Run, Series, histogram, table, terminal_width,
};
use isolane_bench::scenario::plan;
use isolane_bench::scenario::rtt::{self, Outcome};

use super::laboratory::Laboratory;
use super::progress::Progress;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{print, print_json, tell};
use crate::values::Destination;

/// Makes the runs and shows them, with what they mean; the exit code says whether all are results.
pub(crate) fn run(
    laboratory: &Laboratory,
    rows: &[rtt::Config],
    meaning: &str,
    json: Option<&Destination>,
) -> Result<ExitCode, Failure> {
    let outcomes = measure(laboratory, rows)?;
    let cable = rows
        .first()
        .map(|row| row.cable.clone())
        .unwrap_or_default();
    let mut report = Report::new(Environment::probe(), &cable);
    for outcome in &outcomes {
        report.add(outcome.run.clone());
    }
    report.ratios = plan::ratios(&report.runs);
    let mut text = render(&report, &outcomes);
    if !meaning.is_empty() {
        let _ = writeln!(text, "\n{meaning}");
    }
    show(&text, json)?;
    if let Some(destination) = json {
        print_json(&report, destination)?;
    }
    let all_are_results = report.runs.iter().all(|run| run.invalid.is_none());
    Ok(if all_are_results {
        ExitCode::Done
    } else {
        ExitCode::AnswerIsNo
    })
}

/// Makes each run, telling what is being done.
fn measure(laboratory: &Laboratory, rows: &[rtt::Config]) -> Result<Vec<Outcome>, Failure> {
    let mut progress = Progress::new(rows.len());
    let one = |row: &rtt::Config| {
        progress.begin(title(row));
        laboratory.measure(row)
    };
    rows.iter().map(one).collect()
}

fn title(row: &rtt::Config) -> String {
    let scenario = &row.scenario;
    let disturbance = match scenario.disturbance {
        None => String::from("undisturbed"),
        Some(disturbance) => format!("{disturbance:?}").to_lowercase(),
    };
    let publisher = format!("{:?}", scenario.publisher).to_lowercase();
    format!(
        "{}, {} B, {publisher}, {disturbance}, {} s",
        scenario.datapath, scenario.payload_bytes, row.seconds
    )
}

/// Table, histogram, ratios, floods and what the machine refused.
fn render(report: &Report, outcomes: &[Outcome]) -> String {
    let mut text = table(&report.runs);
    // Writing to a string cannot fail.
    if let Some(first) = outcomes.first() {
        let _ = write!(text, "\n{}", picture(first, outcomes));
    }
    if !report.ratios.is_empty() {
        let _ = writeln!(text, "\nRatios");
    }
    for ratio in &report.ratios {
        let value = ratio
            .value
            .map_or_else(|| String::from("-"), |value| format!("{value:.1}"));
        let _ = writeln!(
            text,
            "{value:>9}  {} B: {}",
            ratio.payload_bytes, ratio.name
        );
    }
    floods(&mut text, &report.runs);
    let mut notes: Vec<String> = Vec::new();
    for note in report.runs.iter().flat_map(|run| &run.notes) {
        let note = note.to_string();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    if !notes.is_empty() {
        let _ = writeln!(text, "\nThis machine\n  {}", notes.join("\n  "));
    }
    text
}

/// The first run beside those that differ from it in the disturbance only.
fn picture(first: &Outcome, outcomes: &[Outcome]) -> String {
    let alike = |run: &Run| {
        run.datapath == first.run.datapath
            && run.publisher == first.run.publisher
            && run.order == first.run.order
            && run.payload_bytes == first.run.payload_bytes
    };
    let series: Vec<Series> = outcomes
        .iter()
        .filter(|outcome| alike(&outcome.run))
        .map(|outcome| Series {
            name: match outcome.run.disturbance {
                None => String::from("undisturbed"),
                Some(disturbance) => format!("{disturbance:?}").to_lowercase(),
            },
            samples_ns: outcome.rtt_ns.clone(),
        })
        .collect();
    let title = format!(
        "Round trips of {} B over {}, logarithmic both ways",
        first.run.payload_bytes, first.run.datapath
    );
    histogram(&title, &series, terminal_width(), Charset::of_environment())
}

/// What the floods reached: a machine may be too slow for its own.
fn floods(text: &mut String, runs: &[Run]) {
    let mut heading =
        "\nFlood each way, wire rate in multiples of the link's: asked for, A to B, B to A\n";
    for run in runs {
        let reached = run.ledger.as_ref().and_then(|ledger| ledger.flood.as_ref());
        let (Some(asked), Some(reached)) = (run.flood, reached) else {
            continue;
        };
        let _ = writeln!(
            text,
            "{heading}  beside {} B: {:.2}, {:.2}, {:.2} (datagrams of {} B)",
            run.payload_bytes,
            asked.factor,
            reached.a_to_b.factor,
            reached.b_to_a.factor,
            asked.payload_bytes
        );
        heading = "";
    }
}

/// Prints the result for people; beside JSON on standard output it goes to standard error.
pub(crate) fn show(text: &str, json: Option<&Destination>) -> Result<(), Failure> {
    if json == Some(&Destination::StandardOutput) {
        tell(text);
        Ok(())
    } else {
        print(text).map(drop)
    }
}
