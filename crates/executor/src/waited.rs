//! Lower-priority activations that an arrival waited for.
//!
//! A *priority inversion* is a lower-priority activation that began after a more urgent arrival. The job table shows
//! only that no such activation begins while a more urgent job is ready, not if the loop polled before it chose. So
//! arrivals are judged by their stamps when they are handled. A lower-priority activation that began after the stamp
//! is
//!
//! * an **inversion** if the poll before it showed the source as readable, or there was no poll between it and the
//!   preceding activation;
//! * **kernel latency** if the poll did not show the source as readable. A frame's stamp is taken when it enters
//!   the host, some microseconds before it is in the socket; and the clock is read after the poll.
//!
//! An event inside the process (a callback whose sample is in the cache, a due timer) needs no poll: every
//! lower-priority activation that begins afterwards is an inversion.

use core::ops::AddAssign;

/// Lower-priority activations before an arrival was handled, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Caused by the loop: the poll before them showed the source as readable, or there was no poll.
    pub inversions: u64,
    /// Caused by the kernel: the poll before them did not show the source as readable, although the stamp is earlier.
    pub kernel_late: u64,
    /// Maximum time from a stamp to a poll that did not show the source as readable.
    pub kernel_late_max_ns: u64,
}

impl Waited {
    /// Returns true if there were none.
    #[inline]
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.inversions | self.kernel_late == 0
    }
}

impl AddAssign for Waited {
    fn add_assign(&mut self, other: Waited) {
        self.inversions += other.inversions;
        self.kernel_late += other.kernel_late;
        self.kernel_late_max_ns = self.kernel_late_max_ns.max(other.kernel_late_max_ns);
    }
}
