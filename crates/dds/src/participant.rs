//! The participant: what it creates, how it is driven, what it knows.

use std::{
    marker::PhantomData,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    rc::Rc,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use isolane_datapath::clock::monotonic_now;
use isolane_engine::{
    ContentFilter, Counters, DeliveryMode, EndpointConfig, Priority, PublisherId, SubscriberId,
    WriterId,
    limits::{BATCH_BYTES, WORK_HEAD_BYTES},
};
use isolane_executor::{JobConfig, JobId};
use isolane_wire::{
    cdr::{TopicType, key_hash_of_payload, max_payload_bytes},
    discovery::LocatorList,
    guid::{EntityId, Guid},
    level::Level,
    time::Instant,
};

use crate::{
    announced::log_durability,
    builder::{Builder, locators},
    error::BuildError,
    filter::{Filter, of_peer},
    lifecycle::{key_payload, key_payload_bytes},
    limits::{MAX_DATAGRAM_SAMPLE_BYTES, MAX_SAMPLE_BYTES},
    listeners::Endpoint,
    qos::Qos,
    reader::DataReader,
    remote::RemoteWriter,
    report::Report,
    response::ResponseDeadline,
    runtime::Core,
    state::{State, Task},
    writer::DataWriter,
};

/// A participant in a domain (DDS 1.4 §2.2.2.2.1): a handle; its clones are the same participant.
///
/// When the last clone goes, so do its timers and all callbacks, with the endpoints they own: nothing
/// could run them any more. When its other endpoints are gone too, it says good-bye to its peers and
/// is no more. A callback that owns a clone of its own participant therefore keeps it, until its
/// reader is dropped or its timer stopped.
#[derive(Clone)]
pub struct Participant {
    handle: Rc<Handle>,
}

/// What all clones of a participant share, and its endpoints do not.
struct Handle {
    core: Rc<Core>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.core.drop_callbacks();
    }
}

/// A time-triggered job, as [`Participant::create_timer`] returns it. Dropping this does not stop the
/// timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer(JobId);

impl Participant {
    /// Begins to build a participant of this domain, 0 to 232.
    ///
    /// ```
    /// use isolane::{Participant, Waiting};
    ///
    /// // Unicast on 127.0.0.1, under a name that `isolane ls` shows.
    /// let participant = Participant::builder(90)
    ///     .name("zone-left")
    ///     .loopback()
    ///     .waiting(Waiting::Sleep)
    ///     .build()?;
    /// println!("{} is {}", "zone-left", participant.guid());
    /// # Ok::<(), isolane::BuildError>(())
    /// ```
    #[must_use]
    pub fn builder(domain: u32) -> Builder {
        Builder::new(domain)
    }

    pub(crate) fn new(state: State) -> Self {
        let core = Rc::new(Core::new(state));
        Self {
            handle: Rc::new(Handle { core }),
        }
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.handle.core
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
        let id = create_writer::<T>(&mut self.core().state.borrow_mut(), topic, qos)?;
        Ok(DataWriter::new(Rc::clone(self.core()), id, qos, topic))
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
        self.reader_with(topic, qos, DeliveryMode::Cache, None)
    }

