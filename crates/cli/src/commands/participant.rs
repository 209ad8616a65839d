//! Common part of the commands with a participant: creates the participant from the settings or the description, runs
//! it until the command ends, and reports problems.

use std::cell::RefCell;
use std::net::SocketAddrV4;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use isolane::limits::PARTICIPANTS_PER_PEER;
use isolane::observe::{Counts, protocol_counts};
use isolane::{BuildError, Interfaces, Participant};
use isolane_model::{Domain, Host, HostProtection, Source, Sourced, System};

use super::endpoint::EndpointSettings;
use super::why::FullTables;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::{SEEN_PARTICIPANTS, remedy_of_full_tables};
use crate::output::{joined, tell};
use crate::settings::{LaneSettings, NetworkSettings};
use crate::stop;
use crate::values::Peer;

/// Interval at which the loop checks whether to stop. A signal interrupts the loop's sleep. The interval bounds the
/// delay of a signal that arrives just before the sleep.
const SLICE: Duration = Duration::from_millis(100);

/// Creates the participant of a command that only observes, and reports the participant's notes.
pub(super) fn build<'a>(
    name: &str,
    network: &'a NetworkSettings,
    lane: &'a LaneSettings,
) -> Result<(Participant, Notes<'a>), Failure> {
    build_with(name, network, &observing(lane), None, &lane.peers).map_err(failure)
}

/// Creates the participant of `pub` or `sub`, which may be a participant of the description.
pub(super) fn build_endpoint<'a>(
    name: &str,
    settings: &'a EndpointSettings,
) -> Result<(Participant, Notes<'a>), Failure> {
    let (network, lane) = (&settings.network, &settings.lane);
    let described = settings.described.as_ref();
    build_with(name, network, &lane.host, described, &lane.peers).map_err(failure)
}

/// Host entry for a command that only observes. Such a command does not use the host's core, priority, locked memory or
/// receive budgets. By default its tables have room for all participants.
pub(super) fn observing(lane: &LaneSettings) -> Host {
    let mut host = lane.host.clone();
    (host.core.value, host.priority.value) = (None, None);
    host.lock_memory.value = false;
    host.protect = HostProtection::default();
    let most = NonZeroU32::new(SEEN_PARTICIPANTS);
    host.max_participants.value = host.max_participants.value.or(most);
    host
}

/// Creates a participant. The caller handles the library's error.
pub(super) fn build_with<'a>(
    name: &str,
    network: &'a NetworkSettings,
    host: &Host,
    described: Option<&DescribedAs>,
    peers: &'a [Peer],
) -> Result<(Participant, Notes<'a>), BuildError> {
    let builder = Participant::builder(network.domain.value.get());
    let builder = builder.name(name).observable(true).host(host);
    let mut builder = builder.interfaces(network.interfaces.value.clone());
    for peer in peers {
        builder = match peer.port {
            Some(port) => builder.peer_at(SocketAddrV4::new(peer.address, port)),
            None => builder.peer(peer.address),
        };
    }
    if let Some(DescribedAs { name, system }) = described
        && let Some(own) = system.participant(&name.value)
    {
        builder = builder.described_in(system, own);
    }
    let participant = builder.build()?;
    let mut notes = Notes {
        network,
        peers,
        printed: Vec::new(),
    };
    notes.tell(&participant);
    Ok((participant, notes))
}

/// Printer of a participant's notes on missing capabilities. Each note is printed once.
pub(super) struct Notes<'a> {
    network: &'a NetworkSettings,
    peers: &'a [Peer],
    printed: Vec<String>,
}

impl Notes<'_> {
    /// Prints the notes that were not printed yet. Creating an endpoint may add notes.
    pub(super) fn tell(&mut self, participant: &Participant) {
        for note in participant.warnings() {
            let is_news = !self.printed.contains(&note);
            if is_news && (self.network.verbosity > 0 || !is_as_asked(&note, self.peers)) {
                // Notes of the library name its function; the user needs the option.
                let said = note.replace("Builder::peer", "--peer ADDRESS");
                tell(format!("note: {said}"));
            }
            self.printed.push(note);
        }
    }
}

/// Returns whether a note is redundant. The loopback interface usually has no multicast, and `--peer` makes multicast
/// unnecessary.
fn is_as_asked(note: &str, peers: &[Peer]) -> bool {
    !peers.is_empty() && note.starts_with("no multicast on interface lo:")
}

/// Counts of discovery data that full tables refused, and the remedy; `None` if nothing was refused.
pub(super) fn full_tables(participant: &Participant, lane: &LaneSettings) -> Option<FullTables> {
    let refused = refused(&protocol_counts(&participant.counters()))?;
    let most = lane.host.max_participants.value;
    let remedy = remedy_of_full_tables(most.map_or(SEEN_PARTICIPANTS, NonZeroU32::get));
    Some(FullTables { refused, remedy })
}

