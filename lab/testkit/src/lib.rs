//! Test support for datapaths.
//!
//! - [`conformance`](mod@conformance): the suite that every implementation of
//!   [`Datapath`](isolane_datapath::Datapath) passes, and the table of its results;
//! - [`fault`]: a datapath that wraps another one and injects faults;
//! - [`fixtures`]: memory networks and loopback sockets on which the suite runs.
//!
//! Product crates use this crate in integration tests only: a unit test would see two copies of
//! `isolane-datapath`.

#![forbid(unsafe_code)]

pub mod conformance;
pub mod fault;
pub mod fixtures;

pub use fault::{Fault, FaultHandle, FaultPlan, Injected, Plug};
