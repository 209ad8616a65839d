//! `isolane pub`: a writer that publishes a moving shape.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use isolane::types::BoundedString;
use isolane::{DataWriter, Participant};
use isolane_model::{Sourced, format_duration};

use super::match_report::{MatchReport, Side};
use super::shape::{ShapeType, position};
use super::{EndpointArguments, EndpointSettings};
use crate::commands::ledger_text;
use crate::commands::participant::{Until, build_endpoint, failure};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::MAX_COLOR_BYTES;
use crate::output::tell;
use crate::settings::Settings;
use crate::values::{count, duration};

/// Maximum wait for the last acknowledgements of a reliable writer.
const LAST_ACKNOWLEDGMENTS: Duration = Duration::from_secs(5);
/// Time that the writer remains after its last sample, so that readers take that sample before the writer leaves.
const LINGER: Duration = Duration::from_millis(500);

/// Default period, as in the shapes demonstrations of other DDS implementations.
const DEFAULT_PERIOD: Duration = Duration::from_millis(33);

#[derive(Debug, Args)]
pub(crate) struct Publish {
    #[command(flatten)]
    endpoint: EndpointArguments,
    /// Set the colour of the shape; each colour is an instance
    ///
    /// The colour is the key of the topic, and has at most 128 bytes.
    #[arg(long, value_name = "COLOR", value_parser = color, default_value = "BLUE")]
    color: BoundedString<MAX_COLOR_BYTES>,
    /// Set the size of the shape in pixels, 0 or more
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(i32).range(0..),
        allow_negative_numbers = true,
        default_value = "20"
    )]
    size: i32,
    /// Set the time between samples, as 500us or 1s [default: 33ms]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    period: Option<Duration>,
    /// Stop after this many samples [default: no limit]
    #[arg(long, value_name = "N", value_parser = count())]
    count: Option<u64>,
    /// Dispose the instance at the end
    ///
    /// The writer is deleted half a second later.
    #[arg(long, conflicts_with = "unregister_at_end")]
    dispose_at_end: bool,
    /// Unregister the instance at the end
    ///
    /// The writer is deleted half a second later. Without --dispose-at-end and --unregister-at-end, it is deleted at
    /// once.
    #[arg(long)]
    unregister_at_end: bool,
}

/// Complete settings of a publisher.
#[derive(Debug)]
pub(crate) struct PublishSettings {
    pub(crate) endpoint: EndpointSettings,
    pub(crate) period: Duration,
    shape: ShapeType,
    /// Number of samples to write; `None`: until the time is over or a signal arrives.
    count: Option<u64>,
    dispose_at_end: bool,
    unregister_at_end: bool,
}

impl Publish {
    /// Publishes until the count is reached, the time is over, or a signal arrives.
    pub(crate) fn run(self, mut settings: Settings) -> Result<ExitCode, Failure> {
        let publish = self.resolve(&mut settings)?;
        settings.begin()?;
        run(&publish)
    }

    /// Resolves the options with the description.
    pub(crate) fn resolve(self, settings: &mut Settings) -> Result<PublishSettings, Failure> {
        let system = settings.system.as_ref();
        let topic = system.and_then(|system| system.topic(&self.endpoint.topic));
        let described = topic.and_then(|topic| {
            let period = topic.period.value?;
            Some(Sourced::new(period, topic.period.source.clone()))
        });
        let period = settings.layered(
            "--period",
            self.period,
            described.as_ref(),
            Sourced::default_value(DEFAULT_PERIOD),
            |period| format_duration(*period),
        );
        Ok(PublishSettings {
            endpoint: self.endpoint.resolve(Side::Writer, self.period, settings)?,
            period,
            shape: ShapeType {
                color: self.color,
                shapesize: self.size,
                ..ShapeType::default()
            },
            count: self.count,
            dispose_at_end: self.dispose_at_end,
            unregister_at_end: self.unregister_at_end,
        })
    }
}

/// Parses a colour; refuses one that is longer than ShapeType allows.
fn color(text: &str) -> Result<BoundedString<MAX_COLOR_BYTES>, String> {
    BoundedString::try_from(text)
        .map_err(|_| format!("ShapeType's color holds at most {MAX_COLOR_BYTES} bytes"))
}

