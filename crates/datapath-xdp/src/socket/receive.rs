//! A socket that only receives: it may be waited for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::busy_poll::{self, BusyPoll};
use super::error::OpenError;
use super::queue::{Queue, open_socket};
use super::rings::ReceiveRing;
use super::statistics::Statistics;
use super::system;
use super::umem::Umem;

/// The receiving end of one lane on one queue. Its descriptor is what the classifier's map names, and
/// what becomes readable when a frame has arrived. A copy of it keeps the socket alive.
#[derive(Debug)]
pub struct ReceiveSocket {
    /// Frames that have arrived.
    pub ring: ReceiveRing,
    // Behind its ring, and before the memory that the kernel writes to for it.
    socket: OwnedFd,
    _umem: Umem,
}

impl ReceiveSocket {
    /// Makes a receive ring of that many entries on a queue.
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

    /// What the kernel counted.
    ///
    /// # Errors
    /// What the system said.
    pub fn statistics(&self) -> io::Result<Statistics> {
        Statistics::read(self.socket.as_fd())
    }

    /// Has [`poll_device`](Self::poll_device) do the device's receive work in the calling thread.
    ///
    /// # Errors
    /// [`OpenError::Denied`] without CAP_NET_ADMIN.
    pub fn set_busy_poll(&self, busy_poll: BusyPoll) -> Result<(), OpenError> {
        busy_poll::set(self.socket.as_fd(), busy_poll)
    }

    /// One system call that waits for nothing: looks whether the device has frames, if busy polling
    /// is set, and tells a device that waits for chunks that there are some.
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
