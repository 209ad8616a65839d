//! Why a level gets no lane, and what to do about it.

use crate::classifier::{ClassifierError, FlowError};
use crate::egress::EgressError;
use crate::limits::MAX_QUEUES;
use crate::socket::{OpenError, UmemError};

/// Why lanes cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// The system has no memory left for frames.
    #[error(transparent)]
    NoMemory(#[from] isolane_datapath::NoMemory),
    /// Nothing leaves the host by any interface in use.
    #[error(
        "no interface that leaves this host is up with an IPv4 address, and lanes are those of a \
         device: bring one up, or use the datapath udp"
    )]
    NoInterface,
    /// The named interface cannot be used.
    #[error(
        "interface {interface} is not up with an IPv4 address: ip link set {interface} up, or name \
         another one of {present}"
    )]
    NotUp {
        /// As asked for.
        interface: String,
        /// Those that are.
        present: String,
    },
    /// Frames are longer than chunks.
    #[error(
        "an MTU of {mtu_bytes} bytes does not fit the largest chunks, which take {room_bytes}: \
         ip link set {interface} mtu {room_bytes}, or less"
    )]
    MtuTooLarge {
        /// Its name.
        interface: String,
        /// Its MTU.
        mtu_bytes: usize,
        /// The largest one that fits.
        room_bytes: usize,
    },
    /// A queue beyond those that can be used.
    #[error(
        "level {level} is to have its lane on queue {queue}, and lanes are on queues below \
         {MAX_QUEUES}: choose one of these"
    )]
    QueueNumber {
        /// Which.
        level: u8,
        /// As asked for.
        queue: u32,
    },
    /// A lane that nobody reads would take what others need.
    #[error(
        "queue {queue} has {chunks} frames to receive into and needs {needed}: {rings} for the rings \
         of its lanes, {held} that their readers may hold, {reserve} in reserve. Set \
         receive_frames = {needed} or more, or leave it out, use shorter rings (receive_entries), or, in a \
         program, trust recycling (XdpOptions::overcommit)"
    )]
    UmemTooSmall {
        /// Which.
        queue: u32,
        /// It has.
        chunks: u32,
        /// It needs.
        needed: u32,
        /// Entries of all lanes' rings.
        rings: u32,
        /// Frames that all lanes' readers may hold.
        held: u32,
        /// Those for the most critical lane.
        reserve: u32,
    },
    /// Memory that the kernel would not take.
    #[error(transparent)]
    Memory(#[from] UmemError),
    /// A queue or a socket on it.
    #[error(transparent)]
    Socket(#[from] OpenError),
    /// The program at the driver.
    #[error(transparent)]
    Classifier(#[from] ClassifierError),
    /// Its table of flows.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// Routes and neighbours.
    #[error(transparent)]
    Egress(#[from] EgressError),
}
