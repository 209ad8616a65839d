//! Background load (disturbance `flood`): bulk traffic through the cable in both directions.
//!
//! In each direction, 25 UDP streams carry datagrams with the size of a DDS payload. Their rate is a stated multiple of
//! the cable's wire rate. Each host has a source process (on the cable's core, at ordinary priority) and a counting
//! sink process (on the hosts' core). The report states the rate that was reached, because a slow machine may not reach
//! the configured one.

use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

use crate::cable::{Ledger, MIN_FRAME_BYTES, wire_bytes};
use crate::limits::{MAX_FLOOD_DATAGRAMS, MAX_STREAMS, SINK_RECEIVE_BYTES};
use crate::namespace::Host;
use crate::process::Cores;
use crate::traffic_load::{LoadReport, Receivers, ReceiversReport, RunningLoad, TrafficLoad};
use crate::traffic_source::{LoadError, Source, SourceReport, Target, level_group};

/// Ethernet, IPv4 and UDP headers of a datagram's frame, in bytes.
const HEADERS_BYTES: u64 = 14 + 20 + 8;
/// First port of a sink; each stream has its own port. The ports lie below Linux's ephemeral range and above the RTPS
/// ports of the first domains (RTPS 2.5 §9.6.2).
const FIRST_PORT: u16 = 28_000;
/// Send buffer of each socket in bytes: room for all datagrams that a source sends at once.
const SEND_BYTES: u32 = 4 << 20;

/// Configuration of the load in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Rate of the cable in bits per second.
    pub cable_bits_per_s: u64,
    /// Wire rate of the load as a multiple of the cable's: 0.9 nearly fills the cable, 3 overruns it.
    pub factor: f64,
    /// UDP payload of each datagram, in bytes.
    pub payload_bytes: u32,
    /// UDP streams in each direction, each with its own ports.
    pub streams: u16,
    /// Receivers the datagrams are addressed to.
    pub target: Target,
    /// Duration in seconds after which the load ends by itself.
    pub seconds: u32,
    /// Cores of the sources (`cable`) and sinks (`hosts`).
    pub cores: Cores,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            cable_bits_per_s: crate::cable::Config::default().bits_per_s,
            factor: 0.9,
            payload_bytes: 1024,
            streams: 25,
            target: Target::Foreign,
            seconds: 60,
            cores: Cores::of_machine(),
        }
    }
}

impl Config {
    /// Length of each datagram on the wire, in bits.
    fn datagram_wire_bits(&self) -> f64 {
        let frame_bytes = HEADERS_BYTES + u64::from(self.payload_bytes);
        (wire_bytes(frame_bytes.max(MIN_FRAME_BYTES)) * 8) as f64
    }

    /// Datagrams per second in each direction.
    fn datagrams_per_s(&self) -> f64 {
        self.cable_bits_per_s as f64 * self.factor / self.datagram_wire_bits()
    }

    /// Maximum factor with this cable, payload and duration.
    pub(crate) fn max_factor(&self) -> f64 {
        let of_factor_1 = Config {
            factor: 1.0,
            ..self.clone()
        };
        let datagrams = of_factor_1.datagrams_per_s() * f64::from(self.seconds);
        // Rounded down, for a short text.
        (MAX_FLOOD_DATAGRAMS as f64 / datagrams * 100.0).floor() / 100.0
    }

    /// Address of a stream to a host.
    fn address(&self, to: Host, stream: u16) -> SocketAddrV4 {
        SocketAddrV4::new(to.address(), FIRST_PORT + stream)
    }
}

impl TrafficLoad for Config {
    type Direction = DirectionReport;

