//! Steering of critical datagrams by flow rules of the device (ntuple). One rule per port, or per VLAN priority if the
//! device cannot match ports.
//!
//! A device's rules are shared with other programs. A rule that steers non-critical frames to the critical queue
//! defeats the queue's purpose, even if another program set the rule. A rule that steers a critical port elsewhere
//! contradicts isolane's rule, and the device decides which of them applies.

use std::net::Ipv4Addr;

use isolane_model::Steering;

use crate::facts::{Device, FlowRule, FlowRules};
use crate::needs::Direction;
use crate::setting::{Setting, Value};

use super::builder::{PlanBuilder, RULES, Rationale};
use super::input::{PlanInput, TopicInterface, Unverified};

/// Drivers whose rules match the Ethernet header only (addresses, EtherType, VLAN priority), and reject UDP ports:
/// `igb_add_ethtool_nfc_entry`, `igc_ethtool_add_nfc_rule` in Linux 6.12.
pub(crate) const RULES_WITHOUT_PORTS: [&str; 2] = ["igb", "igc"];

/// Flow rules of a device, if they can match UDP ports.
pub(super) fn of(device: &Device) -> Option<&FlowRules> {
    let rules = device.flow_rules.as_ref();
    rules.filter(|rules| rules.capacity > 0 && sees_ports(device))
}

/// Flow rules of a device, if they can match only VLAN priorities, and all critical frames have a VLAN tag.
pub(super) fn by_priority<'a>(input: &PlanInput<'_>, device: &'a Device) -> Option<&'a FlowRules> {
    let rules = device.flow_rules.as_ref();
    let is_meant =
        input.needs.vlan.is_some() && !sees_ports(device) && untagged_hosts(input).is_empty();
    rules.filter(|rules| is_meant && rules.capacity > 0)
}

/// Hosts that send critical frames to this host outside its VLAN: untagged frames have no priority to match.
pub(super) fn untagged_hosts<'a>(input: &PlanInput<'a>) -> Vec<&'a str> {
    let mut hosts: Vec<&str> = Vec::new();
    let level = input.critical_level();
    let critical = input.needs.flows.iter();
    let critical = critical.filter(|flow| level.is_some_and(|level| flow.level >= level));
    for flow in critical.filter(|flow| flow.direction == Direction::Receive) {
        if flow.peer_vlan != input.needs.vlan && !hosts.contains(&flow.peer.as_str()) {
            hosts.push(&flow.peer);
        }
    }
    hosts
}

pub(super) fn sees_ports(device: &Device) -> bool {
    let driver = device.driver.as_deref().unwrap_or_default();
    !RULES_WITHOUT_PORTS.contains(&driver)
}

/// Rules that steer critical datagrams to their queue, with the topics of each.
fn wanted(input: &PlanInput<'_>, device: &Device, queue: u32) -> Vec<(FlowRule, Vec<String>)> {
    let mut wanted: Vec<(FlowRule, Vec<String>)> = Vec::new();
    let is_separated_by_vlan = input.needs.vlan.is_some() && untagged_hosts(input).is_empty();
    if !sees_ports(device) && !is_separated_by_vlan {
        return wanted;
    }
    for flow in input
        .critical_flows()
        .filter(|flow| flow.direction == Direction::Receive)
    {
        let rule = match sees_ports(device) {
            true => FlowRule::Port {
                destination: Some(flow.tuple.destination),
                destination_port: flow.tuple.destination_port,
                queue,
            },
            false => FlowRule::Priority {
                vlan_priority: flow.level,
                queue,
            },
        };
        match wanted.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, topics)) => topics.extend(flow.topics.iter().cloned()),
            None => wanted.push((rule, flow.topics.clone())),
        }
    }
    wanted
}

