//! The flood: bulk traffic through the cable, both ways, that a critical topic has to live with.
//!
//! 25 UDP streams each way, with the DDS payload as their payload, at a stated multiple of the
//! cable's rate on the wire. Each host has a sender process (pinned beside the cable, at ordinary
//! priority) and a sink process (pinned beside the hosts) that counts. Whether the rate was reached
//! is part of the result: a machine may be too slow for its own flood.

mod sender;
mod sink;

use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bulk::{BulkError, Source, SourceReport};
use crate::cable::{Ledger, MIN_FRAME_BYTES, wire_bytes};
use crate::child::{ChildError, Program, Role, Running};
use crate::limits::{MAX_FLOOD_DATAGRAMS, MAX_STREAMS};
use crate::namespace::{Host, Testbed};
use crate::process::{Cores, Note};
use crate::target::Target;

pub use sender::run_sender;
pub use sink::run_sink;

/// Headers of a UDP datagram's frame: Ethernet, IPv4, UDP.
const HEADERS_BYTES: u64 = 14 + 20 + 8;
/// The first of a sink's ports; a stream each. Below the range from which Linux gives ports away,
/// above those RTPS computes for the first domains (RTPS 2.5 §9.6.2).
pub const FIRST_PORT: u16 = 28_000;

/// A flood, both ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The cable's rate.
    pub cable_bits_per_s: u64,
    /// The flood's wire rate in multiples of it: 0.9 fills the cable, 3 overruns it.
    pub factor: f64,
    /// UDP payload of each datagram.
    pub payload_bytes: u32,
    /// UDP streams each way, each with ports of its own.
    pub streams: u16,
    /// Whose bulk it is.
    pub target: Target,
    /// The flood ends by itself after this time.
    pub seconds: u32,
    /// How long the sinks go on counting after the senders have stopped, in milliseconds: what the
    /// cable still holds is to arrive.
    pub drain_ms: u32,
    /// Where senders (`cable`) and sinks (`hosts`) run.
    pub cores: Cores,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            cable_bits_per_s: crate::cable::Config::default().bits_per_s,
            factor: 0.9,
            payload_bytes: 1024,
            streams: 25,
            target: Target::Strangers,
            seconds: 60,
            drain_ms: 200,
            cores: Cores::of_machine(),
        }
    }
}

impl Config {
    /// Bytes of wire time each datagram takes.
    pub fn datagram_wire_bytes(&self) -> u64 {
        datagram_wire_bytes(self.payload_bytes)
    }

    /// Datagrams a second, each way.
    pub fn datagrams_per_s(&self) -> f64 {
        self.cable_bits_per_s as f64 * self.factor / (self.datagram_wire_bytes() * 8) as f64
    }

    fn sender(&self, from: Host) -> SenderConfig {
        SenderConfig {
            to: from.other().address(),
            streams: self.streams,
            source: Source {
                target: self.target,
                payload_bytes: self.payload_bytes,
                datagrams_per_s: self.datagrams_per_s(),
                seconds: self.seconds,
                core: Some(self.cores.cable),
            },
        }
    }

    fn sink(&self, at: Host) -> SinkConfig {
        SinkConfig {
            address: at.address(),
            streams: self.streams,
            core: Some(self.cores.hosts),
        }
    }
}

fn datagram_wire_bytes(payload_bytes: u32) -> u64 {
    wire_bytes((HEADERS_BYTES + u64::from(payload_bytes)).max(MIN_FRAME_BYTES))
}

/// One direction's sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderConfig {
    /// The sink's host.
    pub to: Ipv4Addr,
    /// Streams, to ports [`FIRST_PORT`] and up where they have a sink.
    pub streams: u16,
    /// What is sent.
    pub source: Source,
}

/// One direction's sink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkConfig {
    /// Its own address.
    pub address: Ipv4Addr,
    /// Streams, on ports [`FIRST_PORT`] and up.
    pub streams: u16,
    /// The core it runs on.
    pub core: Option<usize>,
}

