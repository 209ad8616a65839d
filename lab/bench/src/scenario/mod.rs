//! Measurement scenarios, programmed against the public API: participants on two hosts, their samples, and the
//! accounting of all samples.
//!
//! [`rtt`] measures round trips at a fixed rate, [`throughput`] measures throughput. Each has a role for either end (a
//! child process, see [`child`](crate::child)) and a function for the parent, which starts both ends and merges their
//! reports. Between two test hosts all frames pass the cable. On machines without namespaces the ends use 127.0.0.1 or
//! one thread, as the result's datapath states.
//!
//! Every run ends by balancing its ledgers ([`flow`]): written samples equal delivered samples and named drops. A run
//! that does not balance is kept and marked invalid, with the reason.

mod end;
pub mod flow;
pub mod in_process_load;
mod program;
pub mod rtt;
pub mod throughput;
pub mod transport;

use crate::child::ChildError;
use crate::namespace::TestHostsError;
use crate::record::MergeError;

pub use end::{Content, EndError, RttMessage, RttMessageView, Site, Waiting};
pub use program::version;

/// Reasons why a measurement has no result.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The configuration cannot be measured.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// An end in this process failed.
    #[error(transparent)]
    End(#[from] EndError),
    /// A child process failed.
    #[error("{part}: {source}")]
    Part {
        /// Name of the part.
        part: &'static str,
        /// Error of the child.
        source: ChildError,
    },
    /// The hosts could not be made.
    #[error(transparent)]
    TestHosts(#[from] TestHostsError),
    /// The timestamps could not be merged.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// The caller's set-up of the hosts failed.
    #[error("the hosts could not be set up: {0}")]
    SetUp(String),
}

impl ScenarioError {
    fn of(part: &'static str) -> impl FnOnce(ChildError) -> ScenarioError {
        move |source| ScenarioError::Part { part, source }
    }
}

/// Scenario configurations that cannot be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The message is too small for its members, or too large for one frame or datagram.
    #[error("a message of {bytes} bytes: this can be measured with {least} to {most}")]
    Payload {
        /// Configured size.
        bytes: u32,
        /// Size of id, nonce and the padding's length.
        least: u32,
        /// Maximum size in this scenario.
        most: u32,
    },
    /// The number of samples is zero or exceeds the reserved memory.
    #[error("{samples} samples are not between 1 and {most}")]
    Samples {
        /// Configured number of samples.
        samples: u64,
        /// Upper bound.
        most: u32,
    },
    /// The message is large enough to be lost by `repair`.
    #[error(
        "a message of {bytes} bytes with `repair`, which loses datagrams of bulk samples by their \
         size: this can be measured with at most {most}"
    )]
    PayloadWithRepair {
        /// Configured size.
        bytes: u32,
        /// Maximum size that is distinguishable from bulk samples.
        most: u32,
    },
    /// This disturbance needs a cable, or a host for a third participant.
    #[error("`{0}` needs two hosts with a cable between them")]
    DisturbanceNeedsHosts(&'static str),
    /// This disturbance is made by isolane's own ends.
    #[error(
        "`{0}` is work of isolane's own ends: a system under test can be disturbed by flood or storm"
    )]
    DisturbanceNeedsIsolane(&'static str),
    /// A run on one thread has no publisher thread.
    #[error("the memory datapath has one thread: pings can be published by a job only")]
    ThreadInMemory,
}
