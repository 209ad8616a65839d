//! Common part of `demo` and `bench rtt`: executes the planned runs and shows their results.

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs, process};

use clap::Args;
use isolane_bench::cable::Arbiter;
use isolane_bench::multicast_load;
use isolane_bench::report::{
    Disturbance, Environment, Missing, Order, Place, Report, Run, Shown, effects, overall, page,
    ratios, summary, tables,
};
use isolane_bench::scenario::rtt::{self, Outcome};

use super::MeasurementArguments;
use super::environment::BenchEnvironment;
use super::interruptible_runs::{self, Measured, Row};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{GrowingJson, print, tell, write_text};
use crate::values::Destination;

pub(super) const WITHOUT_HOSTS: &str = "round trips over 127.0.0.1 or in memory";

/// Options of both commands: the datapaths, and files for the results in addition to the text.
#[derive(Debug, Args)]
pub(super) struct RoundTripArguments {
    #[command(flatten)]
    pub(super) measured: MeasurementArguments,
    /// Write the results as one self-contained HTML page with figures
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    pub(super) page: Option<PathBuf>,
}

/// Parses a file name; refuses standard output, because a page is useless on a terminal.
fn page_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "" | "-" => Err(String::from("name a file for the page, such as demo.html")),
        file => Ok(PathBuf::from(file)),
    }
}

pub(super) struct Plan {
    pub(super) rows: Vec<rtt::Config>,
    /// Runs that this machine does not support, with the reason.
    pub(super) left_out: Vec<Missing>,
}

/// Executes the runs, and shows their results with the explanation `meaning`. The exit code tells whether all runs are
/// valid.
pub(super) fn run(
    hosts: BenchEnvironment,
    what: &str,
    plan: Plan,
    meaning: &str,
    outputs: &RoundTripArguments,
    shown: Shown,
) -> Result<ExitCode, Failure> {
    let json = outputs.measured.json.as_ref();
    let Plan { rows, left_out } = plan;
    let cable = rows
        .first()
        .map(|row| row.cable.clone())
        .unwrap_or_default();
    let of_summary = |config| Row {
        title: summary::planned_label(&config).map_or_else(|| title(&config), str::to_owned),
        ..row(config)
    };
    let rows = match shown {
        Shown::Summary => rows.into_iter().map(of_summary).collect(),
        Shown::EachRun | Shown::Steps => rows.into_iter().map(row).collect(),
    };
    let mut report = Report::new(Environment::probe(), &cable);
    report.left_out = left_out;
    let mut growing = json.map(GrowingJson::new);
    let keep = |outcome: &Outcome| {
        report.add(outcome.run.clone());
        if let Some(growing) = &mut growing {
            growing.keep(&report);
        }
    };
    let measured = interruptible_runs::measure(hosts, what, rows, BenchEnvironment::measure, keep)?;
    report.ratios = ratios(&report.runs);
    report.effects = effects(&report.runs);
    report.overall = overall(&report.runs);
    report.missing.clone_from(&measured.missing);
    let mut text = render(&report, &measured, shown);
    if !meaning.is_empty() && !measured.finished.is_empty() {
        let _ = writeln!(text, "\n{meaning}");
    }
    let mut page_file = outputs.page.clone();
    if shown == Shown::Summary && !measured.finished.is_empty() {
        if json.is_none()
            && page_file.is_none()
            && let Some(folder) = result_folder()
        {
            let file = Destination::File(folder.join("demo.json"));
            growing = Some(GrowingJson::new(&file));
            page_file = Some(folder.join("demo.html"));
        }
        let json_file = growing.as_ref().and_then(GrowingJson::path);
        text.push('\n');
        for (what, file) in [("Page", page_file.as_deref()), ("JSON", json_file)] {
            if let Some(file) = file {
                let _ = writeln!(text, "{what}: {}", file.display());
            }
        }
        let _ = writeln!(
            text,
            "All parts and tables, in two minutes: isolane demo --full"
        );
    }
    // Files are written before the text, because after SIGHUP the terminal may be gone.
    if let Some(growing) = growing.take_if(|growing| growing.is_file()) {
        growing.finish(&report)?;
    }
    if let Some(file) = &page_file {
        write_text(&page(&report), file)?;
    }
    show(&text, json)?;
    if let Some(growing) = growing {
        growing.finish(&report)?;
    }
    Ok(measured.exit_code(|outcome| outcome.run.invalid.is_none()))
}

fn row(config: rtt::Config) -> Row<rtt::Config> {
    Row {
        title: title(&config),
        seconds: config.seconds,
        config,
    }
}

