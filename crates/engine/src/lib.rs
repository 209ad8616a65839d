//! RTPS 2.5 protocol engine as a pure state machine.
//!
//! An [`Engine`] is one DDS participant: its discovery, its writers and readers, their caches and timers. It has no
//! socket, clock, thread or random source. The caller passes in received datagrams and the time, and sends the
//! datagrams that the engine returns:
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
//! **Receiving never sends.** Each answer that a message requires (an acknowledgement, a repair, the history for a late
//! joiner, a match) is filed by priority. [`Engine::next_work`] executes one bounded step at a time, so the executor
//! decides the order; see [`Priority`].
//!
//! **Samples allocate nothing.** Their memory is allocated when an endpoint is created. Tables of peers grow in
//! discovery steps, or are allocated in [`Engine::new`] (`fixed_memory`). Every bound is in [`limits`], [`Limits`] or
//! the QoS of the endpoint, with a counter or an error for what exceeds it.
//!
//! **No input from a peer can panic**, allocate, or cost more than its length: see [`Engine::receive`]. One exception:
//! the content filter that a reader announces is stored as bounded text and compiled for the writer
//! ([`ContentFilter`]), in a discovery step.
//!
//! The files are named after the concepts of the standard: [`writer`](WriterLedger) and [`reader`](ReaderLedger) with
//! their proxies, `history` and `cache` for the HistoryCache of each, `discovery`, `matching`, `receive` (the RTPS
//! Receiver), `transmit`, `clock` for time-based policies, `presentation` for coherent and ordered access.

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
