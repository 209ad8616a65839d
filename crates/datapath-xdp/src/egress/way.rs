//! By which way a datagram leaves.

use std::fmt;

use isolane_wire::ethernet::MacAddress;

/// The way to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Straight to the device's queue, with an Ethernet header of ours.
    Device(Device),
    /// By a kernel socket, and why.
    Kernel(Reason),
}

/// What the headers of frames to one destination are made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// The neighbour, gateway or group that the frame is for.
    pub destination_mac: MacAddress,
    /// This host's interface.
    pub source_mac: MacAddress,
    /// The IPv4 address that the kernel would send from.
    pub source: [u8; 4],
    /// The IPv4 address that the packet is for.
    pub destination: [u8; 4],
    /// The VLAN that frames are tagged with; 0: none, only a priority.
    pub vlan: Option<u16>,
    /// Bytes of the largest IPv4 packet on the way.
    pub mtu_bytes: usize,
}

/// Why a datagram takes the kernel's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// It is for this host.
    OwnHost,
    /// Its route leaves by another interface.
    OtherInterface,
    /// No route leads there, or one that refuses.
    NoRoute,
    /// The neighbour's Ethernet address is not known yet: what the kernel's socket sends makes the
    /// kernel ask for it.
    NeighbourUnknown,
    /// The neighbour did not answer when it was asked last.
    NeighbourFailed,
    /// The interface is down or has no carrier.
    Down,
    /// The interface was deleted, or moved to another network namespace; for good.
    Gone,
    /// The packet is longer than the way allows: the kernel cuts it.
    TooLong,
    /// The interface has no IPv4 address to send from.
    NoSource,
    /// The host has policy rules: what they say is left to the kernel.
    Rules,
    /// The way takes more than an Ethernet header: several paths, a tunnel, a device that is no
    /// Ethernet.
    Unsupported,
    /// Something was missed, and the tables are being read again.
    Synchronising,
    /// A table is full: the entry that counts may not be in it.
    TableFull,
}

impl Reason {
    /// How many reasons there are.
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

    /// A name for counters.
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
