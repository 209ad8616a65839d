//! Verdicts on outputs made by hand: what passes, and everything that must not.

use super::*;
use crate::cell::{Datapath, First, Loss};
use crate::peer::Peer;

const DISPOSED: Event = Event::Ended(State::Disposed);
const NO_WRITERS: Event = Event::Ended(State::NoWriters);

/// A reliable, VOLATILE cell without end, loss or restart.
fn plain() -> Cell {
    Cell {
        peer: Peer::CycloneDds,
        peer_role: Role::Publisher,
        datapath: Datapath::Udp,
        reliability: Reliability::Reliable,
        durability: Durability::Volatile,
        end: End::None,
        first: First::Publisher,
        life: Life::Whole,
        loss: Loss::None,
    }
}

fn best_effort() -> Cell {
    Cell {
        reliability: Reliability::BestEffort,
        ..plain()
    }
}

fn ending(end: End) -> Cell {
    Cell { end, ..plain() }
}

fn restarted(peer_role: Role) -> Cell {
    Cell {
        peer_role,
        life: Life::Restarted,
        ..plain()
    }
}

fn samples(numbers: impl IntoIterator<Item = u32>) -> Vec<Event> {
    numbers.into_iter().map(Event::Sample).collect()
}

fn again(numbers: impl IntoIterator<Item = u32>) -> Vec<Event> {
    samples(numbers.into_iter().map(|number| RESTARTED_FROM + number))
}

fn text(events: &[Event]) -> String {
    let line = |event: &Event| match event {
        Event::Sample(x) => format!("Square     BLUE       {x:03} {x:03} [20]\n"),
        Event::Ended(state) => format!("Square     BLUE       {}_INSTANCE_STATE\n", state.word()),
    };
    events.iter().map(line).collect()
}

/// Judges what the lives of a subscriber printed, of four samples written; of the last life, `after`
/// came when the publisher had left.
fn judge_lives(cell: Cell, lives: &[&[Event]], after: &[Event]) -> Result<Received, String> {
    let mut printed = lives.iter().map(|life| text(life)).collect::<Vec<_>>();
    let last = printed.last_mut().expect("a subscriber has a life");
    let bytes_before_leaving = last.len();
    last.push_str(&text(after));
    let observed = Observed {
        printed: &printed,
        changes_written: Some(4 + u32::from(cell.end != End::None)),
        bytes_before_leaving,
    };
    judge(cell, &observed)
}

fn judge_life(cell: Cell, events: &[Event]) -> Result<Received, String> {
    judge_lives(cell, &[events], &[])
}

#[test]
fn best_effort_passes_with_one_sample() {
    assert!(judge_life(best_effort(), &samples([2])).is_ok());
    assert!(judge_life(best_effort(), &[]).is_err());
}

#[test]
fn reliable_passes_with_all_samples_only() {
    assert!(judge_life(plain(), &samples(0..4)).is_ok());
    for (numbers, missing) in [(&[1, 2, 3][..], 0), (&[0, 1, 3], 2), (&[0, 1, 2], 3)] {
        assert_eq!(
            judge_life(plain(), &samples(numbers.iter().copied())).unwrap_err(),
            format!("3 samples of 4; the first one missing is {missing}")
        );
    }
    assert!(judge_life(plain(), &[]).is_err());
}

#[test]
fn a_sample_twice_or_out_of_order_fails() {
    for numbers in [&[0, 1, 1, 2, 3][..], &[0, 2, 1, 3], &[0, 1, 2, 3, 0]] {
        for cell in [best_effort(), plain()] {
            let events = samples(numbers.iter().copied());
            assert!(judge_life(cell, &events).is_err(), "{numbers:?}");
        }
    }
}

#[test]
fn a_sample_nobody_wrote_fails() {
    for cell in [best_effort(), plain()] {
        assert!(judge_life(cell, &samples(0..5)).is_err());
        assert!(judge_life(cell, &[samples(0..4), again([0])].concat()).is_err());
    }
}

#[test]
fn a_publisher_that_says_nothing_fails() {
    let observed = Observed {
        printed: &[text(&samples(0..4))],
        changes_written: None,
        bytes_before_leaving: 0,
    };
    assert!(judge(plain(), &observed).is_err());
}

