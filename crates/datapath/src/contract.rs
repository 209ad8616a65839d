//! The contract of every datapath.
//!
//! One call moves one burst of one lane; nothing waits. The caller decides which lane is looked
//! at, in which order and how often, so a datapath needs no thread and no policy of its own.
//! What an implementation can do, it says in its [`Capabilities`]; what it had to do without on
//! this machine, in its [`Note`]s; what became of every datagram, in its ledger.
//!
//! Every implementation passes the conformance suite, `isolane_testkit::conformance`.
//!
//! # What an implementation with rings has to fit in here
//!
//! * A lane may have several sources (a ring, and the kernel socket that reserved the port):
//!   `receive_burst` serves them in turn.
//! * Frames handed to a device come home when it is done with them, not when `send_burst`
//!   returns: the datapath keeps them until then, and they count as outstanding. Sending takes home
//!   what is done, and so does `recycle`.
//! * Transmit frames may be smaller than the largest datagram: what does not fit is filled into an
//!   oversize frame of the lane ([`Pool::take_for`]).
//! * Only receiving descriptors go into epoll: polling a socket with a transmit ring may
//!   transmit.

use std::os::fd::BorrowedFd;

use isolane_wire::locator::Locator;

use crate::burst::{ReceiveBurst, SendReport, TransmitBurst};
use crate::flow::{FlowId, InterfaceProtection, Observation, ProtectError, Protected, Protection};
use crate::lane::Lane;
use crate::ledger::Ledger;
use crate::pool::Pool;
pub use crate::trouble::{Note, OpenError};

/// What the runtime can wait for when every lane is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// Descriptors that become readable: epoll.
    Descriptors,
    /// Nothing wakes anybody; lanes are looked at.
    Poll,
}

/// What a datapath can do, on this machine as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Bytes of the largest datagram, either way.
    pub max_frame_bytes: usize,
    /// Head room it wants in front of each transmitted datagram.
    pub head_room_bytes: usize,
    /// Copies of a received payload in user space, by the datapath.
    pub receive_copies: u32,
    /// Copies of a transmitted payload in user space, by the datapath.
    pub transmit_copies: u32,
    /// Copies that the kernel makes, each way.
    pub kernel_copies: u32,
    /// The device reads and writes frames itself, as read back from the kernel.
    pub zero_copy: bool,
    /// Groups can be sent to and received from.
    pub multicast: bool,
    /// What to wait for.
    pub wakeup: Wakeup,
    /// Received frames carry their instant of arrival.
    pub timestamps: bool,
    /// Lanes are told apart below this datapath (by the kernel's queues, or the device's).
    pub priorities: bool,
    /// Lanes can be limited in rate.
    pub shaping: bool,
}

/// A way of moving frames.
pub trait Datapath {
    /// As it is chosen by: "udp", "memory".
    fn name(&self) -> &'static str;

    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// Where its frames come from.
    fn pool(&self) -> &Pool;

    /// Reserves what a lane needs: sockets or rings, and frames. Opening an open lane does
    /// nothing. All memory is taken here.
    ///
    /// # Errors
    /// [`OpenError`]; the lane is closed then, and others are as they were.
    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError>;

    /// Where the lane is reached by unicast, to be announced. Empty if it is not open.
    fn unicast(&self, lane: Lane) -> &[Locator];

    /// The groups the lane has joined, to be announced. Empty where multicast does not work.
    fn multicast(&self, lane: Lane) -> &[Locator];

    /// Takes at most `limit` datagrams off the lane, no more than the burst has room for, and
    /// appends them. Returns how many it took off: fewer than asked for means that the lane is
    /// empty now, or that no frame was free. Datagrams that were dropped by name are counted
    /// among them, so a call is bounded whatever arrives.
    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize;

    /// Sends what it can of the burst, in order, and empties it. What is refused is named in the
    /// ledger; nothing is tried again later.
    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport;

    /// What a look at [`descriptors`](Self::descriptors) has just shown: bit *i* of `readable` is
    /// the *i*-th of the lane's. The next `receive_burst` of the lane may leave out sources that
    /// were not readable; one without a look before it leaves out none.
    fn seen_readable(&mut self, _lane: Lane, _readable: u8) {}

