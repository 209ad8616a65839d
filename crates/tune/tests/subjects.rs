//! Tests of single subjects of plans, on modified recordings: moderation, rules, interrupts, kernel arguments.

mod support;

use isolane_model::{ProfileName, Tuning};
use isolane_tune::{FlowQueues, FlowRule, NotPlanned, Plan, Setting, Value, When, plan};

use support::{
    MACHINES, has_priorities, machine, needs, profile, simulate, steering, text_of, verified,
};

#[test]
fn a_time_that_a_driver_takes_for_a_mode_or_refuses_is_not_planned() {
    let planned = |name: &str, microseconds: u32| {
        let facts = machine(name);
        let needs = needs(&facts, 1);
        let text = format!("coalescing_us = {microseconds}");
        let tuning = Tuning::from_toml(&text, "own.toml").expect("a profile");
        let plan = plan(&facts, &needs, &tuning, &FlowQueues::default());
        let mut steps = plan.steps.into_iter();
        let step = steps.find(|step| step.id.starts_with("interface.moderation"));
        let step = step.expect("a step");
        match step.to {
            Value::Coalescing(to) => (to.rx_usecs, to.tx_usecs, step.why, step.undo),
            other => panic!("{other:?}"),
        }
    };
    for (name, asked, expected) in [
        ("igc", 5, 0),
        ("igc", 3, 0),
        ("igb", 9, 0),
        ("igb", 10, 10),
        ("e1000e", 4, 0),
        ("ixgbe", 1, 0),
        ("ixgbe", 5, 5),
        ("ice", 5, 5),
    ] {
        let (rx, _, why, _) = planned(name, asked);
        assert_eq!(rx, Some(expected), "{name}");
        assert_eq!(
            why.contains("accepts no delay"),
            asked != expected,
            "{name}: {why}"
        );
    }
    // With pairs of queues the time of received frames counts for both; another one of sent frames is refused.
    let (_, tx, _, undo) = planned("igc", 0);
    assert_eq!((tx, undo.as_str()), (None, "ethtool -C eth0 rx-usecs 3"));
}

/// An ice whose rules are these, on which every flow was measured on queue 7.
fn with_rules(rules: &[(u32, [u8; 4], u16, u32)], others: &[u32]) -> Plan {
    let mut facts = machine("ice");
    let needs = needs(&facts, 7);
    let latency = profile(ProfileName::Latency);
    let first = plan(&facts, &needs, &latency, &FlowQueues::default());
    simulate(&mut facts, &first);
    let has = facts.devices[0].flow_rules.as_mut().expect("rules");
    for (place, address, port, queue) in rules {
        let rule = FlowRule::Port {
            destination: Some((*address).into()),
            destination_port: *port,
            queue: *queue,
        };
        has.rules.insert(*place, rule);
    }
    has.others = others.to_vec();
    plan(&facts, &needs, &latency, &verified(&needs))
}

#[test]
fn with_rules_what_was_measured_holds_after_a_boot() {
    let plan = with_rules(&[], &[]);
    assert!(has_priorities(&plan));
    let ends = plan.steps.iter().find(|step| step.when != When::Now);
    assert_eq!(ends, None);
}

#[test]
fn a_rule_that_brings_others_to_the_critical_queue_is_removed_or_named() {
    // Of the form of ours, for a port that is no longer described.
    let stale = with_rules(&[(9, [10, 0, 0, 1], 7_999, 7)], &[]);
    let step = stale
        .steps
        .iter()
        .find(|step| step.id == "interface.rule-at-9.eth0");
    assert_eq!(step.map(|step| &step.to), Some(&Value::Absent));
    assert!(!has_priorities(&stale), "it stands until then");
    // To an address that is not this host's, or of another form: somebody else's.
    for plan in [
        with_rules(&[(9, [10, 0, 0, 77], 7_999, 7)], &[]),
        with_rules(&[], &[9]),
    ] {
        assert!(!has_priorities(&plan));
        assert!(
            !plan
                .steps
                .iter()
                .any(|step| matches!(step.setting, Setting::FlowRule { .. }))
        );
        let mut not_planned = plan.not_planned.iter();
        let refusal = not_planned.find(|it| it.id == "interface.receive-threads.eth0");
        assert!(
            refusal
                .expect("a reason")
                .remedy
                .contains("ethtool -N eth0 delete 9"),
            "{refusal:?}"
        );
    }
    // To another queue it is no business of ours.
    assert!(has_priorities(&with_rules(
        &[(9, [10, 0, 0, 1], 7_999, 3)],
        &[]
    )));
}

