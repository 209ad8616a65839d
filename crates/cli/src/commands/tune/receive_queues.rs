//! `isolane tune ports`, `learn` and `answer`: find the receive queues of datagrams between two hosts. One host sends
//! questions. The other host answers with the queue in which each question arrived.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use isolane_model::limits::SUGGESTED_PORTS;
use isolane_model::{Source, Sourced};
use isolane_tune::steer::probed_ports;
use isolane_tune::verify::{
    BootMark, LearnError, LearnParameters, Pair, ProbeParameters, ProbeServer, QueueCounts,
    ReceiveQueueReport, all_port_pairs, learn, measure_receive_queues,
};
use isolane_tune::{DescribedFlow, Direction, FlowQueue, KnownQueue, Needs, ThisMachine, here};
use isolane_wire::level::Level;
use serde::Serialize;

use super::failure::{failure, left};
use super::{StateArguments, only_interface, place_of, served_by, taken, unanswered};
use crate::commands::participant::Until;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{count_of, joined, print_json_or, tell};
use crate::settings::Settings;
use crate::stop;
use crate::values::{Destination, level, seconds};

/// Default number of participants whose suggested ports are tried. A participant has one port for each level.
const PLACES: u16 = 16;

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// Send answers with SO_PRIORITY and DSCP of this level, 0 to 7
    #[arg(long, value_name = "0..7", value_parser = level, default_value = "7")]
    level: Level,
    /// Use [host.NAME] of the description for this machine [default: the entry of its host name, else the only entry]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Answer at these UDP ports, separated by commas [default: those of the described host's participants, else 16
    /// ports, 8 apart: 7000 + level and so on]
    #[arg(long, value_name = "LIST", value_parser = clap::value_parser!(u16).range(1..))]
    ports: Vec<u16>,
    /// Answer at the ports of `tune learn` instead
    #[arg(long, conflicts_with = "ports")]
    learn: bool,
    /// Answer for this many seconds
    #[arg(long, value_name = "N", value_parser = seconds(), default_value = "60")]
    seconds: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct Ports {
    /// IPv4 address of the other host, where `tune answer` runs
    #[arg(value_name = "ADDRESS")]
    peer: Ipv4Addr,
    /// Send questions with SO_PRIORITY and DSCP of this level, 0 to 7
    #[arg(long, value_name = "0..7", value_parser = level, default_value = "7")]
    level: Level,
    /// Try these UDP ports of this host, separated by commas [default: 16 ports, 8 apart: 7000 + level and so on, at
    /// level 7 from 7007 to 7127]
    #[arg(long, value_name = "LIST", value_parser = clap::value_parser!(u16).range(1..))]
    ports: Vec<u16>,
    /// Try these UDP ports of the other host, where `tune answer` must use them [default: 16 ports, as above]
    #[arg(long, value_name = "LIST", value_parser = clap::value_parser!(u16).range(1..))]
    peer_ports: Vec<u16>,
    /// Require that answers arrive on this receive queue of this host [default: on any single queue]
    #[arg(long, value_name = "N")]
    queue: Option<u32>,
    /// Require that questions arrive on this receive queue of the other host [default: on any single queue]
    #[arg(long, value_name = "N")]
    peer_queue: Option<u32>,
    /// Try each pair of ports this many times, 1 to 10000
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=10_000),
        default_value = "3"
    )]
    times: u32,
    /// Write the receive queues of each pair as JSON, for `tune plan --receive-queues`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct Learn {
    /// IPv4 address of the other host, where `tune answer --learn` runs
    #[arg(value_name = "ADDRESS")]
    peer: Ipv4Addr,
    /// Use [host.NAME] of the description for this machine [default: the entry of its host name, else the only entry]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Send questions with SO_PRIORITY and DSCP of this level, 0 to 7
    #[arg(long, value_name = "0..7", value_parser = level, default_value = "7")]
    level: Level,
    #[command(flatten)]
    state: StateArguments,
    /// Write the RSS table entry of each described flow as JSON, for `tune plan --receive-queues`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

/// Ports of a level, one for each of [`PLACES`] participants with suggested ports.
fn places(level: Level) -> Vec<u16> {
    let first = SUGGESTED_PORTS.start + u16::from(level.get());
    (0..PLACES).map(|place| first + 8 * place).collect()
}

