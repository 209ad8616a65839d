//! One direction of the cable as a value: frames and the time go in, frames come out.
//!
//! A frame waits in the queue until the arbiter picks it, occupies the wire for as long as its bits
//! take, travels for the delay, and is delivered, unless its fate is to be lost on the way (a lost
//! frame used the wire all the same). Nothing here reads a clock or a socket, so that rates, losses
//! and ledgers are tested in virtual time.
//!
//! Being called late does not slow the link or change what it decides: frames are offered with the
//! time they arrived at, in that order, with the link advanced to each, and the wire is taken over
//! at the moment it became free, not at the moment somebody looked. How late was looked is recorded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::arbiter::Waiting;
use super::fault::{Datagram, Fate, Fates};
use super::ledger::Ledger;
use super::{Config, ConfigError};
use crate::clock::NANOS_PER_SECOND;
use crate::limits::MAX_IN_FLIGHT;

/// Bytes each frame takes on the wire beyond what a packet socket shows of it: preamble and start
/// delimiter (8), frame check sequence (4), inter-frame gap (12) (IEEE 802.3).
pub const FRAME_OVERHEAD_BYTES: u64 = 24;
/// The shortest frame without its check sequence; shorter ones are padded by the sender's MAC.
pub const MIN_FRAME_BYTES: u64 = 60;

/// The bytes of wire time a frame takes that a packet socket shows as `frame_bytes` long.
pub const fn wire_bytes(frame_bytes: u64) -> u64 {
    let padded = if frame_bytes < MIN_FRAME_BYTES {
        MIN_FRAME_BYTES
    } else {
        frame_bytes
    };
    padded + FRAME_OVERHEAD_BYTES
}

/// How long `frame_bytes` occupy a wire of that rate, in nanoseconds, rounded up.
pub const fn wire_time_ns(frame_bytes: u64, bits_per_s: u64) -> u64 {
    (wire_bytes(frame_bytes) * 8 * NANOS_PER_SECOND).div_ceil(bits_per_s)
}

/// A frame that arrives, and what the link must know of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<F> {
    pub(super) at_ns: u64,
    /// Without its check sequence.
    pub(super) bytes: u64,
    /// 0, the least urgent, to 7.
    pub(super) class: u8,
    /// What it carries, if that is a whole UDP datagram.
    pub(super) datagram: Option<Datagram>,
    pub(super) frame: F,
}

/// A frame while it is in the link: what it is, and what was decided about it.
#[derive(Debug)]
struct Entry<F> {
    frame: F,
    bytes: u64,
    arrived_ns: u64,
    fate: Fate,
}

/// A frame on the wire: it has left it at `until_ns`.
#[derive(Debug)]
struct OnWire<F> {
    entry: Entry<F>,
    until_ns: u64,
}

/// A frame behind the wire. Ordered by the time it is due, then by the order it left the wire.
#[derive(Debug)]
struct Travelling<F> {
    due_ns: u64,
    number: u64,
    frame: F,
    fate: Fate,
}

impl<F> PartialEq for Travelling<F> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl<F> Eq for Travelling<F> {}
impl<F> PartialOrd for Travelling<F> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<F> Ord for Travelling<F> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due_ns, self.number).cmp(&(other.due_ns, other.number))
    }
}

/// What comes out of a link.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Departure<F> {
    /// To be handed to the receiving host.
    Deliver(F),
    /// Lost on the way; only its memory is to be taken back.
    Lost(F),
    /// The same, and booked as delivered.
    Hidden(F),
}

/// One direction of the cable. `F` is whatever the owner calls a frame.
#[derive(Debug)]
pub(super) struct Link<F> {
    bits_per_s: u64,
    delay_ns: u64,
    fates: Fates,
    waiting: Waiting<Entry<F>>,
    on_wire: Option<OnWire<F>>,
    wire_free_ns: u64,
    travelling: BinaryHeap<Reverse<Travelling<F>>>,
    departures: u64,
    ledger: Ledger,
    late_max_ns: u64,
}

