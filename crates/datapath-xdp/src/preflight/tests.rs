use isolane_hostnet::netdev::XdpFeatures;

use super::*;

/// Facts of a host where everything works.
fn ground() -> XdpFacts {
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

/// Checks of a subject that are not fine.
fn trouble(ground: &XdpFacts, wanted: &Wanted, subject: Subject) -> Vec<Check> {
    let mut checks = examine(ground, wanted);
    checks.retain(|check| check.outcome != Outcome::Fine);
    for check in &checks {
        assert_eq!(check.subject, subject, "nothing else is wrong: {check:?}");
        assert!(
            !check.cost.is_empty() && !check.remedy.is_empty(),
            "{check:?}"
        );
    }
    checks
}

fn one(ground: &XdpFacts, wanted: &Wanted, subject: Subject) -> Check {
    let mut checks = trouble(ground, wanted, subject);
    assert_eq!(checks.len(), 1, "{checks:?}");
    checks.remove(0)
}

fn impossible(change: impl FnOnce(&mut XdpFacts), subject: Subject) -> Check {
    let mut ground = ground();
    change(&mut ground);
    let check = one(&ground, &wanted(), subject);
    assert_eq!(check.outcome, Outcome::Impossible, "{check:?}");
    check
}

fn on_device(change: impl FnOnce(&mut Device)) -> impl FnOnce(&mut XdpFacts) {
    |ground| change(ground.device.as_mut().expect("it is there"))
}

#[test]
fn where_everything_works_all_is_fine() {
    let checks = examine(&ground(), &wanted());
    assert!(
        checks.iter().all(|check| check.outcome == Outcome::Fine),
        "{checks:?}"
    );
}

#[test]
fn missing_rights_are_named_exactly() {
    let check = impossible(
        |ground| ground.missing_capabilities = vec!["CAP_BPF".into(), "CAP_NET_ADMIN".into()],
        Subject::Capabilities,
    );
    assert!(check.what.contains("CAP_BPF, CAP_NET_ADMIN"), "{check:?}");
    let check = impossible(|ground| ground.sockets = Sockets::Refused, Subject::Sockets);
    assert!(check.what.contains("CAP_NET_RAW"), "{check:?}");
    impossible(
        |ground| ground.is_in_user_namespace = true,
        Subject::Capabilities,
    );
    impossible(|ground| ground.sockets = Sockets::Absent, Subject::Sockets);
}

#[test]
fn memory_that_may_not_be_locked_is_said_with_both_numbers() {
    let check = impossible(
        |ground| ground.lockable_bytes = Some(64 << 10),
        Subject::Memory,
    );
    assert!(
        check.what.contains("64 KiB") && check.what.contains("8192 KiB"),
        "{check:?}"
    );
}

#[test]
fn kernels_that_are_too_old_or_locked_down_are_reported() {
    impossible(
        |ground| ground.kernel_release = "5.4.0".into(),
        Subject::Kernel,
    );
    impossible(
        |ground| ground.lockdown = Some("confidentiality".into()),
        Subject::Lockdown,
    );
    let mut ground = ground();
    ground.lockdown = Some("integrity".into());
    assert!(trouble(&ground, &wanted(), Subject::Lockdown).is_empty());
}

#[test]
fn an_interface_that_cannot_carry_lanes_is_reported_with_the_command_that_helps() {
    let check = impossible(on_device(|device| device.is_up = false), Subject::Interface);
    assert!(check.remedy.contains("ip link set eth0 up"), "{check:?}");
    impossible(
        on_device(|device| device.has_carrier = false),
        Subject::Interface,
    );
    impossible(
        on_device(|device| device.has_address = false),
        Subject::Interface,
    );
    impossible(
        on_device(|device| device.mtu_bytes = Some(9000)),
        Subject::Mtu,
    );
    impossible(|ground| ground.device = None, Subject::Interface);
}

#[test]
fn a_foreign_program_is_named() {
    let named = String::from("program 12 \"filter\" of process 7 (firewall)");
    let check = impossible(
        on_device(|device| device.program = Some(named.clone())),
        Subject::Program,
    );
    assert!(check.what.contains(&named), "{check:?}");
}

#[test]
fn a_driver_without_native_programs_differs_from_an_unknown_one() {
    let none = XdpFeatures {
        has_zero_copy: true,
        ..XdpFeatures::default()
    };
    impossible(
        on_device(|device| device.features = Some(none)),
        Subject::Driver,
    );
    let mut ground = ground();
    on_device(|device| device.features = None)(&mut ground);
    let check = one(&ground, &wanted(), Subject::Driver);
    assert_eq!(check.outcome, Outcome::Degraded);
}

#[test]
fn queues_are_there_and_free_or_it_is_said() {
    impossible(
        on_device(|device| device.taken_queues = vec![0]),
        Subject::Queues,
    );
    let beyond = Wanted {
        queues: vec![4],
        ..wanted()
    };
    let check = one(&ground(), &beyond, Subject::Queues);
    assert_eq!(check.outcome, Outcome::Impossible);
    let mut single = ground();
    on_device(|device| device.made_receive_queues = Some(1))(&mut single);
    let check = one(&single, &wanted(), Subject::Queues);
    assert_eq!(check.outcome, Outcome::Degraded);
}

#[test]
fn missing_zero_copy_is_a_problem_only_where_it_is_requested() {
    let copies = |ground: &mut XdpFacts| {
        on_device(|device| {
            device.features = Some(XdpFeatures {
                runs_programs: true,
                redirects: true,
                has_zero_copy: false,
            });
        })(ground);
    };
    let mut ground = ground();
    copies(&mut ground);
    let check = one(&ground, &wanted(), Subject::ZeroCopy);
    assert_eq!(check.outcome, Outcome::Degraded);
    let insisting = Wanted {
        zero_copy: true,
        ..wanted()
    };
    let check = one(&ground, &insisting, Subject::ZeroCopy);
    assert_eq!(check.outcome, Outcome::Impossible);
}

#[test]
fn tags_that_are_taken_off_matter_only_where_there_are_any() {
    let mut ground = ground();
    on_device(|device| device.strips_vlan_tags = Some(true))(&mut ground);
    assert!(trouble(&ground, &wanted(), Subject::VlanTags).is_empty());
    let tagged = Wanted {
        vlan: true,
        ..wanted()
    };
    let check = one(&ground, &tagged, Subject::VlanTags);
    assert!(check.remedy.contains("rxvlan off"), "{check:?}");
}
