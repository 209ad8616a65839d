//! State of a participant: protocol, executor, datapath, and their connections.
//!
//! One [`State`] holds everything, on one thread. Its methods are single steps, none of which calls the application. A
//! method that uses the fields of one part belongs to that part; the methods of [`State`] connect parts. The [event
//! loop](crate::participant::event_loop) determines the order of steps.

use std::{net::Ipv4Addr, time::Duration};

use isolane_datapath::{
    Lane,
    clock::{monotonic_now, wall_offset_ns},
    pool::Class,
};
use isolane_executor::{Executor, JobConfig, JobId};
use isolane_rtps::{LocalParticipant, Priority};
use isolane_wire::level::Level;

use crate::{
    error::BuildError,
    limits::BURST,
    listener::{ListenerSet, Listeners},
    monitoring::Monitoring,
    participant::builder,
    participant::discovery_events::DiscoveryCallback,
    participant::event_loop::Scheduling,
    participant::io::Io,
    participant::jobs::{Jobs, Task, TimerCallback},
    participant::placement::Placement,
    reader::{ReaderCallbacks, ReaderSlot},
    warning_log::{SETTING, warn},
    writer::handle::SendQueue,
};

/// Map from each level to the lane of its samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes {
    levels: [Level; Level::COUNT],
    is_per_level: bool,
}

impl Lanes {
    /// Evaluates [`Builder::level_mapping`](crate::Builder::level_mapping).
    pub(crate) fn new(level_mapping: fn(Level) -> Level) -> Self {
        let levels = Level::ALL.map(level_mapping);
        Self {
            levels,
            is_per_level: levels == Level::ALL,
        }
    }

    /// Returns the lane of a level.
    pub(crate) fn lane(self, level: Level) -> Lane {
        Lane::Level(self.levels[usize::from(level.get())])
    }

    /// Whether each level has its own lane.
    #[inline]
    pub(crate) fn is_per_level(self) -> bool {
        self.is_per_level
    }
}

/// Removed callbacks. They may own writers and readers, whose deletion borrows the state, so drop them only while the
/// state is not borrowed.
#[must_use = "callbacks are dropped while the state is not borrowed"]
pub(crate) struct Callbacks {
    _readers: Vec<ReaderCallbacks>,
    _timers: Vec<Option<TimerCallback>>,
    _listeners: Vec<ListenerSet>,
    _discovery: Option<DiscoveryCallback>,
}

/// State of a participant.
pub(crate) struct State {
    pub(crate) protocol: LocalParticipant,
    pub(crate) executor: Executor,
    pub(crate) io: Io,
    pub(crate) lanes: Lanes,
    pub(crate) jobs: Jobs,
    pub(crate) scheduling: Scheduling,
    pub(crate) reader_slots: Vec<ReaderSlot>,
    pub(crate) send_queues: Vec<SendQueue>,
    pub(crate) listeners: Listeners,
    pub(crate) monitoring: Monitoring,
    /// Scheduling of the thread that runs the loop, until its first run applies it.
    pub(crate) placement: Option<Placement>,
}

impl State {
    pub(crate) fn new(
        protocol: LocalParticipant,
        mut executor: Executor,
        io: Io,
        lanes: Lanes,
        max_jobs: usize,
        monitoring: Monitoring,
    ) -> Result<Self, BuildError> {
        for level in Level::ALL {
            let protocol = Priority::of_protocol(level);
            executor.grant_share(protocol.get(), BURST as u16);
        }
        Ok(Self {
            jobs: Jobs::new(&mut executor, max_jobs)?,
            protocol,
            executor,
            io,
            lanes,
            scheduling: Scheduling::new(),
            reader_slots: Vec::new(),
            send_queues: Vec::new(),
            listeners: Listeners::default(),
            monitoring,
            placement: None,
        })
    }

    /// Passes the [warnings](crate::Participant::warnings) that are new since the last call to the application.
    pub(crate) fn tell_new_warnings(&mut self) {
        for warning in self.warnings() {
            if !self.monitoring.reported.contains(&warning) {
                warn(SETTING, format_args!("{warning}"));
                self.monitoring.reported.push(warning);
            }
        }
    }

