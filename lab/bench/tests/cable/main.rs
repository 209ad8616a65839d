//! Tests of the testbed, the cable and the flood on real devices, in network namespaces of each test.
//!
//! They need CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW. Without these a test prints "not permitted: ..." and checks
//! only that the error names the right.

mod background_load;
#[path = "../../../../crates/datapath-xdp/tests/bpf/mod.rs"]
mod bpf;
mod leftovers;
mod multicast_load;
mod relay;
mod steer;
mod support;
