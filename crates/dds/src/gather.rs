//! Activation of jobs by time, by work of the protocol, by other threads, and by the datapath's sources; and the time of
//! the next activation.

use std::time::Duration;

use isolane_datapath::{Lane, Wakeup, clock::monotonic_now};
use isolane_rtps::Priority;
use isolane_wire::time::Instant;

use crate::{remote::Inlet, state::State, wait::Readable};

impl State {
    /// Returns whether epoll reports readable lanes; otherwise the datapath does.
    fn has_descriptors(&self) -> bool {
        self.capabilities.wakeup == Wakeup::Descriptors
    }

    /// Returns the next time at which something is due without an event.
    fn next_due(&self) -> Option<Instant> {
        let times = [
            self.protocol.next_time(),
            self.executor.next_release(),
            self.starved.as_ref().map(|starved| starved.until),
            self.recycle_at,
        ];
        times.into_iter().flatten().min()
    }

    /// Returns when the loop must run next without an event; an instant in the past if something is ready.
    pub(crate) fn next_time(&mut self) -> Option<Instant> {
        let is_ready = self.executor.ready_count() > 0
            || self.work_ready() != 0
            || self.inlets.iter().any(Inlet::is_ready)
            || (!self.has_descriptors() && self.datapath.ready_lanes() != 0);
        if is_ready {
            return Some(Instant::new(0));
        }
        self.next_due()
    }

    /// Returns how long the loop may sleep: to the next due time, at most to `until`.
    pub(crate) fn sleep_time(&self, now: Instant, until: Option<Instant>) -> Option<Duration> {
        let wakes = self.next_due().into_iter().chain(until).min();
        wakes.map(|at| at.saturating_since(now))
    }

    /// Tells other threads whether to ring when they hand something over.
    pub(crate) fn set_sleeping(&self, sleeps: bool) {
        for inlet in &self.inlets {
            inlet.set_sleeping(sleeps);
        }
    }

    /// Returns the priorities at which the protocol has work that may be tried now.
    fn work_ready(&self) -> u16 {
        let starved = self.starved.as_ref();
        (self.protocol.ready() | self.rests_ready)
            & !starved.map_or(0, |starved| starved.priorities)
    }

    /// Makes jobs ready for due times, the protocol's work and other threads.
    #[inline]
    pub(crate) fn gather(&mut self, now: Instant) {
        // This runs in every iteration, and usually nothing is pending.
        if self.protocol.ready() | self.rests_ready != 0
            || self.protocol.has_status()
            || self.may_be_due(now)
        {
            self.gather_all(now);
        }
    }

    /// Makes jobs ready after a poll that followed a [`gather`](Self::gather): only time and other threads have
    /// progressed.
    #[inline]
    pub(crate) fn gather_due(&mut self, now: Instant) {
        if self.may_be_due(now) {
            self.gather_all(now);
        }
    }

    #[inline]
    fn may_be_due(&self, now: Instant) -> bool {
        let is_due = |time: Option<Instant>| time.is_some_and(|at| at <= now);
        is_due(self.protocol.next_time())
            || is_due(self.executor.next_release())
            || self.starved.is_some()
            || !self.inlets.is_empty()
    }

    // Never inlined, so that the check before it stays short and is inlined into the loop.
    #[inline(never)]
    fn gather_all(&mut self, now: Instant) {
        if self.protocol.next_time().is_some_and(|at| at <= now) {
            self.protocol.advance(now);
        }
        if self.executor.next_release().is_some_and(|at| at <= now) {
            self.executor.release(now);
        }
        if self.starved.as_ref().is_some_and(|it| it.until <= now) {
            self.starved = None;
        }
        let mut ready = self.work_ready();
        while ready != 0 {
            let priority = ready.trailing_zeros();
            ready &= ready - 1;
            self.executor
                .activate(self.work_jobs[priority as usize], now);
        }
        self.take_notes(now, now);
        for inlet in &self.inlets {
            if inlet.is_ready() {
                self.executor.activate(inlet.job, now);
            }
        }
    }

    /// Polls the datapath's sources, sleeping up to `timeout`. Returns the time afterwards.
    pub(crate) fn look(&mut self, timeout: Option<Duration>) -> Instant {
        let (lanes, readable) = match self.spin() {
            Some(lanes) => (lanes, Some(Readable::FIRSTS)),
            None => self.wait(timeout),
        };
        let now = monotonic_now();
        self.since_look = 0;
        self.executor.polled(now, lanes.into());
        let mut left = lanes;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(job) = self.receive_jobs[index] else {
                continue;
            };
            if let Some(readable) = readable {
                self.datapath
                    .set_readable(Lane::ALL[index], readable.of(index));
            }
            self.executor.activate(job, now);
        }
        now
    }

    /// Waits for a source. Returns the readable lanes, and their descriptors if the datapath has descriptors.
    fn wait(&mut self, timeout: Option<Duration>) -> (u16, Option<Readable>) {
        let has_descriptors = self.has_descriptors();
        if !has_descriptors && timeout == Some(Duration::ZERO) {
            return (self.datapath.ready_lanes(), None);
        }
        let waited = self.waiter.wait(timeout);
        let readable = waited.expect("epoll on descriptors of our own, none of which is closed");
        match has_descriptors {
            true => (readable.lanes(), Some(readable)),
            false => (self.datapath.ready_lanes(), None),
        }
    }

    pub(crate) fn has_work(&self, priority: Priority) -> bool {
        self.work_ready() & (1 << priority.get()) != 0
    }
}
