//! The storm: heavy receive work. Bulk to a multicast group, through the cable, that is delivered to
//! hundreds of sockets on each host: one frame is one piece of work for the kernel that has as many
//! parts as there are sockets, and none of it can be interrupted by an application.
//!
//! ```text
//!   host A                    cable                    host B
//!   sender (cable's core) ==================>  group ──► 250 sockets (one process)
//!   250 sockets ◄── group  <==================  sender (cable's core)
//! ```
//!
//! The link is not full: frames are short, and what is scarce is the receiving core. Datagrams have
//! neither priority nor DSCP: they are of class 0 on the link. The sockets have little memory and are
//! read at the end only, so that what they cost is the kernel's work alone; each keeps count of what it
//! took and what it dropped, which together is every frame that reached it. Whether the rate was
//! reached is part of the result.

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

/// Where a storm of strangers goes: no group of DDS, and a port below those that Linux gives away.
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 200, 1), 28_900);

/// A storm, both ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Frames a second, each way.
    pub frames_per_s: f64,
    /// UDP payload of each.
    pub payload_bytes: u32,
    /// Sockets on each host that each frame is delivered to.
    pub sockets: u16,
    /// Whose bulk it is.
    pub target: Target,
    /// The storm ends by itself after this time.
    pub seconds: u32,
    /// How long the sockets go on counting after the senders have stopped, in milliseconds.
    pub drain_ms: u32,
    /// Where senders run (`cable`), and the process that owns the sockets (`hosts`).
    pub cores: Cores,
}

impl Default for Config {
    /// Both ways together 10,000 frames a second: with both hosts on one core, half of that core.
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

/// One direction's sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderConfig {
    /// Where to.
    pub group: SocketAddrV4,
    /// The address of the interface it leaves by.
    pub interface: Ipv4Addr,
    /// What is sent; each datagram is a frame.
    pub source: Source,
}

/// One host's sockets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiversConfig {
    /// What they have joined.
    pub group: SocketAddrV4,
    /// The address of the interface they have joined it on.
    pub interface: Ipv4Addr,
    /// How many there are.
    pub sockets: u16,
    /// The core their process runs on.
    pub core: Option<usize>,
}

/// What a host's sockets counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiversReport {
    /// Sockets there were.
    pub sockets: u16,
    /// Datagrams that they held in the end, all together.
    pub received: u64,
    /// Datagrams that they dropped because they were full, all together.
    pub overflowed: u64,
    /// Frames that reached the socket that the fewest reached.
    pub least: u64,
    /// Frames that reached the socket that the most reached.
    pub most: u64,
    /// What the machine did not allow.
    pub notes: Vec<Note>,
}

/// Why there is no storm.
#[derive(Debug, thiserror::Error)]
pub enum StormError {
    /// As any bulk.
    #[error("no storm: {0}")]
    Bulk(#[from] BulkError),
    /// Too many, or no number.
    #[error("a storm has at most {MAX_STORM_FRAMES_PER_S} frames a second each way")]
    Rate,
    /// None, or too many.
    #[error("a storm has 1 to {MAX_STORM_SOCKETS} sockets on each host")]
    Sockets,
}

impl SenderConfig {
    /// Whether this storm is within its bounds.
    pub fn check(&self) -> Result<(), StormError> {
        self.source.check()?;
        // Written so that a rate that is not a number is refused, too.
        if !(0.0..=MAX_STORM_FRAMES_PER_S).contains(&self.source.datagrams_per_s) {
            return Err(StormError::Rate);
        }
        Ok(())
    }
}

impl ReceiversConfig {
    /// Whether there can be so many sockets.
    pub fn check(&self) -> Result<(), StormError> {
        match self.sockets {
            1..=MAX_STORM_SOCKETS => Ok(()),
            _ => Err(StormError::Sockets),
        }
    }
}

/// What became of one direction of a storm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Frames sent.
    pub sent: u64,
    /// Frames the sending kernel refused.
    pub refused: u64,
    /// Frames given up.
    pub missed: u64,
    /// Frames sent a second.
    pub frames_per_s: f64,
    /// Sockets that each frame was for.
    pub sockets: u16,
    /// Frames that reached the sockets: the same number each. The difference to `sent` was dropped on
    /// the way: by the cable, or before it became receive work.
    pub reached: u64,
    /// Datagrams that all sockets together held in the end.
    pub received: u64,
    /// Datagrams that they dropped because they were full.
    pub overflowed: u64,
    /// Whether each socket was reached by the same number of frames.
    pub is_even: bool,
}

/// What became of a storm.
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
    /// Frames a second of the direction that had fewer.
    pub fn least_frames_per_s(&self) -> f64 {
        self.a_to_b.frames_per_s.min(self.b_to_a.frames_per_s)
    }

    /// Whether the sockets' counts contradict what was sent.
    ///
    /// # Errors
    /// Which do, in words.
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

/// A running storm. Dropped, it is killed and leaves no report.
#[derive(Debug)]
pub struct Storm {
    config: Config,
    // Senders before receivers, as fields are dropped in order.
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

    /// Stops the senders, lets what is on the way arrive, closes the sockets and reports.
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
