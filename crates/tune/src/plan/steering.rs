//! Steering of critical datagrams, and no others, to their receive queue. It uses flow rules of the device, or the RSS
//! table entries of the datagrams' addresses and ports.

use isolane_model::{Participant, Steering};

use super::builder::{PlanBuilder, RULES, Rationale};
use super::input::{PlanInput, TopicInterface, topics_without_flow};
use super::rules;
use crate::facts::ReceiveHash;
use crate::limits::MAX_TABLE_ENTRIES;
use crate::needs::{DescribedFlow, Direction};
use crate::setting::{Setting, Value};
use crate::steer::{Tuple, apart, entry_of, reserve, shared};

/// Remedy for a device with neither rules nor a table.
const WITHOUT: &str = "choose the queue at the sender, if that is possible (on veth, a frame arrives on the queue on \
                       which it was sent); otherwise use an interface with flow rules (ntuple) or an RSS table";
/// Remedy for an unreadable hash key.
const LEARN: &str = "learn the entries (isolane tune learn --json FILE: 45 datagrams for a table of 128 entries and \
                     two queues), then plan with them: isolane tune plan --receive-queues FILE";
/// Remedy for a device whose rules do not match ports, if its frames are tagged.
const BY_PRIORITY: &str = "steering = \"rules\" in [tune] steers frames of lanes by VLAN priority";

pub(super) fn plan(target: &TopicInterface<'_>, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    let topics = input.critical_topics(Some(Direction::Receive));
    let Some(queue) = target.critical_queue else {
        return;
    };
    if topics.is_empty()
        && !input
            .critical_flows()
            .any(|flow| flow.direction == Direction::Receive)
    {
        return;
    }
    let unknown = topics_without_flow(input);
    if !unknown.is_empty() {
        builder.not_planned(
            target.id("steering-unknown"),
            format!(
                "{} cannot be steered, because ports that the kernel assigns are unknown before they are used",
                unknown.join(", ")
            ),
            "describe the participants of both ends, with their ports: [participant.NAME]",
        );
    }
    let flows: Vec<&DescribedFlow> = input
        .critical_flows()
        .filter(|flow| flow.direction == Direction::Receive)
        .collect();
    if flows.is_empty() {
        return;
    }
    let device = target.device;
    let driver = device.driver.as_deref().unwrap_or_default();
    let has_rules = rules::of(device);
    let hash = device
        .receive_hash
        .as_ref()
        .filter(|hash| !hash.table.is_empty());
    match (input.tuning.steering.value, has_rules, hash) {
        (Steering::None, _, _) => {}
        (Steering::Auto | Steering::Rules, Some(has), _) => {
            rules::plan(target, (queue, has), builder);
            if let Some(hash) = hash {
                table(target, queue, hash, &[], &topics, builder);
            }
        }
        (Steering::Auto | Steering::Table, _, Some(hash)) => {
            by_table(target, (queue, hash), &flows, builder);
        }
        (Steering::Rules, None, _) => match rules::by_priority(input, device) {
            Some(has) => {
                rules::plan(target, (queue, has), builder);
                if let Some(hash) = hash {
                    table(target, queue, hash, &[], &topics, builder);
                }
            }
            None if rules::sees_ports(device) || device.flow_rules.is_none() => builder.not_planned(
                target.id("steering"),
                format!("{} has no flow rules (ntuple)", target.name()),
                "steering = \"auto\" uses the RSS table if there is one",
            ),
            None if let (Some(vlan), [_, ..]) = (input.needs.vlan, &*rules::untagged_hosts(input)) => builder.not_planned(
                target.id("steering"),
                format!(
                    "{} would send critical frames without a tag of VLAN {vlan}, and rules by VLAN priority do not \
                     match such frames",
                    rules::untagged_hosts(input).join(", ")
                ),
                format!(
                    "set vlan = {vlan} in [host.NAME.xdp] of these hosts, too; or steering = \"auto\", which uses the \
                     RSS table"
                ),
            ),
            None => builder.not_planned(
                target.id("steering"),
                format!(
                    "flow rules of {driver} match only the Ethernet header, and cannot distinguish UDP ports"
                ),
                "give this host and its peers a VLAN ([host.NAME.xdp] vlan), for rules by VLAN priority; or set \
                 steering = \"auto\", which uses the RSS table",
            ),
        },
        (Steering::Table, Some(_), None) => builder.not_planned(
            target.id("steering"),
            format!("{} has no RSS table to set", target.name()),
            "steering = \"auto\" uses its flow rules (ntuple)",
        ),
        (_, _, None) => builder.not_planned(
            target.id("steering"),
            match device.flow_rules {
                Some(_) if !rules::sees_ports(device) => format!(
                    "{} has no RSS table to set, and flow rules of {driver} cannot distinguish UDP ports",
                    target.name()
                ),
                _ => format!(
                    "{} has neither flow rules nor an RSS table to set",
                    target.name()
                ),
            },
            match rules::by_priority(input, device) {
                Some(_) => BY_PRIORITY,
                None => WITHOUT,
            },
        ),
    }
}

