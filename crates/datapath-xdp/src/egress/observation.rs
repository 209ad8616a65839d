//! The tables, for people.

use std::net::Ipv4Addr;

use isolane_hostnet::neighbour::Certainty;
use isolane_hostnet::route::{RouteKind, Table};
use isolane_hostnet::route_monitor::{DeviceState, Snapshot};
use isolane_wire::ethernet::MacAddress;

use super::Counts;

/// What is known now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressObservation {
    /// The device.
    pub device: DeviceState,
    /// Routes of the main table that leave by the device, in the order in which they are asked.
    pub routes: Vec<RouteObservation>,
    /// Neighbours on its link, by address.
    pub neighbours: Vec<NeighbourObservation>,
    /// All tables have been read, and nothing was missed since.
    pub is_synchronised: bool,
    /// What was answered so far.
    pub counts: Counts,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteObservation {
    /// Where to.
    pub destination: Ipv4Addr,
    /// Leading bits of the destination that count.
    pub prefix_bits: u8,
    /// The router, if it is not on the link.
    pub gateway: Option<Ipv4Addr>,
    /// The smaller, the better.
    pub metric: u32,
    /// Whether frames can take it with an Ethernet header alone.
    pub is_plain: bool,
}

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourObservation {
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Its Ethernet address, if one is known.
    pub mac: Option<MacAddress>,
    /// How sure the kernel is.
    pub certainty: Certainty,
}

pub(super) fn observe(tables: &Snapshot, counts: Counts) -> EgressObservation {
    let leaves_here = |interface: u32| interface == tables.device.index;
    let routes = tables
        .routes
        .iter()
        .filter(|route| route.table != Table::Local && leaves_here(route.interface))
        .map(|route| RouteObservation {
            destination: Ipv4Addr::from(route.destination),
            prefix_bits: route.prefix_bits,
            gateway: route.gateway.map(Ipv4Addr::from),
            metric: route.metric,
            is_plain: route.kind == RouteKind::Unicast,
        });
    let neighbours = tables.neighbours.iter();
    let mut neighbours: Vec<NeighbourObservation> = neighbours
        .map(|(address, neighbour)| NeighbourObservation {
            address: Ipv4Addr::from(address),
            mac: neighbour.mac,
            certainty: neighbour.certainty,
        })
        .collect();
    neighbours.sort_by_key(|neighbour| neighbour.address);
    EgressObservation {
        device: tables.device.clone(),
        routes: routes.collect(),
        neighbours,
        is_synchronised: tables.is_synchronised,
        counts,
    }
}
