//! The command line as it is written: what options exist, and the help for them. Nothing here
//! means anything yet, and nothing has a default yet (only what was not given can come from the
//! description); `settings` turns it into a complete, consistent configuration.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use isolane_model::{Datapath, Domain, Durability, History, Word, parse_duration};
use isolane_wire::level::Level;

use crate::exit_code::ExitCode;
use crate::limits::{MAX_RATE_HZ, MAX_SECONDS};
use crate::values::{Destination, Disturbance, PayloadBytes, Peer, Representation, SampleType};

/// The arguments of `isolane`.
#[derive(Debug, Parser)]
#[command(
    name = "isolane",
    version,
    about = "A DDS whose critical topics keep their latency bound",
    after_help = ExitCode::help(),
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that `demo` and `bench`, which measure between hosts of their own, refuse.
const NETWORK_OPTIONS: &str = "Options of pub, sub, ls and config";

/// Options every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct CommonArguments {
    /// DDS domain, 0 to 232 [default: the description's, else 0] [env: ISOLANE_DOMAIN]
    #[arg(long, short = 'd', value_name = "N", global = true, help_heading = NETWORK_OPTIONS)]
    pub(crate) domain: Option<Domain>,
    /// Network interface to use (not `config`); may be repeated [default: all that can multicast]
    #[arg(long, short = 'i', value_name = "NAME", global = true, help_heading = NETWORK_OPTIONS)]
    pub(crate) interface: Vec<String>,
    /// System description; `pub` and `sub` use its domain and its topics, not its hosts [default:
    /// none; for `config`: isolane.toml] [env: ISOLANE_CONFIG]
    #[arg(long, value_name = "FILE", global = true, help_heading = NETWORK_OPTIONS)]
    pub(crate) config: Option<PathBuf>,
    /// Say more: once, the settings and where each comes from; twice, also (`pub`, `sub`, `ls`) who
    /// is matched, as it happens, and all jobs, ledgers and counters at the end
    #[arg(long, short = 'v', action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show on this machine what isolane is for, in a minute
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane demo", "as root: all rows, about 75 s"),
        ("isolane demo --payload 64 --seconds 1", "a first look, in a few seconds"),
        ("isolane demo --json demo.json", "the results for programs too"),
    ]))]
    Demo(DemoArguments),
    /// Publish a topic
    #[command(name = "pub", after_help = ExitCode::help_with_examples(&[
        ("isolane pub Square", "a blue square, once there is a subscriber, until Ctrl-C"),
        ("isolane pub Square --color RED --level 7 --count 100", "a hundred, most critical"),
        (
            "isolane pub Square --interface lo --peer 127.0.0.1",
            "to a subscriber on this machine, without multicast",
        ),
    ]))]
    Publish(PublishArguments),
    /// Subscribe to a topic and print its samples
    #[command(name = "sub", after_help = ExitCode::help_with_examples(&[
        ("isolane sub Square", "until Ctrl-C"),
        ("isolane sub Square --reliable --count 10 --seconds 5", "ten, or exit code 1"),
        ("isolane sub Square --json -", "a line of JSON a sample"),
    ]))]
    Subscribe(SubscribeArguments),
    /// List the participants, topics, writers and readers of the domain
    #[command(name = "ls", after_help = ExitCode::help_with_examples(&[
        ("isolane ls", "who is heard within 3 s"),
        ("isolane ls --domain 5 --seconds 10 --json -", "another domain, for programs"),
        ("isolane ls --interface lo --peer 127.0.0.1", "on this machine, without multicast"),
    ]))]
    List(ListArguments),
    /// Print the system description complete, with the source of each value
    #[command(after_help = ExitCode::help())]
    Config(ConfigArguments),
    /// Measure round trips or throughput on this machine
    #[command(after_help = ExitCode::help())]
    Bench(BenchArguments),
    /// A part of a measurement that is a process of its own: what `demo` and `bench` start
    #[command(name = CHILD_COMMAND, hide = true)]
    Child(ChildArguments),
}

/// How parts of a measurement are told from a person's commands.
pub(crate) const CHILD_COMMAND: &str = "child";

