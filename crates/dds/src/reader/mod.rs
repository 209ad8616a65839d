//! Readers, used on the participant's thread, and the delivery of samples to their callbacks.
//!
//! A callback is taken out of its reader's slot while it runs, and the state is not borrowed then. Afterwards the
//! callback is put back, unless the reader was deleted or got another callback meanwhile.

pub(crate) mod handle;
pub(crate) mod selection;

use std::{cell::RefMut, marker::PhantomData, rc::Rc, time::Duration};

use isolane_datapath::{Lane, clock::monotonic_now};
use isolane_executor::{JobConfig, JobId, Name};
use isolane_rtps::{
    CachedSample, Delivery, EnableError, Incompatible, LocalParticipant, Priority, ReaderId,
    ReaderLedger, RejectReason, SampleInfo, SampleState,
};
use isolane_wire::{
    cdr::{CdrError, TopicType, read_payload, read_payload_into, view_payload},
    level::Level,
    time::Instant,
};

use crate::{
    error::BuildError, listener::Endpoint, observe::LatencyHistogram, participant::Of,
    participant::event_loop::Core, participant::jobs::Task, participant::state::State,
    publisher_subscriber::Subscriber, qos::Qos, rate_limit::ReaderFlow,
};

/// Sample: its value, if any, and its metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<V> {
    /// Value; `None` if the sample only reports a disposed or unregistered instance.
    pub value: Option<V>,
    /// Metadata: writer, sequence number, time stamps, instance state.
    pub info: SampleInfo,
}

/// DataReader of one topic (DDS 1.4 §2.2.2.5.3). Dropping the handle deletes the reader and its callback.
///
/// The application takes samples, or a callback receives them: [`on_sample`](Self::on_sample) from the cache,
/// [`on_view`](Self::on_view) directly from the received frame.
///
/// ```
/// use std::time::Duration;
/// use isolane::{InstanceState, Network, Participant, Qos, TopicType};
///
/// #[derive(TopicType)]
/// struct Lamp { #[topic(key)] number: u8, is_on: bool }
///
/// let network = Network::new(1);
/// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
/// let qos = Qos::reliable().keep_last(4).autodispose(false);
/// let writer = participant.create_writer::<Lamp>("Lamps", &qos)?;
/// let reader = participant.create_reader::<Lamp>("Lamps", &qos)?;
/// writer.write(&Lamp { number: 7, is_on: true })?;
/// writer.unregister(&Lamp { number: 7, is_on: false })?;
/// assert!(participant.run_until(Duration::from_secs(5), || reader.available() == 2));
///
/// let sample = reader.take()?.expect("there are two");
/// assert!(sample.value.is_some_and(|lamp| lamp.is_on));
/// let end = reader.take()?.expect("the end of the instance");
/// assert!(end.value.is_none());
/// assert_eq!(end.info.instance_state, InstanceState::NotAliveNoWriters);
/// assert!(reader.take()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DataReader<T: TopicType> {
    pub(crate) core: Rc<Core>,
    pub(crate) id: ReaderId,
    pub(crate) topic: String,
    pub(crate) level: Level,
    /// Subscriber of the reader, if any; the handle keeps it alive.
    pub(crate) subscriber: Option<Subscriber>,
    of: Of<T>,
}

impl<T: TopicType> DataReader<T> {
    pub(crate) fn new(core: Rc<Core>, id: ReaderId, qos: &Qos, topic: &str) -> Self {
        Self {
            core,
            id,
            topic: topic.into(),
            level: qos.transport_level(),
            subscriber: None,
            of: PhantomData,
        }
    }

