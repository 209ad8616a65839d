//! `isolane bench throughput`: samples a second, counted at the reader.

use std::fmt::Write;

use isolane_bench::process::Cores;
use isolane_bench::report::Environment;
use isolane_bench::scenario::throughput::{self, Config, Report, Run};
use isolane_model::Reliability;

use super::laboratory::{self, Laboratory};
use super::progress::Progress;
use super::round_trips::show;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::print_json;
use crate::settings::BenchThroughputSettings;

/// Measures each datapath and payload, and prints what came of it.
pub(crate) fn run(settings: BenchThroughputSettings) -> Result<ExitCode, Failure> {
    let laboratory = Laboratory::set_up()?;
    let runs = &settings.runs;
    let mut plan = Vec::new();
    for &datapath in &runs.datapaths.value {
        let datapath = laboratory.name_of(datapath)?;
        plan.extend(
            runs.payloads
                .value
                .iter()
                .map(|payload| (datapath, payload.get())),
        );
    }
    let mut progress = Progress::new(plan.len());
    let mut report = Report {
        schema: throughput::SCHEMA.to_owned(),
        environment: Environment::probe(),
        runs: Vec::new(),
    };
    for (datapath, payload_bytes) in plan {
        let config = Config {
            reliability: match settings.reliability.value {
                Reliability::Reliable => throughput::Reliability::Reliable,
                Reliability::BestEffort => throughput::Reliability::BestEffort,
            },
            payload_bytes,
            seconds: runs.run_for.value.as_secs() as u32,
            cores: Cores::of_machine(),
        };
        progress.begin(format!(
            "{datapath}, {payload_bytes} B, {} s",
            config.seconds
        ));
        report.runs.push(measure(&laboratory, datapath, &config)?);
    }
    drop(progress);
    show(&render(&report.runs), runs.json.as_ref())?;
    if let Some(destination) = &runs.json {
        print_json(&report, destination)?;
    }
    let all_are_results = report.runs.iter().all(|run| run.invalid.is_none());
    Ok(if all_are_results {
        ExitCode::Done
    } else {
        ExitCode::AnswerIsNo
    })
}

fn measure(laboratory: &Laboratory, datapath: &str, config: &Config) -> Result<Run, Failure> {
    let run = match (datapath, &laboratory.hosts) {
        ("memory", _) => {
            return Err(Failure::new(
                ExitCode::MachineForbids,
                "nothing was measured with `memory`",
                "on its one thread, writer and reader only take turns",
                "use --datapath udp",
            ));
        }
        ("udp", Ok(hosts)) => throughput::run_in_host(hosts, &laboratory.program, config),
        _ => throughput::run_over_loopback(&laboratory.program, config),
    };
    run.map_err(|error| laboratory::failure(&error))
}

/// One line a run.
fn render(runs: &[Run]) -> String {
    let mut text = String::from(
        "  payload     samples/s       Mbit/s      written    delivered   lost  waits  repaired\n",
    );
    let rate = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.0}"));
    for run in runs {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>7} B  {:>12} {:>12} {:>12} {:>12} {:>6} {:>6} {:>9}",
            run.payload_bytes,
            rate(run.samples_per_s),
            rate(run.mbit_per_s),
            run.samples_written,
            run.samples_delivered,
            run.samples_lost,
            run.writer_waits,
            run.repaired
        );
        if let Some(reason) = &run.invalid {
            let _ = writeln!(text, "INVALID: {} B: {reason}", run.payload_bytes);
        }
    }
    if let Some(run) = runs.first() {
        let reliability = match run.reliability {
            throughput::Reliability::BestEffort => "best effort",
            throughput::Reliability::Reliable => "reliable, KEEP_ALL",
        };
        let _ = writeln!(text, "{reliability}, through {}", run.link);
    }
    text
}
