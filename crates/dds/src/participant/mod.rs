//! The participant: creation of endpoints and timers, and the event loop.

pub(crate) mod builder;
pub(crate) mod discovery_events;
pub(crate) mod event_loop;
pub(crate) mod io;
pub(crate) mod jobs;
pub(crate) mod placement;
pub(crate) mod state;
pub(crate) mod static_discovery;
pub(crate) mod thread;

use std::{
    marker::PhantomData,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    rc::Rc,
    time::Duration,
};

use isolane_datapath::clock::monotonic_now;
use isolane_executor::{JobConfig, JobId};
#[cfg(feature = "config")]
use isolane_model::System;
use isolane_rtps::{
    ContentFilter, Counters, DeliveryMode, EnableError, EndpointConfig, Priority, PublisherId,
    SubscriberId, WriterId, limits::BATCH_BYTES,
};
use isolane_wire::{
    builtin_data::LocatorList,
    cdr::{TopicType, key_hash_of_payload, max_payload_bytes},
    guid::{EntityId, Guid},
    level::Level,
    time::Instant,
};

use crate::{
    error::BuildError,
    filter::{Filter, of_peer},
    instance::{key_payload, key_payload_bytes},
    limits::MAX_SAMPLE_BYTES,
    listener::Endpoint,
    participant::builder::{Builder, locators},
    participant::event_loop::Core,
    participant::{io::Io, state::State},
    qos::Qos,
    qos::mutable_qos::log_durability,
    reader::{DataReader, ResponseDeadline},
    report::Report,
    writer::DataWriter,
    writer::handle::WriterHandle,
};

/// DomainParticipant (DDS 1.4 §2.2.2.2.1). Clones are handles to the same participant.
///
/// Dropping the last clone drops the participant's timers and all callbacks, with the endpoints that they own, because
/// nothing can run the callbacks any more. When the other endpoints are dropped too, the participant announces its end
/// to its peers and is deleted. A callback that owns a clone of its own participant keeps the participant alive until
/// the callback's reader is dropped or its timer stopped.
#[derive(Clone)]
pub struct Participant {
    handle: Rc<Handle>,
}

/// Part that the clones of a participant share, but its endpoints do not.
struct Handle {
    core: Rc<Core>,
    #[cfg(feature = "config")]
    description: Option<Rc<System>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.core.abandon();
    }
}

/// Handle to a time-triggered job of [`Participant::create_timer`]. Dropping it does not stop the timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer(JobId);

