//! Rounds of the ping-pong, and the wait modes of an end.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::end::End;

/// Time after which a round counts as lost.
const LOST_AFTER: Duration = Duration::from_millis(500);
/// Polls of the ring between two reads of the clock.
const LOOKS_A_CLOCK: u32 = 1_024;
/// Longest sleep of an end before it checks for the stop flag.
const SLEEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Wait mode of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Sleeps in poll(2).
    Sleep,
    /// Polls the ring.
    Spin,
    /// Polls the ring and drives the device's receive processing.
    BusyPoll,
}

impl Waiting {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Waiting::Sleep => "sleep",
            Waiting::Spin => "spin",
            Waiting::BusyPoll => "busy-poll",
        }
    }

    /// Waits until `attempt` returns a value, `stop` is set, or the round counts as lost.
    fn until<T>(
        self,
        end: &mut End,
        stop: &AtomicBool,
        mut attempt: impl FnMut(&mut End) -> Option<T>,
    ) -> Option<T> {
        let mut begin = None;
        loop {
            for _ in 0..LOOKS_A_CLOCK {
                if let Some(found) = attempt(end) {
                    return Some(found);
                }
                match self {
                    Waiting::Sleep => {
                        let mut source = [PollFd::new(&end.receive, PollFlags::IN)];
                        // Interrupted or timed out: the next attempt shows it.
                        if !matches!(poll(&mut source, Some(&SLEEP)), Ok(1..)) {
                            break;
                        }
                    }
                    Waiting::Spin => spin_loop(),
                    // If the interface is gone, the round times out.
                    Waiting::BusyPoll => drop(end.receive.poll_device()),
                }
            }
            let begin = *begin.get_or_insert_with(Instant::now);
            if stop.load(Ordering::Relaxed) || begin.elapsed() > LOST_AFTER {
                return None;
            }
        }
    }
}

/// Round-trip times in nanoseconds, in the order of rounds, without lost ones.
pub(crate) type Times = Vec<u64>;

/// Sends frames, each after the previous one came back or was lost.
pub(crate) fn ping(end: &mut End, rounds: u32, waiting: Waiting) -> Times {
    let never = AtomicBool::new(false);
    let mut times = Times::with_capacity(rounds as usize);
    for round in 0..rounds {
        let begin = Instant::now();
        if !end.send(round) {
            continue;
        }
        // A late frame of an earlier round is not the answer.
        let answer = |end: &mut End| end.take().filter(|&number| number == round);
        if waiting.until(end, &never, answer).is_some() {
            times.push(begin.elapsed().as_nanos() as u64);
        }
    }
    times
}

/// Sends received frames back until `stop` is set.
pub(crate) fn pong(end: &mut End, waiting: Waiting, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        waiting.until(end, stop, End::resend);
    }
}

/// Runs both ends in turn on this thread. Neither waits, so the instructions of a round can be counted.
#[inline(never)]
pub(crate) fn in_turn(here: &mut End, there: &mut End, rounds: u32) -> Times {
    let never = AtomicBool::new(false);
    let mut times = Times::with_capacity(rounds as usize);
    for round in 0..rounds {
        let begin = Instant::now();
        if !here.send(round) {
            continue;
        }
        let answer = |end: &mut End| end.take().filter(|&number| number == round);
        let is_back = Waiting::Spin.until(there, &never, End::resend).is_some()
            && Waiting::Spin.until(here, &never, answer).is_some();
        if is_back {
            times.push(begin.elapsed().as_nanos() as u64);
        }
    }
    times
}
