//! The emulated cable: everything that leaves one test host reaches the other through it, at the
//! rate, with the queue, the order, the losses and the delay of the link that is emulated.
//!
//! All frames get the same treatment, whichever way they were sent: sockets and AF_XDP lanes,
//! ARP and multicast alike. Between the devices of the two hosts a frame takes this way:
//!
//! ```text
//!   host's veth -> packet socket -> queue -> arbiter -> wire (rate) -> delay -> packet socket -> veth
//!                  (ingress drops)  (queue drops)       (losses)
//! ```
//!
//! The cable runs as a process of its own, pinned and above everything it serves; [`Cable`] is the
//! handle its parent has. In tests it may run on a thread instead ([`Relay`]). It never changes a
//! frame except for finishing checksums that the sending kernel left to hardware.
//!
//! A cable that steers plays a network controller with a queue for critical frames: frames leave by
//! AF_XDP sockets (module `outlet`) instead of the packet socket, each on the queue of its class.

mod arbiter;
mod fault;
mod frame;
mod ledger;
mod link;
mod observe;
mod outlet;
mod relay;

use std::io;

use serde::{Deserialize, Serialize};

use crate::child::{ChildError, Program, Role, Running};
use crate::limits::{MAX_IN_FLIGHT, MAX_QUEUE_FRAMES};
use crate::namespace::{Place, Testbed};
use crate::process::Note;
use crate::stop::Stop;

pub use arbiter::Arbiter;
pub(crate) use fault::mix;
pub use fault::{Loss, Reorder};
pub use ledger::Ledger;
pub use link::{FRAME_OVERHEAD_BYTES, MIN_FRAME_BYTES, wire_bytes, wire_time_ns};
pub use observe::{Observe, Passages};
pub use relay::Relay;

/// What the cable is like, the same both ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The rate each way; a frame takes [`wire_bytes`] of it.
    pub bits_per_s: u64,
    /// Frames that may wait for the wire each way, under `strict` those of one class; more are
    /// dropped, the newest first.
    pub queue_frames: u32,
    /// Which waiting frame is next.
    pub arbiter: Arbiter,
    /// Whether each class leaves on a queue of the device of its own, which the host receives on the
    /// queue of the same number: the highest class on queue 0, all others on queue 1. Else the kernel
    /// chooses.
    pub steer: bool,
    /// Frames lost on the way.
    pub loss: Loss,
    /// From the last bit sent to the frame's delivery, in nanoseconds.
    pub delay_ns: u64,
    /// Frames held back on the way.
    pub reorder: Reorder,
    /// What losses and reordering are drawn from.
    pub seed: u64,
    /// Round-trip messages to be stamped.
    pub observe: Option<Observe>,
    /// The core the cable runs on.
    pub core: Option<usize>,
}

impl Default for Config {
    /// 40 Mbit/s, which one core carries with room beside the flood, and 64 frames: a transmit
    /// ring as small network controllers have it.
    fn default() -> Self {
        Config {
            bits_per_s: 40_000_000,
            queue_frames: 64,
            arbiter: Arbiter::default(),
            steer: false,
            loss: Loss::default(),
            delay_ns: 0,
            reorder: Reorder::default(),
            seed: 1,
            observe: None,
            core: None,
        }
    }
}

/// A configuration no cable can have.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Nothing would ever arrive.
    #[error("a cable of 0 bits per second carries nothing")]
    NoRate,
    /// Outside of what is reserved for.
    #[error("a queue of {frames} frames is not between 1 and {most}, the most with this arbiter")]
    QueueLength {
        /// As configured.
        frames: u32,
        /// The bound.
        most: u32,
    },
    /// Not a probability.
    #[error("{value} is not a probability between 0 and 1")]
    Probability {
        /// As configured.
        value: f64,
    },
    /// More frames could be on the way than memory is reserved for.
    #[error(
        "at {bits_per_s} bit/s more than {MAX_IN_FLIGHT} frames could be on the way during \
         {journey_ns} ns: shorten the delay or lower the rate"
    )]
    DelayTooLong {
        /// Delay and extra delay together.
        journey_ns: u64,
        /// The rate.
        bits_per_s: u64,
    },
    /// More stamps than memory is reserved for.
    #[error("{samples} samples are more than can be stamped")]
    TooManySamples {
        /// As configured.
        samples: u32,
    },
}

impl Config {
    /// Whether there can be a cable like this.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.bits_per_s == 0 {
            return Err(ConfigError::NoRate);
        }
        let most = MAX_QUEUE_FRAMES / self.arbiter.queues() as u32;
        if !(1..=most).contains(&self.queue_frames) {
            return Err(ConfigError::QueueLength {
                frames: self.queue_frames,
                most,
            });
        }
        for value in [self.loss.probability, self.reorder.probability] {
            if !(0.0..=1.0).contains(&value) {
                return Err(ConfigError::Probability { value });
            }
        }
        if link::max_in_flight(self) > MAX_IN_FLIGHT {
            return Err(ConfigError::DelayTooLong {
                journey_ns: self.delay_ns.saturating_add(self.reorder.extra_delay_ns),
                bits_per_s: self.bits_per_s,
            });
        }
        Ok(())
    }
}

