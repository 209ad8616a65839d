//! Tests of one journal across many plans and boots.

use std::io;

use super::model::{Model, here, plan, setting};
use super::*;
use crate::apply::journal::{Contents, Journal, parse};
use crate::limits::MAX_JOURNAL_BYTES;

pub(super) fn at_boot(number: u32) -> Here {
    Here {
        boot_id: number.to_string(),
        ..here()
    }
}

pub(super) fn journal_bytes(folder: &Folder) -> u64 {
    let metadata = fs::metadata(folder.0.join("tune.journal"));
    metadata.expect("it is kept").len()
}

/// Changes by another program, as number and value of a setting of the model that has no side effects.
fn foreign() -> impl Strategy<Value = (usize, u32)> {
    (prop_oneof![0..4_usize, Just(model::SETTINGS - 1)], 0..4_u32)
}

#[test]
fn after_a_thousand_boots_the_journal_is_short_and_restores_what_was_found_first() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let steps = plan(&machine, &[(0, 1), (1, 1), (4, 1)]);
    let interrupt = |boot: u32| Setting::Attribute {
        path: format!("/proc/irq/{boot}/smp_affinity_list"),
    };
    let mut longest = 0;
    for boot in 0..1_000 {
        // The kernel restarts, and interrupts get other numbers.
        machine.set(0, 3);
        machine.set(1, 0);
        machine
            .values
            .retain(|setting, _| !setting.to_string().contains("/irq/"));
        let all_cores = Value::Text(String::from("0-3"));
        machine.values.insert(interrupt(boot), all_cores.clone());
        let mut steps = steps.clone();
        steps.steps.push(Step {
            id: String::from("interrupt"),
            setting: interrupt(boot),
            from: all_cores,
            to: Value::Text(String::from("1")),
            ..steps.steps[0].clone()
        });
        let here = at_boot(boot);
        let applied = apply(&mut machine, &here, &steps, &folder.0, true, &|| false);
        applied.expect("it can be carried out");
        match boot {
            0..3 => longest = longest.max(journal_bytes(&folder)),
            _ => assert!(journal_bytes(&folder) < 2 * longest, "after {boot} boots"),
        }
    }
    let here = at_boot(999);
    let reported = status(&mut machine, &here, &folder.0).expect("a journal");
    let reported = reported.expect("a plan is applied");
    assert!(reported.is_complete && reported.is_of_this_boot);
    assert!(
        reported.settings.iter().all(|setting| setting.in_force),
        "{reported:?}"
    );
    assert_eq!(
        reported.settings.len(),
        4,
        "interrupts of earlier boots are gone"
    );
    rollback(&mut machine, &here, &folder.0).expect("a journal of this machine");
    assert!(machine.stands(&plan(&Model::new(), &[(0, 3), (1, 0), (4, 0)])));
    let restored = &machine.values[&interrupt(999)];
    assert_eq!(*restored, Value::Text(String::from("0-3")));
}

#[test]
fn what_would_make_the_journal_too_long_is_refused_and_leaves_it_as_it_was() {
    let folder = Folder::new();
    let state = State::make(&folder.0).expect("a temporary folder");
    let found = |number: usize| {
        Entry::Found(Found {
            boot_id: String::from("first"),
            id: number.to_string(),
            setting: setting(4),
            value: Value::Text("a".repeat(1 << 20)),
            to: None,
        })
    };
    let begin = Entry::begin(&here(), "test", Vec::new());
    let mut journal = Journal::begin(&state, None, "first", [begin]).expect("there is room");
    let mut numbers = 0..;
    let (refused, before) = loop {
        let before = journal_bytes(&folder);
        let number = numbers.next().expect("without end");
        if let Err(error) =
            journal.append([found(number), Entry::begin(&here(), "test", Vec::new())])
        {
            break (error, before);
        }
    };
    assert_eq!(refused.error.kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(journal_bytes(&folder), before);
    journal.append([Entry::Undone]).expect("its end has room");
    assert!(journal_bytes(&folder) <= MAX_JOURNAL_BYTES);
    let contents = journal::read(&state).expect("it can be read");
    assert_eq!(contents.expect("it is there").check(), Ok(()));
}

#[test]
fn what_a_plan_found_that_was_undone_is_forgotten() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let first = plan(&machine, &[(0, 1)]);
    execute(&mut machine, &first, &folder).expect("it can be carried out");
    machine.set(1, 2);
    let second = plan(&machine, &[(1, 1), (2, 1)]);
    machine.faults.push((2, Fault::Fails));
    execute(&mut machine, &second, &folder).expect_err("its second step fails");
    let reported = status(&mut machine, &here(), &folder.0).expect("a journal");
    let reported = reported.expect("the first plan is applied");
    assert_eq!((reported.settings.len(), reported.is_complete), (1, true));
    // Another program changes a setting that only the undone second plan contained.
    machine.set(1, 3);
    undo(&mut machine, &folder);
    assert!(machine.stands(&plan(&Model::new(), &[(0, 0), (1, 3), (2, 0)])));
}

