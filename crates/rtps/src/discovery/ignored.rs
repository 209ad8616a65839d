//! Ignored participants, topics and endpoints (DDS 1.4 §2.2.2.2.1.14 to §2.2.2.2.1.17).
//!
//! An ignored entity is removed from the tables with its matches. The matches of a participant are removed one in each
//! step of filed work, as when it leaves the domain. Later announcements of the entity are counted and dropped, so the
//! sample path needs no check. As in the standard, ignoring cannot be undone. Peers do not learn of it: a reliable
//! writer that matched a reader here waits for that reader until the reader or this participant is gone.
//!
//! Endpoints of this participant can be ignored as well. If a participant ignores itself, its own writers and readers
//! are unmatched from each other.

use alloc::vec::Vec;

use heapless::String as BoundedString;
use isolane_wire::{
    builtin_data::EndpointData,
    guid::{EntityId, Guid, GuidPrefix},
    limits::MAX_NAME_BYTES,
    time::Instant,
};
use thiserror::Error;

use crate::{
    discovery::Discovery,
    limits::{MAX_IGNORED, MAX_IGNORED_TOPICS},
    participant::{LocalParticipant, Shared},
    slab::{ReaderId, WriterId},
};

/// Reason why an entity cannot be ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IgnoreError {
    /// The list is full. Entries are never removed.
    #[error(
        "{0} of these are ignored already, which is the limit; keep others away by PARTITION, a domain of their own, or peers by name"
    )]
    ListFull(usize),
    /// The topic name is longer than any topic name can be.
    #[error("the name of a topic is longer than {MAX_NAME_BYTES} bytes")]
    NameTooLong,
}

#[derive(Debug)]
pub(crate) struct Ignored {
    /// GUIDs of endpoints, and of participants with the entity [`EntityId::PARTICIPANT`].
    entities: Vec<Guid>,
    topics: Vec<BoundedString<MAX_NAME_BYTES>>,
}

impl Ignored {
    pub(crate) fn new() -> Self {
        Self {
            entities: Vec::with_capacity(MAX_IGNORED),
            topics: Vec::with_capacity(MAX_IGNORED_TOPICS),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entities.is_empty() && self.topics.is_empty()
    }

    pub(super) fn has_participant(&self, prefix: GuidPrefix) -> bool {
        let entity = EntityId::PARTICIPANT;
        self.entities.contains(&Guid { prefix, entity })
    }

    fn has_endpoint(&self, data: &EndpointData) -> bool {
        self.entities.contains(&data.guid) || self.topics.contains(&data.topic_name)
    }

    fn add(&mut self, guid: Guid) -> Result<(), IgnoreError> {
        if self.entities.contains(&guid) {
            return Ok(());
        }
        if self.entities.len() >= MAX_IGNORED {
            return Err(IgnoreError::ListFull(MAX_IGNORED));
        }
        self.entities.push(guid);
        Ok(())
    }
}

impl LocalParticipant {
    /// Ignores a participant and all its endpoints from now on. If `prefix` is that of this participant, its own
    /// endpoints no longer match each other.
    ///
    /// # Errors
    /// [`IgnoreError::ListFull`].
    pub fn ignore_participant(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
    ) -> Result<(), IgnoreError> {
        let entity = EntityId::PARTICIPANT;
        self.discovery.ignored.add(Guid { prefix, entity })?;
        if prefix == self.shared.guid_prefix() {
            self.remove_ignored_here(now);
        } else if let Some(&index) = self.discovery.by_prefix.get(&prefix) {
            self.discovery.remove_participant(&mut self.shared, index);
        }
        Ok(())
    }

    /// Ignores a writer or reader from now on.
    ///
    /// # Errors
    /// [`IgnoreError::ListFull`].
    pub fn ignore_endpoint(&mut self, now: Instant, guid: Guid) -> Result<(), IgnoreError> {
        self.discovery.ignored.add(guid)?;
        self.remove_ignored(now);
        self.remove_ignored_here(now);
        Ok(())
    }

