use isolane_hostnet::netdev::XdpFeatures;

use super::*;

/// Facts of a host where everything works.
fn working() -> XdpFacts {
    XdpFacts {
        kernel_release: String::from("6.12.5"),
        interface: String::from("eth0"),
        device: Some(Device {
            index: 2,
            is_up: true,
            has_carrier: true,
            has_address: true,
            mtu_bytes: Some(1500),
            driver: Some(String::from("igc")),
            features: Some(XdpFeatures {
                runs_programs: true,
                redirects: true,
                has_zero_copy: true,
            }),
            made_receive_queues: Some(4),
            ..Device::default()
        }),
        ..XdpFacts::default()
    }
}

fn wanted() -> Wanted {
    Wanted {
        queues: vec![0],
        memory_bytes: 8 << 20,
        ..Wanted::default()
    }
}

/// Returns the requirements that are not met, and asserts that all have this id.
fn trouble(facts: &XdpFacts, wanted: &Wanted, id: &str) -> Vec<Requirement> {
    let mut checks = requirements(facts, wanted);
    checks.retain(|check| check.met != Met::Yes);
    for check in &checks {
        assert_eq!(check.id, id, "nothing else is wrong: {check:?}");
        assert!(
            !check.cost.is_empty() && !check.remedy.is_empty(),
            "{check:?}"
        );
    }
    checks
}

fn one(facts: &XdpFacts, wanted: &Wanted, id: &str) -> Requirement {
    let mut checks = trouble(facts, wanted, id);
    assert_eq!(checks.len(), 1, "{checks:?}");
    checks.remove(0)
}

fn unmet(change: impl FnOnce(&mut XdpFacts), id: &str) -> Requirement {
    let mut facts = working();
    change(&mut facts);
    let check = one(&facts, &wanted(), id);
    assert_eq!(check.met, Met::No, "{check:?}");
    check
}

fn on_device(change: impl FnOnce(&mut Device)) -> impl FnOnce(&mut XdpFacts) {
    |facts| change(facts.device.as_mut().expect("it is there"))
}

#[test]
fn where_everything_works_all_is_fine() {
    let checks = requirements(&working(), &wanted());
    assert!(
        checks.iter().all(|check| check.met == Met::Yes),
        "{checks:?}"
    );
}

#[test]
fn missing_rights_are_named_exactly() {
    let check = unmet(
        |facts| facts.missing_capabilities = vec!["CAP_BPF".into(), "CAP_NET_ADMIN".into()],
        "capabilities",
    );
    assert!(check.found.contains("CAP_BPF, CAP_NET_ADMIN"), "{check:?}");
    let check = unmet(|facts| facts.sockets = Sockets::Refused, "sockets");
    assert!(check.found.contains("CAP_NET_RAW"), "{check:?}");
    unmet(|facts| facts.is_in_user_namespace = true, "capabilities");
    unmet(|facts| facts.sockets = Sockets::Absent, "sockets");
}

#[test]
fn memory_that_may_not_be_locked_is_said_with_both_numbers() {
    let check = unmet(|facts| facts.lockable_bytes = Some(64 << 10), "memory");
    assert!(
        check.found.contains("64 KiB") && check.found.contains("8192 KiB"),
        "{check:?}"
    );
}

#[test]
fn kernels_that_are_too_old_or_locked_down_are_reported() {
    unmet(|facts| facts.kernel_release = "5.4.0".into(), "kernel");
    unmet(
        |facts| facts.lockdown = Some("confidentiality".into()),
        "lockdown",
    );
    let mut facts = working();
    facts.lockdown = Some("integrity".into());
    assert!(trouble(&facts, &wanted(), "lockdown").is_empty());
}

#[test]
fn an_interface_that_cannot_carry_lanes_is_reported_with_the_command_that_helps() {
    let check = unmet(on_device(|device| device.is_up = false), "interface");
    assert!(check.remedy.contains("ip link set eth0 up"), "{check:?}");
    unmet(on_device(|device| device.has_carrier = false), "interface");
    unmet(on_device(|device| device.has_address = false), "interface");
    unmet(on_device(|device| device.mtu_bytes = Some(9000)), "mtu");
    unmet(|facts| facts.device = None, "interface");
}

#[test]
fn a_foreign_program_is_named() {
    let named = String::from("program 12 \"filter\" of process 7 (firewall)");
    let check = unmet(
        on_device(|device| device.program = Some(named.clone())),
        "program",
    );
    assert!(check.found.contains(&named), "{check:?}");
}

#[test]
fn a_driver_without_native_programs_differs_from_an_unknown_one() {
    let none = XdpFeatures {
        has_zero_copy: true,
        ..XdpFeatures::default()
    };
    unmet(on_device(|device| device.features = Some(none)), "driver");
    let mut facts = working();
    on_device(|device| device.features = None)(&mut facts);
    let check = one(&facts, &wanted(), "driver");
    assert_eq!(check.met, Met::Degraded);
}

#[test]
fn queues_are_there_and_free_or_it_is_said() {
    unmet(on_device(|device| device.taken_queues = vec![0]), "queues");
    let beyond = Wanted {
        queues: vec![4],
        ..wanted()
    };
    let check = one(&working(), &beyond, "queues");
    assert_eq!(check.met, Met::No);
    let mut single = working();
    on_device(|device| device.made_receive_queues = Some(1))(&mut single);
    let check = one(&single, &wanted(), "queues");
    assert_eq!(check.met, Met::Degraded);
}

#[test]
fn missing_zero_copy_is_a_problem_only_where_it_is_requested() {
    let copies = |facts: &mut XdpFacts| {
        on_device(|device| {
            device.features = Some(XdpFeatures {
                runs_programs: true,
                redirects: true,
                has_zero_copy: false,
            });
        })(facts);
    };
    let mut facts = working();
    copies(&mut facts);
    let check = one(&facts, &wanted(), "zero-copy");
    assert_eq!(check.met, Met::Degraded);
    let insisting = Wanted {
        zero_copy: true,
        ..wanted()
    };
    let check = one(&facts, &insisting, "zero-copy");
    assert_eq!(check.met, Met::No);
}

#[test]
fn tags_that_are_taken_off_matter_only_where_there_are_any() {
    let mut facts = working();
    on_device(|device| device.strips_vlan_tags = Some(true))(&mut facts);
    assert!(trouble(&facts, &wanted(), "vlan-tags").is_empty());
    let tagged = Wanted {
        vlan: true,
        ..wanted()
    };
    let check = one(&facts, &tagged, "vlan-tags");
    assert!(check.remedy.contains("rxvlan off"), "{check:?}");
}
