//! List of instances ordered by the time of their last event.
//!
//! A timed policy has one period for all instances of an endpoint, so the instance due next is the one with the oldest
//! event. Insertion, moving to the end and finding the next one due take constant time. All memory is allocated on
//! creation.

use alloc::vec::Vec;

use isolane_wire::{cdr::KeyHash, time::Instant};

use crate::hash::{Index, index};

/// End of the list.
const NONE: u16 = u16::MAX;

#[derive(Debug)]
struct Entry<V> {
    key: KeyHash,
    since: Instant,
    value: V,
    before: u16,
    after: u16,
}

/// Instances with a value each, linked from oldest to youngest event.
#[derive(Debug)]
pub(crate) struct EventOrder<V> {
    entries: Vec<Entry<V>>,
    free: Vec<u16>,
    index: Index<KeyHash, u16>,
    oldest: u16,
    youngest: u16,
    room: usize,
}

impl<V: Default> EventOrder<V> {
    pub(crate) fn new(room: u16, seed: u64) -> Self {
        let room = usize::from(room.min(NONE - 1));
        Self {
            entries: Vec::with_capacity(room),
            free: Vec::with_capacity(room),
            index: index(room, seed),
            oldest: NONE,
            youngest: NONE,
            room,
        }
    }

    /// Returns the last event and value of an instance.
    pub(crate) fn get(&self, key: KeyHash) -> Option<(Instant, &V)> {
        let entry = &self.entries[usize::from(*self.index.get(&key)?)];
        Some((entry.since, &entry.value))
    }

    pub(crate) fn get_mut(&mut self, key: KeyHash) -> Option<&mut V> {
        let &at = self.index.get(&key)?;
        Some(&mut self.entries[usize::from(at)].value)
    }

    /// Returns the instance with the oldest event.
    pub(crate) fn oldest(&self) -> Option<(KeyHash, Instant)> {
        let entry = self.entries.get(usize::from(self.oldest))?;
        Some((entry.key, entry.since))
    }

    /// Records an event of an instance, inserting it if new. Returns `false` if it is new and there is no room.
    pub(crate) fn touch(&mut self, key: KeyHash, at: Instant) -> bool {
        if let Some(&there) = self.index.get(&key) {
            let since = self.entries[usize::from(there)].since;
            self.take_out(there);
            self.put_last(there, since.max(at));
            return true;
        }
        let fresh = Entry {
            key,
            since: at,
            value: V::default(),
            before: NONE,
            after: NONE,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[usize::from(place)] = fresh;
                place
            }
            None if self.entries.len() < self.room => {
                self.entries.push(fresh);
                (self.entries.len() - 1) as u16
            }
            None => return false,
        };
        self.index.insert(key, place);
        self.put_last(place, at);
        true
    }

    pub(crate) fn remove(&mut self, key: KeyHash) -> Option<V> {
        let place = self.index.remove(&key)?;
        self.take_out(place);
        self.free.push(place);
        let value = &mut self.entries[usize::from(place)].value;
        Some(core::mem::take(value))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        // Values of free entries are defaults.
        self.entries.iter_mut().map(|entry| &mut entry.value)
    }

    fn put_last(&mut self, place: u16, since: Instant) {
        let youngest = core::mem::replace(&mut self.youngest, place);
        let entry = &mut self.entries[usize::from(place)];
        (entry.since, entry.before, entry.after) = (since, youngest, NONE);
        match self.entries.get_mut(usize::from(youngest)) {
            Some(before) => before.after = place,
            None => self.oldest = place,
        }
    }

    fn take_out(&mut self, place: u16) {
        let entry = &self.entries[usize::from(place)];
        let (before, after) = (entry.before, entry.after);
        match self.entries.get_mut(usize::from(before)) {
            Some(entry) => entry.after = after,
            None => self.oldest = after,
        }
        match self.entries.get_mut(usize::from(after)) {
            Some(entry) => entry.before = before,
            None => self.youngest = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> KeyHash {
        [number; 16]
    }

    fn order(periods: &mut EventOrder<u8>) -> Vec<u8> {
        let take = |periods: &mut EventOrder<u8>| {
            let (key, _) = periods.oldest()?;
            periods.remove(key);
            Some(key[0])
        };
        core::iter::from_fn(|| take(periods)).collect()
    }

    #[test]
    fn the_instance_that_is_longest_untouched_comes_first() {
        let mut periods = EventOrder::new(4, 1);
        for (at, number) in [1, 2, 3, 1, 4, 3].into_iter().enumerate() {
            assert!(periods.touch(key(number), Instant::new(at as u64)));
        }
        assert!(!periods.touch(key(5), Instant::new(9)), "no room");
        assert_eq!(periods.oldest(), Some((key(2), Instant::new(1))));
        assert_eq!(order(&mut periods), [2, 1, 4, 3]);
        assert!(periods.touch(key(5), Instant::new(9)));
        assert_eq!(order(&mut periods), [5]);
    }

    #[test]
    fn what_is_kept_of_an_instance_goes_with_it() {
        let mut periods = EventOrder::new(2, 1);
        periods.touch(key(1), Instant::new(1));
        *periods.get_mut(key(1)).unwrap() = 7u8;
        assert_eq!(periods.get(key(1)), Some((Instant::new(1), &7)));
        assert_eq!(periods.remove(key(1)), Some(7));
        periods.touch(key(1), Instant::new(2));
        assert_eq!(periods.get(key(1)), Some((Instant::new(2), &0)));
    }

    #[test]
    fn an_instance_may_leave_from_anywhere() {
        for gone in 1..=3 {
            let mut periods = EventOrder::<u8>::new(3, 1);
            assert!((1..=3).all(|number| periods.touch(key(number), Instant::new(0))));
            periods.remove(key(gone));
            let expected: Vec<u8> = (1..=3).filter(|&number| number != gone).collect();
            assert_eq!(order(&mut periods), expected);
        }
    }
}
