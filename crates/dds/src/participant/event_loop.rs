//! Event loop: choice and execution of jobs.
//!
//! The state of a participant is one [`State`] in a `RefCell`. It is borrowed for one step at a time, and never while a
//! callback of the application runs, which may write, read, create and delete. A callback works on data outside the
//! state: the received frames, and the callback itself. The callback is taken out of its slot, and put back unless its
//! reader or timer was deleted or got another callback meanwhile.
//!
//! An iteration of the loop:
//! 1. Makes jobs ready: those whose time has come, those with protocol work, and those with samples from other threads.
//! 2. Polls the sources of the datapath (epoll, or its own queues), and sleeps there if no job is ready. The poll is
//!    skipped if it cannot find work more urgent than the next job ([`Scheduling`]).
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
    Lane, ReceiveBurst, ReceivedFrame,
    clock::monotonic_now,
    limits::{MAX_BURST, MAX_SEGMENTS, MAX_UDP_PAYLOAD},
};
use isolane_executor::{Executor, JobId, PriorityInversions};
use isolane_rtps::{
    MessageReceiver, Priority, ReaderStatus, StatusChange, WriterStatus, limits::BATCH_BYTES,
};
use isolane_wire::{level::Level, locator::Locator, time::Instant};

use crate::{
    limits::{
        BULK_FRAMES, BURST, BURST_TIME, DATAGRAM_TIME, ITEMS_PER_POLL, NOT_DRIVEN,
        SLOW_LINK_BITS_PER_S, USUAL_LINK_BITS_PER_S,
    },
    listener::{Endpoint, status::Kind},
    participant::io::Readable,
    participant::jobs::Task,
    participant::state::{Callbacks, Lanes, State},
    warning_log::warn_not_driven,
    writer::handle::SendQueue,
};

const _: () = assert!(BURST <= MAX_BURST, "a burst is one call of the datapath");

/// Past instant, for a poll that does not sleep.
const AT_ONCE: Instant = Instant::new(0);

/// State of a participant and the event loop over it.
pub(crate) struct Core {
    pub(crate) state: RefCell<State>,
    /// Descriptor on which the loop sleeps. The application may query it while the state is borrowed.
    pub(crate) descriptor: Rc<OwnedFd>,
    /// Datagrams being received; borrowed during a receive job, including its callbacks.
    received: RefCell<ReceiveBurst>,
    kept: KeptBursts,
    /// True while a job runs; a callback must not enter the loop again.
    running: Cell<bool>,
    driving: Driving,
    /// True once the last handle to the participant was dropped.
    abandoned: Cell<bool>,
}

/// Record of the application's runs of the loop, for the warning that the loop does not run.
#[derive(Default)]
struct Driving {
    /// Nested runs of the loop.
    runs: Cell<u32>,
    has_run: Cell<bool>,
    /// Time of the first empty take since the last run.
    empty_since: Cell<Option<Instant>>,
    is_warned: Cell<bool>,
}

/// Run of the loop; ends when dropped.
struct Run<'a>(&'a Driving);

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.0.runs.set(self.0.runs.get() - 1);
    }
}

/// Limit of the datagrams that an activation sends or receives before the loop checks for more urgent work.
///
/// It is the time that more urgent levels may wait for the burst: the larger of its time on the link, which the number
/// of bytes bounds, and its CPU time, which `datagrams` bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BurstBound {
    /// Bytes after which no further datagram begins: the bound less one Ethernet frame.
    bytes_before_last: usize,
    datagrams: usize,
    /// Time after which callbacks end the activation; `None`: no time bound.
    time: Option<Duration>,
}

impl BurstBound {
    /// A single datagram.
    pub(crate) const SINGLE: Self = Self {
        bytes_before_last: 0,
        datagrams: 1,
        time: Some(Duration::ZERO),
    };

    /// Bound of a level that no more urgent level waits for.
    pub(crate) const LARGEST: Self = Self {
        bytes_before_last: MAX_UDP_PAYLOAD - BATCH_BYTES,
        datagrams: MAX_SEGMENTS,
        time: None,
    };

    /// Bound of a burst for which more urgent levels wait at most `time`, on a link of this rate.
    pub(crate) fn within(time: Duration, link_bits_per_s: u64) -> Self {
        let bits = time.as_nanos() * u128::from(link_bits_per_s) / 1_000_000_000;
        let bytes = usize::try_from(bits / 8).unwrap_or(usize::MAX);
        let datagrams = time.as_nanos() / DATAGRAM_TIME.as_nanos();
        Self {
            bytes_before_last: bytes.min(MAX_UDP_PAYLOAD).saturating_sub(BATCH_BYTES),
            datagrams: (datagrams as usize).clamp(1, MAX_SEGMENTS),
            time: Some(time),
        }
    }

