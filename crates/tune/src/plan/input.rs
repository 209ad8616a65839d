//! Input of planning: facts, needs, profile and known receive queues; and the interface that carries the topics.
//!
//! A VLAN interface is resolved to its parent device, whose queues carry the frames of all its VLANs. Bonds, bridges
//! and similar interfaces have several devices, or forward by other rules, and are not configured.

use isolane_model::Tuning;
use serde::{Deserialize, Serialize};

use super::builder::PlanBuilder;
use super::rules;
use crate::facts::{Device, Facts, Interface, Interrupt};
use crate::kernel_lists::number_list;
use crate::needs::{DescribedFlow, Direction, Needs};
use crate::steer::Tuple;
use crate::verify::BootMark;

/// sysfs folder of the cores.
pub(super) const CPUS: &str = "/sys/devices/system/cpu";

#[derive(Clone, Copy)]
pub(super) struct PlanInput<'a> {
    pub(super) facts: &'a Facts,
    pub(super) needs: &'a Needs,
    pub(super) tuning: &'a Tuning,
    pub(super) placement: &'a FlowQueues,
}

impl PlanInput<'_> {
    /// Lowest critical level; `None` if the host has no critical topic.
    pub(super) fn critical_level(&self) -> Option<u8> {
        self.needs.critical_level(self.tuning)
    }

    /// Names of critical topics in direction `way`; in both directions if it is `None`.
    pub(super) fn critical_topics(&self, way: Option<Direction>) -> Vec<String> {
        let Some(level) = self.critical_level() else {
            return Vec::new();
        };
        let topics = self.needs.topics_from(level).filter(|topic| match way {
            Some(Direction::Receive) => topic.is_received,
            Some(Direction::Transmit) => topic.is_sent,
            None => true,
        });
        topics.map(|topic| topic.name.clone()).collect()
    }

    pub(super) fn critical_flows(&self) -> impl Iterator<Item = &DescribedFlow> {
        let level = self.critical_level();
        let flows = self.needs.flows.iter();
        flows.filter(move |flow| level.is_some_and(|level| flow.level >= level))
    }

    /// Core of the executor, if online.
    pub(super) fn core(&self) -> Option<u16> {
        let online = &self.facts.cores.online;
        self.needs.core.filter(|core| online.contains(core))
    }

    /// Cores for all other work: the cores that are online before and after the plan, without the executor's.
    pub(super) fn other_cores(&self) -> Vec<u16> {
        let leaving = self.leaving_siblings();
        let online = self.facts.cores.online.iter().copied();
        online
            .filter(|core| Some(*core) != self.core() && !leaving.contains(core))
            .collect()
    }

    /// SMT siblings of the executor's core that the plan takes offline.
    pub(super) fn leaving_siblings(&self) -> Vec<u16> {
        let Some(core) = self.core().filter(|_| !self.tuning.smt.value) else {
            return Vec::new();
        };
        let can_leave = |sibling: &u16| {
            let path = format!("{CPUS}/cpu{sibling}/online");
            *sibling != core && self.facts.attribute(&path).as_deref() == Some("1")
        };
        let siblings = self.siblings(core).unwrap_or_default();
        siblings.into_iter().filter(can_leave).collect()
    }

    /// SMT siblings of a core, itself included; `None` if unreadable.
    pub(super) fn siblings(&self, core: u16) -> Option<Vec<u16>> {
        let path = format!("{CPUS}/cpu{core}/topology/thread_siblings_list");
        Some(number_list(&self.facts.attribute(&path)?))
    }
}

/// Interface that carries the topics.
#[derive(Clone, Copy)]
pub(super) struct TopicInterface<'a> {
    /// Input of the plan.
    pub(super) input: PlanInput<'a>,
    pub(super) interface: &'a Interface,
    pub(super) device: &'a Device,
    /// Receive queues after the plan.
    pub(super) receive_queues: u32,
    /// Transmit queues after the plan.
    pub(super) transmit_queues: u32,
    /// True if the number of queues changes, so that interrupts and threads are replaced.
    pub(super) is_remade: bool,
    /// Queue of critical topics in both directions; `None` without a dedicated queue.
    pub(super) critical_queue: Option<u32>,
}

/// Reason for which critical flows may share their queue with others.
pub(super) struct Unverified {
    pub(super) why: String,
    pub(super) remedy: String,
}

impl Unverified {
    fn not_measured(why: String) -> Self {
        Self {
            why,
            remedy: String::from(
                "measure on which queue each critical flow arrives, at both ends (isolane tune ports --json FILE), \
                 and plan with the measurement: isolane tune plan --receive-queues FILE",
            ),
        }
    }
}

