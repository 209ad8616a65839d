//! Tests of plans across boots: preconditions, skipped steps, status.

use super::model::{Fault, Model, here, plan, setting, value};
use super::*;
use crate::plan::{Precondition, When};

fn second() -> Here {
    Here {
        boot_id: String::from("second"),
        ..here()
    }
}

#[test]
fn after_a_boot_files_are_restored_and_what_was_set_since() {
    let second = second();
    let folder = Folder::new();
    let mut machine = Model::new();
    let steps = plan(&machine, &[(0, 1), (1, 1), (4, 1)]);
    execute(&mut machine, &steps, &folder).expect("it can be carried out");
    // The kernel restarts; one setting has another default than before.
    let boot = |machine: &mut Model| {
        machine.set(0, 3);
        machine.set(1, 0);
    };
    boot(&mut machine);
    let mut untouched = machine.clone();
    rollback(&mut untouched, &second, &folder.0).expect("a journal of this machine");
    assert!(untouched.stands(&plan(&Model::new(), &[(0, 3), (1, 0), (4, 0)])));

    // The same, but the boot part sets the kernel settings again before the rollback.
    let folder = Folder::new();
    let mut machine = Model::new();
    execute(&mut machine, &steps, &folder).expect("it can be carried out");
    boot(&mut machine);
    let again = apply(&mut machine, &second, &steps, &folder.0, true, &|| false);
    assert_eq!(again.expect("at boot").changed, ["step.0", "step.1"]);
    assert!(machine.stands(&steps));
    rollback(&mut machine, &second, &folder.0).expect("a journal of this machine");
    assert!(machine.stands(&plan(&Model::new(), &[(0, 3), (1, 0), (4, 0)])));
}

#[test]
fn what_rests_on_where_datagrams_landed_before_a_boot_is_refused() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let before = machine.values.clone();
    let mut of_first = plan(&machine, &[(0, 1), (7, 1)]);
    of_first.boot_id = Some(String::from("first"));
    let mut of_landings = of_first.clone();
    of_landings.steps[1].when = When::ThisBoot;
    for is_boot in [false, true] {
        let refused = apply(
            &mut machine,
            &second(),
            &of_landings,
            &folder.0,
            is_boot,
            &|| false,
        );
        let error = refused.expect_err("another key may be in use");
        assert!(matches!(error, ApplyError::OtherBoot { .. }), "{error}");
        assert!(error.to_string().contains("from a previous boot"));
    }
    let mut relying = of_first.clone();
    relying.preconditions.push(Precondition {
        setting: setting(9),
        value: machine.values[&setting(9)].clone(),
    });
    let refused = apply(&mut machine, &second(), &relying, &folder.0, false, &|| {
        false
    });
    assert!(matches!(refused, Err(ApplyError::OtherBoot { .. })));
    assert_eq!(machine.values, before);
    assert!(!journal_exists(&folder));
    // At boot the steering is checked, and here the rules are as planned.
    let at_boot = apply(&mut machine, &second(), &relying, &folder.0, true, &|| {
        false
    });
    at_boot.expect("its preconditions hold");
    undo_in(&mut machine, &second(), &folder);
    // Plans that are applied: in their own boot, without preconditions, and without a known boot id.
    let mut unknown = of_landings.clone();
    unknown.boot_id = None;
    for (plan, here) in [
        (&of_landings, here()),
        (&of_first, second()),
        (&unknown, second()),
    ] {
        apply(&mut machine, &here, plan, &folder.0, false, &|| false).expect("it holds");
        undo_in(&mut machine, &here, &folder);
        assert_eq!(machine.values, before);
    }
}

fn undo_in(machine: &mut Model, here: &Here, folder: &Folder) {
    rollback(machine, here, &folder.0).expect("a journal of this machine");
}

#[test]
fn at_boot_what_rests_on_steering_that_does_not_stand_is_left_out_and_the_rest_is_set() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let mut steps = plan(&machine, &[(0, 1), (1, 1)]);
    steps.steps[0].id = String::from("interface.interrupt-eth0-rx-1.eth0");
    steps.preconditions.push(Precondition {
        setting: setting(9),
        value: value(9, 1),
    });
    let applied = apply(&mut machine, &second(), &steps, &folder.0, true, &|| false);
    let applied = applied.expect("the rest");
    assert_eq!(applied.changed, ["step.1"]);
    let reported: Vec<String> = applied
        .left_out
        .iter()
        .map(|it| it.why.to_string())
        .collect();
    assert_eq!(
        reported,
        ["it requires rx-gro of eth0 to be off, and it is on"]
    );
    undo_in(&mut machine, &second(), &folder);
    // When a user applies the plan, it is refused, because the user can plan again.
    let refused = apply(&mut machine, &here(), &steps, &folder.0, false, &|| false);
    assert!(matches!(refused, Err(ApplyError::Refused(_))));
}

#[test]
fn at_boot_what_cannot_be_read_is_left_out_and_reported() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let steps = plan(&machine, &[(0, 1), (1, 1), (8, 1), (2, 1)]);
    // A file this kernel lacks, and a queueing discipline that another program has set.
    machine.values.remove(&setting(1));
    let name = String::from("fq");
    let other = Value::Qdisc(crate::facts::RootQdisc::Other { name });
    machine.values.insert(setting(8), other);
    let before = machine.clone();
    let refused = execute(&mut machine, &steps, &folder);
    assert!(matches!(refused, Err(ApplyError::Refused(failed_steps)) if failed_steps.len() == 2));
    let applied = apply(&mut machine, &here(), &steps, &folder.0, true, &|| false);
    let applied = applied.expect("the rest");
    assert_eq!(applied.changed, ["step.0", "step.3"]);
    let left_out: Vec<&str> = applied.left_out.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(left_out, ["step.1", "step.2"]);
    assert_eq!(applied.unexpected, [""; 0]);
    undo(&mut machine, &folder);
    assert!(machine.is_as(&before));
}