/// Plans a table in which the entries of critical flows map to the critical queue.
fn by_table(
    target: &TopicInterface<'_>,
    (queue, hash): (u32, &ReceiveHash),
    flows: &[&DescribedFlow],
    builder: &mut PlanBuilder<'_>,
) {
    let input = &target.input;
    let name = target.name();
    let id = target.id("steering");
    let size = hash.table.len();
    let is_toeplitz = hash
        .function
        .as_deref()
        .is_none_or(|name| name == "toeplitz");
    if !is_toeplitz || !size.is_power_of_two() || size > MAX_TABLE_ENTRIES {
        builder.not_planned(
            id,
            format!(
                "the hash of {name} ({}, {size} entries) is not one whose table entries isolane can compute",
                hash.function.as_deref().unwrap_or("unknown")
            ),
            format!("ethtool -X {name} hfunc toeplitz, if the device supports it; otherwise use an interface with \
                     flow rules"),
        );
        return;
    }
    if hash.udp4_hashes_ports == Some(false) {
        ports_in_hash(target, builder);
    }
    let key = hash.key.as_deref();
    let entry = |tuple: Tuple| match key {
        Some(key) => entry_of(key, tuple, size),
        None => input.placement.entry_of(tuple),
    };
    let Some(entries) = flows
        .iter()
        .map(|flow| entry(flow.tuple))
        .collect::<Option<Vec<u32>>>()
    else {
        builder.not_planned(
            id,
            format!(
                "the key of {name}'s RSS hash cannot be read, so the table entries of critical datagrams must be \
                 learnt from the queues on which they arrive"
            ),
            match rules::by_priority(input, target.device) {
                Some(_) => format!("{LEARN}; or {BY_PRIORITY}"),
                None => String::from(LEARN),
            },
        );
        return;
    };
    let critical = input.critical_level().unwrap_or_default();
    let others = input.needs.flows.iter();
    let foreign_flows: Vec<&DescribedFlow> = others
        .filter(|flow| flow.direction == Direction::Receive && flow.level < critical)
        .filter(|flow| entry(flow.tuple).is_some_and(|entry| entries.contains(&entry)))
        .collect();
    if let Some(foreign_rule) = foreign_flows.first() {
        let other = key.and_then(|key| other_port(input, key, size, foreign_rule));
        builder.not_planned(
            target.id("steering-shared"),
            format!(
                "{} (level {}) has the same entry of {name}'s RSS table as a critical flow, and arrives on the \
                 critical queue too",
                foreign_rule.topics.join(", "),
                foreign_rule.level
            ),
            match other {
                Some(port) => format!(
                    "give its receiver other ports: port = {port} keeps all other described flows off the entries of \
                     critical flows"
                ),
                None => String::from("give one of the two participants another port, and plan again"),
            },
        );
    }
    let mut topics: Vec<String> = flows.iter().flat_map(|flow| flow.topics.clone()).collect();
    topics.sort();
    topics.dedup();
    table(target, queue, hash, &entries, &topics, builder);
}

fn ports_in_hash(target: &TopicInterface<'_>, builder: &mut PlanBuilder<'_>) {
    let input = &target.input;
    let interface = target.name().to_owned();
    let rationale = Rationale::of(
        &input.critical_topics(Some(Direction::Receive)),
        "the device hashes only addresses: all levels between two hosts arrive on the same queue",
        "IP fragments, which have no ports, may overtake whole datagrams of the same flow",
    );
    let values = (Value::Switch(false), Value::Switch(true));
    builder.change(
        target.id("udp-hash"),
        Setting::UdpHash { interface },
        values,
        rationale,
    );
}

