//! Outcome of every datagram.
//!
//! A datapath counts each datagram where its outcome is decided. At any time, each lane fulfils two equations:
//!
//! ```text
//!   receive:   arrived = received + drops by reason + pending
//!   transmit:  offered = sent + refusals by reason
//! ```
//!
//! [`Ledger::balance`] checks them. If the ledgers of both ends of a hop are known and each datagram has one receiver,
//! `sent = arrived + bounced`. *Arrived* counts the datagrams that the datapath knows to have reached the host. For
//! sockets, these are the received ones and those that the kernel reports as dropped. *Pending* datagrams wait in a
//! queue that the datapath can inspect; the queue of a kernel socket cannot be inspected.

mod counter;

use core::fmt;
use core::ops::AddAssign;

pub use self::counter::{CounterNames, Event, EventCounts, ReceiveDrop, Refusal};
use crate::lane::Lane;

/// Receive side of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveLedger {
    /// Datagrams that reached the lane.
    pub arrived: u64,
    /// Datagrams delivered.
    pub received: u64,
    /// Bytes of the delivered datagrams.
    pub received_bytes: u64,
    /// Datagrams that wait in a queue of the datapath.
    pub pending: u64,
    /// Calls that found no free receive frame. These calls lose nothing: the datagrams stay in their queue.
    pub starved: u64,
    /// Datagrams delivered without the requested arrival time, because the wall clock was stepped while they waited, or
    /// the kernel had no stamp. Included in `received`.
    pub unstamped: u64,
    /// Largest number of datagrams that one call took from a queue.
    pub largest_burst: u64,
    dropped: [u64; ReceiveDrop::COUNT],
}

impl ReceiveLedger {
    /// Datagrams dropped for a reason.
    #[must_use]
    pub const fn dropped(&self, reason: ReceiveDrop) -> u64 {
        self.dropped[reason.index()]
    }

    /// Datagrams dropped for all reasons.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Iterates over the nonzero drop counters.
    pub fn drops(&self) -> impl Iterator<Item = (ReceiveDrop, u64)> + '_ {
        let counts = ReceiveDrop::all().zip(self.dropped);
        counts.filter(|(_, count)| *count > 0)
    }

    /// Counts a delivered datagram of `bytes` bytes.
    #[inline]
    pub fn note_received(&mut self, bytes: usize) {
        self.note_received_all(1, bytes);
    }

    /// Counts `count` delivered datagrams of `bytes` bytes in total.
    #[inline]
    pub fn note_received_all(&mut self, count: u64, bytes: usize) {
        self.arrived += count;
        self.received += count;
        self.received_bytes += bytes as u64;
    }

    /// Counts `count` dropped datagrams.
    #[inline]
    pub fn note_dropped(&mut self, reason: ReceiveDrop, count: u64) {
        self.arrived += count;
        self.dropped[reason.index()] += count;
    }
}

/// Transmit side of a lane, in datagrams: a frame with three destinations counts as three, a multicast message sent on
/// two interfaces as two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitLedger {
    /// Datagrams offered for sending.
    pub offered: u64,
    /// Datagrams accepted by the datapath.
    pub sent: u64,
    /// Bytes of the accepted datagrams.
    pub sent_bytes: u64,
    /// Sent datagrams reported as undeliverable by a host (ICMP). Included in `sent`.
    pub bounced: u64,
    /// Last errno counted as [`Refusal::OTHER`]; 0 if none.
    pub last_error: i32,
    refused: [u64; Refusal::COUNT],
}

impl TransmitLedger {
    /// Datagrams refused for a reason.
    #[must_use]
    pub const fn refused(&self, reason: Refusal) -> u64 {
        self.refused[reason.index()]
    }

    /// Datagrams refused for all reasons.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Iterates over the nonzero refusal counters.
    pub fn refusals(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        let counts = Refusal::all().zip(self.refused);
        counts.filter(|(_, count)| *count > 0)
    }

    /// Counts a sent datagram of `bytes` bytes.
    #[inline]
    pub fn note_sent(&mut self, bytes: usize) {
        self.note_sent_all(1, bytes);
    }

    /// Counts `count` sent datagrams of `bytes` bytes in total.
    #[inline]
    pub fn note_sent_all(&mut self, count: u64, bytes: usize) {
        self.offered += count;
        self.sent += count;
        self.sent_bytes += bytes as u64;
    }

    /// Counts `count` refused datagrams.
    #[inline]
    pub fn note_refused(&mut self, reason: Refusal, count: u64) {
        self.offered += count;
        self.refused[reason.index()] += count;
    }

    /// Moves `count` datagrams of `bytes` bytes in total from sent to refused.
    pub fn note_unsent(&mut self, reason: Refusal, count: u64, bytes: u64) {
        self.sent -= count;
        self.sent_bytes -= bytes;
        self.refused[reason.index()] += count;
    }
}

/// Both directions of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneLedger {
    /// Receive side.
    pub receive: ReceiveLedger,
    /// Transmit side.
    pub transmit: TransmitLedger,
    /// Event counters.
    pub events: EventCounts,
}

