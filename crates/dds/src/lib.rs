//! DDS for Linux that keeps the latency of critical topics short.
//!
//! A [`Participant`] belongs to one thread: it owns its sockets, its RTPS state machine and its executor, and runs them
//! without a lock. Writers, readers and timers are handles to it.
//!
//! ```
//! use isolane::{Network, Participant, Qos, TopicType, types::BoundedString};
//! use std::time::Duration;
//!
//! #[derive(TopicType, Debug, Clone, PartialEq)]
//! struct Greeting {
//!     number: u32,
//!     text: BoundedString<32>,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Two participants on a network in memory; `Participant::builder(0).build()` takes the host's
//! // interfaces.
//! let network = Network::new(1);
//! let alice = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
//! let bob = Participant::builder(0).memory(&network, [10, 0, 0, 2]).build()?;
//!
//! let writer = alice.create_writer::<Greeting>("Greetings", &Qos::reliable())?;
//! let reader = bob.create_reader::<Greeting>("Greetings", &Qos::reliable())?;
//!
//! // Drive both until they have found each other: on one thread here, each on its own core
//! // in a real system.
//! let both = |done: &dyn Fn() -> bool| {
//!     while !done() {
//!         alice.run_for(Duration::from_millis(1));
//!         bob.run_for(Duration::from_millis(1));
//!     }
//! };
//! both(&|| writer.matched_readers() == 1 && reader.matched_writers() == 1);
//!
//! writer.write(&Greeting { number: 1, text: "hello".try_into()? })?;
//! both(&|| reader.available() > 0);
//! let sample = reader.take()?.expect("one is available");
//! assert_eq!(sample.value.unwrap().text, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! # Scheduling
//!
//! All work of the middleware, and every callback, is a *job* with a priority: see [`isolane_executor`]. A topic's
//! level ([`Qos::level`]) determines the priority of its jobs. The event loop polls its sources in order of priority,
//! runs one activation of the most urgent ready job to completion, and polls again. [`Participant::run_for`] and its
//! siblings run the loop; [`Participant::poll`] runs it inside a loop of the application.
//!
//! # Listeners and WaitSets
//!
//! Jobs of the loop call the listeners ([`DataReader::on_sample`], [`DataReader::on_subscription_matched`] and
//! others). The alternative is a [`WaitSet`], which runs the loop until one of its conditions is true.
//!
//! # System description
//!
//! With the feature `config`, on by default, a program reads its settings from an `isolane.toml`
//! ([`load_description`]): [`Builder::from_description`] returns the builder of a participant, and
//! [`Qos::from_description`] the QoS of a topic. The module [`description`] has the types of its parts.
//!
//! # Copies and memory
//!
//! A best-effort sample is serialised directly into the frame that is sent, and [`DataReader::on_view`] reads it in
//! the frame that was received. A reliable sample is serialised into its history slot and copied once into a frame for
//! each transmission. A cached sample is copied once into its slot. All slots and frames are allocated when endpoints
//! are created; after that, these paths allocate nothing.
//!
//! # Lanes and budgets
//!
//! [`Builder::datapath`] selects how packets are sent and received. With [`XdpOptions`] each level has an AF_XDP lane:
//! rings and frames of a device that bypass the kernel's network stack. [`Builder::datapaths`] lists several in order
//! of preference; the first whose requirements the machine meets is used. The rest of the program stays the same.
//! `isolane doctor` lists what a lane requires on this machine.
//!
//! Lanes enforce budgets: a datagram beyond its budget is dropped or demoted ([`OverBudget`]) before it costs a buffer
//! or a wake-up. [`Qos::budget`] limits one reader, and [`DataReader::set_budget`] changes it.
//! [`Participant::set_level_limit`] limits a level. [`Participant::set_interface_limit`] sets one limit for all topics
//! together, and another for all other traffic of the interface. Budgets of levels and interfaces can be set before the
//! first endpoint exists; they then apply from the first datagram on.
//!
//! [`Participant::warnings`] lists every feature that this machine refused, with the reason. [`Participant::datapath`]
//! names the datapath in use. [`Builder::observable`] makes the participant visible to `isolane top`;
//! [`Participant::observe`] returns the same data inside the process.
//!
//! ```no_run
//! use isolane::{
//!     Budget, InterfaceRateLimit, Interfaces, Level, OverBudget, Participant, RateLimit,
//!     Qos, TopicType, UdpOptions, XdpOptions,
//! };
//! use std::{num::NonZeroU32, time::Duration};
//!
//! #[derive(TopicType)]
//! struct Report {
//!     number: u32,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let participant = Participant::builder(0)
//!     .interfaces(Interfaces::Named(vec!["eth0".into()]))
//!     .datapaths(vec![Box::new(XdpOptions::default()), Box::new(UdpOptions::default())])
//!     .observable(true)
//!     .build()?;
//!
//! let budget = |capacity| Budget {
//!     capacity: NonZeroU32::new(capacity).expect("more than none"),
//!     period: Duration::from_millis(10),
//! };
//! // Kernel sockets enforce no limits: there both calls return an error.
//! if participant.datapath() == "xdp" {
//!     let bulk = RateLimit { budget: budget(100), over: OverBudget::Drop };
//!     participant.set_level_limit(Level::MIN, Some(bulk))?;
//!     // 200 of the 2,000 datagrams in 10 ms are reserved for the highest level.
//!     let topics = Some((budget(2_000), 200));
//!     participant.set_interface_limit(InterfaceRateLimit { topics, foreign: None })?;
//! }
//! // With sockets the reader is created too, but its budget is not enforced.
//! let level = Level::new(5).expect("levels are 0 to 7");
//! let qos = Qos::best_effort().level(level).budget(budget(20), OverBudget::Demote);
//! let reader = participant.create_reader::<Report>("Reports", &qos)?;
//!
//! // The reader's lane is open now, so all warnings are known.
//! for warning in participant.warnings() {
//!     eprintln!("{warning}");
//! }
//! participant.run_for(Duration::from_secs(1));
//! if let Some(flow) = reader.flow() {
//!     println!("{flow:?}"); // the rest of the budget, and counts of the decisions
//! }
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

