//! The testbed, the cable and the flood on real devices, in network namespaces made for each test.
//!
//! These need CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW. Where they are missing a test says "not
//! permitted: ..." and checks only that the error names the right.

#[path = "../../../../crates/datapath-xdp/tests/bpf/mod.rs"]
mod bpf;
mod flood;
mod leftovers;
mod relay;
mod steer;
mod storm;
mod support;