    /// Creates a reader that takes in the samples that pass a filter (DDS 1.4 §2.2.2.3.3,
    /// *ContentFilteredTopic*). Others are acknowledged and counted
    /// ([`ReaderLedger::unwanted`](crate::ReaderLedger)), and take no room. A reliable reader announces its filter
    /// (RTPS 2.5 §8.7.4), and a KEEP_ALL writer that can read it does not send what does not pass; what is sent all
    /// the same is filtered here. [`DataReader::set_filter`] gives it another one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Filter, Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Reading { sensor: u32, celsius: f32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let qos = Qos::reliable().keep_last(8);
    /// let writer = participant.create_writer::<Reading>("Readings", &qos)?;
    /// let hot = Filter::new("celsius > 90.0", &[])?;
    /// let reader = participant.create_filtered_reader::<Reading>("Readings", &qos, hot)?;
    /// for celsius in [20.0, 95.0, 90.0] {
    ///     writer.write(&Reading { sensor: 1, celsius })?;
    /// }
    /// assert!(participant.run_until(Duration::from_secs(5), || reader.ledger().accounted == 3));
    /// assert_eq!(reader.take()?.and_then(|hot| hot.value).map(|hot| hot.celsius), Some(95.0));
    /// assert_eq!(reader.ledger().unwanted, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_filtered_reader<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
        filter: Filter<T>,
    ) -> Result<DataReader<T>, BuildError> {
        let filter = Some(filter.into_engine(topic));
        self.reader_with(topic, qos, DeliveryMode::Cache, filter)
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
        self.reader_with(topic, qos, DeliveryMode::View, None)
    }

    fn reader_with<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
        delivery: DeliveryMode,
        filter: Option<ContentFilter>,
    ) -> Result<DataReader<T>, BuildError> {
        create_reader_of(self.core(), topic, qos, delivery, filter, None)
    }

    /// Creates a writer that another thread writes to: it is `Send`, and its samples go through a
    /// bounded ring to this participant's loop. It is enabled at once, so the participant must be.
    ///
    /// The writer holds frames for its largest samples. On a lane, samples leave without a copy only if these fit a frame of
    /// the device: a type without bounds needs [`Qos::max_bytes`] of 1,400 or less for that.
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_remote_writer<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
    ) -> Result<RemoteWriter<T>, BuildError> {
        crate::remote::create(&mut self.core().state.borrow_mut(), topic, qos)
    }

    /// Creates a time-triggered job: `callback` runs on the loop at every instant `t` of the
    /// monotonic clock with `t = offset (mod period)`, at the priority of the level's samples, and
    /// is told the instant that was planned. Instants that pass while it waits or runs are not made up
    /// for; the job's [`Observed`](crate::Observed) counts them.
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    /// use isolane::{Level, Network, Participant};
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let ticks = Rc::new(Cell::new(0));
    /// let counted = Rc::clone(&ticks);
    /// let millisecond = Duration::from_millis(1);
    /// let timer = participant.create_timer("tick", Level::new(7).unwrap(), millisecond, Duration::ZERO,
    ///     move |planned| {
    ///         assert_eq!(planned.as_nanos() % 1_000_000, 0);
    ///         counted.set(counted.get() + 1);
    ///     })?;
    /// assert!(participant.run_until(Duration::from_secs(5), || ticks.get() >= 3));
    /// participant.stop_timer(timer);
    /// # Ok::<(), isolane::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// [`BuildError::NoPeriod`], [`BuildError::TooManyJobs`].
    pub fn create_timer(
        &self,
        name: &str,
        level: Level,
        period: Duration,
        offset: Duration,
        callback: impl FnMut(Instant) + 'static,
    ) -> Result<Timer, BuildError> {
        if period.is_zero() {
            return Err(BuildError::NoPeriod);
        }
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let priority = Priority::of_data(level).get();
        let config = JobConfig::periodic(name, priority, nanos(period), nanos(offset));
        let mut state = self.core().state.borrow_mut();
        let job = state.add_job(config, Task::Timer)?;
        state.timers[job.index()] = Some(Box::new(callback));
        Ok(Timer(job))
    }

    /// Stops a timer, also from its own callback. Nothing happens if it was stopped before.
    pub fn stop_timer(&self, timer: Timer) {
        let callback = self.core().state.borrow_mut().remove_timer(timer.0);
        // What it owns may be a writer, which is deleted now that the state is free.
        drop(callback);
    }

    /// Runs what is ready now, at most [`ACTIVATIONS_PER_POLL`](crate::limits::ACTIVATIONS_PER_POLL)
    /// activations, without sleeping; returns how many ran. For a loop of your own: call it when
    /// [`descriptor`](Self::descriptor) is readable, and at [`next_time`](Self::next_time), which is to
    /// be asked after each call and each write.
    ///
    /// ```
    /// use isolane::{Instant, Network, Participant};
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// // It has an announcement to make, so it is to be polled at once.
    /// assert_eq!(participant.next_time(), Some(Instant::new(0)));
    /// while participant.poll() > 0 {}
    /// // Now there is time, until the next announcement.
    /// assert!(participant.next_time() > Some(Instant::new(0)));
    /// # Ok::<(), isolane::BuildError>(())
    /// ```
    ///
    /// # Panics
    /// Inside a callback of this participant.
    pub fn poll(&self) -> usize {
        self.core().poll()
    }

    /// Readable when [`poll`](Self::poll) has something to do, time apart. Valid while the participant
    /// is; [`AsFd`] gives the same with that lifetime.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.core().descriptor.as_raw_fd()
    }

    /// When [`poll`](Self::poll) is to be called next, whatever the descriptor says, on the clock of
    /// CLOCK_MONOTONIC: an instant of the past if there is something to do now.
    #[must_use]
    pub fn next_time(&self) -> Option<Instant> {
        self.core().state.borrow_mut().next_time()
    }

    /// Runs the loop for a while.
    ///
    /// # Panics
    /// Inside a callback of this participant. A panic of a callback passes through here; the loop can
    /// be run again afterwards, without that callback.
    pub fn run_for(&self, duration: Duration) {
        self.run_until(duration, || false);
    }

    /// Runs the loop until `done` says so, which is asked after every activation and every sleep;
    /// false: the time was over first. What is ready when the time is over is still done, 64 activations at most. What `done` looks at should change by what the loop does: what
    /// another thread or the clock changes is seen when something else wakes the loop.
    ///
    /// # Panics
    /// As [`run_for`](Self::run_for).
    pub fn run_until(&self, timeout: Duration, done: impl FnMut() -> bool) -> bool {
        self.core().run_until(timeout, done)
    }

    /// Runs the loop until the flag is set, by a signal handler or another thread. It is seen after
    /// the next activation: within a second, since housekeeping is one.
    ///
    /// # Panics
    /// As [`run_for`](Self::run_for).
    pub fn run(&self, stop: &AtomicBool) {
        self.core().run_while(|| !stop.load(Ordering::Relaxed));
    }

    /// Says that all writers whose [LIVELINESS](Qos::liveliness) is MANUAL_BY_PARTICIPANT are alive (DDS 1.4
    /// §2.2.2.2.1.21).
    pub fn assert_liveliness(&self) {
        let mut state = self.core().state.borrow_mut();
        state.engine.assert_participant(monotonic_now());
    }

    /// This participant's GUID.
    #[must_use]
    pub fn guid(&self) -> Guid {
        let prefix = self.core().state.borrow().engine.guid_prefix();
        Guid {
            prefix,
            entity: EntityId::PARTICIPANT,
        }
    }

    /// What the engine counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        *self.core().state.borrow().engine.counters()
    }

    /// What the datapath had to do without on this machine, and which budgets it does not keep, in
    /// sentences.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.core().state.borrow().notes()
    }

    /// Jobs, ledgers and counters, as of now.
    #[must_use]
    pub fn report(&self) -> Report {
        Report::of(&self.core().state.borrow())
    }
}