#[test]
fn a_rule_that_leads_a_critical_port_elsewhere_is_named() {
    let mut facts = machine("ice");
    let needs = needs(&facts, 7);
    let rule = FlowRule::Port {
        destination: None,
        destination_port: 7_007,
        queue: 3,
    };
    let has = facts.devices[0].flow_rules.as_mut().expect("rules");
    has.rules.insert(5, rule);
    let plan = plan(
        &facts,
        &needs,
        &profile(ProfileName::Latency),
        &FlowQueues::default(),
    );
    let refusal = plan
        .not_planned
        .iter()
        .find(|it| it.id == "interface.rule-7007.eth0");
    assert!(
        refusal.expect("a reason").remedy.contains("delete 5"),
        "{refusal:?}"
    );
}

#[test]
fn without_a_named_queue_none_is_kept_for_critical_topics() {
    let facts = machine("igc");
    let mut needs = needs(&facts, 0);
    needs.names_queues = false;
    let plan = plan(
        &facts,
        &needs,
        &profile(ProfileName::Latency),
        &verified(&needs),
    );
    let refusal = plan
        .not_planned
        .iter()
        .find(|it| it.id == "interface.critical-queue.eth0");
    assert!(
        refusal
            .expect("a reason")
            .remedy
            .contains("queues = { 7 = 3 }"),
        "{refusal:?}"
    );
    assert!(!has_priorities(&plan));
    for steering in [
        "interface.receive-table",
        "interface.rule",
        "interface.transmit",
    ] {
        assert!(
            !plan.steps.iter().any(|step| step.id.starts_with(steering)),
            "{steering}"
        );
    }
}

/// A second queue helps there too, and its reason promises no dedicated queue.
#[test]
fn the_reason_for_more_queues_holds_for_its_own_plan() {
    for names_queues in [true, false] {
        let facts = machine("virtio_net");
        let mut needs = needs(&facts, 1);
        needs.names_queues = names_queues;
        if !names_queues {
            needs.lane_queues.fill(0);
        }
        let latency = profile(ProfileName::Latency);
        let plan = plan(&facts, &needs, &latency, &FlowQueues::default());
        let mut steps = plan.steps.iter();
        let step = steps.find(|step| step.id == "interface.queues.eth0");
        let why = &step.expect("a second queue").why;
        let is_kept = why.contains("one of them is for critical topics alone");
        assert_eq!(is_kept, names_queues, "{why}");
        let mut not_planned = plan.not_planned.iter();
        let is_refused =
            not_planned.any(|it| it.why.contains("no queue is kept for critical topics"));
        assert_eq!(is_refused, !names_queues);
    }
}

#[test]
fn interrupts_are_left_to_irqbalance_while_it_runs() {
    let interrupts = |programs: &[&str]| {
        let (mut facts, needs, _) = steering("igc");
        facts.programs = programs.iter().map(|name| String::from(*name)).collect();
        let plan = plan(
            &facts,
            &needs,
            &profile(ProfileName::Latency),
            &verified(&needs),
        );
        let steps = plan.steps.iter();
        let steps = steps.filter(|step| step.id.starts_with("interface.interrupt-"));
        let mut not_planned = plan.not_planned.iter();
        let refusal = not_planned.find(|it| it.id == "interface.interrupts.eth0");
        (steps.count(), refusal.map(|it| it.remedy.clone()))
    };
    assert_eq!(interrupts(&[]), (1, None));
    let (steps, remedy) = interrupts(&["irqbalance"]);
    let remedy = remedy.expect("a reason");
    assert_eq!(steps, 0);
    assert!(
        remedy.contains("--banirq=134") && remedy.contains("mask --now irqbalance"),
        "{remedy}"
    );
}

