//! What a participant is made of: engine, executor, datapath, and what ties them together.
//!
//! All of it is one [`State`], on one thread. Here and beside it are its single steps, each of which
//! runs to its end without calling a user: what time and the sources have brought becomes ready jobs
//! ([`gather`](crate::gather); [`arrivals`](crate::arrivals) has what datagrams brought), and a step of
//! the engine's work becomes a datagram ([`sending`](crate::sending)). The order in which they come is
//! the loop's, [`runtime`](crate::runtime).

use std::net::Ipv4Addr;
use std::time::Duration;

use isolane_datapath::{
    Datapath, Lane, TransmitBurst,
    clock::{monotonic_now, wall_offset_ns},
    pool::Class,
};
use isolane_engine::{Engine, Priority, ReaderId, RejectReason, SampleInfo, WorkKind};
use isolane_executor::{Executor, JobConfig, JobId};
use isolane_wire::{level::Level, time::Instant};

use crate::{
    builder,
    discovered::{DiscoveryCallback, DiscoveryListening},
    error::BuildError,
    limits::BURST,
    listeners::{Endpoint, Listeners, Listening},
    observe::Observer,
    placement::Placement,
    protection::ReaderFlow,
    remote::Inlet,
    response::ResponseDeadline,
    sending::Rest,
    transport::{Lanes, Transport},
    trouble::Trouble,
    wait::Waiter,
    waits::Waits,
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
    Timer,
    /// Tells an endpoint's listeners what has changed.
    Status(Endpoint),
    /// Tells the user what discovery has brought.
    TellDiscovery,
    /// Takes samples from a remote writer's ring.
    Inlet,
    /// Takes back frames that devices are done with, and bulk's where few are left.
    Recycle,
    /// Serves other processes that look at this participant.
    Observe,
    /// Follows the wall clock, and looks after what no event would bring forward.
    Housekeeping,
}

/// A user's function for views: payload and what is known of it. False: the payload was not of
/// the type.
pub(crate) type ViewCallback = Box<dyn FnMut(&[u8], &SampleInfo) -> Result<(), RejectReason>>;
/// A user's function for one cached sample.
pub(crate) type CacheCallback = Box<dyn FnMut()>;
/// A user's function for a point in time: the release, as planned.
pub(crate) type TimerCallback = Box<dyn FnMut(Instant)>;

/// What is kept of a reader beside the engine, in a table with the engine's indexes.
#[derive(Default)]
pub(crate) struct ReaderSlot {
    pub(crate) level: Level,
    /// Counts the readers that had this place, so that a callback that outlives its reader is not
    /// given to the next.
    pub(crate) generation: u32,
    pub(crate) view: Option<ViewCallback>,
    pub(crate) cached: Option<CacheCallback>,
    pub(crate) job: Option<JobId>,
    /// How its datagrams come.
    pub(crate) flow: ReaderFlow,
    pub(crate) response: Option<ResponseDeadline>,
}

/// The callbacks of one reader.
pub(crate) type ReaderCallbacks = (Option<ViewCallback>, Option<CacheCallback>);

/// Callbacks on their way out. A callback may own writers and readers, which are deleted with it: it
/// is to be dropped only while the state is not borrowed.
#[must_use = "callbacks are dropped while the state is not borrowed"]
pub(crate) struct Callbacks {
    _readers: Vec<ReaderCallbacks>,
    _timers: Vec<Option<TimerCallback>>,
    _listeners: Vec<Listeners>,
    _discovery: Option<DiscoveryCallback>,
}

/// Observed maxima of one kind of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WorkObserved {
    pub(crate) steps: u64,
    pub(crate) execution_max_ns: u64,
}

/// Work that found no frame waits until this time: frames come home without a word.
pub(crate) struct Starved {
    /// Bit *p*: priority *p* waits.
    pub(crate) priorities: u16,
    pub(crate) until: Instant,
}

