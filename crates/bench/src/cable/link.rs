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
use super::fault::{Fate, Fates};
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
    lost: bool,
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

    /// A frame has arrived. Gives it back when the queue is full. Advance the link to the time of
    /// arrival first.
    pub(super) fn offer(
        &mut self,
        arrived_ns: u64,
        frame: F,
        bytes: u64,
        udp_port: Option<u16>,
    ) -> Result<(), F> {
        self.ledger.arrived += 1;
        let entry = Entry {
            frame,
            bytes,
            arrived_ns,
            fate: self.fates.draw(udp_port),
        };
        self.waiting.push(entry).map_err(|entry| {
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
                lost: done.entry.fate.lost,
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
            if first.lost {
                self.ledger.dropped_loss += 1;
                depart(Departure::Lost(first.frame));
            } else {
                self.ledger.sent += 1;
                depart(Departure::Deliver(first.frame));
            }
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
mod tests {
    use super::*;
    use crate::cable::{Loss, Reorder};
    use proptest::prelude::*;

    const MEGABIT: u64 = 1_000_000;

    fn config() -> Config {
        Config {
            bits_per_s: 40 * MEGABIT,
            queue_frames: 4,
            ..Config::default()
        }
    }

    /// Advances to `now_ns` and returns the numbers of the frames delivered.
    fn delivered(link: &mut Link<u32>, now_ns: u64) -> Vec<u32> {
        let mut out = Vec::new();
        link.advance(now_ns, now_ns, |departure| {
            if let Departure::Deliver(frame) = departure {
                out.push(frame);
            }
        });
        out
    }

    #[test]
    fn a_full_frame_takes_its_bits_and_overhead() {
        // 1024 bytes of UDP payload: a frame of 1066 bytes, 1090 on the wire.
        assert_eq!(wire_bytes(1066), 1090);
        assert_eq!(wire_time_ns(1066, 40 * MEGABIT), 218_000);
        // The shortest frame: 672 bit times, as for every Ethernet.
        assert_eq!(wire_time_ns(42, 1_000 * MEGABIT), 672);
    }

    #[test]
    fn a_frame_leaves_when_its_last_bit_does() {
        let mut link = Link::new(&config(), 1).unwrap();
        link.offer(1_000, 1, 1066, None).unwrap();
        assert_eq!(link.next_time_ns(), Some(219_000));
        assert!(delivered(&mut link, 218_999).is_empty());
        assert_eq!(delivered(&mut link, 219_000), [1]);
        assert_eq!(link.next_time_ns(), None);
    }

    #[test]
    fn looking_late_does_not_slow_the_wire_and_is_recorded() {
        let mut link = Link::new(&config(), 1).unwrap();
        for frame in 0..3 {
            link.offer(0, frame, 1066, None).unwrap();
        }
        assert_eq!(delivered(&mut link, 2 * 218_000 + 100_000), [0, 1]);
        assert_eq!(link.next_time_ns(), Some(3 * 218_000));
        assert_eq!(link.late_max_ns(), 218_000 + 100_000);
    }

    #[test]
    fn a_full_queue_drops_the_newest_and_counts_it() {
        let mut link = Link::new(&config(), 1).unwrap();
        // One on the wire, four waiting.
        for frame in 0..5 {
            link.offer(0, frame, 1066, None).unwrap();
        }
        assert_eq!(link.offer(0, 5, 1066, None), Err(5));
        let ledger = link.ledger();
        assert_eq!(
            (ledger.arrived, ledger.dropped_queue, ledger.queued),
            (6, 1, 5)
        );
        assert_eq!(ledger.imbalance(), 0);
        assert_eq!(delivered(&mut link, 5 * 218_000), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn reading_arrivals_late_changes_nothing_but_the_lateness() {
        let arrivals: Vec<u64> = (0..60).map(|number| number * number * 5_000).collect();
        let run = |held_up_ns: u64| {
            let mut link = Link::new(&config(), 1).unwrap();
            let mut out = Vec::new();
            let mut collect = |departure| out.push(departure);
            for (number, &arrived_ns) in arrivals.iter().enumerate() {
                let now_ns = arrived_ns + held_up_ns;
                link.advance(arrived_ns, now_ns, &mut collect);
                if let Err(dropped) = link.offer(arrived_ns, number, 1066, None) {
                    collect(Departure::Lost(dropped));
                }
            }
            link.advance(u64::MAX, 0, &mut collect);
            (out, link.late_max_ns())
        };
        let ((in_time, late), (held_up, later)) = (run(0), run(10_000_000));
        assert_eq!(in_time, held_up);
        let dropped = |departure: &Departure<usize>| matches!(departure, Departure::Lost(_));
        assert!(
            in_time.iter().any(dropped),
            "the queue never filled: {in_time:?}"
        );
        assert_eq!(later, late + 10_000_000);
    }

    #[test]
    fn delay_moves_arrivals_and_leaves_the_rate() {
        let config = Config {
            delay_ns: 1_000_000,
            ..config()
        };
        let mut link = Link::new(&config, 1).unwrap();
        link.offer(0, 1, 1066, None).unwrap();
        link.offer(0, 2, 1066, None).unwrap();
        assert_eq!(delivered(&mut link, 1_218_000), [1]);
        assert_eq!(delivered(&mut link, 1_436_000), [2]);
    }

    #[test]
    fn a_frame_held_back_is_overtaken_also_when_looked_at_late() {
        let config = Config {
            reorder: Reorder {
                probability: 0.5,
                extra_delay_ns: 1_000_000,
            },
            queue_frames: 64,
            ..config()
        };
        let run = |looks: &[u64]| {
            let mut link = Link::new(&config, 9).unwrap();
            for frame in 0..20 {
                link.offer(0, frame, 1066, None).unwrap();
            }
            let mut order = Vec::new();
            for &look in looks {
                order.extend(delivered(&mut link, look));
            }
            order
        };
        let steps: Vec<u64> = (0..8_000).map(|step| step * 1_000).collect();
        let order = run(&steps);
        assert_eq!(order.len(), 20);
        assert!(!order.is_sorted(), "nothing was overtaken: {order:?}");
        assert_eq!(run(&[8_000_000]), order);
    }

    #[test]
    fn a_lost_frame_used_the_wire() {
        let config = Config {
            loss: Loss {
                probability: 1.0,
                udp_port: Some(7401),
            },
            ..config()
        };
        let mut link = Link::new(&config, 1).unwrap();
        link.offer(0, 1, 1066, Some(7401)).unwrap();
        link.offer(0, 2, 1066, Some(7400)).unwrap();
        assert_eq!(delivered(&mut link, 218_000), [0; 0]);
        assert_eq!(delivered(&mut link, 2 * 218_000), [2]);
        assert_eq!(link.ledger().dropped_loss, 1);
        assert_eq!(link.ledger().imbalance(), 0);
    }

    #[test]
    fn a_delay_that_memory_could_not_hold_is_refused() {
        let config = Config {
            delay_ns: 3600 * NANOS_PER_SECOND,
            ..config()
        };
        assert!(matches!(
            Link::<u32>::new(&config, 1),
            Err(ConfigError::DelayTooLong { .. })
        ));
    }

    proptest! {
        #[test]
        fn the_ledger_balances_the_rate_holds_and_memory_stays_reserved(
            arrivals in prop::collection::vec((0_u64..400_000, 0_u64..1514), 1..300),
            probability in 0.0..1.0,
            delay_ns in 0_u64..3_000_000,
            extra_delay_ns in 0_u64..3_000_000,
            seed: u64,
        ) {
            let config = Config {
                loss: Loss { probability, udp_port: None },
                reorder: Reorder { probability: 0.2, extra_delay_ns },
                delay_ns,
                ..config()
            };
            let mut link = Link::new(&config, seed).unwrap();
            let reserved = link.travelling.capacity();
            let (mut now_ns, mut out_bits, mut out_frames) = (0, 0, 0_u64);
            for &(gap_ns, bytes) in &arrivals {
                now_ns += gap_ns;
                let _ = link.offer(now_ns, bytes, bytes, None);
                link.advance(now_ns, now_ns, |departure| {
                    out_frames += 1;
                    let (Departure::Deliver(bytes) | Departure::Lost(bytes)) = departure;
                    out_bits += wire_bytes(bytes) * 8;
                });
                prop_assert_eq!(link.ledger().imbalance(), 0);
                // Never more than the wire carries.
                prop_assert!(out_bits as u128 * 1_000_000_000 <= u128::from(now_ns) * u128::from(config.bits_per_s));
            }
            let end_ns = now_ns + 60 * NANOS_PER_SECOND;
            link.advance(end_ns, end_ns, |_| out_frames += 1);
            let ledger = link.ledger();
            prop_assert_eq!(ledger.queued, 0);
            prop_assert_eq!(ledger.imbalance(), 0);
            prop_assert_eq!(ledger.sent + ledger.dropped_loss, out_frames);
            prop_assert_eq!(link.travelling.capacity(), reserved);
        }
    }
}
