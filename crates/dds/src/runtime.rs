//! Event loop: choice and execution of jobs.
//!
//! The state of a participant is one [`State`] in a `RefCell`. It is borrowed for one step at a time, and never while
//! a callback of the application runs, which may write, read, create and delete. A callback works on data outside the
//! state: the received frames, and the callback itself. The callback is taken out of its slot, and put back unless its
//! reader or timer was deleted or got another one meanwhile.
//!
//! An iteration of the loop:
//! 1. Makes the jobs ready that time, the protocol and other threads' rings release.
//! 2. Polls the sources of the datapath (epoll, or its own queues), and sleeps there if no job is ready. The poll is
//!    skipped if nothing it finds could precede the next job (`State::is_settled`).
//! 3. Runs one activation of the most urgent job.
//!
//! A callback that panics ends its job and is dropped while the stack unwinds. The remaining datagrams of the same
//! burst are dropped. The loop can run again without the callback.

use std::{
    cell::{Cell, RefCell, RefMut},
    os::fd::OwnedFd,
    rc::Rc,
    time::Duration,
};

use isolane_datapath::{
    Lane, ReceiveBurst, ReceivedFrame, clock::monotonic_now, limits::MAX_BURST,
};
use isolane_executor::JobId;
use isolane_rtps::{Delivery, MessageReceiver, ReaderId, RejectReason};
use isolane_wire::{level::Level, time::Instant};

use crate::{
    limits::{ACTIVATIONS_PER_POLL, BURST},
    state::{Callbacks, State, Task},
};

const _: () = assert!(BURST <= MAX_BURST, "a burst is one call of the datapath");

/// Past instant, for a poll that does not sleep.
const AT_ONCE: Instant = Instant::new(0);

/// State of a participant and the event loop over it.
pub(crate) struct Core {
    pub(crate) state: RefCell<State>,
    /// Descriptor on which the loop sleeps, shared with event loops of the application while the state is borrowed.
    pub(crate) descriptor: Rc<OwnedFd>,
    /// Datagrams being received; borrowed during a receive job, including its callbacks.
    received: RefCell<ReceiveBurst>,
    /// True while a job runs; a callback must not enter the loop again.
    running: Cell<bool>,
}

/// Running job. It ends by [`end`](Self::end), or when a callback panics.
struct Activation<'a> {
    core: &'a Core,
    job: JobId,
}

impl Activation<'_> {
    /// Ends the job and returns the time. `again` means that it stopped at its limit with more to do.
    #[inline]
    fn end(self, state: RefMut<'_, State>, again: bool) -> Instant {
        let (core, job) = (self.core, self.job);
        // Prevents a second end if `finish` panics.
        std::mem::forget(self);
        core.finish(state, job, again)
    }
}

impl Drop for Activation<'_> {
    fn drop(&mut self) {
        self.core
            .finish(self.core.state.borrow_mut(), self.job, false);
    }
}

/// Memory of a reassembled sample, lent by the protocol during a callback. Dropping this returns it, even if the
/// callback panics.
struct Lent<'a> {
    core: &'a Core,
    delivery: &'a Delivery,
    memory: Vec<u8>,
}

impl<'a> Lent<'a> {
    #[inline]
    fn of(core: &'a Core, state: &mut State, delivery: &'a Delivery) -> Option<Self> {
        if !delivery.is_assembled {
            return None;
        }
        let memory = state.protocol.lend(delivery)?;
        Some(Self {
            core,
            delivery,
            memory,
        })
    }

    fn bytes(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        let mut state = self.core.state.borrow_mut();
        state.protocol.give_back(self.delivery, memory);
    }
}

/// Burst of the running receive job. Dropping this returns its frames to the pool.
struct Received<'a>(RefMut<'a, ReceiveBurst>);

impl Drop for Received<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

impl Core {
    pub(crate) fn new(state: State) -> Self {
        Self {
            descriptor: state.waiter.descriptor(),
            state: RefCell::new(state),
            received: RefCell::default(),
            running: Cell::new(false),
        }
    }

    /// Returns whether a job is running.
    pub(crate) fn is_running(&self) -> bool {
        self.running.get()
    }

    /// Enters the loop on the calling thread, and applies the scheduling options the first time.
    ///
    /// # Panics
    /// If a callback is running.
    fn enter(&self) {
        assert!(
            !self.is_running(),
            "the loop is running: a callback cannot drive it"
        );
        let mut state = self.state.borrow_mut();
        if let Some(placement) = state.placement.take()
            && let Err(error) = placement.apply()
        {
            state.not_placed.push(error.to_string());
        }
    }

    /// See [`Participant::poll`](crate::Participant::poll).
    pub(crate) fn poll(&self) -> usize {
        self.enter();
        let mut now = monotonic_now();
        let mut ran = 0;
        while ran < ACTIVATIONS_PER_POLL && self.turn(&mut now, Some(AT_ONCE)) {
            ran += 1;
        }
        // From here on other threads ring. `next_time` sees what they handed over before.
        self.state.borrow().set_sleeping(true);
        ran
    }

