//! Generations of an instance (DDS 1.4 §2.2.2.5.1.3 and following, figure 2.11). An instance ends when it is disposed
//! or has no writer; its next sample starts a new generation, in which the instance is new to the user again.

use isolane_wire::{cdr::KeyHash, qos::ReaderDataLifecycle, time::Instant};

use crate::{
    reader::instance::{InstanceState, Instances},
    slab::Chain,
    timed_qos::Purges,
};

/// Generation state of an instance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life {
    /// True once samples of this generation were read.
    pub(super) is_seen: bool,
    /// Generations after a dispose.
    pub(super) disposed_generations: u32,
    /// Generations after the loss of all writers.
    pub(super) no_writers_generations: u32,
    /// True if its samples must be purged.
    is_to_empty: bool,
    /// True if its samples were purged after the loss of all writers; the next generation counts as the first.
    is_forgotten: bool,
    /// Samples that follow in the current selection, for the sample rank.
    following: u32,
    /// Generation of the last of the samples that follow, for the generation rank.
    latest_generation: u32,
    /// Number of the last selection that included the instance.
    selection: u64,
}

impl Life {
    pub(super) const NEW: Self = Self {
        is_seen: false,
        disposed_generations: 0,
        no_writers_generations: 0,
        is_to_empty: false,
        is_forgotten: false,
        following: 0,
        latest_generation: 0,
        selection: 0,
    };

    pub(super) fn generation(&self) -> u32 {
        self.disposed_generations
            .wrapping_add(self.no_writers_generations)
    }
}

impl Instances {
    /// Starts a new generation of an ended instance.
    #[cold]
    pub(super) fn revive(&mut self, index: u16, at: Instant) {
        let instance = &mut self.records[usize::from(index)];
        let life = &mut instance.life;
        let generations = match instance.state {
            InstanceState::NotAliveDisposed => &mut life.disposed_generations,
            _ => &mut life.no_writers_generations,
        };
        *generations = generations.wrapping_add(1);
        life.is_seen = false;
        if life.is_forgotten {
            *life = Life::NEW;
        }
        instance.state = InstanceState::Alive;
        self.note_turn(index, at);
    }

    /// Ends the current generation of an instance.
    pub(super) fn end_life(&mut self, index: u16, state: InstanceState, at: Instant) {
        let instance = &mut self.records[usize::from(index)];
        if instance.life.is_forgotten {
            // A sample after the purge starts from the first generation.
            instance.life = Life::NEW;
        }
        let is_repeated = core::mem::replace(&mut instance.state, state) == state;
        // A repeated end is itself a sample that must be purged later.
        let key = instance.key;
        let purges = self.purges.as_ref();
        if !is_repeated || purges.is_some_and(|purges| !purges.counts_for(key)) {
            self.note_turn(index, at);
        }
    }

    fn note_turn(&mut self, index: u16, at: Instant) {
        let instance = &self.records[usize::from(index)];
        if let Some(purges) = &mut self.purges {
            purges.turn(instance.key, instance.state, at);
        }
    }

    /// Returns the index of a known instance.
    pub(crate) fn known(&self, key: KeyHash) -> Option<u16> {
        let &index = self.index.get(&key)?;
        let is_known = !self.records[usize::from(index)].life.is_forgotten;
        is_known.then_some(index)
    }

    pub(crate) fn key(&self, index: u16) -> KeyHash {
        self.records[usize::from(index)].key
    }

    pub(crate) fn chain(&self, index: u16) -> &Chain {
        &self.records[usize::from(index)].chain
    }

    pub(crate) fn begin_selection(&mut self) {
        self.selection += 1;
    }

    pub(crate) fn is_selected(&self, index: u16) -> bool {
        self.records[usize::from(index)].life.selection == self.selection
    }

    /// Adds an instance to the current selection.
    pub(crate) fn note_selected(&mut self, index: u16) {
        self.records[usize::from(index)].life.selection = self.selection;
    }

    /// Prepares the ranking of an instance's selected samples.
    pub(crate) fn begin_rank(&mut self, index: u16) {
        self.records[usize::from(index)].life.following = 0;
    }

    /// Ranks the next selected sample of an instance; the calls go from last to first. Returns the number of samples
    /// that follow, and the generation of the last of them.
    pub(crate) fn rank(&mut self, index: u16, generation: u32) -> (u32, u32) {
        let life = &mut self.records[usize::from(index)].life;
        if life.following == 0 {
            life.latest_generation = generation;
        }
        let rank = life.following;
        life.following += 1;
        (rank, life.latest_generation)
    }

