//! Emulated cable between the two test hosts, with a rate, a queue, an arbiter and losses.
//!
//! Frames of sockets, AF_XDP lanes, ARP and multicast get the same treatment:
//!
//! ```text
//!   host's veth -> packet socket -> queue -> arbiter -> wire (rate) -> packet socket -> veth
//!                  (ingress drops)  (queue drops)       (losses)
//! ```
//!
//! The cable is a pinned process with a higher priority than the hosts; [`Cable`] is the parent's handle. Tests may run
//! the cable on a thread ([`Relay`]). The cable changes a frame only to complete an offloaded checksum.
//!
//! A steering cable emulates a network controller with a separate queue for critical frames: it transmits through
//! AF_XDP sockets, each class on its queue, instead of the packet socket.

mod frame;
mod link;
mod relay;

use std::io;

use serde::{Deserialize, Serialize};

use crate::child::{ChildError, Program, Role, Running};
use crate::limits::MAX_QUEUE_FRAMES;
use crate::namespace::{Place, TestHosts};
use crate::process::Note;
use crate::stop::Stop;

pub use frame::{Observe, Passages};
pub(crate) use link::mix;
pub use link::{Arbiter, FRAME_OVERHEAD_BYTES, Loss, MIN_FRAME_BYTES, wire_bytes, wire_time_ns};
pub use relay::Relay;

/// Configuration of the cable, equal for both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Rate of each direction in bits per second. A frame occupies the wire for the time of [`wire_bytes`] at this
    /// rate.
    pub bits_per_s: u64,
    /// Queue length of each direction in frames, per class under `strict`. A full queue drops the arriving frame.
    pub queue_frames: u32,
    /// Arbiter that selects the next waiting frame.
    pub arbiter: Arbiter,
    /// True when the class of a frame determines the device queue on which the cable sends it and the host receives it:
    /// queue 0 for the highest class, queue 1 for all others. Otherwise the kernel chooses the queue.
    pub steer: bool,
    /// Frame loss.
    pub loss: Loss,
    /// Seed of losses.
    pub seed: u64,
    /// Round-trip messages to timestamp.
    pub observe: Option<Observe>,
    /// CPU core of the cable.
    pub core: Option<usize>,
}

impl Default for Config {
    /// 40 Mbit/s, a rate that one core can relay while it also sends the flood. 64 frames, as in the transmit ring of a
    /// small network controller.
    fn default() -> Self {
        Config {
            bits_per_s: 40_000_000,
            queue_frames: 64,
            arbiter: Arbiter::default(),
            steer: false,
            loss: Loss::default(),
            seed: 1,
            observe: None,
            core: None,
        }
    }
}

/// Invalid cable configurations.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The rate is zero.
    #[error("a cable of 0 bits per second carries nothing")]
    NoRate,
    /// The queue length is outside its bounds.
    #[error("a queue of {frames} frames is not between 1 and {most}, the most with this arbiter")]
    QueueLength {
        /// Configured queue length.
        frames: u32,
        /// Upper bound.
        most: u32,
    },
    /// This probability is outside 0 to 1.
    #[error("{0} is not a probability between 0 and 1")]
    Probability(f64),
    /// This number of samples exceeds the reserved timestamps.
    #[error("{0} samples are more than can be stamped")]
    TooManySamples(u32),
}

impl Config {
    /// Checks the configuration against its bounds.
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
        match self.loss.probability {
            share if (0.0..=1.0).contains(&share) => Ok(()),
            share => Err(ConfigError::Probability(share)),
        }
    }
}

/// Reasons why the cable cannot run.
#[derive(Debug, thiserror::Error)]
pub enum CableError {
    /// Invalid configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A device could not be opened. Packet sockets need CAP_NET_RAW and a testbed's devices.
    #[error("cannot open the cable's end {interface}: {reason}")]
    Open {
        /// Device name.
        interface: &'static str,
        /// The kernel's reason, and a remedy.
        reason: String,
    },
    /// Receiving failed: the device vanished, or the kernel ran out of memory.
    #[error("the cable cannot receive: {0}")]
    Receive(#[source] io::Error),
    /// Polling failed, for the same reasons.
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
}

/// Counts of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Frame ledger.
    pub frames: Ledger,
    /// Frames the kernel dropped before the cable could read them. Any such drop invalidates the run, because no rule
    /// of the cable caused it.
    pub ingress_drops: u64,
    /// Frames transmitted on each queue by a steering cable; their sum is the frames sent.
    pub sent_on_queue: Option<[u64; 2]>,
}