    /// See [`Participant::run_until`](crate::Participant::run_until).
    pub(crate) fn run_until(&self, timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
        if timeout.is_zero() {
            // A zero timeout still runs ready jobs once.
            self.poll();
            return done();
        }
        let now = monotonic_now();
        self.run_from(now, now + timeout, done)
    }

    /// Runs the loop until `done` returns true, or until `end`. `now` is the current time, already read by the caller.
    pub(crate) fn run_from(
        &self,
        mut now: Instant,
        end: Instant,
        mut done: impl FnMut() -> bool,
    ) -> bool {
        self.enter();
        let (mut ran, mut late) = (true, 0);
        loop {
            if done() {
                return true;
            }
            if now >= end {
                // Datagrams that arrived before the timeout are still read, so one poll follows the last activation.
                if !ran || late == ACTIVATIONS_PER_POLL {
                    return false;
                }
                late += 1;
            }
            ran = self.turn(&mut now, Some(end));
        }
    }

    /// See [`Participant::run`](crate::Participant::run).
    pub(crate) fn run_while(&self, mut goes_on: impl FnMut() -> bool) {
        self.enter();
        let mut now = monotonic_now();
        while goes_on() {
            self.turn(&mut now, None);
        }
    }

    /// Runs one iteration: a poll, which sleeps up to `until` if no job is ready, and one activation. Returns false if
    /// no job was ready. `clock` is the time read last, and is updated to the end of the iteration, so that no time is
    /// read twice.
    fn turn(&self, clock: &mut Instant, until: Option<Instant>) -> bool {
        let mut state = self.state.borrow_mut();
        let Some((job, task)) = choose(&mut state, clock, until) else {
            return false;
        };
        let limit = state.begin(job, task, *clock);
        self.running.set(true);
        let activation = Activation { core: self, job };
        let (state, again) = self.run(state, *clock, job, task, limit);
        *clock = activation.end(state, again);
        true
    }

    // Inlined always: it runs after every activation, and a call would cost a tenth of its work.
    #[inline(always)]
    fn finish(&self, mut state: RefMut<'_, State>, job: JobId, again: bool) -> Instant {
        self.running.set(false);
        let now = monotonic_now();
        state.executor.finish(job, now, again);
        now
    }

