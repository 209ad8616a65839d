//! A machine set up for critical topics: what it is like, what of it stands in the way, what to change, and whether
//! that works.
//!
//! [`probe`] reads a machine into [`Facts`], which are plain values that can be recorded;
//! [`examine`] turns facts, and what a description needs, into [`Finding`]s: what is so, what it
//! costs, what to do; [`plan()`] into a [`Plan`]: settings, from what to what, why, at what price. Both are
//! pure functions, so that recorded machines are their tests. `probe` changes nothing: it reads sysfs and
//! procfs, asks netlink, and opens a socket that it closes again.
//!
//! [`mod@apply`] carries plans out, with a journal of what was found, and undoes them; [`verify`] measures what
//! settings only promise: where datagrams land and leave, and how late threads wake. [`steer`] knows where a receive
//! hash brings datagrams. [`export()`] writes plans in the forms of other tools.
//!
//! [`packet_filters`] says whether a rule may drop datagrams to a port; it runs the system's own tools to list the rules.

#![forbid(unsafe_code)]

pub mod apply;
mod doctor;
mod ethtool;
mod export;
mod facts;
mod filters;
pub mod limits;
mod lists;
mod machine;
mod needs;
mod netlink;
mod plan;
mod probe;
mod qdisc;
mod setting;
pub mod steer;
mod systemd;
#[cfg(test)]
mod test_folder;
pub mod verify;

pub use doctor::{Finding, Severity, examine};
pub use export::{Exported, ExportedFile, Format, Omission, export};
pub use facts::{
    Boot, Coalescing, Cores, CreditShaper, Device, EarliestTime, Facts, Feature, Firewall,
    FlowRule, FlowRules, GateSchedule, IdleState, Interface, Interrupt, Kernel, LaneGround, Loader,
    Memory, Network, Permission, QueueQdisc, Queues, ReceiveHash, Rights, RingSizes, RootQdisc,
    Scheduling, Timestamps, TrafficClasses,
};
pub use filters::{Direction, PacketFilters, Verdict, packet_filters};
pub use isolane_model::Tuning;
pub use machine::ThisMachine;
pub use needs::{DescribedFlow, DescribedPlace, NeededTopic, Needs, Way};
pub use plan::{
    APPLICATION_PRIORITY, BULK_QUEUE_PRIORITY, CRITICAL_QUEUE_PRIORITY, FormError, Identity, Place,
    PlacedFlow, Placement, Plan, PlanError, Refusal, Reliance, SCHEMA, Step,
    TRANSMIT_QUEUE_PRIORITY, When, of_vlan, plan, replan,
};
pub use probe::{here, interfaces, probe};
pub use setting::{CoreList, Document, Machine, Setting, SettingError, ThreadClass, Unit, Value};
