//! Tests of plans for devices that distinguish frames only by VLAN priority.

mod support;

use isolane_model::Tuning;
use isolane_tune::{
    Facts, FlowQueues, FlowRule, FlowRules, Needs, Plan, Setting, Value, When, plan,
};

use support::{has_priorities, machine, needs, simulate, verified};

const STEERING: &str = "interface.steering.eth0";

fn by_rules() -> Tuning {
    let text = "profile = \"latency\"\nsteering = \"rules\"\n";
    Tuning::from_toml(text, "own.toml").expect("a profile")
}

/// An igc with room for rules.
fn with_rules() -> (Facts, Needs) {
    let mut facts = machine("igc");
    facts.devices[0].flow_rules = Some(FlowRules {
        capacity: 16,
        ..FlowRules::default()
    });
    let needs = needs(&facts, 3);
    (facts, needs)
}

/// This host and its peer send in a VLAN.
fn in_vlan(needs: &mut Needs) {
    needs.vlan = Some(5);
    for flow in &mut needs.flows {
        flow.peer_vlan = Some(5);
    }
}

fn refusal(plan: &Plan) -> Option<(String, String)> {
    let mut not_planned = plan.not_planned.iter();
    let refusal = not_planned.find(|it| it.id == STEERING)?;
    Some((refusal.why.clone(), refusal.remedy.clone()))
}

fn has_rule(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| step.id.contains("rule-"))
}

/// What rules by the priority of a tag say on hardware is unproven: no device here has them.
#[test]
fn a_device_whose_rules_see_no_ports_takes_one_by_vlan_priority() {
    let by_rules = by_rules();
    let (mut facts, mut needs) = with_rules();
    let untagged = plan(&facts, &needs, &by_rules, &FlowQueues::default());
    let (_, remedy) = refusal(&untagged).expect("frames without a tag have no priority");
    assert!(remedy.contains("vlan"), "{remedy}");

    in_vlan(&mut needs);
    let tagged = plan(&facts, &needs, &by_rules, &FlowQueues::default());
    assert_eq!(refusal(&tagged), None);
    let mut steps = tagged.steps.iter();
    let step = steps.find(|step| step.id == "interface.rule-priority-7.eth0");
    let step = step.expect("a rule for the critical level");
    let rule = FlowRule::Priority {
        vlan_priority: 7,
        queue: 3,
    };
    assert_eq!(step.to, Value::Rule(rule));
    assert_eq!(step.undo, "ethtool -N eth0 delete 0");
    assert!(step.costs.contains("in any VLAN"), "{}", step.costs);
    // The receive queue of tagged frames was not measured.
    assert!(!has_priorities(&tagged));

    simulate(&mut facts, &tagged);
    let again = plan(&facts, &needs, &by_rules, &FlowQueues::default());
    assert!(!again.steps.iter().any(|step| step.id.contains("rule-")));
    let has = facts.devices[0].flow_rules.as_mut().expect("rules");
    let elsewhere = FlowRule::Priority {
        vlan_priority: 7,
        queue: 0,
    };
    has.rules = [(2, elsewhere)].into();
    let contradicted = plan(&facts, &needs, &by_rules, &FlowQueues::default());
    let mut not_planned = contradicted.not_planned.iter();
    let refusal = not_planned.find(|it| it.id == "interface.rule-priority-7.eth0");
    assert!(refusal.expect("a reason").remedy.contains("delete 2"));
}

#[test]
fn a_peer_that_sends_without_the_tag_is_named_and_no_rule_is_planned() {
    let (facts, mut needs) = with_rules();
    for peer in [None, Some(6)] {
        in_vlan(&mut needs);
        for flow in &mut needs.flows {
            flow.peer_vlan = peer;
        }
        let plan = plan(&facts, &needs, &by_rules(), &FlowQueues::default());
        assert!(!has_rule(&plan), "{peer:?}");
        let (why, remedy) = refusal(&plan).expect("a reason");
        assert!(why.contains("right would send"), "{why}");
        assert!(remedy.contains("vlan = 5"), "{remedy}");
    }
}

#[test]
fn rules_are_named_where_a_key_is_to_be_learnt_or_there_is_no_table() {
    let auto = Tuning::from_toml("profile = \"latency\"", "own.toml").expect("a profile");
    let table = Tuning::from_toml("steering = \"table\"", "own.toml").expect("a profile");
    let (mut facts, mut needs) = with_rules();
    let said = |facts: &Facts, needs: &Needs, tuning: &Tuning| {
        refusal(&plan(facts, needs, tuning, &FlowQueues::default())).expect("a reason")
    };
    let names = |remedy: &str| remedy.contains("steering = \"rules\"");
    assert!(!names(&said(&facts, &needs, &auto).1), "there is no VLAN");
    in_vlan(&mut needs);
    let (_, remedy) = said(&facts, &needs, &auto);
    assert!(
        remedy.contains("learn the entries") && names(&remedy),
        "{remedy}"
    );
    facts.devices[0].receive_hash = None;
    let (why, remedy) = said(&facts, &needs, &auto);
    assert!(why.contains("cannot distinguish UDP ports"), "{why}");
    assert!(names(&remedy), "{remedy}");
    facts.devices[0].flow_rules = None;
    let (why, _) = said(&facts, &needs, &auto);
    assert!(why.contains("neither flow rules nor"), "{why}");
    let (why, _) = said(&facts, &needs, &by_rules());
    assert!(why.contains("has no flow rules"), "{why}");
    // Rules that see ports are there, and the profile wants the table.
    let mut facts = machine("ice");
    facts.devices[0].receive_hash = None;
    let needs = support::needs(&facts, 7);
    let (why, remedy) = said(&facts, &needs, &table);
    assert!(why.ends_with("has no RSS table to set"), "{why}");
    assert!(remedy.contains("auto"), "{remedy}");
}

#[test]
fn what_was_measured_without_tags_holds_for_this_boot_only() {
    let (mut facts, mut needs) = with_rules();
    in_vlan(&mut needs);
    let first = plan(&facts, &needs, &by_rules(), &FlowQueues::default());
    simulate(&mut facts, &first);
    let second = plan(&facts, &needs, &by_rules(), &verified(&needs));
    let rests = |setting: &Setting| matches!(setting, Setting::Thread { .. });
    let steps = second.steps.iter();
    let rest: Vec<When> = steps
        .filter(|step| rests(&step.setting))
        .map(|step| step.when)
        .collect();
    assert!(!rest.is_empty());
    assert!(rest.iter().all(|when| *when == When::ThisBoot), "{rest:?}");
}
