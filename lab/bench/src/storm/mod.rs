//! Multicast storm: heavy receive work. Datagrams to a multicast group pass the cable and are delivered to hundreds of
//! sockets on each host. One frame is one piece of kernel work with a part per socket, which no application can
//! interrupt.
//!
//! ```text
//!   host A                    cable                    host B
//!   sender (cable's core) ==================>  group ──► 250 sockets (one process)
//!   250 sockets ◄── group  <==================  sender (cable's core)
//! ```
//!
//! Frames are short, so the link is not full: the receiving core is scarce. Datagrams have no priority and no DSCP, and
//! so class 0 on the link. The sockets have small buffers and are read only at the end, so their cost is kernel work
//! alone. Each socket's received and dropped datagrams add up to the frames that reached it. The report states the rate
//! that was reached.

mod receivers;
mod sender;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bulk::{BulkError, Source, SourceReport};
use crate::child::{ChildError, Program, Role, Running};
use crate::limits::{MAX_STORM_FRAMES_PER_S, MAX_STORM_SOCKETS};
use crate::namespace::{Host, Testbed};
use crate::process::{Cores, Note};
use crate::target::{Target, level_group};

pub use receivers::run_receivers;
pub use sender::run_sender;

/// Destination of a storm outside of DDS: no DDS group, and a port below the ephemeral range.
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 200, 1), 28_900);

/// Configuration of a storm in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Frames per second in each direction.
    pub frames_per_s: f64,
    /// UDP payload of each frame, in bytes.
    pub payload_bytes: u32,
    /// Sockets on each host that receive each frame.
    pub sockets: u16,
    /// Receivers the datagrams are addressed to.
    pub target: Target,
    /// Duration in seconds after which the storm ends by itself.
    pub seconds: u32,
    /// Time in milliseconds that the sockets count after the senders have stopped.
    pub drain_ms: u32,
    /// Cores of the senders (`cable`) and of the process that owns the sockets (`hosts`).
    pub cores: Cores,
}

impl Default for Config {
    /// 10,000 frames per second in both directions together: half of one core that serves both hosts.
    fn default() -> Self {
        Config {
            frames_per_s: 5_000.0,
            payload_bytes: 64,
            sockets: 250,
            target: Target::Strangers,
            seconds: 60,
            drain_ms: 200,
            cores: Cores::of_machine(),
        }
    }
}

impl Config {
    fn group(&self) -> SocketAddrV4 {
        match self.target {
            Target::Strangers => GROUP,
            Target::Level(level) => level_group(level),
        }
    }

    fn sender(&self, from: Host) -> SenderConfig {
        SenderConfig {
            group: self.group(),
            interface: from.address(),
            source: Source {
                target: self.target,
                payload_bytes: self.payload_bytes,
                datagrams_per_s: self.frames_per_s,
                seconds: self.seconds,
                core: Some(self.cores.cable),
            },
        }
    }

    fn receivers(&self, at: Host) -> ReceiversConfig {
        ReceiversConfig {
            group: self.group(),
            interface: at.address(),
            sockets: self.sockets,
            core: Some(self.cores.hosts),
        }
    }
}

/// Configuration of one direction's sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderConfig {
    /// Destination group and port.
    pub group: SocketAddrV4,
    /// Address of the outgoing interface.
    pub interface: Ipv4Addr,
    /// Traffic source; each datagram is a frame.
    pub source: Source,
}

/// Configuration of one host's sockets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiversConfig {
    /// Group and port the sockets join.
    pub group: SocketAddrV4,
    /// Address of the interface they join on.
    pub interface: Ipv4Addr,
    /// Number of sockets.
    pub sockets: u16,
    /// CPU core of their process.
    pub core: Option<usize>,
}

/// Counts of a host's sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiversReport {
    /// Number of sockets.
    pub sockets: u16,
    /// Datagrams the sockets held at the end, in total.
    pub received: u64,
    /// Datagrams dropped by full sockets, in total.
    pub overflowed: u64,
    /// Minimum number of frames that reached a socket.
    pub least: u64,
    /// Maximum number of frames that reached a socket.
    pub most: u64,
    /// Steps the machine did not allow.
    pub notes: Vec<Note>,
}

/// Reasons why a storm cannot run.
#[derive(Debug, thiserror::Error)]
pub enum StormError {
    /// The traffic source failed.
    #[error("no storm: {0}")]
    Bulk(#[from] BulkError),
    /// The rate is too high, or not a number.
    #[error("a storm has at most {MAX_STORM_FRAMES_PER_S} frames a second each way")]
    Rate,
    /// The number of sockets is zero or too high.
    #[error("a storm has 1 to {MAX_STORM_SOCKETS} sockets on each host")]
    Sockets,
}

impl SenderConfig {
    /// Checks the configuration against its bounds.
    pub fn check(&self) -> Result<(), StormError> {
        self.source.check()?;
        // The range check also refuses NaN.
        if !(0.0..=MAX_STORM_FRAMES_PER_S).contains(&self.source.datagrams_per_s) {
            return Err(StormError::Rate);
        }
        Ok(())
    }
}

impl ReceiversConfig {
    /// Checks the number of sockets.
    pub fn check(&self) -> Result<(), StormError> {
        match self.sockets {
            1..=MAX_STORM_SOCKETS => Ok(()),
            _ => Err(StormError::Sockets),
        }
    }
}

/// Result of one direction of a storm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Frames sent.
    pub sent: u64,
    /// Frames the sending kernel refused.
    pub refused: u64,
    /// Frames given up.
    pub missed: u64,
    /// Frames sent per second.
    pub frames_per_s: f64,
    /// Number of receiving sockets.
    pub sockets: u16,
    /// Frames that reached the sockets, the same number each. The difference to `sent` was dropped by the cable, or
    /// before it became receive work.
    pub reached: u64,
    /// Datagrams that all sockets held at the end.
    pub received: u64,
    /// Datagrams that full sockets dropped.
    pub overflowed: u64,
    /// True when the same number of frames reached each socket.
    pub is_even: bool,
}

