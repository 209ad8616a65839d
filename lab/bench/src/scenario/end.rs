//! What every end of a scenario does: it takes what a measuring process asks of the machine, makes
//! a participant, finds the other end, and runs the loop while listening to its parent.

use std::io;
use std::time::{Duration, Instant};

use isolane::{
    BuildError, Builder, DatapathChoice, Interfaces, Level, Limits, Participant, ProtectError,
    WriteError,
};
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::transport::{CRITICAL_LEVEL, Transport};
use crate::child::{self, Word};
use crate::limits::{LOOPBACK_DOMAINS, MATCH_SECONDS};
use crate::namespace::Host;
use crate::process::{self, HOST_PRIORITY, Notes};
use crate::report;
use crate::stop::Stop;

/// How often an end looks whether its parent has said something. Each look costs the loop a wake-up
/// and a system call.
const LOOK: Duration = Duration::from_millis(20);

/// The level of everything that is measured.
pub(super) fn measured_level() -> Level {
    Level::clamp(CRITICAL_LEVEL.into())
}

/// Where an end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Site {
    /// A test host.
    Host(Host),
    /// This machine, by unicast on 127.0.0.1.
    Loopback {
        /// A run's own: not that of other participants of the machine.
        domain: u32,
    },
}

impl Site {
    /// 127.0.0.1, in a domain of this process: whoever measures at the same time is not found.
    pub fn loopback() -> Site {
        let choices = LOOPBACK_DOMAINS.end - LOOPBACK_DOMAINS.start;
        Site::Loopback {
            domain: LOOPBACK_DOMAINS.start + std::process::id() % choices,
        }
    }
}

/// Why an end did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// What was asked for cannot be measured.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The participant or one of its endpoints.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Discovery.
    #[error("the two ends did not find each other within {MATCH_SECONDS} s")]
    NotMatched,
    /// It was told to before there was a result.
    #[error("stopped before the end")]
    Stopped,
    /// The thread that publishes panicked.
    #[error("the publisher's thread ended early")]
    PublisherGone,
    /// A budget cannot be kept.
    #[error(transparent)]
    Protect(#[from] ProtectError),
    /// A write failed in a way that waiting does not mend.
    #[error("cannot write: {0}")]
    Write(#[from] WriteError),
    /// The parent cannot be heard, a thread cannot be started.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Pins the process to a core and gives it what keeps others off it; says what was refused.
pub(super) fn take_resources(core: Option<usize>) -> Notes {
    let mut notes = Notes::default();
    if let Some(core) = core {
        notes.collect(process::pin_to_core(core));
    }
    notes.collect(process::run_first_in_first_out(HOST_PRIORITY));
    notes.collect(process::lock_memory());
    notes.collect(process::exact_timers());
    notes
}

/// The topic of a reader that nobody writes for: its level is open for what strangers send there.
pub(super) const UNWRITTEN_TOPIC: &str = "Unwritten";

/// A participant at that site whose datagrams move so and that may hold so much.
pub(super) fn participant_with(
    site: Site,
    transport: Transport,
    name: &str,
    order: report::Order,
    limits: Limits,
) -> Result<Participant, EndError> {
    let builder = match site {
        Site::Host(host) => {
            let interface = host.interface().to_owned();
            let choice = match transport {
                Transport::Udp => DatapathChoice::Udp,
                Transport::Xdp(lanes) => DatapathChoice::Xdp(lanes.options(&interface)),
            };
            Participant::builder(0)
                .interfaces(Interfaces::Named(vec![interface]))
                .datapath(choice)
        }
        Site::Loopback { domain } => Participant::builder(domain).loopback(),
    };
    // `isolane top` in the host's namespace may look at it: an `accept` a second at priority 0.
    let builder = builder.observable(true);
    let builder = in_order(builder.name(name), order);
    // Payloads of up to 1 MiB, and histories of hundreds of samples.
    let builder = builder.limits(limits).sample_memory(1 << 30);
    Ok(builder.build()?)
}

/// Sets the order of jobs. In FIFO order, the baseline, jobs of all priorities share a ready list and
/// samples of all levels share the lane of level 0, which is the level of discovery, too.
pub(super) fn in_order(builder: Builder, order: report::Order) -> Builder {
    match order {
        report::Order::Priority => builder,
        report::Order::Fifo => builder
            .level_mapping(|_| Level::MIN)
            .priority_mapping(|_| 0)
            .discovery_level(Level::MIN),
    }
}

/// Whether each of the participant's endpoints has one at the other end.
pub(super) fn is_matched(participant: &Participant) -> bool {
    let report = participant.report();
    let mut readers = report.readers.iter();
    report.writers.iter().all(|writer| writer.matched > 0)
        && readers.all(|reader| reader.matched > 0 || reader.topic == UNWRITTEN_TOPIC)
}

/// Runs the loop until the other end is found.
pub(super) fn run_until_matched(participant: &Participant, stop: &Stop) -> Result<(), EndError> {
    let patience = Duration::from_secs(MATCH_SECONDS);
    if run_until(participant, stop, patience, || is_matched(participant))? {
        Ok(())
    } else {
        Err(EndError::NotMatched)
    }
}

/// Runs the loop until the parent says go.
pub(super) fn run_until_go(participant: &Participant, stop: &Stop) -> Result<(), EndError> {
    loop {
        participant.run_for(LOOK);
        match child::heard(stop) {
            Ok(None) => {}
            Ok(Some(Word::Go)) => return Ok(()),
            Ok(Some(Word::Stop)) => return Err(EndError::Stopped),
            Err(source) => {
                let action = "hear the parent";
                return Err(EndError::System { action, source });
            }
        }
    }
}

/// Runs the loop until `done`, which is asked every few milliseconds; false: it was not within
/// `patience`.
pub(super) fn run_until(
    participant: &Participant,
    stop: &Stop,
    patience: Duration,
    mut done: impl FnMut() -> bool,
) -> Result<bool, EndError> {
    let end = Instant::now() + patience;
    loop {
        if done() {
            return Ok(true);
        }
        if stop.is_requested() {
            return Err(EndError::Stopped);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        participant.run_for(left.min(LOOK));
    }
}

/// Runs the loop until the parent wants the result.
pub(super) fn run_until_stopped(participant: &Participant, stop: &Stop) {
    while !stop.is_requested() {
        participant.run_for(LOOK);
    }
}
