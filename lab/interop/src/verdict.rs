//! Verdict on the subscriber's output of a cell: all pass criteria.
//!
//! The publisher counts its samples from 0, and after a restart from [`RESTARTED_FROM`]. It writes until the subscriber
//! has plenty, ends the instance as the cell says, stays briefly, and leaves. "All" means all that it reports as
//! written. A **stretch** is what one life of the subscriber got from one life of the publisher. A cell has one
//! stretch, or two when the peer was restarted.
//!
//! *Always*: each stretch has at least one sample, no duplicate, and no sample that was not written. Its samples are in
//! order. The stretch of the earlier publisher comes first.
//!
//! *Best effort*: there is no further criterion. A late joiner gets no history, even under TRANSIENT_LOCAL.
//!
//! *Reliable*: no gap within a stretch, which begins with sample 0: a VOLATILE publisher waits for a match, and a
//! TRANSIENT_LOCAL late joiner gets the history. The exception is a restarted VOLATILE subscriber, which must get all
//! samples written after the match. It may receive some older samples at the address of its earlier life, and gaps
//! among those are not repaired. So its stretch may begin anywhere, and [`UNBROKEN`] samples must follow the last gap.
//! The stretch ends with the last sample written, or anywhere if its subscriber or publisher was killed, since a dead
//! publisher repairs nothing.
//!
//! *End of the instance*: seen once, before the publisher leaves, after the last sample. Disposed is
//! NOT_ALIVE_DISPOSED. Unregistered is NOT_ALIVE_NO_WRITERS, after a publisher's restart only once the lease of its
//! earlier life has expired. The end is sent once, so the end of a best-effort publisher may be lost where the cable
//! loses frames. A different end is never allowed. Without an end the instance stays alive. The publisher's departure
//! unregisters the instance: NOT_ALIVE_NO_WRITERS may follow, or NOT_ALIVE_DISPOSED again. Between two lives of a
//! publisher the instance may have no writers; a sample makes it alive again.
//!
//! *Lane*: where isolane has one, it carries more than half of the datagrams of the topic's level. Datagrams without a
//! resolved neighbour, or too large for a frame, use a socket.

use std::fmt;
use std::ops::Range;

use super::combination::{Cell, Durability, End, Life, Loss, Reliability, Role};
use super::printed::{Carried, Event, State, events, number};
use super::side::RESTARTED_FROM;

/// Consecutive samples that prove a match: a quarter of a second.
const UNBROKEN: usize = 50;

/// Output of a run, final or so far.
pub(super) struct Observed<'a> {
    /// Output of each life of the subscriber.
    pub(super) printed: &'a [String],
    /// Changes the publisher (its last life) has written; `None` until it reports them.
    pub(super) changes_written: Option<u32>,
    /// Length of the last output, in bytes, when the publisher left.
    pub(super) bytes_before_leaving: usize,
}

/// Summary of a passing cell.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Received {
    /// Number of samples in each stretch.
    pub(super) samples: Vec<usize>,
    /// Instance state before the publisher left.
    pub(super) end: Option<State>,
}

/// Returns the summary, or the reason for which the cell fails or is not over yet.
pub(super) fn judge(cell: Cell, observed: &Observed<'_>) -> Result<Received, String> {
    let written = samples_written(cell, observed)?;
    let (mut samples, mut end) = (Vec::new(), None);
    for (life, printed) in observed.printed.iter().enumerate() {
        let events = events(printed)?;
        samples.extend(judge_samples(cell, life, written, &events)?);
        let is_last = life + 1 == observed.printed.len();
        let before_leaving = printed.get(..observed.bytes_before_leaving);
        let before_leaving = before_leaving.filter(|_| is_last);
        let seen = self::events(before_leaving.unwrap_or(printed))?.len();
        end = judge_ends(cell, &events, seen, is_last)?;
    }
    Ok(Received { samples, end })
}

