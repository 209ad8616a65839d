//! Chains of slots, oldest first: the changes of one instance inside a cache.
//!
//! Both caches (a writer's history, a reader's cache) must find the oldest change of an
//! instance at once, because KEEP_LAST replaces it. Each slot names the next younger one of
//! its instance and the one before it; the instance names both ends. So a slot enters and leaves in constant time,
//! wherever it stands: mostly it is the oldest, but users take what they select, and LIFESPAN ends where it will.

use alloc::{vec, vec::Vec};

/// No slot.
const NONE: u16 = u16::MAX;

/// Both ends of an instance's chain, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain {
    oldest: u16,
    youngest: u16,
    count: u16,
}

impl Chain {
    pub(crate) const EMPTY: Self = Self {
        oldest: NONE,
        youngest: NONE,
        count: 0,
    };

    pub(crate) fn count(&self) -> u16 {
        self.count
    }

    pub(crate) fn oldest(&self) -> Option<u16> {
        (self.count > 0).then_some(self.oldest)
    }

    pub(crate) fn youngest(&self) -> Option<u16> {
        (self.count > 0).then_some(self.youngest)
    }
}

/// The neighbours of a slot.
#[derive(Debug, Clone, Copy)]
struct Link {
    younger: u16,
    /// Of the oldest it means nothing.
    older: u16,
}

/// The links between slots.
#[derive(Debug)]
pub(crate) struct Links {
    links: Vec<Link>,
}

impl Links {
    pub(crate) fn new(slots: u16) -> Self {
        let unlinked = Link {
            younger: NONE,
            older: NONE,
        };
        Self {
            links: vec![unlinked; usize::from(slots)],
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, chain: &mut Chain, slot: u16) {
        let older = chain.youngest;
        self.links[usize::from(slot)] = Link {
            younger: NONE,
            older,
        };
        if chain.count == 0 {
            chain.oldest = slot;
        } else {
            self.links[usize::from(older)].younger = slot;
        }
        chain.youngest = slot;
        chain.count += 1;
    }

    /// The next younger one of the same chain.
    pub(crate) fn younger(&self, slot: u16) -> Option<u16> {
        let younger = self.links[usize::from(slot)].younger;
        (younger != NONE).then_some(younger)
    }

    #[inline]
    pub(crate) fn pop_oldest(&mut self, chain: &mut Chain) -> Option<u16> {
        let slot = chain.oldest()?;
        chain.oldest = self.links[usize::from(slot)].younger;
        chain.count -= 1;
        Some(slot)
    }

    /// Takes a slot out of the chain it is in, wherever it stands.
    #[inline]
    pub(crate) fn remove(&mut self, chain: &mut Chain, slot: u16) {
        if chain.oldest() == Some(slot) {
            self.pop_oldest(chain);
        } else {
            self.remove_younger(chain, slot);
        }
    }

    fn remove_younger(&mut self, chain: &mut Chain, slot: u16) {
        let Link { younger, older } = self.links[usize::from(slot)];
        let before = &mut self.links[usize::from(older)];
        debug_assert_eq!(before.younger, slot, "a slot leaves the chain it is in");
        before.younger = younger;
        match younger {
            NONE => chain.youngest = older,
            younger => self.links[usize::from(younger)].older = older,
        }
        chain.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_leave_a_chain_in_the_order_they_came() {
        let mut links = Links::new(4);
        let (mut a, mut b) = (Chain::EMPTY, Chain::EMPTY);
        links.push(&mut a, 3);
        links.push(&mut b, 0);
        links.push(&mut a, 1);
        assert_eq!(a.count(), 2);
        assert_eq!(links.pop_oldest(&mut a), Some(3));
        assert_eq!(links.pop_oldest(&mut a), Some(1));
        assert_eq!(links.pop_oldest(&mut a), None);
        links.push(&mut a, 3);
        assert_eq!(a.oldest(), Some(3));
        assert_eq!(b.oldest(), Some(0));
    }

    #[test]
    fn a_slot_leaves_from_anywhere_and_the_others_keep_their_order() {
        for gone in 0..4 {
            let mut links = Links::new(5);
            let mut chain = Chain::EMPTY;
            (0..4).for_each(|slot| links.push(&mut chain, slot));
            links.remove(&mut chain, gone);
            links.push(&mut chain, 4);
            let left: Vec<u16> = core::iter::from_fn(|| links.pop_oldest(&mut chain)).collect();
            let expected: Vec<u16> = (0..5).filter(|&slot| slot != gone).collect();
            assert_eq!(left, expected);
        }
    }

    #[test]
    fn slots_leave_in_any_order_and_come_again() {
        let mut links = Links::new(6);
        let mut chain = Chain::EMPTY;
        (0..6).for_each(|slot| links.push(&mut chain, slot));
        for gone in [0, 3, 2, 5, 1] {
            links.remove(&mut chain, gone);
        }
        assert_eq!((chain.oldest(), chain.youngest()), (Some(4), Some(4)));
        for again in [5, 0, 3] {
            links.push(&mut chain, again);
        }
        links.remove(&mut chain, 4);
        links.remove(&mut chain, 0);
        let left: Vec<u16> = core::iter::from_fn(|| links.pop_oldest(&mut chain)).collect();
        assert_eq!(left, [5, 3]);
        assert_eq!((chain.count(), chain.youngest()), (0, None));
    }
}
