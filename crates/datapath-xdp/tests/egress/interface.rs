//! Tests of an interface that goes down, is renamed, changes, or is deleted.

use std::net::Ipv4Addr;

use isolane_datapath_xdp::egress::{Egress, EgressConfig, EgressError, Reason};
use isolane_wire::ethernet::MacAddress;

use crate::hosts::{HERE, Hosts, THERE, ip};
use crate::{device, egress, flow, follow, meet, reason};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 23, 0);

#[test]
fn nothing_is_sent_while_the_interface_is_down() {
    let _hosts = Hosts::new();
    let mut egress = egress();
    assert!(device(&mut egress, GROUP).is_some());
    ip("link set host-a down");
    assert_eq!(reason(&mut egress, GROUP), Some(Reason::Down));
    assert_eq!(reason(&mut egress, THERE), Some(Reason::Down));
    ip("link set host-a up");
    assert!(device(&mut egress, GROUP).is_some());
    meet();
    assert!(device(&mut egress, THERE).is_some());
}

#[test]
fn nothing_is_sent_while_the_other_end_is_down() {
    let hosts = Hosts::new();
    let mut egress = egress();
    hosts.there(|| ip("link set host-b down"));
    crate::hosts::eventually("the carrier goes", || {
        (reason(&mut egress, GROUP) == Some(Reason::Down)).then_some(())
    });
    hosts.there(|| ip("link set host-b up"));
    crate::hosts::eventually("the carrier is back", || device(&mut egress, GROUP));
}

#[test]
fn an_interface_that_flaps_is_followed_to_its_last_state() {
    let _hosts = Hosts::new();
    let mut egress = egress();
    for _ in 0..20 {
        ip("link set host-a down");
        ip("link set host-a up");
    }
    meet();
    assert!(device(&mut egress, THERE).is_some());
    assert!(device(&mut egress, GROUP).is_some());
}

#[test]
fn a_name_is_only_a_name() {
    let _hosts = Hosts::new();
    meet();
    let mut egress = egress();
    assert_eq!(egress.device().name, "host-a");
    ip("link set host-a name critical0");
    assert!(device(&mut egress, THERE).is_some());
    assert_eq!(egress.device().name, "critical0");
}

#[test]
fn the_mtu_decides_what_is_too_long_as_soon_as_it_changes() {
    let _hosts = Hosts::new();
    meet();
    let mut egress = egress();
    let flow = flow(THERE, 7);
    assert!(egress.headers(&flow, 1472).is_ok());
    assert_eq!(egress.headers(&flow, 1473).err(), Some(Reason::TooLong));
    ip("link set host-a mtu 1000");
    follow(&mut egress);
    assert!(egress.headers(&flow, 972).is_ok());
    assert_eq!(egress.headers(&flow, 973).err(), Some(Reason::TooLong));
    let counts = egress.counts();
    assert_eq!(counts.by_device, 2);
    assert_eq!(counts.by_kernel[Reason::TooLong as usize], 2);
    assert_eq!(counts.made, 2, "once for each MTU: {counts:?}");
}

#[test]
fn an_interface_that_changes_its_own_address_sends_from_the_new_one() {
    let _hosts = Hosts::new();
    let mut egress = egress();
    let mac = MacAddress([2, 0, 0, 0, 0, 0x55]);
    ip(&format!("link set host-a address {mac}"));
    let found = device(&mut egress, GROUP).expect("the device's way");
    assert_eq!(found.source_mac, mac);
}

#[test]
fn addresses_come_and_go() {
    let _hosts = Hosts::new();
    let mut egress = egress();
    ip(&format!("address del {HERE}/24 dev host-a"));
    assert_eq!(reason(&mut egress, GROUP), Some(Reason::NoSource));
    assert_eq!(reason(&mut egress, THERE), Some(Reason::NoRoute));
    ip("address add 10.78.0.5/24 dev host-a");
    let found = device(&mut egress, GROUP).expect("the device's way");
    assert_eq!(found.source, [10, 78, 0, 5]);
    assert_eq!(reason(&mut egress, THERE), Some(Reason::NeighbourUnknown));
}

#[test]
fn an_interface_moved_to_another_namespace_is_gone_for_good() {
    let hosts = Hosts::new();
    let mut egress = egress();
    let index = egress.device().index;
    ip(&format!("link set host-a netns {}", hosts.path()));
    assert_eq!(reason(&mut egress, GROUP), Some(Reason::Gone));
    assert_eq!(reason(&mut egress, THERE), Some(Reason::Gone));
    let config = EgressConfig {
        interface_index: index,
        vlan: None,
    };
    let error = Egress::open(&config).err().expect("it is not here");
    assert!(matches!(error, EgressError::NoInterface { .. }), "{error}");
    assert!(error.to_string().contains("ip link"), "{error}");
}

#[test]
fn an_interface_that_is_deleted_is_gone() {
    let hosts = Hosts::new();
    let mut egress = egress();
    hosts.there(|| ip("link del host-b"));
    crate::hosts::eventually("it is gone", || {
        (reason(&mut egress, GROUP) == Some(Reason::Gone)).then_some(())
    });
}
