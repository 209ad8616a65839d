//! PRESENTATION (DDS 1.4 §2.2.3.6): coherent and ordered access.
//!
//! **Groups.** A [`Publisher`] is a group of local writers, a [`Subscriber`] a group of local readers. Writers announce
//! their group, so readers know which writers belong together. An endpoint created without a group is a group by
//! itself.
//!
//! **Writer side** ([`publisher`]): each sample of a coherent set carries the number of the set's first sample; the end
//! of the set is a DATA without payload (RTPS 2.5 §8.7.6). With GROUP access a sample also has a sequence number in its
//! publisher, and HEARTBEATs carry the current group number (§8.7.5). Every writer of a publisher with GROUP access
//! ends every set, even a set without samples of that writer. So readers need not know which writers have samples in
//! the set.
//!
//! **Reader side.** A reader with coherent or ordered access admits the samples of each writer one by one
//! ([`progress`]). A sample of a set is then *held* in a reserved slot until its set has ended at every writer of the
//! group ([`coherent_group`]). The set is made available as a whole ([`group_delivery`]), or dropped if a part is
//! missing or there is no room ([`incomplete_sets`]). With ordered GROUP access a sample stays waiting and
//! unacknowledged until no other writer can have an earlier sample. A later sample of the other writer shows this, or
//! its HEARTBEAT, which the reader requests ([`heartbeat_request`]).
//!
//! For endpoints without coherent or ordered access, the cost is one comparison per sample.
//!
//! The user accesses a group of readers between *begin_access* and *end_access*, in the order of their samples.

mod coherent_group;
mod group_delivery;
mod heartbeat_request;
mod incomplete_sets;
mod progress;
mod publisher;

use alloc::vec::Vec;

use isolane_wire::{
    guid::{EntityId, EntityKind},
    message::{CoherentSetInfo, Data, GroupDigest, group_digest},
    qos::{Presentation, PresentationAccessScope, QosPolicies, ReliabilityKind},
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use crate::{
    content_filter::ContentFilter,
    limits::MAX_GROUPS,
    participant::{
        Facts, LocalParticipant, Shared,
        local_endpoints::{CreateError, EndpointConfig},
    },
    reader::{DeliveryMode, Readers, cache::Cache, read_take::SampleInfo},
    slab::{PublisherId, ReaderId, SubscriberId, WriterId, WriterProxyId},
    writer::history::ChangeKind,
};

pub use self::publisher::CoherentError;

pub(crate) use self::{
    progress::{Admission, Progress, admit, keep_in_turn, note_place},
    publisher::{WriterPresents, head_of},
};

/// Effect of PRESENTATION beyond the order of each writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    /// Sets are available as a whole or not at all.
    pub(crate) is_coherent: bool,
    /// Access scope GROUP: all writers of a publisher; otherwise each writer by itself.
    pub(crate) is_group: bool,
    /// Samples become available in the order of writing across the publisher's writers.
    pub(crate) is_ordered: bool,
}

impl Access {
    /// Derives the access from PRESENTATION. `None` if each writer's order suffices.
    ///
    /// A coherent set of INSTANCE scope is treated like one of TOPIC scope: each writer's part is available as a whole.
    /// By DDS 1.4 §2.2.3.6 a set has no effect in INSTANCE scope, because changes of several instances are independent.
    /// Other implementations still present the set as a whole, and programs rely on this. It also satisfies the
    /// standard.
    pub(crate) fn of(presentation: &Presentation) -> Option<Self> {
        let is_group = presentation.access_scope == PresentationAccessScope::Group;
        let is_ordered = presentation.ordered && is_group;
        (presentation.coherent || is_ordered).then_some(Self {
            is_coherent: presentation.coherent,
            is_group,
            is_ordered,
        })
    }

