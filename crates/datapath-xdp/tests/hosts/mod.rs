//! Hosts in separate network namespaces. All tests and examples with real devices create their hosts from
//! [`Namespace`]; most create two that a [`Pair`] of devices joins:
//!
//! ```text
//!   here (the calling thread)                    there
//!   host-a 10.78.0.1/24  ======veth======  host-b 10.78.0.2/24
//! ```
//!
//! Only descriptors of this process hold the namespaces. When the process ends, in whatever way, the kernel removes
//! the namespaces with their contents.
//!
//! The hosts are not those of the measurements (`isolane-bench`): the tests of this crate must build and run without
//! the layers above it.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test and example uses a part of what is here"
)]

mod machine;
mod namespace;
mod pair;

use std::net::Ipv4Addr;

pub(crate) use machine::{eventually, index_of, ip, mac_of, output, set};
pub(crate) use namespace::Namespace;
pub(crate) use pair::{End, Pair};

/// Address of the test's own host.
pub(crate) const HERE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// Address of the other host.
pub(crate) const THERE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);

/// A pair of hosts with addresses. The calling thread is on one of them.
pub(crate) struct Hosts(Pair);

impl Hosts {
    /// Moves the calling thread, which belongs to one test, into a new namespace, and joins it with another.
    ///
    /// # Panics
    /// Where the machine does not allow it.
    pub(crate) fn new() -> Hosts {
        Hosts::with_queues(1)
    }

    /// Creates both hosts and joins them; each end has this number of queues.
    pub(crate) fn with_queues(queues: u32) -> Hosts {
        let pair = Pair::new(queues).expect("namespaces, which need root");
        for (end, address) in [(End::A, HERE), (End::B, THERE)] {
            let interface = end.interface();
            pair.run(end, || {
                ip(&format!("address add {address}/24 dev {interface}"))
            });
        }
        pair.at(End::A).enter();
        Hosts(pair)
    }

    /// Name of the other namespace for `ip`.
    pub(crate) fn path(&self) -> String {
        self.0.at(End::B).path()
    }

    /// Runs something on this thread, in the other host's namespace. Sockets opened there stay there.
    pub(crate) fn visit<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.at(End::B).visit(work)
    }

    /// Runs something on the other host, on its own thread.
    pub(crate) fn there<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.run(End::B, work)
    }
}
