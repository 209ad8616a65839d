//! Tests of plans that are disturbed at any operation: a write fails or is ignored, a device disappears, or the process
//! is killed. Incomplete plans are undone at once, complete plans by a rollback.

mod boots;
mod endings;
mod journals;
mod model;
mod prefixes;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use self::model::{Fault, Model, here, plan};
use super::*;
use crate::apply::rollback;
use crate::plan::Precondition;
use crate::test_folder::Folder;

fn execute(machine: &mut Model, plan: &Plan, folder: &Folder) -> Result<Applied, ApplyError> {
    apply(machine, &here(), plan, &folder.0, false, &|| false)
}

fn undo(machine: &mut Model, folder: &Folder) -> RolledBack {
    rollback(machine, &here(), &folder.0).expect("a journal of this machine, or none")
}

fn journal_exists(folder: &Folder) -> bool {
    folder.0.join("tune.journal").exists()
}

#[test]
fn a_plan_is_carried_out_once_and_undone_once() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let before = machine.values.clone();
    let plan = plan(&machine, &[(0, 1), (4, 1), (6, 2), (7, 1), (8, 1)]);
    let applied = execute(&mut machine, &plan, &folder).expect("it can be carried out");
    assert_eq!(applied.changed.len(), 5);
    assert!(machine.stands(&plan));
    let applied = execute(&mut machine, &plan, &folder).expect("again");
    assert_eq!((applied.changed.len(), applied.already.len()), (0, 5));
    let restored = undo(&mut machine, &folder).restored.expect("a journal");
    assert!(restored.left.is_empty(), "{restored:?}");
    assert_eq!(machine.values, before);
    assert_eq!(undo(&mut machine, &folder), RolledBack::default());
}

#[test]
fn what_was_found_first_is_restored_however_many_plans_came_after() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let before = machine.values.clone();
    for value in [1, 2, 3] {
        let plan = plan(&machine, &[(0, value), (6, value)]);
        execute(&mut machine, &plan, &folder).expect("it can be carried out");
    }
    // A failing plan leaves the settings of earlier plans as they are.
    let third = machine.values.clone();
    let plan = plan(&machine, &[(0, 1), (1, 1)]);
    machine.faults.push((1, Fault::Fails));
    machine.operations = 0;
    execute(&mut machine, &plan, &folder).expect_err("its second step fails");
    assert_eq!(machine.values, third);
    undo(&mut machine, &folder);
    assert_eq!(machine.values, before);
}

#[test]
fn an_interrupt_that_cannot_be_moved_is_left_out_and_the_rest_is_carried_out() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let before = machine.values.clone();
    let steps = plan(&machine, &[(0, 1), (1, 1), (2, 1)]);
    machine.faults.push((1, Fault::Immovable));
    let applied = execute(&mut machine, &steps, &folder).expect("the rest");
    assert_eq!(applied.changed, ["step.0", "step.2"]);
    let left_out: Vec<&str> = applied.left_out.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(left_out, ["step.1"]);
    assert_eq!(
        machine.values[&model::setting(1)],
        before[&model::setting(1)]
    );
    // The skipped setting has its original value, and status does not report this as a change by others.
    let status = status(&mut machine, &here(), &folder.0).expect("a journal");
    let status = status.expect("a plan was carried out");
    assert!(status.settings.iter().all(|it| it.in_force), "{status:?}");
    undo(&mut machine, &folder);
    assert_eq!(machine.values, before);
}

#[test]
fn an_interrupt_of_another_device_that_goes_or_moves_meanwhile_does_not_stop_the_plan() {
    for (operation, fault) in [(1, Fault::Fails), (1, Fault::Ignores)] {
        let folder = Folder::new();
        let mut machine = Model::new();
        let before = machine.values.clone();
        let mut steps = plan(&machine, &[(0, 1), (1, 1), (2, 1)]);
        steps.steps[1].id = String::from("cores.interrupt-xhci_hcd.3");
        machine.faults.push((operation, fault));
        let applied = execute(&mut machine, &steps, &folder).expect("the rest");
        assert_eq!(applied.changed, ["step.0", "step.2"], "{fault:?}");
        assert_eq!(applied.left_out.len(), 1, "{fault:?}");
        let status = status(&mut machine, &here(), &folder.0).expect("a journal");
        let status = status.expect("a plan was carried out");
        assert!(status.settings.iter().all(|it| it.in_force), "{status:?}");
        undo(&mut machine, &folder);
        assert_eq!(machine.values, before, "{fault:?}");
    }
    // The interrupt disappeared, or was moved, after planning.
    let folder = Folder::new();
    let mut machine = Model::new();
    let mut steps = plan(&machine, &[(0, 1), (1, 1)]);
    steps.steps[1].id = String::from("cores.interrupt-xhci_hcd.3");
    machine.values.remove(&model::setting(1));
    let applied = execute(&mut machine, &steps, &folder).expect("the rest");
    assert_eq!(applied.changed, ["step.0"]);
    assert_eq!(applied.left_out.len(), 1);
}