impl AsFd for Participant {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.core().descriptor.as_fd()
    }
}

/// Creates a reader, of a group or by itself.
pub(crate) fn create_reader_of<T: TopicType>(
    core: &Rc<Core>,
    topic: &str,
    qos: &Qos,
    delivery: DeliveryMode,
    filter: Option<ContentFilter>,
    group: Option<SubscriberId>,
) -> Result<DataReader<T>, BuildError> {
    let qos = &qos.sized::<T>();
    let mut state = core.state.borrow_mut();
    let (mut unicast, mut multicast) = prepare::<T>(&mut state, topic, qos)?;
    let flow = state.open_reader_flow(topic, qos)?;
    if let Some(own) = state.flow_locators(&flow) {
        (unicast, multicast) = (own, LocatorList::new());
    }
    let config = EndpointConfig {
        topic_name: topic,
        type_name: T::TYPE_NAME,
        keyed: T::KEYED,
        key_of: T::KEYED.then_some(|payload, key_only| key_hash_of_payload::<T>(payload, key_only)),
        qos: qos.requested(),
        max_payload_bytes: qos.sample_bytes(),
        shares_long: max_payload_bytes::<T>().is_none(),
        max_datagram_bytes: qos.max_datagram_bytes,
        unicast,
        multicast,
    };
    let (now, engine) = (monotonic_now(), &mut state.engine);
    let created = match (group, filter) {
        (Some(group), filter) => engine.create_reader_in(now, group, &config, filter),
        (None, None) => engine.create_reader(now, &config, delivery),
        (None, Some(filter)) => engine.create_filtered_reader(now, &config, delivery, filter),
    };
    let id = match created {
        Ok(id) => id,
        Err(error) => {
            state.close_reader_flow(&flow);
            return Err(error.into());
        }
    };
    state.make_reader_slot(id, qos.transport_level());
    state.readers[id.index()].flow = flow;
    state.readers[id.index()].response = qos.response_deadline.map(ResponseDeadline::new);
    state.make_listening(Endpoint::Reader(id));
    log_durability(topic, qos, "reader");
    let lane = state.lanes.lane(qos.transport_level());
    state.touch(lane, qos.whole_bytes());
    Ok(DataReader::new(Rc::clone(core), id, qos, topic))
}

