//! Tests of the plans of recorded machines, as files, and of their steering and priorities.

mod support;

use isolane_model::{ProfileName, Tuning};
use isolane_tune::{
    APPLICATION_PRIORITY, BULK_QUEUE_PRIORITY, CRITICAL_QUEUE_PRIORITY, Facts, FlowQueues, Needs,
    Plan, Setting, TRANSMIT_QUEUE_PRIORITY, Value, plan,
};

use support::{
    MACHINES, description_at, golden, has_priorities, json, machine, needs, profile, simulate,
    steering, verified,
};

#[test]
fn each_machine_has_the_plan_of_its_file() {
    for (name, queue) in MACHINES {
        let facts = machine(name);
        let needs = needs(&facts, queue);
        for profile_name in [ProfileName::Latency, ProfileName::Balanced] {
            let plan = plan(
                &facts,
                &needs,
                &profile(profile_name),
                &FlowQueues::default(),
            );
            golden(
                &format!("plans/{name}.{profile_name}.txt"),
                &plan.to_text(None),
            );
            golden(&format!("plans/{name}.{profile_name}.json"), &json(&plan));
        }
    }
}

#[test]
fn what_was_learnt_becomes_a_table_and_what_was_measured_then_priorities() {
    for name in ["igc", "igb", "igb-emulated", "mlx5"] {
        let (facts, needs, first) = steering(name);
        golden(&format!("plans/{name}.learnt.txt"), &first.to_text(None));
        assert!(!has_priorities(&first), "{name}");
        let second = plan(
            &facts,
            &needs,
            &profile(ProfileName::Latency),
            &verified(&needs),
        );
        golden(&format!("plans/{name}.verified.txt"), &second.to_text(None));
        golden(&format!("plans/{name}.verified.diff"), &second.to_diff());
        assert!(has_priorities(&second), "{name}");
        assert!(!second.preconditions.is_empty(), "{name}");
        // Both as one, for the next boot: the preconditions of the second are set by the first, or hold.
        let both = second.clone().merge(&first);
        assert!(has_priorities(&both), "{name}");
        let table = |setting: &Setting| matches!(setting, Setting::RssTable { .. });
        assert!(both.steps.iter().any(|step| table(&step.setting)), "{name}");
        assert!(
            !both.preconditions.iter().any(|it| table(&it.setting)),
            "{name}"
        );
        let mut after = machine(name);
        simulate(&mut after, &both);
        let mut one_by_one = facts;
        simulate(&mut one_by_one, &second);
        assert_eq!(after, one_by_one, "{name}");
    }
}

#[test]
fn what_was_measured_before_the_steering_changes_is_not_believed() {
    let facts = machine("igc");
    let needs = needs(&facts, 3);
    let plan = plan(
        &facts,
        &needs,
        &profile(ProfileName::Latency),
        &verified(&needs),
    );
    assert!(
        plan.steps
            .iter()
            .any(|step| matches!(step.setting, Setting::RssTable { .. }))
    );
    assert!(!has_priorities(&plan));
    let refused = plan
        .not_planned
        .iter()
        .find(|it| it.id == "interface.receive-threads.eth0");
    assert!(refused.expect("a reason").remedy.contains("plan again"));
}

#[test]
fn a_machine_that_is_set_up_has_an_empty_plan() {
    let (mut tuned, needs, _) = steering("igc");
    let latency = profile(ProfileName::Latency);
    let second = plan(&tuned, &needs, &latency, &verified(&needs));
    simulate(&mut tuned, &second);
    // What the kernel's arguments do is seen after a boot.
    tuned.cores.isolated = Some(vec![7]);
    tuned.cores.nohz_full = Some(vec![7]);
    let again = plan(&tuned, &needs, &latency, &verified(&needs));
    assert_eq!(again.steps, []);
    golden("plans/igc.tuned.txt", &again.to_text(None));
}

#[test]
fn priorities_stand_in_the_measured_order() {
    let (facts, needs, _) = steering("igc");
    let plan = plan(
        &facts,
        &needs,
        &profile(ProfileName::Latency),
        &verified(&needs),
    );
    let priorities = priorities(&plan);
    assert_eq!(priorities.len(), 4, "a thread a queue: {priorities:?}");
    for (name, priority) in priorities {
        let expected = match name.ends_with("TxRx-3") {
            true => CRITICAL_QUEUE_PRIORITY,
            false => BULK_QUEUE_PRIORITY,
        };
        assert_eq!(priority, expected, "{name}");
    }
    const {
        assert!(CRITICAL_QUEUE_PRIORITY > APPLICATION_PRIORITY);
        assert!(APPLICATION_PRIORITY > BULK_QUEUE_PRIORITY);
        assert!(BULK_QUEUE_PRIORITY > TRANSMIT_QUEUE_PRIORITY);
    }
}