#[test]
fn a_stale_plan_and_one_of_another_machine_change_nothing() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let mut stale = plan(&machine, &[(0, 1), (1, 1)]);
    machine.set(1, 3);
    let before = machine.values.clone();
    match execute(&mut machine, &stale, &folder) {
        Err(ApplyError::Refused(failed_steps)) => {
            assert_eq!(failed_steps.len(), 1);
            assert_eq!(failed_steps[0].id, "step.1");
        }
        other => panic!("{other:?}"),
    }
    // At boot any current value is accepted, and the planned one is set.
    let at_boot = apply(&mut machine, &here(), &stale, &folder.0, true, &|| false);
    assert_eq!(at_boot.expect("at boot").unexpected, ["step.1"]);
    undo(&mut machine, &folder);
    assert_eq!(machine.values, before);

    stale.machine.machine_id = Some(String::from("another"));
    let foreign = execute(&mut machine, &stale, &folder);
    assert!(matches!(foreign, Err(ApplyError::Foreign { .. })));
    assert_eq!(machine.values, before);
    assert!(!journal_exists(&folder));
}

#[test]
fn what_a_plan_relies_on_must_stand_or_be_set_by_it() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let before = machine.values.clone();
    let mut plan = plan(&machine, &[(0, 1), (7, 1)]);
    let relied_on = |machine: &Model, number: usize| Precondition {
        setting: model::setting(number),
        value: machine.values[&model::setting(number)].clone(),
    };
    plan.preconditions = vec![relied_on(&machine, 9)];
    machine.set(9, 1);
    match execute(&mut machine, &plan, &folder) {
        Err(ApplyError::Refused(failed_steps)) => {
            assert_eq!(
                (failed_steps.len(), failed_steps[0].id.as_str()),
                (1, "relied-on")
            );
        }
        other => panic!("{other:?}"),
    }
    machine.set(9, 0);
    assert_eq!(machine.values, before);
    // A precondition that the plan itself establishes need not hold before.
    plan.preconditions.push(Precondition {
        setting: model::setting(7),
        value: plan.steps[1].to.clone(),
    });
    execute(&mut machine, &plan, &folder).expect("its preconditions hold, or will");
}

#[test]
fn a_driver_that_accepts_and_ignores_is_named_and_all_is_undone() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let before = machine.values.clone();
    let plan = plan(&machine, &[(0, 1), (1, 2), (2, 1)]);
    machine.faults.push((1, Fault::Ignores));
    match execute(&mut machine, &plan, &folder) {
        Err(ApplyError::Undone(undone)) => {
            assert_eq!(undone.step.expect("at a step").0, "step.1");
            let ignored = StepError::Unreadable(SettingError::Ignored {
                found: Box::new(Value::Text(String::from("0"))),
            });
            assert_eq!(undone.why, ignored);
            assert!(undone.left.is_empty());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(machine.values, before);
    assert!(!journal_exists(&folder));
}

#[test]
fn what_could_not_be_put_back_is_not_replaced() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let name = String::from("fq");
    let other = Value::Qdisc(crate::facts::RootQdisc::Other { name });
    machine.values.insert(model::setting(8), other);
    let before = machine.values.clone();
    let plan = plan(&machine, &[(0, 1), (8, 1)]);
    let refused = execute(&mut machine, &plan, &folder);
    assert!(
        matches!(refused, Err(ApplyError::Refused(_))),
        "{refused:?}"
    );
    assert_eq!(machine.values, before);
}

#[test]
fn a_machine_is_known_by_its_id_and_by_its_name_where_there_is_none() {
    let identity = |hostname: &str, id: Option<&str>| Identity {
        hostname: hostname.into(),
        machine_id: id.map(String::from),
    };
    let own = identity("a", Some("1"));
    assert!(own.is_same_as(&identity("b", Some("1"))));
    assert!(!own.is_same_as(&identity("a", Some("2"))));
    assert!(own.is_same_as(&identity("a", None)));
    assert!(!own.is_same_as(&identity("b", None)));
}

#[test]
fn a_signal_between_steps_undoes_all() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let before = machine.values.clone();
    let plan = plan(&machine, &[(0, 1), (1, 2), (2, 1)]);
    for looks in 0..4 {
        let asked = AtomicUsize::new(0);
        let is_stopped = || asked.fetch_add(1, Ordering::Relaxed) >= looks;
        let stopped = apply(&mut machine, &here(), &plan, &folder.0, false, &is_stopped);
        match stopped {
            Err(ApplyError::Undone(undone)) => assert_eq!(undone.why, StepError::Stopped),
            other => panic!("{other:?}"),
        }
        assert_eq!(machine.values, before, "stopped after {looks} steps");
    }
}

#[test]
fn two_at_once_are_refused() {
    let folder = Folder::new();
    let state = State::make(&folder.0).expect("a temporary folder");
    let held = state.lock().expect("no other call has it");
    let mut machine = Model::new();
    let plan = plan(&machine, &[(0, 1)]);
    match execute(&mut machine, &plan, &folder) {
        Err(ApplyError::State(error)) => assert!(error.is_busy()),
        other => panic!("{other:?}"),
    }
    drop(held);
    execute(&mut machine, &plan, &folder).expect("it is free");
}

