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
    /// Write the results as JSON; `-` is standard output. `demo` and `bench rtt` also save intermediate results in a
    /// file
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
    /// Select datapaths, separated by commas: udp, xdp, and memory for undisturbed round trips. `demo` measures its
    /// rows only over udp, and undisturbed round trips over the others. `throughput` uses a link without a rate limit
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
        ("isolane bench rtt --seconds 3", "64 and 1024 B, 2000 pings a second"),
        ("isolane bench rtt --payload 64 --disturbance none,flood", "alone, then with a flood"),
        (
            "isolane bench rtt --ablation --payload 64 --disturbance storm --arbiter strict",
            "which remedy brings what, in about a minute and a half",
        ),
    ], "bench throughput, demo"))]
    Rtt(Rtt),
    /// Measure samples per second at the reader
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench throughput --seconds 3", "64 and 1024 B, reliable"),
        ("isolane bench throughput --payload 32 --best-effort", "as fast as it goes"),
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