/// Creates a writer at the engine.
pub(crate) fn create_writer<T: TopicType>(
    state: &mut State,
    topic: &str,
    qos: &Qos,
) -> Result<WriterId, BuildError> {
    create_writer_of::<T>(state, topic, qos, None)
}

/// The same, of a group or by itself.
pub(crate) fn create_writer_of<T: TopicType>(
    state: &mut State,
    topic: &str,
    qos: &Qos,
    group: Option<PublisherId>,
) -> Result<WriterId, BuildError> {
    let qos = &qos.sized::<T>();
    let (unicast, _) = prepare::<T>(state, topic, qos)?;
    let config = EndpointConfig {
        topic_name: topic,
        type_name: T::TYPE_NAME,
        keyed: T::KEYED,
        key_of: None,
        qos: qos.offered(T::EXTENSIBILITY),
        max_payload_bytes: qos.sample_bytes(),
        shares_long: max_payload_bytes::<T>().is_none(),
        max_datagram_bytes: qos.max_datagram_bytes,
        unicast,
        multicast: LocatorList::new(),
    };
    let (now, engine) = (monotonic_now(), &mut state.engine);
    let id = match group {
        None => engine.create_writer(now, &config)?,
        Some(group) => engine.create_writer_in(now, group, &config)?,
    };
    engine.evaluate_filters(id, of_peer::<T>);
    if T::KEYED {
        engine.keep_keys(id, key_payload::<T>, key_payload_bytes::<T>());
    }
    state.make_listening(Endpoint::Writer(id));
    log_durability(topic, qos, "writer");
    let lane = state.lanes.lane(qos.transport_level());
    state.touch(lane, qos.whole_bytes());
    Ok(id)
}

/// Checks what an endpoint is to be, and opens the lane of its level; where it is reached.
fn prepare<T: TopicType>(
    state: &mut State,
    topic: &str,
    qos: &Qos,
) -> Result<(LocatorList, LocatorList), BuildError> {
    qos.check()?;
    if let Some(existing) = other_type_of(state, topic, T::TYPE_NAME) {
        return Err(BuildError::OtherType {
            topic: topic.into(),
            existing,
            asked: T::TYPE_NAME,
        });
    }
    check_sizes(state, qos)?;
    let lane = state.lanes.lane(qos.transport_level());
    state.open_lane(lane)?;
    Ok((
        locators(state.datapath.unicast(lane)),
        locators(state.datapath.multicast(lane)),
    ))
}

/// The largest sample that fits a frame.
pub(crate) fn frame_limit(state: &State) -> usize {
    let frame_bytes = state.capabilities.max_frame_bytes;
    let limit = frame_bytes.saturating_sub(WORK_HEAD_BYTES);
    limit.min(MAX_DATAGRAM_SAMPLE_BYTES)
}

/// Whether samples, or their fragments, fit the frames there are.
fn check_sizes(state: &State, qos: &Qos) -> Result<(), BuildError> {
    let frame_limit = frame_limit(state);
    let takes_fragments = state.capabilities.max_frame_bytes >= BATCH_BYTES;
    let (asked, limit) = if qos.whole_bytes() > frame_limit || qos.is_cut() && !takes_fragments {
        (qos.whole_bytes().max(frame_limit + 1), frame_limit)
    } else {
        (qos.sample_bytes(), MAX_SAMPLE_BYTES)
    };
    if asked > limit {
        return Err(BuildError::SampleTooLarge { asked, limit });
    }
    Ok(())
}

/// The type by which an endpoint of this participant already knows a topic, if it is another one.
fn other_type_of(state: &State, topic: &str, type_name: &str) -> Option<String> {
    let engine = &state.engine;
    let writers = engine
        .local_writers()
        .filter_map(|id| engine.writer_data(id));
    let readers = engine
        .local_readers()
        .filter_map(|id| engine.reader_data(id));
    let mut of_topic = writers
        .chain(readers)
        .filter(|data| data.topic_name == topic);
    let other = of_topic.find(|data| data.type_name != type_name)?;
    Some(other.type_name.as_str().into())
}

/// A handle's type parameter, without owning one.
pub(crate) type Of<T> = PhantomData<fn(&T)>;
