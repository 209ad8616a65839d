//! The command line as it is written: what options exist, and the help for them. Nothing here
//! means anything yet, and nothing has a default yet (only what was not given can come from the
//! description); `settings` turns it into a complete, consistent configuration.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use isolane_model::limits::MAX_QUEUE;
use isolane_model::{Datapath, Domain, Durability, History, Word, parse_duration};
use isolane_wire::level::Level;

use crate::exit_code::ExitCode;
use crate::limits::{MAX_RATE_HZ, MAX_REPETITIONS, MAX_SECONDS};
use crate::spy::filter::EntityPattern;
use crate::spy::message::Kind;
use crate::values::{
    DemoPart, Destination, Disturbance, JobOrder, LaneDatapath, LinkArbiter, PayloadBytes, Peer,
    ReceiveBudget, Representation, SampleType,
};

/// The arguments of `isolane`.
#[derive(Debug, Parser)]
#[command(
    name = "isolane",
    version,
    about = "A DDS whose critical topics keep their latency bound",
    after_help = ExitCode::help_with_examples(&[
        ("isolane demo", "what it is for, on this machine, in two minutes (best as root)"),
        ("isolane sub Square", "in one terminal, and in another:"),
        ("isolane pub Square", "shapes of ShapeType; any DDS can be the other side"),
        ("isolane doctor", "what of this machine stands in the way of low latency"),
    ], "isolane COMMAND --help (more, and more examples); isolane man")
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that are refused by commands that look at no network, or at one of their own; the help
/// of these does not name them.
const NETWORK_OPTIONS: &str = "Network options";

impl Arguments {
    /// What this process was called with. Wrong usage, and a question for help, ends the process.
    pub(crate) fn of_process() -> Self {
        let matches = Self::grammar().get_matches();
        Self::from_arg_matches(&matches)
            .unwrap_or_else(|error| error.format(&mut Self::grammar()).exit())
    }

    /// The grammar of the command line. Every command knows all common options, so that one that has
    /// no effect is refused with the reason; its help and its manual page name only those it takes.
    pub(crate) fn grammar() -> clap::Command {
        let whole = Self::command();
        let common: Vec<clap::Arg> = whole.get_arguments().cloned().collect();
        whole.mut_subcommands(|command| {
            let refused: &[&str] = match command.get_name() {
                "demo" | "bench" | "completions" | "man" => &["domain", "interface", "config"],
                "config" | "doctor" => &["interface"],
                "top" => &["interface", "config"],
                _ => &[],
            };
            let is_refused = |option: &&clap::Arg| refused.contains(&option.get_id().as_str());
            let hidden = common.iter().filter(is_refused).cloned();
            command.args(hidden.map(|option| option.hide(true)))
        })
    }
}