/// Returns whether rules alone steer all critical datagrams to their queue. Such steering is the same after a boot,
/// when the boot part sets the rules again. Steering by the hash is not, because the key changes. Rules by VLAN
/// priority do not count: measurements use untagged datagrams, which the hash steers.
pub(super) fn rules_steer_all(target: &TopicInterface<'_>) -> bool {
    let input = &target.input;
    let (Some(queue), Some(has)) = (target.critical_queue, of(target.device)) else {
        return false;
    };
    if !matches!(
        input.tuning.steering.value,
        Steering::Auto | Steering::Rules
    ) {
        return false;
    }
    let wanted = wanted(input, target.device, queue);
    let is_there = |rule: &FlowRule| has.rules.values().any(|known| known == rule);
    !wanted.is_empty()
        && wanted
            .iter()
            .all(|(rule, _)| is_there(rule) && contradicting(has, rule).is_none())
}

/// Rule that steers, or may steer, other frames to the critical queue.
pub(super) fn foreign_rule(target: &TopicInterface<'_>, queue: u32) -> Option<Unverified> {
    let input = &target.input;
    let name = target.name();
    let has = target.device.flow_rules.as_ref()?;
    let wanted = wanted(input, target.device, queue);
    let is_wanted = |rule: &FlowRule| wanted.iter().any(|(known, _)| known == rule);
    let mut to_queue = has.rules.iter().filter(|(_, rule)| rule.queue() == queue);
    if let Some((place, rule)) = to_queue.find(|(_, rule)| !is_wanted(rule)) {
        return Some(Unverified {
            why: format!(
                "rule {place} of {name} steers {} to queue {queue}, which is for critical datagrams alone",
                matched_frames(rule)
            ),
            remedy: format!(
                "if the rule is not needed: ethtool -N {name} delete {place}, and plan again"
            ),
        });
    }
    let place = has.others.first()?;
    Some(Unverified {
        why: format!(
            "rule {place} of {name}, which isolane did not set, matches neither UDP ports nor VLAN priorities: it may \
             steer other frames to queue {queue}, or critical frames to another queue"
        ),
        remedy: format!(
            "show the rule: ethtool -n {name}; if it is not needed: ethtool -N {name} delete {place}, and plan again"
        ),
    })
}

fn matched_frames(rule: &FlowRule) -> String {
    match rule {
        FlowRule::Port {
            destination,
            destination_port,
            ..
        } => {
            let address =
                destination.map_or_else(|| String::from("any address"), |it| it.to_string());
            format!("datagrams to UDP port {destination_port} of {address}")
        }
        FlowRule::Priority { vlan_priority, .. } => {
            format!("frames of VLAN priority {vlan_priority}")
        }
    }
}

/// Existing rule, with its location, that steers the same datagrams to another queue.
fn contradicting<'a>(has: &'a FlowRules, wanted: &FlowRule) -> Option<(u32, &'a FlowRule)> {
    let mut rules = has.rules.iter().map(|(place, rule)| (*place, rule));
    rules.find(|(_, rule)| covers_match(rule, wanted) && rule.queue() != wanted.queue())
}

/// Returns whether a rule matches every frame that `wanted` matches.
fn covers_match(rule: &FlowRule, wanted: &FlowRule) -> bool {
    match (rule, wanted) {
        (
            FlowRule::Port {
                destination: to,
                destination_port: port,
                ..
            },
            FlowRule::Port {
                destination,
                destination_port,
                ..
            },
        ) => port == destination_port && (to.is_none() || to == destination),
        (
            FlowRule::Priority {
                vlan_priority: priority,
                ..
            },
            FlowRule::Priority { vlan_priority, .. },
        ) => priority == vlan_priority,
        _ => false,
    }
}

