//! Tests of the traffic classes by which plans send frames.

mod support;

use isolane_model::{ProfileName, Tuning};
use isolane_tune::{Facts, FlowQueues, RootQdisc, Value, plan};

use support::{machine, needs, profile};

#[test]
fn an_igc_serves_its_queues_strictly_where_its_driver_can() {
    let classes = |release: &str, queue: u32| {
        let mut facts = machine("igc");
        facts.kernel.release = String::from(release);
        let needs = needs(&facts, queue);
        let plan = plan(
            &facts,
            &needs,
            &profile(ProfileName::Latency),
            &FlowQueues::default(),
        );
        let step = plan
            .steps
            .iter()
            .find(|step| step.id == "interface.transmit.eth0");
        match &step.expect("a step").to {
            Value::Qdisc(RootQdisc::Mqprio(classes)) => classes.clone(),
            other => panic!("{other:?}"),
        }
    };
    let strict = classes("6.12.30-rt11-amd64", 3);
    assert!(strict.offloaded);
    assert_eq!(
        strict.queues,
        [(1, 0), (1, 1), (1, 2), (1, 3)],
        "as many classes as queues, in order"
    );
    assert_eq!(strict.class_of_priority[..8], [0, 0, 0, 1, 1, 2, 2, 3]);
    for other in [
        classes("6.1.0-28-amd64", 3),
        classes("6.12.30-rt11-amd64", 2),
    ] {
        assert!(!other.offloaded && other.queues.len() == 2, "{other:?}");
    }
}

#[test]
fn what_the_kernel_sends_with_priority_7_has_a_class_of_critical_topics_only_if_level_7_is_one() {
    let planned = |release: &str, critical: u8, highest: u8| {
        let mut facts = machine("igc");
        facts.kernel.release = String::from(release);
        let mut needs = needs(&facts, 3);
        // As if the description called its levels otherwise.
        for topic in needs.topics.iter_mut().filter(|topic| topic.level == 7) {
            topic.level = highest;
        }
        needs.highest_level = Some(highest);
        needs.lane_queues[usize::from(highest)] = 3;
        let text = format!("critical_level = {critical}");
        let tuning = Tuning::from_toml(&text, "own.toml").expect("a profile");
        let plan = plan(&facts, &needs, &tuning, &FlowQueues::default());
        let mut steps = plan.steps.into_iter();
        let step = steps.find(|step| step.id == "interface.transmit.eth0");
        let step = step.unwrap_or_else(|| panic!("{:?}", plan.not_planned));
        match step.to {
            Value::Qdisc(RootQdisc::Mqprio(classes)) => (classes.class_of_priority, step.why),
            other => panic!("{other:?}"),
        }
    };
    let (classes, why) = planned("6.1.0", 5, 5);
    assert_eq!(classes[..8], [0, 0, 0, 0, 0, 1, 0, 0]);
    assert!(!why.contains("IGMP") && !why.contains("TOS"), "{why}");
    let (classes, why) = planned("6.1.0", 5, 6);
    assert_eq!(classes[..8], [0, 0, 0, 0, 0, 1, 1, 0]);
    assert!(!why.contains("IGMP") && why.contains("TOS"), "{why}");
    let (classes, why) = planned("6.1.0", 6, 7);
    assert_eq!(classes[..8], [0, 0, 0, 0, 0, 0, 1, 1]);
    assert!(why.contains("IGMP") && why.contains("TOS"), "{why}");
    // A device that serves its classes strictly: before all but these.
    let (classes, _) = planned("6.12.30", 5, 5);
    assert_eq!(classes[..8], [0, 0, 1, 1, 2, 3, 2, 2]);
}

#[test]
fn classes_that_the_device_does_not_know_of_are_not_those_it_is_to_serve_strictly() {
    let mut facts = machine("igc");
    facts.kernel.release = String::from("6.12.30-rt11-amd64");
    let needs = needs(&facts, 3);
    let planned = |facts: &Facts| {
        let latency = profile(ProfileName::Latency);
        let plan = plan(facts, &needs, &latency, &FlowQueues::default());
        let mut steps = plan.steps.into_iter();
        steps.find(|step| step.id == "interface.transmit.eth0")
    };
    let step = planned(&facts).expect("a step");
    facts.simulate(&step.setting, &step.to);
    assert_eq!(planned(&facts), None);
    let Some(RootQdisc::Mqprio(classes)) = &mut facts.devices[0].root_qdisc else {
        panic!("{:?}", facts.devices[0].root_qdisc);
    };
    classes.offloaded = false;
    let again = planned(&facts).expect("the same map without hw 1");
    assert_eq!(again.to, step.to);
}
