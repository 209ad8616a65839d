//! Whether a machine does what it was set to: by sending frames and looking where they land.
//!
//! A setting that reads back as it was written is not yet one that works: a driver may accept and
//! ignore it, a hash may put a flow on a queue that nobody meant. So two hosts ask each other. One
//! answers ([`Answerer`]): it waits on the ports that critical topics will have. The other asks
//! ([`place`]): from each of its ports to each of those, a datagram at a time, marked as the topics'
//! are. Each side notes the queue that the datagram came by, the answer carries the answerer's word,
//! and the whole is a table: which pair of ports lands where, in both directions ([`Landings`]).
//!
//! That needs no driver's counters and no key of its hash. It holds as long as neither changes: a
//! device may take a new key when it is reset, so it is looked at again after each boot of either. Which
//! run of both machines it was stands with what was found.
//!
//! The ports must be free: it is done before the participants start. What is sent is bounded: one
//! datagram of [`MESSAGE_BYTES`] is on the way at a time, an answer is as
//! long as its question, and nobody answers an answer.

mod answer;
mod boot_mark;
mod core_use;
mod flows;
mod landings;
mod learn;
mod message;
mod room;
mod transmit;
mod wakeup;

pub use isolane_hostnet::rx_queue_probe::ReceiveQueues;

pub use answer::{Answered, Answerer};
pub use boot_mark::BootMark;
pub use core_use::{CoreLook, CoreUse, ThreadUse};
pub use flows::{FlowLanding, flow_landings, may_go_by_priority, pairs_with};
pub use landings::{Landing, Landings, Pair, PlaceError, Question, each_with_each, place};
pub use learn::{LearnError, Lesson, learn};
pub use message::MESSAGE_BYTES;
pub use transmit::{Departure, departures};
pub use wakeup::{WakeUp, WokenUp, wake_up};
