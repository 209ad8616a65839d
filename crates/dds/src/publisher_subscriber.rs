//! Publishers and subscribers: groups of writers or readers that share PRESENTATION, PARTITION and GROUP_DATA (DDS 1.4
//! §2.2.2.4.1, §2.2.2.5.2).
//!
//! An endpoint created by a [`Participant`] is a group by itself. Larger groups are for coherent sets of several
//! writers, and for ordered access to the samples of several readers.

use std::{cell::RefCell, rc::Rc, time::Duration};

use isolane_datapath::clock::monotonic_now;
use isolane_rtps::{CoherentError, DeliveryMode, Priority, PublisherId, ReaderId, SubscriberId};
use isolane_wire::{cdr::TopicType, level::Level, qos::QosPolicies};

use crate::{
    error::{BuildError, QosError},
    filter::Filter,
    limits::BURST,
    participant::event_loop::{BurstBound, Core},
    participant::state::State,
    participant::{Participant, create_reader_of, create_writer_of},
    qos::Qos,
    reader::DataReader,
    writer::{DataWriter, now},
};

/// Publisher (DDS 1.4 §2.2.2.4.1): a group of writers. Clones are handles to the same publisher. The publisher exists
/// as long as one handle or one of its writers.
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

/// Subscriber (DDS 1.4 §2.2.2.5.2): a group of readers. A handle like [`Publisher`].
#[derive(Clone)]
pub struct Subscriber {
    group: Rc<SubscriberGroup>,
}

