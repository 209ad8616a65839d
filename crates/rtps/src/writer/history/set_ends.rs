//! Ends of coherent sets in a writer's history: changes with only a sequence number.
//!
//! Ends use separate slots without payload. A history full of samples thus has room for the end of its set, and ends
//! take no room from samples. There are as many slots as for samples, since each sample may be a set of its own. If
//! more are needed under KEEP_LAST, an end whose set has no sample left is removed first.
//!
//! A separate queue keeps the cost of finding and removing the oldest sample independent of the number of ends before
//! it.

use alloc::{collections::VecDeque, vec::Vec};

use isolane_wire::{message::CoherentSetInfo, sequence::SequenceNumber};

use crate::{
    limits::MIN_SET_ENDS,
    writer::history::{Change, History},
};

#[derive(Debug, Default)]
pub(super) struct SetEnds {
    free: Vec<u16>,
    /// (sequence, slot) of the ends in the history, ascending.
    order: VecDeque<(SequenceNumber, u16)>,
}

impl SetEnds {
    /// Sequence number of the oldest end.
    pub(super) fn first(&self) -> Option<SequenceNumber> {
        self.order.front().map(|&(sequence, _)| sequence)
    }

    /// First end at or above a sequence number, with its slot.
    pub(super) fn from(&self, sequence: SequenceNumber) -> Option<(SequenceNumber, u16)> {
        let at = self.order.partition_point(|&(there, _)| there < sequence);
        self.order.get(at).copied()
    }

    /// Slot of the end with a sequence number.
    pub(super) fn slot_of(&self, sequence: SequenceNumber) -> Option<u16> {
        let found = self.from(sequence).filter(|&(there, _)| there == sequence);
        found.map(|(_, slot)| slot)
    }

    /// Removes the end with a sequence number, if there is one.
    #[cold]
    pub(super) fn remove(&mut self, sequence: SequenceNumber) {
        let found = self.order.binary_search_by_key(&sequence, |&(at, _)| at);
        if let Some((_, slot)) = found.ok().and_then(|at| self.order.remove(at)) {
            self.free.push(slot);
        }
    }
}

impl History {
    /// Allocates memory for marks of sets and groups, and for ends of sets if `has_ends`.
    pub(crate) fn keep_marks(&mut self, has_ends: bool) {
        let slots = self.changes.len() as u16;
        let ends = match has_ends {
            true => (self.room as u16)
                .max(MIN_SET_ENDS)
                .min(u16::MAX - 1 - slots),
            false => 0,
        };
        self.changes
            .resize(usize::from(slots + ends), Change::EMPTY);
        self.marks = alloc::vec![CoherentSetInfo::default(); self.changes.len()];
        self.set_ends = SetEnds {
            free: (slots..slots + ends).rev().collect(),
            order: VecDeque::with_capacity(usize::from(ends)),
        };
    }

    /// Returns whether the end of a set could be committed now.
    pub(crate) fn has_room_for_set_end(&self) -> bool {
        !self.set_ends.free.is_empty()
    }

    /// Sequence number of the oldest sample or end of an instance.
    pub(crate) fn first_sample(&self) -> Option<SequenceNumber> {
        self.order.front().map(|&(sequence, _)| sequence)
    }

    pub(crate) fn first_set_end(&self) -> Option<SequenceNumber> {
        self.set_ends.first()
    }

    /// Makes room for the end of a set, by removing one below `sequence` if necessary. Returns whether there is room.
    pub(crate) fn make_room_for_set_end(&mut self, sequence: SequenceNumber) -> bool {
        if self.has_room_for_set_end() {
            return true;
        }
        let ends = self.set_ends.order.iter().map(|&(end, _)| end);
        let below = ends.take_while(|&end| end < sequence);
        let of_nothing = below.clone().find(|&end| self.is_end_of_nothing(end));
        let Some(end) = of_nothing.or_else(|| below.clone().next()) else {
            return false;
        };
        self.set_ends.remove(end);
        true
    }

    /// Returns whether no sample of the end's set is left directly before the end.
    fn is_end_of_nothing(&self, end: SequenceNumber) -> bool {
        let last_below = |order: &VecDeque<(SequenceNumber, u16)>| {
            let at = order.partition_point(|&(there, _)| there < end);
            at.checked_sub(1).map(|at| order[at])
        };
        let sample = last_below(&self.order);
        if last_below(&self.set_ends.order) > sample {
            return true;
        }
        sample.is_none_or(|(_, slot)| self.marks[usize::from(slot)].set().is_none())
    }

