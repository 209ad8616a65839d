//! Doubly linked chains of slots, oldest first: the changes of one instance in a cache.
//!
//! KEEP_LAST replaces the oldest change of an instance, so a history and a cache must find it at once. Each slot links
//! to the next younger and the next older one; the instance has both ends. A slot is added and removed in constant time
//! at any position: mostly it is the oldest, but users take what they select, and LIFESPAN expires any slot.

use alloc::{vec, vec::Vec};

/// Marker of a missing link.
const NONE: u16 = u16::MAX;

/// Both ends and the length of an instance's chain.
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

#[derive(Debug, Clone, Copy)]
struct Link {
    younger: u16,
    /// Undefined for the oldest slot.
    older: u16,
}

/// Links between all slots of a cache.
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

    /// Removes a slot at any position of its chain.
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
