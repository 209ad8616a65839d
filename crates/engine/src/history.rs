//! The history cache of a writer (RTPS 2.5 §8.2.2), with all its memory reserved at creation.
//!
//! A sample is serialised into a free slot (`reserve`), then becomes a change with the next
//! sequence number (`commit`). Under KEEP_LAST a commit pushes out the oldest change of its
//! instance; under KEEP_ALL a full history refuses. What every reader has acknowledged and no
//! late joiner will ask for is removed by the writer.
//!
//! Under KEEP_ALL and TRANSIENT_LOCAL nothing would ever be removed, and a full history would
//! refuse for good. There a new change takes the place of the oldest that every reader has
//! acknowledged, as if DURABILITY_SERVICE (DDS 1.4 §2.2.3.5) were KEEP_LAST of `max_samples`.
//!
//! HISTORY counts values (DDS 1.4 §2.2.3.18): that an instance is disposed, or no longer written, is none, and pushes
//! none out. Such an end lies *beside* its instance's values, so that a slow reader and one that comes late get the
//! last value and then the end. That holds until the instance's next value: with a depth of one that takes the place of
//! both, with more the end counts as one of the instance's changes from then on, in the place of a value. There is room for as many ends as the writer
//! was created with; where that is used up, or an instance has had several ends, an end takes the place of one that says
//! no more than it does, or else of the instance's oldest change.
//!
//! Changes are found by sequence number in an ordered queue: the first and the last cost a
//! constant, one in the middle a binary search. Only the removal from the middle (a KEEP_LAST
//! writer of many instances) moves entries, at most as many as the history holds.
//!
//! Slots of one instance form a list, so that its oldest change is known without a search.
//!
//! A change that leaves in fragments is *pinned* meanwhile: one that is pushed out then gives its slot back
//! when the last fragment has left. Else a KEEP_LAST writer that writes faster than its samples leave would
//! never send one to its end. One slot more is taken for that.

mod set_ends;

use alloc::{collections::VecDeque, vec, vec::Vec};

use isolane_wire::{
    cdr::KeyHash,
    rtps::SetMark,
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use self::set_ends::SetEnds;
use crate::{
    chain::{Chain, Links},
    index::{Index, index},
    limits::ENDS_BESIDE,
    sample_memory::{SampleMemory, Sizes},
};

/// What a change says of its instance (RTPS 2.5 §8.2.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// Here is a sample.
    Alive,
    /// The instance is disposed.
    Dispose,
    /// This writer no longer writes the instance.
    Unregister,
    /// Both at once, as WRITER_DATA_LIFECYCLE has it (DDS 1.4 §2.2.3.21).
    DisposeAndUnregister,
}

impl ChangeKind {
    /// Whether its writer no longer writes the instance.
    #[must_use]
    pub fn unregisters(self) -> bool {
        matches!(self, Self::Unregister | Self::DisposeAndUnregister)
    }

    /// Whether the instance is disposed.
    #[must_use]
    pub fn disposes(self) -> bool {
        matches!(self, Self::Dispose | Self::DisposeAndUnregister)
    }

    /// Whether it is an end that says all that a former one said.
    pub(crate) fn repeats(self, former: Self) -> bool {
        let is_end = former != Self::Alive && self != Self::Alive;
        is_end && self.disposes() >= former.disposes() && self.unregisters() >= former.unregisters()
    }
}

/// One change; its payload lies in the cache's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) sequence: SequenceNumber,
    pub(crate) kind: ChangeKind,
    pub(crate) key_hash: Option<KeyHash>,
    pub(crate) timestamp: Timestamp,
    /// When it was written, by the monotonic clock, where the writer has one to look at it; 0: not known.
    pub(crate) written: Instant,
    pub(crate) length: u32,
}

impl Change {
    const EMPTY: Self = Self {
        sequence: SequenceNumber::UNKNOWN,
        kind: ChangeKind::Alive,
        key_hash: None,
        timestamp: Timestamp::INVALID,
        written: Instant::new(0),
        length: 0,
    };
}

/// How many changes the cache keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The last `depth` of each instance.
    Last { depth: u16 },
    /// All, until acknowledged.
    All,
}

/// Why no slot could be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HistoryFull {
    /// KEEP_ALL: every slot holds a change that a reader still needs.
    Unacknowledged,
    /// KEEP_LAST: a new instance, and all slots belong to others.
    Instances,
}

/// How large a history is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryPlan {
    keep: Keep,
    sizes: Sizes,
    /// Changes, ends beside them, and slots more.
    room: u16,
    ends: u16,
    spare: u16,
}

