//! Whatever a crash, or something worse, leaves of the journal: what can be read is restored.

use std::fs;

use super::model::{Model, here, plan};
use super::*;
use crate::apply::journal;

/// The steps of these tests: attributes, a document in a folder that is missing, and queues.
const STEPS: [(usize, u32); 5] = [(0, 1), (4, 1), (6, 2), (7, 1), (9, 1)];

/// A journal's bytes, and the machine after each operation of the plan that it is of.
fn recorded() -> (Vec<u8>, Model, Vec<Model>) {
    let before = Model::new();
    let plan = plan(&before, &STEPS);
    let mut states = Vec::new();
    let mut journal = Vec::new();
    for operations in 0.. {
        let folder = Folder::new();
        let mut machine = before.clone();
        machine.dead_from = Some(operations);
        let ended = carry_out(&mut machine, &plan, &folder).is_ok();
        machine.dead_from = None;
        states.push(machine);
        if ended {
            journal = fs::read(folder.0.join("tune.journal")).expect("it is kept");
            break;
        }
    }
    (journal, before, states)
}

/// Settings that a journal tells of: but a folder cannot go while a document is left in it of which
/// nothing is told.
fn readable(bytes: &[u8]) -> Vec<Setting> {
    let originals = journal::parse(bytes)
        .originals_since(&here().boot_id)
        .into_iter();
    originals
        .map(|(setting, _)| setting)
        .filter(|setting| !matches!(setting, Setting::Folder { .. }))
        .collect()
}

fn with_journal(bytes: &[u8]) -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).expect("a temporary folder");
    fs::write(folder.0.join("tune.journal"), bytes).expect("ours");
    folder
}

#[test]
fn every_prefix_of_a_journal_restores_whatever_was_done_by_then() {
    let (bytes, before, states) = recorded();
    // Nothing is changed until all that was found is on the disk, which the last line follows.
    let last_line = bytes[..bytes.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .expect("several lines")
        + 1;
    let mut tried = 0;
    for length in 0..=bytes.len() {
        let possible = match length < last_line {
            true => &states[..1],
            false => &states[..],
        };
        for state in possible {
            let folder = with_journal(&bytes[..length]);
            let mut machine = state.clone();
            let done = undo(&mut machine, &folder);
            assert_eq!(done.broken, None, "cut at {length}");
            assert!(machine.is_as(&before), "cut at {length}: {machine:?}");
            assert!(!journal_exists(&folder));
            tried += 1;
        }
    }
    assert!(tried > bytes.len() && states.len() > STEPS.len());
}

#[test]
fn what_is_readable_of_a_cut_journal_is_restored_even_of_a_plan_that_was_carried_out() {
    let (bytes, before, states) = recorded();
    let after = states.last().expect("it was carried out");
    for length in 0..=bytes.len() {
        let folder = with_journal(&bytes[..length]);
        let mut machine = after.clone();
        undo(&mut machine, &folder);
        for setting in readable(&bytes[..length]) {
            assert_eq!(
                machine.values[&setting], before.values[&setting],
                "{setting}"
            );
        }
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
fn a_journal_that_was_cut_is_added_to_behind_its_last_whole_line() {
    let (bytes, before, _) = recorded();
    let folder = with_journal(&bytes[..bytes.len() / 2]);
    let mut machine = before.clone();
    let plan = plan(&machine, &[(1, 1)]);
    carry_out(&mut machine, &plan, &folder).expect("it can be carried out");
    let bytes = fs::read(folder.0.join("tune.journal")).expect("it is kept");
    assert!(journal::parse(&bytes).broken.is_empty());
    undo(&mut machine, &folder);
    assert!(machine.is_as(&before));
}