/// Why the cable does not run.
#[derive(Debug, thiserror::Error)]
pub enum CableError {
    /// See there.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Packet sockets need a right, and the devices of a testbed.
    #[error("cannot open the cable's end {interface}: {reason}")]
    Open {
        /// The device.
        interface: &'static str,
        /// What the kernel said and what to do.
        reason: String,
    },
    /// A device vanished, or the kernel ran out of memory.
    #[error("the cable cannot receive: {0}")]
    Receive(#[source] io::Error),
    /// As above.
    #[error("the cable cannot wait: {0}")]
    Wait(#[source] io::Error),
}

impl CableError {
    fn open(interface: &'static str, source: io::Error) -> CableError {
        let reason = match source.kind() {
            io::ErrorKind::PermissionDenied => {
                "not permitted, packet sockets need CAP_NET_RAW. Run as root".to_owned()
            }
            _ => source.to_string(),
        };
        CableError::Open { interface, reason }
    }

    fn outlet(interface: &'static str, error: outlet::OutletError) -> CableError {
        match error {
            outlet::OutletError::Packet(source) => CableError::open(interface, source),
            outlet::OutletError::Queues(error) => CableError::Open {
                interface,
                reason: error.to_string(),
            },
        }
    }
}

/// What one direction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Where each frame went.
    pub frames: Ledger,
    /// Frames the kernel dropped before the cable could read them. With any of these, the run is
    /// no result: they were dropped by no rule of the cable.
    pub ingress_drops: u64,
    /// Frames that left by each queue, if the cable steers: together those that were sent.
    pub sent_on_queue: Option<[u64; 2]>,
}

/// What the cable did, both ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// From host A to host B.
    pub a_to_b: DirectionReport,
    /// From host B to host A.
    pub b_to_a: DirectionReport,
    /// How late the cable was at most in letting a frame go, in microseconds.
    pub late_max_us: f64,
    /// When round-trip messages passed, if that was asked for.
    pub passages: Option<RoundPassages>,
    /// What the machine did not allow.
    pub notes: Vec<Note>,
}

/// The stamps of both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundPassages {
    /// Pings.
    pub a_to_b: Passages,
    /// Pongs.
    pub b_to_a: Passages,
}

impl RoundPassages {
    /// How long the round of that id was in the cable, both ways together.
    pub fn duration_ns(&self, id: u32) -> Option<u64> {
        Some(self.a_to_b.duration_ns(id)? + self.b_to_a.duration_ns(id)?)
    }
}

impl From<(Passages, Passages)> for RoundPassages {
    fn from((a_to_b, b_to_a): (Passages, Passages)) -> Self {
        RoundPassages { a_to_b, b_to_a }
    }
}

/// Why a cable's report is no part of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Frames are missing or were made up.
    #[error("the cable's ledger is off by {frames} frames")]
    Imbalance {
        /// Arrived minus accounted for.
        frames: i64,
    },
    /// The machine was too slow for this cable and its load.
    #[error("the kernel dropped {frames} frames before the cable: lower the rate or the load")]
    IngressDrops {
        /// Both directions.
        frames: u64,
    },
}

impl Report {
    /// Frames dropped before the cable, both ways.
    pub fn ingress_drops(&self) -> u64 {
        self.a_to_b.ingress_drops + self.b_to_a.ingress_drops
    }

    /// Whether the ledgers balance and nothing was dropped by no rule.
    pub fn validate(&self) -> Result<(), Invalid> {
        for direction in [self.a_to_b, self.b_to_a] {
            match direction.frames.imbalance() {
                0 => {}
                frames => return Err(Invalid::Imbalance { frames }),
            }
        }
        match self.ingress_drops() {
            0 => Ok(()),
            frames => Err(Invalid::IngressDrops { frames }),
        }
    }
}

/// Runs the cable in the calling process and network namespace until `stop`; `ready` is told, with
/// what the machine did not allow, when frames are being taken.
pub fn run(
    config: &Config,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<Report, CableError> {
    let mut relay = Relay::open(config)?;
    ready(relay.take_priority(config.core));
    relay.run(stop)
}

/// A running cable, as its parent sees it. Dropped, it is killed and leaves no report.
#[derive(Debug)]
pub struct Cable(Running);

impl Cable {
    /// Starts it as a child process and waits until it takes frames.
    pub fn start(
        testbed: &Testbed,
        program: &Program,
        config: &Config,
    ) -> Result<Cable, ChildError> {
        let role = Role::Cable(config.clone());
        Running::start(testbed, Place::Cable, program, &role).map(Cable)
    }

    /// What the machine did not allow.
    pub fn notes(&self) -> &[Note] {
        self.0.notes()
    }

    /// The process.
    pub fn process_id(&self) -> u32 {
        self.0.process_id()
    }

    /// Stops it and takes its report. Stop what sends first, or frames are left in the queue.
    pub fn finish(self) -> Result<Report, ChildError> {
        self.0.finish()
    }
}
