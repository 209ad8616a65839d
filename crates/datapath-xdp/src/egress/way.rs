//! Result of a route decision.

use std::fmt;

use isolane_wire::ethernet::MacAddress;

/// Path of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Directly to the device's queue, with headers built here.
    Device(Device),
    /// Through a kernel socket, for this reason.
    Kernel(Reason),
}

/// Addresses and limits from which the headers to one destination are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Ethernet address of the neighbour, gateway or group.
    pub destination_mac: MacAddress,
    /// Ethernet address of this host's interface.
    pub source_mac: MacAddress,
    /// IPv4 source address that the kernel would select.
    pub source: [u8; 4],
    /// IPv4 destination address.
    pub destination: [u8; 4],
    /// VLAN id of the frames' tag; 0 carries a priority only.
    pub vlan: Option<u16>,
    /// Path MTU: bytes of the largest IPv4 packet.
    pub mtu_bytes: usize,
}

/// Reason for sending a datagram through the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The destination is this host.
    OwnHost,
    /// The route leaves by another interface.
    OtherInterface,
    /// No route, or a rejecting one.
    NoRoute,
    /// The neighbour is unresolved. The kernel socket's datagram makes the kernel resolve it.
    NeighbourUnknown,
    /// The neighbour did not answer the last probe.
    NeighbourFailed,
    /// The interface is down or has no carrier.
    Down,
    /// The interface was deleted or moved to another network namespace. Permanent.
    Gone,
    /// The packet exceeds the path MTU: the kernel fragments it.
    TooLong,
    /// The interface has no IPv4 source address.
    NoSource,
    /// The host has policy routing rules, which only the kernel evaluates.
    Rules,
    /// The path needs more than an Ethernet header: multipath, a tunnel, or a non-Ethernet device.
    Unsupported,
    /// A notification was lost, and the tables are being read again.
    Synchronising,
    /// A table is full and may lack the relevant entry.
    TableFull,
}

impl Reason {
    /// Number of reasons.
    pub const COUNT: usize = Self::ALL.len();

    /// All reasons; `ALL[n] as usize` is n.
    pub const ALL: [Reason; 13] = [
        Reason::OwnHost,
        Reason::OtherInterface,
        Reason::NoRoute,
        Reason::NeighbourUnknown,
        Reason::NeighbourFailed,
        Reason::Down,
        Reason::Gone,
        Reason::TooLong,
        Reason::NoSource,
        Reason::Rules,
        Reason::Unsupported,
        Reason::Synchronising,
        Reason::TableFull,
    ];

    /// Name for counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reason::OwnHost => "own host",
            Reason::OtherInterface => "other interface",
            Reason::NoRoute => "no route",
            Reason::NeighbourUnknown => "neighbour unknown",
            Reason::NeighbourFailed => "neighbour failed",
            Reason::Down => "interface down",
            Reason::Gone => "interface gone",
            Reason::TooLong => "longer than the MTU",
            Reason::NoSource => "no source address",
            Reason::Rules => "policy rules",
            Reason::Unsupported => "way not supported",
            Reason::Synchronising => "tables being read",
            Reason::TableFull => "table full",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_counts_at_its_own_place() {
        for (place, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place, "{reason}");
        }
    }
}
