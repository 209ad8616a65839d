//! Conformance of the UDP datapath by multicast, in a network namespace of this program.
//!
//! The program never joins groups in the machine's own network. It first moves to a namespace that has only a loopback
//! interface, brings that up, and sets its flag MULTICAST. If the kernel refuses the namespace, the program prints a
//! message, and fails in CI.

#[path = "common/cases.rs"]
mod cases;
#[path = "common/namespace.rs"]
mod namespace;

use std::os::fd::AsRawFd;
use std::process::ExitCode;

use cases::{Case, in_ci, run};
use isolane_datapath::ledger::Refusal;
use isolane_datapath::{
    Datapath, Interfaces, Lane, NetworkConfig, OpenError, ReceiveBurst, SendReport, TransmitBurst,
    Udp, Warning,
};
use isolane_testkit::conformance::{Fixture, Options, multicast_cases, unicast_cases};
use isolane_testkit::{Fault, FaultPlan};
use isolane_wire::locator::Locator;
use namespace::{Tunnel, enter_namespace, set_address, set_loopback_flags, set_up};

const LANE: Lane = Lane::ALL[8];

fn main() -> ExitCode {
    if let Err(error) = enter_namespace() {
        eprintln!("the kernel refuses a network namespace ({error}): no multicast case has run");
        return if in_ci() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        };
    }
    let mut failed = 0;
    set_loopback_flags(libc::IFF_UP).expect("loopback comes up");
    failed += run("without the flag MULTICAST", &FLAGLESS);
    set_loopback_flags(libc::IFF_UP | libc::IFF_MULTICAST).expect("loopback takes the flag");
    failed += run("loopback", &unicast_cases::<UdpWithGroups>());
    failed += run("loopback", &multicast_cases::<UdpWithGroups>());
    failed += run("fault over loopback", &multicast_cases::<UdpWithPlan>());
    failed += run("all interfaces", &multicast_cases::<UdpOnAll>());
    failed += run("sockets", &SOCKETS);
    match Tunnel::open("probe", [10, 3, 0, 1]) {
        Ok(tunnel) => {
            drop(tunnel);
            failed += run("two interfaces", &INTERFACES);
        }
        Err(error) => {
            eprintln!("no tunnel can be opened ({error}): nothing was tried on two interfaces");
            failed += usize::from(in_ci());
        }
    }
    failed += run("loopback down", &LAST);
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

struct UdpWithGroups;
struct UdpOnAll;
/// Fault datapath with an empty plan.
struct UdpWithPlan;

fn attach(interfaces: Interfaces, options: &Options) -> Udp {
    let config = NetworkConfig {
        interfaces,
        receive_buffer_bytes: options.queue_bytes,
        pool: options.pool,
        ..NetworkConfig::default()
    };
    Udp::new(config).expect("loopback is up")
}

impl Fixture for UdpWithGroups {
    type Datapath = Udp;

    fn new() -> UdpWithGroups {
        UdpWithGroups
    }

    fn attach(&mut self, options: &Options) -> Udp {
        attach(Interfaces::Loopback, options)
    }
}

impl Fixture for UdpWithPlan {
    type Datapath = Fault;

    fn new() -> UdpWithPlan {
        UdpWithPlan
    }

    fn attach(&mut self, options: &Options) -> Fault {
        let udp = attach(Interfaces::Loopback, options);
        Fault::new(Box::new(udp), FaultPlan::new(1))
    }
}

impl Fixture for UdpOnAll {
    type Datapath = Udp;

    fn new() -> UdpOnAll {
        UdpOnAll
    }

    fn attach(&mut self, options: &Options) -> Udp {
        attach(Interfaces::All, options)
    }
}

const FLAGLESS: [Case; 1] = [(
    "an_interface_without_multicast_is_noted_and_unicast_goes_on",
    an_interface_without_multicast_is_noted_and_unicast_goes_on,
)];

const SOCKETS: [Case; 4] = [
    (
        "participants_take_the_first_free_port_and_share_the_group",
        participants_take_the_first_free_port_and_share_the_group,
    ),
    (
        "participants_beyond_the_ports_of_the_domain_take_one_of_the_kernel",
        participants_beyond_the_ports_of_the_domain_take_one_of_the_kernel,
    ),
    (
        "each_level_has_its_group_and_its_priority",
        each_level_has_its_group_and_its_priority,
    ),
    (
        "a_look_that_showed_one_socket_spares_the_other_once",
        a_look_that_showed_one_socket_spares_the_other_once,
    ),
];

