//! Command line: the options of every command, and the list of commands with their examples.
//!
//! Each command's module declares the command's own options. clap checks options and fills in defaults. [`Call`] keeps
//! the options as written, so that `settings` can print every value with its source.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use isolane_model::Domain;
use isolane_model::limits::MAX_KNOWN_PARTICIPANTS;

use crate::commands::bench::{Bench, Demo};
use crate::commands::config::Config;
use crate::commands::doctor::Doctor;
use crate::commands::endpoint::{Publish, Subscribe};
use crate::commands::list::List;
use crate::commands::manual::{Child, Completions, Man};
use crate::commands::spy::Spy;
use crate::commands::top::Top;
use crate::commands::tune::Tune;
use crate::commands::why::Why;
use crate::datapaths::{DatapathArgument, DatapathParser, Datapaths};
use crate::exit_code::ExitCode;
use crate::settings::SettingLine;
use crate::values::{Destination, Peer};

/// Arguments of `isolane`.
#[derive(Debug, Parser)]
#[command(
    name = "isolane",
    version,
    about = "A DDS for Linux that keeps the latency of critical topics short",
    after_help = ExitCode::help_with_examples(&[
        ("isolane demo", "demonstrate isolane on this machine, in less than 45 s (best as root)"),
        ("isolane sub Square", "print the samples of the topic Square; then, in another terminal:"),
        ("isolane pub Square", "publish a moving shape (ShapeType); the other side can be any DDS"),
        ("isolane doctor", "list what prevents low latency on this machine"),
    ], "isolane COMMAND --help (its options and examples); isolane man COMMAND (all explanations)")
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    common: CommonArguments,
    #[command(subcommand)]
    command: Command,
}

/// Commands that a beginner needs, in the order of the help. The help lists the other commands below them.
const FIRST_COMMANDS: [&str; 10] = [
    "demo", "pub", "sub", "ls", "why", "spy", "top", "doctor", "config", "tune",
];

/// Position of the options of every command in a help text: after the command's own options, before `--help`.
const LAST_OPTIONS: usize = 900;

const ALL: &[&str] = &["interface", "domain", "config"];
const INTERFACE: &[&str] = &["interface"];
const OWN_HOSTS: &str =
    "it measures between test hosts that it creates: the option has no effect there";
const ONLY_DESCRIBED: &str =
    "it sets up the interface that the description names for the host, and no other";

/// Commands with the common options that each command refuses, and the reason.
const REFUSED: [(&str, &[&str], &str); 13] = [
    (
        "config",
        INTERFACE,
        "each host of a description has its own interface",
    ),
    (
        "doctor",
        INTERFACE,
        "it looks at all interfaces, or at the one the description names for the host",
    ),
    ("tune plan", INTERFACE, ONLY_DESCRIBED),
    ("tune export", INTERFACE, ONLY_DESCRIBED),
    (
        "tune ports",
        &["domain", "config"],
        "ports and queues belong to the machine, not to a domain",
    ),
    ("tune apply", ALL, "the plan contains all it needs"),
    ("tune status", ALL, "the plan contains all it needs"),
    ("tune rollback", ALL, "the plan contains all it needs"),
    (
        "top",
        &["interface", "config"],
        "it looks at processes of this host, which report all they use",
    ),
    ("demo", ALL, OWN_HOSTS),
    ("bench", ALL, OWN_HOSTS),
    ("completions", ALL, "it touches no network"),
    ("datapaths", ALL, "it touches no network"),
];

/// Returns the common options that a command refuses, and the reason. A subcommand is named in full: `tune plan`.
pub(crate) fn refused(command: &str) -> (&'static [&'static str], &'static str) {
    let command = if command == "man" {
        "completions"
    } else {
        command
    };
    let of_command = REFUSED.iter().find(|(name, ..)| {
        let rest = command.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    of_command.map_or((&[], ""), |(_, options, why)| (options, why))
}

/// Parsed command line.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) common: CommonArguments,
    pub(crate) command: Command,
    /// Name of the command with its subcommand: `tune plan`.
    pub(crate) name: String,
    /// Values of the command's own options, given or default, with their sources.
    pub(crate) options: Vec<SettingLine>,
    /// Files that the command will write at its end.
    pub(crate) outputs: Vec<Destination>,
}