impl fmt::Display for Received {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.samples.iter().map(usize::to_string);
        let counts = counts.collect::<Vec<_>>().join(" + ");
        match self.end {
            None => write!(formatter, "{counts} samples"),
            Some(state) => write!(formatter, "{counts} samples, {state}"),
        }
    }
}

/// Number of samples that the publisher's last life wrote: the end of an instance is a change, but no sample.
fn samples_written(cell: Cell, observed: &Observed<'_>) -> Result<u32, String> {
    let changes = observed
        .changes_written
        .ok_or("the publisher has not said how many samples it wrote")?;
    Ok(changes.saturating_sub(u32::from(cell.end != End::None)))
}

/// Judges the samples of one life of the subscriber; returns the number in each stretch.
fn judge_samples(
    cell: Cell,
    subscriber_life: usize,
    written: u32,
    events: &[Event],
) -> Result<Vec<usize>, String> {
    let numbers = events.iter().copied().filter_map(number);
    let numbers = numbers.collect::<Vec<_>>();
    if let Some(pair) = numbers.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(format!("sample {} came after {}", pair[1], pair[0]));
    }
    let mut counts = Vec::new();
    let mut rest = &numbers[..];
    for stretch in stretches(cell, subscriber_life, written) {
        let beyond = |number: &u32| !stretch.numbers.contains(number);
        let (part, others) = rest.split_at(rest.iter().position(beyond).unwrap_or(rest.len()));
        stretch.judge(cell.reliability, part)?;
        counts.push(part.len());
        rest = others;
    }
    match rest.first() {
        None => Ok(counts),
        Some(stray) => Err(format!("sample {stray} came, of {written} written")),
    }
}

/// Expected samples of one life of the subscriber from one life of the publisher.
struct Stretch {
    /// Written numbers; for a killed publisher, an upper bound.
    numbers: Range<u32>,
    /// True when, under RELIABLE, the first sample must have arrived.
    from_start: bool,
    /// True when, under RELIABLE, the last sample must have arrived.
    to_end: bool,
}

/// Samples after the last gap.
pub(super) fn unbroken(numbers: &[u32]) -> &[u32] {
    let broken = numbers.windows(2).rposition(|pair| pair[0] + 1 != pair[1]);
    &numbers[broken.map_or(0, |index| index + 1)..]
}

/// Stretches of a life of the subscriber.
fn stretches(cell: Cell, subscriber_life: usize, written: u32) -> Vec<Stretch> {
    let again = RESTARTED_FROM..RESTARTED_FROM.saturating_add(written);
    if cell.restarts(Role::Publisher) {
        let lives = [(0..RESTARTED_FROM, false), (again, true)];
        let stretch = |(numbers, to_end)| Stretch {
            numbers,
            from_start: true,
            to_end,
        };
        return lives.map(stretch).into();
    }
    let first_life = subscriber_life == 0;
    vec![Stretch {
        numbers: 0..written,
        from_start: first_life || cell.durability == Durability::TransientLocal,
        to_end: !first_life || cell.life == Life::Uninterrupted,
    }]
}

impl Stretch {
    /// Checks that `part` is in order and within the written numbers.
    fn judge(&self, reliability: Reliability, part: &[u32]) -> Result<(), String> {
        let Range { start, end } = self.numbers;
        let (Some(&first), Some(&last)) = (part.first(), part.last()) else {
            return Err(format!("no sample from {start} on, of {}", end - start));
        };
        if reliability == Reliability::BestEffort {
            return Ok(());
        }
        let part = match unbroken(part) {
            tail if !self.from_start && tail.len() >= UNBROKEN => tail,
            _ => part,
        };
        let gap = part.windows(2).find(|pair| pair[0] + 1 != pair[1]);
        let missing = match gap {
            _ if self.from_start && first != start => Some(start),
            Some(gap) => Some(gap[0] + 1),
            None if self.to_end && last + 1 != end => Some(last + 1),
            None => None,
        };
        match missing {
            None => Ok(()),
            Some(missing) => Err(format!(
                "{} samples of {}; the first one missing is {missing}",
                part.len(),
                end - start
            )),
        }
    }
}