#[test]
fn the_right_end_passes() {
    for (end, state) in [(End::Dispose, DISPOSED), (End::Unregister, NO_WRITERS)] {
        let events = [samples(0..4), vec![state]].concat();
        let received = judge_life(ending(end), &events).unwrap();
        assert_eq!(received.samples, [4]);
        assert_eq!(received.end.map(Event::Ended), Some(state));
        assert!(judge_lives(ending(end), &[&events], &[state]).is_ok());
    }
    assert!(judge_lives(plain(), &[&samples(0..4)], &[NO_WRITERS]).is_ok());
}

#[test]
fn a_wrong_end_fails() {
    let all = || samples(0..4);
    for (end, states) in [
        (End::Dispose, vec![]),
        (End::Dispose, vec![NO_WRITERS]),
        (End::Dispose, vec![DISPOSED, DISPOSED]),
        (End::Dispose, vec![DISPOSED, NO_WRITERS]),
        (End::Unregister, vec![]),
        (End::Unregister, vec![DISPOSED]),
        (End::None, vec![NO_WRITERS]),
        (End::None, vec![DISPOSED]),
    ] {
        let events = [all(), states.clone()].concat();
        assert!(
            judge_life(ending(end), &events).is_err(),
            "{end:?} {states:?}"
        );
    }
}

#[test]
fn an_end_that_comes_with_the_publishers_leaving_is_too_late() {
    for (end, state) in [(End::Dispose, DISPOSED), (End::Unregister, NO_WRITERS)] {
        assert!(judge_lives(ending(end), &[&samples(0..4)], &[state]).is_err());
    }
}

#[test]
fn leaving_does_not_change_what_the_end_was() {
    let disposed = [samples(0..4), vec![DISPOSED]].concat();
    assert!(judge_lives(ending(End::Dispose), &[&disposed], &[NO_WRITERS]).is_err());
    let unregistered = [samples(0..4), vec![NO_WRITERS]].concat();
    assert!(judge_lives(ending(End::Unregister), &[&unregistered], &[DISPOSED]).is_err());
    assert!(judge_lives(plain(), &[&samples(0..4)], &[DISPOSED]).is_err());
}

#[test]
fn an_end_between_samples_fails() {
    for state in [DISPOSED, NO_WRITERS] {
        let events = [samples(0..2), vec![state], samples(2..4)].concat();
        assert!(judge_life(plain(), &events).is_err());
        assert!(judge_life(best_effort(), &events).is_err());
    }
}

#[test]
fn only_on_a_cable_that_loses_frames_may_a_best_effort_end_be_lost() {
    let cell = |reliability, loss| Cell {
        reliability,
        loss,
        ..ending(End::Dispose)
    };
    let lossy = cell(Reliability::BestEffort, Loss::OnePercent);
    assert!(judge_life(lossy, &samples(0..4)).is_ok());
    assert!(judge_lives(lossy, &[&samples(0..4)], &[NO_WRITERS]).is_ok());
    let wrong = [samples(0..4), vec![NO_WRITERS]].concat();
    assert!(judge_life(lossy, &wrong).is_err());
    for strict in [
        cell(Reliability::BestEffort, Loss::None),
        cell(Reliability::Reliable, Loss::TenPercent),
    ] {
        assert!(judge_life(strict, &samples(0..4)).is_err());
    }
}

#[test]
fn after_a_restart_of_the_publisher_all_of_its_second_life_arrives() {
    let cell = restarted(Role::Publisher);
    let passes = |first: Vec<Event>, second| judge_life(cell, &[first, second].concat()).is_ok();
    assert!(passes(samples(0..2), again(0..4)));
    assert!(!passes(samples(0..2), vec![]));
    assert!(!passes(vec![], again(0..4)));
    assert!(!passes(samples([0, 2]), again(0..4)));
    assert!(!passes(samples(1..3), again(0..4)));
    assert!(!passes(samples(0..2), again(1..4)));
    assert!(!passes(samples(0..2), again(0..3)));
    assert!(!passes(samples(0..2), again(0..5)));
    assert!(!passes(again(0..4), samples(0..2)));
}

