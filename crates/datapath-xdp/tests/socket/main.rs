//! AF_XDP sockets on real devices: veth pairs in network namespaces made for each test.
//!
//! These need CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF. Where namespaces are not permitted
//! a test says so and ends.

#[path = "../bpf/mod.rs"]
mod bpf;
#[path = "../hosts/mod.rs"]
mod hosts;

mod full;
mod lanes;
mod opening;
mod support;
mod waking;
