//! ENTITY_FACTORY and *enable* (DDS 1.4 §2.2.3.20, §2.2.2.1.1.7): what is created and not yet to take part.
//!
//! A participant that is not enabled announces nothing and takes no announcement in, and its endpoints cannot be
//! enabled. An endpoint that is not enabled has its memory, is announced to nobody and matches nobody; its policies
//! may change, and a write is refused. Where a participant enables what it creates, which is the default,
//! endpoints that were created before it was enabled are enabled with it.
//!
//! No sample pays for it: the largest payload of a writer that is not enabled is none, so that a sample that is
//! refused for its size is looked at once more.

use isolane_wire::time::Instant;
use thiserror::Error;

use crate::{
    discovery::{PUBLICATIONS, SUBSCRIPTIONS},
    endpoints::CreateError,
    engine::{Engine, Subject},
    ids::{ReaderId, WriterId},
    write::WriteError,
    writer::Writer,
};

/// Why an endpoint was not enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EnableError {
    /// Its participant is not enabled.
    #[error("the participant is not enabled: enable it first, and its endpoints after it")]
    ParticipantDisabled,
    /// Discovery has no room for what is to be announced.
    #[error("the endpoint cannot be announced now: discovery's history is full; try again later")]
    AnnouncementFull,
    /// There is no such endpoint.
    #[error("the endpoint no longer exists")]
    Gone,
}

impl From<CreateError> for EnableError {
    fn from(_: CreateError) -> Self {
        Self::AnnouncementFull
    }
}

impl Writer {
    /// Whether it takes part.
    pub(crate) fn is_enabled(&self) -> bool {
        self.limit_when_enabled.is_none()
    }

    /// The largest payload it takes, or will take when it is enabled.
    pub(crate) fn payload_limit(&self) -> usize {
        self.limit_when_enabled.unwrap_or(self.max_payload_bytes)
    }

    pub(crate) fn disable(&mut self) {
        self.limit_when_enabled = Some(core::mem::take(&mut self.max_payload_bytes));
    }

    /// Why a payload is larger than the largest.
    #[cold]
    pub(crate) fn why_too_large(&self) -> WriteError {
        match self.is_enabled() {
            true => WriteError::TooLarge {
                limit: self.max_payload_bytes,
            },
            false => WriteError::NotEnabled,
        }
    }
}

impl Engine {
    /// Whether this participant takes part in its domain.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.config.is_enabled
    }

    /// Whether endpoints are enabled when they are created, or with the participant.
    pub fn set_autoenable(&mut self, autoenable: bool) {
        self.config.autoenable = autoenable;
    }

    /// Whether an endpoint that is created now is enabled at once.
    pub(crate) fn enables_created(&self) -> bool {
        self.config.is_enabled && self.config.autoenable
    }

    /// Begins to announce this participant.
    pub(crate) fn begin_announcing(&mut self, now: Instant) {
        self.file_announcement(0);
        let first = self.config.timing.announce_initial_period;
        self.timers.arm(Subject::ANNOUNCE, now + first);
    }

    /// Enables this participant, and, where that enables what it creates, all endpoints there are.
    ///
    /// # Errors
    /// [`EnableError::AnnouncementFull`]: some endpoint is not enabled, and may be later.
    pub fn enable(&mut self, now: Instant) -> Result<(), EnableError> {
        if !core::mem::replace(&mut self.config.is_enabled, true) {
            self.begin_announcing(now);
        }
        if !self.config.autoenable {
            return Ok(());
        }
        for index in 0..self.writers.end() {
            let is_disabled = self.writers.get(index).is_some_and(|it| !it.is_enabled());
            if is_disabled {
                self.enable_writer(now, WriterId(index))?;
            }
        }
        for index in 0..self.readers.end() {
            let is_disabled = self.readers.get(index).is_some_and(|it| !it.is_enabled);
            if is_disabled {
                self.enable_reader(now, ReaderId(index))?;
            }
        }
        Ok(())
    }

    /// Enables a writer: it is announced, and matched with all readers known. Nothing happens if it is.
    ///
    /// # Errors
    /// [`EnableError`]; it is as before then.
    pub fn enable_writer(&mut self, now: Instant, id: WriterId) -> Result<(), EnableError> {
        let writer = self.writers.get(id.0).ok_or(EnableError::Gone)?;
        if writer.is_enabled() {
            return Ok(());
        }
        if !self.config.is_enabled {
            return Err(EnableError::ParticipantDisabled);
        }
        let data = writer.data.clone();
        self.publish(now, PUBLICATIONS, &data)?;
        if let Some(writer) = self.writers.get_mut(id.0)
            && let Some(limit) = writer.limit_when_enabled.take()
        {
            writer.max_payload_bytes = limit;
        }
        self.begin_writer(now, id.0);
        Ok(())
    }

    /// Enables a reader, likewise.
    ///
    /// # Errors
    /// As [`Self::enable_writer`].
    pub fn enable_reader(&mut self, now: Instant, id: ReaderId) -> Result<(), EnableError> {
        let reader = self.readers.get(id.0).ok_or(EnableError::Gone)?;
        if reader.is_enabled {
            return Ok(());
        }
        if !self.config.is_enabled {
            return Err(EnableError::ParticipantDisabled);
        }
        let data = reader.data.clone();
        self.publish(now, SUBSCRIPTIONS, &data)?;
        if let Some(reader) = self.readers.get_mut(id.0) {
            reader.is_enabled = true;
        }
        self.begin_reader(now, id.0);
        Ok(())
    }

    /// Whether a writer takes part.
    #[must_use]
    pub fn is_writer_enabled(&self, id: WriterId) -> bool {
        self.writers.get(id.0).is_some_and(Writer::is_enabled)
    }

    /// Whether a reader takes part.
    #[must_use]
    pub fn is_reader_enabled(&self, id: ReaderId) -> bool {
        self.readers.get(id.0).is_some_and(|it| it.is_enabled)
    }

    /// A writer takes part from now on: its clock runs, and it meets its readers.
    pub(crate) fn begin_writer(&mut self, now: Instant, index: u16) {
        self.set_writer_clock(now, index);
        self.set_batch(index);
        if let Some(writer) = self.writers.get(index) {
            self.writer_topics.insert(&writer.data.topic_name, index);
        }
        self.match_new_writer(now, index);
    }

    /// A reader takes part from now on.
    pub(crate) fn begin_reader(&mut self, now: Instant, index: u16) {
        self.set_reader_clock(now, index);
        if let Some(reader) = self.readers.get(index) {
            self.reader_topics.insert(&reader.data.topic_name, index);
        }
        self.match_new_reader(now, index);
    }
}
