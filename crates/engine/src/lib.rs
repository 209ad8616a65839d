//! RTPS 2.5 as a pure state machine.
//!
//! An [`Engine`] is one DDS participant: its discovery, its writers and readers, their caches and
//! timers. It has no socket, clock, thread or random source. Its user brings it received
//! datagrams and the time, and carries away what it wants sent:
//!
//! ```text
//!   datagram ──► receive ──► a view of a sample for the user, at once
//!                   │
//!                   └──────► filed work ──► next_work(priority) ──► one datagram to send
//!   time ─────► advance ─────────▲
//!   sample ───► reserve, commit ─┘
//!          └──► write_best_effort ──► the datagram, in the frame the sample already lies in
//! ```
//!
//! **Nothing is answered while receiving.** What a message calls for (an acknowledgement, a
//! repair, the history for a late joiner, a match) is filed by priority and taken with
//! [`Engine::next_work`] one bounded step at a time, so that the executor decides what comes
//! first; see [`Priority`].
//!
//! **All memory is taken before the start**: in [`Engine::new`] and when an endpoint is created.
//! Every bound is in [`limits`], [`Limits`] or the QoS of the endpoint, and has a counter or an
//! error for what exceeds it.
//!
//! **Nothing a peer sends can panic**, allocate, or cost more than its length: see
//! [`Engine::receive`]. One thing is kept of a peer in memory taken then, in a step of discovery: the content filter
//! that a reader announces, as a bounded text and what a writer makes of it ([`ContentFilter`]).
//!
//! The files are named for the concepts of the standard: [`writer`](WriterLedger) and
//! [`reader`](ReaderLedger) with their proxies, `history` and `cache` for the two kinds of
//! HistoryCache, `discovery`, `matching`, `receive` (the RTPS Receiver), `transmit`, `clock` for the policies of time,
//! `presentation` for what is seen together.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod assembly;
mod batch;
mod builtin;
mod cache;
mod chain;
mod clock;
mod config;
mod content_filter;
mod discovery;
mod durability;
mod enable;
mod endpoints;
mod engine;
mod filters;
mod fingerprint;
mod fragmenter;
mod historical;
mod history;
mod ids;
mod index;
mod instance;
pub mod limits;
mod matching;
mod prefault;
mod presentation;
mod priority;
mod proxy_chains;
mod reader;
mod receive;
mod registered;
mod sample_memory;
mod select;
mod states;
mod status;
mod table;
mod timers;
mod token_bucket;
mod transmit;
mod unwanted;
mod window;
mod withheld;
mod work;
mod write;
mod writer;

pub use access::CachedSample;
pub use cache::{Query, SampleInfo, Selection, Which};
pub use clock::{DeadlineMissed, LivelinessChanged, LivelinessLost};
pub use config::{EngineConfig, Limits, Network, Timing, Zeroed};
pub use content_filter::{CompileFilter, ContentFilter};
pub use discovery::{
    Announces, DiscoveryChange, DiscoveryEvent, EndpointKind, IgnoreError, RemoteEndpoint,
    RemoteParticipant, StaticError, StaticParticipant, StaticPeerState,
};
pub use enable::EnableError;
pub use endpoints::{CreateError, EndpointConfig};
pub use engine::{Counters, Engine};
pub use history::ChangeKind;
pub use ids::{PublisherId, ReaderId, SubscriberId, WriterId};
pub use instance::InstanceState;
pub use matching::{
    Incompatible, SetQosError, immutable_policy, incompatible_policies, incompatible_policy,
    inconsistent_policy, partitions_meet,
};
pub use presentation::CoherentError;
pub use priority::Priority;
pub use reader::{DeliveryMode, KeyOf, ReaderLedger, ReaderStatus};
pub use receive::{Delivery, MessageReceiver};
pub use registered::KeyPayload;
pub use states::{SampleState, StateMask, ViewState};
pub use status::{
    EncapsulationsRefused, LostReason, Matched, RejectReason, SampleLost, SampleRejected,
    StatusChange, TooLargeSample,
};
pub use work::{Destinations, Work, WorkKind};
pub use write::{WriteError, WriteSample};
pub use writer::{WriterLedger, WriterStatus};
