//! What the user is told of endpoints, and in numbers (DDS 1.4 §2.2.4.1).
//!
//! [`Engine::next_status`] says that something has changed at an endpoint: each is on the list once,
//! whatever happens to it, so the list has as many places as there are endpoints. What has changed is
//! then *taken*: the total stays, the change since it was last taken begins at zero again. All of it lies
//! in the endpoint's record, so that nothing is searched or allocated.

use isolane_wire::{
    cdr::{CdrError, EncapsulationId},
    guid::Guid,
};

use crate::{
    clock::{DeadlineMissed, LivelinessChanged, LivelinessLost, MESSAGES},
    engine::Engine,
    ids::{ReaderId, WriterId},
    matching::Incompatible,
    reader::ReaderStatus,
    writer::WriterStatus,
};

/// Something to tell the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusChange {
    /// At a reader.
    Reader(ReaderId, ReaderStatus),
    /// At a writer.
    Writer(WriterId, WriterStatus),
    /// The participants or endpoints known have changed.
    Discovery,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    Reader(u16),
    Writer(u16),
    Discovery,
}

/// Endpoints of the other kind that an endpoint is matched with (*PublicationMatchedStatus*,
/// *SubscriptionMatchedStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matched {
    /// Matches that ever came about.
    pub total: u32,
    /// Those since this was last taken.
    pub total_change: u32,
    /// Matches that are so now.
    pub current: u32,
    /// By how many more, or fewer, than when this was last taken.
    pub current_change: i32,
    /// The other endpoint that joined or parted last.
    pub last: Guid,
}

/// Samples that will never come to a reader (*SampleLostStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleLost {
    /// So many ever; what writers claim, so it may come round.
    pub total: u64,
    /// Those since this was last taken.
    pub change: u64,
    /// Of `total`, samples that are larger than the reader takes.
    pub too_large: u64,
    /// Why the last one is.
    pub reason: LostReason,
}

/// Why a sample will never come to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LostReason {
    /// It was lost on the way, or its writer no longer had it.
    #[default]
    NotReceived,
    /// It is larger than `max_bytes` of the reader.
    TooLarge {
        /// Its payload, with the encapsulation header.
        bytes: u32,
    },
}

/// The sample that was the last too large one of any reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLargeSample<'a> {
    /// The topic.
    pub topic: &'a str,
    /// Payload of the sample, in bytes.
    pub bytes: u32,
    /// The most bytes that the reader takes.
    pub limit: usize,
}

/// Why a sample that came was not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RejectReason {
    /// Every slot is full of samples that were not taken; best effort only, a reliable sample comes again.
    #[default]
    NoRoom,
    /// It is not of the type, or in a form of its vendor's own.
    NotOfType,
    /// Its encapsulation is one that the reader's type cannot have: the writer's type has another extensibility, or a
    /// representation that isolane does not read. Declare both types alike.
    Encapsulation(EncapsulationId),
}

impl RejectReason {
    /// Returns the reason for a payload that could not be read because of `error`.
    #[cold]
    #[must_use]
    pub fn of(error: CdrError, payload: &[u8]) -> Self {
        let is_foreign = matches!(
            error,
            CdrError::UnknownEncapsulation(_) | CdrError::OtherExtensibility
        );
        match EncapsulationId::of_payload(payload) {
            Some(identifier) if is_foreign => Self::Encapsulation(identifier),
            _ => Self::NotOfType,
        }
    }
}

/// Samples that a reader rejected for their encapsulation ([`RejectReason::Encapsulation`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncapsulationsRefused {
    /// Samples rejected so far.
    pub total: u64,
    /// Encapsulation of the last one.
    pub identifier: EncapsulationId,
    /// Writer of the last one.
    pub writer: Guid,
}

/// Samples that came to a reader and were not taken in (*SampleRejectedStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRejected {
    /// So many ever.
    pub total: u64,
    /// Those since this was last taken.
    pub change: u64,
    /// Why the last one was.
    pub reason: RejectReason,
}

/// The matches of one endpoint, counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MatchTally {
    total: u32,
    current: u32,
    told_total: u32,
    told_current: u32,
    last: Option<Guid>,
    is_news: bool,
}

