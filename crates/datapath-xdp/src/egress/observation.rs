//! Tables for display.

use std::net::Ipv4Addr;

use isolane_hostnet::neighbour::Certainty;
use isolane_hostnet::route::{RouteKind, Table};
use isolane_hostnet::route_monitor::{DeviceState, Snapshot};
use isolane_wire::ethernet::MacAddress;

use super::Counts;

/// Tables of an [`Egress`](super::Egress).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressObservation {
    /// State of the device.
    pub device: DeviceState,
    /// Routes that leave by the device, without those of the table `local`, in look-up order.
    pub routes: Vec<RouteObservation>,
    /// Neighbours on the device's link, by address.
    pub neighbours: Vec<NeighbourObservation>,
    /// Whether all tables were read and no notification was lost since.
    pub is_synchronised: bool,
    /// Counters of route decisions.
    pub counts: Counts,
}

/// Route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteObservation {
    /// Destination network.
    pub destination: Ipv4Addr,
    /// Prefix length.
    pub prefix_bits: u8,
    /// Next hop, if the destination is not on the link.
    pub gateway: Option<Ipv4Addr>,
    /// Route metric; the smallest wins.
    pub metric: u32,
    /// Whether the route needs an Ethernet header only.
    pub is_plain: bool,
}

/// Neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourObservation {
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// Ethernet address, if one is known.
    pub mac: Option<MacAddress>,
    /// Reachability state.
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