    /// Derives the access of a new endpoint. A best-effort endpoint of INSTANCE scope has no sets.
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

/// Group of local writers.
#[derive(Debug)]
pub(crate) struct Publisher {
    entity: EntityId,
    presentation: Presentation,
    writers: Vec<WriterId>,
    digest: GroupDigest,
    /// Depth of nested coherent sets; the outermost one counts.
    nested: u32,
    /// Last group sequence number given to a sample.
    sequence: SequenceNumber,
    /// Group sequence number of the first sample of the open set, if it has one.
    set: Option<SequenceNumber>,
    /// A writer with a part in the open set was deleted.
    is_incomplete: bool,
}

/// Group of local readers.
#[derive(Debug)]
pub(crate) struct Subscriber {
    entity: EntityId,
    presentation: Presentation,
    readers: Vec<ReaderId>,
    /// True between `begin_access` and `end_access`: no sample becomes available.
    is_accessed: bool,
}

impl LocalParticipant {
    /// Creates a group of writers that share this PRESENTATION policy (DDS 1.4 §2.2.2.4.1).
    ///
    /// # Errors
    /// [`CreateError::TooManyGroups`].
    pub fn create_publisher(
        &mut self,
        presentation: Presentation,
    ) -> Result<PublisherId, CreateError> {
        let entity = self.shared.next_entity(EntityKind::WRITER_GROUP);
        let publisher = Publisher {
            entity,
            presentation,
            writers: Vec::with_capacity(usize::from(self.shared.config.limits.local_endpoints)),
            digest: group_digest([].into_iter()),
            nested: 0,
            sequence: SequenceNumber(0),
            set: None,
            is_incomplete: false,
        };
        let inserted = self.writers.publishers.insert(publisher);
        let index = inserted.map_err(|_| CreateError::TooManyGroups(MAX_GROUPS))?;
        Ok(index)
    }

    /// Creates a group of readers that share this PRESENTATION policy (DDS 1.4 §2.2.2.5.2).
    ///
    /// # Errors
    /// [`CreateError::TooManyGroups`].
    pub fn create_subscriber(
        &mut self,
        presentation: Presentation,
    ) -> Result<SubscriberId, CreateError> {
        let entity = self.shared.next_entity(EntityKind::READER_GROUP);
        let subscriber = Subscriber {
            entity,
            presentation,
            readers: Vec::with_capacity(usize::from(self.shared.config.limits.local_endpoints)),
            is_accessed: false,
        };
        let inserted = self.readers.subscribers.insert(subscriber);
        let index = inserted.map_err(|_| CreateError::TooManyGroups(MAX_GROUPS))?;
        Ok(index)
    }

    /// Deletes an empty group of writers; returns false if it has writers or does not exist.
    pub fn delete_publisher(&mut self, id: PublisherId) -> bool {
        let found = self.writers.publishers.get(id);
        let is_empty = found.is_some_and(|publisher| publisher.writers.is_empty());
        is_empty && self.writers.publishers.remove(id).is_some()
    }

    /// Deletes an empty group of readers; returns false if it has readers or does not exist.
    pub fn delete_subscriber(&mut self, id: SubscriberId) -> bool {
        let found = self.readers.subscribers.get(id);
        let is_empty = found.is_some_and(|subscriber| subscriber.readers.is_empty());
        is_empty && self.readers.subscribers.remove(id).is_some()
    }

    /// Creates a writer in a group, with the group's PRESENTATION.
    ///
    /// # Errors
    /// Errors of [`create_writer`](LocalParticipant::create_writer), and [`CreateError::NoSuchGroup`].
    pub fn create_writer_in(
        &mut self,
        now: Instant,
        id: PublisherId,
        config: &EndpointConfig<'_>,
    ) -> Result<WriterId, CreateError> {
        let publisher = self
            .writers
            .publishers
            .get(id)
            .ok_or(CreateError::NoSuchGroup)?;
        let (mut config, group) = (config.clone(), publisher.entity);
        config.qos.presentation = publisher.presentation;
        let writer = self.create_writer_with(now, &config, Some((id, group)))?;
        self.writers.join_publisher(id, writer);
        Ok(writer)
    }

    /// Creates a reader in a group, with the group's PRESENTATION and an optional filter.
    ///
    /// # Errors
    /// Errors of [`create_reader`](LocalParticipant::create_reader), and [`CreateError::NoSuchGroup`].
    pub fn create_reader_in(
        &mut self,
        now: Instant,
        id: SubscriberId,
        config: &EndpointConfig<'_>,
        filter: Option<ContentFilter>,
    ) -> Result<ReaderId, CreateError> {
        let subscriber = self
            .readers
            .subscribers
            .get(id)
            .ok_or(CreateError::NoSuchGroup)?;
        let (mut config, group) = (config.clone(), subscriber.entity);
        config.qos.presentation = subscriber.presentation;
        let group = Some((id, group));
        let reader = self.create_reader_with(now, &config, DeliveryMode::Cache, filter, group)?;
        if let Some(subscriber) = self.readers.subscribers.get_mut(id) {
            subscriber.readers.push(reader);
        }
        Ok(reader)
    }

