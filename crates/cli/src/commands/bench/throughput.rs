//! `isolane bench throughput`: samples per second at the reader. Its options replace levels of the scenario
//! `throughput`.

use std::time::Duration;

use clap::Args;

use super::environment::BenchEnvironment;
use super::measure::{self, Loaded, Outputs, datapath_word, levels, vary};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::values::{MeasuredDatapath, duration, payload_of_sample, seconds, word};

#[derive(Debug, Args)]
pub(crate) struct Throughput {
    #[command(flatten)]
    outputs: Outputs,
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
        measure::run(hosts, loaded, self.outputs, None)
    }
}
