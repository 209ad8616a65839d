//! The contract of every datapath.
//!
//! One call moves one burst of one lane; nothing waits. The caller decides which lane is looked
//! at, in which order and how often, so a datapath needs no thread and no policy of its own.
//! What an implementation can do, it says in its [`Capabilities`]; what it had to do without on
//! this machine, in its [`Note`]s; what became of every datagram, in its ledger.
//!
//! Every implementation passes [`conformance`](mod@crate::conformance).
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

use std::io;
use std::os::fd::BorrowedFd;

use isolane_wire::locator::Locator;

use crate::burst::{ReceiveBurst, SendReport, TransmitBurst};
use crate::flow::{FlowId, InterfaceProtection, Observation, ProtectError, Protected, Protection};
use crate::lane::Lane;
use crate::ledger::Ledger;
use crate::limits::MAX_DOMAIN;
use crate::pool::Pool;

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

    /// Descriptors of open lanes that are readable when a datagram waits. Empty if there are
    /// none.
    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)>;

    /// A set of lanes ([`Lane::bit`]) where a datagram may wait: exact where the datapath can
    /// see its queues, otherwise all open ones.
    fn ready_lanes(&mut self) -> u16;

    /// Lanes ([`Lane::bit`]) where a datagram is seen to wait without asking the system. Who spins
    /// looks here between looks at [`descriptors`](Self::descriptors), which see what this does not.
    fn peek_lanes(&mut self) -> u16 {
        0
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

    /// Finds out whether interfaces have gone or come back, and does what their return needs. To
    /// be called at leisure, about once a second; a few system calls, and none where there is
    /// nothing to find out.
    fn look_after_interfaces(&mut self) {}

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
    /// once, with a full budget.
    ///
    /// # Errors
    /// [`ProtectError`], and everything is as it was.
    fn protect(&mut self, _what: Protected, _with: Option<Protection>) -> Result<(), ProtectError> {
        Err(ProtectError::Unsupported {
            datapath: self.name(),
        })
    }

    /// Protects all receivers of the interfaces in use.
    ///
    /// # Errors
    /// [`ProtectError`], and everything is as it was.
    fn protect_interface(&mut self, _with: InterfaceProtection) -> Result<(), ProtectError> {
        Err(ProtectError::Unsupported {
            datapath: self.name(),
        })
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

/// Something that works less well than asked for, but works. Each says what, why, and what to
/// do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// An interface does not take part in multicast.
    #[error(
        "no multicast on interface {interface}: {reason}. Unicast goes on; peers there must be \
         named, or the interface given multicast: ip link set {interface} multicast on"
    )]
    NoMulticast {
        /// Its name.
        interface: String,
        /// Why.
        reason: String,
    },
    /// More interfaces than can be used.
    #[error("interface {interface} is not used, {limit} others are: name those that are meant")]
    TooManyInterfaces {
        /// The one left out.
        interface: String,
        /// How many can be used.
        limit: usize,
    },
    /// The kernel gave a smaller receive buffer.
    #[error(
        "the receive buffer of {lane} has {got} bytes instead of {wanted}: raise \
         net.core.rmem_max, or give the program CAP_NET_ADMIN"
    )]
    SmallReceiveBuffer {
        /// Whose.
        lane: Lane,
        /// Bytes asked for.
        wanted: usize,
        /// Bytes granted.
        got: usize,
    },
    /// The kernel did not take the lane's priority.
    #[error(
        "datagrams of {lane} leave without SO_PRIORITY {priority} ({reason}): queues of this \
         host do not prefer them. Give the program CAP_NET_ADMIN. Their DSCP is set"
    )]
    NoPriority {
        /// Whose.
        lane: Lane,
        /// The priority wanted.
        priority: u8,
        /// What the kernel said.
        reason: String,
    },
    /// Levels that were to have lanes of a device go by kernel sockets.
    #[error("interface {interface} gets no lanes, kernel sockets are used instead: {reason}")]
    NoDeviceLanes {
        /// The device.
        interface: String,
        /// Why, and what to do about it.
        reason: String,
    },
    /// Something about a device that costs something.
    #[error("interface {interface}: {what}")]
    Device {
        /// Its name.
        interface: String,
        /// What, why, and what to do about it.
        what: String,
    },
    /// A datapath that was asked for if it works does not.
    #[error("the datapath {wanted} is not used: {reason}")]
    NotUsed {
        /// Its name.
        wanted: &'static str,
        /// Why, and what to do about it.
        reason: String,
    },
    /// A socket option that only improves things was not taken.
    #[error("{lane} goes without {option} ({reason})")]
    OptionRefused {
        /// Whose.
        lane: Lane,
        /// The option's name.
        option: &'static str,
        /// What the kernel said.
        reason: String,
    },
}

