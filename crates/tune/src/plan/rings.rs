//! Ring sizes of the device.

use crate::facts::RingSizes;
use crate::limits::MIN_TRANSMIT_RING_FRAMES;
use crate::setting::{Setting, Value};

use super::builder::{PlanBuilder, Rationale};
use super::target::{PlanInput, TopicInterface};

pub(super) fn plan(input: &PlanInput<'_>, target: &TopicInterface<'_>, builder: &mut PlanBuilder) {
    let (Some(has), Some(most)) = (target.device.rings, target.device.rings_max) else {
        return;
    };
    let tuning = input.tuning;
    let least = tuning.receive_ring_frames.value.unwrap_or(0);
    let longest = tuning.transmit_ring_frames.value.unwrap_or(u32::MAX);
    let to = RingSizes {
        rx: has.rx.max(least.min(most.rx)),
        tx: has.tx.min(longest.max(MIN_TRANSMIT_RING_FRAMES)),
    };
    let mut why: Vec<String> = Vec::new();
    let mut costs: Vec<&str> = Vec::new();
    if to.rx != has.rx {
        why.push(format!(
            "{} frames is what comes in {} us at 1 Gbit/s (shortest frames): a core that is kept longer loses \
             the rest",
            has.rx,
            u64::from(has.rx) * SHORTEST_FRAME_NS / 1000
        ));
        costs.push("2 KiB of memory a frame and queue");
    }
    if to.tx != has.tx {
        why.push(format!(
            "{} frames of 1,500 B wait {} us at 1 Gbit/s, and none that is in the ring is overtaken there",
            has.tx,
            u64::from(has.tx) * LONGEST_FRAME_NS / 1000
        ));
        costs.push("less is on the way when the core that sends is late: throughput on slow cores");
    }
    costs.push("the link is down for a moment");
    let setting = Setting::Rings {
        interface: target.name().to_owned(),
    };
    builder.change(
        target.id("rings"),
        setting,
        (Value::Rings(has), Value::Rings(to)),
        Rationale::of(
            &input.critical_topics(None),
            why.join("; "),
            costs.join("; "),
        ),
    );
}

/// Time of a minimum-size frame at 1 Gbit/s: 64 B, plus 20 B of preamble and gap.
const SHORTEST_FRAME_NS: u64 = 672;
/// Time of a maximum-size frame: 1,518 B, plus the same 20 B.
const LONGEST_FRAME_NS: u64 = 12_304;
