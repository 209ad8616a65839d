//! Priority inversions of each level.
//!
//! A datagram of a level has arrived when its stamp says so. The executor judges which activations of
//! lower priority began between that and the activation that reads it ([`isolane_executor::Waited`]).
//! A callback that takes a cached sample is judged from the reading on. Both are summed up by level.
//!
//! The level of a datagram is that of its lane. On a lane shared by several levels
//! ([`Builder::level_mapping`](crate::Builder::level_mapping)) it is that of the most critical reader
//! that got a sample of it; a datagram without samples is not judged, and an activation counts as of
//! the most critical sample it read.

use isolane_executor::Waited;
use isolane_wire::level::Level;

/// Priority inversions of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelReport {
    /// The level.
    pub level: Level,
    /// Datagrams that were judged.
    pub datagrams: u64,
    /// Activations of lower priority that began after a datagram of this level had arrived (by the
    /// kernel's stamp where there is one, else when the loop saw its socket readable) and before it
    /// was read, or after its sample lay in the cache and before the callback took it: although the
    /// socket was readable at the look before them, or without a look. Each sample that waited for
    /// one counts it. 0 in the order of priority, by the way the loop looks and chooses; the order
    /// of arrival is there to be compared with.
    pub inversions: u64,
    /// The same where the loop had looked and the socket was not readable yet, though the stamp is
    /// earlier than the clock read behind the look: the kernel was still on the way from one to
    /// the other.
    pub kernel_late: u64,
    /// The longest from a stamp to a look that did not show it.
    pub kernel_late_max_ns: u64,
}

/// The sums.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    levels: [(u64, Waited); Level::ALL.len()],
}

impl Waits {
    /// A datagram was judged.
    #[inline]
    pub(crate) fn note_datagram(&mut self, level: Level, waited: Waited) {
        let (datagrams, sum) = &mut self.levels[usize::from(level.get())];
        *datagrams += 1;
        if !waited.is_none() {
            *sum += waited;
        }
    }

    /// A callback has begun.
    pub(crate) fn note_callback(&mut self, level: Level, waited: Waited) {
        self.levels[usize::from(level.get())].1 += waited;
    }

    /// Levels of which a datagram came, the most critical first.
    pub(crate) fn report(&self) -> Vec<LevelReport> {
        let levels = Level::ALL.into_iter().zip(&self.levels).rev();
        let used = levels.filter(|(_, (datagrams, _))| *datagrams > 0);
        used.map(|(level, (datagrams, waited))| LevelReport {
            level,
            datagrams: *datagrams,
            inversions: waited.inversions,
            kernel_late: waited.kernel_late,
            kernel_late_max_ns: waited.kernel_late_max_ns,
        })
        .collect()
    }
}