    /// Sets the callback of a view reader. The receive job passes each sample to it in the received frame, from which
    /// strings and sequences are borrowed. A sample is rejected if there is no callback, or if the sample is not of the
    /// type.
    ///
    /// The callback may write, and create and delete endpoints, including this reader. If the callback panics, the
    /// panic propagates through the call that runs the loop, and the reader has no callback afterwards.
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    /// use isolane::{Network, Participant, Qos, TopicType, types::BoundedString};
    ///
    /// #[derive(TopicType)]
    /// struct Note { text: BoundedString<32> }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let writer = participant.create_writer::<Note>("Notes", &Qos::best_effort())?;
    /// let reader = participant.create_view_reader::<Note>("Notes", &Qos::best_effort())?;
    /// let bytes = Rc::new(Cell::new(0));
    /// let seen = Rc::clone(&bytes);
    /// reader.on_view(move |sample| {
    ///     let text: &str = sample.value.unwrap().text; // borrowed from the frame
    ///     seen.set(text.len());
    /// });
    /// writer.write(&Note { text: "hello".try_into()? })?;
    /// assert!(participant.run_until(Duration::from_secs(5), || bytes.get() == 5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_view(&self, mut callback: impl FnMut(Sample<T::View<'_>>) + 'static) {
        let callback = move |payload: &[u8], info: &SampleInfo| {
            let value = match info.valid_data() {
                true => match view_payload::<T>(payload) {
                    Ok(view) => Some(view),
                    Err(error) => return Err(RejectReason::of(error, payload)),
                },
                false => None,
            };
            callback(Sample { value, info: *info });
            Ok(())
        };
        let former = self.core.state.borrow_mut().reader_slots[self.id.index()]
            .view
            .replace(Box::new(callback));
        // The callback may own a writer, whose deletion borrows the state.
        drop(former);
    }

    /// Sets the callback of a caching reader. A separate job takes each sample at the topic's priority: one sample per
    /// activation, or up to 16 at the highest level in use.
    ///
    /// Samples are decoded into `value`, whose allocations are reused. The callback may do the same as with
    /// [`on_view`](Self::on_view), and a panic has the same effect. The sample passed to a callback that panics counts
    /// as taken.
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    /// use isolane::{Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType, Default)]
    /// struct Count { number: u32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let writer = participant.create_writer::<Count>("Counts", &Qos::reliable().keep_all())?;
    /// let reader = participant.create_reader::<Count>("Counts", &Qos::reliable().keep_all())?;
    /// let sum = Rc::new(Cell::new(0));
    /// let summed = Rc::clone(&sum);
    /// reader.on_sample(Count::default(), move |sample| {
    ///     summed.set(summed.get() + sample.value.map_or(0, |count| count.number));
    /// })?;
    /// for number in 1..=4 {
    ///     writer.write(&Count { number })?;
    /// }
    /// assert!(participant.run_until(Duration::from_secs(5), || sum.get() == 10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`BuildError::TooManyJobs`].
    pub fn on_sample(
        &self,
        mut value: T,
        mut callback: impl FnMut(Sample<&T>) + 'static,
    ) -> Result<(), BuildError>
    where
        T: 'static,
    {
        let core = Rc::downgrade(&self.core);
        let id = self.id;
        let callback = move || {
            let Some(core) = core.upgrade() else {
                return Progress::Stopped;
            };
            let info = {
                let mut state = core.state.borrow_mut();
                let Some(sample) = state.unexpired_sample(id, 0) else {
                    return Progress::Handled;
                };
                let info = sample.info;
                let decoded = match info.valid_data() {
                    true => decode(sample.payload, |payload| {
                        read_payload_into(payload, &mut value)
                    }),
                    false => Ok(()),
                };
                state.protocol.remove_oldest(id);
                if let Err((_, reason)) = decoded {
                    state.reject_delivered(id, info.writer, reason);
                    return Progress::Handled;
                }
                info
            };
            callback(Sample {
                value: info.valid_data().then_some(&value),
                info,
            });
            if info.valid_data() {
                let mut state = core.state.borrow_mut();
                state.note_response(id, info.received, monotonic_now);
            }
            Progress::Handled
        };
        let topic = (self.topic.as_str(), self.level);
        self.core.set_cache_callback(id, topic, Box::new(callback))
    }

    /// Returns the number of samples that can be taken.
    #[must_use]
    pub fn available(&self) -> usize {
        let mut state = self.core.state.borrow_mut();
        drop_expired(&mut state.protocol, self.id);
        let available = state.protocol.available(self.id);
        drop(state);
        if available == 0 {
            self.core.note_empty(&self.topic);
        }
        available
    }

    /// Runs the loop until a sample can be taken, and returns false if the timeout expired first.
    ///
    /// # Panics
    /// As [`Participant::run_for`](crate::Participant::run_for).
    pub fn wait(&self, timeout: Duration) -> bool {
        self.core.run_until(timeout, || self.available() > 0)
    }

    /// Takes the oldest sample, and runs the loop until there is one, up to the timeout.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Speed { metres_per_second: f32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let writer = participant.create_writer::<Speed>("Speed", &Qos::reliable())?;
    /// let reader = participant.create_reader::<Speed>("Speed", &Qos::reliable())?;
    /// writer.write(&Speed { metres_per_second: 3.5 })?;
    /// while let Some(sample) = reader.take_timeout(Duration::from_millis(10))? {
    ///     println!("{:?} m/s", sample.value.map(|speed| speed.metres_per_second));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`take`](Self::take).
    ///
    /// # Panics
    /// As [`Participant::run_for`](crate::Participant::run_for).
    pub fn take_timeout(&self, timeout: Duration) -> Result<Option<Sample<T>>, CdrError> {
        self.wait(timeout);
        self.take()
    }

    /// Takes the oldest sample (DDS 1.4 §2.2.2.5.3.9).
    ///
    /// # Errors
    /// The payload is not of the type, or exceeds its bounds. The sample is removed and counted as rejected.
    pub fn take(&self) -> Result<Option<Sample<T>>, CdrError> {
        let mut state = self.core.state.borrow_mut();
        let Some(sample) = state.unexpired_sample(self.id, 0) else {
            drop(state);
            self.core.note_empty(&self.topic);
            return Ok(None);
        };
        let info = sample.info;
        let value = info
            .valid_data()
            .then(|| decode(sample.payload, read_payload))
            .transpose();
        state.protocol.remove_oldest(self.id);
        match value {
            Ok(Some(_)) => state.note_response(self.id, info.received, monotonic_now),
            Ok(None) => {}
            Err((_, reason)) => state.reject_delivered(self.id, info.writer, reason),
        }
        let value = value.map_err(|(error, _)| error)?;
        Ok(Some(Sample { value, info }))
    }

    /// Takes the oldest sample into `value`, whose allocations are reused. `value` is unchanged if the returned info
    /// says that there is no value.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_into(&self, value: &mut T) -> Result<Option<SampleInfo>, CdrError> {
        let mut state = self.core.state.borrow_mut();
        let Some(sample) = state.unexpired_sample(self.id, 0) else {
            drop(state);
            self.core.note_empty(&self.topic);
            return Ok(None);
        };
        let info = sample.info;
        let decoded = match info.valid_data() {
            true => decode(sample.payload, |payload| read_payload_into(payload, value)),
            false => Ok(()),
        };
        state.protocol.remove_oldest(self.id);
        match decoded {
            Ok(()) if info.valid_data() => {
                state.note_response(self.id, info.received, monotonic_now);
            }
            Ok(()) => {}
            Err((_, reason)) => state.reject_delivered(self.id, info.writer, reason),
        }
        decoded.map_err(|(error, _)| error)?;
        Ok(Some(info))
    }

    /// Reads the `nth` sample, oldest first, without taking it (§2.2.2.5.3.8). The flag says if it was read before.
    ///
    /// # Errors
    /// The payload is not of the type, or exceeds its bounds. The sample stays until it is taken.
    pub fn read(&self, nth: usize) -> Result<Option<(Sample<T>, bool)>, CdrError> {
        let mut state = self.core.state.borrow_mut();
        let Some(sample) = state.unexpired_sample(self.id, nth) else {
            drop(state);
            self.core.note_empty(&self.topic);
            return Ok(None);
        };
        let info = sample.info;
        let was_read = info.sample_state == SampleState::Read;
        let value = info
            .valid_data()
            .then(|| read_payload(sample.payload))
            .transpose()?;
        state.protocol.mark_read(self.id, nth);
        Ok(Some((Sample { value, info }, was_read)))
    }

    /// Returns the number of matched writers.
    #[must_use]
    pub fn matched_writers(&self) -> usize {
        self.core.state.borrow().protocol.matched_writers(self.id)
    }

    /// Returns the last writer whose offered QoS is incompatible with this reader's request.
    #[must_use]
    pub fn incompatible(&self) -> Option<Incompatible> {
        let state = self.core.state.borrow();
        state.protocol.requested_incompatible(self.id)
    }

    /// Enables the reader: it is announced and matched. An enabled reader is unchanged.
    ///
    /// # Errors
    /// [`EnableError`]; nothing was changed then.
    pub fn enable(&self) -> Result<(), EnableError> {
        let mut state = self.core.state.borrow_mut();
        state.protocol.enable_reader(monotonic_now(), self.id)
    }

    /// Returns whether the reader is enabled. A disabled reader has no samples.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core.state.borrow().protocol.is_reader_enabled(self.id)
    }

    /// Returns the response deadline and its misses; `None` without a deadline.
    #[must_use]
    pub fn response_deadline(&self) -> Option<ResponseDeadline> {
        let state = self.core.state.borrow();
        state.reader_slots[self.id.index()].response.clone()
    }

    /// Returns the account of all received samples.
    #[must_use]
    pub fn ledger(&self) -> ReaderLedger {
        let state = self.core.state.borrow();
        state.protocol.reader_ledger(self.id).unwrap_or_default()
    }
}

