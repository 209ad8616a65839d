//! Publishers and subscribers: writers, and readers, that share PRESENTATION, PARTITION and GROUP_DATA (DDS 1.4
//! §2.2.2.4.1, §2.2.2.5.2).
//!
//! An endpoint that a [`Participant`] creates is a group of its own. A group is needed for what is said of several
//! endpoints at once: coherent sets, which a publisher begins and ends, and an order over the samples of several
//! readers, in which a subscriber is looked at.

use std::{cell::RefCell, rc::Rc, time::Duration};

use isolane_datapath::clock::monotonic_now;
use isolane_engine::{CoherentError, DeliveryMode, Priority, PublisherId, ReaderId, SubscriberId};
use isolane_wire::{cdr::TopicType, level::Level, qos::QosPolicies};

use crate::{
    error::{BuildError, QosError},
    filter::Filter,
    limits::BURST,
    participant::{Participant, create_reader_of, create_writer_of},
    qos::Qos,
    reader::DataReader,
    runtime::Core,
    state::State,
    writer::{DataWriter, now},
};

/// A group of writers. A handle: its clones are the same publisher, which is there as long as one of them, or of
/// its writers, is.
///
/// ```
/// use std::time::Duration;
/// use isolane::{Network, Participant, PresentationAccessScope, Qos, TopicType};
///
/// #[derive(TopicType)]
/// struct Joint { #[topic(key)] number: u8, degrees: f32 }
///
/// let network = Network::new(1);
/// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
/// let together = Qos::reliable().presentation(PresentationAccessScope::Topic, true, false);
/// let qos = Qos::reliable().keep_all();
/// let arm = participant.create_publisher(&together)?;
/// let writer = arm.create_writer::<Joint>("Joints", &qos)?;
/// let reader = participant.create_subscriber(&together)?.create_reader::<Joint>("Joints", &qos)?;
///
/// arm.begin_coherent_changes()?;
/// for number in 0..6 {
///     writer.write(&Joint { number, degrees: 90.0 })?;
/// }
/// participant.run_for(Duration::from_millis(20));
/// assert_eq!(reader.available(), 0, "a posture is seen whole or not at all");
/// arm.end_coherent_changes()?;
/// assert!(participant.run_until(Duration::from_secs(5), || reader.available() == 6));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Publisher {
    group: Rc<PublisherGroup>,
}

struct PublisherGroup {
    core: Rc<Core>,
    id: PublisherId,
    qos: RefCell<Qos>,
}

impl Drop for PublisherGroup {
    fn drop(&mut self) {
        // While unwinding from a panic inside a step the state may be borrowed.
        if let Ok(mut state) = self.core.state.try_borrow_mut() {
            state.engine.delete_publisher(self.id);
        }
    }
}

/// A group of readers. A handle, as [`Publisher`].
#[derive(Clone)]
pub struct Subscriber {
    group: Rc<SubscriberGroup>,
}

struct SubscriberGroup {
    core: Rc<Core>,
    id: SubscriberId,
    qos: RefCell<Qos>,
}

impl Drop for SubscriberGroup {
    fn drop(&mut self) {
        if let Ok(mut state) = self.core.state.try_borrow_mut() {
            state.engine.delete_subscriber(self.id);
        }
    }
}

impl Participant {
    /// Creates a group of writers, which share [PRESENTATION](Qos::presentation), [PARTITION](Qos::partition) and
    /// [GROUP_DATA](Qos::group_data) of `qos`; what else it says has no effect.
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_publisher(&self, qos: &Qos) -> Result<Publisher, BuildError> {
        qos.check()?;
        let core = Rc::clone(self.core());
        let presentation = qos.policies.presentation;
        let id = core
            .state
            .borrow_mut()
            .engine
            .create_publisher(presentation)?;
        let qos = RefCell::new(qos.clone());
        Ok(Publisher {
            group: Rc::new(PublisherGroup { core, id, qos }),
        })
    }

    /// Creates a group of readers, as [`create_publisher`](Self::create_publisher).
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_subscriber(&self, qos: &Qos) -> Result<Subscriber, BuildError> {
        qos.check()?;
        let core = Rc::clone(self.core());
        let presentation = qos.policies.presentation;
        let id = core
            .state
            .borrow_mut()
            .engine
            .create_subscriber(presentation)?;
        let qos = RefCell::new(qos.clone());
        Ok(Subscriber {
            group: Rc::new(SubscriberGroup { core, id, qos }),
        })
    }
}

impl Qos {
    /// The same with what a group shares.
    fn in_group(&self, group: &Self) -> Self {
        let mut qos = self.clone();
        qos.policies = shared(&qos.policies, &group.policies);
        qos.excess_partition = group.excess_partition.clone();
        qos
    }
}