    /// Returns whether the time for callbacks has passed since `begin`.
    #[inline]
    pub(crate) fn is_over(&self, begin: Instant) -> bool {
        self.time
            .is_some_and(|time| monotonic_now().saturating_since(begin) >= time)
    }
}

/// Part of a burst that was sent or received.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BurstUse {
    bytes: usize,
    pub(crate) datagrams: usize,
}

impl BurstUse {
    /// Adds a datagram.
    #[inline]
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.datagrams += 1;
    }

    /// Adds a datagram with this number of destinations, each of which counts as a datagram. One without destinations
    /// costs the time of a step.
    #[inline]
    pub(crate) fn add_to(&mut self, places: usize, bytes: usize) {
        self.bytes += places * bytes;
        self.datagrams += places.max(1);
    }

    /// Returns whether a further datagram in an Ethernet frame would exceed the bound.
    #[inline]
    pub(crate) fn reaches(&self, bound: &BurstBound) -> bool {
        self.datagrams >= bound.datagrams || self.bytes > bound.bytes_before_last
    }
}

/// Scheduling policy: when to poll the sources, and how many items a job may handle until the next poll.
pub(crate) struct Scheduling {
    /// Highest level with an open lane, the priority of its receive job, and that job.
    highest: Option<Level>,
    highest_priority: Priority,
    highest_receive: Option<JobId>,
    /// Items handled since the last poll of the most urgent lane.
    since_poll: usize,
    /// Items of the last activation.
    handled: usize,
    /// Bound of a burst of each lane.
    bounds: [BurstBound; Lane::COUNT],
    /// Smallest bound that a topic of the lane asks for.
    asked: [Option<Duration>; Lane::COUNT],
}

impl Scheduling {
    pub(crate) fn new() -> Self {
        Self {
            highest: None,
            highest_priority: Priority::DISCOVERY,
            highest_receive: None,
            since_poll: BURST,
            handled: 0,
            bounds: [BurstBound::SINGLE; Lane::COUNT],
            asked: [None; Lane::COUNT],
        }
    }

    /// Notes the bound that a topic of a lane asks for. Returns whether it is smaller than those before.
    pub(crate) fn bound(&mut self, lane: Lane, bound: Option<Duration>) -> bool {
        let asked = &mut self.asked[lane.index()];
        let smallest = asked.iter().copied().chain(bound).min();
        std::mem::replace(asked, smallest) != smallest
    }

    /// Sets the bounds of bursts on links of this rate. With shared lanes every burst is a single datagram.
    pub(crate) fn set_bounds(&mut self, lanes: Lanes, link_bits_per_s: Option<u64>) {
        let rate = link_bits_per_s.unwrap_or(USUAL_LINK_BITS_PER_S);
        for lane in Lane::ALL {
            self.bounds[lane.index()] = match self.asked[lane.index()] {
                _ if lane.level().is_none() || !lanes.is_per_level() => BurstBound::SINGLE,
                Some(time) => BurstBound::within(time, rate),
                None if self.is_highest(lane) => BurstBound::LARGEST,
                None if rate <= SLOW_LINK_BITS_PER_S => BurstBound::SINGLE,
                None => BurstBound::within(BURST_TIME, rate),
            };
        }
    }

    /// Returns the bound of a burst of this lane.
    #[inline]
    pub(crate) fn bound_of(&self, lane: Lane) -> BurstBound {
        self.bounds[lane.index()]
    }

    /// Records an open lane and its receive job.
    pub(crate) fn add_lane(&mut self, lane: Lane, receive: JobId) {
        if lane.level() >= self.highest {
            self.highest = lane.level();
            self.highest_priority = self.highest.map_or(Priority::DISCOVERY, Priority::of_data);
            self.highest_receive = Some(receive);
        }
    }

    /// Returns whether this is the most critical open lane.
    #[inline]
    fn is_highest(&self, lane: Lane) -> bool {
        lane.level() == self.highest
    }

    /// Returns the maximum number of items per activation of a job of this lane.
    pub(crate) fn items_of(&self, lane: Lane) -> u16 {
        if self.is_highest(lane) {
            BURST as u16
        } else {
            1
        }
    }