/// Returns the given ports. If none are given, returns the default ports of the level, and records them as setting
/// `name`.
fn ports_or_places(name: &str, given: &[u16], level: Level, settings: &mut Settings) -> Vec<u16> {
    if !given.is_empty() {
        return given.to_vec();
    }
    let ports = places(level);
    settings.set(name, joined(&ports, ","), &Source::Default);
    ports
}

/// JSON form of the measured port pairs (`--json`).
#[derive(Serialize)]
struct PortsReport<'a> {
    schema: &'static str,
    interface: &'a str,
    level: u8,
    peer: Ipv4Addr,
    /// Boot id of this machine. The results hold until this machine or the peer (`peer_boot`) is rebooted.
    boot_id: &'a str,
    peer_boot: Option<BootMark>,
    queue: Option<u32>,
    peer_queue: Option<u32>,
    pairs: &'a [Pair],
    /// Ports of the pairs that `Ports::fits` accepts.
    matching_pairs: Vec<(u16, u16)>,
    /// Flows whose datagrams all arrived on a single known queue, for `tune plan --receive-queues`. Port pairs with
    /// lost datagrams have no flows here.
    flows: Vec<FlowQueue>,
}

impl Ports {
    /// Measures the pairs of ports. The exit code is 1 if queues were requested and no pair fits.
    pub(super) fn run(self, mut settings: Settings) -> Result<ExitCode, Failure> {
        let own = ports_or_places("ports", &self.ports, self.level, &mut settings);
        let others = ports_or_places("peer_ports", &self.peer_ports, self.level, &mut settings);
        settings.begin()?;
        let interface = only_interface(&settings)?;
        let (address, queues) = place_of(interface)?;
        let question = ProbeParameters {
            address,
            peer: self.peer,
            pairs: all_port_pairs(&own, &others),
            level: self.level,
            times: self.times,
            // A random number: the standard library's hashers start with a random key.
            run: RandomState::new().hash_one(std::process::id()),
        };
        let until = Until::new(None)?;
        let landings = measure_receive_queues(&question, queues, |_| !until.interrupted())
            .map_err(|error| {
                let remedy =
                    "run `isolane tune answer -i NAME` there, with the same --level and ports";
                unanswered(self.peer, error, remedy)
            })?;
        let pairs = landings.pairs.iter();
        let fitting: Vec<&Pair> = pairs.filter(|pair| self.fits(pair)).collect();
        let report = PortsReport {
            schema: "isolane/ports/2",
            interface,
            level: self.level.get(),
            peer: self.peer,
            boot_id: &here().boot_id,
            peer_boot: landings.peer_boot,
            queue: self.queue,
            peer_queue: self.peer_queue,
            pairs: &landings.pairs,
            matching_pairs: fitting
                .iter()
                .map(|pair| (pair.port, pair.peer_port))
                .collect(),
            flows: landings.flows(address, self.peer),
        };
        print_json_or(&report, self.json.as_ref(), |_| {
            self.text(&landings, &fitting)
        })?;
        let requires_queue = self.queue.is_some() || self.peer_queue.is_some();
        Ok(match () {
            () if until.interrupted() => {
                tell("interrupted: not all pairs were tried");
                ExitCode::Interrupted
            }
            () if requires_queue && fitting.is_empty() => ExitCode::AnswerIsNo,
            () => ExitCode::Done,
        })
    }

    /// Returns whether all datagrams of a pair arrived on a single known queue in each direction. If a queue was
    /// requested, they must have arrived on that queue.
    fn fits(&self, pair: &Pair) -> bool {
        let is = |landing: &QueueCounts, wanted: Option<u32>| {
            let only = landing.single_queue();
            only.is_some() && (wanted.is_none() || only == wanted)
        };
        pair.lost == 0 && is(&pair.at_peer, self.peer_queue) && is(&pair.at_host, self.queue)
    }

