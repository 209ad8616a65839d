//! Samples withheld from the user by policies: those held back by TIME_BASED_FILTER, and those of writers that do not
//! own the instance.
//!
//! Held-back samples are received and acknowledged, but not available yet. They use reserved slots, at most one an
//! instance, and take no room from available or waiting samples.

use isolane_wire::cdr::KeyHash;

use super::{Cache, Refused, SampleInfo};

impl Cache {
    /// Returns whether an instance is known and has ended.
    pub(crate) fn has_ended(&self, key: KeyHash) -> bool {
        self.instances.has_ended(key)
    }

    /// Number of held-back samples.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Returns whether the next sample of an instance would find room among the available ones.
    pub(crate) fn has_place(&self, key: KeyHash) -> bool {
        let has_room = self.available.len() < self.available_room;
        has_room || self.would_replace(key) || self.end_beside().is_some()
    }

    /// Returns the information of a writer's first waiting sample.
    pub(crate) fn waiting_info(&self, proxy: u16) -> Option<&SampleInfo> {
        let slot = self.slot(*self.waiting.get(self.waiting_of(proxy).start)?);
        (slot.proxy == proxy).then_some(&slot.info)
    }

    pub(crate) fn first_waiting_sample(&self, proxy: u16) -> Option<(&SampleInfo, &[u8])> {
        let index = *self.waiting.get(self.waiting_of(proxy).start)?;
        let slot = self.slot(index);
        let payload = self.memory.get(index, slot.length as usize);
        (slot.proxy == proxy).then_some((&slot.info, payload))
    }

    /// Holds a sample back; `None` if all slots for this are used.
    pub(crate) fn hold(&mut self, proxy: u16, info: SampleInfo, payload: &[u8]) -> Option<u16> {
        if self.held == self.held_room || payload.len() > self.memory.max_bytes() {
            return None;
        }
        let slot = self.fill(proxy, info, payload, true)?;
        self.held += 1;
        Some(slot)
    }

    /// Holds a writer's first waiting sample back in its slot; `None` if there is no room and it was dropped.
    pub(crate) fn hold_waiting(&mut self, proxy: u16) -> Option<u16> {
        let slot = self.waiting.remove(self.waiting_of(proxy).start);
        if self.held < self.held_room {
            self.held += 1;
            return Some(slot);
        }
        self.empty(slot);
        None
    }

    pub(crate) fn forget_first_waiting(&mut self, proxy: u16) {
        let slot = self.waiting.remove(self.waiting_of(proxy).start);
        self.empty(slot);
    }

    pub(crate) fn drop_held(&mut self, slot: u16) {
        self.held -= 1;
        self.empty(slot);
    }

    /// Makes a held-back sample available.
    pub(crate) fn show_held(&mut self, slot: u16) -> Result<(), Refused> {
        let key = self.slot(slot).info.key_hash.unwrap_or_default();
        if self.evict_replaced(key, 0) == 0 && self.available.len() >= self.available_room {
            let end = self.end_beside().ok_or(Refused::Full)?;
            self.evict(end);
        }
        self.held -= 1;
        self.make_available(slot);
        Ok(())
    }

    /// Returns the writer proxy of a held-back sample.
    pub(crate) fn writer_of_held(&self, slot: u16) -> u16 {
        self.slot(slot).proxy
    }

    pub(super) fn empty(&mut self, slot: u16) {
        self.slots[usize::from(slot)] = None;
        self.memory.give_back(slot);
    }
}
