//! Receive work in the thread that waits for it, instead of in an interrupt's.

use std::os::fd::BorrowedFd;

use super::error::OpenError;
use super::system;

/// How a thread looks at the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// How long a call that waits looks before it sleeps. Those of this module do not wait: any
    /// number but 0 switches busy polling on.
    pub microseconds: u16,
    /// Frames of one look at most.
    pub budget: u16,
}

pub(super) fn set(socket: BorrowedFd<'_>, busy_poll: BusyPoll) -> Result<(), OpenError> {
    let options = [
        (libc::SO_PREFER_BUSY_POLL, 1),
        (libc::SO_BUSY_POLL, i32::from(busy_poll.microseconds)),
        (libc::SO_BUSY_POLL_BUDGET, i32::from(busy_poll.budget)),
    ];
    for (option, value) in options {
        system::set_number(socket, option, value).map_err(|source| {
            let action = "let a socket poll its device";
            match source.raw_os_error() {
                Some(libc::EPERM) => OpenError::Denied {
                    action,
                    capability: "CAP_NET_ADMIN",
                },
                _ => OpenError::System { action, source },
            }
        })?;
    }
    Ok(())
}
