//! Common part of every end of a scenario: claiming machine resources, creating a participant, discovery, and running
//! the loop while polling the parent.

use std::io;
use std::time::{Duration, Instant};

use isolane::limits::MAX_DATAGRAM_SAMPLE_BYTES;
use isolane::{
    BuildError, Builder, Interfaces, Level, Limits, Participant, Qos, RateLimitError, TopicType,
    WriteError,
};
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::throughput::Reliability;
use super::transport::{CRITICAL_LEVEL, Transport};
use crate::child::{self, Word};
use crate::limits::{LOOPBACK_DOMAINS, MATCH_SECONDS};
use crate::namespace::Host;
use crate::process::{self, HOST_PRIORITY, Notes};
use crate::report;
use crate::stop::Stop;

/// Interval at which an end polls its parent. Each poll costs the loop a wake-up and a system call.
const LOOK: Duration = Duration::from_millis(20);

/// Level of all measured topics.
pub(super) fn measured_level() -> Level {
    Level::clamp(CRITICAL_LEVEL.into())
}

/// Way in which isolane's ends wait for work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// Sleeping.
    #[default]
    Sleep,
    /// Polling without pause, at the ordinary priority.
    Spin,
    /// Spinning, and the lanes' sockets run the driver's receive work (`SO_PREFER_BUSY_POLL`, socket(7)).
    BusyPoll,
}

/// Padding of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Zeros.
    #[default]
    Zeros,
    /// Pseudo-random bytes, the same in each message.
    Random,
}

/// QoS of a measured topic. Reliable topics are KEEP_ALL with `max_samples`.
pub(super) fn measured_qos(reliability: Reliability, max_samples: u16, payload_bytes: u32) -> Qos {
    let qos = match reliability {
        Reliability::BestEffort => Qos::best_effort(),
        Reliability::Reliable => Qos::reliable().keep_all().max_samples(max_samples),
    };
    qos.level(measured_level())
        .max_bytes(RttMessage::max_bytes(payload_bytes))
}

/// Location of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Site {
    /// A test host.
    Host(Host),
    /// This machine, by unicast on 127.0.0.1.
    Loopback {
        /// Domain of this run, distinct from that of other participants.
        domain: u32,
    },
}

impl Site {
    /// Loopback site in a domain derived from the process id, so that concurrent measurements do not discover each
    /// other.
    pub fn loopback() -> Site {
        let choices = LOOPBACK_DOMAINS.end - LOOPBACK_DOMAINS.start;
        Site::Loopback {
            domain: LOOPBACK_DOMAINS.start + std::process::id() % choices,
        }
    }
}

