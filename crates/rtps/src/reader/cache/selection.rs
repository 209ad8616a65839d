//! Selection of several samples by state, instance and query (DDS 1.4 §2.2.2.5.3.8 and following).
//!
//! Samples of an instance are adjacent unless PRESENTATION requires an order over all instances. Instances are ordered
//! by their oldest sample, so that small selections starve no instance.
//!
//! A selection is a list allocated with the cache. Its samples are returned one by one; then all are marked as read, or
//! all are removed. Their states are those at the time of selection. Ranks count later samples of the same selection.

use isolane_wire::cdr::KeyHash;

use crate::{
    reader::{
        cache::Cache,
        read_take::{SampleInfo, StateMask},
    },
    writer::history::ChangeKind,
};

/// Predicate on a payload.
pub type Query<'a> = &'a dyn Fn(&[u8]) -> bool;

/// Instances whose samples are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InstanceSelector {
    /// All instances.
    #[default]
    Any,
    /// The given instance.
    Instance(KeyHash),
    /// Of the instances with matching samples, the one with the lowest key hash above this one; with `None` the lowest.
    After(Option<KeyHash>),
}

/// Criteria of a selection.
#[derive(Clone, Copy)]
pub struct Selection<'a> {
    /// Instances to select from.
    pub which: InstanceSelector,
    /// States to select.
    pub mask: StateMask,
    /// Query on values. Samples without a value do not match a query.
    pub query: Option<Query<'a>>,
    /// Maximum number of samples.
    pub max_samples: usize,
}

impl Default for Selection<'_> {
    /// Selects all samples.
    fn default() -> Self {
        Self {
            which: InstanceSelector::Any,
            mask: StateMask::empty(),
            query: None,
            max_samples: usize::MAX,
        }
    }
}

impl Cache {
    /// Selects samples, and returns their number.
    pub(crate) fn select(&mut self, selection: &Selection<'_>) -> usize {
        self.selected.clear();
        let instance = match selection.which {
            InstanceSelector::Any => None,
            InstanceSelector::Instance(key) => Some(self.instances.known(key)),
            InstanceSelector::After(previous) => Some(self.next_instance(previous, selection)),
        };
        match instance {
            None => self.select_any(selection),
            Some(None) => {}
            Some(Some(instance)) => self.select_of(instance, selection),
        }
        self.rank_selected();
        self.selected.len()
    }

    /// Returns whether any sample matches.
    pub(crate) fn has_any(&self, selection: &Selection<'_>) -> bool {
        match selection.which {
            InstanceSelector::Any => {
                let mut available = self.available.iter();
                available.any(|&slot| self.matches_selection(slot, selection))
            }
            InstanceSelector::Instance(key) => {
                let instance = self.instances.known(key);
                instance.is_some_and(|instance| self.has_any_of(instance, selection))
            }
            InstanceSelector::After(previous) => self.next_instance(previous, selection).is_some(),
        }
    }

    pub(crate) fn selected(&self, nth: usize) -> Option<(SampleInfo, &[u8])> {
        let index = *self.selected.get(nth)?;
        let slot = self.slot(index);
        let mut info = slot.info;
        self.tell_states(slot, &mut info);
        Some((info, self.payload_of(index)))
    }

    /// Samples of an instance, oldest first.
    pub(crate) fn of_instance(&self, key: KeyHash) -> impl Iterator<Item = (SampleInfo, &[u8])> {
        let oldest = self.instances.oldest(key);
        let slots = core::iter::successors(oldest, |&slot| self.links.younger(slot));
        slots.map(|index| (self.slot(index).info, self.payload_of(index)))
    }

    /// Marks the selected samples as read.
    pub(crate) fn mark_selected(&mut self) {
        while let Some(index) = self.selected.pop() {
            if let Some(slot) = &mut self.slots[usize::from(index)] {
                slot.read = true;
                self.instances.note_look(slot.instance);
            }
        }
    }

    /// Removes the selected samples. Returns the number to count in the ledger.
    pub(crate) fn take_selected(&mut self) -> u64 {
        for &index in &self.selected {
            let instance = self.slot(index).instance;
            self.instances.note_look(instance);
        }
        self.drop_selected()
    }

