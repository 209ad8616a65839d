//! What must agree for two endpoints to be a pair (DDS 1.4 §2.2.3): topic, type, key, partition, and each
//! policy's offer and request.

use isolane_wire::{
    discovery::EndpointData,
    guid::Guid,
    qos::{DataRepresentationId, PolicyId, QosPolicies},
};

use super::partition::partitions_meet;

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
    incompatible_policies(offered, requested).next()
}

/// All policies of which less is offered than requested.
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

/// What a writer and a reader are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Of another topic, type or partition, or one of them without a key: nobody is told.
    Strangers,
    /// Of one topic, and less of this is offered than requested.
    Differ(PolicyId),
    /// A pair.
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

/// What is known of a pair from before.
#[derive(Debug, Clone, Copy)]
pub(super) enum Before<'a> {
    /// They meet for the first time.
    Strangers,
    /// Neither has changed since they were compared.
    Unchanged,
    /// The one of them that has changed was like this.
    Was(&'a EndpointData),
}

impl Before<'_> {
    /// Whether what is found of a pair is news.
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