    fn text(&self, landings: &ReceiveQueueReport, fitting: &[&Pair]) -> String {
        // Writing to a string cannot fail.
        let mut text = String::from("  port  peer port  queue there  queue here  lost\n");
        let queues = |pair: &Pair| (landed(&pair.at_peer), landed(&pair.at_host), pair.lost);
        let are_alike = landings
            .pairs
            .iter()
            .all(|pair| queues(pair) == queues(&landings.pairs[0]));
        let shown = if are_alike { 1 } else { landings.pairs.len() };
        for pair in landings.pairs.iter().take(shown) {
            let mark = if self.fits(pair) { "*" } else { " " };
            let _ = writeln!(
                text,
                "{mark}{:>5} {:>10} {:>12} {:>11} {:>5}",
                pair.port,
                pair.peer_port,
                landed(&pair.at_peer),
                landed(&pair.at_host),
                pair.lost
            );
        }
        if landings.pairs.len() > shown {
            let others = landings.pairs.len() - shown;
            let _ = writeln!(text, " the {others} other pairs have the same queues");
        }
        let wanted = |name: &str, queue: Option<u32>| match queue {
            Some(queue) => format!("queue {queue} {name}"),
            None => format!("one queue {name}"),
        };
        let _ = writeln!(
            text,
            "\n* pairs of ports whose datagrams all arrive on {} and {}: {} of {}",
            wanted("there", self.peer_queue),
            wanted("here", self.queue),
            fitting.len(),
            landings.pairs.len()
        );
        if let Some(pair) = fitting.first() {
            let base = |port: u16| port.checked_sub(u16::from(self.level.get()));
            if let (Some(own), Some(peer)) = (base(pair.port), base(pair.peer_port)) {
                let _ = writeln!(
                    text,
                    "describe the participant here with `port = {own}` and its peer with `port = {peer}`: their level \
                     {} then uses the first such pair",
                    self.level.get()
                );
            }
        }
        text
    }
}

/// Receive queue as text: `1`. If there are several, each is followed by its number of datagrams: `0:2 1:1`.
pub(super) fn landed(landing: &QueueCounts) -> String {
    if let Some(only) = landing.single_queue() {
        return only.to_string();
    }
    let mut parts: Vec<String> = landing
        .by_queue
        .iter()
        .map(|(queue, count)| format!("{queue}:{count}"))
        .collect();
    if landing.unknown > 0 {
        parts.push(format!("?:{}", landing.unknown));
    }
    match parts.is_empty() {
        true => String::from("-"),
        false => parts.join(" "),
    }
}

/// JSON form of the learnt table entries (`--json`).
#[derive(Serialize)]
struct LearnReport<'a> {
    schema: &'static str,
    interface: &'a str,
    peer: Ipv4Addr,
    boot_id: &'a str,
    flows: Vec<FlowQueue>,
}

impl Learn {
    pub(super) fn run(self, settings: &Settings) -> Result<ExitCode, Failure> {
        settings.begin()?;
        if settings.system.is_none() {
            return Err(Failure::wrong_usage(
                "learning needs the described flows",
                "neither --config nor ISOLANE_CONFIG names a description, and there is no isolane.toml here",
            )
            .with_remedy("name a description with --config FILE; it names the participants and their ports"));
        }
        let interface = only_interface(settings)?;
        let (address, queues) = place_of(interface)?;
        let here = here();
        let needs = settings.needs(self.host.as_deref(), &here.machine.hostname)?;
        let flows = flows_from(&needs, self.peer)?;
        let lesson = LearnParameters {
            // The RSS indirection table belongs to the device, not to a VLAN interface.
            interface: served_by(interface)?.1.name,
            address,
            queues,
            peer: self.peer,
            level: self.level,
            // A random number: the standard library's hashers start with a random key.
            run: RandomState::new().hash_one(std::process::id()),
        };
        let stopped = stop::on_signals_only()?;
        let learner = learn(
            &mut ThisMachine::new(),
            (&here, &self.state.state),
            &lesson,
            &|| stopped.load(Ordering::Relaxed),
            &mut |round, of| tell(format!("round {round} of {of}")),
        )
        .map_err(|error| failed(interface, self.peer, error))?;
        let placed = flows.iter().filter_map(|flow| {
            let entry = learner.entry_of(flow.tuple)?;
            let queue = KnownQueue::Computed { entry };
            Some(FlowQueue {
                tuple: flow.tuple,
                queue,
            })
        });
        let report = LearnReport {
            schema: "isolane/ports/2",
            interface,
            peer: self.peer,
            boot_id: &here.boot_id,
            flows: placed.collect(),
        };
        print_json_or(&report, self.json.as_ref(), |report| {
            text(&flows, &report.flows)
        })
    }
}

