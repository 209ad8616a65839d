//! State of a participant: protocol, executor, datapath, and their connections.
//!
//! One [`State`] holds everything, on one thread. Its methods are single steps, none of which calls the application.
//! Timers and sources make jobs ready ([`gather`](crate::gather); [`arrivals`](crate::arrivals) processes datagrams),
//! and a step of the protocol's work becomes a datagram ([`sending`](crate::sending)). The event loop in
//! [`runtime`](crate::runtime) determines the order of steps.

use std::net::Ipv4Addr;
use std::time::Duration;

use isolane_datapath::{
    Capabilities, Datapath, Lane, Pool, TransmitBurst, Warning,
    clock::{monotonic_now, wall_offset_ns},
    pool::Class,
};
use isolane_executor::{Executor, JobConfig, JobId};
use isolane_rtps::{LocalParticipant, Priority, ReaderId, RejectReason, SampleInfo, WorkKind};
use isolane_wire::{level::Level, time::Instant};

use crate::{
    builder,
    discovered::{DiscoveryCallback, DiscoveryListening},
    error::BuildError,
    lanes::Lanes,
    limits::BURST,
    listeners::{Endpoint, Listeners, Listening},
    observe::Observer,
    placement::Placement,
    rate_limit::ReaderFlow,
    remote::Inlet,
    response::ResponseDeadline,
    sending::Rest,
    wait::Waiter,
    waits::Waits,
    warning_log::WarningLog,
};

/// Task of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Receive(Lane),
    /// Executes queued work of the protocol.
    Work(Priority),
    /// Passes cached samples of a reader to its callback.
    Callback(ReaderId),
    Timer,
    /// Notifies an endpoint's listeners of status changes.
    Status(Endpoint),
    TellDiscovery,
    /// Takes samples from a remote writer's ring.
    Inlet,
    /// Takes back frames that devices have sent, and reclaims frames of bulk lanes if few are left.
    Recycle,
    Observe,
    /// Follows the wall clock, and checks whatever no event triggers.
    Housekeeping,
}

/// Application's callback for views: payload and metadata. An error says why the payload was rejected.
pub(crate) type ViewCallback = Box<dyn FnMut(&[u8], &SampleInfo) -> Result<(), RejectReason>>;
/// Application's callback for one cached sample.
pub(crate) type CacheCallback = Box<dyn FnMut()>;
/// Application's callback of a timer: the planned release.
pub(crate) type TimerCallback = Box<dyn FnMut(Instant)>;

/// State of a reader outside the protocol, in a table with the protocol's indexes.
#[derive(Default)]
pub(crate) struct ReaderSlot {
    pub(crate) level: Level,
    /// Number of readers that have used this slot, so that a callback that outlives its reader does not pass to the
    /// next.
    pub(crate) generation: u32,
    pub(crate) view: Option<ViewCallback>,
    pub(crate) cached: Option<CacheCallback>,
    pub(crate) job: Option<JobId>,
    /// Port and budget of a reader's datagrams.
    pub(crate) flow: ReaderFlow,
    pub(crate) response: Option<ResponseDeadline>,
}

pub(crate) type ReaderCallbacks = (Option<ViewCallback>, Option<CacheCallback>);

/// Removed callbacks. They may own writers and readers, whose deletion borrows the state, so drop them only while the
/// state is not borrowed.
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

/// Work that found no free frame and waits until this time, because no event reports frames that become free.
pub(crate) struct Starved {
    /// Bit *p* is set if priority *p* waits.
    pub(crate) priorities: u16,
    pub(crate) until: Instant,
}