    /// Returns the maximum number of frames per call that receives from this lane.
    pub(crate) fn frames_of(&self, lane: Lane) -> u16 {
        match self.bounds[lane.index()].datagrams {
            1 => self.items_of(lane),
            _ if self.is_highest(lane) => BURST as u16,
            _ => BULK_FRAMES,
        }
    }

    /// Returns the maximum number of datagrams sent, or samples delivered, per activation at this level. With shared
    /// lanes the maximum is 1 for every level.
    pub(crate) fn items_of_level(&self, lanes: Lanes, level: Level) -> u16 {
        match lanes.is_per_level() {
            true => self.items_of(Lane::Level(level)),
            false => 1,
        }
    }

    /// Returns the maximum number of samples delivered per activation of a callback job at this level. Below the highest
    /// level in use, the activation also ends when the time of a burst has passed.
    pub(crate) fn callbacks_of_level(&self, lanes: Lanes, level: Level) -> u16 {
        match lanes.is_per_level() {
            true => self.bound_of(Lane::Level(level)).datagrams.min(BURST) as u16,
            false => 1,
        }
    }

    /// Returns whether a poll cannot find work that precedes this job. This holds for the receive job of the most
    /// urgent lane, and for a job of higher priority. A job of the same priority may run without a poll until a burst
    /// was handled since the last one. Beyond that, a series of callbacks would delay the detection of datagrams.
    ///
    /// With shared lanes only the receive job qualifies.
    fn may_skip_poll(&self, executor: &Executor, lanes: Lanes, job: JobId) -> bool {
        if self.is_highest_receive(job) {
            return true;
        }
        let (priority, highest) = (
            executor.job(job).config.priority,
            self.highest_priority.get(),
        );
        let is_within_burst = priority == highest && self.since_poll < BURST;
        lanes.is_per_level() && (priority > highest || is_within_burst)
    }

    /// Returns whether this job receives from the most urgent lane.
    #[inline]
    fn is_highest_receive(&self, job: JobId) -> bool {
        self.highest_receive == Some(job)
    }

    /// Notes that the running receive job takes datagrams that were received before, and so is no poll.
    #[cold]
    fn note_no_poll(&mut self) {
        self.since_poll = BURST;
    }

    /// Returns the number of items that a job starting now may handle: the configured number. Between two polls, jobs
    /// at least as urgent as the most urgent lane handle at most a burst. Each less urgent job is followed by a poll.
    #[inline]
    fn begin_items(&mut self, executor: &Executor, job: JobId) -> usize {
        if self.is_highest_receive(job) {
            // Receiving is itself a poll, and may handle a burst (`State::assign_bursts`).
            self.since_poll = 0;
            return BURST;
        }
        let config = &executor.job(job).config;
        let (items, priority) = (usize::from(config.items), config.priority);
        if priority < self.highest_priority.get() {
            self.since_poll = BURST;
            items
        } else {
            let left = BURST.saturating_sub(self.since_poll);
            self.since_poll += 1;
            items.min(left.max(1))
        }
    }
}

/// Running job. It ends by [`end`](Self::end), or when a callback panics.
struct Activation<'a> {
    core: &'a Core,
    job: JobId,
}

impl Activation<'_> {
    /// Ends the job and returns the time. `again` means that the job stopped at its limit with more to do.
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

/// Burst of the running receive job. Dropping this returns its frames to the pool.
struct Received<'a>(RefMut<'a, ReceiveBurst>);

impl Drop for Received<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// Datagrams that an activation left to the next one of its lane, because it reached the bound of a burst.
struct KeptBursts {
    /// Lanes ([`Lane::bit`]) with such datagrams.
    lanes: Cell<u16>,
    /// Bursts by [`Lane::index`].
    of: RefCell<Vec<KeptBurst>>,
}

#[derive(Default)]
struct KeptBurst {
    frames: ReceiveBurst,
    rest: Rest,
}

/// Part of a burst that is left.
#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    /// Index of the first frame, and offset of the next datagram in it.
    frame: usize,
    offset: usize,
    /// Release of the job that received the burst: the arrival of datagrams without a receive stamp.
    released: Instant,
}

impl KeptBursts {
    fn new() -> Self {
        Self {
            lanes: Cell::new(0),
            // One after the other on the heap: the array would take 13 KB of stack.
            of: RefCell::new(Lane::ALL.iter().map(|_| KeptBurst::default()).collect()),
        }
    }

    #[inline]
    fn has(&self, lane: Lane) -> bool {
        // Usually none, which spares the computation of the bit.
        self.lanes.get() != 0 && self.lanes.get() & lane.bit() != 0
    }

