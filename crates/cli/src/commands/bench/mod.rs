//! `isolane demo` and `isolane bench`: measurements between two test hosts. Without test hosts they use loopback and
//! memory.
//!
//! Each command measures a scenario (`isolane_bench::experiment`). `environment` creates the hosts,
//! `interruptible_runs` executes the runs, and `measure` plans them and shows the results.

mod compare;
mod demo;
mod environment;
mod interruptible_runs;
mod measure;
mod rtt;
mod scenarios;
mod throughput;

use clap::Subcommand;

use self::compare::Compare;
pub(crate) use self::demo::Demo;
use self::rtt::Rtt;
use self::scenarios::{List, Report, Run, Show};
use self::throughput::Throughput;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::Settings;

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
    /// Measure a scenario: a shipped one, or a file
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench run rtt --set payload_bytes=64,256 --folder result", "measure, and keep each finished run"),
        ("isolane bench run rtt --set payload_bytes=64,256 --folder result --resume", "measure the runs that are missing"),
        ("isolane bench run my.toml --only link --page link.html", "measure one block of a file, and write a page"),
    ], "bench list, bench show, bench report"))]
    Run(Run),
    /// List the shipped scenarios
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench list", "print the names and titles"),
    ], "bench show, bench run"))]
    List(List),
    /// Print the runs of a scenario, or its file, without measuring
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench show demo", "print the runs of the demo and how long they take"),
        ("isolane bench show ablation --toml > my.toml", "begin a scenario of your own"),
    ], "bench list, bench run"))]
    Show(Show),
    /// Print the results of an earlier measurement
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench report result --page result.html", "print the tables, and write the page"),
    ], "bench run, bench compare"))]
    Report(Report),
    /// Compare two results, cell by cell
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench compare before after", "print the ratios of after to before, with their intervals"),
        ("isolane bench compare before after --json -", "write the comparison as JSON"),
    ], "bench run, bench report"))]
    Compare(Compare),
}

impl Bench {
    pub(super) fn run(self, settings: &Settings) -> Result<ExitCode, Failure> {
        settings.refuse_duplicates()?;
        match self {
            Self::Rtt(rtt) => rtt.run(settings),
            Self::Throughput(throughput) => throughput.run(settings),
            Self::Run(run) => run.run(settings),
            Self::List(list) => list.run(),
            Self::Show(show) => show.run(),
            Self::Report(report) => report.run(),
            Self::Compare(compare) => compare.run(),
        }
    }
}
