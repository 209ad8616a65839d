//! Throughput: one process writes as fast as possible, another counts the samples of its callback.
//!
//! With best effort every `write` sends a datagram at once, and losses are final. With reliable KEEP_ALL a full history
//! blocks the writer until the reader acknowledges. The rate is measured at the reader, from its first to its last
//! sample.
//!
//! Both ends are ordinary threads on separate cores: a writer that never sleeps must not run under SCHED_FIFO. They run
//! on two hosts joined by one veth pair, for sockets and lanes alike, or on 127.0.0.1 where the machine allows no
//! namespaces. There is no cable, because a process that relays each frame would be the bottleneck.

mod reader;
mod run;
mod writer;

use std::time::Duration;

use isolane::Qos;
use serde::{Deserialize, Serialize};

use super::end::measured_level;
use super::transport::Transport;
use super::{ConfigError, RttMessage, Site};
use crate::report::{Environment, Missing};

pub use reader::{ReaderReport, run_reader};
pub use run::{Config, Run, run_between_hosts, run_over_loopback};
pub use writer::{WriterReport, run_writer};

/// Schema name and version.
pub const SCHEMA: &str = "isolane/throughput/1";

/// Topic name.
pub const TOPIC: &str = "Throughput";

/// Depth in samples of the writer's history and the reader's cache.
const HISTORY_SAMPLES: u16 = 256;

/// Complete result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Schema name, [`SCHEMA`].
    pub schema: String,
    /// Environment of the measurement.
    pub environment: Environment,
    /// Completed runs.
    pub runs: Vec<Run>,
    /// Requested runs without a result.
    pub missing: Vec<Missing>,
}

/// Reliability of the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// Lost samples are not retransmitted.
    BestEffort,
    /// Lost samples are retransmitted, and a full history blocks the writer.
    Reliable,
}

/// Configuration of an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndConfig {
    /// Location of the end.
    pub site: Site,
    /// Reliability of the topic.
    pub reliability: Reliability,
    /// LATENCY_BUDGET of the topic, in microseconds; 0 sends every sample at once.
    pub latency_budget_us: u64,
    /// Serialised size of the message, in bytes.
    pub payload_bytes: u32,
    /// Writing time in seconds.
    pub seconds: u32,
    /// CPU core of the end.
    pub core: Option<usize>,
    /// Transport of its datagrams.
    pub transport: Transport,
}

impl EndConfig {
    /// Checks whether the configuration can be measured.
    pub fn check(&self) -> Result<(), ConfigError> {
        RttMessage::of_size(self.payload_bytes).map(drop)
    }

    fn qos(&self) -> Qos {
        let qos = match self.reliability {
            Reliability::BestEffort => Qos::best_effort(),
            Reliability::Reliable => Qos::reliable().keep_all().max_samples(HISTORY_SAMPLES),
        };
        qos.level(measured_level())
            .latency_budget(Duration::from_micros(self.latency_budget_us))
            .max_bytes(RttMessage::max_bytes(self.payload_bytes))
    }
}
