//! Tests of properties that sockets add to the contract: ports, errors of opening, time stamps.

use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, BorrowedFd};

use isolane_datapath::clock::monotonic_now;
use isolane_datapath::{
    Datapath, Interfaces, Lane, NetworkConfig, OpenError, ReceiveBurst, SAMPLE_PORTS,
    TransmitBurst, Udp,
};
use isolane_wire::level::Level;

const LANE: Lane = Lane::ALL[8];
/// Domain that no program on this host uses by default.
const DOMAIN: u32 = 98;

/// Configuration for sockets on 127.0.0.1 without groups: nothing leaves the host.
fn on_loopback() -> NetworkConfig {
    NetworkConfig {
        domain: DOMAIN,
        interfaces: Interfaces::Loopback,
        multicast: false,
        ..NetworkConfig::default()
    }
}

/// Datapath whose ledger must balance at the end of a test.
#[derive(Debug)]
struct Balanced(Udp);

impl Deref for Balanced {
    type Target = Udp;

    fn deref(&self) -> &Udp {
        &self.0
    }
}

impl DerefMut for Balanced {
    fn deref_mut(&mut self) -> &mut Udp {
        &mut self.0
    }
}

impl Drop for Balanced {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.0.ledger().balance(), Ok(()));
        }
    }
}

fn open(config: NetworkConfig, lane: Lane) -> Result<Balanced, OpenError> {
    let mut udp = Udp::new(config)?;
    udp.open_lane(lane)?;
    Ok(Balanced(udp))
}

/// Sends one datagram to itself.
fn send_to_self(udp: &mut Udp) {
    let mut burst = TransmitBurst::new();
    burst.push(udp.pool().take(LANE).unwrap()).unwrap();
    burst.address(udp.unicast(LANE)[0]).unwrap();
    assert_eq!(udp.send_burst(LANE, &mut burst).sent, 1);
}

#[test]
fn on_loopback_127_0_0_1_is_announced_and_no_group() {
    let udp = open(on_loopback(), LANE).unwrap();
    let addresses: Vec<_> = udp.unicast(LANE).iter().map(|one| one.ipv4()).collect();
    assert_eq!(addresses, [Some([127, 0, 0, 1])]);
    assert_eq!(udp.networks(), [([127, 0, 0, 1], 8)]);
    assert!(udp.multicast(LANE).is_empty());
    assert!(!udp.capabilities().multicast);
}

#[test]
fn a_requested_port_is_given_or_named_as_taken() {
    let free = open(on_loopback(), LANE).unwrap().unicast(LANE)[0].port as u16;
    let mut config = on_loopback();
    config.level_ports[7] = Some(free);
    let udp = open(config.clone(), LANE).unwrap();
    assert_eq!(udp.unicast(LANE)[0].port, u32::from(free));
    let error = open(config, LANE).unwrap_err();
    assert!(matches!(error, OpenError::PortInUse { port, .. } if port == free));
    assert!(error.to_string().contains("ss -ulpn"), "{error}");
}

#[test]
fn with_fixed_ports_each_level_has_the_first_free_port_of_its_own() {
    let config = NetworkConfig {
        sample_ports: Some(7_000),
        ..on_loopback()
    };
    let port = |udp: &Udp| udp.unicast(LANE)[0].port;
    let first = open(config.clone(), LANE).unwrap();
    let second = open(config.clone(), LANE).unwrap();
    assert_eq!((port(&first), port(&second)), (7_007, 7_015));
    drop(first);
    let all: Vec<_> = (0..15)
        .map(|_| open(config.clone(), LANE).unwrap())
        .collect();
    assert_eq!((port(&all[0]), port(&all[14])), (7_007, 7_127));
    let error = open(config, LANE).unwrap_err();
    assert!(
        matches!(error, OpenError::SamplePortsInUse { .. }),
        "{error}"
    );
}

#[test]
fn with_fixed_ports_a_flow_has_the_first_free_port_of_the_second_half() {
    let config = NetworkConfig {
        // Not the ports of the test above, which runs at the same time.
        sample_ports: Some(6_000),
        ..on_loopback()
    };
    let pool = Udp::new(config.clone()).unwrap().pool().clone();
    let mut udp = Balanced(Udp::embedded(config, pool).unwrap());
    udp.open_lane(LANE).unwrap();
    let mut open = || {
        let flow = udp.open_flow_socket(LANE).unwrap();
        (flow, udp.flow_socket_unicast(LANE, flow)[0].port)
    };
    let (first, second) = (open(), open());
    assert_eq!((first.1, second.1), (6_128, 6_129));
    udp.close_flow_socket(LANE, first.0);
    // Again at once, so that a program has the same ports at every start.
    let again = udp.open_flow_socket(LANE).unwrap();
    assert_eq!(udp.flow_socket_unicast(LANE, again)[0].port, 6_128);
}