/// Options every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct CommonArguments {
    /// DDS domain, 0 to 232 [default: the description's, else 0; `spy`, `top`: all] [env:
    /// ISOLANE_DOMAIN]
    #[arg(long, short = 'd', value_name = "N", global = true, help_heading = NETWORK_OPTIONS)]
    pub(crate) domain: Option<Domain>,
    /// Network interface to use; may be repeated [default: the described host's, else all that can
    /// multicast; `spy`: all]
    #[arg(long, short = 'i', value_name = "NAME", global = true, help_heading = NETWORK_OPTIONS)]
    pub(crate) interface: Vec<String>,
    /// System description; `pub`, `sub` and `ls` use its domain, its topics, and of its hosts the one
    /// this machine is [default: none; for `config` and `doctor`: isolane.toml] [env: ISOLANE_CONFIG]
    #[arg(long, value_name = "FILE", global = true, help_heading = NETWORK_OPTIONS)]
    pub(crate) config: Option<PathBuf>,
    /// Say more: once, the settings and where each comes from, what the library logs, and (`spy`)
    /// everything that is decoded; twice, also (`pub`, `sub`, `ls`) who is matched, as it happens,
    /// and all jobs, ledgers and counters at the end
    #[arg(long, short = 'v', action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show on this machine what isolane is for, in two minutes
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane demo", "as root: all rows, about 110 s"),
        ("isolane demo --payload 64 --seconds 1", "a first look, in half a minute"),
        ("isolane demo --rows executor", "only what disturbs a topic from inside, in 50 s"),
        ("isolane demo --page demo.html", "with pictures, for a browser"),
        ("isolane demo --json demo.json", "the results for programs too"),
    ], "bench rtt (one measurement of your own), doctor (what this machine lacks)"))]
    Demo(DemoArguments),
    /// Publish a topic
    #[command(name = "pub", after_help = ExitCode::help_with_examples(&[
        ("isolane pub Square", "a blue square, once there is a subscriber, until Ctrl-C"),
        ("isolane pub Square --color RED --level 7 --count 100", "a hundred, most critical"),
        (
            "isolane pub Square --interface lo --peer 127.0.0.1",
            "to a subscriber on this machine, without multicast",
        ),
    ], "sub (the other side), ls (who is there), spy (what is on the wire)"))]
    Publish(PublishArguments),
    /// Subscribe to a topic and print its samples
    #[command(name = "sub", after_help = ExitCode::help_with_examples(&[
        ("isolane sub Square", "until Ctrl-C"),
        ("isolane sub Square --reliable --count 10 --seconds 5", "ten, or exit code 1"),
        ("isolane sub Square --json -", "a line of JSON a sample"),
        (
            "sudo isolane sub Square -i eth0 --datapath xdp --level 5 --budget 20/10ms",
            "by a lane of its own, at most 20 datagrams in 10 ms",
        ),
    ], "pub (the other side), ls (who is there), spy (what is on the wire)"))]
    Subscribe(SubscribeArguments),
    /// List the participants, topics, writers and readers of the domain
    #[command(name = "ls", after_help = ExitCode::help_with_examples(&[
        ("isolane ls", "who is heard within 3 s"),
        ("isolane ls --domain 5 --seconds 10 --json -", "another domain, for programs"),
        ("isolane ls --interface lo --peer 127.0.0.1", "on this machine, without multicast"),
    ], "spy --kind spdp,sedp (each announcement as it comes)"))]
    List(ListArguments),
    /// Show what is on the wire: live, or from a capture
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane spy", "all interfaces, until Ctrl-C"),
        ("sudo isolane spy -i eth0 --topic Square --kind data,acknack", "one topic's samples"),
        ("isolane spy trace.pcap --kind spdp,sedp -v", "who is there, with all they announce"),
        ("isolane spy trace.pcapng --json - | jq .submessages", "for programs"),
        ("ssh board tcpdump -w - -c 1000 udp | isolane spy -", "what another host sees"),
    ], "ls (who is there, in short), sub (samples of a topic, decoded)"))]
    Spy(SpyArguments),
    /// Show live what isolane processes of this host do: lanes, flows, budgets, rings, drops, jobs
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane top", "on a terminal, until q; plain text where there is none"),
        ("isolane top --once", "one look"),
        ("isolane top --json - --seconds 10 | jq '.participants[].rates.lanes'", "for programs"),
        ("sudo isolane top", "those of all users"),
        ("sudo ip netns exec blue isolane top", "in another network namespace"),
    ], "ls (who is there in the network), spy (what is on the wire), doctor (this machine)"))]
    Top(TopArguments),
    /// Print the system description complete, with the source of each value
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane config --example > isolane.toml", "a commented description to begin with"),
        ("isolane config", "isolane.toml as it is understood"),
        ("isolane config --config other.toml --json -", "another one, for programs"),
    ], "doctor (does this machine fit it), pub and sub --config (use its topics)"))]
    Config(ConfigArguments),
    /// Compare this machine with what critical topics need, in plain words; changes nothing
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane doctor", "what is right, what is not, what it costs, what to do"),
        ("isolane doctor --config isolane.toml --host zone-left", "against a description"),
        ("isolane doctor --json - | jq '.findings[] | select(.severity != \"ok\")'", "for programs"),
    ], "config (the description it compares with), bench rtt (what it costs here)"))]
    Doctor(DoctorArguments),
    /// Measure round trips or throughput on this machine
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench rtt --payload 64", "as root: between two test hosts and an emulated cable"),
        ("isolane bench throughput --payload 1024 --json -", "for programs"),
    ], "demo (what it is all about, in two minutes), doctor (what this machine lacks)"))]
    Bench(BenchArguments),
    /// Print a completion script for a shell
    #[command(after_help = ExitCode::help_with_examples(&[
        (
            "isolane completions bash > ~/.local/share/bash-completion/completions/isolane",
            "from the next bash on",
        ),
        ("isolane completions fish > ~/.config/fish/completions/isolane.fish", "for fish"),
    ], "man (manual pages)"))]
    Completions(CompletionsArguments),
    /// Print the manual page, or write one for each command
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane man | man -l -", "read it"),
        ("sudo isolane man /usr/local/share/man/man1", "install: then `man isolane-spy`"),
    ], "completions (for shells)"))]
    Man(ManArguments),
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
    /// Seconds each run lasts [default: 2; 5 where work inside the participants disturbs]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Rows to show, separated by commas: link (a flood on a link that serves frames as they come),
    /// arbiter (that link against one that serves the most urgent first), lane (heavy receive work on
    /// the hosts, one remedy at a time), executor (work inside the participants, jobs as they became
    /// ready against the most urgent first) [default: all]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<DemoPart>(),
        hide_possible_values = true
    )]
    pub(crate) rows: Vec<DemoPart>,
    /// Datapaths to show, separated by commas: udp (with all rows), xdp, memory (undisturbed)
    /// [default: udp]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<Datapath>(),
        hide_possible_values = true
    )]
    pub(crate) datapath: Vec<Datapath>,
    /// Payload sizes in bytes, 12 to 1400, separated by commas [default: 64,512,1024]
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
    /// Write the results as a page: one HTML file with pictures that needs nothing else
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    pub(crate) page: Option<PathBuf>,
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
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(i32).range(0..),
        allow_negative_numbers = true
    )]
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
    /// Datagrams of the topic to receive in each period, and what becomes of the others: N/PERIOD,
    /// N/PERIOD/drop or N/PERIOD/demote; with --datapath xdp [default: the description's, else all]
    #[arg(long, value_name = "N/PERIOD")]
    pub(crate) budget: Option<ReceiveBudget>,
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
    #[arg(
        long = "type",
        value_name = "TYPE",
        value_parser = word::<SampleType>(),
        hide_possible_values = true
    )]
    pub(crate) sample_type: Option<SampleType>,
    /// volatile, or transient-local: readers that join late get the history [default: the
    /// description's, else volatile]
    #[arg(
        long,
        value_name = "WORD",
        value_parser = word::<Durability>(),
        hide_possible_values = true
    )]
    pub(crate) durability: Option<Durability>,
    /// How critical: 0 to 7, 7 the most critical [default: the description's, else 0]
    #[arg(long, value_name = "0..7", value_parser = level)]
    pub(crate) level: Option<Level>,
    /// Look for participants at this IPv4 address, or address:port, by unicast; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Vec<Peer>,
    /// Data representation: xcdr1 or xcdr2 [default: xcdr1]
    #[arg(
        long,
        value_name = "WORD",
        value_parser = word::<Representation>(),
        hide_possible_values = true
    )]
    pub(crate) representation: Option<Representation>,
    /// Stop after so many seconds
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    #[command(flatten)]
    pub(crate) lane: LaneArguments,
}