/// Name that distinguishes a run from all others.
fn title(config: &rtt::Config) -> String {
    let scenario = &config.scenario;
    let mut title = format!(
        "{}, {} B, {}, {}",
        scenario.datapath,
        scenario.payload_bytes,
        scenario.publisher.word(),
        word_of(scenario.disturbance)
    );
    if config.bulk_reader.is_some() {
        title.push_str(" for a bulk reader");
    }
    if config.cable.arbiter == Arbiter::Strict {
        title.push_str(", strict");
    }
    if config.place != Place::Link || scenario.order == Order::Fifo {
        title = format!("{title}, {} order", scenario.order.word());
    }
    if config.takes_lanes() {
        let stages = scenario.stages.iter().map(|stage| stage.word());
        let words: Vec<&str> = [scenario.receive_work.word()]
            .into_iter()
            .chain(stages)
            .collect();
        title = format!("{title}, {}", words.join(" + "));
    }
    if config.repetition > 1 {
        title = format!("{title}, repetition {}", config.repetition);
    }
    title
}

fn word_of(disturbance: Option<Disturbance>) -> &'static str {
    disturbance.map_or("undisturbed", Disturbance::word)
}

/// Text of a report: tables, failed runs, achieved rates of floods and storms, and notes.
fn render(report: &Report, measured: &Measured<Outcome>, shown: Shown) -> String {
    let mut text = tables(&report.runs, shown).join("\n");
    if shown == Shown::Summary {
        let invalid = report.runs.iter().filter_map(|run| {
            let (reason, label) = (run.invalid.as_ref()?, summary::label(run)?);
            Some(format!("INVALID: {label}: {reason}"))
        });
        let failures = measured.failures();
        for line in failures.lines().map(str::to_owned).chain(invalid) {
            text.push_str(&summary::wrapped(&line));
        }
        return text;
    }
    text.push_str(&measured.failures());
    floods(&mut text, &report.runs);
    storms(&mut text, &report.runs);
    let mut notes: Vec<String> = Vec::new();
    for note in report.runs.iter().flat_map(|run| &run.notes) {
        let note = note.to_string();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes.push(format!("clock: {}", report.environment.clock.words()));
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\nThis machine\n  {}", notes.join("\n  "));
    text
}

/// Tolerated difference between a flood's requested and achieved rate, as a fraction of the link's rate.
const FLOOD_TOLERANCE: f64 = 0.02;

/// Adds lines on the achieved flood rates: one for all runs with the requested rate, and one for each other run.
fn floods(text: &mut String, runs: &[Run]) {
    let reached = runs.iter().filter_map(|run| {
        let asked = run.flood.as_ref()?;
        let reached = run.ledger.as_ref()?.flood.as_ref()?;
        Some((run, asked, [reached.a_to_b.factor, reached.b_to_a.factor]))
    });
    let (as_asked, deviating): (Vec<_>, Vec<_>) = reached.partition(|(_, asked, reached)| {
        let off = |reached: &f64| (reached - asked.factor).abs();
        reached
            .iter()
            .all(|reached| off(reached) <= FLOOD_TOLERANCE)
    });
    if as_asked.is_empty() && deviating.is_empty() {
        return;
    }
    text.push('\n');
    // Writing to a string cannot fail.
    if let Some((_, asked, _)) = as_asked.first() {
        let rows = match deviating.is_empty() {
            true => "all rows",
            false => "the other rows",
        };
        let _ = writeln!(
            text,
            "The flood reached {:.2} of the link's rate in each direction in {rows}.",
            asked.factor
        );
    }
    for (run, asked, [a_to_b, b_to_a]) in deviating {
        let _ = writeln!(
            text,
            "The flood with {} B, {}, reached {a_to_b:.2} and {b_to_a:.2} of the link's rate, not \
             {:.2} (datagrams of {} B).",
            run.payload_bytes,
            run.publisher.word(),
            asked.factor,
            asked.payload_bytes
        );
    }
}

/// Adds a line on the storms of all runs: minimum, maximum and requested rate, and number of receiving sockets.
fn storms(text: &mut String, runs: &[Run]) {
    let storms = runs.iter().filter_map(|run| {
        let asked = run.storm?;
        let reached = run.ledger.as_ref()?.storm.as_ref()?;
        Some((asked, reached))
    });
    let (asked, reached): (Vec<_>, Vec<_>) = storms.unzip();
    let (Some(asked), Some(first)) = (asked.first(), reached.first()) else {
        return;
    };
    let least = |storm: &multicast_load::Report| storm.least_frames_per_s();
    let rates = reached.iter().map(|storm| least(storm));
    let (low, high) = rates.fold((least(first), 0.0_f64), |(low, high), rate| {
        (low.min(rate), high.max(rate))
    });
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\nThe storm sent {low:.0} to {high:.0} frames a second in each direction ({:.0} were requested), each for {} \
         sockets.",
        asked.frames_per_s, asked.sockets
    );
}

