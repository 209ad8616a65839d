//! Offloads that change frames before isolane receives them, or after it sends them.

use crate::setting::{Setting, Value};

use super::builder::{PlanBuilder, Rationale};
use super::target::{PlanInput, TopicInterface};

/// Offload by kernel name, reason to disable it, and cost of that.
struct Offload(&'static str, &'static str, &'static str);

/// Offloads that hide frames from an XDP program, and so from lanes.
const HIDES: [Offload; 2] = [
    Offload(
        "rx-lro",
        "frames that the device merges are no frames any more: no lane can be attached",
        "TCP streams take more of the processor's time",
    ),
    Offload(
        "rx-gro-hw",
        "frames that the device merges are no frames any more: no lane can be attached",
        "TCP streams take more of the processor's time",
    ),
];
const TAGS: Offload = Offload(
    "rx-vlan-hw-parse",
    "the device takes the VLAN tag off, and the lanes' classifier, which looks for it, finds none",
    "the kernel takes the tags off itself: some nanoseconds a frame",
);
const MERGES: [Offload; 1] = [Offload(
    "rx-gro",
    "receive work merges frames of one flow before it hands them on: a critical frame waits for the others of its \
     poll",
    "TCP streams take more of the processor's time",
)];
const CUTS: [Offload; 4] = [
    Offload(
        "tx-tcp-segmentation",
        "64 KiB of a bulk stream go to the wire at once: 524 us at 1 Gbit/s, in front of a critical frame that \
         shares the queue",
        "TCP streams take more of the processor's time",
    ),
    Offload(
        "tx-tcp6-segmentation",
        "the same over IPv6",
        "TCP streams take more of the processor's time",
    ),
    Offload(
        "tx-generic-segmentation",
        "64 KiB of a bulk stream wait as one, and are cut when their turn has come: nothing comes between",
        "TCP streams take more of the processor's time",
    ),
    Offload(
        "tx-udp-segmentation",
        "64 KiB of a bulk stream go to the wire at once, in front of a critical frame that shares the queue",
        "UDP streams that are sent in large pieces take more of the processor's time",
    ),
];

/// Kernel names of all offloads that planning may disable.
pub(super) fn switched_off() -> impl Iterator<Item = &'static str> {
    let all = HIDES.iter().chain([&TAGS]).chain(&MERGES).chain(&CUTS);
    all.map(|Offload(feature, ..)| *feature)
}

pub(super) fn plan(input: &PlanInput<'_>, target: &TopicInterface<'_>, builder: &mut PlanBuilder) {
    let tuning = input.tuning;
    let mut wanted: Vec<&Offload> = Vec::new();
    if tuning.xdp_offloads_off.value {
        wanted.extend(&HIDES);
        if input.needs.vlan.is_some() {
            wanted.push(&TAGS);
        }
    }
    if tuning.merging_off.value {
        wanted.extend(&MERGES);
    }
    if tuning.segmentation_off.value {
        wanted.extend(&CUTS);
    }
    for Offload(feature, why, costs) in wanted {
        let Some(has) = target.device.features.get(*feature).filter(|has| has.is_on) else {
            continue;
        };
        let id = target.id(&format!("offload-{feature}"));
        if !has.is_changeable {
            builder.not_planned(
                id,
                format!("{feature} is on, and the driver keeps it so: {why}"),
                "",
            );
            continue;
        }
        let setting = Setting::Feature {
            interface: target.name().to_owned(),
            feature: String::from(*feature),
        };
        let rationale = Rationale::of(&input.critical_topics(None), *why, *costs);
        builder.change(
            id,
            setting,
            (Value::Switch(true), Value::Switch(false)),
            rationale,
        );
    }
}
