//! Tests of plans for stacked interfaces: a VLAN is resolved to its device, others are not configured.

mod support;

use isolane_model::ProfileName;
use isolane_tune::{Facts, Interface, NotPlanned, Plan, plan};

use support::{has_priorities, machine, needs, profile, steering, verified};

fn refusal<'a>(plan: &'a Plan, id: &str) -> Option<&'a NotPlanned> {
    plan.not_planned.iter().find(|refusal| refusal.id == id)
}

/// A machine whose `eth0` has something above it, and the description names that.
fn above(name: &str, kind: &str, below: Option<&str>) -> Interface {
    Interface {
        name: String::from(name),
        kind: Some(String::from(kind)),
        is_up: true,
        vlan: Some(5),
        parent: below.map(String::from),
        ..Interface::default()
    }
}

fn planned(mut facts: Facts, interfaces: &[Interface], queue: u32) -> Plan {
    let mut needs = needs(&facts, queue);
    needs.interface = interfaces.first().map(|it| it.name.clone());
    let placement = verified(&needs);
    facts.interfaces.extend_from_slice(interfaces);
    for it in interfaces {
        // Every interface but loopback answers what it can do.
        facts.devices.push(isolane_tune::Device {
            interface: it.name.clone(),
            ..Default::default()
        });
    }
    plan(&facts, &needs, &profile(ProfileName::Latency), &placement)
}

#[test]
fn of_a_vlan_the_device_that_it_is_on_is_set_up() {
    for machine in ["igc", "igb"] {
        let (facts, needs, _) = steering(machine);
        let latency = profile(ProfileName::Latency);
        let direct = plan(&facts, &needs, &latency, &verified(&needs));
        assert!(has_priorities(&direct), "{machine}");
        let queue = needs.lane_queues[7];
        let one = planned(
            facts.clone(),
            &[above("eth0.5", "vlan", Some("eth0"))],
            queue,
        );
        assert_eq!(one.steps, direct.steps, "{machine}");
        let entry = refusal(&one, "interface.vlan.eth0.5").expect("a word");
        assert!(
            entry.remedy.contains("interface = \"eth0\", with vlan = 5"),
            "{entry:?}"
        );
        // A VLAN within a VLAN.
        let two = [
            above("inner", "vlan", Some("eth0.5")),
            above("eth0.5", "vlan", Some("eth0")),
        ];
        assert_eq!(planned(facts, &two, queue).steps, direct.steps, "{machine}");
    }
}

#[test]
fn an_interface_above_others_is_not_set_up_and_the_one_below_is_named() {
    let refused = |interfaces: &[Interface], id: &str| {
        let plan = planned(machine("igc"), interfaces, 3);
        let mut steps = plan.steps.iter();
        assert!(!steps.any(|step| step.id.starts_with("interface.")));
        // What is not set up is not said to be.
        let mut not_planned = plan.not_planned.iter();
        assert!(!not_planned.any(|it| it.id.starts_with("interface.vlan.")));
        let refusal = refusal(&plan, id).unwrap_or_else(|| panic!("{:?}", plan.not_planned));
        refusal.remedy.clone()
    };
    // Its device is in another network namespace, or was not recorded.
    let alone = refused(&[above("eth0.5", "vlan", None)], "interface.kind.eth0.5");
    let names =
        |remedy: &str| remedy.contains("interface = \"eth0\"") && remedy.contains("vlan = 5");
    assert!(names(&alone), "{alone}");
    let bond = refused(&[above("bond0", "bond", None)], "interface.kind.bond0");
    assert!(bond.contains("ip link show master bond0"), "{bond}");
    let of_bond = [
        above("bond0.5", "vlan", Some("bond0")),
        above("bond0", "bond", None),
    ];
    let of_bond = refused(&of_bond, "interface.kind.bond0");
    assert!(of_bond.contains("ip link show master bond0"), "{of_bond}");
    // A recording may say anything.
    let circle = [
        above("a", "vlan", Some("b")),
        above("b", "vlan", Some("a")),
        above("eth0.5", "vlan", Some("gone")),
    ];
    refused(&circle, "interface.kind.b");
}