    /// Keeps the rest of a burst.
    #[cold]
    fn keep(&self, lane: Lane, burst: &mut ReceiveBurst, rest: Rest) {
        let kept = &mut self.of.borrow_mut()[lane.index()];
        kept.rest = rest;
        std::mem::swap(&mut kept.frames, burst);
        self.lanes.set(self.lanes.get() | lane.bit());
    }

    /// Moves the kept frames into an empty burst, and returns what is left of it.
    #[cold]
    fn take(&self, lane: Lane, burst: &mut ReceiveBurst) -> Rest {
        let kept = &mut self.of.borrow_mut()[lane.index()];
        std::mem::swap(&mut kept.frames, burst);
        self.lanes.set(self.lanes.get() & !lane.bit());
        kept.rest
    }
}

impl Core {
    pub(crate) fn new(state: State) -> Self {
        Self {
            descriptor: state.io.poller.descriptor(),
            state: RefCell::new(state),
            received: RefCell::default(),
            kept: KeptBursts::new(),
            running: Cell::new(false),
            driving: Driving::default(),
            abandoned: Cell::new(false),
        }
    }

    /// Warns once if a reader repeatedly finds no sample, and can get none, because the loop does not run.
    pub(crate) fn note_empty(&self, topic: &str) {
        let driving = &self.driving;
        if driving.runs.get() > 0 || driving.is_warned.get() {
            return;
        }
        let now = monotonic_now();
        let Some(since) = driving.empty_since.get() else {
            driving.empty_since.set(Some(now));
            return;
        };
        let idle = now.saturating_since(since);
        let has_run = driving.has_run.get() && !self.is_abandoned();
        if has_run && idle < NOT_DRIVEN {
            return;
        }
        driving.is_warned.set(true);
        warn_not_driven(topic, has_run.then_some(idle), self.is_abandoned());
    }

