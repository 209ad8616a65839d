//! Comparison of routes with the kernel's (`ip route get`).

use std::net::Ipv4Addr;

use isolane_datapath_xdp::egress::{Egress, Reason, Way};
use isolane_wire::ethernet::MacAddress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::hosts::{HERE, Hosts, THERE, ip, mac_of};
use crate::{device, egress, follow, meet, reason, way};

/// Route to a destination.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The packet leaves by `host-a`, to this neighbour, from this address.
    Leaves {
        next_hop: Ipv4Addr,
        source: Ipv4Addr,
    },
    /// Any other result.
    Other,
}

fn kernel(destination: Ipv4Addr) -> Verdict {
    let output = std::process::Command::new("ip")
        .args(["-o", "route", "get", &destination.to_string()])
        .output()
        .expect("ip, of the package iproute2");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let behind = |word: &str| {
        let at = words.iter().position(|known| *known == word)?;
        words.get(at + 1).copied()
    };
    let is_plain = output.status.success() && !["local", "broadcast"].contains(&words[0]);
    match (is_plain, behind("dev"), behind("src")) {
        (true, Some("host-a"), Some(source)) => Verdict::Leaves {
            next_hop: behind("via")
                .unwrap_or(words[0])
                .parse()
                .expect("an address"),
            source: source.parse().expect("an address"),
        },
        _ => Verdict::Other,
    }
}

/// Checks that isolane and the kernel agree about each destination. All neighbours are known.
fn agree(egress: &mut Egress, when: &str) {
    let destinations = [
        "10.78.0.2",
        "10.78.0.1",
        "10.78.0.77",
        "10.79.0.1",
        "10.79.5.5",
        "10.80.0.1",
        "10.80.1.1",
        "10.81.0.1",
        "10.82.0.9",
        "127.0.0.1",
        "127.3.2.1",
        "192.0.2.1",
        "8.8.8.8",
    ];
    for destination in destinations {
        let destination: Ipv4Addr = destination.parse().expect("an address");
        let ours = match way(egress, destination) {
            Way::Device(device) => Verdict::Leaves {
                next_hop: Ipv4Addr::new(10, 78, 0, device.destination_mac.0[5]),
                source: device.source.into(),
            },
            Way::Kernel(_) => Verdict::Other,
        };
        assert_eq!(ours, kernel(destination), "{destination} {when}");
    }
}

/// Adds neighbours 10.78.0.2 to .9 and .77. The last byte of each hardware address equals that of the IP address.
fn know_neighbours() {
    for last in (2..=9_u8).chain([77]) {
        ip(&format!(
            "neighbour replace 10.78.0.{last} lladdr {} dev host-a nud permanent",
            MacAddress([2, 0, 0, 0, 0, last])
        ));
    }
}

#[test]
fn ways_are_the_kernels_through_every_change() {
    let _hosts = Hosts::new();
    know_neighbours();
    ip("link add other-a type veth peer name other-b");
    ip("link set other-a up");
    ip("link set other-b up");
    ip("address add 10.82.0.1/24 dev other-a");
    let mut egress = egress();
    agree(&mut egress, "at the start");
    for change in [
        "route add default via 10.78.0.2",
        "route add 10.79.0.0/16 via 10.78.0.3",
        "route add 10.79.5.0/24 via 10.78.0.4",
        "route add 10.80.0.0/16 via 10.78.0.5 metric 50",
        "route add 10.80.0.0/16 via 10.78.0.6 metric 10",
        "route add blackhole 10.80.1.0/24",
        "route add unreachable 192.0.2.0/24",
        "route add 10.81.0.0/24 dev other-a",
        "route replace 10.79.0.0/16 via 10.78.0.7",
        "route del 10.80.0.0/16 via 10.78.0.6 metric 10",
        "address add 10.78.0.11/32 dev host-a",
        "route change default via 10.78.0.8 src 10.78.0.11",
        "address add 10.79.5.5/32 dev lo",
        "address del 10.79.5.5/32 dev lo",
        "route add 10.78.0.77/32 dev other-a",
        // The kernel removes its routes without a notification.
        "link set other-a down",
        "route del blackhole 10.80.1.0/24",
        "route append 10.79.5.0/24 via 10.78.0.9",
        "address del 10.78.0.11/32 dev host-a",
        "route flush table main",
    ] {
        ip(change);
        agree(&mut egress, &format!("after {change}"));
    }
}

