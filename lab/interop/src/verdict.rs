//! Whether what the subscriber printed is what its cell asks for. All rules stand here.
//!
//! The publisher counts its samples: 0, 1, 2, ..., and after a restart from [`RESTARTED_FROM`] on. It
//! writes until the subscriber has had plenty of them, then ends the instance as the cell says, stays
//! a little, and leaves. So "all" means all it says it has written, and a **stretch** is what one life
//! of the subscriber got from one life of the publisher: one, or two when the peer was restarted.
//!
//! *Always*: in each stretch at least one sample, none twice, in order, none that was not written; the
//! stretch of the earlier publisher first.
//!
//! *Best effort*: no more than that; a late joiner gets no history, also under TRANSIENT_LOCAL.
//!
//! *Reliable*: no sample is missing within a stretch. It begins with sample 0: a VOLATILE publisher
//! begins only when the subscriber is matched, and under TRANSIENT_LOCAL a late joiner gets the
//! history. The exception is a VOLATILE subscriber that was restarted: it must get all that is written
//! after the publisher has matched it. It may hear, at the address of its former life, some of what
//! was written before; of that it may miss any, since nothing of it is repaired. So it begins
//! anywhere, and if a sample is missing, [`UNBROKEN`] follow without. The stretch ends with the last
//! sample written, unless its subscriber or its publisher was killed: then it ends anywhere, since
//! nobody can repair what a dead publisher has not sent.
//!
//! *The end of the instance* must be seen while the publisher is still there, once, behind the last
//! sample, and be the right one: disposed is NOT_ALIVE_DISPOSED, unregistered is
//! NOT_ALIVE_NO_WRITERS (after a restart of the publisher: once its former life's lease is over,
//! since two writers are known until then). The end is sent once: of a best-effort publisher on a
//! cable that loses frames it may be lost, but not be another one. Without an end the instance stays
//! alive. That the publisher leaves unregisters: then NOT_ALIVE_NO_WRITERS may follow, or, if it was
//! disposed, NOT_ALIVE_DISPOSED again; never another one. Between the two lives of a publisher the
//! instance may be without writers; a sample makes it alive again.
//!
//! *The lane*, where isolane has one, carries more than half of the datagrams of the topic's level: what
//! finds no neighbour yet, or does not fit a frame, goes by a socket.

use std::fmt;
use std::ops::Range;

use super::cell::{Cell, Durability, End, Life, Loss, Reliability, Role};
use super::printed::{Carried, Event, State, events, number};
use super::side::RESTARTED_FROM;

/// Samples without a missing one that show that a subscriber is matched: a quarter of a second's.
const UNBROKEN: usize = 50;

/// What a run left behind, or has so far.
pub(super) struct Observed<'a> {
    /// What each life of the subscriber printed.
    pub(super) printed: &'a [String],
    /// Changes the publisher (its last life) has written; `None` while it has not said so.
    pub(super) changes_written: Option<u32>,
    /// How much of the last output, in bytes, was there while the publisher was there, too.
    pub(super) bytes_before_leaving: usize,
}

/// What arrived where a cell passes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Received {
    /// Samples in each stretch.
    pub(super) samples: Vec<usize>,
    /// How the instance ended before the publisher left.
    pub(super) end: Option<State>,
}

/// What arrived; an error when the cell fails, or is not over yet, with what is wrong.
pub(super) fn judge(cell: Cell, observed: &Observed<'_>) -> Result<Received, String> {
    let written = samples_written(cell, observed)?;
    let (mut samples, mut end) = (Vec::new(), None);
    for (life, printed) in observed.printed.iter().enumerate() {
        let events = events(printed)?;
        samples.extend(judge_samples(cell, life, written, &events)?);
        let is_last = life + 1 == observed.printed.len();
        let before_leaving = match is_last {
            true => printed.get(..observed.bytes_before_leaving),
            false => None,
        };
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
            Some(state) => write!(formatter, "{counts} samples, {}", state.word()),
        }
    }
}

