//! Route decision for a destination, from a snapshot of the kernel's tables.
//!
//! Makes no system call. Where the snapshot is not conclusive, the datagram goes through the kernel.

use std::fmt;

use isolane_hostnet::neighbour::Certainty;
use isolane_hostnet::route::{Route, RouteKind};
use isolane_hostnet::route_monitor::Snapshot;
use isolane_wire::ethernet::MacAddress;

use super::header::is_multicast;

/// Path of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteDecision {
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

/// Resolved path and its next hop on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) device: Device,
    /// Neighbour that owns the Ethernet address; `None` for multicast and broadcast.
    pub(super) neighbour: Option<[u8; 4]>,
}

/// Resolves the path to a destination. The size of the tables bounds the work.
pub(super) fn resolve(
    tables: &Snapshot,
    destination: [u8; 4],
    vlan: Option<u16>,
) -> Result<Found, Reason> {
    let device = &tables.device;
    if device.is_gone {
        return Err(Reason::Gone);
    }
    if !tables.is_synchronised {
        return Err(Reason::Synchronising);
    }
    if !device.is_ready() {
        return Err(Reason::Down);
    }
    let source_mac = device.mac.ok_or(Reason::Unsupported)?;
    if !tables.rules.are_default() {
        return Err(Reason::Rules);
    }
    let to = |destination_mac, source, mtu_bytes| Device {
        destination_mac,
        source_mac,
        source,
        destination,
        vlan,
        mtu_bytes,
    };
    if is_multicast(destination) {
        if !device.is_multicast {
            return Err(Reason::Unsupported);
        }
        // No route look-up, as for a socket with IP_MULTICAST_IF.
        let source = device.source_for(None).ok_or(Reason::NoSource)?;
        let mac = MacAddress::of_ipv4_group(destination);
        return Ok(Found {
            device: to(mac, source, device.mtu_bytes),
            neighbour: None,
        });
    }
    let route = route(tables, destination)?;
    let next_hop = route.gateway.unwrap_or(destination);
    let source = route
        .source
        .or_else(|| device.source_for(Some(next_hop)))
        .ok_or(Reason::NoSource)?;
    let mtu_bytes = match route.mtu_bytes {
        Some(bytes) => device.mtu_bytes.min(bytes as usize),
        None => device.mtu_bytes,
    };
    let (mac, neighbour) = match route.kind {
        RouteKind::Broadcast => (MacAddress::BROADCAST, None),
        _ => (neighbour(tables, next_hop)?, Some(next_hop)),
    };
    Ok(Found {
        device: to(mac, source, mtu_bytes),
        neighbour,
    })
}

/// Route of a destination, if it leaves by this device with an Ethernet header only.
fn route(tables: &Snapshot, destination: [u8; 4]) -> Result<&Route, Reason> {
    if tables.routes.refused() > 0 {
        return Err(Reason::TableFull);
    }
    let route = tables.routes.lookup(destination).ok_or(Reason::NoRoute)?;
    match route.kind {
        RouteKind::Local => Err(Reason::OwnHost),
        RouteKind::Refused => Err(Reason::NoRoute),
        RouteKind::Intricate => Err(Reason::Unsupported),
        RouteKind::Unicast | RouteKind::Broadcast => match route.interface {
            index if index == tables.device.index => Ok(route),
            _ => Err(Reason::OtherInterface),
        },
    }
}

fn neighbour(tables: &Snapshot, address: [u8; 4]) -> Result<MacAddress, Reason> {
    match tables.neighbours.get(address) {
        Some(neighbour) => neighbour.usable().ok_or(match neighbour.certainty {
            Certainty::Failed => Reason::NeighbourFailed,
            _ => Reason::NeighbourUnknown,
        }),
        None if tables.neighbours.is_full() => Err(Reason::TableFull),
        None => Err(Reason::NeighbourUnknown),
    }
}

#[cfg(test)]
mod tests;
