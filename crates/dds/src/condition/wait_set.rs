//! WaitSet (DDS 1.4 §2.2.2.1.6).
//!
//! A wait set runs the loops of the participants of its conditions until a condition is true. It sleeps in epoll like
//! the loop. Each participant has a counter of changes; conditions are evaluated after an activation only if the
//! counter has changed. Several participants of a thread take turns; the wait set sleeps on all descriptors.
//!
//! A wait set does not keep participants alive. A dropped participant no longer runs, and its conditions are false.
//! Waiting is an error if all participants are dropped, or that of an attached guard, as nothing could end the sleep.
//!
//! A wait set runs the loops. So it waits on the thread of its participants only, and never inside a callback.

use std::{
    cell::RefCell,
    fmt,
    os::fd::AsFd,
    rc::{Rc, Weak},
    time::Duration,
};

use heapless::Vec as BoundedVec;
use isolane_datapath::clock::monotonic_now;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

use crate::{
    condition::Condition,
    limits::{MAX_WAIT_SET_CONDITIONS, MAX_WAIT_SET_PARTICIPANTS},
    participant::Participant,
    participant::event_loop::Core,
};

/// Participants that a wait set runs.
type Cores = BoundedVec<Weak<Core>, MAX_WAIT_SET_PARTICIPANTS>;

/// Existing participants, kept alive during a wait.
type Driven = BoundedVec<Rc<Core>, MAX_WAIT_SET_PARTICIPANTS>;

/// Reason why a condition was not attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AttachError {
    /// The wait set has the maximum number of conditions.
    #[error(
        "a wait set has at most {MAX_WAIT_SET_CONDITIONS} conditions: use several, or detach some"
    )]
    TooManyConditions,
    /// The wait set runs the maximum number of participants.
    #[error("a wait set drives at most {MAX_WAIT_SET_PARTICIPANTS} participants: use several")]
    TooManyParticipants,
    /// The guard belongs to a participant that the wait set does not run, so setting the guard could not wake the wait
    /// set.
    #[error(
        "the guard condition was made by a participant that this wait set does not drive: make it by one that it does, or attach another condition of that participant first"
    )]
    ForeignGuard,
    /// The participant of the condition was dropped.
    #[error(
        "the participant of the condition is gone, so it never holds again: make the condition of an endpoint that is there"
    )]
    ParticipantGone,
}

/// Reason why a wait is impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WaitError {
    /// All participants were dropped, so no condition could become true.
    #[error(
        "every participant that this wait set drives is gone, so nothing can happen that it waits for: make a wait set with a participant that is there"
    )]
    ParticipantsGone,
    /// The participant of an attached guard was dropped, so setting the guard could not end the wait.
    #[error(
        "the participant that made an attached guard condition is gone, so setting it cannot end the wait: detach it, and attach a guard of a participant that is there"
    )]
    GuardGone,
}

/// WaitSet: conditions to wait for together.
///
/// ```
/// use std::{thread, time::Duration};
/// use isolane::{Network, Participant, Qos, StateMask, StatusMask, TopicType, WaitSet};
///
/// #[derive(TopicType)]
/// struct Order { number: u32 }
///
/// let network = Network::new(1);
/// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
/// let writer = participant.create_writer::<Order>("Orders", &Qos::reliable())?;
/// let reader = participant.create_reader::<Order>("Orders", &Qos::reliable())?;
///
/// let waits = WaitSet::new(&participant);
/// let has_order = reader.create_read_condition(StateMask::NOT_READ);
/// let matched = writer.status_condition(StatusMask::PUBLICATION_MATCHED);
/// let stop = participant.create_guard_condition();
/// waits.attach(&has_order)?;
/// waits.attach(&matched)?;
/// waits.attach(&stop)?;
///
/// // The loop runs in here, until a reader has joined.
/// let long = Duration::from_secs(5);
/// assert!(waits.wait(long)?.contains(&(&matched).into()));
/// assert_eq!(writer.publication_matched_status().current_count, 1);
///
/// writer.write(&Order { number: 1 })?;
/// assert!(waits.wait(long)? == [(&has_order).into()]);
/// assert_eq!(reader.take()?.and_then(|it| it.value).map(|order| order.number), Some(1));
///
/// // Another thread may end the waiting.
/// let by_thread = stop.clone();
/// let stopper = thread::spawn(move || by_thread.set_trigger_value(true));
/// assert!(waits.wait(long)? == [(&stop).into()]);
/// stopper.join().unwrap();
/// stop.set_trigger_value(false);
/// assert!(waits.wait(Duration::from_millis(1))?.is_empty(), "nothing holds any more");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WaitSet {
    conditions: RefCell<Vec<Condition>>,
    cores: RefCell<Cores>,
}

impl fmt::Debug for WaitSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (conditions, cores) = (self.conditions.borrow().len(), self.cores.borrow().len());
        write!(
            formatter,
            "WaitSet({conditions} conditions, {cores} participants)"
        )
    }
}

impl WaitSet {
    /// Creates a wait set without conditions that runs this participant.
    #[must_use]
    pub fn new(participant: &Participant) -> Self {
        let first = Rc::downgrade(participant.core());
        Self {
            conditions: RefCell::new(Vec::with_capacity(MAX_WAIT_SET_CONDITIONS)),
            cores: RefCell::new(Cores::from_iter([first])),
        }
    }

