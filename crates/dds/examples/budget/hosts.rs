//! Two hosts in network namespaces of this process, connected by a veth pair: lanes require a device, which 127.0.0.1
//! does not have. Requires root.

#[path = "../../../datapath-xdp/tests/hosts/mod.rs"]
mod network;

use isolane::{Builder, Interfaces, Participant, Waiting, XdpOptions};
use network::{HERE, Hosts, THERE, ip, mac_of};

/// Host of this thread, and the other one.
pub(crate) struct Both(Hosts);

impl Both {
    /// Creates both. Each has a permanent neighbour entry of the other, so that no ARP occurs during counting.
    ///
    /// # Panics
    /// If the machine does not allow it.
    pub(crate) fn new() -> Self {
        let hosts = Hosts::new();
        let know = |address, mac: [u8; 6], interface| {
            let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
            ip(&format!(
                "neighbour replace {address} lladdr {mac} dev {interface} nud permanent"
            ));
            ip(&format!("route add 224.0.0.0/4 dev {interface}"));
        };
        let (here, there) = (mac_of("host-a"), hosts.there(|| mac_of("host-b")));
        know(THERE, there, "host-a");
        hosts.there(|| know(HERE, here, "host-b"));
        Self(hosts)
    }

    /// Runs a function on the other host.
    pub(crate) fn visit<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.visit(work)
    }
}

/// Builds a participant on lanes of this host's device, which busy-polls their rings.
pub(crate) fn on_lanes(domain: u32, interface: &str) -> Builder {
    Participant::builder(domain)
        .interfaces(Interfaces::Named(vec![interface.to_owned()]))
        .datapath(XdpOptions::default())
        .waiting(Waiting::Spin)
}
