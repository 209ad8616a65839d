//! Verification of a machine's settings by measurement.
//!
//! A value that reads back as written need not be in effect: a driver may ignore it, or a hash may select an unintended
//! queue. So two hosts measure together. One answers ([`ProbeServer`]) at the ports of critical topics. The other sends
//! probes ([`measure_receive_queues`]) from each of its ports, one datagram at a time, marked like the topics'
//! datagrams. Each side records the receive queue, and the answer contains the queue at the server. The result maps
//! port pairs to queues, in both directions ([`ReceiveQueueReport`]).
//!
//! The measurement needs neither driver counters nor the hash key. A device may get a new key at a reset, which makes
//! the result invalid. So the measurement is repeated after each boot of either host, and the result has both boot ids.
//!
//! The ports must be free, so the measurement runs before the participants start. Traffic is bounded: one datagram of
//! [`MESSAGE_BYTES`] is in flight, an answer is as long as its question, and answers are never answered.

mod flows;
mod learn;
mod probe_server;
mod receive_queues;
mod transmit;
mod wake_up;

pub use isolane_hostnet::rx_queue_probe::ReceiveQueues;

pub use self::probe_server::{BootMark, MESSAGE_BYTES, ProbeServer, ServerCounters};
pub use self::receive_queues::{
    Pair, ProbeError, ProbeParameters, QueueCounts, ReceiveQueueReport, all_port_pairs,
    measure_receive_queues,
};
pub use self::wake_up::{
    CoreActivity, CoreSample, LatencyReport, LatencyTest, ThreadActivity, measure_wake_up,
};
pub use flows::{FlowReport, flow_reports, may_go_by_priority, pairs_with};
pub use learn::{LearnError, LearnParameters, learn};
pub use transmit::{TransmitReport, transmit_reports};
