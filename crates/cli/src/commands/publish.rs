//! `isolane pub`: a writer that publishes a moving shape.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use isolane::types::BoundedString;
use isolane::{DataWriter, Participant};
use isolane_model::{Durability, Reliability, format_duration};

use super::lane;
use super::ledgers;
use super::participant::{Until, build_endpoint, failure, qos};
use super::watch::{Side, Watch};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::{AtEnd, PublishSettings};
use crate::shape::{ShapeType, position};

/// Time limit for the last acknowledgements of a reliable writer.
const LAST_ACKNOWLEDGMENTS: Duration = Duration::from_secs(5);
/// Time that a best-effort writer stays, so that readers take its last samples before they see it leave.
const LINGER: Duration = Duration::from_millis(500);

/// Publishes until the count, the time or a signal ends it.
pub(crate) fn run(settings: PublishSettings) -> Result<ExitCode, Failure> {
    let until =
        Until::new(settings.endpoint.run_for.value)?.with_network(&settings.endpoint.network);
    let (participant, mut notes) = build_endpoint(
        &format!("isolane pub {}", settings.endpoint.topic),
        &settings.endpoint,
    )?;
    lane::protect(&participant, &settings.endpoint.lane)?;
    let writer = participant
        .create_writer::<ShapeType>(
            &settings.endpoint.topic,
            &qos(&settings.endpoint).autodispose(false),
        )
        .map_err(failure)?;
    notes.tell(&participant);
    let writer = Rc::new(writer);

    let verbosity = settings.endpoint.network.verbosity;
    let mut watch = Watch::new(Side::Writer, verbosity);
    let ended = publish_all(&participant, &writer, &settings, &until, &mut watch);
    watch.look(writer.matched_readers(), writer.incompatible());
    watch.tell_end();
    tell(format!(
        "{}; {}",
        ledgers::of_writer(&writer.ledger()),
        watch.matched()
    ));
    if verbosity > 1 {
        ledgers::tell_all(&participant);
    }
    ended
}

/// Waits for a subscriber if the durability is volatile, publishes, and ends the instance.
fn publish_all(
    participant: &Participant,
    writer: &Rc<DataWriter<ShapeType>>,
    settings: &PublishSettings,
    until: &Until,
    watch: &mut Watch,
) -> Result<ExitCode, Failure> {
    if settings.endpoint.durability.value == Durability::Volatile {
        tell(format!(
            "waiting for a subscriber of {}",
            settings.endpoint.topic
        ));
        let matched = until.run(participant, || {
            watch.look(writer.matched_readers(), writer.incompatible());
            writer.matched_readers() > 0
        });
        if !matched {
            return Ok(ended(until, "no subscriber was found"));
        }
    }
    let written = publish(participant, writer, settings, until, watch)?;
    let acknowledged = finish(participant, writer, settings);
    if until.interrupted() {
        Ok(ExitCode::Interrupted)
    } else if settings.count.value.is_some_and(|count| written < count) {
        Ok(ended(until, "the time was over first"))
    } else if !acknowledged {
        tell("not every reader has acknowledged every sample");
        Ok(ExitCode::AnswerIsNo)
    } else {
        Ok(ExitCode::Done)
    }
}

/// Writes a sample per period from a time-triggered job, and returns the number written. A sample refused by a full
/// history is retried a period later.
fn publish(
    participant: &Participant,
    writer: &Rc<DataWriter<ShapeType>>,
    settings: &PublishSettings,
    until: &Until,
    watch: &mut Watch,
) -> Result<u64, Failure> {
    let written = Rc::new(Cell::new(0));
    let wanted = settings.count.value.unwrap_or(u64::MAX);
    let timer = {
        let (writer, written) = (writer.clone(), written.clone());
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
                // The ledger counts refusals.
                if writer.write(&shape).is_ok() {
                    written.set(written.get() + 1);
                }
            },
        )
    };
    let timer = timer.map_err(failure)?;
    tell(format!(
        "publishing {} every {}",
        settings.endpoint.topic,
        format_duration(settings.period.value)
    ));
    until.run(participant, || {
        watch.look(writer.matched_readers(), writer.incompatible());
        written.get() == wanted
    });
    participant.stop_timer(timer);
    Ok(written.get())
}

/// Waits for acknowledgements, because the end of the instance would evict samples from a KEEP_LAST history, then ends
/// the instance as configured. Returns whether all samples were acknowledged.
fn finish(
    participant: &Participant,
    writer: &DataWriter<ShapeType>,
    settings: &PublishSettings,
) -> bool {
    let reliable = settings.endpoint.reliability.value == Reliability::Reliable;
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

fn ended(until: &Until, what: &str) -> ExitCode {
    if until.interrupted() {
        return ExitCode::Interrupted;
    }
    tell(what);
    ExitCode::AnswerIsNo
}
