//! Plans: changes of a machine, in order, with reasons.
//!
//! A pure function makes a plan from facts, a description and a profile, so it is tested with recorded machines. Plans
//! are serialisable: people read them, programs compare them, and `apply` carries out exactly what was shown.
//!
//! [`Step::from`] of every step is the value before any step. Some steps reset settings of others: a new number of
//! queues resets the RSS table, interrupts and queueing. So `apply` compares these values of all steps with the machine
//! before the first change.

mod builder;
mod device;
mod host;
mod input;
mod interrupts;
pub(crate) mod isolation;
mod napi;
mod queues;
mod replan;
mod rules;
pub(crate) mod shell;
mod steering;
mod text;
mod transmit;
mod validation;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::builder::plan;
pub(crate) use self::builder::steered_interface;
pub(crate) use self::device::{
    is_mode as is_moderation_mode, planned_coalescing as shortened_moderation,
};
pub use self::input::{FlowQueue, FlowQueues, KnownQueue, vlan_parent};
pub(crate) use self::interrupts::{interrupts_that_may_reach, list_interrupts};
pub use self::napi::{
    APPLICATION_PRIORITY, BULK_QUEUE_PRIORITY, CRITICAL_QUEUE_PRIORITY, TRANSMIT_QUEUE_PRIORITY,
};
pub(crate) use self::queues::enough;
pub use self::replan::replan;
pub(crate) use self::rules::RULES_WITHOUT_PORTS;
pub use self::text::wrap_lines;
pub(crate) use self::validation::CoreAssignment;
use crate::limits::{MAX_ERROR_TEXT, MAX_SHOWN_TEXT};
use crate::setting::{Setting, Value};

/// Current format version of plans.
pub const SCHEMA: &str = "isolane/plan/3";

/// Changes of one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Format version, `isolane/plan/3`.
    pub schema: String,
    /// Machine that the plan is for.
    pub machine: Identity,
    /// Origin of the facts, for messages: probed, recorded or invented.
    pub origin: String,
    /// Profile of the plan.
    pub profile: String,
    /// Boot id of the facts, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Changes in order; undone in reverse.
    pub steps: Vec<Step>,
    /// Requested or useful changes that this plan does not make.
    pub not_planned: Vec<NotPlanned>,
    /// Settings that must already hold when the plan is applied. Priorities of receive threads do harm under any
    /// steering but the one under which critical flows were measured on their queue.
    #[serde(default)]
    pub preconditions: Vec<Precondition>,
}

impl Plan {
    /// Boot id of the plan, if it differs from `boot_id` and the plan uses receive-queue measurements of its boot. With
    /// `is_boot`, preconditions do not count as such a use: `apply` checks them.
    pub(crate) fn of_other_boot(&self, boot_id: &str, is_boot: bool) -> Option<&str> {
        let rests = self.steps.iter().any(|step| step.when == When::ThisBoot)
            || (!self.preconditions.is_empty() && !is_boot);
        let of = self.boot_id.as_deref().filter(|_| rests)?;
        // An unknown boot id never differs.
        let is_other = of != boot_id && !of.is_empty() && !boot_id.is_empty();
        is_other.then_some(of)
    }
}

/// Setting that a plan relies on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precondition {
    /// Setting.
    pub setting: Setting,
    /// Required value.
    pub value: Value,
}

/// Identity of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Identity {
    /// Host name.
    pub hostname: String,
    /// `/etc/machine-id`; `None` if missing.
    pub machine_id: Option<String>,
}

impl Identity {
    /// Returns whether both identify the same machine. Ids are compared if both have one, otherwise host names, which
    /// may change.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        match (&self.machine_id, &other.machine_id) {
            (Some(own), Some(other)) => own == other,
            _ => self.hostname == other.hostname,
        }
    }
}

/// Change of one setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Id of the step: `interface.coalescing.eth0`. The meaning of an id is stable over versions.
    pub id: String,
    /// Setting to change.
    pub setting: Setting,
    /// Value when the facts were read.
    pub from: Value,
    /// New value.
    pub to: Value,
    /// Benefit.
    pub why: String,
    /// Topics that benefit; empty for all of this host.
    pub topics: Vec<String>,
    /// Cost to other programs and traffic.
    pub costs: String,
    /// Command that undoes the step without isolane.
    pub undo: String,
    /// Time at which the step takes effect.
    pub when: When,
}

impl Step {
    /// Id prefix of steps about an interface that carries topics.
    const INTERFACE_PREFIX: &str = "interface.";

    /// Id prefix of steps that move other devices' interrupts away.
    pub(crate) const OTHER_DEVICE_PREFIX: &str = "cores.interrupt-";

