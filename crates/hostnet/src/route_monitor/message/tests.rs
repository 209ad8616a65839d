use std::net::Ipv4Addr;

use super::super::Rules;
use super::*;
use netlink_packet_route::neighbour::NeighbourState;
use netlink_packet_route::route::{RouteNextHop, RouteVia};

const DEVICE: u32 = 3;

fn seen(is_notification: bool) -> Seen {
    Seen {
        flags: 0,
        round: 1,
        is_notification,
    }
}

fn taken(tables: &mut Snapshot, message: RouteNetlinkMessage) -> Effect {
    take(tables, &message, seen(true))
}

fn route_message(destination: [u8; 4], attributes: Vec<RouteAttribute>) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.destination_prefix_length = 24;
    message.header.table = 254;
    message.header.kind = RouteType::Unicast;
    message.attributes = attributes;
    let destination = RouteAddress::Inet(Ipv4Addr::from(destination));
    message
        .attributes
        .push(RouteAttribute::Destination(destination));
    message
}

fn kind_of(attributes: Vec<RouteAttribute>) -> RouteKind {
    route(&route_message([10, 0, 0, 0], attributes), 1)
        .expect("an IPv4 route")
        .kind
}

#[test]
fn a_plain_route_is_read_whole() {
    let message = route_message(
        [10, 0, 0, 0],
        vec![
            RouteAttribute::Oif(DEVICE),
            RouteAttribute::Priority(100),
            RouteAttribute::Gateway(RouteAddress::Inet(Ipv4Addr::new(10, 9, 0, 1))),
            RouteAttribute::PrefSource(RouteAddress::Inet(Ipv4Addr::new(10, 9, 0, 2))),
            RouteAttribute::Metrics(vec![RouteMetric::Mtu(1400)]),
        ],
    );
    assert_eq!(
        route(&message, 7),
        Some(Route {
            table: Table::Main,
            destination: 0x0a00_0000,
            prefix_bits: 24,
            metric: 100,
            kind: RouteKind::Unicast,
            interface: DEVICE,
            gateway: Some([10, 9, 0, 1]),
            source: Some([10, 9, 0, 2]),
            mtu_bytes: Some(1400),
            round: 7,
        })
    );
}

#[test]
fn routes_that_take_more_than_an_ethernet_header_are_known_as_such() {
    let via = RouteVia::Inet6("fe80::1".parse().expect("an address"));
    let intricate = [
        vec![RouteAttribute::MultiPath(vec![RouteNextHop::default()])],
        vec![RouteAttribute::Oif(DEVICE), RouteAttribute::Via(via)],
        vec![RouteAttribute::NhId(4)],
    ];
    for attributes in intricate {
        assert_eq!(kind_of(attributes), RouteKind::Intricate);
    }
    assert_eq!(
        kind_of(vec![RouteAttribute::Oif(DEVICE)]),
        RouteKind::Unicast
    );
    let mut for_one_service = route_message([10, 0, 0, 0], vec![RouteAttribute::Oif(DEVICE)]);
    for_one_service.header.tos = 0x10;
    let read = route(&for_one_service, 1).expect("an IPv4 route");
    assert_eq!(read.kind, RouteKind::Intricate);
}

#[test]
fn tables_without_a_rule_are_left_out() {
    let mut message = route_message([10, 0, 0, 0], vec![RouteAttribute::Oif(DEVICE)]);
    message.attributes.push(RouteAttribute::Table(1000));
    assert_eq!(route(&message, 1), None);
}

#[test]
fn interfaces_and_addresses_that_change_have_routes_read_again() {
    let mut tables = Snapshot::new(DEVICE);
    let mut link = LinkMessage::default();
    link.header.index = DEVICE + 1;
    let effect = taken(&mut tables, RouteNetlinkMessage::NewLink(link.clone()));
    assert!(effect.rereads_routes && !effect.has_changed);
    link.header.index = DEVICE;
    link.header.flags = LinkFlags::Up;
    let effect = taken(&mut tables, RouteNetlinkMessage::NewLink(link));
    assert!(effect.rereads_routes && effect.has_changed);
    assert!(tables.device.is_up);
}

