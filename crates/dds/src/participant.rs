//! The participant: how it is built, what it creates, how it is driven.

use std::{
    cell::RefCell,
    marker::PhantomData,
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::{AsRawFd, RawFd},
    rc::Rc,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use isolane_datapath::{
    Datapath, Lane,
    clock::{monotonic_now, wall_now_ns},
    memory::{Memory, Network},
    udp::{Interfaces, Udp, UdpConfig},
};
use isolane_engine::{
    Counters, DeliveryMode, EndpointConfig, Engine, EngineConfig, Priority, RemoteEndpoint,
    RemoteParticipant, Timing, WriterId,
};
use isolane_executor::{Executor, ExecutorConfig, JobConfig, Order};
use isolane_wire::{
    cdr::{TopicType, key_hash_of_payload},
    discovery::LocatorList,
    guid::{EntityId, Guid, GuidPrefix},
    level::Level,
    locator::Locator,
    rtps::VENDOR_ID,
    time::Instant,
};

use crate::{
    error::BuildError,
    limits::{ACTIVATIONS_PER_POLL, MAX_JOBS, MAX_SAMPLE_BYTES, PARTICIPANTS_PER_PEER},
    qos::Qos,
    reader::DataReader,
    remote::RemoteWriter,
    report::Report,
    runtime::{Addresses, Core, Parts, State, Task, Timer, TimerSlot},
    transport::Transport,
    wait::Waiter,
    writer::DataWriter,
};

/// What the loop does when nothing is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Waiting {
    /// Sleeps until something is.
    #[default]
    Sleep,
    /// Looks again at once. For a core of its own; never under SCHED_FIFO on a core that others
    /// need.
    Spin,
}

/// The datapath asked for.
enum Choice {
    Udp,
    Memory(Memory),
}

/// Builds a [`Participant`].
pub struct Builder {
    domain: u32,
    name: String,
    choice: Choice,
    interfaces: Interfaces,
    multicast: bool,
    peers: Vec<Ipv4Addr>,
    peers_at: Vec<SocketAddrV4>,
    timing: Timing,
    limits: isolane_engine::Limits,
    order: Order,
    waiting: Waiting,
}

impl Builder {
    /// A name for people, announced to peers; at most 63 bytes, the rest is cut.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// The interfaces to use. Default: all that are up.
    #[must_use]
    pub fn interfaces(mut self, interfaces: Interfaces) -> Self {
        self.interfaces = interfaces;
        self
    }

    /// Unicast on 127.0.0.1 only, finding participants of this host without multicast.
    #[must_use]
    pub fn loopback(mut self) -> Self {
        self.interfaces = Interfaces::Loopback;
        self.multicast = false;
        self.peers.push(Ipv4Addr::LOCALHOST);
        self
    }

    /// Whether groups are joined and used. Default: yes, where interfaces can.
    #[must_use]
    pub fn multicast(mut self, multicast: bool) -> Self {
        self.multicast = multicast;
        self
    }

    /// A host to announce this participant to by unicast, beside the group.
    #[must_use]
    pub fn peer(mut self, address: Ipv4Addr) -> Self {
        self.peers.push(address);
        self
    }

    /// As [`peer`](Self::peer), where the port of its discovery is known.
    #[must_use]
    pub fn peer_at(mut self, address: SocketAddrV4) -> Self {
        self.peers_at.push(address);
        self
    }

    /// A place on a network in memory instead of sockets. Participants on it share a thread.
    #[must_use]
    pub fn memory(mut self, network: &Network, address: [u8; 4]) -> Self {
        self.choice = Choice::Memory(network.attach(address));
        self
    }

