//! Options of the measuring commands, `demo` and `bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::value::{duration, seconds, word};
use crate::exit_code::ExitCode;
use crate::limits::{MAX_RATE_HZ, MAX_REPETITIONS};
use crate::values::{
    DemoPart, Destination, Disturbance, JobOrder, LinkArbiter, MeasuredDatapath, PayloadBytes,
};

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Set the duration of each run in seconds [default: 2; 5 where work inside the participants disturbs]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Select rows, separated by commas: link (a flood on a FIFO link), arbiter (that link against one that sends the
    /// most urgent class first), lane (heavy receive work on the hosts, one remedy at a time), executor (work inside
    /// the participants, FIFO jobs against the most urgent first) [default: all]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<DemoPart>(),
        hide_possible_values = true
    )]
    pub(crate) rows: Vec<DemoPart>,
    /// Select datapaths, separated by commas: udp (with all rows), xdp, memory (undisturbed) [default: udp]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<MeasuredDatapath>(),
        hide_possible_values = true
    )]
    pub(crate) datapath: Vec<MeasuredDatapath>,
    /// Set payload sizes in bytes, 12 to 1400, separated by commas [default: 64,512,1024]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = PayloadBytes::of_round_trip
    )]
    pub(crate) payload: Vec<PayloadBytes>,
    /// Write the results as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
    /// Write the results as one self-contained HTML page with figures
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    pub(crate) page: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(crate) bench: Bench,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Measure round-trip times of small samples at a fixed rate
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench rtt --seconds 3", "64 and 1024 B, 2000 pings a second"),
        ("isolane bench rtt --payload 64 --disturbance none,flood", "alone, then beside a flood"),
        (
            "isolane bench rtt --ablation --payload 64 --disturbance storm --arbiter strict",
            "which remedy brings what, in about a minute and a half",
        ),
    ], "bench throughput, demo"))]
    Rtt(BenchRttArguments),
    /// Measure samples per second at the reader
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench throughput --seconds 3", "64 and 1024 B, reliable"),
        ("isolane bench throughput --payload 32 --best-effort", "as fast as it goes"),
    ], "bench rtt, demo"))]
    Throughput(BenchThroughputArguments),
}

#[derive(Debug, Args)]
pub(crate) struct BenchRttArguments {
    #[command(flatten)]
    pub(crate) runs: RunArguments,
    /// Write the results as one self-contained HTML page with figures
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    pub(crate) page: Option<PathBuf>,
    /// Select datapaths, separated by commas: udp, xdp, memory [default: udp]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<MeasuredDatapath>(),
        hide_possible_values = true
    )]
    pub(crate) datapath: Vec<MeasuredDatapath>,
    /// Set payload sizes in bytes, 12 to 1400, separated by commas [default: 64,1024]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = PayloadBytes::of_round_trip
    )]
    pub(crate) payload: Vec<PayloadBytes>,
    /// Set the number of pings per second [default: 2000]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=MAX_RATE_HZ))]
    pub(crate) rate: Option<u32>,
    /// Select disturbances, separated by commas: none, flood (on the link), read-flood (a flood read by a bulk reader
    /// of the participants; in the JSON it is `flood` with `bulk_reader` set), storm (receive work on the hosts),
    /// joining, bulk, repair (inside the participants, over a faster link), large (inside the participants, over a veth
    /// pair without a link) [default: none]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<Disturbance>(),
        hide_possible_values = true
    )]
    pub(crate) disturbance: Vec<Disturbance>,
    /// Select link arbiters, separated by commas: fifo (order of arrival), strict (most urgent class first) [default:
    /// fifo]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<LinkArbiter>(),
        hide_possible_values = true
    )]
    pub(crate) arbiter: Vec<LinkArbiter>,
    /// Select job orders of the executors, separated by commas: priority, fifo (order of readiness, and one socket for
    /// all levels) [default: priority]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<JobOrder>(),
        hide_possible_values = true
    )]
    pub(crate) order: Vec<JobOrder>,
    /// Measure one remedy at a time, each with those before it: one socket for all levels, a socket per level,
    /// steering, NAPI priorities, AF_XDP, a lane per level, budgets. Each runs with none, flood, storm and read-flood,
    /// through both arbiters, with 64, 512 and 1024 B, unless the options above select others. All of it takes about 35
    /// minutes; with `--payload 64 --disturbance storm --arbiter strict` it is about a minute and a half
    #[arg(long, conflicts_with_all = ["datapath", "order"])]
    pub(crate) ablation: bool,
    /// Repeat the whole measurement this many times [default: 1; 3 with --ablation]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_REPETITIONS))]
    pub(crate) repetitions: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchThroughputArguments {
    #[command(flatten)]
    pub(crate) runs: RunArguments,
    /// Select datapaths, separated by commas: udp, xdp; both use two hosts joined by one link without a rate [default:
    /// udp]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<MeasuredDatapath>(),
        hide_possible_values = true
    )]
    pub(crate) datapath: Vec<MeasuredDatapath>,
    /// Set payload sizes in bytes, 12 to 60000, separated by commas [default: 64,1024]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PayloadBytes::of_sample)]
    pub(crate) payload: Vec<PayloadBytes>,
    /// Do not retransmit lost samples
    #[arg(long)]
    pub(crate) best_effort: bool,
    /// Set the LATENCY_BUDGET of the topic, within which small samples share datagrams [default: none, each at once]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) latency_budget: Option<std::time::Duration>,
}

/// Options of all measurements.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Set the duration of each run in seconds [default: 10; 3 with --ablation]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Write the results as JSON; a file also receives intermediate results. `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

/// Parses a file name; refuses standard output, because a page is useless on a terminal.
fn page_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "" | "-" => Err(String::from("name a file for the page, such as demo.html")),
        file => Ok(PathBuf::from(file)),
    }
}
