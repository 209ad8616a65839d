//! What happens to endpoints beside their samples: the statuses of DDS 1.4 §2.2.4.1, by its names.
//!
//! A status is a total and its change since it was last told. A listener is told of a change by a
//! job of its endpoint, at the priority of the topic's protocol work, one listener an activation;
//! a getter asks for the state now. Either takes the change: what one has told, the other does
//! not tell again.

use isolane_engine::{Incompatible, Matched, RejectReason};
use isolane_wire::{guid::Guid, qos::PolicyId};

/// Readers that a writer is matched with (`PUBLICATION_MATCHED`). A reader counts once it is known
/// to hear this participant.
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
    }
}