/// How many samples the publisher's last life wrote: the end of an instance is a change, no sample.
fn samples_written(cell: Cell, observed: &Observed<'_>) -> Result<u32, String> {
    let changes = observed
        .changes_written
        .ok_or("the publisher has not said how many samples it wrote")?;
    Ok(changes.saturating_sub(u32::from(cell.end != End::None)))
}

/// The samples one life of the subscriber printed; how many there are in each stretch.
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

/// What one life of the subscriber gets from one life of the publisher.
struct Stretch {
    /// What was written; of a publisher that was killed, all it may have.
    numbers: Range<u32>,
    /// Under reliability the first one must be there.
    from_start: bool,
    /// Under reliability the last one must be there.
    to_end: bool,
}

/// The samples behind the last one that is missing.
pub(super) fn unbroken(numbers: &[u32]) -> &[u32] {
    let broken = numbers.windows(2).rposition(|pair| pair[0] + 1 != pair[1]);
    &numbers[broken.map_or(0, |index| index + 1)..]
}

/// The stretches of a life of the subscriber.
fn stretches(cell: Cell, subscriber_life: usize, written: u32) -> Vec<Stretch> {
    let again = RESTARTED_FROM..RESTARTED_FROM.saturating_add(written);
    if cell.restarts(Role::Publisher) {
        let killed = Stretch {
            numbers: 0..RESTARTED_FROM,
            from_start: true,
            to_end: false,
        };
        let restarted = Stretch {
            numbers: again,
            from_start: true,
            to_end: true,
        };
        return vec![killed, restarted];
    }
    let first_life = subscriber_life == 0;
    vec![Stretch {
        numbers: 0..written,
        from_start: first_life || cell.durability == Durability::TransientLocal,
        to_end: !first_life || cell.life == Life::Whole,
    }]
}

impl Stretch {
    /// `part` is in order, and within what was written.
    fn judge(&self, reliability: Reliability, part: &[u32]) -> Result<(), String> {
        let Range { start, end } = self.numbers;
        let (Some(&first), Some(&last)) = (part.first(), part.last()) else {
            return Err(format!("no sample from {start} on, of {}", end - start));
        };
        if reliability == Reliability::BestEffort {
            return Ok(());
        }
        let begins_anywhere = !self.from_start && unbroken(part).len() >= UNBROKEN;
        let part = if begins_anywhere {
            unbroken(part)
        } else {
            part
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

/// The ends of the instance that one life of the subscriber printed, the first `seen` events while
/// the publisher was still there; the one it ended with before the publisher left.
fn judge_ends(
    cell: Cell,
    events: &[Event],
    seen: usize,
    is_last: bool,
) -> Result<Option<State>, String> {
    let last_sample = events.iter().rposition(|event| number(*event).is_some());
    let (early, late) = events.split_at(last_sample.map_or(0, |index| index + 1));
    if let Some(state) = early_end(cell, early) {
        return Err(format!("{} before the last sample", state.word()));
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
            return Err(format!("no {} before the publisher left", required.word()));
        }
        (Some(required), [state]) if *state == required => {}
        (_, states) => return Err(format!("the instance's end came as {}", words(states))),
    }
    match after.iter().find(|state| !allowed_after.contains(state)) {
        None => Ok(before.last().copied()),
        Some(_) => Err(format!("after the publisher left: {}", words(after))),
    }
}

/// An end of the instance before a sample: only between the lives of a publisher there may be one.
fn early_end(cell: Cell, early: &[Event]) -> Option<State> {
    let between_lives = |index: usize| {
        let before = early[..index]
            .iter()
            .copied()
            .filter_map(number)
            .next_back();
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

/// How much of what isolane received, or sent, went by its lane, out of what it said.
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
    let words = states.iter().map(|state| state.word()).collect::<Vec<_>>();
    words.join(", ")
}

#[cfg(test)]
mod tests;
