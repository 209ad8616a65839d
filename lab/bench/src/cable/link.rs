//! Model of one direction of the cable: frames and time go in, frames come out.
//!
//! A frame waits in a queue until the arbiter picks it, occupies the wire for its transmission time, and is delivered or
//! lost. A lost frame has used the wire as well. No clock or socket is read here, so tests
//! run rates, losses and ledgers in virtual time.
//!
//! A late call neither slows the link nor changes a decision. Frames are offered in order with their arrival times, and
//! the link is advanced to each arrival time. The next transmission starts when the wire became free, even if that time
//! is past. The link records how late it was advanced.
//!
//! The transmit arbiter selects the next waiting frame for the wire, as a NIC's transmit side does.
//! `fifo` has one queue for all frames. `strict` has one queue for each of the eight classes, each as long as the
//! single FIFO queue. The bound is per class: bulk fills its own queue, loses its own frames, and never evicts a
//! critical one. A frame on the wire is never pre-empted, so a critical frame whose queue is empty waits for at most
//! one other frame.
//!
//! The only fault is seeded frame loss. Each frame's fate is drawn on arrival from its sequence number, never from the time. The same seed and frame
//! sequence give the same losses, however busy the machine is.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{Config, ConfigError, Ledger};
use crate::clock::NANOS_PER_SECOND;

/// Wire overhead of a frame, in bytes, beyond what a packet socket shows: preamble and start delimiter (8), frame check
/// sequence (4), inter-frame gap (12) (IEEE 802.3).
pub const FRAME_OVERHEAD_BYTES: u64 = 24;
/// Minimum frame length in bytes without the frame check sequence; the sender's MAC pads shorter frames.
pub const MIN_FRAME_BYTES: u64 = 60;

/// Length on the wire, in bytes, of a frame that a packet socket shows as `frame_bytes` long.
pub const fn wire_bytes(frame_bytes: u64) -> u64 {
    let padded = if frame_bytes < MIN_FRAME_BYTES {
        MIN_FRAME_BYTES
    } else {
        frame_bytes
    };
    padded + FRAME_OVERHEAD_BYTES
}

/// Transmission time of `frame_bytes` at `bits_per_s`, in nanoseconds, rounded up.
pub const fn wire_time_ns(frame_bytes: u64, bits_per_s: u64) -> u64 {
    (wire_bytes(frame_bytes) * 8 * NANOS_PER_SECOND).div_ceil(bits_per_s)
}

/// An arriving frame with its properties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<F> {
    pub(super) at_ns: u64,
    /// Frame length without the frame check sequence.
    pub(super) bytes: u64,
    /// Traffic class, 0 (least urgent) to 7.
    pub(super) class: u8,
    /// UDP datagram, if the frame carries a whole one.
    pub(super) datagram: Option<Datagram>,
    pub(super) frame: F,
}

/// A frame inside the link, with its drawn fate.
#[derive(Debug)]
struct Entry<F> {
    frame: F,
    bytes: u64,
    arrived_ns: u64,
    fate: Fate,
}

/// The frame in transmission until `until_ns`.
#[derive(Debug)]
struct OnWire<F> {
    entry: Entry<F>,
    until_ns: u64,
}

/// A frame that leaves the link.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Departure<F> {
    /// Frame for the receiving host.
    Deliver(F),
    /// Lost frame; the caller takes its memory back.
    Lost(F),
    /// Lost frame that is counted as delivered.
    Hidden(F),
}

/// One direction of the cable. `F` is the caller's frame type.
#[derive(Debug)]
pub(super) struct Link<F> {
    bits_per_s: u64,
    fates: Fates,
    waiting: Waiting<Entry<F>>,
    on_wire: Option<OnWire<F>>,
    wire_free_ns: u64,
    ledger: Ledger,
    late_max_ns: u64,
}

