//! Compatibility of two endpoints (DDS 1.4 §2.2.3): topic, type, key, partition, and offered against requested
//! policies.

use isolane_wire::{
    discovery::EndpointData,
    guid::Guid,
    qos::{DataRepresentationId, PolicyId, QosPolicies},
};

use super::partition::partitions_meet;

/// Endpoints of the same topic with incompatible QoS (DDS 1.4 §2.2.4.1, *IncompatibleQosStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incompatible {
    /// Last incompatible endpoint.
    pub other: Guid,
    /// First policy on which it differs.
    pub policy: PolicyId,
    /// Total number of incompatible endpoints.
    pub total: u32,
    /// Increase since the status was last taken
    /// ([`take_offered_incompatible`](crate::Engine::take_offered_incompatible)).
    pub total_change: u32,
}

impl Incompatible {
    /// Adds another incompatible endpoint to the status.
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

/// Returns the first policy that offers less than requested; `None` if all are compatible.
#[must_use]
pub fn incompatible_policy(offered: &QosPolicies, requested: &QosPolicies) -> Option<PolicyId> {
    incompatible_policies(offered, requested).next()
}

/// Returns all policies that offer less than requested.
pub fn incompatible_policies(
    offered: &QosPolicies,
    requested: &QosPolicies,
) -> impl Iterator<Item = PolicyId> + use<> {
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
        .filter_map(|(compatible, policy)| (!compatible).then_some(policy))
}

/// Returns whether the reader accepts the first representation offered, in which the writer sends (DDS-XTypes 1.3
/// §7.6.3.1.2). An empty list means XCDR1.
fn representations_meet(offered: &QosPolicies, requested: &QosPolicies) -> bool {
    let sent = offered
        .data_representation
        .first()
        .copied()
        .unwrap_or(DataRepresentationId::XCDR1);
    let taken = &requested.data_representation;
    taken.contains(&sent) || (taken.is_empty() && sent == DataRepresentationId::XCDR1)
}

/// Result of comparing a writer with a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Different topic, type, key kind or partition: not an incompatibility.
    Strangers,
    /// Same topic, but this policy offers less than requested.
    Differ(PolicyId),
    /// Compatible.
    Fit,
}

pub(super) fn compare(writer: &EndpointData, reader: &EndpointData) -> Comparison {
    let is_same_topic = writer.topic_name == reader.topic_name
        && writer.type_name == reader.type_name
        && writer.is_keyed() == reader.is_keyed()
        && partitions_meet(&writer.qos.partition, &reader.qos.partition);
    if !is_same_topic {
        return Comparison::Strangers;
    }
    incompatible_policy(&writer.qos, &reader.qos).map_or(Comparison::Fit, Comparison::Differ)
}

/// Earlier result for a pair.
#[derive(Debug, Clone, Copy)]
pub(super) enum Before<'a> {
    /// Compared for the first time.
    Strangers,
    /// Unchanged since the last comparison.
    Unchanged,
    /// Former data of the endpoint that has changed.
    Was(&'a EndpointData),
}

impl Before<'_> {
    /// Returns whether the result differs from the earlier one.
    pub(super) fn is_news(
        self,
        found: Comparison,
        writer: &EndpointData,
        reader: &EndpointData,
    ) -> bool {
        match self {
            Self::Strangers => true,
            Self::Unchanged => false,
            Self::Was(former) if former.guid == writer.guid => compare(former, reader) != found,
            Self::Was(former) => compare(writer, former) != found,
        }
    }
}
