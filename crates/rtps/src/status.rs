//! Communication statuses (DDS 1.4 §2.2.4.1).
//!
//! After [`LocalParticipant::next_status`] has returned an endpoint with changes, the user *takes* a status: totals
//! stay, changes since the last take are reset. All of it is in the endpoint's record; nothing is searched or
//! allocated.

use isolane_wire::{
    cdr::{CdrError, EncapsulationId},
    guid::Guid,
};

use crate::{
    matching::Incompatible,
    participant::LocalParticipant,
    reader::ReaderStatus,
    slab::{ReaderId, WriterId},
    timed_qos::{DeadlineMissed, LivelinessChanged, LivelinessLost},
    writer::WriterStatus,
};

/// Status change to report to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusChange {
    /// Changes at a reader.
    Reader(ReaderId, ReaderStatus),
    /// Changes at a writer.
    Writer(WriterId, WriterStatus),
    /// The set of known participants or endpoints changed.
    Discovery,
}

/// Match counts of an endpoint (*PublicationMatchedStatus*, *SubscriptionMatchedStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matched {
    /// Total number of matches so far.
    pub total: u32,
    /// Change of `total` since the last take.
    pub total_change: u32,
    /// Number of current matches.
    pub current: u32,
    /// Change of `current` since the last take.
    pub current_change: i32,
    /// Remote endpoint that was matched or unmatched last.
    pub last: Guid,
}

/// Samples that a reader will never get (*SampleLostStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleLost {
    /// Total number so far. It depends on what writers claim, so it may wrap around.
    pub total: u64,
    /// Change of `total` since the last take.
    pub change: u64,
    /// Part of `total`: samples larger than the reader accepts.
    pub too_large: u64,
    /// Reason of the last loss.
    pub reason: LostReason,
}

/// Reason why a reader will never get a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LostReason {
    /// The sample was lost in transit, or its writer no longer had it.
    #[default]
    NotReceived,
    /// The sample is larger than `max_bytes` of the reader.
    TooLarge {
        /// Payload size in bytes, with the encapsulation header.
        bytes: u32,
    },
}

/// Last sample that was too large for its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLargeSample<'a> {
    /// Topic of the reader.
    pub topic: &'a str,
    /// Payload size of the sample in bytes.
    pub bytes: u32,
    /// Maximum payload size of the reader in bytes.
    pub limit: usize,
}

/// Reason why a received sample was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RejectReason {
    /// Every slot has a sample that was not taken. Best effort only; a reliable sample is sent again.
    #[default]
    NoRoom,
    /// The reader of views has no callback.
    NoCallback,
    /// The sample has more fragments than the reader can assemble, because they are shorter than its limits allow.
    ShortFragments,
    /// The payload is not of the type, or of a vendor-specific form.
    NotOfType,
    /// The reader's type cannot have this encapsulation: the writer's type has another extensibility, or a
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

/// Samples that a reader rejected because it cannot read them as its type ([`RejectReason::Encapsulation`],
/// [`RejectReason::NotOfType`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadableSamples {
    /// Number of samples of this writer that were rejected in succession.
    pub total: u64,
    /// Encapsulation of the last one, if the type cannot have it; `None` if only its payload is not of the type.
    pub identifier: Option<EncapsulationId>,
    /// Writer of the last one.
    pub writer: Guid,
}

/// Samples received and rejected by a reader (*SampleRejectedStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRejected {
    /// Total number so far.
    pub total: u64,
    /// Change of `total` since the last take.
    pub change: u64,
    /// Reason of the last rejection.
    pub reason: RejectReason,
}

/// Match counts of one endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MatchTally {
    total: u32,
    current: u32,
    reported_total: u32,
    reported_current: u32,
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
            total_change: self.total.wrapping_sub(self.reported_total),
            current: self.current,
            current_change: self.current.wrapping_sub(self.reported_current) as i32,
            last,
        };
        (self.reported_total, self.reported_current) = (self.total, self.current);
        Some(taken)
    }
}

/// Returns the growth of a total since the last take; `None` if there is none.
fn change(total: u64, reported: &mut u64) -> Option<u64> {
    let change = total.wrapping_sub(core::mem::replace(reported, total));
    (change > 0).then_some(change)
}

