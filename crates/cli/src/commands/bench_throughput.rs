//! `isolane bench throughput`: samples per second at the reader.

use std::fmt::Write;

use isolane_bench::namespace::{Testbed, TestbedConfig};
use isolane_bench::process::Cores;
use isolane_bench::report::Environment;
use isolane_bench::scenario::ScenarioError;
use isolane_bench::scenario::throughput::{self, Config, Report, Run};
use isolane_bench::scenario::transport::{Lanes, Transport};
use isolane_model::Reliability;

use super::laboratory::Laboratory;
use super::measurement::{self, Row};
use super::round_trips::show;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::print_json;
use crate::settings::BenchThroughputSettings;

pub(crate) fn run(settings: BenchThroughputSettings) -> Result<ExitCode, Failure> {
    let laboratory = Laboratory::set_up()?;
    let runs = &settings.runs;
    let seconds = runs.run_for.value.as_secs() as u32;
    let reliability = match settings.reliability.value {
        Reliability::Reliable => throughput::Reliability::Reliable,
        Reliability::BestEffort => throughput::Reliability::BestEffort,
    };
    let latency_budget_us = settings.latency_budget.value.as_micros() as u64;
    let mut plan = Vec::new();
    for &datapath in &runs.datapaths.value {
        let datapath = match laboratory.name_of(datapath)? {
            "memory" => {
                return Err(Failure::new(
                    ExitCode::MachineForbids,
                    "nothing was measured with `memory`",
                    "on its one thread, writer and reader only take turns",
                ));
            }
            datapath => datapath,
        };
        plan.extend(
            runs.payloads
                .value
                .iter()
                .map(|payload| (datapath, payload.get())),
        );
    }
    let configs = plan.into_iter().map(|(datapath, payload_bytes)| Row {
        title: format!("{datapath}, {payload_bytes} B"),
        seconds,
        config: Planned {
            datapath,
            config: Config {
                reliability,
                latency_budget_us,
                payload_bytes,
                seconds,
                cores: Cores::of_machine(),
            },
        },
    });
    let environment = Environment::probe();
    let what = "one process writes as fast as it may, another counts";
    let measured = measurement::measure(laboratory, what, configs.collect(), run_one, |_| {})?;
    let mut text = render(&measured.finished);
    text.push_str(&measured.failures());
    // Writing to a string cannot fail.
    let _ = writeln!(text, "clock: {}", environment.clock.words());
    show(&text, runs.json.as_ref())?;
    let exit_code = measured.exit_code(|run| run.invalid.is_none());
    if let Some(destination) = &runs.json {
        let report = Report {
            schema: throughput::SCHEMA.to_owned(),
            environment,
            runs: measured.finished,
            missing: measured.missing,
        };
        print_json(&report, destination)?;
    }
    Ok(exit_code)
}

/// Run with the name of its datapath.
struct Planned {
    datapath: &'static str,
    config: Config,
}

fn run_one(
    laboratory: &Laboratory,
    Planned { datapath, config }: &Planned,
) -> Result<Run, ScenarioError> {
    match &laboratory.hosts {
        // With one queue, frames arrive where the lanes are. Sockets use it too, for comparison.
        Ok(_) => {
            let joined = Testbed::without_cable(&TestbedConfig {
                queues: 1,
                ..TestbedConfig::default()
            })?;
            let transport = match *datapath {
                "xdp" => Transport::Xdp(Lanes::default()),
                _ => Transport::Udp,
            };
            throughput::run_between_hosts(&joined, &laboratory.program, transport, config)
        }
        Err(_) => throughput::run_over_loopback(&laboratory.program, config),
    }
}

fn render(runs: &[Run]) -> String {
    let mut text = String::from(
        "    datapath    payload     samples/s       Mbit/s      written    delivered   lost  waits  repaired\n",
    );
    let rate = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.0}"));
    for run in runs {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>12}  {:>7} B  {:>12} {:>12} {:>12} {:>12} {:>6} {:>6} {:>9}",
            run.datapath,
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
    let mut told: Vec<&str> = Vec::new();
    for run in runs {
        let reliability = match run.reliability {
            throughput::Reliability::BestEffort => "best effort",
            throughput::Reliability::Reliable => "reliable, KEEP_ALL",
        };
        if !told.contains(&run.link.as_str()) {
            told.push(&run.link);
            let _ = writeln!(
                text,
                "{}: {reliability}, through {}",
                run.datapath, run.link
            );
        }
    }
    text
}