#[test]
fn policy_rules_leave_everything_to_the_kernel_as_long_as_there_are_any() {
    let _hosts = Hosts::new();
    meet();
    let mut egress = egress();
    assert!(device(&mut egress, THERE).is_some());
    ip("rule add from 192.0.2.0/24 table 100");
    for destination in [THERE, Ipv4Addr::new(239, 255, 23, 0)] {
        assert_eq!(reason(&mut egress, destination), Some(Reason::Rules));
    }
    ip("rule del from 192.0.2.0/24 table 100");
    assert!(device(&mut egress, THERE).is_some());
}

#[test]
fn who_only_looks_when_the_socket_is_readable_misses_nothing() {
    let _hosts = Hosts::new();
    know_neighbours();
    let mut egress = egress();
    follow(&mut egress);
    let far = [10, 79, 0, 1];
    // Adding a rule, and replacing a route, each cause one notification, after which a table is read again.
    ip("rule add from 192.0.2.0/24 table 100");
    until_readable_no_more(&mut egress);
    assert_eq!(egress.resolve(far), Way::Kernel(Reason::Rules));
    ip("rule del from 192.0.2.0/24 table 100");
    ip("route add 10.79.0.0/16 via 10.78.0.2 mtu 1300");
    ip("route change 10.79.0.0/16 via 10.78.0.2 mtu 1200");
    until_readable_no_more(&mut egress);
    let Way::Device(device) = egress.resolve(far) else {
        panic!("{:?}", egress.resolve(far));
    };
    assert_eq!(device.mtu_bytes, 1_200);
}

/// Processes one netlink datagram at a time, while the socket is readable.
fn until_readable_no_more(egress: &mut Egress) {
    let is_readable = |egress: &Egress| {
        let descriptor = egress.descriptor();
        let mut looked_at = [PollFd::new(&descriptor, PollFlags::IN)];
        poll(&mut looked_at, Some(&Timespec::default())).expect("poll") > 0
    };
    while is_readable(egress) {
        egress.follow_at_most(1);
    }
}

#[test]
fn ways_with_several_paths_or_for_one_service_are_left_to_the_kernel() {
    let _hosts = Hosts::new();
    know_neighbours();
    let mut egress = egress();
    ip("route add 10.79.0.0/16 nexthop via 10.78.0.2 nexthop via 10.78.0.3");
    ip("route add 10.80.0.0/16 via 10.78.0.2 tos 0x10");
    for destination in [Ipv4Addr::new(10, 79, 0, 1), Ipv4Addr::new(10, 80, 0, 1)] {
        assert_eq!(reason(&mut egress, destination), Some(Reason::Unsupported));
    }
}

#[test]
fn a_route_may_lower_the_mtu() {
    let _hosts = Hosts::new();
    know_neighbours();
    let mut egress = egress();
    let destination = Ipv4Addr::new(10, 79, 0, 1);
    ip("route add 10.79.0.0/16 via 10.78.0.2 mtu 1300");
    let mtu = |egress: &mut Egress| device(egress, destination).map(|device| device.mtu_bytes);
    assert_eq!(mtu(&mut egress), Some(1300));
    ip("route change 10.79.0.0/16 via 10.78.0.2 mtu 1200");
    assert_eq!(mtu(&mut egress), Some(1200));
}

#[test]
fn groups_leave_by_the_device_whatever_the_routes_say() {
    let _hosts = Hosts::new();
    let mut egress = egress();
    let group = Ipv4Addr::new(239, 255, 23, 0);
    let found = device(&mut egress, group).expect("the device's way");
    assert_eq!(found.destination_mac, MacAddress([1, 0, 0x5e, 0x7f, 23, 0]));
    assert_eq!(found.source_mac, MacAddress(mac_of("host-a")));
    assert_eq!(found.source, HERE.octets());
    let broadcast = device(&mut egress, Ipv4Addr::new(10, 78, 0, 255));
    let broadcast = broadcast.expect("the device's way");
    assert_eq!(broadcast.destination_mac, MacAddress::BROADCAST);
}
