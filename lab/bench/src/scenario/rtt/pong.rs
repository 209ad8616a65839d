//! End that answers round trips.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use isolane::{DataReader, Level, Participant};
use serde::{Deserialize, Serialize};

use super::between::Between;
use super::{EndConfig, PING_TOPIC, PONG_TOPIC, receivers};
use crate::clock::now_ns;
use crate::process::Note;
use crate::record::{PongRecorder, StampClock, Verdict};
use crate::scenario::RttMessage;
use crate::scenario::end::{self, EndError};
use crate::scenario::flow::EndCounts;
use crate::scenario::inside::bulk::{Bulk, TOPIC_BACK, TOPIC_THERE};
use crate::stop::Stop;

/// Time limit for the first ping before bulk begins; the parent's preparations take a second.
const BEGIN_PATIENCE: Duration = Duration::from_secs(30);

/// Report of the pong end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PongReport {
    /// Timestamps.
    pub recorder: PongRecorder,
    /// Clock of the timestamps.
    pub clock: StampClock,
    /// Pongs given to `write`.
    pub offered: u64,
    /// Pongs that `write` refused.
    pub refused: u64,
    /// Counts of the participant.
    pub counts: EndCounts,
    /// True when all written bulk samples were acknowledged; `None` without bulk, or if no reader took any.
    pub bulk_acknowledged: Option<bool>,
}

/// Runs the pong end in the calling process until its parent stops it.
pub fn run_pong(
    config: &EndConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<PongReport, EndError> {
    config.check()?;
    let notes = end::take_resources(config.core);
    let participant = receivers::participant(config, "isolane rtt pong")?;
    let _unwritten = receivers::of_strangers(&participant, config)?;
    let pong = Pong::new(&participant, config)?;
    end::run_until_matched(&participant, stop)?;
    ready(&notes.0);
    if pong.bulk.is_some() || config.starves_bulk() {
        pong.disturb(&participant, config, stop)?;
    }
    end::run_until_stopped(&participant, stop);
    Ok(pong.finish(&participant))
}

/// Reader of pings whose callback writes pongs.
pub(super) struct Pong {
    answers: Rc<RefCell<Answers>>,
    shared_lane: Option<Level>,
    strangers: Option<Level>,
    bulk: Option<Bulk>,
    _pings: DataReader<RttMessage>,
}

struct Answers {
    recorder: PongRecorder,
    /// Message reused for every answer.
    message: RttMessage,
    offered: u64,
    refused: u64,
}

impl Pong {
    pub(super) fn new(participant: &Participant, config: &EndConfig) -> Result<Pong, EndError> {
        let answers = Rc::new(RefCell::new(Answers {
            recorder: PongRecorder::new(config.samples, config.seed),
            message: RttMessage::of_size(config.payload_bytes)?,
            offered: 0,
            refused: 0,
        }));
        let pongs = participant.create_writer::<RttMessage>(PONG_TOPIC, &config.qos())?;
        let pings = participant.create_view_reader::<RttMessage>(PING_TOPIC, &config.qos())?;
        let of_callback = Rc::clone(&answers);
        pings.on_view(move |sample| {
            let received_ns = now_ns();
            let Some(ping) = sample.value else { return };
            let mut answers = of_callback.borrow_mut();
            let verdict = answers.recorder.received(ping.id, ping.nonce, received_ns);
            if verdict != Verdict::First {
                return;
            }
            answers.message.id = ping.id;
            answers.message.nonce = ping.nonce;
            answers.recorder.replied(ping.id, now_ns());
            answers.offered += 1;
            let written = pongs.write(&answers.message);
            answers.refused += u64::from(written.is_err());
        });
        Ok(Pong {
            answers,
            shared_lane: config.shared_lane(),
            strangers: config.strangers(),
            bulk: config
                .bulk
                .map(|kind| {
                    Bulk::new(
                        participant,
                        kind,
                        [TOPIC_BACK, TOPIC_THERE],
                        config.takes_bulk(),
                    )
                })
                .transpose()?,
            _pings: pings,
        })
    }

    /// Disturbs while there are pings, and then stops: the other end shall acknowledge all bulk, and this end drain its
    /// bulk lane.
    fn disturb(
        &self,
        participant: &Participant,
        config: &EndConfig,
        stop: &Stop,
    ) -> Result<(), EndError> {
        let has_begun = || self.answers.borrow().offered > 0;
        if !end::run_until(participant, stop, BEGIN_PATIENCE, has_begun)? {
            return Ok(());
        }
        let between = Between::begin(participant, config)?;
        if let Some(bulk) = &self.bulk {
            bulk.begin(participant)?;
        }
        let schedule = Duration::from_nanos(config.duration_ns());
        end::run_until(participant, stop, schedule, || false)?;
        if let Some(bulk) = &self.bulk {
            bulk.end(participant)?;
        }
        between.end(participant);
        Ok(())
    }

    pub(super) fn finish(self, participant: &Participant) -> PongReport {
        let counts = EndCounts::of(
            participant,
            self.shared_lane,
            &[PING_TOPIC, PONG_TOPIC],
            self.strangers,
        );
        let answers = self.answers.borrow();
        PongReport {
            recorder: answers.recorder.clone(),
            clock: StampClock::of_this_process(),
            offered: answers.offered,
            refused: answers.refused,
            counts,
            bulk_acknowledged: self.bulk.as_ref().and_then(Bulk::is_acknowledged),
        }
    }
}