impl TopicInterface<'_> {
    pub(super) fn name(&self) -> &str {
        &self.interface.name
    }

    pub(super) fn id(&self, subject: &str) -> String {
        format!("interface.{subject}.{}", self.name())
    }

    /// Returns whether an interrupt is on the path of critical samples. It is if it serves reception on the critical
    /// queue. It is, too, if it serves transmission there and the device itself reads the frames of lanes (zero copy).
    ///
    /// Without zero copy, transmit completion is not on the path: the frame is on the wire, and nothing waits for its
    /// buffer.
    pub(super) fn is_on_critical_path(&self, interrupt: &Interrupt) -> bool {
        let is_of_queue = interrupt.queue.is_some() && interrupt.queue == self.critical_queue;
        is_of_queue && (!interrupt.only_transmits() || self.reads_lanes())
    }

    /// Returns whether the device reads the frames of lanes itself: the description requires zero copy, and the device
    /// supports it. If the description does not require it, programs may run without lanes.
    fn reads_lanes(&self) -> bool {
        let input = &self.input;
        if !input.needs.asks_for_zero_copy {
            return false;
        }
        let features = self.device.xdp_features;
        features.is_some_and(|features| features.has_zero_copy)
    }

    /// Checks that critical flows are alone on their queue: all flows, in both directions, were measured on it at the
    /// receiver, and no rule steers other frames to it.
    pub(super) fn verified(&self) -> Result<(), Unverified> {
        let input = &self.input;
        let Some(queue) = self.critical_queue else {
            let why = String::from("critical topics have no dedicated queue");
            return Err(Unverified::not_measured(why));
        };
        if let Some(foreign_rule) = rules::foreign_rule(self, queue) {
            return Err(foreign_rule);
        }
        let unknown = topics_without_flow(input);
        if !unknown.is_empty() {
            return Err(Unverified::not_measured(format!(
                "the addresses and ports of {} are unknown before the programs run, because the description has no \
                 participants for both ends",
                unknown.join(", ")
            )));
        }
        for flow in input.critical_flows() {
            let (wanted, way) = match flow.direction {
                Direction::Receive => (queue, "in from"),
                Direction::Transmit => (flow.queue, "out to"),
            };
            if !input.placement.is_measured_on(flow.tuple, wanted) {
                return Err(Unverified::not_measured(format!(
                    "no measurement shows that {} ({way} {}, UDP port {}) arrives on queue {wanted}",
                    flow.topics.join(", "),
                    flow.peer,
                    flow.tuple.destination_port
                )));
            }
        }
        Ok(())
    }
}

/// Critical topics without a described flow.
pub(super) fn topics_without_flow(input: &PlanInput<'_>) -> Vec<String> {
    let is_placed = |name: &String| {
        input
            .critical_flows()
            .any(|flow| flow.topics.contains(name))
    };
    let topics = input.critical_topics(None);
    topics.into_iter().filter(|name| !is_placed(name)).collect()
}

/// Resolves a VLAN, also a nested one, to its parent among `all`; any other interface is returned unchanged.
#[must_use]
pub fn vlan_parent<'a>(all: &'a [Interface], described: &'a Interface) -> &'a Interface {
    let mut interface = described;
    // Bounded, because a recording may contain a cycle.
    for _ in all {
        let below = interface.parent.as_deref().filter(|_| is_vlan(interface));
        let known = below.and_then(|below| all.iter().find(|it| it.name == below));
        let Some(known) = known else {
            break;
        };
        interface = known;
    }
    interface
}

fn is_vlan(interface: &Interface) -> bool {
    interface.kind.as_deref() == Some("vlan")
}

/// Reports that the parent is configured in place of a VLAN.
pub(super) fn report_vlan_parent(
    described: &Interface,
    interface: &Interface,
    builder: &mut PlanBuilder<'_>,
) {
    let (vlan, device) = (&described.name, &interface.name);
    if vlan == device || is_vlan(interface) {
        return;
    }
    let number = number_of(described);
    builder.not_planned(
        format!("interface.vlan.{vlan}"),
        format!(
            "{vlan} is a VLAN of {device}: the plan configures {device}, for all of its traffic; and a lane on {vlan} \
             gets frames only after the kernel has received them"
        ),
        format!("for lanes, describe the device: interface = \"{device}\", with vlan = {number} in [host.NAME.xdp]"),
    );
}

fn number_of(vlan: &Interface) -> String {
    let number = vlan.vlan.map(|number| number.to_string());
    number.unwrap_or_else(|| String::from("N"))
}