fn take_incompatible(found: &mut Option<Incompatible>) -> Option<Incompatible> {
    let found = found.as_mut().filter(|found| found.total_change > 0)?;
    let taken = *found;
    found.total_change = 0;
    Some(taken)
}

impl LocalParticipant {
    /// Takes the change of a writer's matches; `None` if there is none, or no such writer.
    ///
    /// A reader counts from its match (DDS 1.4 §2.2.4.1), even before it answers;
    /// [`matched_readers`](LocalParticipant::matched_readers) counts those that have.
    pub fn take_publication_matched(&mut self, id: WriterId) -> Option<Matched> {
        self.writers.get_mut(id)?.matched.take()
    }

    /// Takes the change of a reader's matches; `None` if there is none, or no such reader.
    pub fn take_subscription_matched(&mut self, id: ReaderId) -> Option<Matched> {
        self.readers.get_mut(id)?.matched.take()
    }

    /// Takes the incompatible readers of a writer; `None` if there is no new one.
    pub fn take_offered_incompatible(&mut self, id: WriterId) -> Option<Incompatible> {
        take_incompatible(&mut self.writers.get_mut(id)?.incompatible)
    }

    /// Takes the incompatible writers of a reader; `None` if there is no new one.
    pub fn take_requested_incompatible(&mut self, id: ReaderId) -> Option<Incompatible> {
        take_incompatible(&mut self.readers.get_mut(id)?.incompatible)
    }

    /// Takes the lost samples of a reader; `None` if there is no new one.
    pub fn take_sample_lost(&mut self, id: ReaderId) -> Option<SampleLost> {
        let reader = self.readers.get_mut(id)?;
        let too_large = reader.ledger.too_large;
        let total = reader.ledger.lost.wrapping_add(too_large);
        let change = change(total, &mut reader.reported_lost)?;
        let is_too_large =
            core::mem::replace(&mut reader.reported_too_large, too_large) != too_large;
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

    /// Returns the last sample that was too large for its reader, unless that reader was deleted.
    #[must_use]
    pub fn last_too_large(&self) -> Option<TooLargeSample<'_>> {
        let reader = self.readers.get(self.readers.last_too_large?)?;
        (reader.ledger.too_large > 0).then(|| TooLargeSample {
            topic: &reader.data.topic_name,
            bytes: reader.too_large_bytes,
            limit: reader.max_payload_bytes,
        })
    }

    /// Takes the rejected samples of a reader; `None` if there is no new one.
    pub fn take_sample_rejected(&mut self, id: ReaderId) -> Option<SampleRejected> {
        let reader = self.readers.get_mut(id)?;
        let total = reader.ledger.rejected;
        let change = change(total, &mut reader.reported_rejected)?;
        Some(SampleRejected {
            total,
            change,
            reason: reader.reject_reason,
        })
    }

    /// Takes the deadlines missed by a writer's instances; `None` if there is no new one.
    pub fn take_offered_deadline_missed(&mut self, id: WriterId) -> Option<DeadlineMissed> {
        let clock = self.writers.get_mut(id)?.clock.as_mut()?;
        clock.deadline.as_mut()?.take()
    }

    /// Takes the deadlines missed by a reader's instances; `None` if there is no new one.
    pub fn take_requested_deadline_missed(&mut self, id: ReaderId) -> Option<DeadlineMissed> {
        let clock = self.readers.get_mut(id)?.clock.as_mut()?;
        clock.deadline.as_mut()?.take()
    }

    /// Takes the number of times a writer lost its liveliness; `None` if there is no new one.
    pub fn take_liveliness_lost(&mut self, id: WriterId) -> Option<LivelinessLost> {
        let clock = self.writers.get_mut(id)?.clock.as_mut()?;
        clock.signal.as_mut()?.take()
    }

    /// Takes the change in the liveliness of a reader's writers; `None` if there is none.
    pub fn take_liveliness_changed(&mut self, id: ReaderId) -> Option<LivelinessChanged> {
        self.readers.get_mut(id)?.liveliness.take()
    }
}