/// Reasons why an end failed.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// The configuration cannot be measured.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The participant or one of its endpoints could not be created.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Discovery did not match the ends in time.
    #[error("the two ends did not find each other within {MATCH_SECONDS} s")]
    NotMatched,
    /// The parent stopped the end before it had a result.
    #[error("stopped before the end")]
    Stopped,
    /// The publishing thread panicked.
    #[error("the publisher's thread ended early")]
    PublisherGone,
    /// A budget could not be set.
    #[error(transparent)]
    Protect(#[from] RateLimitError),
    /// A write failed for a reason that waiting does not resolve.
    #[error("cannot write: {0}")]
    Write(#[from] WriteError),
    /// The parent's messages cannot be read, or a thread cannot be started.
    #[error("cannot {action}: {source}")]
    System {
        /// Operation that failed.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

/// Pins the process to a core, raises its priority unless it spins, locks its memory and makes timers exact; returns the
/// refused steps.
pub(super) fn take_resources(core: Option<usize>, waiting: Waiting) -> Notes {
    let mut notes = Notes::pinned(core);
    if waiting == Waiting::Sleep {
        notes.collect(process::run_first_in_first_out(HOST_PRIORITY));
    }
    notes.collect(process::lock_memory());
    notes.collect(process::exact_timers());
    notes
}

/// Seed of random content.
const CONTENT_SEED: u64 = 0x150_1a4e;

/// Topic of a reader without a writer. The reader opens its level for foreign traffic.
pub(super) const UNWRITTEN_TOPIC: &str = "Unwritten";

/// Creates a participant at `site` with the given transport, waiting, order and limits.
pub(super) fn participant_with(
    site: Site,
    transport: Transport,
    waiting: Waiting,
    name: &str,
    order: report::Order,
    limits: Limits,
) -> Result<Participant, EndError> {
    let builder = match site {
        Site::Host(host) => {
            let interface = host.interface().to_owned();
            let builder = Participant::builder(0);
            let builder = match transport {
                Transport::Udp => builder,
                Transport::Xdp(lanes) => builder.datapath(lanes.options(&interface)),
            };
            builder.interfaces(Interfaces::Named(vec![interface]))
        }
        Site::Loopback { domain } => Participant::builder(domain).loopback(),
    };
    // `isolane top` may observe the participant: one `accept` a second at priority 0.
    let builder = builder.observable(true);
    let builder = in_order(builder.name(name), order);
    let builder = builder.waiting(match waiting {
        Waiting::Sleep => isolane::Waiting::Sleep,
        Waiting::Spin | Waiting::BusyPoll => isolane::Waiting::Spin,
    });
    // Payloads reach 1 MiB, and histories hundreds of samples.
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

/// Returns whether each of the participant's writers has this number of readers, and each reader a writer.
pub(super) fn is_matched(participant: &Participant, wanted: usize) -> bool {
    let report = participant.report();
    let mut readers = report.readers.iter();
    report.writers.iter().all(|writer| writer.matched >= wanted)
        && readers.all(|reader| reader.matched > 0 || reader.topic == UNWRITTEN_TOPIC)
}

/// Runs the loop until discovery has matched each writer with this number of readers, and each reader with a writer.
pub(super) fn run_until_matched(
    participant: &Participant,
    readers: usize,
    stop: &Stop,
) -> Result<(), EndError> {
    let patience = Duration::from_secs(MATCH_SECONDS);
    let is_done = || is_matched(participant, readers);
    if run_until(participant, stop, patience, is_done)? {
        Ok(())
    } else {
        Err(EndError::NotMatched)
    }
}

/// Runs the loop until the parent sends `Go`.
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

/// Runs the loop until `done`, which is polled every few milliseconds. Returns false if that takes longer than
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

/// Runs the loop until the parent requests the result.
pub(super) fn run_until_stopped(participant: &Participant, stop: &Stop) {
    while !stop.is_requested() {
        participant.run_for(LOOK);
    }
}

/// Message with `id`, `nonce` and padding up to the measured size. Reports call its serialised size, without the
/// encapsulation header, `payload_bytes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, TopicType)]
#[topic(final_)]
pub struct RttMessage {
    /// Message number, from 0.
    pub id: u32,
    /// Nonce of the id, which distinguishes the message from other data: see [`nonce`](crate::record::nonce).
    pub nonce: u32,
    /// [`Content`].
    #[topic(bound = 1_048_576)]
    pub padding: Vec<u8>,
}

impl RttMessage {
    /// Size of a message without padding: id, nonce, and the padding's length.
    pub const MIN_BYTES: u32 = 12;
    /// Size of the encapsulation header in front of the message.
    const HEADER_BYTES: usize = 4;

    /// Maximum size in one datagram.
    pub const MAX_BYTES: u32 = MAX_DATAGRAM_SAMPLE_BYTES as u32 - Self::HEADER_BYTES as u32;

    /// Creates a message with a serialised size of `payload_bytes` and this content.
    pub(super) fn new(payload_bytes: u32, content: Content) -> Result<RttMessage, ConfigError> {
        let mut message = RttMessage::of_size(payload_bytes)?;
        if content == Content::Random {
            fastrand::Rng::with_seed(CONTENT_SEED).fill(&mut message.padding);
        }
        Ok(message)
    }

    /// Creates a message of zeros with a serialised size of `payload_bytes`.
    pub fn of_size(payload_bytes: u32) -> Result<RttMessage, ConfigError> {
        Self::check_size(payload_bytes, Self::MAX_BYTES)?;
        Ok(Self::padded_to(payload_bytes))
    }

    /// Creates a message of any size, including fragmented ones.
    pub(super) fn padded_to(payload_bytes: u32) -> RttMessage {
        RttMessage {
            id: 0,
            nonce: 0,
            padding: vec![0; payload_bytes.saturating_sub(Self::MIN_BYTES) as usize],
        }
    }

    /// Checks the size against the minimum and `most`.
    pub(crate) fn check_size(payload_bytes: u32, most: u32) -> Result<(), ConfigError> {
        if (Self::MIN_BYTES..=most).contains(&payload_bytes) {
            return Ok(());
        }
        Err(ConfigError::Payload {
            bytes: payload_bytes,
            least: Self::MIN_BYTES,
            most,
        })
    }

    /// Bytes an endpoint must reserve per sample of `payload_bytes` (RTPS pads to four bytes).
    pub(super) fn max_bytes(payload_bytes: u32) -> usize {
        (Self::HEADER_BYTES + payload_bytes as usize).next_multiple_of(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolane::Representation;
    use isolane::types::write_payload;

    #[test]
    fn a_message_has_the_requested_size() {
        for size in [12, 13, 64, 512, 1024, 1399] {
            let message = RttMessage::of_size(size).unwrap();
            let mut payload = [0; 2048];
            let length = write_payload(&message, Representation::Xcdr1, &mut payload).unwrap();
            assert_eq!(length, RttMessage::max_bytes(size));
            // The low bits of the options give the padding's length (XTypes 1.3 §7.6.3.1.2).
            let padding = usize::from(payload[3] & 3);
            assert_eq!(length - padding - 4, size as usize);
        }
    }

    #[test]
    fn a_mebibyte_can_be_written() {
        let message = RttMessage::padded_to(1 << 20);
        let mut payload = vec![0; RttMessage::max_bytes(1 << 20)];
        let length = write_payload(&message, Representation::Xcdr1, &mut payload);
        assert_eq!(length.map_err(|error| error.to_string()), Ok(payload.len()));
    }

    #[test]
    fn a_message_that_does_not_fit_is_refused() {
        assert!(RttMessage::of_size(11).is_err());
        assert!(RttMessage::of_size(RttMessage::MAX_BYTES).is_ok());
        assert!(RttMessage::of_size(RttMessage::MAX_BYTES + 1).is_err());
    }
}