impl<F> Link<F> {
    /// Creates a link with all its memory reserved.
    pub(super) fn new(config: &Config, seed: u64) -> Result<Link<F>, ConfigError> {
        config.check()?;
        Ok(Link {
            bits_per_s: config.bits_per_s,
            fates: Fates::new(config.loss, seed),
            waiting: Waiting::new(config.arbiter, config.queue_frames as usize),
            on_wire: None,
            wire_free_ns: 0,
            ledger: Ledger::default(),
            late_max_ns: 0,
        })
    }

    /// Queues an arriving frame, or returns it when its queue is full. The caller first advances the link to the
    /// arrival time.
    pub(super) fn offer(&mut self, arrival: Arrival<F>) -> Result<(), F> {
        self.ledger.arrived += 1;
        let entry = Entry {
            frame: arrival.frame,
            bytes: arrival.bytes,
            arrived_ns: arrival.at_ns,
            fate: self.fates.draw(arrival.datagram),
        };
        self.waiting.push(arrival.class, entry).map_err(|entry| {
            self.ledger.dropped_queue += 1;
            entry.frame
        })?;
        self.load_wire();
        Ok(())
    }

    /// Counts an arriving frame that is too long for this link.
    pub(super) fn refuse_oversize(&mut self) {
        self.ledger.arrived += 1;
        self.ledger.dropped_oversize += 1;
    }

    /// Processes everything due by `to_ns` and passes departing frames to `depart` in order. `now_ns` is the current
    /// time, against which lateness is measured.
    pub(super) fn advance(
        &mut self,
        to_ns: u64,
        now_ns: u64,
        mut depart: impl FnMut(Departure<F>),
    ) {
        while let Some(done) = self.on_wire.take_if(|on_wire| on_wire.until_ns <= to_ns) {
            self.late_max_ns = self.late_max_ns.max(now_ns.saturating_sub(done.until_ns));
            let Entry { frame, fate, .. } = done.entry;
            let (count, departure) = match (fate.lost, fate.is_hidden) {
                (false, _) => (&mut self.ledger.sent, Departure::Deliver(frame)),
                (true, false) => (&mut self.ledger.dropped_loss, Departure::Lost(frame)),
                (true, true) => (&mut self.ledger.sent, Departure::Hidden(frame)),
            };
            *count += 1;
            depart(departure);
            self.load_wire();
        }
    }

    /// Returns whether an arriving frame has to wait. If so, the caller need not read arrivals before
    /// [`Link::next_time_ns`].
    pub(super) fn is_busy(&self) -> bool {
        self.on_wire.is_some()
    }

    /// Time of the next event for [`Link::advance`], if nothing arrives.
    pub(super) fn next_time_ns(&self) -> Option<u64> {
        self.on_wire.as_ref().map(|on_wire| on_wire.until_ns)
    }

    /// Counts `frames` departed frames as refused by the kernel instead of sent.
    pub(super) fn note_refused(&mut self, frames: u64) {
        self.ledger.sent -= frames;
        self.ledger.refused += frames;
    }

    pub(super) fn ledger(&self) -> Ledger {
        let inside = self.waiting.len() + usize::from(self.on_wire.is_some());
        Ledger {
            queued: inside as u64,
            ..self.ledger
        }
    }

    /// Longest delay between a frame's due time and the call that processed it.
    pub(super) fn late_max_ns(&self) -> u64 {
        self.late_max_ns
    }

    /// Starts transmission of the next waiting frame, if the wire is free.
    fn load_wire(&mut self) {
        if self.on_wire.is_some() {
            return;
        }
        let Some(entry) = self.waiting.pop() else {
            return;
        };
        let start_ns = self.wire_free_ns.max(entry.arrived_ns);
        let until_ns = start_ns + wire_time_ns(entry.bytes, self.bits_per_s);
        self.wire_free_ns = until_ns;
        self.on_wire = Some(OnWire { entry, until_ns });
    }
}

/// Number of frame classes: 0 (least urgent) to 7.
pub(super) const CLASSES: usize = 8;

/// Order in which waiting frames get the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Arbiter {
    /// Order of arrival, whatever the class.
    #[default]
    Fifo,
    /// Most urgent class first, in order of arrival within a class. The class is the PCP of a tagged frame, else the
    /// class selector of its DSCP, else 0.
    Strict,
}