/// Policies of a member with what its group shares.
fn shared(member: &QosPolicies, group: &QosPolicies) -> QosPolicies {
    QosPolicies {
        presentation: group.presentation,
        partition: group.partition.clone(),
        group_data: group.group_data.clone(),
        ..member.clone()
    }
}

impl Publisher {
    /// Creates a writer of the group. What the group shares is the group's, whatever `qos` says.
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_writer<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
    ) -> Result<DataWriter<T>, BuildError> {
        let (qos, core) = (self.shared(qos), &self.group.core);
        let id = {
            let mut state = core.state.borrow_mut();
            create_writer_of::<T>(&mut state, topic, &qos, Some(self.group.id))?
        };
        let mut writer = DataWriter::new(Rc::clone(core), id, &qos, topic);
        writer.publisher = Some(self.clone());
        Ok(writer)
    }

    /// Policies of a writer as a member of the group.
    pub(crate) fn shared(&self, qos: &Qos) -> Qos {
        qos.in_group(&self.group.qos.borrow())
    }

    /// Begins a coherent set (DDS 1.4 §2.2.2.4.1.10): what the group's writers write until its
    /// [end](Self::end_coherent_changes) is seen whole or not at all by readers with coherent access; of INSTANCE
    /// and TOPIC scope what each writer writes by itself, of GROUP scope all of it together. Sets may lie within each other, and
    /// the outermost counts. Samples leave as they are written; readers hold them back. A set that a sample is
    /// missing of, because the history gave it up, or that is larger than a reader's
    /// [`max_samples`](Qos::max_samples), is dropped there and counted
    /// ([`ReaderLedger::incomplete`](crate::ReaderLedger)). So is one of GROUP scope where a writer that the reader is matched
    /// with is deleted, or dies, and what it wrote of it has not come; and the largest one where several that do not end fill what a
    /// reader has for sets for half a second. Where [PRESENTATION](Qos::presentation) is not coherent, it has no
    /// effect.
    ///
    /// # Errors
    /// [`CoherentError::TooDeep`].
    pub fn begin_coherent_changes(&self) -> Result<(), CoherentError> {
        let mut state = self.group.core.state.borrow_mut();
        state.engine.begin_coherent_changes(self.group.id)
    }

    /// Ends it (§2.2.2.4.1.11). The end takes a number and a place in the history of each writer that has a part in the
    /// set, of GROUP scope of each. Where there is none it waits for one, as a write does
    /// ([`Qos::max_blocking_time`], of the group's QoS).
    ///
    /// # Errors
    /// [`CoherentError`]; the set is open still then.
    pub fn end_coherent_changes(&self) -> Result<(), CoherentError> {
        let core = &self.group.core;
        let mut ended = self.try_end();
        let max_blocking: Duration = self.group.qos.borrow().max_blocking;
        if ended == Err(CoherentError::HistoryFull) && !max_blocking.is_zero() && !core.is_running()
        {
            core.run_until(max_blocking, || {
                ended = self.try_end();
                ended != Err(CoherentError::HistoryFull)
            });
        }
        ended
    }

    fn try_end(&self) -> Result<(), CoherentError> {
        let mut state = self.group.core.state.borrow_mut();
        let timestamp = now(&mut state);
        state
            .engine
            .end_coherent_changes(self.group.id, timestamp)?;
        self.send_ends(&mut state);
        Ok(())
    }

    /// Sends what the group's writers have filed, ends of sets last, a call of the datapath a level. Left to the jobs, the
    /// first end could wake a reader on the same core, which would run before the other ends have left.
    fn send_ends(&self, state: &mut State) {
        let mut levels = 0_u8;
        for nth in 0.. {
            let Some(writer) = state.engine.writer_in(self.group.id, nth) else {
                break;
            };
            if let Some(data) = state.engine.writer_data(writer) {
                levels |= 1 << Level::clamp(data.qos.transport_priority).get();
            }
        }
        for level in Level::ALL.into_iter().rev() {
            if levels & 1 << level.get() != 0 {
                state.work(monotonic_now(), Priority::of_data(level), BURST);
            }
        }
    }

    /// Changes PARTITION and GROUP_DATA of the group, and so of all its writers, which are announced again and matched
    /// anew.
    ///
    /// # Errors
    /// [`QosError`], with the first writer that cannot have it; those before it have it then.
    pub fn set_qos(&self, qos: &Qos) -> Result<(), QosError> {
        qos.check()?;
        let mut state = self.group.core.state.borrow_mut();
        let engine = &mut state.engine;
        for nth in 0.. {
            let Some(writer) = engine.writer_in(self.group.id, nth) else {
                break;
            };
            let Some(data) = engine.writer_data(writer) else {
                continue;
            };
            let policies = shared(&data.qos, &qos.policies);
            engine.set_writer_qos(monotonic_now(), writer, &policies)?;
        }
        *self.group.qos.borrow_mut() = qos.clone();
        Ok(())
    }
}