/// Judges the instance states that one life of the subscriber printed, of which the first `seen` events came before the
/// publisher left; returns the last state before that.
fn judge_ends(
    cell: Cell,
    events: &[Event],
    seen: usize,
    is_last: bool,
) -> Result<Option<State>, String> {
    let last_sample = events.iter().rposition(|event| number(*event).is_some());
    let (early, late) = events.split_at(last_sample.map_or(0, |index| index + 1));
    if let Some(state) = early_end(cell, early) {
        return Err(format!("{state} before the last sample"));
    }
    let ends = late.iter().copied().filter_map(state).collect::<Vec<_>>();
    let (before, after) = ends.split_at(seen.saturating_sub(early.len()).min(ends.len()));
    let (required, allowed_after): (Option<State>, &[State]) = match cell.end {
        _ if !is_last => (None, &[]),
        End::None => (None, &[State::NoWriters]),
        End::Unregister => (Some(State::NoWriters), &[State::NoWriters]),
        End::Dispose if before.is_empty() => {
            (Some(State::Disposed), &[State::Disposed, State::NoWriters])
        }
        End::Dispose => (Some(State::Disposed), &[State::Disposed]),
    };
    let may_be_lost = cell.reliability == Reliability::BestEffort && cell.loss != Loss::None;
    match (required, before) {
        (None, []) => {}
        (Some(_), []) if may_be_lost => {}
        (Some(required), []) => {
            return Err(format!("no {required} before the publisher left"));
        }
        (Some(required), [state]) if *state == required => {}
        (_, states) => return Err(format!("the instance's end came as {}", words(states))),
    }
    match after.iter().find(|state| !allowed_after.contains(state)) {
        None => Ok(before.last().copied()),
        Some(_) => Err(format!("after the publisher left: {}", words(after))),
    }
}

/// Returns the first not-alive state before a sample. NOT_ALIVE_NO_WRITERS is allowed between two lives of the
/// publisher.
fn early_end(cell: Cell, early: &[Event]) -> Option<State> {
    let between_lives = |index: usize| {
        let before = early[..index].iter().rev().copied().find_map(number);
        let after = early[index..].iter().copied().find_map(number);
        cell.restarts(Role::Publisher)
            && before.is_some_and(|number| number < RESTARTED_FROM)
            && after.is_some_and(|number| number >= RESTARTED_FROM)
    };
    let ends = early.iter().enumerate();
    ends.filter_map(|(index, event)| Some((index, state(*event)?)))
        .find(|&(index, state)| state != State::NoWriters || !between_lives(index))
        .map(|(_, state)| state)
}

fn state(event: Event) -> Option<State> {
    match event {
        Event::Sample(_) => None,
        Event::Ended(state) => Some(state),
    }
}

/// Share of isolane's datagrams that its lane carried, from its final report.
pub(super) fn judge_lane(cell: Cell, said: &str) -> Result<String, String> {
    let carried = Carried::of(said).ok_or("isolane has not said what went by its lane")?;
    let (by_lane, all, verb) = match cell.peer_role {
        Role::Publisher => (carried.received_by_lane, carried.received, "received"),
        Role::Subscriber => (carried.sent_by_lane, carried.sent, "sent"),
    };
    let account = format!("{by_lane} of {all} datagrams {verb} by the lane");
    match by_lane * 2 > all {
        true => Ok(account),
        false => Err(format!("only {account}")),
    }
}