/// Everything a participant is made of.
pub(crate) struct State {
    pub(crate) engine: Engine,
    pub(crate) executor: Executor,
    pub(crate) transport: Transport,
    pub(crate) lanes: Lanes,
    pub(crate) waiter: Waiter,
    /// What each job does, by [`JobId::index`]; `None` from the moment it is removed.
    tasks: Vec<Option<Task>>,
    /// The callbacks of timers, by [`JobId::index`].
    pub(crate) timers: Vec<Option<TimerCallback>>,
    pub(crate) receive_jobs: [Option<JobId>; Lane::COUNT],
    pub(crate) work_jobs: [JobId; Priority::COUNT],
    pub(crate) recycle_job: JobId,
    /// Until when frames are not looked after again: what a device is not done with takes a while.
    pub(crate) recycled_until: Instant,
    /// When that is to be done next, if there is something.
    pub(crate) recycle_at: Option<Instant>,
    /// Looks at rings alone since the last at all sources.
    pub(crate) spins: u32,
    pub(crate) readers: Vec<ReaderSlot>,
    pub(crate) writer_listening: Vec<Listening>,
    pub(crate) reader_listening: Vec<Listening>,
    pub(crate) discovery_listening: DiscoveryListening,
    /// Grows with everything that a condition may depend on.
    pub(crate) changes: u64,
    pub(crate) inlets: Vec<Inlet>,
    pub(crate) work_observed: [[WorkObserved; WorkKind::ALL.len()]; Priority::COUNT],
    pub(crate) waits: Waits,
    pub(crate) trouble: Trouble,
    /// The highest level with an open lane, the priority of what is received there, and the job that
    /// receives it.
    highest: Option<Level>,
    highest_priority: Priority,
    highest_receive: Option<JobId>,
    /// Items handled since the last look at the most urgent lane.
    pub(crate) since_look: usize,
    /// Steps of work that found no frame.
    pub(crate) no_frame: u64,
    pub(crate) starved: Option<Starved>,
    /// Datagrams that are being sent to more places than a burst has, one for each priority at most; and a bit for each
    /// of those priorities.
    pub(crate) rests: Vec<Rest>,
    pub(crate) rests_ready: u16,
    /// Empty between two activations.
    pub(crate) transmit: TransmitBurst,
    pub(crate) spinning: bool,
    /// Reserved memory is touched when it is taken.
    pub(crate) prefault: bool,
    /// A size of receive buffers was asked for, so that less is worth a note.
    pub(crate) has_asked_for_buffer: bool,
    /// Who looks at this participant from other processes, where they may.
    pub(crate) observer: Option<Box<Observer>>,
    /// What the thread that runs the loop is to have, until it runs for the first time.
    pub(crate) placement: Option<Placement>,
    /// What of that it goes without, and why.
    pub(crate) not_placed: Vec<String>,
    /// Why they cannot although they may.
    pub(crate) not_observable: Option<String>,
}

/// The parts a state begins with.
pub(crate) struct Parts {
    pub(crate) engine: Engine,
    pub(crate) executor: Executor,
    pub(crate) transport: Transport,
    pub(crate) lanes: Lanes,
    pub(crate) waiter: Waiter,
    pub(crate) max_jobs: usize,
    pub(crate) spinning: bool,
    pub(crate) prefault: bool,
    pub(crate) has_asked_for_buffer: bool,
}

