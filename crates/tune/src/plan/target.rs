//! Interface that carries the topics, and its critical queue.

use crate::facts::{Device, Facts, Interface, Interrupt};
use crate::needs::{DescribedFlow, Direction, Needs};

use crate::probe::files::number_list;

use super::{FlowQueues, rules};
use isolane_model::Tuning;

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

    /// Names of critical topics in one direction; without a direction, in both.
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

    /// Cores for all other work: those online now and after the plan, without the executor's.
    pub(super) fn other_cores(&self) -> Vec<u16> {
        let leaving = self.leaving_siblings();
        let online = self.facts.cores.online.iter().copied();
        online
            .filter(|core| Some(*core) != self.core() && !leaving.contains(core))
            .collect()
    }

    /// SMT siblings of the executor's core that the plan takes offline.
    pub(super) fn leaving_siblings(&self) -> Vec<u16> {
        let Some(core) = self.core().filter(|_| self.tuning.siblings_off.value) else {
            return Vec::new();
        };
        let can_leave = |sibling: &u16| {
            let path = format!("{CPUS}/cpu{sibling}/online");
            *sibling != core && self.facts.attribute(&path).as_deref() == Some("1")
        };
        let siblings = self.siblings(core).unwrap_or_default();
        siblings.into_iter().filter(can_leave).collect()
    }

    /// Returns whether a program runs, by its name in `/proc`.
    pub(super) fn runs(&self, program: &str) -> bool {
        self.facts.programs.iter().any(|known| known == program)
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
    pub(super) interface: &'a Interface,
    pub(super) device: &'a Device,
    /// Receive queues after the plan.
    pub(super) receive_queues: u32,
    /// Transmit queues after the plan.
    pub(super) transmit_queues: u32,
    /// True if the number of queues changes, so that interrupts and threads are replaced.
    pub(super) is_remade: bool,
    /// Queue of critical topics in both directions; `None` if they have none of their own.
    pub(super) critical_queue: Option<u32>,
}

/// Reason that critical flows may share their queue.
pub(super) struct Unverified {
    pub(super) why: String,
    pub(super) remedy: String,
}

impl Unverified {
    fn unmeasured(why: String) -> Self {
        Self {
            why,
            remedy: String::from(
                "measure where each critical flow lands, at both ends (isolane tune ports --json FILE), and plan with \
                 what was measured: isolane tune plan --placement FILE",
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

    /// Returns whether an interrupt is on the path of critical samples. It is if it serves reception; or if it serves
    /// transmission on a device that reads a lane's frames itself (zero copy), as the description requests.
    ///
    /// Otherwise transmit completion is not on the path: the frame is already on the wire, and nothing waits for its
    /// buffer.
    pub(super) fn is_on_critical_path(&self, input: &PlanInput<'_>, interrupt: &Interrupt) -> bool {
        let is_of_queue = interrupt.queue.is_some() && interrupt.queue == self.critical_queue;
        is_of_queue && (!interrupt.only_transmits() || self.reads_lanes(input))
    }

    /// Returns whether the device reads the frames of lanes itself: the description requests it, and the device can. If
    /// the description leaves it open, programs may have no lanes at all, and nothing may depend on these interrupts.
    fn reads_lanes(&self, input: &PlanInput<'_>) -> bool {
        if !input.needs.asks_for_zero_copy {
            return false;
        }
        let mut lanes = input.facts.lanes.iter();
        let ground = lanes.find(|lanes| lanes.ground.interface == self.name());
        let device = ground.and_then(|lanes| lanes.ground.device.as_ref());
        let features = device.and_then(|device| device.features);
        features.is_some_and(|features| features.has_zero_copy)
    }

    /// Checks that critical flows are alone on their queue: each was measured on its queue at the receiver, in both
    /// directions, and no rule steers other frames there.
    pub(super) fn verified(&self, input: &PlanInput<'_>) -> Result<(), Unverified> {
        let Some(queue) = self.critical_queue else {
            let why = String::from("critical topics have no queue of their own");
            return Err(Unverified::unmeasured(why));
        };
        if let Some(foreign_rule) = rules::foreign_rule(input, self, queue) {
            return Err(foreign_rule);
        }
        let unknown = topics_without_flow(input);
        if !unknown.is_empty() {
            return Err(Unverified::unmeasured(format!(
                "addresses and ports of {} are not known before they run: no participants are described for \
                 both ends",
                unknown.join(", ")
            )));
        }
        for flow in input.critical_flows() {
            let (wanted, way) = match flow.way {
                Direction::Receive => (queue, "in from"),
                Direction::Transmit => (flow.queue, "out to"),
            };
            if !input.placement.is_measured_on(flow.tuple, wanted) {
                return Err(Unverified::unmeasured(format!(
                    "it was not measured that {} ({way} {}, UDP port {}) comes to queue {wanted}",
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
