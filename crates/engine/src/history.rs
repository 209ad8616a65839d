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

use alloc::{boxed::Box, collections::VecDeque, vec, vec::Vec};

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

#[derive(Debug)]
pub(crate) struct History {
    keep: Keep,
    slot_bytes: usize,
    payload: Box<[u8]>,
    changes: Vec<Change>,
    free: Vec<u16>,
    /// (sequence, slot), ascending.
    order: VecDeque<(SequenceNumber, u16)>,
    instances: Index<KeyHash, Chain>,
    links: Links,
    /// The slot lent out by `reserve`.
    reserved: Option<u16>,
    /// Changes there can be at a time.
    room: usize,
    pinned: Option<Pinned>,
    /// What each slot's change says of its set and group; none, where none says anything.
    marks: Vec<SetMark>,
    /// Ends of coherent sets.
    ends: SetEnds,
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
    pub(crate) fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.payload
    }

    /// A cache for `samples` changes of at most `slot_bytes` each. One slot more is taken, so
    /// that a change is serialised before the one it replaces goes.
    pub(crate) fn new(keep: Keep, samples: u16, slot_bytes: usize, seed: u64) -> Self {
        Self::with_spare(keep, samples, 1, slot_bytes, seed)
    }

    /// The same with another slot, for a change that is pinned.
    pub(crate) fn with_pin(keep: Keep, samples: u16, slot_bytes: usize, seed: u64) -> Self {
        Self::with_spare(keep, samples, 2, slot_bytes, seed)
    }

    fn with_spare(keep: Keep, samples: u16, spare: u16, slot_bytes: usize, seed: u64) -> Self {
        let room = samples.min(u16::MAX - 1 - spare);
        let slots = room + spare;
        Self {
            keep,
            slot_bytes,
            payload: vec![0; usize::from(slots) * slot_bytes].into_boxed_slice(),
            changes: vec![Change::EMPTY; usize::from(slots)],
            free: (0..slots).rev().collect(),
            order: VecDeque::with_capacity(usize::from(slots)),
            instances: index(usize::from(slots), seed),
            links: Links::new(slots),
            reserved: None,
            room: usize::from(room),
            pinned: None,
            marks: Vec::new(),
            ends: SetEnds::default(),
        }
    }

    /// A change that was just committed says this.
    pub(crate) fn set_mark(&mut self, sequence: SequenceNumber, mark: SetMark) {
        if let Some(position) = self.position(sequence) {
            let slot = self.order[position].1;
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
            None => self.order[self.position(sequence)?].1,
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

    pub(crate) fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Changes the cache can hold.
    pub(crate) fn capacity(&self) -> usize {
        self.room
    }

    pub(crate) fn first(&self) -> Option<SequenceNumber> {
        self.order.front().map(|&(sequence, _)| sequence)
    }

    /// Whether a change of this instance could be committed now.
    pub(crate) fn room_for(&self, key_hash: Option<KeyHash>) -> Result<(), HistoryFull> {
        let has_spare = self.order.len() - self.ends.kept < self.capacity();
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

    /// Lends a free slot to serialise into. A slot lent and not committed is lent again.
    pub(crate) fn reserve(&mut self, key_hash: Option<KeyHash>) -> Result<&mut [u8], HistoryFull> {
        self.room_for(key_hash)?;
        let slot = match self.reserved {
            Some(slot) => slot,
            None => self
                .free
                .pop()
                .expect("one slot more than changes is never in the order"),
        };
        self.reserved = Some(slot);
        Ok(self.bytes_mut(slot))
    }

    /// Makes the reserved slot a change. Returns the change KEEP_LAST pushed out for it.
    pub(crate) fn commit(&mut self, change: Change) -> Option<SequenceNumber> {
        let slot = self.reserved.take().expect("commit follows reserve");
        debug_assert!(
            self.order
                .back()
                .is_none_or(|&(last, _)| last < change.sequence)
        );
        let key = change.key_hash.unwrap_or_default();
        let evicted = match (self.keep, self.instances.get(&key)) {
            (Keep::Last { depth }, Some(instance)) if instance.count() >= depth => {
                let oldest = instance
                    .oldest()
                    .map(|slot| self.changes[usize::from(slot)].sequence);
                oldest.inspect(|&sequence| self.remove(sequence))
            }
            _ => None,
        };
        self.changes[usize::from(slot)] = change;
        self.order.push_back((change.sequence, slot));
        let instance = self.instances.entry(key).or_insert(Chain::EMPTY);
        self.links.push(instance, slot);
        evicted
    }

    /// The change with this sequence number.
    pub(crate) fn get(&self, sequence: SequenceNumber) -> Option<(&Change, &[u8])> {
        let slot = self.order[self.position(sequence)?].1;
        let change = &self.changes[usize::from(slot)];
        Some((change, &self.bytes(slot)[..change.length as usize]))
    }

    /// The first change at or above this number.
    pub(crate) fn next_from(&self, sequence: SequenceNumber) -> Option<&Change> {
        let position = self.order.partition_point(|&(there, _)| there < sequence);
        let &(_, slot) = self.order.get(position)?;
        Some(&self.changes[usize::from(slot)])
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
        Some((change, &self.bytes(pinned.slot)[..change.length as usize]))
    }

    /// Keeps the slot of a change until [`Self::unpin`].
    pub(crate) fn pin(&mut self, sequence: SequenceNumber) {
        self.unpin();
        if let Some(position) = self.position(sequence) {
            let slot = self.order[position].1;
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
            self.free.push(pinned.slot);
        }
    }

    /// The first change at or above this sequence number.
    pub(crate) fn at_or_after(&self, sequence: SequenceNumber) -> Option<SequenceNumber> {
        let position = self.order.partition_point(|&(there, _)| there < sequence);
        self.order.get(position).map(|&(there, _)| there)
    }

    /// Removes a change, wherever it stands.
    pub(crate) fn remove(&mut self, sequence: SequenceNumber) {
        let Some(position) = self.position(sequence) else {
            return;
        };
        let (_, slot) = self.order.remove(position).expect("the position was found");
        if self.free_set_end(slot) {
            return;
        }
        let key = self.changes[usize::from(slot)].key_hash.unwrap_or_default();
        if let Some(instance) = self.instances.get_mut(&key) {
            // Mostly the oldest: KEEP_LAST pushes that out, and acknowledged changes go in the order of
            // their numbers.
            let is_removed = self.links.remove(instance, slot);
            debug_assert!(is_removed, "a change is in the chain of its instance");
            if instance.count() == 0 {
                self.instances.remove(&key);
            }
        }
        match &mut self.pinned {
            Some(pinned) if pinned.slot == slot => pinned.is_removed = true,
            _ => self.free.push(slot),
        }
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
        while let Some(&(first, _)) = self.order.front() {
            if first >= sequence {
                break;
            }
            self.remove(first);
            removed += 1;
        }
        removed
    }

    fn position(&self, sequence: SequenceNumber) -> Option<usize> {
        let first = self.first()?;
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

    /// Of the end of a set nothing.
    fn bytes(&self, slot: u16) -> &[u8] {
        let start = usize::from(slot) * self.slot_bytes;
        let bytes = self.payload.get(start..start + self.slot_bytes);
        bytes.unwrap_or_default()
    }

    fn bytes_mut(&mut self, slot: u16) -> &mut [u8] {
        &mut self.payload[usize::from(slot) * self.slot_bytes..][..self.slot_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(history: &mut History, sequence: i64, key: u8) -> Result<(), HistoryFull> {
        let key_hash = Some([key; 16]);
        history.reserve(key_hash)?[0] = sequence as u8;
        history.commit(Change {
            sequence: SequenceNumber(sequence),
            kind: ChangeKind::Alive,
            key_hash,
            timestamp: Timestamp::INVALID,
            written: Instant::new(0),
            length: 1,
        });
        Ok(())
    }

    fn sequences(history: &History) -> Vec<i64> {
        history
            .order
            .iter()
            .map(|(sequence, _)| sequence.get())
            .collect()
    }

    #[test]
    fn keep_last_pushes_out_the_oldest_of_its_own_instance_only() {
        let mut history = History::new(Keep::Last { depth: 2 }, 4, 8, 1);
        for (sequence, key) in [(1, 1), (2, 2), (3, 1), (4, 1), (5, 1)] {
            write(&mut history, sequence, key).unwrap();
        }
        assert_eq!(sequences(&history), [2, 4, 5]);
        assert_eq!(history.get(SequenceNumber(4)).unwrap().1, [4]);
        assert!(history.get(SequenceNumber(3)).is_none());
    }

    #[test]
    fn keep_last_refuses_an_instance_for_which_no_slot_is_left() {
        let mut history = History::new(Keep::Last { depth: 1 }, 2, 8, 1);
        write(&mut history, 1, 1).unwrap();
        write(&mut history, 2, 2).unwrap();
        assert_eq!(write(&mut history, 3, 3), Err(HistoryFull::Instances));
        write(&mut history, 3, 1).unwrap();
        assert_eq!(sequences(&history), [2, 3]);
    }

    #[test]
    fn keep_all_refuses_when_full_and_takes_again_what_was_acknowledged() {
        let mut history = History::new(Keep::All, 3, 8, 1);
        for sequence in 1..=3 {
            write(&mut history, sequence, 0).unwrap();
        }
        assert_eq!(write(&mut history, 4, 0), Err(HistoryFull::Unacknowledged));
        assert_eq!(history.remove_below(SequenceNumber(3)), 2);
        write(&mut history, 4, 0).unwrap();
        assert_eq!(sequences(&history), [3, 4]);
    }

    #[test]
    fn the_oldest_end_of_an_instance_makes_room_once_it_is_acknowledged() {
        let mut history = History::new(Keep::Last { depth: 1 }, 3, 8, 1);
        for (sequence, key) in [(1, 1), (2, 2), (3, 3)] {
            write(&mut history, sequence, key).unwrap();
        }
        let end = |history: &mut History, sequence: i64, key: u8| {
            history.reserve(Some([key; 16])).unwrap();
            history.commit(Change {
                sequence: SequenceNumber(sequence),
                kind: ChangeKind::Dispose,
                key_hash: Some([key; 16]),
                timestamp: Timestamp::INVALID,
                written: Instant::new(0),
                length: 0,
            });
        };
        end(&mut history, 4, 2);
        end(&mut history, 5, 1);
        history.remove_oldest_end_below(SequenceNumber(4));
        assert_eq!(sequences(&history), [3, 4, 5]);
        history.remove_oldest_end_below(SequenceNumber(6));
        assert_eq!(sequences(&history), [3, 5]);
    }

    #[test]
    fn a_reserved_slot_that_is_not_committed_is_lent_again() {
        let mut history = History::new(Keep::All, 1, 8, 1);
        history.reserve(None).unwrap()[0] = 1;
        history.reserve(None).unwrap()[0] = 2;
        write(&mut history, 1, 0).unwrap();
        assert_eq!(history.free.len(), 1);
    }

    #[test]
    fn a_pinned_change_that_is_pushed_out_stays_readable_and_then_gives_its_slot_back() {
        let mut history = History::with_pin(Keep::Last { depth: 1 }, 1, 8, 1);
        write(&mut history, 1, 0).unwrap();
        history.pin(SequenceNumber(1));
        for sequence in 2..=5 {
            write(&mut history, sequence, 0).unwrap();
        }
        assert_eq!(sequences(&history), [5]);
        assert!(history.get(SequenceNumber(1)).is_none());
        assert_eq!(history.get_pinned(SequenceNumber(1)).unwrap().1, [1]);
        history.unpin();
        assert!(history.get_pinned(SequenceNumber(1)).is_none());
        assert_eq!(history.free.len(), 2);
    }

    #[test]
    fn a_hole_in_the_numbers_does_not_hide_what_lies_behind_it() {
        let mut history = History::new(Keep::Last { depth: 1 }, 4, 8, 1);
        for (sequence, key) in [(1, 1), (2, 2), (9, 3), (10, 4)] {
            write(&mut history, sequence, key).unwrap();
        }
        assert_eq!(history.get(SequenceNumber(9)).unwrap().1, [9]);
        assert_eq!(
            history.at_or_after(SequenceNumber(3)),
            Some(SequenceNumber(9))
        );
        assert!(history.get(SequenceNumber(5)).is_none());
    }
}
