//! Verification of a machine's settings by measurement.
//!
//! A value that reads back as written need not be in effect: a driver may ignore it, or a hash may select an unintended
//! queue. So two hosts measure together. One answers ([`Answerer`]) at the ports of critical topics. The other asks
//! ([`place`]) from each of its ports, one datagram at a time, marked like the topics' datagrams. Each side records the
//! receive queue, and the answer contains the answerer's. The result maps port pairs to queues, in both directions
//! ([`Landings`]).
//!
//! This needs neither driver counters nor the hash key. It stays valid while neither changes; a device may get a new
//! key at a reset, so the measurement is repeated after each boot of either host, and results carry both boot ids.
//!
//! The ports must be free, so it runs before the participants start. Traffic is bounded: one datagram of
//! [`MESSAGE_BYTES`] is in flight, an answer is as long as its question, and answers are never answered.

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
