//! Common part of the commands with a participant: the participant from the settings, described ones, and the end of
//! the command.

use std::cell::RefCell;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use isolane::limits::PARTICIPANTS_PER_PEER;
use isolane::{
    Announces, BuildError, Builder, Counters, EndpointKind, Interfaces as Chosen, Participant, Qos,
    StaticDescription,
};
use isolane_model::{Domain, Durability, History, Reliability, Source, Sourced, System, Topic};

use super::endpoint::EndpointSettings;
use super::interface_watch::InterfaceWatch;
use super::lane;
use super::why::FullTables;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::{
    ENCAPSULATION_HEADER_BYTES, SEEN_PARTICIPANTS, USUAL_PARTICIPANTS, remedy_of_full_tables,
};
use crate::output::tell;
use crate::settings::{Interfaces, LaneSettings, NetworkSettings};
use crate::stop;
use crate::values::Peer;

/// Interval at which the loop checks for a stop. A signal interrupts its sleep, so the interval only bounds a signal
/// that arrives just before.
const SLICE: Duration = Duration::from_millis(100);

/// Creates the participant of an observing command, named after it, and reports its notes.
pub(super) fn build<'a>(
    name: &str,
    network: &'a NetworkSettings,
    lane: &LaneSettings,
    peers: &'a [Peer],
) -> Result<(Participant, Notes<'a>), Failure> {
    let most = SEEN_PARTICIPANTS;
    build_with(name, (network, lane, None), peers, most).map_err(failure)
}

/// Creates the participant of an endpoint, which may be a described one.
pub(super) fn build_endpoint<'a>(
    name: &str,
    settings: &'a EndpointSettings,
) -> Result<(Participant, Notes<'a>), Failure> {
    let of = (&settings.network, &settings.lane, Some(settings));
    build_with(name, of, &settings.peers, USUAL_PARTICIPANTS).map_err(failure)
}

/// Creates a participant for callers that handle errors themselves. `most` is the default limit of known participants.
pub(super) fn build_with<'a>(
    name: &str,
    (network, lane, endpoint): (
        &'a NetworkSettings,
        &LaneSettings,
        Option<&EndpointSettings>,
    ),
    peers: &'a [Peer],
    most: u32,
) -> Result<(Participant, Notes<'a>), BuildError> {
    let builder = Participant::builder(network.domain.value.get());
    let builder = builder.name(name).observable(true);
    let builder = builder.limits(lane::limits(lane, most));
    let mut builder: Builder = lane::with_datapath(builder, lane);
    if let Interfaces::Named(names) = &network.interfaces.value {
        builder = builder.interfaces(Chosen::Named(names.clone()));
    }
    for peer in peers {
        builder = match peer.port {
            Some(port) => builder.peer_at(SocketAddrV4::new(peer.address, port)),
            None => builder.peer(peer.address),
        };
    }
    let mut described = None;
    if let Some(endpoint) = endpoint {
        // Observing commands do not need the host's core.
        builder = lane::with_placement(builder, lane);
        described = endpoint.described.as_ref();
    }
    let participant = with_described(builder, described).build()?;
    let mut notes = Notes {
        network,
        peers,
        printed: Vec::new(),
    };
    notes.tell(&participant);
    Ok((participant, notes))
}

/// Notes of a participant on missing capabilities, each reported once.
pub(super) struct Notes<'a> {
    network: &'a NetworkSettings,
    peers: &'a [Peer],
    printed: Vec<String>,
}

impl Notes<'_> {
    /// Reports new notes; creating an endpoint may add some.
    pub(super) fn tell(&mut self, participant: &Participant) {
        for note in participant.warnings() {
            let is_news = !self.printed.contains(&note);
            if is_news && (self.network.verbosity > 0 || !is_as_asked(&note, self.peers)) {
                // The note names the library's function.
                let said = note.replace("Builder::peer", "--peer ADDRESS");
                tell(format!("note: {said}"));
            }
            self.printed.push(note);
        }
    }
}

/// Returns whether a note is redundant: `--peer` makes multicast unnecessary, and the loopback interface usually has no
/// multicast.
fn is_as_asked(note: &str, peers: &[Peer]) -> bool {
    !peers.is_empty() && note.starts_with("no multicast on interface lo:")
}

/// Discovery data that did not fit a full table; `None` if all fitted.
pub(super) fn full_tables(participant: &Participant, lane: &LaneSettings) -> Option<FullTables> {
    let refused = refused(&participant.counters())?;
    let participants = lane.max_participants.value.unwrap_or(SEEN_PARTICIPANTS);
    let remedy = remedy_of_full_tables(participants);
    Some(FullTables { refused, remedy })
}

