//! What both sides must have printed.
//!
//! The publisher prints what it writes, with sizes that count from 1, so that what came is told from what did
//! not. All samples of a topic have one instance.

use super::super::shapes::judge::{Judgement, matched, nothing_flows};
use super::super::shapes::printed::Sample;
use super::super::shapes::sides::Sides;
use super::setting::Setting;

/// What of all samples comes at least: discovery takes no more than most of a publisher's life.
const SOME: usize = 3;

fn taken(sides: &Sides) -> Result<Vec<Sample>, String> {
    let samples = sides.subscriber.samples();
    match samples.iter().find(|sample| sample.payload != Some(255)) {
        Some(other) => Err(format!("not as it was written: {other:?}")),
        None => Ok(samples),
    }
}

/// Some came, each as it was written, later ones later; both sides tell of each other.
pub(super) fn flows(sides: &Sides, _: Setting) -> Judgement {
    let samples = taken(sides)?;
    if samples.len() < SOME {
        return Err(format!(
            "{} samples came, {SOME} were to come at least",
            samples.len()
        ));
    }
    in_order(&samples)?;
    matched(sides)
}

fn in_order(samples: &[Sample]) -> Judgement {
    match samples.windows(2).find(|pair| pair[1].size <= pair[0].size) {
        Some(pair) => Err(format!(
            "number {} came after {}",
            pair[1].size, pair[0].size
        )),
        None => Ok(()),
    }
}

/// From the first that came to the last that was written, none is missing.
pub(super) fn all_that_was_written(sides: &Sides, setting: Setting) -> Judgement {
    flows(sides, setting)?;
    let (written, taken) = (sides.publisher.samples(), taken(sides)?);
    match written.ends_with(&taken) {
        true => Ok(()),
        false => Err(format!(
            "of {} written {} were taken, which are not the last of them",
            written.len(),
            taken.len()
        )),
    }
}

/// What is not repaired comes or is lost, as a whole.
pub(super) fn whole_or_nothing(sides: &Sides, setting: Setting) -> Judgement {
    if setting.needs_repair() {
        in_order(&taken(sides)?)?;
        return matched(sides);
    }
    flows(sides, setting)
}

/// A reader that looks seldom sees only what is newest then; of large samples a newer one may end the repair
/// of the one before.
pub(super) fn newest_only(sides: &Sides, setting: Setting) -> Judgement {
    whole_or_nothing(sides, setting)?;
    few(&taken(sides)?, &sides.publisher.samples())
}

fn few(taken: &[Sample], written: &[Sample]) -> Judgement {
    match taken.len() * 2 <= written.len() {
        true => Ok(()),
        false => Err(format!(
            "{} came of {}, at most half were to",
            taken.len(),
            written.len()
        )),
    }
}

/// Time keeps most of them away; where none is lost on the way some come.
pub(super) fn rarely(sides: &Sides, setting: Setting) -> Judgement {
    let (written, taken) = (sides.publisher.samples(), taken(sides)?);
    in_order(&taken)?;
    if taken.is_empty() && !setting.needs_repair() {
        return Err("none came".into());
    }
    few(&taken, &written)?;
    matched(sides)
}

/// A late reader gets what was written before it came, without a hole.
pub(super) fn from_the_first(sides: &Sides, setting: Setting) -> Judgement {
    all_that_was_written(sides, setting)?;
    match taken(sides)?.first() {
        Some(first) if first.size == 1 => Ok(()),
        first => Err(format!("it begins with {first:?}")),
    }
}

/// It gets none of that.
pub(super) fn not_from_the_first(sides: &Sides, setting: Setting) -> Judgement {
    flows(sides, setting)?;
    match taken(sides)?.first() {
        Some(first) if first.size == 1 => Err("it begins with the first sample".into()),
        _ => Ok(()),
    }
}

/// Nobody is told, and nothing comes.
pub(super) fn apart(sides: &Sides) -> Judgement {
    let matched = [
        sides.publisher.told("on_publication_matched"),
        sides.subscriber.told("on_subscription_matched"),
    ]
    .concat();
    match matched.first() {
        Some(line) => Err(format!("somebody was told: {line}")),
        None => nothing_flows(sides),
    }
}

/// The writer was alive all the time it wrote: who then waits longer than the lease until all is acknowledged says
/// nothing, and is not alive by its topic.
pub(super) fn lively(sides: &Sides, setting: Setting) -> Judgement {
    flows(sides, setting)?;
    let lost = sides
        .publisher
        .told_before_the_last_sample("on_liveliness_lost");
    match lost.first() {
        Some(line) => Err(format!("the publisher was told {line}")),
        None => came_alive(sides),
    }
}

fn came_alive(sides: &Sides) -> Judgement {
    let told = sides.subscriber.told("on_liveliness_changed");
    let is_alive = |line: &&&str| line.ends_with("(alive = 1, not_alive = 0)");
    match told.iter().find(is_alive) {
        Some(_) => Ok(()),
        None => Err(format!("the subscriber saw no writer alive, but {told:?}")),
    }
}

/// It was silent for too long, and both sides tell.
pub(super) fn lost_liveliness(sides: &Sides) -> Judgement {
    came_alive(sides)?;
    if sides.publisher.told("on_liveliness_lost").is_empty() {
        return Err("the publisher was not told".into());
    }
    let told = sides.subscriber.told("on_liveliness_changed");
    let is_lost = |line: &&&str| line.ends_with("(alive = 0, not_alive = 1)");
    match told.iter().find(is_lost) {
        Some(_) => Ok(()),
        None => Err(format!("the subscriber saw no writer lost, but {told:?}")),
    }
}

/// The subscriber saw what the writer says of itself.
pub(super) fn shows_data(sides: &Sides, words: &str) -> Judgement {
    let line = format!("data of a writer of Square: {words}");
    match sides.subscriber.has(&line) {
        true => matched(sides),
        false => Err(format!("the subscriber did not print: {line}")),
    }
}
