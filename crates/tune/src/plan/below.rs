//! Stacked interfaces, whose queues, interrupts and steering are those of the device below.
//!
//! A VLAN is resolved to its device, which is one and treats all its frames alike. Bonds, bridges and similar have
//! several devices, or forward by rules of their own.

use crate::facts::{Facts, Interface};

use super::builder::PlanBuilder;

/// Resolves a VLAN, also a nested one, to its parent among `all`; any other interface is returned unchanged.
#[must_use]
pub fn vlan_parent<'a>(all: &'a [Interface], described: &'a Interface) -> &'a Interface {
    let mut interface = described;
    // Bounded, because a recording may contain a cycle.
    for _ in all {
        let below = interface.below.as_deref().filter(|_| is_vlan(interface));
        let known = below.and_then(|below| all.iter().find(|it| it.name == below));
        let Some(known) = known else {
            break;
        };
        interface = known;
    }
    interface
}

fn is_vlan(interface: &Interface) -> bool {
    interface.kind.as_deref() == Some("vlan")
}

/// Reports that the parent is configured in place of a VLAN.
pub(super) fn tell(described: &Interface, interface: &Interface, builder: &mut PlanBuilder) {
    let (vlan, device) = (&described.name, &interface.name);
    if vlan == device || is_vlan(interface) {
        return;
    }
    let number = number_of(described);
    builder.not_planned(
        format!("interface.vlan.{vlan}"),
        format!(
            "{vlan} is a VLAN of {device}: what is set up is {device}, for all that it carries; and a lane on {vlan} gets \
             frames only after the kernel has received them"
        ),
        format!("for lanes describe the device: interface = \"{device}\", with vlan = {number} in [host.NAME.xdp]"),
    );
}

fn number_of(vlan: &Interface) -> String {
    let number = vlan.vlan.map(|number| number.to_string());
    number.unwrap_or_else(|| String::from("N"))
}

/// Reason that queues, interrupts and steering are not the interface's own, and the interface to describe instead.
pub(super) fn hindrance(facts: &Facts, interface: &Interface) -> Option<(String, String)> {
    let name = &interface.name;
    let kind = interface.kind.as_deref()?;
    let why = format!(
        "{name} is a {kind}: queues, interrupts and steering are those of the device below it"
    );
    let remedy = match kind {
        "vlan" => {
            let below = name.split_once('.').map(|(below, _)| below);
            let known = below.filter(|below| facts.interfaces.iter().any(|it| it.name == **below));
            let device = match known {
                Some(below) => format!("interface = \"{below}\""),
                None => format!("interface: the name behind the @ of ip link show {name}"),
            };
            let vlan = number_of(interface);
            format!("describe the device, {device}, with vlan = {vlan} in [host.NAME.xdp]")
        }
        "macvlan" | "ipvlan" | "macsec" => {
            format!("describe the device below: the name behind the @ of ip link show {name}")
        }
        "bond" | "team" | "bridge" => format!(
            "describe one of its ports as interface, and give critical topics an address there (which there are: ip \
             link show master {name})"
        ),
        _ => return None,
    };
    Some((why, remedy))
}
