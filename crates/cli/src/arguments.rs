//! Command-line grammar: options and their help.
//!
//! Values are neither validated nor defaulted here, because the description may supply them. `settings` turns the
//! arguments into a complete, consistent configuration.

mod endpoint;
mod measure;
mod observe;
mod tune;
mod value;
mod why;

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use isolane_model::Domain;

use crate::exit_code::ExitCode;
use crate::values::Destination;

pub(crate) use self::endpoint::{
    EndpointArguments, LaneArguments, PublishArguments, SubscribeArguments,
};
pub(crate) use self::measure::{
    Bench, BenchArguments, BenchRttArguments, BenchThroughputArguments, DemoArguments,
};
pub(crate) use self::observe::{DoctorArguments, ListArguments, SpyArguments, TopArguments};
pub(crate) use self::tune::{
    AnswerArguments, LearnArguments, PortsArguments, Tune, TuneApplyArguments, TuneArguments,
    TuneExportArguments, TunePlanArguments, TuneSourceArguments, TuneStateArguments,
    TuneVerifyArguments,
};
pub(crate) use self::why::WhyArguments;

/// Arguments of `isolane`.
#[derive(Debug, Parser)]
#[command(
    name = "isolane",
    version,
    about = "A DDS whose critical topics keep their latency bound",
    after_help = ExitCode::help_with_examples(&[
        ("isolane demo", "what it is for, on this machine, in about two minutes (best as root)"),
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

/// Heading of options that commands without a network refuse; the help of those commands omits them.
const NETWORK_OPTIONS: &str = "Network options";

impl Arguments {
    /// Parses the arguments of this process.
    ///
    /// # Errors
    /// The arguments are invalid, or request help or the version.
    pub(crate) fn of_process() -> Result<Self, clap::Error> {
        let matches = Self::grammar().try_get_matches()?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut Self::grammar()))
    }

    /// Grammar of the command line. Every command knows all common options, so that one without effect is refused with
    /// the reason. A command's help and manual page list only the options it accepts.
    pub(crate) fn grammar() -> clap::Command {
        let whole = Self::command();
        let common: Vec<clap::Arg> = whole.get_arguments().cloned().collect();
        whole.mut_subcommands(|command| match command.get_name() {
            "tune" => command.mut_subcommands(|command| {
                let refused: &[&str] = match command.get_name() {
                    "plan" | "export" => &["interface"],
                    "apply" | "status" | "rollback" => &["domain", "interface", "config"],
                    "ports" => &["domain", "config"],
                    _ => &[],
                };
                hiding(command, &common, refused)
            }),
            name => {
                let refused: &[&str] = match name {
                    "demo" | "bench" | "completions" | "datapaths" | "man" => {
                        &["domain", "interface", "config"]
                    }
                    "config" | "doctor" => &["interface"],
                    "top" => &["interface", "config"],
                    _ => &[],
                };
                hiding(command, &common, refused)
            }
        })
    }
}