const INTERFACES: [Case; 3] = [
    (
        "a_group_is_sent_to_by_every_interface_as_its_level_asks",
        a_group_is_sent_to_by_every_interface_as_its_level_asks,
    ),
    (
        "an_interface_that_goes_away_is_refused_by_name_and_works_when_it_is_back",
        an_interface_that_goes_away_is_refused_by_name_and_works_when_it_is_back,
    ),
    (
        "an_interface_that_is_back_with_another_address_is_followed",
        an_interface_that_is_back_with_another_address_is_followed,
    ),
];

const LAST: [Case; 1] = [(
    "a_destination_without_a_way_is_named",
    a_destination_without_a_way_is_named,
)];

fn an_interface_without_multicast_is_noted_and_unicast_goes_on() {
    let mut udp = attach(Interfaces::All, &Options::default());
    udp.open_lane(LANE).expect("the lane opens");
    assert!(!udp.capabilities().multicast);
    assert!(udp.multicast(LANE).is_empty());
    let lo = |warning: &Warning| {
        warning.code == "no_multicast" && warning.text.contains("on interface lo:")
    };
    assert!(udp.warnings().iter().any(lo), "{:?}", udp.warnings());

    let own = udp.unicast(LANE)[0];
    let group = Locator::udpv4([239, 255, 23, 0], 7_401);
    let mut burst = TransmitBurst::new();
    burst.push(udp.pool().take(LANE).unwrap()).unwrap();
    burst.address(group).unwrap();
    burst.address(own).unwrap();
    let report = udp.send_burst(LANE, &mut burst);
    assert_eq!((report.sent, report.refused), (1, 1));
    let transmit = udp.ledger().lane(LANE).transmit;
    assert_eq!(transmit.refused(Refusal::NO_MULTICAST), 1);
    assert_eq!(udp.receive_burst(LANE, 1, &mut ReceiveBurst::new()), 1);
}

fn participants_take_the_first_free_port_and_share_the_group() {
    let open = || {
        let mut udp = attach(Interfaces::Loopback, &Options::default());
        udp.open_lane(Lane::Discovery).expect("discovery opens");
        udp
    };
    let (first, second) = (open(), open());
    let port = |udp: &Udp| udp.unicast(Lane::Discovery)[0].port;
    assert_eq!((port(&first), port(&second)), (7_410, 7_412));
    assert_eq!(
        first.multicast(Lane::Discovery),
        second.multicast(Lane::Discovery)
    );
    drop(first);
    assert_eq!(port(&open()), 7_410);
}

fn participants_beyond_the_ports_of_the_domain_take_one_of_the_kernel() {
    let open = || {
        let mut udp = attach(Interfaces::Loopback, &Options::default());
        udp.open_lane(Lane::Discovery).map(|()| udp)
    };
    let mut participants: Vec<Udp> = (0..122).map(|_| open().expect("a port")).collect();
    let beyond = participants.split_off(120);
    assert!(participants.iter().all(|udp| udp.warnings().is_empty()));
    for udp in &beyond {
        let announced = udp.unicast(Lane::Discovery)[0].port;
        assert!(
            matches!(udp.warnings(), [one] if one.code == "kernel_port" && one.text.contains("all 120 ") && one.text.contains(&format!("port {announced}."))),
            "{:?}",
            udp.warnings()
        );
        assert!(
            !udp.multicast(Lane::Discovery).is_empty(),
            "it hears the group"
        );
    }
}

fn each_level_has_its_group_and_its_priority() {
    let mut udp = attach(Interfaces::Loopback, &Options::default());
    for lane in Lane::ALL {
        udp.open_lane(lane).expect("the lane opens");
    }
    for lane in &Lane::ALL[1..] {
        let level = lane.level().unwrap().get();
        let group = udp.multicast(*lane)[0];
        assert_eq!(group.ipv4(), Some([239, 255, 16 + level, 0]));
        assert_eq!(group.port, 7_401);
    }
    // This program has all rights in its namespace, so it may set the priority of level 7.
    assert_eq!(udp.warnings(), []);
}

