//! Receive-only AF_XDP socket. It can be waited for without sending.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::busy_poll::{self, BusyPoll};
use super::error::OpenError;
use super::queue::{Queue, open_socket};
use super::rings::ReceiveRing;
use super::statistics::Statistics;
use super::system;
use super::umem::Umem;

/// Receiving end of one lane on one queue. The classifier's map refers to its descriptor, which becomes readable when a
/// frame arrives. A duplicate descriptor keeps the socket alive.
#[derive(Debug)]
pub struct ReceiveSocket {
    /// Received frames.
    pub ring: ReceiveRing,
    // Dropped after its ring, and before the memory that the kernel writes for it.
    socket: OwnedFd,
    _umem: Umem,
}

impl ReceiveSocket {
    /// Opens a socket on a queue, with a receive ring of `entries`.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(queue: &Queue, entries: u32) -> Result<ReceiveSocket, OpenError> {
        let socket = open_socket()?;
        let ring = ReceiveRing::make(socket.as_fd(), queue.umem(), entries)?;
        queue.admit(socket.as_fd())?;
        Ok(ReceiveSocket {
            ring,
            socket,
            _umem: queue.umem().clone(),
        })
    }

    /// Kernel counters.
    ///
    /// # Errors
    /// Error from the system.
    pub fn statistics(&self) -> io::Result<Statistics> {
        Statistics::read(self.socket.as_fd())
    }

    /// Makes [`poll_device`](Self::poll_device) do the device's receive processing in the calling thread.
    ///
    /// # Errors
    /// [`OpenError::Denied`] without CAP_NET_ADMIN.
    pub fn set_busy_poll(&self, busy_poll: BusyPoll) -> Result<(), OpenError> {
        busy_poll::set(self.socket.as_fd(), busy_poll)
    }

    /// Makes one non-blocking system call. It polls the device if busy polling is set, and wakes a device that waits
    /// for chunks.
    ///
    /// # Errors
    /// ENETDOWN while the interface is down, ENXIO when it is gone.
    pub fn poll_device(&self) -> io::Result<()> {
        system::wake_receive(self.socket.as_fd())
    }
}

impl AsFd for ReceiveSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
