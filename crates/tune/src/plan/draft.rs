//! Plan under construction.

use super::shell;
use super::{Refusal, Reliance, Step, When};
use crate::facts::Facts;
use crate::setting::{Document, Setting, Value};

#[derive(Default)]
pub(super) struct Draft {
    pub(super) steps: Vec<Step>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) relies_on: Vec<Reliance>,
}

/// Explanation of a step.
pub(super) struct Said {
    pub(super) why: String,
    /// Cost to others.
    pub(super) costs: String,
    /// Topics that benefit; empty for all of the host.
    pub(super) topics: Vec<String>,
}

impl Said {
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

impl Draft {
    /// Adds a step, unless the setting already has the value.
    pub(super) fn change(
        &mut self,
        id: impl Into<String>,
        setting: Setting,
        (from, to): (Value, Value),
        said: Said,
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
            why: said.why,
            topics: said.topics,
            costs: said.costs,
            when,
        });
    }

    /// Limits the steps from index `first` on to this boot, because they use receive-queue measurements.
    pub(super) fn hold_for_this_boot(&mut self, first: usize) {
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
        said: Said,
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
            said,
        );
    }

    /// Adds a step for a document, unless it already has the text.
    pub(super) fn document(
        &mut self,
        facts: &Facts,
        id: impl Into<String>,
        document: Document,
        said: Said,
    ) {
        let path = document.path();
        let from = match facts.documents.get(&path) {
            Some(text) if *text == document.text() => return,
            Some(text) => Value::Text(text.clone()),
            None => Value::Absent,
        };
        let setting = Setting::Document { path };
        self.change(id, setting, (from, Value::Document(document)), said);
    }

    /// Returns whether a step changes the steering of an interface, which invalidates earlier measurements.
    pub(super) fn changes_steering(&self, interface: &str) -> bool {
        self.steps
            .iter()
            .any(|step| steers(&step.setting) == Some(interface))
    }

    pub(super) fn refuse(
        &mut self,
        id: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.refusals.push(Refusal {
            id: id.into(),
            why: why.into(),
            remedy: remedy.into(),
        });
    }
}

/// Interface whose steering of frames to queues the setting determines.
pub(crate) fn steers(setting: &Setting) -> Option<&str> {
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