    /// Periods of announcements and heartbeats.
    #[must_use]
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// How much the engine may hold.
    #[must_use]
    pub fn limits(mut self, limits: isolane_engine::Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The order in which ready jobs run. Default: by priority; FIFO is the baseline of
    /// comparisons.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// What the loop does with nothing to do.
    #[must_use]
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// Makes the participant: opens the sockets of discovery and takes the memory.
    ///
    /// # Errors
    /// [`BuildError`]: what happened, why, and what to do.
    pub fn build(self) -> Result<Participant, BuildError> {
        let mut transport = match self.choice {
            Choice::Memory(memory) => Transport::Memory(memory),
            Choice::Udp => Transport::Udp(Udp::new(UdpConfig {
                interfaces: self.interfaces,
                multicast: self.multicast,
                ..UdpConfig::new(self.domain)
            })?),
        };
        transport.open_lane(Lane::Discovery)?;

        let system = |action| move |source: std::io::Error| BuildError::System { action, source };
        let mut random = [0; 18];
        getrandom::fill(&mut random)
            .map_err(|error| system("read random bytes")(std::io::Error::other(error)))?;
        let (prefix, seed) = identity(&random);
        let now = monotonic_now();
        let mut config = EngineConfig::new(self.domain, prefix, seed);
        config.name = bounded_name(&self.name);
        config.wall_offset_ns = wall_now_ns().wrapping_sub(now.as_nanos());
        config.metatraffic_unicast = locators(transport.unicast(Lane::Discovery));
        config.default_unicast = config.metatraffic_unicast.clone();
        config.announce_to = announce_to(&transport, self.domain, &self.peers);
        config
            .announce_to
            .extend(self.peers_at.iter().copied().map(Locator::from));
        config.networks = match &transport {
            Transport::Udp(udp) => udp.networks(),
            Transport::Memory(_) => Vec::new(),
        }
        .into_iter()
        .map(|(address, prefix_bits)| isolane_engine::Network {
            address,
            prefix_bits,
        })
        .collect();
        config.timing = self.timing;
        config.limits = self.limits;

        let executor = Executor::new(ExecutorConfig {
            order: self.order,
            max_jobs: MAX_JOBS,
        });
        let waiter = Waiter::new().map_err(system("make an epoll instance"))?;
        let mut state = State::new(Parts {
            engine: Engine::new(config, now),
            executor,
            transport,
            waiter,
            spinning: self.waiting == Waiting::Spin,
        })
        .map_err(|_| BuildError::TooManyJobs)?;
        state.open_lane(Lane::Discovery)?;
        let core = Core {
            state: RefCell::new(state),
            running: false.into(),
        };
        Ok(Participant {
            core: Rc::new(core),
        })
    }
}

/// A participant in a domain (DDS 1.4 §2.2.2.2.1): a handle; its clones are the same participant.
/// When the last handle to it and to its endpoints goes, it says good-bye to its peers.
#[derive(Clone)]
pub struct Participant {
    pub(crate) core: Rc<Core>,
}

impl Participant {
    /// Begins to build a participant of this domain, 0 to 232.
    #[must_use]
    pub fn builder(domain: u32) -> Builder {
        Builder {
            domain,
            name: String::from("isolane"),
            choice: Choice::Udp,
            interfaces: Interfaces::All,
            multicast: true,
            peers: Vec::new(),
            peers_at: Vec::new(),
            timing: Timing::default(),
            limits: isolane_engine::Limits::default(),
            order: Order::Priority,
            waiting: Waiting::Sleep,
        }
    }

    /// Creates a writer of a topic. Takes the memory of its history.
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_writer<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
    ) -> Result<DataWriter<T>, BuildError> {
        let id = self.writer_id::<T>(topic, qos)?;
        Ok(DataWriter::new(self.clone(), id, qos))
    }

    fn writer_id<T: TopicType>(&self, topic: &str, qos: &Qos) -> Result<WriterId, BuildError> {
        let mut state = self.core.state.borrow_mut();
        let (unicast, _) = prepare(&mut state, qos)?;
        let id = state.engine.create_writer(
            monotonic_now(),
            &EndpointConfig {
                topic_name: topic,
                type_name: T::TYPE_NAME,
                keyed: T::KEYED,
                key_of: None,
                qos: qos.offered(),
                max_payload_bytes: qos.max_bytes,
                unicast,
                multicast: LocatorList::new(),
            },
        )?;
        Ok(id)
    }

