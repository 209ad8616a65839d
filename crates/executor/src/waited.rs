//! What something waited for that should not have come before it.
//!
//! A *priority inversion* is an activation of lower priority that began after something more urgent
//! had arrived. Choosing by priority alone shows that none begins while something more urgent is
//! ready; whether the loop looked before it chose is the other half, and is not seen in the table
//! of jobs. So arrivals are judged by their stamps, once they are handled: each activation is
//! remembered together with the look that preceded it, and one of lower priority that began after
//! the stamp is
//!
//! * an **inversion** if the source was readable at that look (the loop knew, and chose otherwise),
//!   or if there was no look between it and the activation before it (the loop could have known);
//! * **late by the kernel** if the loop looked and the source was not readable: the stamp is from
//!   before the clock was read behind that look, the look itself says that there was nothing yet.
//!   A stamp is taken when a frame enters the host, and some microseconds may pass until it is in
//!   the socket; so may be between the kernel's answer to the look and the reading of the clock.
//!
//! What is already inside (a callback whose sample lies in the cache, a timer that is due) needs no
//! look: every lower activation that begins from then on is an inversion.

use core::ops::AddAssign;

/// Activations of lower priority that came before something, by whose doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// The loop's: the source was readable at the look before them, or it did not look.
    pub inversions: u64,
    /// The kernel's: at the look before them the source was not readable, though the stamp is
    /// earlier.
    pub kernel_late: u64,
    /// The longest from a stamp to the look that did not show it yet.
    pub kernel_late_max_ns: u64,
}

impl Waited {
    /// Whether there was nothing of the kind.
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
