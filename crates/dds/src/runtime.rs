//! The loop: what is ready, what runs next, and how each job runs.
//!
//! All state of a participant is one [`State`] in a `RefCell`, borrowed for the length of one step and
//! never while a user's callback runs: the callback may write, read and create. What a callback
//! works on lies outside: the received frame is owned by the loop while its job runs, and the
//! callback itself is taken out of its place and put back.
//!
//! One turn of the loop:
//! 1. look at the sources (epoll, or the datapath's own queues), at the engine's timers and at
//!    the periodic jobs, and mark the jobs ready that they release;
//! 2. run one activation of the most urgent job;
//! 3. look again, unless the next job is as urgent as the most urgent lane: then there is nothing
//!    a look could put before it.

use std::{cell::RefCell, rc::Rc, time::Duration};

use isolane_datapath::{
    Datapath, Frame, Lane, ReceiveBurst, TransmitBurst,
    clock::{monotonic_now, wall_now_ns},
    limits::MAX_BURST,
};
use isolane_engine::{
    Delivery, Destinations, Engine, MessageReceiver, Priority, ReaderId, ReaderStatus, SampleInfo,
    StatusChange, WorkKind,
};
use isolane_executor::{Executor, JobConfig, JobId};
use isolane_wire::{level::Level, locator::Locator, time::Instant};

use crate::{
    limits::BURST,
    remote::Inlet,
    transport::Transport,
    wait::{Ready, Waiter},
};

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Receives from a lane.
    Receive(Lane),
    /// Takes filed work of the engine.
    Work(Priority),
    /// Hands cached samples of a reader to its callback.
    Callback(ReaderId),
    /// Runs a user's timer.
    Timer(u16),
    /// Takes samples from a remote writer's ring.
    Inlet(u16),
    /// Follows the wall clock.
    Housekeeping,
}

/// A user's function for views: payload and what is known of it. False: the payload was not of
/// the type.
pub(crate) type ViewCallback = Box<dyn FnMut(&[u8], &SampleInfo) -> bool>;
/// A user's function for one cached sample.
pub(crate) type CacheCallback = Box<dyn FnMut()>;
/// A user's function for a point in time: the release, as planned.
pub(crate) type TimerCallback = Box<dyn FnMut(Instant)>;

/// A time-triggered job, as [`Participant::create_timer`](crate::Participant::create_timer) returns
/// it. Dropping the handle does not stop the timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer(pub(crate) u16);

/// What is kept of a reader beside the engine.
#[derive(Default)]
pub(crate) struct ReaderSlot {
    pub(crate) view: Option<ViewCallback>,
    pub(crate) cached: Option<CacheCallback>,
    pub(crate) job: Option<JobId>,
}

#[derive(Default)]
pub(crate) struct TimerSlot {
    pub(crate) callback: Option<TimerCallback>,
    pub(crate) job: Option<JobId>,
}

/// Observed maxima of one kind of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WorkObserved {
    pub(crate) steps: u64,
    pub(crate) execution_max_ns: u64,
}

/// Everything a participant is made of.
pub(crate) struct State {
    pub(crate) engine: Engine,
    pub(crate) executor: Executor,
    pub(crate) transport: Transport,
    pub(crate) waiter: Waiter,
    /// What each job does, by [`JobId::index`].
    pub(crate) tasks: Vec<Option<Task>>,
    pub(crate) receive_jobs: [Option<JobId>; Lane::COUNT],
    pub(crate) work_jobs: [JobId; Priority::COUNT],
    pub(crate) readers: Vec<ReaderSlot>,
    pub(crate) timers: Vec<TimerSlot>,
    pub(crate) inlets: Vec<Inlet>,
    pub(crate) work_observed: [[WorkObserved; WorkKind::ALL.len()]; Priority::COUNT],
    /// The highest level with an open lane.
    pub(crate) highest: Option<Level>,
    /// The engine's buffers had no frame: what was to be sent is repeated by the protocol.
    pub(crate) no_frame: u64,
    pub(crate) transmit: TransmitBurst,
    /// A burst being received; kept here between activations, empty.
    received: ReceiveBurst,
    pub(crate) spinning: bool,
}

/// The parts a state begins with.
pub(crate) struct Parts {
    pub(crate) engine: Engine,
    pub(crate) executor: Executor,
    pub(crate) transport: Transport,
    pub(crate) waiter: Waiter,
    pub(crate) spinning: bool,
}