pub(crate) struct State {
    pub(crate) protocol: LocalParticipant,
    pub(crate) executor: Executor,
    pub(crate) datapath: Box<dyn Datapath>,
    pub(crate) capabilities: Capabilities,
    pub(crate) pool: Pool,
    pub(crate) lanes: Lanes,
    pub(crate) waiter: Waiter,
    /// Task of each job, by [`JobId::index`]; `None` as soon as the job is removed.
    tasks: Vec<Option<Task>>,
    /// Callbacks of timers, by [`JobId::index`].
    pub(crate) timers: Vec<Option<TimerCallback>>,
    pub(crate) receive_jobs: [Option<JobId>; Lane::COUNT],
    pub(crate) work_jobs: [JobId; Priority::COUNT],
    pub(crate) recycle_job: JobId,
    /// Earliest time of the next recycling: a device needs a while to complete frames.
    pub(crate) recycled_until: Instant,
    /// Time of the next recycling, if one is due.
    pub(crate) recycle_at: Option<Instant>,
    /// Number of polls of the rings alone since the last poll of all sources.
    pub(crate) spins: u32,
    pub(crate) readers: Vec<ReaderSlot>,
    pub(crate) writer_listening: Vec<Listening>,
    pub(crate) reader_listening: Vec<Listening>,
    pub(crate) discovery_listening: DiscoveryListening,
    /// Counter that increases with every change on which a condition may depend.
    pub(crate) changes: u64,
    pub(crate) inlets: Vec<Inlet>,
    pub(crate) work_observed: [[WorkObserved; WorkKind::ALL.len()]; Priority::COUNT],
    pub(crate) waits: Waits,
    pub(crate) warning_log: WarningLog,
    /// Highest level with an open lane, the priority of its receive job, and that job.
    highest: Option<Level>,
    highest_priority: Priority,
    highest_receive: Option<JobId>,
    /// Items handled since the last poll of the most urgent lane.
    pub(crate) since_look: usize,
    /// Work steps that found no free frame.
    pub(crate) no_frame: u64,
    pub(crate) starved: Option<Starved>,
    /// Datagrams with more destinations than a burst holds, at most one for each priority, and a bit for each of those
    /// priorities.
    pub(crate) rests: Vec<Rest>,
    pub(crate) rests_ready: u16,
    /// Empty between two activations.
    pub(crate) transmit: TransmitBurst,
    pub(crate) spinning: bool,
    /// True if reserved memory is touched at allocation.
    pub(crate) prefault: bool,
    /// True if the application chose the receive buffer size, so that a smaller one deserves a warning.
    pub(crate) has_asked_for_buffer: bool,
    /// Server for observers in other processes, if they are allowed.
    pub(crate) observer: Option<Box<Observer>>,
    /// Scheduling of the thread that runs the loop, until its first run applies it.
    pub(crate) placement: Option<Placement>,
    /// Preferred datapaths that cannot be used.
    pub(crate) not_used: Vec<Warning>,
    /// Scheduling options that were refused, with the reason.
    pub(crate) not_placed: Vec<String>,
    /// Reason why observation is unavailable although it is allowed.
    pub(crate) not_observable: Option<String>,
}

/// Initial parts of a state.
pub(crate) struct Parts {
    pub(crate) protocol: LocalParticipant,
    pub(crate) executor: Executor,
    pub(crate) datapath: Box<dyn Datapath>,
    pub(crate) not_used: Vec<Warning>,
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
            protocol: parts.protocol,
            executor,
            capabilities: *parts.datapath.capabilities(),
            pool: parts.datapath.pool().clone(),
            datapath: parts.datapath,
            not_used: parts.not_used,
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
            warning_log: WarningLog::new(),
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