impl MatchTally {
    pub(crate) fn join(&mut self, other: Guid) {
        self.total = self.total.wrapping_add(1);
        self.current += 1;
        self.last = Some(other);
        self.is_news = true;
    }

    pub(crate) fn part(&mut self, other: Guid) {
        self.current -= 1;
        self.last = Some(other);
        self.is_news = true;
    }

    pub(crate) fn current(&self) -> u32 {
        self.current
    }

    fn take(&mut self) -> Option<Matched> {
        let last = self.last?;
        if !core::mem::take(&mut self.is_news) {
            return None;
        }
        let taken = Matched {
            total: self.total,
            total_change: self.total.wrapping_sub(self.told_total),
            current: self.current,
            current_change: self.current.wrapping_sub(self.told_current) as i32,
            last,
        };
        (self.told_total, self.told_current) = (self.total, self.current);
        Some(taken)
    }
}

/// What a total has grown by since it was told; `None`: nothing.
fn change(total: u64, told: &mut u64) -> Option<u64> {
    let change = total.wrapping_sub(core::mem::replace(told, total));
    (change > 0).then_some(change)
}

fn take_incompatible(found: &mut Option<Incompatible>) -> Option<Incompatible> {
    let found = found.as_mut().filter(|found| found.total_change > 0)?;
    let taken = *found;
    found.total_change = 0;
    Some(taken)
}

impl Engine {
    /// Whether [`next_status`](Self::next_status) may have something.
    #[inline]
    #[must_use]
    pub fn has_status(&self) -> bool {
        !self.noted.is_empty()
    }

    /// The next thing the user may want to know; each endpoint once, with all that has changed.
    pub fn next_status(&mut self) -> Option<StatusChange> {
        while let Some(noted) = self.noted.pop_front() {
            match noted {
                Noted::Discovery => {
                    self.discovery_noted = false;
                    return Some(StatusChange::Discovery);
                }
                Noted::Reader(index) => {
                    let Some(reader) = self.readers.get_mut(index) else {
                        continue;
                    };
                    reader.noted = false;
                    let status = core::mem::take(&mut reader.status);
                    if !status.is_empty() {
                        return Some(StatusChange::Reader(ReaderId(index), status));
                    }
                }
                Noted::Writer(index) => {
                    let Some(writer) = self.writers.get_mut(index) else {
                        continue;
                    };
                    writer.noted = false;
                    let status = core::mem::take(&mut writer.status);
                    if !status.is_empty() {
                        return Some(StatusChange::Writer(WriterId(index), status));
                    }
                }
            }
        }
        None
    }

    /// Remembers that a reader of the user has something to tell.
    pub(crate) fn note_reader(&mut self, index: u16) {
        let Some(reader) = self.readers.get_mut(index) else {
            return;
        };
        if reader.level.is_none() {
            // Discovery's own: its samples are work. What messages say was taken note of.
            match index {
                MESSAGES => self.forget_messages(),
                _ => self.file_discovery(),
            }
        } else if !reader.status.is_empty() && !core::mem::replace(&mut reader.noted, true) {
            self.noted.push_back(Noted::Reader(index));
        }
    }

    /// Remembers that a writer of the user has something to tell.
    pub(crate) fn note_writer(&mut self, index: u16) {
        let Some(writer) = self.writers.get_mut(index) else {
            return;
        };
        if writer.level.is_none() {
            writer.status = WriterStatus::empty();
        } else if !writer.status.is_empty() && !core::mem::replace(&mut writer.noted, true) {
            self.noted.push_back(Noted::Writer(index));
        }
    }

    pub(crate) fn note_discovery(&mut self) {
        if !core::mem::replace(&mut self.discovery_noted, true) {
            self.noted.push_back(Noted::Discovery);
        }
    }

    /// Forgets what was to be told of an endpoint that goes away.
    pub(crate) fn forget_reader_notes(&mut self, index: u16) {
        self.noted.retain(|noted| *noted != Noted::Reader(index));
    }

