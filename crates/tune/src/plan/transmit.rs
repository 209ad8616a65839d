//! Transmit queueing discipline.

use std::ops::RangeInclusive;

use isolane_model::Transmit;

use crate::facts::{RootQdisc, TrafficClasses};
use crate::limits::PFIFO_FRAMES;
use crate::needs::Direction;
use crate::setting::{Setting, Value};

use super::builder::{PlanBuilder, Rationale};
use super::input::{PlanInput, TopicInterface};

/// Kernel priorities used for levels: SO_PRIORITY 0 to 7.
const LEVELS: u8 = 8;
/// Kernel priority of IGMP and LACP (TC_PRIO_CONTROL).
const CONTROL: u8 = 7;
/// Kernel priority of datagrams with low-delay TOS (TC_PRIO_INTERACTIVE).
const INTERACTIVE: u8 = 6;

pub(super) fn plan(target: &TopicInterface<'_>, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    let id = target.id("transmit");
    let name = target.name();
    let wanted = input.tuning.transmit.value;
    let topics = input.critical_topics(Some(Direction::Transmit));
    if wanted == Transmit::Keep || topics.is_empty() {
        return;
    }
    let Some(has) = &target.device.root_qdisc else {
        builder.not_planned(
            id,
            format!("the queueing of {name} cannot be read"),
            format!("show it: tc qdisc show dev {name}"),
        );
        return;
    };
    let foreign = match has {
        RootQdisc::Other { name } => Some(name.as_str()),
        // Other hosts rely on the schedule.
        RootQdisc::Taprio(_) => Some("taprio"),
        _ => None,
    };
    if let Some(other) = foreign {
        builder.not_planned(
            id,
            format!("{other} on {name} was not set up by isolane, and stays unchanged"),
            format!("if it is not needed: tc qdisc del dev {name} root, and plan again"),
        );
        return;
    }
    let (to, rationale) = match wanted {
        Transmit::Pfifo => (
            RootQdisc::Pfifo {
                frames: PFIFO_FRAMES,
            },
            Rationale::of(
                &topics,
                format!(
                    "at most {PFIFO_FRAMES} frames wait, in order of arrival; none is dropped because of its age"
                ),
                "bulk streams lose frames earlier, and one stream can take all of the link's rate",
            ),
        ),
        _ => {
            if target.critical_queue.is_none() && target.transmit_queues > 1 {
                let why = format!(
                    "critical topics have no transmit queue of {name} of their own, because they have no critical \
                     queue (above)"
                );
                return builder.not_planned(id, why, "");
            }
            let Some(classes) = strict(target).or_else(|| classes(target)) else {
                builder.not_planned(
                    id,
                    format!(
                        "{name} has one transmit queue, in which critical frames wait behind all others, whatever the \
                         queueing discipline"
                    ),
                    "keep bulk traffic on another interface, or use an interface with several queues; frames of lanes \
                     skip the kernel's queueing, but wait in the same ring",
                );
                return;
            };
            // Offloaded classes are kept, whoever set them: without offload, the device serves its queues round-robin.
            let is_there = matches!(has, RootQdisc::Mqprio(known)
                if known.class_of_priority == classes.class_of_priority && known.queues == classes.queues
                    && (known.offloaded || !classes.offloaded));
            if is_there {
                report_queue_order(target, has, builder);
                return;
            }
            let rationale = class_rationale(target, &classes, &topics);
            (RootQdisc::Mqprio(classes), rationale)
        }
    };
    report_queue_order(target, &to, builder);
    let interface = name.to_owned();
    let setting = Setting::RootQdisc { interface };
    builder.change(
        id,
        setting,
        (Value::Qdisc(has.clone()), Value::Qdisc(to)),
        rationale,
    );
}

/// Kernel priorities of the critical levels, up to the host's highest level. Frames of the kernel (IGMP, LACP) with a
/// higher priority are not critical.
fn critical_priorities(input: &PlanInput<'_>) -> Option<RangeInclusive<u8>> {
    let highest = input.needs.highest_level?.min(LEVELS - 1);
    Some(input.critical_level()?..=highest)
}

/// Two classes: critical levels on the critical queue, all others on the queues before or after it, whichever are more.
fn classes(target: &TopicInterface<'_>) -> Option<TrafficClasses> {
    let input = &target.input;
    let critical = u16::try_from(target.critical_queue?).ok()?;
    let queues = u16::try_from(target.transmit_queues).ok()?;
    if critical >= queues || queues < 2 {
        return None;
    }
    let (before, after) = ((critical, 0), (queues - critical - 1, critical + 1));
    let bulk = if after.0 >= before.0 { after } else { before };
    let mut class_of_priority = [0; 16];
    for priority in critical_priorities(input)? {
        class_of_priority[usize::from(priority)] = 1;
    }
    Some(TrafficClasses {
        class_of_priority,
        queues: vec![bulk, (1, critical)],
        offloaded: false,
    })
}

