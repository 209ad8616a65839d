//! Errors of opening lanes, each with its remedy.

use isolane_datapath::{ErrorClass, OpenError as DatapathError};

use crate::classifier::{ClassifierError, FlowError};
use crate::limits::MAX_QUEUES;
use crate::routing::RouterError;
use crate::socket::{OpenError, UmemError};

/// Error of opening lanes.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// The system has no memory left for frames.
    #[error(transparent)]
    NoMemory(#[from] isolane_datapath::NoMemory),
    /// No usable interface other than loopback.
    #[error(
        "no interface that leaves this host is up with an IPv4 address, and lanes are those of a \
         device: bring one up, or use the datapath udp"
    )]
    NoInterface,
    /// The named interface is not up with an IPv4 address.
    #[error(
        "interface {interface} is not up with an IPv4 address: ip link set {interface} up, or name \
         another one of {present}"
    )]
    NotUp {
        /// Requested interface.
        interface: String,
        /// Usable interfaces.
        present: String,
    },
    /// The MTU exceeds the largest chunks.
    #[error(
        "an MTU of {mtu_bytes} bytes does not fit the largest chunks, which take {room_bytes}: \
         ip link set {interface} mtu {room_bytes}, or less"
    )]
    MtuTooLarge {
        /// Name of the interface.
        interface: String,
        /// MTU of the interface.
        mtu_bytes: usize,
        /// Largest MTU that fits.
        room_bytes: usize,
    },
    /// The queue is beyond the limit.
    #[error(
        "level {level} is to have its lane on queue {queue}, and lanes are on queues below \
         {MAX_QUEUES}: choose one of these"
    )]
    QueueNumber {
        /// Level of the lane.
        level: u8,
        /// Requested queue.
        queue: u32,
    },
    /// Too few chunks: an unread lane would take chunks that other lanes need.
    #[error(
        "queue {queue} has {chunks} frames to receive into and needs {needed}: {rings} for the rings \
         of its lanes, {held} that their readers may hold, {reserve} in reserve. Set \
         receive_frames = {needed} or more, or leave it out, use shorter rings (receive_entries), or, in a \
         program, trust recycling (XdpOptions::overcommit)"
    )]
    UmemTooSmall {
        /// Queue number.
        queue: u32,
        /// Configured chunks.
        chunks: u32,
        /// Needed chunks.
        needed: u32,
        /// Entries of all lanes' rings.
        rings: u32,
        /// Frames that all lanes' readers may hold.
        held: u32,
        /// Reserve of the most critical lane.
        reserve: u32,
    },
    /// The memory cannot be registered.
    #[error(transparent)]
    Memory(#[from] UmemError),
    /// A queue or socket cannot be opened.
    #[error(transparent)]
    Socket(#[from] OpenError),
    /// The classifier cannot be loaded or attached.
    #[error(transparent)]
    Classifier(#[from] ClassifierError),
    /// A flow cannot be registered.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// Routes and neighbours cannot be followed.
    #[error(transparent)]
    Router(#[from] RouterError),
}

impl XdpError {
    /// Class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            XdpError::QueueNumber { .. } | XdpError::UmemTooSmall { .. } => {
                ErrorClass::InvalidOption
            }
            XdpError::NoMemory(_)
            | XdpError::Memory(UmemError::Memory { .. })
            | XdpError::Flow(FlowError::NoSlot { .. } | FlowError::PortFull { .. }) => {
                ErrorClass::LimitReached
            }
            XdpError::Socket(error) => error.class(),
            XdpError::Classifier(error) => error.class(),
            XdpError::NoInterface
            | XdpError::NotUp { .. }
            | XdpError::MtuTooLarge { .. }
            | XdpError::Memory(_)
            | XdpError::Flow(_)
            | XdpError::Router(_) => ErrorClass::System,
        }
    }

    /// Converts to the error type of the datapath contract.
    pub(super) fn on(self, interface: String) -> DatapathError {
        DatapathError::Device {
            interface,
            class: self.class(),
            source: Box::new(self),
        }
    }
}