    /// Returns whether the last handle to the participant was dropped.
    #[inline]
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.get()
    }

    /// Returns whether a job is running.
    pub(crate) fn is_running(&self) -> bool {
        self.running.get()
    }

    /// Enters the loop on the calling thread, and applies the scheduling options the first time.
    ///
    /// # Panics
    /// If a callback is running.
    fn enter(&self) -> Run<'_> {
        assert!(
            !self.is_running(),
            "the loop is running: a callback cannot drive it"
        );
        let mut state = self.state.borrow_mut();
        if let Some(placement) = state.placement.take()
            && let Err(error) = placement.apply()
        {
            state.monitoring.not_placed.push(error.to_string());
        }
        let driving = &self.driving;
        driving.runs.set(driving.runs.get() + 1);
        driving.has_run.set(true);
        driving.empty_since.set(None);
        Run(driving)
    }

    /// See [`Participant::poll`](crate::Participant::poll).
    pub(crate) fn poll(&self) -> usize {
        let _run = self.enter();
        let mut now = monotonic_now();
        let (mut ran, mut handled) = (0, 0);
        while handled < ITEMS_PER_POLL && self.turn(&mut now, Some(AT_ONCE)) {
            ran += 1;
            handled += self.state.borrow().scheduling.handled;
        }
        // From here on, other threads write the eventfd. `next_time` sees samples handed over until now.
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
        let _run = self.enter();
        let (mut ran, mut late) = (true, 0);
        loop {
            if done() {
                return true;
            }
            if now >= end {
                // Datagrams that arrived before the timeout are still read, so one poll follows the last activation.
                if !ran || late == ITEMS_PER_POLL {
                    return false;
                }
                late += 1;
            }
            ran = self.turn(&mut now, Some(end));
        }
    }

    /// See [`Participant::run`](crate::Participant::run).
    pub(crate) fn run_while(&self, mut goes_on: impl FnMut() -> bool) {
        let _run = self.enter();
        let mut now = monotonic_now();
        while goes_on() {
            self.turn(&mut now, None);
        }
    }

    /// Runs one iteration: a poll, which sleeps up to `until` if no job is ready, and one activation. Returns false if
    /// no job was ready. `clock` is the time read last; the iteration sets it to its own end, so that no time is read
    /// twice.
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

    // Inlined always: this runs after every activation, and the call would cost a tenth of the function's work.
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
            Task::Callback(reader) => {
                return self.free(state, || self.call_back(now, reader, limit));
            }
            Task::Status(of) => return self.free(state, || self.notify(of)),
            Task::Discovery => return self.free(state, || self.notify_discovery()),
            Task::Timer => return self.free(state, || self.run_timer(now, job)),
            Task::Work(priority) => {
                let steps = state.work(now, priority, limit, None);
                state.note_handled(steps);
                steps > 0 && state.has_work(priority)
            }
            Task::SendQueue => crate::writer::handle::drain(&mut state, now, job, limit),
            Task::Observe => state.serve_observers(),
            Task::ListDiscovered => state.serve_list(),
            Task::Recycle => state.io.recycle(now),
            Task::Housekeeping => {
                state.housekeeping();
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
        let mut released = state.executor.job(job).released_at().unwrap_or(now);
        let (mut taken, mut offset) = (0, 0);
        let mut frames = match self.kept.has(lane) {
            true => {
                state.scheduling.note_no_poll();
                let rest = self.kept.take(lane, &mut received.0);
                (offset, released) = (rest.offset, rest.released);
                received.0[rest.frame..].iter()
            }
            false => {
                let datapath = &mut state.io.datapath;
                taken = datapath.receive_burst(lane, limit, &mut received.0);
                received.0.iter()
            }
        };
        let mut used = BurstUse::default();
        let mut rest = None;
        'burst: while let Some(frame) = frames.next() {
            let arrived = frame.arrived.unwrap_or(released);
            let filled: &[u8] = &frame.frame;
            let segment_bytes = frame.frame.segment_bytes();
            loop {
                let bytes = match segment_bytes {
                    None => filled,
                    Some(bytes) => segment(filled, offset, bytes.get().into()),
                };
                let viewed;
                (state, viewed) = self.read(state, now, frame, bytes);
                state.note_datagram(now, lane, &frame.from, arrived, viewed);
                used.add(bytes.len());
                offset += bytes.len();
                let ends_frame = offset >= filled.len();
                if !ends_frame || frames.len() > 0 {
                    let bound = state.scheduling.bound_of(lane);
                    if used.reaches(&bound) || viewed.is_some() && bound.is_over(now) {
                        let next = received.0.len() - frames.len();
                        rest = Some(match ends_frame {
                            true => (next, 0),
                            false => (next - 1, offset),
                        });
                        break 'burst;
                    }
                }
                if ends_frame {
                    break;
                }
            }
            offset = 0;
        }
        state.note_handled(used.datagrams);
        if let Some((frame, offset)) = rest {
            let rest = Rest {
                frame,
                offset,
                released,
            };
            self.kept.keep(lane, &mut received.0, rest);
        }
        // Before a receive job of a lower lane there is always a poll, which finds waiting datagrams. Before one of the
        // highest lane the poll may be skipped.
        let again = rest.is_some() || taken == limit && state.scheduling.is_highest(lane);
        (state, again)
    }

    /// Processes a datagram. Returns the state, and the most critical level of the views delivered.
    #[inline(always)]
    fn read<'a>(
        &'a self,
        mut state: RefMut<'a, State>,
        now: Instant,
        frame: &ReceivedFrame,
        bytes: &[u8],
    ) -> (RefMut<'a, State>, Option<Level>) {
        let mut message = MessageReceiver::new(frame.from);
        if let Some(arrived) = frame.arrived {
            message = message.arrived_at(arrived);
        }
        let mut viewed = None;
        loop {
            // The delivery is borrowed, because a move would cost more than the processing.
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

    /// Drops every callback and the endpoints they own, and deletes the writers of writer handles: nothing runs the loop
    /// any more.
    pub(crate) fn abandon(&self) {
        // The state may be borrowed if a panic inside a step unwinds.
        let callbacks: Option<Callbacks> = self
            .state
            .try_borrow_mut()
            .ok()
            .map(|mut state| state.remove_callbacks());
        // They may write a last sample.
        drop(callbacks);
        self.abandoned.set(true);
        if let Ok(mut state) = self.state.try_borrow_mut() {
            state.close_send_queues();
        }
    }
}

/// Returns the datagram at `offset` of a segmented burst.
fn segment(burst: &[u8], offset: usize, segment_bytes: usize) -> &[u8] {
    let rest = burst.get(offset..).unwrap_or_default();
    &rest[..rest.len().min(segment_bytes)]
}

/// Chooses the next job, and updates the clock to the time of that choice.
#[inline]
fn choose(state: &mut State, now: &mut Instant, until: Option<Instant>) -> Option<(JobId, Task)> {
    let recycle = state.jobs.recycle;
    state
        .io
        .activate_recycling(*now, &mut state.executor, recycle);
    state.activate(*now);
    let mut next = state.executor.next();
    if !next.is_some_and(|job| state.may_skip_poll(job)) {
        let is_over = until.is_some_and(|until| until <= *now);
        let sleeps = next.is_none() && !state.io.spinning && !is_over;
        let timeout = match sleeps {
            true => fall_asleep(state, until),
            false => Some(Duration::ZERO),
        };
        *now = state.poll_sources(timeout);
        if sleeps {
            state.set_sleeping(false);
        }
        state.activate_due(*now);
        next = state.executor.next();
    }
    let job = next?;
    Some((job, state.jobs.task_of_next(job)?))
}

/// Sets the flag that makes other threads write the eventfd. Returns how long to sleep, up to `until`.
fn fall_asleep(state: &State, until: Option<Instant>) -> Option<Duration> {
    state.set_sleeping(true);
    // Samples handed over before are seen here; for later ones the thread writes the eventfd.
    match state.send_queues.iter().any(SendQueue::is_ready) {
        true => Some(Duration::ZERO),
        // The clock is read again, because the application's condition ran since.
        false => state.sleep_time(monotonic_now(), until),
    }
}

/// Activation of jobs by time, by protocol work, by other threads, and by the datapath's sources.
impl State {
    /// Starts a chosen job and returns the number of items it may handle.
    #[inline]
    fn begin(&mut self, job: JobId, task: Task, now: Instant) -> usize {
        let waited = self.executor.begin(job, now);
        self.scheduling.handled = 1;
        self.note_begun(task, waited);
        self.scheduling.begin_items(&self.executor, job)
    }

    /// Counts the wait of a callback job that starts.
    #[inline]
    fn note_begun(&mut self, task: Task, waited: PriorityInversions) {
        if let Task::Callback(reader) = task {
            self.monitoring
                .inversions
                .note_callback(self.reader_slots[reader.index()].level, waited);
        }
    }

    /// Counts the items that the running job has handled, one of which was counted when it started.
    #[inline]
    pub(crate) fn note_handled(&mut self, items: usize) {
        self.scheduling.since_poll += items.saturating_sub(1);
        self.scheduling.handled = items.max(1);
        self.executor.set_items_handled(items as u16);
    }

    #[inline]
    fn may_skip_poll(&self, job: JobId) -> bool {
        self.scheduling
            .may_skip_poll(&self.executor, self.lanes, job)
    }

    /// Returns the next time at which something is due without an event.
    fn next_due(&self) -> Option<Instant> {
        let times = [
            self.protocol.next_time(),
            self.executor.next_release(),
            self.io.next_due(),
        ];
        times.into_iter().flatten().min()
    }

    /// Returns when the loop must run next without an event; an instant in the past if something is ready.
    pub(crate) fn next_time(&mut self) -> Option<Instant> {
        let is_ready = self.executor.ready_count() > 0
            || self.io.work_ready(&self.protocol) != 0
            || self.send_queues.iter().any(SendQueue::is_ready)
            || self.io.has_ready_lane();
        if is_ready {
            return Some(Instant::new(0));
        }
        self.next_due()
    }

    /// Returns how long the loop may sleep: to the next due time, at most to `until`.
    fn sleep_time(&self, now: Instant, until: Option<Instant>) -> Option<Duration> {
        let wakes = self.next_due().into_iter().chain(until).min();
        wakes.map(|at| at.saturating_since(now))
    }

    /// Sets whether other threads write the eventfd when they hand over a sample.
    fn set_sleeping(&self, sleeps: bool) {
        for queue in &self.send_queues {
            queue.set_sleeping(sleeps);
        }
    }

    /// Makes jobs ready for due times, protocol work and other threads.
    #[inline]
    fn activate(&mut self, now: Instant) {
        // This runs in every iteration, and usually nothing is pending.
        if self.io.all_work(&self.protocol) != 0
            || self.protocol.has_status()
            || self.may_be_due(now)
        {
            self.activate_all(now);
        }
    }

    /// Makes jobs ready after a poll that followed [`activate`](Self::activate): only time and other threads have
    /// progressed.
    #[inline]
    fn activate_due(&mut self, now: Instant) {
        if self.may_be_due(now) {
            self.activate_all(now);
        }
    }

    #[inline]
    fn may_be_due(&self, now: Instant) -> bool {
        let is_due = |time: Option<Instant>| time.is_some_and(|at| at <= now);
        is_due(self.protocol.next_time())
            || is_due(self.executor.next_release())
            || self.io.is_starved()
            || !self.send_queues.is_empty()
    }

    // Never inlined, so that the check before it stays short and is inlined into the loop.
    #[inline(never)]
    fn activate_all(&mut self, now: Instant) {
        if self.protocol.next_time().is_some_and(|at| at <= now) {
            self.protocol.advance(now);
        }
        if self.executor.next_release().is_some_and(|at| at <= now) {
            self.executor.release(now);
        }
        self.io.retry_starved(now);
        let mut ready = self.io.work_ready(&self.protocol);
        while ready != 0 {
            let priority = ready.trailing_zeros();
            ready &= ready - 1;
            self.executor
                .activate(self.jobs.work[priority as usize], now);
        }
        self.take_notes(now, now);
        for queue in &self.send_queues {
            if queue.is_ready() {
                self.executor.activate(queue.job, now);
            }
        }
    }

    /// Polls the datapath's sources, sleeping up to `timeout`. Returns the time afterwards.
    fn poll_sources(&mut self, timeout: Option<Duration>) -> Instant {
        let (lanes, readable) = match self.io.spin() {
            Some(lanes) => (lanes, Some(Readable::FIRSTS)),
            None => self.io.wait(timeout),
        };
        let now = monotonic_now();
        self.scheduling.since_poll = 0;
        self.executor.polled(now, lanes.into());
        let mut left = lanes;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(job) = self.jobs.receive[index] else {
                continue;
            };
            if let Some(readable) = readable
                && index < Lane::COUNT
            {
                self.io
                    .datapath
                    .set_readable(Lane::ALL[index], readable.of(index));
            }
            self.executor.activate(job, now);
        }
        now
    }

    fn has_work(&self, priority: Priority) -> bool {
        self.io.work_ready(&self.protocol) & (1 << priority.get()) != 0
    }
}

