//! RTPS 2.5 protocol as a pure state machine.
//!
//! A [`LocalParticipant`] is one DDS participant: its discovery, its writers and readers, their caches and timers. It
//! has no socket, clock, thread or random source. The caller passes in received datagrams and the time, and sends the
//! datagrams that the participant returns:
//!
//! ```text
//!   datagram ──► receive ──► a view of a sample for the user, at once
//!                   │
//!                   └──────► filed work ──► poll_transmit(priority) ──► one datagram to send
//!   time ─────► advance ─────────▲
//!   sample ───► reserve, commit ─┘
//!          └──► write_best_effort ──► the datagram, in the frame the sample already lies in
//! ```
//!
//! **Receiving never sends.** Each answer that a message requires (an acknowledgement, a repair, the history for a late
//! joiner, a match) is filed by priority. [`LocalParticipant::poll_transmit`] executes one bounded step at a time, so
//! the executor decides the order; see [`Priority`].
//!
//! **Samples allocate nothing.** Their memory is allocated when an endpoint is created. Tables of peers grow in
//! discovery steps, or are allocated in [`LocalParticipant::new`] (`fixed_memory`). Every bound is in [`limits`],
//! [`Limits`] or the QoS of the endpoint, with a counter or an error for what exceeds it.
//!
//! **No input from a peer can panic**, allocate, or cost more than its length: see [`LocalParticipant::receive`]. One
//! exception: the content filter that a reader announces is stored as bounded text and compiled for the writer
//! ([`ContentFilter`]), in a discovery step.
//!
//! A participant has four parts, and each method is on the part whose state it changes: the writers with their proxies
//! of readers, the readers with their proxies of writers, discovery, and what all three share (configuration, counters,
//! timers, the work queue). A writer's protocol touches nothing of a reader or of discovery. Readers may look things up
//! elsewhere, but change nothing there. [`LocalParticipant`] has the public interface, and the methods that join the
//! parts: the receiver, matching, the end of a match.
//!
//! The files are named after the concepts of the standard: [`writer`](WriterLedger) and [`reader`](ReaderLedger) with
//! their proxies, `history` and `cache` for the HistoryCache of each, `discovery`, `matching`, `receiver` (the RTPS
//! Receiver), `timed_qos` for time-based policies, `coherent_access` for coherent and ordered access.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod coherent_access;
mod config;
mod content_filter;
mod counters;
mod discovery;
mod hash;
pub mod limits;
mod matching;
mod participant;
mod reader;
mod receiver;
mod sample_memory;
mod slab;
mod status;
mod timed_qos;
mod work;
mod work_queue;
mod writer;

pub use coherent_access::CoherentError;
pub use config::{Limits, Network, ParticipantConfig, Timing, Zeroed};
pub use content_filter::{CompileFilter, ContentFilter};
pub use counters::{Counters, ReaderLedger, WriterLedger};
pub use discovery::{
    Announces, DiscoveryChange, DiscoveryEvent, EndpointKind, IgnoreError, RemoteEndpoint,
    RemoteParticipant, StaticError, StaticParticipant, StaticPeerState,
};
pub use matching::{
    Incompatible, SetQosError, immutable_policy, incompatible_policies, incompatible_policy,
    inconsistent_policy, partitions_match,
};
pub use participant::{
    LocalParticipant,
    enable::EnableError,
    local_endpoints::{CreateError, EndpointConfig},
};
pub use reader::{
    DeliveryMode, KeyOf, ReaderStatus,
    cache::{InstanceSelector, Query, Selection},
    instance::InstanceState,
    read_take::{CachedSample, SampleInfo, SampleState, StateMask, ViewState},
};
pub use receiver::{Delivery, MessageReceiver};
pub use slab::{PublisherId, ReaderId, SubscriberId, WriterId};
pub use status::{
    LostReason, Matched, RejectReason, SampleLost, SampleRejected, StatusChange, TooLargeSample,
    UnreadableSamples,
};
pub use timed_qos::{DeadlineMissed, LivelinessChanged, LivelinessLost};
pub use work::{Destinations, Priority, Work, WorkKind};
pub use writer::{
    WriterStatus,
    history::ChangeKind,
    registered_instances::KeyPayload,
    write::{WriteError, WriteSample},
};