impl State {
    pub(crate) fn new(parts: Parts) -> Result<Self, isolane_executor::TableFull> {
        let Parts {
            engine,
            mut executor,
            transport,
            waiter,
            spinning,
        } = parts;
        let mut tasks = vec![None; crate::limits::MAX_JOBS];
        let mut work_jobs = Vec::with_capacity(Priority::COUNT);
        for priority in Priority::descending() {
            let name = format!("protocol work, priority {}", priority.get());
            let job = executor.add(JobConfig::event(&name, priority.get()))?;
            tasks[job.index()] = Some(Task::Work(priority));
            work_jobs.push(job);
        }
        work_jobs.reverse();
        let second = Duration::from_secs(1).as_nanos() as u64;
        let job = executor.add(JobConfig::periodic(
            "housekeeping",
            Priority::STATISTICS.get(),
            second,
            0,
        ))?;
        tasks[job.index()] = Some(Task::Housekeeping);
        let work_jobs = work_jobs.try_into().expect("one a priority was made");
        let mut readers = Vec::new();
        readers.resize_with(usize::from(u8::MAX), ReaderSlot::default);
        Ok(Self {
            engine,
            executor,
            transport,
            waiter,
            tasks,
            receive_jobs: [None; Lane::COUNT],
            work_jobs,
            readers,
            timers: Vec::new(),
            inlets: Vec::new(),
            work_observed: Default::default(),
            highest: None,
            no_frame: 0,
            transmit: TransmitBurst::new(),
            received: ReceiveBurst::new(),
            spinning,
        })
    }

    /// Opens a lane: its sockets, its frames, and the job that receives from it.
    pub(crate) fn open_lane(&mut self, lane: Lane) -> Result<(), crate::BuildError> {
        if self.receive_jobs[lane.index()].is_some() {
            return Ok(());
        }
        self.transport.open_lane(lane)?;
        for (of, descriptor) in self.transport.descriptors() {
            if of == lane {
                let action = "watch a socket with epoll";
                self.waiter
                    .add(lane, descriptor)
                    .map_err(|source| crate::BuildError::System { action, source })?;
            }
        }
        let (name, priority) = match lane {
            Lane::Discovery => (String::from("receive discovery"), Priority::DISCOVERY),
            Lane::Level(level) => (
                format!("receive level {}", level.get()),
                Priority::of_data(level),
            ),
        };
        let job = self
            .executor
            .add(JobConfig {
                items: BURST as u16,
                ..JobConfig::event(&name, priority.get())
            })
            .map_err(|_| crate::BuildError::TooManyJobs)?;
        self.tasks[job.index()] = Some(Task::Receive(lane));
        self.receive_jobs[lane.index()] = Some(job);
        self.highest = self.highest.max(lane.level());
        Ok(())
    }

    /// Adds a job.
    pub(crate) fn add_job(
        &mut self,
        config: JobConfig,
        task: Task,
    ) -> Result<JobId, crate::BuildError> {
        let job = self
            .executor
            .add(config)
            .map_err(|_| crate::BuildError::TooManyJobs)?;
        self.tasks[job.index()] = Some(task);
        Ok(job)
    }

    /// The priority of the most urgent lane: what a look may find.
    fn highest_lane_priority(&self) -> u8 {
        self.highest
            .map_or(Priority::DISCOVERY, Priority::of_data)
            .get()
    }

    /// When something is due without any event.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        match (self.engine.next_time(), self.executor.next_release()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Looks at the sources, sleeping up to `timeout` for one.
    fn look(&mut self, timeout: Option<Duration>) {
        let mut lanes = 0;
        let has_descriptors = matches!(self.transport, Transport::Udp(_));
        let ready = if has_descriptors || timeout != Some(Duration::ZERO) {
            // An error here would be a closed descriptor of our own: none is ever closed before.
            self.waiter.wait(timeout).unwrap_or_default()
        } else {
            Ready::default()
        };
        lanes |= ready.lanes;
        if !has_descriptors {
            lanes |= self.transport.ready_lanes();
        }
        let now = monotonic_now();
        for (index, job) in self.receive_jobs.iter().enumerate() {
            if lanes & (1 << index) != 0
                && let Some(job) = job
            {
                self.executor.activate(*job, now);
            }
        }
        for inlet in &self.inlets {
            if inlet.has_samples() {
                self.executor.activate(inlet.job, now);
            }
        }
    }