fn run(settings: &PublishSettings) -> Result<ExitCode, Failure> {
    let until = Until::new(settings.endpoint.run_for)?.with_network(&settings.endpoint.network);
    let (participant, mut notes) = build_endpoint(
        &format!("isolane pub {}", settings.endpoint.topic),
        &settings.endpoint,
    )?;
    let writer = participant
        .create_writer::<ShapeType>(
            &settings.endpoint.topic,
            &settings.endpoint.qos.clone().autodispose(false),
        )
        .map_err(failure)?;
    notes.tell(&participant);
    let writer = Rc::new(writer);

    let verbosity = settings.endpoint.network.verbosity;
    let mut report = MatchReport::new(Side::Writer, verbosity);
    let ended = publish_all(&participant, &writer, settings, &until, &mut report);
    report.look(writer.matched_readers(), writer.incompatible());
    report.tell_end();
    tell(format!(
        "{}; {}",
        ledger_text::of_writer(&writer.ledger()),
        report.matched()
    ));
    if verbosity > 1 {
        ledger_text::tell_all(&participant);
    }
    ended
}

/// Publishes, and ends the instance. A volatile writer first waits for a subscriber.
fn publish_all(
    participant: &Participant,
    writer: &Rc<DataWriter<ShapeType>>,
    settings: &PublishSettings,
    until: &Until,
    report: &mut MatchReport,
) -> Result<ExitCode, Failure> {
    if settings.endpoint.is_volatile {
        tell(format!(
            "waiting for a subscriber of {}",
            settings.endpoint.topic
        ));
        let matched = until.run(participant, || {
            report.look(writer.matched_readers(), writer.incompatible());
            writer.matched_readers() > 0
        });
        if !matched {
            return Ok(ended(until, "no subscriber was found"));
        }
    }
    let written = publish(participant, writer, settings, until, report)?;
    let acknowledged = finish(participant, writer, settings);
    if until.interrupted() {
        Ok(ExitCode::Interrupted)
    } else if settings.count.is_some_and(|count| written < count) {
        Ok(ended(
            until,
            "the time ended before all samples were written",
        ))
    } else if !acknowledged {
        tell("not every reader has acknowledged every sample");
        Ok(ExitCode::AnswerIsNo)
    } else {
        Ok(ExitCode::Done)
    }
}

/// Writes one sample each period in a timer's job, and returns the number of samples written. If the history is full,
/// the sample is written again one period later.
fn publish(
    participant: &Participant,
    writer: &Rc<DataWriter<ShapeType>>,
    settings: &PublishSettings,
    until: &Until,
    report: &mut MatchReport,
) -> Result<u64, Failure> {
    let written = Rc::new(Cell::new(0));
    let wanted = settings.count.unwrap_or(u64::MAX);
    let timer = {
        let (writer, written) = (writer.clone(), written.clone());
        let mut shape = settings.shape.clone();
        let name = format!("publish {}", settings.endpoint.topic);
        let level = settings.endpoint.level;
        participant.create_timer(&name, level, settings.period, Duration::ZERO, move |_| {
            if written.get() == wanted {
                return;
            }
            [shape.x, shape.y] = position(written.get());
            // The writer's ledger counts refused samples.
            if writer.write(&shape).is_ok() {
                written.set(written.get() + 1);
            }
        })
    };
    let timer = timer.map_err(failure)?;
    tell(format!(
        "publishing {} every {}",
        settings.endpoint.topic,
        format_duration(settings.period)
    ));
    until.run(participant, || {
        report.look(writer.matched_readers(), writer.incompatible());
        written.get() == wanted
    });
    participant.stop_timer(timer);
    Ok(written.get())
}

/// Waits for acknowledgements, and then ends the instance as configured. To end an instance is a change, which could
/// replace unacknowledged samples of a KEEP_LAST history. Returns whether all samples were acknowledged.
fn finish(
    participant: &Participant,
    writer: &DataWriter<ShapeType>,
    settings: &PublishSettings,
) -> bool {
    let reliable = settings.endpoint.is_reliable;
    let shape = &settings.shape;
    let mut acknowledged = !reliable || writer.wait_for_acknowledgments(LAST_ACKNOWLEDGMENTS);
    let end = match (settings.dispose_at_end, settings.unregister_at_end) {
        (true, _) => writer.dispose(shape),
        (_, true) => writer.unregister(shape),
        // Deleting the writer unregisters the instance.
        (false, false) => Ok(()),
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

fn ended(until: &Until, what: &str) -> ExitCode {
    if until.interrupted() {
        return ExitCode::Interrupted;
    }
    tell(what);
    ExitCode::AnswerIsNo
}
