//! Throughput: one process writes as fast as it may, another counts what its callback gets.
//!
//! Best effort, every `write` is a datagram at once and what is lost is lost; reliable (KEEP_ALL), a
//! full history holds the writer back until the reader has acknowledged. The rate is that of the
//! reader, from its first sample to its last.
//!
//! Both ends are ordinary threads on cores of their own: a writer that never sleeps must not run
//! under SCHED_FIFO. They are on two hosts joined by one veth pair, over sockets as over lanes, so that one
//! can be compared with the other; where the machine allows no namespaces, on 127.0.0.1. There is no cable:
//! a process that carries each frame at a rate would measure itself.

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

/// The name of the schema and its version.
pub const SCHEMA: &str = "isolane/throughput/1";

/// The topic.
pub const TOPIC: &str = "Throughput";

/// Samples the writer's history and the reader's cache hold.
const HISTORY_SAMPLES: u16 = 256;

/// A whole result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Where it was measured.
    pub environment: Environment,
    /// What was measured.
    pub runs: Vec<Run>,
    /// What was asked for and has no run.
    pub missing: Vec<Missing>,
}

/// Whether lost samples are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// No.
    BestEffort,
    /// Yes; the writer is held back by its history.
    Reliable,
}

/// What either end is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndConfig {
    /// Where it is.
    pub site: Site,
    /// Of the topic.
    pub reliability: Reliability,
    /// LATENCY_BUDGET of the topic, in microseconds; 0: none, every sample leaves at once.
    pub latency_budget_us: u64,
    /// The serialised size of the message.
    pub payload_bytes: u32,
    /// How long the writer writes.
    pub seconds: u32,
    /// The core the end runs on.
    pub core: Option<usize>,
    /// What moves its datagrams.
    pub transport: Transport,
}

impl EndConfig {
    /// Whether this can be measured.
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
