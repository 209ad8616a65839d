//! Contract of datapaths, frame pools, and the datapaths over memory and UDP sockets.
//!
//! A *datapath* moves datagrams between this host's memory and other participants. It knows lanes and bytes, but no
//! RTPS: the protocol interprets datagrams, and the executor decides when to move them.
//!
//! # Path of a frame
//!
//! ```text
//!  receive:  pool ─> armed in the datapath ─> ReceiveBurst ─> read by the protocol ─> pool
//!  send:     pool ─> filled by a writer ─> TransmitBurst ─> datapath ─> pool
//! ```
//!
//! A [`Frame`] has exactly one owner, cannot be cloned, and returns to its class in the [`Pool`] when dropped. An
//! *armed* frame is ready for a datagram to arrive. A class has the frames of one lane and direction. A lane that
//! keeps all its frames therefore takes none from a more critical lane.
//!
//! # Lanes
//!
//! A [`Lane`] is an independent path through the host with its own sockets (or rings), frames and counters. There is
//! one for each level, and one for discovery. Lanes share nothing in this crate. A flooded lane costs the other lanes
//! only the processor time that the caller spends on the flooded one.
//!
//! # Guarantees
//!
//! Calls take no locks and never wait (`tests/no_locks.rs`); they allocate nothing after a lane is open
//! (`tests/no_allocation.rs`); no datagram is lost without a counter for the reason ([`ledger`]).

pub mod burst;
pub mod clock;
pub mod contract;
mod error;
pub mod flow;
pub mod kind;
pub mod lane;
pub mod ledger;
pub mod limits;
pub mod memory;
mod network;
mod out_of_memory;
pub mod pool;
pub mod ports;
pub mod udp;

pub use burst::{BurstFull, ReceiveBurst, ReceivedFrame, SendReport, TransmitBurst};
pub use contract::{Capabilities, Datapath, ErrorClass, OpenError, Wakeup, Warning};
pub use flow::{
    Budget, FlowId, FlowObservation, InterfaceObservation, InterfaceRateLimit, Observation,
    OverBudget, RateLimit, RateLimitError, RateLimitTarget, RingObservation,
};
pub use kind::{DatapathFactory, DatapathKind, Kinds};
pub use lane::Lane;
pub use ledger::{
    CounterNames, Event, EventCounts, Imbalance, LaneLedger, Ledger, ReceiveDrop, Refusal,
};
pub use memory::{Memory, Network};
pub use network::{Interfaces, MIN_SAMPLE_PORT, NetworkConfig, SAMPLE_PORTS};
pub use out_of_memory::{ExitWithoutMemory, zeroed};
pub use pool::{Class, DeviceConfig, DeviceMemory, Frame, LeasedFrame, NoMemory, Pool, PoolConfig};
pub use udp::{Udp, UdpKind, UdpOptions};
