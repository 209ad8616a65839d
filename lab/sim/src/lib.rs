//! Simulation of many engines in virtual time, over unreliable links.
//!
//! # Contents of a world
//!
//! A [`World`] holds *nodes* and the *link* between them. A node is a host with one participant: an
//! [`Engine`](isolane_engine::Engine), the receive queues of its lanes, and the users of its writers and readers. The
//! link carries datagrams as bytes between addresses of UDP and IPv4, including multicast groups. It delays, loses,
//! duplicates and reorders them. A [`Partition`] cuts it between groups of nodes, for a while, in both directions or
//! in one.
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
//! # Time
//!
//! Nothing sleeps. The world has a queue of events, ordered by time and then by creation. It takes the first, sets the
//! clock to its time, and executes it. A node works like the executor: it takes the frame or work of the highest
//! priority, one step at a time, and each step takes [`NodeConfig::step`]. A datagram can therefore arrive between any
//! two steps. Timers are advanced when they are due. A second of a small system costs well under a millisecond.
//!
//! # Determinism
//!
//! All randomness comes from one seed through [`Random`], and nothing depends on addresses in memory or on hash
//! tables. A world with the same seed does the same on every machine. [`seeds::for_each`] runs a test with many seeds
//! and prints the command that repeats a failed one. With `ISOLANE_TRACE=1` each datagram is printed.
//!
//! # Isolation and accounting
//!
//! A world opens no socket, reads no clock and starts no thread. It parses datagrams only to print them. Every loss is
//! counted: a world that is dropped with an unbalanced ledger panics ([`World::imbalance`]).

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
