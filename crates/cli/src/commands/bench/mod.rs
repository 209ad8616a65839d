//! `isolane demo` and `isolane bench`: measurements between two test hosts, or on loopback and in memory without them.
//!
//! `test_hosts` makes the hosts, `run_queue` executes the runs of a plan, and `round_trips` shows those of `demo` and
//! `bench rtt`.

mod demo;
mod round_trips;
mod rtt;
mod run_queue;
mod test_hosts;
mod throughput;

use std::path::PathBuf;

use clap::Subcommand;

pub(crate) use self::demo::Demo;
use self::rtt::Rtt;
use self::throughput::Throughput;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::Settings;

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

/// Parses a file name; refuses standard output, because a page is useless on a terminal.
fn page_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "" | "-" => Err(String::from("name a file for the page, such as demo.html")),
        file => Ok(PathBuf::from(file)),
    }
}
