//! Number of queues, and the queue for critical topics.

use crate::facts::{Device, Interface, Queues};
use crate::setting::{Setting, Value};

use super::builder::{PlanBuilder, Rationale};
use super::input::{PlanInput, TopicInterface};

/// Plans the number of queues, and returns the interface as it will be after the plan.
pub(super) fn plan<'a>(
    input: &PlanInput<'a>,
    interface: &'a Interface,
    device: &'a Device,
    builder: &mut PlanBuilder<'_>,
) -> TopicInterface<'a> {
    let name = &interface.name;
    let made = Queues {
        rx: interface.rx_queues.unwrap_or(1),
        tx: interface.tx_queues.unwrap_or(1),
        combined: 0,
    };
    let has = device.queues.unwrap_or(made);
    let lane = lane_queue(input);
    let to = match input.tuning.queues.value {
        true => enough(
            has,
            device.queues_max.unwrap_or(has),
            lane.map_or(2, |lane| (lane + 1).max(2)),
        ),
        false => has,
    };
    let mut target = TopicInterface {
        input: *input,
        interface,
        device,
        receive_queues: to.rx + to.combined,
        transmit_queues: to.tx + to.combined,
        is_remade: to != has,
        critical_queue: None,
    };
    target.critical_queue = critical_queue(&target, lane, builder);
    let interface = name.clone();
    let setting = Setting::Channels { interface };
    let gain = match target.critical_queue {
        Some(_) => "one of them is for critical topics alone",
        None => "it waits only behind frames of the same queue",
    };
    let rationale = Rationale::of(
        &input.critical_topics(None),
        format!(
            "with one queue, a critical frame waits behind every bulk frame before it; with {} queues, {gain}",
            target.receive_queues
        ),
        "the link is down for a moment; each queue needs an interrupt and memory for its rings; the RSS table, \
         queueing and interrupts of the device are reset",
    );
    let id = target.id("queues");
    builder.change(
        id.as_str(),
        setting,
        (Value::Queues(has), Value::Queues(to)),
        rationale,
    );
    target
}

/// Queue of the critical level's lane; `None` if no level is critical.
fn lane_queue(input: &PlanInput<'_>) -> Option<u32> {
    let highest = input
        .needs
        .highest_level
        .filter(|_| input.critical_level().is_some())?;
    input.needs.lane_queues.get(usize::from(highest)).copied()
}

/// Queue counts raised to `needed` as far as the device allows; never lowered.
pub(crate) fn enough(has: Queues, most: Queues, needed: u32) -> Queues {
    let mut to = has;
    if most.combined > 0 {
        to.combined = has
            .combined
            .max(needed.saturating_sub(has.rx).min(most.combined));
    } else {
        to.rx = has.rx.max(needed.min(most.rx));
        to.tx = has.tx.max(needed.min(most.tx));
    }
    to
}

fn critical_queue(
    target: &TopicInterface<'_>,
    lane: Option<u32>,
    builder: &mut PlanBuilder<'_>,
) -> Option<u32> {
    let input = &target.input;
    let name = target.name();
    let queues = target.receive_queues;
    let id = target.id("critical-queue");
    let lane = lane?;
    if queues < 2 {
        let why = match target.device.queues_max {
            Some(most) if most.rx + most.combined > 1 => {
                "it has one receive queue, and the profile does not add one"
            }
            _ => "it has one receive queue, and supports no second one",
        };
        builder.not_planned(
            id,
            format!("{name} gives critical topics no dedicated queue: {why}"),
            "keep bulk traffic on another interface, or use an interface with several queues (igb, igc and better); \
             until then, only the executor's order and budgets (protect.others) hold bulk back",
        );
        return None;
    }
    if lane >= queues {
        builder.not_planned(
            id,
            format!(
                "the description puts lanes on queue {lane}, but {name} has at most {queues} queues"
            ),
            format!(
                "in [host.NAME.xdp]: queues = {{ {} = {} }}",
                highest(input),
                queues - 1
            ),
        );
        return None;
    }
    if !input.needs.names_queues {
        builder.not_planned(
            id,
            format!(
                "the description names no queue, so all lanes are on queue 0, on which {name} also puts frames that \
                 it does not hash (ARP, PTP, IP fragments): no queue is kept for critical topics"
            ),
            format!("name a queue in [host.NAME.xdp]: queues = {{ {} = {} }}, and plan again", highest(input), queues - 1),
        );
        return None;
    }
    if lane == 0 {
        builder.not_planned(
            target.id("queue-zero"),
            format!(
                "the description puts critical topics on queue 0, which they share with frames that {name} does not \
                 hash (ARP, PTP, IP fragments)"
            ),
            format!("in [host.NAME.xdp]: queues = {{ {} = {} }}, and plan again", highest(input), queues - 1),
        );
    }
    shared(input, lane, &id, builder);
    report_other_lane_queues(target, lane, builder);
    Some(lane)
}

fn highest(input: &PlanInput<'_>) -> u8 {
    input.needs.highest_level.unwrap_or_default()
}

/// Reports non-critical levels whose lanes are on the critical queue.
fn shared(input: &PlanInput<'_>, queue: u32, id: &str, builder: &mut PlanBuilder<'_>) {
    let critical = input.critical_level().unwrap_or_default();
    let mut sharing: Vec<String> = input
        .needs
        .topics
        .iter()
        .filter(|topic| topic.level < critical)
        .filter(|topic| input.needs.lane_queues.get(usize::from(topic.level)) == Some(&queue))
        .map(|topic| topic.level.to_string())
        .collect();
    sharing.sort();
    sharing.dedup();
    if !sharing.is_empty() {
        builder.not_planned(
            id,
            format!(
                "the description also puts lanes of level {} on queue {queue}, which is kept for critical topics: \
                 datagrams of these levels arrive on other queues, and reach their readers through the kernel's \
                 sockets",
                sharing.join(", ")
            ),
            "give the other levels another queue: queue = N in [host.NAME.xdp]",
        );
    }
}

/// Reports critical levels whose lanes are on another queue. Their datagrams still arrive on the critical queue.
fn report_other_lane_queues(
    target: &TopicInterface<'_>,
    queue: u32,
    builder: &mut PlanBuilder<'_>,
) {
    let input = &target.input;
    let Some(critical) = input.critical_level() else {
        return;
    };
    let lane_of = |level: u8| input.needs.lane_queues.get(usize::from(level)).copied();
    let mut apart: Vec<u8> = input
        .needs
        .topics_from(critical)
        .filter(|topic| topic.is_received && lane_of(topic.level) != Some(queue))
        .map(|topic| topic.level)
        .collect();
    apart.sort_unstable();
    apart.dedup();
    if apart.is_empty() {
        return;
    }
    let levels: Vec<String> = apart.iter().map(ToString::to_string).collect();
    let queues: Vec<String> = apart
        .iter()
        .map(|level| format!("{level} = {queue}"))
        .collect();
    builder.not_planned(
        target.id("lanes"),
        format!(
            "level {} is critical too, but the description puts its lane on another queue: its datagrams arrive on \
             queue {queue}, and reach their readers through the kernel's sockets",
            levels.join(", ")
        ),
        format!("in [host.NAME.xdp]: queues = {{ {}, ... }}", queues.join(", ")),
    );
}