impl<T: TopicType> Drop for DataReader<T> {
    fn drop(&mut self) {
        // The state may be borrowed if a panic inside a step unwinds.
        let Ok(mut borrowed) = self.core.state.try_borrow_mut() else {
            return;
        };
        let state = &mut *borrowed;
        state.protocol.delete_reader(monotonic_now(), self.id);
        let flow = std::mem::take(&mut state.reader_slots[self.id.index()].flow);
        state.close_reader_flow(&flow);
        let callbacks = (
            state.clear_reader_slot(self.id.index()),
            state.listeners.clear(
                &mut state.jobs,
                &mut state.executor,
                Endpoint::Reader(self.id),
            ),
        );
        drop(borrowed);
        // The callbacks may own writers, whose deletion borrows the state.
        drop(callbacks);
    }
}

/// Decodes a payload; an error includes the reason for SAMPLE_REJECTED.
#[inline]
pub(crate) fn decode<'a, V>(
    payload: &'a [u8],
    read: impl FnOnce(&'a [u8]) -> Result<V, CdrError>,
) -> Result<V, (CdrError, RejectReason)> {
    read(payload).map_err(|error| (error, RejectReason::of(error, payload)))
}

/// Removes samples whose LIFESPAN has expired.
pub(crate) fn drop_expired(protocol: &mut LocalParticipant, reader: ReaderId) {
    if protocol.may_expire(reader) {
        protocol.drop_expired(monotonic_now(), reader);
    }
}

