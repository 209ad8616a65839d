//! What must agree for two endpoints to be a pair (DDS 1.4 §2.2.3): topic, type, key, partition, and each
//! policy's offer and request.

use isolane_wire::{
    discovery::EndpointData,
    guid::Guid,
    qos::{DataRepresentationId, Partition, PolicyId, QosPolicies},
};

/// A pair that shares a topic and does not match (DDS 1.4 §2.2.4.1, *IncompatibleQosStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incompatible {
    /// The other endpoint found last.
    pub other: Guid,
    /// The first policy on which the two differ.
    pub policy: PolicyId,
    /// How many such endpoints were found.
    pub total: u32,
    /// Those since this was last taken
    /// ([`take_offered_incompatible`](crate::Engine::take_offered_incompatible)).
    pub total_change: u32,
}

impl Incompatible {
    /// What is known after one more was found.
    pub(super) fn after(before: Option<Self>, other: Guid, policy: PolicyId) -> Self {
        let (total, change) = before.map_or((0, 0), |before| (before.total, before.total_change));
        Self {
            other,
            policy,
            total: total.saturating_add(1),
            total_change: change.saturating_add(1),
        }
    }
}

/// The first policy of which less is offered than requested; `None`: they are compatible.
#[must_use]
pub fn incompatible_policy(offered: &QosPolicies, requested: &QosPolicies) -> Option<PolicyId> {
    let checks = [
        (
            offered.durability >= requested.durability,
            PolicyId::DURABILITY,
        ),
        (
            offered.presentation.access_scope >= requested.presentation.access_scope
                && offered.presentation.coherent >= requested.presentation.coherent
                && offered.presentation.ordered >= requested.presentation.ordered,
            PolicyId::PRESENTATION,
        ),
        (offered.deadline <= requested.deadline, PolicyId::DEADLINE),
        (
            offered.latency_budget <= requested.latency_budget,
            PolicyId::LATENCY_BUDGET,
        ),
        (
            offered.ownership == requested.ownership,
            PolicyId::OWNERSHIP,
        ),
        (
            offered.liveliness.kind >= requested.liveliness.kind
                && offered.liveliness.lease <= requested.liveliness.lease,
            PolicyId::LIVELINESS,
        ),
        (
            offered.reliability.kind >= requested.reliability.kind,
            PolicyId::RELIABILITY,
        ),
        (
            offered.destination_order >= requested.destination_order,
            PolicyId::DESTINATION_ORDER,
        ),
        (
            representations_meet(offered, requested),
            PolicyId::DATA_REPRESENTATION,
        ),
    ];
    checks
        .into_iter()
        .find_map(|(compatible, policy)| (!compatible).then_some(policy))
}

/// A writer sends in the first representation it offers; the reader must take that one
/// (DDS-XTypes 1.3 §7.6.3.1.2). An empty list means XCDR1.
fn representations_meet(offered: &QosPolicies, requested: &QosPolicies) -> bool {
    let sent = offered
        .data_representation
        .first()
        .copied()
        .unwrap_or(DataRepresentationId::XCDR1);
    let taken = &requested.data_representation;
    taken.contains(&sent) || (taken.is_empty() && sent == DataRepresentationId::XCDR1)
}

pub(super) fn same_topic(own: &EndpointData, keyed: bool, other: &EndpointData) -> bool {
    own.topic_name == other.topic_name
        && own.type_name == other.type_name
        && keyed == other.guid.entity.is_keyed()
        && partitions_meet(&own.qos.partition, &other.qos.partition)
}

/// PARTITION (DDS 1.4 §2.2.3.13): endpoints meet where they share a partition; no partition is the
/// one without a name. Names are compared as they are: wildcards are not expanded yet. Not to meet
/// is no incompatibility, and nobody is told.
fn partitions_meet(own: &Partition, other: &Partition) -> bool {
    let is_default = |partition: &Partition| {
        partition.is_empty() || partition.iter().any(|name| name.is_empty())
    };
    own.iter().any(|name| other.contains(name)) || (is_default(own) && is_default(other))
}
