//! Bounded share of a priority for the next lower one.
//!
//! Protocol work is less urgent than samples, and yet samples can depend on it: a writer with a full history waits for
//! its reader's acknowledgment, which the reader does not send while it has samples to deliver. A share bounds that
//! wait: after a number of items of the higher priority, handled while a job of the lower one is ready, one activation
//! of the lower one runs. Higher priorities are unaffected, because a share is used only when a job of the higher
//! priority would be chosen.

use crate::limits::PRIORITIES;

/// Granted shares, indexed by the higher priority.
pub(crate) struct Shares {
    /// Bit *p*: the priority below *p* has a share of *p*.
    granted: u32,
    /// Bit *p*: enough items were handled; the lower priority is next.
    due: u32,
    /// Items after which a share becomes due.
    after: [u16; PRIORITIES],
    /// Items handled while the lower priority was ready.
    passed: [u16; PRIORITIES],
    /// Bit *p*: `passed` of *p* is not zero.
    counting: u32,
}

impl Shares {
    pub(crate) const fn new() -> Shares {
        Shares {
            granted: 0,
            due: 0,
            after: [1; PRIORITIES],
            passed: [0; PRIORITIES],
            counting: 0,
        }
    }

    pub(crate) fn grant(&mut self, lower: u8, after_items: u16) {
        let upper = usize::from(lower) + 1;
        if upper < PRIORITIES {
            self.granted |= 1 << upper;
            self.after[upper] = after_items.max(1);
        }
    }

    /// Returns true if the priority below `upper` is due.
    pub(crate) fn is_due(&self, upper: usize) -> bool {
        self.due >> upper & 1 == 1
    }

    /// Returns true if the next activation of priority `lower` may use a share.
    #[inline]
    pub(crate) fn is_due_to(&self, lower: u8) -> bool {
        self.due & 2 << lower != 0
    }

    /// Records an activation of `priority` with `items` items; `lower_waits` if a job of the next lower priority is
    /// ready.
    #[inline]
    pub(crate) fn note(&mut self, priority: u8, items: u16, lower_waits: bool) {
        // Fast path: no job waits and no count is pending.
        let (own, upper) = (1_u32 << priority, 2_u32 << priority);
        if lower_waits || (self.counting | self.due) & (own | upper) != 0 {
            self.count(usize::from(priority), items, lower_waits);
        }
    }

    fn count(&mut self, own: usize, items: u16, lower_waits: bool) {
        if own + 1 < PRIORITIES {
            // An activation of the lower priority settles the count, whether by share or not.
            self.forget(own + 1);
            self.due &= !(1 << (own + 1));
        }
        if self.granted >> own & 1 == 0 {
            return;
        }
        if !lower_waits {
            self.forget(own);
            return;
        }
        self.counting |= 1 << own;
        self.passed[own] = self.passed[own].saturating_add(items);
        if self.passed[own] >= self.after[own] {
            self.due |= 1 << own;
        }
    }

    fn forget(&mut self, upper: usize) {
        self.counting &= !(1 << upper);
        self.passed[upper] = 0;
    }
}
