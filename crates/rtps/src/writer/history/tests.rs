//! Tests of replacement and release in a history.

use super::*;

fn a_history(plan: HistoryPlan) -> History {
    History::try_new(plan, 1).expect("memory for a test")
}

fn write(history: &mut History, sequence: i64, key: u8) -> Result<(), HistoryFull> {
    let key_hash = Some([key; 16]);
    history.reserve(key_hash, 1)?[0] = sequence as u8;
    history.commit(Change {
        sequence: SequenceNumber(sequence),
        kind: ChangeKind::Alive,
        key_hash,
        timestamp: Timestamp::INVALID,
        written: Instant::new(0),
        length: 1,
        start: 0,
    });
    Ok(())
}

fn sequences(history: &History) -> Vec<i64> {
    history
        .order
        .iter()
        .map(|(sequence, _)| sequence.get())
        .collect()
}

#[test]
fn keep_last_pushes_out_the_oldest_of_the_same_instance_only() {
    let mut history = a_history(HistoryPlan::new(
        Keep::Last { depth: 2 },
        4,
        Sizes::fixed(8),
    ));
    for (sequence, key) in [(1, 1), (2, 2), (3, 1), (4, 1), (5, 1)] {
        write(&mut history, sequence, key).unwrap();
    }
    assert_eq!(sequences(&history), [2, 4, 5]);
    assert_eq!(history.get(SequenceNumber(4)).unwrap().1, [4]);
    assert!(history.get(SequenceNumber(3)).is_none());
}

#[test]
fn keep_last_refuses_an_instance_for_which_no_slot_is_left() {
    let mut history = a_history(HistoryPlan::new(
        Keep::Last { depth: 1 },
        2,
        Sizes::fixed(8),
    ));
    write(&mut history, 1, 1).unwrap();
    write(&mut history, 2, 2).unwrap();
    assert_eq!(write(&mut history, 3, 3), Err(HistoryFull::Instances));
    write(&mut history, 3, 1).unwrap();
    assert_eq!(sequences(&history), [2, 3]);
}

#[test]
fn keep_all_refuses_when_full_and_takes_again_what_was_acknowledged() {
    let mut history = a_history(HistoryPlan::new(Keep::All, 3, Sizes::fixed(8)));
    for sequence in 1..=3 {
        write(&mut history, sequence, 0).unwrap();
    }
    assert_eq!(write(&mut history, 4, 0), Err(HistoryFull::Unacknowledged));
    assert_eq!(history.remove_below(SequenceNumber(3)), 2);
    write(&mut history, 4, 0).unwrap();
    assert_eq!(sequences(&history), [3, 4]);
}

#[test]
fn the_oldest_end_of_an_instance_makes_room_once_it_is_acknowledged() {
    let mut history = a_history(HistoryPlan::new(
        Keep::Last { depth: 1 },
        3,
        Sizes::fixed(8),
    ));
    for (sequence, key) in [(1, 1), (2, 2), (3, 3)] {
        write(&mut history, sequence, key).unwrap();
    }
    let end = |history: &mut History, sequence: i64, key: u8| {
        history.reserve(Some([key; 16]), 1).unwrap();
        history.commit(Change {
            sequence: SequenceNumber(sequence),
            kind: ChangeKind::Dispose,
            key_hash: Some([key; 16]),
            timestamp: Timestamp::INVALID,
            written: Instant::new(0),
            length: 0,
            start: 0,
        });
    };
    end(&mut history, 4, 2);
    end(&mut history, 5, 1);
    history.remove_oldest_end_below(SequenceNumber(4));
    assert_eq!(sequences(&history), [3, 4, 5]);
    history.remove_oldest_end_below(SequenceNumber(6));
    assert_eq!(sequences(&history), [3, 5]);
}

fn end(history: &mut History, sequence: i64, key: u8, kind: ChangeKind) {
    let key_hash = Some([key; 16]);
    history.reserve(key_hash, 1).unwrap();
    history.commit(Change {
        sequence: SequenceNumber(sequence),
        kind,
        key_hash,
        timestamp: Timestamp::INVALID,
        written: Instant::new(0),
        length: 0,
        start: 0,
    });
}