    /// Runs one activation. Returns the state, which is not borrowed during callbacks, and whether the job stopped at
    /// its limit with more to do.
    fn run<'a>(
        &'a self,
        mut state: RefMut<'a, State>,
        now: Instant,
        job: JobId,
        task: Task,
        limit: usize,
    ) -> (RefMut<'a, State>, bool) {
        let again = match task {
            Task::Receive(lane) => return self.receive(state, now, job, lane, limit),
            Task::Callback(reader) => return self.free(state, || self.call_back(reader, limit)),
            Task::Status(of) => return self.free(state, || self.tell(of)),
            Task::TellDiscovery => return self.free(state, || self.tell_discovery()),
            Task::Timer => return self.free(state, || self.run_timer(now, job)),
            Task::Work(priority) => {
                let steps = state.work(now, priority, limit);
                state.note_handled(steps);
                steps > 0 && state.has_work(priority)
            }
            Task::Inlet => crate::remote::drain(&mut state, now, job, limit),
            Task::Observe => state.serve_observers(),
            Task::Recycle => state.recycle(now),
            Task::Housekeeping => {
                state.keep_house();
                false
            }
        };
        (state, again)
    }

    /// Releases the state for a step that borrows it itself.
    fn free<'a>(
        &'a self,
        state: RefMut<'a, State>,
        step: impl FnOnce() -> bool,
    ) -> (RefMut<'a, State>, bool) {
        drop(state);
        let again = step();
        (self.state.borrow_mut(), again)
    }

    /// Receives a burst of a lane and passes views to their readers.
    fn receive<'a>(
        &'a self,
        mut state: RefMut<'a, State>,
        now: Instant,
        job: JobId,
        lane: Lane,
        limit: usize,
    ) -> (RefMut<'a, State>, bool) {
        let mut received = Received(self.received.borrow_mut());
        let released = state.executor.job(job).released_at().unwrap_or(now);
        let taken = state.datapath.receive_burst(lane, limit, &mut received.0);
        state.note_handled(taken);
        for datagram in received.0.iter() {
            let arrived = datagram.arrived.unwrap_or(released);
            let viewed;
            (state, viewed) = self.read(state, now, datagram);
            state.note_datagram(now, lane, &datagram.from, arrived, viewed);
        }
        // A job of a lower lane is always preceded by a poll, which detects what waits; one of the highest lane may
        // not be.
        let again = taken == limit && state.is_highest(lane);
        (state, again)
    }

    /// Processes a datagram. Returns the state, and the most critical level of the views delivered.
    #[inline]
    fn read<'a>(
        &'a self,
        mut state: RefMut<'a, State>,
        now: Instant,
        datagram: &ReceivedFrame,
    ) -> (RefMut<'a, State>, Option<Level>) {
        let bytes: &[u8] = &datagram.frame;
        let mut message = MessageReceiver::new(datagram.from);
        if let Some(arrived) = datagram.arrived {
            message = message.arrived_at(arrived);
        }
        let mut viewed = None;
        loop {
            // By reference, because moving it would cost more than processing it.
            let Some(delivery) = &state.protocol.receive(now, &mut message, bytes) else {
                return (state, viewed);
            };
            let level;
            (state, level) = self.deliver_view(state, delivery, bytes);
            viewed = viewed.max(Some(level));
            if message.is_at_end(bytes.len()) {
                return (state, viewed);
            }
        }
    }

    /// Passes a view to its reader's callback, with the state released meanwhile. Returns the state, and the reader's
    /// level.
    #[inline]
    fn deliver_view<'a>(
        &'a self,
        mut state: RefMut<'a, State>,
        delivery: &Delivery,
        bytes: &[u8],
    ) -> (RefMut<'a, State>, Level) {
        let place = delivery.reader.index();
        let slot = &mut state.readers[place];
        let (level, generation, mut callback) = (slot.level, slot.generation, slot.view.take());
        let lent = Lent::of(self, &mut state, delivery);
        drop(state);
        let without_callback = Err(RejectReason::NotOfType);
        let delivered = callback.as_mut().map_or(without_callback, |callback| {
            let bytes = lent.as_ref().map_or(bytes, Lent::bytes);
            callback(&bytes[delivery.payload.clone()], &delivery.info)
        });
        drop(lent);

        let mut state = self.state.borrow_mut();
        let slot = &mut state.readers[place];
        let is_there = slot.generation == generation;
        if is_there && slot.view.is_none() {
            slot.view = callback.take();
        }
        match delivered {
            Err(reason) if is_there => {
                state.reject_delivered(delivery.reader, delivery.info.writer, reason);
            }
            Ok(()) if is_there && delivery.info.valid_data() => {
                state.note_response(delivery.reader, delivery.info.received, monotonic_now);
            }
            _ => {}
        }
        if callback.is_some() {
            // The reader is deleted or has another callback. This one may own endpoints, whose deletion borrows the
            // state.
            drop(state);
            drop(callback);
            state = self.state.borrow_mut();
        }
        (state, level)
    }

    fn call_back(&self, reader: ReaderId, limit: usize) -> bool {
        let place = reader.index();
        let (generation, callback) = {
            let slot = &mut self.state.borrow_mut().readers[place];
            (slot.generation, slot.cached.take())
        };
        let Some(mut callback) = callback else {
            return false;
        };
        for handled in 1.. {
            callback();
            // Declared after the callback, so that the borrow ends before a removed callback is dropped.
            let mut state = self.state.borrow_mut();
            let slot = &mut state.readers[place];
            if slot.generation != generation {
                return false;
            }
            let is_replaced = slot.cached.is_some();
            let is_empty = state.protocol.available(reader) == 0;
            if is_empty || is_replaced || handled == limit {
                state.note_handled(handled);
                state.readers[place].cached.get_or_insert(callback);
                return !is_empty;
            }
        }
        false
    }

    fn run_timer(&self, now: Instant, job: JobId) -> bool {
        let (callback, release) = {
            let mut state = self.state.borrow_mut();
            let release = state.executor.job(job).released_at().unwrap_or(now);
            (state.timers[job.index()].take(), release)
        };
        let Some(mut callback) = callback else {
            return false;
        };
        callback(release);

        let mut state = self.state.borrow_mut();
        if state.task(job).is_some() {
            state.timers[job.index()] = Some(callback);
        }
        false
    }

    /// Drops every callback and the endpoints they own.
    pub(crate) fn drop_callbacks(&self) {
        // The state may be borrowed if a panic inside a step unwinds.
        let callbacks: Option<Callbacks> = self
            .state
            .try_borrow_mut()
            .ok()
            .map(|mut state| state.remove_callbacks());
        drop(callbacks);
    }
}

/// Chooses the next job, and updates the clock to the time of that choice.
#[inline]
fn choose(state: &mut State, now: &mut Instant, until: Option<Instant>) -> Option<(JobId, Task)> {
    state.gather_recycling(*now);
    state.gather(*now);
    let mut next = state.executor.next();
    if !next.is_some_and(|job| state.is_settled(job)) {
        let is_over = until.is_some_and(|until| until <= *now);
        let sleeps = next.is_none() && !state.spinning && !is_over;
        let timeout = match sleeps {
            true => fall_asleep(state, until),
            false => Some(Duration::ZERO),
        };
        *now = state.look(timeout);
        if sleeps {
            state.set_sleeping(false);
        }
        state.gather_due(*now);
        next = state.executor.next();
    }
    let job = next?;
    Some((job, state.task_of_next(job)?))
}

/// Tells other threads to ring. Returns how long to sleep, up to `until`.
fn fall_asleep(state: &State, until: Option<Instant>) -> Option<Duration> {
    state.set_sleeping(true);
    // Samples handed over before are seen here; later ones ring.
    match state.inlets.iter().any(crate::remote::Inlet::is_ready) {
        true => Some(Duration::ZERO),
        // The clock is read again, because the application's condition ran since.
        false => state.sleep_time(monotonic_now(), until),
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.state.get_mut().say_farewell();
    }
}
