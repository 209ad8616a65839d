//! Both ends of a round trip: the ping end starts it, the pong end answers.

use std::cell::RefCell;
use std::mem;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use isolane::{
    Budget, DataReader, InterfaceRateLimit, Level, Limits, OverBudget, Participant, Qos, RateLimit,
    RateLimitError, Timer,
};
use serde::{Deserialize, Serialize};

use super::publisher::Publisher;
use super::{EndConfig, PING_TOPIC, PONG_TOPIC};
use crate::clock::now_ns;
use crate::limits::LOST_AFTER_MS;
use crate::process::Note;
use crate::record::{PingRecorder, PongRecorder, StampClock, Verdict};
use crate::scenario::RttMessage;
use crate::scenario::end::{self, EndError, UNWRITTEN_TOPIC};
use crate::scenario::flow::EndCounts;
use crate::scenario::in_process_load::{Bulk, TOPIC_BACK, TOPIC_THERE};
use crate::scenario::transport::{Allowance, Policing};
use crate::stop::Stop;

/// Time in nanoseconds from the start to the first ping, in which sockets are drained.
pub(super) const LEAD_NS: u64 = 100_000_000;

/// Time limit for a publisher behind its schedule, and for bulk acknowledgements.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time limit for the arrival of the first ping, at which the pong end begins its bulk. The parent's preparations take
/// a second.
const BEGIN_PATIENCE: Duration = Duration::from_secs(30);

/// Report of an end, with its recorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndReport<R> {
    /// Timestamps.
    pub recorder: R,
    /// Clock of the timestamps.
    pub clock: StampClock,
    /// Messages given to `write`.
    pub offered: u64,
    /// Messages that `write` refused.
    pub refused: u64,
    /// Counts of the participant.
    pub counts: EndCounts,
    /// True when all written bulk samples were acknowledged; `None` without bulk, or if no reader took any.
    pub bulk_acknowledged: Option<bool>,
}

/// Report of the ping end.
pub type PingReport = EndReport<PingRecorder>;
/// Report of the pong end.
pub type PongReport = EndReport<PongRecorder>;

impl<R> EndReport<R> {
    fn new(
        participant: &Participant,
        config: &EndConfig,
        recorder: R,
        [offered, refused]: [u64; 2],
        bulk: Option<&Bulk>,
    ) -> EndReport<R> {
        let topics = [PING_TOPIC, PONG_TOPIC];
        EndReport {
            recorder,
            clock: StampClock::of_this_process(),
            offered,
            refused,
            counts: EndCounts::of(participant, config.shared_lane(), &topics, config.foreign()),
            bulk_acknowledged: bulk.and_then(Bulk::is_acknowledged),
        }
    }
}