#[test]
fn a_port_that_leaves_its_bridge_is_still_there() {
    let mut tables = Snapshot::new(DEVICE);
    let mut link = LinkMessage::default();
    link.header.index = DEVICE;
    link.header.interface_family = AddressFamily::Bridge;
    taken(&mut tables, RouteNetlinkMessage::DelLink(link.clone()));
    assert!(!tables.device.is_gone);
    link.header.interface_family = AddressFamily::Unspec;
    taken(&mut tables, RouteNetlinkMessage::DelLink(link.clone()));
    assert!(tables.device.is_gone);
    link.header.flags = LinkFlags::Up;
    taken(&mut tables, RouteNetlinkMessage::NewLink(link));
    assert!(tables.device.is_gone && !tables.device.is_up, "for good");
}

#[test]
fn only_ethernet_devices_with_neighbours_have_an_address_to_send_from() {
    let mut link = LinkMessage::default();
    link.header.index = DEVICE;
    link.header.link_layer_type = LinkLayerType::Ether;
    link.attributes = vec![LinkAttribute::Address(vec![2, 0, 0, 0, 0, 1])];
    let mut device = DeviceState::new(DEVICE);
    take_link(&mut device, &link);
    assert_eq!(device.mac, Some(MacAddress([2, 0, 0, 0, 0, 1])));
    link.header.flags = LinkFlags::Noarp;
    take_link(&mut device, &link);
    assert_eq!(device.mac, None);
    link.header.flags = LinkFlags::empty();
    link.header.link_layer_type = LinkLayerType::Loopback;
    take_link(&mut device, &link);
    assert_eq!(device.mac, None);
}

#[test]
fn neighbours_of_other_devices_are_not_ours() {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.ifindex = DEVICE;
    message.header.state = NeighbourState::Reachable;
    message.attributes = vec![
        NeighbourAttribute::Destination(NeighbourAddress::Inet(Ipv4Addr::new(10, 0, 0, 2))),
        NeighbourAttribute::LinkLayerAddress(vec![2, 0, 0, 0, 0, 2]),
    ];
    let (address, known) = neighbour(&message, DEVICE, 1).expect("ours");
    assert_eq!(address, [10, 0, 0, 2]);
    assert_eq!(known.usable(), Some(MacAddress([2, 0, 0, 0, 0, 2])));
    assert_eq!(neighbour(&message, DEVICE + 1, 1), None);
}

fn rule(priority: Option<u32>, table: u8) -> RuleMessage {
    let mut rule = RuleMessage::default();
    rule.header.family = AddressFamily::Inet;
    rule.header.action = RuleAction::ToTable;
    rule.header.table = table;
    rule.attributes = priority.map(RuleAttribute::Priority).into_iter().collect();
    rule
}

#[test]
fn the_rules_every_host_starts_with_are_distinguished_from_others() {
    let mut tables = Snapshot::new(DEVICE);
    for usual in [
        rule(None, 255),
        rule(Some(32_766), 254),
        rule(Some(32_767), 253),
    ] {
        take(
            &mut tables,
            &RouteNetlinkMessage::NewRule(usual),
            seen(false),
        );
    }
    let expected = Rules {
        has_local: true,
        has_main: true,
        others: 0,
    };
    assert_eq!(tables.rules, expected);

    let mut from = rule(Some(100), 254);
    from.header.src_len = 24;
    let mut inverted = rule(None, 255);
    inverted.header.flags = RuleFlags::Invert;
    let mut marked = rule(Some(32_766), 254);
    marked.attributes.push(RuleAttribute::FwMark(1));
    let others = [
        from,
        inverted,
        marked,
        rule(Some(5), 255),
        rule(Some(9), 100),
    ];
    for (count, other) in (1..).zip(others) {
        take(
            &mut tables,
            &RouteNetlinkMessage::NewRule(other),
            seen(false),
        );
        assert_eq!(tables.rules.others, count);
    }
}
