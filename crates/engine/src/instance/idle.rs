//! Instances of which there is no sample: what makes way when the table is full.
//!
//! An instance is listed when its last sample goes, among those that have ended or among those that are alive,
//! and looked at when a place is needed: one that has samples again is passed by, since it is listed anew
//! when those have gone. One that had samples again meanwhile, and has none now, keeps its place in the list: the order
//! is that in which they were first without samples, not that in which their last ones went. So nothing is paid for while instances come and go within the table, and each entry that is
//! passed by was paid for by the sample that went. An instance is in each list once at most; both have
//! their room from the beginning.

use alloc::collections::VecDeque;

use super::{InstanceState, Instances};

/// In which lists an instance is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Listed {
    ended: bool,
    alive: bool,
}

#[derive(Debug)]
pub(super) struct Idle {
    /// Those that had ended when their last sample went: nothing is lost with them that matters.
    ended: VecDeque<u16>,
    alive: VecDeque<u16>,
}

impl Idle {
    /// Room for so many instances.
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

    /// An instance has no sample any more.
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
    /// The instance that is forgotten for a new one: of those without samples one that has ended, else one that is
    /// alive; of these the one that was without samples first since it was listed.
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
