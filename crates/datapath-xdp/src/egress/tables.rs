//! What is known of the network namespace, and what follows from it for a destination.
//!
//! Fed with the kernel's messages, in the kernel's order; no system call is made here. Where what
//! is known does not decide, the answer is the kernel's way: a kernel socket is never wrong.

use isolane_wire::ethernet::MacAddress;

use super::device::DeviceState;
use super::header::is_multicast;
use super::neighbours::{Certainty, Neighbours};
use super::routes::{Route, RouteKind, Routes};
use super::way::{Device, Reason};

/// The policy rules, as far as they matter: a host with any of its own is left to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Those every host starts with that were seen: local, main.
    pub(super) has_local: bool,
    pub(super) has_main: bool,
    /// Those that are not among them.
    pub(super) others: u32,
}

impl Rules {
    fn are_usual(&self) -> bool {
        self.has_local && self.has_main && self.others == 0
    }
}

/// Where a way leads, and whom frames go to on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) device: Device,
    /// The neighbour that the Ethernet address is of; `None` for groups and broadcasts.
    pub(super) neighbour: Option<[u8; 4]>,
}

/// Everything that is known.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) device: DeviceState,
    pub(super) rules: Rules,
    pub(super) routes: Routes,
    pub(super) neighbours: Neighbours,
    /// All of it has been read, and nothing was missed since.
    pub(super) is_synchronised: bool,
}

impl Tables {
    pub(super) fn new(interface_index: u32) -> Tables {
        Tables {
            device: DeviceState::new(interface_index),
            rules: Rules::default(),
            routes: Routes::new(),
            neighbours: Neighbours::new(),
            is_synchronised: false,
        }
    }

    /// The way to a destination. Its work is bounded by the tables.
    pub(super) fn resolve(&self, destination: [u8; 4], vlan: Option<u16>) -> Result<Found, Reason> {
        let device = &self.device;
        if device.is_gone {
            return Err(Reason::Gone);
        }
        if !self.is_synchronised {
            return Err(Reason::Synchronising);
        }
        if !device.is_ready() {
            return Err(Reason::Down);
        }
        let source_mac = device.mac.ok_or(Reason::Unsupported)?;
        if !self.rules.are_usual() {
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
            // As a socket sends that was told the interface (IP_MULTICAST_IF): no route is asked.
            let source = device.source_for(None).ok_or(Reason::NoSource)?;
            let mac = MacAddress::of_ipv4_group(destination);
            return Ok(Found {
                device: to(mac, source, device.mtu_bytes),
                neighbour: None,
            });
        }
        let route = self.route(destination)?;
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
            _ => (self.neighbour(next_hop)?, Some(next_hop)),
        };
        Ok(Found {
            device: to(mac, source, mtu_bytes),
            neighbour,
        })
    }

    /// The route of a destination, if it leaves by this device in a simple way.
    fn route(&self, destination: [u8; 4]) -> Result<&Route, Reason> {
        if self.routes.refused() > 0 {
            return Err(Reason::TableFull);
        }
        let route = self.routes.lookup(destination).ok_or(Reason::NoRoute)?;
        match route.kind {
            RouteKind::Local => Err(Reason::OwnHost),
            RouteKind::Refused => Err(Reason::NoRoute),
            RouteKind::Intricate => Err(Reason::Unsupported),
            RouteKind::Unicast | RouteKind::Broadcast => match route.interface {
                index if index == self.device.index => Ok(route),
                _ => Err(Reason::OtherInterface),
            },
        }
    }

    fn neighbour(&self, address: [u8; 4]) -> Result<MacAddress, Reason> {
        match self.neighbours.get(address) {
            Some(neighbour) => neighbour.usable().ok_or(match neighbour.certainty {
                Certainty::Failed => Reason::NeighbourFailed,
                _ => Reason::NeighbourUnknown,
            }),
            None if self.neighbours.is_full() => Err(Reason::TableFull),
            None => Err(Reason::NeighbourUnknown),
        }
    }
}

#[cfg(test)]
mod tests;
