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
        "no interface other than loopback is up with an IPv4 address, and lanes need a device: bring an interface up, \
         or use the datapath udp"
    )]
    NoInterface,
    /// The named interface is not up with an IPv4 address.
    #[error(
        "interface {interface} is not up with an IPv4 address: ip link set {interface} up, or name another interface: \
         {present}"
    )]
    NotUp {
        /// Requested interface.
        interface: String,
        /// Usable interfaces.
        present: String,
    },
    /// The MTU exceeds the largest chunks.
    #[error(
        "the MTU of {mtu_bytes} bytes is too large for the largest chunks, which hold {room_bytes}: ip link set \
         {interface} mtu {room_bytes}, or less"
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
        "the lane of level {level} cannot be on queue {queue}, because lanes use queues below {MAX_QUEUES}: choose a \
         lower queue"
    )]
    QueueNumber {
        /// Level of the lane.
        level: u8,
        /// Requested queue.
        queue: u32,
    },
    /// Too few chunks: an unread lane would take chunks that other lanes need.
    #[error(
        "queue {queue} has {chunks} receive frames, but needs {needed}: {rings} for the rings of its lanes, {held} \
         that the readers of these lanes may hold, {reserve} in reserve. Set receive_frames = {needed} or more, or \
         leave it out; or use shorter rings (receive_entries); or, in a program, rely on recycling \
         (XdpOptions::overcommit)"
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
