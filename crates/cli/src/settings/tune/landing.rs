//! Settings of `tune answer`, `tune ports` and `tune learn`: the interface and the ports.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use isolane_model::limits::SUGGESTED_PORTS;
use isolane_model::{Source, Sourced, System, format_duration};
use isolane_tune::steer::probed_ports;
use isolane_tune::{Needs, here};
use isolane_wire::level::Level;

use super::TuneState;
use crate::arguments::{AnswerArguments, LearnArguments, PortsArguments};
use crate::failure::Failure;
use crate::settings::{Interfaces, NetworkSettings, list_or_default, or_default, seconds};
use crate::values::Destination;

/// Default number of participant slots to try; each has a port per level.
const PLACES: u16 = 16;

#[derive(Debug)]
pub(crate) struct AnswerSettings {
    pub(crate) interface: String,
    pub(crate) level: Sourced<Level>,
    pub(crate) ports: Sourced<Vec<u16>>,
    pub(crate) run_for: Sourced<Duration>,
}

#[derive(Debug)]
pub(crate) struct PortsSettings {
    pub(crate) interface: String,
    pub(crate) peer: Ipv4Addr,
    pub(crate) level: Sourced<Level>,
    pub(crate) ports: Sourced<Vec<u16>>,
    pub(crate) peer_ports: Sourced<Vec<u16>>,
    /// Required queue; `None`: any.
    pub(crate) queue: Option<u32>,
    pub(crate) peer_queue: Option<u32>,
    pub(crate) times: Sourced<u32>,
    pub(crate) json: Option<Destination>,
}

#[derive(Debug)]
pub(crate) struct LearnSettings {
    pub(crate) interface: String,
    pub(crate) peer: Ipv4Addr,
    pub(crate) level: Sourced<Level>,
    /// Description with the flows to learn.
    pub(crate) system: System,
    /// Host entry of this machine in the description.
    pub(crate) host: Option<String>,
    pub(crate) state: TuneState,
    pub(crate) json: Option<Destination>,
}

impl AnswerSettings {
    pub(super) fn new(
        network: &NetworkSettings,
        arguments: AnswerArguments,
        description: Option<(System, Sourced<PathBuf>)>,
    ) -> Result<Self, Failure> {
        let level = or_default(arguments.level, "--level", Level::MAX);
        let [probed, _] = probed_ports();
        let described = description.map(|(system, path)| {
            let hostname = here().machine.hostname;
            let needs = Needs::of_system(&system, arguments.host.as_deref(), &hostname);
            let places = needs.unwrap_or_default().participants;
            let ports: Vec<u16> = places.into_iter().flat_map(|place| place.ports).collect();
            Sourced::new(ports, path.source)
        });
        let described = described.filter(|ports| !ports.value.is_empty());
        let ports = match (arguments.learn, described) {
            (true, _) => Sourced::new(probed, Source::CommandLine("--learn")),
            (false, Some(described)) if arguments.ports.is_empty() => described,
            _ => list_or_default(arguments.ports, "--ports", &places(level.value)),
        };
        Ok(Self {
            interface: interface(network)?,
            ports,
            level,
            run_for: or_default(arguments.seconds, "--seconds", 60).map(seconds),
        })
    }

    pub(super) fn describe(&self, line: &mut dyn FnMut(&str, String, &Source)) {
        let interface = self.interface.clone();
        line("interface", interface, &Source::CommandLine("--interface"));
        line(
            "level",
            self.level.value.get().to_string(),
            &self.level.source,
        );
        line("ports", listed(&self.ports.value), &self.ports.source);
        let run_for = format_duration(self.run_for.value);
        line("run_for", run_for, &self.run_for.source);
    }
}

impl PortsSettings {
    pub(super) fn new(
        network: &NetworkSettings,
        arguments: PortsArguments,
    ) -> Result<Self, Failure> {
        let level = or_default(arguments.level, "--level", Level::MAX);
        let usual = places(level.value);
        Ok(Self {
            interface: interface(network)?,
            peer: arguments.peer,
            ports: list_or_default(arguments.ports, "--ports", &usual),
            peer_ports: list_or_default(arguments.peer_ports, "--peer-ports", &usual),
            level,
            queue: arguments.queue,
            peer_queue: arguments.peer_queue,
            times: or_default(arguments.times, "--times", 3),
            json: arguments.json,
        })
    }

    pub(super) fn describe(&self, line: &mut dyn FnMut(&str, String, &Source)) {
        let interface = self.interface.clone();
        line("interface", interface, &Source::CommandLine("--interface"));
        let peer = self.peer.to_string();
        line("peer", peer, &Source::CommandLine("ADDRESS"));
        line(
            "level",
            self.level.value.get().to_string(),
            &self.level.source,
        );
        line("ports", listed(&self.ports.value), &self.ports.source);
        let peer_ports = listed(&self.peer_ports.value);
        line("peer_ports", peer_ports, &self.peer_ports.source);
        let times = self.times.value.to_string();
        line("times", times, &self.times.source);
    }
}

impl LearnSettings {
    pub(super) fn new(
        network: &NetworkSettings,
        arguments: LearnArguments,
        description: Option<(System, Sourced<PathBuf>)>,
    ) -> Result<Self, Failure> {
        let Some((system, _)) = description else {
            return Err(Failure::wrong_usage(
                "it is not clear of which flows the entries are to be learnt",
                "neither --config nor ISOLANE_CONFIG names a description, and there is no isolane.toml here",
            )
            .with_remedy("name a description with --config FILE; it says which participants have which ports"));
        };
        Ok(Self {
            interface: interface(network)?,
            peer: arguments.peer,
            level: or_default(arguments.level, "--level", Level::MAX),
            system,
            host: arguments.host,
            state: arguments.state.into(),
            json: arguments.json,
        })
    }

    pub(super) fn describe(&self, line: &mut dyn FnMut(&str, String, &Source)) {
        let interface = self.interface.clone();
        line("interface", interface, &Source::CommandLine("--interface"));
        let peer = self.peer.to_string();
        line("peer", peer, &Source::CommandLine("ADDRESS"));
        let level = self.level.value.get().to_string();
        line("level", level, &self.level.source);
        self.state.describe(line);
    }
}

fn listed(ports: &[u16]) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    ports.join(",")
}

/// Ports of a level for the first described participant slots.
fn places(level: Level) -> Vec<u16> {
    let first = SUGGESTED_PORTS.start + u16::from(level.get());
    (0..PLACES).map(|place| first + 8 * place).collect()
}

/// Returns the single interface, which is required because queues belong to an interface.
fn interface(network: &NetworkSettings) -> Result<String, Failure> {
    match &network.interfaces.value {
        Interfaces::Named(names) if names.len() == 1 => Ok(names.concat()),
        _ => Err(Failure::wrong_usage(
            "it is not clear which interface's queues are meant",
            "each interface has queues of its own",
        )
        .with_remedy("name one: --interface NAME")),
    }
}
