//! Planning: a pure function from facts, needs, a profile and known receive queues to a plan, one file per subject.

use isolane_model::Tuning;

use super::input::{PlanInput, report_vlan_parent, stacked_reason, vlan_parent};
use super::{
    FlowQueues, Identity, NotPlanned, Plan, Precondition, Step, When, device, host, interrupts,
    isolation, napi, queues, shell, steering, transmit,
};
use crate::facts::Facts;
use crate::needs::Needs;
use crate::setting::{Document, Setting, Value};

/// Plan under construction.
pub(super) struct PlanBuilder<'a> {
    facts: &'a Facts,
    pub(super) steps: Vec<Step>,
    pub(super) not_planned: Vec<NotPlanned>,
    pub(super) preconditions: Vec<Precondition>,
}

/// Explanation of a step.
pub(super) struct Rationale {
    pub(super) why: String,
    /// Cost to other programs and traffic.
    pub(super) costs: String,
    /// Topics that benefit; empty for all of the host.
    pub(super) topics: Vec<String>,
}

impl Rationale {
    /// Explanation of a step that benefits all topics of the host.
    pub(super) fn of_all(why: impl Into<String>, costs: impl Into<String>) -> Self {
        Self::of(&[], why, costs)
    }

    /// Explanation of a step that benefits these topics.
    pub(super) fn of(topics: &[String], why: impl Into<String>, costs: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            costs: costs.into(),
            topics: topics.to_vec(),
        }
    }
}

impl PlanBuilder<'_> {
    /// Adds a step, unless the setting already has the value.
    pub(super) fn change(
        &mut self,
        id: impl Into<String>,
        setting: Setting,
        (from, to): (Value, Value),
        rationale: Rationale,
    ) {
        let when = match setting {
            Setting::Document { .. } => When::Reboot,
            _ => When::Now,
        };
        if from == to {
            return;
        }
        self.steps.push(Step {
            id: id.into(),
            undo: shell::undo(&setting, &from),
            setting,
            from,
            to,
            why: rationale.why,
            topics: rationale.topics,
            costs: rationale.costs,
            when,
        });
    }

    /// Limits the steps from index `first` on to this boot, because they use receive-queue measurements.
    pub(super) fn limit_to_this_boot(&mut self, first: usize) {
        for step in self.steps.iter_mut().skip(first) {
            step.when = When::ThisBoot;
        }
    }

    /// Adds a step for a sysfs or procfs file, unless the file is missing.
    pub(super) fn attribute(
        &mut self,
        id: impl Into<String>,
        path: &str,
        to: impl Into<String>,
        rationale: Rationale,
    ) {
        let Some(from) = self.facts.attribute(path) else {
            return;
        };
        let path = path.to_owned();
        let setting = Setting::Attribute { path };
        self.change(
            id,
            setting,
            (Value::Text(from), Value::Text(to.into())),
            rationale,
        );
    }

    /// Adds a step for a document, unless it already has the text.
    pub(super) fn document(
        &mut self,
        id: impl Into<String>,
        document: Document,
        rationale: Rationale,
    ) {
        let path = document.path();
        let from = match self.facts.documents.get(&path) {
            Some(text) if *text == document.text() => return,
            Some(text) => Value::Text(text.clone()),
            None => Value::Absent,
        };
        let setting = Setting::Document { path };
        self.change(id, setting, (from, Value::Document(document)), rationale);
    }

    /// Returns whether a step changes the steering of an interface, which invalidates earlier measurements.
    pub(super) fn changes_steering(&self, interface: &str) -> bool {
        self.steps
            .iter()
            .any(|step| steered_interface(&step.setting) == Some(interface))
    }

    /// Adds a precondition, once for each setting.
    pub(super) fn require(&mut self, setting: Setting, value: Value) {
        if self
            .preconditions
            .iter()
            .all(|known| known.setting != setting)
        {
            self.preconditions.push(Precondition { setting, value });
        }
    }

    pub(super) fn not_planned(
        &mut self,
        id: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.not_planned.push(NotPlanned {
            id: id.into(),
            why: why.into(),
            remedy: remedy.into(),
        });
    }
}

/// Interface whose steering of frames to queues the setting determines.
pub(crate) fn steered_interface(setting: &Setting) -> Option<&str> {
    match setting {
        Setting::Feature { interface, feature } if feature == RULES => Some(interface),
        Setting::Channels { interface }
        | Setting::RssTable { interface }
        | Setting::UdpHash { interface }
        | Setting::FlowRule { interface, .. } => Some(interface),
        _ => None,
    }
}

