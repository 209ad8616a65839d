//! Points in time at which work falls due, one for each subject.
//!
//! A flat array: the engine has three timers a writer, one a reader, one a peer participant, one for each kind
//! of liveliness that messages tell of and one for its own announcement, a few hundred at most, and looks at
//! all of them only when one has fallen due. The next one is known without looking.

use alloc::{vec, vec::Vec};

use isolane_wire::time::Instant;

/// An instant that never comes.
const NEVER: Instant = Instant::new(u64::MAX);

#[derive(Debug)]
pub(crate) struct Timers {
    due: Vec<Instant>,
    earliest: Instant,
}

impl Timers {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            due: vec![NEVER; count],
            earliest: NEVER,
        }
    }

    pub(crate) fn arm(&mut self, timer: usize, at: Instant) {
        self.due[timer] = at;
        if at < self.earliest {
            self.earliest = at;
        }
    }

    /// Disarms. The earliest instant may now be too early; the next [`Self::expire`] finds out.
    pub(crate) fn disarm(&mut self, timer: usize) {
        self.due[timer] = NEVER;
    }

    /// Arms, if the timer is not due sooner anyway.
    pub(crate) fn bring_forward(&mut self, timer: usize, at: Instant) {
        if at < self.due[timer] {
            self.arm(timer, at);
        }
    }

    pub(crate) fn is_armed(&self, timer: usize) -> bool {
        self.due[timer] != NEVER
    }

    /// When [`Self::expire`] is to be called next: never later than the first timer due.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.earliest != NEVER).then_some(self.earliest)
    }

    /// Disarms and returns one timer that has fallen due.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<usize> {
        if now < self.earliest {
            return None;
        }
        let mut found = None;
        let mut earliest = NEVER;
        for (timer, due) in self.due.iter_mut().enumerate() {
            if found.is_none() && *due <= now {
                found = Some(timer);
                *due = NEVER;
            } else if *due < earliest {
                earliest = *due;
            }
        }
        self.earliest = earliest;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_once_and_the_next_one_is_known() {
        let mut timers = Timers::new(3);
        assert_eq!(timers.next(), None);
        timers.arm(0, Instant::new(30));
        timers.arm(2, Instant::new(10));
        assert_eq!(timers.next(), Some(Instant::new(10)));
        assert_eq!(timers.expire(Instant::new(9)), None);
        assert_eq!(timers.expire(Instant::new(40)), Some(0));
        assert_eq!(timers.expire(Instant::new(40)), Some(2));
        assert_eq!(timers.expire(Instant::new(40)), None);
        assert_eq!(timers.next(), None);
        assert!(!timers.is_armed(2));
    }

    #[test]
    fn a_disarmed_timer_does_not_expire() {
        let mut timers = Timers::new(2);
        timers.arm(1, Instant::new(10));
        timers.disarm(1);
        assert_eq!(timers.expire(Instant::new(20)), None);
        assert_eq!(timers.next(), None);
    }
}
