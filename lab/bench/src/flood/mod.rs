//! Flood: bulk traffic through the cable in both directions, as a disturbance of a critical topic.
//!
//! 25 UDP streams in each direction, with the size of a DDS payload, at a stated multiple of the cable's wire rate.
//! Each host has a sender process (on the cable's core, at ordinary priority) and a counting sink process (on the
//! hosts' core). The report states the rate that was reached, because a slow machine may miss it.

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

/// Ethernet, IPv4 and UDP headers of a datagram's frame, in bytes.
const HEADERS_BYTES: u64 = 14 + 20 + 8;
/// First port of a sink; each stream has one. The ports lie below Linux's ephemeral range and above the RTPS ports of
/// the first domains (RTPS 2.5 §9.6.2).
pub const FIRST_PORT: u16 = 28_000;

/// Configuration of a flood in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Rate of the cable in bits per second.
    pub cable_bits_per_s: u64,
    /// Wire rate of the flood as a multiple of the cable's: 0.9 nearly fills the cable, 3 overruns it.
    pub factor: f64,
    /// UDP payload of each datagram, in bytes.
    pub payload_bytes: u32,
    /// UDP streams in each direction, each with its own ports.
    pub streams: u16,
    /// Receivers the datagrams are addressed to.
    pub target: Target,
    /// Duration in seconds after which the flood ends by itself.
    pub seconds: u32,
    /// Time in milliseconds that the sinks count after the senders have stopped, for frames still in the cable.
    pub drain_ms: u32,
    /// Cores of the senders (`cable`) and sinks (`hosts`).
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
    /// Bytes of wire time of each datagram.
    pub fn datagram_wire_bytes(&self) -> u64 {
        datagram_wire_bytes(self.payload_bytes)
    }

    /// Datagrams per second in each direction.
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

/// Configuration of one direction's sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderConfig {
    /// Address of the sink's host.
    pub to: Ipv4Addr,
    /// Number of streams, to ports from [`FIRST_PORT`] where there is a sink.
    pub streams: u16,
    /// Traffic source.
    pub source: Source,
}

/// Configuration of one direction's sink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkConfig {
    /// Address of the sink.
    pub address: Ipv4Addr,
    /// Number of streams, on ports from [`FIRST_PORT`].
    pub streams: u16,
    /// CPU core of the sink.
    pub core: Option<usize>,
}

/// Counts of a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkReport {
    /// Datagrams read.
    pub received: u64,
    /// Payload bytes read.
    pub bytes: u64,
    /// Datagrams the kernel dropped because the sink was too slow.
    pub overflowed: u64,
    /// Steps the machine did not allow.
    pub notes: Vec<Note>,
}

/// Reasons why a flood cannot run.
#[derive(Debug, thiserror::Error)]
pub enum FloodError {
    /// The traffic source failed.
    #[error("no flood: {0}")]
    Bulk(#[from] BulkError),
    /// The number of datagrams is too high, or not a number.
    #[error("a flood has at most {MAX_FLOOD_DATAGRAMS} datagrams each way")]
    Datagrams,
    /// The number of streams is zero or too high.
    #[error("a flood has 1 to {MAX_STREAMS} streams each way")]
    Streams,
}

impl SenderConfig {
    /// Checks the configuration against its bounds.
    pub fn check(&self) -> Result<(), FloodError> {
        check_streams(self.streams)?;
        self.source.check()?;
        // The range check also refuses NaN.
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

/// Result of one direction of a flood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams the sending kernel refused.
    pub refused: u64,
    /// Datagrams given up.
    pub missed: u64,
    /// Datagrams counted by the sink; 0 where the flood addresses a level of the participants, which count it
    /// themselves.
    pub received: u64,
    /// Datagrams dropped in the sink's sockets.
    pub overflowed: u64,
    /// Wire rate sent, in bits per second.
    pub bits_per_s: f64,
    /// Wire rate sent as a multiple of the cable's rate, for comparison with the configured factor.
    pub factor: f64,
}

/// Result of a flood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Direction from host A to host B.
    pub a_to_b: DirectionReport,
    /// Direction from host B to host A.
    pub b_to_a: DirectionReport,
    /// Steps the machine did not allow.
    pub notes: Vec<Note>,
}

impl Report {
    /// Checks that the sinks counted no more than was sent and than the cable (A to B, B to A) delivered. Missing
    /// datagrams are valid, since a classifier may drop them before they become receive work.
    ///
    /// # Errors
    /// A text that names the contradicting direction.
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

/// Handle of a running flood. Dropping it kills the flood without a report.
#[derive(Debug)]
pub struct Flood {
    config: Config,
    // Senders before sinks: fields drop in order, and senders must not send to closed ports.
    senders: [Running; 2],
    sinks: Option<[Running; 2]>,
}

impl Flood {
    /// Starts both sinks, if any, then both senders, and returns when all are ready.
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

    /// Stops the senders, drains the cable, stops the sinks and returns the report.
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
        // Announcements go the same way, and a classifier may have dropped some datagrams.
        for (received, overflowed, handed_over) in [(8, 2, 10), (8, 2, 12), (3, 2, 10), (0, 0, 0)] {
            assert_eq!(check(received, overflowed, handed_over), Ok(()));
        }
        assert!(check(9, 2, 12).unwrap_err().contains("B to A"));
        assert!(check(8, 2, 9).is_err());
    }
}