/// Counts of discovery data that full tables refused, from a participant's counters; `None` if nothing was refused.
pub(super) fn refused(counters: &Counts) -> Option<String> {
    let counts = [
        ("participants_refused", "announcements of participants"),
        (
            "participants_displaced",
            "participants that newer participants displaced",
        ),
        ("endpoints_refused", "endpoints"),
        (
            "shares_exceeded",
            "endpoints beyond their participant's share",
        ),
    ];
    let counts = counts.map(|(name, what)| (counters.get(name).copied().unwrap_or(0), what));
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let said = joined(counts.map(|(count, what)| format!("{count} {what}")), ", ");
    (!said.is_empty()).then_some(said)
}

/// Sentence on the participants that `--peer` without a port does not reach; `None` if every peer has a port.
pub(super) fn unreached_peers(peers: &[Peer]) -> Option<String> {
    peers.iter().any(|peer| peer.port.is_none()).then(|| {
        format!(
            "--peer ADDRESS asks only the ports of participants 1 to {PARTICIPANTS_PER_PEER} of a host. Reach other \
             participants with --peer ADDRESS:PORT."
        )
    })
}

/// Converts a library error to a failure.
pub(super) fn failure(error: BuildError) -> Failure {
    let code = match error.is_wrong_setting() {
        true => ExitCode::WrongUsage,
        false => ExitCode::MachineForbids,
    };
    Failure::new(
        code,
        "the participant could not be created",
        error.to_string(),
    )
}

/// End of a command: after a signal, or when its time is over.
pub(super) struct Until {
    interrupted: Arc<AtomicBool>,
    end: Option<Instant>,
    /// Interfaces in use, if changes of their state are reported.
    interfaces: Option<RefCell<InterfaceWatch>>,
}

impl Until {
    pub(super) fn new(run_for: Option<Duration>) -> Result<Self, Failure> {
        let interrupted = stop::on_signals()?;
        Ok(Self {
            interrupted,
            end: run_for.map(|time| Instant::now() + time),
            interfaces: None,
        })
    }

    /// Enables reports of interfaces that go down or come back.
    pub(super) fn with_network(mut self, network: &NetworkSettings) -> Self {
        self.interfaces = Some(RefCell::new(InterfaceWatch::new(network)));
        self
    }

    /// Flag that a signal sets, for loops outside this module.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.interrupted
    }

    pub(super) fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Returns whether to stop now.
    pub(super) fn over(&self) -> bool {
        self.interrupted() || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Time until the end of the command, at most `at_most`.
    pub(super) fn left(&self, at_most: Duration) -> Duration {
        self.end.map_or(at_most, |end| {
            end.saturating_duration_since(Instant::now()).min(at_most)
        })
    }

    /// Runs the participant's loop until `done` returns true, a signal arrives, or the time is over. Returns whether
    /// `done` returned true.
    pub(super) fn run(&self, participant: &Participant, mut done: impl FnMut() -> bool) -> bool {
        loop {
            if done() {
                return true;
            }
            if self.over() {
                return false;
            }
            if let Some(interfaces) = &self.interfaces {
                interfaces.borrow_mut().look();
            }
            participant.run_until(self.left(SLICE), || done() || self.interrupted());
        }
    }
}

/// Interval at which the states of interfaces are read. A person accepts this delay, and the cost is low.
const WATCH_PERIOD: Duration = Duration::from_secs(1);

/// Interfaces in use with their states. Sockets do not report the loss of an interface, so the command does. It then
/// continues, because the interface may come back.
struct InterfaceWatch {
    interfaces: Vec<(String, InterfaceState)>,
    looked: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InterfaceState {
    Works,
    Down,
    Gone,
}

impl InterfaceState {
    fn of(name: &str, present: &[isolane_tune::Interface]) -> Self {
        match present.iter().find(|known| known.name == name) {
            None => Self::Gone,
            Some(interface) if interface.is_up => Self::Works,
            Some(_) => Self::Down,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Works => "up again",
            Self::Down => "down",
            Self::Gone => "gone",
        }
    }
}

impl InterfaceWatch {
    /// Watches the named interfaces, or all interfaces except loopback that are up now and have an address.
    fn new(network: &NetworkSettings) -> Self {
        let names = match &network.interfaces.value {
            Interfaces::Named(names) => names.clone(),
            _ => isolane_tune::interfaces()
                .unwrap_or_default()
                .into_iter()
                .filter(|it| it.is_up && !it.is_loopback && !it.addresses.is_empty())
                .map(|interface| interface.name)
                .collect(),
        };
        Self {
            interfaces: names
                .into_iter()
                .map(|name| (name, InterfaceState::Works))
                .collect(),
            looked: Instant::now(),
        }
    }

    /// Reads the states of the interfaces when `WATCH_PERIOD` has passed, and reports changes.
    fn look(&mut self) {
        if self.looked.elapsed() < WATCH_PERIOD || self.interfaces.is_empty() {
            return;
        }
        self.looked = Instant::now();
        // Without netlink the state is unknown.
        if let Ok(present) = isolane_tune::interfaces() {
            self.compare(&present).into_iter().for_each(tell);
        }
    }