impl HistoryPlan {
    /// Of `samples` changes. One slot more is taken, so that a change is serialised before the one it replaces goes.
    pub(crate) fn new(keep: Keep, samples: u16, sizes: Sizes) -> Self {
        Self {
            keep,
            sizes,
            room: samples.min(u16::MAX - 2),
            ends: 0,
            spare: 1,
        }
    }

    /// The same with room for so many ends of instances beside the values that HISTORY says.
    pub(crate) fn with_ends(self, ends: u16) -> Self {
        let ends = ends.min(u16::MAX - 1 - self.spare - self.room);
        Self { ends, ..self }
    }

    /// The same with another slot, for a change that is pinned.
    pub(crate) fn with_pin(self) -> Self {
        let spare = 2;
        Self {
            spare,
            room: self.room.min(u16::MAX - 1 - spare),
            ..self
        }
    }

    /// Bytes of its samples.
    pub(crate) fn bytes(&self) -> usize {
        let slots = [self.room, self.ends, self.spare].map(usize::from);
        self.sizes.bytes(slots.iter().sum())
    }
}

#[derive(Debug)]
pub(crate) struct History {
    keep: Keep,
    memory: SampleMemory,
    changes: Vec<Change>,
    /// (sequence, slot), ascending, without ends of sets.
    order: VecDeque<(SequenceNumber, u16)>,
    instances: Index<KeyHash, Chain>,
    links: Links,
    /// The slot lent out by `reserve`.
    reserved: Option<u16>,
    /// Changes there can be at a time, without ends that lie beside values.
    room: usize,
    /// Such ends there can be.
    ends_room: usize,
    /// Those there are: what instances have beyond what HISTORY says.
    ends: usize,
    pinned: Option<Pinned>,
    /// What each slot's change says of its set and group; none, where none says anything.
    marks: Vec<SetMark>,
    /// Ends of coherent sets.
    set_ends: SetEnds,
}

/// A change whose slot must not be used again yet.
#[derive(Debug, Clone, Copy)]
struct Pinned {
    sequence: SequenceNumber,
    slot: u16,
    /// It is no longer among the changes.
    is_removed: bool,
}

