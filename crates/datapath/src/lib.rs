//! Contract of datapaths, frame pools, and the datapaths over memory and UDP sockets.
//!
//! A *datapath* moves datagrams between this host's memory and other participants. It knows
//! lanes and bytes, nothing of RTPS: what is in a datagram is the engine's business, when to
//! move one is the executor's.
//!
//! # The way of a frame
//!
//! ```text
//!  receive:  pool ─> armed in the datapath ─> ReceiveBurst ─> read by the engine ─> pool
//!  send:     pool ─> filled by a writer ─> TransmitBurst ─> datapath ─> pool
//! ```
//!
//! A [`Frame`] is owned by exactly one holder, cannot be cloned, and goes home to the class of
//! the [`Pool`] it came from when it is dropped. Classes are per lane and direction, so that a
//! lane which holds on to its frames takes none from a more critical one.
//!
//! # Lanes
//!
//! A [`Lane`] is a way of its own through the host: own sockets (or rings), own frames, own
//! counters. There is one a level, and one for discovery. Lanes meet nowhere in this crate: a
//! flooded lane costs the others nothing but the processor time that somebody chose to spend
//! on it.
//!
//! # What never happens here
//!
//! No lock is taken and nothing waits (`tests/no_locks.rs`); nothing is allocated after a lane
//! is open (`tests/no_allocation.rs`); no datagram is lost without a counter that names the
//! reason ([`ledger`]).

pub mod burst;
pub mod clock;
pub mod contract;
pub mod flow;
pub mod lane;
pub mod ledger;
pub mod limits;
pub mod memory;
mod out_of_memory;
pub mod pool;
mod trouble;
pub mod udp;
mod zeroed;

pub use burst::{BurstFull, ReceiveBurst, ReceivedFrame, SendReport, TransmitBurst};
pub use contract::{Capabilities, Datapath, Note, OpenError, Wakeup};
pub use flow::{
    Budget, FlowId, FlowObservation, InterfaceObservation, InterfaceProtection, Observation, Over,
    ProtectError, Protected, Protection, RingObservation,
};
pub use lane::Lane;
pub use ledger::{Counted, Counts, Imbalance, LaneLedger, Ledger, ReceiveDrop, Refusal};
pub use memory::{Memory, Network};
pub use out_of_memory::ExitWithoutMemory;
pub use pool::{Class, DeviceConfig, DeviceMemory, Frame, LeasedFrame, NoMemory, Pool, PoolConfig};
pub use udp::{Interfaces, Udp, UdpConfig};
pub use zeroed::zeroed;
