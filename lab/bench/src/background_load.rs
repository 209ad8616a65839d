//! Background load (disturbance `flood`): bulk traffic through the cable in both directions.
//!
//! In each direction, 25 UDP streams carry datagrams with the size of a DDS payload. Their rate is a stated multiple of
//! the cable's wire rate. Each host has a source process (on the cable's core, at ordinary priority) and a counting
//! sink process (on the hosts' core). The report states the rate that was reached, because a slow machine may not reach
//! the configured one.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

use crate::cable::{Ledger, MIN_FRAME_BYTES, wire_bytes};
use crate::child::{ChildError, Program, Role};
use crate::limits::{MAX_FLOOD_DATAGRAMS, MAX_STREAMS, SINK_RECEIVE_BYTES, SLOT_BYTES};
use crate::namespace::{Host, TestHosts};
use crate::process::{Cores, Note, Notes};
use crate::stop::Stop;
use crate::system::socket;
use crate::traffic_source::{
    LoadError, LoadProcesses, LoadReport, Source, SourceReport, Target, level_group,
};

/// Ethernet, IPv4 and UDP headers of a datagram's frame, in bytes.
const HEADERS_BYTES: u64 = 14 + 20 + 8;
/// First port of a sink; each stream has its own port. The ports lie below Linux's ephemeral range and above the RTPS
/// ports of the first domains (RTPS 2.5 §9.6.2).
const FIRST_PORT: u16 = 28_000;
/// Send buffer of each socket in bytes: room for all datagrams that a source sends at once.
const SEND_BYTES: u32 = 4 << 20;

/// Configuration of the load in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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
    /// Time in milliseconds that the sinks count after the sources have stopped, for frames still in the cable.
    pub drain_ms: u32,
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
            drain_ms: 200,
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

    /// Checks the configuration against its bounds.
    pub fn check(&self) -> Result<(), LoadError> {
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
        let to = from.other().address();
        let destination = |stream| match self.target {
            Target::Foreign => SocketAddrV4::new(to, FIRST_PORT + stream),
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

    fn sink(&self, at: Host) -> Role {
        Role::BackgroundSink(SinkConfig {
            address: at.address(),
            streams: self.streams,
            core: Some(self.cores.hosts),
        })
    }
}

/// Configuration of one direction's sink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkConfig {
    /// Address of the sink.
    pub address: Ipv4Addr,
    /// Number of streams.
    pub streams: u16,
    /// CPU core of the sink.
    pub core: Option<usize>,
}

/// Counts of a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkReport {
    /// Datagrams read.
    pub received: u64,
    /// Datagrams the kernel dropped because the sink was too slow.
    pub overflowed: u64,
    /// Steps the machine did not allow.
    pub notes: Vec<Note>,
}

impl SinkConfig {
    /// Counts datagrams in the calling process and network namespace until `stop`, then those still in the socket
    /// buffers.
    pub fn run(&self, stop: &Stop, ready: impl FnOnce(&[Note])) -> Result<SinkReport, LoadError> {
        let notes = Notes::pinned(self.core);
        let open = |stream| {
            let socket = UdpSocket::bind((self.address, FIRST_PORT + stream))?;
            socket::set_receive_buffer(&socket, SINK_RECEIVE_BYTES)?;
            Ok(socket)
        };
        let streams: Result<Vec<UdpSocket>, _> = (0..self.streams).map(open).collect();
        let streams = streams.map_err(LoadError::system("open the sink's streams"))?;
        ready(&notes.0);

        let mut report = SinkReport::default();
        let mut scratch = vec![0; SLOT_BYTES];
        loop {
            let mut polled = vec![PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
            polled.extend(
                streams
                    .iter()
                    .map(|stream| PollFd::new(stream, PollFlags::IN)),
            );
            match poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(LoadError::system("wait")(error.into())),
            }
            let stopping = !polled[0].revents().is_empty();
            for (stream, polled) in streams.iter().zip(&polled[1..]) {
                if stopping || !polled.revents().is_empty() {
                    let count = socket::drain(stream, &mut scratch);
                    report.received += count.map_err(LoadError::system("receive"))?;
                }
            }
            if stopping {
                for stream in &streams {
                    let overflowed = socket::overflowed(stream);
                    report.overflowed += overflowed.map_err(LoadError::system("read its drops"))?;
                }
                report.notes = notes.0;
                return Ok(report);
            }
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

/// Handle of a running background load. Dropping it kills the load without a report.
#[derive(Debug)]
pub struct BackgroundLoad {
    config: Config,
    processes: LoadProcesses,
}

impl BackgroundLoad {
    /// Starts both sinks, if any, then both sources, and returns when all are ready.
    pub fn start(
        testbed: &TestHosts,
        program: &Program,
        config: &Config,
    ) -> Result<BackgroundLoad, ChildError> {
        let checked = config.check();
        checked.map_err(|error| ChildError::Failed(error.to_string()))?;
        let sinks = match config.target {
            Target::Foreign => Some(Host::BOTH.map(|host| config.sink(host))),
            Target::Level(_) => None,
        };
        let sources = Host::BOTH.map(|host| config.source(host));
        Ok(BackgroundLoad {
            config: config.clone(),
            processes: LoadProcesses::start(testbed, program, sinks, sources, config.drain_ms)?,
        })
    }

    /// Stops the sources, drains the cable, stops the sinks and returns the report.
    pub fn finish(self) -> Result<Report, ChildError> {
        let ([source_a, source_b], [sink_a, sink_b]) = self.processes.finish::<SinkReport>()?;
        Ok(Report {
            a_to_b: self.config.direction(&source_a, &sink_b),
            b_to_a: self.config.direction(&source_b, &sink_a),
            notes: [source_a.notes, source_b.notes, sink_a.notes, sink_b.notes].concat(),
        })
    }
}

impl Config {
    fn direction(&self, source: &SourceReport, sink: &SinkReport) -> DirectionReport {
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
