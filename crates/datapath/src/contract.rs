//! Contract of all datapaths.
//!
//! A call moves one burst of one lane and never waits. The caller chooses lanes, order and frequency, so a datapath has
//! neither threads nor policies. An implementation describes its abilities in [`Capabilities`], degradations on this
//! machine in [`Warning`]s, and the outcome of every datagram in its ledger.
//!
//! Every implementation passes the conformance suite, `isolane_testkit::conformance`.
//!
//! # Implementations with rings
//!
//! * A lane may have several sources (a ring, and the kernel socket that reserves the port): `receive_burst` serves
//!   them in turn.
//! * Frames given to a device return to the pool when the device has completed them, not when `send_burst` returns.
//!   Until then the datapath owns them, and they count as outstanding. Sending and `recycle` reap completed frames.
//! * Transmit frames may be smaller than the largest datagram: larger datagrams use oversize frames of the lane
//!   ([`Pool::take_for`]).
//! * Only receiving descriptors are registered in epoll, because polling a transmit socket may start to send.

use std::fmt;
use std::os::fd::BorrowedFd;

use isolane_wire::locator::Locator;

use crate::burst::{ReceiveBurst, SendReport, TransmitBurst};
pub use crate::error::{ErrorClass, OpenError};
use crate::flow::{
    FlowId, InterfaceRateLimit, Observation, RateLimit, RateLimitError, RateLimitTarget,
};
use crate::lane::Lane;
use crate::ledger::Ledger;
use crate::pool::Pool;

/// Wake-up mechanism of idle lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// Descriptors that become readable, for epoll.
    Descriptors,
    /// None: lanes must be polled.
    Poll,
}

/// Abilities of a datapath on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Size of the largest datagram in either direction, in bytes.
    pub max_frame_bytes: usize,
    /// Head room needed in transmit frames, in bytes.
    pub head_room_bytes: usize,
    /// User-space copies of a received payload.
    pub receive_copies: u32,
    /// User-space copies of a transmitted payload.
    pub transmit_copies: u32,
    /// Kernel copies in each direction.
    pub kernel_copies: u32,
    /// True if the device accesses frames directly (AF_XDP zero-copy), as the kernel reports.
    pub zero_copy: bool,
    /// True if multicast works.
    pub multicast: bool,
    /// Wake-up mechanism.
    pub wakeup: Wakeup,
    /// True if received frames have an arrival time.
    pub timestamps: bool,
    /// True if queues of the kernel or of the device serve lanes by priority.
    pub priorities: bool,
    /// True if lanes support rate limits.
    pub shaping: bool,
    /// Lanes ([`Lane::bit`]) whose transmit frames may be [segmented bursts](crate::Frame::set_segment_bytes). Received
    /// frames may be segmented in any case.
    pub segmented_lanes: u16,
}

/// Degradation of a datapath that otherwise works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Kind of degradation, for programs: "no_multicast".
    pub code: &'static str,
    /// Affected lane, if it is a single one.
    pub lane: Option<Lane>,
    /// Sentence for people: what, why, and what to do.
    pub text: String,
}

impl Warning {
    /// Creates a warning that concerns no single lane.
    #[must_use]
    pub fn new(code: &'static str, text: String) -> Warning {
        Warning {
            code,
            lane: None,
            text,
        }
    }