fn refused(counters: &Counters) -> Option<String> {
    let counts = [
        (
            counters.participants_refused,
            "announcements of participants",
        ),
        (
            counters.participants_displaced,
            "participants that newer ones displaced",
        ),
        (counters.endpoints_refused, "endpoints"),
        (
            counters.shares_exceeded,
            "endpoints beyond their participant's share",
        ),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let said: Vec<String> = counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// Participants that `--peer` does not reach; `None` if every peer has a port.
pub(super) fn unasked(peers: &[Peer]) -> Option<String> {
    peers.iter().any(|peer| peer.port.is_none()).then(|| {
        format!(
            "--peer ADDRESS asks only the ports of participants 1 to {PARTICIPANTS_PER_PEER}. Reach others with --peer \
             ADDRESS:PORT."
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

/// End condition of a command: a signal, or the end of its time.
pub(super) struct Until {
    interrupted: Arc<AtomicBool>,
    end: Option<Instant>,
    /// Interfaces in use, whose state changes are reported.
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

    /// Flag set by a signal, for other loops.
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

    /// Remaining time, limited to `at_most`.
    pub(super) fn left(&self, at_most: Duration) -> Duration {
        self.end.map_or(at_most, |end| {
            end.saturating_duration_since(Instant::now()).min(at_most)
        })
    }

    /// Runs the loop until `done`, a signal, or the end of the time; returns whether it was `done`.
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

/// Participant of a description, with the whole description.
#[derive(Clone, Debug)]
pub(crate) struct DescribedAs {
    pub(crate) name: Sourced<String>,
    pub(crate) system: System,
}

impl DescribedAs {
    /// Participant with the given name; `None` without a name.
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
                "--participant names a participant of a description, and there is none",
                "neither --config nor ISOLANE_CONFIG names one",
            )
            .with_remedy("name a description with --config FILE"));
        };
        if system.participant(&name).is_none() {
            let all = system.participants().iter();
            let names: Vec<&str> = all.map(|it| it.name.value.as_str()).collect();
            let why = match names.as_slice() {
                [] => String::from("it describes none: [participant.NAME]"),
                names => format!("its participants are {}", names.join(", ")),
            };
            let name = name.escape_debug();
            return Err(Failure::wrong_usage(
                format!("the description has no participant \"{name}\""),
                why,
            )
            .with_remedy("name one of these, or describe it: isolane config --example shows how"));
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

/// Checks that no described participant has a port that RTPS assigns in the command's domain. The description was
/// checked for its own domain, and the command's may differ.
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
            "participant \"{name}\" ({}) has ports {} to {}, and RTPS assigns {} to {} to participants of that domain",
            wrong.port.source,
            ports.start,
            ports.end - 1,
            taken.start,
            taken.end - 1
        ),
    )
    .with_remedy(
        "leave that domain out, and the description's own applies; or give its participants ports below 7400, which no \
         domain has",
    ))
}

/// Configures a participant with its described identity and peers.
pub(super) fn with_described(builder: Builder, described: Option<&DescribedAs>) -> Builder {
    let Some(DescribedAs { name, system }) = described else {
        return builder;
    };
    system.participants().iter().fold(builder, |builder, one| {
        let is_own = one.name.value == name.value;
        let one = described_participant(one, system);
        match is_own {
            true => builder.described_as(one),
            false => builder.described_peer(one),
        }
    })
}

/// Described participant with the endpoints of its topics.
pub(super) fn described_participant(
    participant: &isolane_model::Participant,
    system: &System,
) -> StaticDescription {
    let at = SocketAddrV4::new(participant.address.value, participant.port.value);
    let announces = match participant.announces.value {
        isolane_model::Announces::All => Announces::All,
        isolane_model::Announces::Itself => Announces::Itself,
        isolane_model::Announces::Nothing => Announces::Nothing,
    };
    let mut described = StaticDescription::new(&participant.name.value, at).announces(announces);
    for (kind, names) in [
        (EndpointKind::Writer, &participant.writes.value),
        (EndpointKind::Reader, &participant.reads.value),
    ] {
        // The description contains every named topic.
        for topic in names.iter().filter_map(|name| system.topic(name)) {
            let of_type = (topic.type_name.value.as_str(), topic.keyed.value);
            described = described.endpoint(kind, &topic.name.value, of_type, &topic_qos(topic));
        }
    }
    described
}

/// QoS policies that the description gives to both ends of a topic.
fn topic_qos(topic: &Topic) -> Qos {
    let bounded = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    qos(
        topic.reliability.value,
        topic.durability.value,
        topic.history.value,
    )
    .level(topic.level.value)
    .max_samples(bounded(topic.max_samples.value.get()))
    .max_bytes(topic.max_bytes.value.get() as usize + ENCAPSULATION_HEADER_BYTES)
}

pub(super) fn qos(reliability: Reliability, durability: Durability, history: History) -> Qos {
    let mut qos = match reliability {
        Reliability::BestEffort => Qos::best_effort(),
        Reliability::Reliable => Qos::reliable(),
    };
    if durability == Durability::TransientLocal {
        qos = qos.transient_local();
    }
    match history {
        History::KeepAll => qos.keep_all(),
        History::KeepLast(depth) => qos.keep_last(u16::try_from(depth.get()).unwrap_or(u16::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_from_which_a_participant_was_displaced_is_not_complete() {
        assert_eq!(refused(&Counters::default()), None);
        let counters = Counters {
            participants_displaced: 3,
            endpoints_refused: 2,
            ..Counters::default()
        };
        assert_eq!(
            refused(&counters).as_deref(),
            Some("3 participants that newer ones displaced, 2 endpoints")
        );
    }
}