    /// Updates the states, and returns sentences on the changes.
    fn compare(&mut self, present: &[isolane_tune::Interface]) -> Vec<String> {
        let mut changed = Vec::new();
        for (name, state) in &mut self.interfaces {
            let now = InterfaceState::of(name, present);
            if now != *state {
                *state = now;
                changed.push(format!("interface {name} is {}", now.word()));
            }
        }
        let mut all = self.interfaces.iter();
        if !changed.is_empty() && all.all(|(_, state)| *state != InterfaceState::Works) {
            changed.push(String::from(
                "waiting: nothing can be sent or received until an interface is up again (`ip link` lists the \
                 interfaces, `ip link set NAME up` brings one up)",
            ));
        }
        changed
    }
}

/// Name of the described participant that the command runs (`--participant`), with the whole description.
#[derive(Clone, Debug)]
pub(crate) struct DescribedAs {
    pub(crate) name: Sourced<String>,
    pub(crate) system: System,
}

impl DescribedAs {
    /// Finds the described participant of this name; `None` without a name.
    pub(super) fn new(
        name: Option<String>,
        system: Option<&System>,
        domain: &Sourced<Domain>,
    ) -> Result<Option<Self>, Failure> {
        let Some(name) = name else {
            return Ok(None);
        };
        let Some(system) = system else {
            return Err(Failure::wrong_usage(
                "--participant names a participant of a description, but there is no description",
                "neither --config nor ISOLANE_CONFIG names a description",
            )
            .with_remedy("name a description with --config FILE"));
        };
        if system.participant(&name).is_none() {
            let all = system.participants().iter();
            let names: Vec<&str> = all.map(|it| it.name.value.as_str()).collect();
            let why = match names.as_slice() {
                [] => String::from("the description has no participants: [participant.NAME]"),
                names => format!("its participants are {}", names.join(", ")),
            };
            let name = name.escape_debug();
            return Err(Failure::wrong_usage(
                format!("the description has no participant \"{name}\""),
                why,
            )
            .with_remedy("name one of its participants, or describe this one: isolane config --example shows how"));
        }
        check_ports(system, domain)?;
        Ok(Some(Self {
            name: Sourced::new(name, Source::CommandLine("--participant")),
            system: system.clone(),
        }))
    }

    pub(super) fn host(&self) -> Option<String> {
        let participant = self.system.participant(&self.name.value)?;
        Some(participant.host.value.clone())
    }
}

/// Checks that no described participant has a port that RTPS assigns in this domain. The description was checked only
/// with its own domain, and `--domain` may name another.
pub(super) fn check_ports(system: &System, domain: &Sourced<Domain>) -> Result<(), Failure> {
    let taken = domain.value.ports();
    let mut participants = system.participants().iter();
    let Some(wrong) = participants.find(|participant| {
        let ports = participant.ports();
        u32::from(ports.start) < taken.end && taken.start < u32::from(ports.end)
    }) else {
        return Ok(());
    };
    let (name, ports) = (&wrong.name.value, wrong.ports());
    Err(Failure::wrong_usage(
        format!("the described participants cannot be in domain {} ({})", domain.value, domain.source),
        format!(
            "participant \"{name}\" ({}) has ports {} to {}, but RTPS assigns ports {} to {} to participants of that \
             domain",
            wrong.port.source,
            ports.start,
            ports.end - 1,
            taken.start,
            taken.end - 1
        ),
    )
    .with_remedy(
        "leave that domain out, so that the domain of the description applies; or give the described participants \
         ports below 7400, which belong to no domain",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_from_which_a_participant_was_displaced_is_not_complete() {
        assert_eq!(refused(&Counts::new()), None);
        let counters = [("participants_displaced", 3), ("endpoints_refused", 2)];
        let counters = counters
            .map(|(name, count)| (name.to_owned(), count))
            .into();
        assert_eq!(
            refused(&counters).as_deref(),
            Some("3 participants that newer participants displaced, 2 endpoints")
        );
    }

    fn interface(name: &str, is_up: bool) -> isolane_tune::Interface {
        isolane_tune::Interface {
            name: name.into(),
            is_up,
            ..isolane_tune::Interface::default()
        }
    }

    #[test]
    fn interfaces_that_go_and_come_are_reported_once() {
        let works = |name: &str| (String::from(name), InterfaceState::Works);
        let mut watch = InterfaceWatch {
            interfaces: vec![works("a"), works("b")],
            looked: Instant::now(),
        };
        let both = [interface("a", true), interface("b", true)];
        assert_eq!(watch.compare(&both), [""; 0]);
        assert_eq!(watch.compare(&both[..1]), ["interface b is gone"]);
        let down = [interface("a", false)];
        let said = watch.compare(&down);
        assert_eq!(said[0], "interface a is down");
        assert!(
            said[1].contains("until an interface is up again"),
            "{said:?}"
        );
        assert_eq!(watch.compare(&down), [""; 0]);
        assert_eq!(watch.compare(&both[..1]), ["interface a is up again"]);
    }
}
