//! Properties of every plan, for any machine, profile, description and known receive queues.

mod support;

use std::collections::HashSet;

use isolane_model::Tuning;
use isolane_tune::apply::{Here, PlanFile};
use isolane_tune::{
    Direction, Facts, FlowQueues, FlowRule, Needs, Setting, Value, When, here, plan,
};
use proptest::prelude::*;

use support::{
    MACHINES, description, has_priorities, json, learnt, machine, refused, simulate, verified,
};

/// What holds for every plan of every machine.
fn holds(name: &str, facts: &Facts, needs: &Needs, tuning: &Tuning, placement: &FlowQueues) {
    let made = plan(facts, needs, tuning, placement);
    assert_eq!(
        made,
        plan(facts, needs, tuning, placement),
        "{name}: the same again"
    );
    let mut ids = HashSet::new();
    let mut settings = HashSet::new();
    for step in &made.steps {
        assert!(ids.insert(step.id.as_str()), "{name}: {} twice", step.id);
        assert!(
            settings.insert(&step.setting),
            "{name}: {} twice",
            step.setting
        );
        assert_ne!(step.from, step.to, "{name}: {}", step.id);
        assert_eq!(refused(facts, step), None, "{name}: {step:?}");
        for said in [&step.why, &step.costs, &step.undo] {
            assert!(!said.is_empty(), "{name}: {step:?}");
        }
        let known = |topic: &String| needs.topics.iter().any(|it| it.name == *topic);
        assert!(step.topics.iter().all(known), "{name}: {step:?}");
    }
    for refusal in &made.not_planned {
        assert!(
            ids.insert(refusal.id.as_str()),
            "{name}: {} twice, or done and refused",
            refusal.id
        );
        assert!(!refusal.why.is_empty(), "{name}: {refusal:?}");
    }
    let measured =
        |flow: &isolane_tune::DescribedFlow| placement.is_measured_on(flow.tuple, flow.queue);
    let critical = tuning
        .critical_level
        .value
        .map(|level| level.get())
        .or(needs.highest_level);
    let all = needs
        .flows
        .iter()
        .filter(|flow| Some(flow.level) >= critical)
        .all(measured);
    if has_priorities(&made) {
        assert!(all, "{name}: priorities without measurements");
    }
    // What is planned because of where datagrams land ends with the boot, unless rules bring them there.
    let without = plan(facts, needs, tuning, &FlowQueues::default());
    if !has_all_rules(facts, needs, critical) {
        for step in made
            .steps
            .iter()
            .filter(|step| !without.steps.contains(step))
        {
            assert_eq!(step.when, When::ThisBoot, "{name}: {step:?}");
        }
    }
    // The head of a table, and what comes of it, hold together.
    for step in &made.steps {
        if let (Value::Table(from), Value::Table(to)) = (&step.from, &step.to) {
            assert_eq!(from.len(), to.len(), "{name}");
        }
    }
    let text = made.to_text(None);
    assert!(text.contains(&facts.hostname), "{name}");
    // From a file without a journal: each step is one that planning is known to make.
    let read = PlanFile::from_json(&json(&made)).expect("a plan");
    let nowhere = std::env::temp_dir().join("isolane-no-such-folder");
    let of_facts = Here {
        cores: facts.cores.online.clone(),
        ..here()
    };
    let admitted = read.admit(&of_facts, &nowhere);
    let admitted = admitted.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    assert_eq!(admitted, made, "{name}: as JSON");
    // Nothing is measured and changed at once.
    let has_steering = made.steps.iter().any(|step| {
        matches!(
            step.setting,
            Setting::Channels { .. }
                | Setting::RssTable { .. }
                | Setting::UdpHash { .. }
                | Setting::FlowRule { .. }
        )
    });
    assert!(!(has_steering && has_priorities(&made)), "{name}");
    // Carried out, nothing is left to do; but where the steering was changed, priorities may follow.
    let mut after = facts.clone();
    simulate(&mut after, &made);
    let again = plan(&after, needs, tuning, placement);
    for step in &again.steps {
        let follows = has_steering && !again.preconditions.is_empty();
        let is_receive_processing = [
            "interface.thread",
            "interface.transmit-thread",
            "interface.interrupt-",
        ];
        assert!(
            follows
                && is_receive_processing
                    .iter()
                    .any(|start| step.id.starts_with(start)),
            "{name} by {}: {step:?}",
            tuning.name()
        );
    }
    simulate(&mut after, &again);
    let third = plan(&after, needs, tuning, placement);
    assert_eq!(third.steps, [], "{name} by {}", tuning.name());
}

