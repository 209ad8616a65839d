//! Tests of planning after an applied plan: settings that no need requires any longer are restored, and no others.

mod support;

use isolane_model::{ProfileName, Tuning};
use isolane_tune::apply::SettingStatus;
use isolane_tune::{Facts, FlowQueues, Needs, Plan, Setting, Step, Value, plan, replan};

use support::{MACHINES, learnt, machine, needs, profile, verified};

/// What a plan leaves on a machine that carried it out.
fn applied(facts: &mut Facts, plan: &Plan) -> Vec<SettingStatus> {
    support::simulate(facts, plan);
    let standing = |step: &Step| SettingStatus {
        id: step.id.clone(),
        setting: step.setting.clone(),
        is_of_this_boot: true,
        before: step.from.clone(),
        applied: step.to.clone(),
        now: Some(step.to.clone()),
        in_force: true,
    };
    plan.steps.iter().map(standing).collect()
}

/// Returns the statuses after one more plan. The original value of a setting is the one found before the first plan.
fn applied_again(
    facts: &mut Facts,
    plan: &Plan,
    earlier: Vec<SettingStatus>,
) -> Vec<SettingStatus> {
    let mut all = earlier;
    for mut new in applied(facts, plan) {
        if let Some(place) = all.iter().position(|known| known.setting == new.setting) {
            new.before = all.remove(place).before;
        }
        all.push(new);
    }
    all
}

fn nothing(facts: &Facts) -> Plan {
    let mut empty = plan(
        facts,
        &Needs::of_domain(0),
        &profile(ProfileName::Balanced),
        &FlowQueues::default(),
    );
    empty.steps.clear();
    empty
}

fn put_back(plan: &Plan) -> Vec<&str> {
    let ids = plan.steps.iter().map(|step| step.id.as_str());
    ids.filter(|id| id.starts_with("restore.")).collect()
}

#[test]
fn what_the_same_description_and_profile_ask_for_stays() {
    for (name, queue) in MACHINES {
        for named in [ProfileName::Latency, ProfileName::Balanced] {
            let mut facts = machine(name);
            let needs = needs(&facts, queue);
            let tuning = profile(named);
            let mut standing = Vec::new();
            // Steering first; then, where datagrams were seen to land as they should, priorities.
            for placement in [learnt(&needs), verified(&needs), verified(&needs)] {
                let made = |facts: &Facts| plan(facts, &needs, &tuning, &placement);
                let again = replan(&facts, &standing, &made);
                assert_eq!(put_back(&again), [""; 0], "{name} by {}", tuning.name());
                assert_eq!(again, made(&facts), "{name} by {}", tuning.name());
                standing = applied_again(&mut facts, &again, standing);
            }
        }
    }
}

#[test]
fn where_nothing_is_requested_any_more_all_is_as_it_was_found() {
    for (name, queue) in MACHINES {
        let before = machine(name);
        let mut facts = before.clone();
        let needs = needs(&facts, queue);
        let tuning = profile(ProfileName::Latency);
        let made = plan(&facts, &needs, &tuning, &learnt(&needs));
        let mut standing = applied(&mut facts, &made);
        for round in 0.. {
            let again = replan(&facts, &standing, &nothing);
            if again.steps.is_empty() {
                break;
            }
            assert!(round < 3, "{name}: {:?}", put_back(&again));
            assert_eq!(put_back(&again).len(), again.steps.len(), "{name}");
            standing = applied_again(&mut facts, &again, standing);
        }
        assert_eq!(facts.documents, before.documents, "{name}");
        assert_eq!(facts.attributes, before.attributes, "{name}");
        assert_eq!(facts.cores, before.cores, "{name}");
        assert_eq!(facts.network, before.network, "{name}");
        for (now, before) in facts.devices.iter().zip(&before.devices) {
            assert_eq!(now.queues, before.queues, "{name}");
            assert_eq!(now.rings, before.rings, "{name}");
            assert_eq!(now.coalescing, before.coalescing, "{name}");
            assert_eq!(now.features, before.features, "{name}");
            assert_eq!(now.flow_rules, before.flow_rules, "{name}");
        }
    }
}

