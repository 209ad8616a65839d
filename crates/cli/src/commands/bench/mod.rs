//! `isolane demo` and `isolane bench`: measurements between two test hosts. Without test hosts they use loopback and
//! memory.
//!
//! `environment` creates the hosts. `interruptible_runs` executes the runs. `round_trips` shows the results of `demo`
//! and `bench rtt`.

mod demo;
mod environment;
mod interruptible_runs;
mod round_trips;
mod rtt;
mod throughput;

use clap::{Args, Subcommand};

pub(crate) use self::demo::Demo;
use self::rtt::Rtt;
use self::throughput::Throughput;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::values::{Destination, MeasuredDatapath, word};

/// Options of every measurement.
#[derive(Debug, Args)]
struct MeasurementArguments {
    /// Write the results as JSON to this file; `-` is standard output
    ///
    /// `demo` and `bench rtt` also write the results of finished runs to a temporary file next to it, until all runs
    /// have ended.
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
    /// Measure over these datapaths, separated by commas: udp, xdp or memory; memory allows only undisturbed round trips
    ///
    /// With memory, both ends are in one process. `bench throughput` refuses it, because writer and reader would only
    /// take turns. `demo --full` measures all of its rows with udp, and only undisturbed round trips with xdp and
    /// memory.
    #[arg(
        long,
        value_name = "LIST",
        value_parser = word::<MeasuredDatapath>(),
        default_value = "udp"
    )]
    datapath: Vec<MeasuredDatapath>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Measure round-trip times of small samples at a fixed rate
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench rtt --seconds 3", "measure 64 and 1024 B, with 2000 pings per second"),
        ("isolane bench rtt --payload 64 --disturbance none,flood", "measure undisturbed, then with a flood"),
        (
            "isolane bench rtt --ablation --payload 64 --disturbance storm --arbiter strict",
            "compare the effect of each mechanism, in about a minute and a half",
        ),
    ], "bench throughput, demo"))]
    Rtt(Rtt),
    /// Measure samples per second at the reader, over a link without a rate limit
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench throughput --seconds 3", "measure 64 and 1024 B, reliable"),
        ("isolane bench throughput --payload 32 --best-effort", "measure 32 B without retransmission"),
    ], "bench rtt, demo"))]
    Throughput(Throughput),
}

impl Bench {
    pub(super) fn run(self, settings: &Settings) -> Result<ExitCode, Failure> {
        settings.refuse_duplicates()?;
        match self {
            Self::Rtt(rtt) => rtt.run(settings),
            Self::Throughput(throughput) => throughput.run(settings),
        }
    }
}
