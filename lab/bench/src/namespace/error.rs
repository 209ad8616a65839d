//! Errors of testbed creation: the step that failed and the capability it needs.

use std::io;

/// Reasons why a testbed cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// A capability is missing.
    #[error(
        "cannot {action}: not permitted, this needs {right}. Run as root, or inside \
         `unshare --user --map-root-user --net --mount` where the machine allows that"
    )]
    NotPermitted {
        /// Step that failed.
        action: &'static str,
        /// Required capability.
        right: &'static str,
    },
    /// The kernel refused for another reason.
    #[error("cannot {action}: {source}")]
    System {
        /// Step that failed.
        action: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
    /// Receive work could not be moved from soft interrupts to threads.
    #[error("receive work cannot be done by threads: {0}")]
    ReceiveWork(#[from] isolane_hostnet::napi::NapiError),
}

/// Capability to make and enter namespaces.
pub(super) const ENTER_RIGHT: &str = "CAP_SYS_ADMIN";
/// Capability to make and configure devices.
pub(super) const CONFIGURE_RIGHT: &str = "CAP_NET_ADMIN";

/// Maps a system call's error to the step it failed in and the capability it needs.
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