/// Runs the ping end in the calling process until the last pong has returned or is lost.
pub fn run_ping(
    config: &EndConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<PingReport, EndError> {
    config.check()?;
    let notes = end::take_resources(config.core, config.waiting);
    let participant = participant(config, "isolane rtt ping")?;
    let _unwritten = foreign_reader(&participant, config)?;
    let ping = Ping::new(&participant, config)?;
    end::run_until_matched(&participant, 1, stop)?;
    ready(&notes.0);
    end::run_until_go(&participant, stop)?;
    if let Some(bulk) = &ping.bulk {
        bulk.begin(&participant)?;
    }
    let starvation = Starvation::begin(&participant, config)?;
    ping.begin(now_ns() + LEAD_NS);
    let schedule = Duration::from_nanos(LEAD_NS + config.duration_ns());
    end::run_until(&participant, stop, schedule, || false)?;
    end::run_until(&participant, stop, PATIENCE, || ping.is_over())?;
    starvation.end(&participant);
    if let Some(bulk) = &ping.bulk {
        // The report needs to know whether the other end has received all bulk.
        bulk.end(&participant)?;
        let is_acknowledged = || bulk.is_acknowledged() != Some(false);
        end::run_until(&participant, stop, PATIENCE, is_acknowledged)?;
    }
    let lost_after = Duration::from_millis(LOST_AFTER_MS);
    end::run_until(&participant, stop, lost_after, || ping.expects_nothing())?;
    ping.finish(&participant)
}

/// Publisher, reader and recorder of a participant.
pub(super) struct Ping {
    config: EndConfig,
    publisher: Publisher,
    recorder: Rc<RefCell<PingRecorder>>,
    bulk: Option<Bulk>,
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
            config: config.clone(),
            publisher: Publisher::new(participant, config)?,
            recorder,
            bulk: bulk(participant, config, [TOPIC_THERE, TOPIC_BACK])?,
            _pongs: pongs,
        })
    }

    /// Starts the pings at `start_ns`, or a fraction of a period later.
    pub(super) fn begin(&self, start_ns: u64) {
        // Time-triggered jobs are released at integer multiples of their period.
        let period_ns = self.config.period_ns();
        self.publisher.begin(start_ns.next_multiple_of(period_ns));
    }

    /// Returns whether all pings were sent.
    pub(super) fn is_over(&self) -> bool {
        self.publisher.is_over()
    }

    /// Returns whether every ping has returned and neither end can still have bulk to receive.
    fn expects_nothing(&self) -> bool {
        let outlasts_pongs = self.bulk.is_some() || self.config.starves_bulk();
        !outlasts_pongs && self.recorder.borrow().is_complete()
    }

    /// Merges the publisher's and the reader's timestamps.
    pub(super) fn finish(self, participant: &Participant) -> Result<PingReport, EndError> {
        let published = self.publisher.finish()?;
        let mut recorder = self.recorder.replace(PingRecorder::new(0, 0));
        published.schedule.record_into(&mut recorder);
        let written = published.schedule.offered_and_refused();
        let bulk = self.bulk.as_ref();
        Ok(EndReport::new(
            participant,
            &self.config,
            recorder,
            written,
            bulk,
        ))
    }
}

/// Runs the pong end in the calling process until its parent stops it.
pub fn run_pong(
    config: &EndConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<PongReport, EndError> {
    config.check()?;
    let notes = end::take_resources(config.core, config.waiting);
    let participant = participant(config, "isolane rtt pong")?;
    let _unwritten = foreign_reader(&participant, config)?;
    let pong = Pong::new(&participant, config)?;
    end::run_until_matched(&participant, 1, stop)?;
    ready(&notes.0);
    if pong.bulk.is_some() || config.starves_bulk() {
        pong.disturb(&participant, stop)?;
    }
    end::run_until_stopped(&participant, stop);
    Ok(pong.finish(&participant))
}

/// Reader of pings whose callback writes pongs.
pub(super) struct Pong {
    config: EndConfig,
    answers: Rc<RefCell<Answers>>,
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
            message: RttMessage::new(config.payload_bytes, config.content)?,
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
            config: config.clone(),
            answers,
            bulk: bulk(participant, config, [TOPIC_BACK, TOPIC_THERE])?,
            _pings: pings,
        })
    }

    /// Creates the disturbance while there are pings. Afterwards, the other end can acknowledge all bulk, and this end
    /// can drain its bulk lane.
    fn disturb(&self, participant: &Participant, stop: &Stop) -> Result<(), EndError> {
        let has_begun = || self.answers.borrow().offered > 0;
        if !end::run_until(participant, stop, BEGIN_PATIENCE, has_begun)? {
            return Ok(());
        }
        let starvation = Starvation::begin(participant, &self.config)?;
        if let Some(bulk) = &self.bulk {
            bulk.begin(participant)?;
        }
        let schedule = Duration::from_nanos(self.config.duration_ns());
        end::run_until(participant, stop, schedule, || false)?;
        if let Some(bulk) = &self.bulk {
            bulk.end(participant)?;
        }
        starvation.end(participant);
        Ok(())
    }

    pub(super) fn finish(self, participant: &Participant) -> PongReport {
        let mut answers = self.answers.borrow_mut();
        let written = [answers.offered, answers.refused];
        let recorder = mem::replace(&mut answers.recorder, PongRecorder::new(0, 0));
        let bulk = self.bulk.as_ref();
        EndReport::new(participant, &self.config, recorder, written, bulk)
    }
}

