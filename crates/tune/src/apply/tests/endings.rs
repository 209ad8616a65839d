//! Tests of how plans end: with and without a writable journal, and with and without their preconditions.

use std::cell::Cell;

use super::journals::{at_boot, journal_bytes};
use super::model::{Model, here, plan, setting};
use super::*;

#[test]
fn a_plan_killed_before_it_could_say_so_is_complete_once_it_is_called_again() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let steps = plan(&machine, &[(0, 1), (1, 1)]);
    execute(&mut machine, &steps, &folder).expect("it can be carried out");
    let path = folder.0.join("tune.journal");
    let said = fs::read_to_string(&path).expect("it is kept");
    let unsaid = said.trim_end().rfind('\n').expect("several lines") + 1;
    fs::write(&path, &said[..unsaid]).expect("ours");
    let reported = |machine: &mut Model, here: &Here| {
        let reported = status(machine, here, &folder.0).expect("a journal");
        let reported = reported.expect("a plan is applied");
        (
            reported.is_complete,
            reported.is_of_this_boot,
            reported.settings.len(),
        )
    };
    assert_eq!(reported(&mut machine, &here()), (false, true, 2));
    execute(&mut machine, &steps, &folder).expect("nothing is left to do");
    assert_eq!(reported(&mut machine, &here()), (true, true, 2));
    // All settings persist across the boot.
    assert_eq!(reported(&mut machine, &at_boot(2)), (true, false, 2));
    let again = apply(&mut machine, &at_boot(2), &steps, &folder.0, true, &|| {
        false
    });
    assert!(again.expect("nothing is left to do").changed.is_empty());
    assert_eq!(reported(&mut machine, &at_boot(2)), (true, true, 2));
    let bytes = journal_bytes(&folder);
    let again = apply(&mut machine, &at_boot(2), &steps, &folder.0, true, &|| {
        false
    });
    again.expect("nothing is left to do");
    assert_eq!(journal_bytes(&folder), bytes, "nothing is left to tell");
}

/// Machine on which another program changes a setting at one operation.
struct Meddling<'a> {
    machine: &'a mut Model,
    operations: Cell<usize>,
    meddle: &'a dyn Fn(),
}

impl Machine for Meddling<'_> {
    fn read(&mut self, setting: &Setting) -> Result<Value, SettingError> {
        self.machine.read(setting)
    }

    fn write(&mut self, setting: &Setting, value: &Value) -> Result<(), SettingError> {
        self.operations.set(self.operations.get() + 1);
        if self.operations.get() == 2 {
            (self.meddle)();
        }
        self.machine.write(setting, value)
    }

    fn side_effects(&mut self, setting: &Setting) -> Vec<Setting> {
        self.machine.side_effects(setting)
    }
}

fn meddling<'a>(machine: &'a mut Model, meddle: &'a dyn Fn()) -> Meddling<'a> {
    Meddling {
        machine,
        operations: Cell::new(0),
        meddle,
    }
}

#[test]
fn what_cannot_be_recorded_is_undone() {
    let folder = Folder::new();
    let journal = folder.0.join("tune.journal");
    let mut machine = Model::new();
    let before = machine.values.clone();
    let steps = plan(&machine, &[(0, 1), (1, 1), (4, 1)]);
    let remove = || fs::remove_file(&journal).expect("ours");
    let replace = || {
        remove();
        fs::create_dir(&journal).expect("ours");
    };
    let meddles: [(&dyn Fn(), bool); 2] = [(&remove, true), (&replace, false)];
    for (meddle, is_closed) in meddles {
        let mut meddled = meddling(&mut machine, meddle);
        let done = apply(&mut meddled, &here(), &steps, &folder.0, false, &|| false);
        let Err(ApplyError::Undone(undone)) = done else {
            panic!("{done:?}")
        };
        assert!(
            matches!(undone.why, StepError::JournalNotWritten(_)),
            "{undone:?}"
        );
        assert_eq!((undone.step, undone.left.len()), (None, 0));
        assert_eq!(undone.journal_not_closed.is_none(), is_closed);
        assert_eq!(machine.values, before);
    }
}

#[test]
fn a_rollback_that_cannot_take_its_journal_away_says_so() {
    let folder = Folder::new();
    let journal = folder.0.join("tune.journal");
    let mut machine = Model::new();
    let before = machine.values.clone();
    let steps = plan(&machine, &[(0, 1), (1, 1), (4, 1)]);
    execute(&mut machine, &steps, &folder).expect("it can be carried out");
    let replace = || {
        fs::remove_file(&journal).expect("ours");
        fs::create_dir(&journal).expect("ours");
    };
    let done = rollback(&mut meddling(&mut machine, &replace), &here(), &folder.0);
    let done = done.expect("all is restored");
    assert!(done.restored.expect("a journal").left.is_empty());
    assert_eq!(
        done.journal_not_closed.expect("it is still there").path,
        journal
    );
    assert_eq!(machine.values, before);
}

#[test]
fn what_a_plan_relies_on_must_still_stand_at_its_end() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let before = machine.values.clone();
    // A new number of queues resets the table that the plan relies on.
    let mut steps = plan(&machine, &[(0, 1), (6, 2)]);
    steps.preconditions = vec![Precondition {
        setting: setting(7),
        value: machine.values[&setting(7)].clone(),
    }];
    match execute(&mut machine, &steps, &folder) {
        Err(ApplyError::Undone(undone)) => {
            let step = undone.step.expect("a place");
            assert_eq!(step, (String::from("relied-on"), setting(7)));
            assert!(matches!(undone.why, StepError::ChangedMeanwhile { .. }));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(machine.values, before);
}

#[test]
fn what_a_plan_sets_may_be_relied_on_in_other_words() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let setting = Setting::Attribute {
        path: String::from("/proc/irq/9/smp_affinity_list"),
    };
    let cores = |text: &str| Value::Text(text.into());
    machine.values.insert(setting.clone(), cores("0-3"));
    let mut steps = plan(&machine, &[(0, 1)]);
    let step = Step {
        setting: setting.clone(),
        from: cores("0-3"),
        to: cores("0-1"),
        ..steps.steps[0].clone()
    };
    steps.steps = vec![step];
    steps.preconditions = vec![Precondition {
        setting,
        value: cores("0,1"),
    }];
    execute(&mut machine, &steps, &folder).expect("it sets what it relies on");
}
