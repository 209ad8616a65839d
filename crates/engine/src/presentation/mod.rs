//! PRESENTATION (DDS 1.4 §2.2.3.6): which samples are seen together, and in which order.
//!
//! **Who belongs together.** A [`Publisher`] is a group of writers, a [`Subscriber`] one of readers, both of this
//! participant; writers announce theirs, so that readers know which of them write together. An endpoint that is
//! created by itself is a group of its own.
//!
//! **On the way out** ([`publishing`]): between the begin and the end of a coherent set each sample carries the
//! number of the set's first one, and the end is a sample without a payload (RTPS 2.5 §8.7.6). With GROUP access
//! a sample has a number among all samples of its publisher, too, and HEARTBEATs say how far those are
//! (§8.7.5). Every writer of a publisher with GROUP access ends every set, also one it had no part in: so
//! readers need not know who had.
//!
//! **On the way in** all samples of a reader that asks for more than each instance by itself wait for their turn,
//! among those that wait for others ([`progress`]). A sample of a set is then *held*, in slots set aside for
//! that, until its set has ended at every writer of the group ([`circle`]), and shown with it, or dropped with it where
//! anything of it is missing ([`showing`]), or where there is no room for it ([`giving_up`]). A sample for which an order
//! over several writers is asked stays where it waits, and is not acknowledged, until each of the others is known
//! to have nothing before it: by a later sample, or by a HEARTBEAT, for which the reader asks ([`asking`]).
//!
//! Endpoints that ask for none of that have none of it: their samples pay a comparison.

mod asking;
mod circle;
mod giving_up;
mod looking;
mod membership;
mod progress;
mod publishing;
mod showing;

use alloc::vec::Vec;

use isolane_wire::{
    guid::{EntityId, EntityKind},
    qos::{Presentation, PresentationAccessScope, QosPolicies, ReliabilityKind},
    rtps::{GroupDigest, group_digest},
    sequence::SequenceNumber,
    time::Instant,
};

pub use self::publishing::CoherentError;
pub(crate) use self::{
    progress::{Progress, Turn, admit, keep_in_turn, note_place},
    publishing::{WriterPresents, head_of},
};
use crate::{
    content_filter::ContentFilter,
    endpoints::{CreateError, EndpointConfig},
    engine::Engine,
    ids::{PublisherId, ReaderId, SubscriberId, WriterId},
    limits::MAX_GROUPS,
    reader::DeliveryMode,
};

/// What an access scope asks for beyond what each instance, and each writer, does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    /// Sets are seen whole or not at all.
    pub(crate) is_coherent: bool,
    /// Among all writers of a publisher; else among the samples of each.
    pub(crate) is_group: bool,
    /// Samples are seen in the order in which the publisher's writers wrote them.
    pub(crate) is_ordered: bool,
}

impl Access {
    /// `None`: nothing. Samples of one writer are in their order always.
    ///
    /// A coherent set of INSTANCE scope is one of TOPIC scope: each writer's part is seen whole. By DDS 1.4 §2.2.3.6 a
    /// set has no effect there, since changes of several instances are independent; other implementations show it
    /// whole all the same, and programs that run with them rely on that. A reader that sees more together than it asks
    /// for still gets what the standard promises.
    pub(crate) fn of(presentation: &Presentation) -> Option<Self> {
        let is_group = presentation.access_scope == PresentationAccessScope::Group;
        let is_ordered = presentation.ordered && is_group;
        (presentation.coherent || is_ordered).then_some(Self {
            is_coherent: presentation.coherent,
            is_group,
            is_ordered,
        })
    }

    /// The access of an endpoint that is to be created. Of INSTANCE scope a best-effort one has no sets.
    pub(crate) fn of_new(qos: &QosPolicies) -> Result<Option<Self>, CreateError> {
        let access = Self::of(&qos.presentation);
        let is_instance = qos.presentation.access_scope == PresentationAccessScope::Instance;
        match qos.reliability.kind {
            ReliabilityKind::BestEffort if is_instance => Ok(None),
            ReliabilityKind::BestEffort if access.is_some() => {
                Err(CreateError::PresentationNeedsReliable)
            }
            _ => Ok(access),
        }
    }
}

/// A group of writers.
#[derive(Debug)]
pub(crate) struct Publisher {
    entity: EntityId,
    presentation: Presentation,
    writers: Vec<u16>,
    digest: GroupDigest,
    /// Sets that were begun and not ended, one within the other: the outermost counts.
    nested: u32,
    /// The last number that one of its samples has got.
    sequence: SequenceNumber,
    /// The number of the first sample of the set that is open, if it has one.
    set: Option<SequenceNumber>,
    /// A writer with a part in the open set is gone.
    is_torn: bool,
}

/// A group of readers.
#[derive(Debug)]
pub(crate) struct Subscriber {
    entity: EntityId,
    presentation: Presentation,
    readers: Vec<u16>,
    /// Its user looks at samples: none is shown meanwhile.
    is_accessed: bool,
}

