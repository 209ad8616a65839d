//! QoS policies of discovery data (DDS 1.4 §2.2.3, RTPS 2.5 §9.6.3, §9.6.4).
//!
//! [`QosPolicies`] holds one value of each policy; an omitted policy has the standard's default. Kinds are ordered as
//! the standard orders them for matching: a greater kind offers more than a smaller one. Matching itself is not
//! implemented here.

mod kinds;
mod parameter_value;
mod policies;

pub use kinds::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, HistoryKind, LivelinessKind,
    OwnershipKind, PolicyId, PresentationAccessScope, ReliabilityKind,
};
pub(crate) use parameter_value::ParameterValue;
pub use policies::{
    DataRepresentations, DurabilityService, History, LENGTH_UNLIMITED, Liveliness, Octets,
    Partition, Presentation, QosPolicies, ReaderDataLifecycle, Reliability, ResourceLimits,
};