/// Described flows from the peer to this host.
fn flows_from(needs: &Needs, peer: Ipv4Addr) -> Result<Vec<&DescribedFlow>, Failure> {
    let flows = needs.flows.iter();
    let flows: Vec<&DescribedFlow> = flows
        .filter(|flow| flow.direction == Direction::Receive && flow.tuple.source == peer)
        .collect();
    if !flows.is_empty() {
        return Ok(flows);
    }
    let host = needs.host.as_deref();
    Err(Failure::wrong_usage(
        format!("the description has no flow from {peer} to this host"),
        match host {
            Some(host) => format!(
                "this host is {host}; the addresses of its peers are in their [participant.NAME]"
            ),
            None => format!(
                "it is unknown which of the described hosts this machine is: {}",
                needs.hosts.join(", ")
            ),
        },
    )
    .with_remedy(
        "describe the participants of both ends, with their ports; name the host with --host NAME",
    ))
}

fn text(flows: &[&DescribedFlow], placed: &[FlowQueue]) -> String {
    // Writing to a string cannot fail.
    let mut text =
        String::from("level  from                  to                    entry  topics\n");
    for flow in flows {
        let tuple = flow.tuple;
        let entry = placed.iter().find_map(|known| match known.queue {
            KnownQueue::Computed { entry } if known.tuple == tuple => Some(entry.to_string()),
            _ => None,
        });
        let _ = writeln!(
            text,
            "{:>5}  {:<20}  {:<20}  {:>5}  {}",
            flow.level,
            format!("{}:{}", tuple.source, tuple.source_port),
            format!("{}:{}", tuple.destination, tuple.destination_port),
            entry.as_deref().unwrap_or("-"),
            flow.topics.join(", ")
        );
    }
    let _ = writeln!(
        text,
        "\n{} learnt, valid until the next boot, which gives the device another key",
        count_of(placed.len() as u64, "flow")
    );
    text
}

fn failed(interface: &str, peer: Ipv4Addr, error: LearnError) -> Failure {
    let what = format!("the hash of {interface} was not learnt");
    let remedy = "run `isolane tune answer -i NAME --learn` there, with the same --level";
    match error {
        LearnError::Apply(error) => failure(&what, &error),
        LearnError::Probe(error) => unanswered(peer, error, remedy),
        LearnError::Unrestored(settings) => Failure::forbidden(
            format!("{what}, and not all settings could be restored"),
            left(&settings).trim_start(),
        )
        .with_remedy("isolane tune rollback tries again; the journal is kept"),
        error @ LearnError::Unfinished => {
            Failure::new(ExitCode::AnswerIsNo, what, error.to_string())
                .with_remedy("isolane tune rollback; then plan, apply and learn again")
        }
        LearnError::Stopped => {
            Failure::new(ExitCode::Interrupted, what, "it was stopped on request; all settings were restored")
        }
        error @ (LearnError::Table(_) | LearnError::Unsuitable { .. }) => {
            Failure::forbidden(what, error).with_remedy(
                "choose ports whose datagrams arrive on the right queue instead: isolane tune ports",
            )
        }
        error @ LearnError::Contradiction(_) => {
            Failure::new(ExitCode::AnswerIsNo, what, error.to_string()).with_remedy(
                "stop other traffic to these ports and try again, or measure without learning: isolane tune ports",
            )
        }
    }
}

impl Answer {
    pub(super) fn run(self, mut settings: Settings) -> Result<ExitCode, Failure> {
        let ports = self.ports(&settings);
        settings.set("ports", joined(&ports.value, ","), &ports.source);
        settings.begin()?;
        let (address, queues) = place_of(only_interface(&settings)?)?;
        let answerer = ProbeServer::open(queues, address, &ports.value, self.level)
            .map_err(|(port, error)| taken(port, &error))?;
        let until = Until::new(Some(self.seconds))?;
        tell(format!(
            "answering at {address}, ports {}; on the other host: isolane tune ports {address} -i NAME",
            joined(&ports.value, ",")
        ));
        let answered = answerer.serve(self.seconds, until.flag());
        let answered = answered.map_err(|error| {
            let what = "answering ended early";
            Failure::forbidden(what, error)
        })?;
        tell(format!(
            "{} answered; {} ignored as other traffic, {} dropped by the rate limit",
            count_of(answered.questions, "question"),
            answered.foreign,
            answered.too_fast
        ));
        Ok(match until.interrupted() {
            true => ExitCode::Interrupted,
            false => ExitCode::Done,
        })
    }