    /// Opens a lane: its sockets, its frames, and its receive job.
    pub(crate) fn open_lane(&mut self, lane: Lane) -> Result<(), BuildError> {
        if self.receive_jobs[lane.index()].is_some() {
            return Ok(());
        }
        self.datapath.open_lane(lane)?;
        self.capabilities = *self.datapath.capabilities();
        let (name, priority) = match lane {
            Lane::Discovery => (String::from("receive discovery"), Priority::DISCOVERY),
            Lane::Level(level) if self.lanes.is_per_level() => (
                format!("receive level {}", level.get()),
                Priority::of_data(level),
            ),
            // A shared lane determines the level of each datagram separately (`note_datagram`). A datagram of no level
            // must not count as less urgent than any job.
            Lane::Level(_) => (String::from("receive all levels"), Priority::HIGHEST),
        };
        let config = JobConfig {
            source: Some(lane.index() as u8),
            ..JobConfig::event(&name, priority.get())
        };
        let job = self.add_job(config, Task::Receive(lane))?;
        let descriptors = self.datapath.descriptors().into_iter();
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

    /// Assigns bursts to the most urgent lane only; that lane may have changed.
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

    /// Returns the maximum number of items per activation of a job of this lane.
    fn items_of(&self, lane: Lane) -> u16 {
        if self.is_highest(lane) {
            BURST as u16
        } else {
            1
        }
    }

    /// Returns the maximum number of datagrams sent, or samples delivered, per activation at this level. With shared
    /// lanes, no level is the highest.
    pub(crate) fn items_of_level(&self, level: Level) -> u16 {
        match self.lanes.is_per_level() {
            true => self.items_of(Lane::Level(level)),
            false => 1,
        }
    }

    /// Touches reserved memory if prefaulting is on: the slots of all endpoints, and the frames of a lane as far as
    /// datagrams with this payload fill them.
    pub(crate) fn touch(&mut self, lane: Lane, payload_bytes: usize) {
        if !self.prefault {
            return;
        }
        self.protocol.touch_slots();
        let bytes = crate::writer::payload_begin(self) + payload_bytes;
        for class in [Class::Receive(lane), Class::Transmit(lane)] {
            self.pool.prefault(class, bytes);
        }
    }

    pub(crate) fn add_job(&mut self, config: JobConfig, task: Task) -> Result<JobId, BuildError> {
        let job = self
            .executor
            .add(config)
            .map_err(|_| BuildError::TooManyJobs)?;
        self.tasks[job.index()] = Some(task);
        Ok(job)
    }

    /// Removes a job, which may be the running one. Returns false if it was removed before.
    pub(crate) fn remove_job(&mut self, job: JobId) -> bool {
        if self.task(job).is_none() {
            return false;
        }
        self.tasks[job.index()] = None;
        self.executor.remove(job)
    }

    /// Returns the task of a job; `None` if it was removed.
    pub(crate) fn task(&self, job: JobId) -> Option<Task> {
        // The executor distinguishes ids that share an index, and does not reuse that of a running job.
        self.executor.get(job)?;
        self.tasks[job.index()]
    }

    /// Returns the task of a job that the executor has just chosen.
    #[inline]
    pub(crate) fn task_of_next(&self, job: JobId) -> Option<Task> {
        self.tasks[job.index()]
    }

    /// Returns whether this is the most critical open lane.
    #[inline]
    pub(crate) fn is_highest(&self, lane: Lane) -> bool {
        lane.level() == self.highest
    }

    /// Returns whether no poll can find anything that precedes this job. That is so for the job that receives from the
    /// most urgent lane, and for a job more urgent than that lane. A job of the same priority qualifies until a burst
    /// was handled since the last poll. Otherwise a series of callbacks could hide the lane for longer.
    ///
    /// With shared lanes only the receive job qualifies.
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

    /// Returns whether this job receives from the most urgent lane.
    #[inline]
    fn is_highest_receive(&self, job: JobId) -> bool {
        self.highest_receive == Some(job)
    }

    /// Starts a chosen job and returns the number of items it may handle.
    #[inline]
    pub(crate) fn begin(&mut self, job: JobId, task: Task, now: Instant) -> usize {
        let waited = self.executor.begin(job, now);
        self.note_begun(task, waited);
        self.begin_items(job)
    }

    /// Returns the number of items that a job starting now may handle: the configured number, but for jobs as urgent
    /// as the most urgent lane no more than a burst since the last poll. A less urgent job is followed by a poll.
    #[inline]
    fn begin_items(&mut self, job: JobId) -> usize {
        if self.is_highest_receive(job) {
            // Receiving is itself a poll, and may handle a burst (`give_bursts`).
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

    /// Counts the items that the running job has handled, one of which was counted when it started.
    #[inline]
    pub(crate) fn note_handled(&mut self, items: usize) {
        self.since_look += items.saturating_sub(1);
        self.executor.set_items_handled(items as u16);
    }

    /// Performs the periodic checks; called once a second.
    pub(crate) fn keep_house(&mut self) {
        self.protocol.set_wall_offset(wall_offset_ns());
        for inlet in &mut self.inlets {
            inlet.repay(&self.pool);
            inlet.wake();
        }
        if self.datapath.check_interfaces() {
            self.follow_addresses();
        }
        self.log_warnings(monotonic_now());
        self.begin_observing();
    }

    /// Announces changed addresses of this host.
    fn follow_addresses(&mut self) {
        let networks = builder::networks(&*self.datapath);
        let addresses = networks
            .iter()
            .map(|network| Ipv4Addr::from(network.address));
        let addresses: Vec<String> = addresses.map(|address| address.to_string()).collect();
        log::info!(target: "isolane",
            "this host's addresses have changed: they are {} now, and announced", addresses.join(", "));
        if self.protocol.has_description() {
            log::warn!(target: "isolane",
                "this participant is described at another address: peers that know it by the description do not \
                 follow. Change the description on all sides, and start again");
        }
        self.protocol.set_networks(monotonic_now(), networks);
    }

    /// Creates the slot of a new reader.
    pub(crate) fn make_reader_slot(&mut self, reader: ReaderId, level: Level) {
        let places = self.readers.len().max(reader.index() + 1);
        self.readers.resize_with(places, ReaderSlot::default);
        self.readers[reader.index()].level = level;
    }

    /// Clears the slot of a deleted reader and returns its callbacks.
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

    pub(crate) fn remove_timer(&mut self, job: JobId) -> Option<TimerCallback> {
        if !self.remove_job(job) {
            return None;
        }
        self.timers[job.index()].take()
    }

    /// Removes all callbacks: of timers, readers, listeners and discovery.
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