    /// Creates a reader of a topic that keeps samples until they are taken.
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_reader<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
    ) -> Result<DataReader<T>, BuildError> {
        self.reader_with(topic, qos, DeliveryMode::Cache)
    }

    /// Creates a best-effort reader that sees each sample in the frame it came in, while it is being
    /// received: see [`DataReader::on_view`]. It keeps none.
    ///
    /// # Errors
    /// [`BuildError`]; a reliable reader cannot be one.
    pub fn create_view_reader<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
    ) -> Result<DataReader<T>, BuildError> {
        self.reader_with(topic, qos, DeliveryMode::View)
    }

    fn reader_with<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
        delivery: DeliveryMode,
    ) -> Result<DataReader<T>, BuildError> {
        let mut state = self.core.state.borrow_mut();
        let (unicast, multicast) = prepare(&mut state, qos)?;
        let id = state.engine.create_reader(
            monotonic_now(),
            &EndpointConfig {
                topic_name: topic,
                type_name: T::TYPE_NAME,
                keyed: T::KEYED,
                key_of: T::KEYED.then_some(|payload, key_only| {
                    key_hash_of_payload::<T>(payload, key_only).ok()
                }),
                qos: qos.requested(),
                max_payload_bytes: qos.max_bytes,
                unicast,
                multicast,
            },
            delivery,
        )?;
        Ok(DataReader::new(self.clone(), id, qos, topic))
    }

    /// Creates a writer that another thread writes to: it is `Send`, and its samples go through a
    /// bounded ring to this participant's loop.
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_remote_writer<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
    ) -> Result<RemoteWriter<T>, BuildError> {
        let writer = self.writer_id::<T>(topic, qos)?;
        crate::remote::create(self, writer, topic, qos)
    }

    /// Creates a time-triggered job: `callback` runs on the loop at every instant `t` of the
    /// monotonic clock with `t = offset (mod period)`, at the priority of the level's samples, and
    /// is told the instant that was planned.
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn create_timer(
        &self,
        name: &str,
        level: Level,
        period: Duration,
        offset: Duration,
        callback: impl FnMut(Instant) + 'static,
    ) -> Result<Timer, BuildError> {
        let mut state = self.core.state.borrow_mut();
        let index = state.timers.len() as u16;
        let config = JobConfig::periodic(
            name,
            Priority::of_data(level).get(),
            period.as_nanos() as u64,
            offset.as_nanos() as u64,
        );
        let job = state.add_job(config, Task::Timer(index))?;
        state.timers.push(TimerSlot {
            callback: Some(Box::new(callback)),
            job: Some(job),
        });
        Ok(Timer(index))
    }

    /// Stops a timer.
    pub fn stop_timer(&self, timer: Timer) {
        let mut state = self.core.state.borrow_mut();
        let state = &mut *state;
        if let Some(slot) = state.timers.get_mut(usize::from(timer.0)) {
            slot.callback = None;
            if let Some(job) = slot.job.take() {
                state.executor.remove(job);
            }
        }
    }

    /// Runs what is ready now, at most
    /// [`ACTIVATIONS_PER_POLL`] activations, without sleeping; returns how many ran. For a loop of your own: call it
    /// when [`descriptor`](Self::descriptor) is readable and at [`next_time`](Self::next_time).
    ///
    /// # Panics
    /// Inside a callback of this participant.
    pub fn poll(&self) -> usize {
        self.must_not_run();
        let ran = (0..ACTIVATIONS_PER_POLL)
            .take_while(|_| self.core.turn(Some(Duration::ZERO)))
            .count();
        for inlet in &self.core.state.borrow().inlets {
            inlet.set_sleeping(true);
        }
        ran
    }

    /// Readable when [`poll`](Self::poll) has something to do, time apart. Valid while the participant
    /// is.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.core.state.borrow().waiter.descriptor().as_raw_fd()
    }

    /// When [`poll`](Self::poll) is to be called next, whatever the descriptor says.
    #[must_use]
    pub fn next_time(&self) -> Option<Instant> {
        self.core.state.borrow().next_time()
    }

    /// Runs the loop for a while.
    ///
    /// # Panics
    /// Inside a callback of this participant.
    pub fn run_for(&self, duration: Duration) {
        self.run_until(duration, || false);
    }

    /// Runs the loop until `done` says so, which is asked after every activation; false: the time was
    /// over first.
    ///
    /// # Panics
    /// Inside a callback of this participant.
    pub fn run_until(&self, timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
        self.must_not_run();
        let end = monotonic_now() + timeout;
        loop {
            if done() {
                return true;
            }
            let left = end.saturating_since(monotonic_now());
            if left.is_zero() {
                return false;
            }
            self.core.turn(Some(left));
        }
    }

    /// Runs the loop until the flag is set, by a signal handler for example.
    ///
    /// # Panics
    /// Inside a callback of this participant.
    pub fn run(&self, stop: &AtomicBool) {
        self.must_not_run();
        while !stop.load(Ordering::Relaxed) {
            self.core.turn(None);
        }
    }

    fn must_not_run(&self) {
        assert!(
            !self.core.running.get(),
            "the loop is running: a callback cannot drive it"
        );
    }

    /// This participant's GUID.
    #[must_use]
    pub fn guid(&self) -> Guid {
        let prefix = self.core.state.borrow().engine.guid_prefix();
        Guid {
            prefix,
            entity: EntityId::PARTICIPANT,
        }
    }

    /// The participants of others that are known now.
    #[must_use]
    pub fn participants(&self) -> Vec<RemoteParticipant> {
        self.core
            .state
            .borrow()
            .engine
            .remote_participants()
            .cloned()
            .collect()
    }

    /// The endpoints of others that are known now.
    #[must_use]
    pub fn endpoints(&self) -> Vec<RemoteEndpoint> {
        self.core
            .state
            .borrow()
            .engine
            .remote_endpoints()
            .cloned()
            .collect()
    }

    /// What the engine counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        *self.core.state.borrow().engine.counters()
    }

    /// What the datapath had to do without on this machine, in sentences.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let state = self.core.state.borrow();
        state
            .transport
            .notes()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Jobs, ledgers and counters, as of now.
    #[must_use]
    pub fn report(&self) -> Report {
        Report::of(&self.core.state.borrow())
    }

    pub(crate) fn delete_writer(&self, id: WriterId) {
        // While unwinding from a panic inside a step the state may be borrowed.
        if let Ok(mut state) = self.core.state.try_borrow_mut() {
            state.engine.delete_writer(monotonic_now(), id);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let now = monotonic_now();
        // What is filed for peers (the ends of endpoints) goes out first, within bounds.
        for _ in 0..ACTIVATIONS_PER_POLL {
            if !state.work_once(now) {
                break;
            }
        }
        if let Some(mut frame) = state.transport.pool().take(Lane::Discovery) {
            let bytes = state.engine.farewell(frame.buffer_mut());
            frame.set_range(0..bytes);
            state.send(Lane::Discovery, frame, Addresses::Announce);
        }
    }
}

