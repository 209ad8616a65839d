//! Publisher of pings: a thread, or a time-triggered job of the executor.
//!
//! Both follow the same [`Schedule`]: the thread sleeps until the next ping is due, the job is released by the
//! executor. Meszlényi et al. use a thread. A job saves a context switch, and the executor orders it among its other
//! jobs.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use isolane::{Participant, WriteError, WriterHandle};
use rustix::thread::{ClockId, clock_nanosleep_absolute};

use super::{EndConfig, PING_TOPIC};
use crate::clock::{now_ns, timespec};
use crate::record::{PingRecorder, nonce};
use crate::report;
use crate::scenario::end::{EndError, measured_level};
use crate::scenario::{ConfigError, RttMessage};

pub(super) enum Publisher {
    Thread(PublisherThread),
    Job(Rc<RefCell<Schedule>>),
}

impl Publisher {
    /// Creates the writer of pings and the thread or job that uses it.
    pub(super) fn new(
        participant: &Participant,
        config: &EndConfig,
    ) -> Result<Publisher, EndError> {
        let schedule = Schedule::new(config)?;
        match config.publisher {
            report::Publisher::Thread => {
                PublisherThread::start(participant, config, schedule).map(Publisher::Thread)
            }
            report::Publisher::Job => job(participant, config, schedule).map(Publisher::Job),
        }
    }

    /// Starts with the first ping at `start_ns`, or a fraction of a period later.
    pub(super) fn begin(&self, start_ns: u64) {
        match self {
            // If the thread has ended, `finish` reports it.
            Publisher::Thread(publisher) => drop(publisher.begin.send(start_ns)),
            Publisher::Job(schedule) => schedule.borrow_mut().start(start_ns),
        }
    }

    /// Returns whether all pings were sent.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Publisher::Thread(publisher) => publisher.thread.is_finished(),
            Publisher::Job(schedule) => schedule.borrow().is_over(),
        }
    }

    /// Ends the publisher. Returns the schedule with its timestamps. A thread's writer stays alive, so that its ledger
    /// can be read.
    pub(super) fn finish(self) -> Result<Published, EndError> {
        match self {
            Publisher::Thread(publisher) => {
                publisher.cancelled.store(true, Ordering::Relaxed);
                drop(publisher.begin);
                publisher.thread.join().map_err(|_| EndError::PublisherGone)
            }
            Publisher::Job(schedule) => Ok(Published {
                schedule: schedule.take(),
                _writer: None,
            }),
        }
    }
}

/// Schedule of an ended publisher.
pub(super) struct Published {
    pub(super) schedule: Schedule,
    _writer: Option<WriterHandle<RttMessage>>,
}

/// Thread that waits for its start, then publishes.
pub(super) struct PublisherThread {
    begin: Sender<u64>,
    cancelled: Arc<AtomicBool>,
    thread: JoinHandle<Published>,
}

impl PublisherThread {
    fn start(
        participant: &Participant,
        config: &EndConfig,
        schedule: Schedule,
    ) -> Result<PublisherThread, EndError> {
        let writer = participant.create_writer_handle(PING_TOPIC, &config.qos())?;
        let (begin, started) = mpsc::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let is_cancelled = Arc::clone(&cancelled);
        // The thread inherits core, policy and timer slack from the calling thread.
        let thread = thread::Builder::new()
            .name("publisher".into())
            .spawn(move || publish(writer, schedule, &started, &is_cancelled))
            .map_err(|source| EndError::System {
                action: "start the publisher's thread",
                source,
            })?;
        Ok(PublisherThread {
            begin,
            cancelled,
            thread,
        })
    }
}

/// Body of the thread: sleeps until the next ping is due and writes it, repeatedly.
fn publish(
    mut writer: WriterHandle<RttMessage>,
    mut schedule: Schedule,
    started: &Receiver<u64>,
    is_cancelled: &AtomicBool,
) -> Published {
    if let Ok(start_ns) = started.recv() {
        schedule.start(start_ns);
    }
    while let Some(due_ns) = schedule.due_ns() {
        // The call returns at once if the time has passed. It is repeated after a signal.
        while clock_nanosleep_absolute(ClockId::Monotonic, &timespec(due_ns)).is_err() {}
        if is_cancelled.load(Ordering::Relaxed) {
            break;
        }
        schedule.publish(|ping| writer.write(ping));
    }
    Published {
        schedule,
        _writer: Some(writer),
    }
}

