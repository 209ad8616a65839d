//! Messages of rtnetlink(7), applied to the [`Snapshot`].

use std::net::IpAddr;

use isolane_wire::ethernet::MacAddress;
use netlink_packet_core::NLM_F_REPLACE;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::Snapshot;
use crate::link::{Address, DeviceState};
use crate::neighbour::{Certainty, Neighbour};
use crate::route::{Route, RouteKind, Table};

/// Effect of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// True if the snapshot has changed.
    pub(super) has_changed: bool,
    /// True if the kernel may have changed routes without a notification: they are dumped again.
    pub(super) rereads_routes: bool,
    /// True if policy rules changed. They have too many attributes to be updated singly, and are dumped again.
    pub(super) rereads_rules: bool,
}

impl Effect {
    fn changed(has_changed: bool) -> Effect {
        Effect {
            has_changed,
            ..Effect::default()
        }
    }

    /// Effect of a change that may have removed routes: the kernel removes those of a link or an address silently.
    fn with_routes(has_changed: bool) -> Effect {
        Effect {
            has_changed,
            rereads_routes: true,
            ..Effect::default()
        }
    }
}

/// Context of a received message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Flags of the netlink header.
    pub(super) flags: u16,
    /// Round of the current dump.
    pub(super) round: u32,
    /// True unless the message answers a dump.
    pub(super) is_notification: bool,
}

/// Applies one message.
pub(super) fn take(snapshot: &mut Snapshot, message: &RouteNetlinkMessage, seen: Seen) -> Effect {
    let round = seen.round;
    match message {
        RouteNetlinkMessage::NewLink(link) => {
            // A bridge announces its ports with the same message, of another family.
            let is_ours = link.header.interface_family == AddressFamily::Unspec
                && link.header.index == snapshot.device.index;
            let has_changed =
                is_ours && !snapshot.device.is_gone && take_link(&mut snapshot.device, link);
            match seen.is_notification {
                true => Effect::with_routes(has_changed),
                false => Effect::changed(has_changed),
            }
        }
        RouteNetlinkMessage::DelLink(link) => {
            let is_device = link.header.interface_family == AddressFamily::Unspec;
            let is_ours = is_device && link.header.index == snapshot.device.index;
            snapshot.device.is_gone |= is_ours;
            Effect::with_routes(is_ours)
        }
        RouteNetlinkMessage::NewAddress(message) => {
            let known = address(message, snapshot.device.index, round);
            Effect::changed(known.is_some_and(|address| snapshot.device.insert(address)))
        }
        RouteNetlinkMessage::DelAddress(message) => {
            let known = address(message, snapshot.device.index, round);
            Effect::with_routes(known.is_some_and(
                |Address {
                     address,
                     prefix_bits,
                     ..
                 }| { snapshot.device.remove(address, prefix_bits) },
            ))
        }
        RouteNetlinkMessage::NewRoute(message) => {
            let has_changed =
                route(message, round).is_some_and(|route| snapshot.routes.insert(route));
            Effect {
                has_changed,
                // The message does not say which route was replaced.
                rereads_routes: seen.is_notification && seen.flags & NLM_F_REPLACE != 0,
                rereads_rules: false,
            }
        }
        RouteNetlinkMessage::DelRoute(message) => Effect::changed(
            route(message, round).is_some_and(|route| snapshot.routes.remove(&route)),
        ),
        RouteNetlinkMessage::NewNeighbour(message) => {
            let known = neighbour(message, snapshot.device.index, round);
            Effect::changed(
                known.is_some_and(|(address, known)| snapshot.neighbours.insert(address, known)),
            )
        }
        RouteNetlinkMessage::DelNeighbour(message) => {
            let known = neighbour(message, snapshot.device.index, round);
            Effect::changed(known.is_some_and(|(address, _)| snapshot.neighbours.remove(address)))
        }
        RouteNetlinkMessage::NewRule(rule) if !seen.is_notification => {
            take_rule(snapshot, rule);
            Effect::default()
        }
        RouteNetlinkMessage::NewRule(_) | RouteNetlinkMessage::DelRule(_) => {
            // No route is certain until the rules are dumped again.
            snapshot.rules.others += 1;
            Effect {
                has_changed: true,
                rereads_rules: true,
                ..Effect::default()
            }
        }
        _ => Effect::default(),
    }
}

fn take_link(device: &mut DeviceState, link: &LinkMessage) -> bool {
    let before = device.clone();
    let flags = link.header.flags;
    device.is_up = flags.contains(LinkFlags::Up);
    device.has_carrier = flags.contains(LinkFlags::LowerUp);
    device.is_multicast = flags.contains(LinkFlags::Multicast);
    let has_neighbours = link.header.link_layer_type == LinkLayerType::Ether
        && !flags.intersects(LinkFlags::Noarp | LinkFlags::Loopback);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => device.name.clone_from(name),
            LinkAttribute::Mtu(bytes) => device.mtu_bytes = *bytes as usize,
            LinkAttribute::Address(bytes) => {
                device.mac = mac(bytes).filter(|_| has_neighbours);
            }
            _ => {}
        }
    }
    *device != before
}

fn mac(bytes: &[u8]) -> Option<MacAddress> {
    bytes.try_into().ok().map(MacAddress)
}

