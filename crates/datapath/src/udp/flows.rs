//! Ports of single topics within a lane, where another datapath embeds these sockets.
//!
//! Lanes are watched from when they are opened, and flows come and go later: their sockets are seen
//! through one descriptor, an epoll instance within that of the loop. It says that one of them is
//! readable, not which; a look at each is bounded by [`MAX_LANE_FLOWS`].

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use isolane_wire::locator::Locator;

use super::receive::Source;
use crate::limits::MAX_LANE_FLOWS;

/// A port of its own, and where it is reached.
pub(super) struct FlowSocket {
    pub(super) source: Source,
    pub(super) unicast: Vec<Locator>,
}

/// All of a lane.
pub(super) struct FlowSockets {
    epoll: OwnedFd,
    /// By the number it was given; a place whose flow was closed is given again.
    pub(super) open: Vec<Option<FlowSocket>>,
}

impl FlowSockets {
    pub(super) fn new() -> io::Result<FlowSockets> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(FlowSockets {
            epoll,
            open: Vec::new(),
        })
    }

    /// Keeps a socket and watches it; returns its place, `None` if all are taken.
    pub(super) fn add(&mut self, flow: FlowSocket) -> io::Result<Option<usize>> {
        let place = self.open.iter().position(Option::is_none);
        let place = place.unwrap_or(self.open.len());
        if place == MAX_LANE_FLOWS {
            return Ok(None);
        }
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: place as u64,
        };
        let (epoll, socket) = (self.epoll.as_raw_fd(), flow.source.socket.raw());
        // SAFETY: `event` is valid for the call; both descriptors are open.
        let added = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, socket, &raw mut event) };
        if added < 0 {
            return Err(io::Error::last_os_error());
        }
        if place == self.open.len() {
            self.open.push(None);
        }
        self.open[place] = Some(flow);
        Ok(Some(place))
    }

    /// Closes a socket, which epoll forgets with it.
    pub(super) fn remove(&mut self, place: usize) -> Option<FlowSocket> {
        self.open.get_mut(place)?.take()
    }

    pub(super) fn get(&self, place: usize) -> Option<&FlowSocket> {
        self.open.get(place)?.as_ref()
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.open.iter().flatten().map(|flow| &flow.source)
    }
}

impl AsFd for FlowSockets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
