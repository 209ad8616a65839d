//! Round trips: host A publishes `RTTPing` at a fixed rate (open loop); host B answers each from its callback with
//! `RTTPong` of the same size.
//!
//! ```text
//!   host A                                            host B
//!   schedule -> RTTPing writer ==> cable ==> RTTPing reader
//!   (thread or job)                                     | callback
//!        RTTPong reader <== cable <== RTTPong writer <--+
//! ```
//!
//! With a disturbance inside the participants ([`in_process_load`](super::in_process_load)), they also have a bulk
//! topic in each direction, or discover a third participant's endpoints.
//!
//! Both topics have level 7 and are VOLATILE: best effort with KEEP_LAST 1, or reliable with KEEP_ALL. The ends write
//! timestamps into memory reserved before the start and allocate nothing afterwards. [`run_between_hosts`] is the
//! parent's function.

mod ends;
mod memory;
mod outcome;
mod publisher;
mod run;

use isolane::{Level, Qos};
use serde::{Deserialize, Serialize};

use super::end::{RttMessage, measured_qos};
use super::in_process_load::BulkKind;
use super::throughput::Reliability;
use super::transport::{BulkReader, Policing, Transport};
use super::{ConfigError, Content, Site, Waiting};
use crate::clock::NANOS_PER_SECOND;
use crate::limits::{MAX_RTT_MESSAGE_BYTES, MAX_SAMPLES};
use crate::report::{Order, Publisher};

pub(super) use ends::EndReport;
pub use ends::{PingReport, PongReport, run_ping, run_pong};
pub use memory::{MemoryRun, run_in_memory};
pub use outcome::Outcome;
pub(crate) use outcome::weak_flood;
pub(crate) use run::OUTLASTS_SECONDS;
pub use run::{Config, run_between_hosts, run_between_prepared_hosts, run_over_loopback};

/// Topic from host A to host B.
pub const PING_TOPIC: &str = "RTTPing";
/// Topic from host B to host A.
pub const PONG_TOPIC: &str = "RTTPong";

/// Configuration of an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndConfig {
    /// Location of the end.
    pub site: Site,
    /// Publisher of pings.
    pub publisher: Publisher,
    /// Job order of the executor, at both ends.
    pub order: Order,
    /// Serialised size of the message, in bytes.
    pub payload_bytes: u32,
    /// Pings per second.
    pub rate_hz: u32,
    /// Number of pings.
    pub samples: u32,
    /// Seed of the nonces.
    pub seed: u64,
    /// CPU core of the end.
    pub core: Option<usize>,
    /// Kind of the bulk topics that the ends write and read, if any.
    pub bulk: Option<BulkKind>,
    /// Transport of the end's datagrams.
    pub transport: Transport,
    /// Policing of the end's receivers.
    pub policing: Policing,
    /// Reader of foreign traffic to the bulk level.
    pub bulk_reader: Option<BulkReader>,
    /// Reliability of both topics.
    pub reliability: Reliability,
    /// History of a reliable topic, in samples.
    pub max_samples: u16,
    /// Way in which the end waits for work.
    pub waiting: Waiting,
    /// Padding of messages.
    pub content: Content,
}

impl EndConfig {
    /// Checks whether the configuration can be measured.
    pub fn check(&self) -> Result<(), ConfigError> {
        RttMessage::check_size(self.payload_bytes, MAX_RTT_MESSAGE_BYTES)?;
        if !(1..=MAX_SAMPLES).contains(&self.samples) || self.rate_hz == 0 {
            return Err(ConfigError::Samples {
                samples: self.samples.into(),
                most: MAX_SAMPLES,
            });
        }
        Ok(())
    }

    pub(super) fn period_ns(&self) -> u64 {
        NANOS_PER_SECOND / u64::from(self.rate_hz.max(1))
    }

    fn duration_ns(&self) -> u64 {
        self.period_ns() * u64::from(self.samples)
    }

    /// Returns whether this end takes the other end's bulk samples from its reader.
    fn takes_bulk(&self) -> bool {
        self.bulk_reader != Some(BulkReader::Keeps)
    }

    /// Returns whether the bulk lane is starved.
    fn starves_bulk(&self) -> bool {
        self.bulk_reader == Some(BulkReader::DoesNotDrain)
    }

    /// Level of foreign traffic, if this end has a reader at that level.
    fn foreign(&self) -> Option<Level> {
        let level = self.transport.bulk_level();
        self.bulk_reader.map(|_| Level::clamp(level.into()))
    }

    /// Level whose lane all levels share, if they share one.
    fn shared_lane(&self) -> Option<Level> {
        let shared = match self.order {
            // FIFO participants use level 0 for sockets and for lanes.
            Order::Fifo => Some(0),
            Order::Priority => self.transport.shared_level(),
        };
        shared.map(|level| Level::clamp(level.into()))
    }

    fn qos(&self) -> Qos {
        measured_qos(self.reliability, self.max_samples, self.payload_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Cell, Datapath};
    use crate::scenario::RttMessage;

    pub(super) fn config(samples: u32) -> EndConfig {
        EndConfig {
            samples,
            seed: 9,
            ..Cell::default().round_trips().ping_end(Site::loopback())
        }
    }

    #[test]
    fn waiting_and_content_of_a_cell_reach_the_ends() {
        let cell = Cell {
            datapath: Datapath::Xdp,
            waiting: Waiting::BusyPoll,
            content: Content::Random,
            ..Cell::default()
        };
        let end = cell.round_trips().ping_end(Site::loopback());
        assert_eq!((end.waiting, end.content), (cell.waiting, cell.content));
        let Transport::Xdp(lanes) = end.transport else {
            panic!("{end:?}");
        };
        assert!(lanes.options("host-a").busy_poll.is_some());
        let padding = |content| {
            let message = RttMessage::new(64, content).expect("it fits");
            message.padding
        };
        assert!(padding(Content::Zeros).iter().all(|byte| *byte == 0));
        assert_ne!(padding(Content::Random), padding(Content::Zeros));
    }

    #[test]
    fn a_run_without_samples_or_without_end_is_refused() {
        assert_eq!(config(1).check(), Ok(()));
        assert!(config(0).check().is_err());
        assert!(config(MAX_SAMPLES + 1).check().is_err());
        let large = EndConfig {
            payload_bytes: 9_000,
            ..config(1)
        };
        assert!(matches!(large.check(), Err(ConfigError::Payload { .. })));
    }
}
