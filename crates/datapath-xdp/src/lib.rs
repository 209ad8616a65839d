//! AF_XDP lanes, and the eBPF classifier that feeds them.
//!
//! A frame of a registered flow leaves the kernel's path in the driver. The [`classifier`] reads its headers, charges
//! the flow's budget and redirects the frame to its level's lane, a ring in memory shared with the kernel ([`socket`]).
//! All other frames pass to the kernel unchanged. Sent datagrams get their headers here ([`routing`]) and go to the
//! device's queue without a queueing discipline. [`xdp`] combines these parts to a
//! [`Datapath`](isolane_datapath::Datapath).

pub mod classifier;
pub mod limits;
pub mod requirements;
pub mod routing;
pub mod socket;
pub mod xdp;
