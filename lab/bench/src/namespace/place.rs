//! The three namespaces by name: what is where, and what it is called there.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// One of the two test hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// 10.78.0.1, where round trips start.
    A,
    /// 10.78.0.2, where they turn.
    B,
}

impl Host {
    /// Both hosts.
    pub const BOTH: [Host; 2] = [Host::A, Host::B];

    /// The host's IPv4 address.
    pub const fn address(self) -> Ipv4Addr {
        match self {
            Host::A => Ipv4Addr::new(10, 78, 0, 1),
            Host::B => Ipv4Addr::new(10, 78, 0, 2),
        }
    }

    /// The host's network device.
    pub const fn interface(self) -> &'static str {
        match self {
            Host::A => "host-a",
            Host::B => "host-b",
        }
    }

    /// The end of the cable that is plugged into this host.
    pub const fn cable_interface(self) -> &'static str {
        match self {
            Host::A => "cable-a",
            Host::B => "cable-b",
        }
    }

    /// The host at the other end.
    pub const fn other(self) -> Host {
        match self {
            Host::A => Host::B,
            Host::B => Host::A,
        }
    }
}

/// One of the three namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A test host.
    Host(Host),
    /// Where the relay runs.
    Cable,
}

impl From<Host> for Place {
    fn from(host: Host) -> Place {
        Place::Host(host)
    }
}