/// A user who can write to the parent folder renames the checked folder, and creates another in its place.
#[test]
fn the_folder_that_was_looked_at_is_used_whatever_takes_its_place() {
    let folder = Folder::new();
    let (path, moved) = (folder.0.join("state"), folder.0.join("moved"));
    let state = State::make(&path).expect("a temporary folder");
    let swap = |from: &Path, to: &Path| {
        fs::rename(from, to).expect("ours");
        fs::create_dir(from).expect("ours");
    };
    swap(&path, &moved);
    let _lock = state.lock().expect("no other call has it");
    let mut machine = Model::new();
    let plan = plan(&machine, &[(0, 1)]);
    let locked = |machine: &mut Model| {
        apply_locked(
            machine,
            &here(),
            &plan,
            &state,
            Occasion::Requested,
            &|| false,
        )
    };
    locked(&mut machine).expect("it can be carried out");
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("ours");
        let names = entries.map(|entry| entry.expect("ours").file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    assert_eq!(names(&moved), ["tune.journal", "tune.lock"]);
    assert!(names(&path).is_empty(), "{:?}", names(&path));

    // The forged journal is ignored: root would write its values to the machine.
    let forged = fs::read(moved.join("tune.journal")).expect("ours");
    let forged = String::from_utf8(forged).expect("JSON");
    fs::write(path.join("tune.journal"), &forged[..forged.len() / 2]).expect("ours");
    let done = rollback_locked(&mut machine, &here(), &state).expect("it can be read");
    assert!(done.broken.is_none() && done.restored.is_some());
    assert_eq!(machine.values, Model::new().values);
    assert_eq!(names(&moved), ["tune.lock"]);
    assert_eq!(names(&path), ["tune.journal"]);
}

#[test]
fn status_tells_what_others_have_undone_since() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let now = |machine: &mut Model| status(machine, &here(), &folder.0).expect("a journal or none");
    assert_eq!(now(&mut machine), None);
    let plan = plan(&machine, &[(0, 1), (1, 2)]);
    execute(&mut machine, &plan, &folder).expect("it can be carried out");
    let reported = now(&mut machine).expect("a plan is applied");
    assert!(reported.is_complete && reported.is_of_this_boot);
    assert!(reported.settings.iter().all(|setting| setting.in_force));
    machine.set(1, 3);
    let reported = now(&mut machine).expect("a plan is applied");
    let undone = reported.settings.iter().filter(|setting| !setting.in_force);
    let undone: Vec<&str> = undone.map(|setting| setting.id.as_str()).collect();
    assert_eq!(undone, ["step.1"]);
    let other_boot = Here {
        boot_id: String::from("another"),
        ..here()
    };
    let reported = status(&mut machine, &other_boot, &folder.0).expect("a journal");
    assert!(!reported.expect("a plan is applied").is_of_this_boot);
}

fn steps() -> impl Strategy<Value = Vec<(usize, u32)>> {
    prop::collection::vec((0..model::SETTINGS, 0..4_u32), 1..10)
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::Fails),
        Just(Fault::Ignores),
        Just(Fault::Vanishes)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_plan_is_carried_out_to_its_end_or_not_at_all(
        steps in steps(),
        faults in prop::collection::vec((0..12_usize, fault()), 0..3),
    ) {
        let folder = Folder::new();
        let mut machine = Model::new();
        let before = machine.clone();
        let plan = plan(&machine, &steps);
        machine.faults = faults;
        match execute(&mut machine, &plan, &folder) {
            Ok(_) => {
                prop_assert!(machine.has_vanished || machine.stands(&plan));
                undo(&mut machine, &folder);
            }
            Err(ApplyError::Undone(undone)) => {
                prop_assert!(undone.left.is_empty(), "{undone:?}");
            }
            Err(ApplyError::Refused(_)) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
        prop_assert!(machine.is_as(&before), "{:?}\n{:?}", machine.values, before.values);
        prop_assert!(!journal_exists(&folder));
    }

    #[test]
    fn a_process_killed_at_any_operation_leaves_a_journal_that_restores(
        steps in steps(),
        killed_at in 0..24_usize,
        rolled_back_until in 0..12_usize,
    ) {
        let folder = Folder::new();
        let mut machine = Model::new();
        let before = machine.clone();
        let plan = plan(&machine, &steps);
        // The process is dead: nothing more reaches the machine.
        machine.dead_from = Some(killed_at);
        let _ = execute(&mut machine, &plan, &folder);
        // The rollback is killed too, and repeated.
        machine.operations = 0;
        machine.dead_from = Some(rolled_back_until);
        let _ = rollback(&mut machine, &here(), &folder.0);
        machine.dead_from = None;
        undo(&mut machine, &folder);
        prop_assert!(machine.is_as(&before), "{:?}\n{:?}", machine.values, before.values);
    }
}
