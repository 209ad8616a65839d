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
}

impl Shares {
    pub(crate) const fn new() -> Shares {
        Shares {
            granted: 0,
            due: 0,
            after: [1; PRIORITIES],
            passed: [0; PRIORITIES],
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
    pub(crate) fn is_due_to(&self, lower: u8) -> bool {
        let upper = usize::from(lower) + 1;
        upper < PRIORITIES && self.is_due(upper)
    }

    /// An activation of this priority has handled so many items, and a job of the priority below
    /// waits, or does not.
    pub(crate) fn note(&mut self, priority: u8, items: u16, lower_waits: bool) {
        let own = usize::from(priority);
        if own + 1 < PRIORITIES {
            // Whatever has run of it: what was passed over is settled.
            self.passed[own + 1] = 0;
            self.due &= !(1 << (own + 1));
        }
        if self.granted >> own & 1 == 0 {
            return;
        }
        self.passed[own] = match lower_waits {
            true => self.passed[own].saturating_add(items),
            false => 0,
        };
        if self.passed[own] >= self.after[own] {
            self.due |= 1 << own;
        }
    }
}
