//! The datapath of lanes keeps the contract, on veth pairs between network namespaces of this program.
//! It takes root, and says so where it is missing.

#[path = "../hosts/mod.rs"]
#[allow(unreachable_pub)]
mod hosts;

mod fixture;
mod flows;
mod interface;
mod network;
mod news;
mod sending;
mod sharing;
mod support;

mod unicast {
    isolane_datapath::conformance!(unicast, crate::fixture::XdpOnVeth);
}

mod multicast {
    isolane_datapath::conformance!(multicast, crate::fixture::XdpOnVeth);
}
