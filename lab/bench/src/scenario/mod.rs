//! Measurements as a user would program them: participants on two hosts, what they write, what
//! comes back, and where all of it went.
//!
//! [`rtt`] measures round trips at a fixed rate, [`throughput`] how much gets through. Each has a role
//! for either end (a child process, see [`child`](crate::child)) and a function for the parent
//! that starts both, lets them go, and makes one result of what they hand back. Between two test
//! hosts everything passes the cable; where the machine allows no namespaces, the ends talk over
//! 127.0.0.1 or within one thread, and the result says so in its datapath's name.
//!
//! Every run ends by balancing its ledgers ([`flow`]): what was written is what was delivered and
//! every drop that has a name. A run that does not balance is marked invalid, with the reason, and
//! kept.

pub mod ablation;
mod counts;
mod end;
pub mod flow;
pub mod inside;
pub mod isolation;
mod message;
pub mod plan;
pub mod rtt;
pub mod throughput;
pub mod transport;

pub use end::{EndError, Site};
pub use message::{RttMessage, RttMessageView};

use crate::child::ChildError;
use crate::namespace::TestbedError;
use crate::record::MergeError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// What was asked for cannot be measured.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// An end in this process.
    #[error(transparent)]
    End(#[from] EndError),
    /// A part of the run did not do its work.
    #[error("{part}: {source}")]
    Part {
        /// Which.
        part: &'static str,
        /// What it said.
        source: ChildError,
    },
    /// The hosts.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// The stamps.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// What the caller did to the hosts when the ends were there.
    #[error("the hosts could not be set up: {0}")]
    SetUp(String),
}

impl ScenarioError {
    /// Names the part a child's error belongs to.
    fn of(part: &'static str) -> impl FnOnce(ChildError) -> ScenarioError {
        move |source| ScenarioError::Part { part, source }
    }
}

/// A scenario outside of what can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Too small for its members, or too large for one frame or datagram.
    #[error("a message of {bytes} bytes: this can be measured with {least} to {most}")]
    Payload {
        /// As configured.
        bytes: u32,
        /// Id, nonce and the length of the padding.
        least: u32,
        /// What the scenario can carry.
        most: u32,
    },
    /// Nothing, or more than is reserved for.
    #[error("{samples} samples are not between 1 and {most}")]
    Samples {
        /// As configured.
        samples: u64,
        /// The bound.
        most: u32,
    },
    /// It would be lost with what `repair` loses.
    #[error(
        "a message of {bytes} bytes beside `repair`, which loses datagrams of bulk samples by their \
         size: this can be measured with at most {most}"
    )]
    PayloadBesideRepair {
        /// As configured.
        bytes: u32,
        /// What is told from bulk samples.
        most: u32,
    },
    /// Without a cable, or a host for a third participant.
    #[error("`{disturbance}` needs two hosts with a cable between them")]
    DisturbanceNeedsHosts {
        /// Its word.
        disturbance: &'static str,
    },
    /// On one thread there is no other to publish from.
    #[error("the memory datapath has one thread: pings can be published by a job only")]
    ThreadInMemory,
}
