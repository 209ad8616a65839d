//! Disturbances inside the participants: work that must not delay critical samples (Meszlényi et al., section III.A).
//!
//! | disturbance | activity | participants |
//! | --- | --- | --- |
//! | joining | a third participant repeatedly creates and deletes 200 endpoints | both discover them |
//! | bulk | reliable KEEP_ALL topics of level 1, as fast as acknowledgements allow | the ends themselves |
//! | repair | as bulk, with losses of its samples only | the ends themselves |
//! | large | as bulk, with samples of 1 MiB, ten per second each way | the ends themselves |
//!
//! These runs test the executor, so nothing else may be scarce. With large samples one veth pair joins the hosts
//! ([`Place::Pair`](crate::report::Place)). Otherwise the link is fast ([`LINK_BITS_PER_S`]) and FIFO in both job
//! orders: all levels of a FIFO participant share one socket and one DSCP, so with a strict arbiter the runs would also
//! differ in the link. Each end has its own core, because one end's bulk would otherwise starve the other end in either
//! job order. The executor accounts for the hosts' share of the round trip, which is reported separately.
//!
//! All rates are bounded: ends run under SCHED_FIFO, and an end that never slept would starve the machine. The result
//! states the achieved rate ([`Disturbed`](crate::report::Disturbed)); a disturbance below its minimum invalidates the
//! run.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use isolane::{DataReader, DataWriter, Level, Limits, Participant, Qos, Timer, WriteError};
use isolane_rtps::WriteError as Refusal;
use serde::{Deserialize, Serialize};

use super::end::{self, EndError};
use super::transport::Transport;
use super::{RttMessage, Site, Waiting};
use crate::process::{Note, Notes};
use crate::report::Order;
use crate::stop::Stop;

/// Link rate of runs with a disturbance inside the participants. A bulk sample takes 1 us on the link, far less than in
/// an executor. Several frames of a burst leave at once. That saves CPU time of the relay, which has a higher priority
/// on the pong end's core.
pub const LINK_BITS_PER_S: u64 = 10_000_000_000;

/// Queue length of the same link in each direction, in frames. It holds a bulk topic's whole history, its HEARTBEAT and
/// ACKNACK messages and a burst of announcements, so that only seeded losses occur.
pub const LINK_QUEUE_FRAMES: u32 = 1_024;

/// Share of bulk samples that `repair` loses.
pub const REPAIR_LOSS: f64 = 0.1;

/// Minimum payload in bytes of the datagrams that `repair` loses: bulk samples and their retransmissions. HEARTBEAT and
/// ACKNACK messages are smaller and spared.
pub const REPAIR_MIN_PAYLOAD_BYTES: u32 = PAYLOAD_BYTES;

/// Maximum message size in bytes with `repair`, so that messages are not lost like bulk samples. The difference to a
/// bulk payload exceeds the RTPS headers (60 bytes).
pub const MAX_MESSAGE_WITH_REPAIR_BYTES: u32 = REPAIR_MIN_PAYLOAD_BYTES - 64;

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

/// Maximum number of samples written by one activation. An activation takes as many from another thread's ring.
const SAMPLES_PER_ACTIVATION: u16 = 4;

/// Refill period for small samples.
const REFILL_PERIOD: Duration = Duration::from_millis(6);
/// Refill period for large samples. Ten samples per second in each direction are some 17,000 frames per second in all.
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

    /// Minimum number of samples received per second in both directions together for a valid run. It corresponds to
    /// five small samples per refill period of an end, or to a large one in every other period.
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
///
/// Bulk topics in both directions between the participants of a round trip. Both executors have samples to write, send,
/// receive, deliver, acknowledge and, with losses, retransmit between round trips.
///
/// Timers refill the history many times a second as acknowledgements free room. Several timers released together
/// emulate several bulk sources, and each writes few samples: an activation cannot be pre-empted, so a single timer
/// that filled the history would delay everything in either job order.
///
/// Large samples are written one at a time and leave in fragments. They show how long a critical sample waits in a
/// participant that also sends camera images. Serialising a sample takes one activation, and copying it out of the
/// cache another.
///
/// If no samples are taken from the readers, bulk ends when cache and history are full. Then the reader only repeats
/// its requests, and the writer its retransmissions.
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

    /// Returns a function that writes a few samples, as far as the history has room.
    fn write_some(&self) -> impl Fn() + use<> {
        let (writer, fault) = (Rc::clone(&self.writer), Rc::clone(&self.fault));
        let message = RttMessage::padded_to(self.kind.payload_bytes());
        let samples = self.kind.samples_per_activation();
        move || {
            for _ in 0..samples {
                match writer.write(&message) {
                    Ok(()) => {}
                    Err(WriteError::Protocol(Refusal::HistoryFull)) => return,
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

/// Endpoints of each kind, 200 together.
const ENDPOINTS_OF_A_KIND: usize = 100;

/// Time between creating all endpoints and deleting them, and the reverse.
const DWELL: Duration = Duration::from_millis(25);

/// Minimum number of announcements per second that each end must process for a valid run: one burst of creations or
/// deletions.
pub const LEAST_PER_S: f64 = 200.0;

/// Configuration of the churning participant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoiningConfig {
    /// Location of the participant.
    pub site: Site,
    /// CPU core of the participant, which has ordinary priority.
    pub core: Option<usize>,
}

/// Counts of the churning participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoiningReport {
    /// Endpoints created.
    pub joined: u64,
    /// Endpoints deleted.
    pub left: u64,
}

/// Runs the churn in the calling process, from the parent's `Go` until its stop.
///
/// Endpoint churn: a third participant on the pong end's host repeatedly creates and deletes 100 writers and 100
/// readers.
///
/// No endpoint matches the writers and readers. Their cost is discovery: reliable announcements of creation and
/// deletion, in bursts of two hundred.
pub fn run_joining(
    config: &JoiningConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<JoiningReport, EndError> {
    let notes = Notes::pinned(config.core);
    let limits = Limits {
        local_endpoints: 2 * ENDPOINTS_OF_A_KIND as u16,
        ..Limits::default()
    };
    let participant = end::participant_with(
        config.site,
        Transport::Udp,
        Waiting::Sleep,
        "isolane joining",
        Order::Priority,
        limits,
    )?;
    let knows_both = || participant.participants().len() >= 2;
    let patience = Duration::from_secs(crate::limits::MATCH_SECONDS);
    if !end::run_until(&participant, stop, patience, knows_both)? {
        return Err(EndError::NotMatched);
    }
    ready(&notes.0);
    end::run_until_go(&participant, stop)?;
    let mut report = JoiningReport::default();
    // A stop ends the dwell time early.
    let dwell = || drop(end::run_until(&participant, stop, DWELL, || false));
    while !stop.is_requested() {
        let endpoints = appear(&participant)?;
        let count = 2 * endpoints.len() as u64;
        report.joined += count;
        dwell();
        report.left += count;
        drop(endpoints);
        dwell();
    }
    Ok(report)
}

/// Writer and reader of unique topics, which match no endpoint.
type Endpoints = (DataWriter<RttMessage>, DataReader<RttMessage>);

fn appear(participant: &Participant) -> Result<Vec<Endpoints>, EndError> {
    let qos = Qos::best_effort();
    let endpoints = (0..ENDPOINTS_OF_A_KIND).map(|number| -> Result<Endpoints, EndError> {
        let writer = participant.create_writer(&format!("Joining/written/{number}"), &qos)?;
        let reader = participant.create_view_reader(&format!("Joining/read/{number}"), &qos)?;
        Ok((writer, reader))
    });
    endpoints.collect()
}
