//! Names, addresses and devices of the three namespaces.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// Test host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// Host 10.78.0.1, where round trips start.
    A,
    /// Host 10.78.0.2, which answers them.
    B,
}

impl Host {
    /// Both hosts.
    pub const BOTH: [Host; 2] = [Host::A, Host::B];

    /// IPv4 address of the host.
    pub const fn address(self) -> Ipv4Addr {
        match self {
            Host::A => Ipv4Addr::new(10, 78, 0, 1),
            Host::B => Ipv4Addr::new(10, 78, 0, 2),
        }
    }

    /// Network device of the host.
    pub const fn interface(self) -> &'static str {
        match self {
            Host::A => "host-a",
            Host::B => "host-b",
        }
    }

    /// Device of the cable that is connected to this host.
    pub const fn cable_interface(self) -> &'static str {
        match self {
            Host::A => "cable-a",
            Host::B => "cable-b",
        }
    }

    /// The opposite host.
    pub const fn other(self) -> Host {
        match self {
            Host::A => Host::B,
            Host::B => Host::A,
        }
    }
}

/// Namespace of a testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A test host.
    Host(Host),
    /// Namespace of the relay.
    Cable,
}

impl From<Host> for Place {
    fn from(host: Host) -> Place {
        Place::Host(host)
    }
}
