//! Who publishes pings: a thread of its own, or a time-triggered job of the executor.
//!
//! Both work off the same [`Schedule`], one by sleeping until the next ping is due, the other when
//! the executor releases it. The thread is the way of paper 000; the job saves a switch of threads
//! and shares the executor's order.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use isolane::{Participant, RemoteWriter};
use rustix::thread::{ClockId, clock_nanosleep_absolute};

use super::schedule::Schedule;
use super::{EndConfig, PING_TOPIC};
use crate::clock::{now_ns, timespec};
use crate::report;
use crate::scenario::RttMessage;
use crate::scenario::end::{EndError, measured_level};

/// One of both.
pub(super) enum Publisher {
    Thread(PublisherThread),
    Job(Rc<RefCell<Schedule>>),
}

impl Publisher {
    /// Creates the writer of pings, and who uses it.
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

    /// The first ping leaves at that time, or a fraction of a period later.
    pub(super) fn begin(&self, start_ns: u64) {
        match self {
            // A thread that is gone is found out at the end.
            Publisher::Thread(publisher) => drop(publisher.begin.send(start_ns)),
            Publisher::Job(schedule) => schedule.borrow_mut().start(start_ns),
        }
    }

    /// Whether all pings are out.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Publisher::Thread(publisher) => publisher.thread.is_finished(),
            Publisher::Job(schedule) => schedule.borrow().is_over(),
        }
    }

    /// What was published when, once it is over; and what keeps the writer of a thread, and with
    /// it its ledger, alive.
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

/// What was published.
pub(super) struct Published {
    pub(super) schedule: Schedule,
    _writer: Option<RemoteWriter<RttMessage>>,
}

/// A thread that waits for its start, then publishes.
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
        let writer = participant.create_remote_writer(PING_TOPIC, &config.qos())?;
        let (begin, started) = mpsc::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let is_cancelled = Arc::clone(&cancelled);
        // Core, policy and exact timers are inherited from the calling thread.
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

/// The thread: sleeps until the next ping is due, writes it, and so on.
fn publish(
    mut writer: RemoteWriter<RttMessage>,
    mut schedule: Schedule,
    started: &Receiver<u64>,
    is_cancelled: &AtomicBool,
) -> Published {
    if let Ok(start_ns) = started.recv() {
        schedule.start(start_ns);
    }
    while let Some(due_ns) = schedule.due_ns() {
        // Late already: the kernel returns at once. Woken by a signal: the time has not come.
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

/// The job: released a period apart, writes all that is due.
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
            // More than one only if releases were missed.
            while schedule.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
                schedule.publish(|ping| writer.write(ping));
            }
        },
    )?;
    Ok(schedule)
}