#[test]
fn fixed_ports_that_are_privileged_too_high_or_of_discovery_are_refused() {
    let of_domain = 7_400 + 250 * DOMAIN as u16;
    let (below, above) = (of_domain - SAMPLE_PORTS, of_domain + 250);
    for (base, is_allowed) in [
        (0, false),
        (1_023, false),
        (1_024, true),
        (below, true),
        (below + 1, false),
        (above - 1, false),
        (above, true),
        (u16::MAX - SAMPLE_PORTS + 1, true),
        (u16::MAX - SAMPLE_PORTS + 2, false),
    ] {
        let config = NetworkConfig {
            sample_ports: Some(base),
            ..on_loopback()
        };
        let opened = Udp::new(config);
        let is_refused = matches!(opened, Err(OpenError::SamplePorts { .. }));
        assert_ne!(is_refused, is_allowed, "{base}");
    }
}

#[test]
fn a_requested_participant_id_is_given_or_named_as_taken() {
    let config = NetworkConfig {
        participant_id: Some(101),
        ..on_loopback()
    };
    let udp = open(config.clone(), Lane::Discovery).unwrap();
    let port = 7_410 + 250 * DOMAIN + 2 * 101;
    assert_eq!(udp.unicast(Lane::Discovery)[0].port, port);
    let error = open(config, Lane::Discovery).unwrap_err();
    assert!(matches!(error, OpenError::PortInUse { .. }), "{error}");
}

#[test]
fn a_lane_that_could_not_be_opened_is_closed_and_others_are_as_they_were() {
    let taken = open(on_loopback(), LANE).unwrap();
    let mut config = on_loopback();
    config.level_ports[3] = Some(taken.unicast(LANE)[0].port as u16);
    let mut udp = open(config, LANE).unwrap();
    let bulk = Lane::ALL[4];
    assert!(udp.open_lane(bulk).is_err());
    assert!(udp.unicast(bulk).is_empty());
    send_to_self(&mut udp);
    assert_eq!(udp.receive_burst(LANE, 1, &mut ReceiveBurst::new()), 1);
}

#[test]
fn numbers_without_a_port_are_refused_before_anything_is_opened() {
    let of_domain = |domain| {
        Udp::new(NetworkConfig {
            domain,
            ..on_loopback()
        })
    };
    assert!(matches!(of_domain(233), Err(OpenError::Domain { .. })));
    assert!(of_domain(232).is_ok());
    let config = NetworkConfig {
        participant_id: Some(120),
        ..on_loopback()
    };
    let error = open(config, Lane::Discovery).unwrap_err();
    assert!(error.to_string().contains("from 0 to 119"), "{error}");
}

#[test]
fn an_interface_that_is_not_there_is_answered_with_those_that_are() {
    let config = NetworkConfig {
        interfaces: Interfaces::Named(vec!["no-such-thing".to_owned()]),
        ..on_loopback()
    };
    let message = Udp::new(config).unwrap_err().to_string();
    assert!(message.contains("no interface no-such-thing"), "{message}");
    assert!(message.contains("these are: lo"), "{message}");
}

#[test]
fn an_arrival_is_stamped_between_sending_and_receiving() {
    let config = NetworkConfig {
        timestamps: true,
        ..on_loopback()
    };
    let mut udp = open(config, LANE).unwrap();
    assert!(udp.capabilities().timestamps);
    // The kernel enables time stamps shortly after the first socket requests them. Until then, a datagram is stamped
    // when it is read.
    for _ in 0..20 {
        let before = monotonic_now().as_nanos();
        send_to_self(&mut udp);
        let sent = monotonic_now().as_nanos();
        let mut burst = ReceiveBurst::new();
        assert_eq!(udp.receive_burst(LANE, 1, &mut burst), 1);
        let received = monotonic_now().as_nanos();
        let arrived = burst[0].arrived.expect("a stamp").as_nanos();
        // The two clocks are read within about a microsecond.
        assert!(
            (before.saturating_sub(10_000)..=received).contains(&arrived),
            "sent {before} to {sent}, received {received}, stamped {arrived}"
        );
    }
}

#[test]
fn without_asking_nothing_is_stamped() {
    let mut udp = open(on_loopback(), LANE).unwrap();
    send_to_self(&mut udp);
    let mut burst = ReceiveBurst::new();
    assert_eq!(udp.receive_burst(LANE, 1, &mut burst), 1);
    assert_eq!(burst[0].arrived, None);
}

/// Events that poll reports for the lane's sockets.
fn events(udp: &Udp) -> libc::c_short {
    let sockets = udp.descriptors();
    let polled = |descriptor: &BorrowedFd| {
        let mut polled = libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry, for the time of the call.
        unsafe { libc::poll(&raw mut polled, 1, 0) };
        polled.revents
    };
    let all = sockets.iter().map(|(_, descriptor)| polled(descriptor));
    all.fold(0, |all, one| all | one)
}

