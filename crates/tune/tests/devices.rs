//! Tests of the findings of `doctor` on devices, clocks and cores of recorded machines.

mod support;

use std::collections::HashSet;

use isolane_tune::{Finding, Needs, Queues, Severity};

use support::{MACHINES, examine, machine, needs};

fn examined(name: &str) -> Vec<Finding> {
    let (_, queue) = MACHINES
        .into_iter()
        .find(|(known, _)| *known == name)
        .expect("known");
    let facts = machine(name);
    examine(&facts, &needs(&facts, queue))
}

fn found<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
    let finding = findings.iter().find(|finding| finding.id == id);
    finding.unwrap_or_else(|| panic!("no {id} in {findings:#?}"))
}

fn is_found(findings: &[Finding], id: &str) -> bool {
    findings.iter().any(|finding| finding.id == id)
}

#[test]
fn an_igc_has_rules_without_ports_and_a_key_that_cannot_be_read() {
    let findings = examined("igc");
    let filters = found(&findings, "interface.filters.eth0");
    assert_eq!(filters.severity, Severity::Info);
    assert!(
        filters.what.contains("only the Ethernet header"),
        "{filters:?}"
    );
    assert_eq!(
        found(&findings, "interface.hash-key.eth0").severity,
        Severity::Info
    );
    assert_eq!(
        found(&findings, "interface.hash-ports.eth0").severity,
        Severity::Info
    );
    let driver = found(&findings, "interface.driver.eth0");
    assert!(
        driver.what.contains("igc runs XDP programs natively") && driver.what.contains("zero copy")
    );
    assert_eq!(
        found(&findings, "interface.time-stamps.eth0").severity,
        Severity::Ok
    );
}

#[test]
fn a_device_is_given_the_queues_that_it_has_by_their_kind() {
    let remedy = |has: Queues, most: Queues| {
        let mut facts = machine("veth");
        let device = &mut facts.devices[0];
        (device.queues, device.queues_max) = (Some(has), Some(most));
        let findings = examine(&facts, &needs(&facts, 1));
        found(&findings, "interface.queues-used.eth0")
            .remedy
            .clone()
    };
    let apart = |count| Queues {
        rx: count,
        tx: count,
        combined: 0,
    };
    let combined = |count| Queues {
        combined: count,
        ..Queues::default()
    };
    let (first, second) = (remedy(apart(1), apart(4)), remedy(combined(1), combined(4)));
    assert!(first.starts_with("ethtool -L eth0 rx 2 tx 2;"), "{first}");
    assert!(
        second.starts_with("ethtool -L eth0 combined 2;"),
        "{second}"
    );
}

#[test]
fn moderation_that_is_a_mode_is_distinguished_from_a_time() {
    for (name, expected) in [
        ("igc", "10 to 250 us"),
        ("ixgbe", "10 to 250 us"),
        ("ice", "cannot be predicted"),
    ] {
        let findings = examined(name);
        let moderation = found(&findings, "interface.moderation.eth0");
        assert_eq!(moderation.severity, Severity::Warn, "{name}");
        assert!(moderation.cost.contains(expected), "{name}: {moderation:?}");
    }
    let findings = examined("stmmac");
    let moderation = found(&findings, "interface.moderation.eth0");
    assert!(
        moderation.what.contains("1000 us"),
        "the sending side counts, too: {moderation:?}"
    );
    let findings = examined("r8169");
    assert_eq!(
        found(&findings, "interface.moderation.eth0").severity,
        Severity::Ok
    );
}

#[test]
fn devices_with_rules_need_no_key() {
    for name in ["ixgbe", "ice", "mlx5"] {
        let findings = examined(name);
        assert_eq!(
            found(&findings, "interface.filters.eth0").severity,
            Severity::Ok,
            "{name}"
        );
        assert!(!is_found(&findings, "interface.hash-key.eth0"), "{name}");
    }
}

