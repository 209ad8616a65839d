//! A bounded share for what serves a more urgent priority.
//!
//! What keeps samples reliable is less urgent than the samples, and yet they wait for it: a writer
//! whose history is full stands still until its reader has acknowledged, and the reader, which
//! has samples to hand out, does not get to it before it has handed out all. So a priority can be
//! granted a share of the one right above it: of the items that jobs of the upper one handle while
//! a job of the lower one waits, so many pass, and then one activation of the lower one runs in
//! between. More urgent priorities know nothing of it: an activation by share is chosen only where
//! the upper priority would have been.

use crate::limits::PRIORITIES;

/// The shares there are, by the upper priority.
pub(crate) struct Shares {
    /// Bit *p*: the priority below *p* has a share of it.
    granted: u32,
    /// Bit *p*: so many items have passed that it is the lower one's turn.
    due: u32,
    /// Items after which that is so.
    after: [u16; PRIORITIES],
    /// Items handled while the lower one waited.
    passed: [u16; PRIORITIES],
    /// Bit *p*: some have passed.
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

    /// Whether it is the turn of the priority below `upper`.
    pub(crate) fn is_due(&self, upper: usize) -> bool {
        self.due >> upper & 1 == 1
    }

    /// Whether an activation of this priority may be one of a share.
    #[inline]
    pub(crate) fn is_due_to(&self, lower: u8) -> bool {
        self.due & 2 << lower != 0
    }

    /// An activation of this priority has handled so many items, and a job of the priority below
    /// waits, or does not.
    #[inline]
    pub(crate) fn note(&mut self, priority: u8, items: u16, lower_waits: bool) {
        // Mostly nobody waits, and there is no count that this would end.
        let (own, upper) = (1_u32 << priority, 2_u32 << priority);
        if lower_waits || (self.counting | self.due) & (own | upper) != 0 {
            self.count(usize::from(priority), items, lower_waits);
        }
    }

    fn count(&mut self, own: usize, items: u16, lower_waits: bool) {
        if own + 1 < PRIORITIES {
            // Whatever has run of it: what was passed over is settled.
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
