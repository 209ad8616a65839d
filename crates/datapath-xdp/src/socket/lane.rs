//! AF_XDP sockets of a lane: one receives and can be waited for without sending, one transmits. The transmit socket
//! has no public descriptor, because waiting for it would send.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::error::OpenError;
use super::queue::{Mode, Queue, open_socket};
use super::rings::{ReceiveRing, TransmitRing};
use super::system_calls;
use super::umem::Umem;
use crate::limits::{FRAMES_A_KICK, SPARE_KICKS};

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
        set_busy_poll(self.socket.as_fd(), busy_poll)
    }

    /// Makes one non-blocking system call. It polls the device if busy polling is set, and wakes a device that waits
    /// for chunks.
    ///
    /// # Errors
    /// ENETDOWN while the interface is down, ENXIO when it is gone.
    pub fn poll_device(&self) -> io::Result<()> {
        system_calls::wake_receive(self.socket.as_fd())
    }
}

impl AsFd for ReceiveSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sending end of one lane on one queue.
#[derive(Debug)]
pub struct TransmitSocket {
    /// Frames to send.
    pub ring: TransmitRing,
    // Dropped after its ring, and before the memory that the kernel reads for it.
    socket: OwnedFd,
    _umem: Umem,
    mode: Mode,
}

/// Result of a kick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kicked {
    /// System calls made.
    pub calls: u32,
    /// Frames refused by the driver: they come back as completed, but were not sent.
    pub refused: u32,
    /// Frames still in the ring.
    pub left: u32,
    /// Reason that frames are left, if the kernel gave one.
    pub stopped: Option<Stopped>,
}

/// Reason that the kernel accepts no more frames for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The completion ring, the socket's send buffer or the device is full: take completions and kick again later.
    Full,
    /// The interface is down.
    Down,
    /// The interface is gone from this network namespace.
    Gone,
    /// Any other errno.
    Other(i32),
}

impl Stopped {
    fn of(error: &io::Error) -> Stopped {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Stopped::Full,
            Some(libc::ENETDOWN) => Stopped::Down,
            Some(libc::ENXIO | libc::ENODEV | libc::EBADF) => Stopped::Gone,
            number => Stopped::Other(number.unwrap_or(0)),
        }
    }
}

impl TransmitSocket {
    /// Opens a socket on a queue, with a transmit ring of `entries`.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(queue: &Queue, entries: u32) -> Result<TransmitSocket, OpenError> {
        let socket = open_socket()?;
        let ring = TransmitRing::make(socket.as_fd(), queue.umem(), entries)?;
        queue.admit(socket.as_fd())?;
        Ok(TransmitSocket {
            ring,
            socket,
            _umem: queue.umem().clone(),
            mode: queue.mode(),
        })
    }

    /// Sets the send buffer: bytes of frames that the kernel may have in flight in copy mode. Exceeds the system's
    /// limit where permitted. Each frame also counts 1 to 2 KiB of kernel overhead.
    ///
    /// # Errors
    /// Error from the system.
    pub fn set_send_buffer(&self, bytes: u32) -> io::Result<()> {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        let set = |option| system_calls::set_number(self.socket.as_fd(), option, bytes);
        set(libc::SO_SNDBUFFORCE).or_else(|_| set(libc::SO_SNDBUF))
    }

    /// Makes the calls of [`kick`](Self::kick) also poll the device for completions.
    ///
    /// # Errors
    /// [`OpenError::Denied`] without CAP_NET_ADMIN.
    pub fn set_busy_poll(&self, busy_poll: BusyPoll) -> Result<(), OpenError> {
        set_busy_poll(self.socket.as_fd(), busy_poll)
    }

    /// Makes the kernel send the frames in the ring. In copy mode a call sends at most [`FRAMES_A_KICK`] frames before
    /// it returns. The number of calls is at most the number of frames divided by [`FRAMES_A_KICK`], plus
    /// [`SPARE_KICKS`] for frames refused one by one.
    #[inline]
    pub fn kick(&mut self) -> Kicked {
        let left = self.ring.known_used();
        self.kick_at_most(left.div_ceil(FRAMES_A_KICK) + SPARE_KICKS)
    }

    /// Kicks with at most `most` system calls, for callers with more urgent work.
    // Inlined always: the result is then never assembled in memory.
    #[inline(always)]
    pub fn kick_at_most(&mut self, most: u32) -> Kicked {
        let mut kicked = Kicked {
            // Frames left after the last kick, plus those pushed since. The kernel's index is read below.
            left: self.ring.known_used(),
            ..Kicked::default()
        };
        while kicked.left > 0 && kicked.calls < most {
            if !self.ring.needs_wakeup() {
                // The device takes the frames without a wake-up.
                kicked.left = self.ring.used();
                break;
            }
            kicked.calls += 1;
            let result = system_calls::wake_transmit(self.socket.as_fd());
            let before = kicked.left;
            kicked.left = self.ring.used();
            match result {
                // The device takes the rest without a wake-up.
                Ok(()) if self.mode == Mode::ZeroCopy => break,
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => kicked.refused += 1,
                // The call took some frames, and more are left.
                Err(_) if kicked.left < before => {}
                Err(error) => {
                    kicked.stopped = Some(Stopped::of(&error));
                    break;
                }
            }
        }
        kicked
    }

    /// Kernel counters.
    ///
    /// # Errors
    /// Error from the system.
    pub fn statistics(&self) -> io::Result<Statistics> {
        Statistics::read(self.socket.as_fd())
    }
}

