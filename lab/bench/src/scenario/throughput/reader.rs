//! Reading end of a throughput run.

use std::cell::Cell;
use std::rc::Rc;

use isolane::{DataReader, Limits, Participant, Sample};
use serde::{Deserialize, Serialize};

use super::{EndConfig, Reliability, TOPIC};
use crate::clock::now_ns;
use crate::process::{self, Note, Notes};
use crate::report::Order;
use crate::scenario::RttMessage;
use crate::scenario::end::{self, EndError};
use crate::scenario::flow::EndCounts;
use crate::stop::Stop;

/// Report of the reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderReport {
    /// Samples received by the callback.
    pub samples: u64,
    /// Nanoseconds from the first sample to the last.
    pub elapsed_ns: u64,
    /// Counts of the participant.
    pub counts: EndCounts,
}

/// Runs the reader in the calling process until its parent stops it.
pub fn run_reader(
    config: &EndConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<ReaderReport, EndError> {
    config.check()?;
    let notes = take_core(config.core);
    let (order, limits) = (Order::Priority, Limits::default());
    let participant = end::participant_with(
        config.site,
        config.transport,
        "isolane reader",
        order,
        limits,
    )?;
    let tally = Rc::new(Cell::new(Tally::default()));
    let _reader = count_into(&participant, config, &tally)?;
    end::run_until_matched(&participant, stop)?;
    ready(&notes.0);
    end::run_until_stopped(&participant, stop);
    let tally = tally.get();
    Ok(ReaderReport {
        samples: tally.samples,
        elapsed_ns: tally.last_ns - tally.first_ns,
        counts: EndCounts::of(&participant, None, &[TOPIC], None),
    })
}

/// Pins the process to a core, without a real-time priority, because this scenario never sleeps.
pub(super) fn take_core(core: Option<usize>) -> Notes {
    let mut notes = Notes::default();
    if let Some(core) = core {
        notes.collect(process::pin_to_core(core));
    }
    notes
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    samples: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Tally {
    /// Counts a sample, unless it only reports the end of its writer.
    fn count<V>(self, sample: &Sample<V>) -> Tally {
        if sample.value.is_none() {
            return self;
        }
        let now_ns = now_ns();
        Tally {
            samples: self.samples + 1,
            first_ns: if self.samples == 0 {
                now_ns
            } else {
                self.first_ns
            },
            last_ns: now_ns,
        }
    }
}

fn count_into(
    participant: &Participant,
    config: &EndConfig,
    tally: &Rc<Cell<Tally>>,
) -> Result<DataReader<RttMessage>, EndError> {
    let tally = Rc::clone(tally);
    let qos = config.qos();
    Ok(match config.reliability {
        Reliability::BestEffort => {
            let reader = participant.create_view_reader::<RttMessage>(TOPIC, &qos)?;
            reader.on_view(move |sample| tally.set(tally.get().count(&sample)));
            reader
        }
        Reliability::Reliable => {
            let reader = participant.create_reader::<RttMessage>(TOPIC, &qos)?;
            let value = RttMessage::of_size(config.payload_bytes)?;
            reader.on_sample(value, move |sample| tally.set(tally.get().count(&sample)))?;
            reader
        }
    })
}