/// What a sink counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkReport {
    /// Datagrams read.
    pub received: u64,
    /// Their payload.
    pub bytes: u64,
    /// Datagrams the kernel dropped because the sink was too slow.
    pub overflowed: u64,
    /// What the machine did not allow.
    pub notes: Vec<Note>,
}

/// Why there is no flood.
#[derive(Debug, thiserror::Error)]
pub enum FloodError {
    /// As any bulk.
    #[error("no flood: {0}")]
    Bulk(#[from] BulkError),
    /// Too many, or no number.
    #[error("a flood has at most {MAX_FLOOD_DATAGRAMS} datagrams each way")]
    Datagrams,
    /// None, or too many.
    #[error("a flood has 1 to {MAX_STREAMS} streams each way")]
    Streams,
}

impl SenderConfig {
    /// Whether this flood is within its bounds.
    pub fn check(&self) -> Result<(), FloodError> {
        check_streams(self.streams)?;
        self.source.check()?;
        // Written so that a rate that is not a number is refused, too.
        let datagrams = self.source.datagrams_per_s * f64::from(self.source.seconds);
        if !(0.0..=MAX_FLOOD_DATAGRAMS as f64).contains(&datagrams) {
            return Err(FloodError::Datagrams);
        }
        Ok(())
    }
}

fn check_streams(streams: u16) -> Result<(), FloodError> {
    if (1..=MAX_STREAMS).contains(&streams) {
        Ok(())
    } else {
        Err(FloodError::Streams)
    }
}

/// What became of one direction of a flood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams the sending kernel refused.
    pub refused: u64,
    /// Datagrams given up.
    pub missed: u64,
    /// Datagrams counted by the sink; 0 where the flood is for a level of the participants, who count
    /// it themselves.
    pub received: u64,
    /// Datagrams lost in the sink's sockets.
    pub overflowed: u64,
    /// What was sent, on the wire, in bits per second.
    pub bits_per_s: f64,
    /// The same in multiples of the cable's rate, to be compared with the factor asked for.
    pub factor: f64,
}

/// What became of a flood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// From host A to host B.
    pub a_to_b: DirectionReport,
    /// From host B to host A.
    pub b_to_a: DirectionReport,
    /// What the machine did not allow.
    pub notes: Vec<Note>,
}

impl Report {
    /// Whether the sinks' counts contradict what was sent, and what the cable (from A to B, from B to A)
    /// handed over. What is missing there is no contradiction: a classifier may drop it before it is
    /// receive work, and a sink knows nothing of that.
    ///
    /// # Errors
    /// Which do, in words.
    pub fn check(&self, cable: [&Ledger; 2]) -> Result<(), String> {
        let ways = [("A to B", &self.a_to_b), ("B to A", &self.b_to_a)];
        for ((way, flooded), relayed) in ways.into_iter().zip(cable) {
            let arrived = flooded.received + flooded.overflowed;
            if arrived > flooded.sent.min(relayed.sent) {
                return Err(format!(
                    "{arrived} datagrams of the flood from {way} arrived ({} of them overflowed); {} were \
                     sent, and the cable handed {} frames over",
                    flooded.overflowed, flooded.sent, relayed.sent
                ));
            }
        }
        Ok(())
    }
}

/// A running flood. Dropped, it is killed and leaves no report.
#[derive(Debug)]
pub struct Flood {
    config: Config,
    // Senders before sinks: fields are dropped in order, and nobody shall send to closed ports.
    senders: [Running; 2],
    sinks: Option<[Running; 2]>,
}

impl Flood {
    /// Starts both sinks, if it has any, then both senders, and returns when all are ready.
    pub fn start(
        testbed: &Testbed,
        program: &Program,
        config: &Config,
    ) -> Result<Flood, ChildError> {
        let start = |host: Host, role: Role| Running::start(testbed, host, program, &role);
        let sinks = match config.target {
            Target::Strangers => Some([
                start(Host::A, Role::FloodSink(config.sink(Host::A)))?,
                start(Host::B, Role::FloodSink(config.sink(Host::B)))?,
            ]),
            Target::Level(_) => None,
        };
        let senders = [
            start(Host::A, Role::FloodSender(config.sender(Host::A)))?,
            start(Host::B, Role::FloodSender(config.sender(Host::B)))?,
        ];
        Ok(Flood {
            config: config.clone(),
            senders,
            sinks,
        })
    }