/// Effects of received datagrams: jobs become ready as of the arrival, and their waiting times are recorded.
impl State {
    /// Makes jobs ready for status changes caused by a datagram that arrived at `arrived`. Returns the most critical
    /// level with available samples.
    #[inline]
    pub(crate) fn take_notes(&mut self, now: Instant, arrived: Instant) -> Option<Level> {
        // This runs after every datagram, and usually nothing has changed.
        match self.protocol.has_status() {
            true => self.take_all_notes(now, arrived),
            false => None,
        }
    }

    /// Makes jobs ready for status changes caused by the application's own calls.
    pub(crate) fn take_notes_now(&mut self) {
        let now = monotonic_now();
        self.take_notes(now, now);
    }

    fn take_all_notes(&mut self, now: Instant, arrived: Instant) -> Option<Level> {
        let mut most_critical = None;
        while let Some(change) = self.protocol.next_status() {
            most_critical = most_critical.max(self.take_note(now, arrived, change));
        }
        most_critical
    }

    fn take_note(&mut self, now: Instant, arrived: Instant, change: StatusChange) -> Option<Level> {
        match change {
            StatusChange::Reader(id, status) => {
                let is_incompatible = status.contains(ReaderStatus::REQUESTED_INCOMPATIBLE_QOS);
                self.monitoring.warning_log.has_incompatible |= is_incompatible;
                self.listeners.note_statuses(
                    &mut self.executor,
                    now,
                    Endpoint::Reader(id),
                    Kind::of_reader(status),
                );
                if !status.contains(ReaderStatus::DATA_AVAILABLE) {
                    return None;
                }
                self.listeners.note_data(id);
                let slot = &self.reader_slots[id.index()];
                if let Some(job) = slot.job {
                    self.executor.activate_since(job, arrived, now);
                }
                return Some(slot.level);
            }
            StatusChange::Writer(id, status) => {
                let is_incompatible = status.contains(WriterStatus::OFFERED_INCOMPATIBLE_QOS);
                self.monitoring.warning_log.has_incompatible |= is_incompatible;
                self.listeners.note_statuses(
                    &mut self.executor,
                    now,
                    Endpoint::Writer(id),
                    Kind::of_writer(status),
                );
                if status.intersects(WriterStatus::ROOM | WriterStatus::ALL_ACKNOWLEDGED) {
                    let of_writer = self.send_queues.iter_mut().find(|queue| queue.writer == id);
                    of_writer.into_iter().for_each(SendQueue::wake);
                }
            }
            StatusChange::Discovery => {
                self.listeners
                    .discovery
                    .note_events(&mut self.executor, &self.protocol, now);
            }
        }
        None
    }

