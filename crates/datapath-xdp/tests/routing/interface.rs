//! Tests of an interface that goes down, is renamed, changes, or is deleted.

use std::net::Ipv4Addr;

use isolane_datapath_xdp::routing::{Reason, Router, RouterConfig, RouterError};
use isolane_wire::ethernet::MacAddress;

use crate::hosts::{HERE, Hosts, THERE, ip};
use crate::{device, flow, follow, meet, reason, router};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 23, 0);

#[test]
fn nothing_is_sent_while_the_interface_is_down() {
    let _hosts = Hosts::new();
    let mut router = router();
    assert!(device(&mut router, GROUP).is_some());
    ip("link set host-a down");
    assert_eq!(reason(&mut router, GROUP), Some(Reason::Down));
    assert_eq!(reason(&mut router, THERE), Some(Reason::Down));
    ip("link set host-a up");
    assert!(device(&mut router, GROUP).is_some());
    meet();
    assert!(device(&mut router, THERE).is_some());
}

#[test]
fn nothing_is_sent_while_the_other_end_is_down() {
    let hosts = Hosts::new();
    let mut router = router();
    hosts.there(|| ip("link set host-b down"));
    crate::hosts::eventually("the carrier goes", || {
        (reason(&mut router, GROUP) == Some(Reason::Down)).then_some(())
    });
    hosts.there(|| ip("link set host-b up"));
    crate::hosts::eventually("the carrier is back", || device(&mut router, GROUP));
}

#[test]
fn an_interface_that_flaps_is_followed_to_its_last_state() {
    let _hosts = Hosts::new();
    let mut router = router();
    for _ in 0..20 {
        ip("link set host-a down");
        ip("link set host-a up");
    }
    meet();
    assert!(device(&mut router, THERE).is_some());
    assert!(device(&mut router, GROUP).is_some());
}

#[test]
fn a_name_is_only_a_name() {
    let _hosts = Hosts::new();
    meet();
    let mut router = router();
    assert_eq!(router.device().name, "host-a");
    ip("link set host-a name critical0");
    assert!(device(&mut router, THERE).is_some());
    assert_eq!(router.device().name, "critical0");
}

#[test]
fn the_mtu_decides_what_is_too_long_as_soon_as_it_changes() {
    let _hosts = Hosts::new();
    meet();
    let mut router = router();
    let flow = flow(THERE, 7);
    assert!(router.headers(&flow, 1472).is_ok());
    assert_eq!(router.headers(&flow, 1473).err(), Some(Reason::TooLong));
    ip("link set host-a mtu 1000");
    follow(&mut router);
    assert!(router.headers(&flow, 972).is_ok());
    assert_eq!(router.headers(&flow, 973).err(), Some(Reason::TooLong));
    let counts = router.counts();
    assert_eq!(counts.by_device, 2);
    assert_eq!(counts.by_kernel[Reason::TooLong as usize], 2);
    assert_eq!(counts.made, 2, "once for each MTU: {counts:?}");
}

#[test]
fn an_interface_that_changes_its_own_address_sends_from_the_new_one() {
    let _hosts = Hosts::new();
    let mut router = router();
    let mac = MacAddress([2, 0, 0, 0, 0, 0x55]);
    ip(&format!("link set host-a address {mac}"));
    let found = device(&mut router, GROUP).expect("the device's way");
    assert_eq!(found.source_mac, mac);
}

#[test]
fn addresses_come_and_go() {
    let _hosts = Hosts::new();
    let mut router = router();
    ip(&format!("address del {HERE}/24 dev host-a"));
    assert_eq!(reason(&mut router, GROUP), Some(Reason::NoSource));
    assert_eq!(reason(&mut router, THERE), Some(Reason::NoRoute));
    ip("address add 10.78.0.5/24 dev host-a");
    let found = device(&mut router, GROUP).expect("the device's way");
    assert_eq!(found.source, [10, 78, 0, 5]);
    assert_eq!(reason(&mut router, THERE), Some(Reason::NeighbourUnknown));
}

#[test]
fn an_interface_moved_to_another_namespace_is_gone_for_good() {
    let hosts = Hosts::new();
    let mut router = router();
    let index = router.device().index;
    ip(&format!("link set host-a netns {}", hosts.path()));
    assert_eq!(reason(&mut router, GROUP), Some(Reason::Gone));
    assert_eq!(reason(&mut router, THERE), Some(Reason::Gone));
    let config = RouterConfig {
        interface_index: index,
        vlan: None,
    };
    let error = Router::open(&config).err().expect("it is not here");
    assert!(matches!(error, RouterError::NoInterface { .. }), "{error}");
    assert!(error.to_string().contains("ip link"), "{error}");
}

#[test]
fn an_interface_that_is_deleted_is_gone() {
    let hosts = Hosts::new();
    let mut router = router();
    hosts.there(|| ip("link del host-b"));
    crate::hosts::eventually("it is gone", || {
        (reason(&mut router, GROUP) == Some(Reason::Gone)).then_some(())
    });
}