fn a_look_that_showed_one_socket_spares_the_other_once() {
    let mut udp = attach(Interfaces::Loopback, &Options::default());
    udp.open_lane(LANE).expect("the lane opens");
    let places = [udp.unicast(LANE)[0], udp.multicast(LANE)[0]];
    for (readable, first) in [(0b01, 1), (0b10, 1), (0b11, 2)] {
        for place in places {
            let mut burst = TransmitBurst::new();
            burst.push(udp.pool().take(LANE).unwrap()).unwrap();
            burst.address(place).unwrap();
            assert_eq!(udp.send_burst(LANE, &mut burst).sent, 1);
        }
        udp.set_readable(LANE, readable);
        assert_eq!(received(&mut udp), first, "{readable:#b}");
        assert_eq!(received(&mut udp), 2 - first, "not read before: all");
    }
}

/// Two tunnels represent two networks: the test reads from them what would be sent on the wire.
fn a_group_is_sent_to_by_every_interface_as_its_level_asks() {
    let left = Tunnel::open("left", [10, 1, 0, 1]).expect("a tunnel (/dev/net/tun)");
    let right = Tunnel::open("right", [10, 2, 0, 1]).expect("a tunnel (/dev/net/tun)");
    let mut udp = attach(Interfaces::All, &Options::default());
    udp.open_lane(LANE).expect("the lane opens");
    let addresses: Vec<_> = udp.unicast(LANE).iter().map(|one| one.ipv4()).collect();
    assert_eq!(addresses, [Some([10, 1, 0, 1]), Some([10, 2, 0, 1])]);

    let mut burst = TransmitBurst::new();
    let mut frame = udp.pool().take(LANE).unwrap();
    frame.append(b"to all").unwrap();
    burst.push(frame).unwrap();
    burst.address(udp.multicast(LANE)[0]).unwrap();
    let report = udp.send_burst(LANE, &mut burst);
    assert_eq!((report.sent, report.refused), (2, 0));
    let port = udp.unicast(LANE)[0].port as u16;
    for (tunnel, address) in [(left, [10, 1, 0, 1]), (right, [10, 2, 0, 1])] {
        let packet = tunnel.next_udp();
        let (ip, udp) = packet.split_at(20);
        assert_eq!(ip[1], 7 << 5, "DSCP is class selector 7");
        assert_eq!(ip[8], 1, "a hop at most");
        assert_eq!(ip[12..16], address, "the source is the interface's");
        assert_eq!(ip[16..20], [239, 255, 23, 0]);
        assert_eq!(udp[..2], port.to_be_bytes(), "the source is the lane's");
        assert_eq!(udp[2..4], 7_401_u16.to_be_bytes());
        assert_eq!(udp[8..], *b"to all");
    }
    // Both copies also reach this host's members, including this one.
    let mut received = ReceiveBurst::new();
    assert_eq!(udp.receive_burst(LANE, 16, &mut received), 2);
}

fn both(sent: u32, refused: u32) -> SendReport {
    SendReport { sent, refused }
}

/// Sends one datagram by unicast to a neighbour and one to the lane's group.
fn send_both(udp: &mut Udp, neighbour: [u8; 4]) -> SendReport {
    let mut burst = TransmitBurst::new();
    burst.push(udp.pool().take(LANE).unwrap()).unwrap();
    burst.address(Locator::udpv4(neighbour, 7_411)).unwrap();
    burst.address(udp.multicast(LANE)[0]).unwrap();
    udp.send_burst(LANE, &mut burst)
}

/// Receives all waiting datagrams; returns their number.
fn received(udp: &mut Udp) -> usize {
    udp.receive_burst(LANE, 16, &mut ReceiveBurst::new())
}

/// Returns whether a loop that waits for the datapath's descriptors would wake up.
fn wakes(udp: &Udp) -> bool {
    udp.descriptors().iter().any(|(_, descriptor)| {
        let mut polled = libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry, for the time of the call.
        unsafe { libc::poll(&raw mut polled, 1, 0) > 0 }
    })
}

