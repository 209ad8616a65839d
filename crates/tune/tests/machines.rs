//! Tests of machine facts: one recorded machine, and two made-up ones, with everything right and everything wrong.

mod support;

use std::collections::HashSet;

use isolane_model::System;
use isolane_tune::{Facts, Finding, Needs, Severity, probe};

use support::{KINDS, examine, machine};

const MACHINES: [&str; 3] = ["untuned-vm", "tuned-board", "broken-laptop"];

/// Two hosts; `zone-left` receives a topic every 500 us, and hardly anything else.
const DESCRIPTION: &str = r#"
domain = 0
[host.zone-left]
interface = "eth0"
core = 2
[host.zone-right]
interface = "eth0"
core = 1
[topic.BrakePressure]
type = "vehicle::BrakePressure"
level = 7
period = "500us"
max_bytes = 64
from = ["zone-right"]
to = ["zone-left"]
[topic.Video]
type = "vehicle::Video"
level = 1
period = "100us"
max_bytes = 1400
from = ["zone-left", "zone-right"]
to = ["zone-left"]
"#;

fn system() -> System {
    System::from_toml(DESCRIPTION, "isolane.toml", KINDS).expect("a description")
}

fn found<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
    let finding = findings.iter().find(|finding| finding.id == id);
    finding.unwrap_or_else(|| panic!("no {id} in {findings:#?}"))
}

fn ids(findings: &[Finding], severity: Severity) -> Vec<&str> {
    findings
        .iter()
        .filter(|finding| finding.severity == severity)
        .map(|finding| finding.id.as_str())
        .collect()
}

#[test]
fn a_machine_that_is_set_up_has_nothing_to_be_warned_of() {
    let facts = machine("tuned-board");
    let needs = Needs::of_system(&system(), None, &facts.hostname).expect("a host");
    assert_eq!(needs.host.as_deref(), Some("zone-left"), "by its name");
    let findings = examine(&facts, &needs);
    assert_eq!(ids(&findings, Severity::Error), [""; 0]);
    assert_eq!(ids(&findings, Severity::Warn), [""; 0]);
    assert_eq!(found(&findings, "kernel.realtime").severity, Severity::Ok);
    assert!(found(&findings, "cores.described").what.contains("core 2"));
}

#[test]
fn an_untuned_virtual_machine_works_and_promises_nothing() {
    let findings = examine(&machine("untuned-vm"), &Needs::of_domain(0));
    assert_eq!(ids(&findings, Severity::Error), [""; 0]);
    assert_eq!(
        ids(&findings, Severity::Warn),
        [
            "kernel.realtime",
            "kernel.virtual-machine",
            "cores.isolated",
            "interface.queues.eth0"
        ]
    );
}

#[test]
fn on_a_broken_machine_everything_is_found() {
    let findings = examine(&machine("broken-laptop"), &Needs::of_domain(0));
    assert_eq!(ids(&findings, Severity::Error), ["ports.taken"]);
    assert_eq!(
        ids(&findings, Severity::Warn),
        [
            "kernel.realtime",
            "kernel.clocksource",
            "memory.swap",
            "programs.irqbalance",
            "cores.isolated",
            "cores.governor",
            "cores.idle-states",
            "cores.smt",
            "rights.realtime",
            "rights.lock-memory",
            "sockets.backlog",
            "interface.bridges",
            "interface.wireless.wlan0",
            "interface.queues.wlan0",
        ]
    );
    assert!(
        found(&findings, "cores.idle-states")
            .what
            .contains("C10 (890 us)")
    );
    assert!(
        found(&findings, "ports.firewall")
            .what
            .contains("filter, nat")
    );
    assert!(
        found(&findings, "interface.bridges")
            .what
            .contains("docker0")
    );
}

#[test]
fn a_described_machine_that_does_not_fit_is_reported() {
    let mut facts = machine("untuned-vm");
    let needs = Needs::of_system(&system(), Some("zone-left"), &facts.hostname).expect("a host");
    facts.interfaces[0].name = String::from("eth9");
    facts
        .interfaces
        .retain(|interface| interface.name != "eth0");
    let findings = examine(&facts, &needs);
    let interface = found(&findings, "interface.described.eth0");
    assert_eq!(interface.severity, Severity::Error);
    assert!(interface.remedy.contains("eth9"), "{interface:?}");
    let core = found(&findings, "cores.described");
    assert_eq!(core.severity, Severity::Error);
    assert!(core.remedy.contains("0-1"), "{core:?}");
}

#[test]
fn a_described_interface_must_be_up_with_an_address() {
    let mut facts = machine("tuned-board");
    let needs = Needs::of_system(&system(), None, &facts.hostname).expect("a host");
    let eth0 = facts.interfaces.last_mut().expect("eth0");
    eth0.is_up = false;
    eth0.addresses.clear();
    let findings = examine(&facts, &needs);
    let errors = ids(&findings, Severity::Error);
    assert_eq!(errors, ["interface.up.eth0", "interface.address.eth0"]);
    assert!(
        found(&findings, errors[0])
            .remedy
            .contains("ip link set eth0 up")
    );
}