    /// Marks ready what time and the engine have brought.
    fn gather(&mut self, now: Instant) {
        if self.engine.next_time().is_some_and(|at| at <= now) {
            self.engine.advance(now);
        }
        if self.executor.next_release().is_some_and(|at| at <= now) {
            self.executor.release(now);
        }
        let mut ready = self.engine.ready();
        while ready != 0 {
            let priority = ready.trailing_zeros();
            ready &= ready - 1;
            self.executor
                .activate(self.work_jobs[priority as usize], now);
        }
        while let Some(change) = self.engine.next_status() {
            if let StatusChange::Reader(id, status) = change
                && status.contains(ReaderStatus::DATA_AVAILABLE)
                && let Some(job) = self.readers.get(id.index()).and_then(|slot| slot.job)
            {
                self.executor.activate(job, now);
            }
        }
    }

    /// Sends a frame to each of these places. Frames nobody listens to go home at once.
    pub(crate) fn send(&mut self, lane: Lane, frame: Frame, to: Addresses<'_>) {
        let places = to.of(&self.engine);
        if places.is_empty() {
            return;
        }
        if self.transmit.push(frame).is_err() {
            unreachable!("the burst is emptied by every send");
        }
        for &place in places {
            // At most MAX_DESTINATIONS, which a burst holds.
            let _ = self.transmit.address(place);
        }
        self.transport.send_burst(lane, &mut self.transmit);
    }

    /// Does one step of the engine's work at a priority. False if there was none.
    pub(crate) fn work(&mut self, now: Instant, priority: Priority) -> bool {
        let Some(mut frame) = self.take_work_frame(priority) else {
            self.no_frame += 1;
            return false;
        };
        let Some(work) = self.engine.next_work(now, priority, frame.buffer_mut()) else {
            return false;
        };
        if work.bytes > 0 {
            frame.set_range(0..work.bytes);
            let lane = work.level.map_or(Lane::Discovery, Lane::Level);
            let addresses = match &work.to {
                Destinations::Writer(writer) => Addresses::Writer(*writer),
                Destinations::Announce => Addresses::Announce,
                Destinations::Listed(list) => Addresses::Listed(list),
            };
            self.send(lane, frame, addresses);
        }
        let observed = &mut self.work_observed[usize::from(priority.get())][work.kind.index()];
        observed.steps += 1;
        let took = monotonic_now().as_nanos().saturating_sub(now.as_nanos());
        observed.execution_max_ns = observed.execution_max_ns.max(took);
        true
    }

    /// A frame for the engine's work: of the level's class where its lane is open, else of
    /// discovery's.
    fn take_work_frame(&self, priority: Priority) -> Option<Frame> {
        let level = Level::new(priority.get() / 2)?;
        let lane = Lane::Level(level);
        let lane = if self.receive_jobs[lane.index()].is_some() {
            lane
        } else {
            Lane::Discovery
        };
        self.transport.pool().take(lane)
    }
}

/// Where a frame goes.
pub(crate) enum Addresses<'a> {
    Writer(isolane_engine::WriterId),
    Announce,
    Listed(&'a [Locator]),
}

impl<'a> Addresses<'a> {
    fn of<'b>(&'b self, engine: &'b Engine) -> &'b [Locator]
    where
        'a: 'b,
    {
        match self {
            Self::Writer(writer) => engine.destinations(*writer),
            Self::Announce => engine.announce_to(),
            Self::Listed(list) => list,
        }
    }
}

/// A participant's state and the loop over it.
pub(crate) struct Core {
    pub(crate) state: RefCell<State>,
    /// A job is running: the loop must not be entered again from a callback.
    pub(crate) running: std::cell::Cell<bool>,
}

impl Core {
    /// One turn: looks (sleeping up to `timeout` if nothing is ready), and runs one activation.
    /// False: nothing was ready.
    pub(crate) fn turn(self: &Rc<Self>, timeout: Option<Duration>) -> bool {
        let Some((job, task)) = self.choose(timeout) else {
            return false;
        };
        let now = monotonic_now();
        self.state.borrow_mut().executor.begin(job, now);
        self.running.set(true);
        let again = self.run(now, task);
        self.running.set(false);
        self.state
            .borrow_mut()
            .executor
            .finish(job, monotonic_now(), again);
        true
    }