    /// Descriptors of open lanes that are readable when a datagram waits, or something else that the
    /// lane's `receive_burst` takes in: what changes routes, of discovery's. Empty if there are none.
    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)>;

    /// A set of lanes ([`Lane::bit`]) where a datagram may wait: exact where the datapath can
    /// see its queues, otherwise all open ones.
    fn ready_lanes(&mut self) -> u16;

    /// Lanes ([`Lane::bit`]) whose first descriptor has something, seen in memory instead of by a
    /// system call (but for one that drives the device, where busy polling was asked for). Who spins
    /// looks here, and at all [`descriptors`](Self::descriptors) now and then. `None`: this
    /// datapath sees nothing so.
    fn peek_lanes(&mut self) -> Option<u16> {
        None
    }

    /// Takes back frames that devices are done with and, where few are left to receive into, those of
    /// datagrams that wait in less critical lanes, which are dropped by name. Bounded; true if there
    /// is more to do at once. To be called at the highest priority when [`wants_recycling`] says so.
    ///
    /// [`wants_recycling`]: Self::wants_recycling
    fn recycle(&mut self) -> bool {
        false
    }

    /// Whether [`recycle`](Self::recycle) has something to do that does not wait well. No system call.
    fn wants_recycling(&mut self) -> bool {
        false
    }

    /// Finds out whether interfaces have gone or come back, or have other addresses, and does what
    /// that needs. Returns whether the addresses of lanes have changed: [`unicast`](Self::unicast)
    /// and [`flow_unicast`](Self::flow_unicast) are to be announced again. To be called at leisure,
    /// about once a second; a few system calls, and none where there is nothing to find out.
    fn look_after_interfaces(&mut self) -> bool {
        false
    }

    /// Reserves a flow of its own within an open lane: a port for one topic's reader. What
    /// arrives there comes with the lane's bursts.
    ///
    /// # Errors
    /// [`OpenError::NoFlows`] where the datapath knows none, and the lane's own flows serve.
    fn open_flow(&mut self, _lane: Lane) -> Result<FlowId, OpenError> {
        Err(OpenError::NoFlows {
            datapath: self.name(),
        })
    }

    /// Where a flow is reached by unicast, to be announced. Empty if there is no such flow.
    fn flow_unicast(&self, _flow: FlowId) -> &[Locator] {
        &[]
    }

    /// Gives a flow back. What still arrives there is nobody's.
    fn close_flow(&mut self, _flow: FlowId) {}

    /// Protects the receivers of a lane or a flow, or, with `None`, no longer. Takes effect at
    /// once, with a full budget; of a lane that is not open yet, when it is opened.
    ///
    /// # Errors
    /// [`ProtectError`], and everything is as it was.
    fn protect(&mut self, _what: Protected, _with: Option<Protection>) -> Result<(), ProtectError> {
        Err(ProtectError::Unsupported {
            datapath: self.name(),
        })
    }

    /// Protects all receivers of the interfaces in use, those of lanes that are opened later too.
    ///
    /// # Errors
    /// [`ProtectError`], and everything is as it was.
    fn protect_interface(&mut self, _with: InterfaceProtection) -> Result<(), ProtectError> {
        Err(ProtectError::Unsupported {
            datapath: self.name(),
        })
    }

    /// Networks of this host: its address and the number of leading bits that are the network's.
    /// Empty for a datapath without host networks.
    fn networks(&self) -> Vec<([u8; 4], u8)> {
        Vec::new()
    }

    /// Rate of the slowest link in bits a second, as its driver reports it now. `None` if unknown.
    fn link_bits_per_s(&self) -> Option<u64> {
        None
    }

    /// Smallest kernel receive buffer of the lane's sockets in bytes, as getsockopt reports it.
    /// `None` for a closed lane, or one without sockets.
    fn receive_buffer(&self, _lane: Lane) -> Option<usize> {
        None
    }

    /// What it does at this moment. Made at leisure: it allocates and calls the system.
    fn observe(&self) -> Observation {
        Observation::default()
    }

    /// What became of every datagram so far.
    fn ledger(&self) -> Ledger;

    /// What it had to do without on this machine.
    fn notes(&self) -> &[Note] {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The runtime holds one of several implementations.
    #[test]
    fn a_datapath_can_be_chosen_when_the_program_runs() {
        let memory = crate::Network::new(1).attach([10, 0, 0, 1]);
        let chosen: Box<dyn Datapath> = Box::new(memory);
        assert_eq!(chosen.name(), "memory");
    }
}