impl History {
    /// The memory of all slots.
    pub(crate) fn memory_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.memory.pieces_mut()
    }

    /// A history as planned; an error says how many bytes are not to be had.
    pub(crate) fn try_new(plan: HistoryPlan, seed: u64) -> Result<Self, usize> {
        let HistoryPlan {
            keep,
            sizes,
            room,
            ends,
            spare,
        } = plan;
        let slots = room + ends + spare;
        let memory = SampleMemory::try_new(slots, sizes).ok_or(plan.bytes())?;
        Ok(Self {
            keep,
            memory,
            changes: vec![Change::EMPTY; usize::from(slots)],
            order: VecDeque::with_capacity(usize::from(slots)),
            instances: index(usize::from(slots), seed),
            links: Links::new(slots),
            reserved: None,
            room: usize::from(room),
            ends_room: usize::from(ends),
            ends: 0,
            pinned: None,
            marks: Vec::new(),
            set_ends: SetEnds::default(),
        })
    }

    /// A change that was just committed says this.
    pub(crate) fn set_mark(&mut self, sequence: SequenceNumber, mark: SetMark) {
        if let Some(slot) = self.slot_of(sequence) {
            self.marks[usize::from(slot)] = mark;
        }
    }

    /// What a change says, also if it was pushed out and is still pinned.
    #[inline]
    pub(crate) fn mark_of(&self, sequence: SequenceNumber) -> Option<&SetMark> {
        match self.marks.is_empty() {
            true => None,
            false => self.find_mark(sequence),
        }
    }

    #[inline(never)]
    fn find_mark(&self, sequence: SequenceNumber) -> Option<&SetMark> {
        let pinned = self.pinned.filter(|pinned| pinned.sequence == sequence);
        let slot = match pinned {
            Some(pinned) => pinned.slot,
            None => self.slot_of(sequence)?,
        };
        self.marks.get(usize::from(slot))
    }

    pub(crate) fn keeps_all(&self) -> bool {
        self.keep == Keep::All
    }

    /// Changes of which none takes another one's place: with KEEP_LAST, of one instance.
    pub(crate) fn depth(&self) -> usize {
        match self.keep {
            Keep::All => self.capacity(),
            Keep::Last { depth } => self.capacity().min(usize::from(depth)),
        }
    }

    /// The longest payload.
    pub(crate) fn max_bytes(&self) -> usize {
        self.memory.max_bytes()
    }

    /// Whether a payload of so many bytes finds memory now.
    #[inline]
    pub(crate) fn fits(&mut self, bytes: usize) -> bool {
        if let (true, Some(slot)) = (bytes > 0, self.reserved) {
            // What was lent before was not enough, and is free.
            self.memory.settle(slot, 0);
        }
        self.memory.fits(bytes)
    }

    /// The part of the history's capacity, in changes, that a sample of this many bytes takes by its memory.
    #[inline]
    pub(crate) fn share(&self, bytes: usize) -> u32 {
        self.memory.share(bytes, self.room)
    }

    /// Changes the cache can hold, without ends that lie beside values.
    pub(crate) fn capacity(&self) -> usize {
        self.room
    }

    pub(crate) fn first(&self) -> Option<SequenceNumber> {
        let (sample, end) = (self.first_sample(), self.set_ends.first());
        // `None` is less than any number.
        sample.min(end).or(sample).or(end)
    }

    /// Whether a change of this instance could be committed now.
    pub(crate) fn room_for(&self, key_hash: Option<KeyHash>) -> Result<(), HistoryFull> {
        let has_spare = self.order.len() - self.ends < self.capacity();
        match self.keep {
            Keep::All if has_spare => Ok(()),
            Keep::All => Err(HistoryFull::Unacknowledged),
            Keep::Last { depth } => {
                let key = key_hash.unwrap_or_default();
                let replaces = self
                    .instances
                    .get(&key)
                    .is_some_and(|instance| instance.count() >= depth);
                if has_spare || replaces {
                    Ok(())
                } else {
                    Err(HistoryFull::Instances)
                }
            }
        }
    }

    /// Lends a free slot to serialise a payload of so many bytes into; what is longer than most is lent as much as there
    /// is ([`fits`](Self::fits)). A slot lent and not committed is lent again.
    pub(crate) fn reserve(
        &mut self,
        key_hash: Option<KeyHash>,
        bytes: usize,
    ) -> Result<&mut [u8], HistoryFull> {
        self.room_for(key_hash)?;
        let slot = match self.reserved {
            Some(slot) => slot,
            None => self
                .memory
                .claim()
                .expect("one slot more than changes is never in the order"),
        };
        self.reserved = Some(slot);
        Ok(self.memory.lend(slot, bytes))
    }

    /// Makes the reserved slot a change, of which KEEP_LAST makes others give way.
    pub(crate) fn commit(&mut self, change: Change) {
        let slot = self.reserved.take().expect("commit follows reserve");
        self.memory.settle(slot, change.length as usize);
        debug_assert!(
            self.order
                .back()
                .is_none_or(|&(last, _)| last < change.sequence)
        );
        let key = change.key_hash.unwrap_or_default();
        if let Keep::Last { depth } = self.keep
            && let Some(&instance) = self.instances.get(&key)
            && instance.count() >= depth
        {
            self.replace(&instance, depth, change.kind);
        }
        self.changes[usize::from(slot)] = change;
        self.order.push_back((change.sequence, slot));
        let instance = self.instances.entry(key).or_insert(Chain::EMPTY);
        self.links.push(instance, slot);
    }

    /// Makes place for one more change of an instance that has as many as HISTORY says, or more.
    fn replace(&mut self, instance: &Chain, depth: u16, kind: ChangeKind) {
        if kind != ChangeKind::Alive {
            return self.replace_by_end(instance, depth, kind);
        }
        let mut oldest = instance.oldest();
        for _ in depth..=instance.count() {
            let Some(slot) = oldest else { return };
            oldest = self.links.younger(slot);
            self.remove(self.changes[usize::from(slot)].sequence);
        }
    }

    #[cold]
    fn replace_by_end(&mut self, instance: &Chain, depth: u16, kind: ChangeKind) {
        let has_room = self.ends < self.ends_room;
        if has_room && instance.count() - depth < ENDS_BESIDE {
            self.ends += 1;
            return;
        }
        let said = |slot: u16| self.changes[usize::from(slot)].kind;
        let repeated = instance.youngest().filter(|&slot| kind.repeats(said(slot)));
        let replaced = repeated.or(instance.oldest());
        if let Some(slot) = replaced {
            // It lies where the former did.
            let beside = usize::from(instance.count() > depth);
            self.remove(self.changes[usize::from(slot)].sequence);
            self.ends += beside;
        }
    }

    /// The change with this sequence number.
    pub(crate) fn get(&self, sequence: SequenceNumber) -> Option<(&Change, &[u8])> {
        let slot = self.slot_of(sequence)?;
        let change = &self.changes[usize::from(slot)];
        Some((change, self.memory.get(slot, change.length as usize)))
    }

    /// The oldest change of an instance.
    pub(crate) fn oldest_of(&self, key: KeyHash) -> Option<(&Change, &[u8])> {
        let slot = self.instances.get(&key)?.oldest()?;
        let change = &self.changes[usize::from(slot)];
        Some((change, self.memory.get(slot, change.length as usize)))
    }

    /// The first change at or above this number.
    pub(crate) fn next_from(&self, sequence: SequenceNumber) -> Option<&Change> {
        let (_, slot) = self.from(sequence)?;
        Some(&self.changes[usize::from(slot)])
    }

    /// The number and the slot of that.
    fn from(&self, sequence: SequenceNumber) -> Option<(SequenceNumber, u16)> {
        let position = self.order.partition_point(|&(there, _)| there < sequence);
        let sample = self.order.get(position).copied();
        let end = self.set_ends.from(sequence);
        sample.min(end).or(sample).or(end)
    }

    /// Says when the last change was written.
    pub(crate) fn note_written(&mut self, at: Instant) {
        if let Some(&(_, slot)) = self.order.back() {
            self.changes[usize::from(slot)].written = at;
        }
    }

    /// The same, also if it was pushed out and is still pinned.
    pub(crate) fn get_pinned(&self, sequence: SequenceNumber) -> Option<(&Change, &[u8])> {
        let Some(pinned) = self.pinned.filter(|pinned| pinned.sequence == sequence) else {
            return self.get(sequence);
        };
        let change = &self.changes[usize::from(pinned.slot)];
        Some((change, self.memory.get(pinned.slot, change.length as usize)))
    }

    /// Keeps the slot of a change until [`Self::unpin`].
    pub(crate) fn pin(&mut self, sequence: SequenceNumber) {
        self.unpin();
        if let Some(slot) = self.slot_of(sequence) {
            self.pinned = Some(Pinned {
                sequence,
                slot,
                is_removed: false,
            });
        }
    }

    /// The pinned change, if there is one, is like any other again.
    pub(crate) fn unpin(&mut self) {
        if let Some(pinned) = self.pinned.take()
            && pinned.is_removed
        {
            self.memory.give_back(pinned.slot);
        }
    }

    /// The first change at or above this sequence number.
    pub(crate) fn at_or_after(&self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        self.from(sequence).map(|(there, _)| there)
    }

    /// Removes a change, wherever it stands.
    pub(crate) fn remove(&mut self, sequence: SequenceNumber) {
        let Some(position) = self.position(sequence) else {
            self.set_ends.remove(sequence);
            return;
        };
        let (_, slot) = self.order.remove(position).expect("the position was found");
        let key = self.changes[usize::from(slot)].key_hash.unwrap_or_default();
        if let Some(instance) = self.instances.get_mut(&key) {
            // Mostly the oldest: KEEP_LAST pushes that out, and acknowledged changes go in the order of
            // their numbers.
            self.links.remove(instance, slot);
            if let Keep::Last { depth } = self.keep
                && instance.count() >= depth
            {
                self.ends -= 1;
            }
            if instance.count() == 0 {
                self.instances.remove(&key);
            }
        }
        match &mut self.pinned {
            Some(pinned) if pinned.slot == slot => pinned.is_removed = true,
            _ => self.memory.give_back(slot),
        }
    }

    /// Removes the oldest sample; false: there is none.
    #[cold]
    pub(crate) fn remove_oldest(&mut self) -> bool {
        let oldest = self.first_sample();
        oldest.map(|oldest| self.remove(oldest)).is_some()
    }

    /// Removes the oldest change that ends an instance, if it lies below `sequence`.
    pub(crate) fn remove_oldest_end_below(&mut self, sequence: SequenceNumber) {
        let is_end = |slot: u16| self.changes[usize::from(slot)].kind != ChangeKind::Alive;
        let oldest = self.order.iter().find(|&&(_, slot)| is_end(slot));
        if let Some(&(there, _)) = oldest
            && there < sequence
        {
            self.remove(there);
        }
    }

    /// Removes every change below `sequence`; returns how many.
    pub(crate) fn remove_below(&mut self, sequence: SequenceNumber) -> usize {
        let mut removed = 0;
        while let Some(first) = self.first() {
            if first >= sequence {
                break;
            }
            self.remove(first);
            removed += 1;
        }
        removed
    }

    fn slot_of(&self, sequence: SequenceNumber) -> Option<u16> {
        match self.position(sequence) {
            Some(position) => Some(self.order[position].1),
            None => self.set_ends.slot_of(sequence),
        }
    }

    /// The place of a change that is no end of a set.
    fn position(&self, sequence: SequenceNumber) -> Option<usize> {
        let first = self.first_sample()?;
        // Without a hole the distance to the first is the place.
        let guess = usize::try_from(sequence.get().checked_sub(first.get())?).ok()?;
        if self
            .order
            .get(guess)
            .is_some_and(|&(there, _)| there == sequence)
        {
            return Some(guess);
        }
        self.order
            .binary_search_by_key(&sequence, |&(there, _)| there)
            .ok()
    }
}

#[cfg(test)]
mod tests;