impl State {
    fn work_once(&mut self, now: Instant) -> bool {
        let ready = self.engine.ready();
        let Some(priority) = Priority::descending().find(|p| ready & (1 << p.get()) != 0) else {
            return false;
        };
        self.work(now, priority)
    }
}

/// Opens the lane of a QoS's level; where an endpoint of it is reached.
fn prepare(state: &mut State, qos: &Qos) -> Result<(LocatorList, LocatorList), BuildError> {
    if qos.max_bytes > MAX_SAMPLE_BYTES {
        return Err(BuildError::SampleTooLarge {
            asked: qos.max_bytes,
            limit: MAX_SAMPLE_BYTES,
        });
    }
    let lane = Lane::Level(qos.transport_level());
    state.open_lane(lane)?;
    Ok((
        locators(state.transport.unicast(lane)),
        locators(state.transport.multicast(lane)),
    ))
}

/// As many as are announced.
fn locators(all: &[Locator]) -> LocatorList {
    all.iter()
        .copied()
        .take(LocatorList::new().capacity())
        .collect()
}

/// The GUID prefix, its first two bytes the vendor's (RTPS 2.5 §9.3.1.5), and the seed.
fn identity(random: &[u8; 18]) -> (GuidPrefix, u64) {
    let mut prefix = [0; 12];
    prefix[..2].copy_from_slice(&VENDOR_ID);
    prefix[2..].copy_from_slice(&random[..10]);
    let seed = random[10..]
        .iter()
        .fold(0, |seed, &byte| seed << 8 | u64::from(byte));
    (GuidPrefix(prefix), seed)
}

fn bounded_name(name: &str) -> heapless::String<64> {
    let mut bounded = heapless::String::new();
    for character in name.chars() {
        if bounded.len() + character.len_utf8() > 63 || bounded.push(character).is_err() {
            break;
        }
    }
    bounded
}

/// The SPDP group where there is one, and the ports of named peers (RTPS 2.5 §9.6.2.3).
fn announce_to(transport: &Transport, domain: u32, peers: &[Ipv4Addr]) -> Vec<Locator> {
    let mut places = transport.multicast(Lane::Discovery).to_vec();
    for peer in peers {
        for participant in 0..PARTICIPANTS_PER_PEER {
            let port = 7_410 + 250 * domain + 2 * participant;
            places.extend(
                u16::try_from(port)
                    .ok()
                    .map(|port| Locator::udpv4(peer.octets(), port)),
            );
        }
    }
    places
}

/// A handle's type parameter, without owning one.
pub(crate) type Of<T> = PhantomData<fn(&T)>;
