//! What to change on a machine, in order, and why.
//!
//! A plan is made from facts, a description and a profile by a pure function, so that recorded
//! machines are its tests. It is plain and serialisable: people read it, programs compare it, and
//! `apply` carries out exactly what was shown.
//!
//! [`Step::from`] of every step is what the facts said, before any of them. Some steps change what
//! others are about (another number of queues resets the receive table, interrupts and queueing), so
//! whoever carries a plan out compares all of them with the machine first, and then changes it.

mod after;
mod arguments;
mod below;
mod boot;
mod carrier;
mod cores;
mod draft;
mod following;
mod form;
mod interrupts;
mod kernel;
mod leftover;
mod make;
mod memory;
mod moderation;
mod napi;
mod offloads;
mod other_interrupts;
mod placement;
mod producible;
mod queues;
mod reliance;
mod rings;
mod rules;
mod scheduler;
mod services;
pub(crate) mod shell;
pub(crate) mod slices;
mod sockets;
mod steering;
mod text;
mod transmit;

pub use below::of_vlan;
pub(crate) use draft::steers;
pub(crate) use form::of_form;
pub use form::{FormError, PlanError};
pub(crate) use interrupts::named;
pub use leftover::replan;
pub use make::plan;
pub(crate) use moderation::{is_mode as is_moderation_mode, shortened as shortened_moderation};
pub use napi::{
    APPLICATION_PRIORITY, BULK_QUEUE_PRIORITY, CRITICAL_QUEUE_PRIORITY, TRANSMIT_QUEUE_PRIORITY,
};
pub(crate) use other_interrupts::may_come;
pub use placement::{Place, PlacedFlow, Placement};
pub(crate) use producible::AgreedCores;
pub(crate) use queues::enough;
pub(crate) use rules::RULES_WITHOUT_PORTS;

use serde::{Deserialize, Serialize};

use crate::setting::{Setting, Value};

/// The form of a plan that is written.
pub const SCHEMA: &str = "isolane/plan/2";

/// What to change on one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// `isolane/plan/2`.
    pub schema: String,
    /// The machine it was made for.
    pub machine: Identity,
    /// Where its facts come from, for people: probed, recorded, or made up.
    pub origin: String,
    /// The profile it was made from.
    pub profile: String,
    /// The kernel's number of the run of the machine that its facts are of, where they say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// What to change, in this order; undone in the reverse one.
    pub steps: Vec<Step>,
    /// What was asked for, or would help, and is not done here.
    pub refusals: Vec<Refusal>,
    /// What has to stand already, or some of the steps do harm: priorities of receive threads were planned
    /// because critical flows were measured on their queue, with this steering. Where it does not stand (any
    /// more), the plan must not be carried out.
    #[serde(default)]
    pub relies_on: Vec<Reliance>,
}

impl Plan {
    /// The run of the machine it was made in, if that is another one and the plan rests on it: on where
    /// datagrams landed then. At boot what a plan relies on is looked at, whichever run it is of: rules
    /// lead where they led before.
    pub(crate) fn of_other_boot(&self, boot_id: &str, is_boot: bool) -> Option<&str> {
        let rests = self.steps.iter().any(|step| step.when == When::ThisBoot)
            || (!self.relies_on.is_empty() && !is_boot);
        let of = self.boot_id.as_deref().filter(|_| rests)?;
        // Where the kernel does not tell, nothing is known.
        let is_other = of != boot_id && !of.is_empty() && !boot_id.is_empty();
        is_other.then_some(of)
    }
}

/// What a plan relies on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reliance {
    /// The place.
    pub setting: Setting,
    /// What stands there.
    pub value: Value,
}

/// Which machine a plan is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Identity {
    /// Its name.
    pub hostname: String,
    /// `/etc/machine-id`; `None` where there is none.
    pub machine_id: Option<String>,
}

impl Identity {
    /// Whether both name one machine. Names of machines change, their ids do not; where one has no id
    /// its name must do.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        match (&self.machine_id, &other.machine_id) {
            (Some(own), Some(other)) => own == other,
            _ => self.hostname == other.hostname,
        }
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What it is about, a subject and a name: `interface.coalescing.eth0`. It keeps its meaning from
    /// version to version.
    pub id: String,
    /// What is changed.
    pub setting: Setting,
    /// What stood there when the facts were read.
    pub from: Value,
    /// What is to stand there.
    pub to: Value,
    /// Why it helps.
    pub why: String,
    /// The topics it helps; empty: all of this host.
    pub topics: Vec<String>,
    /// What it costs others.
    pub costs: String,
    /// How it is undone without this program.
    pub undo: String,
    /// When it takes effect.
    pub when: When,
}

impl Step {
    /// What the ids of steps begin with that set up an interface which carries topics.
    const OF_CARRIER: &str = "interface.";

    /// What the ids of steps begin with that move interrupts of other devices out of the way.
    pub(crate) const OF_OTHER_DEVICE: &str = "cores.interrupt-";

    /// Whether it is about an interface that carries topics.
    pub(crate) fn is_of_carrier(&self) -> bool {
        self.id.starts_with(Self::OF_CARRIER)
    }

    /// Whether it is about an interrupt of another device than the one that carries topics. Such devices come and
    /// go, the kernel may refuse to move it, and the rest helps without it.
    pub(crate) fn is_of_other_device(&self) -> bool {
        let id = self.id.strip_prefix(Self::PUTS_BACK).unwrap_or(&self.id);
        id.starts_with(Self::OF_OTHER_DEVICE)
    }

    /// What the ids of steps begin with that put back what an earlier plan set.
    pub(crate) const PUTS_BACK: &str = "restore.";

    /// Whether it puts back what an earlier plan set, and this one does not ask for.
    pub(crate) fn puts_back(&self) -> bool {
        self.id.starts_with(Self::PUTS_BACK)
    }
}

/// When a step takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// At once, until the next boot: the boot part of the plan sets it again.
    Now,
    /// At once, and not again after a boot: it rests on where datagrams were seen to land, and the device
    /// takes another key for its hash then. They have to be looked at again.
    ThisBoot,
    /// After the next boot.
    Reboot,
}

/// What is not done here, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// What it would be about, as a [`Step::id`].
    pub id: String,
    /// Why not.
    pub why: String,
    /// What to do instead; empty: nothing.
    pub remedy: String,
}