impl Subscriber {
    /// Creates a reader of the group. What the group shares is the group's, whatever `qos` says.
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_reader<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
    ) -> Result<DataReader<T>, BuildError> {
        self.reader_with(topic, qos, None)
    }

    /// The same with a content filter: see [`Participant::create_filtered_reader`]. What does not pass is in no set.
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_filtered_reader<T: TopicType + 'static>(
        &self,
        topic: &str,
        qos: &Qos,
        filter: Filter<T>,
    ) -> Result<DataReader<T>, BuildError> {
        self.reader_with(topic, qos, Some(filter.into_engine(topic)))
    }

    fn reader_with<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
        filter: Option<isolane_engine::ContentFilter>,
    ) -> Result<DataReader<T>, BuildError> {
        let group = Some(self.group.id);
        let qos = self.shared(qos);
        let core = &self.group.core;
        let mut reader = create_reader_of(core, topic, &qos, DeliveryMode::Cache, filter, group)?;
        reader.subscriber = Some(self.clone());
        Ok(reader)
    }

    /// Policies of a reader as a member of the group.
    pub(crate) fn shared(&self, qos: &Qos) -> Qos {
        qos.in_group(&self.group.qos.borrow())
    }

    /// Changes PARTITION and GROUP_DATA of the group, as [`Publisher::set_qos`].
    ///
    /// # Errors
    /// As [`Publisher::set_qos`].
    pub fn set_qos(&self, qos: &Qos) -> Result<(), QosError> {
        qos.check()?;
        let mut state = self.group.core.state.borrow_mut();
        let engine = &mut state.engine;
        for nth in 0.. {
            let Some(reader) = engine.reader_in(self.group.id, nth) else {
                break;
            };
            let Some(data) = engine.reader_data(reader) else {
                continue;
            };
            let policies = shared(&data.qos, &qos.policies);
            engine.set_reader_qos(monotonic_now(), reader, &policies)?;
        }
        *self.group.qos.borrow_mut() = qos.clone();
        Ok(())
    }

    /// Begins to look at the samples of all readers of the group together (§2.2.2.5.2.8): until the [`Access`] is
    /// dropped no set of GROUP scope and no sample in the order of a group is added to them, also if the loop runs
    /// meanwhile. It says which reader is to be looked at next for the order in which a publisher's writers wrote.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Network, Participant, PresentationAccessScope, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Step { number: u32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let in_order = Qos::reliable().presentation(PresentationAccessScope::Group, false, true);
    /// let qos = Qos::reliable().keep_all();
    /// let (publisher, subscriber) = (
    ///     participant.create_publisher(&in_order)?,
    ///     participant.create_subscriber(&in_order)?,
    /// );
    /// let writers = [
    ///     publisher.create_writer::<Step>("Left", &qos)?,
    ///     publisher.create_writer::<Step>("Right", &qos)?,
    /// ];
    /// let readers = [
    ///     subscriber.create_reader::<Step>("Left", &qos)?,
    ///     subscriber.create_reader::<Step>("Right", &qos)?,
    /// ];
    /// for (number, foot) in [1, 0, 0, 1].into_iter().enumerate() {
    ///     writers[foot].write(&Step { number: number as u32 })?;
    /// }
    /// let is_there = || readers[0].available() + readers[1].available() == 4;
    /// assert!(participant.run_until(Duration::from_secs(5), is_there));
    ///
    /// let access = subscriber.begin_access();
    /// let mut walk = Vec::new();
    /// while let Some(next) = readers.iter().find(|reader| access.is_next(reader)) {
    ///     walk.extend(next.take()?.and_then(|step| step.value).map(|step| step.number));
    /// }
    /// assert_eq!(walk, [0, 1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_access(&self) -> Access {
        let has_begun = self
            .group
            .core
            .state
            .borrow_mut()
            .engine
            .begin_access(self.group.id);
        Access {
            group: Rc::clone(&self.group),
            has_begun,
        }
    }
}

/// The time in which the samples of a subscriber are looked at: see [`Subscriber::begin_access`]. It ends when this
/// is dropped (§2.2.2.5.2.9); of several within each other, with the first.
#[must_use = "dropping it ends the access"]
pub struct Access {
    group: Rc<SubscriberGroup>,
    has_begun: bool,
}

impl Access {
    /// Whether the oldest sample of a reader is the next one in the order of the group. Of a group whose access is
    /// not ordered, each reader with a sample is next in its turn.
    #[must_use]
    pub fn is_next<T: TopicType>(&self, reader: &DataReader<T>) -> bool {
        self.next() == Some(reader.id)
    }

    fn next(&self) -> Option<ReaderId> {
        let state = self.group.core.state.borrow();
        state.engine.next_in_order(self.group.id)
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        if self.has_begun
            && let Ok(mut state) = self.group.core.state.try_borrow_mut()
        {
            state.engine.end_access(self.group.id);
        }
    }
}