/// What a plan gives threads, by their names.
fn priorities(plan: &Plan) -> Vec<(String, u8)> {
    let steps = plan.steps.iter();
    let of_threads = steps.filter_map(|step| match (&step.setting, &step.to) {
        (Setting::Thread { name }, Value::Thread(class)) => Some((name.clone(), class.fifo?)),
        _ => None,
    });
    of_threads.collect()
}

#[test]
fn what_looks_after_sent_frames_comes_behind_all_that_receives() {
    let planned = |was: u8, has_zero_copy: bool, asks_for_zero_copy: bool| {
        // Interrupts of both ways of a queue are apart.
        let (mut facts, mut needs, _) = steering("igb");
        needs.asks_for_zero_copy = asks_for_zero_copy;
        for interrupt in &mut facts.devices[0].interrupts {
            if let Some((_, fifo)) = &mut interrupt.thread {
                *fifo = Some(was);
            }
        }
        let features = facts.devices[0].xdp_features.as_mut();
        features.expect("recorded").has_zero_copy = has_zero_copy;
        let latency = profile(ProfileName::Latency);
        plan(&facts, &needs, &latency, &verified(&needs))
    };
    let of = |priorities: &[(&str, u8)]| -> Vec<(String, u8)> {
        let named = priorities.iter();
        named
            .map(|(name, priority)| (String::from(*name), *priority))
            .collect()
    };
    let received = [
        ("irq/25-eth0-rx-0", BULK_QUEUE_PRIORITY),
        ("irq/26-eth0-rx-1", CRITICAL_QUEUE_PRIORITY),
    ];
    // The kernel has them where they belong.
    assert_eq!(priorities(&planned(50, false, true)), of(&received));
    let sent = [
        ("irq/27-eth0-tx-0", TRANSMIT_QUEUE_PRIORITY),
        ("irq/28-eth0-tx-1", TRANSMIT_QUEUE_PRIORITY),
    ];
    let all = [received, sent].concat();
    assert_eq!(priorities(&planned(90, false, true)), of(&all));
    // A device that reads the frames of lanes is given them by that thread.
    let lanes = [
        received[0],
        received[1],
        ("irq/28-eth0-tx-1", CRITICAL_QUEUE_PRIORITY),
    ];
    assert_eq!(priorities(&planned(50, true, true)), of(&lanes));
    // Where the description leaves it open there may be none, as with hosts that have sockets only.
    assert_eq!(priorities(&planned(50, true, false)), of(&received));
}

#[test]
fn an_instance_that_only_transmits_is_no_receive_thread() {
    // As the testbed's kernel lists them: it does not say which queues they serve, those of both ways are apart, and
    // those that receive come first.
    let (mut facts, needs, _) = steering("igb-emulated");
    assert_eq!(facts.lanes[0].napi.len(), 4);
    for interrupt in &mut facts.devices[0].interrupts {
        interrupt.thread = None;
    }
    let latency = profile(ProfileName::Latency);
    let plan = plan(&facts, &needs, &latency, &verified(&needs));
    let named = |name: &str, priority| (String::from(name), priority);
    let expected = [
        named("napi/eth0-8193", BULK_QUEUE_PRIORITY),
        named("napi/eth0-8194", CRITICAL_QUEUE_PRIORITY),
    ];
    assert_eq!(priorities(&plan), expected);
}

#[test]
fn an_interrupt_of_sent_frames_does_not_come_to_the_executors_core() {
    let (mut facts, needs, _) = steering("igb");
    for interrupt in &mut facts.devices[0].interrupts {
        interrupt.cores = vec![0, 1];
    }
    let latency = profile(ProfileName::Latency);
    let plan = plan(&facts, &needs, &latency, &verified(&needs));
    let to = |id: &str| {
        let step = plan.steps.iter().find(|step| step.id == id);
        step.map(|step| step.to.clone())
    };
    let core = |core: &str| Some(Value::Text(String::from(core)));
    assert_eq!(to("interface.interrupt-eth0-rx-1.eth0"), core("1"));
    assert_eq!(to("interface.interrupt-eth0-rx-0.eth0"), core("0"));
    assert_eq!(to("interface.interrupt-eth0-tx-1.eth0"), core("0"));
}

