//! Multicast load (disturbance `storm`): heavy receive work. Datagrams to a multicast group pass the cable and are
//! delivered to hundreds of sockets on each host. One frame is one piece of kernel work with a part per socket, which
//! no application can interrupt.
//!
//! ```text
//!   host A                    cable                    host B
//!   sender (cable's core) ==================>  group ──► 250 sockets (one process)
//!   250 sockets ◄── group  <==================  sender (cable's core)
//! ```
//!
//! Frames are short, so the receiving core is the bottleneck, and not the link. Datagrams have no priority and no DSCP,
//! so they have class 0 on the link. The sockets have small buffers and are read only at the end, so their cost is
//! kernel work alone. Each socket's received and dropped datagrams add up to the frames that reached it. The report
//! states the rate that was reached.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};

use crate::limits::{MAX_STORM_FRAMES_PER_S, MAX_STORM_SOCKETS, STORM_RECEIVE_BYTES};
use crate::namespace::Host;
use crate::process::Cores;
use crate::traffic_load::{LoadReport, Receivers, ReceiversReport, RunningLoad, TrafficLoad};
use crate::traffic_source::{LoadError, Source, SourceReport, Target, level_group};

/// Destination of a storm that no participant receives: not a group of DDS, and a port below the ephemeral range.
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 200, 1), 28_900);

/// Configuration of a storm in both directions.
#[derive(Clone, Debug, PartialEq)]
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
    /// Cores of the senders (`cable`) and of the process that owns the sockets (`hosts`).
    pub cores: Cores,
}

impl Default for Config {
    /// 10,000 frames per second in both directions together. They take half of one core that serves both hosts.
    fn default() -> Self {
        Config {
            frames_per_s: 5_000.0,
            payload_bytes: 64,
            sockets: 250,
            target: Target::Foreign,
            seconds: 60,
            cores: Cores::of_machine(),
        }
    }
}

impl Config {
    fn group(&self) -> SocketAddrV4 {
        match self.target {
            Target::Foreign => GROUP,
            Target::Level(level) => level_group(level),
        }
    }
}

impl TrafficLoad for Config {
    type Direction = DirectionReport;

    fn check(&self) -> Result<(), LoadError> {
        // The range check also refuses NaN.
        if !(0.0..=MAX_STORM_FRAMES_PER_S).contains(&self.frames_per_s) {
            return Err(LoadError::Rate(self.frames_per_s));
        }
        if !(1..=MAX_STORM_SOCKETS).contains(&self.sockets) {
            return Err(LoadError::Sockets(self.sockets));
        }
        self.source(Host::A).check()
    }

    fn source(&self, from: Host) -> Source {
        Source {
            target: self.target,
            destinations: vec![self.group()],
            interface: Some(from.address()),
            send_buffer_bytes: None,
            payload_bytes: self.payload_bytes,
            datagrams_per_s: self.frames_per_s,
            seconds: self.seconds,
            core: Some(self.cores.cable),
        }
    }

    fn receivers(&self) -> Option<[Receivers; 2]> {
        let at = |host: Host| Receivers {
            addresses: vec![self.group(); self.sockets.into()],
            interface: Some(host.address()),
            receive_buffer_bytes: STORM_RECEIVE_BYTES,
            is_read: false,
            core: Some(self.cores.hosts),
        };
        Some(Host::BOTH.map(at))
    }

    fn direction(&self, source: &SourceReport, receivers: &ReceiversReport) -> DirectionReport {
        DirectionReport {
            sent: source.sent,
            refused: source.refused,
            missed: source.missed,
            frames_per_s: source.sent_per_s(),
            sockets: receivers.sockets,
            reached: receivers.most,
            received: receivers.received,
            overflowed: receivers.overflowed,
            is_even: receivers.least == receivers.most,
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
    /// Frames not sent, because the source was too late to catch up.
    pub missed: u64,
    /// Frames sent per second.
    pub frames_per_s: f64,
    /// Number of receiving sockets.
    pub sockets: u16,
    /// Frames that reached a socket: the maximum over all sockets. The other frames of `sent` were dropped by the
    /// cable, or before they became receive work.
    pub reached: u64,
    /// Datagrams that all sockets held at the end.
    pub received: u64,
    /// Datagrams that full sockets dropped.
    pub overflowed: u64,
    /// True when the same number of frames reached each socket.
    pub is_even: bool,
}

/// Result of a storm.
pub type Report = LoadReport<DirectionReport>;

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
        for (way, direction) in self.directions() {
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

/// Handle of a running multicast load.
pub type MulticastLoad = RunningLoad<Config>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_without_bounds_is_refused() {
        assert!(Config::default().check().is_ok());
        let with = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check()
        };
        let fast = with(|config| config.frames_per_s = MAX_STORM_FRAMES_PER_S * 1.1);
        assert!(matches!(fast, Err(LoadError::Rate(_))));
        let not_a_rate = with(|config| config.frames_per_s = f64::NAN);
        assert!(matches!(not_a_rate, Err(LoadError::Rate(_))));
        let nowhere = with(|config| config.target = Target::Level(8));
        assert!(matches!(nowhere, Err(LoadError::Level(8))));
        let none = with(|config| config.sockets = 0);
        assert!(matches!(none, Err(LoadError::Sockets(0))));
        let many = with(|config| config.sockets = MAX_STORM_SOCKETS + 1);
        assert!(matches!(many, Err(LoadError::Sockets(_))));
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
    fn counts_that_contradict_what_was_sent_are_reported() {
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