    /// Ignores all endpoints of a topic from now on.
    ///
    /// # Errors
    /// [`IgnoreError`].
    pub fn ignore_topic(&mut self, now: Instant, name: &str) -> Result<(), IgnoreError> {
        let name = BoundedString::try_from(name).map_err(|_| IgnoreError::NameTooLong)?;
        if self.discovery.ignored.topics.contains(&name) {
            return Ok(());
        }
        if self.discovery.ignored.topics.len() >= MAX_IGNORED_TOPICS {
            return Err(IgnoreError::ListFull(MAX_IGNORED_TOPICS));
        }
        self.discovery.ignored.topics.push(name);
        self.remove_ignored(now);
        self.remove_ignored_here(now);
        Ok(())
    }

    /// Returns the ignored endpoints, and the ignored participants with the entity [`EntityId::PARTICIPANT`].
    pub fn ignored_entities(&self) -> impl Iterator<Item = Guid> {
        self.discovery.ignored.entities.iter().copied()
    }

    /// Returns the names of the ignored topics.
    pub fn ignored_topics(&self) -> impl Iterator<Item = &str> {
        self.discovery
            .ignored
            .topics
            .iter()
            .map(|name| name.as_str())
    }

    /// Removes remote endpoints that are now ignored. An endpoint already being removed is left alone.
    fn remove_ignored(&mut self, now: Instant) {
        for index in self.discovery.endpoints.ids() {
            let Some(endpoint) = self.discovery.endpoints.get(index) else {
                continue;
            };
            let is_leaving = self.discovery.is_leaving(index, endpoint);
            let data = endpoint.data(&self.discovery.announcements);
            if is_leaving || !self.discovery.ignored.has_endpoint(&data) {
                continue;
            }
            self.unmatch(now, data.guid);
            self.discovery.forget_endpoint(&mut self.shared, index);
        }
    }

    /// Unmatches local endpoints that are now ignored from each other.
    fn remove_ignored_here(&mut self, now: Instant) {
        for writer_index in self.writers.table.ids() {
            for reader_index in self.readers.table.ids() {
                self.remove_ignored_pair(now, writer_index, reader_index);
            }
        }
    }

    fn remove_ignored_pair(
        &mut self,
        now: Instant,
        writer_index: WriterId,
        reader_index: ReaderId,
    ) {
        let (Some(writer), Some(reader)) = (
            self.writers.get(writer_index),
            self.readers.get(reader_index),
        ) else {
            return;
        };
        if !self.discovery.is_ignored_here(&writer.data)
            && !self.discovery.is_ignored_here(&reader.data)
        {
            return;
        }
        let of_reader = self
            .writers
            .proxy_by_reader
            .get(&(writer_index, reader.guid));
        let of_writer = self.readers.proxy_of_writer_at(writer.guid, reader_index);
        if let Some(&proxy) = of_reader {
            self.remove_reader_proxy(now, proxy);
        }
        if let Some(proxy) = of_writer {
            self.remove_writer_proxy(now, proxy);
        }
    }
}

impl Discovery {
    /// Returns whether a participant is ignored, and counts its announcement if so.
    pub(super) fn is_ignored_participant(
        &mut self,
        shared: &mut Shared,
        prefix: GuidPrefix,
    ) -> bool {
        let is_ignored = self.ignored.has_participant(prefix);
        shared.counters.announcements_ignored += u64::from(is_ignored);
        is_ignored
    }

    /// Returns whether an endpoint is ignored, and counts its announcement if so.
    pub(super) fn is_ignored_endpoint(&mut self, shared: &mut Shared, data: &EndpointData) -> bool {
        let is_ignored = self.ignored.has_endpoint(data);
        shared.counters.announcements_ignored += u64::from(is_ignored);
        is_ignored
    }

    /// Returns whether an endpoint of this participant is ignored, so that it must not match local endpoints.
    pub(crate) fn is_ignored_here(&self, data: &EndpointData) -> bool {
        self.ignored.has_participant(data.guid.prefix) || self.ignored.has_endpoint(data)
    }
}