#[derive(Debug, Args)]
pub(crate) struct ChildArguments {
    /// What to be, as JSON
    #[arg(value_name = "ROLE")]
    pub(crate) role: String,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Seconds each run lasts [default: 5]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Datapaths to show, separated by commas: udp, memory [default: udp]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = word::<Datapath>)]
    pub(crate) datapath: Vec<Datapath>,
    /// Payload sizes in bytes, 12 to 1400, separated by commas [default: 64,512,1024]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PayloadBytes::of_round_trip)]
    pub(crate) payload: Vec<PayloadBytes>,
    /// Write the results as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct PublishArguments {
    #[command(flatten)]
    pub(crate) endpoint: EndpointArguments,
    /// Send lost samples again to readers that want them [default]
    #[arg(long, conflicts_with = "best_effort")]
    pub(crate) reliable: bool,
    /// Send each sample once; readers that want lost ones again do not match
    #[arg(long)]
    pub(crate) best_effort: bool,
    /// Samples of an instance to keep, or `all` [default: the description's, else 1]
    #[arg(long, value_name = "N|all")]
    pub(crate) history: Option<History>,
    /// Colour of the shape, the key of its instance [default: BLUE]
    #[arg(long, value_name = "COLOR")]
    pub(crate) color: Option<String>,
    /// Size of the shape [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) size: Option<i32>,
    /// Time between two samples [default: the description's, else 33ms]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) period: Option<std::time::Duration>,
    /// Stop after so many samples
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) count: Option<u64>,
    /// Dispose the instance before leaving
    #[arg(long, conflicts_with = "unregister_at_end")]
    pub(crate) dispose_at_end: bool,
    /// Unregister the instance before leaving
    #[arg(long)]
    pub(crate) unregister_at_end: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SubscribeArguments {
    #[command(flatten)]
    pub(crate) endpoint: EndpointArguments,
    /// Ask for lost samples again; best-effort writers do not match [default with transient-local]
    #[arg(long, conflicts_with = "best_effort")]
    pub(crate) reliable: bool,
    /// Take what comes; lost samples are counted [default]
    #[arg(long)]
    pub(crate) best_effort: bool,
    /// Samples of an instance to hold until they are printed, or `all` [default: the description's,
    /// else 64]
    #[arg(long, value_name = "N|all")]
    pub(crate) history: Option<History>,
    /// Stop after so many samples; fewer within `--seconds` are exit code 1 (without a count, no
    /// sample at all is no failure), and what comes beyond is counted
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) count: Option<u64>,
    /// Write samples as JSON too, a line each; `-` is standard output, for nothing else then
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

/// What a writer and a reader have in common.
#[derive(Debug, Args)]
pub(crate) struct EndpointArguments {
    /// The topic's name
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: String,
    /// The topic's type [default: shape, which is ShapeType]
    #[arg(long = "type", value_name = "TYPE", value_parser = word::<SampleType>)]
    pub(crate) sample_type: Option<SampleType>,
    /// volatile, or transient-local: readers that join late get the history [default: the
    /// description's, else volatile]
    #[arg(long, value_name = "WORD", value_parser = word::<Durability>)]
    pub(crate) durability: Option<Durability>,
    /// How critical: 0 to 7, 7 the most critical [default: the description's, else 0]
    #[arg(long, value_name = "0..7", value_parser = level)]
    pub(crate) level: Option<Level>,
    /// Look for participants at this IPv4 address, or address:port, by unicast; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Vec<Peer>,
    /// Data representation: xcdr1 or xcdr2 [default: xcdr1]
    #[arg(long, value_name = "WORD", value_parser = word::<Representation>)]
    pub(crate) representation: Option<Representation>,
    /// Stop after so many seconds
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Seconds to listen to announcements; that nobody is heard is no failure [default: 3]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Look for participants at this IPv4 address, or address:port, by unicast; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Vec<Peer>,
    /// Write the list as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// Print a commented example instead
    #[arg(long)]
    pub(crate) example: bool,
    /// Write it as JSON; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "example")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(crate) bench: Bench,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Round-trip time of small samples at a fixed rate
    #[command(after_help = ExitCode::help())]
    Rtt(BenchRttArguments),
    /// Samples a second, counted at the reader
    #[command(after_help = ExitCode::help())]
    Throughput(BenchThroughputArguments),
}

#[derive(Debug, Args)]
pub(crate) struct BenchRttArguments {
    #[command(flatten)]
    pub(crate) runs: RunArguments,
    /// Datapaths to measure, separated by commas: udp, memory [default: udp]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = word::<Datapath>)]
    pub(crate) datapath: Vec<Datapath>,
    /// Payload sizes in bytes, 12 to 1400, separated by commas [default: 64,1024]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PayloadBytes::of_round_trip)]
    pub(crate) payload: Vec<PayloadBytes>,
    /// Pings a second [default: 2000]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=MAX_RATE_HZ))]
    pub(crate) rate: Option<u32>,
    /// What to disturb the runs with, separated by commas: none, flood [default: none]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = word::<Disturbance>)]
    pub(crate) disturbance: Vec<Disturbance>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchThroughputArguments {
    #[command(flatten)]
    pub(crate) runs: RunArguments,
    /// Datapath to measure: udp [default: udp]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = word::<Datapath>)]
    pub(crate) datapath: Vec<Datapath>,
    /// Payload sizes in bytes, 12 to 60000, separated by commas [default: 64,1024]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PayloadBytes::of_sample)]
    pub(crate) payload: Vec<PayloadBytes>,
    /// Do not send lost samples again
    #[arg(long)]
    pub(crate) best_effort: bool,
}

/// What all measurements have in common.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Seconds each run lasts [default: 10]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Write the results as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

fn seconds() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=MAX_SECONDS)
}

fn count() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..)
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}: {}", error.help()))
}

fn level(text: &str) -> Result<Level, String> {
    let level = text.parse().ok().and_then(Level::new);
    level.ok_or_else(|| String::from("a level is a number from 0 to 7, 7 the most critical"))
}

/// One word out of a few.
fn word<W: Word>(text: &str) -> Result<W, String> {
    W::from_word(text).ok_or_else(|| {
        let words: Vec<&str> = W::WORDS.iter().map(|(word, _)| *word).collect();
        format!("it is one of {}", words.join(", "))
    })
}
