//! The instances a reader knows (DDS 1.4 §2.2.2.5.1): which are alive, and who writes them.
//!
//! The table has one place more than the cache has slots, so that there is always one instance
//! without samples to forget when a new one comes. Forgetting an instance loses no sample; should
//! it come again it counts as new.

mod life;

use alloc::{boxed::Box, vec::Vec};

use heapless::Vec as BoundedVec;
use isolane_wire::{cdr::KeyHash, time::Instant};

use self::life::Life;
use crate::{
    chain::Chain,
    clock::Purges,
    history::ChangeKind,
    index::{Index, index},
    limits::INSTANCE_WRITERS,
};

/// Whether an instance is written (DDS 1.4 §2.2.2.5.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InstanceState {
    /// A writer writes it.
    #[default]
    Alive,
    /// A writer disposed it.
    NotAliveDisposed,
    /// No writer is left that has it registered.
    NotAliveNoWriters,
}

#[derive(Debug)]
struct Instance {
    key: KeyHash,
    state: InstanceState,
    /// Proxies of the writers that wrote it and have not unregistered it.
    writers: BoundedVec<u16, INSTANCE_WRITERS>,
    chain: Chain,
    life: Life,
}

#[derive(Debug)]
pub(crate) struct Instances {
    records: Vec<Instance>,
    index: Index<KeyHash, u16>,
    room: usize,
    /// Instances without samples that made way for new ones.
    pub(crate) forgotten: u64,
    /// Those of which samples are to go some time after their end.
    purges: Option<Box<Purges>>,
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
        }
    }

    /// Samples of this instance in the cache.
    pub(crate) fn samples(&self, key: KeyHash) -> u16 {
        self.find(key).map_or(0, |instance| instance.chain.count())
    }

    /// Whether an instance is known, and nobody writes it any more.
    pub(crate) fn has_ended(&self, key: KeyHash) -> bool {
        let found = self.find(key);
        found.is_some_and(|instance| instance.state != InstanceState::Alive)
    }

    /// The slot of the instance's oldest sample.
    pub(crate) fn oldest(&self, key: KeyHash) -> Option<u16> {
        self.find(key)?.chain.oldest()
    }

    pub(crate) fn chain_mut(&mut self, instance: u16) -> &mut Chain {
        &mut self.records[usize::from(instance)].chain
    }

    /// One past the last instance.
    pub(crate) fn end(&self) -> u16 {
        self.records.len() as u16
    }

    /// Takes note of a change by a writer, which came in then; returns the instance.
    pub(crate) fn note(&mut self, key: KeyHash, writer: u16, kind: ChangeKind, at: Instant) -> u16 {
        let index = match self.index.get(&key) {
            Some(&index) => index,
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
                    // Beyond the bound a writer shares the last place; see the limit's reason.
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

    /// A writer no longer writes an instance. True: it was the last one, and the instance was alive.
    fn unregister(&mut self, index: u16, writer: u16, at: Instant) -> bool {
        let instance = &mut self.records[usize::from(index)];
        instance.writers.retain(|&other| other != writer);
        let ends = instance.writers.is_empty() && instance.state == InstanceState::Alive;
        if ends {
            self.end_life(index, InstanceState::NotAliveNoWriters, at);
        }
        ends
    }

    /// Takes note of a change by a writer whose changes are not seen, if the instance is known.
    pub(crate) fn note_other(&mut self, key: KeyHash, writer: u16, kind: ChangeKind) {
        let Some(&index) = self.index.get(&key) else {
            return;
        };
        let writers = &mut self.records[usize::from(index)].writers;
        if kind.unregisters() {
            writers.retain(|&other| other != writer);
        } else if !writers.contains(&writer) {
            // Beyond the bound it shares the last place.
            let _ = writers.push(writer);
        }
    }

    /// Unregisters a writer that is gone. The key, if that ended the instance.
    pub(crate) fn unregister_gone(
        &mut self,
        index: u16,
        writer: u16,
        at: Instant,
    ) -> Option<KeyHash> {
        let instance = &self.records[usize::from(index)];
        let (key, is_registered) = (instance.key, instance.writers.contains(&writer));
        (is_registered && self.unregister(index, writer, at)).then_some(key)
    }

    fn find(&self, key: KeyHash) -> Option<&Instance> {
        self.index
            .get(&key)
            .map(|&index| &self.records[usize::from(index)])
    }

    fn add(&mut self, key: KeyHash) -> u16 {
        let fresh = Instance {
            key,
            state: InstanceState::Alive,
            writers: BoundedVec::new(),
            chain: Chain::EMPTY,
            life: Life::NEW,
        };
        let index = if self.records.len() < self.room {
            self.records.push(fresh);
            self.records.len() - 1
        } else {
            let idle = |instance: &Instance| instance.chain.count() == 0;
            let ended = |instance: &Instance| instance.state != InstanceState::Alive;
            let index = self
                .records
                .iter()
                .position(|instance| idle(instance) && ended(instance))
                .or_else(|| self.records.iter().position(idle))
                .expect("there are more instances than slots, so one has no sample");
            let former = self.records[index].key;
            self.index.remove(&former);
            if let Some(purges) = &mut self.purges {
                purges.turn(former, InstanceState::Alive, Instant::new(0));
            }
            self.records[index] = fresh;
            self.forgotten += 1;
            index
        };
        self.index.insert(key, index as u16);
        index as u16
    }
}