#[test]
fn one_flow_that_was_not_measured_is_enough_to_leave_threads_alone() {
    for name in ["igc", "igb", "mlx5", "ice", "veth"] {
        let (facts, needs, _) = steering(name);
        let whole = verified(&needs);
        let measured = whole.flows.len() - needs.flows.len();
        for missing in measured..whole.flows.len() {
            let flow = whole.flows[missing].tuple;
            let is_critical = needs
                .flows
                .iter()
                .any(|known| known.tuple == flow && known.level == 7);
            let mut placement = whole.clone();
            placement.flows.remove(missing);
            let plan = plan(&facts, &needs, &profile(ProfileName::Latency), &placement);
            assert_eq!(
                has_priorities(&plan),
                !is_critical,
                "{name} without {flow:?}"
            );
            let refused = plan
                .not_planned
                .iter()
                .any(|it| it.id.contains("receive-threads"));
            assert_eq!(refused, is_critical, "{name}");
        }
    }
}

#[test]
fn a_flow_measured_on_two_queues_is_not_verified() {
    let (facts, needs, _) = steering("igc");
    let latency = profile(ProfileName::Latency);
    assert!(has_priorities(&plan(
        &facts,
        &needs,
        &latency,
        &verified(&needs)
    )));
    let mut placement = verified(&needs);
    let mut twice = placement.flows.last().cloned().expect("a flow");
    for flow in placement.flows.clone() {
        if needs
            .flows
            .iter()
            .any(|known| known.tuple == flow.tuple && known.level == 7)
        {
            twice = flow;
        }
    }
    twice.queue = isolane_tune::KnownQueue::Measured { queue: 0 };
    placement.flows.push(twice);
    let plan = plan(&facts, &needs, &profile(ProfileName::Latency), &placement);
    assert!(!has_priorities(&plan));
}

#[test]
fn without_a_description_no_interface_is_touched() {
    for (name, _) in MACHINES {
        let facts = machine(name);
        let needs = Needs::of_domain(0);
        for profile_name in [ProfileName::Latency, ProfileName::Balanced] {
            let tuning = profile(profile_name);
            let plan = plan(&facts, &needs, &tuning, &FlowQueues::default());
            let touched = plan
                .steps
                .iter()
                .find(|step| step.id.starts_with("interface."));
            assert_eq!(touched, None, "{name}");
            assert!(
                plan.not_planned
                    .iter()
                    .any(|it| it.id == "description.host"),
                "{name}"
            );
        }
    }
}

#[test]
fn the_plan_of_a_machine_of_which_nothing_is_known_is_empty() {
    let facts = Facts::default();
    let needs = needs(&machine("igc"), 3);
    let plan = plan(
        &facts,
        &needs,
        &profile(ProfileName::Latency),
        &FlowQueues::default(),
    );
    assert_eq!(
        plan.steps
            .iter()
            .filter(|step| !step.id.starts_with("rights"))
            .count(),
        0
    );
}

#[test]
fn ports_that_share_an_entry_are_found_and_others_named_that_do_not() {
    let facts = machine("mlx5");
    let tuning = Tuning::from_toml("steering = \"table\"", "own.toml").expect("a profile");
    let refused = |port: u16| {
        let system = description_at(port, 7, 15, "");
        let needs = Needs::of_system(&system, Some("left"), "").expect("a host");
        let plan = plan(&facts, &needs, &tuning, &FlowQueues::default());
        let mut not_planned = plan.not_planned.into_iter();
        not_planned.find(|it| it.id == "interface.steering-shared.eth0")
    };
    let mut ports = 1_024..7_000;
    let (port, refusal) = ports
        .find_map(|port| Some((port, refused(port)?)))
        .expect("of 256 entries two flows pick the same now and then");
    assert!(refusal.why.contains("level"), "{port}: {refusal:?}");
    let (_, other) = refusal.remedy.split_once("port = ").expect("a port");
    let other = other
        .split_whitespace()
        .next()
        .and_then(|it| it.parse().ok());
    assert_eq!(
        refused(other.expect("a number")),
        None,
        "{port} -> {other:?}"
    );
}

#[test]
fn critical_levels_with_lanes_on_several_queues_are_pointed_out() {
    let facts = machine("igc");
    let needs = needs(&facts, 3);
    let refused = |text: &str| {
        let tuning = Tuning::from_toml(text, "own.toml").expect("a profile");
        let plan = plan(&facts, &needs, &tuning, &FlowQueues::default());
        plan.not_planned
            .iter()
            .any(|it| it.id == "interface.lanes.eth0")
    };
    assert!(!refused(""), "level 7 alone");
    assert!(
        refused("critical_level = 5"),
        "level 5 has its lane on queue 0"
    );
}