/// Report of both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Direction from host A to host B.
    pub a_to_b: DirectionReport,
    /// Direction from host B to host A.
    pub b_to_a: DirectionReport,
    /// Maximum lateness of a departure, in microseconds.
    pub late_max_us: f64,
    /// Timestamps of round-trip messages, if configured.
    pub passages: Option<RoundPassages>,
    /// Steps the machine did not allow.
    pub notes: Vec<Note>,
}

/// Timestamps of both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundPassages {
    /// Timestamps of pings.
    pub a_to_b: Passages,
    /// Timestamps of pongs.
    pub b_to_a: Passages,
}

/// Reasons why a report is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The ledger of a direction does not balance: arrived frames minus accounted frames.
    #[error("the cable's ledger is off by {0} frames")]
    Imbalance(i64),
    /// The machine was too slow for the cable and its load: drops of both directions.
    #[error("the kernel dropped {0} frames before the cable: lower the rate or the load")]
    IngressDrops(u64),
}

impl Report {
    /// Frames dropped before the cable read them, both directions together.
    pub fn ingress_drops(&self) -> u64 {
        self.a_to_b.ingress_drops + self.b_to_a.ingress_drops
    }

    /// Checks that the ledgers balance and that there are no ingress drops.
    pub fn validate(&self) -> Result<(), Invalid> {
        for direction in [self.a_to_b, self.b_to_a] {
            match direction.frames.imbalance() {
                0 => {}
                frames => return Err(Invalid::Imbalance(frames)),
            }
        }
        match self.ingress_drops() {
            0 => Ok(()),
            frames => Err(Invalid::IngressDrops(frames)),
        }
    }
}

/// Runs the cable in the calling process and network namespace until `stop`. Calls `ready` with the notes of the start
/// once frames are relayed.
pub fn run(
    config: &Config,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<Report, CableError> {
    let mut relay = Relay::open(config)?;
    ready(relay.take_priority(config.core));
    relay.run(stop)
}

/// Parent's handle of a running cable. Dropping it kills the cable without a report.
#[derive(Debug)]
pub struct Cable(Running);

impl Cable {
    /// Starts the cable as a child process and waits until it relays frames.
    pub fn start(
        testbed: &TestHosts,
        program: &Program,
        config: &Config,
    ) -> Result<Cable, ChildError> {
        let role = Role::Cable(config.clone());
        Running::start(testbed, Place::Cable, program, &role).map(Cable)
    }

    /// Steps the machine did not allow.
    pub fn notes(&self) -> &[Note] {
        self.0.notes()
    }

    /// Process id of the cable.
    pub fn process_id(&self) -> u32 {
        self.0.process_id()
    }

    /// Stops the cable and returns its report. Stop the senders first, or frames remain in the queue.
    pub fn finish(self) -> Result<Report, ChildError> {
        self.0.finish()
    }
}

/// Frame counts of one direction. `arrived` counts all frames; each is in exactly one of the other counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Frames read from the sending host.
    pub arrived: u64,
    /// Frames handed to the receiving host.
    pub sent: u64,
    /// Frames dropped because the queue was full.
    pub dropped_queue: u64,
    /// Frames dropped by the seeded loss.
    pub dropped_loss: u64,
    /// Frames dropped because they exceed the link's MTU or hold several segments (segmentation offload).
    pub dropped_oversize: u64,
    /// Frames the kernel refused on delivery.
    pub refused: u64,
    /// Frames queued or on the wire at the time of the report.
    pub queued: u64,
}

impl Ledger {
    /// `arrived` minus all accounted frames; 0 when the ledger balances.
    pub fn imbalance(&self) -> i64 {
        let accounted = self.sent
            + self.dropped_queue
            + self.dropped_loss
            + self.dropped_oversize
            + self.refused
            + self.queued;
        self.arrived as i64 - accounted as i64
    }
}
