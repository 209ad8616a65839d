//! A socket that only sends. It has no descriptor to be waited for: waiting would send.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::busy_poll::{self, BusyPoll};
use super::error::OpenError;
use super::queue::{Mode, Queue, open_socket};
use super::rings::TransmitRing;
use super::statistics::Statistics;
use super::system;
use super::umem::Umem;
use crate::limits::{FRAMES_A_KICK, SPARE_KICKS};

/// The sending end of one lane on one queue.
#[derive(Debug)]
pub struct TransmitSocket {
    /// Frames to be sent.
    pub ring: TransmitRing,
    // Behind its ring, and before the memory that the kernel reads for it.
    socket: OwnedFd,
    _umem: Umem,
    mode: Mode,
}

/// What a kick did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kicked {
    /// System calls made.
    pub calls: u32,
    /// Frames that the driver refused: they are among the completed ones, and were not sent.
    pub refused: u32,
    /// Frames that are still in the ring.
    pub left: u32,
    /// Why they are, if the kernel said so.
    pub stopped: Option<Stopped>,
}

/// Why the kernel takes no more frames for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The completion ring, the socket's send buffer or the device is full: take completions, and
    /// kick again later.
    Full,
    /// The interface is down.
    Down,
    /// The interface is gone from this namespace.
    Gone,
    /// Anything else, by its number.
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
    /// Makes a transmit ring of that many entries on a queue.
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

    /// Allows so many bytes of frames to be on their way through the kernel, which copies them;
    /// beyond the system's limit where that is permitted. A frame counts with some 1 to 2 KiB of
    /// the kernel's own besides.
    ///
    /// # Errors
    /// What the system said.
    pub fn set_send_buffer(&self, bytes: u32) -> io::Result<()> {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        let set = |option| system::set_number(self.socket.as_fd(), option, bytes);
        set(libc::SO_SNDBUFFORCE).or_else(|_| set(libc::SO_SNDBUF))
    }

    /// Has the calls of [`kick`](Self::kick) look at the device, too, for completions.
    ///
    /// # Errors
    /// [`OpenError::Denied`] without CAP_NET_ADMIN.
    pub fn set_busy_poll(&self, busy_poll: BusyPoll) -> Result<(), OpenError> {
        busy_poll::set(self.socket.as_fd(), busy_poll)
    }

    /// Has the kernel send what is in the ring. In copy mode a call takes at most
    /// [`FRAMES_A_KICK`] frames and sends them before it returns, so there are as many calls as
    /// that takes, and [`SPARE_KICKS`] for frames that are refused one by one, and never more.
    #[inline]
    pub fn kick(&mut self) -> Kicked {
        let left = self.ring.known_used();
        self.kick_at_most(left.div_ceil(FRAMES_A_KICK) + SPARE_KICKS)
    }

    /// The same with so many system calls at most, for who has something more urgent to do.
    // Always: what it returns is then never put together.
    #[inline(always)]
    pub fn kick_at_most(&mut self, most: u32) -> Kicked {
        let mut kicked = Kicked {
            // As it was behind the last call, and what was put in since: it is asked behind this one.
            left: self.ring.known_used(),
            ..Kicked::default()
        };
        while kicked.left > 0 && kicked.calls < most {
            if !self.ring.needs_wakeup() {
                // The device takes them by itself.
                kicked.left = self.ring.used();
                break;
            }
            kicked.calls += 1;
            let result = system::wake_transmit(self.socket.as_fd());
            let before = kicked.left;
            kicked.left = self.ring.used();
            match result {
                // The device takes the rest by itself.
                Ok(()) if self.mode == Mode::ZeroCopy => break,
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => kicked.refused += 1,
                // It took some, and there are more.
                Err(_) if kicked.left < before => {}
                Err(error) => {
                    kicked.stopped = Some(Stopped::of(&error));
                    break;
                }
            }
        }
        kicked
    }

    /// What the kernel counted.
    ///
    /// # Errors
    /// What the system said.
    pub fn statistics(&self) -> io::Result<Statistics> {
        Statistics::read(self.socket.as_fd())
    }
}