/// First port for the flow's receiver such that no other described flow has the table entry of a critical flow.
fn other_port(
    input: &PlanInput<'_>,
    key: &[u8],
    entries: usize,
    flow: &DescribedFlow,
) -> Option<u16> {
    let needs = input.needs;
    let own = needs.participants.iter().find(|own| {
        own.address == flow.tuple.destination && own.ports.contains(&flow.tuple.destination_port)
    })?;
    let is_taken = |first: u16| {
        let mut others = needs.participants.iter().filter(|it| it.ports != own.ports);
        others.any(|it| first < it.ports.end && it.ports.start < first + Participant::PORTS)
    };
    // Tries every port, not only multiples of eight. The hash is linear: the distance of two participants' levels in
    // the table depends only on the lowest bits of their first ports.
    let suggested = isolane_model::limits::SUGGESTED_PORTS;
    let last = suggested.end - Participant::PORTS;
    let candidates = (suggested.start..=last).filter(|first| !is_taken(*first));
    let critical = input.critical_level()?;
    apart(key, entries, candidates, |first| {
        let moved = |flow: &DescribedFlow| {
            let mut tuple = flow.tuple;
            if tuple.destination == own.address && own.ports.contains(&tuple.destination_port) {
                tuple.destination_port = first + (tuple.destination_port - own.ports.start);
            }
            tuple
        };
        let of = |is_critical: bool| {
            let flows = needs.flows.iter();
            flows
                .filter(|flow| {
                    flow.direction == Direction::Receive && (flow.level >= critical) == is_critical
                })
                .map(moved)
                .collect()
        };
        (of(true), of(false))
    })
}

/// Plans the table in which only `entries` map to the critical queue.
fn table(
    target: &TopicInterface<'_>,
    queue: u32,
    hash: &ReceiveHash,
    entries: &[u32],
    topics: &[String],
    builder: &mut PlanBuilder<'_>,
) {
    let count = target.receive_queues;
    // Table after a change of the number of queues, as drivers fill it.
    let before = match target.is_remade {
        true => (0..hash.table.len() as u64)
            .map(|entry| (entry % u64::from(count.max(1))) as u32)
            .collect(),
        false => hash.table.clone(),
    };
    let Some(to) = reserve(&before, queue, entries, count) else {
        return;
    };
    let to = match entries {
        // Only rules steer to the critical queue, so the table can have a form that ethtool can set.
        [] if to != before || target.is_remade => {
            let others: Vec<u32> = (0..count).filter(|other| *other != queue).collect();
            shared(to.len(), &others)
        }
        _ => to,
    };
    let mut lead: Vec<u32> = entries.to_vec();
    lead.sort_unstable();
    lead.dedup();
    let (why, costs) = match lead.len() {
        0 => (
            format!(
                "only rules lead to queue {queue}; the hash spreads all other traffic over the other queues"
            ),
            String::from("other traffic has one queue less"),
        ),
        count => (
            format!(
                "critical datagrams have {count} of {} table entries, which lead to queue {queue}; all other traffic \
                 is spread over the other queues",
                to.len()
            ),
            format!(
                "other traffic has one queue less; a flow that is not described arrives on the critical queue with a \
                 probability of {count} in {}",
                to.len()
            ),
        ),
    };
    let interface = target.name().to_owned();
    let values = (Value::Table(hash.table.clone()), Value::Table(to));
    let id = target.id("receive-table");
    let rationale = Rationale::of(topics, why, costs);
    let first = builder.steps.len();
    builder.change(id, Setting::RssTable { interface }, values, rationale);
    if !entries.is_empty() {
        // The entries depend on the hash key, which the kernel randomises at each boot.
        builder.limit_to_this_boot(first);
    }
}

/// Adds the device's current steering to the plan's preconditions. Some steps do harm under another steering than the
/// one in which the receive queues of critical flows were measured.
pub(super) fn require_current_steering(target: &TopicInterface<'_>, builder: &mut PlanBuilder<'_>) {
    let device = target.device;
    let interface = || target.name().to_owned();
    if let Some(queues) = device.queues {
        let interface = interface();
        builder.require(Setting::Channels { interface }, Value::Queues(queues));
    }
    let hash = device.receive_hash.as_ref();
    if let Some(hash) = hash.filter(|hash| !hash.table.is_empty()) {
        if let Some(on) = hash.udp4_hashes_ports {
            let interface = interface();
            builder.require(Setting::UdpHash { interface }, Value::Switch(on));
        }
        let (interface, table) = (interface(), hash.table.clone());
        builder.require(Setting::RssTable { interface }, Value::Table(table));
    }
    let rules = device.flow_rules.as_ref();
    let Some(rules) = rules.filter(|rules| !rules.rules.is_empty()) else {
        return;
    };
    if device.features.contains_key(RULES) {
        let (interface, feature) = (interface(), String::from(RULES));
        builder.require(Setting::Feature { interface, feature }, Value::Switch(true));
    }
    for (location, rule) in &rules.rules {
        let (interface, location) = (interface(), *location);
        builder.require(
            Setting::FlowRule {
                interface,
                location,
            },
            Value::Rule(*rule),
        );
    }
}