    /// Returns whether the step concerns an interface that carries topics.
    pub(crate) fn is_of_topic_interface(&self) -> bool {
        self.id.starts_with(Self::INTERFACE_PREFIX)
    }

    /// Returns whether the step concerns an interrupt of a device that carries no topics. Such devices come and go, the
    /// kernel may refuse to move the interrupt, and the other steps help without it.
    pub(crate) fn is_of_other_device(&self) -> bool {
        let id = self
            .id
            .strip_prefix(Self::RESTORE_PREFIX)
            .unwrap_or(&self.id);
        id.starts_with(Self::OTHER_DEVICE_PREFIX)
    }

    /// Id prefix of steps that restore settings of earlier plans.
    pub(crate) const RESTORE_PREFIX: &str = "restore.";

    /// Returns whether the step restores a setting of an earlier plan.
    pub(crate) fn is_restoring(&self) -> bool {
        self.id.starts_with(Self::RESTORE_PREFIX)
    }
}

/// Time at which a step takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Immediately, until the next boot; the boot part then repeats the step.
    Now,
    /// Immediately, in this boot only: the step uses receive-queue measurements, which become invalid when the device
    /// gets a new hash key at boot.
    ThisBoot,
    /// Effective at the next boot.
    Reboot,
}

/// Change that a plan does not make, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotPlanned {
    /// Subject, in the form of a [`Step::id`].
    pub id: String,
    /// Reason.
    pub why: String,
    /// Remedy; empty if there is none.
    pub remedy: String,
}

/// Mismatch of the format version.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} has the format {found}, and this isolane reads {known}")]
pub struct SchemaError {
    /// Plan or file, as text.
    pub what: String,
    /// Format version found.
    pub found: String,
    /// Format version that this program reads.
    pub known: &'static str,
}

/// Reason that a text is not a plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// Other format version.
    #[error(transparent)]
    Form(SchemaError),
    /// Syntax error, or unknown fields.
    // The error may quote the text, which may be long.
    #[error("{}", .0.to_string().chars().take(MAX_ERROR_TEXT).collect::<String>())]
    Text(serde_json::Error),
}

/// Fields common to all format versions.
#[derive(Deserialize)]
struct AnySchema {
    schema: String,
}

impl Plan {
    /// Fails for another format version.
    pub(crate) fn check_schema(&self) -> Result<(), SchemaError> {
        check(&self.schema, "the plan", SCHEMA)
    }
}

/// Parses a value that names its format version, after checking the version.
pub(crate) fn parse_versioned<T: DeserializeOwned>(
    text: &str,
    what: &str,
    known: &'static str,
) -> Result<T, PlanError> {
    let any: AnySchema = serde_json::from_str(text).map_err(PlanError::Text)?;
    check(&any.schema, what, known).map_err(PlanError::Form)?;
    serde_json::from_str(text).map_err(PlanError::Text)
}

fn check(form: &str, what: &str, known: &'static str) -> Result<(), SchemaError> {
    match form == known {
        true => Ok(()),
        false => Err(SchemaError {
            what: what.to_owned(),
            found: form.chars().take(MAX_SHOWN_TEXT).collect(),
            known,
        }),
    }
}

impl Plan {
    /// Merges this plan with an earlier one that was applied. Where both change the same setting, this plan's value
    /// counts. A precondition that a merged step establishes is dropped.
    ///
    /// Steps keep their order, because a plan may rely on settings of earlier steps.
    #[must_use]
    pub fn merge(mut self, earlier: &Self) -> Self {
        let mut steps = earlier.steps.clone();
        for step in self.steps {
            match steps.iter_mut().find(|known| known.setting == step.setting) {
                Some(known) => {
                    // The original value, from before the first plan, is the one to restore.
                    let from = known.from.clone();
                    *known = step;
                    known.undo = shell::undo(&known.setting, &from);
                    known.from = from;
                }
                None => steps.push(step),
            }
        }
        steps.retain(|step| step.from != step.to);
        let is_set = |precondition: &Precondition| {
            let mut steps = steps.iter();
            steps.any(|step| step.setting == precondition.setting && step.to == precondition.value)
        };
        let mut preconditions = earlier.preconditions.clone();
        preconditions.retain(|known| {
            !self
                .preconditions
                .iter()
                .any(|it| it.setting == known.setting)
        });
        preconditions.append(&mut self.preconditions);
        preconditions.retain(|precondition| !is_set(precondition));
        Self {
            steps,
            preconditions,
            ..self
        }
    }
}
