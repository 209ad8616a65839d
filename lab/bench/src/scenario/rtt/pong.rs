//! The end where round trips turn.

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

/// How long the first ping is waited for before bulk begins: what the parent does meanwhile takes
/// a second.
const BEGIN_PATIENCE: Duration = Duration::from_secs(30);

/// What this end hands back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PongReport {
    /// All stamps.
    pub recorder: PongRecorder,
    /// What they are of.
    pub clock: StampClock,
    /// Pongs given to `write`.
    pub offered: u64,
    /// Pongs it refused.
    pub refused: u64,
    /// What the participant counted.
    pub counts: EndCounts,
    /// Whether all bulk samples it wrote were acknowledged; `None`: there were none, or nobody took any.
    pub bulk_acknowledged: Option<bool>,
}

/// The whole of this end, in the calling process, until it is told to stop.
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

/// A reader whose callback writes.
pub(super) struct Pong {
    answers: Rc<RefCell<Answers>>,
    shared_lane: Option<Level>,
    strangers: Option<Level>,
    bulk: Option<Bulk>,
    _pings: DataReader<RttMessage>,
}

struct Answers {
    recorder: PongRecorder,
    /// Reused for every answer.
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

    /// Disturbs as long as there are pings, and no longer: the other end is to acknowledge all bulk, and
    /// this one to take in what it was kept from.
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
