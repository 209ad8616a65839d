//! The steps and refusals of a plan as they come together.

use super::shell;
use super::{Refusal, Reliance, Step, When};
use crate::facts::Facts;
use crate::setting::{Document, Setting, Value};

/// A plan that is being made.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) steps: Vec<Step>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) relies_on: Vec<Reliance>,
}

/// What is said of a step.
pub(super) struct Said {
    /// Why it helps.
    pub(super) why: String,
    /// What it costs others.
    pub(super) costs: String,
    /// The topics it helps; empty: all of the host.
    pub(super) topics: Vec<String>,
}

impl Said {
    /// Of a step that helps all topics of the host.
    pub(super) fn of_all(why: impl Into<String>, costs: impl Into<String>) -> Self {
        Self::of(&[], why, costs)
    }

    /// Of a step that helps these topics.
    pub(super) fn of(topics: &[String], why: impl Into<String>, costs: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            costs: costs.into(),
            topics: topics.to_vec(),
        }
    }
}

impl Draft {
    /// Changes a setting; nothing, where it stands so already.
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

    /// Has the steps from this number on end with the next boot: they rest on where datagrams land now.
    pub(super) fn hold_for_this_boot(&mut self, first: usize) {
        for step in self.steps.iter_mut().skip(first) {
            step.when = When::ThisBoot;
        }
    }

    /// Changes what stands in a file of sysfs or procfs; nothing, where there is no such file.
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

    /// Writes a file of our own; nothing, where it stands so already.
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

    /// Whether what comes to which queue of an interface changes: then nothing that was measured before
    /// holds.
    pub(super) fn changes_steering(&self, interface: &str) -> bool {
        self.steps
            .iter()
            .any(|step| steers(&step.setting) == Some(interface))
    }

    /// Says why something is not done, and what to do instead.
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

/// The interface of which a setting decides what comes to which queue.
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

/// The kernel's name of the switch of steering rules.
pub(super) const RULES: &str = "rx-ntuple-filter";
