//! Tests of the AF_XDP datapath, including its conformance, on veth pairs between network namespaces of this program.
//! They need root, and print a message without it.

#[path = "../bpf/mod.rs"]
#[allow(unreachable_pub)]
mod bpf;
#[path = "../hosts/mod.rs"]
#[allow(unreachable_pub)]
mod hosts;
#[path = "../packet_socket/mod.rs"]
#[allow(unreachable_pub)]
mod packet_socket;
#[path = "../udp_frame/mod.rs"]
#[allow(unreachable_pub)]
mod udp_frame;

mod early_rate_limits;
mod fixture;
mod flows;
mod interface;
mod martian;
mod network;
mod route_changes;
mod sending;
mod sharing;
mod stamps;
mod support;

mod unicast {
    isolane_testkit::conformance!(unicast, crate::fixture::XdpOnVeth);
}

mod multicast {
    isolane_testkit::conformance!(multicast, crate::fixture::XdpOnVeth);
}