/// Application's callback for views: payload and metadata. An error says why the payload was rejected.
type ViewCallback = Box<dyn FnMut(&[u8], &SampleInfo) -> Result<(), RejectReason>>;
/// Callback for one cached sample.
pub(crate) type CacheCallback = Box<dyn FnMut() -> Progress>;

/// Result of a callback for one cached sample.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The oldest sample was taken.
    Handled,
    /// The oldest sample stays until the callback is [resumed](Core::resume_callback).
    Stopped,
}

/// State of a reader outside the RTPS participant, in a table with the RTPS participant's reader indexes.
#[derive(Default)]
pub(crate) struct ReaderSlot {
    pub(crate) level: Level,
    /// Number of readers that have used this slot. It shows that a callback has outlived its reader, and does not
    /// belong to the next one.
    pub(crate) generation: u32,
    pub(crate) view: Option<ViewCallback>,
    pub(crate) cached: Option<CacheCallback>,
    pub(crate) job: Option<JobId>,
    /// Port and budget of a reader's datagrams.
    pub(crate) flow: ReaderFlow,
    pub(crate) response: Option<ResponseDeadline>,
    /// Latencies since the last snapshot, while somebody observes.
    pub(crate) latencies: Option<Box<LatencyHistogram>>,
    /// Housekeeping runs without a matched writer; `None` once the reader was matched or its application was warned.
    pub(crate) unmatched: Option<u8>,
}

