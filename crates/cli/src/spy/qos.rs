//! QoS policies in words, those first that a reader of a trace looks for.

use isolane_wire::qos::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, History, HistoryKind,
    LENGTH_UNLIMITED, LivelinessKind, OwnershipKind, PolicyId, PresentationAccessScope,
    QosPolicies, ReliabilityKind, ResourceLimits,
};

/// A policy's name in the standard, and its value.
pub(super) type Policy = (&'static str, String);

/// The policies of a writer or reader that differ from what `defaults` has.
pub(super) fn policies(qos: &QosPolicies, defaults: &QosPolicies) -> Vec<Policy> {
    let policies = described(qos).into_iter().zip(described(defaults));
    policies
        // Where there is no service of durability, nobody asks how it would keep samples.
        .filter(|((name, _), _)| {
            *name != "DURABILITY_SERVICE" || qos.durability > DurabilityKind::TransientLocal
        })
        .filter(|(own, default)| own != default)
        .map(|(own, _)| own)
        .collect()
}

/// The value of one policy, in words.
pub(crate) fn value(policy: PolicyId, qos: &QosPolicies) -> String {
    let mut all = described(qos).into_iter();
    let found = all.find(|(name, _)| *name == policy.name());
    found.map_or_else(|| String::from("something else"), |(_, value)| value)
}

/// Every policy, always in the same order.
fn described(qos: &QosPolicies) -> Vec<Policy> {
    let resource = resource_limits(&qos.resource_limits);
    let service = &qos.durability_service;
    vec![
        ("RELIABILITY", reliability(qos)),
        ("DURABILITY", durability(qos.durability).into()),
        ("HISTORY", history(&qos.history)),
        ("RESOURCE_LIMITS", resource),
        ("TRANSPORT_PRIORITY", qos.transport_priority.to_string()),
        ("DEADLINE", qos.deadline.to_string()),
        ("LATENCY_BUDGET", qos.latency_budget.to_string()),
        ("LIFESPAN", qos.lifespan.to_string()),
        ("TIME_BASED_FILTER", qos.time_based_filter.to_string()),
        (
            "LIVELINESS",
            format!(
                "{} {}",
                liveliness(qos.liveliness.kind),
                qos.liveliness.lease
            ),
        ),
        ("OWNERSHIP", ownership(qos.ownership).into()),
        ("OWNERSHIP_STRENGTH", qos.ownership_strength.to_string()),
        (
            "DESTINATION_ORDER",
            destination_order(qos.destination_order).into(),
        ),
        ("PRESENTATION", presentation(qos)),
        ("PARTITION", partition(qos)),
        ("DATA_REPRESENTATION", representations(qos)),
        (
            "DURABILITY_SERVICE",
            format!(
                "{}, {}, cleanup {}",
                history(&service.history),
                resource_limits(&service.resource_limits),
                service.cleanup_delay
            ),
        ),
    ]
}

fn reliability(qos: &QosPolicies) -> String {
    match qos.reliability.kind {
        ReliabilityKind::BestEffort => String::from("BEST_EFFORT"),
        ReliabilityKind::Reliable => String::from("RELIABLE"),
    }
}

fn durability(kind: DurabilityKind) -> &'static str {
    match kind {
        DurabilityKind::Volatile => "VOLATILE",
        DurabilityKind::TransientLocal => "TRANSIENT_LOCAL",
        DurabilityKind::Transient => "TRANSIENT",
        DurabilityKind::Persistent => "PERSISTENT",
    }
}

fn history(history: &History) -> String {
    match history.kind {
        HistoryKind::KeepLast => format!("KEEP_LAST {}", history.depth),
        HistoryKind::KeepAll => String::from("KEEP_ALL"),
    }
}

fn resource_limits(limits: &ResourceLimits) -> String {
    let limited: Vec<String> = [
        ("samples", limits.max_samples),
        ("instances", limits.max_instances),
        ("samples an instance", limits.max_samples_per_instance),
    ]
    .into_iter()
    .filter(|(_, number)| *number != LENGTH_UNLIMITED)
    .map(|(what, number)| format!("{number} {what}"))
    .collect();
    if limited.is_empty() {
        String::from("unlimited")
    } else {
        limited.join(" ")
    }
}

fn liveliness(kind: LivelinessKind) -> &'static str {
    match kind {
        LivelinessKind::Automatic => "AUTOMATIC",
        LivelinessKind::ManualByParticipant => "MANUAL_BY_PARTICIPANT",
        LivelinessKind::ManualByTopic => "MANUAL_BY_TOPIC",
    }
}

fn ownership(kind: OwnershipKind) -> &'static str {
    match kind {
        OwnershipKind::Shared => "SHARED",
        OwnershipKind::Exclusive => "EXCLUSIVE",
    }
}

fn destination_order(kind: DestinationOrderKind) -> &'static str {
    match kind {
        DestinationOrderKind::ByReceptionTimestamp => "BY_RECEPTION_TIMESTAMP",
        DestinationOrderKind::BySourceTimestamp => "BY_SOURCE_TIMESTAMP",
    }
}

fn presentation(qos: &QosPolicies) -> String {
    let scope = match qos.presentation.access_scope {
        PresentationAccessScope::Instance => "INSTANCE",
        PresentationAccessScope::Topic => "TOPIC",
        PresentationAccessScope::Group => "GROUP",
    };
    let coherent = if qos.presentation.coherent {
        " coherent"
    } else {
        ""
    };
    let ordered = if qos.presentation.ordered {
        " ordered"
    } else {
        ""
    };
    format!("{scope}{coherent}{ordered}")
}

fn partition(qos: &QosPolicies) -> String {
    let names: Vec<String> = qos
        .partition
        .iter()
        .map(|name| format!("{:?}", name.as_str()))
        .collect();
    if names.is_empty() {
        String::from("the default one")
    } else {
        names.join(" ")
    }
}

fn representations(qos: &QosPolicies) -> String {
    let names: Vec<String> = qos
        .data_representation
        .iter()
        .map(|id| match *id {
            DataRepresentationId::XCDR1 => String::from("XCDR1"),
            DataRepresentationId::XML => String::from("XML"),
            DataRepresentationId::XCDR2 => String::from("XCDR2"),
            DataRepresentationId(number) => number.to_string(),
        })
        .collect();
    if names.is_empty() {
        String::from("XCDR1, not announced")
    } else {
        names.join(" ")
    }
}