#[test]
fn receive_buffers_are_compared_with_what_comes_during_a_stall() {
    let mut facts = machine("tuned-board");
    let needs = Needs::of_system(&system(), None, &facts.hostname).expect("a host");
    // Two senders of a video frame each 100 us.
    assert_eq!(needs.waiting_datagrams, Some((1, 400)));
    facts.network.rmem_default_bytes = Some(212_992);
    let findings = examine(&facts, &needs);
    let buffer = found(&findings, "sockets.receive-buffer");
    assert_eq!(buffer.severity, Severity::Warn);
    assert!(buffer.what.contains("level 1, up to 400"), "{buffer:?}");
    // The requested size is enough.
    let (_, asked) = buffer
        .remedy
        .split_once("rmem_default=")
        .expect("a setting");
    let asked = asked.split_whitespace().next().expect("a number");
    facts.network.rmem_default_bytes = asked.parse().ok();
    let findings = examine(&facts, &needs);
    assert_eq!(
        found(&findings, "sockets.receive-buffer").severity,
        Severity::Ok
    );
}

#[test]
fn a_domain_among_the_kernels_ports_is_pointed_out() {
    let facts = machine("untuned-vm");
    let severity = |domain| {
        let findings = examine(&facts, &Needs::of_domain(domain));
        found(&findings, "ports.ephemeral").severity
    };
    assert_eq!(severity(0), Severity::Ok);
    assert_eq!(severity(100), Severity::Ok);
    assert_eq!(severity(101), Severity::Warn);
    assert_eq!(severity(232), Severity::Ok, "above them");
    let mut reserved = facts.clone();
    reserved.network.reserved_ports = vec![(32_650, 32_899)];
    let findings = examine(&reserved, &Needs::of_domain(101));
    assert_eq!(found(&findings, "ports.ephemeral").severity, Severity::Ok);
}

#[test]
fn the_host_of_a_description_is_named_or_guessed_or_requested() {
    let system = system();
    let of = |wanted, hostname| Needs::of_system(&system, wanted, hostname);
    let by_name = of(Some("zone-right"), "zone-left").expect("a host");
    assert_eq!(by_name.host.as_deref(), Some("zone-right"));
    assert_eq!(
        of(Some("zone"), "x"),
        Err(vec!["zone-left".into(), "zone-right".into()])
    );
    let unknown = of(None, "laptop").expect("no host is no failure");
    assert_eq!(unknown.host, None);
    let findings = examine(&machine("untuned-vm"), &unknown);
    let host = found(&findings, "description.host");
    assert!(
        host.remedy.contains("--host zone-left | zone-right"),
        "{host:?}"
    );
}

#[test]
fn every_finding_says_what_it_costs_and_what_to_do() {
    for name in MACHINES {
        for domain in [0, 101] {
            let findings = examine(&machine(name), &Needs::of_domain(domain));
            let mut seen = HashSet::new();
            for finding in &findings {
                assert!(seen.insert(&finding.id), "{name}: {} twice", finding.id);
                assert!(!finding.what.is_empty(), "{finding:?}");
                let is_ok = finding.severity == Severity::Ok;
                assert_eq!(finding.cost.is_empty(), is_ok, "{finding:?}");
                assert_eq!(finding.remedy.is_empty(), is_ok, "{finding:?}");
            }
        }
    }
}

#[test]
fn a_machine_of_which_nothing_is_known_is_examined_without_a_guess() {
    let findings = examine(&Facts::default(), &Needs::of_domain(0));
    assert_eq!(ids(&findings, Severity::Error), ["interface.any"]);
    assert_eq!(ids(&findings, Severity::Warn), ["rights.realtime"; 0]);
}

/// Where loopback is all there is, programs of the machine reach each other.
#[test]
fn loopback_alone_is_reported_and_is_no_error() {
    let mut facts = machine("broken-laptop");
    facts.interfaces.retain(|interface| interface.is_loopback);
    let examined = |facts: &Facts| {
        let mut findings = examine(facts, &Needs::of_domain(0)).into_iter();
        findings.find(|finding| finding.id == "interface.any")
    };
    let alone = examined(&facts).expect("a report");
    assert_eq!(alone.severity, Severity::Warn, "{alone:?}");
    assert!(
        alone.cost.contains("between programs of this machine"),
        "{alone:?}"
    );
    facts.interfaces[0].is_up = false;
    let none = examined(&facts).expect("a report");
    assert_eq!(none.severity, Severity::Error, "{none:?}");
}

#[test]
fn this_machine_can_be_probed_recorded_and_examined() {
    let facts = probe(KINDS);
    assert!(!facts.kernel.release.is_empty());
    assert!(!facts.cores.online.is_empty());
    assert!(
        facts
            .interfaces
            .iter()
            .any(|interface| interface.is_loopback)
    );
    let text = serde_json::to_string(&facts).expect("JSON");
    let again: Facts = serde_json::from_str(&text).expect("facts");
    assert_eq!(again, facts);
    assert!(!examine(&facts, &Needs::of_domain(0)).is_empty());
}

#[test]
fn no_remedy_takes_away_what_another_gave() {
    let findings = examine(&machine("broken-laptop"), &Needs::of_domain(0));
    let commands: HashSet<&str> = findings
        .iter()
        .filter_map(|finding| finding.remedy.split_once("setcap "))
        .map(|(_, rights)| rights)
        .collect();
    // `setcap` replaces the rights a file had.
    assert_eq!(commands.len(), 1, "{commands:?}");
}