    /// Returns the `nth` writer of a group.
    #[must_use]
    pub fn writer_in(&self, id: PublisherId, nth: usize) -> Option<WriterId> {
        let writer = self.writers.publishers.get(id)?.writers.get(nth)?;
        Some(*writer)
    }

    /// Returns the `nth` reader of a group.
    #[must_use]
    pub fn reader_in(&self, id: SubscriberId, nth: usize) -> Option<ReaderId> {
        let reader = self.readers.subscribers.get(id)?.readers.get(nth)?;
        Some(*reader)
    }
}

impl Readers {
    pub(crate) fn leave_subscriber(&mut self, reader: ReaderId) {
        let group = self.table.get(reader).and_then(|it| it.subscriber);
        if let Some(subscriber) = group.and_then(|group| self.subscribers.get_mut(group)) {
            subscriber.readers.retain(|&other| other != reader);
        }
    }
}

impl LocalParticipant {
    /// Returns the reader of a group with the first available sample (DDS 1.4 §2.2.2.5.2.10). With ordered GROUP
    /// access, this is the sample that a publisher wrote first.
    #[must_use]
    pub fn next_in_order(&self, id: SubscriberId) -> Option<ReaderId> {
        let readers = self.readers.subscribers.get(id)?.readers.iter();
        let first =
            |&reader: &ReaderId| Some((self.readers.cache_of(reader)?.first_shown()?, reader));
        let (_, reader) = readers.filter_map(first).min()?;
        Some(reader)
    }

    /// Begins access to the samples of a group of readers. Until [`end_access`](LocalParticipant::end_access) no sets
    /// and no ordered samples become available (DDS 1.4 §2.2.2.5.2.8).
    ///
    /// Returns false if the group does not exist, or access has begun.
    pub fn begin_access(&mut self, id: SubscriberId) -> bool {
        let subscriber = self.readers.subscribers.get_mut(id);
        subscriber.is_some_and(|it| !core::mem::replace(&mut it.is_accessed, true))
    }

    /// Ends access to a group (§2.2.2.5.2.9); returns false if it had not begun.
    pub fn end_access(&mut self, id: SubscriberId) -> bool {
        let subscriber = self.readers.subscribers.get_mut(id);
        let was_accessed =
            subscriber.is_some_and(|it| core::mem::replace(&mut it.is_accessed, false));
        if was_accessed {
            self.readers.looks += 1;
            for nth in 0.. {
                let found = self.readers.subscribers.get(id);
                let Some(&reader) = found.and_then(|it| it.readers.get(nth)) else {
                    break;
                };
                self.readers.present_rest_of(
                    &mut self.shared,
                    Facts::of(&self.writers, &self.discovery),
                    reader,
                );
            }
        }
        was_accessed
    }
}

impl Readers {
    /// Processes the end of a set at one reader; `index` is that of the proxy. A reader without sets only advances past
    /// the number of the end when all earlier samples have arrived.
    #[cold]
    pub(crate) fn receive_set_end(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        (received, source_timestamp): (Instant, Option<Timestamp>),
        index: WriterProxyId,
        data: &Data<'_>,
        mark: &CoherentSetInfo,
    ) {
        let proxy = &mut self.proxies[index];
        let reader = &mut self.table[proxy.reader];
        if reader.cache.as_ref().is_some_and(Cache::groups) {
            let info = SampleInfo {
                writer: proxy.guid,
                sequence: data.sequence,
                source_timestamp,
                received,
                kind: ChangeKind::Alive,
                ..SampleInfo::UNSEEN
            };
            note_place(proxy, reader, data.sequence, mark, true);
            if keep_in_turn(index, proxy, reader, info, &[]).is_err() {
                reader.ledger.deferred += 1;
            }
        } else if data.sequence == proxy.expected {
            proxy.begun = true;
            proxy.advance();
            reader.ledger.account();
            reader.ledger.set_ends += 1;
        } else {
            // The end is requested again later.
            reader.ledger.deferred += 1;
        }
        self.advance_proxy(shared, facts, index);
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