/// Why a lane could not be opened, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A domain without ports.
    #[error(
        "domain {domain} has no ports: they end at 65,535. Choose a domain from 0 to {MAX_DOMAIN}"
    )]
    Domain {
        /// The domain asked for.
        domain: u32,
    },
    /// A participant id without a port.
    #[error(
        "participant id {participant_id} has no port in domain {domain}: choose one from 0 to \
         {limit}, or none, to take the first that is free"
    )]
    ParticipantId {
        /// The id asked for.
        participant_id: u32,
        /// In which domain.
        domain: u32,
        /// The last id there.
        limit: u32,
    },
    /// An interface that is not there, is down, or has no IPv4 address.
    #[error(
        "there is no interface {wanted} that is up with an IPv4 address; there are: {present}. \
         Name one of these, or bring it up: ip link set {wanted} up"
    )]
    NoInterface {
        /// The name asked for.
        wanted: String,
        /// Names of those that would do.
        present: String,
    },
    /// No interface at all.
    #[error(
        "no interface is up with an IPv4 address: at least loopback is needed (ip link set lo up)"
    )]
    NoInterfaces,
    /// The system refused a port that was asked for.
    #[error(
        "port {port}, for {purpose}, is taken by another socket: choose another one, or end the \
         program that has it (ss -ulpn 'sport = :{port}')"
    )]
    PortInUse {
        /// The UDP port.
        port: u16,
        /// What it is for.
        purpose: &'static str,
    },
    /// All participants' ports are taken.
    #[error(
        "all {tried} participant ports of domain {domain}, from {first_port} on, are taken: end \
         programs of this domain, or use another domain"
    )]
    NoFreeParticipant {
        /// The domain.
        domain: u32,
        /// How many ports were tried.
        tried: u32,
        /// The first of them.
        first_port: u16,
    },
    /// The system does not allow it.
    #[error(
        "the system does not let this program {action}: {source}. Run it with the rights it \
         needs, or outside of the sandbox that forbids it"
    )]
    Denied {
        /// What was tried.
        action: &'static str,
        /// EACCES or EPERM.
        source: io::Error,
    },
    /// No descriptor was left.
    #[error(
        "no file descriptor is left to {action}: {source}. Raise the limit (ulimit -n) or use \
         fewer levels"
    )]
    TooManyFiles {
        /// What was tried.
        action: &'static str,
        /// EMFILE or ENFILE.
        source: io::Error,
    },
    /// The datapath has no flows beside those of its lanes.
    #[error(
        "the datapath {datapath} gives no topic a port of its own: it shares its level's. Choose \
         xdp if the topic needs a budget of its own"
    )]
    NoFlows {
        /// Its name.
        datapath: &'static str,
    },
    /// All flows beside those of lanes are in use.
    #[error(
        "all {limit} ports for topics of their own are in use: give fewer topics a budget of their \
         own, or let them share their level's"
    )]
    TooManyFlows {
        /// How many there can be.
        limit: usize,
    },
    /// A lane of a device could not be made.
    #[error("interface {interface} gets no lanes: {source}")]
    Device {
        /// The device.
        interface: String,
        /// What happened, and what to do about it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The network is full.
    #[error("the memory network has no room for another participant: {limit} are attached")]
    NetworkFull {
        /// How many it holds.
        limit: usize,
    },
    /// Anything else the system said.
    #[error("could not {action}: {source}. If the cause is not plain, strace shows the call")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    /// The error of a system call, by what can be done about it.
    #[must_use]
    pub fn of(action: &'static str, source: io::Error) -> OpenError {
        match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => OpenError::Denied { action, source },
            Some(libc::EMFILE | libc::ENFILE) => OpenError::TooManyFiles { action, source },
            _ => OpenError::System { action, source },
        }
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

    #[test]
    fn errors_say_what_to_do() {
        let cases = [
            (libc::EACCES, "rights it needs"),
            (libc::EMFILE, "ulimit -n"),
            (libc::EADDRNOTAVAIL, "could not bind a socket"),
        ];
        for (number, remedy) in cases {
            let source = io::Error::from_raw_os_error(number);
            let message = OpenError::of("bind a socket", source).to_string();
            assert!(message.contains(remedy), "{message}");
        }
    }
}
