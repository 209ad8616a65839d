//! What a job is: what it was configured to be, and what was observed of it.

use core::fmt;

use heapless::String;
use isolane_wire::time::Instant;

use crate::limits::MAX_NAME_BYTES;

/// A job's name, for people.
pub type Name = String<MAX_NAME_BYTES>;

/// Names a job for as long as it is in the table. The place of a removed job may be given to a
/// new one; the old id then names nobody.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(
    /// The line in the upper half, its generation in the lower: compared and copied as one.
    u32,
);

impl JobId {
    pub(crate) const fn new(line: u16, generation: u16) -> JobId {
        JobId((line as u32) << 16 | generation as u32)
    }

    #[inline]
    pub(crate) const fn line(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// How often the line was given away before, modulo 2^16.
    pub(crate) const fn generation(self) -> u16 {
        self.0 as u16
    }

    /// The place in the table, below `max_jobs`: for tables that run beside this one.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.line() as usize
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}.{}", self.line(), self.generation())
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What releases a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Trigger {
    /// An event: the job is released when it is activated.
    #[default]
    Event,
    /// Time: the job is released at every instant `t` of the monotonic clock with
    /// `t = offset_ns (mod period_ns)`, from the first [`release`](crate::Executor::release)
    /// after it was added. Offsets of several jobs are therefore relative to one another,
    /// whenever they were added.
    Periodic {
        /// Between two releases; 0 is taken as 1.
        period_ns: u64,
        /// Phase of the releases.
        offset_ns: u64,
    },
    /// An event, but two releases are never closer than this: an event that comes earlier is
    /// deferred, so that a storm of events costs lower priorities no more than was analysed.
    Sporadic {
        /// Between two releases at least.
        min_interarrival_ns: u64,
    },
}

/// A job as it is added to the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobConfig {
    /// For people; reports quote it.
    pub name: Name,
    /// 0 to 31, higher is more urgent; above 31 is taken as 31.
    pub priority: u8,
    /// What releases it.
    pub trigger: Trigger,
    /// Items one activation may handle: the code of the job keeps to it, and finishes with
    /// `again` when it stopped at the limit.
    pub items: u16,
    /// The source it serves, 0 to 31: its bit in what [`looked`](crate::Executor::looked) is told. Of
    /// such a job the waits are observed by the stamps of what it handles, which
    /// [`arrived`](crate::Executor::arrived) is told; of others by their releases.
    pub source: Option<u8>,
}

impl JobConfig {
    /// A job released by events, one item an activation. A name too long for
    /// [`MAX_NAME_BYTES`] is cut.
    #[must_use]
    pub fn event(name: &str, priority: u8) -> JobConfig {
        let mut short = Name::new();
        for character in name.chars() {
            if short.push(character).is_err() {
                break;
            }
        }
        JobConfig {
            name: short,
            priority,
            trigger: Trigger::Event,
            items: 1,
            source: None,
        }
    }

    /// The same, released by time.
    #[must_use]
    pub fn periodic(name: &str, priority: u8, period_ns: u64, offset_ns: u64) -> JobConfig {
        let trigger = Trigger::Periodic {
            period_ns,
            offset_ns,
        };
        JobConfig {
            trigger,
            ..JobConfig::event(name, priority)
        }
    }
}

/// What was observed of a job since it was added, or since
/// [`reset_observed`](crate::Executor::reset_observed). Nothing is trimmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Activations begun.
    pub activations: u64,
    /// Activations that stopped at the item limit and were continued.
    pub continued: u64,
    /// Longest activation, begin to finish.
    pub execution_max_ns: u64,
    /// Sum over all activations.
    pub execution_total_ns: u64,
    /// Longest from release to finish of one activation. What `again` continues counts as
    /// released when the activation before it finished; see `drain_max_ns`.
    pub response_max_ns: u64,
    /// Longest from a first release to the finish after which nothing was left.
    pub drain_max_ns: u64,
    /// Longest wait for an activation of lower priority that had begun before the release.
    pub blocking_max_ns: u64,
    /// Whose activation that was.
    pub blocked_by: Option<JobId>,
    /// Priority inversions: activations of lower priority that began after what this job handles
    /// had arrived and before it began, although the source was readable at the look before them,
    /// or without a look. A job of a source counts for each arrival it is told of
    /// ([`arrived`](crate::Executor::arrived)), any other for each activation, from the moment it
    /// was ready. An arrival counts each activation of the last
    /// [`REMEMBERED_ACTIVATIONS`](crate::limits::REMEMBERED_ACTIVATIONS), and the last one of each
    /// priority. See [`Waited`](crate::Waited).
    pub inversions: u64,
    /// Activations of lower priority that began after an arrival by its stamp, when the look before
    /// them did not show the source readable yet: the kernel's part, counted like `inversions`.
    pub kernel_late: u64,
    /// The longest from a stamp to the look that did not show it yet.
    pub kernel_late_max_ns: u64,
    /// Periodic releases that found the job still ready, or were passed by before anybody
    /// looked at the clock.
    pub releases_missed: u64,
    /// Sporadic events that came before the minimum inter-arrival time was over.
    pub releases_deferred: u64,
}

/// A job's event, or a point of its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// When it happened: the response time counts from here.
    pub(crate) at: Instant,
    /// From when on nothing less urgent should have begun: the same, unless its way to this job is
    /// accounted for elsewhere.
    pub(crate) ready: Instant,
}

impl From<Instant> for Release {
    fn from(at: Instant) -> Release {
        Release { at, ready: at }
    }
}

/// Where a job is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    /// An event has arrived, its release is in the queue of releases (sporadic only).
    Deferred,
    /// Released, not begun.
    Ready(Release),
    /// Begun.
    Running(Release),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Job {
    /// As it was added.
    pub config: JobConfig,
    /// What was seen since.
    pub observed: Observed,
    pub(crate) state: State,
    /// The phase of a periodic job is known.
    pub(crate) anchored: bool,
    pub(crate) last_release: Option<Instant>,
    /// An event that arrived while the job ran.
    pub(crate) pending: Option<Release>,
    /// Release of the first activation of a row, from its first `again` on.
    pub(crate) row_began: Option<Instant>,
    /// Removed while it ran: its place is free at its finish.
    pub(crate) condemned: bool,
}

impl Job {
    pub(crate) fn new(config: JobConfig) -> Job {
        Job {
            config,
            observed: Observed::default(),
            state: State::Idle,
            anchored: false,
            last_release: None,
            pending: None,
            row_began: None,
            condemned: false,
        }
    }

    /// When the job that is ready or running was released; for a periodic job the instant of
    /// its period, however late the loop looked.
    #[inline]
    #[must_use]
    pub fn released_at(&self) -> Option<Instant> {
        self.release().map(|release| release.at)
    }

    #[inline]
    pub(crate) fn release(&self) -> Option<Release> {
        match self.state {
            State::Ready(release) | State::Running(release) => Some(release),
            State::Idle | State::Deferred => None,
        }
    }

    /// Released, and not yet begun.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready(_))
    }
}
