//! Time-based policies, ownership, partitions and filters of endpoints, selected by one choice. Endpoints with equal
//! choices match, and endpoints with different choices often do as well.

use isolane_rtps::ContentFilter;
use isolane_wire::{
    builtin_data::ContentFilterProperty,
    qos::{LivelinessKind, OwnershipKind, QosPolicies},
    time::Duration,
};

/// Choice for which a reader announces a content filter, and a writer evaluates its readers' filters.
const FILTERED: u8 = 5;
/// Expression of the content filter, the only one that writers support.
const EXPRESSION: &str = "key % 4 <> 1";
/// Period that can pass in one operation.
const PERIOD: Duration = Duration::from_millis(20);
/// Lease of several periods.
const LEASE: Duration = Duration::from_millis(100);

/// Adds the policies selected by the low four bits of a choice.
pub(crate) fn add(qos: &mut QosPolicies, choice: u8) {
    let exclusive = |qos: &mut QosPolicies, strength| {
        qos.ownership = OwnershipKind::Exclusive;
        qos.ownership_strength = strength;
    };
    let lively = |qos: &mut QosPolicies, kind| {
        qos.liveliness.kind = kind;
        qos.liveliness.lease = LEASE;
    };
    match choice & 15 {
        6 => qos.lifespan = PERIOD,
        7 => qos.deadline = PERIOD,
        8 => qos.time_based_filter = PERIOD,
        9 => lively(qos, LivelinessKind::Automatic),
        10 => lively(qos, LivelinessKind::ManualByParticipant),
        11 => lively(qos, LivelinessKind::ManualByTopic),
        12 => exclusive(qos, 1),
        13 => exclusive(qos, 2),
        14 => qos.partition.extend("P*".try_into()),
        15 => {
            exclusive(qos, 3);
            qos.lifespan = PERIOD;
            qos.deadline = PERIOD;
        }
        _ => {}
    }
}

/// Returns whether a choice selects a content filter at readers, and its evaluation at writers.
pub(crate) fn is_filtered(choice: u8) -> bool {
    choice & 15 == FILTERED
}

/// Content filter of a reader with this choice, with its announcement.
pub(crate) fn filter() -> ContentFilter {
    ContentFilter::new(wants).announced(&ContentFilterProperty {
        filtered_topic_name: "Filtered",
        related_topic_name: "Unfiltered",
        class_name: ContentFilterProperty::DDSSQL,
        expression: EXPRESSION,
        parameters: Default::default(),
    })
}

/// Compiles an announced filter for a writer.
pub(crate) fn compile(property: &ContentFilterProperty<'_>) -> Option<ContentFilter> {
    // Only this expression is supported.
    (property.expression == EXPRESSION).then(|| ContentFilter::new(wants).taking(64))
}

/// Returns whether a sample passes the filter. Three of four keys do.
fn wants(payload: &[u8]) -> bool {
    payload.get(4).is_none_or(|key| key % 4 != 1)
}
