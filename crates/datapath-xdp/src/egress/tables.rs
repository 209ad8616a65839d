//! Route decision for a destination, from a snapshot of the kernel's tables.
//!
//! Makes no system call. Where the snapshot is not conclusive, the datagram goes through the kernel.

use isolane_hostnet::neighbour::Certainty;
use isolane_hostnet::route::{Route, RouteKind};
use isolane_hostnet::route_monitor::Snapshot;
use isolane_wire::ethernet::MacAddress;

use super::header::is_multicast;
use super::way::{Device, Reason};

/// Resolved path and its next hop on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) device: Device,
    /// Neighbour that owns the Ethernet address; `None` for multicast and broadcast.
    pub(super) neighbour: Option<[u8; 4]>,
}

/// Resolves the path to a destination. The work is bounded by the tables.
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
