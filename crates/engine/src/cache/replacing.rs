//! What makes way for what comes: KEEP_LAST's older samples, and ends of instances that lie beside them.

use isolane_wire::cdr::KeyHash;

use super::{Cache, Refused, SampleInfo};
use crate::{
    history::{ChangeKind, Keep},
    limits::ENDS_BESIDE,
};

impl Cache {
    pub(super) fn would_replace(&self, key: KeyHash) -> bool {
        self.replaced_by_one(key, 0) > 0
    }

    /// Samples of an instance that one more takes the place of, where it may have so many beside those that HISTORY
    /// says.
    #[inline]
    fn replaced_by_one(&self, key: KeyHash, beside: u16) -> u16 {
        match self.keep {
            Keep::All => 0,
            // Who takes what comes at once pays for no look-up.
            Keep::Last { .. } if self.available.is_empty() => 0,
            Keep::Last { depth } => {
                let most = depth.saturating_add(beside).saturating_sub(1);
                self.instances.samples(key).saturating_sub(most)
            }
        }
    }

    /// Lets go of what one more takes the place of; returns how many.
    #[inline]
    pub(super) fn evict_replaced(&mut self, key: KeyHash, beside: u16) -> u16 {
        let replaced = self.replaced_by_one(key, beside);
        (0..replaced).for_each(|_| self.evict_oldest(key));
        replaced
    }

    /// Makes room for one available sample more, or says why there is none. False: it is none, but the word that a
    /// writer writes an instance no longer that ends nothing, and was taken note of.
    #[inline]
    pub(super) fn make_room(&mut self, proxy: u16, info: &SampleInfo) -> Result<bool, Refused> {
        if !info.valid_data() {
            return self.make_room_for_end(proxy, info);
        }
        let key = info.key_hash.unwrap_or_default();
        if self.evict_replaced(key, 0) == 0 {
            self.find_room(proxy)?;
        }
        Ok(true)
    }

    /// The end of an instance is no value, and pushes out none that the user has not seen. Where it finds no room beside
    /// them it takes the place of an end that says no more than it does, or of something seen. Where there is nothing of
    /// that it is taken note of, and no sample: samples tell the state of their instance as it is when they are looked
    /// at (DDS 1.4 §2.2.2.5.1.3).
    #[cold]
    fn make_room_for_end(&mut self, proxy: u16, info: &SampleInfo) -> Result<bool, Refused> {
        let key = info.key_hash.unwrap_or_default();
        if self.is_word_only(proxy, info) {
            return Ok(false);
        }
        let is_full = self.available.len() >= self.available_room;
        let beside = if is_full { 0 } else { ENDS_BESIDE };
        if self.replaced_by_one(key, beside) == 0 {
            self.find_room(proxy)?;
            return Ok(true);
        }
        let repeated = self.end_repeated_by(key, info.kind);
        let replaced = repeated.or_else(|| self.seen_or_end_of(key));
        let replaced = replaced.or_else(|| self.end_beside().filter(|_| is_full));
        match replaced {
            Some(replaced) => self.evict(replaced),
            None => {
                self.instances.note(key, proxy, info.kind, info.received);
                self.evicted += 1;
            }
        }
        Ok(replaced.is_some())
    }

    /// Makes room for a long sample, under KEEP_LAST: the oldest sample gives way.
    #[cold]
    pub(super) fn make_room_for_long(&mut self) -> Result<(), Refused> {
        match (self.keep, self.available.front()) {
            (Keep::Last { .. }, Some(&oldest)) => {
                self.evict(oldest);
                Ok(())
            }
            _ => Err(Refused::Full),
        }
    }

    /// The oldest sample of an instance that is no value which the user has yet to see.
    fn seen_or_end_of(&self, key: KeyHash) -> Option<u16> {
        let mut at = self.instances.oldest(key);
        while let Some(index) = at {
            let slot = self.slot(index);
            if slot.read || !slot.info.valid_data() {
                return at;
            }
            at = self.links.younger(index);
        }
        None
    }

    /// The youngest sample of an instance, if it is an end that this one says again.
    fn end_repeated_by(&self, key: KeyHash, kind: ChangeKind) -> Option<u16> {
        let youngest = self.instances.youngest(key)?;
        let former = self.slot(youngest).info.kind;
        kind.repeats(former).then_some(youngest)
    }

    /// Room beside what is there; where it is full an end gives way.
    #[inline]
    fn find_room(&mut self, proxy: u16) -> Result<(), Refused> {
        if self.available.len() >= self.available_room {
            let end = self.end_beside().ok_or(Refused::Full)?;
            self.evict(end);
        } else if self.is_over_share(proxy) {
            return Err(Refused::PutOff);
        }
        Ok(())
    }

    /// Where KEEP_LAST promises each instance its room, the first end that lies beside that: its instance tells the
    /// state without it.
    #[cold]
    pub(super) fn end_beside(&self) -> Option<u16> {
        let Keep::Last { depth } = self.keep else {
            return None;
        };
        let is_beside = |&index: &u16| {
            let slot = self.slot(index);
            let key = slot.info.key_hash.unwrap_or_default();
            !slot.info.valid_data() && self.instances.samples(key) > depth
        };
        self.available.iter().copied().find(is_beside)
    }

    fn evict_oldest(&mut self, key: KeyHash) {
        if let Some(index) = self.instances.oldest(key) {
            self.evict(index);
        }
    }

    pub(super) fn evict(&mut self, index: u16) {
        // Without a key, or where all instances are written alike, it is the first.
        let position = self.available.iter().position(|&there| there == index);
        position.and_then(|position| self.available.remove(position));
        if !self.release(index).synthetic {
            self.evicted += 1;
        }
    }
}