    /// Adds the end of a set, for which there must be room.
    pub(crate) fn commit_set_end(&mut self, change: Change, mark: CoherentSetInfo) {
        let Some(slot) = self.set_ends.free.pop() else {
            return;
        };
        self.changes[usize::from(slot)] = change;
        self.marks[usize::from(slot)] = mark;
        self.set_ends.order.push_back((change.sequence, slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        sample_memory::Sizes,
        writer::history::{HistoryPlan, Keep},
    };

    fn a_history(keep: Keep, samples: u16) -> History {
        let mut history = History::try_new(HistoryPlan::new(keep, samples, Sizes::fixed(8)), 1)
            .expect("memory for a test");
        history.keep_marks(true);
        history
    }

    fn write(history: &mut History, sequence: i64, key: u8, set: Option<i64>) {
        let key_hash = Some([key; 16]);
        history.reserve(key_hash, 1).expect("there is room");
        let sequence = SequenceNumber(sequence);
        history.commit(Change {
            sequence,
            key_hash,
            ..Change::EMPTY
        });
        let coherent_set = set.map(SequenceNumber);
        history.set_mark(
            sequence,
            CoherentSetInfo {
                coherent_set,
                ..CoherentSetInfo::default()
            },
        );
    }

    fn end(history: &mut History, sequence: i64) -> bool {
        let has_room = history.make_room_for_set_end(SequenceNumber(i64::MAX));
        let change = Change {
            sequence: SequenceNumber(sequence),
            ..Change::EMPTY
        };
        let mark = CoherentSetInfo {
            coherent_set: Some(SequenceNumber::UNKNOWN),
            ..CoherentSetInfo::default()
        };
        history.commit_set_end(change, mark);
        has_room
    }

    #[test]
    fn a_full_history_has_room_for_the_end_and_the_end_takes_none_from_samples() {
        for keep in [Keep::All, Keep::Last { depth: 1 }] {
            let mut history = a_history(keep, 3);
            for number in 1..=3 {
                write(&mut history, number, number as u8, Some(1));
            }
            assert!(end(&mut history, 4));
            assert_eq!(history.get(SequenceNumber(4)).map(|it| it.1.len()), Some(0));
            assert!(history.room_for(Some([9; 16])).is_err());
            history.remove(SequenceNumber(2));
            write(&mut history, 5, 9, None);
            history.remove_below(SequenceNumber(6));
            assert_eq!(history.first(), None);
            assert!(history.set_ends.order.is_empty());
        }
    }

    #[test]
    fn an_end_outlives_those_of_sets_of_which_no_sample_is_left() {
        let mut history = a_history(Keep::Last { depth: 1 }, 2);
        write(&mut history, 1, 1, Some(1));
        end(&mut history, 2);
        let mut number = 3;
        for _ in 0..2 * MIN_SET_ENDS {
            write(&mut history, number, 2, Some(number));
            assert!(end(&mut history, number + 1));
            number += 2;
        }
        assert!(history.get(SequenceNumber(1)).is_some());
        assert!(history.get(SequenceNumber(2)).is_some(), "its set is there");
        assert!(history.get(SequenceNumber(4)).is_none());
        assert!(history.get(SequenceNumber(number - 1)).is_some());
    }

    #[test]
    fn only_ends_below_a_number_make_room() {
        let mut history = a_history(Keep::All, 2);
        for number in 1..=i64::from(MIN_SET_ENDS) {
            end(&mut history, number);
        }
        assert!(!history.make_room_for_set_end(SequenceNumber(1)));
        assert!(history.make_room_for_set_end(SequenceNumber(2)));
        assert_eq!(history.first(), Some(SequenceNumber(2)));
    }

    /// A full KEEP_ALL history of a TRANSIENT_LOCAL writer removes its oldest sample with each one written.
    #[test]
    fn the_oldest_sample_is_the_first_of_its_queue_however_many_ends_lie_before_it() {
        let mut history = a_history(Keep::All, 100);
        assert!((1..=90).all(|number| end(&mut history, number)));
        write(&mut history, 91, 1, Some(91));
        end(&mut history, 92);
        write(&mut history, 93, 1, None);
        assert_eq!(history.first(), Some(SequenceNumber(1)));
        for sample in [91, 93] {
            let first = history.order.front().map(|&(sequence, _)| sequence);
            assert_eq!(first, Some(SequenceNumber(sample)));
            assert_eq!(history.first_sample(), first);
            history.remove(SequenceNumber(sample));
        }
        assert_eq!(history.first_sample(), None);
        let from = |number| history.at_or_after(SequenceNumber(number));
        assert_eq!((from(91), from(93)), (Some(SequenceNumber(92)), None));
        assert_eq!(history.remove_below(SequenceNumber(90)), 89);
        assert_eq!(history.first(), Some(SequenceNumber(90)));
    }
}
