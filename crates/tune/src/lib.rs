//! What a machine is like, and what of it stands in the way of critical topics.
//!
//! [`probe`] reads a machine into [`Facts`], which are plain values that can be recorded;
//! [`examine`] turns facts, and what a description needs, into [`Finding`]s: what is so, what it
//! costs, what to do. Only `probe` touches the machine, and it changes nothing: it reads sysfs and
//! procfs, asks netlink, and opens a socket that it closes again. `examine` is a pure function, so
//! that recorded machines are its tests.
//!
//! Beside them, for those who ask why nothing arrives: what packet filters do with a port
//! ([`packet_filters`]), which starts the system's own tools to list their rules.

#![forbid(unsafe_code)]

mod doctor;
mod facts;
mod filters;
pub mod limits;
mod needs;
mod probe;

pub use doctor::{Finding, Severity, examine};
pub use facts::{
    Cores, Facts, Firewall, IdleState, Interface, Kernel, LaneGround, Memory, Network, Permission,
    Rights, Scheduling,
};
pub use filters::{Chain, Direction, PacketFilters, Rules, Verdict, packet_filters};
pub use needs::Needs;
pub use probe::{interfaces, probe};
