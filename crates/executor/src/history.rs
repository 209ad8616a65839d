//! The last activations, to answer questions about the past: arrivals and deadlines are often
//! learnt of after the activation during which they fell.
//!
//! Two questions are asked. *Who was running then*, of the ring of the last activations. *What of
//! lower priority came between*, for each arrival: nearly always nothing has ended since it, which
//! one comparison says; or nothing lower has, which the last activation of all that are lower says.
//! Only where there was something is the ring searched, so a busy loop pays for the search when it
//! has something to count.

use core::num::NonZeroU64;

use isolane_wire::time::Instant;

use crate::job::JobId;
use crate::limits::{PRIORITIES, REMEMBERED_ACTIVATIONS};
use crate::waited::Waited;

/// A look at the sources.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    /// The clock, read right behind it.
    at: Instant,
    /// Bit *s + 1*: source *s* had something. Bit 0 is always set, so that having no look takes no
    /// room: it is kept with each activation.
    readable: NonZeroU64,
}

impl Look {
    /// `readable`, bit *s*: source *s* had something.
    #[inline]
    pub(crate) fn new(at: Instant, readable: u32) -> Look {
        let readable = NonZeroU64::MIN | u64::from(readable) << 1;
        Look { at, readable }
    }

    fn has_shown(&self, source: u8) -> bool {
        self.readable.get() >> source >> 1 & 1 == 1
    }
}

/// One run of one job, to its end.
#[derive(Clone, Copy)]
pub(crate) struct Activation {
    pub(crate) job: JobId,
    pub(crate) priority: u8,
    pub(crate) begin: Instant,
    pub(crate) finish: Instant,
    /// The look between it and the activation before it; `None` if there was none.
    pub(crate) look: Option<Look>,
}

impl Activation {
    /// None: it ended before anything could have come.
    const NEVER: Activation = Activation {
        job: JobId::new(0, 0),
        priority: 0,
        begin: Instant::new(0),
        finish: Instant::new(0),
        look: None,
    };

    fn was_running_at(&self, instant: Instant) -> bool {
        self.begin <= instant && instant < self.finish
    }

    /// Whether the look before it showed the source of an arrival.
    fn was_shown(&self, arrival: &Arrival) -> bool {
        let shown = arrival.source.zip(self.look);
        shown.is_some_and(|(source, look)| look.has_shown(source))
    }

    /// Whose doing it was that this one began after something more urgent had arrived.
    fn judge(&self, arrival: &Arrival) -> Waited {
        match (arrival.source, self.look) {
            (Some(source), Some(look)) if !look.has_shown(source) => Waited {
                kernel_late: 1,
                kernel_late_max_ns: look.at.as_nanos().saturating_sub(arrival.at.as_nanos()),
                ..Waited::default()
            },
            _ => Waited {
                inversions: 1,
                ..Waited::default()
            },
        }
    }
}

/// Something that waited for the activation that runs now.
pub(crate) struct Arrival {
    pub(crate) priority: u8,
    /// When it came into being.
    pub(crate) at: Instant,
    /// From when on activations that begin are counted: `at`, or later where what came before was
    /// counted already.
    pub(crate) counted_from: Instant,
    /// The source whose look tells whether it could be known; `None`: it was inside.
    pub(crate) source: Option<u8>,
}

/// What it waited for.
#[derive(Default)]
pub(crate) struct Wait {
    pub(crate) waited: Waited,
    /// The rest of the lower activation that ran when it came, and whose that was.
    pub(crate) blocking: Option<(u64, JobId)>,
}

impl Wait {
    fn add(&mut self, arrival: &Arrival, activation: &Activation) {
        // Where nothing stamps, an arrival is as old as the look that showed it, and so may the
        // activation behind that look be.
        let is_tie = activation.begin == arrival.counted_from && activation.was_shown(arrival);
        if activation.begin > arrival.counted_from || is_tie {
            self.waited += activation.judge(arrival);
        } else if activation.was_running_at(arrival.at) {
            let rest_ns = activation.finish.as_nanos() - arrival.at.as_nanos();
            self.blocking = Some((rest_ns, activation.job));
        }
    }
}

/// A ring of the last [`REMEMBERED_ACTIVATIONS`], and the last one of each priority.
pub(crate) struct History {
    ring: [Activation; REMEMBERED_ACTIVATIONS],
    next: usize,
    newest_finish: Instant,
    /// Of the priorities that `occurred`.
    latest: [Activation; PRIORITIES],
    /// Bit *p*: there is a latest of priority *p*.
    occurred: u32,
    /// The same, if none of lower priority came after it. So the highest bit below a priority is the
    /// last activation of all that are lower.
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

    /// Activations that ended after `instant`, the last one first.
    fn ended_after(&self, instant: Instant) -> impl Iterator<Item = &Activation> {
        let (newer, older) = self.ring.split_at(self.next);
        newer
            .iter()
            .rev()
            .chain(older.iter().rev())
            .take_while(move |activation| activation.finish > instant)
    }

    /// Who was running at an instant of the past.
    pub(crate) fn running_at(&self, instant: Instant) -> Option<&Activation> {
        self.ended_after(instant)
            .find(|activation| activation.was_running_at(instant))
    }

    /// Whether it is plain, without a search, that nothing of lower priority ran between an arrival
    /// and now.
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

    /// What of lower priority ran between an arrival and now.
    pub(crate) fn wait_of(&self, arrival: &Arrival) -> Wait {
        let mut wait = Wait::default();
        let mut oldest = Instant::new(u64::MAX);
        for activation in self.ended_after(arrival.at) {
            oldest = activation.begin;
            if activation.priority < arrival.priority {
                wait.add(arrival, activation);
            }
        }
        // Those that the ring has forgotten count once a priority: that there was one is never lost.
        let forgotten = self
            .lower(arrival.priority)
            .filter(|latest| latest.finish > arrival.at && latest.begin < oldest);
        forgotten.for_each(|latest| wait.add(arrival, latest));
        wait
    }
}
