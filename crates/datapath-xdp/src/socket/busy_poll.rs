//! Busy polling: receive processing in the waiting thread instead of in an interrupt's softirq.

use std::os::fd::BorrowedFd;

use super::error::OpenError;
use super::system;

/// Busy-poll parameters of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// Microseconds a blocking call polls before it sleeps (`SO_BUSY_POLL`). The calls of this module do not block: any
    /// value but 0 enables busy polling.
    pub microseconds: u16,
    /// Maximum frames of one poll (`SO_BUSY_POLL_BUDGET`).
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
