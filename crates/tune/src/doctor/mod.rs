//! Findings from facts and needs: a pure function, one file per subject.

mod budget;
mod cores;
mod devices;
mod interfaces;
mod kernel;
mod lanes;
mod network;
mod rights;

use isolane_datapath::Kinds;
use serde::Serialize;

use crate::facts::Facts;
use crate::kernel_lists::list;
use crate::needs::Needs;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Satisfactory.
    Ok,
    /// Informational; no action is needed.
    Info,
    /// Latency is higher than need be, or a property is uncertain.
    Warn,
    /// Topics will not flow as described.
    Error,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Id of the check: `cores.governor`, followed by the interface if the check concerns one. The meaning of an id is
    /// stable over versions.
    pub id: String,
    /// Severity.
    pub severity: Severity,
    /// State found.
    pub what: String,
    /// Cost in words; empty if none.
    pub cost: String,
    /// Remedy, a command or a setting; empty if no action is needed.
    pub remedy: String,
}

/// Runs all checks, those of the kinds of datapaths included.
pub fn examine(facts: &Facts, needs: &Needs, kinds: Kinds) -> Vec<Finding> {
    let mut findings = Findings::default();
    kernel::examine(facts, &mut findings);
    cores::examine(facts, needs, &mut findings);
    rights::examine(facts, &mut findings);
    network::examine_sockets(facts, needs, &mut findings);
    network::examine_ports(facts, needs, &mut findings);
    network::examine_participants(facts, needs, &mut findings);
    interfaces::examine(facts, needs, &mut findings);
    lanes::examine(facts, needs, kinds, &mut findings);
    findings.0.iter_mut().for_each(name_step);
    findings.0
}

/// Plan steps that resolve findings: prefix of the finding's id, and id of the step.
const STEPS: [(&str, &str); 24] = [
    ("cores.governor", "cores.governor"),
    ("cores.idle-states", "cores.idle-state"),
    ("cores.isolated", "boot.arguments"),
    ("cores.other-interrupts", "cores.interrupt"),
    ("cores.smt", "cores.sibling"),
    ("cores.tick", "boot.arguments"),
    ("interface.filters.", "interface.receive-table"),
    ("interface.hash-key.", "interface.receive-table"),
    ("interface.hash-ports.", "interface.udp-hash"),
    ("interface.interrupts.", "interface.interrupt"),
    ("interface.moderation.", "interface.moderation"),
    ("interface.offload.", "interface.offload"),
    ("interface.offloads-xdp.", "interface.offload"),
    ("interface.queues-used.", "interface.queues"),
    ("interface.rings.", "interface.rings"),
    ("interface.transmit.", "interface.transmit"),
    ("lane.polling.", "interface.deferred-interrupts"),
    ("lane.receive-work.", "interface.thread"),
    ("memory.huge-pages", "memory.huge-pages"),
    ("participant.ports.", "sockets.ports"),
    ("programs.irqbalance", "services.irqbalance"),
    ("scheduler.fair-server", "scheduler.fair-server"),
    ("scheduler.throttling", "scheduler.throttling"),
    ("sockets.receive-buffer", "sockets.buffer"),
];

/// Appends the step that resolves a finding to its remedy.
fn name_step(finding: &mut Finding) {
    let is_meant = |(start, _): &&(&str, &str)| finding.id.starts_with(start);
    if finding.severity == Severity::Ok {
        return;
    }
    if let Some((_, step)) = STEPS.iter().find(is_meant) {
        finding
            .remedy
            .push_str(&format!("; or the step {step} of isolane tune plan"));
    }
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, id: &str, what: impl Into<String>) {
        self.add(Severity::Ok, id, what, "", "");
    }

    fn info(&mut self, id: &str, what: impl Into<String>, cost: &str, remedy: impl Into<String>) {
        self.add(Severity::Info, id, what, cost, remedy);
    }

    fn warn(&mut self, id: &str, what: impl Into<String>, cost: &str, remedy: impl Into<String>) {
        self.add(Severity::Warn, id, what, cost, remedy);
    }

    fn error(&mut self, id: &str, what: impl Into<String>, cost: &str, remedy: impl Into<String>) {
        self.add(Severity::Error, id, what, cost, remedy);
    }

    fn add(
        &mut self,
        severity: Severity,
        id: &str,
        what: impl Into<String>,
        cost: &str,
        remedy: impl Into<String>,
    ) {
        self.0.push(Finding {
            id: id.into(),
            severity,
            what: what.into(),
            cost: cost.into(),
            remedy: remedy.into(),
        });
    }
}