impl Arbiter {
    /// Number of queues, each of the configured length.
    pub(crate) const fn queues(self) -> usize {
        match self {
            Arbiter::Fifo => 1,
            Arbiter::Strict => CLASSES,
        }
    }
}

/// Frames waiting for the wire, bounded by the reserved capacity.
#[derive(Debug)]
pub(super) struct Waiting<F> {
    /// Queues by class, the least urgent first.
    queues: Vec<VecDeque<F>>,
    /// Capacity of each queue, in frames.
    capacity: usize,
}

impl<F> Waiting<F> {
    pub(super) fn new(arbiter: Arbiter, capacity: usize) -> Waiting<F> {
        let queue = |_| VecDeque::with_capacity(capacity);
        Waiting {
            queues: (0..arbiter.queues()).map(queue).collect(),
            capacity,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Queues a frame of `class`, or returns it when its queue is full (drop-tail).
    pub(super) fn push(&mut self, class: u8, frame: F) -> Result<(), F> {
        // A single queue takes every class; classes beyond the last queue use the last.
        let last = self.queues.len() - 1;
        let queue = &mut self.queues[usize::from(class).min(last)];
        if queue.len() == self.capacity {
            return Err(frame);
        }
        queue.push_back(frame);
        Ok(())
    }

    /// Removes the next frame for the wire.
    pub(super) fn pop(&mut self) -> Option<F> {
        self.queues.iter_mut().rev().find_map(VecDeque::pop_front)
    }
}

/// Configuration of frame loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Loss {
    /// Share of frames lost, 0 to 1.
    pub probability: f64,
    /// UDP destination port that loss is limited to. Frames to other ports draw no random number.
    pub udp_port: Option<u16>,
    /// Minimum UDP payload, in bytes, of the datagrams that loss is limited to. It separates a topic of large samples
    /// from one of small samples on the same port, and spares ACKNACK and HEARTBEAT messages.
    pub min_payload_bytes: Option<u32>,
    /// True when lost frames are counted as delivered, so that these drops are unaccounted. Only tests of the ledger
    /// checks set it.
    pub is_hidden: bool,
}

impl Loss {
    /// Returns whether a frame is subject to loss, given its UDP datagram if it carries a whole one.
    fn reaches(&self, datagram: Option<Datagram>) -> bool {
        let of_port = |port| datagram.is_some_and(|datagram| datagram.port == port);
        let of_size = |least| datagram.is_some_and(|datagram| datagram.payload_bytes >= least);
        self.udp_port.is_none_or(of_port) && self.min_payload_bytes.is_none_or(of_size)
    }
}

/// Properties of a UDP datagram that decide whether loss applies to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) port: u16,
    pub(super) payload_bytes: u32,
}

/// Fault decision for one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) lost: bool,
    /// True when a lost frame is counted as delivered.
    pub(super) is_hidden: bool,
}

/// Fault generator, drawn from in order of frame arrival.
#[derive(Debug)]
pub(super) struct Fates {
    loss: Loss,
    losses: Generator,
}

impl Fates {
    pub(super) fn new(loss: Loss, seed: u64) -> Fates {
        Fates {
            loss,
            losses: Generator(seed),
        }
    }

    /// Draws the fate of the next frame, given its UDP datagram if it carries a whole one.
    pub(super) fn draw(&mut self, datagram: Option<Datagram>) -> Fate {
        let is_exposed = self.loss.reaches(datagram);
        Fate {
            lost: is_exposed && self.losses.happens(self.loss.probability),
            is_hidden: self.loss.is_hidden,
        }
    }
}

/// SplitMix64 pseudo-random generator (Steele, Lea, Flood 2014).
#[derive(Debug)]
struct Generator(u64);

impl Generator {
    fn happens(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        // An f64 holds 53 bits exactly.
        let drawn = (mix(self.0) >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < probability
    }
}

/// SplitMix64's finaliser: every bit of the result depends on every bit of the argument.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests;
