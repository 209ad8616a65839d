//! Bulk topics in both directions between the participants of a round trip. Both executors have samples to write, send,
//! receive, deliver, acknowledge and, with losses, retransmit between round trips.
//!
//! Timers refill the history many times a second as acknowledgements free room. Several timers released together
//! emulate several bulk sources, and each writes few samples: an activation cannot be pre-empted, so a single timer
//! that filled the history would delay everything in any order.
//!
//! Large samples are written one at a time and leave in fragments. They show how long a critical sample waits in a
//! participant that also sends camera images. Serialising one and copying it out of the cache is one activation each.
//!
//! If the readers' samples are not taken, bulk ends when cache and history are full. Then the reader only repeats its
//! requests, and the writer its retransmissions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use isolane::{DataReader, DataWriter, Level, Participant, Qos, Timer, WriteError};
use isolane_rtps::WriteError as Refusal;
use serde::{Deserialize, Serialize};

use crate::scenario::RttMessage;
use crate::scenario::end::EndError;

/// Topic from the ping end to the pong end.
pub const TOPIC_THERE: &str = "BulkThere";
/// Topic from the pong end to the ping end.
pub const TOPIC_BACK: &str = "BulkBack";

/// Serialised size of small samples, in bytes.
pub const PAYLOAD_BYTES: u32 = 1_024;
/// Serialised size of large samples, in bytes.
const LARGE_PAYLOAD_BYTES: u32 = 1 << 20;

/// History depth for small samples, and so the maximum burst.
pub(in crate::scenario) const HISTORY_SAMPLES: u16 = 64;
/// History depth for large samples: one is written while the previous one is sent.
const LARGE_HISTORY_SAMPLES: u16 = 2;

/// Maximum number of samples written by one activation, equal to the number taken from another thread's ring.
const SAMPLES_PER_ACTIVATION: u16 = 4;

/// Refill period for small samples.
const REFILL_PERIOD: Duration = Duration::from_millis(6);
/// Refill period for large samples. Ten per second in both directions are some 17,000 frames.
const LARGE_REFILL_PERIOD: Duration = Duration::from_millis(100);

/// Kind of bulk samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BulkKind {
    /// Samples of 1 KiB, as fast as they are acknowledged.
    Small,
    /// Samples of 1 MiB, ten per second.
    Large,
}

impl BulkKind {
    /// Serialised size of the samples, in bytes.
    pub fn payload_bytes(self) -> u32 {
        match self {
            Self::Small => PAYLOAD_BYTES,
            Self::Large => LARGE_PAYLOAD_BYTES,
        }
    }

    /// Minimum number of samples received per second in both directions together for a valid run. It corresponds to one
    /// or two small samples per refill, or a large one every other refill.
    pub fn least_per_s(self) -> f64 {
        match self {
            Self::Small => 1_600.0,
            Self::Large => 10.0,
        }
    }

    fn history_samples(self) -> u16 {
        match self {
            Self::Small => HISTORY_SAMPLES,
            Self::Large => LARGE_HISTORY_SAMPLES,
        }
    }

    fn samples_per_activation(self) -> u16 {
        match self {
            Self::Small => SAMPLES_PER_ACTIVATION,
            Self::Large => 1,
        }
    }

    /// Number of writing timers; those for small samples can together fill the history.
    fn jobs(self) -> u16 {
        match self {
            Self::Small => HISTORY_SAMPLES / SAMPLES_PER_ACTIVATION,
            Self::Large => 1,
        }
    }

    fn refill_period(self) -> Duration {
        match self {
            Self::Small => REFILL_PERIOD,
            Self::Large => LARGE_REFILL_PERIOD,
        }
    }
}

/// Level of bulk: above the default, far below the measured one.
fn level() -> Level {
    Level::clamp(1)
}

fn qos(kind: BulkKind) -> Qos {
    Qos::reliable()
        .keep_all()
        .max_samples(kind.history_samples())
        .level(level())
        .max_bytes(RttMessage::max_bytes(kind.payload_bytes()))
}

