//! Two hosts in network namespaces of this process, joined by one veth pair: lanes need a device, and
//! 127.0.0.1 has none. It takes root.

#[path = "../../../datapath-xdp/tests/hosts/mod.rs"]
mod network;

use isolane::{Builder, Interfaces, Participant, Waiting, XdpOptions};
use network::{HERE, Hosts, THERE, ip, mac_of};

/// This thread's host, and the other one.
pub(crate) struct Both(Hosts);

impl Both {
    /// Makes them. Each knows the other's address for good: nothing is asked while something is counted.
    ///
    /// # Panics
    /// Where the machine does not allow it.
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

    /// Opens something on the other host.
    pub(crate) fn visit<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.visit(work)
    }
}

/// A participant on lanes of this host's device, which looks at their rings instead of sleeping.
pub(crate) fn on_lanes(domain: u32, interface: &str) -> Builder {
    Participant::builder(domain)
        .interfaces(Interfaces::Named(vec![interface.to_owned()]))
        .datapath(XdpOptions::default())
        .waiting(Waiting::Spin)
}