    /// What runs next.
    fn choose(&self, timeout: Option<Duration>) -> Option<(JobId, Task)> {
        let mut state = self.state.borrow_mut();
        state.gather(monotonic_now());
        let next = state.executor.next();
        // Nothing a look finds can come before the most urgent lane's own jobs.
        let is_settled = next.is_some_and(|job| {
            state.executor.job(job).config.priority >= state.highest_lane_priority()
        });
        if !is_settled {
            let timeout = if next.is_some() || state.spinning {
                Some(Duration::ZERO)
            } else {
                state.sleep_time(timeout)
            };
            let sleeps = timeout != Some(Duration::ZERO);
            for inlet in &state.inlets {
                inlet.set_sleeping(sleeps);
            }
            // A sample handed over before the flag was set is seen here, one after it wakes.
            let handed_over = sleeps && state.inlets.iter().any(Inlet::has_samples);
            state.look(if handed_over {
                Some(Duration::ZERO)
            } else {
                timeout
            });
            if sleeps {
                for inlet in &state.inlets {
                    inlet.set_sleeping(false);
                }
            }
            state.gather(monotonic_now());
        }
        let job = state.executor.next()?;
        let task = state.tasks[job.index()]?;
        Some((job, task))
    }

    /// Runs one activation. True: there is more, it stopped at its limit.
    fn run(self: &Rc<Self>, now: Instant, task: Task) -> bool {
        match task {
            Task::Receive(lane) => self.receive(now, lane),
            Task::Work(priority) => {
                let mut state = self.state.borrow_mut();
                state.work(now, priority) && state.engine.ready() & (1 << priority.get()) != 0
            }
            Task::Callback(reader) => self.call_back(reader),
            Task::Timer(timer) => {
                self.run_timer(now, timer);
                false
            }
            Task::Inlet(inlet) => crate::remote::drain(self, now, inlet),
            Task::Housekeeping => {
                let offset = wall_now_ns().wrapping_sub(monotonic_now().as_nanos());
                let mut state = self.state.borrow_mut();
                let state = &mut *state;
                state.engine.set_wall_offset(offset);
                for ended in state.inlets.iter().filter_map(Inlet::ended) {
                    // Deleting what is deleted does nothing.
                    state.engine.delete_writer(now, ended);
                }
                false
            }
        }
    }

    /// Receives a burst of a lane and gives every view reader its samples.
    fn receive(self: &Rc<Self>, now: Instant, lane: Lane) -> bool {
        let (mut burst, limit, taken) = {
            let mut state = self.state.borrow_mut();
            let mut burst = std::mem::take(&mut state.received);
            let limit = if lane.level() == state.highest {
                BURST.min(MAX_BURST)
            } else {
                1
            };
            let taken = state.transport.receive_burst(lane, limit, &mut burst);
            (burst, limit, taken)
        };
        for received in &burst {
            let mut message = MessageReceiver::new(received.from);
            loop {
                let delivery =
                    self.state
                        .borrow_mut()
                        .engine
                        .receive(now, &mut message, &received.frame);
                let Some(delivery) = delivery else { break };
                self.deliver_view(&delivery, &received.frame);
            }
        }
        burst.clear();
        self.state.borrow_mut().received = burst;
        taken == limit
    }

    fn deliver_view(&self, delivery: &Delivery, bytes: &[u8]) {
        let place = delivery.reader.index();
        let callback = self.state.borrow_mut().readers[place].view.take();
        let Some(mut callback) = callback else { return };
        let is_of_type = callback(&bytes[delivery.payload.clone()], &delivery.info);
        let mut state = self.state.borrow_mut();
        // A callback may have set another one in its place.
        state.readers[place].view.get_or_insert(callback);
        if !is_of_type {
            state.engine.reject_delivered(delivery.reader);
        }
    }

    fn call_back(&self, reader: ReaderId) -> bool {
        let place = reader.index();
        let callback = self.state.borrow_mut().readers[place].cached.take();
        let Some(mut callback) = callback else {
            return false;
        };
        callback();
        let mut state = self.state.borrow_mut();
        state.readers[place].cached.get_or_insert(callback);
        state.engine.available(reader) > 0
    }

    fn run_timer(&self, now: Instant, timer: u16) {
        let place = usize::from(timer);
        let (callback, release) = {
            let mut state = self.state.borrow_mut();
            let release = state.timers[place]
                .job
                .and_then(|job| state.executor.job(job).released_at())
                .unwrap_or(now);
            (state.timers[place].callback.take(), release)
        };
        let Some(mut callback) = callback else { return };
        callback(release);
        self.state.borrow_mut().timers[place]
            .callback
            .get_or_insert(callback);
    }
}

impl State {
    /// How long the loop may sleep: to the next release, at most as long as it was told.
    fn sleep_time(&self, timeout: Option<Duration>) -> Option<Duration> {
        let until_next = self
            .next_time()
            .map(|at| at.saturating_since(monotonic_now()));
        match (until_next, timeout) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}
