//! Paced sending in quanta of a millisecond. The number of due datagrams follows from the elapsed time, so one system
//! call sends many and late quanta do not lower the rate.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

use crate::clock::{NANOS_PER_SECOND, now_ns, timespec};
use crate::limits::FLOOD_CATCH_UP_NS;
use crate::stop::Stop;

/// Interval between sends, in nanoseconds.
const QUANTUM_NS: u64 = 1_000_000;

/// Number of due datagrams as a function of elapsed time.
#[derive(Debug)]
struct Due {
    per_s: f64,
    /// Datagrams already sent or given up.
    handled: u64,
    missed: u64,
}

impl Due {
    fn new(per_s: f64) -> Due {
        Due {
            per_s,
            handled: 0,
            missed: 0,
        }
    }

    /// Number of datagrams to send at `elapsed_ns`. Counts datagrams too old to catch up as missed.
    fn at(&mut self, elapsed_ns: u64) -> u64 {
        let datagrams =
            |time_ns: u64| (time_ns as f64 * self.per_s / NANOS_PER_SECOND as f64) as u64;
        let behind = datagrams(elapsed_ns).saturating_sub(self.handled);
        let most = datagrams(FLOOD_CATCH_UP_NS).max(1);
        let missed = behind.saturating_sub(most);
        self.missed += missed;
        self.handled += behind;
        behind - missed
    }
}

/// Counts of a paced sender. Every due datagram was sent, refused or missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paced {
    /// Datagrams the kernel accepted.
    pub(crate) sent: u64,
    /// Datagrams the kernel did not accept.
    pub(crate) refused: u64,
    /// Datagrams given up because the sender was delayed too long to catch up.
    pub(crate) missed: u64,
    /// Nanoseconds from the first quantum to the last.
    pub(crate) elapsed_ns: u64,
}

/// Calls `send` with the number of due datagrams until `stop` or the end of `seconds`. `send` returns how many the
/// kernel accepted.
pub(crate) fn send_paced(
    per_s: f64,
    seconds: u32,
    stop: &Stop,
    mut send: impl FnMut(u64) -> u64,
) -> std::io::Result<Paced> {
    let mut paced = Paced::default();
    let mut due = Due::new(per_s);
    let start_ns = now_ns();
    let end_ns = start_ns + u64::from(seconds) * NANOS_PER_SECOND;
    let mut quantum_ns = start_ns;
    loop {
        let datagrams = due.at(now_ns() - start_ns);
        let sent = send(datagrams);
        paced.sent += sent;
        paced.refused += datagrams - sent;
        let now = now_ns();
        // A missed quantum is not repeated: the next one includes its datagrams.
        quantum_ns = (quantum_ns + QUANTUM_NS).max(now);
        if quantum_ns >= end_ns || stopped_before(stop, quantum_ns - now)? {
            paced.elapsed_ns = now - start_ns;
            paced.missed = due.missed;
            return Ok(paced);
        }
    }
}

/// Waits for `wait_ns` or the stop; returns whether the stop came.
fn stopped_before(stop: &Stop, wait_ns: u64) -> std::io::Result<bool> {
    let mut source = [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
    match poll(&mut source, Some(&timespec(wait_ns))) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_holds_the_rate_over_uneven_quanta() {
        let mut due = Due::new(4587.2);
        let mut sent = 0;
        for elapsed_ns in [
            0,
            1_000_000,
            1_100_000,
            8_000_000,
            20_000_000,
            1_000_000_000,
        ] {
            // Looks every 5 ms, so that nothing is given up.
            let mut at = 0;
            while at < elapsed_ns {
                at = (at + 5_000_000).min(elapsed_ns);
                sent += due.at(at);
            }
        }
        assert_eq!((sent, due.missed), (4587, 0));
    }

    #[test]
    fn a_sender_held_up_gives_up_what_would_be_a_burst() {
        let mut due = Due::new(1000.0);
        assert_eq!(due.at(500_000_000), 20);
        assert_eq!(due.missed, 480);
        assert_eq!(due.at(501_000_000), 1);
    }

    #[test]
    fn every_due_datagram_was_sent_refused_or_missed() {
        let (stop, stopper) = Stop::pair().unwrap();
        let mut calls = 0;
        let mut stopper = Some(stopper);
        let paced = send_paced(10_000.0, 60, &stop, |due| {
            calls += 1;
            if calls == 5 {
                drop(stopper.take());
            }
            due / 2
        });
        let paced = paced.unwrap();
        let due = paced.sent + paced.refused + paced.missed;
        let by_time = paced.elapsed_ns as f64 / 1e9 * 10_000.0;
        assert!(due as f64 <= by_time, "{paced:?}");
        assert!(paced.sent <= paced.refused);
        assert_eq!(calls, 5);
    }
}
