//! Ring sizes, offloads and interrupt coalescing of the device.

use super::builder::{PlanBuilder, Rationale};
use super::input::TopicInterface;
use crate::facts::{Coalescing, Device, RingSizes};
use crate::limits::MIN_TRANSMIT_RING_FRAMES;
use crate::setting::{Setting, Value};

pub(super) fn plan_rings(target: &TopicInterface<'_>, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
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
            "the ring of {} frames is full after {} us at 1 Gbit/s (shortest frames): if the core is busy for longer, \
             the next frames are lost",
            has.rx,
            u64::from(has.rx) * SHORTEST_FRAME_NS / 1000
        ));
        costs.push("2 KiB of memory for each frame of each queue");
    }
    if to.tx != has.tx {
        why.push(format!(
            "{} frames of 1,500 B in the ring take {} us at 1 Gbit/s, and a critical frame cannot overtake them",
            has.tx,
            u64::from(has.tx) * LONGEST_FRAME_NS / 1000
        ));
        costs.push("if the sending core is late, fewer frames are waiting in the ring: less throughput on slow cores");
    }
    costs.push("the link is down for a moment");
    let interface = target.name().to_owned();
    let setting = Setting::Rings { interface };
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

/// Kernel name of an offload, reason to disable it, and cost of disabling it.
struct Offload(&'static str, &'static str, &'static str);

const MERGED: &str = "the device merges frames, so no lane can be attached";
const TCP_COSTS: &str = "TCP streams need more processor time";

/// Offloads that hide frames from an XDP program, and so from lanes.
const HIDES: [Offload; 2] = [
    Offload("rx-lro", MERGED, TCP_COSTS),
    Offload("rx-gro-hw", MERGED, TCP_COSTS),
];
const TAGS: Offload = Offload(
    "rx-vlan-hw-parse",
    "the device removes the VLAN tag, which the lanes' classifier needs",
    "the kernel removes the tags: some nanoseconds for each frame",
);
const MERGES: [Offload; 1] = [Offload(
    "rx-gro",
    "the kernel merges frames of one flow before it delivers them: a critical frame waits for the other frames of its \
     poll",
    TCP_COSTS,
)];
const CUTS: [Offload; 4] = [
    Offload(
        "tx-tcp-segmentation",
        "64 KiB of a bulk stream go to the wire at once: 524 us at 1 Gbit/s, in front of a critical frame that \
         shares the queue",
        TCP_COSTS,
    ),
    Offload(
        "tx-tcp6-segmentation",
        "64 KiB of a bulk stream over IPv6 go to the wire at once: 524 us at 1 Gbit/s, in \
                                     front of a critical frame that shares the queue",
        TCP_COSTS,
    ),
    Offload(
        "tx-generic-segmentation",
        "64 KiB of a bulk stream wait as one unit and are cut only when they are sent, so no critical frame is sent \
         between the parts",
        TCP_COSTS,
    ),
    Offload(
        "tx-udp-segmentation",
        "64 KiB of a bulk stream go to the wire at once, in front of a critical frame that shares the queue",
        "UDP streams that are sent in large pieces need more processor time",
    ),
];

/// Kernel names of all offloads that planning may disable.
pub(super) fn disabled_offloads() -> impl Iterator<Item = &'static str> {
    let all = HIDES.iter().chain([&TAGS]).chain(&MERGES).chain(&CUTS);
    all.map(|Offload(feature, ..)| *feature)
}

pub(super) fn plan_offloads(target: &TopicInterface<'_>, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    let tuning = input.tuning;
    let mut wanted: Vec<&Offload> = Vec::new();
    if !tuning.xdp_offloads.value {
        wanted.extend(&HIDES);
        if input.needs.vlan.is_some() {
            wanted.push(&TAGS);
        }
    }
    if !tuning.gro.value {
        wanted.extend(&MERGES);
    }
    if !tuning.tso.value {
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
                format!("{feature} is on, and the driver cannot turn it off: {why}"),
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

/// Interpretation of small moderation times by a driver. Some numbers are modes, in which the driver varies the time
/// between 10 and 250 microseconds with the load (InterruptThrottleRate in the driver's README). Other small numbers
/// are refused.
struct SmallTimes {
    drivers: &'static [&'static str],
    modes: &'static [u32],
    /// Smallest number other than 0 that is a time.
    least_us: u32,
}

/// Constants of `e1000_set_coalesce`, `igb_set_coalesce`, `igc_ethtool_set_coalesce` and `ixgbe_set_coalesce` in Linux
/// 6.12.
const SMALL_TIMES: [SmallTimes; 3] = [
    SmallTimes {
        drivers: &["e1000", "e1000e"],
        modes: &[1, 3, 4],
        least_us: 10,
    },
    SmallTimes {
        drivers: &["igb", "igc"],
        modes: &[1, 3],
        least_us: 10,
    },
    SmallTimes {
        drivers: &["ixgbe"],
        modes: &[1],
        least_us: 2,
    },
];

/// Drivers whose receive and transmit queues may share an interrupt. `rx-usecs` then applies to both, and a change of
/// `tx-usecs` is refused ("Queue Pair mode enabled").
const WITH_PAIRS: [&str; 2] = ["igb", "igc"];

/// Drivers that accept 0 as receive time, but keep the old time (`__stmmac_set_coalesce`).
const IGNORE_ZERO: [&str; 1] = ["st_gmac"];

fn small_time_rules(driver: &str) -> Option<&'static SmallTimes> {
    SMALL_TIMES
        .iter()
        .find(|known| known.drivers.contains(&driver))
}

