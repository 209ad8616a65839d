//! Chains of slots, oldest first: the changes of one instance inside a cache.
//!
//! Both caches (a writer's history, a reader's cache) must find the oldest change of an
//! instance at once, because KEEP_LAST replaces it. Each slot names the next younger one of
//! its instance; the instance names both ends. Slots leave a chain oldest first, but for samples that
//! outlive their LIFESPAN before older ones do, which are searched for.

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
}

/// The links between slots.
#[derive(Debug)]
pub(crate) struct Links {
    younger: Vec<u16>,
}

impl Links {
    pub(crate) fn new(slots: u16) -> Self {
        Self {
            younger: vec![NONE; usize::from(slots)],
        }
    }

    pub(crate) fn push(&mut self, chain: &mut Chain, slot: u16) {
        self.younger[usize::from(slot)] = NONE;
        if chain.count == 0 {
            chain.oldest = slot;
        } else {
            self.younger[usize::from(chain.youngest)] = slot;
        }
        chain.youngest = slot;
        chain.count += 1;
    }

    /// The next younger one of the same chain.
    pub(crate) fn younger(&self, slot: u16) -> Option<u16> {
        let younger = self.younger[usize::from(slot)];
        (younger != NONE).then_some(younger)
    }

    pub(crate) fn pop_oldest(&mut self, chain: &mut Chain) -> Option<u16> {
        let slot = chain.oldest()?;
        chain.oldest = self.younger[usize::from(slot)];
        chain.count -= 1;
        Some(slot)
    }

    /// Takes a slot out of a chain wherever it stands: the oldest at once, another by a walk from there.
    /// False: it is not in this chain.
    pub(crate) fn remove(&mut self, chain: &mut Chain, slot: u16) -> bool {
        if chain.oldest() == Some(slot) {
            self.pop_oldest(chain);
            return true;
        }
        let mut before = chain.oldest;
        for _ in 1..chain.count {
            let here = self.younger[usize::from(before)];
            if here == slot {
                self.younger[usize::from(before)] = self.younger[usize::from(slot)];
                if chain.youngest == slot {
                    chain.youngest = before;
                }
                chain.count -= 1;
                return true;
            }
            before = here;
        }
        false
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
            assert!(links.remove(&mut chain, gone));
            assert!(!links.remove(&mut chain, gone), "it is gone");
            links.push(&mut chain, 4);
            let left: Vec<u16> = core::iter::from_fn(|| links.pop_oldest(&mut chain)).collect();
            let expected: Vec<u16> = (0..5).filter(|&slot| slot != gone).collect();
            assert_eq!(left, expected);
        }
    }
}
