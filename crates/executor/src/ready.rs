//! Queue of ready jobs: an occupancy bit and an intrusive doubly linked list per priority, in the order of release.
//! Inserting, choosing and removing a job take constant time and no allocation.

use alloc::boxed::Box;
use alloc::vec;

use crate::limits::{MAX_PRIORITY, PRIORITIES};

const NONE: u16 = u16::MAX;

/// Head and tail of a non-empty list.
#[derive(Clone, Copy)]
struct List {
    head: u16,
    tail: u16,
}

#[derive(Clone, Copy)]
struct Link {
    before: u16,
    behind: u16,
}

pub(crate) struct ReadyQueue {
    /// List of each priority.
    list_of: [u8; PRIORITIES],
    /// Bit *l*: list *l* is not empty.
    occupied: u32,
    lists: [List; PRIORITIES],
    links: Box<[Link]>,
    count: usize,
}

impl ReadyQueue {
    pub(crate) fn new(priority_mapping: fn(u8) -> u8, max_jobs: usize) -> ReadyQueue {
        let link = Link {
            before: NONE,
            behind: NONE,
        };
        let list = List {
            head: NONE,
            tail: NONE,
        };
        ReadyQueue {
            list_of: core::array::from_fn(|priority| {
                priority_mapping(priority as u8).min(MAX_PRIORITY)
            }),
            occupied: 0,
            lists: [list; PRIORITIES],
            links: vec![link; max_jobs].into_boxed_slice(),
            count: 0,
        }
    }

    /// Returns whether the mapping of priorities to lists is the identity.
    pub(crate) fn has_list_per_priority(&self) -> bool {
        (0..)
            .zip(&self.list_of)
            .all(|(priority, list)| priority == *list)
    }

    #[inline]
    fn list_of(&self, priority: u8) -> usize {
        // Priorities are below PRIORITIES: the remainder only spares a bounds check.
        usize::from(self.list_of[usize::from(priority) % PRIORITIES])
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Appends a job that is in no list.
    #[inline]
    pub(crate) fn push(&mut self, index: u16, priority: u8) {
        let list = self.list_of(priority);
        let before = match self.is_occupied(list) {
            true => self.lists[list].tail,
            false => NONE,
        };
        if before == NONE {
            self.lists[list].head = index;
            self.occupied |= 1 << list;
        } else {
            self.links[usize::from(before)].behind = index;
        }
        self.links[usize::from(index)] = Link {
            before,
            behind: NONE,
        };
        self.lists[list].tail = index;
        self.count += 1;
    }

    /// Highest non-empty list.
    #[inline]
    pub(crate) fn highest(&self) -> Option<usize> {
        Some(self.occupied.checked_ilog2()? as usize)
    }

    #[inline]
    pub(crate) fn is_occupied(&self, list: usize) -> bool {
        self.occupied >> list & 1 == 1
    }

    /// First job of a list; `None` if empty.
    #[inline]
    pub(crate) fn first_of(&self, list: usize) -> Option<u16> {
        self.is_occupied(list).then(|| self.lists[list].head)
    }

    /// Returns true if a job of the next lower priority is ready.
    #[inline]
    pub(crate) fn is_occupied_below(&self, priority: u8) -> bool {
        self.occupied & (1 << priority >> 1) != 0
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: u16, priority: u8) {
        let list = self.list_of(priority);
        let Link { before, behind } = self.links[usize::from(index)];
        self.count -= 1;
        if before == NONE && behind == NONE {
            self.occupied &= !(1 << list);
            return;
        }
        if before == NONE {
            self.lists[list].head = behind;
        } else {
            self.links[usize::from(before)].behind = behind;
        }
        if behind == NONE {
            self.lists[list].tail = before;
        } else {
            self.links[usize::from(behind)].before = before;
        }
    }
}