/// Returns whether a number is a mode of the driver, not a time.
pub(crate) fn is_mode(driver: &str, microseconds: u32) -> bool {
    small_time_rules(driver).is_some_and(|known| known.modes.contains(&microseconds))
}

/// Longest time up to `most_us` that the driver accepts as a time.
fn time_up_to(driver: &str, most_us: u32) -> u32 {
    match small_time_rules(driver) {
        Some(known) if most_us < known.least_us => 0,
        _ => most_us,
    }
}

/// Settable part of a device's coalescing: without the transmit fields if receive and transmit queues share interrupts.
fn settable(device: &Device, has: Coalescing) -> Coalescing {
    let driver = device.driver.as_deref().unwrap_or_default();
    // Separate transmit interrupts have names such as `eth0-tx-1`.
    let mut interrupts = device.interrupts.iter();
    let is_apart = interrupts.any(|interrupt| interrupt.name.contains("-tx-"));
    if WITH_PAIRS.contains(&driver) && !is_apart {
        return Coalescing {
            tx_usecs: None,
            ..has
        };
    }
    has
}

/// Current coalescing of a device, and the planned one, which delays interrupts by at most `most_us`. `None` if the
/// device does not report its coalescing.
pub(crate) fn planned_coalescing(
    device: &Device,
    most_us: u32,
) -> Option<(Coalescing, Coalescing)> {
    let has = settable(device, device.coalescing?);
    let driver = device.driver.as_deref().unwrap_or_default();
    let most_us = time_up_to(driver, most_us);
    let shorter = |has_us: u32| match is_mode(driver, has_us) {
        true => most_us,
        false => has_us.min(most_us),
    };
    let at_once = |frames: u32| if most_us == 0 { frames.min(1) } else { frames };
    let keeps = most_us == 0 && IGNORE_ZERO.contains(&driver);
    let to = Coalescing {
        rx_usecs: if keeps {
            has.rx_usecs
        } else {
            has.rx_usecs.map(shorter)
        },
        tx_usecs: has.tx_usecs.map(shorter),
        rx_frames: has.rx_frames.map(at_once),
        adaptive_rx: has.adaptive_rx.map(|_| false),
        adaptive_tx: has.adaptive_tx.map(|_| false),
        ..has
    };
    Some((has, to))
}

pub(super) fn plan_coalescing(target: &TopicInterface<'_>, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    let Some(most_us) = input.tuning.coalescing_us.value else {
        return;
    };
    let Some((has, to)) = planned_coalescing(target.device, most_us) else {
        builder.not_planned(
            target.id("moderation"),
            format!(
                "{} does not report its interrupt moderation, so the plan leaves it unchanged",
                target.name()
            ),
            "",
        );
        return;
    };
    let driver = target.device.driver.as_deref().unwrap_or_default();
    let least_us = time_up_to(driver, most_us);
    if least_us == 0 && IGNORE_ZERO.contains(&driver) && has.rx_usecs.is_some_and(|it| it > 0) {
        builder.not_planned(
            target.id("moderation-receive"),
            format!(
                "{driver} accepts a delay of 0 us without an error, but keeps its delay of {} us",
                has.rx_usecs.unwrap_or_default()
            ),
            "set coalescing_us = 40, about the minimum of this driver, and include the delay in bounds",
        );
    }
    let mut why = match (has.rx_usecs, has.adaptive_rx) {
        (Some(mode), _) if is_mode(driver, mode) => String::from(
            "the driver delays interrupts by 10 to 250 us, depending on the load, and each frame waits for its \
             interrupt",
        ),
        (_, Some(true)) => String::from(
            "the driver delays interrupts depending on the load, so the wait of a frame cannot be predicted",
        ),
        (Some(has_us), _) => {
            format!("a frame waits up to {has_us} us for its interrupt, in each direction")
        }
        _ => String::from("a frame waits for more frames before an interrupt reports it"),
    };
    if least_us < most_us {
        why.push_str(&format!(
            "; {driver} accepts no delay of {most_us} us (it refuses the number, or uses it as a mode), so the plan \
             sets {least_us}"
        ));
    }
    let costs = match least_us {
        0 => {
            "an interrupt for each frame that arrives alone: a flood takes more of its core's time"
        }
        _ => "more interrupts under load",
    };
    let interface = target.name().to_owned();
    let setting = Setting::Coalescing { interface };
    builder.change(
        target.id("moderation"),
        setting,
        (Value::Coalescing(has), Value::Coalescing(to)),
        Rationale::of(&input.critical_topics(None), why, costs),
    );
}
