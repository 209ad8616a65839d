//! `isolane sub`: one reader that prints every shape it gets, a line each.

use std::collections::BTreeMap;
use std::time::Duration;

use isolane::{DataReader, InstanceState, Sample};

use super::participant::{Until, build, failure, qos};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::MAX_COLORS;
use crate::output::{print, tell};
use crate::settings::SubscribeSettings;
use crate::shape::{ShapeType, line};

/// How long it stays after the last sample asked for, so that acknowledgments leave and a sample
/// too many would show.
const LINGER: Duration = Duration::from_millis(500);

/// Subscribes until the count, the time or the person says stop.
pub(crate) fn run(settings: SubscribeSettings) -> Result<ExitCode, Failure> {
    let until = Until::new(settings.endpoint.run_for.value)?;
    let participant = build(&settings.endpoint.network, &settings.endpoint.peers.value)?;
    let reader = participant
        .create_reader::<ShapeType>(&settings.endpoint.topic, &qos(&settings.endpoint))
        .map_err(failure)?;

    let mut printer = Printer {
        reader,
        topic: settings.endpoint.topic.clone(),
        colors: BTreeMap::new(),
        samples: 0,
        unreadable: 0,
    };
    let wanted = settings.count.value.unwrap_or(u64::MAX);
    let mut printed = Ok(ExitCode::Done);
    let done = until.run(&participant, || {
        printed = printer.print_available();
        printed.is_err() || printer.samples >= wanted
    });
    printed?;
    if done {
        participant.run_for(LINGER);
        printer.print_available()?;
    }
    let ledger = printer.reader.ledger();
    tell(format!(
        "{} samples, {} lost, {} rejected ({} of them not ShapeType)",
        printer.samples, ledger.lost, ledger.rejected, printer.unreadable
    ));
    Ok(if until.interrupted() {
        ExitCode::Interrupted
    } else if settings
        .count
        .value
        .is_some_and(|count| printer.samples < count)
    {
        tell_why_too_few(&printer.reader);
        ExitCode::AnswerIsNo
    } else {
        ExitCode::Done
    })
}

struct Printer {
    reader: DataReader<ShapeType>,
    topic: String,
    /// Colours by key hash: the end of an instance may carry no more than the hash.
    colors: BTreeMap<[u8; 16], String>,
    samples: u64,
    unreadable: u64,
}

impl Printer {
    fn print_available(&mut self) -> Result<ExitCode, Failure> {
        loop {
            match self.reader.take() {
                Ok(Some(sample)) => print(&self.describe(sample))?,
                Ok(None) => return Ok(ExitCode::Done),
                Err(_) => {
                    self.unreadable += 1;
                    continue;
                }
            };
        }
    }

    fn describe(&mut self, sample: Sample<ShapeType>) -> String {
        let key = sample.info.key_hash.unwrap_or_default();
        match sample.value {
            Some(shape) => {
                self.samples += 1;
                if self.colors.len() < MAX_COLORS {
                    self.colors
                        .entry(key)
                        .or_insert_with(|| shape.color.as_str().into());
                }
                format!("{}\n", line(&self.topic, &shape))
            }
            None => {
                let color = self.colors.get(&key).map_or("?", String::as_str);
                let state = match sample.info.instance_state {
                    InstanceState::Alive => "ALIVE_INSTANCE_STATE",
                    InstanceState::NotAliveDisposed => "NOT_ALIVE_DISPOSED_INSTANCE_STATE",
                    InstanceState::NotAliveNoWriters => "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
                };
                format!("{:<10} {color:<10} {state}\n", self.topic)
            }
        }
    }
}

fn tell_why_too_few(reader: &DataReader<ShapeType>) {
    match reader.incompatible() {
        Some(found) => tell(format!(
            "{} writers offer less than is requested: {}",
            found.total,
            found.policy.name()
        )),
        None if reader.matched_writers() == 0 => tell("the time was over; no writer is matched"),
        None => tell("the time was over first"),
    }
}
