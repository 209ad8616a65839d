//! Communication statuses of endpoints (DDS 1.4 §2.2.4.1), with the names of the standard.
//!
//! A status has totals and their changes since it was last read. A job of the endpoint notifies listeners at the
//! priority of the topic's protocol work, one listener per activation. A getter returns the current status. Either
//! reads the change, which then does not appear in the other.

use isolane_rtps::{
    DeadlineMissed, Incompatible, LivelinessChanged, LivelinessLost, LostReason, Matched,
    RejectReason,
};
use isolane_wire::{guid::Guid, qos::PolicyId};

/// Matched readers of a writer (`PUBLICATION_MATCHED`). A reader counts from the match on;
/// [`DataWriter::matched_readers`](crate::DataWriter::matched_readers) counts readers that are confirmed to receive
/// samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublicationMatchedStatus {
    /// Number of readers that ever matched.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
    /// Number of readers matched now.
    pub current_count: u32,
    /// Change of `current_count` since the status was last read.
    pub current_count_change: i32,
    /// Reader that was matched or unmatched last.
    pub last_subscription_handle: Option<Guid>,
}

/// Matched writers of a reader (`SUBSCRIPTION_MATCHED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscriptionMatchedStatus {
    /// Number of writers that ever matched.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
    /// Number of writers matched now.
    pub current_count: u32,
    /// Change of `current_count` since the status was last read.
    pub current_count_change: i32,
    /// Writer that was matched or unmatched last.
    pub last_publication_handle: Option<Guid>,
}

/// Readers that request more than a writer offers (`OFFERED_INCOMPATIBLE_QOS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedIncompatibleQosStatus {
    /// Number of such readers so far.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
    /// First incompatible policy of the last one; [`PolicyId::name`] returns its name.
    pub last_policy_id: Option<PolicyId>,
    /// Last incompatible reader.
    pub last_subscription_handle: Option<Guid>,
}

/// Writers that offer less than a reader requests (`REQUESTED_INCOMPATIBLE_QOS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedIncompatibleQosStatus {
    /// Number of such writers so far.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
    /// First incompatible policy of the last one; [`PolicyId::name`] returns its name.
    pub last_policy_id: Option<PolicyId>,
    /// Last incompatible writer.
    pub last_publication_handle: Option<Guid>,
}

/// Samples that will never arrive at a reader (`SAMPLE_LOST`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleLostStatus {
    /// Number of lost samples, according to their writers.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
    /// Number of these that exceed the reader's [`Qos::max_bytes`](crate::Qos::max_bytes).
    pub too_large: u64,
    /// Reason for the last loss.
    pub last_reason: LostReason,
}

/// Samples that arrived at a reader and were not accepted (`SAMPLE_REJECTED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleRejectedStatus {
    /// Number of rejected samples.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
    /// Reason for the last rejection.
    pub last_reason: Option<RejectReason>,
}

/// DEADLINE periods in which an instance was not written (`OFFERED_DEADLINE_MISSED`). An instance is supervised from
/// its first sample until it is disposed or unregistered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedDeadlineMissedStatus {
    /// Number of missed periods of all instances.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
    /// Key hash of the instance that missed a period last; zeros for a topic without a key.
    pub last_instance_handle: Option<[u8; 16]>,
}

/// DEADLINE periods in which an instance received no sample (`REQUESTED_DEADLINE_MISSED`). An instance is supervised
/// from the first received sample until it is disposed or has no writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedDeadlineMissedStatus {
    /// Number of missed periods of all instances.
    pub total_count: u64,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u64,
    /// Key hash of the instance that missed a period last; zeros for a topic without a key.
    pub last_instance_handle: Option<[u8; 16]>,
}

/// Expirations of a writer's LIVELINESS lease without an assertion (`LIVELINESS_LOST`). A writer that stays silent
/// counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LivelinessLostStatus {
    /// Number of expirations.
    pub total_count: u32,
    /// Change of `total_count` since the status was last read.
    pub total_count_change: u32,
}

/// Liveliness of a reader's matched writers (`LIVELINESS_CHANGED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LivelinessChangedStatus {
    /// Number of matched writers that are alive.
    pub alive_count: u32,
    /// Number of matched writers that are not alive.
    pub not_alive_count: u32,
    /// Change of `alive_count` since the status was last read.
    pub alive_count_change: i32,
    /// Change of `not_alive_count` since the status was last read.
    pub not_alive_count_change: i32,
    /// Writer of the last change.
    pub last_publication_handle: Option<Guid>,
}