    fn ports(&self, settings: &Settings) -> Sourced<Vec<u16>> {
        if self.learn {
            let [probed, _] = probed_ports();
            return Sourced::new(probed, Source::CommandLine("--learn"));
        }
        if !self.ports.is_empty() {
            return Sourced::new(self.ports.clone(), Source::CommandLine("--ports"));
        }
        let described = settings.system.as_ref().map(|system| {
            let hostname = here().machine.hostname;
            let needs = Needs::of_system(system, self.host.as_deref(), &hostname);
            let places = needs.unwrap_or_default().participants;
            places.into_iter().flat_map(|place| place.ports).collect()
        });
        match described.filter(|ports: &Vec<u16>| !ports.is_empty()) {
            Some(ports) => Sourced::new(ports, Source::DefaultFor("the described host")),
            None => Sourced::default_value(places(self.level)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pair of ports whose datagrams all arrived on these queues.
    fn pair(port: u16, there: u32, here: u32) -> Pair {
        let counts = |queue| QueueCounts {
            by_queue: [(queue, 3)].into(),
            unknown: 0,
        };
        Pair {
            port,
            peer_port: port + 1_000,
            at_peer: counts(there),
            at_host: counts(here),
            lost: 0,
        }
    }

    /// Text of `isolane tune ports` for these pairs, if queue 2 of this host is requested.
    fn text(pairs: Vec<Pair>) -> String {
        let ports = Ports {
            peer: Ipv4Addr::new(10, 9, 0, 2),
            level: Level::MAX,
            ports: Vec::new(),
            peer_ports: Vec::new(),
            queue: Some(2),
            peer_queue: None,
            times: 3,
            json: None,
        };
        let fitting: Vec<&Pair> = pairs.iter().filter(|pair| ports.fits(pair)).collect();
        let report = ReceiveQueueReport {
            pairs: pairs.clone(),
            peer_boot: None,
        };
        ports.text(&report, &fitting)
    }

    #[test]
    fn pairs_of_the_same_queues_are_one_row_and_a_line_with_the_number_of_the_others() {
        let alike = vec![pair(7_007, 1, 2), pair(7_015, 1, 2), pair(7_023, 1, 2)];
        let expected = "  port  peer port  queue there  queue here  lost\n\
                        * 7007       8007            1           2     0\n \
                        the 2 other pairs have the same queues\n\
                        \n\
                        * pairs of ports whose datagrams all arrive on one queue there and queue 2 here: 3 of 3\n\
                        describe the participant here with `port = 7000` and its peer with `port = 8000`: their level 7 \
                        then uses the first such pair\n";
        assert_eq!(text(alike), expected);

        let one = text(vec![pair(7_007, 1, 2)]);
        assert!(one.contains("7007") && !one.contains("other"), "{one}");
    }

    #[test]
    fn pairs_that_differ_in_a_queue_or_in_losses_have_a_row_each() {
        let lossy = Pair {
            lost: 1,
            ..pair(7_023, 1, 2)
        };
        for other in [pair(7_023, 1, 3), pair(7_023, 0, 2), lossy] {
            let differ = vec![pair(7_007, 1, 2), pair(7_015, 1, 2), other.clone()];
            let text = text(differ);
            let rows: Vec<&str> = text.lines().skip(1).take(3).collect();
            let fits = other.lost == 0 && other.at_host.single_queue() == Some(2);
            for (row, (port, mark)) in rows.iter().zip([
                (7_007, "*"),
                (7_015, "*"),
                (7_023, if fits { "*" } else { " " }),
            ]) {
                assert!(row.starts_with(&format!("{mark} {port} ")), "{text}");
            }
            assert!(!text.contains("other pairs"), "{text}");
        }
    }
}