impl Call {
    /// Parses a command line.
    ///
    /// # Errors
    /// The arguments are invalid, or request help or the version.
    pub(crate) fn parse(
        arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let matches = Arguments::grammar().try_get_matches_from(arguments)?;
        let Arguments { common, command } = Arguments::from_arg_matches(&matches)
            .map_err(|error| error.format(&mut Arguments::grammar()))?;
        let (mut grammar, mut matches) = (&Arguments::grammar(), &matches);
        let mut name = Vec::new();
        while let Some((word, inner)) = matches.subcommand() {
            name.push(word);
            grammar = grammar.find_subcommand(word).expect("it was parsed");
            matches = inner;
        }
        let own = grammar.get_arguments().filter(|it| !it.is_global_set());
        let json = matches.try_get_one::<Destination>("json").ok().flatten();
        let files = ["page", "csv"].into_iter().filter_map(|name| {
            let path = matches.try_get_one::<PathBuf>(name).ok().flatten()?;
            Some(Destination::File(path.clone()))
        });
        Ok(Self {
            options: own.filter_map(|option| written(option, matches)).collect(),
            outputs: json.cloned().into_iter().chain(files).collect(),
            name: name.join(" "),
            common,
            command,
        })
    }
}

/// Value of an option as written, with its source; `None` for a flag that is not given.
fn written(option: &Arg, matches: &ArgMatches) -> Option<SettingLine> {
    let id = option.get_id().as_str();
    let source = matches.value_source(id);
    let is_given = source == Some(ValueSource::CommandLine);
    if !is_given && !option.get_action().takes_values() {
        return None;
    }
    let values = matches.get_raw(id).into_iter().flatten();
    let values: Vec<String> = values.map(|it| it.to_string_lossy().into_owned()).collect();
    let value_name = option.get_value_names().and_then(<[_]>::first);
    let (name, as_given) = match option.get_long() {
        Some(long) => (long.replace('-', "_"), format!("--{long}")),
        None => (
            id.to_owned(),
            value_name.map_or_else(String::new, ToString::to_string),
        ),
    };
    Some(SettingLine {
        name,
        value: match values.is_empty() {
            true => String::from("none"),
            false => values.join(","),
        },
        source: match is_given {
            true => format!("command line {as_given}"),
            false => String::from("default"),
        },
    })
}

impl Arguments {
    /// Grammar of the command line, with help texts that fit one screen. A help text has the first paragraph of each
    /// option's explanation; the manual page has all paragraphs.
    pub(crate) fn grammar() -> clap::Command {
        let whole = brief(Self::full_grammar());
        let template = format!(
            "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}\n\nOptions:\n{{options}}{{after-help}}",
            command_list(&whole)
        );
        whole.help_template(template)
    }

    /// Grammar with the complete explanations, for manual pages and completions. Every command parses all common
    /// options, so that `settings` can refuse one without effect and state the reason. A command's help and manual page
    /// list only the options it accepts.
    pub(crate) fn full_grammar() -> clap::Command {
        let whole = Self::command();
        let common: Vec<Arg> = whole.get_arguments().cloned().collect();
        whole.mut_subcommands(|command| {
            let name = command.get_name().to_owned();
            let command = completed(command, &common, &name);
            command.mut_subcommands(|inner| {
                let name = format!("{name} {}", inner.get_name());
                completed(inner, &common, &name)
            })
        })
    }
}

/// Removes all paragraphs but the first from the explanations of a command's options, and of its subcommands'.
fn brief(command: clap::Command) -> clap::Command {
    command
        .mut_args(|option| option.long_help(None::<&str>))
        .mut_subcommands(brief)
}

