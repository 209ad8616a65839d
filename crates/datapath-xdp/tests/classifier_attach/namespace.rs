//! A network namespace of the test's own, and frames on its interfaces.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

use isolane_datapath_xdp::classifier::{Classifier, ClassifierConfig, ClassifierError};
use isolane_wire::ethernet::{self, EtherType, MacAddress};
use isolane_wire::{ipv4, udp};

/// Where frames are sent.
pub(crate) const ADDRESS: [u8; 4] = [10, 0, 0, 1];
pub(crate) const PORT: u16 = 7_411;

pub(crate) fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    let done = status.is_ok_and(|status| status.success());
    assert!(done, "ip {arguments}");
}

/// A namespace of this thread with a pair of interfaces, `lane0` and `lane1`, that are up; false where
/// nothing can be tried.
pub(crate) fn enter(pair: &str) -> bool {
    match Classifier::load(&ClassifierConfig::default()) {
        Ok(_) => {}
        Err(error @ (ClassifierError::Denied { .. } | ClassifierError::UserNamespace)) => {
            let in_ci = std::env::var_os("CI").is_some();
            assert!(!in_ci, "CI must allow this: {error}");
            eprintln!("nothing was tried: {error}");
            return false;
        }
        Err(error) => panic!("{error}"),
    }
    // SAFETY: no memory is passed; only this thread changes its network.
    let unshared = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    assert_eq!(unshared, 0, "{}", io::Error::last_os_error());
    ip(pair);
    for interface in ["lo", "lane0", "lane1"] {
        ip(&format!("link set {interface} up"));
    }
    true
}

pub(crate) const PAIR: &str = "link add lane0 type veth peer name lane1";

pub(crate) fn index(name: &str) -> u32 {
    let name = CString::new(name).unwrap();
    // SAFETY: the name is a string of C.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

/// A frame of the flow.
pub(crate) fn frame() -> Vec<u8> {
    let payload = b"RTPS and more";
    let datagram = udp::Repr {
        source_port: 4_000,
        destination_port: PORT,
        payload_len: payload.len(),
    };
    let packet = ipv4::Repr {
        source: [10, 0, 0, 2],
        destination: ADDRESS,
        protocol: ipv4::PROTOCOL_UDP,
        dscp: 0,
        time_to_live: 1,
        dont_fragment: true,
        identification: 0,
        payload_len: datagram.buffer_len() + payload.len(),
    };
    let header = ethernet::Repr {
        destination: MacAddress::BROADCAST,
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        tags: Default::default(),
        ether_type: EtherType::IPV4,
    };
    let mut bytes = [0; 100];
    let at = header.emit(&mut bytes);
    let at = at + packet.emit(&mut bytes[at..]);
    let at = at + datagram.emit(&mut bytes[at..]);
    [&bytes[..at], payload].concat()
}

/// Sends frames on an interface, as they are.
pub(crate) fn send(interface: &str, count: usize) {
    // SAFETY: no memory is passed.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    assert!(socket >= 0, "{}", io::Error::last_os_error());
    // SAFETY: just opened, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: zeros are a valid address.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as u16;
    to.sll_ifindex = index(interface) as i32;
    let frame = frame();
    for _ in 0..count {
        // SAFETY: both buffers are valid for the lengths given with them.
        let sent = unsafe {
            libc::sendto(
                socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const to).cast(),
                size_of_val(&to) as u32,
            )
        };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }
}