    /// Applies READER_DATA_LIFECYCLE. The delays of instances that have already ended start now.
    pub(crate) fn set_purges(&mut self, policy: &ReaderDataLifecycle, seed: u64, now: Instant) {
        let instances = u16::try_from(self.room).unwrap_or(u16::MAX);
        self.purges = Purges::of(policy, instances, seed);
        let records = 0..self.end();
        records.for_each(|index| self.note_turn(index, now));
    }

    pub(crate) fn next_purge(&self) -> Option<Instant> {
        self.purges.as_ref()?.next()
    }

    /// Marks the next due instance for purging. Returns `false` if none is due.
    pub(crate) fn purge_next(&mut self, now: Instant) -> bool {
        let due = self.purges.as_mut().and_then(|it| it.take_due(now));
        let Some(key) = due else { return false };
        if let Some(&index) = self.index.get(&key) {
            let instance = &mut self.records[usize::from(index)];
            instance.life.is_to_empty = true;
            if instance.state == InstanceState::NotAliveNoWriters {
                instance.life.is_forgotten = true;
            }
        }
        true
    }

    /// Returns whether an instance's samples must be purged.
    pub(crate) fn is_to_empty(&self, index: u16) -> bool {
        self.records[usize::from(index)].life.is_to_empty
    }

    /// Clears all purge marks.
    pub(crate) fn note_emptied(&mut self) {
        for instance in &mut self.records {
            instance.life.is_to_empty = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::read_take::{SampleInfo, ViewState};
    use crate::slab::WriterProxyId;
    use crate::writer::history::ChangeKind;

    const KEY: KeyHash = [1; 16];

    fn sample_info(instances: &Instances) -> SampleInfo {
        let mut info = SampleInfo::UNSEEN;
        instances.tell_generation(0, &mut info);
        instances.tell(0, &mut info);
        info
    }

    #[test]
    fn an_instance_is_new_in_each_of_its_lives_and_its_ends_are_counted_by_kind() {
        let mut instances = Instances::new(2, 1);
        let mut note = |kind| {
            instances.note(KEY, WriterProxyId(7), kind, Instant::new(0));
            let info = sample_info(&instances);
            instances.note_look(0);
            info
        };
        let generations =
            |it: SampleInfo| (it.disposed_generation_count, it.no_writers_generation_count);
        assert_eq!(note(ChangeKind::Alive).view_state, ViewState::New);
        assert_eq!(note(ChangeKind::Alive).view_state, ViewState::NotNew);
        let disposed = note(ChangeKind::Dispose);
        assert_eq!(disposed.instance_state, InstanceState::NotAliveDisposed);
        assert_eq!(disposed.view_state, ViewState::NotNew);
        let second = note(ChangeKind::Alive);
        assert_eq!(second.view_state, ViewState::New);
        assert_eq!(generations(second), (1, 0));
        let left = note(ChangeKind::Unregister);
        assert_eq!(left.instance_state, InstanceState::NotAliveNoWriters);
        let third = note(ChangeKind::Alive);
        assert_eq!(
            (third.view_state, generations(third)),
            (ViewState::New, (1, 1))
        );
        let both = note(ChangeKind::DisposeAndUnregister);
        assert_eq!(both.instance_state, InstanceState::NotAliveDisposed);
    }

    #[test]
    fn a_writer_that_disposes_and_unregisters_at_once_holds_the_instance_no_longer() {
        let mut instances = Instances::new(2, 1);
        let mut note = |writer, kind| {
            instances.note(KEY, writer, kind, Instant::new(0));
            sample_info(&instances).instance_state
        };
        note(WriterProxyId(1), ChangeKind::Alive);
        note(WriterProxyId(2), ChangeKind::Alive);
        let disposed = note(WriterProxyId(1), ChangeKind::DisposeAndUnregister);
        assert_eq!(disposed, InstanceState::NotAliveDisposed);
        assert_eq!(
            note(WriterProxyId(2), ChangeKind::Alive),
            InstanceState::Alive
        );
        let left = note(WriterProxyId(2), ChangeKind::Unregister);
        assert_eq!(left, InstanceState::NotAliveNoWriters);
    }

    #[test]
    fn ranks_count_backwards_and_know_the_life_of_the_last() {
        let mut instances = Instances::new(2, 1);
        instances.note(KEY, WriterProxyId(7), ChangeKind::Alive, Instant::new(0));
        instances.begin_rank(0);
        assert_eq!(instances.rank(0, 3), (0, 3));
        assert_eq!(instances.rank(0, 3), (1, 3));
        assert_eq!(instances.rank(0, 1), (2, 3));
    }
}