#[test]
fn a_device_that_cannot_steer_is_a_warning() {
    for name in ["veth", "stmmac"] {
        let findings = examined(name);
        let filters = found(&findings, "interface.filters.eth0");
        assert_eq!(filters.severity, Severity::Warn, "{name}");
        assert!(filters.cost.contains("583 to 955 us"), "{filters:?}");
    }
    // With one queue there is nothing to steer: that is said of the queues.
    for name in ["e1000e", "r8169"] {
        let findings = examined(name);
        assert!(!is_found(&findings, "interface.filters.eth0"), "{name}");
        assert_eq!(
            found(&findings, "interface.queues.eth0").severity,
            Severity::Warn
        );
    }
}

#[test]
fn a_second_queue_that_is_not_used_is_pointed_out() {
    let findings = examined("virtio_net");
    let queues = found(&findings, "interface.queues-used.eth0");
    assert_eq!(queues.severity, Severity::Warn);
    assert!(
        queues
            .remedy
            .contains("the step interface.queues of isolane tune plan"),
        "{queues:?}"
    );
}

#[test]
fn offloads_that_hide_frames_from_lanes_are_warnings() {
    for (name, feature) in [("ixgbe", "rx-lro"), ("virtio_net", "rx-gro-hw")] {
        let findings = examined(name);
        let offloads = found(&findings, "interface.offloads-xdp.eth0");
        assert_eq!(offloads.severity, Severity::Warn, "{name}");
        assert!(offloads.what.contains(feature), "{offloads:?}");
    }
    // Stripped tags matter if frames are distinguished by them.
    let facts = machine("ice");
    let mut needs = needs(&facts, 7);
    let hides =
        |needs: &Needs| found(&examine(&facts, needs), "interface.offloads-xdp.eth0").severity;
    assert_eq!(hides(&needs), Severity::Ok);
    needs.vlan = Some(5);
    assert_eq!(hides(&needs), Severity::Warn);
}

#[test]
fn a_driver_without_xdp_is_named() {
    let findings = examined("r8169");
    let driver = found(&findings, "interface.driver.eth0");
    assert_eq!(driver.severity, Severity::Info);
    assert!(
        driver.what.contains("r8169 cannot run XDP programs"),
        "{driver:?}"
    );
}

#[test]
fn interrupts_on_the_executors_core_are_named() {
    let findings = examined("ice");
    let interrupts = found(&findings, "interface.interrupts.eth0");
    assert!(
        interrupts.what.contains("interrupts 87 of eth0"),
        "{interrupts:?}"
    );
    assert!(
        interrupts
            .remedy
            .contains("the step interface.interrupt of isolane tune plan"),
        "{interrupts:?}"
    );
}

#[test]
fn interrupts_of_other_devices_are_a_word_unless_the_kernel_keeps_them_off() {
    let severity = |line: &str| {
        let mut facts = machine("r8169");
        facts.kernel.command_line = Some(String::from(line));
        let needs = needs(&facts, 0);
        found(&examine(&facts, &needs), "cores.other-interrupts").severity
    };
    assert_eq!(severity("quiet"), Severity::Info);
    assert_eq!(
        severity("irqaffinity=0-3"),
        Severity::Info,
        "the executor's core is among them"
    );
    assert_eq!(severity("irqaffinity=0-2,4-7"), Severity::Ok);
}

#[test]
fn receive_work_beyond_its_budget_is_pointed_out_where_interrupts_have_threads() {
    let severity = |realtime: bool, threaded: bool| {
        let mut facts = machine("igc");
        facts.kernel.realtime = Some(realtime);
        facts.devices[0].threaded = Some(threaded);
        let findings = examine(&facts, &needs(&facts, 3));
        let mut findings = findings.iter();
        findings
            .find(|it| it.id == "interface.receive-budget.eth0")
            .map(|it| it.severity)
    };
    assert_eq!(severity(true, false), Some(Severity::Info));
    assert_eq!(severity(true, true), Some(Severity::Ok));
    assert_eq!(severity(false, false), None);
}