impl Engine {
    /// Creates a group of writers, which share this policy (DDS 1.4 §2.2.2.4.1).
    ///
    /// # Errors
    /// [`CreateError::TooManyGroups`].
    pub fn create_publisher(
        &mut self,
        presentation: Presentation,
    ) -> Result<PublisherId, CreateError> {
        let entity = self.next_entity(EntityKind::WRITER_GROUP);
        let publisher = Publisher {
            entity,
            presentation,
            writers: Vec::with_capacity(usize::from(self.config.limits.local_endpoints)),
            digest: group_digest([].into_iter()),
            nested: 0,
            sequence: SequenceNumber(0),
            set: None,
            is_torn: false,
        };
        let inserted = self.publishers.insert(publisher);
        let index = inserted.map_err(|_| CreateError::TooManyGroups(MAX_GROUPS))?;
        Ok(PublisherId(index))
    }

    /// Creates a group of readers, which share this policy (DDS 1.4 §2.2.2.5.2).
    ///
    /// # Errors
    /// [`CreateError::TooManyGroups`].
    pub fn create_subscriber(
        &mut self,
        presentation: Presentation,
    ) -> Result<SubscriberId, CreateError> {
        let entity = self.next_entity(EntityKind::READER_GROUP);
        let subscriber = Subscriber {
            entity,
            presentation,
            readers: Vec::with_capacity(usize::from(self.config.limits.local_endpoints)),
            is_accessed: false,
        };
        let inserted = self.subscribers.insert(subscriber);
        let index = inserted.map_err(|_| CreateError::TooManyGroups(MAX_GROUPS))?;
        Ok(SubscriberId(index))
    }

    /// Deletes a group whose writers are deleted; false: it has some, or was deleted before.
    pub fn delete_publisher(&mut self, id: PublisherId) -> bool {
        let found = self.publishers.get(id.0);
        let is_empty = found.is_some_and(|publisher| publisher.writers.is_empty());
        is_empty && self.publishers.remove(id.0).is_some()
    }

    /// Deletes a group whose readers are deleted; false: it has some, or was deleted before.
    pub fn delete_subscriber(&mut self, id: SubscriberId) -> bool {
        let found = self.subscribers.get(id.0);
        let is_empty = found.is_some_and(|subscriber| subscriber.readers.is_empty());
        is_empty && self.subscribers.remove(id.0).is_some()
    }

    /// Creates a writer of a group, with the group's PRESENTATION.
    ///
    /// # Errors
    /// As of [`create_writer`](Self::create_writer); [`CreateError::NoSuchGroup`].
    pub fn create_writer_in(
        &mut self,
        now: Instant,
        id: PublisherId,
        config: &EndpointConfig<'_>,
    ) -> Result<WriterId, CreateError> {
        let publisher = self.publishers.get(id.0).ok_or(CreateError::NoSuchGroup)?;
        let (mut config, group) = (config.clone(), publisher.entity);
        config.qos.presentation = publisher.presentation;
        let writer = self.create_writer_with(now, &config, Some((id.0, group)))?;
        self.join_publisher(id.0, writer.0);
        Ok(writer)
    }

    /// Creates a reader of a group, with the group's PRESENTATION, and with a filter if there is one.
    ///
    /// # Errors
    /// As of [`create_reader`](Self::create_reader); [`CreateError::NoSuchGroup`].
    pub fn create_reader_in(
        &mut self,
        now: Instant,
        id: SubscriberId,
        config: &EndpointConfig<'_>,
        filter: Option<ContentFilter>,
    ) -> Result<ReaderId, CreateError> {
        let subscriber = self.subscribers.get(id.0).ok_or(CreateError::NoSuchGroup)?;
        let (mut config, group) = (config.clone(), subscriber.entity);
        config.qos.presentation = subscriber.presentation;
        let group = Some((id.0, group));
        let reader = self.create_reader_with(now, &config, DeliveryMode::Cache, filter, group)?;
        if let Some(subscriber) = self.subscribers.get_mut(id.0) {
            subscriber.readers.push(reader.0);
        }
        Ok(reader)
    }

    /// The `nth` writer of a group.
    #[must_use]
    pub fn writer_in(&self, id: PublisherId, nth: usize) -> Option<WriterId> {
        let writer = self.publishers.get(id.0)?.writers.get(nth)?;
        Some(WriterId(*writer))
    }

    /// The `nth` reader of a group.
    #[must_use]
    pub fn reader_in(&self, id: SubscriberId, nth: usize) -> Option<ReaderId> {
        let reader = self.subscribers.get(id.0)?.readers.get(nth)?;
        Some(ReaderId(*reader))
    }

    /// A reader goes from its group.
    pub(crate) fn leave_subscriber(&mut self, reader: u16) {
        let group = self.readers.get(reader).and_then(|it| it.subscriber);
        if let Some(subscriber) = group.and_then(|group| self.subscribers.get_mut(group)) {
            subscriber.readers.retain(|&other| other != reader);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scopes_beyond_an_instance_ask_for_anything() {
        let access = |access_scope, coherent, ordered| {
            Access::of(&Presentation {
                access_scope,
                coherent,
                ordered,
            })
        };
        use PresentationAccessScope::{Group, Instance, Topic};
        assert_eq!(access(Instance, false, true), None);
        assert_eq!(access(Instance, true, true), access(Topic, true, true));
        assert_eq!(access(Topic, false, true), None, "as it is anyway");
        assert_eq!(access(Group, false, false), None);
        assert!(access(Topic, true, true).is_some_and(|it| it.is_coherent && !it.is_ordered));
        assert!(access(Group, false, true).is_some_and(|it| !it.is_coherent && it.is_ordered));
    }
}
