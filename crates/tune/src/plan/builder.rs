//! Plan under construction.

use super::shell;
use super::{NotPlanned, Precondition, Step, When};
use crate::facts::Facts;
use crate::setting::{Document, Setting, Value};

#[derive(Default)]
pub(super) struct PlanBuilder {
    pub(super) steps: Vec<Step>,
    pub(super) refusals: Vec<NotPlanned>,
    pub(super) relies_on: Vec<Precondition>,
}

/// Explanation of a step.
pub(super) struct Rationale {
    pub(super) why: String,
    /// Cost to others.
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

impl PlanBuilder {
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
        facts: &Facts,
        id: impl Into<String>,
        path: &str,
        to: impl Into<String>,
        rationale: Rationale,
    ) {
        let Some(from) = facts.attribute(path) else {
            return;
        };
        let setting = Setting::Attribute {
            path: path.to_owned(),
        };
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
        facts: &Facts,
        id: impl Into<String>,
        document: Document,
        rationale: Rationale,
    ) {
        let path = document.path();
        let from = match facts.documents.get(&path) {
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

    pub(super) fn not_planned(
        &mut self,
        id: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.refusals.push(NotPlanned {
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
