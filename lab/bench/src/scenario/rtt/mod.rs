//! Round trips: host A publishes `RTTPing` at a fixed rate, whatever comes back (open loop), host B
//! answers each from its callback with `RTTPong` of the same size.
//!
//! ```text
//!   host A                                            host B
//!   schedule -> RTTPing writer ==> cable ==> RTTPing reader
//!   (thread or job)                                     | callback
//!        RTTPong reader <== cable <== RTTPong writer <--+
//! ```
//!
//! Disturbed from inside ([`inside`](super::inside)), the same participants have a bulk topic each way
//! too, or hear of a third participant's endpoints.
//!
//! Both topics: level 7, best effort, KEEP_LAST 1, VOLATILE. The ends stamp into memory reserved
//! before the start; after it, nothing here allocates. [`run_between_hosts`] is what the parent does.

mod beside;
mod between;
mod fault;
mod memory;
mod outcome;
mod ping;
mod pong;
mod publisher;
mod receivers;
mod run;
mod schedule;

use isolane::{Level, Qos};
use serde::{Deserialize, Serialize};

use super::end::measured_level;
use super::inside::bulk::BulkKind;
use super::message::RttMessage;
use super::transport::{BulkReader, Policing, Transport};
use super::{ConfigError, Site};
use crate::clock::NANOS_PER_SECOND;
use crate::limits::{MAX_RTT_MESSAGE_BYTES, MAX_SAMPLES};
use crate::report::{Order, Publisher};

pub use memory::{MemoryRun, run_in_memory};
pub use outcome::Outcome;
pub use ping::{PingReport, run_ping};
pub use pong::{PongReport, run_pong};
pub use run::{Config, run_between_hosts, run_between_prepared_hosts, run_over_loopback};

/// The topic of the way there.
pub const PING_TOPIC: &str = "RTTPing";
/// The topic of the way back.
pub const PONG_TOPIC: &str = "RTTPong";

/// What either end is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndConfig {
    /// Where it is.
    pub site: Site,
    /// Who publishes pings.
    pub publisher: Publisher,
    /// The executor's order, at both ends.
    pub order: Order,
    /// The serialised size of the message.
    pub payload_bytes: u32,
    /// Pings a second.
    pub rate_hz: u32,
    /// Pings.
    pub samples: u32,
    /// What nonces are made from.
    pub seed: u64,
    /// The core the end runs on.
    pub core: Option<usize>,
    /// The bulk topic that the end writes, if it does; then it reads the other end's.
    pub bulk: Option<BulkKind>,
    /// What moves its datagrams.
    pub transport: Transport,
    /// What its receivers are protected with.
    pub policing: Policing,
    /// Who reads what strangers send to the level of bulk.
    pub bulk_reader: Option<BulkReader>,
}

impl EndConfig {
    /// Whether this can be measured.
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

    fn period_ns(&self) -> u64 {
        NANOS_PER_SECOND / u64::from(self.rate_hz.max(1))
    }

    /// How long the schedule lasts.
    fn duration_ns(&self) -> u64 {
        self.period_ns() * u64::from(self.samples)
    }

    /// Whether bulk of the other end is taken from its reader.
    fn takes_bulk(&self) -> bool {
        self.bulk_reader != Some(BulkReader::Keeps)
    }

    /// Whether nobody gets to draining the lane of bulk.
    fn starves_bulk(&self) -> bool {
        self.bulk_reader == Some(BulkReader::DoesNotDrain)
    }

    /// The level that strangers send to, if somebody reads there.
    fn strangers(&self) -> Option<Level> {
        let level = self.transport.bulk_level();
        self.bulk_reader.map(|_| Level::clamp(level.into()))
    }

    /// The level whose lane all levels share, if they share one.
    fn shared_lane(&self) -> Option<Level> {
        let shared = match self.order {
            // That of a participant's sockets and lanes alike.
            Order::Fifo => Some(0),
            Order::Priority => self.transport.shared_level(),
        };
        shared.map(|level| Level::clamp(level.into()))
    }

    fn qos(&self) -> Qos {
        Qos::best_effort()
            .level(measured_level())
            .max_bytes(RttMessage::max_bytes(self.payload_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn config(samples: u32) -> EndConfig {
        EndConfig {
            site: Site::loopback(),
            publisher: Publisher::Job,
            order: Order::Priority,
            payload_bytes: 64,
            rate_hz: 2_000,
            samples,
            seed: 9,
            core: None,
            bulk: None,
            transport: Transport::Udp,
            policing: Policing::default(),
            bulk_reader: None,
        }
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