/// Reason that an interface has no queues, interrupts and steering of its own, and the interface to describe instead.
pub(super) fn stacked_reason(facts: &Facts, interface: &Interface) -> Option<(String, String)> {
    let name = &interface.name;
    let kind = interface.kind.as_deref()?;
    let why = format!(
        "{name} is a {kind}: its queues, interrupts and steering belong to the device below it"
    );
    let remedy = match kind {
        "vlan" => {
            let below = name.split_once('.').map(|(below, _)| below);
            let known = below.filter(|below| facts.interfaces.iter().any(|it| it.name == **below));
            let device = match known {
                Some(below) => format!("interface = \"{below}\""),
                None => format!("interface = the name after the @ in ip link show {name}"),
            };
            let vlan = number_of(interface);
            format!("describe the device, {device}, with vlan = {vlan} in [host.NAME.xdp]")
        }
        "macvlan" | "ipvlan" | "macsec" => {
            format!(
                "describe the device below it, which is the name after the @ in ip link show {name}"
            )
        }
        "bond" | "team" | "bridge" => format!(
            "describe one of its ports as interface (ip link show master {name} lists them), and give critical topics \
             an address of that port"
        ),
        _ => return None,
    };
    Some((why, remedy))
}

/// Known receive queues of flows, in both directions; may be empty. Parsing ignores further fields of a report, which
/// describe the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowQueues {
    /// Flows whose receive queue is known.
    pub flows: Vec<FlowQueue>,
    /// Boot id of the asking machine: devices may get another hash key at the next boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Boot mark of the answering machine, if it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_boot: Option<BootMark>,
}

/// Known receive queue of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowQueue {
    /// Addresses and ports of the flow.
    pub tuple: Tuple,
    /// Receive queue of the flow.
    pub queue: KnownQueue,
}

/// Receive queue of a flow, computed or measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "kebab-case", deny_unknown_fields)]
pub enum KnownQueue {
    /// RSS table entry at the receiver, computed from the hash key or learnt. The table maps the entry to a queue.
    /// Whether the device follows the table was not observed.
    Computed {
        /// Table entry.
        entry: u32,
    },
    /// Datagrams of the flow were sent, and the receiver counted them on this queue alone.
    Measured {
        /// Receive queue.
        queue: u32,
    },
}

impl FlowQueues {
    /// Returns whether the queues are known to be from another boot: in this boot, the machine neither asked nor
    /// answered. Reboots of the other machine cannot be detected.
    pub fn is_of_other_boot(&self, boot_id: Option<&str>) -> bool {
        let known = self.boot_id.as_deref().filter(|known| !known.is_empty());
        let (Some(input), Some(boot_id)) = (known, boot_id.filter(|id| !id.is_empty())) else {
            return false;
        };
        let has_answered = self.peer_boot.is_some() && self.peer_boot == BootMark::of(boot_id);
        input != boot_id && !has_answered
    }

    /// RSS table entry of a flow at its receiver.
    pub fn entry_of(&self, tuple: Tuple) -> Option<u32> {
        self.of(tuple).find_map(|place| match place {
            KnownQueue::Computed { entry } => Some(entry),
            KnownQueue::Measured { .. } => None,
        })
    }

    /// Returns whether all datagrams of a flow were counted on queue `wanted`.
    pub fn is_measured_on(&self, tuple: Tuple, wanted: u32) -> bool {
        let mut queues = self.of(tuple).filter_map(|place| match place {
            KnownQueue::Measured { queue } => Some(queue),
            KnownQueue::Computed { .. } => None,
        });
        queues.next() == Some(wanted) && queues.all(|queue| queue == wanted)
    }

    fn of(&self, tuple: Tuple) -> impl Iterator<Item = KnownQueue> {
        let flows = self.flows.iter().filter(move |flow| flow.tuple == tuple);
        flows.map(|flow| flow.queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_before_a_boot_is_of_another_one_at_both_ends() {
        let placement = FlowQueues {
            flows: Vec::new(),
            boot_id: Some(String::from("asker's")),
            peer_boot: BootMark::of("answerer's"),
        };
        for (boot_id, is_of_another) in [
            (Some("asker's"), false),
            (Some("answerer's"), false),
            (Some("next"), true),
            // Facts without a boot id.
            (None, false),
            (Some(""), false),
        ] {
            assert_eq!(
                placement.is_of_other_boot(boot_id),
                is_of_another,
                "{boot_id:?}"
            );
        }
        let unknown = FlowQueues::default();
        assert!(!unknown.is_of_other_boot(Some("next")));
        let older: FlowQueues = serde_json::from_str(r#"{"flows": []}"#).expect("as it was");
        assert_eq!(older, unknown);
    }
}