/// Callbacks of a deleted reader. Drop them while the state is not borrowed.
pub(crate) type ReaderCallbacks = (Option<ViewCallback>, Option<CacheCallback>);

impl ReaderSlot {
    /// Clears the slot of a deleted reader. Returns its job, which is to be removed, and its callbacks.
    fn clear(&mut self) -> (Option<JobId>, ReaderCallbacks) {
        self.generation = self.generation.wrapping_add(1);
        (self.response, self.latencies, self.unmatched) = (None, None, None);
        (self.job.take(), (self.view.take(), self.cached.take()))
    }
}

/// Response deadline of a reader, and its misses ([`Qos::response_deadline`](crate::Qos::response_deadline)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseDeadline {
    /// Maximum time from a sample's arrival to the end of its callback, or until it is taken.
    pub deadline: Duration,
    /// Number of samples that took longer.
    pub missed: u64,
    /// Longest excess over the deadline; zero if none was missed.
    pub lateness_max: Duration,
    /// Job that ran when the last missed deadline expired. `None` if none was missed, if the loop slept, polled or was
    /// not run then, or if too many jobs have run since.
    pub missed_during: Option<Name>,
}

impl ResponseDeadline {
    pub(crate) fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            missed: 0,
            lateness_max: Duration::ZERO,
            missed_during: None,
        }
    }
}

impl State {
    /// Creates the slot of a new reader.
    pub(crate) fn make_reader_slot(&mut self, reader: ReaderId, level: Level) {
        let places = self.reader_slots.len().max(reader.index() + 1);
        self.reader_slots.resize_with(places, ReaderSlot::default);
        let slot = &mut self.reader_slots[reader.index()];
        slot.level = level;
        slot.unmatched = Some(0);
    }

    /// Clears the slot of a deleted reader and returns its callbacks.
    pub(crate) fn clear_reader_slot(&mut self, reader: usize) -> ReaderCallbacks {
        let (job, callbacks) = self.reader_slots[reader].clear();
        if let Some(job) = job {
            self.jobs.remove(&mut self.executor, job);
        }
        callbacks
    }

    /// Checks the deadline of a sample whose callback has ended, or that was taken, and records its latency if somebody
    /// observes. The sample arrived at `arrived`.
    #[inline]
    pub(crate) fn note_response(
        &mut self,
        reader: ReaderId,
        arrived: Instant,
        now: impl FnOnce() -> Instant,
    ) {
        let slot = &mut self.reader_slots[reader.index()];
        if slot.response.is_none() && slot.latencies.is_none() {
            return;
        }
        let now = now();
        if let Some(latencies) = &mut slot.latencies {
            latencies.record(arrived, now);
        }
        let Some(response) = &mut slot.response else {
            return;
        };
        let due = arrived + response.deadline;
        if now <= due {
            return;
        }
        response.missed += 1;
        let late_ns = now.as_nanos() - due.as_nanos();
        response.lateness_max = response.lateness_max.max(Duration::from_nanos(late_ns));
        let job = self
            .executor
            .running_at(due)
            .and_then(|job| self.executor.get(job));
        response.missed_during = job.map(|job| job.config.name.clone());
    }

    /// Returns the `nth` unexpired sample of a reader.
    fn unexpired_sample(&mut self, reader: ReaderId, nth: usize) -> Option<CachedSample<'_>> {
        drop_expired(&mut self.protocol, reader);
        self.listeners.note_access(reader);
        self.protocol.sample(reader, nth)
    }
}

/// Memory of a reassembled sample, lent by the RTPS participant during a callback. Dropping this value returns the
/// memory, even if the callback panics.
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

