//! Comparison of routes and headers with the kernel's, between two hosts.

#[path = "../../../../tests/support/counting_allocator.rs"]
mod counting_allocator;
#[path = "../hosts/mod.rs"]
mod hosts;

mod frames;
mod interface;
mod neighbours;
mod routes;

use std::net::{Ipv4Addr, UdpSocket};

use isolane_datapath_xdp::egress::{Device, Egress, EgressConfig, Flow, Reason, Template, Way};
use isolane_wire::level::Level;

use hosts::{THERE, index_of, ip};

/// Opens the egress tables for this host's interface.
fn egress() -> Egress {
    let config = EgressConfig {
        interface_index: index_of("host-a"),
        vlan: None,
    };
    Egress::open(&config).expect("netlink in the test's namespace")
}

/// Reads all pending notifications of the kernel.
fn follow(egress: &mut Egress) {
    for _ in 0..1_000 {
        if egress.follow().is_drained {
            return;
        }
    }
    panic!("the kernel never stops: {:?}", egress.counts());
}

fn way(egress: &mut Egress, destination: Ipv4Addr) -> Way {
    follow(egress);
    egress.resolve(destination.octets())
}

fn device(egress: &mut Egress, destination: Ipv4Addr) -> Option<Device> {
    match way(egress, destination) {
        Way::Device(device) => Some(device),
        Way::Kernel(_) => None,
    }
}

fn reason(egress: &mut Egress, destination: Ipv4Addr) -> Option<Reason> {
    match way(egress, destination) {
        Way::Device(_) => None,
        Way::Kernel(reason) => Some(reason),
    }
}

fn flow(destination: Ipv4Addr, level: u8) -> Flow {
    Flow {
        destination: destination.octets(),
        destination_port: 7411,
        source_port: 40_000,
        level: Level::new(level).expect("a level"),
    }
}

/// Returns the headers of a flow to a destination, as a datapath requests them.
fn headers(egress: &mut Egress, destination: Ipv4Addr) -> Result<Template, Reason> {
    follow(egress);
    egress.headers(&flow(destination, 3), 64).copied()
}

/// Sends a datagram by a kernel socket, so that the kernel resolves the neighbour.
fn send_by_kernel(destination: Ipv4Addr) {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
    // The destination may be unreachable by now, which is no error here.
    let _ = socket.send_to(b"hello", (destination, 9));
}

/// Lets the kernel resolve the other host.
fn meet() {
    send_by_kernel(THERE);
    hosts::eventually("the other host answers", || {
        ip("neighbour show").contains("lladdr").then_some(())
    });
}