/// List of the commands for the help: first those that a beginner needs.
fn command_list(whole: &clap::Command) -> String {
    let line = |command: &clap::Command| {
        let about = command.get_about().map(ToString::to_string);
        format!(
            "  {:<11}  {}",
            command.get_name(),
            about.unwrap_or_default()
        )
    };
    let first = FIRST_COMMANDS
        .iter()
        .filter_map(|name| whole.find_subcommand(name));
    let first: Vec<String> = first.map(line).collect();
    let is_other = |command: &&clap::Command| {
        !command.is_hide_set() && !FIRST_COMMANDS.contains(&command.get_name())
    };
    let others: Vec<String> = whole.get_subcommands().filter(is_other).map(line).collect();
    format!(
        "Commands:\n{}\n\nMore:\n{}",
        first.join("\n"),
        others.join("\n")
    )
}

/// Hides the common options that the command refuses, and lets options with the value LIST take values separated by
/// commas.
fn completed(command: clap::Command, common: &[Arg], name: &str) -> clap::Command {
    let (refused, _) = refused(name);
    let is_refused = |option: &&Arg| refused.contains(&option.get_id().as_str());
    let hidden = common.iter().filter(is_refused).cloned();
    let command = command.args(hidden.map(|option| option.hide(true)));
    command.mut_args(|option| {
        let value_name = option.get_value_names().and_then(<[_]>::first);
        match value_name.map(|name| name.as_str()) {
            // The help text of these options explains the words.
            Some("LIST") => option.value_delimiter(',').hide_possible_values(true),
            Some("WORD") => option.hide_possible_values(true),
            _ => option,
        }
    })
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct CommonArguments {
    /// Use this DDS domain, 0 to 232 [default: the description's, else 0]
    ///
    /// `spy` and `top` show all domains by default. The environment variable ISOLANE_DOMAIN replaces the default.
    #[arg(long, short = 'd', value_name = "N", global = true, display_order = LAST_OPTIONS)]
    pub(crate) domain: Option<Domain>,
    /// Use this network interface; may be repeated [default: all but loopback]
    ///
    /// For a described host, the default is its interface. `spy` listens on all interfaces by default. `tune ports`,
    /// `tune learn` and `tune answer` have no default, and need exactly one interface.
    #[arg(long, short = 'i', value_name = "NAME", global = true, display_order = LAST_OPTIONS)]
    pub(crate) interface: Vec<String>,
    /// Read this system description (TOML) [env: ISOLANE_CONFIG]
    ///
    /// A description has the domain, hosts, topics, participants and tuning; `isolane config --example` prints one.
    /// `config`, `doctor` and `tune` read isolane.toml by default. The other commands read none by default.
    #[arg(long, value_name = "FILE", global = true, display_order = LAST_OPTIONS)]
    pub(crate) config: Option<PathBuf>,
    /// Print more: -v the settings and the log, -vv also matches and counters
    ///
    /// `-v`: each setting with its source, and the log. `-vv`: also each match as it happens (`pub`, `sub`), and all
    /// jobs, ledgers and counters at the end (`pub`, `sub`, `ls`).
    #[arg(long, short = 'v', action = clap::ArgAction::Count, global = true, display_order = LAST_OPTIONS)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Demonstrate isolane on this machine, in less than 45 s
    #[command(after_help = ExitCode::help_with_examples(&[
        (
            "isolane demo",
            "measure a critical topic alone and disturbed (as root; else only over loopback and memory)",
        ),
        (
            "isolane demo --page demo.html --json demo.json",
            "name the files of the results; else they are in a new folder in /tmp",
        ),
        ("isolane demo --full", "measure all rows, in about two minutes"),
        ("isolane demo --full --payload 64 --seconds 1", "measure one payload, 1 s a run, in less than a minute"),
        ("isolane demo --full --rows executor", "measure only load inside the participants, in about 45 s"),
    ], "bench rtt (a single measurement), doctor (what this machine lacks)"))]
    Demo(Demo),
    /// Publish a moving shape (ShapeType) on a topic
    #[command(name = "pub", after_help = ExitCode::help_with_examples(&[
        ("isolane pub Square", "wait for a subscriber, then publish a blue shape until Ctrl-C"),
        ("isolane pub Square --color RED --level 7 --count 100", "publish 100 samples at level 7, the most critical"),
        (
            "isolane pub Square --interface lo --peer 127.0.0.1",
            "publish to a subscriber on this machine, without multicast",
        ),
    ], "sub (the other side), ls (who is there), spy (what is on the wire)"))]
    Publish(Publish),
    /// Subscribe to a topic of ShapeType and print its samples
    #[command(name = "sub", after_help = ExitCode::help_with_examples(&[
        ("isolane sub Square", "print samples until Ctrl-C"),
        ("isolane sub Square --reliable --count 10 --seconds 5", "wait 5 s for 10 samples; exit code 1 if fewer"),
        ("isolane sub Square --json -", "print each sample as a line of JSON"),
        (
            "sudo isolane sub Square -i eth0 --datapath xdp --level 5 --budget 20/10ms",
            "receive on an AF_XDP lane, at most 20 datagrams in 10 ms",
        ),
    ], "pub (the other side), ls (who is there), spy (what is on the wire)"))]
    Subscribe(Subscribe),
    /// List the participants of a domain, with their writers, readers and topics
    #[command(name = "ls", after_help = ExitCode::help_with_examples(&[
        ("isolane ls", "print what programs on this host know; if none runs, listen for 3 s"),
        ("isolane ls --seconds 3", "list the participants that announce themselves within 3 s"),
        ("isolane ls --domain 5 --seconds 10 --json -", "listen for 10 s in domain 5, and print JSON"),
        ("isolane ls --interface lo --peer 127.0.0.1", "list the participants of this machine, without multicast"),
    ], "spy --kind spdp,sedp (each announcement as it comes)"))]
    List(List),
    /// Explain why writers and readers of a topic do not communicate
    #[command(after_help = ExitCode::help_with_examples(&[
        (
            "isolane why Square",
            "compare names, types, QoS, partitions and networks; check packet filters and other domains",
        ),
        ("isolane why Square --domain 5 --other-domains 0,42", "look for the topic also in domains 0 and 42"),
        ("isolane why Square --interface lo --peer 127.0.0.1", "compare on this machine, without multicast"),
        (
            "isolane why Square --json - | jq -r '.reasons[] | select(.verdict == \"no\").sentence'",
            "print only the obstacles, a line each",
        ),
    ], "ls (who is there), spy (what is on the wire), doctor (this machine)"))]
    Why(Why),
    /// Show DDS traffic, live or from a capture
    #[command(after_help = ExitCode::help_with_examples(&[
        ("sudo isolane spy", "show all interfaces until Ctrl-C"),
        ("sudo isolane spy -i eth0 --topic Square --kind data,acknack", "show a topic's samples and ACKNACKs"),
        ("isolane spy trace.pcap --kind spdp,sedp", "show all discovery announcements of a capture"),
        ("sudo isolane spy --topic Square --write square.pcapng", "save a topic's frames for Wireshark"),
        ("isolane spy trace.pcapng --json - | jq .submessages", "print the submessages as JSON"),
        ("ssh board tcpdump -w - -c 1000 udp | isolane spy -", "show the traffic at another host"),
    ], "ls (who is there, in short), sub (samples of a topic, decoded)"))]
    Spy(Spy),
    /// Show rates, latencies, budgets, drops and jobs of this host's isolane processes, live
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane top", "show this user's processes until q; without a terminal, print text each second"),
        ("isolane top --once", "print the present state"),
        ("isolane top --json - --seconds 10 | jq '.participants[].rates.lanes'", "print the rates of lanes as JSON"),
        ("sudo isolane top", "show the processes of all users"),
        ("sudo ip netns exec blue isolane top", "show the processes in another network namespace"),
    ], "ls (who is there in the network), spy (what is on the wire), doctor (this machine)"))]
    Top(Top),
    /// Check the system description and print it in full, with the source of each value
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane config --example > isolane.toml", "begin with a commented example"),
        ("isolane config", "check and print isolane.toml, with all defaults"),
        ("isolane config --config other.toml --json -", "print another description as JSON"),
    ], "doctor (compares this machine with it), pub and sub --config (use its topics)"))]
    Config(Config),
    /// List the datapaths (ways to send and receive) and their options
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane datapaths", "list names and options, for --datapath and for [host.NAME] in a description"),
        ("isolane sub Square --datapath xdp:queue=1,mode=copy", "use a datapath with two of its options"),
    ], "config (options of the described hosts), doctor (what this machine lacks)"))]
    Datapaths(Datapaths),
    /// Check this machine for what delays critical topics; changes nothing
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane doctor", "print each problem, its cost and its remedy"),
        ("isolane doctor --config isolane.toml --host zone-left", "check what a described host needs"),
        ("isolane doctor --json - | jq '.findings[] | select(.severity != \"ok\")'", "print the problems as JSON"),
    ], "config (the description it compares with), bench rtt (what it costs here)"))]
    Doctor(Doctor),
    /// Tune this machine for critical topics: plan, apply, verify, roll back completely
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane tune plan plan.json", "print and save what to change, and why; changes nothing"),
        ("sudo isolane tune apply plan.json", "apply the plan completely, or not at all"),
        ("isolane tune status", "show whether the settings are still in effect"),
        ("sudo isolane tune rollback", "restore the settings found before"),
    ], "doctor (what prevents low latency), config (the switches of the profile)"))]
    #[command(subcommand)]
    Tune(Tune),
    /// Measure round trips or throughput on this machine
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane bench rtt --payload 64", "measure between two test hosts over an emulated link (as root)"),
        ("isolane bench throughput --payload 1024 --json -", "print the results as JSON"),
    ], "demo (a demonstration in less than 45 s), doctor (what this machine lacks)"))]
    #[command(subcommand)]
    Bench(Bench),
    /// Print a completion script for a shell
    #[command(after_help = ExitCode::help_with_examples(&[
        (
            "isolane completions bash > ~/.local/share/bash-completion/completions/isolane",
            "install for bash, from the next shell on",
        ),
        ("isolane completions fish > ~/.config/fish/completions/isolane.fish", "install for fish"),
    ], "man (manual pages)"))]
    Completions(Completions),
    /// Print a manual page, or write those of all commands
    #[command(after_help = ExitCode::help_with_examples(&[
        ("isolane man sub | man -l -", "read the page of `isolane sub`, with all explanations"),
        ("sudo isolane man /usr/local/share/man/man1", "install all pages; read one with `man isolane-spy`"),
    ], "completions (for shells)"))]
    Man(Man),
    /// Run one process of a measurement; started by `demo` and `bench`
    #[command(name = CHILD_COMMAND, hide = true)]
    Child(Child),
}

