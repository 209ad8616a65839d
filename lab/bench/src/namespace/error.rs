//! Why there is no testbed: each step says what it tried, and which right it takes.

use std::io;

/// Why there is no testbed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// A right is missing.
    #[error(
        "cannot {action}: not permitted, this needs {right}. Run as root, or inside \
         `unshare --user --map-root-user --net --mount` where the machine allows that"
    )]
    NotPermitted {
        /// What was tried.
        action: &'static str,
        /// The capability it takes.
        right: &'static str,
    },
    /// The kernel refused for another reason.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// Receive work stays in soft interrupts.
    #[error("receive work cannot be done by threads: {0}")]
    ReceiveWork(#[from] isolane_hostnet::napi::NapiError),
}

/// What it takes to make and enter namespaces.
pub(super) const ENTER_RIGHT: &str = "CAP_SYS_ADMIN";
/// What it takes to make and configure devices.
pub(super) const CONFIGURE_RIGHT: &str = "CAP_NET_ADMIN";

/// Names the step a system call failed in, and the right it lacks.
pub(super) fn step<T, E: Into<io::Error>>(
    action: &'static str,
    right: &'static str,
    result: Result<T, E>,
) -> Result<T, TestbedError> {
    result.map_err(|error| match error.into() {
        source if source.kind() == io::ErrorKind::PermissionDenied => {
            TestbedError::NotPermitted { action, right }
        }
        source => TestbedError::System { action, source },
    })
}