/// Otherwise a loop that waits for descriptors would spin.
#[test]
fn an_error_that_a_host_reported_is_read_off_by_receiving() {
    let mut udp = open(on_loopback(), LANE).unwrap();
    let closed = open(on_loopback(), LANE).unwrap().unicast(LANE)[0];
    let mut burst = TransmitBurst::new();
    burst.push(udp.pool().take(LANE).unwrap()).unwrap();
    burst.address(closed).unwrap();
    assert_eq!(udp.send_burst(LANE, &mut burst).sent, 1);
    assert_ne!(events(&udp) & libc::POLLERR, 0);
    assert_eq!(udp.receive_burst(LANE, 16, &mut ReceiveBurst::new()), 0);
    assert_eq!(events(&udp), 0);
    assert_eq!(udp.ledger().lane(LANE).transmit.bounced, 1);
}

#[test]
fn a_level_is_its_sockets_priority_and_class() {
    for lane in &Lane::ALL[1..7] {
        let udp = open(on_loopback(), *lane).unwrap();
        let level = i32::from(lane.level().unwrap().get());
        let (_, socket) = udp.descriptors()[0];
        let option = |family, name| option_of(socket, family, name);
        assert_eq!(option(libc::SOL_SOCKET, libc::SO_PRIORITY), level);
        assert_eq!(option(libc::IPPROTO_IP, libc::IP_TOS), level << 5);
    }
}

#[test]
fn discovery_is_in_the_class_below_the_highest_open_level() {
    let mut udp = open(on_loopback(), Lane::Discovery).unwrap();
    let class = |udp: &Udp| {
        let mut descriptors = udp.descriptors().into_iter();
        let (_, socket) = descriptors
            .find(|(lane, _)| *lane == Lane::Discovery)
            .unwrap();
        let priority = option_of(socket, libc::SOL_SOCKET, libc::SO_PRIORITY);
        (
            priority,
            option_of(socket, libc::IPPROTO_IP, libc::IP_TOS) >> 5,
        )
    };
    assert_eq!(class(&udp), (1, 1), "no level is open");
    for (opened, expected) in [(0, 1), (1, 1), (3, 2), (2, 2), (7, 6)] {
        udp.open_lane(Lane::Level(Level::ALL[opened])).unwrap();
        assert_eq!(
            class(&udp),
            (expected, expected),
            "level {opened} is open, too"
        );
    }
    let config = NetworkConfig {
        discovery_level: Some(Level::ALL[4]),
        ..on_loopback()
    };
    let mut udp = open(config, Lane::Discovery).unwrap();
    udp.open_lane(Lane::Level(Level::ALL[7])).unwrap();
    assert_eq!(class(&udp), (4, 4), "as configured");
}

fn option_of(socket: BorrowedFd<'_>, family: i32, name: i32) -> i32 {
    let (mut value, mut len) = (0_i32, 4);
    let into = (&raw mut value).cast();
    let raw = socket.as_raw_fd();
    // SAFETY: `value` has room for the four bytes announced.
    let result = unsafe { libc::getsockopt(raw, family, name, into, &raw mut len) };
    assert_eq!(result, 0);
    value
}

#[test]
fn a_receive_buffer_is_as_large_as_asked_or_the_note_says_so() {
    const WANTED: usize = 1 << 30;
    let config = NetworkConfig {
        receive_buffer_bytes: Some(WANTED),
        ..on_loopback()
    };
    let udp = open(config, LANE).unwrap();
    // The kernel doubles the value, and this is the largest that it can double. Only a program with CAP_NET_ADMIN gets
    // it.
    let warnings: Vec<String> = udp.warnings().iter().map(ToString::to_string).collect();
    let small = warnings
        .iter()
        .any(|warning| warning.contains("net.core.rmem_max"));
    let privileged = !warnings
        .iter()
        .any(|warning| warning.contains("SO_PRIORITY"));
    assert!(small || privileged, "{warnings:?}");
}

#[test]
fn the_kernels_own_number_of_a_receive_buffer_can_be_read() {
    const WANTED: usize = 64 * 1_024;
    let config = NetworkConfig {
        receive_buffer_bytes: Some(WANTED),
        ..on_loopback()
    };
    let udp = open(config, LANE).unwrap();
    assert_eq!(udp.receive_buffer(LANE), Some(2 * WANTED), "it doubles");
    assert_eq!(udp.receive_buffer(Lane::ALL[1]), None, "it is closed");
    let (_, socket) = udp.descriptors()[0];
    let kernels = option_of(socket, libc::SOL_SOCKET, libc::SO_RCVBUF);
    assert_eq!(kernels as usize, 2 * WANTED);
}