impl State {
    pub(crate) fn new(parts: Parts) -> Result<Self, BuildError> {
        let mut executor = parts.executor;
        for level in Level::ALL {
            let protocol = Priority::of_protocol(level);
            executor.grant_share(protocol.get(), BURST as u16);
        }
        let mut tasks = vec![None; parts.max_jobs];
        let mut add = |config: JobConfig, task| {
            let job = executor.add(config).map_err(|_| BuildError::TooManyJobs)?;
            tasks[job.index()] = Some(task);
            Ok::<JobId, BuildError>(job)
        };
        let mut work_jobs = Vec::with_capacity(Priority::COUNT);
        for priority in Priority::descending() {
            let name = format!("protocol work, priority {}", priority.get());
            let config = JobConfig::event(&name, priority.get());
            work_jobs.push(add(config, Task::Work(priority))?);
        }
        work_jobs.reverse();
        let urgent = Priority::HIGHEST.get();
        let recycle_job = add(JobConfig::event("recycle frames", urgent), Task::Recycle)?;
        let second = Duration::from_secs(1).as_nanos() as u64;
        let statistics = Priority::STATISTICS.get();
        add(
            JobConfig::periodic("housekeeping", statistics, second, 0),
            Task::Housekeeping,
        )?;
        Ok(Self {
            engine: parts.engine,
            executor,
            transport: parts.transport,
            lanes: parts.lanes,
            waiter: parts.waiter,
            tasks,
            timers: (0..parts.max_jobs).map(|_| None).collect(),
            receive_jobs: [None; Lane::COUNT],
            work_jobs: work_jobs.try_into().expect("one a priority was made"),
            recycle_job,
            recycled_until: Instant::new(0),
            recycle_at: None,
            spins: 0,
            readers: Vec::new(),
            writer_listening: Vec::new(),
            reader_listening: Vec::new(),
            discovery_listening: DiscoveryListening::default(),
            changes: 0,
            inlets: Vec::new(),
            work_observed: Default::default(),
            waits: Waits::default(),
            trouble: Trouble::new(),
            highest: None,
            highest_priority: Priority::DISCOVERY,
            highest_receive: None,
            since_look: BURST,
            no_frame: 0,
            starved: None,
            rests: Vec::with_capacity(Priority::COUNT),
            rests_ready: 0,
            transmit: TransmitBurst::new(),
            spinning: parts.spinning,
            prefault: parts.prefault,
            has_asked_for_buffer: parts.has_asked_for_buffer,
            observer: None,
            placement: None,
            not_placed: Vec::new(),
            not_observable: None,
        })
    }

    /// Opens a lane: its sockets, its frames, and the job that receives from it.
    pub(crate) fn open_lane(&mut self, lane: Lane) -> Result<(), BuildError> {
        if self.receive_jobs[lane.index()].is_some() {
            return Ok(());
        }
        self.transport.open_lane(lane)?;
        let (name, priority) = match lane {
            Lane::Discovery => (String::from("receive discovery"), Priority::DISCOVERY),
            Lane::Level(level) if self.lanes.is_per_level() => (
                format!("receive level {}", level.get()),
                Priority::of_data(level),
            ),
            // Each datagram on a shared lane has the priority of its samples (`note_datagram`). One
            // without samples must not count as less urgent than others.
            Lane::Level(_) => (String::from("receive all levels"), Priority::HIGHEST),
        };
        let config = JobConfig {
            source: Some(lane.index() as u8),
            ..JobConfig::event(&name, priority.get())
        };
        let job = self.add_job(config, Task::Receive(lane))?;
        let descriptors = self.transport.descriptors().into_iter();
        let watched = descriptors
            .filter(|(of, _)| *of == lane)
            .enumerate()
            .try_for_each(|(place, (_, descriptor))| self.waiter.add(lane, place, descriptor));
        if let Err(source) = watched {
            self.remove_job(job);
            let action = "watch a socket with epoll";
            return Err(BuildError::System { action, source });
        }
        self.receive_jobs[lane.index()] = Some(job);
        if lane.level() >= self.highest {
            self.highest = lane.level();
            self.highest_priority = self.highest.map_or(Priority::DISCOVERY, Priority::of_data);
            self.highest_receive = Some(job);
        }
        self.give_bursts();
        Ok(())
    }

