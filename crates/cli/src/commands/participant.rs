//! Common part of `pub`, `sub` and `ls`: the participant from the settings, and the end of the command.

use std::cell::RefCell;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use isolane::limits::PARTICIPANTS_PER_PEER;
use isolane::{BuildError, Builder, Counters, Interfaces as Chosen, Participant, Qos};
use isolane_model::{Durability, History, Reliability};

use super::described::with_described;
use super::lane;
use super::presence::Presence;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::{
    ENCAPSULATION_HEADER_BYTES, SEEN_PARTICIPANTS, USUAL_PARTICIPANTS, remedy_of_full_tables,
};
use crate::output::tell;
use crate::settings::{EndpointSettings, Interfaces, LaneSettings, NetworkSettings};
use crate::stop;
use crate::values::{Peer, Representation};
use crate::why::FullTables;

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
    build_with(name, of, &settings.peers.value, USUAL_PARTICIPANTS).map_err(failure)
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
        told: Vec::new(),
    };
    notes.tell(&participant);
    Ok((participant, notes))
}

/// Notes of a participant on missing capabilities, each reported once.
pub(super) struct Notes<'a> {
    network: &'a NetworkSettings,
    peers: &'a [Peer],
    told: Vec<String>,
}

impl Notes<'_> {
    /// Reports new notes; creating an endpoint may add some.
    pub(super) fn tell(&mut self, participant: &Participant) {
        for note in participant.warnings() {
            let is_news = !self.told.contains(&note);
            if is_news && (self.network.verbosity > 0 || !is_as_asked(&note, self.peers)) {
                // The note names the library's function.
                let said = note.replace("Builder::peer", "--peer ADDRESS");
                tell(format!("note: {said}"));
            }
            self.told.push(note);
        }
    }
}

/// Returns whether a note is redundant: with peers multicast is unnecessary, and the loopback interface usually has
/// none.
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
    Failure::new(code, "the participant could not be made", error.to_string())
}

pub(super) fn qos(settings: &EndpointSettings) -> Qos {
    let mut qos = match settings.reliability.value {
        Reliability::BestEffort => Qos::best_effort(),
        Reliability::Reliable => Qos::reliable(),
    };
    if settings.durability.value == Durability::TransientLocal {
        qos = qos.transient_local();
    }
    qos = match settings.history.value {
        History::KeepAll => qos.keep_all(),
        History::KeepLast(depth) => qos.keep_last(u16::try_from(depth.get()).unwrap_or(u16::MAX)),
    };
    if let Some(bytes) = settings.max_bytes.value {
        qos = qos.max_bytes(bytes as usize + ENCAPSULATION_HEADER_BYTES);
    }
    if let Some(deadline) = settings.deadline.value {
        qos = qos.response_deadline(deadline);
    }
    if let Some(period) = settings.separation_max {
        qos = qos.deadline(period);
    }
    let samples = u16::try_from(settings.max_samples.value.get()).unwrap_or(u16::MAX);
    qos.max_samples(samples)
        .level(settings.level.value)
        .representation(match settings.representation.value {
            Representation::Xcdr1 => isolane::Representation::Xcdr1,
            Representation::Xcdr2 => isolane::Representation::Xcdr2,
        })
}

/// End condition of a command: a signal, or the end of its time.
pub(super) struct Until {
    interrupted: Arc<AtomicBool>,
    end: Option<Instant>,
    /// Interfaces in use, whose state changes are reported.
    presence: Option<RefCell<Presence>>,
}

impl Until {
    pub(super) fn new(run_for: Option<Duration>) -> Result<Self, Failure> {
        let interrupted = stop::on_signals()?;
        Ok(Self {
            interrupted,
            end: run_for.map(|time| Instant::now() + time),
            presence: None,
        })
    }

    /// Enables reports of interfaces that go down or come back.
    pub(super) fn with_network(mut self, network: &NetworkSettings) -> Self {
        self.presence = Some(RefCell::new(Presence::new(network)));
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
            if let Some(presence) = &self.presence {
                presence.borrow_mut().look();
            }
            participant.run_until(self.left(SLICE), || done() || self.interrupted());
        }
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
