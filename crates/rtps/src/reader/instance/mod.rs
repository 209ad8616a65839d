//! Instances known to a reader (DDS 1.4 §2.2.2.5.1): their states and writers.
//!
//! The table has one entry more than the cache has slots. So a new instance can always replace one without samples, and
//! no sample is lost. If the replaced instance returns, it counts as new.
//!
//! # Instances without samples
//!
//! A full table replaces an instance without samples: one that has ended before one that is alive. When its last sample
//! is removed, an instance enters the list of its state (ended or alive). The lists are read only when an entry of the
//! table is needed. A listed instance that has samples again is skipped; it is listed again when its samples are
//! removed. A listed instance that had samples and has none again keeps its position, so the order is that of first
//! becoming empty. Each skipped entry stands for at least one removed sample, which bounds the cost. An instance is in
//! each list at most once, so the lists are allocated on creation.

mod generations;

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};

use heapless::Vec as BoundedVec;
use isolane_wire::{cdr::KeyHash, time::Instant};

use crate::{
    hash::{Index, index},
    limits::INSTANCE_WRITERS,
    reader::{
        instance::generations::Life,
        read_take::{SampleInfo, ViewState},
    },
    slab::{Chain, SlotLinks, WriterProxyId},
    timed_qos::Purges,
    writer::history::ChangeKind,
};

/// Instance state (DDS 1.4 §2.2.2.5.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InstanceState {
    /// Some writer has the instance registered.
    #[default]
    Alive,
    /// A writer disposed the instance.
    NotAliveDisposed,
    /// No writer has the instance registered any more.
    NotAliveNoWriters,
}

#[derive(Debug)]
struct Instance {
    key: KeyHash,
    state: InstanceState,
    /// Proxies of the writers that have the instance registered.
    writers: BoundedVec<WriterProxyId, INSTANCE_WRITERS>,
    chain: Chain,
    life: Life,
    listed: Listed,
}

#[derive(Debug)]
pub(crate) struct Instances {
    records: Vec<Instance>,
    index: Index<KeyHash, u16>,
    room: usize,
    /// Number of instances without samples that were replaced.
    pub(crate) forgotten: u64,
    /// Instances that have ended and whose samples are purged after a delay (READER_DATA_LIFECYCLE).
    purges: Option<Box<Purges>>,
    idle: Idle,
    /// Number of the current selection.
    selection: u64,
}

impl Instances {
    pub(crate) fn new(room: u16, seed: u64) -> Self {
        let room = usize::from(room);
        Self {
            records: Vec::with_capacity(room),
            index: index(room, seed),
            room,
            forgotten: 0,
            purges: None,
            idle: Idle::new(room),
            selection: 0,
        }
    }

    #[inline]
    pub(crate) fn samples(&self, key: KeyHash) -> u16 {
        self.find(key).map_or(0, |instance| instance.chain.count())
    }

    /// Returns whether an instance is known and not alive.
    pub(crate) fn has_ended(&self, key: KeyHash) -> bool {
        let found = self.find(key);
        found.is_some_and(|instance| instance.state != InstanceState::Alive)
    }

    pub(crate) fn oldest(&self, key: KeyHash) -> Option<u16> {
        self.find(key)?.chain.oldest()
    }

    pub(crate) fn youngest(&self, key: KeyHash) -> Option<u16> {
        self.find(key)?.chain.youngest()
    }

    #[inline]
    pub(crate) fn remove_sample(&mut self, links: &mut SlotLinks, index: u16, slot: u16) {
        let instance = &mut self.records[usize::from(index)];
        links.remove(&mut instance.chain, slot);
        if instance.chain.count() == 0 {
            self.idle.note(index, instance.state, &mut instance.listed);
        }
    }

    #[inline]
    pub(crate) fn chain_mut(&mut self, instance: u16) -> &mut Chain {
        &mut self.records[usize::from(instance)].chain
    }

    /// One past the last instance.
    pub(crate) fn end(&self) -> u16 {
        self.records.len() as u16
    }

    /// Applies a change of a writer, received at `at`; returns the instance.
    pub(crate) fn note(
        &mut self,
        key: KeyHash,
        writer: WriterProxyId,
        kind: ChangeKind,
        at: Instant,
    ) -> u16 {
        let index = match self.index_of(&key) {
            Some(index) => index,
            None => self.add(key),
        };
        let instance = &mut self.records[usize::from(index)];
        match kind {
            ChangeKind::Alive => {
                if instance.state != InstanceState::Alive {
                    self.revive(index, at);
                }
                let instance = &mut self.records[usize::from(index)];
                if !instance.writers.contains(&writer) {
                    // Further writers share the last entry, see `INSTANCE_WRITERS`.
                    let _ = instance.writers.push(writer);
                }
            }
            ChangeKind::Dispose => self.end_life(index, InstanceState::NotAliveDisposed, at),
            ChangeKind::Unregister => {
                self.unregister(index, writer, at);
            }
            ChangeKind::DisposeAndUnregister => {
                self.end_life(index, InstanceState::NotAliveDisposed, at);
                self.unregister(index, writer, at);
            }
        }
        index
    }

