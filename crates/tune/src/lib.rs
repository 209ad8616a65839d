//! Tuning of a Linux host for critical topics: reads the host, reports findings, plans settings, applies them
//! reversibly, and verifies them.
//!
//! [`probe`] reads the host into [`Facts`], plain values that can be recorded. [`examine`] compares facts with the
//! needs of a description (`isolane.toml`) and returns [`Finding`]s. [`plan()`] returns a [`Plan`]: each setting with
//! its old and new value, reason and cost. [`examine`] and [`plan()`] are pure functions, tested with recorded hosts.
//! `probe` changes nothing: it reads sysfs and procfs, queries netlink and ptp4l, reads clocks, and opens a socket that
//! it closes again.
//!
//! [`mod@apply`] carries out plans, writes the original values to a journal, and rolls plans back. [`verify`] measures
//! what settings only promise: receive and transmit queues of datagrams, and wake-up latency. [`steer`] predicts the
//! receive queue that a device's RSS hash selects. [`export()`] writes plans in the formats of other tools.
//!
//! [`packet_filters`] reports how packet filters treat a port; it runs the system's own tools to list their rules.

#![forbid(unsafe_code)]

pub mod apply;
mod doctor;
mod export;
mod facts;
mod kernel_lists;
pub mod limits;
mod machine;
mod needs;
mod packet_filters;
mod plan;
mod probe;
mod setting;
pub mod steer;
#[cfg(test)]
mod test_folder;
pub mod verify;

pub use doctor::{Finding, Severity, examine};
pub use export::{Exported, ExportedFile, Format, Omission, export};
pub use facts::{
    Boot, Coalescing, Cores, CreditShaper, Device, EarliestTime, Facts, Feature, Firewall,
    FlowRule, FlowRules, GateSchedule, IdleState, Interface, Interrupt, Kernel, LanePrerequisites,
    Loader, Memory, Network, Permission, QueueQdisc, Queues, ReceiveHash, Rights, RingSizes,
    RootQdisc, Scheduling, Timestamps, TrafficClasses,
};
pub use isolane_hostnet::kernel::hostname;
pub use isolane_model::Tuning;
pub use machine::ThisMachine;
pub use needs::{DescribedFlow, DescribedPlace, Direction, NeededTopic, Needs};
pub use packet_filters::{PacketFilters, Verdict, packet_filters};
pub use plan::{
    APPLICATION_PRIORITY, BULK_QUEUE_PRIORITY, CRITICAL_QUEUE_PRIORITY, FlowQueue, FlowQueues,
    Identity, KnownQueue, NotPlanned, Plan, PlanError, Precondition, SCHEMA, SchemaError, Step,
    TRANSMIT_QUEUE_PRIORITY, When, plan, replan, vlan_parent, wrap_lines,
};
pub use probe::{here, interfaces, probe};
pub use setting::{CoreList, Document, Machine, Setting, SettingError, ThreadClass, Unit, Value};