fn words(states: &[State]) -> String {
    let words = states.iter().map(State::to_string).collect::<Vec<_>>();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::combination::{Datapath, Loss, StartOrder};
    use crate::side::Peer;

    /// A reliable, VOLATILE cell without end, loss or restart.
    fn plain() -> Cell {
        Cell {
            peer: Peer::CycloneDds,
            peer_role: Role::Publisher,
            datapath: Datapath::Udp,
            reliability: Reliability::Reliable,
            durability: Durability::Volatile,
            end: End::None,
            start_order: StartOrder::Publisher,
            life: Life::Uninterrupted,
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

    /// Output of a subscriber, from words: the number of a sample, `r` and a number for a sample of a restarted
    /// publisher, or the end of the instance.
    fn text(words: &str) -> String {
        let line = |word: &str| match word {
            "disposed" => "Square     BLUE       NOT_ALIVE_DISPOSED_INSTANCE_STATE\n".into(),
            "no-writers" => "Square     BLUE       NOT_ALIVE_NO_WRITERS_INSTANCE_STATE\n".into(),
            sample => {
                let number: u32 = match sample.strip_prefix('r') {
                    Some(number) => RESTARTED_FROM + number.parse::<u32>().unwrap(),
                    None => sample.parse().unwrap(),
                };
                format!("Square     BLUE       {number:03} {number:03} [20]\n")
            }
        };
        words.split_whitespace().map(line).collect()
    }

    /// Judges the output of a subscriber's lives, which `/` separates, with four samples written. What follows `|`
    /// arrived after the publisher left.
    fn judge_output(cell: Cell, output: &str) -> Result<Received, String> {
        let (before, after) = output.split_once('|').unwrap_or((output, ""));
        let mut printed = before.split('/').map(text).collect::<Vec<_>>();
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

    #[track_caller]
    fn passes(cell: Cell, outputs: &[&str]) {
        for output in outputs {
            let judged = judge_output(cell, output);
            assert!(judged.is_ok(), "{output}: {judged:?}");
        }
    }

    #[track_caller]
    fn fails(cell: Cell, outputs: &[&str]) {
        for output in outputs {
            let judged = judge_output(cell, output);
            assert!(judged.is_err(), "{output}: {judged:?}");
        }
    }

    #[test]
    fn best_effort_passes_with_one_sample() {
        passes(best_effort(), &["2"]);
        fails(best_effort(), &[""]);
    }

    #[test]
    fn reliable_passes_with_all_samples_only() {
        passes(plain(), &["0 1 2 3"]);
        fails(plain(), &[""]);
        for (output, missing) in [("1 2 3", 0), ("0 1 3", 2), ("0 1 2", 3)] {
            assert_eq!(
                judge_output(plain(), output).unwrap_err(),
                format!("3 samples of 4; the first one missing is {missing}")
            );
        }
    }

    #[test]
    fn a_sample_twice_or_out_of_order_or_not_written_fails() {
        for cell in [best_effort(), plain()] {
            fails(cell, &["0 1 1 2 3", "0 2 1 3", "0 1 2 3 0"]);
            fails(cell, &["0 1 2 3 4", "0 1 2 3 r0"]);
        }
    }

    #[test]
    fn a_publisher_that_says_nothing_fails() {
        let observed = Observed {
            printed: &[text("0 1 2 3")],
            changes_written: None,
            bytes_before_leaving: 0,
        };
        assert!(judge(plain(), &observed).is_err());
    }

    #[test]
    fn the_right_end_passes() {
        for (end, word, state) in [
            (End::Dispose, "disposed", State::Disposed),
            (End::Unregister, "no-writers", State::NoWriters),
        ] {
            let received = judge_output(ending(end), &format!("0 1 2 3 {word}")).unwrap();
            assert_eq!(received.samples, [4]);
            assert_eq!(received.end, Some(state));
            passes(ending(end), &[&format!("0 1 2 3 {word} | {word}")]);
        }
        passes(plain(), &["0 1 2 3 | no-writers"]);
    }

    #[test]
    fn a_wrong_end_fails() {
        // An end that comes with the publisher's leaving is too late, and leaving does not change an earlier end.
        fails(
            ending(End::Dispose),
            &[
                "0 1 2 3",
                "0 1 2 3 no-writers",
                "0 1 2 3 disposed disposed",
                "0 1 2 3 disposed no-writers",
                "0 1 2 3 | disposed",
                "0 1 2 3 disposed | no-writers",
            ],
        );
        fails(
            ending(End::Unregister),
            &[
                "0 1 2 3",
                "0 1 2 3 disposed",
                "0 1 2 3 | no-writers",
                "0 1 2 3 no-writers | disposed",
            ],
        );
        fails(plain(), &["0 1 2 3 no-writers", "0 1 2 3 disposed"]);
        fails(plain(), &["0 1 2 3 | disposed"]);
        for cell in [best_effort(), plain()] {
            fails(cell, &["0 1 disposed 2 3", "0 1 no-writers 2 3"]);
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
        passes(lossy, &["0 1 2 3", "0 1 2 3 | no-writers"]);
        fails(lossy, &["0 1 2 3 no-writers"]);
        fails(cell(Reliability::BestEffort, Loss::None), &["0 1 2 3"]);
        fails(cell(Reliability::Reliable, Loss::TenPercent), &["0 1 2 3"]);
    }

    #[test]
    fn after_a_restart_of_the_publisher_all_of_its_second_life_arrives() {
        let cell = restarted(Role::Publisher);
        passes(cell, &["0 1 r0 r1 r2 r3"]);
        fails(cell, &["0 1", "r0 r1 r2 r3", "r0 r1 r2 r3 0 1"]);
        fails(cell, &["0 2 r0 r1 r2 r3", "1 2 r0 r1 r2 r3"]);
        fails(cell, &["0 1 r1 r2 r3", "0 1 r0 r1 r2"]);
        fails(cell, &["0 1 r0 r1 r2 r3 r4"]);
    }

    #[test]
    fn between_the_lives_of_a_publisher_there_may_be_no_writer() {
        let cell = restarted(Role::Publisher);
        passes(cell, &["0 1 no-writers r0 r1 r2 r3"]);
        fails(cell, &["0 1 disposed r0 r1 r2 r3"]);
        // The earlier life's lease expires, but the instance has a writer again.
        fails(cell, &["0 1 r0 no-writers r1 r2 r3"]);
        fails(cell, &["0 1 r0 r1 r2 r3 no-writers"]);
    }

    #[test]
    fn after_a_restart_of_a_volatile_subscriber_nothing_is_missing_from_its_match_on() {
        let cell = restarted(Role::Subscriber);
        passes(cell, &["0 1 / 2 3", "0 1 / 3"]);
        fails(cell, &["0 1 /", "0 1 / 1 3", "0 1 / 1 2"]);
        fails(cell, &["1 / 2 3", "0 2 / 2 3", "/ 2 3"]);
    }

    #[test]
    fn what_a_restarted_volatile_subscriber_overhears_may_have_holes_but_not_what_follows() {
        let passes = |cell, second: Vec<u32>| {
            let second = second.iter().map(u32::to_string);
            let second = second.collect::<Vec<_>>().join(" ");
            let observed = Observed {
                printed: &[text("0 1"), text(&second)],
                changes_written: Some(200),
                bytes_before_leaving: usize::MAX,
            };
            judge(cell, &observed).is_ok()
        };
        let holes_then = |from| [10, 12, 15].into_iter().chain(from..200).collect();
        let volatile = restarted(Role::Subscriber);
        assert!(passes(volatile, holes_then(100)));
        assert!(passes(volatile, holes_then(150)));
        assert!(!passes(volatile, holes_then(151)));
        let mut ends_early: Vec<_> = holes_then(100);
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
        passes(cell, &["0 1 / 0 1 2 3"]);
        fails(cell, &["0 1 / 2 3"]);
    }

    #[test]
    fn a_late_best_effort_joiner_needs_no_history() {
        let cell = Cell {
            durability: Durability::TransientLocal,
            ..best_effort()
        };
        passes(cell, &["2 3"]);
    }

    #[test]
    fn a_subscriber_that_was_killed_saw_no_end() {
        let cell = Cell {
            end: End::Dispose,
            ..restarted(Role::Subscriber)
        };
        passes(cell, &["0 1 / 2 3 disposed"]);
        fails(cell, &["0 1 disposed / 2 3 disposed"]);
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
}
