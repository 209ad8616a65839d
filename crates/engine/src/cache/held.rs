//! What policies keep from the user: samples that TIME_BASED_FILTER keeps back, received and acknowledged and
//! not yet available, and those of writers that do not own their instance.
//!
//! What is kept back lies in slots of its own, one an instance at most: it takes no room from samples the
//! user may see, nor from those that wait for others.

use isolane_wire::cdr::KeyHash;

use super::{Cache, Refused, SampleInfo};

impl Cache {
    /// Whether an instance is known, and nobody writes it any more.
    pub(crate) fn has_ended(&self, key: KeyHash) -> bool {
        self.instances.has_ended(key)
    }

    /// Samples that are kept back.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Whether the next sample of an instance would find room among the available ones.
    pub(crate) fn has_place(&self, key: KeyHash) -> bool {
        let has_room = self.available.len() < self.available_room;
        has_room || self.would_replace(key) || self.end_beside().is_some()
    }

    /// What is known of the nearest sample of a writer that waits for others.
    pub(crate) fn waiting_info(&self, proxy: u16) -> Option<&SampleInfo> {
        let slot = self.slot(*self.waiting.get(self.waiting_of(proxy).start)?);
        (slot.proxy == proxy).then_some(&slot.info)
    }

    /// The same with its payload.
    pub(crate) fn first_waiting_sample(&self, proxy: u16) -> Option<(&SampleInfo, &[u8])> {
        let index = *self.waiting.get(self.waiting_of(proxy).start)?;
        let slot = self.slot(index);
        let payload = self.memory.get(index, slot.length as usize);
        (slot.proxy == proxy).then_some((&slot.info, payload))
    }

    /// Keeps a sample back; `None`: every slot for that is taken.
    pub(crate) fn hold(&mut self, proxy: u16, info: SampleInfo, payload: &[u8]) -> Option<u16> {
        if self.held == self.held_room || payload.len() > self.memory.max_bytes() {
            return None;
        }
        let slot = self.fill(proxy, info, payload, true)?;
        self.held += 1;
        Some(slot)
    }

    /// Keeps the nearest sample of a writer that waits back where it lies; `None`: there is no room for
    /// another, and it goes.
    pub(crate) fn hold_waiting(&mut self, proxy: u16) -> Option<u16> {
        let slot = self.waiting.remove(self.waiting_of(proxy).start);
        if self.held < self.held_room {
            self.held += 1;
            return Some(slot);
        }
        self.empty(slot);
        None
    }

    /// Lets the nearest sample of a writer go that waits.
    pub(crate) fn forget_first_waiting(&mut self, proxy: u16) {
        let slot = self.waiting.remove(self.waiting_of(proxy).start);
        self.empty(slot);
    }

    /// Lets a sample go that was kept back.
    pub(crate) fn drop_held(&mut self, slot: u16) {
        self.held -= 1;
        self.empty(slot);
    }

    /// Makes a sample available that was kept back.
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

    /// The proxy of the writer of a sample that is kept back.
    pub(crate) fn writer_of_held(&self, slot: u16) -> u16 {
        self.slot(slot).proxy
    }

    pub(super) fn empty(&mut self, slot: u16) {
        self.slots[usize::from(slot)] = None;
        self.memory.give_back(slot);
    }
}
