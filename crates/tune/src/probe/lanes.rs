//! Reading of lane prerequisites.

use isolane_datapath_xdp::preflight::facts;
use isolane_hostnet::napi;

use crate::facts::{Interface, LanePrerequisites};
use crate::limits::MAX_LANE_INTERFACES;
use crate::plan::vlan_parent;

/// Lane prerequisites of each interface that could have lanes, and of parents of VLANs among them: a VLAN's receive
/// processing is its parent's, which may have no address.
pub(super) fn lanes(interfaces: &[Interface]) -> Vec<LanePrerequisites> {
    let ground = |interface: &Interface| {
        let ground = facts(&interface.name);
        let index = ground.device.as_ref().map(|device| device.index);
        LanePrerequisites {
            receive_work: index
                .and_then(|index| napi::state(index).ok())
                .unwrap_or_default(),
            ground,
        }
    };
    let chosen = chosen(interfaces).into_iter().take(MAX_LANE_INTERFACES);
    chosen.map(ground).collect()
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
    fn a_device_without_an_address_is_looked_at_for_the_vlan_that_has_it() {
        let interface = |name: &str, below: Option<&str>| Interface {
            name: String::from(name),
            kind: below.map(|_| String::from("vlan")),
            below: below.map(String::from),
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
