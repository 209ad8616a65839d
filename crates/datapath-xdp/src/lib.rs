//! AF_XDP lanes, and the eBPF classifier that feeds them.
//!
//! A frame of a registered flow leaves the kernel's way at the driver: the [`classifier`] looks at
//! its headers, charges the flow's budget and hands it to the lane of its level, a ring of its own
//! in memory that this program shares with the kernel ([`socket`]). All other frames take the
//! kernel's way, untouched. What is sent gets its headers here ([`egress`]) and goes to the
//! device's queue without a queueing discipline in between. [`xdp`] puts the parts together as a
//! [`Datapath`](isolane_datapath::Datapath).

pub mod classifier;
pub mod egress;
pub mod limits;
pub mod preflight;
pub mod socket;
pub mod xdp;
