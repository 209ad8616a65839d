use isolane_hostnet::limits::{MAX_NEIGHBOURS, MAX_ROUTES};
use isolane_hostnet::neighbour::Neighbour;
use isolane_hostnet::route::Table;
use isolane_hostnet::route_monitor::{Address, Rules};

use super::*;

const DEVICE: u32 = 3;
const OWN_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const PEER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const PEER: [u8; 4] = [10, 0, 0, 2];

fn route(destination: [u8; 4], prefix_bits: u8) -> Route {
    Route {
        table: Table::Main,
        destination: u32::from_be_bytes(destination),
        prefix_bits,
        metric: 0,
        kind: RouteKind::Unicast,
        interface: DEVICE,
        gateway: None,
        source: None,
        mtu_bytes: None,
        round: 1,
    }
}

fn neighbour(certainty: Certainty) -> Neighbour {
    Neighbour {
        mac: Some(PEER_MAC),
        certainty,
        round: 1,
    }
}

/// Host 10.0.0.1/24 on one device, with the neighbour 10.0.0.2.
fn tables() -> Snapshot {
    let mut tables = Snapshot::new(DEVICE);
    tables.is_synchronised = true;
    tables.rules = Rules {
        has_local: true,
        has_main: true,
        others: 0,
    };
    tables.device.is_up = true;
    tables.device.has_carrier = true;
    tables.device.is_multicast = true;
    tables.device.mtu_bytes = 1500;
    tables.device.mac = Some(OWN_MAC);
    tables.device.insert(Address {
        address: [10, 0, 0, 1],
        prefix_bits: 24,
        is_secondary: false,
        round: 1,
    });
    tables.routes.insert(Route {
        source: Some([10, 0, 0, 1]),
        ..route([10, 0, 0, 0], 24)
    });
    for (address, kind) in [(1, RouteKind::Local), (255, RouteKind::Broadcast)] {
        tables.routes.insert(Route {
            table: Table::Local,
            kind,
            ..route([10, 0, 0, address], 32)
        });
    }
    tables
        .neighbours
        .insert(PEER, neighbour(Certainty::Confirmed));
    tables
}

fn reason(tables: &Snapshot, destination: [u8; 4]) -> Reason {
    resolve(tables, destination, None).expect_err("the kernel's way")
}

fn device(tables: &Snapshot, destination: [u8; 4]) -> Device {
    resolve(tables, destination, None)
        .expect("the device's way")
        .device
}

#[test]
fn a_known_neighbour_is_sent_to_directly() {
    let tables = tables();
    let found = resolve(&tables, PEER, Some(5)).expect("the device's way");
    assert_eq!(found.neighbour, Some(PEER));
    assert_eq!(
        found.device,
        Device {
            destination_mac: PEER_MAC,
            source_mac: OWN_MAC,
            source: [10, 0, 0, 1],
            destination: PEER,
            vlan: Some(5),
            mtu_bytes: 1500,
        }
    );
}

#[test]
fn what_stays_or_leaves_elsewhere_is_the_kernels() {
    let mut tables = tables();
    tables.routes.insert(Route {
        interface: DEVICE + 1,
        ..route([10, 9, 0, 0], 16)
    });
    tables.routes.insert(Route {
        kind: RouteKind::Refused,
        ..route([10, 8, 0, 0], 16)
    });
    tables.routes.insert(Route {
        kind: RouteKind::Intricate,
        ..route([10, 7, 0, 0], 16)
    });
    assert_eq!(reason(&tables, [10, 0, 0, 1]), Reason::OwnHost);
    assert_eq!(reason(&tables, [10, 9, 0, 1]), Reason::OtherInterface);
    assert_eq!(reason(&tables, [10, 8, 0, 1]), Reason::NoRoute);
    assert_eq!(reason(&tables, [10, 7, 0, 1]), Reason::Unsupported);
    assert_eq!(reason(&tables, [192, 0, 2, 1]), Reason::NoRoute);
}

