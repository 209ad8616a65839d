//! What disturbs a round trip from inside the participants: the work that paper 000 (III.A) says a
//! middleware must not let its critical samples wait for.
//!
//! | disturbance | what goes on | in which participants |
//! | --- | --- | --- |
//! | joining | 200 endpoints of a third participant appear and leave, again and again | both find out |
//! | bulk | reliable KEEP_ALL topics of level 1, as fast as acknowledgements allow | the ends' own |
//! | repair | the same, with losses on its samples only | the ends' own |
//! | large | the same topics with samples of a mebibyte, ten a second each way | the ends' own |
//!
//! These runs are about the executor, so nothing else shall be scarce. Beside large samples there is no
//! link: one veth pair joins the hosts ([`Place::Pair`](crate::report::Place)). Else the link is fast
//! ([`LINK_BITS_PER_S`]) and serves frames in the order they came in both orders of jobs (all levels of
//! a FIFO participant share one socket, hence one DSCP: an arbiter that knows classes would compare
//! links); each end has a core of its own, or one end's bulk would keep the other from running at all,
//! whatever its order. What the executor is answerable for is the hosts' part of the round trip, which
//! is reported apart from the cable's.
//!
//! All of it is bounded in rate: ends run under SCHED_FIFO, and one that never slept would starve
//! the machine. What was reached is part of the result ([`Disturbed`](crate::report::Disturbed)), and a
//! disturbance that did not disturb makes a run invalid.

pub mod bulk;
pub mod joining;

/// The link of runs that are disturbed from inside: a bulk sample takes 1 us of it, far less than it
/// takes either executor, and frames of a burst leave several at a time, which costs the relay, on
/// the pong end's core and above it, less of that core.
pub const LINK_BITS_PER_S: u64 = 10_000_000_000;

/// Frames that may wait for that link each way: the whole of a bulk topic's history, its
/// heartbeats and acknowledgements, and a wave of announcements, so that nothing is lost that was not
/// meant to be.
pub const LINK_QUEUE_FRAMES: u32 = 1_024;

/// The share of bulk samples that `repair` loses.
pub const REPAIR_LOSS: f64 = 0.1;

/// What `repair` loses are datagrams with at least so much payload: bulk samples, first and repeated,
/// and nothing else of either order. The topics' heartbeats and acknowledgements are spared.
pub const REPAIR_MIN_PAYLOAD_BYTES: u32 = bulk::PAYLOAD_BYTES;

/// The largest message that `repair` can be beside, so that it is not lost with the bulk samples: less
/// by more than the RTPS heads in front of it (60 bytes).
pub const MAX_MESSAGE_BESIDE_REPAIR_BYTES: u32 = REPAIR_MIN_PAYLOAD_BYTES - 64;
