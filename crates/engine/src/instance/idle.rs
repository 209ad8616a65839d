//! Instances without samples, which are replaced first when the table is full.
//!
//! An instance is listed when its last sample is removed, as ended or as alive. The lists are examined only when a
//! place is needed. An entry whose instance has samples again is skipped, and listed again when these are gone. An
//! instance that had samples meanwhile and has none now keeps its place, so the order is that of first becoming empty.
//! Listing costs nothing while instances fit the table, and each skipped entry is paid for by the removed sample. An
//! instance is in each list at most once; the lists are allocated on creation.

use alloc::collections::VecDeque;

use super::{InstanceState, Instances};

/// Lists that contain an instance.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Listed {
    ended: bool,
    alive: bool,
}

#[derive(Debug)]
pub(super) struct Idle {
    /// Instances that had ended when their last sample was removed; forgetting them loses nothing relevant.
    ended: VecDeque<u16>,
    alive: VecDeque<u16>,
}

impl Idle {
    /// Allocates lists for up to `room` instances.
    pub(super) fn new(room: usize) -> Self {
        Self {
            ended: VecDeque::with_capacity(room),
            alive: VecDeque::with_capacity(room),
        }
    }

    #[cfg(test)]
    pub(super) fn rooms(&self) -> [usize; 2] {
        [self.ended.capacity(), self.alive.capacity()]
    }

    /// Lists an instance whose last sample was removed.
    #[inline]
    pub(super) fn note(&mut self, index: u16, state: InstanceState, listed: &mut Listed) {
        let (list, is_listed) = match state {
            InstanceState::Alive => (&mut self.alive, &mut listed.alive),
            _ => (&mut self.ended, &mut listed.ended),
        };
        if !core::mem::replace(is_listed, true) {
            list.push_back(index);
        }
    }
}

impl Instances {
    /// Selects the instance to replace by a new one: without samples, ended before alive, in the order of listing.
    pub(super) fn take_idle(&mut self) -> Option<u16> {
        while let Some(index) = self.idle.ended.pop_front() {
            let instance = &mut self.records[usize::from(index)];
            instance.listed.ended = false;
            if instance.chain.count() > 0 {
                continue;
            }
            if instance.state != InstanceState::Alive {
                return Some(index);
            }
            let state = instance.state;
            self.idle.note(index, state, &mut instance.listed);
        }
        while let Some(index) = self.idle.alive.pop_front() {
            let instance = &mut self.records[usize::from(index)];
            instance.listed.alive = false;
            if instance.chain.count() == 0 {
                return Some(index);
            }
        }
        None
    }
}