/// Creates the bulk endpoints of an end, which writes the first of `topics` and reads the second.
fn bulk(
    participant: &Participant,
    config: &EndConfig,
    topics: [&str; 2],
) -> Result<Option<Bulk>, EndError> {
    let is_taken = config.takes_bulk();
    let bulk = |kind| Bulk::new(participant, kind, topics, is_taken);
    config.bulk.map(bulk).transpose()
}

/// Creates the participant of an end with policed receivers.
fn participant(config: &EndConfig, name: &str) -> Result<Participant, EndError> {
    let limits = Limits::default();
    let participant = end::participant_with(
        config.site,
        config.transport,
        config.waiting,
        name,
        config.order,
        limits,
    )?;
    protect(&participant, config)?;
    Ok(participant)
}

/// Creates a reader of a topic without writers. The reader opens its level's lane, where foreign bulk arrives.
fn foreign_reader(
    participant: &Participant,
    config: &EndConfig,
) -> Result<Option<DataReader<RttMessage>>, EndError> {
    let Some(level) = config.foreign() else {
        return Ok(None);
    };
    let qos = Qos::best_effort().level(level);
    let reader = participant.create_view_reader(UNWRITTEN_TOPIC, &qos)?;
    Ok(Some(reader))
}

/// Polices the receivers before there is an endpoint, so that the first datagram is already policed.
fn protect(participant: &Participant, config: &EndConfig) -> Result<(), RateLimitError> {
    let Policing { others, bulk } = config.policing;
    if let Some(others) = others {
        participant.set_interface_limit(InterfaceRateLimit {
            topics: None,
            foreign: Some(budget(others)),
        })?;
    }
    if let (Some(bulk), Some(level)) = (bulk, config.foreign()) {
        let protection = RateLimit {
            budget: budget(bulk),
            over: OverBudget::Drop,
        };
        participant.set_level_limit(level, Some(protection))?;
    }
    Ok(())
}

fn budget(allowance: Allowance) -> Budget {
    Budget {
        // Budgets have a minimum capacity of one.
        capacity: NonZeroU32::new(allowance.capacity).unwrap_or(NonZeroU32::MIN),
        period: Duration::from_micros(allowance.period_us.into()),
    }
}

/// Level above bulk and below the measured one.
const BUSY_LEVEL: u8 = 4;
/// Duration of an activation: less than the period of the round trips, each of which may wait for one activation.
const BUSY_ACTIVATION: Duration = Duration::from_micros(250);
/// Period shorter than an activation, so that the job is always due.
const BUSY_PERIOD: Duration = Duration::from_micros(100);

/// Busy job at a level between measured and bulk traffic. It takes all the time the measured level leaves, so that the
/// executor never drains the bulk lane, and its datagrams stay in the ring or socket.
///
/// It emulates an application that computes too much at a middle level. The job sleeps instead, which is equivalent for
/// its executor because activations are not pre-empted. Both ends share a core, so an end that computed all the time
/// under SCHED_FIFO would starve the other.
struct Starvation(Option<Timer>);

impl Starvation {
    /// Starts the job if bulk must not be drained.
    fn begin(participant: &Participant, config: &EndConfig) -> Result<Starvation, EndError> {
        if !config.starves_bulk() {
            return Ok(Starvation(None));
        }
        let level = Level::clamp(BUSY_LEVEL.into());
        let timer = participant.create_timer(
            "busy middle level",
            level,
            BUSY_PERIOD,
            Duration::ZERO,
            |_release| {
                thread::sleep(BUSY_ACTIVATION);
            },
        )?;
        Ok(Starvation(Some(timer)))
    }

    /// Stops the job, so that waiting bulk is drained.
    fn end(self, participant: &Participant) {
        if let Some(timer) = self.0 {
            participant.stop_timer(timer);
        }
    }
}