impl AddAssign<&LaneLedger> for LaneLedger {
    fn add_assign(&mut self, other: &LaneLedger) {
        let (to, from) = (&mut self.receive, &other.receive);
        to.arrived += from.arrived;
        to.received += from.received;
        to.received_bytes += from.received_bytes;
        to.pending += from.pending;
        to.starved += from.starved;
        to.unstamped += from.unstamped;
        to.largest_burst = to.largest_burst.max(from.largest_burst);
        add_each(&mut to.dropped, &from.dropped);

        let (to, from) = (&mut self.transmit, &other.transmit);
        to.offered += from.offered;
        to.sent += from.sent;
        to.sent_bytes += from.sent_bytes;
        to.bounced += from.bounced;
        if from.last_error != 0 {
            to.last_error = from.last_error;
        }
        add_each(&mut to.refused, &from.refused);
        self.events.add(&other.events);
    }
}

fn add_each(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

/// Ledger of all lanes of a datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ledger {
    lanes: [LaneLedger; Lane::COUNT],
    names: &'static CounterNames,
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger {
            lanes: [LaneLedger::default(); Lane::COUNT],
            names: CounterNames::NONE,
        }
    }
}

impl Ledger {
    /// Returns the ledger with the names of the datapath's own counters.
    #[must_use]
    pub fn with_names(mut self, names: &'static CounterNames) -> Ledger {
        self.names = names;
        self
    }

    /// Names of the counters.
    #[must_use]
    pub const fn names(&self) -> &'static CounterNames {
        self.names
    }

    /// Returns the ledger of a lane.
    #[inline]
    #[must_use]
    pub const fn lane(&self, lane: Lane) -> &LaneLedger {
        &self.lanes[lane.index()]
    }

    /// Returns the ledger of a lane, mutably.
    #[inline]
    pub fn lane_mut(&mut self, lane: Lane) -> &mut LaneLedger {
        &mut self.lanes[lane.index()]
    }

    /// Sum over all lanes.
    #[must_use]
    pub fn total(&self) -> LaneLedger {
        let mut total = LaneLedger::default();
        for lane in &self.lanes {
            total += lane;
        }
        total
    }

    /// Checks both equations of every lane.
    ///
    /// # Errors
    /// First lane and direction with unaccounted datagrams: a bug of the datapath.
    pub fn balance(&self) -> Result<(), Imbalance> {
        for lane in Lane::ALL {
            let LaneLedger {
                receive, transmit, ..
            } = self.lane(lane);
            let accounted = receive.received + receive.dropped_total() + receive.pending;
            Imbalance::check(lane, Direction::Receive, receive.arrived, accounted)?;
            let accounted = transmit.sent + transmit.refused_total();
            Imbalance::check(lane, Direction::Transmit, transmit.offered, accounted)?;
        }
        Ok(())
    }
}

/// Direction of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received by this host.
    Receive,
    /// Sent by this host.
    Transmit,
}

/// Datagrams not counted, or counted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{lane}, {direction:?}: {expected} datagrams came in, {accounted} are accounted for")]
pub struct Imbalance {
    /// Lane.
    pub lane: Lane,
    /// Direction.
    pub direction: Direction,
    /// Datagrams arrived or offered.
    pub expected: u64,
    /// Datagrams with a known outcome.
    pub accounted: u64,
}

impl Imbalance {
    fn check(
        lane: Lane,
        direction: Direction,
        expected: u64,
        accounted: u64,
    ) -> Result<(), Imbalance> {
        if expected == accounted {
            return Ok(());
        }
        Err(Imbalance {
            lane,
            direction,
            expected,
            accounted,
        })
    }
}

impl fmt::Display for Ledger {
    /// Writes a line for each active lane, with the reasons that occurred.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for lane in Lane::ALL {
            let LaneLedger {
                receive, transmit, ..
            } = self.lane(lane);
            if receive.arrived == 0 && transmit.offered == 0 {
                continue;
            }
            write!(
                f,
                "{lane}: received {} of {}",
                receive.received, receive.arrived
            )?;
            for (reason, count) in receive.drops() {
                write!(f, ", {count} {}", self.names.receive_drop(reason))?;
            }
            write!(f, "; sent {} of {}", transmit.sent, transmit.offered)?;
            for (reason, count) in transmit.refusals() {
                write!(f, ", {count} {}", self.names.refusal(reason))?;
            }
            for (place, (event, count)) in self.lane(lane).events.counted().enumerate() {
                let before = if place == 0 { "; " } else { ", " };
                write!(f, "{before}{count} {}", self.names.event(event))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_balances_while_every_datagram_is_counted_once() {
        let mut ledger = Ledger::default();
        let lane = ledger.lane_mut(Lane::Discovery);
        lane.receive.note_received(100);
        lane.receive.note_dropped(ReceiveDrop::TRUNCATED, 2);
        lane.transmit.note_sent(10);
        lane.transmit.note_refused(Refusal::WOULD_BLOCK, 3);
        assert_eq!(ledger.balance(), Ok(()));
        assert_eq!(ledger.total().receive.arrived, 3);
        assert_eq!(ledger.total().transmit.refused_total(), 3);
        assert_eq!(
            ledger.to_string(),
            "discovery: received 1 of 3, 2 truncated; sent 1 of 4, 3 would_block\n"
        );
    }

    #[test]
    fn an_imbalance_names_lane_and_direction() {
        let mut ledger = Ledger::default();
        ledger.lane_mut(Lane::ALL[8]).receive.arrived = 1;
        let error = ledger.balance().unwrap_err();
        assert_eq!(
            (error.lane, error.direction),
            (Lane::ALL[8], Direction::Receive)
        );
        assert_eq!(
            error.to_string(),
            "level 7, Receive: 1 datagrams came in, 0 are accounted for"
        );
    }
}