#[test]
fn a_journal_of_another_version_is_left_alone() {
    for form in ["isolane/journal/9", "isolane/journal/3"] {
        let folder = Folder::new();
        let mut machine = Model::new();
        let steps = plan(&machine, &[(0, 1)]);
        execute(&mut machine, &steps, &folder).expect("it can be carried out");
        let path = folder.0.join("tune.journal");
        let known = fs::read_to_string(&path).expect("it is kept");
        // First line as another version writes it.
        let said = r#"{"number":1,"entry":{"kind":"begin","schema":"FORM","more":1}"#;
        let said = said.replace("FORM", form);
        let line = journal::with_checksum(&said);
        let rest = known.split_once('\n').expect("several lines").1;
        fs::write(&path, format!("{line}{rest}")).expect("ours");
        let refused = [
            execute(&mut machine, &steps, &folder).map(drop),
            status(&mut machine, &here(), &folder.0).map(drop),
        ];
        let undone = rollback(&mut machine, &here(), &folder.0);
        let is_ours = form.ends_with('3');
        for refused in refused {
            let is_form = matches!(refused, Err(ApplyError::Form(_)));
            let is_broken = matches!(refused, Err(ApplyError::Journal(_)));
            assert_eq!((is_form, is_broken), (!is_ours, is_ours), "{refused:?}");
        }
        assert_eq!(undone.is_ok(), is_ours, "{undone:?}");
        assert_eq!(machine.stands(&steps), !is_ours);
    }
}

#[test]
fn a_plan_of_another_version_changes_nothing() {
    let folder = Folder::new();
    let mut machine = Model::new();
    let before = machine.values.clone();
    let mut steps = plan(&machine, &[(0, 1)]);
    steps.schema = String::from("isolane/plan/9");
    let refused = execute(&mut machine, &steps, &folder);
    assert!(matches!(refused, Err(ApplyError::Form(_))), "{refused:?}");
    assert_eq!(machine.values, before);
}

#[test]
fn damaged_journals_are_kept_each() {
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).expect("a temporary folder");
    let mut machine = Model::new();
    let mut kept = Vec::new();
    for text in ["a\n", "b\n", "c\n"] {
        fs::write(folder.0.join("tune.journal"), text).expect("ours");
        let (_, path) = undo(&mut machine, &folder).broken.expect("it is damaged");
        kept.push((path, text));
    }
    for (path, text) in kept {
        assert_eq!(fs::read_to_string(path).expect("it is kept"), text);
    }
}

/// Meaning of a journal: original values, and applied settings.
fn meaning(contents: &Contents, boot_id: &str) -> (Vec<(Setting, Value)>, Option<Vec<String>>) {
    let applied = contents.outcome().map(|applied| {
        let settings = applied.settings.iter();
        let mut reported: Vec<String> = settings
            .map(|set| format!("{} {:?} {:?} {:?}", set.id, set.setting, set.before, set.to))
            .collect();
        reported.sort();
        reported.push(format!("{} {}", applied.profile, applied.is_complete));
        reported.push((applied.boot_id == boot_id).to_string());
        reported
    });
    (contents.originals(boot_id), applied)
}