fn an_interface_that_goes_away_is_refused_by_name_and_works_when_it_is_back() {
    const OWN: [u8; 4] = [10, 4, 0, 1];
    const NEIGHBOUR: [u8; 4] = [10, 4, 0, 2];
    const GONE: u64 = 100;
    let tunnel = Tunnel::open("leaving", OWN).expect("a tunnel (/dev/net/tun)");
    let named = Interfaces::Named(vec!["leaving".to_owned()]);
    let mut udp = attach(named, &Options::default());
    udp.open_lane(LANE).expect("the lane opens");
    let (unicast, group) = (udp.unicast(LANE).to_vec(), udp.multicast(LANE)[0]);
    assert_eq!(send_both(&mut udp, NEIGHBOUR), both(2, 0));
    assert_eq!(received(&mut udp), 1, "the group reaches this host");

    // Closing the last descriptor of its other end deletes the interface.
    drop(tunnel);
    for _ in 0..GONE {
        assert_eq!(send_both(&mut udp, NEIGHBOUR), both(0, 2));
        assert_eq!(received(&mut udp), 0);
        assert!(!wakes(&udp), "a loop would spin");
        udp.check_interfaces();
    }
    let transmit = udp.ledger().lane(LANE).transmit;
    // The first datagram was sent before housekeeping had checked the interface.
    assert_eq!(transmit.refused(Refusal::INTERFACE_GONE), GONE - 1);
    assert_eq!(transmit.refused(Refusal::UNREACHABLE), GONE + 1);

    // Another interface is created first, so that the index differs.
    let _other = Tunnel::open("other", [10, 5, 0, 1]).expect("a tunnel (/dev/net/tun)");
    let tunnel = Tunnel::open("leaving", OWN).expect("a tunnel (/dev/net/tun)");
    assert_eq!(send_both(&mut udp, NEIGHBOUR), both(1, 1), "unicast works");
    udp.check_interfaces();
    assert_eq!(send_both(&mut udp, NEIGHBOUR), both(2, 0));
    assert_eq!(received(&mut udp), 1, "the group was joined again");
    tunnel.inject(NEIGHBOUR, group);
    assert_eq!(received(&mut udp), 1, "and reaches it from outside");
    assert_eq!(udp.unicast(LANE), unicast);
    assert_eq!(udp.ledger().balance(), Ok(()));
}

fn an_interface_that_is_back_with_another_address_is_followed() {
    let named = Interfaces::Named(vec!["moving".to_owned()]);
    let tunnel = Tunnel::open("moving", [10, 4, 0, 1]).expect("a tunnel (/dev/net/tun)");
    let mut udp = attach(named, &Options::default());
    udp.open_lane(LANE).expect("the lane opens");
    drop(tunnel);
    assert!(!udp.check_interfaces(), "there is no other address yet");
    let moved = Tunnel::open("moving", [10, 6, 0, 1]).expect("a tunnel (/dev/net/tun)");
    let port = udp.unicast(LANE)[0].port as u16;
    assert!(udp.check_interfaces());
    assert_eq!(udp.unicast(LANE), [Locator::udpv4([10, 6, 0, 1], port)]);
    assert_eq!(send_both(&mut udp, [10, 6, 0, 2]), both(2, 0));
    assert_eq!(received(&mut udp), 1, "the group was joined again");
    let group = udp.multicast(LANE)[0];
    moved.inject([10, 6, 0, 2], group);
    assert_eq!(received(&mut udp), 1, "and reaches it from outside");
    assert!(!udp.check_interfaces(), "nothing has changed since");

    // The kernel sends no notification of an address that an interface got while it was down.
    set_up("moving", false).expect("it goes down");
    set_address("moving", [10, 8, 0, 1]).expect("it takes another address");
    assert!(!udp.check_interfaces(), "it is down");
    set_up("moving", true).expect("it comes up");
    assert!(udp.check_interfaces());
    assert_eq!(udp.unicast(LANE), [Locator::udpv4([10, 8, 0, 1], port)]);
    assert_eq!(udp.ledger().balance(), Ok(()));
}

/// This case comes last, because it sets the interface down.
fn a_destination_without_a_way_is_named() {
    let mut udp = attach(Interfaces::All, &Options::default());
    udp.open_lane(LANE).expect("the lane opens");
    let to = Locator::udpv4([192, 0, 2, 1], 7_411);
    let group = udp.multicast(LANE)[0];
    set_loopback_flags(libc::IFF_MULTICAST).expect("loopback goes down");
    let mut burst = TransmitBurst::new();
    burst.push(udp.pool().take(LANE).unwrap()).unwrap();
    burst.address(to).unwrap();
    burst.address(group).unwrap();
    let report = udp.send_burst(LANE, &mut burst);
    let ledger = udp.ledger();
    assert_eq!((report.sent, report.refused), (0, 2), "{ledger}");
    let transmit = ledger.lane(LANE).transmit;
    assert_eq!(transmit.refused(Refusal::UNREACHABLE), 2, "{ledger}");
    assert_eq!(ledger.balance(), Ok(()));

    let error = Udp::new(NetworkConfig::default()).err();
    let error = error.expect("no interface is up");
    assert!(matches!(error, OpenError::NoInterfaces), "{error}");
}