impl Core {
    /// Passes a view to its reader's callback, with the state released meanwhile. Returns the state, and the reader's
    /// level.
    #[inline]
    pub(crate) fn deliver_view<'a>(
        &'a self,
        mut state: RefMut<'a, State>,
        delivery: &Delivery,
        bytes: &[u8],
    ) -> (RefMut<'a, State>, Level) {
        let place = delivery.reader.index();
        let slot = &mut state.reader_slots[place];
        let (level, generation, mut callback) = (slot.level, slot.generation, slot.view.take());
        let lent = Lent::of(self, &mut state, delivery);
        drop(state);
        let without_callback = Err(RejectReason::NoCallback);
        let delivered = callback.as_mut().map_or(without_callback, |callback| {
            let bytes = lent.as_ref().map_or(bytes, Lent::bytes);
            callback(&bytes[delivery.payload.clone()], &delivery.info)
        });
        drop(lent);

        let mut state = self.state.borrow_mut();
        let slot = &mut state.reader_slots[place];
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
            // The reader is deleted or has another callback. The one that ran may own endpoints, whose deletion borrows
            // the state.
            drop(state);
            drop(callback);
            state = self.state.borrow_mut();
        }
        (state, level)
    }

    pub(crate) fn call_back(&self, now: Instant, reader: ReaderId, limit: usize) -> bool {
        let place = reader.index();
        let (generation, level, callback) = {
            let slot = &mut self.state.borrow_mut().reader_slots[place];
            (slot.generation, slot.level, slot.cached.take())
        };
        let Some(mut callback) = callback else {
            return false;
        };
        for handled in 1.. {
            let progress = callback();
            // Declared after the callback, so that the borrow ends before a removed callback is dropped.
            let mut state = self.state.borrow_mut();
            let slot = &mut state.reader_slots[place];
            if slot.generation != generation {
                return false;
            }
            let is_replaced = slot.cached.is_some();
            let is_done = progress == Progress::Stopped || state.protocol.available(reader) == 0;
            let bound = state.scheduling.bound_of(Lane::Level(level));
            if is_done || is_replaced || handled == limit || bound.is_over(now) {
                state.note_handled(handled);
                state.reader_slots[place].cached.get_or_insert(callback);
                return !is_done;
            }
        }
        false
    }

    /// Sets the callback for cached samples of a reader, and creates its job.
    pub(crate) fn set_cache_callback(
        &self,
        reader: ReaderId,
        (topic, level): (&str, Level),
        callback: CacheCallback,
    ) -> Result<(), BuildError> {
        let former = {
            let mut state = self.state.borrow_mut();
            let job = match state.reader_slots[reader.index()].job {
                Some(job) => job,
                None => {
                    let name = format!("callback {topic}");
                    let priority = Priority::of_data(level).get();
                    let config = JobConfig {
                        items: state.scheduling.callbacks_of_level(state.lanes, level),
                        ..JobConfig::event(&name, priority)
                    };
                    state.add_job(config, Task::Callback(reader))?
                }
            };
            let slot = &mut state.reader_slots[reader.index()];
            slot.job = Some(job);
            let former = slot.cached.replace(callback);
            if state.protocol.available(reader) > 0 {
                state.executor.activate(job, monotonic_now());
            }
            former
        };
        // The callback may own a writer, whose deletion borrows the state.
        drop(former);
        Ok(())
    }

    /// Makes the callback job of a reader ready, unless the reader was deleted.
    pub(crate) fn resume_callback(&self, reader: ReaderId, generation: u32) {
        let state = &mut *self.state.borrow_mut();
        let slot = &state.reader_slots[reader.index()];
        if slot.generation == generation
            && let Some(job) = slot.job
        {
            state.executor.activate(job, monotonic_now());
        }
    }

    /// Drops the callback for cached samples of a reader, unless the reader was deleted.
    pub(crate) fn remove_callback(&self, reader: ReaderId, generation: u32) {
        let removed = {
            let slot = &mut self.state.borrow_mut().reader_slots[reader.index()];
            (slot.generation == generation).then(|| slot.cached.take())
        };
        // The callback may own endpoints, whose deletion borrows the state.
        drop(removed);
    }
}