    /// As [`Self::forget_reader_notes`].
    pub(crate) fn forget_writer_notes(&mut self, index: u16) {
        self.noted.retain(|noted| *noted != Noted::Writer(index));
    }

    /// Takes what has changed in a writer's matches; `None`: nothing, or there is no such writer.
    ///
    /// A reader counts from the match on (DDS 1.4 §2.2.4.1), whether or not it has answered:
    /// [`matched_readers`](Self::matched_readers) counts those that have.
    pub fn take_publication_matched(&mut self, id: WriterId) -> Option<Matched> {
        self.writers.get_mut(id.0)?.matched.take()
    }

    /// Takes what has changed in a reader's matches; `None`: nothing, or there is no such reader.
    pub fn take_subscription_matched(&mut self, id: ReaderId) -> Option<Matched> {
        self.readers.get_mut(id.0)?.matched.take()
    }

    /// Takes which incompatible reader a writer has met; `None`: no further one.
    pub fn take_offered_incompatible(&mut self, id: WriterId) -> Option<Incompatible> {
        take_incompatible(&mut self.writers.get_mut(id.0)?.incompatible)
    }

    /// Takes which incompatible writer a reader has met; `None`: no further one.
    pub fn take_requested_incompatible(&mut self, id: ReaderId) -> Option<Incompatible> {
        take_incompatible(&mut self.readers.get_mut(id.0)?.incompatible)
    }

    /// Takes how many samples a reader has lost; `None`: no further one.
    pub fn take_sample_lost(&mut self, id: ReaderId) -> Option<SampleLost> {
        let reader = self.readers.get_mut(id.0)?;
        let too_large = reader.ledger.too_large;
        let total = reader.ledger.lost.wrapping_add(too_large);
        let change = change(total, &mut reader.told_lost)?;
        let is_too_large = core::mem::replace(&mut reader.told_too_large, too_large) != too_large;
        Some(SampleLost {
            total,
            change,
            too_large,
            reason: match is_too_large {
                true => LostReason::TooLarge {
                    bytes: reader.too_large_bytes,
                },
                false => LostReason::NotReceived,
            },
        })
    }

    /// The sample that was the last too large one of any reader, unless that reader is gone.
    #[must_use]
    pub fn last_too_large(&self) -> Option<TooLargeSample<'_>> {
        let reader = self.readers.get(self.last_too_large?)?;
        (reader.ledger.too_large > 0).then(|| TooLargeSample {
            topic: &reader.data.topic_name,
            bytes: reader.too_large_bytes,
            limit: reader.max_payload_bytes,
        })
    }

    /// Takes how many samples a reader has not taken in; `None`: no further one.
    pub fn take_sample_rejected(&mut self, id: ReaderId) -> Option<SampleRejected> {
        let reader = self.readers.get_mut(id.0)?;
        let total = reader.ledger.rejected;
        let change = change(total, &mut reader.told_rejected)?;
        Some(SampleRejected {
            total,
            change,
            reason: reader.reject_reason,
        })
    }

    /// Takes how many periods have passed without a sample of an instance at a writer; `None`: no further
    /// one.
    pub fn take_offered_deadline_missed(&mut self, id: WriterId) -> Option<DeadlineMissed> {
        let clock = self.writers.get_mut(id.0)?.clock.as_mut()?;
        clock.deadline.as_mut()?.take()
    }

    /// The same at a reader.
    pub fn take_requested_deadline_missed(&mut self, id: ReaderId) -> Option<DeadlineMissed> {
        let clock = self.readers.get_mut(id.0)?.clock.as_mut()?;
        clock.deadline.as_mut()?.take()
    }

    /// Takes how often a writer's user has not said in time that it is alive; `None`: no further time.
    pub fn take_liveliness_lost(&mut self, id: WriterId) -> Option<LivelinessLost> {
        let clock = self.writers.get_mut(id.0)?.clock.as_mut()?;
        clock.signal.as_mut()?.take()
    }

    /// Takes what has changed in how many of a reader's matched writers are alive; `None`: nothing.
    pub fn take_liveliness_changed(&mut self, id: ReaderId) -> Option<LivelinessChanged> {
        self.readers.get_mut(id.0)?.liveliness.take()
    }
}