impl From<DeadlineMissed> for OfferedDeadlineMissedStatus {
    fn from(missed: DeadlineMissed) -> Self {
        Self {
            total_count: missed.total,
            total_count_change: missed.change,
            last_instance_handle: Some(missed.last_instance),
        }
    }
}

impl From<DeadlineMissed> for RequestedDeadlineMissedStatus {
    fn from(missed: DeadlineMissed) -> Self {
        Self {
            total_count: missed.total,
            total_count_change: missed.change,
            last_instance_handle: Some(missed.last_instance),
        }
    }
}

impl From<LivelinessLost> for LivelinessLostStatus {
    fn from(lost: LivelinessLost) -> Self {
        Self {
            total_count: lost.total,
            total_count_change: lost.change,
        }
    }
}

impl From<LivelinessChanged> for LivelinessChangedStatus {
    fn from(changed: LivelinessChanged) -> Self {
        Self {
            alive_count: changed.alive,
            not_alive_count: changed.not_alive,
            alive_count_change: changed.alive_change,
            not_alive_count_change: changed.not_alive_change,
            last_publication_handle: Some(changed.last),
        }
    }
}

impl From<Matched> for PublicationMatchedStatus {
    fn from(matched: Matched) -> Self {
        Self {
            total_count: matched.total,
            total_count_change: matched.total_change,
            current_count: matched.current,
            current_count_change: matched.current_change,
            last_subscription_handle: Some(matched.last),
        }
    }
}

impl From<Matched> for SubscriptionMatchedStatus {
    fn from(matched: Matched) -> Self {
        Self {
            total_count: matched.total,
            total_count_change: matched.total_change,
            current_count: matched.current,
            current_count_change: matched.current_change,
            last_publication_handle: Some(matched.last),
        }
    }
}

impl From<Incompatible> for OfferedIncompatibleQosStatus {
    fn from(found: Incompatible) -> Self {
        Self {
            total_count: found.total,
            total_count_change: found.total_change,
            last_policy_id: Some(found.policy),
            last_subscription_handle: Some(found.other),
        }
    }
}

impl From<Incompatible> for RequestedIncompatibleQosStatus {
    fn from(found: Incompatible) -> Self {
        Self {
            total_count: found.total,
            total_count_change: found.total_change,
            last_policy_id: Some(found.policy),
            last_publication_handle: Some(found.other),
        }
    }
}

impl From<isolane_rtps::SampleLost> for SampleLostStatus {
    fn from(lost: isolane_rtps::SampleLost) -> Self {
        Self {
            total_count: lost.total,
            total_count_change: lost.change,
            too_large: lost.too_large,
            last_reason: lost.reason,
        }
    }
}

impl From<isolane_rtps::SampleRejected> for SampleRejectedStatus {
    fn from(rejected: isolane_rtps::SampleRejected) -> Self {
        Self {
            total_count: rejected.total,
            total_count_change: rejected.change,
            last_reason: Some(rejected.reason),
        }
    }
}

/// Statuses of an endpoint as of the last read; only those of its kind are used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Statuses {
    pub(crate) publication_matched: PublicationMatchedStatus,
    pub(crate) offered_incompatible_qos: OfferedIncompatibleQosStatus,
    pub(crate) subscription_matched: SubscriptionMatchedStatus,
    pub(crate) requested_incompatible_qos: RequestedIncompatibleQosStatus,
    pub(crate) sample_lost: SampleLostStatus,
    pub(crate) sample_rejected: SampleRejectedStatus,
    pub(crate) offered_deadline_missed: OfferedDeadlineMissedStatus,
    pub(crate) requested_deadline_missed: RequestedDeadlineMissedStatus,
    pub(crate) liveliness_lost: LivelinessLostStatus,
    pub(crate) liveliness_changed: LivelinessChangedStatus,
}

impl Statuses {
    /// Resets the changes after a read.
    pub(crate) fn settle(&mut self) {
        self.publication_matched.total_count_change = 0;
        self.publication_matched.current_count_change = 0;
        self.offered_incompatible_qos.total_count_change = 0;
        self.subscription_matched.total_count_change = 0;
        self.subscription_matched.current_count_change = 0;
        self.requested_incompatible_qos.total_count_change = 0;
        self.sample_lost.total_count_change = 0;
        self.sample_rejected.total_count_change = 0;
        self.offered_deadline_missed.total_count_change = 0;
        self.requested_deadline_missed.total_count_change = 0;
        self.liveliness_lost.total_count_change = 0;
        self.liveliness_changed.alive_count_change = 0;
        self.liveliness_changed.not_alive_count_change = 0;
    }
}