impl<F> Link<F> {
    /// A link with all its memory reserved.
    pub(super) fn new(config: &Config, seed: u64) -> Result<Link<F>, ConfigError> {
        config.check()?;
        Ok(Link {
            bits_per_s: config.bits_per_s,
            delay_ns: config.delay_ns,
            fates: Fates::new(config.loss, config.reorder, seed),
            waiting: Waiting::new(config.arbiter, config.queue_frames as usize),
            on_wire: None,
            wire_free_ns: 0,
            travelling: BinaryHeap::with_capacity(max_in_flight(config) as usize),
            departures: 0,
            ledger: Ledger::default(),
            late_max_ns: 0,
        })
    }

    /// A frame has arrived. Gives it back when its queue is full. Advance the link to the time of
    /// arrival first.
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

    /// A frame arrives that cannot be one of this link.
    pub(super) fn refuse_oversize(&mut self) {
        self.ledger.arrived += 1;
        self.ledger.dropped_oversize += 1;
    }

    /// Moves everything that is due by `to_ns` and gives what comes out to `depart`, in the order
    /// it comes out. `now_ns` is the time it is done at, by which lateness is judged.
    pub(super) fn advance(
        &mut self,
        to_ns: u64,
        now_ns: u64,
        mut depart: impl FnMut(Departure<F>),
    ) {
        while let Some(done) = self.on_wire.take_if(|on_wire| on_wire.until_ns <= to_ns) {
            // What was due before this frame left the wire comes out before it.
            self.deliver_due(done.until_ns, now_ns, &mut depart);
            self.departures += 1;
            self.travelling.push(Reverse(Travelling {
                due_ns: done.until_ns + self.delay_ns + done.entry.fate.extra_delay_ns,
                number: self.departures,
                frame: done.entry.frame,
                fate: done.entry.fate,
            }));
            self.load_wire();
        }
        self.deliver_due(to_ns, now_ns, &mut depart);
    }

    /// Whether a frame that arrives now has to wait: then nothing is missed by not looking for
    /// arrivals before [`Link::next_time_ns`].
    pub(super) fn is_busy(&self) -> bool {
        self.on_wire.is_some()
    }

    /// When [`Link::advance`] has something to do next, if nothing arrives.
    pub(super) fn next_time_ns(&self) -> Option<u64> {
        let wire = self.on_wire.as_ref().map(|on_wire| on_wire.until_ns);
        let due = self.travelling.peek().map(|Reverse(first)| first.due_ns);
        wire.into_iter().chain(due).min()
    }

    /// Notes that the kernel refused `frames` which had departed.
    pub(super) fn note_refused(&mut self, frames: u64) {
        self.ledger.sent -= frames;
        self.ledger.refused += frames;
    }

    pub(super) fn ledger(&self) -> Ledger {
        let inside =
            self.waiting.len() + usize::from(self.on_wire.is_some()) + self.travelling.len();
        Ledger {
            queued: inside as u64,
            ..self.ledger
        }
    }

    /// The longest time between a frame being due and somebody looking.
    pub(super) fn late_max_ns(&self) -> u64 {
        self.late_max_ns
    }

    /// Puts the next waiting frame on the wire, if the wire has room.
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

    fn deliver_due(&mut self, due_ns: u64, now_ns: u64, depart: &mut impl FnMut(Departure<F>)) {
        while self
            .travelling
            .peek()
            .is_some_and(|Reverse(first)| first.due_ns <= due_ns)
        {
            let Some(Reverse(first)) = self.travelling.pop() else {
                return;
            };
            self.late_max_ns = self.late_max_ns.max(now_ns.saturating_sub(first.due_ns));
            let (count, departure) = match (first.fate.lost, first.fate.is_hidden) {
                (false, _) => (&mut self.ledger.sent, Departure::Deliver(first.frame)),
                (true, false) => (&mut self.ledger.dropped_loss, Departure::Lost(first.frame)),
                (true, true) => (&mut self.ledger.sent, Departure::Hidden(first.frame)),
            };
            *count += 1;
            depart(departure);
        }
    }
}

/// How many frames can be behind the wire at once: as many of the shortest as leave the wire during
/// the longest journey, and one that is just leaving.
pub(super) fn max_in_flight(config: &Config) -> u64 {
    let journey_ns = config
        .delay_ns
        .saturating_add(config.reorder.extra_delay_ns);
    let shortest_ns = wire_time_ns(0, config.bits_per_s).max(1);
    (journey_ns / shortest_ns)
        .saturating_add(2)
        .min(MAX_IN_FLIGHT + 1)
}

#[cfg(test)]
mod tests;
