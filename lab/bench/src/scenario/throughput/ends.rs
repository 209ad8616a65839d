//! Reading and writing end of a throughput run.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use isolane::{DataReader, DataWriter, Limits, Participant, Sample, WriteError};
use isolane_rtps::WriteError as Refusal;
use serde::{Deserialize, Serialize};

use super::{EndConfig, Reliability};
use crate::clock::{NANOS_PER_SECOND, now_ns};
use crate::process::{Note, Notes, Usage, exact_timers};
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
    /// Resources of the process while samples came.
    pub usage: Usage,
    /// Counts of the participant.
    pub counts: EndCounts,
}

/// Runs the reader in the calling process until its parent stops it.
pub fn run_reader(
    config: &EndConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<ReaderReport, EndError> {
    let (notes, participant) = start(config, "isolane reader")?;
    let tally = Rc::new(Cell::new(Tally::default()));
    let _reader = count_into(&participant, config, &tally)?;
    end::run_until_matched(&participant, 1, stop)?;
    ready(&notes.0);
    let before = Usage::now();
    end::run_until_stopped(&participant, stop);
    let tally = tally.get();
    Ok(ReaderReport {
        samples: tally.samples,
        elapsed_ns: tally.last_ns - tally.first_ns,
        usage: Usage::now().since(&before),
        counts: EndCounts::of(&participant, None, &[config.topic()], None),
    })
}

/// Pins the process to a core and creates the participant. The process never sleeps in this scenario, so it gets no
/// real-time priority.
fn start(config: &EndConfig, name: &str) -> Result<(Notes, Participant), EndError> {
    config.run.check()?;
    let mut notes = Notes::pinned(config.core);
    notes.0.extend(exact_timers().err());
    let (site, limits) = (config.site, Limits::default());
    let participant = end::participant_with(
        site,
        config.transport,
        config.run.waiting,
        name,
        Order::Priority,
        limits,
    )?;
    Ok((notes, participant))
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
    Ok(match config.run.reliability {
        Reliability::BestEffort => {
            let reader = participant.create_view_reader::<RttMessage>(config.topic(), &qos)?;
            reader.on_view(move |sample| tally.set(tally.get().count(&sample)));
            reader
        }
        Reliability::Reliable => {
            let reader = participant.create_reader::<RttMessage>(config.topic(), &qos)?;
            let value = RttMessage::of_size(config.run.payload_bytes)?;
            reader.on_sample(value, move |sample| tally.set(tally.get().count(&sample)))?;
            reader
        }
    })
}

/// Number of best-effort writes between two turns of the event loop. The turns keep discovery alive.
const WRITES_PER_LOOK: u32 = 256;

/// Unsent long samples from which on the event loop runs: it sends their fragments, and a writer keeps sixteen of them.
const MAX_PENDING: u64 = 8;

/// Time limit for the acknowledgement of the last samples.
const ACKNOWLEDGE: Duration = Duration::from_secs(5);

/// Report of the writer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterReport {
    /// Samples given to `write` and accepted, or refused for good.
    pub offered: u64,
    /// Samples refused for good.
    pub refused: u64,
    /// Number of times a full history blocked the writer.
    pub waits: u64,
    /// True when the reader has received all samples, as far as the writer knows.
    pub acknowledged: bool,
    /// Nanoseconds from the first write to the last.
    pub elapsed_ns: u64,
    /// Resources of the process while it wrote.
    pub usage: Usage,
    /// Counts of the participant.
    pub counts: EndCounts,
}

/// Runs the writer in the calling process until its time is over.
pub fn run_writer(
    config: &EndConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<WriterReport, EndError> {
    let (notes, participant) = start(config, "isolane writer")?;
    let writer = participant.create_writer::<RttMessage>(config.topic(), &config.qos())?;
    end::run_until_matched(&participant, config.run.readers.into(), stop)?;
    ready(&notes.0);
    end::run_until_go(&participant, stop)?;

    let mut report = WriterReport {
        offered: 0,
        refused: 0,
        waits: 0,
        acknowledged: true,
        elapsed_ns: 0,
        usage: Usage::now(),
        counts: EndCounts::default(),
    };
    write_for(config, &participant, &writer, stop, &mut report)?;
    report.usage = Usage::now().since(&report.usage);
    if config.run.reliability == Reliability::Reliable {
        let all = || writer.all_acknowledged();
        report.acknowledged = end::run_until(&participant, stop, ACKNOWLEDGE, all)?;
    } else {
        // Samples in a partial datagram or pending fragments would be sent after being counted as unsent.
        writer.flush();
        let none_waits = || writer.ledger().pending == 0;
        end::run_until(&participant, stop, ACKNOWLEDGE, none_waits)?;
    }
    report.counts = EndCounts::of(&participant, None, &[config.topic()], None);
    Ok(report)
}

/// Writes until the time is over.
fn write_for(
    config: &EndConfig,
    participant: &Participant,
    writer: &DataWriter<RttMessage>,
    stop: &Stop,
    report: &mut WriterReport,
) -> Result<(), EndError> {
    let mut message = RttMessage::new(config.run.payload_bytes, config.run.content)?;
    let start_ns = now_ns();
    let length_ns = u64::from(config.run.seconds) * NANOS_PER_SECOND;
    let is_staged = config.run.reliability == Reliability::BestEffort && config.run.is_fragmented();
    let mut since_look = 0;
    loop {
        report.elapsed_ns = now_ns() - start_ns;
        if report.elapsed_ns >= length_ns {
            return Ok(());
        }
        if let Some(rate_hz) = config.run.rate_hz {
            let due_ns = report.offered * NANOS_PER_SECOND / u64::from(rate_hz);
            if due_ns >= length_ns {
                return Ok(());
            }
            let early_ns = due_ns.saturating_sub(report.elapsed_ns);
            if early_ns > 0 {
                participant.run_for(Duration::from_nanos(early_ns));
            }
        }
        message.id = report.offered as u32;
        match writer.write(&message) {
            Ok(()) => report.offered += 1,
            Err(WriteError::Protocol(Refusal::HistoryFull)) => {
                report.waits += 1;
                if participant.poll() == 0 {
                    one_turn(participant);
                }
            }
            Err(WriteError::NoFrame) => {
                report.offered += 1;
                report.refused += 1;
            }
            Err(error) => return Err(error.into()),
        }
        since_look += 1;
        if since_look == WRITES_PER_LOOK {
            since_look = 0;
            participant.poll();
            if stop.is_requested() {
                return Err(EndError::Stopped);
            }
        }
        let is_over = || now_ns() - start_ns >= length_ns || stop.is_requested();
        while is_staged && writer.ledger().pending >= MAX_PENDING && !is_over() {
            participant.poll();
        }
    }
}

/// Waits for the next activation and runs it.
fn one_turn(participant: &Participant) {
    let mut asked = 0;
    participant.run_until(Duration::from_millis(1), || {
        asked += 1;
        asked > 1
    });
}