impl Participant {
    /// Returns a builder of a participant in this domain, 0 to 232.
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
            handle: Rc::new(Handle {
                core,
                #[cfg(feature = "config")]
                description: None,
            }),
        }
    }

    /// Notes the description that this new participant is built from.
    #[cfg(feature = "config")]
    pub(crate) fn with_description(mut self, description: Option<Rc<System>>) -> Self {
        if let Some(handle) = Rc::get_mut(&mut self.handle) {
            handle.description = description;
        }
        self
    }

    #[cfg(feature = "config")]
    pub(crate) fn description(&self) -> Option<&System> {
        self.handle.description.as_deref()
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.handle.core
    }

    /// Creates a writer of a topic and allocates its history.
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

    /// Creates a reader of a topic that caches samples until they are taken.
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

    /// Creates a reader that accepts only samples that pass a filter (DDS 1.4 §2.2.2.3.3, *ContentFilteredTopic*).
    ///
    /// Other samples are acknowledged and counted ([`ReaderLedger::content_filtered`](crate::ReaderLedger)), and take
    /// no slot. A reliable reader announces its filter (RTPS 2.5 §8.7.4), and a KEEP_ALL writer that supports the
    /// filter does not send the other samples. The reader filters all samples that arrive. [`DataReader::set_filter`]
    /// replaces the filter.
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
    /// assert_eq!(reader.ledger().content_filtered, 2);
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
        let filter = Some(filter.into_protocol(topic));
        self.reader_with(topic, qos, DeliveryMode::Cache, filter)
    }

    /// Creates a best-effort reader that accesses each sample in the received frame, during reception, and caches
    /// none: see [`DataReader::on_view`].
    ///
    /// # Errors
    /// [`BuildError`]; reliable QoS is refused.
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

    /// Creates a writer for another thread. The writer is `Send`, and passes its samples to this participant's loop
    /// through a bounded ring. It is enabled at once, so the participant must be enabled.
    ///
    /// The writer holds frames for its largest samples. With AF_XDP, samples are sent without a copy only if they fit a
    /// frame of the device. For that, a type without bounds needs [`Qos::max_bytes`] of 1,400 or less.
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_writer_handle<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
    ) -> Result<WriterHandle<T>, BuildError> {
        crate::writer::handle::create(&mut self.core().state.borrow_mut(), topic, qos)
    }

    /// Creates a time-triggered job. The loop calls `callback` at every instant `t` of the monotonic clock with `t =
    /// offset (mod period)`, and passes the planned instant. The job has the priority of the level's samples.
    ///
    /// Instants that pass while the job waits or runs are skipped; the job's [`JobStatistics`](crate::JobStatistics)
    /// counts them.
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
        let state = &mut *self.core().state.borrow_mut();
        let callback = Box::new(callback);
        let job = state
            .jobs
            .add_timer(&mut state.executor, config, callback)?;
        Ok(Timer(job))
    }

    /// Stops a timer, also from its own callback. A timer that is already stopped is ignored.
    pub fn stop_timer(&self, timer: Timer) {
        let callback = {
            let state = &mut *self.core().state.borrow_mut();
            state.jobs.remove_timer(&mut state.executor, timer.0)
        };
        // The callback may own a writer, whose deletion borrows the state.
        drop(callback);
    }

    /// Runs ready jobs without sleeping, until they have handled [`ITEMS_PER_POLL`](crate::limits::ITEMS_PER_POLL) items,
    /// and returns the number of activations.
    ///
    /// In an event loop of the application, call it when [`descriptor`](Self::descriptor) is readable and at
    /// [`next_time`](Self::next_time). Query `next_time` again after each call and each write.
    ///
    /// ```
    /// use isolane::{Instant, Network, Participant};
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// // The participant has an announcement to send, so it must be polled at once.
    /// assert_eq!(participant.next_time(), Some(Instant::new(0)));
    /// while participant.poll() > 0 {}
    /// // Now nothing is due before the next announcement.
    /// assert!(participant.next_time() > Some(Instant::new(0)));
    /// # Ok::<(), isolane::BuildError>(())
    /// ```
    ///
    /// # Panics
    /// Inside a callback of this participant.
    pub fn poll(&self) -> usize {
        self.core().poll()
    }

    /// File descriptor that is readable when [`poll`](Self::poll) has something to do, except for timers.
    ///
    /// The descriptor is valid as long as the participant; [`AsFd`] returns it with that lifetime.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.core().descriptor.as_raw_fd()
    }

    /// Returns the time until [`poll`](Self::poll) must be called, regardless of the descriptor. `None` if nothing is due.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        let next = self.next_time()?;
        Some(next.saturating_since(monotonic_now()))
    }

    /// Returns when to call [`poll`](Self::poll) next, regardless of the descriptor, by CLOCK_MONOTONIC. An instant in
    /// the past means now.
    #[must_use]
    pub fn next_time(&self) -> Option<Instant> {
        self.core().state.borrow_mut().next_time()
    }

    /// Runs the loop for this duration.
    ///
    /// # Panics
    /// Inside a callback of this participant. A panic of a callback propagates to the caller; the loop can be run
    /// again afterwards, without that callback.
    pub fn run_for(&self, duration: Duration) {
        self.run_until(duration, || false);
    }

    /// Runs the loop until `done` returns true, and returns false if the timeout expired first.
    ///
    /// The loop calls `done` after every activation and every sleep. Jobs that are ready at the timeout still run, at
    /// most 64 activations. `done` should depend on work of the loop: changes by another thread or by the clock are
    /// noticed only when something else wakes the loop.
    ///
    /// # Panics
    /// As [`run_for`](Self::run_for).
    pub fn run_until(&self, timeout: Duration, done: impl FnMut() -> bool) -> bool {
        self.core().run_until(timeout, done)
    }

    /// Runs the loop for ever. A program that is to end politely, for example on a signal, uses
    /// [`run_while`](Self::run_while) and drops the participant: peers then know of its end at once, not after its lease.
    ///
    /// # Panics
    /// As [`run_for`](Self::run_for).
    pub fn run(&self) -> ! {
        loop {
            self.run_while(|| true);
        }
    }

    /// Runs the loop for as long as `goes_on` returns true. The loop calls it after each activation, and at least once
    /// a second; a signal handler or another thread may change its answer.
    ///
    /// # Panics
    /// As [`run_for`](Self::run_for).
    pub fn run_while(&self, goes_on: impl FnMut() -> bool) {
        self.core().run_while(goes_on);
    }

    /// Enables the participant if it was [built](crate::Builder::enabled) disabled. The participant is announced from
    /// now on, and its endpoints are enabled too, unless [`Builder::autoenable`](crate::Builder::autoenable) is off. An
    /// enabled participant is unchanged.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{EnableError, Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Pulse { number: u32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).autoenable(false).build()?;
    /// let writer = participant.create_writer::<Pulse>("Pulse", &Qos::best_effort())?;
    /// let reader = participant.create_reader::<Pulse>("Pulse", &Qos::best_effort())?;
    /// assert!(writer.write(&Pulse { number: 1 }).is_err(), "it is not enabled");
    /// writer.enable()?;
    /// assert_eq!(reader.matched_writers(), 0, "the reader is not");
    /// reader.enable()?;
    /// assert_eq!(reader.matched_writers(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EnableError::AnnouncementFull`]: an endpoint could not be enabled yet; call this again.
    pub fn enable(&self) -> Result<(), EnableError> {
        let mut state = self.core().state.borrow_mut();
        state.protocol.enable(monotonic_now())
    }

    /// Returns whether the participant is enabled.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core().state.borrow().protocol.is_enabled()
    }

    /// Asserts the [liveliness](Qos::liveliness) of all MANUAL_BY_PARTICIPANT writers (DDS 1.4 §2.2.2.2.1.21).
    pub fn assert_liveliness(&self) {
        let mut state = self.core().state.borrow_mut();
        state.protocol.assert_participant(monotonic_now());
    }

    /// Returns the participant's GUID.
    #[must_use]
    pub fn guid(&self) -> Guid {
        let prefix = self.core().state.borrow().protocol.guid_prefix();
        Guid {
            prefix,
            entity: EntityId::PARTICIPANT,
        }
    }

    /// Returns the counters of the RTPS participant.
    #[must_use]
    pub fn counters(&self) -> Counters {
        *self.core().state.borrow().protocol.counters()
    }

    /// Returns, as sentences, the features that the datapath lacks on this machine and the budgets that it does not
    /// enforce.
    ///
    /// Each is also logged once, to the target `isolane::setting` of the `log` facade, or to standard error in a program
    /// without a logger. The facade's level `Off` counts as no logger; the level `Error` silences all warnings.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.core().state.borrow().warnings()
    }

    /// Returns the current state of jobs, ledgers and counters.
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