    /// Bursts are for the most urgent lane alone, which may be another one now.
    fn give_bursts(&mut self) {
        for (lane, job) in Lane::ALL.into_iter().zip(self.receive_jobs) {
            let items = self.items_of(lane);
            job.into_iter()
                .for_each(|job| self.executor.set_items(job, items));
        }
        for level in Level::ALL {
            let items = self.items_of_level(level);
            let sending = self.work_jobs[usize::from(Priority::of_data(level).get())];
            self.executor.set_items(sending, items);
        }
        for slot in &self.readers {
            if let Some(job) = slot.job {
                self.executor
                    .set_items(job, self.items_of_level(slot.level));
            }
        }
    }

    /// Items one activation of a job of this lane handles at most.
    fn items_of(&self, lane: Lane) -> u16 {
        if self.is_highest(lane) {
            BURST as u16
        } else {
            1
        }
    }

    /// Largest number of datagrams of this level that one activation sends, or of samples that it hands
    /// out. With shared lanes no level is the highest.
    pub(crate) fn items_of_level(&self, level: Level) -> u16 {
        match self.lanes.is_per_level() {
            true => self.items_of(Lane::Level(level)),
            false => 1,
        }
    }

    /// Touches what is reserved, where that was asked for: slots of all endpoints, and frames of a
    /// lane as far as datagrams with a payload of so many bytes fill them.
    pub(crate) fn touch(&mut self, lane: Lane, payload_bytes: usize) {
        if !self.prefault {
            return;
        }
        self.engine.touch_slots();
        let bytes = crate::writer::payload_begin(self) + payload_bytes;
        for class in [Class::Receive(lane), Class::Transmit(lane)] {
            self.transport.pool().prefault(class, bytes);
        }
    }

    /// Adds a job.
    pub(crate) fn add_job(&mut self, config: JobConfig, task: Task) -> Result<JobId, BuildError> {
        let job = self
            .executor
            .add(config)
            .map_err(|_| BuildError::TooManyJobs)?;
        self.tasks[job.index()] = Some(task);
        Ok(job)
    }

    /// Removes a job, also the one that runs. False if it was removed before.
    pub(crate) fn remove_job(&mut self, job: JobId) -> bool {
        if self.task(job).is_none() {
            return false;
        }
        self.tasks[job.index()] = None;
        self.executor.remove(job)
    }

    /// What a job does; `None` if it was removed.
    pub(crate) fn task(&self, job: JobId) -> Option<Task> {
        // The executor tells ids of one place apart, and keeps the place of a running job.
        self.executor.get(job)?;
        self.tasks[job.index()]
    }

    /// The same for one that the executor has just named.
    #[inline]
    pub(crate) fn task_of_next(&self, job: JobId) -> Option<Task> {
        self.tasks[job.index()]
    }

    /// Whether this is the most critical lane there is.
    #[inline]
    pub(crate) fn is_highest(&self, lane: Lane) -> bool {
        lane.level() == self.highest
    }

    /// Whether no job found by a look can come before this one: it receives from the most urgent lane,
    /// is more urgent, or is as urgent and no burst has been handled since the last look. (A row of
    /// equally urgent jobs, callbacks for example, must not delay the next look for longer.) With
    /// shared lanes, only the first holds.
    pub(crate) fn is_settled(&self, job: JobId) -> bool {
        if self.is_highest_receive(job) {
            return true;
        }
        let (priority, highest) = (
            self.executor.job(job).config.priority,
            self.highest_priority.get(),
        );
        let is_within_burst = priority == highest && self.since_look < BURST;
        self.lanes.is_per_level() && (priority > highest || is_within_burst)
    }

    /// Whether this job receives from the most urgent lane.
    #[inline]
    fn is_highest_receive(&self, job: JobId) -> bool {
        self.highest_receive == Some(job)
    }

    /// A job begins, having been chosen. Returns how many items it may handle.
    #[inline]
    pub(crate) fn begin(&mut self, job: JobId, task: Task, now: Instant) -> usize {
        let waited = self.executor.begin(job, now);
        self.note_begun(task, waited);
        self.begin_items(job)
    }

