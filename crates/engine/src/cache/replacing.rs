//! Replacement of samples: older ones under KEEP_LAST, and extra ends of instances.

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

    /// Number of an instance's samples that one more would replace, with `beside` samples allowed beyond HISTORY depth.
    #[inline]
    fn replaced_by_one(&self, key: KeyHash, beside: u16) -> u16 {
        match self.keep {
            Keep::All => 0,
            // No look-up for readers that take each sample at once.
            Keep::Last { .. } if self.available.is_empty() => 0,
            Keep::Last { depth } => {
                let most = depth.saturating_add(beside).saturating_sub(1);
                self.instances.samples(key).saturating_sub(most)
            }
        }
    }

    /// Removes the samples that one more replaces, and returns their number.
    #[inline]
    pub(super) fn evict_replaced(&mut self, key: KeyHash, beside: u16) -> u16 {
        let replaced = self.replaced_by_one(key, beside);
        (0..replaced).for_each(|_| self.evict_oldest(key));
        replaced
    }

    /// Makes room for one available sample. Returns `false` if it is an unregistration without effect, which is only
    /// recorded.
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

    /// Makes room for the end of an instance, which carries no value and must not replace unread values. Without extra
    /// room it replaces an equivalent end or a sample already read. Otherwise it is only recorded: samples show the
    /// current state of their instance anyway (DDS 1.4 §2.2.2.5.1.3).
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

    /// Makes room for a long sample under KEEP_LAST by removing the oldest sample.
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

    /// Returns the oldest sample of an instance that is read, or is no value.
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

    /// Returns the newest sample of an instance if it is an end that this one repeats.
    fn end_repeated_by(&self, key: KeyHash, kind: ChangeKind) -> Option<u16> {
        let youngest = self.instances.youngest(key)?;
        let former = self.slot(youngest).info.kind;
        kind.repeats(former).then_some(youngest)
    }

    /// Checks for room, and removes an extra end if the cache is full.
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

    /// Returns the first end beyond the HISTORY depth of its instance under KEEP_LAST. The instance shows its state
    /// without it.
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
        // The index is 0 without a key, or if all instances are written equally often.
        let position = self.available.iter().position(|&there| there == index);
        position.and_then(|position| self.available.remove(position));
        if !self.release(index).synthetic {
            self.evicted += 1;
        }
    }
}
