//! Hosts on one Ethernet segment, each in its own network namespace:
//!
//! ```text
//!   host 1            host 2            host 3
//!   10.79.0.1         10.79.0.2         10.79.0.3
//!   eth0 ═══veth═══╗  eth0 ═══veth═══╗  eth0 ═══veth═══╗
//!                  ╚═════════════════╩═════ bridge ════╝
//! ```
//!
//! Only descriptors of this process hold the namespaces. Sockets belong to the namespace they are
//! made in, whichever thread uses them later, so a test's thread enters a host where something is
//! opened there and leaves it again.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use crate::hosts::{Namespace, eventually, ip};

/// Name of every host's interface.
pub(crate) const INTERFACE: &str = "eth0";

/// Ethernet segment, and the number of its hosts.
pub(crate) struct Segment {
    hub: Namespace,
    hosts: Vec<Host>,
    namespaces: Arc<Mutex<Vec<Namespace>>>,
    queues: u32,
}

/// Namespace of a host; clones refer to the same host.
#[derive(Clone)]
pub(crate) struct Host {
    namespace: Namespace,
    pub(crate) number: u8,
    mac: String,
    /// All hosts of the segment, so that the segment and its hosts exist as long as one of them.
    _segment: Arc<Mutex<Vec<Namespace>>>,
}

impl Segment {
    pub(crate) fn new() -> Segment {
        Segment::with_queues(1)
    }

    /// Creates a segment; the interfaces of its hosts have this number of receive and transmit queues.
    pub(crate) fn with_queues(queues: u32) -> Segment {
        let hub = new_namespace();
        hub.visit(|| {
            ip("link add bridge type bridge mcast_snooping 0");
            ip("link set bridge up");
        });
        Segment {
            namespaces: Arc::new(Mutex::new(vec![hub.clone()])),
            hub,
            hosts: Vec::new(),
            queues,
        }
    }

    /// Runs something in the namespace of the bridge; the port of host 1 is `port1`.
    #[allow(dead_code, reason = "not every test that shares this looks there")]
    pub(crate) fn in_the_middle<T>(&self, work: impl FnOnce() -> T) -> T {
        self.hub.visit(work)
    }

    /// Adds a host that knows all others and is known to them.
    pub(crate) fn add_host(&mut self) -> Host {
        let host = self.add_stranger();
        for other in &self.hosts {
            host.introduce(other);
            other.introduce(&host);
        }
        self.hosts.push(host.clone());
        host
    }

    /// Adds a host whose Ethernet address the others have to resolve.
    pub(crate) fn add_stranger(&mut self) -> Host {
        let namespace = new_namespace();
        let mut all = self.namespaces.lock().expect("no test panics here");
        all.push(namespace.clone());
        drop(all);
        let number = self.hosts.len() as u8 + 1;
        let queues = format!("numtxqueues {0} numrxqueues {0}", self.queues);
        let path = namespace.path();
        self.hub.visit(|| {
            let ends = format!("port{number} {queues} type veth peer name {INTERFACE} {queues}");
            ip(&format!("link add {ends} netns {path}"));
            ip(&format!("link set port{number} master bridge up"));
        });
        let mut host = Host {
            namespace,
            number,
            mac: String::new(),
            _segment: Arc::clone(&self.namespaces),
        };
        host.mac = host.enter(|| {
            ip(&format!("link set {INTERFACE} up"));
            ip(&format!(
                "address add {}/24 dev {INTERFACE}",
                host.address()
            ));
            ip(&format!("route add 224.0.0.0/4 dev {INTERFACE}"));
            let shown = ip(&format!("-o link show dev {INTERFACE}"));
            let mut words = shown.split_whitespace();
            words.find(|word| *word == "link/ether");
            words.next().expect("a hardware address").to_owned()
        });
        // The kernel takes up to a second to detect it.
        eventually("the host's port forwards", || {
            let shown = self
                .hub
                .visit(|| ip(&format!("-d link show dev port{number}")));
            shown.contains("state forwarding").then_some(())
        });
        host
    }
}

impl Host {
    pub(crate) fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 79, 0, self.number)
    }

    /// Adds a permanent neighbour entry for another host.
    fn introduce(&self, other: &Host) {
        let (address, mac) = (other.address(), &other.mac);
        let known =
            format!("neighbour replace {address} lladdr {mac} dev {INTERFACE} nud permanent");
        self.enter(|| ip(&known));
    }

    /// Runs something on this thread, in the host's namespace.
    pub(crate) fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        self.namespace.visit(work)
    }
}

fn new_namespace() -> Namespace {
    Namespace::new().expect("a namespace, which needs root")
}
