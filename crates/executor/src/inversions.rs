//! Lower-priority activations that an arrival waited for.
//!
//! A *priority inversion* is a lower-priority activation that began after a more urgent arrival. The job table only
//! shows that no such activation begins while a more urgent job is ready. It does not show whether the loop polled
//! before its choice. So arrivals are judged by their stamps when they are handled. A lower-priority activation that
//! began after the stamp is
//!
//! * an **inversion** if the poll before it showed the source as readable, or there was no poll since the preceding
//!   activation;
//! * **kernel latency** if the poll did not show the source as readable. A frame is stamped when it enters the host,
//!   some microseconds before it is in the socket. The clock is read after the poll.
//!
//! An event inside the process (a callback whose sample is in the cache, a due timer) needs no poll: every
//! lower-priority activation that begins afterwards is an inversion.
//!
//! The activations are found in a ring of past ones, because arrivals and missed deadlines are often learnt of later.
//! Most arrivals need no search: one comparison shows that no activation has ended since, or the latest activation of
//! each priority shows that none of lower priority has.

use core::num::NonZeroU64;
use core::ops::AddAssign;

use isolane_wire::time::Instant;

use crate::job::JobId;
use crate::limits::{PRIORITIES, REMEMBERED_ACTIVATIONS};

/// Lower-priority activations before an arrival was handled, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityInversions {
    /// Caused by the loop: the poll before them showed the source as readable, or there was no poll.
    pub inversions: u64,
    /// Caused by the kernel: the poll before them did not show the source as readable, although the stamp is earlier.
    pub kernel_latency_events: u64,
    /// Maximum time from a stamp to a poll that did not show the source as readable.
    pub kernel_latency_max_ns: u64,
}

impl PriorityInversions {
    /// Returns true if both counts are 0.
    #[inline]
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.inversions | self.kernel_latency_events == 0
    }
}

impl AddAssign for PriorityInversions {
    fn add_assign(&mut self, other: PriorityInversions) {
        self.inversions += other.inversions;
        self.kernel_latency_events += other.kernel_latency_events;
        self.kernel_latency_max_ns = self.kernel_latency_max_ns.max(other.kernel_latency_max_ns);
    }
}

/// Poll of the sources.
#[derive(Clone, Copy)]
pub(crate) struct Poll {
    /// Time read directly after the poll.
    at: Instant,
    /// Bit *s + 1*: source *s* was readable. Bit 0 is always set, so that `Option<Poll>` needs no extra space in each
    /// activation.
    readable: NonZeroU64,
}

impl Poll {
    /// Creates a poll result; bit *s* of `readable`: source *s* was readable.
    #[inline]
    pub(crate) fn new(at: Instant, readable: u32) -> Poll {
        let readable = NonZeroU64::MIN | u64::from(readable) << 1;
        Poll { at, readable }
    }