/// Bulk endpoints of one end: a writer of one topic and a reader of the other.
pub(in crate::scenario) struct Bulk {
    kind: BulkKind,
    writer: Rc<DataWriter<RttMessage>>,
    /// Reader whose callback decodes every sample as an application would, if samples are taken.
    _reader: DataReader<RttMessage>,
    /// True when readers take samples, at both ends.
    is_taken: bool,
    jobs: RefCell<Vec<Timer>>,
    /// Reason why writing ended early.
    fault: Rc<Cell<Option<WriteError>>>,
}

impl Bulk {
    pub(in crate::scenario) fn new(
        participant: &Participant,
        kind: BulkKind,
        [written, read]: [&str; 2],
        is_taken: bool,
    ) -> Result<Bulk, EndError> {
        let reader = participant.create_reader::<RttMessage>(read, &qos(kind))?;
        if is_taken {
            reader.on_sample(RttMessage::padded_to(kind.payload_bytes()), |_sample| {})?;
        }
        Ok(Bulk {
            kind,
            writer: Rc::new(participant.create_writer(written, &qos(kind))?),
            _reader: reader,
            is_taken,
            jobs: RefCell::default(),
            fault: Rc::default(),
        })
    }

    pub(in crate::scenario) fn begin(&self, participant: &Participant) -> Result<(), EndError> {
        for number in 0..self.kind.jobs() {
            let name = format!("write bulk {number}");
            let job = self.write_some();
            let timer = participant.create_timer(
                &name,
                level(),
                self.kind.refill_period(),
                Duration::ZERO,
                move |_release| job(),
            )?;
            self.jobs.borrow_mut().push(timer);
        }
        Ok(())
    }

    /// Returns an activation that writes a few samples, as far as the history has room.
    fn write_some(&self) -> impl Fn() + use<> {
        let (writer, fault) = (Rc::clone(&self.writer), Rc::clone(&self.fault));
        let message = RttMessage::padded_to(self.kind.payload_bytes());
        let samples = self.kind.samples_per_activation();
        move || {
            for _ in 0..samples {
                match writer.write(&message) {
                    Ok(()) => {}
                    Err(WriteError::LocalParticipant(Refusal::HistoryFull)) => return,
                    Err(error) => fault.set(Some(error)),
                }
            }
        }
    }

    /// Stops writing; written samples are still sent.
    pub(in crate::scenario) fn end(&self, participant: &Participant) -> Result<(), EndError> {
        for timer in self.jobs.borrow_mut().drain(..) {
            participant.stop_timer(timer);
        }
        self.fault.take().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Returns whether the other end has acknowledged all samples; `None` if it takes none.
    pub(in crate::scenario) fn is_acknowledged(&self) -> Option<bool> {
        self.is_taken.then(|| self.writer.all_acknowledged())
    }
}

/// Bulk samples counted by one participant, written and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkCounts {
    /// Samples accepted by `write`.
    pub written: u64,
    /// Samples retransmitted on request.
    pub repaired: u64,
    /// Samples passed to the reader's callback.
    pub delivered: u64,
    /// Samples not passed to the callback, for any counted reason.
    pub dropped: u64,
    /// Samples of `dropped` that are still in the reader's cache.
    pub kept: u64,
}

impl BulkCounts {
    pub(in crate::scenario) fn of(report: &isolane::Report) -> BulkCounts {
        let mut counts = BulkCounts::default();
        let is_bulk = |topic: &str| [TOPIC_THERE, TOPIC_BACK].contains(&topic);
        for writer in report.writers.iter().filter(|one| is_bulk(&one.topic)) {
            counts.written += writer.ledger.written;
            counts.repaired += writer.ledger.repaired;
        }
        for reader in report.readers.iter().filter(|one| is_bulk(&one.topic)) {
            let ledger = &reader.ledger;
            counts.delivered += ledger.delivered;
            counts.kept += ledger.available;
            counts.dropped += ledger.available + ledger.lost + ledger.evicted;
            counts.dropped += ledger.rejected + ledger.too_large;
        }
        counts
    }
}
