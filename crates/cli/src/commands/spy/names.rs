//! Text for vendors, built-in entities and QoS policies. `ls` and `why` use it too.

use std::fmt::Debug;

use isolane_wire::guid::EntityId;
use isolane_wire::message::VENDOR_ID;
use isolane_wire::qos::{
    DataRepresentationId, HistoryKind, LENGTH_UNLIMITED, PolicyId, QosPolicies,
};

/// Vendor ids registered by the OMG ("RTPS vendor IDs", omg.org/dds).
const VENDORS: &[([u8; 2], &str)] = &[
    ([0x01, 0x01], "RTI Connext"),
    ([0x01, 0x02], "OpenSplice"),
    ([0x01, 0x03], "OpenDDS"),
    ([0x01, 0x04], "Mil-DDS"),
    ([0x01, 0x05], "InterCOM DDS"),
    ([0x01, 0x06], "CoreDX"),
    ([0x01, 0x09], "ETRI DDS"),
    ([0x01, 0x0a], "RTI Connext Micro"),
    ([0x01, 0x0b], "Vortex Cafe"),
    ([0x01, 0x0d], "Vortex Lite"),
    ([0x01, 0x0f], "Fast DDS"),
    ([0x01, 0x10], "Cyclone DDS"),
    ([0x01, 0x11], "GurumDDS"),
    ([0x01, 0x12], "RustDDS"),
    ([0x01, 0x14], "Dust DDS"),
    (VENDOR_ID, "isolane"),
];

/// Returns a vendor's name, or its vendor id if the name is unknown.
pub(in crate::commands) fn vendor(id: [u8; 2]) -> String {
    match VENDORS.iter().find(|(known, _)| *known == id) {
        Some((_, name)) => String::from(*name),
        None => format!("vendor {:02x}.{:02x}", id[0], id[1]),
    }
}

/// Returns the purpose of a built-in entity; `None` for an entity of a user or a vendor.
pub(super) fn built_in_entity(entity: EntityId) -> Option<&'static str> {
    Some(match entity {
        EntityId::SPDP_WRITER | EntityId::SPDP_READER => "participants",
        EntityId::SEDP_PUBLICATIONS_WRITER | EntityId::SEDP_PUBLICATIONS_READER => "publications",
        EntityId::SEDP_SUBSCRIPTIONS_WRITER | EntityId::SEDP_SUBSCRIPTIONS_READER => {
            "subscriptions"
        }
        EntityId::P2P_MESSAGE_WRITER | EntityId::P2P_MESSAGE_READER => "liveliness",
        _ => return None,
    })
}

/// Returns the names and values of the policies that differ from `defaults`.
pub(in crate::commands) fn policies(
    qos: &QosPolicies,
    defaults: &QosPolicies,
) -> Vec<(&'static str, String)> {
    let policies = described(qos).into_iter().zip(described(defaults));
    let different = policies.filter(|(own, default)| own != default);
    different.map(|(own, _)| own).collect()
}

/// Returns the value of one policy as text.
pub(in crate::commands) fn policy_value(policy: PolicyId, qos: &QosPolicies) -> String {
    let mut all = described(qos).into_iter();
    let found = all.find(|(name, _)| *name == policy.name());
    found.map_or_else(|| String::from("something else"), |(_, value)| value)
}

/// Names and values of all policies that discovery announces, except DURABILITY_SERVICE and user data.
pub(in crate::commands) fn described(qos: &QosPolicies) -> Vec<(&'static str, String)> {
    let liveliness = constant(qos.liveliness.kind);
    vec![
        ("RELIABILITY", constant(qos.reliability.kind)),
        ("DURABILITY", constant(qos.durability)),
        ("HISTORY", history(qos)),
        ("RESOURCE_LIMITS", resource_limits(qos)),
        ("TRANSPORT_PRIORITY", qos.transport_priority.to_string()),
        ("DEADLINE", qos.deadline.to_string()),
        ("LATENCY_BUDGET", qos.latency_budget.to_string()),
        ("LIFESPAN", qos.lifespan.to_string()),
        ("TIME_BASED_FILTER", qos.time_based_filter.to_string()),
        (
            "LIVELINESS",
            format!("{liveliness} {}", qos.liveliness.lease),
        ),
        ("OWNERSHIP", constant(qos.ownership)),
        ("OWNERSHIP_STRENGTH", qos.ownership_strength.to_string()),
        ("DESTINATION_ORDER", constant(qos.destination_order)),
        ("PRESENTATION", presentation(qos)),
        ("PARTITION", partition(qos)),
        ("DATA_REPRESENTATION", representations(qos)),
    ]
}

/// Converts the name of an enumerator to the form in DDS: `ByReceptionTimestamp` to BY_RECEPTION_TIMESTAMP.
fn constant(enumerator: impl Debug) -> String {
    let mut text = String::new();
    for letter in format!("{enumerator:?}").chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

fn history(qos: &QosPolicies) -> String {
    match qos.history.kind {
        HistoryKind::KeepLast => format!("KEEP_LAST {}", qos.history.depth),
        HistoryKind::KeepAll => String::from("KEEP_ALL"),
    }
}

fn resource_limits(qos: &QosPolicies) -> String {
    let limits = &qos.resource_limits;
    let limits = [
        ("samples", limits.max_samples),
        ("instances", limits.max_instances),
        ("samples an instance", limits.max_samples_per_instance),
    ];
    let limited = limits
        .iter()
        .filter(|(_, number)| *number != LENGTH_UNLIMITED);
    joined(
        limited.map(|(what, number)| format!("{number} {what}")),
        "unlimited",
    )
}

fn presentation(qos: &QosPolicies) -> String {
    let presentation = &qos.presentation;
    let mut text = constant(presentation.access_scope);
    text += if presentation.coherent {
        " coherent"
    } else {
        ""
    };
    text += if presentation.ordered { " ordered" } else { "" };
    text
}

fn partition(qos: &QosPolicies) -> String {
    let names = qos.partition.iter();
    joined(
        names.map(|name| format!("{:?}", name.as_str())),
        "the default one",
    )
}

fn representations(qos: &QosPolicies) -> String {
    let names = qos.data_representation.iter().map(|id| match *id {
        DataRepresentationId::XCDR1 => String::from("XCDR1"),
        DataRepresentationId::XML => String::from("XML"),
        DataRepresentationId::XCDR2 => String::from("XCDR2"),
        DataRepresentationId(number) => number.to_string(),
    });
    joined(names, "XCDR1, not announced")
}

fn joined(values: impl Iterator<Item = String>, if_none: &str) -> String {
    let values: Vec<String> = values.collect();
    match values.is_empty() {
        true => String::from(if_none),
        false => values.join(" "),
    }
}