    fn has_shown(&self, source: u8) -> bool {
        self.readable.get() >> source >> 1 & 1 == 1
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Activation {
    pub(crate) job: JobId,
    pub(crate) priority: u8,
    pub(crate) begin: Instant,
    pub(crate) finish: Instant,
    /// Poll between the preceding activation and this one, if any.
    pub(crate) poll: Option<Poll>,
}

impl Activation {
    /// Placeholder that ended before any arrival.
    const NEVER: Activation = Activation {
        job: JobId::new(0, 0),
        priority: 0,
        begin: Instant::new(0),
        finish: Instant::new(0),
        poll: None,
    };

    fn was_running_at(&self, instant: Instant) -> bool {
        self.begin <= instant && instant < self.finish
    }

    /// Returns true if the poll before this activation showed the arrival's source as readable.
    fn was_shown(&self, arrival: &Arrival) -> bool {
        let shown = arrival.source.zip(self.poll);
        shown.is_some_and(|(source, poll)| poll.has_shown(source))
    }

    /// Classifies an activation that began after a more urgent arrival: loop or kernel at fault.
    fn judge(&self, arrival: &Arrival) -> PriorityInversions {
        match (arrival.source, self.poll) {
            (Some(source), Some(poll)) if !poll.has_shown(source) => PriorityInversions {
                kernel_latency_events: 1,
                kernel_latency_max_ns: poll.at.as_nanos().saturating_sub(arrival.at.as_nanos()),
                ..PriorityInversions::default()
            },
            _ => PriorityInversions {
                inversions: 1,
                ..PriorityInversions::default()
            },
        }
    }
}

/// Arrival handled by the running activation.
pub(crate) struct Arrival {
    pub(crate) priority: u8,
    /// Time stamp.
    pub(crate) at: Instant,
    /// Start of the interval in which activations count: `at`, or later if another job accounts for the time before.
    pub(crate) counted_from: Instant,
    /// Source whose poll shows if the arrival could be known; `None` for events inside the process.
    pub(crate) source: Option<u8>,
}

/// Delays of an arrival.
#[derive(Default)]
pub(crate) struct Wait {
    pub(crate) waited: PriorityInversions,
    /// Blocking: remaining time in ns of the lower-priority activation that ran at the arrival, and its job.
    pub(crate) blocking: Option<(u64, JobId)>,
}

impl Wait {
    fn add(&mut self, arrival: &Arrival, activation: &Activation) {
        // Without stamps, an arrival has the time of the poll that showed it. The activation after that poll can begin
        // at the same time.
        let is_tie = activation.begin == arrival.counted_from && activation.was_shown(arrival);
        if activation.begin > arrival.counted_from || is_tie {
            self.waited += activation.judge(arrival);
        } else if activation.was_running_at(arrival.at) {
            let rest_ns = activation.finish.as_nanos() - arrival.at.as_nanos();
            self.blocking = Some((rest_ns, activation.job));
        }
    }
}

/// Ring of the last [`REMEMBERED_ACTIVATIONS`], and the latest activation of each priority.
pub(crate) struct History {
    ring: [Activation; REMEMBERED_ACTIVATIONS],
    next: usize,
    newest_finish: Instant,
    /// Latest activation of each priority whose bit in `occurred` is set.
    latest: [Activation; PRIORITIES],
    /// Bit *p*: `latest` of priority *p* is valid.
    occurred: u32,
    /// Bit *p*: `latest` of priority *p* is valid, and no lower priority has run since. So the highest bit below a
    /// priority shows the last activation of all lower priorities.
    last_lower: u32,
}

impl History {
    pub(crate) const fn new() -> History {
        History {
            ring: [Activation::NEVER; REMEMBERED_ACTIVATIONS],
            next: 0,
            newest_finish: Instant::new(0),
            latest: [Activation::NEVER; PRIORITIES],
            occurred: 0,
            last_lower: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, activation: Activation) {
        let bit = 1 << activation.priority;
        self.occurred |= bit;
        self.last_lower = self.last_lower & (bit - 1) | bit;
        self.latest[usize::from(activation.priority)] = activation;
        self.newest_finish = activation.finish;
        let place = self.next % REMEMBERED_ACTIVATIONS;
        self.ring[place] = activation;
        self.next = (place + 1) % REMEMBERED_ACTIVATIONS;
    }

    /// Activations that ended after `instant`, latest first.
    fn ended_after(&self, instant: Instant) -> impl Iterator<Item = &Activation> {
        let (newer, older) = self.ring.split_at(self.next);
        newer
            .iter()
            .rev()
            .chain(older.iter().rev())
            .take_while(move |activation| activation.finish > instant)
    }

    /// Activation that was running at a past instant.
    pub(crate) fn running_at(&self, instant: Instant) -> Option<&Activation> {
        self.ended_after(instant)
            .find(|activation| activation.was_running_at(instant))
    }

    /// Returns true if the summary shows that no lower priority ran between an arrival and now. False means that a
    /// search is needed.
    #[inline]
    pub(crate) fn is_known_not_to_have_waited(&self, priority: u8, at: Instant) -> bool {
        self.newest_finish <= at || !self.lower_ended_after(priority, at)
    }

    fn lower(&self, priority: u8) -> impl Iterator<Item = &Activation> {
        let mut left = self.occurred & !(u32::MAX << priority);
        core::iter::from_fn(move || {
            let priority = left.checked_ilog2()?;
            left &= !(1 << priority);
            Some(&self.latest[priority as usize])
        })
    }

    fn lower_ended_after(&self, priority: u8, at: Instant) -> bool {
        let lower = self.last_lower & !(u32::MAX << priority);
        let last = lower.checked_ilog2();
        last.is_some_and(|priority| self.latest[priority as usize].finish > at)
    }

    /// Lower-priority activations between an arrival and now.
    pub(crate) fn wait_of(&self, arrival: &Arrival) -> Wait {
        let mut wait = Wait::default();
        let mut oldest = Instant::new(u64::MAX);
        for activation in self.ended_after(arrival.at) {
            oldest = activation.begin;
            if activation.priority < arrival.priority {
                wait.add(arrival, activation);
            }
        }
        // Activations that left the ring count once per priority, so no inversion is lost entirely.
        let forgotten = self
            .lower(arrival.priority)
            .filter(|latest| latest.finish > arrival.at && latest.begin < oldest);
        forgotten.for_each(|latest| wait.add(arrival, latest));
        wait
    }
}
