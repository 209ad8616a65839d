//! `isolane bench throughput`: samples per second at the reader.

use std::fmt::Write;
use std::time::Duration;

use clap::Args;
use isolane_bench::namespace::{TestHosts, TestHostsConfig};
use isolane_bench::process::Cores;
use isolane_bench::report::Environment;
use isolane_bench::scenario::ScenarioError;
use isolane_bench::scenario::throughput::{self, Config, Report, Run};
use isolane_bench::scenario::transport::{Lanes, Transport};

use super::MeasurementArguments;
use super::environment::BenchEnvironment;
use super::interruptible_runs::{self, Row};
use super::round_trips::show;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::print_json;
use crate::settings::Settings;
use crate::values::{duration, payload_of_sample, seconds};

#[derive(Debug, Args)]
pub(crate) struct Throughput {
    #[command(flatten)]
    measured: MeasurementArguments,
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
        let configs = self.plan(&hosts)?;
        let environment = Environment::probe();
        let what = "one process writes as fast as possible, another counts the samples";
        let measured = interruptible_runs::measure(hosts, what, configs, run_one, |_| {})?;
        let mut text = render(&measured.finished);
        text.push_str(&measured.failures());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "clock: {}", environment.clock.words());
        show(&text, self.measured.json.as_ref())?;
        let exit_code = measured.exit_code(|run| run.invalid.is_none());
        if let Some(destination) = &self.measured.json {
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

    fn plan(&self, hosts: &BenchEnvironment) -> Result<Vec<Row<Planned>>, Failure> {
        let seconds = self.seconds.as_secs() as u32;
        let reliability = match self.best_effort {
            true => throughput::Reliability::BestEffort,
            false => throughput::Reliability::Reliable,
        };
        let latency_budget = self.latency_budget.unwrap_or_default();
        let mut plan = Vec::new();
        for &datapath in &self.measured.datapath {
            let datapath = hosts.name_of(datapath)?;
            if datapath == "memory" {
                return Err(Failure::forbidden(
                    "nothing was measured with `memory`",
                    "`memory` has one thread, on which writer and reader only take turns",
                ));
            }
            plan.extend(self.payload.iter().map(|&payload| Row {
                title: format!("{datapath}, {payload} B"),
                seconds,
                config: Planned {
                    datapath,
                    config: Config {
                        reliability,
                        latency_budget_us: latency_budget.as_micros() as u64,
                        payload_bytes: payload,
                        seconds,
                        cores: Cores::of_machine(),
                    },
                },
            }));
        }
        Ok(plan)
    }
}

/// Run with the name of its datapath.
struct Planned {
    datapath: &'static str,
    config: Config,
}

fn run_one(
    hosts: &BenchEnvironment,
    Planned { datapath, config }: &Planned,
) -> Result<Run, ScenarioError> {
    match &hosts.hosts {
        // With a single receive queue, all frames reach the lanes' queue. Runs over sockets use a single queue too.
        Ok(_) => {
            let joined = TestHosts::without_cable(&TestHostsConfig {
                queues: 1,
                ..TestHostsConfig::default()
            })?;
            let transport = match *datapath {
                "xdp" => Transport::Xdp(Lanes::default()),
                _ => Transport::Udp,
            };
            throughput::run_between_hosts(&joined, &hosts.program, transport, config)
        }
        Err(_) => throughput::run_over_loopback(&hosts.program, config),
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
