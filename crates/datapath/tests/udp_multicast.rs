//! The UDP datapath keeps the contract by multicast, in a network namespace of this program.
//!
//! Groups are never joined in the machine's own network: the program first moves to a namespace
//! that has nothing but a loopback interface, brings that up, and gives it the flag MULTICAST.
//! Where the kernel refuses the namespace, the program says so, and fails in CI.

use std::fs::File;
use std::io::{self, Read};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::ptr;

use isolane_datapath::conformance::{Fixture, Options, multicast_cases, unicast_cases};
use isolane_datapath::ledger::Refusal;
use isolane_datapath::{
    Datapath, Interfaces, Lane, Note, OpenError, ReceiveBurst, TransmitBurst, Udp, UdpConfig,
};
use isolane_wire::locator::Locator;

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

/// Where every case has to run.
fn in_ci() -> bool {
    std::env::var_os("CI").is_some()
}

type Case = (&'static str, fn());

/// Runs the cases, and says how many failed.
fn run(surroundings: &str, cases: &[Case]) -> usize {
    let mut failed = 0;
    for (name, case) in cases {
        let passed = catch_unwind(case).is_ok();
        failed += usize::from(!passed);
        let verdict = if passed { "ok" } else { "FAILED" };
        println!("test {name} ({surroundings}) ... {verdict}");
    }
    failed
}

struct UdpWithGroups;
struct UdpOnAll;

fn attach(interfaces: Interfaces, options: &Options) -> Udp {
    let config = UdpConfig {
        interfaces,
        receive_buffer_bytes: options.queue_bytes,
        pool: options.pool,
        ..UdpConfig::default()
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

const SOCKETS: [Case; 3] = [
    (
        "participants_take_the_first_free_port_and_share_the_group",
        participants_take_the_first_free_port_and_share_the_group,
    ),
    (
        "a_domain_full_of_participants_says_so",
        a_domain_full_of_participants_says_so,
    ),
    (
        "each_level_has_its_group_and_its_priority",
        each_level_has_its_group_and_its_priority,
    ),
];

const INTERFACES: [Case; 1] = [(
    "a_group_is_sent_to_by_every_interface_as_its_level_asks",
    a_group_is_sent_to_by_every_interface_as_its_level_asks,
)];

const LAST: [Case; 1] = [(
    "a_destination_without_a_way_is_named",
    a_destination_without_a_way_is_named,
)];

fn an_interface_without_multicast_is_noted_and_unicast_goes_on() {
    let mut udp = attach(Interfaces::All, &Options::default());
    udp.open_lane(LANE).expect("the lane opens");
    assert!(!udp.capabilities().multicast);
    assert!(udp.multicast(LANE).is_empty());
    let lo = |note: &Note| matches!(note, Note::NoMulticast { interface, .. } if interface == "lo");
    assert!(udp.notes().iter().any(lo), "{:?}", udp.notes());

    let own = udp.unicast(LANE)[0];
    let group = Locator::udpv4([239, 255, 23, 0], 7_401);
    let mut burst = TransmitBurst::new();
    burst.push(udp.pool().take(LANE).unwrap()).unwrap();
    burst.address(group).unwrap();
    burst.address(own).unwrap();
    let report = udp.send_burst(LANE, &mut burst);
    assert_eq!((report.sent, report.refused), (1, 1));
    let transmit = udp.ledger().lane(LANE).transmit;
    assert_eq!(transmit.refused(Refusal::NoMulticast), 1);
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

fn a_domain_full_of_participants_says_so() {
    let open = || {
        let mut udp = attach(Interfaces::Loopback, &Options::default());
        udp.open_lane(Lane::Discovery).map(|()| udp)
    };
    let participants: Vec<Udp> = std::iter::from_fn(|| open().ok()).take(200).collect();
    assert_eq!(participants.len(), 120);
    let error = open().expect_err("no port is free");
    assert!(
        matches!(error, OpenError::NoFreeParticipant { tried: 120, .. }),
        "{error}"
    );
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
    // This program may do anything in its namespace, also give level 7 its priority.
    assert_eq!(udp.notes(), []);
}

/// Two tunnels stand for two networks: what would go out on the wire is read from them.
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
    // Both copies come back to this host's members, this one included.
    let mut received = ReceiveBurst::new();
    assert_eq!(udp.receive_burst(LANE, 16, &mut received), 2);
}

/// An interface whose far end is this program.
struct Tunnel(File);

impl Tunnel {
    fn open(name: &str, address: [u8; 4]) -> io::Result<Tunnel> {
        const SETTINGS: libc::c_int = libc::IFF_TUN | libc::IFF_NO_PI;
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        let mut request = interface_request(name);
        request.ifr_ifru.ifru_flags = SETTINGS as libc::c_short;
        control(&file, libc::TUNSETIFF, &mut request)?;

        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let mut named = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: 0,
            sin_addr: libc::in_addr {
                s_addr: u32::from_ne_bytes(address),
            },
            sin_zero: [0; 8],
        };
        let mut request = interface_request(name);
        // SAFETY: both are socket addresses of 16 bytes, made of plain numbers.
        request.ifr_ifru.ifru_addr = unsafe { (&raw mut named).cast::<libc::sockaddr>().read() };
        control(&socket, libc::SIOCSIFADDR, &mut request)?;
        set_flags(name, libc::IFF_UP | libc::IFF_MULTICAST)?;
        Ok(Tunnel(file))
    }

    /// The next packet that is IPv4 and UDP; the kernel sends others of its own.
    fn next_udp(&self) -> Vec<u8> {
        let mut packet = vec![0; 2_048];
        loop {
            let len = (&self.0).read(&mut packet).expect("a packet went out");
            let is_udp = packet[0] == 0x45 && packet[9] == 17;
            if is_udp {
                packet.truncate(len);
                return packet;
            }
        }
    }
}

/// The last case: it takes the interface down.
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
    assert_eq!(transmit.refused(Refusal::Unreachable), 2, "{ledger}");
    assert_eq!(ledger.balance(), Ok(()));

    let error = Udp::new(UdpConfig::default()).err();
    let error = error.expect("no interface is up");
    assert!(matches!(error, OpenError::NoInterfaces), "{error}");
}

/// As root a network namespace, otherwise one within a user namespace.
fn enter_namespace() -> io::Result<()> {
    for flags in [libc::CLONE_NEWNET, libc::CLONE_NEWUSER | libc::CLONE_NEWNET] {
        // SAFETY: no memory is passed; this is the program's only thread.
        if unsafe { libc::unshare(flags) } == 0 {
            return Ok(());
        }
    }
    Err(io::Error::last_os_error())
}

fn set_loopback_flags(flags: libc::c_int) -> io::Result<()> {
    set_flags("lo", flags)
}

fn set_flags(name: &str, flags: libc::c_int) -> io::Result<()> {
    // Bound to nothing: loopback may be down.
    // SAFETY: no memory is passed.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    control(&socket, libc::SIOCSIFFLAGS, &mut request)
}

fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: zeros are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn control(file: &impl AsRawFd, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every request of this program takes an ifreq.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), what, ptr::from_mut(request)) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
