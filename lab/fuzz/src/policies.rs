//! Policies of time, ownership and partitions, of endpoints of either side: one choice, so that two that chose
//! alike match and others often do as well.

use isolane_engine::ContentFilter;
use isolane_wire::{
    discovery::ContentFilterProperty,
    qos::{LivelinessKind, OwnershipKind, QosPolicies},
    time::Duration,
};

/// The choice with which a reader has a content filter, and announces it, and a writer asks those of its readers.
const FILTERED: u8 = 5;
/// The words of that filter, which writers understand.
const EXPRESSION: &str = "key % 4 <> 1";
/// A period that passes with the times that operations let pass.
const PERIOD: Duration = Duration::from_millis(20);
/// A lease that outlives a few of them.
const LEASE: Duration = Duration::from_millis(100);

/// Adds what the low four bits of a choice say.
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

/// Whether a reader that chose so has a content filter, and a writer asks such filters.
pub(crate) fn is_filtered(choice: u8) -> bool {
    choice & 15 == FILTERED
}

/// The filter of such a reader, as it announces it.
pub(crate) fn filter() -> ContentFilter {
    ContentFilter::new(wants).announced(&ContentFilterProperty {
        filtered_topic_name: "Filtered",
        related_topic_name: "Unfiltered",
        class_name: ContentFilterProperty::DDSSQL,
        expression: EXPRESSION,
        parameters: Default::default(),
    })
}

/// What a writer makes of an announced filter.
pub(crate) fn compile(property: &ContentFilterProperty<'_>) -> Option<ContentFilter> {
    // A comparison, and no more.
    (property.expression == EXPRESSION).then(|| ContentFilter::new(wants).taking(64))
}

/// What such a filter lets pass: three of four keys.
fn wants(payload: &[u8]) -> bool {
    payload.get(4).is_none_or(|key| key % 4 != 1)
}