/// Result of a storm.
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
    /// Frames per second of the slower direction.
    pub fn least_frames_per_s(&self) -> f64 {
        self.a_to_b.frames_per_s.min(self.b_to_a.frames_per_s)
    }

    /// Checks the sockets' counts against the frames sent.
    ///
    /// # Errors
    /// A text that names the contradicting direction.
    pub fn check(&self) -> Result<(), String> {
        for (way, direction) in [("A to B", &self.a_to_b), ("B to A", &self.b_to_a)] {
            if !direction.is_even {
                return Err(format!(
                    "the storm from {way} did not reach all its sockets alike: {direction:?}"
                ));
            }
            if direction.reached > direction.sent {
                return Err(format!(
                    "{} frames of the storm from {way} arrived, {} were sent",
                    direction.reached, direction.sent
                ));
            }
        }
        Ok(())
    }
}

/// Handle of a running storm. Dropping it kills the storm without a report.
#[derive(Debug)]
pub struct Storm {
    config: Config,
    // Senders before receivers, because fields drop in order.
    senders: [Running; 2],
    receivers: [Running; 2],
}

impl Storm {
    /// Opens all sockets, then starts both senders, and returns when all are ready.
    pub fn start(
        testbed: &Testbed,
        program: &Program,
        config: &Config,
    ) -> Result<Storm, ChildError> {
        let start = |host: Host, role: Role| Running::start(testbed, host, program, &role);
        let receivers = [
            start(Host::A, Role::StormReceivers(config.receivers(Host::A)))?,
            start(Host::B, Role::StormReceivers(config.receivers(Host::B)))?,
        ];
        let senders = [
            start(Host::A, Role::StormSender(config.sender(Host::A)))?,
            start(Host::B, Role::StormSender(config.sender(Host::B)))?,
        ];
        Ok(Storm {
            config: config.clone(),
            senders,
            receivers,
        })
    }

    /// Stops the senders, drains the cable, closes the sockets and returns the report.
    pub fn finish(self) -> Result<Report, ChildError> {
        let [sender_a, sender_b]: [SourceReport; 2] = Running::finish_both(self.senders)?;
        thread::sleep(Duration::from_millis(self.config.drain_ms.into()));
        let [at_a, at_b]: [ReceiversReport; 2] = Running::finish_both(self.receivers)?;
        Ok(Report {
            a_to_b: direction(&sender_a, &at_b),
            b_to_a: direction(&sender_b, &at_a),
            notes: [sender_a.notes, sender_b.notes, at_a.notes, at_b.notes].concat(),
        })
    }
}

fn direction(sender: &SourceReport, receivers: &ReceiversReport) -> DirectionReport {
    DirectionReport {
        sent: sender.sent,
        refused: sender.refused,
        missed: sender.missed,
        frames_per_s: sender.sent_per_s(),
        sockets: receivers.sockets,
        reached: receivers.most,
        received: receivers.received,
        overflowed: receivers.overflowed,
        is_even: receivers.least == receivers.most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_without_bounds_is_refused() {
        let sender = Config::default().sender(Host::A);
        assert!(sender.check().is_ok());
        let with = |change: fn(&mut SenderConfig)| {
            let mut sender = sender.clone();
            change(&mut sender);
            sender.check()
        };
        let fast = with(|sender| sender.source.datagrams_per_s = MAX_STORM_FRAMES_PER_S * 1.1);
        assert!(matches!(fast, Err(StormError::Rate)));
        let not_a_rate = with(|sender| sender.source.datagrams_per_s = f64::NAN);
        assert!(matches!(not_a_rate, Err(StormError::Rate)));
        let nowhere = with(|sender| sender.source.target = Target::Level(8));
        assert!(matches!(nowhere, Err(StormError::Bulk(BulkError::Level))));
        for sockets in [0, MAX_STORM_SOCKETS + 1] {
            let receivers = ReceiversConfig {
                sockets,
                ..Config::default().receivers(Host::B)
            };
            assert!(matches!(receivers.check(), Err(StormError::Sockets)));
        }
    }

    #[test]
    fn a_storm_for_a_level_goes_where_its_readers_listen() {
        let config = Config {
            target: Target::Level(1),
            ..Config::default()
        };
        assert_eq!(config.group(), level_group(1));
        assert_ne!(Config::default().group(), level_group(1));
    }

    #[test]
    fn counts_that_contradict_what_was_sent_are_told() {
        let good = DirectionReport {
            sent: 10,
            reached: 9,
            is_even: true,
            ..DirectionReport::default()
        };
        let with = |b_to_a| Report {
            a_to_b: good,
            b_to_a,
            notes: Vec::new(),
        };
        assert_eq!(with(good).check(), Ok(()));
        let uneven = DirectionReport {
            is_even: false,
            ..good
        };
        assert!(with(uneven).check().unwrap_err().contains("B to A"));
        let made_up = DirectionReport {
            reached: 11,
            ..good
        };
        assert!(with(made_up).check().is_err());
    }
}