/// Plan in a journal: boots since the previous plan, whether the plan ran at boot, settings found and whether they were
/// set, and the plan's end.
type Record = (u32, bool, Vec<(usize, u32, bool)>, u8);

fn record() -> impl Strategy<Value = Record> {
    let found = (0..model::SETTINGS, 0..4_u32, any::<bool>());
    let plan = prop::collection::vec(found, 1..6);
    (0..2_u32, any::<bool>(), plan, 0..3_u8)
}

fn entries(records: &[Record]) -> Vec<Entry> {
    let mut boot = 0;
    let mut entries = Vec::new();
    for (boots, is_boot, found, end) in records {
        boot += boots;
        let dropped = match is_boot {
            true => Vec::new(),
            false => (0..model::SETTINGS).step_by(2).map(setting).collect(),
        };
        let begin = Entry::begin(&at_boot(boot), &boot.to_string(), dropped);
        entries.push(begin);
        for (place, (number, which, is_set)) in found.iter().enumerate() {
            let to = model::value(*number, *which);
            entries.push(Entry::Found(Found {
                boot_id: boot.to_string(),
                id: format!("step.{place}"),
                setting: setting(*number),
                value: model::value(*number, (*which + boot) % 4),
                to: is_set.then_some(to),
            }));
        }
        entries.extend(match end {
            0 => Some(Entry::Applied),
            1 => Some(Entry::Undone),
            _ => None,
        });
    }
    entries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_journal_written_anew_says_the_same(records in prop::collection::vec(record(), 1..6)) {
        let entries = entries(&records);
        let boot_id = records.iter().map(|(boots, ..)| boots).sum::<u32>().to_string();
        let folder = Folder::new();
        let state = State::make(&folder.0).expect("a temporary folder");
        Journal::begin(&state, None, &boot_id, entries).expect("there is room");
        let read = || journal::read(&state).expect("it can be read").expect("it is there");
        let before = read();
        prop_assert_eq!(before.check(), Ok(()));
        Journal::begin(&state, Some(&before), &boot_id, []).expect("it can be written");
        let after = read();
        // If all plans were undone, the new journal is empty until the next plan writes its `Begin`.
        prop_assert!(after.check().is_ok() || after.entries.is_empty());
        prop_assert_eq!(meaning(&before, &boot_id), meaning(&after, &boot_id));
        prop_assert!(after.entries.len() <= before.entries.len());
        Journal::begin(&state, Some(&after), &boot_id, []).expect("it can be written");
        prop_assert_eq!(&read().entries, &after.entries);
    }

    #[test]
    fn what_others_set_between_plans_is_theirs(
        plans in prop::collection::vec((steps(), any::<bool>(), foreign()), 1..5),
    ) {
        let folder = Folder::new();
        let mut machine = Model::new();
        // Values before the first completed plan that changed each setting.
        let mut originals: HashMap<Setting, Value> = HashMap::new();
        for (steps, is_failing, (number, which)) in &plans {
            let before = machine.values.clone();
            let plan = plan(&machine, steps);
            machine.operations = 0;
            machine.faults = is_failing.then_some((1, Fault::Fails)).into_iter().collect();
            if let Ok(applied) = execute(&mut machine, &plan, &folder) {
                let is_changed = |step: &&Step| applied.changed.contains(&step.id);
                for step in plan.steps.iter().filter(is_changed) {
                    let mut model = machine.clone();
                    model.values.clone_from(&before);
                    for setting in model.side_effects(&step.setting).into_iter().chain([step.setting.clone()]) {
                        let value = before[&setting].clone();
                        originals.entry(setting).or_insert(value);
                    }
                }
            }
            machine.set(*number, *which);
        }
        machine.faults.clear();
        let mut expected = machine.values.clone();
        expected.extend(originals);
        undo(&mut machine, &folder);
        prop_assert_eq!(&machine.values, &expected);
        prop_assert!(!journal_exists(&folder));
    }
}

#[test]
fn an_empty_journal_tells_nothing() {
    let contents = parse(b"");
    assert_eq!(contents.outcome(), None);
    assert!(contents.originals("first").is_empty());
}