#[test]
fn the_end_of_an_instance_leaves_its_last_value_and_the_next_value_takes_the_place_of_both() {
    let mut history =
        a_history(HistoryPlan::new(Keep::Last { depth: 1 }, 2, Sizes::fixed(8)).with_ends(2));
    write(&mut history, 1, 1).unwrap();
    write(&mut history, 2, 2).unwrap();
    end(&mut history, 3, 1, ChangeKind::Dispose);
    end(&mut history, 4, 2, ChangeKind::Unregister);
    assert_eq!(sequences(&history), [1, 2, 3, 4]);
    assert_eq!(write(&mut history, 5, 3), Err(HistoryFull::Instances));
    write(&mut history, 5, 1).unwrap();
    assert_eq!(sequences(&history), [2, 4, 5]);
    end(&mut history, 6, 1, ChangeKind::Dispose);
    assert_eq!(sequences(&history), [2, 4, 5, 6]);
    assert_eq!(history.remove_below(SequenceNumber(7)), 4);
    assert_eq!(history.ends, 0);
}

#[test]
fn an_end_without_room_takes_the_place_of_one_that_says_no_more_or_of_the_oldest_change() {
    let mut history =
        a_history(HistoryPlan::new(Keep::Last { depth: 1 }, 2, Sizes::fixed(8)).with_ends(1));
    write(&mut history, 1, 1).unwrap();
    write(&mut history, 2, 2).unwrap();
    end(&mut history, 3, 1, ChangeKind::Dispose);
    end(&mut history, 4, 1, ChangeKind::Dispose);
    end(&mut history, 5, 1, ChangeKind::DisposeAndUnregister);
    assert_eq!(sequences(&history), [1, 2, 5]);
    end(&mut history, 6, 2, ChangeKind::Dispose);
    assert_eq!(sequences(&history), [1, 5, 6]);
    write(&mut history, 7, 1).unwrap();
    end(&mut history, 8, 1, ChangeKind::Unregister);
    assert_eq!(sequences(&history), [6, 7, 8]);
}

#[test]
fn however_instances_end_there_are_never_more_changes_than_slots() {
    const KINDS: [ChangeKind; 4] = [
        ChangeKind::Alive,
        ChangeKind::Dispose,
        ChangeKind::Unregister,
        ChangeKind::DisposeAndUnregister,
    ];
    for depth in 1..4 {
        for ends in 0..5 {
            let room = 3 * depth;
            let mut history = a_history(
                HistoryPlan::new(Keep::Last { depth }, room, Sizes::fixed(8)).with_ends(ends),
            );
            let mut chance = 1u64;
            for sequence in 1..2_000 {
                chance = chance
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let draw = |shift: u32, below: u64| (chance >> shift) % below;
                let kind = KINDS[draw(40, 4) as usize];
                end(&mut history, sequence, draw(50, 3) as u8, kind);
                if draw(33, 20) == 0 {
                    history.remove_below(SequenceNumber(sequence - 2));
                }
                let extra = |chain: &Chain| usize::from(chain.count().saturating_sub(depth));
                let all: usize = history.instances.values().map(extra).sum();
                assert_eq!(history.ends, all);
                assert!(history.ends <= usize::from(ends));
            }
        }
    }
}

#[test]
fn a_reserved_slot_that_is_not_committed_is_lent_again() {
    let mut history = a_history(HistoryPlan::new(Keep::All, 1, Sizes::fixed(8)));
    history.reserve(None, 1).unwrap()[0] = 1;
    history.reserve(None, 1).unwrap()[0] = 2;
    write(&mut history, 1, 0).unwrap();
    assert_eq!(history.memory.free_slots(), 1);
}

#[test]
fn a_pinned_change_that_is_pushed_out_stays_readable_and_then_gives_its_slot_back() {
    let mut history =
        a_history(HistoryPlan::new(Keep::Last { depth: 1 }, 1, Sizes::fixed(8)).with_pin());
    write(&mut history, 1, 0).unwrap();
    history.pin(SequenceNumber(1));
    for sequence in 2..=5 {
        write(&mut history, sequence, 0).unwrap();
    }
    assert_eq!(sequences(&history), [5]);
    assert!(history.get(SequenceNumber(1)).is_none());
    assert_eq!(history.get_pinned(SequenceNumber(1)).unwrap().1, [1]);
    history.unpin();
    assert!(history.get_pinned(SequenceNumber(1)).is_none());
    assert_eq!(history.memory.free_slots(), 2);
}

#[test]
fn a_hole_in_the_numbers_does_not_hide_what_lies_behind_it() {
    let mut history = a_history(HistoryPlan::new(
        Keep::Last { depth: 1 },
        4,
        Sizes::fixed(8),
    ));
    for (sequence, key) in [(1, 1), (2, 2), (9, 3), (10, 4)] {
        write(&mut history, sequence, key).unwrap();
    }
    assert_eq!(history.get(SequenceNumber(9)).unwrap().1, [9]);
    assert_eq!(
        history.at_or_after(SequenceNumber(3)),
        Some(SequenceNumber(9))
    );
    assert!(history.get(SequenceNumber(5)).is_none());
}
