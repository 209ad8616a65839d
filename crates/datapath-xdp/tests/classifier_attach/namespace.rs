//! Separate network namespace of a test, and frames on its interfaces.

use isolane_datapath_xdp::classifier::{Classifier, ClassifierConfig, ClassifierError};
use isolane_wire::ethernet::MacAddress;

use crate::hosts::{Namespace, index_of, ip};
use crate::packet_socket::PacketSocket;
use crate::udp_frame::udp_frame;

/// Destination of the frames.
pub(crate) const ADDRESS: [u8; 4] = [10, 0, 0, 1];
pub(crate) const PORT: u16 = 7_411;

/// Enters a new namespace with a pair of interfaces, `lane0` and `lane1`, that are up. Returns false if the kernel does
/// not allow the tests.
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
    Namespace::new().expect("who may load may make one").enter();
    ip(pair);
    for interface in ["lane0", "lane1"] {
        ip(&format!("link set {interface} up"));
    }
    true
}

pub(crate) const PAIR: &str = "link add lane0 type veth peer name lane1";

/// Frame of the flow.
pub(crate) fn frame() -> Vec<u8> {
    let everybody = MacAddress::BROADCAST;
    udp_frame([10, 0, 0, 2], everybody, ADDRESS, PORT, b"RTPS and more")
}

/// Sends frames of the flow on an interface.
pub(crate) fn send(interface: &str, count: usize) {
    let mut socket = PacketSocket::on(index_of(interface));
    for _ in 0..count {
        socket.send(&frame());
    }
}