/// How frames move.
#[derive(Debug, Args)]
pub(crate) struct LaneArguments {
    /// How frames move: udp (kernel sockets), xdp (AF_XDP lanes; takes rights), auto (xdp where it
    /// works) [default: the described host's, else udp]
    #[arg(
        long,
        value_name = "WORD",
        value_parser = word::<LaneDatapath>(),
        hide_possible_values = true
    )]
    pub(crate) datapath: Option<LaneDatapath>,
    /// The device's queue that lanes of xdp are on [default: the described host's, else 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_QUEUE)))]
    pub(crate) queue: Option<u32>,
    /// Which host of the description this machine is [default: the one with this machine's name,
    /// else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Show one sample, and end
    #[arg(long, conflicts_with = "seconds")]
    pub(crate) once: bool,
    /// Stop after so many seconds
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Write JSON too, a line a sample; `-` is standard output, for nothing else then
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) lane: LaneArguments,
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
pub(crate) struct SpyArguments {
    /// A capture, pcap or pcapng; `-` is standard input [default: listen on the interfaces of this
    /// host, all of them or those of --interface; takes the right CAP_NET_RAW]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Show only what is about this topic, as far as discovery was seen; may be repeated
    #[arg(long, value_name = "TOPIC")]
    pub(crate) topic: Vec<String>,
    /// Show only what is from or for this participant (24 hexadecimal digits), entity (8) or both,
    /// as they are printed; may be repeated
    #[arg(long, visible_alias = "guid", value_name = "GUID")]
    pub(crate) writer: Vec<EntityPattern>,
    /// Show only datagrams of these levels, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = level)]
    pub(crate) level: Vec<Level>,
    /// Show only these submessages, separated by commas: data, data-frag, heartbeat,
    /// heartbeat-frag, acknack, nack-frag, gap, spdp, sedp, info, pad, unknown, malformed
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<Kind>(),
        hide_possible_values = true
    )]
    pub(crate) kind: Vec<Kind>,
    /// Stop after so many datagrams shown
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) count: Option<u64>,
    /// Stop listening after so many seconds
    #[arg(long, alias = "duration", value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Write JSON too, a line a datagram and one for the summary; `-` is standard output, for
    /// nothing else then
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
pub(crate) struct DoctorArguments {
    /// Which host of the description this machine is [default: the one with this machine's name,
    /// else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Look at facts that were recorded with --facts, on another machine perhaps
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Show also what is as it should be
    #[arg(long)]
    pub(crate) all: bool,
    /// Print what this machine is like, as JSON, and no findings: for --from
    #[arg(long, conflicts_with_all = ["host", "all"])]
    pub(crate) facts: bool,
    /// Write the findings as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page for each command into this directory, which is made if need be [default: print
    /// the page of isolane itself]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(crate) bench: Bench,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Round-trip time of small samples at a fixed rate
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench rtt --seconds 3", "64 and 1024 B, 2000 pings a second"),
        ("isolane bench rtt --payload 64 --disturbance none,flood", "alone, then beside a flood"),
        ("isolane bench rtt --ablation --payload 64 --disturbance storm", "which remedy brings what"),
    ], "bench throughput, demo"))]
    Rtt(BenchRttArguments),
    /// Samples a second, counted at the reader
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
    /// Write the results as a page: one HTML file with pictures that needs nothing else
    #[arg(long, value_name = "FILE", value_parser = page_file)]
    pub(crate) page: Option<PathBuf>,
    /// Datapaths to measure, separated by commas: udp, xdp, memory [default: udp]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<Datapath>(),
        hide_possible_values = true
    )]
    pub(crate) datapath: Vec<Datapath>,
    /// Payload sizes in bytes, 12 to 1400, separated by commas [default: 64,1024]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = PayloadBytes::of_round_trip
    )]
    pub(crate) payload: Vec<PayloadBytes>,
    /// Pings a second [default: 2000]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=MAX_RATE_HZ))]
    pub(crate) rate: Option<u32>,
    /// What to disturb the runs with, separated by commas: none, flood (on the link), storm (receive
    /// work on the hosts), joining, bulk, repair (inside the participants, over a faster link)
    /// [default: none]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<Disturbance>(),
        hide_possible_values = true
    )]
    pub(crate) disturbance: Vec<Disturbance>,
    /// How the link serves waiting frames, separated by commas: fifo (as they came), strict (the most
    /// urgent class first) [default: fifo]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<LinkArbiter>(),
        hide_possible_values = true
    )]
    pub(crate) arbiter: Vec<LinkArbiter>,
    /// How executors choose jobs, separated by commas: priority, fifo (as they became ready, and one
    /// socket for all levels) [default: priority]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<JobOrder>(),
        hide_possible_values = true
    )]
    pub(crate) order: Vec<JobOrder>,
    /// Measure one remedy at a time: one socket for all levels, a socket a level, steering, NAPI
    /// priorities, a lane, budgets; each beside none, flood and storm, through both arbiters, with 64,
    /// 512 and 1024 B, as far as the options above do not name others
    #[arg(long, conflicts_with_all = ["datapath", "order"])]
    pub(crate) ablation: bool,
    /// How often everything is measured, one after the other [default: 1; 3 with --ablation]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_REPETITIONS))]
    pub(crate) repetitions: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchThroughputArguments {
    #[command(flatten)]
    pub(crate) runs: RunArguments,
    /// Datapath to measure: udp [default: udp]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<Datapath>(),
        hide_possible_values = true
    )]
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

/// A file, not standard output: a page on a terminal helps nobody.
fn page_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "" | "-" => Err(String::from("name a file for the page, such as demo.html")),
        file => Ok(PathBuf::from(file)),
    }
}

fn level(text: &str) -> Result<Level, String> {
    let level = text.parse().ok().and_then(Level::new);
    level.ok_or_else(|| String::from("a level is a number from 0 to 7, 7 the most critical"))
}

/// One word out of a few: shells complete it, and a slip of the finger gets a suggestion. The option's
/// own help says what each means.
fn word<W: Word + Send + Sync>() -> impl TypedValueParser<Value = W> {
    PossibleValuesParser::new(W::WORDS.iter().map(|(word, _)| *word))
        .map(|word| W::from_word(&word).expect("the parser lets only these through"))
}