#[test]
fn a_step_that_fails_at_boot_is_undone_with_the_rest() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let before = machine.values.clone();
    let steps = plan(&machine, &[(0, 1), (1, 1)]);
    machine.faults.push((1, Fault::Fails));
    let failed = apply(&mut machine, &here(), &steps, &folder.0, true, &|| false);
    assert!(matches!(failed, Err(ApplyError::Undone(_))));
    assert_eq!(machine.values, before);
}

#[test]
fn status_tells_what_was_set_since_the_boot_and_what_was_found_then() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let steps = plan(&machine, &[(0, 1), (1, 1), (4, 1)]);
    execute(&mut machine, &steps, &folder).expect("it can be carried out");
    // The kernel restarts with another default, and the boot part sets one of the two kernel settings again.
    machine.set(0, 3);
    machine.set(1, 0);
    let again = plan(&machine, &[(0, 1)]);
    apply(&mut machine, &second(), &again, &folder.0, true, &|| false).expect("at boot");
    let reported = status(&mut machine, &second(), &folder.0).expect("a journal");
    let reported: Vec<(Setting, bool, Value)> = reported
        .expect("a plan is applied")
        .settings
        .into_iter()
        .map(|it| (it.setting, it.is_of_this_boot, it.before))
        .collect();
    let text = |text: &str| Value::Text(text.into());
    let expected = [
        (setting(1), false, text("0")),
        (setting(4), true, Value::Absent),
        (setting(0), true, text("3")),
    ];
    assert_eq!(reported, expected);
}

#[test]
fn what_ended_with_a_boot_is_reported_until_the_next_plan() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let steps = plan(&machine, &[(0, 1), (1, 1)]);
    execute(&mut machine, &steps, &folder).expect("it can be carried out");
    machine.set(0, 0);
    machine.set(1, 0);
    let reported = |machine: &mut Model| -> Vec<(Setting, bool)> {
        let reported = status(machine, &second(), &folder.0).expect("a journal");
        let settings = reported.expect("a plan is applied").settings.into_iter();
        settings.map(|it| (it.setting, it.in_force)).collect()
    };
    // The boot part can set one of the two settings.
    let again = plan(&machine, &[(0, 1)]);
    apply(&mut machine, &second(), &again, &folder.0, true, &|| false).expect("at boot");
    assert_eq!(
        reported(&mut machine),
        [(setting(1), false), (setting(0), true)]
    );
    // A plan made before the boot does not drop the other setting.
    apply(&mut machine, &second(), &again, &folder.0, false, &|| false)
        .expect("the settings are in effect");
    assert_eq!(reported(&mut machine).len(), 2);
    // Learning a receive hash drops no setting either.
    let mut since = again;
    since.boot_id = Some(second().boot_id);
    let state = State::make(&folder.0).expect("a temporary folder");
    let learning = Occasion::Learning;
    apply_locked(&mut machine, &second(), &since, &state, learning, &|| false)
        .expect("the settings are in effect");
    assert_eq!(reported(&mut machine).len(), 2);
    // A plan made since the boot would contain the other setting if it needed it, so the setting is dropped.
    apply(&mut machine, &second(), &since, &folder.0, false, &|| false)
        .expect("the settings are in effect");
    assert_eq!(reported(&mut machine), [(setting(0), true)]);
    let more = plan(&machine, &[(2, 1)]);
    apply(&mut machine, &second(), &more, &folder.0, false, &|| false).expect("a plan");
    assert_eq!(
        reported(&mut machine),
        [(setting(0), true), (setting(2), true)]
    );
}

#[test]
fn what_stands_after_a_boot_is_looked_after_though_a_plan_does_not_mention_it() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let steps = plan(&machine, &[(0, 1), (1, 1)]);
    execute(&mut machine, &steps, &folder).expect("it can be carried out");
    // The kernel's default of one setting equals the applied value.
    machine.set(0, 0);
    let mut since = plan(&machine, &[(0, 1)]);
    since.boot_id = Some(second().boot_id);
    apply(&mut machine, &second(), &since, &folder.0, false, &|| false).expect("a plan");
    machine.set(1, 2);
    let reported = status(&mut machine, &second(), &folder.0).expect("a journal");
    let reported = reported.expect("a plan is applied").settings;
    let of_one = reported.iter().find(|it| it.setting == setting(1));
    assert!(of_one.is_some_and(|it| !it.in_force), "{reported:?}");
}

#[test]
fn a_number_of_an_earlier_boot_is_not_looked_at() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let pin = Setting::Attribute {
        path: String::from("/proc/irq/45/smp_affinity_list"),
    };
    let mut steps = plan(&machine, &[(0, 1)]);
    steps.steps[0].setting = pin.clone();
    machine
        .values
        .insert(pin.clone(), steps.steps[0].from.clone());
    execute(&mut machine, &steps, &folder).expect("it can be carried out");
    // The interrupt number belongs to another device now, whose affinity happens to be the planned one.
    let reported = status(&mut machine, &second(), &folder.0).expect("a journal");
    let reported = reported.expect("a plan is applied").settings;
    assert_eq!(reported.len(), 1);
    assert!(!reported[0].in_force && reported[0].now.is_none() && !reported[0].is_of_this_boot);
}