/// Kernel name of the offload that enables flow rules.
pub(super) const RULES: &str = "rx-ntuple-filter";

/// Plans the changes that set the machine up for the description's topics, as the profile requires.
///
/// [`from`](super::Step::from) of every step is the value in the facts, before any step. Steps that reset other
/// settings come first: a new number of queues resets the RSS table, interrupts and queueing disciplines, so queues
/// precede these. Rings precede interrupts.
pub fn plan(facts: &Facts, needs: &Needs, tuning: &Tuning, placement: &FlowQueues) -> Plan {
    let mut builder = PlanBuilder {
        facts,
        steps: Vec::new(),
        not_planned: Vec::new(),
        preconditions: Vec::new(),
    };
    let unknown = FlowQueues::default();
    let placement = match placement.is_of_other_boot(facts.boot_id.as_deref()) {
        true => {
            builder.not_planned(
                "receive-queues",
                "the receive-queue measurements are from another boot and no longer valid",
                "learn and measure again: isolane tune learn, isolane tune ports",
            );
            &unknown
        }
        false => placement,
    };
    let input = PlanInput {
        facts,
        needs,
        tuning,
        placement,
    };
    host::plan_kernel_limits(&input, &mut builder);
    target(&input, &mut builder);
    // Interrupts leave an SMT sibling before it goes offline. An undo moves them back after it is online again.
    interrupts::plan_other_devices(&input, &mut builder);
    host::plan_cores(&input, &mut builder);
    host::plan_scheduler(&input, &mut builder);
    host::plan_memory(&input, &mut builder);
    host::plan_sockets(&input, &mut builder);
    host::plan_services(&input, &mut builder);
    isolation::plan_isolation(&input, &mut builder);
    Plan {
        schema: String::from(super::SCHEMA),
        machine: Identity {
            hostname: facts.hostname.clone(),
            machine_id: facts.machine_id.clone(),
        },
        origin: facts.origin.clone(),
        profile: tuning.name(),
        boot_id: facts.boot_id.clone(),
        steps: builder.steps,
        not_planned: builder.not_planned,
        preconditions: builder.preconditions,
    }
}

fn target(input: &PlanInput<'_>, builder: &mut PlanBuilder<'_>) {
    let Some(name) = &input.needs.interface else {
        let why = match (input.needs.hosts.as_slice(), &input.needs.host) {
            ([], _) | (_, Some(_)) => {
                "no description names an interface, so the plan configures none"
            }
            _ => {
                "it is unknown which described host this machine is, so the plan configures no interface"
            }
        };
        let remedy = match input.needs.hosts.as_slice() {
            [] => String::from("describe the system: isolane config --example > isolane.toml"),
            hosts => format!("name it: --host {}", hosts.join(" | ")),
        };
        return builder.not_planned("description.host", why, remedy);
    };
    let facts = input.facts;
    let described = facts.interfaces.iter().find(|known| known.name == *name);
    let interface = described.map(|it| vlan_parent(&facts.interfaces, it));
    let name = interface.map_or(name, |interface| &interface.name);
    let (Some(interface), Some(device)) = (interface, facts.device(name)) else {
        let (why, remedy) = match interface {
            Some(_) => (
                format!("{name} does not report its capabilities"),
                format!("run as root; or use an interface of a device: ethtool -i {name}"),
            ),
            None => (
                format!("the description names the interface {name}, which does not exist"),
                String::from("correct `interface` of the host"),
            ),
        };
        return builder.not_planned(format!("interface.device.{name}"), why, remedy);
    };
    if let Some((why, remedy)) = stacked_reason(facts, interface) {
        return builder.not_planned(format!("interface.kind.{name}"), why, remedy);
    }
    if let Some(described) = described {
        report_vlan_parent(described, interface, builder);
    }
    if interface.is_wireless {
        builder.not_planned(
            format!("interface.wireless.{name}"),
            format!("{name} is wireless: other stations decide when it may send, and no setting of this host bounds \
                     the delay"),
            "use a cable for critical topics",
        );
    }
    let target = queues::plan(input, interface, device, builder);
    device::plan_offloads(&target, builder);
    device::plan_rings(&target, builder);
    device::plan_coalescing(&target, builder);
    steering::plan(&target, builder);
    transmit::plan(&target, builder);
    interrupts::plan_topic_interface(&target, builder);
    napi::plan(&target, builder);
}