/// Creates a new folder for the page and the JSON of a demo for which no files were named. Returns `None`, and tells the
/// reason, if that fails.
fn result_folder() -> Option<PathBuf> {
    let folder = env::temp_dir().join(format!("isolane-demo-{}", process::id()));
    match fs::create_dir(&folder) {
        Ok(()) => Some(folder),
        Err(error) => {
            tell(format!(
                "no page and no JSON: cannot create {}: {error}. Name files with --page and --json.",
                folder.display()
            ));
            None
        }
    }
}

/// Prints the text to standard output, or to standard error if JSON goes to standard output.
pub(super) fn show(text: &str, json: Option<&Destination>) -> Result<(), Failure> {
    if json == Some(&Destination::StandardOutput) {
        tell(text);
        Ok(())
    } else {
        print(text).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::demo::SUMMARY_SECONDS;
    use isolane_bench::report::Step;
    use isolane_bench::scenario::ablation::{Ablation, Condition};
    use isolane_bench::scenario::plan::{self, Part};

    /// Checks the durations that the help texts state.
    #[test]
    fn measurements_take_as_long_as_their_help_says() {
        let expected_s = |rows: Vec<rtt::Config>| {
            let rows: Vec<_> = rows.into_iter().map(row).collect();
            interruptible_runs::expected_of_all(&rows).as_secs()
        };
        let seconds = |link, in_process| plan::Seconds { link, in_process };
        let parts = [Part::Link, Part::Arbiter, Part::Lane, Part::Executor];
        let demo = expected_s(plan::demo(&parts, &[64, 512, 1024], seconds(2, 5)));
        assert!((115..=125).contains(&demo), "about two minutes: {demo} s");
        let first_look = expected_s(plan::demo(&parts, &[64], seconds(1, 1)));
        assert!(first_look < 60, "less than a minute: {first_look} s");
        let inside = expected_s(plan::demo(&[Part::Executor], &[64], seconds(2, 5)));
        assert!((40..=48).contains(&inside), "about 45 s: {inside} s");

        let all = Ablation {
            steps: Step::ALL.to_vec(),
            conditions: Condition::ALL.to_vec(),
            arbiters: vec![Arbiter::Fifo, Arbiter::Strict],
            payloads: vec![64, 512, 1024],
            repetitions: 3,
            rate_hz: 2_000,
            seconds: 3,
        };
        let short = Ablation {
            conditions: vec![Condition::foreign(Some(Disturbance::Storm))],
            arbiters: vec![Arbiter::Strict],
            payloads: vec![64],
            ..all.clone()
        };
        let (all, short) = (expected_s(all.rows()), expected_s(short.rows()));
        assert!((33..=36).contains(&(all / 60)), "about 35 min: {all} s");
        assert!(
            (80..=100).contains(&short),
            "a minute and a half: {short} s"
        );
    }

    #[test]
    fn the_short_demo_takes_less_than_45_s_and_names_each_run() {
        let rows: Vec<_> = summary::plan(SUMMARY_SECONDS)
            .into_iter()
            .map(row)
            .collect();
        let expected = interruptible_runs::expected_of_all(&rows).as_secs();
        assert!((30..40).contains(&expected), "{expected} s");
        let labels = rows.iter().map(|row| summary::planned_label(&row.config));
        assert!(labels.into_iter().all(|label| label.is_some()));
    }

    #[test]
    fn a_row_is_named_by_what_tells_it_from_the_others() {
        let parts = [Part::Link, Part::Arbiter, Part::Lane, Part::Executor];
        let seconds = plan::Seconds {
            link: 1,
            in_process: 1,
        };
        let titles: Vec<String> = plan::demo(&parts, &[64], seconds)
            .into_iter()
            .map(|config| row(config).title)
            .collect();
        assert_eq!(titles[0], "udp, 64 B, thread, undisturbed");
        assert_eq!(titles[2], "udp, 64 B, thread, flood, strict");
        assert_eq!(titles[4], "udp, 64 B, job, flood");
        assert_eq!(titles[5], "udp, 64 B, thread, undisturbed, strict");
        assert_eq!(
            titles[10],
            "xdp, 64 B, thread, storm, strict, threads + executor + xdp"
        );
        assert_eq!(
            titles[15],
            "xdp, 64 B, thread, flood for a bulk reader, strict, threads + executor + xdp + lanes + budgets"
        );
        assert_eq!(titles[18], "udp, 64 B, job, joining, fifo order");
        let mut unique = titles.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), titles.len());
    }
}
