//! Reading of interfaces and addresses from netlink, in this thread's network namespace. Driver and speed come from
//! sysfs, which shows only interfaces of the namespace it was mounted in.

use std::io;

use isolane_datapath::Kinds;
use isolane_hostnet::link::{index_of, ipv4_address};
use isolane_hostnet::napi;
use isolane_hostnet::netlink::Rtnetlink;
use netlink_packet_route::link::{
    InfoData, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, LinkXdp, XdpAttached,
};
use serde_json::Value;

use super::{text, value};
use crate::facts::{Interface, LanePrerequisites};
use crate::limits::{MAX_INTERFACES, MAX_LANE_INTERFACES};
use crate::plan::vlan_parent;

/// Interfaces of the calling thread's network namespace, in the kernel's order.
///
/// # Errors
/// The system error.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut netlink = Rtnetlink::open()?;
    let mut found: Vec<(u32, Interface)> = Vec::new();
    let mut below: Vec<(u32, u32)> = Vec::new();
    let links = netlink.links()?;
    for link in links.iter().take(MAX_INTERFACES) {
        found.push((link.header.index, interface(link)));
        below.extend(on(link).map(|under| (link.header.index, under)));
    }
    for (index, under) in below {
        let name_of = |(known, it): &(u32, Interface)| (*known == under).then(|| it.name.clone());
        let name = found.iter().find_map(name_of);
        if let Some((_, interface)) = found.iter_mut().find(|(known, _)| *known == index)
            && interface.kind.as_deref() == Some("vlan")
        {
            interface.parent = name;
        }
    }
    for message in netlink.ipv4_addresses()? {
        let index = message.header.index;
        let address = ipv4_address(&message);
        let of = found.iter_mut().find(|(known, _)| *known == index);
        if let (Some(address), Some((_, interface))) = (address, of) {
            interface
                .addresses
                .push((address, message.header.prefix_len));
        }
    }
    Ok(found.into_iter().map(|(_, interface)| interface).collect())
}

fn interface(link: &LinkMessage) -> Interface {
    let flags = link.header.flags;
    let mut interface = Interface {
        is_up: flags.contains(LinkFlags::Up),
        has_carrier: flags.contains(LinkFlags::LowerUp),
        is_multicast: flags.contains(LinkFlags::Multicast),
        is_loopback: flags.contains(LinkFlags::Loopback),
        ..Interface::default()
    };
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => interface.name.clone_from(name),
            LinkAttribute::Mtu(bytes) => interface.mtu = Some(*bytes),
            LinkAttribute::NumTxQueues(queues) => interface.tx_queues = Some(*queues),
            LinkAttribute::NumRxQueues(queues) => interface.rx_queues = Some(*queues),
            LinkAttribute::Qdisc(name) => interface.qdisc = Some(name.clone()),
            LinkAttribute::Stats64(counters) => interface.rx_dropped = Some(counters.rx_dropped),
            LinkAttribute::Xdp(xdp) => interface.has_xdp_program = has_program(xdp),
            LinkAttribute::LinkInfo(infos) => take_infos(&mut interface, infos),
            _ => {}
        }
    }
    let folder = format!("/sys/class/net/{}", interface.name);
    interface.driver = std::fs::read_link(format!("{folder}/device/driver"))
        .ok()
        .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    interface.speed_mbps = value(format!("{folder}/speed"));
    interface.is_wireless = text(format!("{folder}/uevent"))
        .is_some_and(|uevent| uevent.lines().any(|line| line == "DEVTYPE=wlan"));
    interface
}

/// Index of the parent interface, if it is in the same network namespace.
fn on(link: &LinkMessage) -> Option<u32> {
    let mut below = None;
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::Link(index) => below = Some(*index),
            LinkAttribute::LinkNetNsId(_) => return None,
            _ => {}
        }
    }
    below
}

fn take_infos(interface: &mut Interface, infos: &[LinkInfo]) {
    for info in infos {
        match info {
            LinkInfo::Kind(kind) => interface.kind = Some(kind.to_string()),
            LinkInfo::Data(InfoData::Vlan(vlan)) => {
                interface.vlan = vlan.iter().find_map(|attribute| match attribute {
                    InfoVlan::Id(id) => Some(*id),
                    _ => None,
                });
            }
            _ => {}
        }
    }
}

fn has_program(xdp: &[LinkXdp]) -> bool {
    xdp.iter().any(|attribute| {
        matches!(attribute, LinkXdp::Attached(attached) if *attached != XdpAttached::None)
    })
}

/// Lane prerequisites of each interface that could have lanes. For a VLAN, those of its parent are included: the parent
/// does the receive processing of the VLAN, and may have no address itself.
pub(super) fn lanes(interfaces: &[Interface], kinds: Kinds) -> Vec<LanePrerequisites> {
    let of_kinds = |interface: &str| {
        let facts = kinds.iter().filter_map(|kind| {
            let facts = kind.probe(interface)?;
            // Facts that are not JSON are recorded as a JSON string. The kind's `requirements` refuses such a string,
            // and gives the reason.
            let facts = serde_json::from_str(&facts).unwrap_or(Value::String(facts));
            Some((kind.name().to_owned(), facts))
        });
        facts.collect()
    };
    let of_interface = |interface: &Interface| LanePrerequisites {
        interface: interface.name.clone(),
        facts: of_kinds(&interface.name),
        napi: index_of(&interface.name)
            .ok()
            .and_then(|index| napi::state(index).ok())
            .unwrap_or_default(),
    };
    let chosen = chosen(interfaces).into_iter().take(MAX_LANE_INTERFACES);
    chosen.map(of_interface).collect()
}

/// Interfaces that could have lanes (up, IPv4 address, not loopback), and their parents.
fn chosen(interfaces: &[Interface]) -> Vec<&Interface> {
    let could = |interface: &&Interface| {
        interface.is_up && !interface.is_loopback && !interface.addresses.is_empty()
    };
    let all = interfaces.iter();
    let devices: Vec<&str> = all
        .clone()
        .filter(could)
        .map(|it| vlan_parent(interfaces, it).name.as_str())
        .collect();
    let is_chosen = |it: &&Interface| could(it) || devices.contains(&it.name.as_str());
    all.filter(is_chosen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interface_is_on_is_known_in_one_network_namespace() {
        let mut link = LinkMessage::default();
        assert_eq!(on(&link), None);
        link.attributes.push(LinkAttribute::Link(2));
        assert_eq!(on(&link), Some(2));
        // The index belongs to another namespace.
        link.attributes.push(LinkAttribute::LinkNetNsId(0));
        assert_eq!(on(&link), None);
    }
}

#[cfg(test)]
mod lanes_tests {
    use super::*;

    #[test]
    fn a_device_without_an_address_is_looked_at_for_the_vlan_that_has_it() {
        let interface = |name: &str, below: Option<&str>| Interface {
            name: String::from(name),
            kind: below.map(|_| String::from("vlan")),
            parent: below.map(String::from),
            is_up: true,
            ..Interface::default()
        };
        let mut all = [
            interface("eth0", None),
            interface("eth1", None),
            interface("eth0.5", Some("eth0")),
        ];
        let names = |all: &[Interface]| -> Vec<String> {
            chosen(all).iter().map(|it| it.name.clone()).collect()
        };
        assert_eq!(names(&all), [""; 0]);
        all[2].addresses.push(([10, 0, 0, 1].into(), 24));
        assert_eq!(names(&all), ["eth0", "eth0.5"]);
    }
}
