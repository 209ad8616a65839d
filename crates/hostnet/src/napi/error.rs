//! Errors of setting NAPI threads and polling.

use std::io;
use std::time::Duration;

use crate::limits::{MAX_IDLE_POLLS, MAX_POLL_WAIT};

/// Error of setting NAPI threads or polling.
#[derive(Debug, thiserror::Error)]
pub enum NapiError {
    /// No such interface.
    #[error(
        "there is no interface with the index {index} in this network namespace: it was deleted, or \
         moved to another one (ip link shows those that are here)"
    )]
    NoInterface {
        /// Index of the interface.
        index: u32,
    },
    /// The driver has no NAPI instance for the queue, in general or at present.
    #[error(
        "{interface} has no NAPI instance for queue {queue}: a veth pair has them only while an XDP \
         program is attached or GRO is on (attach first), and queues are numbered from 0 (ethtool -l \
         {interface})"
    )]
    NoInstance {
        /// Name of the interface.
        interface: String,
        /// Number of the queue.
        queue: u32,
    },
    /// The kernel cannot run NAPI in threads, or has not started one.
    #[error(
        "the kernel started no thread for queue {queue} of {interface}: threads take Linux 5.12 or \
         newer, and an interface that is up. Without them everything works, and the queues' receive \
         work has no priorities"
    )]
    NoThread {
        /// Name of the interface.
        interface: String,
        /// Number of the queue.
        queue: u32,
    },
    /// Priority outside the real-time range, or too close to its ends.
    #[error(
        "priority {priority} is no real-time priority from 1 to 98: receive work of the ordinary \
         class blocks its core for milliseconds once it was starved. Choose the applications' \
         priority from 11 to 93"
    )]
    Priority {
        /// The priority.
        priority: u8,
    },
    /// Polling beyond [`MAX_POLL_WAIT`] or [`MAX_IDLE_POLLS`].
    #[error(
        "polling every {wait:?}, {idle_polls} times without a frame, is out of bounds: wait at most \
         {MAX_POLL_WAIT:?} and poll at most {MAX_IDLE_POLLS} times"
    )]
    Polling {
        /// Time between two polls.
        wait: Duration,
        /// Polls without a frame.
        idle_polls: u32,
    },
    /// A capability is missing.
    #[error(
        "not permitted to {action}: this takes {capability}. Run the program as root, or give it the \
         capability: setcap {capability}+ep PROGRAM"
    )]
    Denied {
        /// The step that failed.
        action: &'static str,
        /// The capability.
        capability: &'static str,
    },
    /// Any other system error.
    #[error("could not {action}: {source}")]
    System {
        /// The step that failed.
        action: &'static str,
        /// System error.
        source: io::Error,
    },
}

impl NapiError {
    /// Classifies the error of a step by what the user can do about it.
    pub(super) fn of<E: Into<io::Error>>(
        action: &'static str,
        capability: &'static str,
    ) -> impl FnOnce(E) -> NapiError {
        move |source| match source.into() {
            source if source.kind() == io::ErrorKind::PermissionDenied => {
                NapiError::Denied { action, capability }
            }
            source => NapiError::System { action, source },
        }
    }
}