/// Plans a rule for each port or priority of critical datagrams, and removes stale rules to the same queue.
pub(super) fn plan(
    target: &TopicInterface<'_>,
    (queue, has): (u32, &FlowRules),
    builder: &mut PlanBuilder<'_>,
) {
    let input = &target.input;
    let name = target.name();
    if let Some(feature) = target.device.features.get(RULES)
        && !feature.is_on
    {
        let setting = Setting::Feature {
            interface: name.to_owned(),
            feature: String::from(RULES),
        };
        let rationale = Rationale::of_all(
            "without this feature, the device ignores flow rules",
            "none",
        );
        let values = (Value::Switch(false), Value::Switch(true));
        builder.change(target.id("rules-on"), setting, values, rationale);
    }
    let wanted = wanted(input, target.device, queue);
    stale(target, (queue, has), &wanted, builder);
    let is_free = |place: &u32| !has.rules.contains_key(place) && !has.others.contains(place);
    let mut free = (0..has.capacity).filter(is_free);
    for (rule, mut topics) in wanted {
        topics.dedup();
        let id = target.id(&match &rule {
            FlowRule::Port {
                destination_port, ..
            } => format!("rule-{destination_port}"),
            FlowRule::Priority { vlan_priority, .. } => format!("rule-priority-{vlan_priority}"),
        });
        if let Some((place, other)) = contradicting(has, &rule) {
            builder.not_planned(
                id,
                format!(
                    "rule {place} of {name} steers {} to queue {}, and the device chooses which of two rules applies",
                    matched_frames(other),
                    other.queue()
                ),
                format!("if the rule is not needed: ethtool -N {name} delete {place}, and plan again"),
            );
            continue;
        }
        if has.rules.values().any(|known| *known == rule) {
            continue;
        }
        let Some(location) = free.next() else {
            builder.not_planned(
                id,
                format!(
                    "{name} has room for {} rules, and all are in use: {} cannot be steered",
                    has.capacity,
                    topics.join(", ")
                ),
                format!("remove rules that are no longer needed: ethtool -n {name}"),
            );
            continue;
        };
        let setting = Setting::FlowRule {
            interface: name.to_owned(),
            location,
        };
        let (what, costs) = match rule {
            FlowRule::Port {
                destination_port, ..
            } => (format!("datagrams to UDP port {destination_port}"), "none"),
            FlowRule::Priority { .. } => (
                matched_frames(&rule),
                "all other frames of this priority, in any VLAN, arrive there too, so switches and hosts must give \
                 the priority only to critical frames; frames of sockets have no tag, and do not arrive there",
            ),
        };
        let rationale = Rationale::of(
            &topics,
            format!("{what} arrive on queue {queue}, where only critical traffic arrives"),
            costs,
        );
        builder.change(id, setting, (Value::Absent, Value::Rule(rule)), rationale);
    }
}

/// Plans to remove rules to the critical queue whose ports carry no critical datagrams (any more). Rules without an
/// address of this host, or of a described participant, are not isolane's.
fn stale(
    target: &TopicInterface<'_>,
    (queue, has): (u32, &FlowRules),
    wanted: &[(FlowRule, Vec<String>)],
    builder: &mut PlanBuilder<'_>,
) {
    let input = &target.input;
    let is_own = |address: &Ipv4Addr| {
        let mut described = input.needs.participants.iter();
        let mut addresses = target.interface.addresses.iter();
        described.any(|it| it.address == *address) || addresses.any(|(it, _)| it == address)
    };
    for (place, rule) in &has.rules {
        let is_ours = match rule {
            FlowRule::Port { destination, .. } => destination.as_ref().is_some_and(is_own),
            FlowRule::Priority { .. } => false,
        } && rule.queue() == queue;
        if !is_ours || wanted.iter().any(|(known, _)| known == rule) {
            continue;
        }
        let setting = Setting::FlowRule {
            interface: target.name().to_owned(),
            location: *place,
        };
        let rationale = Rationale::of(
            &input.critical_topics(Some(Direction::Receive)),
            format!(
                "the rule steers {} to queue {queue}, where no critical topic arrives",
                matched_frames(rule)
            ),
            "a program that set the rule for another purpose loses it",
        );
        let values = (Value::Rule(*rule), Value::Absent);
        builder.change(
            target.id(&format!("rule-at-{place}")),
            setting,
            values,
            rationale,
        );
    }
}