/// Creates a reader, in a subscriber or without one.
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
    let (now, protocol) = (monotonic_now(), &mut state.protocol);
    let created = match (group, filter) {
        (Some(group), filter) => protocol.create_reader_in(now, group, &config, filter),
        (None, None) => protocol.create_reader(now, &config, delivery),
        (None, Some(filter)) => protocol.create_filtered_reader(now, &config, delivery, filter),
    };
    let id = match created {
        Ok(id) => id,
        Err(error) => {
            state.close_reader_flow(&flow);
            return Err(error.into());
        }
    };
    state.make_reader_slot(id, qos.transport_level());
    state.reader_slots[id.index()].flow = flow;
    state.reader_slots[id.index()].response = qos.response_deadline.map(ResponseDeadline::new);
    state.listeners.make(Endpoint::Reader(id));
    log_durability(topic, qos, "reader");
    let lane = state.lanes.lane(qos.transport_level());
    state.touch(lane, qos.whole_bytes());
    state.tell_new_warnings();
    Ok(DataReader::new(Rc::clone(core), id, qos, topic))
}

pub(crate) fn create_writer<T: TopicType>(
    state: &mut State,
    topic: &str,
    qos: &Qos,
) -> Result<WriterId, BuildError> {
    create_writer_of::<T>(state, topic, qos, None)
}

/// Creates a writer in the RTPS participant, in a publisher or without one.
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
    let (now, protocol) = (monotonic_now(), &mut state.protocol);
    let id = match group {
        None => protocol.create_writer(now, &config)?,
        Some(group) => protocol.create_writer_in(now, group, &config)?,
    };
    protocol.evaluate_filters(id, of_peer::<T>);
    if T::KEYED {
        protocol.keep_keys(id, key_payload::<T>, key_payload_bytes::<T>());
    }
    state.listeners.make(Endpoint::Writer(id));
    log_durability(topic, qos, "writer");
    let lane = state.lanes.lane(qos.transport_level());
    state.touch(lane, qos.whole_bytes());
    state.tell_new_warnings();
    Ok(id)
}

/// Checks the configuration of an endpoint and opens the lane of its level. Returns its unicast and multicast
/// locators.
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
    check_sizes(&state.io, qos)?;
    let lane = state.lanes.lane(qos.transport_level());
    state.open_lane(lane)?;
    state.bound_bursts(lane, qos.burst_bound);
    Ok((
        locators(state.io.datapath.unicast(lane)),
        locators(state.io.datapath.multicast(lane)),
    ))
}

/// Checks that samples, or their fragments, fit the frames of the datapath.
fn check_sizes(io: &Io, qos: &Qos) -> Result<(), BuildError> {
    let frame_limit = io.max_sample_bytes();
    let takes_fragments = io.capabilities.max_frame_bytes >= BATCH_BYTES;
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

/// Returns the type name under which this participant already uses the topic, if it differs.
fn other_type_of(state: &State, topic: &str, type_name: &str) -> Option<String> {
    let protocol = &state.protocol;
    let writers = protocol
        .local_writers()
        .filter_map(|id| protocol.writer_data(id));
    let readers = protocol
        .local_readers()
        .filter_map(|id| protocol.reader_data(id));
    let mut of_topic = writers
        .chain(readers)
        .filter(|data| data.topic_name == topic);
    let other = of_topic.find(|data| data.type_name != type_name)?;
    Some(other.type_name.as_str().into())
}

/// Type parameter of a handle that owns no value of the type.
pub(crate) type Of<T> = PhantomData<fn(&T)>;
