//! `isolane bench throughput`: samples per second at the reader. Its options replace levels of the scenario
//! `throughput`.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use isolane_bench::experiment::{Datapath, Planned};
use isolane_bench::namespace::{TestHosts, TestHostsConfig};
use isolane_bench::report::Environment;
use isolane_bench::scenario::ScenarioError;
use isolane_bench::scenario::throughput::{self, Report, Run};
use isolane_bench::scenario::transport::{Lanes, Transport};

use super::environment::BenchEnvironment;
use super::interruptible_runs::{self, Row};
use super::measure::{Loaded, datapath_word, levels, plan, show, vary};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::print_json;
use crate::settings::Settings;
use crate::values::{Destination, MeasuredDatapath, duration, payload_of_sample, seconds, word};

#[derive(Debug, Args)]
pub(crate) struct Throughput {
    /// Write the results as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
    /// Measure over these datapaths, separated by commas: udp, xdp
    #[arg(
        long,
        value_name = "LIST",
        value_parser = word::<MeasuredDatapath>(),
        default_value = "udp"
    )]
    datapath: Vec<MeasuredDatapath>,
    /// Set the duration of each run in seconds
    #[arg(long, value_name = "N", value_parser = seconds(), default_value = "10")]
    seconds: Duration,
    /// Set payload sizes in bytes, 12 to 60000, separated by commas
    #[arg(long, value_name = "LIST", value_parser = payload_of_sample, default_value = "64,1024")]
    payload: Vec<u32>,
    /// Do not retransmit lost samples [default: reliable]
    #[arg(long)]
    best_effort: bool,
    /// Set LATENCY_BUDGET, as 1ms: the writer holds samples for up to half of it, and sends several in one datagram
    /// [default: none, no sample is held]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    latency_budget: Option<Duration>,
}

impl Throughput {
    pub(super) fn run(self, settings: &Settings) -> Result<ExitCode, Failure> {
        settings.begin()?;
        let hosts = BenchEnvironment::set_up()?;
        let mut loaded = Loaded::shipped("throughput")?;
        let reliability = self.best_effort.then_some("best-effort");
        let budget = self.latency_budget.map(|budget| budget.as_micros() as i64);
        vary(
            &mut loaded.scenario,
            [
                (
                    "datapath",
                    levels(self.datapath.into_iter().map(datapath_word)),
                ),
                ("payload_bytes", levels(self.payload)),
                ("seconds", levels([self.seconds.as_secs() as i64])),
                ("reliability", levels(reliability)),
                ("latency_budget_us", levels(budget)),
            ],
        )?;
        measure(hosts, loaded, self.json.as_ref())
    }
}

/// Measures a scenario of throughput runs and prints the results.
pub(super) fn measure(
    hosts: BenchEnvironment,
    loaded: Loaded,
    json: Option<&Destination>,
) -> Result<ExitCode, Failure> {
    let Loaded { scenario, sha256 } = loaded;
    let planned = plan(&scenario, &hosts)?;
    if planned
        .iter()
        .any(|run| run.cell.datapath == Datapath::Memory)
    {
        return Err(Failure::forbidden(
            "nothing was measured with `memory`",
            "`memory` has one thread, on which writer and reader only take turns",
        ));
    }
    let rows = planned.into_iter().map(|planned| Row {
        title: planned.title(&scenario),
        seconds: planned.cell.seconds,
        config: planned,
    });
    let environment = Environment::probe();
    let about = scenario.about.trim();
    let mut runs: Vec<Run> = Vec::new();
    let keep = |run| runs.push(run);
    let measured = interruptible_runs::measure(hosts, about, rows.collect(), run_one, keep)?;
    let mut text = render(&runs);
    text.push_str(&measured.failures());
    // Writing to a string cannot fail.
    let _ = writeln!(text, "clock: {}", environment.clock.words());
    show(&text, json)?;
    let exit_code = measured.exit_code(runs.iter().all(|run| run.invalid.is_none()));
    if let Some(destination) = json {
        let report = Report {
            schema: throughput::SCHEMA.to_owned(),
            environment,
            scenario,
            scenario_sha256: sha256,
            is_complete: !measured.interrupted,
            runs,
            missing: measured.missing,
        };
        print_json(&report, destination)?;
    }
    Ok(exit_code)
}

fn run_one(hosts: &BenchEnvironment, planned: &Planned) -> Result<Run, ScenarioError> {
    let config = planned.cell.throughput();
    let has_hosts = planned.cell.datapath.has_hosts();
    let mut run = match hosts.hosts.as_ref().ok().filter(|_| has_hosts) {
        // With a single receive queue, all frames reach the lanes' queue. Runs over sockets use a single queue too.
        Some(_) => {
            let joined = TestHosts::without_cable(&TestHostsConfig {
                queues: 1,
                ..TestHostsConfig::default()
            })?;
            let transport = match planned.cell.datapath {
                Datapath::Xdp => Transport::Xdp(Lanes::default()),
                _ => Transport::Udp,
            };
            throughput::run_between_hosts(&joined, &hosts.program, transport, &config)
        }
        None => throughput::run_over_loopback(&hosts.program, &config),
    }?;
    run.number = planned.number;
    run.repetition = planned.repetition;
    Ok(run)
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
    let mut shown: Vec<&str> = Vec::new();
    for run in runs {
        let reliability = match run.reliability {
            throughput::Reliability::BestEffort => "best effort",
            throughput::Reliability::Reliable => "reliable, KEEP_ALL",
        };
        if !shown.contains(&run.link.as_str()) {
            shown.push(&run.link);
            let _ = writeln!(
                text,
                "{}: {reliability}, through {}",
                run.datapath, run.link
            );
        }
    }
    text
}