/// Generates the setters of a builder type. Each assigns new values to fields.
macro_rules! setters {
    ($Builder:ident: $(
        $(#[$doc:meta])*
        $setter:ident($($value:ident: $Value:ty),*) => $($($field:ident).+ = $new:expr),+;
    )*) => {
        impl $Builder {$(
            $(#[$doc])*
            #[must_use]
            pub fn $setter(mut self, $($value: $Value),*) -> Self {
                $(self.$($field).+ = $new;)+
                self
            }
        )*}
    };
}

/// Warns the application: see [`warning_log::warn`].
macro_rules! warn {
    ($($text:tt)*) => {
        $crate::warning_log::warn($crate::warning_log::PROBLEM, format_args!($($text)*))
    };
}

mod condition;
mod datapaths;
#[cfg(feature = "config")]
pub mod description;
mod error;
mod filter;
mod instance;
pub mod limits;
mod listener;
mod monitoring;
pub mod observe;
mod participant;
mod publisher_subscriber;
mod qos;
mod rate_limit;
mod reader;
mod report;
mod ring_waker;
mod warning_log;
mod writer;

pub use condition::wait_set::{AttachError, WaitError, WaitSet};
pub use condition::{Condition, GuardCondition, QueryCondition, ReadCondition, StatusCondition};
pub use datapaths::DATAPATHS;
#[cfg(feature = "config")]
pub use description::{DescriptionError, System, load_description};
pub use error::{BuildError, QosError, WriteError};
pub use filter::{Filter, FilterError};
pub use instance::KeyError;
pub use isolane_datapath::{
    Budget, Datapath, DatapathFactory, DatapathKind, ErrorClass, ExitWithoutMemory, FlowId,
    FlowObservation, InterfaceObservation, InterfaceRateLimit, Interfaces, Kinds, Lane,
    NetworkConfig, Observation, OpenError, OverBudget, RateLimit, RateLimitError, RingObservation,
    memory::Network, udp::UdpOptions,
};
/// Options of AF_XDP lanes, for [`Builder::datapath`].
#[cfg(feature = "xdp")]
pub use isolane_datapath_xdp::{
    classifier::{AttachMode, Enforcement},
    socket::{BindMode, BusyPoll},
    xdp::{OnFailure, XdpOptions},
};
pub use isolane_derive::TopicType;
pub use isolane_executor::JobStatistics;
pub use isolane_rtps::{
    Announces, ChangeKind, CoherentError, Counters, CreateError, DiscoveryChange, DiscoveryEvent,
    EnableError, EndpointKind, IgnoreError, Incompatible, InstanceState, Limits, LostReason,
    ReaderLedger, RejectReason, RemoteEndpoint, RemoteParticipant, SampleInfo, SampleState,
    SetQosError, StateMask, StaticError, Timing, UnreadableSamples, ViewState,
    WriteError as ProtocolWriteError, WriterLedger,
};
/// Serialisation of topic types: the code behind `#[derive(TopicType)]`, and bounded strings and sequences.
pub use isolane_wire::cdr as types;
pub use isolane_wire::{
    cdr::{CdrError, Representation, TopicType},
    guid::{Guid, GuidPrefix},
    level::Level,
    locator::Locator,
    qos::{
        DestinationOrderKind, DurabilityKind, LivelinessKind, Octets, OwnershipKind, PolicyId,
        PresentationAccessScope, QosPolicies, ReliabilityKind,
    },
    time::{Instant, Timestamp},
};
pub use listener::status::{
    LivelinessChangedStatus, LivelinessLostStatus, OfferedDeadlineMissedStatus,
    OfferedIncompatibleQosStatus, PublicationMatchedStatus, RequestedDeadlineMissedStatus,
    RequestedIncompatibleQosStatus, SampleLostStatus, SampleRejectedStatus, StatusMask,
    SubscriptionMatchedStatus,
};
pub use monitoring::LevelReport;
pub use participant::builder::{Builder, Waiting};
pub use participant::discovery_events::DiscoveredTopic;
pub use participant::placement::PlacementError;
pub use participant::static_discovery::{DescribedPeer, StaticDescription};
pub use participant::thread::{ParticipantHandle, ThreadEnded};
pub use participant::{Participant, Timer};
pub use publisher_subscriber::{Access, Publisher, Subscriber};
pub use qos::Qos;
pub use qos::mismatch::{Difference, differences};
pub use reader::ResponseDeadline;
pub use reader::handle::ReaderHandle;
pub use reader::selection::{InstanceHandle, ReadError};
pub use reader::{DataReader, Sample};
pub use report::{EndpointReport, JobReport, Report, SocketReport, WorkReport};
pub use writer::DataWriter;
pub use writer::handle::WriterHandle;

/// Programs of README and documents, compiled and run with the tests. `crates/cli/tests/console_blocks.rs` checks that no
/// page with a program is missing.
#[cfg(doctest)]
mod documents {
    macro_rules! pages {
        ($($Page:ident: $path:literal),*) => {$(
            #[doc = include_str!(concat!("../../../", $path))]
            struct $Page;
        )*};
    }

    pages! {
        Readme: "README.md",
        CriticalTopic: "docs/tutorial/critical-topic.md",
        DescribeASystem: "docs/how-to/describe-a-system.md",
        LargeSamples: "docs/how-to/large-samples.md",
        OtherDds: "docs/how-to/other-dds.md",
        Ports: "docs/how-to/ports.md",
        Ros2: "docs/how-to/ros2.md",
        StaticDiscovery: "docs/how-to/static-discovery.md",
        Threads: "docs/how-to/threads.md",
        Qos: "docs/reference/qos.md"
    }
}