    /// Opens a lane: its sockets, its frames, and its receive job.
    pub(crate) fn open_lane(&mut self, lane: Lane) -> Result<(), BuildError> {
        if self.jobs.receive[lane.index()].is_some() {
            return Ok(());
        }
        self.io.open_lane(lane)?;
        let (name, priority) = match lane {
            Lane::Discovery => (String::from("receive discovery"), Priority::DISCOVERY),
            Lane::Level(level) if self.lanes.is_per_level() => (
                format!("receive level {}", level.get()),
                Priority::of_data(level),
            ),
            // On a shared lane, each datagram has its own level (`note_datagram`). A datagram without a level must not
            // count as less urgent than any job.
            Lane::Level(_) => (String::from("receive all levels"), Priority::HIGHEST),
        };
        let config = JobConfig {
            source: Some(lane.index() as u8),
            ..JobConfig::event(&name, priority.get())
        };
        let job = self.add_job(config, Task::Receive(lane))?;
        if let Err(source) = self.io.watch_lane(lane) {
            self.jobs.remove(&mut self.executor, job);
            let action = "watch a socket with epoll";
            return Err(BuildError::System { action, source });
        }
        self.jobs.receive[lane.index()] = Some(job);
        self.scheduling.add_lane(lane, job);
        self.assign_bursts();
        Ok(())
    }

    /// Applies a topic's bound of bursts to its lane; the smallest one counts.
    pub(crate) fn bound_bursts(&mut self, lane: Lane, bound: Option<Duration>) {
        if self.scheduling.bound(lane, bound) {
            self.assign_bursts();
        }
    }

    /// Assigns each lane its burst bound, and each job its maximum number of items. Called when that lane may have changed.
    fn assign_bursts(&mut self) {
        let link_bits_per_s = self.io.datapath.link_bits_per_s();
        self.scheduling.set_bounds(self.lanes, link_bits_per_s);
        for (lane, job) in Lane::ALL.into_iter().zip(self.jobs.receive) {
            let items = self.scheduling.frames_of(lane);
            job.into_iter()
                .for_each(|job| self.executor.set_items(job, items));
        }
        for level in Level::ALL {
            let items = self.items_of_level(level);
            let sending = self.jobs.work[usize::from(Priority::of_data(level).get())];
            self.executor.set_items(sending, items);
        }
        for slot in &self.reader_slots {
            if let Some(job) = slot.job {
                let items = self.scheduling.callbacks_of_level(self.lanes, slot.level);
                self.executor.set_items(job, items);
            }
        }
    }

    /// Returns the maximum number of datagrams sent, or samples delivered, per activation at this level.
    pub(crate) fn items_of_level(&self, level: Level) -> u16 {
        self.scheduling.items_of_level(self.lanes, level)
    }

    /// Touches reserved memory if prefaulting is on: the slots of all endpoints, and the frames of a lane as far as
    /// datagrams with this payload fill them.
    pub(crate) fn touch(&mut self, lane: Lane, payload_bytes: usize) {
        if !self.io.prefault {
            return;
        }
        self.protocol.touch_slots();
        let bytes = match self.io.is_segmented(lane) {
            // A segmented burst may fill a frame.
            true => usize::MAX,
            false => self.io.payload_begin() + payload_bytes,
        };
        for class in [Class::Receive(lane), Class::Transmit(lane)] {
            self.io.pool.prefault(class, bytes);
        }
    }

    pub(crate) fn add_job(&mut self, config: JobConfig, task: Task) -> Result<JobId, BuildError> {
        self.jobs.add(&mut self.executor, config, task)
    }

    /// Performs the periodic checks; called once a second.
    pub(crate) fn housekeeping(&mut self) {
        self.protocol.set_wall_offset(wall_offset_ns());
        for queue in &mut self.send_queues {
            queue.relend(&self.io.pool);
            queue.wake();
        }
        if self.io.datapath.check_interfaces() {
            self.follow_addresses();
            // The link may be another one, of another rate.
            self.assign_bursts();
        }
        self.log_warnings(monotonic_now());
        self.begin_observing();
    }

    /// Announces changed addresses of this host.
    fn follow_addresses(&mut self) {
        let networks = builder::networks(&*self.io.datapath);
        let addresses = networks
            .iter()
            .map(|network| Ipv4Addr::from(network.address));
        let addresses: Vec<String> = addresses.map(|address| address.to_string()).collect();
        log::info!(target: "isolane",
            "this host's addresses have changed: they are {} now, and announced", addresses.join(", "));
        if self.protocol.has_description() {
            warn!(
                "this participant is described at another address: peers that know it by the description do not \
                 follow. Change the description on all sides, and start again"
            );
        }
        self.protocol.set_networks(monotonic_now(), networks);
    }

    /// Removes all callbacks: of timers, readers, listeners and discovery.
    pub(crate) fn remove_callbacks(&mut self) -> Callbacks {
        let (discovery_job, discovery) = self.listeners.discovery.clear();
        if let Some(job) = discovery_job {
            self.jobs.remove(&mut self.executor, job);
        }
        Callbacks {
            _timers: self.jobs.remove_timers(&mut self.executor),
            _readers: (0..self.reader_slots.len())
                .map(|reader| self.clear_reader_slot(reader))
                .collect(),
            _listeners: self.listeners.clear_all(&mut self.jobs, &mut self.executor),
            _discovery: discovery,
        }
    }
}
