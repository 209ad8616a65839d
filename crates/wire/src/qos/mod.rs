//! QoS policies of discovery data (DDS 1.4 §2.2.3, RTPS 2.5 §9.6.3, §9.6.4).
//!
//! [`QosPolicies`] holds one value of each policy; an omitted one has the standard's default. Kinds are
//! ordered as the standard orders them for matching: the greater one offers more. Matching itself is not
//! implemented here.

mod kinds;
mod octets;
mod policies;
mod policy_id;
mod wire_form;

pub use kinds::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, HistoryKind, LivelinessKind,
    OwnershipKind, PresentationAccessScope, ReliabilityKind,
};
pub use octets::Octets;
pub use policies::{
    DataRepresentations, DurabilityService, History, LENGTH_UNLIMITED, Liveliness, Partition,
    Presentation, QosPolicies, ReaderDataLifecycle, Reliability, ResourceLimits,
};
pub use policy_id::PolicyId;
pub(crate) use wire_form::WireForm;
