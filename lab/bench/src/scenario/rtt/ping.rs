//! End where round trips start.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use isolane::{DataReader, Level, Participant};
use serde::{Deserialize, Serialize};

use super::between::Between;
use super::publisher::Publisher;
use super::{EndConfig, PING_TOPIC, PONG_TOPIC, receivers};
use crate::clock::now_ns;
use crate::limits::LOST_AFTER_MS;
use crate::process::Note;
use crate::record::{PingRecorder, StampClock};
use crate::scenario::RttMessage;
use crate::scenario::end::{self, EndError};
use crate::scenario::flow::EndCounts;
use crate::scenario::inside::bulk::{Bulk, TOPIC_BACK, TOPIC_THERE};
use crate::stop::Stop;

/// Time in nanoseconds from the start to the first ping, in which sockets are drained.
pub(super) const LEAD_NS: u64 = 100_000_000;

/// Time limit for a publisher behind its schedule, and for bulk acknowledgements.
const PATIENCE: Duration = Duration::from_secs(5);

/// Report of the ping end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingReport {
    /// Timestamps.
    pub recorder: PingRecorder,
    /// Clock of the timestamps.
    pub clock: StampClock,
    /// Pings given to `write`.
    pub offered: u64,
    /// Pings that `write` refused.
    pub refused: u64,
    /// Counts of the participant.
    pub counts: EndCounts,
    /// True when all written bulk samples were acknowledged; `None` without bulk, or if no reader took any.
    pub bulk_acknowledged: Option<bool>,
}

/// Runs the ping end in the calling process until the last pong has returned or is lost.
pub fn run_ping(
    config: &EndConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<PingReport, EndError> {
    config.check()?;
    let notes = end::take_resources(config.core);
    let participant = receivers::participant(config, "isolane rtt ping")?;
    let _unwritten = receivers::of_strangers(&participant, config)?;
    let ping = Ping::new(&participant, config)?;
    end::run_until_matched(&participant, stop)?;
    ready(&notes.0);
    end::run_until_go(&participant, stop)?;
    ping.begin_bulk(&participant)?;
    let between = Between::begin(&participant, config)?;
    ping.begin(now_ns() + LEAD_NS);
    let schedule = Duration::from_nanos(LEAD_NS + config.duration_ns());
    end::run_until(&participant, stop, schedule, || false)?;
    end::run_until(&participant, stop, PATIENCE, || ping.is_over())?;
    between.end(&participant);
    ping.end_bulk(&participant, stop)?;
    let lost_after = Duration::from_millis(LOST_AFTER_MS);
    end::run_until(&participant, stop, lost_after, || ping.expects_nothing())?;
    ping.finish(&participant)
}

/// Publisher, reader and recorder of a participant.
pub(super) struct Ping {
    publisher: Publisher,
    recorder: Rc<RefCell<PingRecorder>>,
    period_ns: u64,
    shared_lane: Option<Level>,
    strangers: Option<Level>,
    bulk: Option<Bulk>,
    /// True when the other end may still have bulk to receive after the last pong.
    outlasts_pongs: bool,
    // The callback of this reader fills the recorder.
    _pongs: DataReader<RttMessage>,
}

impl Ping {
    pub(super) fn new(participant: &Participant, config: &EndConfig) -> Result<Ping, EndError> {
        let recorder = PingRecorder::new(config.samples, config.seed);
        let recorder = Rc::new(RefCell::new(recorder));
        let pongs = participant.create_view_reader::<RttMessage>(PONG_TOPIC, &config.qos())?;
        let of_callback = Rc::clone(&recorder);
        pongs.on_view(move |sample| {
            let now_ns = now_ns();
            if let Some(pong) = sample.value {
                let mut recorder = of_callback.borrow_mut();
                recorder.returned(pong.id, pong.nonce, now_ns);
            }
        });
        Ok(Ping {
            publisher: Publisher::new(participant, config)?,
            recorder,
            period_ns: config.period_ns(),
            shared_lane: config.shared_lane(),
            strangers: config.strangers(),
            outlasts_pongs: config.bulk.is_some() || config.starves_bulk(),
            bulk: config
                .bulk
                .map(|kind| {
                    Bulk::new(
                        participant,
                        kind,
                        [TOPIC_THERE, TOPIC_BACK],
                        config.takes_bulk(),
                    )
                })
                .transpose()?,
            _pongs: pongs,
        })
    }

    fn begin_bulk(&self, participant: &Participant) -> Result<(), EndError> {
        self.bulk
            .as_ref()
            .map_or(Ok(()), |bulk| bulk.begin(participant))
    }

    /// Stops the bulk and waits until the other end has received it all.
    fn end_bulk(&self, participant: &Participant, stop: &Stop) -> Result<(), EndError> {
        let Some(bulk) = &self.bulk else {
            return Ok(());
        };
        bulk.end(participant)?;
        let is_acknowledged = || bulk.is_acknowledged() != Some(false);
        end::run_until(participant, stop, PATIENCE, is_acknowledged).map(drop)
    }

    /// Starts the pings at `start_ns`, or a fraction of a period later.
    pub(super) fn begin(&self, start_ns: u64) {
        // Time-triggered jobs are released at integer multiples of their period.
        self.publisher
            .begin(start_ns.next_multiple_of(self.period_ns));
    }

    /// Returns whether all pings were sent.
    pub(super) fn is_over(&self) -> bool {
        self.publisher.is_over()
    }

    /// Returns whether every ping has returned, and neither end has bulk to receive.
    fn expects_nothing(&self) -> bool {
        !self.outlasts_pongs && self.recorder.borrow().is_complete()
    }

    /// Merges the publisher's and the reader's timestamps.
    pub(super) fn finish(self, participant: &Participant) -> Result<PingReport, EndError> {
        let published = self.publisher.finish()?;
        let (offered, refused) = published.schedule.offered_and_refused();
        let mut recorder = self.recorder.borrow().clone();
        published.schedule.record_into(&mut recorder);
        Ok(PingReport {
            recorder,
            clock: StampClock::of_this_process(),
            offered,
            refused,
            counts: EndCounts::of(
                participant,
                self.shared_lane,
                &[PING_TOPIC, PONG_TOPIC],
                self.strangers,
            ),
            bulk_acknowledged: self.bulk.as_ref().and_then(Bulk::is_acknowledged),
        })
    }
}