#[test]
fn programs_that_set_up_devices_are_named() {
    let what = |programs: &[&str]| {
        let mut facts = machine("igc");
        facts.programs = programs.iter().map(|name| String::from(*name)).collect();
        let findings = examine(&facts, &Needs::of_domain(0));
        let mut findings = findings.iter();
        findings
            .find(|it| it.id == "programs.managers")
            .map(|it| it.what.clone())
    };
    assert_eq!(what(&["chronyd"]), None);
    let named = what(&["NetworkManager", "systemd-network", "tuned"]).expect("a word");
    assert!(
        named.starts_with("NetworkManager, systemd-networkd, TuneD "),
        "{named}"
    );
}

#[test]
fn a_clock_is_judged_by_the_programs_that_set_it_and_by_the_kernels_word() {
    let examined = |programs: &[&str], is_synchronised| {
        let mut facts = machine("igc");
        facts.programs = programs.iter().map(|name| String::from(*name)).collect();
        facts.kernel.clock_is_synchronised = is_synchronised;
        examine(&facts, &Needs::of_domain(0))
    };
    let keepers = |programs: &[&str]| {
        let findings = examined(programs, Some(true));
        found(&findings, "kernel.time-keeping").severity
    };
    assert_eq!(keepers(&["chronyd"]), Severity::Ok);
    assert_eq!(keepers(&["phc2sys", "ptp4l"]), Severity::Ok);
    assert_eq!(keepers(&["tuned"]), Severity::Info);
    let error = "kernel.clock-error";
    for is_synchronised in [Some(true), None] {
        assert!(!is_found(&examined(&["chronyd"], is_synchronised), error));
    }
    let findings = examined(&["chronyd"], Some(false));
    assert!(found(&findings, error).remedy.contains("rtcsync"));
    let findings = examined(&[], Some(false));
    assert!(found(&findings, error).remedy.starts_with("run chrony"));
}

#[test]
fn every_finding_of_every_machine_says_what_it_costs_and_what_to_do() {
    for (name, queue) in MACHINES {
        let facts = machine(name);
        for needs in [Needs::of_domain(0), needs(&facts, queue)] {
            let findings = examine(&facts, &needs);
            let mut seen = HashSet::new();
            for finding in &findings {
                assert!(seen.insert(&finding.id), "{name}: {} twice", finding.id);
                let is_ok = finding.severity == Severity::Ok;
                assert_eq!(finding.cost.is_empty(), is_ok, "{name}: {finding:?}");
                assert_eq!(finding.remedy.is_empty(), is_ok, "{name}: {finding:?}");
            }
        }
    }
}

#[test]
fn steps_that_remedies_name_are_steps_of_plans() {
    use isolane_model::ProfileName;
    use isolane_tune::plan;
    let mut ids: HashSet<String> = HashSet::new();
    for (name, queue) in MACHINES {
        let facts = machine(name);
        let needs = needs(&facts, queue);
        for profile in [ProfileName::Latency, ProfileName::Balanced] {
            let plan = plan(
                &facts,
                &needs,
                &support::profile(profile),
                &support::verified(&needs),
            );
            ids.extend(plan.steps.into_iter().map(|step| step.id));
            // The receive work of an ordinary kernel, and ports that are given away, have no dedicated machine.
        }
    }
    let mut named: HashSet<String> = HashSet::new();
    for (name, queue) in MACHINES {
        let facts = machine(name);
        for finding in examine(&facts, &needs(&facts, queue)) {
            let step = finding.remedy.strip_suffix(" of isolane tune plan");
            if let Some((_, step)) = step.and_then(|text| text.rsplit_once("; or the step ")) {
                named.insert(String::from(step));
            }
        }
    }
    assert!(named.len() > 10, "{named:?}");
    for step in named {
        assert!(
            ids.iter().any(|id| id.starts_with(&step)),
            "no plan has {step}"
        );
    }
}
