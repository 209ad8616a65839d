//! One world in virtual time, in which many engines talk over bad links.
//!
//! # What a world is
//!
//! A [`World`] holds *nodes* and the *link* between them. A node is a host with one participant:
//! an [`Engine`](isolane_engine::Engine), the receive queues of its lanes, and the users of its
//! writers and readers. The link carries datagrams, as bytes, to addresses that look like those
//! of UDP and IPv4, multicast groups included. On the way it delays, loses, doubles and overtakes
//! them, and a [`Partition`] cuts it, between groups of nodes, for a while, in both directions or
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
//! # How time goes
//!
//! Nothing waits. The world keeps what is going to happen in a queue ordered by time, and by the
//! order of its making where times are equal; it takes the first, sets the clock to its time, and
//! lets it happen. A node works as the executor would: of the frames in its lanes and of the work
//! its engine has ready it takes what has the highest priority, one step at a time, and each step
//! takes [`NodeConfig::step`]. So a datagram can arrive between two steps, which is where protocols
//! go wrong. Timers are advanced when they are due. A second of a small system costs well under a
//! millisecond.
//!
//! # What follows from the seed
//!
//! Everything. All chance comes from one seed through [`Random`], nothing is ordered by an address
//! in memory or by a hash table, so a world with the same seed does the same on every machine.
//! [`seeds::for_each`] runs a test over many seeds and says how to run the one that failed again;
//! with `ISOLANE_TRACE=1` each datagram is told.
//!
//! # What a world never does
//!
//! It opens no socket, reads no clock, starts no thread, and knows nothing of the protocol: it
//! looks into datagrams only to tell of them. It loses nothing silently: when it is dropped, every
//! ledger in it must balance, or it panics ([`World::imbalance`]).

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