/// Creates the periodic job, which writes all due pings.
fn job(
    participant: &Participant,
    config: &EndConfig,
    schedule: Schedule,
) -> Result<Rc<RefCell<Schedule>>, EndError> {
    let writer = participant.create_writer::<RttMessage>(PING_TOPIC, &config.qos())?;
    let schedule = Rc::new(RefCell::new(schedule));
    let of_job = Rc::clone(&schedule);
    participant.create_timer(
        "publish pings",
        measured_level(),
        Duration::from_nanos(config.period_ns()),
        Duration::ZERO,
        move |_release| {
            let mut schedule = of_job.borrow_mut();
            let now_ns = now_ns();
            // More than one ping is due only after missed releases.
            while schedule.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
                schedule.publish(|ping| writer.write(ping));
            }
        },
    )?;
    Ok(schedule)
}

/// Schedule of a run's pings. The publisher writes every due ping, even if late, and skips none: a delayed sender shows
/// in the round trips, which start at the due time.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    period_ns: u64,
    samples: u32,
    seed: u64,
    /// Start time; `None` before the start.
    start_ns: Option<u64>,
    /// Message reused for every ping.
    message: RttMessage,
    /// Sending times by id, with reserved memory.
    sent_ns: Vec<u64>,
    refused: u64,
}

impl Schedule {
    pub(super) fn new(config: &EndConfig) -> Result<Schedule, ConfigError> {
        Ok(Schedule {
            period_ns: config.period_ns(),
            samples: config.samples,
            seed: config.seed,
            start_ns: None,
            message: RttMessage::new(config.payload_bytes, config.content)?,
            sent_ns: Vec::with_capacity(config.samples as usize),
            refused: 0,
        })
    }

    /// Starts the schedule with the first ping due at `start_ns`.
    pub(super) fn start(&mut self, start_ns: u64) {
        self.start_ns = Some(start_ns);
    }

    /// Due time of the next ping; `None` before the start and after the last.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let id = self.sent_ns.len() as u32;
        (id < self.samples).then_some(())?;
        Some(self.intended_ns(self.start_ns?, id))
    }

    /// Returns whether all pings were sent.
    pub(super) fn is_over(&self) -> bool {
        self.sent_ns.len() as u32 >= self.samples
    }

    /// Timestamps the next ping and gives it to `write`.
    pub(super) fn publish(&mut self, write: impl FnOnce(&RttMessage) -> Result<(), WriteError>) {
        let id = self.sent_ns.len() as u32;
        self.message.id = id;
        self.message.nonce = nonce(self.seed, id);
        self.sent_ns.push(now_ns());
        self.refused += u64::from(write(&self.message).is_err());
    }

    /// Pings given to `write`, and those that it refused.
    pub(super) fn offered_and_refused(&self) -> [u64; 2] {
        [self.sent_ns.len() as u64, self.refused]
    }

    /// Copies due and sending times into the ping recorder.
    pub(super) fn record_into(&self, recorder: &mut PingRecorder) {
        let Some(start_ns) = self.start_ns else {
            return;
        };
        for (id, &sent_ns) in (0..).zip(&self.sent_ns) {
            recorder.sent(id, self.intended_ns(start_ns, id), sent_ns);
        }
    }

    fn intended_ns(&self, start_ns: u64, id: u32) -> u64 {
        start_ns + u64::from(id) * self.period_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::rtt::tests::config;

    #[test]
    fn pings_are_due_a_period_apart_and_none_after_the_last() {
        let mut schedule = Schedule::new(&config(2)).unwrap();
        assert_eq!(schedule.due_ns(), None);
        schedule.start(1_000);
        assert_eq!(schedule.due_ns(), Some(1_000));
        schedule.publish(|message| {
            assert_eq!((message.id, message.nonce), (0, nonce(9, 0)));
            Ok(())
        });
        assert_eq!(schedule.due_ns(), Some(1_000 + 500_000));
        schedule.publish(|_| Err(WriteError::NoFrame));
        assert_eq!(schedule.due_ns(), None);
        assert!(schedule.is_over());
        assert_eq!(schedule.offered_and_refused(), [2, 1]);
    }
}
