//! Ends of coherent sets in a writer's history: changes with a number and nothing else.
//!
//! They lie in slots without a payload, apart from those of samples: a history that is full of samples has room for the
//! end of their set, and ends take no room from samples. There is room for as many as for samples, since each of those may
//! be a set. Where more are needed, under KEEP_LAST, an end goes first of whose set no sample is left.

use alloc::vec::Vec;

use isolane_wire::{rtps::SetMark, sequence::SequenceNumber};

use super::{Change, History};
use crate::limits::MIN_SET_ENDS;

#[derive(Debug, Default)]
pub(super) struct SetEnds {
    /// The first slot for an end; `None`: there are none.
    first_slot: Option<u16>,
    free: Vec<u16>,
    /// Ends that are in the history.
    pub(super) kept: usize,
}

impl SetEnds {
    #[inline]
    fn has_slot(&self, slot: u16) -> bool {
        self.first_slot.is_some_and(|first| slot >= first)
    }
}

impl History {
    /// Takes memory for what changes say of their sets and group, and for ends of sets if there are to be any.
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
        self.order.reserve_exact(usize::from(slots + ends));
        self.marks = alloc::vec![SetMark::default(); self.changes.len()];
        self.set_ends = SetEnds {
            first_slot: has_ends.then_some(slots),
            free: (slots..slots + ends).rev().collect(),
            kept: 0,
        };
    }

    /// Whether the end of a set could be committed now.
    pub(crate) fn has_room_for_set_end(&self) -> bool {
        !self.set_ends.free.is_empty()
    }

    /// The oldest change that is a sample, or the end of an instance.
    pub(crate) fn first_sample(&self) -> Option<SequenceNumber> {
        let is_sample = |&&(_, slot): &&(SequenceNumber, u16)| !self.set_ends.has_slot(slot);
        let sample = self.order.iter().find(is_sample);
        sample.map(|&(sequence, _)| sequence)
    }

    /// The number of the oldest.
    pub(crate) fn first_set_end(&self) -> Option<SequenceNumber> {
        let mut order = self.order.iter();
        let end = order.find(|&&(_, slot)| self.set_ends.has_slot(slot));
        end.map(|&(sequence, _)| sequence)
    }

    /// Makes room for the end of a set, if one below `sequence` can go.
    pub(crate) fn make_room_for_set_end(&mut self, sequence: SequenceNumber) -> bool {
        if self.has_room_for_set_end() {
            return true;
        }
        let below = self.order.partition_point(|&(there, _)| there < sequence);
        let is_end = |at: &usize| self.set_ends.has_slot(self.order[*at].1);
        let mut of_nothing = (0..below).filter(is_end).filter(|&at| {
            let before = at.checked_sub(1).map(|before| self.order[before].1);
            before.is_none_or(|before| self.marks[usize::from(before)].set().is_none())
        });
        let found = of_nothing.next().or_else(|| (0..below).find(is_end));
        let Some(at) = found else { return false };
        self.remove(self.order[at].0);
        true
    }

    /// Enters the end of a set, for which there is room.
    pub(crate) fn commit_set_end(&mut self, change: Change, mark: SetMark) {
        let Some(slot) = self.set_ends.free.pop() else {
            return;
        };
        self.changes[usize::from(slot)] = change;
        self.marks[usize::from(slot)] = mark;
        self.order.push_back((change.sequence, slot));
        self.set_ends.kept += 1;
    }

    /// Gives the slot of an end back; false: it is a sample's.
    #[inline]
    pub(super) fn free_set_end(&mut self, slot: u16) -> bool {
        let is_end = self.set_ends.has_slot(slot);
        if is_end {
            self.set_ends.free.push(slot);
            self.set_ends.kept -= 1;
        }
        is_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Keep;

    fn a_history(keep: Keep, samples: u16) -> History {
        let mut history = History::new(keep, samples, 8, 1);
        history.keep_marks(true);
        history
    }

    fn write(history: &mut History, sequence: i64, key: u8, set: Option<i64>) {
        let key_hash = Some([key; 16]);
        history.reserve(key_hash).expect("there is room");
        let sequence = SequenceNumber(sequence);
        history.commit(Change {
            sequence,
            key_hash,
            ..Change::EMPTY
        });
        let coherent_set = set.map(SequenceNumber);
        history.set_mark(
            sequence,
            SetMark {
                coherent_set,
                ..SetMark::default()
            },
        );
    }

    fn end(history: &mut History, sequence: i64) -> bool {
        let has_room = history.make_room_for_set_end(SequenceNumber(i64::MAX));
        let change = Change {
            sequence: SequenceNumber(sequence),
            ..Change::EMPTY
        };
        let mark = SetMark {
            coherent_set: Some(SequenceNumber::UNKNOWN),
            ..SetMark::default()
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
            assert_eq!((history.first(), history.set_ends.kept), (None, 0));
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
}