#[test]
fn another_profile_puts_back_what_only_the_first_requested() {
    let mut facts = machine("ixgbe");
    let needs = needs(&facts, 7);
    let made = |tuning: Tuning| {
        let needs = needs.clone();
        move |facts: &Facts| plan(facts, &needs, &tuning, &FlowQueues::default())
    };
    let tuning = |text: &str| Tuning::from_toml(text, "profile.toml").expect("a profile");
    let first = made(tuning("profile = \"latency\"\nrealtime_limits = true\n"))(&facts);
    let documents = |facts: &Facts| facts.documents.len();
    let standing = applied(&mut facts, &first);
    let without = tuning("profile = \"latency\"\nrealtime_limits = false\n");
    let before = documents(&facts);
    let again = replan(&facts, &standing, &made(without));
    let limits = |id: &&str| id.contains("limits");
    assert_eq!(put_back(&again).len(), 1, "{:?}", put_back(&again));
    assert!(
        put_back(&again).iter().all(limits),
        "{:?}",
        put_back(&again)
    );
    let step = &again.steps[0];
    assert_eq!(step.to, Value::Absent);
    assert!(step.why.contains("no longer needed"), "{step:?}");
    support::simulate(&mut facts, &again);
    assert_eq!(documents(&facts), before - 1);
}

#[test]
fn what_others_have_changed_and_what_a_boot_has_reset_is_not_touched() {
    let mut facts = machine("igc");
    let needs = needs(&facts, 3);
    let made = plan(
        &facts,
        &needs,
        &profile(ProfileName::Latency),
        &FlowQueues::default(),
    );
    let standing = applied(&mut facts, &made);
    let with = |change: fn(&mut SettingStatus)| {
        let mut standing = standing.clone();
        standing.iter_mut().for_each(change);
        replan(&facts, &standing, &nothing).steps
    };
    assert!(!with(|_| {}).is_empty(), "all of it is put back");
    assert_eq!(with(|it| it.in_force = false), [], "somebody else's now");
    assert_eq!(
        with(|it| it.is_of_this_boot = false),
        [],
        "gone with the boot"
    );
    let own_files = with(|it| {
        it.setting = Setting::Document {
            path: String::from("/etc/systemd/system/isolane-tune.service"),
        };
    });
    assert_eq!(own_files, [], "the part that runs at boots");
}

#[test]
fn where_steering_goes_back_first_nothing_is_planned_upon_it() {
    let mut facts = machine("mlx5");
    let needs = needs(&facts, 7);
    let tuning = profile(ProfileName::Latency);
    let made = plan(&facts, &needs, &tuning, &verified(&needs));
    let standing = applied(&mut facts, &made);
    let steered_interface = |step: &Step| {
        matches!(
            step.setting,
            Setting::FlowRule { .. } | Setting::RssTable { .. } | Setting::Channels { .. }
        )
    };
    assert!(made.steps.iter().any(steered_interface), "{made:?}");
    let without = Tuning::from_toml(
        "profile = \"latency\"\nsteering = \"none\"\n",
        "profile.toml",
    );
    let without = without.expect("a profile");
    // Measured on the steering that goes: no thread is raised for it.
    let next = |facts: &Facts| plan(facts, &needs, &without, &verified(&needs));
    let again = replan(&facts, &standing, &next);
    assert_eq!(put_back(&again).len(), again.steps.len(), "{again:?}");
    assert!(again.steps.iter().any(steered_interface), "{again:?}");
    assert!(again.not_planned.iter().any(|it| it.id == "restore.first"));
    assert_eq!(again.preconditions, []);
}

/// Before Linux 6.11 the kernel says so only when one is to be moved; apply notes it as it was found.
#[test]
fn an_interrupt_that_could_not_be_moved_is_not_planned_again() {
    let mut facts = machine("ice");
    let needs = needs(&facts, 7);
    let balanced = profile(ProfileName::Balanced);
    let made = |facts: &Facts| plan(facts, &needs, &balanced, &FlowQueues::default());
    let id = "cores.interrupt-nvme0q0.7";
    let is_planned = |plan: &Plan| plan.steps.iter().any(|step| step.id == id);
    let mut first = made(&facts);
    assert!(is_planned(&first));
    let step = first.steps.iter_mut().find(|step| step.id == id);
    let step = step.expect("a step");
    step.to = step.from.clone();
    let standing = applied(&mut facts, &first);
    assert!(is_planned(&made(&facts)), "facts alone do not tell");
    let again = replan(&facts, &standing, &made);
    assert!(!is_planned(&again));
    assert_eq!(put_back(&again), [""; 0]);
    let refused = again.not_planned.iter();
    let mut refused = refused.filter(|it| it.id == "cores.interrupts-managed");
    let refused = refused.next().expect("a word");
    assert!(refused.why.contains("(nvme0q0)"), "{refused:?}");
    // One that was put back can be moved.
    let back: Vec<SettingStatus> = standing
        .into_iter()
        .map(|it| SettingStatus {
            id: format!("restore.{}", it.id),
            ..it
        })
        .collect();
    assert!(is_planned(&replan(&facts, &back, &made)));
}