#[test]
fn a_gateway_is_the_neighbour_and_the_packet_keeps_its_address() {
    let mut tables = tables();
    tables.routes.insert(Route {
        gateway: Some(PEER),
        mtu_bytes: Some(1400),
        ..route([0, 0, 0, 0], 0)
    });
    let way = device(&tables, [192, 0, 2, 1]);
    assert_eq!(way.destination_mac, PEER_MAC);
    assert_eq!(way.destination, [192, 0, 2, 1]);
    assert_eq!(way.source, [10, 0, 0, 1]);
    assert_eq!(way.mtu_bytes, 1400, "the route's own");
}

#[test]
fn groups_and_broadcasts_need_no_neighbour() {
    let tables = tables();
    let group = device(&tables, [239, 129, 2, 3]);
    assert_eq!(
        group.destination_mac,
        MacAddress([0x01, 0x00, 0x5e, 0x01, 2, 3])
    );
    assert_eq!(group.source, [10, 0, 0, 1]);
    let broadcast = device(&tables, [10, 0, 0, 255]);
    assert_eq!(broadcast.destination_mac, MacAddress::BROADCAST);
}

#[test]
fn a_neighbour_serves_as_long_as_nothing_is_known_to_be_wrong_with_it() {
    let mut tables = tables();
    for certainty in [Certainty::Stale, Certainty::Permanent] {
        tables.neighbours.insert(PEER, neighbour(certainty));
        assert_eq!(device(&tables, PEER).destination_mac, PEER_MAC);
    }
    tables.neighbours.insert(PEER, neighbour(Certainty::Failed));
    assert_eq!(reason(&tables, PEER), Reason::NeighbourFailed);
    tables.neighbours.insert(PEER, neighbour(Certainty::Asked));
    assert_eq!(reason(&tables, PEER), Reason::NeighbourUnknown);
    assert_eq!(reason(&tables, [10, 0, 0, 9]), Reason::NeighbourUnknown);
}

type Change = fn(&mut Snapshot);

#[test]
fn nothing_leaves_by_a_device_that_cannot_send() {
    for destination in [PEER, [239, 255, 16, 0]] {
        let changes: [(Change, Reason); 7] = [
            (|tables| tables.device.is_up = false, Reason::Down),
            (|tables| tables.device.has_carrier = false, Reason::Down),
            (|tables| tables.device.is_gone = true, Reason::Gone),
            (|tables| tables.device.mac = None, Reason::Unsupported),
            (
                |tables| tables.is_synchronised = false,
                Reason::Synchronising,
            ),
            (|tables| tables.rules.others = 1, Reason::Rules),
            (|tables| tables.rules.has_local = false, Reason::Rules),
        ];
        for (change, expected) in changes {
            let mut tables = tables();
            change(&mut tables);
            assert_eq!(reason(&tables, destination), expected);
        }
    }
}

#[test]
fn without_an_address_there_is_nothing_to_send_from() {
    let mut tables = tables();
    tables.device.remove([10, 0, 0, 1], 24);
    assert_eq!(reason(&tables, [239, 255, 16, 0]), Reason::NoSource);
    tables.routes.insert(route([10, 3, 0, 0], 16));
    assert_eq!(reason(&tables, [10, 3, 0, 1]), Reason::NoSource);
}

#[test]
fn a_device_without_multicast_leaves_groups_to_the_kernel() {
    let mut tables = tables();
    tables.device.is_multicast = false;
    assert_eq!(reason(&tables, [239, 255, 16, 0]), Reason::Unsupported);
    assert_eq!(device(&tables, PEER).destination_mac, PEER_MAC);
}

#[test]
fn full_tables_never_guess() {
    let mut tables = tables();
    for number in 0..MAX_ROUTES as u32 {
        let [_, b, c, d] = number.to_be_bytes();
        tables.routes.insert(route([b, c, d, 0], 24));
    }
    assert_eq!(reason(&tables, PEER), Reason::TableFull);

    let mut tables = self::tables();
    for number in 0..MAX_NEIGHBOURS as u32 {
        let address = (0x0b00_0000 + number).to_be_bytes();
        tables
            .neighbours
            .insert(address, neighbour(Certainty::Stale));
    }
    assert_eq!(reason(&tables, [10, 0, 0, 9]), Reason::TableFull);
    assert_eq!(
        device(&tables, PEER).destination_mac,
        PEER_MAC,
        "still known"
    );
}

#[test]
fn a_reason_counts_at_its_own_place() {
    for (place, reason) in Reason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, place, "{reason}");
    }
}