    fn check(&self) -> Result<(), LoadError> {
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            return Err(LoadError::Streams(self.streams));
        }
        // The range check also refuses NaN.
        let datagrams = self.datagrams_per_s() * f64::from(self.seconds);
        if !(0.0..=MAX_FLOOD_DATAGRAMS as f64).contains(&datagrams) {
            return Err(LoadError::Datagrams(datagrams));
        }
        self.source(Host::A).check()
    }

    fn source(&self, from: Host) -> Source {
        let destination = |stream| match self.target {
            Target::Foreign => self.address(from.other(), stream),
            Target::Level(level) => level_group(level),
        };
        Source {
            target: self.target,
            destinations: (0..self.streams).map(destination).collect(),
            interface: None,
            send_buffer_bytes: Some(SEND_BYTES),
            payload_bytes: self.payload_bytes,
            datagrams_per_s: self.datagrams_per_s(),
            seconds: self.seconds,
            core: Some(self.cores.cable),
        }
    }

    fn receivers(&self) -> Option<[Receivers; 2]> {
        let at = |host| Receivers {
            addresses: (0..self.streams)
                .map(|stream| self.address(host, stream))
                .collect(),
            interface: None,
            receive_buffer_bytes: SINK_RECEIVE_BYTES,
            is_read: true,
            core: Some(self.cores.hosts),
        };
        (self.target == Target::Foreign).then(|| Host::BOTH.map(at))
    }

    fn direction(&self, source: &SourceReport, sink: &ReceiversReport) -> DirectionReport {
        let bits_per_s = source.sent_per_s() * self.datagram_wire_bits();
        DirectionReport {
            sent: source.sent,
            refused: source.refused,
            missed: source.missed,
            received: sink.received,
            overflowed: sink.overflowed,
            bits_per_s,
            factor: bits_per_s / self.cable_bits_per_s as f64,
        }
    }
}

/// Result of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams the sending kernel refused.
    pub refused: u64,
    /// Datagrams not sent, because the source was too late to catch up.
    pub missed: u64,
    /// Datagrams counted by the sink; 0 where the load addresses a level of the participants, which count the datagrams
    /// themselves.
    pub received: u64,
    /// Datagrams dropped in the sink's sockets.
    pub overflowed: u64,
    /// Wire rate sent, in bits per second.
    pub bits_per_s: f64,
    /// Wire rate sent as a multiple of the cable's rate, for comparison with the configured factor.
    pub factor: f64,
}

/// Result of the load.
pub type Report = LoadReport<DirectionReport>;

impl Report {
    /// Checks that each sink counted no more datagrams than were sent, and no more than the cable (A to B, B to A)
    /// delivered. Missing datagrams are valid, because a classifier may drop datagrams before they become receive work.
    ///
    /// # Errors
    /// A text that names the contradicting direction.
    pub fn check(&self, cable: [&Ledger; 2]) -> Result<(), String> {
        for ((way, flooded), relayed) in self.directions().into_iter().zip(cable) {
            let arrived = flooded.received + flooded.overflowed;
            if arrived > flooded.sent.min(relayed.sent) {
                return Err(format!(
                    "{arrived} datagrams of the flood from {way} arrived ({} of them overflowed); {} were \
                     sent, and the cable delivered {} frames",
                    flooded.overflowed, flooded.sent, relayed.sent
                ));
            }
        }
        Ok(())
    }
}

/// Handle of a running background load.
pub type BackgroundLoad = RunningLoad<Config>;

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
        assert_eq!(config.datagram_wire_bits(), f64::from((1024 + 42 + 24) * 8));
        assert!((config.datagrams_per_s() - 4587.2).abs() < 0.1);
    }

    #[test]
    fn a_flood_without_bounds_is_refused() {
        assert!(Config::default().check().is_ok());
        let with = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check()
        };
        for streams in [0, MAX_STREAMS + 1] {
            let config = Config {
                streams,
                ..Config::default()
            };
            assert!(matches!(config.check(), Err(LoadError::Streams(_))));
        }
        let fast = with(|config| config.factor = MAX_FLOOD_DATAGRAMS as f64);
        assert!(matches!(fast, Err(LoadError::Datagrams(_))));
        let not_a_rate = with(|config| config.factor = f64::NAN);
        assert!(matches!(not_a_rate, Err(LoadError::Datagrams(_))));
        let nowhere = with(|config| config.target = Target::Level(8));
        assert!(matches!(nowhere, Err(LoadError::Level(8))));
    }

    #[test]
    fn counts_that_contradict_what_was_sent_or_handed_over_are_reported() {
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
        // The cable also carries announcements, and a classifier may have dropped some datagrams.
        for (received, overflowed, handed_over) in [(8, 2, 10), (8, 2, 12), (3, 2, 10), (0, 0, 0)] {
            assert_eq!(check(received, overflowed, handed_over), Ok(()));
        }
        assert!(check(9, 2, 12).unwrap_err().contains("B to A"));
        assert!(check(8, 2, 9).is_err());
    }
}