/// Whether the device has a rule for each critical flow that it receives.
fn has_all_rules(facts: &Facts, needs: &Needs, critical: Option<u8>) -> bool {
    let device = needs
        .interface
        .as_deref()
        .and_then(|name| facts.device(name));
    let Some(rules) = device.and_then(|device| device.flow_rules.as_ref()) else {
        return false;
    };
    let mut flows = needs
        .flows
        .iter()
        .filter(|flow| flow.direction == Direction::Receive && Some(flow.level) >= critical);
    flows.all(|flow| {
        let tuple = flow.tuple;
        let mut rules = rules.rules.values();
        rules.any(|rule| {
            matches!(rule, FlowRule::Port { destination, destination_port, .. }
                if *destination == Some(tuple.destination)
                    && *destination_port == tuple.destination_port)
        })
    })
}

/// Any profile: a named one, and switches of one's own.
fn any_tuning() -> impl Strategy<Value = Tuning> {
    let switch = prop_oneof![
        Just("queues = false"),
        Just("steering = \"rules\""),
        Just("steering = \"table\""),
        Just("steering = \"none\""),
        Just("transmit = \"pfifo\""),
        Just("transmit = \"keep\""),
        Just("coalescing_us = 1"),
        Just("coalescing_us = 2"),
        Just("coalescing_us = 5"),
        Just("coalescing_us = 10"),
        Just("coalescing_us = \"keep\""),
        Just("receive_ring_frames = 4096"),
        Just("transmit_ring_frames = 16"),
        Just("threaded_napi = true"),
        Just("irq_affinity = false"),
        Just("isolation = \"none\""),
        Just("isolation = \"boot\""),
        Just("isolation = \"cpuset\""),
        Just("smt = false"),
        Just("idle_latency_us = 0"),
        Just("realtime_limits = true"),
        Just("critical_level = 5"),
        Just("critical_level = 1"),
    ];
    let switches = prop::collection::btree_map(0..6_usize, switch, 0..5);
    (any::<bool>(), switches).prop_map(|(is_latency, switches)| {
        let profile = if is_latency { "latency" } else { "balanced" };
        let mut text = format!("profile = \"{profile}\"\n");
        let mut keys = HashSet::new();
        for switch in switches.values() {
            let key = switch.split(' ').next().expect("a key");
            if keys.insert(key) {
                text.push_str(switch);
                text.push('\n');
            }
        }
        Tuning::from_toml(&text, "profile.toml").expect("a profile")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_plan_of_every_machine_holds(
        machine_number in 0..MACHINES.len(),
        queue in 0_u32..8,
        core in 0_u16..17,
        tuning in any_tuning(),
        known in 0..3,
        omitted in any::<prop::sample::Index>(),
        more in prop_oneof![
            Just(""),
            Just("[participant.late]\nhost = \"right\"\naddress = \"10.0.0.3\"\nport = 40000\nreads = [\"Request\"]"),
            Just("[participant.local]\nhost = \"left\"\naddress = \"10.0.0.1\"\nport = 33000\nreads = [\"Reply\"]"),
        ],
    ) {
        let (name, _) = MACHINES[machine_number];
        let facts = machine(name);
        let system = description(queue, core, more);
        let needs = Needs::of_system(&system, Some("left"), "").expect("a host");
        let placement = match known {
            0 => FlowQueues::default(),
            1 => learnt(&needs),
            _ => {
                let mut placement = verified(&needs);
                let place = omitted.index(placement.flows.len() * 2);
                if place < placement.flows.len() {
                    placement.flows.remove(place);
                }
                placement
            }
        };
        holds(name, &facts, &needs, &tuning, &placement);
        // A machine that steers already.
        let mut steering = facts;
        let first = plan(&steering, &needs, &tuning, &placement);
        simulate(&mut steering, &first);
        holds(name, &steering, &needs, &tuning, &placement);
    }
}

#[test]
fn every_plan_without_a_description_holds() {
    for (name, _) in MACHINES {
        let facts = machine(name);
        for tuning in [Tuning::default(), latency()] {
            holds(
                name,
                &facts,
                &Needs::of_domain(0),
                &tuning,
                &FlowQueues::default(),
            );
        }
    }
}

fn latency() -> Tuning {
    Tuning::from_toml("profile = \"latency\"", "profile.toml").expect("a profile")
}