/// Name of the hidden command that runs a process of a measurement.
pub(crate) const CHILD_COMMAND: &str = "child";

/// Options of a participant's datapath and discovery.
#[derive(Clone, Debug, Args)]
pub(crate) struct LaneArguments {
    /// Use this datapath: udp, xdp (AF_XDP) or auto [default: udp]
    ///
    /// udp is kernel sockets; auto is the first datapath that works here. Options follow the name, as in
    /// xdp:queue=1,mode=copy; `isolane datapaths` lists them. For a described host, the default is its datapath.
    #[arg(long, value_name = "NAME", value_parser = DatapathParser, hide_possible_values = true)]
    pub(crate) datapath: Option<DatapathArgument>,
    /// Remember at most N remote participants, 1 to 2000
    ///
    /// The number of remembered endpoints is ten times as high. The default is the described host's, else 1000 (`ls`
    /// and `why`: 2000).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_KNOWN_PARTICIPANTS)))]
    pub(crate) max_participants: Option<u32>,
    /// Use [host.NAME] of the description [default: this machine's name]
    ///
    /// The default is the entry of this machine's host name, else the only entry.
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Discover participants at this address without multicast; may be repeated
    ///
    /// ADDRESS is an IPv4 address: announcements go to the ports of participants 1 to 10 of the domain at that address.
    /// With ADDRESS:PORT they go to that port only.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Vec<Peer>,
}
