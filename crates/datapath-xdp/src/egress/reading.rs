//! The kernel's messages, as far as they matter here: each becomes a change of the
//! [`Tables`](super::tables::Tables).

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

use super::device::{Address, DeviceState};
use super::neighbours::{Certainty, Neighbour};
use super::routes::{Route, RouteKind, Table};
use super::tables::Tables;

/// What a message did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// Answers may differ now.
    pub(super) has_changed: bool,
    /// The kernel changes routes along with this without a word: they are to be read again.
    pub(super) rereads_routes: bool,
    /// Policy rules are told apart by too much to follow them one by one.
    pub(super) rereads_rules: bool,
}

impl Effect {
    fn changed(has_changed: bool) -> Effect {
        Effect {
            has_changed,
            ..Effect::default()
        }
    }

    /// Routes may have gone with an interface or an address: the kernel removes those silently.
    fn with_routes(has_changed: bool) -> Effect {
        Effect {
            has_changed,
            rereads_routes: true,
            ..Effect::default()
        }
    }
}

/// Takes one message in. `round` marks what was seen; `flags` are the netlink header's.
pub(super) fn take(
    tables: &mut Tables,
    message: &RouteNetlinkMessage,
    flags: u16,
    round: u32,
    is_event: bool,
) -> Effect {
    match message {
        RouteNetlinkMessage::NewLink(link) => {
            // A bridge speaks of its ports in the same words.
            let is_ours = link.header.interface_family == AddressFamily::Unspec
                && link.header.index == tables.device.index;
            let has_changed =
                is_ours && !tables.device.is_gone && take_link(&mut tables.device, link);
            match is_event {
                true => Effect::with_routes(has_changed),
                false => Effect::changed(has_changed),
            }
        }
        RouteNetlinkMessage::DelLink(link) => {
            let is_device = link.header.interface_family == AddressFamily::Unspec;
            let is_ours = is_device && link.header.index == tables.device.index;
            tables.device.is_gone |= is_ours;
            Effect::with_routes(is_ours)
        }
        RouteNetlinkMessage::NewAddress(message) => {
            let known = address(message, tables.device.index, round);
            Effect::changed(known.is_some_and(|address| tables.device.insert(address)))
        }
        RouteNetlinkMessage::DelAddress(message) => {
            let known = address(message, tables.device.index, round);
            Effect::with_routes(known.is_some_and(
                |Address {
                     address,
                     prefix_bits,
                     ..
                 }| { tables.device.remove(address, prefix_bits) },
            ))
        }
        RouteNetlinkMessage::NewRoute(message) => {
            let has_changed =
                route(message, round).is_some_and(|route| tables.routes.insert(route));
            Effect {
                has_changed,
                // Which route was replaced is not said.
                rereads_routes: is_event && flags & NLM_F_REPLACE != 0,
                rereads_rules: false,
            }
        }
        RouteNetlinkMessage::DelRoute(message) => {
            Effect::changed(route(message, round).is_some_and(|route| tables.routes.remove(&route)))
        }
        RouteNetlinkMessage::NewNeighbour(message) => {
            let known = neighbour(message, tables.device.index, round);
            Effect::changed(
                known.is_some_and(|(address, known)| tables.neighbours.insert(address, known)),
            )
        }
        RouteNetlinkMessage::DelNeighbour(message) => {
            let known = neighbour(message, tables.device.index, round);
            Effect::changed(known.is_some_and(|(address, _)| tables.neighbours.remove(address)))
        }
        RouteNetlinkMessage::NewRule(rule) if !is_event => {
            take_rule(tables, rule);
            Effect::default()
        }
        RouteNetlinkMessage::NewRule(_) | RouteNetlinkMessage::DelRule(_) => {
            // Until they are read again, nothing is sure.
            tables.rules.others += 1;
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
    // What a look-up remembered is no route.
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
    // A next hop that is an object of its own, and is not spelled out here.
    if route.kind == RouteKind::Unicast && route.interface == 0 {
        route.kind = RouteKind::Intricate;
    }
    Some(route)
}

/// Numbers of tables (linux/rtnetlink.h).
const LOCAL_TABLE: u32 = 255;
const MAIN_TABLE: u32 = 254;
const DEFAULT_TABLE: u32 = 253;

/// The tables that the usual rules name; others are asked by nobody.
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
        // For one type of service only, or for packets from one source.
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

/// Priorities of the rules that every host starts with.
const LOCAL_RULE: u32 = 0;
const MAIN_RULE: u32 = 32_766;
const DEFAULT_RULE: u32 = 32_767;

fn take_rule(tables: &mut Tables, rule: &RuleMessage) {
    if rule.header.family != AddressFamily::Inet {
        return;
    }
    let rules = &mut tables.rules;
    match usual(rule) {
        Some((LOCAL_RULE, Table::Local)) => rules.has_local = true,
        Some((MAIN_RULE, Table::Main)) => rules.has_main = true,
        Some((DEFAULT_RULE, Table::Default)) => {}
        _ => rules.others += 1,
    }
}

/// Priority and table of a rule that holds for all packets and sends them to a table.
fn usual(rule: &RuleMessage) -> Option<(u32, Table)> {
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
