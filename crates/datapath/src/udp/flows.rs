//! Sockets of flows within a lane, for an embedding datapath.
//!
//! Lanes are registered for waiting when opened; flows come and go later. Their sockets share one descriptor, an epoll
//! instance nested in the loop's. It reports that one is readable, not which; all are then checked, at most
//! [`MAX_LANE_FLOWS`].

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use isolane_wire::locator::Locator;

use super::receive::Source;
use crate::limits::MAX_LANE_FLOWS;

/// Socket of a flow and its unicast locators.
pub(super) struct FlowSocket {
    pub(super) source: Source,
    pub(super) unicast: Vec<Locator>,
}

pub(super) struct FlowSockets {
    epoll: OwnedFd,
    /// Flows by number; numbers of closed flows are reused.
    pub(super) open: Vec<Option<FlowSocket>>,
}

impl FlowSockets {
    pub(super) fn new() -> io::Result<FlowSockets> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(FlowSockets {
            epoll,
            open: Vec::new(),
        })
    }

    /// Adds a socket and registers it in epoll; returns its number, or `None` if all are in use.
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

    /// Removes a socket; closing it also removes it from epoll.
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
