//! Tests of damaged journals: every readable original value is restored.

use std::fs;

use super::model::{Model, here, plan};
use super::*;
use crate::apply::journal;

/// Steps of these tests: an attribute, a document in a missing folder, and a device's queues, table and offload.
const STEPS: [(usize, u32); 5] = [(0, 1), (4, 1), (6, 2), (7, 1), (9, 1)];

/// Bytes of a journal, and the machine after each operation of its plan.
fn recorded() -> (Vec<u8>, Model, Vec<Model>) {
    let before = Model::new();
    let plan = plan(&before, &STEPS);
    let mut states = Vec::new();
    let mut journal = Vec::new();
    for operations in 0.. {
        let folder = Folder::new();
        let mut machine = before.clone();
        machine.dead_from = Some(operations);
        let ended = execute(&mut machine, &plan, &folder).is_ok();
        machine.dead_from = None;
        states.push(machine);
        if ended {
            journal = fs::read(folder.0.join("tune.journal")).expect("it is kept");
            break;
        }
    }
    (journal, before, states)
}

/// Settings that a journal can restore. A folder is excluded while an unlisted document is in it.
fn readable(bytes: &[u8]) -> Vec<Setting> {
    let originals = journal::parse(bytes).originals(&here().boot_id).into_iter();
    originals
        .map(|(setting, _)| setting)
        .filter(|setting| !matches!(setting, Setting::Folder { .. }))
        .collect()
}

fn with_journal(bytes: &[u8]) -> Folder {
    let folder = Folder::new();
    State::make(&folder.0).expect("a temporary folder");
    fs::write(folder.0.join("tune.journal"), bytes).expect("ours");
    folder
}

#[test]
fn a_journal_cut_in_its_last_line_restores_whatever_was_done_by_then() {
    let (bytes, before, states) = recorded();
    assert!(states.len() > STEPS.len());
    // The last line is appended after all changes: power may fail while it is written.
    for length in last_line(&bytes)..=bytes.len() {
        for state in &states {
            let folder = with_journal(&bytes[..length]);
            let mut machine = state.clone();
            let done = undo(&mut machine, &folder);
            assert_eq!(done.broken, None, "cut at {length}");
            assert!(machine.is_as(&before), "cut at {length}: {machine:?}");
            assert!(!journal_exists(&folder));
        }
    }
}

fn last_line(bytes: &[u8]) -> usize {
    let before = bytes[..bytes.len() - 1].iter();
    before
        .rev()
        .position(|byte| *byte == b'\n')
        .map_or(0, |end| bytes.len() - 1 - end)
}

#[test]
fn a_journal_that_lost_more_than_its_last_line_says_so_and_what_is_left_is_restored() {
    let (bytes, before, states) = recorded();
    let after = states.last().expect("it was carried out");
    for length in 0..last_line(&bytes) {
        let cut = &bytes[..length];
        let folder = with_journal(cut);
        let mut machine = after.clone();
        let reported = status(&mut machine, &here(), &folder.0);
        assert!(
            matches!(reported, Err(ApplyError::Journal(_))),
            "cut at {length}"
        );
        let done = undo(&mut machine, &folder);
        let (error, kept) = done.broken.unwrap_or_else(|| panic!("cut at {length}"));
        assert!(error.missing > 0 && error.lines.is_empty(), "{error}");
        assert_eq!(fs::read(kept).expect("it is kept"), cut);
        for setting in readable(cut) {
            assert_eq!(
                machine.values[&setting], before.values[&setting],
                "{setting}"
            );
        }
    }
}

/// The second plan rewrites the journal, so its `Begin` counts the lines of both plans.
#[test]
fn a_journal_of_two_plans_that_lost_the_second_says_so() {
    let folder = Folder::new();
    let mut machine = Model::new();
    for steps in [[(0, 1), (4, 1)], [(1, 1), (2, 1)]] {
        let plan = plan(&machine, &steps);
        execute(&mut machine, &plan, &folder).expect("it can be carried out");
    }
    let bytes = fs::read(folder.0.join("tune.journal")).expect("it is kept");
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for left in 1..lines.len() - 1 {
        let contents = journal::parse(&lines[..left].concat());
        assert_eq!(contents.missing, lines.len() - 1 - left, "{left} lines");
    }
}

#[test]
fn a_broken_line_is_named_and_all_others_are_restored() {
    let (bytes, before, states) = recorded();
    let after = states.last().expect("it was carried out");
    for place in 0..bytes.len() {
        let mut bytes = bytes.clone();
        let line = 1 + bytes[..place].iter().filter(|byte| **byte == b'\n').count();
        if bytes[place] == b'\n' {
            continue;
        }
        bytes[place] ^= 0x15;
        let folder = with_journal(&bytes);
        let readable = readable(&bytes);
        let mut machine = after.clone();
        let (error, kept) = undo(&mut machine, &folder)
            .broken
            .unwrap_or_else(|| panic!("byte {place} of line {line} is another one"));
        assert!(error.lines.contains(&line), "{error} at byte {place}");
        for setting in &readable {
            assert_eq!(machine.values[setting], before.values[setting], "{setting}");
        }
        assert_eq!(fs::read(kept).expect("it is kept"), bytes);
        assert!(!journal_exists(&folder));
    }
}

#[test]
fn a_missing_line_is_noticed() {
    let (bytes, _, _) = recorded();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for missing in 0..lines.len() - 1 {
        let mut rest = lines.clone();
        rest.remove(missing);
        let contents = journal::parse(&rest.concat());
        assert!(contents.broken.contains(&(missing + 1)), "line {missing}");
    }
}

#[test]
fn a_broken_journal_is_not_added_to() {
    let (mut bytes, _, states) = recorded();
    bytes[3] ^= 1;
    let folder = with_journal(&bytes);
    let mut machine = states.last().expect("it was carried out").clone();
    let plan = plan(&machine, &[(1, 1)]);
    let refused = apply(&mut machine, &here(), &plan, &folder.0, false, &|| false);
    assert!(
        matches!(refused, Err(ApplyError::Journal(_))),
        "{refused:?}"
    );
}

#[test]
fn a_journal_whose_end_was_cut_off_is_added_to_and_one_that_lost_more_is_not() {
    let (bytes, before, _) = recorded();
    let mut machine = before.clone();
    let plan = plan(&machine, &[(1, 1)]);
    let folder = with_journal(&bytes[..bytes.len() / 2]);
    let refused = execute(&mut machine, &plan, &folder);
    assert!(
        matches!(refused, Err(ApplyError::Journal(_))),
        "{refused:?}"
    );
    let folder = with_journal(&bytes[..bytes.len() - 2]);
    execute(&mut machine, &plan, &folder).expect("it can be carried out");
    let bytes = fs::read(folder.0.join("tune.journal")).expect("it is kept");
    assert!(journal::parse(&bytes).check().is_ok());
    undo(&mut machine, &folder);
    assert!(machine.is_as(&before));
}