    /// Creates a warning about a lane.
    #[must_use]
    pub fn of_lane(code: &'static str, lane: Lane, text: String) -> Warning {
        Warning {
            code,
            lane: Some(lane),
            text,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Transport of frames between this host's memory and the network.
pub trait Datapath {
    /// Name in configurations: "udp", "memory".
    fn name(&self) -> &'static str;

    /// Abilities on this machine. Opening a lane may change them, except `max_frame_bytes`, `head_room_bytes` and
    /// `wakeup`.
    fn capabilities(&self) -> &Capabilities;

    /// Pool of the datapath's frames. Every call returns the same pool.
    fn pool(&self) -> &Pool;

    /// Opens a lane: sockets or rings, and frames. Allocates all memory of the lane. No effect on an open lane.
    ///
    /// # Errors
    /// [`OpenError`]; the lane is then closed, and others are unchanged.
    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError>;

    /// Unicast locators of the lane, for announcements. Empty if closed.
    fn unicast(&self, lane: Lane) -> &[Locator];

    /// Multicast locators that the lane has joined, for announcements. Empty without multicast.
    fn multicast(&self, lane: Lane) -> &[Locator];

    /// Takes at most `limit` frames from the lane, no more than the burst has room for, and appends them to `burst`. A
    /// frame has one datagram or a segmented burst. Returns the number of frames taken. Dropped datagrams count as
    /// frames, so each call is bounded. Fewer than `limit` means that the lane is empty, or that no frame was free.
    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize;

    /// Sends the burst in order and empties it. Refused datagrams are counted in the ledger by reason, and not retried.
    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport;

    /// Records which [`descriptors`](Self::descriptors) of the lane a poll has found readable: bit *i* is the *i*-th.
    /// The next `receive_burst` may skip the others. Without a preceding call, `receive_burst` skips none.
    fn set_readable(&mut self, _lane: Lane, _readable: u8) {}

    /// Networks that this host reaches directly through the interfaces in use: address and prefix length in bits.
    fn networks(&self) -> Vec<([u8; 4], u8)> {
        Vec::new()
    }

    /// Rate of the slowest link in use, in bits a second; `None` if no driver reports a rate. Otherwise a link without a
    /// reported rate counts as [`USUAL_LINK_BITS_PER_S`](crate::limits::USUAL_LINK_BITS_PER_S).
    fn link_bits_per_s(&self) -> Option<u64> {
        None
    }

    /// Kernel memory of the lane's smallest receive buffer, in bytes; `None` if the kernel queues no datagrams for the
    /// lane.
    fn receive_buffer(&self, _lane: Lane) -> Option<usize> {
        None
    }

    /// Descriptors of open lanes; empty if there are none. A descriptor is readable when a datagram waits, or another
    /// event that `receive_burst` handles (for discovery: route changes).
    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)>;

    /// Lanes ([`Lane::bit`]) in which a datagram may wait: exact if the datapath can inspect its queues, otherwise all
    /// open lanes.
    fn ready_lanes(&mut self) -> u16;

    /// Lanes ([`Lane::bit`]) whose first descriptor is readable, found in shared memory. Makes no system call, except
    /// one that drives the device under busy polling. A spinning loop calls this, and occasionally checks all
    /// [`descriptors`](Self::descriptors). `None` if unsupported.
    fn peek_lanes(&mut self) -> Option<u16> {
        None
    }

    /// Reaps frames that devices have completed. If few receive frames are left, also drops datagrams that wait in
    /// less critical lanes, counted by reason. The work of a call is bounded; returns true if more remains. Call at
    /// the highest priority when [`wants_recycling`] returns true.
    ///
    /// [`wants_recycling`]: Self::wants_recycling
    fn recycle(&mut self) -> bool {
        false
    }

    /// Returns true if [`recycle`](Self::recycle) has urgent work. No system call.
    fn wants_recycling(&mut self) -> bool {
        false
    }

    /// Checks for removed, returned and readdressed interfaces, and adapts. Returns true if lanes have new addresses.
    /// The caller then announces [`unicast`](Self::unicast) and [`flow_unicast`](Self::flow_unicast) again. Call when
    /// idle, about once a second; takes a few system calls, or none if nothing can change.
    fn check_interfaces(&mut self) -> bool {
        false
    }

    /// Opens a flow in an open lane: a separate port for one topic's reader. Its datagrams arrive in the lane's bursts.
    ///
    /// # Errors
    /// [`OpenError::NoFlows`] if unsupported; the reader then uses the lane's own flows.
    fn open_flow(&mut self, _lane: Lane) -> Result<FlowId, OpenError> {
        Err(OpenError::NoFlows {
            datapath: self.name(),
        })
    }

    /// Unicast locators of a flow, for announcements. Empty if the flow does not exist.
    fn flow_unicast(&self, _flow: FlowId) -> &[Locator] {
        &[]
    }

    /// Closes a flow. Datagrams that arrive later at its port are not received.
    fn close_flow(&mut self, _flow: FlowId) {}

    /// Sets the rate limit of a lane or flow, or removes it (`None`). A limit takes effect at once with a full budget,
    /// or when the lane is opened.
    ///
    /// # Errors
    /// [`RateLimitError`]; nothing is changed.
    fn set_rate_limit(
        &mut self,
        _what: RateLimitTarget,
        _with: Option<RateLimit>,
    ) -> Result<(), RateLimitError> {
        Err(RateLimitError::Unsupported {
            datapath: self.name(),
        })
    }

    /// Sets the rate limits of the interfaces in use. They also apply to lanes opened later.
    ///
    /// # Errors
    /// [`RateLimitError`]; nothing is changed.
    fn set_interface_rate_limit(
        &mut self,
        _with: InterfaceRateLimit,
    ) -> Result<(), RateLimitError> {
        Err(RateLimitError::Unsupported {
            datapath: self.name(),
        })
    }

    /// Returns the current state. Allocates and makes system calls: call when idle.
    fn observe(&self) -> Observation {
        Observation::default()
    }

    /// Outcome of every datagram so far.
    fn ledger(&self) -> Ledger;

    /// Degradations on this machine.
    fn warnings(&self) -> &[Warning] {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The runtime selects an implementation dynamically.
    #[test]
    fn a_datapath_can_be_chosen_when_the_program_runs() {
        let memory = crate::Network::new(1).attach([10, 0, 0, 1]);
        let chosen: Box<dyn Datapath> = Box::new(memory);
        assert_eq!(chosen.name(), "memory");
    }
}