/// Busy-poll parameters of a socket: receive processing in the waiting thread instead of in an interrupt's softirq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// Microseconds a blocking call polls before it sleeps (`SO_BUSY_POLL`). The calls of this module do not block: any
    /// value but 0 enables busy polling.
    pub microseconds: u16,
    /// Maximum frames of one poll (`SO_BUSY_POLL_BUDGET`).
    pub budget: u16,
}

fn set_busy_poll(socket: BorrowedFd<'_>, busy_poll: BusyPoll) -> Result<(), OpenError> {
    let options = [
        (libc::SO_PREFER_BUSY_POLL, 1),
        (libc::SO_BUSY_POLL, i32::from(busy_poll.microseconds)),
        (libc::SO_BUSY_POLL_BUDGET, i32::from(busy_poll.budget)),
    ];
    for (option, value) in options {
        system_calls::set_number(socket, option, value).map_err(|source| {
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

/// Kernel counters since a socket was bound (`struct xdp_statistics`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Received frames dropped for other reasons than a full receive ring: no chunk in the fill ring, or a frame longer
    /// than a chunk. A frame redirected from another queue than the socket's is also dropped, but not counted anywhere.
    pub dropped: u64,
    /// Fill ring entries that were no chunk address.
    pub invalid_received: u64,
    /// Transmit ring entries that were no frame within a chunk. Kernels differ in whether such entries come back by the
    /// completion ring (6.18 does so).
    pub invalid_transmitted: u64,
    /// Received frames dropped because the socket's receive ring was full.
    pub receive_ring_full: u64,
    /// Times a chunk was needed and the fill ring was empty. The fill ring belongs to the queue: all its sockets report
    /// the same value.
    pub fill_ring_empty: u64,
    /// Times the kernel looked for frames to send and found none.
    pub transmit_ring_empty: u64,
}

impl Statistics {
    pub(super) fn read(socket: BorrowedFd<'_>) -> io::Result<Statistics> {
        let read = system_calls::statistics(socket)?;
        Ok(Statistics {
            dropped: read.rx_dropped,
            invalid_received: read.rx_invalid_descs,
            invalid_transmitted: read.tx_invalid_descs,
            receive_ring_full: read.rx_ring_full,
            fill_ring_empty: read.rx_fill_ring_empty_descs,
            transmit_ring_empty: read.tx_ring_empty_descs,
        })
    }
}