    /// Attaches a condition, unless it is attached already. Its participant runs from the next wait on.
    ///
    /// # Errors
    /// [`AttachError`]; the condition is not attached then.
    pub fn attach(&self, condition: impl Into<Condition>) -> Result<(), AttachError> {
        let condition = condition.into();
        let (mut conditions, mut cores) = (self.conditions.borrow_mut(), self.cores.borrow_mut());
        if conditions.contains(&condition) {
            return Ok(());
        }
        if conditions.len() == MAX_WAIT_SET_CONDITIONS {
            return Err(AttachError::TooManyConditions);
        }
        if let Some(of) = condition.core() {
            let core = of.upgrade().ok_or(AttachError::ParticipantGone)?;
            if !cores.iter().any(|driven| driven.ptr_eq(of)) {
                cores.retain(|driven| driven.strong_count() > 0);
                cores
                    .push(Weak::clone(of))
                    .map_err(|_| AttachError::TooManyParticipants)?;
            }
            // The condition may be true already, so a waiting wait set must evaluate it.
            core.state.borrow_mut().listeners.note_change();
        }
        if let Condition::Guard(guard) = &condition
            && !driven(&cores).iter().any(|core| guard.is_of(core))
        {
            return Err(AttachError::ForeignGuard);
        }
        conditions.push(condition);
        Ok(())
    }

    /// Detaches a condition and returns whether it was attached. Its participant still runs.
    pub fn detach(&self, condition: impl Into<Condition>) -> bool {
        let condition = condition.into();
        let mut conditions = self.conditions.borrow_mut();
        let place = conditions.iter().position(|other| *other == condition);
        place.map(|place| conditions.remove(place)).is_some()
    }

    /// Returns the attached conditions.
    #[must_use]
    pub fn conditions(&self) -> Vec<Condition> {
        self.conditions.borrow().clone()
    }

    /// Runs the participants until a condition is true, and returns all true conditions, or none on a timeout.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Panics
    /// Inside a callback of one of the participants.
    pub fn wait(&self, timeout: Duration) -> Result<Vec<Condition>, WaitError> {
        let mut active = Vec::new();
        self.wait_into(timeout, &mut active)?;
        Ok(active)
    }

    /// Waits as [`wait`](Self::wait), with the result in a list of the caller. Returns false on a timeout. The call
    /// allocates nothing if the list has room for all attached conditions.
    ///
    /// # Errors
    /// As [`wait`](Self::wait); the list is empty then.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_into(
        &self,
        timeout: Duration,
        active: &mut Vec<Condition>,
    ) -> Result<bool, WaitError> {
        active.clear();
        let cores = driven(&self.cores.borrow());
        if !cores.is_empty() && self.has_dead_guard(&cores) {
            return Err(WaitError::GuardGone);
        }
        let mut seen = None;
        let is_any = || self.has_active(&cores, &mut seen);
        match &cores[..] {
            [] => return Err(WaitError::ParticipantsGone),
            [core] => core.run_until(timeout, is_any),
            all => run_until(all, timeout, is_any),
        };
        let conditions = self.conditions.borrow();
        let holding = conditions.iter().filter(|it| it.trigger_value());
        active.extend(holding.cloned());
        Ok(!active.is_empty())
    }

    /// Returns whether a guard is attached that wakes none of these participants.
    fn has_dead_guard(&self, cores: &[Rc<Core>]) -> bool {
        let conditions = self.conditions.borrow();
        conditions.iter().any(|condition| match condition {
            Condition::Guard(guard) => !cores.iter().any(|core| guard.is_of(core)),
            _ => false,
        })
    }

    /// Returns whether a condition is true. Except for guards, conditions are evaluated only if a participant has
    /// changed since `seen`.
    fn has_active(&self, cores: &[Rc<Core>], seen: &mut Option<u64>) -> bool {
        let changes = cores
            .iter()
            .map(|core| core.state.borrow().listeners.changes);
        let now = changes.fold(0, u64::wrapping_add);
        let is_news = seen.replace(now) != Some(now);
        let conditions = self.conditions.borrow();
        let mut asked = conditions.iter().filter(|it| is_news || it.is_guard());
        asked.any(Condition::trigger_value)
    }
}

fn driven(cores: &Cores) -> Driven {
    cores.iter().filter_map(Weak::upgrade).collect()
}

/// Runs several participants until `done` returns true; returns false on a timeout.
fn run_until(cores: &[Rc<Core>], timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = monotonic_now() + timeout;
    loop {
        for core in cores {
            core.poll();
        }
        if done() {
            return true;
        }
        let now = monotonic_now();
        if now >= end {
            return false;
        }
        let next = cores
            .iter()
            .filter_map(|core| core.state.borrow_mut().next_time())
            .min();
        let until = next.map_or(end, |next| next.min(end));
        if until > now {
            sleep(cores, until.saturating_since(now));
        }
    }
}

/// Sleeps until one of the participants has something to do, or for the given time.
fn sleep(cores: &[Rc<Core>], time: Duration) {
    let timeout = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    let mut descriptors: BoundedVec<PollFd<'_>, MAX_WAIT_SET_PARTICIPANTS> = cores
        .iter()
        .map(|core| PollFd::from_borrowed_fd(core.descriptor.as_fd(), PollFlags::IN))
        .collect();
    // A signal has the effect of a timeout; the caller checks again.
    let _ = poll(&mut descriptors, Some(&timeout));
}
