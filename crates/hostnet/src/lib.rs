//! Reading and setting of Linux networking.
//!
//! Interfaces, routes, neighbours, queues and queueing disciplines by [`netlink`], drivers by [`ethtool`], NAPI threads
//! ([`napi`]). All calls act on the network namespace of the calling thread, or of the thread that opened the
//! connection. This crate decides nothing: `datapath-xdp` uses it to route frames, `tune` to plan.

pub mod ethtool;
pub mod kernel;
pub mod limits;
pub mod link;
pub mod napi;
pub mod neighbour;
pub mod netdev;
pub mod netlink;
pub mod qdisc;
pub mod route;
pub mod route_monitor;
pub mod rx_queue_probe;
pub mod xdp_facts;