/// Hides the common options that the command refuses.
fn hiding(command: clap::Command, common: &[clap::Arg], refused: &[&str]) -> clap::Command {
    let is_refused = |option: &&clap::Arg| refused.contains(&option.get_id().as_str());
    let hidden = common.iter().filter(is_refused).cloned();
    command.args(hidden.map(|option| option.hide(true)))
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct CommonArguments {
    /// Choose the DDS domain, 0 to 232 [default: the description's, else 0; `spy`, `top`: all] [env: ISOLANE_DOMAIN]
    #[arg(long, short = 'd', value_name = "N", global = true, help_heading = NETWORK_OPTIONS)]
    pub(crate) domain: Option<Domain>,
    /// Use this network interface; may be repeated [default: the described host's, else all that can multicast; `spy`:
    /// all]
    #[arg(long, short = 'i', value_name = "NAME", global = true, help_heading = NETWORK_OPTIONS)]
    pub(crate) interface: Vec<String>,
    /// Read this system description. `pub`, `sub`, `ls` and `why` use its domain, its topics, and the host entry of
    /// this machine [default: none; for `config`, `doctor` and `tune`: isolane.toml] [env: ISOLANE_CONFIG]
    #[arg(long, value_name = "FILE", global = true, help_heading = NETWORK_OPTIONS)]
    pub(crate) config: Option<PathBuf>,
    /// Print more. Once: the settings with their sources, and the library's log. Twice: also matches (`pub`, `sub`,
    /// `ls`) as they happen, and all jobs, ledgers and counters at the end
    #[arg(long, short = 'v', action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Demonstrate isolane on this machine, in about two minutes
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane demo", "as root: all rows, in about two minutes"),
        ("isolane demo --payload 64 --seconds 1", "a first look, in less than a minute"),
        ("isolane demo --rows executor", "only what disturbs a topic from inside, in about 45 s"),
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
    /// Explain in a sentence why two endpoints of a topic do not communicate, or confirm that they do
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane why Square", "names, types, QoS, partitions, networks, domains, packet filters"),
        ("isolane why Square --domain 5 --other-domains 0,42", "is it in another domain?"),
        ("isolane why Square --interface lo --peer 127.0.0.1", "on this machine, without multicast"),
        (
            "isolane why Square --json - | jq -r '.reasons[] | select(.verdict == \"no\").sentence'",
            "for programs",
        ),
    ], "ls (who is there), spy (what is on the wire), doctor (this machine)"))]
    Why(WhyArguments),
    /// Show DDS traffic, live or from a capture
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane spy", "all interfaces, until Ctrl-C"),
        ("sudo isolane spy -i eth0 --topic Square --kind data,acknack", "one topic's samples"),
        ("isolane spy trace.pcap --kind spdp,sedp", "who is there, with all they announce"),
        ("sudo isolane spy --topic Square --write square.pcapng", "for Wireshark: this topic's frames"),
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
    /// Print the complete system description, with the source of each value
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane config --example > isolane.toml", "a commented description to begin with"),
        ("isolane config", "isolane.toml as it is understood"),
        ("isolane config --config other.toml --json -", "another one, for programs"),
    ], "doctor (does this machine fit it), pub and sub --config (use its topics)"))]
    Config(ConfigArguments),
    /// List the datapaths and their options
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane datapaths", "names for --datapath and [host.NAME] datapath, options for both"),
        ("isolane sub Square --datapath xdp:queue=1,mode=copy", "a datapath with two of its options"),
    ], "config (options of the described hosts), doctor (what this machine lacks)"))]
    Datapaths(DatapathsArguments),
    /// Compare this machine with the needs of critical topics, and explain each finding; changes nothing
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane doctor", "what is right, what is not, what it costs, what to do"),
        ("isolane doctor --config isolane.toml --host zone-left", "against a description"),
        ("isolane doctor --json - | jq '.findings[] | select(.severity != \"ok\")'", "for programs"),
    ], "config (the description it compares with), bench rtt (what it costs here)"))]
    Doctor(DoctorArguments),
    /// Tune this machine for critical topics: plan with reasons and costs, apply, roll back completely
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane tune plan plan.json", "what to change on this machine, and why; nothing is changed"),
        ("sudo isolane tune apply plan.json", "all of it, or nothing"),
        ("isolane tune status", "does it still stand"),
        ("sudo isolane tune rollback", "as it was found"),
    ], "doctor (what of this machine stands in the way), config (the switches of the profile)"))]
    Tune(TuneArguments),
    /// Measure round trips or throughput on this machine
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench rtt --payload 64", "as root: between two test hosts and an emulated cable"),
        ("isolane bench throughput --payload 1024 --json -", "for programs"),
    ], "demo (what it is all about, in about two minutes), doctor (what this machine lacks)"))]
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
    /// Run one process of a measurement; started by `demo` and `bench`
    #[command(name = CHILD_COMMAND, hide = true)]
    Child(ChildArguments),
}

/// Name of the hidden command that runs a process of a measurement.
pub(crate) const CHILD_COMMAND: &str = "child";

#[derive(Debug, Args)]
pub(crate) struct ChildArguments {
    /// Role and its configuration, as JSON
    #[arg(value_name = "ROLE")]
    pub(crate) role: String,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// Print a commented example instead
    #[arg(long)]
    pub(crate) example: bool,
    /// Write the description as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "example")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct DatapathsArguments {
    /// Write the list as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// Shell to print the script for
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page for each command into this directory, which is created if necessary [default: print the page of
    /// isolane itself]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}