    /// Records that samples of an instance were read.
    #[inline]
    pub(crate) fn note_look(&mut self, index: u16) {
        self.records[usize::from(index)].life.is_seen = true;
    }

    /// Sets the generation counts of a received sample.
    #[inline]
    pub(crate) fn tell_generation(&self, index: u16, info: &mut SampleInfo) {
        let life = &self.records[usize::from(index)].life;
        info.disposed_generation_count = life.disposed_generations;
        info.no_writers_generation_count = life.no_writers_generations;
    }

    /// Sets the instance state, view state and absolute generation rank of a sample.
    #[inline]
    pub(crate) fn tell(&self, index: u16, info: &mut SampleInfo) {
        let instance = &self.records[usize::from(index)];
        info.instance_state = instance.state;
        info.view_state = match instance.life.is_seen {
            true => ViewState::NotNew,
            false => ViewState::New,
        };
        let generation = instance.life.generation();
        info.absolute_generation_rank = generation.wrapping_sub(info.generation());
    }

    /// Unregisters a writer; returns true if it was the last one of an instance that was alive.
    fn unregister(&mut self, index: u16, writer: WriterProxyId, at: Instant) -> bool {
        let instance = &mut self.records[usize::from(index)];
        instance.writers.retain(|&other| other != writer);
        let ends = instance.writers.is_empty() && instance.state == InstanceState::Alive;
        if ends {
            self.end_life(index, InstanceState::NotAliveNoWriters, at);
        }
        ends
    }

    /// Returns whether an end of an instance is delivered as a sample. An unregister is delivered only if it ends a
    /// known instance (DDS 1.4 §2.2.2.5.1.3): one that is alive and has no other registered writers. Once instances
    /// have been replaced, an unknown instance counts as known.
    ///
    /// A dispose is always delivered: the instance no longer exists, also for a reader that never had a sample of it.
    pub(crate) fn is_seen(&self, key: KeyHash, writer: WriterProxyId, kind: ChangeKind) -> bool {
        if kind != ChangeKind::Unregister {
            return true;
        }
        self.find(key).map_or(self.forgotten > 0, |instance| {
            let is_last = instance.writers.iter().all(|&other| other == writer);
            instance.state == InstanceState::Alive && is_last
        })
    }

    /// Applies a change that is not delivered as a sample, if its instance is known. Returns true if it unregistered
    /// the last writer of an instance that was alive.
    pub(crate) fn note_other(
        &mut self,
        key: KeyHash,
        writer: WriterProxyId,
        kind: ChangeKind,
        at: Instant,
    ) -> bool {
        let Some(index) = self.index_of(&key) else {
            return false;
        };
        if kind.unregisters() {
            return self.unregister(index, writer, at);
        }
        let writers = &mut self.records[usize::from(index)].writers;
        if !writers.contains(&writer) {
            let _ = writers.push(writer);
        }
        false
    }

    /// Unregisters a writer that is gone; returns the key if that ended the instance.
    pub(crate) fn unregister_gone(
        &mut self,
        index: u16,
        writer: WriterProxyId,
        at: Instant,
    ) -> Option<KeyHash> {
        let instance = &self.records[usize::from(index)];
        let (key, is_registered) = (instance.key, instance.writers.contains(&writer));
        (is_registered && self.unregister(index, writer, at)).then_some(key)
    }

    fn find(&self, key: KeyHash) -> Option<&Instance> {
        self.index_of(&key)
            .map(|index| &self.records[usize::from(index)])
    }

    /// Returns the index of an instance. The one instance of a topic without key is the first, and found without a
    /// hash.
    #[inline]
    fn index_of(&self, key: &KeyHash) -> Option<u16> {
        match self.records.first() {
            Some(first) if first.key == *key => Some(0),
            _ => self.index.get(key).copied(),
        }
    }