    /// Processes the effects of a datagram that the running job, started at `now`, has read. Jobs become ready as of
    /// its arrival, and its wait is counted. `viewed` is the most critical level of the views delivered.
    #[inline]
    pub(crate) fn note_datagram(
        &mut self,
        now: Instant,
        lane: Lane,
        from: &Locator,
        arrived: Instant,
        viewed: Option<Level>,
    ) {
        self.monitoring
            .warning_log
            .note_datagram(self.protocol.counters(), from);
        let brought = self.take_notes(now, arrived);
        let level = match self.lanes.is_per_level() {
            true => lane.level(),
            // On a shared lane, the level is that of the samples.
            false => lane.level().and(brought.max(viewed)),
        };
        let priority = match level {
            Some(level) => Priority::of_data(level),
            None if lane == Lane::Discovery => Priority::DISCOVERY,
            None => return,
        };
        let waited = self.executor.record_arrival(priority.get(), arrived);
        if let Some(level) = level {
            self.monitoring.inversions.note_datagram(level, waited);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.state.get_mut().send_disposal();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: Lane = Lane::ALL[2];

    fn used(datagrams: usize, bytes: usize) -> BurstUse {
        let mut used = BurstUse::default();
        (0..datagrams).for_each(|_| used.add(bytes));
        used
    }

    /// Returns the number of datagrams of this size until the bound is reached.
    fn datagrams_within(bound: &BurstBound, bytes: usize) -> usize {
        let is_over = |datagrams: &usize| used(*datagrams, bytes).reaches(bound);
        (0..=MAX_SEGMENTS).find(is_over).expect("a bound")
    }

    /// Bounds of level 1 below level 7, at this rate.
    fn below_urgent(rate: Option<u64>) -> BurstBound {
        let mut scheduling = Scheduling::new();
        scheduling.highest = Some(Level::ALL[7]);
        scheduling.set_bounds(Lanes::new(|level| level), rate);
        scheduling.bound_of(LANE)
    }

    #[test]
    fn a_burst_below_an_urgent_level_takes_its_time_on_the_link() {
        let gigabit = 1_000_000_000;
        for (rate, frames) in [
            (Some(gigabit), 4),
            (None, 4),
            (Some(10 * gigabit), 8),
            (Some(SLOW_LINK_BITS_PER_S), 1),
            (Some(0), 1),
        ] {
            assert_eq!(
                datagrams_within(&below_urgent(rate), 1_472),
                frames,
                "{rate:?}"
            );
        }
        let mut scheduling = Scheduling::new();
        assert!(scheduling.bound(LANE, Some(Duration::from_secs(1))));
        assert!(scheduling.bound(LANE, Some(Duration::ZERO)));
        assert!(!scheduling.bound(LANE, None), "the smallest one stays");
        scheduling.set_bounds(Lanes::new(|level| level), Some(gigabit));
        assert_eq!(datagrams_within(&scheduling.bound_of(LANE), 100), 1);
    }

    #[test]
    fn a_bound_has_a_datagram_and_no_more_than_a_frame_has() {
        let none = BurstBound::within(Duration::ZERO, 1_000_000_000);
        assert_eq!((none.bytes_before_last, none.datagrams), (0, 1));
        let hour = BurstBound::within(Duration::from_secs(3_600), u64::MAX);
        assert_eq!(
            (hour.bytes_before_last, hour.datagrams),
            (MAX_UDP_PAYLOAD - BATCH_BYTES, MAX_SEGMENTS)
        );
    }

    #[test]
    fn a_burst_ends_before_the_datagram_that_would_exceed_its_bound() {
        let gigabit = BurstBound::within(BURST_TIME, 1_000_000_000);
        assert_eq!(datagrams_within(&gigabit, 1_400), 4);
        assert_eq!(datagrams_within(&gigabit, 1_000), 5);
        assert_eq!(datagrams_within(&gigabit, 100), 8, "by CPU time");
        assert_eq!(datagrams_within(&gigabit, 60_000), 1, "one in any case");
        assert_eq!(datagrams_within(&BurstBound::SINGLE, 0), 1);
        assert_eq!(datagrams_within(&BurstBound::LARGEST, 1_400), 46);
        assert_eq!(datagrams_within(&BurstBound::LARGEST, 100), MAX_SEGMENTS);
    }

    #[test]
    fn each_destination_counts_and_a_datagram_without_one_as_a_step() {
        let mut used = BurstUse::default();
        used.add_to(3, 100);
        used.add_to(0, 100);
        assert_eq!((used.datagrams, used.bytes), (4, 300));
    }
}
