//! Deterministic simulation of many local participants over unreliable links, in virtual time.
//!
//! # World
//!
//! A [`World`] consists of *nodes* and the *link* between them. A node is a host with one participant: a
//! [`LocalParticipant`](isolane_rtps::LocalParticipant), the receive queues of its lanes, and the users of its writers
//! and readers. The link carries datagrams to addresses that look like UDPv4, including multicast groups. The link
//! delays, loses, duplicates and reorders datagrams. A [`Partition`] cuts the link between groups of nodes, for a time,
//! in one or both directions.
//!
//! ```
//! use std::time::Duration;
//! use isolane_sim::{LinkConfig, NodeConfig, Sample, Topic, World};
//!
//! let mut world = World::new(1).link(LinkConfig::lossy(0.3));
//! let (a, b) = (world.node(NodeConfig::default()), world.node(NodeConfig::default()));
//! let topic = Topic::new("Chatter").reliable().keep_all(8);
//! let writer = world.create_writer(a, &topic);
//! let reader = world.create_reader(b, &topic);
//! world.until_matched(&[writer], &[reader]);
//! world.enqueue(writer, (0..100).map(Sample::value));
//! world.run_until("all came", Duration::from_secs(60), |world| world.received(reader).len() == 100);
//! ```
//!
//! # Virtual time
//!
//! Nothing waits. Events are in a queue ordered by time, and by creation at equal times. The world takes the first,
//! sets the clock to its time, and executes it. A node works like the executor: it processes the frame or protocol work
//! of the highest priority, one step at a time, and each step takes [`NodeConfig::step`]. So datagrams can arrive
//! between two steps, where protocol implementations go wrong. A simulated second of a small system takes well under a
//! millisecond of real time.
//!
//! # Reproducibility
//!
//! All randomness comes from one seed through [`Random`], and nothing is ordered by memory addresses or hash tables. A
//! world with the same seed therefore behaves identically on every machine. [`seeds::for_each`] runs a test over many
//! seeds and prints how to replay a failing one; `ISOLANE_TRACE=1` prints each datagram.
//!
//! # Restrictions
//!
//! A world opens no socket, reads no clock, starts no thread, and knows nothing of the protocol: it decodes datagrams
//! only to print them. No datagram is lost silently: when the world is dropped, it panics unless every ledger balances
//! ([`World::imbalance`]).

#![forbid(unsafe_code)]

mod described;
mod endpoints;
mod groups;
mod ledger;
pub mod limits;
mod link;
mod node;
mod partition;
mod queue;
mod random;
mod report;
mod sample;
pub mod seeds;
mod taking;
mod timed;
mod topic;
mod trace;
mod user;
mod world;
mod writing;

pub use described::Description;
pub use endpoints::{ReaderHandle, WriterHandle};
pub use groups::{PublisherHandle, SubscriberHandle};
pub use ledger::LinkLedger;
pub use link::LinkConfig;
pub use node::{Discovery, NodeConfig, NodeId};
pub use partition::Partition;
pub use random::Random;
pub use sample::{Sample, key_of};
pub use topic::Topic;
pub use user::{MatchChange, Received, Take, Then, Written};
pub use world::World;
