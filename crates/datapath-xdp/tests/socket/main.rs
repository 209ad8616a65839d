//! Tests of AF_XDP sockets on veth pairs, in network namespaces of each test.
//!
//! They need CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF. Where namespaces are not permitted, a test prints a
//! message and ends.

#[path = "../bpf/mod.rs"]
mod bpf;
#[path = "../hosts/mod.rs"]
mod hosts;

mod full;
mod lanes;
mod opening;
mod support;
mod waking;
