//! Model of one direction of the cable: frames and time go in, frames come out.
//!
//! A frame waits in a queue until the arbiter picks it, occupies the wire for its transmission time, travels for the
//! delay, and is delivered or lost. A lost frame has used the wire as well. No clock or socket is read here, so tests
//! run rates, losses and ledgers in virtual time.
//!
//! A late call neither slows the link nor changes a decision. Frames are offered in order with their arrival times, the
//! link is advanced to each, and the wire's next transmission starts when the wire became free. The link records how
//! late it was advanced.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::arbiter::Waiting;
use super::fault::{Datagram, Fate, Fates};
use super::ledger::Ledger;
use super::{Config, ConfigError};
use crate::clock::NANOS_PER_SECOND;
use crate::limits::MAX_IN_FLIGHT;

/// Wire overhead of a frame, in bytes, beyond what a packet socket shows: preamble and start delimiter (8), frame check
/// sequence (4), inter-frame gap (12) (IEEE 802.3).
pub const FRAME_OVERHEAD_BYTES: u64 = 24;
/// Minimum frame length in bytes without the frame check sequence; the sender's MAC pads shorter frames.
pub const MIN_FRAME_BYTES: u64 = 60;

/// Bytes of wire time of a frame that a packet socket shows as `frame_bytes` long.
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

/// A frame in the delay line, ordered by due time, then by transmission order.
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
    /// Creates a link with all its memory reserved.
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
            // Frames due before this transmission ended depart first.
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

    /// Returns whether an arriving frame has to wait. While it does, the caller need not read arrivals before
    /// [`Link::next_time_ns`].
    pub(super) fn is_busy(&self) -> bool {
        self.on_wire.is_some()
    }

    /// Time of the next event for [`Link::advance`], if nothing arrives.
    pub(super) fn next_time_ns(&self) -> Option<u64> {
        let wire = self.on_wire.as_ref().map(|on_wire| on_wire.until_ns);
        let due = self.travelling.peek().map(|Reverse(first)| first.due_ns);
        wire.into_iter().chain(due).min()
    }

    /// Counts `frames` that had departed and that the kernel refused.
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

/// Maximum number of frames in the delay line: as many minimum-length frames as are transmitted during the longest
/// delay, and one that is just leaving.
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