    /// How many items a job that begins now may handle: as many as it is configured to, but what is as
    /// urgent as the most urgent lane no more than a burst since the last look at it. What is less
    /// urgent is followed by a look.
    #[inline]
    fn begin_items(&mut self, job: JobId) -> usize {
        if self.is_highest_receive(job) {
            // Which is a look itself, and may handle a burst (`give_bursts`).
            self.since_look = 0;
            return BURST;
        }
        let config = &self.executor.job(job).config;
        let (items, priority) = (usize::from(config.items), config.priority);
        if priority < self.highest_priority.get() {
            self.since_look = BURST;
            items
        } else {
            let left = BURST.saturating_sub(self.since_look);
            self.since_look += 1;
            items.min(left.max(1))
        }
    }

    /// The job that runs has handled so many items, one of which was counted when it began.
    #[inline]
    pub(crate) fn note_handled(&mut self, items: usize) {
        self.since_look += items.saturating_sub(1);
        self.executor.handled(items as u16);
    }

    /// Once a second.
    pub(crate) fn keep_house(&mut self) {
        self.engine.set_wall_offset(wall_offset_ns());
        for inlet in &mut self.inlets {
            inlet.repay(self.transport.pool());
            inlet.wake();
        }
        if self.transport.look_after_interfaces() {
            self.follow_addresses();
        }
        self.log_trouble(monotonic_now());
        self.begin_observing();
    }

    /// Announces that this host has other addresses.
    fn follow_addresses(&mut self) {
        let networks = builder::networks(&self.transport);
        let addresses = networks
            .iter()
            .map(|network| Ipv4Addr::from(network.address));
        let addresses: Vec<String> = addresses.map(|address| address.to_string()).collect();
        log::info!(target: "isolane",
            "this host's addresses have changed: they are {} now, and announced", addresses.join(", "));
        if self.engine.has_description() {
            log::warn!(target: "isolane",
                "this participant is described at another address: peers that know it by the description do not \
                 follow. Change the description on all sides, and start again");
        }
        self.engine.set_networks(monotonic_now(), networks);
    }

    /// The place beside a reader that was just created.
    pub(crate) fn make_reader_slot(&mut self, reader: ReaderId, level: Level) {
        let places = self.readers.len().max(reader.index() + 1);
        self.readers.resize_with(places, ReaderSlot::default);
        self.readers[reader.index()].level = level;
    }

    /// Forgets all that was kept beside a reader that is gone, and hands its callbacks out.
    pub(crate) fn clear_reader_slot(&mut self, reader: usize) -> ReaderCallbacks {
        let slot = &mut self.readers[reader];
        slot.generation = slot.generation.wrapping_add(1);
        slot.response = None;
        let callbacks = (slot.view.take(), slot.cached.take());
        if let Some(job) = slot.job.take() {
            self.remove_job(job);
        }
        callbacks
    }

    /// Removes a timer, and hands its callback out.
    pub(crate) fn remove_timer(&mut self, job: JobId) -> Option<TimerCallback> {
        if !self.remove_job(job) {
            return None;
        }
        self.timers[job.index()].take()
    }

    /// Removes every timer and every callback of a reader.
    pub(crate) fn remove_callbacks(&mut self) -> Callbacks {
        let timers: Vec<JobId> = self
            .executor
            .jobs()
            .map(|(job, _)| job)
            .filter(|&job| self.task(job) == Some(Task::Timer))
            .collect();
        Callbacks {
            _timers: timers.iter().map(|&job| self.remove_timer(job)).collect(),
            _readers: (0..self.readers.len())
                .map(|reader| self.clear_reader_slot(reader))
                .collect(),
            _listeners: self.clear_all_listening(),
            _discovery: self.clear_discovery_listening(),
        }
    }
}
