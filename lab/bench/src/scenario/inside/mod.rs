//! Disturbances inside the participants: work that paper 000 (III.A) requires a middleware to keep from delaying
//! critical samples.
//!
//! | disturbance | activity | participants |
//! | --- | --- | --- |
//! | joining | a third participant repeatedly creates and deletes 200 endpoints | both discover them |
//! | bulk | reliable KEEP_ALL topics of level 1, as fast as acknowledgements allow | the ends themselves |
//! | repair | as bulk, with losses of its samples only | the ends themselves |
//! | large | as bulk, with samples of 1 MiB, ten per second each way | the ends themselves |
//!
//! These runs test the executor, so nothing else may be scarce. With large samples one veth pair joins the hosts
//! ([`Place::Pair`](crate::report::Place)). Otherwise the link is fast ([`LINK_BITS_PER_S`]) and FIFO in both job
//! orders: all levels of a FIFO participant share one socket and one DSCP, so a strict arbiter would compare links.
//! Each end has its own core, or one end's bulk would starve the other in any order. The executor accounts for the
//! hosts' share of the round trip, which is reported separately.
//!
//! All rates are bounded: ends run under SCHED_FIFO, and one that never slept would starve the machine. The result
//! states the achieved rate ([`Disturbed`](crate::report::Disturbed)); a disturbance below its minimum invalidates the
//! run.

pub mod bulk;
pub mod joining;

/// Link rate of runs with an inside disturbance. A bulk sample takes 1 us on it, far less than in an executor. Frames
/// of a burst leave several at a time, which costs the relay, on the pong end's core and above it, less CPU time.
pub const LINK_BITS_PER_S: u64 = 10_000_000_000;

/// Queue length of that link in each direction, in frames. It holds a bulk topic's whole history, its HEARTBEAT and
/// ACKNACK messages and a burst of announcements, so that only seeded losses occur.
pub const LINK_QUEUE_FRAMES: u32 = 1_024;

/// Share of bulk samples that `repair` loses.
pub const REPAIR_LOSS: f64 = 0.1;

/// Minimum payload in bytes of the datagrams that `repair` loses: bulk samples and their retransmissions. HEARTBEAT and
/// ACKNACK messages are smaller and spared.
pub const REPAIR_MIN_PAYLOAD_BYTES: u32 = bulk::PAYLOAD_BYTES;

/// Maximum message size in bytes with `repair`, so that messages are not lost like bulk samples. The difference exceeds
/// the RTPS headers (60 bytes).
pub const MAX_MESSAGE_BESIDE_REPAIR_BYTES: u32 = REPAIR_MIN_PAYLOAD_BYTES - 64;