/// Strict classes, one per queue, which the device serves in descending order. Critical levels have the last queue, the
/// others by level the earlier ones. `None` if the device or the driver cannot do this.
///
/// `igc_tsn_enable_mqprio` accepts as many classes as queues, one queue each, in ascending order. stmmac with `hw 1`
/// (Linux 6.13) does not determine the order; its device tree does (`snps,tx-sched-sp`).
fn strict(target: &TopicInterface<'_>) -> Option<TrafficClasses> {
    let input = &target.input;
    if !can_be_strict(target) {
        return None;
    }
    let queues = u16::try_from(target.transmit_queues).ok()?;
    let critical = critical_priorities(input)?;
    let last = queues.checked_sub(1).filter(|last| *last > 0)?;
    if target.critical_queue != Some(u32::from(last)) {
        return None;
    }
    let mut class_of_priority = [0; 16];
    for level in 0..LEVELS {
        let class = match level {
            _ if critical.contains(&level) => last,
            _ if level < *critical.start() => {
                u16::from(level) * last / u16::from(*critical.start())
            }
            // Frames of the kernel with a priority above all levels: the class below the critical one.
            _ => last - 1,
        };
        class_of_priority[usize::from(level)] = u8::try_from(class).ok()?;
    }
    Some(TrafficClasses {
        class_of_priority,
        queues: (0..queues).map(|queue| (1, queue)).collect(),
        offloaded: true,
    })
}

/// Returns whether the driver, in this kernel version, can make its device serve queues strictly by class.
fn can_be_strict(target: &TopicInterface<'_>) -> bool {
    let input = &target.input;
    const SINCE: (u32, u32) = (6, 12);
    let mut numbers = input.facts.kernel.release.split(['.', '-']);
    let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    let release = number().zip(number());
    target.device.driver.as_deref() == Some("igc") && release >= Some(SINCE)
}

fn class_rationale(
    target: &TopicInterface<'_>,
    classes: &TrafficClasses,
    topics: &[String],
) -> Rationale {
    let input = &target.input;
    let queue = target.critical_queue.unwrap_or_default();
    let order = match classes.offloaded {
        true => {
            "the device sends this queue before all others (according to its driver, not verified on hardware): a \
             critical frame waits for the frame on the wire"
        }
        false => {
            "a critical frame does not wait behind frames of other queues, except for one frame of each if the device \
             serves its queues in turn"
        }
    };
    // The kernel uses these priorities too: TC_PRIO_CONTROL, and TC_PRIO_INTERACTIVE for datagrams with low-delay TOS.
    let has =
        |priority| critical_priorities(input).is_some_and(|critical| critical.contains(&priority));
    let mut shares = String::new();
    if has(CONTROL) {
        shares.push_str(
            "; IGMP and LACP (priority 7) use this queue too, 0.7 us for each frame at 1 Gbit/s: some frames when a \
             program joins or leaves groups",
        );
    }
    if has(INTERACTIVE) {
        shares.push_str("; so do datagrams that request low delay (TOS 0x10: priority 6)");
    }
    let others = match classes.offloaded {
        true => format!(
            "other traffic has a queue for every few levels, and waits for all more urgent levels; the device is \
             reset (the link is down for a moment); {FAIR}"
        ),
        false => format!(
            "other traffic has {} of {} transmit queues; {FAIR}",
            classes.queues.first().map_or(0, |(count, _)| *count),
            target.transmit_queues
        ),
    };
    Rationale::of(
        topics,
        format!("critical frames have transmit queue {queue}: {order}{shares}"),
        others,
    )
}

const FAIR: &str = "bulk streams lose fair queueing (fq_codel)";

/// Reports that the device chooses the order in which it serves its queues, unless classes are offloaded.
fn report_queue_order(
    target: &TopicInterface<'_>,
    qdisc: &RootQdisc,
    builder: &mut PlanBuilder<'_>,
) {
    let input = &target.input;
    let RootQdisc::Mqprio(classes) = qdisc else {
        return;
    };
    if classes.offloaded || target.interface.kind.is_some() {
        return;
    }
    builder.not_planned(
        target.id("transmit-strict"),
        format!(
            "the device serves its transmit queues in turn: a critical frame may wait for one frame of each other \
             queue (at most {} frames of 1,518 B)",
            target.transmit_queues.saturating_sub(1)
        ),
        match can_be_strict(target) {
            true => format!(
                "the driver lets the device serve its queues strictly if the critical queue is the last one: queues = \
                 {{ {} = {} }} in [host.NAME.xdp]",
                input.needs.highest_level.unwrap_or_default(),
                target.transmit_queues.saturating_sub(1)
            ),
            false => String::from(
                "include these frames in bounds; an igc (Linux 6.12) serves its queues strictly, and so does an \
                 stmmac if its device tree says so (snps,tx-sched-sp)",
            ),
        },
    );
}
