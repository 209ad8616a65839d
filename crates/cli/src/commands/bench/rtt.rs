//! `isolane bench rtt`: round-trip times of small samples at a fixed rate. Its options replace levels of the scenario
//! `rtt` or `ablation`.

use std::time::Duration;

use clap::Args;

use super::environment::BenchEnvironment;
use super::measure::{self, Loaded, Outputs, levels, vary};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::{MAX_RATE_HZ, MAX_REPETITIONS};
use crate::settings::Settings;
use crate::values::{MeasuredDatapath, payload_of_round_trip, seconds, word};

/// Disturbances from outside the participants.
const OUTSIDE: [&str; 4] = ["none", "flood", "storm", "read-flood"];

// Runs of `--ablation` last 3 s by default, so at 2000 Hz each p99 has 60 samples beyond it. That is too few for a
// p99.9, which stalls of the machine would dominate anyway.
#[derive(Debug, Args)]
pub(crate) struct Rtt {
    #[command(flatten)]
    outputs: Outputs,
    /// Measure over these datapaths, separated by commas: udp, xdp or memory; memory allows only undisturbed round trips
    ///
    /// With memory, both ends are in one process.
    #[arg(
        long,
        value_name = "LIST",
        value_parser = word::<MeasuredDatapath>(),
        default_value = "udp"
    )]
    datapath: Vec<MeasuredDatapath>,
    /// Set the duration of each run in seconds [default: 10; 3 with --ablation]
    #[arg(long, value_name = "N", value_parser = seconds())]
    seconds: Option<Duration>,
    /// Set payload sizes in bytes, 12 to 1400, separated by commas [default: 64,1024; 64,512,1024 with --ablation]
    #[arg(long, value_name = "LIST", value_parser = payload_of_round_trip)]
    payload: Vec<u32>,
    /// Send this many pings per second, 1 to 1000000
    #[arg(
        long,
        value_name = "HZ",
        value_parser = clap::value_parser!(u32).range(1..=MAX_RATE_HZ),
        default_value = "2000"
    )]
    rate: u32,
    /// Select disturbances, separated by commas: none, flood (of the link), read-flood (a flood that a bulk reader of
    /// the participants receives), storm (multicast to many sockets of the hosts), joining (endpoints come and go),
    /// bulk (a reliable topic of the participants), repair (bulk with losses), large (bulk with samples of 1 MiB)
    /// [default: none; none,flood,storm,read-flood with --ablation]
    ///
    /// joining, bulk and repair run on a faster link, large on a veth pair. repair takes payloads up to 960 B. In JSON,
    /// read-flood is flood with `bulk_reader`.
    #[arg(
        long,
        value_name = "LIST",
        value_parser = ["none", "flood", "read-flood", "storm", "joining", "bulk", "repair", "large"]
    )]
    disturbance: Vec<String>,
    /// Select orders in which the link sends frames: fifo, strict (most urgent class first) [default: fifo; both with
    /// --ablation]
    #[arg(long, value_name = "LIST", value_parser = ["fifo", "strict"])]
    arbiter: Vec<String>,
    /// Select orders in which participants run jobs: priority (most urgent first), fifo
    ///
    /// fifo is the order of readiness, with one socket for all levels.
    #[arg(long, value_name = "LIST", value_parser = ["priority", "fifo"], default_value = "priority")]
    order: Vec<String>,
    /// Measure seven configurations, each of which adds one mechanism (as root, about 35 minutes)
    ///
    /// The configurations are: one socket for all levels, a socket per level, steering, NAPI priorities, AF_XDP, a lane
    /// per level, budgets. Each runs with payloads 64,512,1024, disturbances none,flood,storm,read-flood and arbiters
    /// fifo,strict, unless other options select fewer.
    #[arg(long, conflicts_with_all = ["datapath", "order"])]
    ablation: bool,
    /// Repeat the whole measurement this many times, 1 to 100 [default: 1; 3 with --ablation]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_REPETITIONS))]
    repetitions: Option<u32>,
}

impl Rtt {
    /// Measures every combination of the options, or the ablation, and prints the results.
    pub(super) fn run(self, settings: &Settings) -> Result<ExitCode, Failure> {
        let is_inside = |it: &&String| !OUTSIDE.contains(&it.as_str());
        if let Some(inside) = self.disturbance.iter().find(is_inside)
            && self.ablation
        {
            return Err(Failure::wrong_usage(
                format!("--ablation does not measure under {inside}"),
                "the steps of an ablation differ in how hosts receive frames: choose none, flood, read-flood or storm",
            ));
        }
        settings.begin()?;
        let hosts = BenchEnvironment::set_up()?;
        let mut loaded = Loaded::shipped(if self.ablation { "ablation" } else { "rtt" })?;
        let scenario = &mut loaded.scenario;
        let seconds = self.seconds.map(|time| time.as_secs() as i64);
        vary(
            scenario,
            [
                ("payload_bytes", levels(self.payload)),
                ("disturbance", levels(self.disturbance)),
                ("arbiter", levels(self.arbiter)),
                ("rate_hz", levels([self.rate])),
                ("seconds", levels(seconds)),
            ],
        )?;
        if !self.ablation {
            let datapaths = self.datapath.into_iter().map(measure::datapath_word);
            vary(
                scenario,
                [
                    ("datapath", levels(datapaths)),
                    ("order", levels(self.order)),
                ],
            )?;
        }
        scenario.repetitions = self.repetitions.unwrap_or(scenario.repetitions);
        measure::run(hosts, loaded, self.outputs, None)
    }
}
