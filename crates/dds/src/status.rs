//! What happens to endpoints beside their samples: the statuses of DDS 1.4 §2.2.4.1, by its names.
//!
//! A status is a total and its change since it was last told. A listener is told of a change by a
//! job of its endpoint, at the priority of the topic's protocol work, one listener an activation;
//! a getter asks for the state now. Either takes the change: what one has told, the other does
//! not tell again.

use isolane_engine::{
    DeadlineMissed, Incompatible, LivelinessChanged, LivelinessLost, LostReason, Matched,
    RejectReason,
};
use isolane_wire::{guid::Guid, qos::PolicyId};

/// Readers that a writer is matched with (`PUBLICATION_MATCHED`). A reader counts from the match on;
/// [`DataWriter::matched_readers`](crate::DataWriter::matched_readers) counts those that are known to hear the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublicationMatchedStatus {
    /// Readers that ever matched.
    pub total_count: u32,
    /// Those since the status was last told.
    pub total_count_change: u32,
    /// Readers matched now.
    pub current_count: u32,
    /// By how many more, or fewer, than when it was last told.
    pub current_count_change: i32,
    /// The reader that joined or parted last.
    pub last_subscription_handle: Option<Guid>,
}

/// Writers that a reader is matched with (`SUBSCRIPTION_MATCHED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscriptionMatchedStatus {
    /// Writers that ever matched.
    pub total_count: u32,
    /// Those since the status was last told.
    pub total_count_change: u32,
    /// Writers matched now.
    pub current_count: u32,
    /// By how many more, or fewer, than when it was last told.
    pub current_count_change: i32,
    /// The writer that joined or parted last.
    pub last_publication_handle: Option<Guid>,
}

/// Readers that request more than a writer offers (`OFFERED_INCOMPATIBLE_QOS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedIncompatibleQosStatus {
    /// Readers found so far.
    pub total_count: u32,
    /// Those since the status was last told.
    pub total_count_change: u32,
    /// The first policy on which the last one differs; [`PolicyId::name`] names it.
    pub last_policy_id: Option<PolicyId>,
    /// The last one.
    pub last_subscription_handle: Option<Guid>,
}

/// Writers that offer less than a reader requests (`REQUESTED_INCOMPATIBLE_QOS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedIncompatibleQosStatus {
    /// Writers found so far.
    pub total_count: u32,
    /// Those since the status was last told.
    pub total_count_change: u32,
    /// The first policy on which the last one differs; [`PolicyId::name`] names it.
    pub last_policy_id: Option<PolicyId>,
    /// The last one.
    pub last_publication_handle: Option<Guid>,
}

/// Samples that will never come to a reader (`SAMPLE_LOST`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleLostStatus {
    /// So many ever, by what writers say.
    pub total_count: u64,
    /// Those since the status was last told.
    pub total_count_change: u64,
    /// Of `total_count`, samples that are larger than the reader takes ([`Qos::max_bytes`](crate::Qos::max_bytes)).
    pub too_large: u64,
    /// Why the last one is.
    pub last_reason: LostReason,
}

/// Samples that came to a reader and were not taken in (`SAMPLE_REJECTED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleRejectedStatus {
    /// So many ever.
    pub total_count: u64,
    /// Those since the status was last told.
    pub total_count_change: u64,
    /// Why the last one was.
    pub last_reason: Option<RejectReason>,
}

/// Periods of DEADLINE in which an instance was not written (`OFFERED_DEADLINE_MISSED`). An instance is
/// watched from its first sample on, until it is disposed or unregistered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedDeadlineMissedStatus {
    /// So many ever, of all instances.
    pub total_count: u64,
    /// Those since the status was last told.
    pub total_count_change: u64,
    /// The key hash of the instance whose period passed last; zeros for a topic without a key.
    pub last_instance_handle: Option<[u8; 16]>,
}

/// Periods of DEADLINE in which nothing came of an instance (`REQUESTED_DEADLINE_MISSED`). An instance is
/// watched from the first sample that came on, until it is disposed or nobody writes it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedDeadlineMissedStatus {
    /// So many ever, of all instances.
    pub total_count: u64,
    /// Those since the status was last told.
    pub total_count_change: u64,
    /// The key hash of the instance whose period passed last; zeros for a topic without a key.
    pub last_instance_handle: Option<[u8; 16]>,
}

/// Times a writer was not asserted within its LIVELINESS lease (`LIVELINESS_LOST`). A writer that stays
/// silent loses its liveliness once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LivelinessLostStatus {
    /// So many ever.
    pub total_count: u32,
    /// Those since the status was last told.
    pub total_count_change: u32,
}

/// Matched writers of a reader that are alive, and that are not (`LIVELINESS_CHANGED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LivelinessChangedStatus {
    /// Alive now.
    pub alive_count: u32,
    /// Matched, and not alive now.
    pub not_alive_count: u32,
    /// By how many more, or fewer, are alive than when it was last told.
    pub alive_count_change: i32,
    /// By how many more, or fewer, are not.
    pub not_alive_count_change: i32,
    /// The writer of the last change.
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

impl From<isolane_engine::SampleLost> for SampleLostStatus {
    fn from(lost: isolane_engine::SampleLost) -> Self {
        Self {
            total_count: lost.total,
            total_count_change: lost.change,
            too_large: lost.too_large,
            last_reason: lost.reason,
        }
    }
}

impl From<isolane_engine::SampleRejected> for SampleRejectedStatus {
    fn from(rejected: isolane_engine::SampleRejected) -> Self {
        Self {
            total_count: rejected.total,
            total_count_change: rejected.change,
            last_reason: Some(rejected.reason),
        }
    }
}

/// All statuses of an endpoint as they were last told; of its kind only.
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
    /// What was told is no longer a change.
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