    fn drop_selected(&mut self) -> u64 {
        for &index in &self.selected {
            if let Some(slot) = &mut self.slots[usize::from(index)] {
                slot.leaves = true;
            }
        }
        let slots = &self.slots;
        let leaves = |index: u16| slots[usize::from(index)].is_some_and(|slot| slot.leaves);
        let mut left = self.selected.len();
        // Usually the selected samples are the oldest ones.
        while let Some(&first) = self.available.front()
            && leaves(first)
        {
            self.available.pop_front();
            left -= 1;
        }
        if left > 0 {
            self.available.retain(|&index| !leaves(index));
        }
        let mut counted = 0;
        while let Some(index) = self.selected.pop() {
            counted += u64::from(!self.release(index).synthetic);
        }
        counted
    }

    /// Removes the samples of purged instances, and returns their number.
    pub(crate) fn drop_purged(&mut self) -> usize {
        let (slots, instances) = (&self.slots, &self.instances);
        let of_purged = |index: u16| {
            slots[usize::from(index)].is_some_and(|slot| instances.is_to_empty(slot.instance))
        };
        self.selected.clear();
        let purged = self.available.iter().copied().filter(|&at| of_purged(at));
        self.selected.extend(purged);
        let count = self.selected.len();
        self.purged += self.drop_selected();
        self.instances.note_emptied();
        count
    }

    fn matches_selection(&self, index: u16, selection: &Selection<'_>) -> bool {
        let slot = self.slot(index);
        let mut info = slot.info;
        self.tell_states(slot, &mut info);
        selection.mask.takes(&info)
            && selection
                .query
                .is_none_or(|holds| info.kind == ChangeKind::Alive && holds(self.payload_of(index)))
    }

    fn select_any(&mut self, selection: &Selection<'_>) {
        self.instances.begin_selection();
        for at in 0..self.available.len() {
            if self.selected.len() >= selection.max_samples {
                return;
            }
            let index = self.available[at];
            let instance = self.slot(index).instance;
            let is_selected = !self.is_ordered && self.instances.is_selected(instance);
            if is_selected || !self.matches_selection(index, selection) {
                continue;
            }
            if self.is_ordered {
                self.selected.push(index);
            } else {
                self.instances.note_selected(instance);
                self.select_from(Some(index), selection);
            }
        }
    }

    fn select_of(&mut self, instance: u16, selection: &Selection<'_>) {
        let oldest = self.instances.chain(instance).oldest();
        self.select_from(oldest, selection);
    }

    /// Selects samples of an instance from the given one on.
    fn select_from(&mut self, mut next: Option<u16>, selection: &Selection<'_>) {
        while let Some(index) = next
            && self.selected.len() < selection.max_samples
        {
            if self.matches_selection(index, selection) {
                self.selected.push(index);
            }
            next = self.links.younger(index);
        }
    }

    fn has_any_of(&self, instance: u16, selection: &Selection<'_>) -> bool {
        let mut next = self.instances.chain(instance).oldest();
        while let Some(index) = next {
            if self.matches_selection(index, selection) {
                return true;
            }
            next = self.links.younger(index);
        }
        false
    }

    /// Returns the instance with matching samples that has the lowest key above `previous`.
    fn next_instance(&self, previous: Option<KeyHash>, selection: &Selection<'_>) -> Option<u16> {
        let mut lowest = None;
        for instance in 0..self.instances.end() {
            let key = self.instances.key(instance);
            let is_behind = previous.is_none_or(|previous| key > previous);
            let is_lower = lowest.is_none_or(|(lowest, _)| key < lowest);
            if is_behind && is_lower && self.has_any_of(instance, selection) {
                lowest = Some((key, instance));
            }
        }
        lowest.map(|(_, instance)| instance)
    }

    /// Computes sample rank and generation rank of the selected samples.
    fn rank_selected(&mut self) {
        for &index in &self.selected {
            let instance = self.slot(index).instance;
            self.instances.begin_rank(instance);
        }
        for &index in self.selected.iter().rev() {
            let Some(slot) = &mut self.slots[usize::from(index)] else {
                continue;
            };
            let generation = slot.info.generation();
            let (rank, latest) = self.instances.rank(slot.instance, generation);
            slot.info.sample_rank = rank;
            slot.info.generation_rank = latest.wrapping_sub(generation);
        }
    }
}