    /// Stops the senders, lets what is on the way arrive, stops the sinks and reports.
    pub fn finish(self) -> Result<Report, ChildError> {
        let [sender_a, sender_b]: [SourceReport; 2] = Running::finish_both(self.senders)?;
        thread::sleep(Duration::from_millis(self.config.drain_ms.into()));
        let sinks = self
            .sinks
            .map(Running::finish_both::<SinkReport>)
            .transpose()?;
        let [sink_a, sink_b] = sinks.unwrap_or_default();
        Ok(Report {
            a_to_b: direction(&self.config, &sender_a, &sink_b),
            b_to_a: direction(&self.config, &sender_b, &sink_a),
            notes: [sender_a.notes, sender_b.notes, sink_a.notes, sink_b.notes].concat(),
        })
    }
}

fn direction(config: &Config, sender: &SourceReport, sink: &SinkReport) -> DirectionReport {
    let bits_per_s = sender.sent_per_s() * (config.datagram_wire_bytes() * 8) as f64;
    DirectionReport {
        sent: sender.sent,
        refused: sender.refused,
        missed: sender.missed,
        received: sink.received,
        overflowed: sink.overflowed,
        bits_per_s,
        factor: bits_per_s / config.cable_bits_per_s as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_counts_all_bytes_of_the_wire() {
        let config = Config {
            cable_bits_per_s: 40_000_000,
            factor: 1.0,
            payload_bytes: 1024,
            ..Config::default()
        };
        assert_eq!(config.datagram_wire_bytes(), 1024 + 42 + 24);
        assert!((config.datagrams_per_s() - 4587.2).abs() < 0.1);
    }

    #[test]
    fn a_flood_without_bounds_is_refused() {
        let sender = Config::default().sender(Host::A);
        assert!(sender.check().is_ok());
        let with = |change: fn(&mut SenderConfig)| {
            let mut sender = sender.clone();
            change(&mut sender);
            sender.check()
        };
        let none = with(|sender| sender.streams = 0);
        assert!(matches!(none, Err(FloodError::Streams)));
        let many = with(|sender| sender.streams = MAX_STREAMS + 1);
        assert!(matches!(many, Err(FloodError::Streams)));
        let fast = with(|sender| sender.source.datagrams_per_s = MAX_FLOOD_DATAGRAMS as f64);
        assert!(matches!(fast, Err(FloodError::Datagrams)));
        let not_a_rate = with(|sender| sender.source.datagrams_per_s = f64::NAN);
        assert!(matches!(not_a_rate, Err(FloodError::Datagrams)));
        let nowhere = with(|sender| sender.source.target = Target::Level(8));
        assert!(matches!(nowhere, Err(FloodError::Bulk(BulkError::Level))));
    }

    #[test]
    fn counts_that_contradict_what_was_sent_or_handed_over_are_told() {
        let check = |received: u64, overflowed: u64, handed_over: u64| {
            let flooded = |received, overflowed| DirectionReport {
                sent: 10,
                received,
                overflowed,
                ..DirectionReport::default()
            };
            let relayed = |sent| Ledger {
                sent,
                ..Ledger::default()
            };
            let report = Report {
                a_to_b: flooded(8, 2),
                b_to_a: flooded(received, overflowed),
                notes: Vec::new(),
            };
            report.check([&relayed(10), &relayed(handed_over)])
        };
        // Announcements go the same way, and a classifier may have dropped some.
        for (received, overflowed, handed_over) in [(8, 2, 10), (8, 2, 12), (3, 2, 10), (0, 0, 0)] {
            assert_eq!(check(received, overflowed, handed_over), Ok(()));
        }
        assert!(check(9, 2, 12).unwrap_err().contains("B to A"));
        assert!(check(8, 2, 9).is_err());
    }
}
