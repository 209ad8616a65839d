//! Why receive work is not done as planned, and what to do about it.

use std::io;
use std::time::Duration;

use crate::limits::{MAX_IDLE_POLLS, MAX_POLL_WAIT};

/// Why threads or polling were not set, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum NapiError {
    /// No such interface.
    #[error(
        "there is no interface with the index {index} in this network namespace: it was deleted, or \
         moved to another one (ip link shows those that are here)"
    )]
    NoInterface {
        /// Its index.
        index: u32,
    },
    /// The driver has no NAPI, or none now.
    #[error(
        "{interface} has no NAPI instance for queue {queue}: a veth pair has them only while an XDP \
         program is attached or GRO is on (attach first), and queues are numbered from 0 (ethtool -l \
         {interface})"
    )]
    NoInstance {
        /// The interface's name.
        interface: String,
        /// The queue asked for.
        queue: u32,
    },
    /// The kernel cannot run NAPI in threads, or has not started one.
    #[error(
        "the kernel started no thread for queue {queue} of {interface}: threads take Linux 5.12 or \
         newer, and an interface that is up. Without them everything works, and the queues' receive \
         work has no priorities"
    )]
    NoThread {
        /// The interface's name.
        interface: String,
        /// The queue.
        queue: u32,
    },
    /// A priority that would harm.
    #[error(
        "priority {priority} is no real-time priority from 1 to 98: receive work of the ordinary \
         class blocks its core for milliseconds once it was starved. Choose the applications' \
         priority from 11 to 93"
    )]
    Priority {
        /// The priority asked for.
        priority: u8,
    },
    /// A polling without a bound that is worth anything.
    #[error(
        "polling every {wait:?}, {idle_polls} times without a frame, is out of bounds: wait at most \
         {MAX_POLL_WAIT:?} and poll at most {MAX_IDLE_POLLS} times"
    )]
    Polling {
        /// Between two polls.
        wait: Duration,
        /// Polls without a frame.
        idle_polls: u32,
    },
    /// A right is missing.
    #[error(
        "not permitted to {action}: this takes {capability}. Run the program as root, or give it the \
         capability: setcap {capability}+ep PROGRAM"
    )]
    Denied {
        /// What was tried.
        action: &'static str,
        /// The capability.
        capability: &'static str,
    },
    /// Anything else.
    #[error("could not {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl NapiError {
    /// The error of a system call, by what can be done about it.
    pub(super) fn of(
        action: &'static str,
        capability: &'static str,
    ) -> impl FnOnce(io::Error) -> NapiError {
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => NapiError::Denied { action, capability },
            _ => NapiError::System { action, source },
        }
    }
}