/// Generates a group's handle: creation, QoS of the members, changes of that QoS, deletion with the last handle.
macro_rules! group {
    (
        $Handle:ident $Group:ident $Id:ident,
        create: $(#[$create_doc:meta])* $create:ident, delete: $delete:ident,
        members: $member_in:ident, member_data: $member_data:ident,
        set_qos: $(#[$set_qos_doc:meta])* by $set_member_qos:ident
    ) => {
        struct $Group {
            core: Rc<Core>,
            id: $Id,
            qos: RefCell<Qos>,
        }

        impl Drop for $Group {
            fn drop(&mut self) {
                // The state may be borrowed if a panic inside a step unwinds.
                if let Ok(mut state) = self.core.state.try_borrow_mut() {
                    state.protocol.$delete(self.id);
                }
            }
        }

        impl Participant {
            $(#[$create_doc])*
            ///
            /// # Errors
            /// [`BuildError`]; nothing was created then.
            pub fn $create(&self, qos: &Qos) -> Result<$Handle, BuildError> {
                qos.check()?;
                let core = Rc::clone(self.core());
                let presentation = qos.policies.presentation;
                let id = core.state.borrow_mut().protocol.$create(presentation)?;
                let qos = RefCell::new(qos.clone());
                Ok($Handle { group: Rc::new($Group { core, id, qos }) })
            }
        }

        impl $Handle {
            /// Returns a copy with the policies of the group.
            pub(crate) fn shared(&self, qos: &Qos) -> Qos {
                let group = self.group.qos.borrow();
                let mut qos = qos.clone();
                qos.policies = shared(&qos.policies, &group.policies);
                qos.excess_partition = group.excess_partition.clone();
                qos
            }

            $(#[$set_qos_doc])*
            pub fn set_qos(&self, qos: &Qos) -> Result<(), QosError> {
                qos.check()?;
                let protocol = &mut self.group.core.state.borrow_mut().protocol;
                let mut nth = 0;
                while let Some(member) = protocol.$member_in(self.group.id, nth) {
                    nth += 1;
                    if let Some(data) = protocol.$member_data(member) {
                        let policies = shared(&data.qos, &qos.policies);
                        protocol.$set_member_qos(monotonic_now(), member, &policies)?;
                    }
                }
                *self.group.qos.borrow_mut() = qos.clone();
                Ok(())
            }
        }
    };
}

group! {
    Publisher PublisherGroup PublisherId,
    create:
    /// Creates a publisher with [PRESENTATION](Qos::presentation), [PARTITION](Qos::partition) and
    /// [GROUP_DATA](Qos::group_data) of `qos`; its other policies have no effect.
    create_publisher, delete: delete_publisher, members: writer_in, member_data: writer_data,
    set_qos:
    /// Changes PARTITION and GROUP_DATA of the publisher and all its writers, which are announced and matched again.
    ///
    /// # Errors
    /// [`QosError`] of the first writer that refuses the change; the writers before it are changed.
    by set_writer_qos
}

group! {
    Subscriber SubscriberGroup SubscriberId,
    create:
    /// Creates a subscriber from the same policies of `qos` as [`create_publisher`](Self::create_publisher).
    create_subscriber, delete: delete_subscriber, members: reader_in, member_data: reader_data,
    set_qos:
    /// Changes PARTITION and GROUP_DATA of the subscriber, as [`Publisher::set_qos`].
    ///
    /// # Errors
    /// As [`Publisher::set_qos`].
    by set_reader_qos
}

/// Returns a member's policies, with PRESENTATION, PARTITION and GROUP_DATA of its group.
fn shared(member: &QosPolicies, group: &QosPolicies) -> QosPolicies {
    QosPolicies {
        presentation: group.presentation,
        partition: group.partition.clone(),
        group_data: group.group_data.clone(),
        ..member.clone()
    }
}

impl Publisher {
    /// Creates a writer in the publisher. The publisher's PRESENTATION, PARTITION and GROUP_DATA replace those of
    /// `qos`.
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

    /// Begins a coherent set (DDS 1.4 §2.2.2.4.1.10). Readers with coherent access receive the samples written until
    /// its [end](Self::end_coherent_changes) as a whole or not at all.
    ///
    /// With INSTANCE and TOPIC scope each writer has a set; with GROUP scope one set spans all writers. Sets may be
    /// nested, and the outermost counts. Samples are sent when they are written, and readers hold them until the set
    /// is complete. Without coherent [PRESENTATION](Qos::presentation) the call has no effect.
    ///
    /// A reader drops an incomplete set and counts it ([`ReaderLedger::incomplete`](crate::ReaderLedger)) in these
    /// cases:
    /// - a sample is missing because the writer's history no longer has it;
    /// - the set exceeds the reader's [`max_samples`](Qos::max_samples);
    /// - in GROUP scope, a matched writer is deleted or lost before its part of the set has arrived;
    /// - unfinished sets have filled the reader's memory for sets for half a second; then the largest set is dropped.
    ///
    /// # Errors
    /// [`CoherentError::TooDeep`].
    pub fn begin_coherent_changes(&self) -> Result<(), CoherentError> {
        let mut state = self.group.core.state.borrow_mut();
        state.protocol.begin_coherent_changes(self.group.id)
    }

    /// Ends a coherent set (§2.2.2.4.1.11).
    ///
    /// The end takes a sequence number and a history slot of each writer with samples in the set, or, with GROUP scope,
    /// of every writer. If there is no room, the call waits like a write ([`Qos::max_blocking_time`] of the publisher's
    /// QoS).
    ///
    /// # Errors
    /// [`CoherentError`]; the set stays open then.
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
        let timestamp = now(&mut state.protocol);
        state
            .protocol
            .end_coherent_changes(self.group.id, timestamp)?;
        self.send_ends(&mut state);
        Ok(())
    }

    /// Sends the queued samples of the group's writers and the ends of their sets, with one call of the datapath per
    /// level. If jobs sent them, the first end could wake a reader on the same core, and the reader would run before
    /// the other ends are sent.
    fn send_ends(&self, state: &mut State) {
        let mut levels = 0_u8;
        for nth in 0.. {
            let Some(writer) = state.protocol.writer_in(self.group.id, nth) else {
                break;
            };
            if let Some(data) = state.protocol.writer_data(writer) {
                levels |= 1 << Level::clamp(data.qos.transport_priority).get();
            }
        }
        for level in Level::ALL.into_iter().rev() {
            if levels & 1 << level.get() != 0 {
                let bound = Some(BurstBound::LARGEST);
                state.work(monotonic_now(), Priority::of_data(level), BURST, bound);
            }
        }
    }
}

impl Subscriber {
    /// Creates a reader in the subscriber. The subscriber's PRESENTATION, PARTITION and GROUP_DATA replace those of
    /// `qos`.
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

    /// Creates a reader with a content filter in the subscriber: see [`Participant::create_filtered_reader`]. Samples
    /// that do not pass belong to no coherent set.
    ///
    /// # Errors
    /// [`BuildError`]; nothing was created then.
    pub fn create_filtered_reader<T: TopicType + 'static>(
        &self,
        topic: &str,
        qos: &Qos,
        filter: Filter<T>,
    ) -> Result<DataReader<T>, BuildError> {
        self.reader_with(topic, qos, Some(filter.into_protocol(topic)))
    }

    fn reader_with<T: TopicType>(
        &self,
        topic: &str,
        qos: &Qos,
        filter: Option<isolane_rtps::ContentFilter>,
    ) -> Result<DataReader<T>, BuildError> {
        let group = Some(self.group.id);
        let qos = self.shared(qos);
        let core = &self.group.core;
        let mut reader = create_reader_of(core, topic, &qos, DeliveryMode::Cache, filter, group)?;
        reader.subscriber = Some(self.clone());
        Ok(reader)
    }

    /// Begins access to the samples of all readers of the subscriber (§2.2.2.5.2.8).
    ///
    /// Until the [`Access`] is dropped, no coherent set of GROUP scope and no sample in group order becomes available,
    /// even if the loop runs. The [`Access`] tells which reader to take from next, in the order in which the
    /// publisher's writers wrote.
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
            .protocol
            .begin_access(self.group.id);
        Access {
            group: Rc::clone(&self.group),
            has_begun,
        }
    }
}

/// Access to the samples of a subscriber: see [`Subscriber::begin_access`]. Dropping it ends the access (§2.2.2.5.2.9).
/// If accesses are nested, only the first one ends it.
#[must_use = "dropping it ends the access"]
pub struct Access {
    group: Rc<SubscriberGroup>,
    has_begun: bool,
}

impl Access {
    /// Returns whether the oldest sample of a reader is the next one in the order of the group. Without ordered access,
    /// the first reader that has samples is next.
    #[must_use]
    pub fn is_next<T: TopicType>(&self, reader: &DataReader<T>) -> bool {
        self.next() == Some(reader.id)
    }

    fn next(&self) -> Option<ReaderId> {
        let state = self.group.core.state.borrow();
        state.protocol.next_in_order(self.group.id)
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        if self.has_begun
            && let Ok(mut state) = self.group.core.state.try_borrow_mut()
        {
            state.protocol.end_access(self.group.id);
        }
    }
}