    fn add(&mut self, key: KeyHash) -> u16 {
        let fresh = Instance {
            key,
            state: InstanceState::Alive,
            writers: BoundedVec::new(),
            chain: Chain::EMPTY,
            life: Life::NEW,
            listed: Listed::default(),
        };
        let index = if self.records.len() < self.room {
            self.records.push(fresh);
            (self.records.len() - 1) as u16
        } else {
            let index = self
                .take_idle()
                .expect("there are more instances than slots, so one has no sample");
            let place = &mut self.records[usize::from(index)];
            let listed = place.listed;
            let former = core::mem::replace(place, Instance { listed, ..fresh });
            self.index.remove(&former.key);
            if let Some(purges) = &mut self.purges {
                purges.turn(former.key, InstanceState::Alive, Instant::new(0));
            }
            self.forgotten += 1;
            index
        };
        self.index.insert(key, index);
        index
    }
}

/// Lists that contain an instance.
#[derive(Debug, Clone, Copy, Default)]
struct Listed {
    ended: bool,
    alive: bool,
}

#[derive(Debug)]
struct Idle {
    /// Instances that had ended when their last sample was removed; forgetting them loses nothing relevant.
    ended: VecDeque<u16>,
    alive: VecDeque<u16>,
}

impl Idle {
    /// Allocates lists for up to `room` instances.
    fn new(room: usize) -> Self {
        Self {
            ended: VecDeque::with_capacity(room),
            alive: VecDeque::with_capacity(room),
        }
    }

    #[cfg(test)]
    fn rooms(&self) -> [usize; 2] {
        [self.ended.capacity(), self.alive.capacity()]
    }

    /// Lists an instance whose last sample was removed.
    #[inline]
    fn note(&mut self, index: u16, state: InstanceState, listed: &mut Listed) {
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
    fn take_idle(&mut self) -> Option<u16> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u16) -> KeyHash {
        let mut key = [0; 16];
        key[..2].copy_from_slice(&number.to_be_bytes());
        key
    }

    /// Creates a table of three instances, each with a slot of the same number.
    fn three() -> (Instances, SlotLinks) {
        let (mut instances, mut links) = (Instances::new(3, 1), SlotLinks::new(8));
        for number in 0..3 {
            let index = instances.note(
                key(number),
                WriterProxyId(7),
                ChangeKind::Alive,
                Instant::new(0),
            );
            links.push(instances.chain_mut(index), number);
        }
        (instances, links)
    }

    fn add(instances: &mut Instances, links: &mut SlotLinks, number: u16) {
        let index = instances.note(
            key(number),
            WriterProxyId(7),
            ChangeKind::Alive,
            Instant::new(0),
        );
        links.push(instances.chain_mut(index), number);
    }

    #[test]
    fn of_those_without_samples_one_that_has_ended_makes_way_first() {
        let (mut instances, mut links) = three();
        instances.remove_sample(&mut links, 0, 0);
        instances.note(
            key(2),
            WriterProxyId(7),
            ChangeKind::Dispose,
            Instant::new(0),
        );
        instances.remove_sample(&mut links, 2, 2);
        add(&mut instances, &mut links, 5);
        assert!(instances.known(key(2)).is_none() && instances.known(key(0)).is_some());
        add(&mut instances, &mut links, 6);
        assert!(instances.known(key(0)).is_none() && instances.known(key(1)).is_some());
        assert_eq!(instances.forgotten, 2);
    }

    #[test]
    fn an_instance_that_has_samples_again_stays() {
        let (mut instances, mut links) = three();
        for number in [1, 0] {
            instances.remove_sample(&mut links, number, number);
        }
        links.push(instances.chain_mut(1), 1);
        add(&mut instances, &mut links, 5);
        assert!(instances.known(key(0)).is_none() && instances.known(key(1)).is_some());
        instances.remove_sample(&mut links, 1, 1);
        add(&mut instances, &mut links, 6);
        assert!(instances.known(key(1)).is_none() && instances.known(key(2)).is_some());
    }

    #[test]
    fn instances_that_come_and_go_for_ever_take_no_further_room() {
        let (mut instances, mut links) = three();
        let rooms = |it: &Instances| it.idle.rooms();
        let before = rooms(&instances);
        for number in 3..1_000u16 {
            let index = instances.index[&key(number - 3)];
            if number % 2 == 0 {
                instances.note(
                    key(number - 3),
                    WriterProxyId(7),
                    ChangeKind::Dispose,
                    Instant::new(0),
                );
            }
            instances.remove_sample(&mut links, index, (number - 3) % 8);
            let index = instances.note(
                key(number),
                WriterProxyId(7),
                ChangeKind::Alive,
                Instant::new(0),
            );
            links.push(instances.chain_mut(index), number % 8);
        }
        assert_eq!(rooms(&instances), before);
        assert_eq!(instances.forgotten, 997);
    }
}