fn address(message: &AddressMessage, index: u32, round: u32) -> Option<Address> {
    let header = &message.header;
    if header.family != AddressFamily::Inet || header.index != index {
        return None;
    }
    let mut found = None;
    let mut is_secondary = false;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(IpAddr::V4(address)) => found = Some(address.octets()),
            AddressAttribute::Flags(flags) => {
                is_secondary = flags.contains(AddressFlags::Secondary);
            }
            _ => {}
        }
    }
    Some(Address {
        address: found?,
        prefix_bits: header.prefix_len,
        is_secondary,
        round,
    })
}

fn route(message: &RouteMessage, round: u32) -> Option<Route> {
    let header = &message.header;
    if header.address_family != AddressFamily::Inet {
        return None;
    }
    // The result of a look-up, not a route.
    if header.flags.contains(RouteFlags::Cloned) {
        return None;
    }
    let mut route = Route {
        table: table(u32::from(header.table)).unwrap_or(Table::Main),
        destination: 0,
        prefix_bits: header.destination_prefix_length,
        metric: 0,
        kind: kind(header),
        interface: 0,
        gateway: None,
        source: None,
        mtu_bytes: None,
        round,
    };
    let mut number = u32::from(header.table);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(table) => number = *table,
            RouteAttribute::Destination(RouteAddress::Inet(address)) => {
                route.destination = u32::from_be_bytes(address.octets());
            }
            RouteAttribute::Priority(metric) => route.metric = *metric,
            RouteAttribute::Oif(index) => route.interface = *index,
            RouteAttribute::Gateway(RouteAddress::Inet(address)) => {
                route.gateway = Some(address.octets());
            }
            RouteAttribute::PrefSource(RouteAddress::Inet(address)) => {
                route.source = Some(address.octets());
            }
            RouteAttribute::Metrics(metrics) => {
                route.mtu_bytes = metrics.iter().find_map(|metric| match metric {
                    RouteMetric::Mtu(bytes) => Some(*bytes),
                    _ => None,
                });
            }
            RouteAttribute::MultiPath(_)
            | RouteAttribute::Via(_)
            | RouteAttribute::Encap(_)
            | RouteAttribute::EncapType(_)
                if route.kind == RouteKind::Unicast =>
            {
                route.kind = RouteKind::Intricate;
            }
            _ => {}
        }
    }
    route.table = table(number)?;
    // The next hop is a nexthop object, whose content is not in the message.
    if route.kind == RouteKind::Unicast && route.interface == 0 {
        route.kind = RouteKind::Intricate;
    }
    Some(route)
}

/// Table numbers (linux/rtnetlink.h).
const LOCAL_TABLE: u32 = 255;
const MAIN_TABLE: u32 = 254;
const DEFAULT_TABLE: u32 = 253;

/// Table of the default rules; without a rule no other table is searched.
fn table(number: u32) -> Option<Table> {
    match number {
        LOCAL_TABLE => Some(Table::Local),
        MAIN_TABLE => Some(Table::Main),
        DEFAULT_TABLE => Some(Table::Default),
        _ => None,
    }
}

fn kind(header: &RouteHeader) -> RouteKind {
    match header.kind {
        // The route holds for one type of service, or for packets from one source.
        _ if header.tos != 0 || header.source_prefix_length != 0 => RouteKind::Intricate,
        RouteType::Unicast => RouteKind::Unicast,
        RouteType::Local => RouteKind::Local,
        RouteType::Broadcast => RouteKind::Broadcast,
        RouteType::BlackHole | RouteType::Unreachable | RouteType::Prohibit => RouteKind::Refused,
        _ => RouteKind::Intricate,
    }
}

fn neighbour(message: &NeighbourMessage, index: u32, round: u32) -> Option<([u8; 4], Neighbour)> {
    let header = &message.header;
    if header.family != AddressFamily::Inet || header.ifindex != index {
        return None;
    }
    let mut address = None;
    let mut known = None;
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(destination)) => {
                address = Some(destination.octets());
            }
            NeighbourAttribute::LinkLayerAddress(bytes) => known = mac(bytes),
            _ => {}
        }
    }
    let neighbour = Neighbour {
        mac: known,
        certainty: Certainty::of(header.state),
        round,
    };
    Some((address?, neighbour))
}

/// Priorities of the kernel's default rules.
const LOCAL_RULE: u32 = 0;
const MAIN_RULE: u32 = 32_766;
const DEFAULT_RULE: u32 = 32_767;

fn take_rule(snapshot: &mut Snapshot, rule: &RuleMessage) {
    if rule.header.family != AddressFamily::Inet {
        return;
    }
    let rules = &mut snapshot.rules;
    match default_rule(rule) {
        Some((LOCAL_RULE, Table::Local)) => rules.has_local = true,
        Some((MAIN_RULE, Table::Main)) => rules.has_main = true,
        Some((DEFAULT_RULE, Table::Default)) => {}
        _ => rules.others += 1,
    }
}

/// Priority and table of a rule that sends all packets to a table.
fn default_rule(rule: &RuleMessage) -> Option<(u32, Table)> {
    let header = &rule.header;
    let is_for_all = header.src_len == 0 && header.dst_len == 0 && header.tos == 0;
    if !is_for_all
        || header.action != RuleAction::ToTable
        || header.flags.contains(RuleFlags::Invert)
    {
        return None;
    }
    let mut priority = 0;
    let mut number = u32::from(header.table);
    for attribute in &rule.attributes {
        match attribute {
            RuleAttribute::Priority(value) => priority = *value,
            RuleAttribute::Table(value) => number = *value,
            RuleAttribute::Protocol(_) | RuleAttribute::SuppressPrefixLen(u32::MAX) => {}
            _ => return None,
        }
    }
    Some((priority, table(number)?))
}

#[cfg(test)]
mod tests;
