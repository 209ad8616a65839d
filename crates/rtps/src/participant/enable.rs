//! ENTITY_FACTORY and *enable* (DDS 1.4 §2.2.3.20, §2.2.2.1.1.7).
//!
//! A disabled participant sends no announcement and ignores those it receives, and its endpoints cannot be enabled. A
//! disabled endpoint is allocated, but not announced or matched; its policies may change, and writes are refused. If a
//! participant enables its entities automatically, which is the default, enabling it enables the endpoints created
//! before.
//!
//! The check costs samples nothing: a disabled writer has a maximum payload of zero, so only a sample refused for its
//! size is checked again.

use isolane_wire::time::Instant;
use thiserror::Error;

use crate::{
    discovery::{Discovery, PUBLICATIONS, SUBSCRIPTIONS},
    matching::Before,
    participant::{LocalParticipant, Shared, local_endpoints::CreateError},
    slab::{ReaderId, WriterId},
    work_queue::Timer,
    writer::Writer,
};

/// Reason why an endpoint was not enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EnableError {
    /// The participant is not enabled.
    #[error("the participant is not enabled: enable it first, and its endpoints after it")]
    ParticipantDisabled,
    /// The history of discovery has no room for the announcement.
    #[error("the endpoint cannot be announced now: discovery's history is full; try again later")]
    AnnouncementFull,
    /// The endpoint does not exist.
    #[error("the endpoint no longer exists")]
    Gone,
}

impl From<CreateError> for EnableError {
    fn from(_: CreateError) -> Self {
        Self::AnnouncementFull
    }
}

impl LocalParticipant {
    /// Returns whether this participant is enabled.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.shared.config.is_enabled
    }

    /// Sets whether endpoints are enabled at creation, or with the participant.
    pub fn set_autoenable(&mut self, autoenable: bool) {
        self.shared.config.autoenable = autoenable;
    }

    /// Enables this participant and, with autoenable, all its endpoints.
    ///
    /// # Errors
    /// [`EnableError::AnnouncementFull`]: an endpoint could not be enabled now. Call this method again later, or enable
    /// the endpoint.
    pub fn enable(&mut self, now: Instant) -> Result<(), EnableError> {
        if !core::mem::replace(&mut self.shared.config.is_enabled, true) {
            self.discovery.begin_announcing(&mut self.shared, now);
        }
        if !self.shared.config.autoenable {
            return Ok(());
        }
        for index in self.writers.table.ids() {
            let is_disabled = self.writers.get(index).is_some_and(|it| !it.is_enabled());
            if is_disabled {
                self.enable_writer(now, index)?;
            }
        }
        for index in self.readers.table.ids() {
            let is_disabled = self.readers.get(index).is_some_and(|it| !it.is_enabled);
            if is_disabled {
                self.enable_reader(now, index)?;
            }
        }
        Ok(())
    }

    /// Enables a writer: announces it, and matches it with all known readers. No effect if it is enabled.
    ///
    /// # Errors
    /// [`EnableError`]; nothing was changed then.
    pub fn enable_writer(&mut self, now: Instant, id: WriterId) -> Result<(), EnableError> {
        let writer = self.writers.get(id).ok_or(EnableError::Gone)?;
        if writer.is_enabled() {
            return Ok(());
        }
        if !self.shared.config.is_enabled {
            return Err(EnableError::ParticipantDisabled);
        }
        let data = writer.data.clone();
        self.publish(now, WriterId(PUBLICATIONS), &data)?;
        if let Some(writer) = self.writers.get_mut(id)
            && let Some(limit) = writer.limit_when_enabled.take()
        {
            writer.max_payload_bytes = limit;
        }
        self.begin_writer(now, id);
        Ok(())
    }

    /// Enables a reader: announces it, and matches it with all known writers. No effect if it is enabled.
    ///
    /// # Errors
    /// [`EnableError`]; nothing was changed then.
    pub fn enable_reader(&mut self, now: Instant, id: ReaderId) -> Result<(), EnableError> {
        let reader = self.readers.get(id).ok_or(EnableError::Gone)?;
        if reader.is_enabled {
            return Ok(());
        }
        if !self.shared.config.is_enabled {
            return Err(EnableError::ParticipantDisabled);
        }
        let data = reader.data.clone();
        self.publish(now, WriterId(SUBSCRIPTIONS), &data)?;
        if let Some(reader) = self.readers.get_mut(id) {
            reader.is_enabled = true;
        }
        self.begin_reader(now, id);
        Ok(())
    }

    /// Returns whether a writer is enabled.
    #[must_use]
    pub fn is_writer_enabled(&self, id: WriterId) -> bool {
        self.writers.get(id).is_some_and(Writer::is_enabled)
    }

    /// Returns whether a reader is enabled.
    #[must_use]
    pub fn is_reader_enabled(&self, id: ReaderId) -> bool {
        self.readers.get(id).is_some_and(|it| it.is_enabled)
    }

    /// Starts the timed-QoS timer of an enabled writer, and matches the writer.
    pub(crate) fn begin_writer(&mut self, now: Instant, index: WriterId) {
        self.writers.set_writer_clock(&mut self.shared, now, index);
        self.writers.set_batch(&mut self.shared, index);
        if let Some(writer) = self.writers.table.get(index) {
            self.writers.by_topic.insert(&writer.data.topic_name, index);
        }
        self.match_local_writer(now, index, Before::New);
    }

    /// Starts the timed-QoS timer of an enabled reader, and matches the reader.
    pub(crate) fn begin_reader(&mut self, now: Instant, index: ReaderId) {
        self.readers.set_reader_clock(&mut self.shared, now, index);
        if let Some(reader) = self.readers.table.get(index) {
            self.readers.by_topic.insert(&reader.data.topic_name, index);
        }
        self.match_local_reader(now, index, Before::New);
    }
}

impl Shared {
    /// Returns whether a new endpoint is enabled at creation.
    pub(crate) fn enables_created(&self) -> bool {
        self.config.is_enabled && self.config.autoenable
    }
}

impl Discovery {
    pub(crate) fn begin_announcing(&mut self, shared: &mut Shared, now: Instant) {
        self.schedule_announcement(shared, None);
        let first = shared.config.timing.announce_initial_period;
        shared.timers.arm(Timer::Announce, now + first);
    }
}
