//! Bulk topics: one each way between the participants that make the round trips, so that either
//! executor has samples to write, send, receive, hand to callbacks, acknowledge and, with losses,
//! repair, with round trips in between.
//!
//! Time-triggered jobs fill what room the history has, many times a second: the next samples are
//! written when earlier ones were acknowledged. There are several, released together, as a participant
//! has whose bulk comes from several sources, and each writes a few samples: an activation is not
//! interrupted, so a single one that filled the history would keep everything waiting in any order.
//!
//! Large samples are written one at a time, and leave in fragments: what they show is what a critical sample
//! waits for where a camera's pictures are in the same participant. To serialise one and to copy it out of
//! the cache is one activation each, which nothing interrupts.
//!
//! Where nobody takes from the readers, bulk ends as soon as a cache and a history are full, and what is left
//! of it is that the one asks for what it has no room for and the other sends it again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use isolane::{DataReader, DataWriter, Level, Participant, Qos, Timer, WriteError};
use isolane_engine::WriteError as Refusal;
use serde::{Deserialize, Serialize};

use crate::scenario::RttMessage;
use crate::scenario::end::EndError;

/// From the ping end to the pong end.
pub const TOPIC_THERE: &str = "BulkThere";
/// From the pong end to the ping end.
pub const TOPIC_BACK: &str = "BulkBack";

/// The serialised size of small samples.
pub const PAYLOAD_BYTES: u32 = 1_024;
/// Of large ones.
const LARGE_PAYLOAD_BYTES: u32 = 1 << 20;

/// Small samples in its history, and so in a burst, at most.
pub(in crate::scenario) const HISTORY_SAMPLES: u16 = 64;
/// Large ones: the next one is written while the one before is on its way.
const LARGE_HISTORY_SAMPLES: u16 = 2;

/// Samples that one activation writes at most: as many as one takes from another thread's ring.
const SAMPLES_PER_ACTIVATION: u16 = 4;

/// Time between two looks for room.
const REFILL_PERIOD: Duration = Duration::from_millis(6);
/// The same for large samples: what ten of them a second take of the cores, both ways, is some 17,000
/// frames.
const LARGE_REFILL_PERIOD: Duration = Duration::from_millis(100);

/// Which samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BulkKind {
    /// Of 1 KiB, as fast as they are acknowledged.
    Small,
    /// Of 1 MiB, ten a second.
    Large,
}

impl BulkKind {
    /// The serialised size of its samples.
    pub fn payload_bytes(self) -> u32 {
        match self {
            Self::Small => PAYLOAD_BYTES,
            Self::Large => LARGE_PAYLOAD_BYTES,
        }
    }

    /// Samples a second, both ways together, that must have arrived, or the run does not count: as if
    /// each look had found room for one or two small ones, or every other one for a large one.
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

    /// Jobs that write: of small samples together they can fill the history.
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

/// Its level: above the default, far below what is measured.
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

/// One end: it writes one of the topics and reads the other.
pub(in crate::scenario) struct Bulk {
    kind: BulkKind,
    writer: Rc<DataWriter<RttMessage>>,
    /// Its callback takes every sample, decoded, as a user's would be, if any are to be taken.
    _reader: DataReader<RttMessage>,
    /// At both ends.
    is_taken: bool,
    jobs: RefCell<Vec<Timer>>,
    /// Why writing ended early.
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

    /// From now on there is bulk.
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

    /// One activation: writes a few samples, as far as the history has room.
    fn write_some(&self) -> impl Fn() + use<> {
        let (writer, fault) = (Rc::clone(&self.writer), Rc::clone(&self.fault));
        let message = RttMessage::padded_to(self.kind.payload_bytes());
        let samples = self.kind.samples_per_activation();
        move || {
            for _ in 0..samples {
                match writer.write(&message) {
                    Ok(()) => {}
                    Err(WriteError::Engine(Refusal::HistoryFull)) => return,
                    Err(error) => fault.set(Some(error)),
                }
            }
        }
    }

    /// No more is written; what was is on its way.
    pub(in crate::scenario) fn end(&self, participant: &Participant) -> Result<(), EndError> {
        for timer in self.jobs.borrow_mut().drain(..) {
            participant.stop_timer(timer);
        }
        self.fault.take().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Whether the other end has all; `None` if it takes nothing, and so never will.
    pub(in crate::scenario) fn is_acknowledged(&self) -> Option<bool> {
        self.is_taken.then(|| self.writer.all_acknowledged())
    }
}

/// Where bulk samples went, as one participant counted them: those it wrote, and those it read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkCounts {
    /// Accepted by `write`.
    pub written: u64,
    /// Sent again because the reader asked.
    pub repaired: u64,
    /// Handed to the reader's callback.
    pub delivered: u64,
    /// Not handed to it, for any reason that the reader knows.
    pub dropped: u64,
    /// Of these, those that lie in its cache.
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
