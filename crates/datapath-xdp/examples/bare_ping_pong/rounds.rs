//! Rounds, and how an end waits for its turn.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::end::End;

/// A round that has not come back by then is lost.
const LOST_AFTER: Duration = Duration::from_millis(500);
/// How often a spinning thread looks at the clock, in looks at the ring.
const LOOKS_A_CLOCK: u32 = 1_024;
/// How long a sleeping end that is to stop goes on at most.
const SLEEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// What an end does until a frame arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Sleeps in poll(2).
    Sleep,
    /// Looks at the ring.
    Spin,
    /// Does the device's receive work itself.
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

    /// Waits until `attempt` gives something, `stop` is set or a round would be lost.
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
                        // Interrupted or too late: the next attempt shows it.
                        if !matches!(poll(&mut source, Some(&SLEEP)), Ok(1..)) {
                            break;
                        }
                    }
                    Waiting::Spin => spin_loop(),
                    // An interface that is gone ends the round by its time.
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

/// Round-trip times in nanoseconds, in the order of rounds; fewer than rounds if some were lost.
pub(crate) type Times = Vec<u64>;

/// Sends a frame, waits for it to come back, and so on.
pub(crate) fn ping(end: &mut End, rounds: u32, waiting: Waiting) -> Times {
    let never = AtomicBool::new(false);
    let mut times = Times::with_capacity(rounds as usize);
    for round in 0..rounds {
        let begin = Instant::now();
        if !end.send(round) {
            continue;
        }
        // What was lost before may come late: it is no answer to this one.
        let answer = |end: &mut End| end.take().filter(|&number| number == round);
        if waiting.until(end, &never, answer).is_some() {
            times.push(begin.elapsed().as_nanos() as u64);
        }
    }
    times
}

/// Sends back what arrives, until it is stopped.
pub(crate) fn pong(end: &mut End, waiting: Waiting, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        waiting.until(end, stop, End::resend);
    }
}

/// Both ends in turn on this thread: nobody waits, so that what a round takes can be counted.
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
