//! `isolane pub`: one writer that publishes a moving shape.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use isolane::types::BoundedString;
use isolane::{DataWriter, Participant};
use isolane_model::Durability;

use super::participant::{Until, build, failure, qos};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::{AtEnd, PublishSettings};
use crate::shape::{ShapeType, position};

/// How long a reliable writer waits for the last acknowledgments before it leaves.
const LAST_ACKNOWLEDGMENTS: Duration = Duration::from_secs(5);
/// How long a best-effort one stays, so that what it sent is taken before readers see it leave.
const LINGER: Duration = Duration::from_millis(500);

/// Publishes until the count, the time or the person says stop.
pub(crate) fn run(settings: PublishSettings) -> Result<ExitCode, Failure> {
    let until = Until::new(settings.endpoint.run_for.value)?;
    let participant = build(&settings.endpoint.network, &settings.endpoint.peers.value)?;
    let qos = qos(&settings.endpoint);
    let writer = participant
        .create_writer::<ShapeType>(&settings.endpoint.topic, &qos)
        .map_err(failure)?;
    let writer = Rc::new(writer);

    if settings.endpoint.durability.value == Durability::Volatile {
        tell(format!(
            "waiting for a subscriber of {}",
            settings.endpoint.topic
        ));
        let matched = until.run(&participant, || writer.matched_readers() > 0);
        if !matched {
            return Ok(ended(
                &until,
                "no subscriber was found",
                &incompatible(&writer),
            ));
        }
    }
    let (written, refused) = publish(&participant, &writer, &settings, &until)?;
    let acknowledged = finish(&participant, &writer, &settings, qos.is_reliable());
    tell(format!(
        "{written} samples written, {refused} tries found the history full, {} readers matched",
        writer.matched_readers()
    ));
    if until.interrupted() {
        Ok(ExitCode::Interrupted)
    } else if settings.count.value.is_some_and(|count| written < count) {
        Ok(ended(&until, "the time was over first", ""))
    } else if !acknowledged {
        tell("not every reader has acknowledged every sample");
        Ok(ExitCode::AnswerIsNo)
    } else {
        Ok(ExitCode::Done)
    }
}

/// Writes a sample a period from a time-triggered job. How many were written, and how often the
/// history was full: then the sample is tried again a period later.
fn publish(
    participant: &Participant,
    writer: &Rc<DataWriter<ShapeType>>,
    settings: &PublishSettings,
    until: &Until,
) -> Result<(u64, u64), Failure> {
    let written = Rc::new(Cell::new(0));
    let refused = Rc::new(Cell::new(0));
    let wanted = settings.count.value.unwrap_or(u64::MAX);
    let timer = {
        let (writer, written, refused) = (writer.clone(), written.clone(), refused.clone());
        let mut shape = shape(settings);
        let name = format!("publish {}", settings.endpoint.topic);
        let level = settings.endpoint.level.value;
        participant.create_timer(
            &name,
            level,
            settings.period.value,
            Duration::ZERO,
            move |_| {
                if written.get() == wanted {
                    return;
                }
                [shape.x, shape.y] = position(written.get());
                match writer.write(&shape) {
                    Ok(()) => written.set(written.get() + 1),
                    Err(_) => refused.set(refused.get() + 1),
                }
            },
        )
    };
    let timer = timer.map_err(failure)?;
    until.run(participant, || written.get() == wanted);
    participant.stop_timer(timer);
    Ok((written.get(), refused.get()))
}

/// Waits for what is on the way (a KEEP_LAST history would drop it for the end of the instance), then
/// ends the instance as it was asked. Whether all was acknowledged.
fn finish(
    participant: &Participant,
    writer: &DataWriter<ShapeType>,
    settings: &PublishSettings,
    reliable: bool,
) -> bool {
    let shape = shape(settings);
    let mut acknowledged = !reliable || writer.wait_for_acknowledgments(LAST_ACKNOWLEDGMENTS);
    let end = match settings.at_end.value {
        AtEnd::Leave => Ok(()),
        AtEnd::Dispose => writer.dispose(&shape),
        AtEnd::Unregister => writer.unregister(&shape),
    };
    if let Err(error) = end {
        tell(format!(
            "the end of the instance could not be written: {error}"
        ));
    }
    acknowledged &= !reliable || writer.wait_for_acknowledgments(LAST_ACKNOWLEDGMENTS);
    participant.run_for(LINGER);
    acknowledged
}

fn shape(settings: &PublishSettings) -> ShapeType {
    ShapeType {
        // The settings have checked its length.
        color: BoundedString::try_from(settings.color.value.as_str()).unwrap_or_default(),
        shapesize: settings.size.value,
        ..ShapeType::default()
    }
}

/// Why readers of the topic do not match, if there are such.
fn incompatible(writer: &DataWriter<ShapeType>) -> String {
    writer.incompatible().map_or_else(String::new, |found| {
        format!(
            ": {} readers ask for more than is offered: {}",
            found.total,
            found.policy.name()
        )
    })
}

fn ended(until: &Until, what: &str, why: &str) -> ExitCode {
    if until.interrupted() {
        return ExitCode::Interrupted;
    }
    tell(format!("{what}{why}"));
    ExitCode::AnswerIsNo
}
