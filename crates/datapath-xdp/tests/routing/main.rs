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

use isolane_datapath_xdp::routing::{
    Device, Flow, Reason, RouteDecision, Router, RouterConfig, Template,
};
use isolane_wire::level::Level;

use hosts::{THERE, index_of, ip};

/// Opens the router for this host's interface.
fn router() -> Router {
    let config = RouterConfig {
        interface_index: index_of("host-a"),
        vlan: None,
    };
    Router::open(&config).expect("netlink in the test's namespace")
}

/// Reads all pending notifications of the kernel.
fn follow(router: &mut Router) {
    for _ in 0..1_000 {
        if router.follow().is_drained {
            return;
        }
    }
    panic!("the kernel never stops: {:?}", router.counts());
}

fn decide(router: &mut Router, destination: Ipv4Addr) -> RouteDecision {
    follow(router);
    router.resolve(destination.octets())
}

fn device(router: &mut Router, destination: Ipv4Addr) -> Option<Device> {
    match decide(router, destination) {
        RouteDecision::Device(device) => Some(device),
        RouteDecision::Kernel(_) => None,
    }
}

fn reason(router: &mut Router, destination: Ipv4Addr) -> Option<Reason> {
    match decide(router, destination) {
        RouteDecision::Device(_) => None,
        RouteDecision::Kernel(reason) => Some(reason),
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
fn headers(router: &mut Router, destination: Ipv4Addr) -> Result<Template, Reason> {
    follow(router);
    router.headers(&flow(destination, 3), 64).copied()
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