fn refusal<'a>(plan: &'a Plan, id: &str) -> Option<&'a NotPlanned> {
    plan.not_planned.iter().find(|refusal| refusal.id == id)
}

#[test]
fn arguments_of_the_kernel_that_are_there_are_looked_at() {
    let planned = |line: &str| {
        let mut facts = machine("igc");
        facts.kernel.command_line = Some(String::from(line));
        let needs = needs(&facts, 3);
        let plan = plan(
            &facts,
            &needs,
            &profile(ProfileName::Latency),
            &FlowQueues::default(),
        );
        let step = plan.steps.iter().find(|step| step.id == "boot.arguments");
        let refusal = refusal(&plan, "boot.arguments");
        (
            step.map(|step| step.to.clone()),
            refusal.map(|it| it.remedy.clone()),
        )
    };
    let text = |value: Option<Value>| match value {
        Some(value) => text_of(&value),
        None => panic!("no step"),
    };
    let all = "isolcpus=managed_irq,domain,7 nohz_full=7 rcu_nocbs=7 irqaffinity=0-6";
    let (step, refused) = planned("quiet");
    assert!(text(step).contains(all) && refused.is_none());
    assert_eq!(
        planned("isolcpus=6-7 nohz_full=6,7 rcu_nocbs=all"),
        (None, None),
        "as wanted"
    );
    let (step, refused) = planned("isolcpus=7");
    assert!(
        text(step).contains("GRUB_CMDLINE_LINUX nohz_full=7 rcu_nocbs=7") && refused.is_none(),
        "the rest"
    );
    let (step, refused) = planned("isolcpus=domain,2-3");
    let remedy = refused.expect("a reason");
    assert_eq!(step, None);
    assert!(
        remedy.contains("isolcpus=domain,2-3,7") && remedy.contains("/etc/default/grub"),
        "{remedy}"
    );
}

#[test]
fn arguments_of_ones_own_are_replaced_with_the_core() {
    let mut facts = machine("igc");
    let own = "isolcpus=managed_irq,domain,6 nohz_full=6 rcu_nocbs=6 irqaffinity=0-5,7";
    facts.kernel.command_line = Some(format!("quiet {own}"));
    let text = format!("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {own}\"\n");
    facts
        .documents
        .insert(String::from("/etc/default/grub.d/90-isolane.cfg"), text);
    let needs = needs(&facts, 3);
    let plan = plan(
        &facts,
        &needs,
        &profile(ProfileName::Latency),
        &FlowQueues::default(),
    );
    let step = plan.steps.iter().find(|step| step.id == "boot.arguments");
    assert!(text_of(&step.expect("a step").to).contains("isolcpus=managed_irq,domain,7"));
}

#[test]
fn balanced_takes_no_core_away_and_asks_for_no_boot() {
    for (name, queue) in MACHINES {
        let facts = machine(name);
        let needs = needs(&facts, queue);
        let plan = plan(
            &facts,
            &needs,
            &profile(ProfileName::Balanced),
            &FlowQueues::default(),
        );
        let taken = plan
            .steps
            .iter()
            .find(|step| step.id.starts_with("boot.") || step.id.starts_with("cores.sibling"));
        assert_eq!(taken, None, "{name}");
    }
}

#[test]
fn priorities_of_threads_say_what_priority_programs_are_to_have() {
    let (facts, needs, first) = steering("igc");
    assert!(
        refusal(&first, "applications.priority").is_none(),
        "there are none"
    );
    let plan = plan(
        &facts,
        &needs,
        &profile(ProfileName::Latency),
        &verified(&needs),
    );
    let said = refusal(&plan, "applications.priority").expect("a word");
    assert!(said.remedy.contains("chrt -f 70 PROGRAM"), "{said:?}");
}