#[test]
fn between_the_lives_of_a_publisher_there_may_be_no_writer() {
    let cell = restarted(Role::Publisher);
    let judge = |parts: [Vec<Event>; 3]| judge_life(cell, &parts.concat());
    assert!(judge([samples(0..2), vec![NO_WRITERS], again(0..4)]).is_ok());
    assert!(judge([samples(0..2), vec![DISPOSED], again(0..4)]).is_err());
    // The former life's lease ends, but the instance has a writer again.
    let within = [samples(0..2), again(0..1), vec![NO_WRITERS], again(1..4)];
    assert!(judge_life(cell, &within.concat()).is_err());
    assert!(judge([samples(0..2), again(0..4), vec![NO_WRITERS]]).is_err());
}

#[test]
fn after_a_restart_of_a_volatile_subscriber_nothing_is_missing_from_its_match_on() {
    let cell = restarted(Role::Subscriber);
    let judge = |first: &[Event], second: &[Event]| judge_lives(cell, &[first, second], &[]);
    assert!(judge(&samples(0..2), &samples(2..4)).is_ok());
    assert!(judge(&samples(0..2), &samples([3])).is_ok());
    assert!(judge(&samples(0..2), &[]).is_err());
    assert!(judge(&samples(0..2), &samples([1, 3])).is_err());
    assert!(judge(&samples(0..2), &samples([1, 2])).is_err());
    assert!(judge(&samples([1]), &samples(2..4)).is_err());
    assert!(judge(&samples([0, 2]), &samples(2..4)).is_err());
    assert!(judge(&[], &samples(2..4)).is_err());
}

#[test]
fn what_a_restarted_volatile_subscriber_overhears_may_have_holes_but_not_what_follows() {
    let passes = |cell, second: Vec<u32>| {
        let observed = Observed {
            printed: &[text(&samples(0..2)), text(&samples(second))],
            changes_written: Some(200),
            bytes_before_leaving: usize::MAX,
        };
        judge(cell, &observed).is_ok()
    };
    let holes_then = |from| {
        [10, 12, 15]
            .into_iter()
            .chain(from..200)
            .collect::<Vec<_>>()
    };
    let volatile = restarted(Role::Subscriber);
    assert!(passes(volatile, holes_then(100)));
    assert!(passes(volatile, holes_then(150)));
    assert!(!passes(volatile, holes_then(151)));
    let mut ends_early = holes_then(100);
    ends_early.pop();
    assert!(!passes(volatile, ends_early));
    let transient_local = Cell {
        durability: Durability::TransientLocal,
        ..volatile
    };
    assert!(!passes(transient_local, holes_then(100)));
    assert!(passes(transient_local, (0..200).collect()));
}

#[test]
fn after_a_restart_of_a_transient_local_subscriber_it_gets_the_history_again() {
    let cell = Cell {
        durability: Durability::TransientLocal,
        ..restarted(Role::Subscriber)
    };
    let judge = |second: &[Event]| judge_lives(cell, &[&samples(0..2), second], &[]);
    assert!(judge(&samples(0..4)).is_ok());
    assert!(judge(&samples(2..4)).is_err());
}

#[test]
fn a_late_best_effort_joiner_needs_no_history() {
    let cell = Cell {
        durability: Durability::TransientLocal,
        ..best_effort()
    };
    assert!(judge_life(cell, &samples(2..4)).is_ok());
}

#[test]
fn a_subscriber_that_was_killed_saw_no_end() {
    let cell = Cell {
        end: End::Dispose,
        ..restarted(Role::Subscriber)
    };
    let last = [samples(2..4), vec![DISPOSED]].concat();
    assert!(judge_lives(cell, &[&samples(0..2), &last], &[]).is_ok());
    let early = [samples(0..2), vec![DISPOSED]].concat();
    assert!(judge_lives(cell, &[&early, &last], &[]).is_err());
}

#[test]
fn a_lane_that_carried_little_is_none() {
    let said = |by_lane: u32| {
        format!(
            "level 0: received 20 of 20; sent 9 of 9; {by_lane} received_by_lane, 9 sent_by_lane\n"
        )
    };
    assert!(judge_lane(plain(), &said(11)).is_ok());
    assert!(judge_lane(plain(), &said(10)).is_err());
    let sends = Cell {
        peer_role: Role::Subscriber,
        ..plain()
    };
    assert!(judge_lane(sends, &said(0)).is_ok());
    assert!(judge_lane(plain(), "193 written").is_err());
}
