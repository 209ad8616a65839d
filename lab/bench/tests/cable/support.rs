//! Set-up of these tests.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use isolane_bench::cable::{self, Relay};
use isolane_bench::child::Program;
use isolane_bench::namespace::{Host, Place, TestHosts, TestHostsConfig, TestHostsError};
use isolane_bench::stop::Stop;

pub(crate) const PORT: u16 = 7401;
/// Length of the Ethernet, IPv4 and UDP headers.
pub(crate) const HEADERS: u64 = 42;

/// Creates the usual testbed. Without the rights, prints the reason and returns `None`.
pub(crate) fn testbed() -> Option<TestHosts> {
    testbed_with(&TestHostsConfig::default())
}

/// Creates a testbed. Without the rights, prints the reason and returns `None`.
pub(crate) fn testbed_with(config: &TestHostsConfig) -> Option<TestHosts> {
    match TestHosts::new(config) {
        Ok(testbed) => {
            for note in testbed.notes() {
                println!("note: {note}");
            }
            Some(testbed)
        }
        Err(TestHostsError::NotPermitted { action, right }) => {
            println!("not permitted: {action} needs {right}; only this message was tested");
            assert!(right.starts_with("CAP_"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_isolane-bench-child"), &[])
}

/// Socket of a host, bound to `port`, with a receive timeout of half a second.
pub(crate) fn socket(testbed: &TestHosts, host: Host, port: u16) -> UdpSocket {
    let open = || -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
        // A slow reader loses nothing, if this much memory is permitted.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 8 << 20);
        socket.set_read_timeout(Some(Duration::from_millis(500)))?;
        Ok(socket)
    };
    testbed.run(host, open).unwrap().unwrap()
}

/// Socket of host A on any port, and socket of host B on [`PORT`].
pub(crate) fn sockets(testbed: &TestHosts) -> (UdpSocket, UdpSocket) {
    (socket(testbed, Host::A, 0), socket(testbed, Host::B, PORT))
}

pub(crate) fn to(host: Host, port: u16) -> SocketAddr {
    (host.address(), port).into()
}

/// Receives datagrams until none arrives for half a second.
pub(crate) fn receive_all(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2048];
    let mut all = Vec::new();
    while let Ok(length) = socket.recv(&mut buffer) {
        all.push(buffer[..length].to_vec());
    }
    all
}

/// Runs `work` while a cable relays on a thread of this process; returns the cable's valid report.
pub(crate) fn with_cable(
    testbed: &TestHosts,
    config: &cable::Config,
    work: impl FnOnce(),
) -> cable::Report {
    let (stop, stopper) = Stop::pair().unwrap();
    // Sockets belong to the namespace in which they were opened, whichever thread uses them.
    let open = || Relay::open(config).unwrap();
    let relay = testbed.run(Place::Cable, open).unwrap();
    thread::scope(|scope| {
        let relay = scope.spawn(|| relay.run(&stop).unwrap());
        // When dropped, it stops the cable, also if `work` panics.
        let stopper = stopper;
        work();
        stopper.stop();
        let report = relay.join().unwrap();
        assert_eq!(report.validate(), Ok(()), "{report:?}");
        report
    })
}

pub(crate) fn fast() -> cable::Config {
    link(1_000_000_000, 4096)
}

pub(crate) fn link(bits_per_s: u64, queue_frames: u32) -> cable::Config {
    cable::Config {
        bits_per_s,
        queue_frames,
        ..cable::Config::default()
    }
}
