//! Ends of instances: which of them become samples, and synthetic ones for writers that left or are not alive.

use isolane_wire::{cdr::KeyHash, guid::Guid, time::Instant};

use super::{Cache, SampleInfo};
use crate::{history::ChangeKind, instance::InstanceState};

/// Proxy index in samples of removed writers.
const NOBODY: u16 = u16::MAX;

impl Cache {
    /// Returns whether an end of an instance has no effect. It is then recorded, but is no sample.
    pub(super) fn is_word_only(&mut self, proxy: u16, info: &SampleInfo) -> bool {
        let key = info.key_hash.unwrap_or_default();
        if self.instances.is_seen(key, proxy, info.kind) {
            return false;
        }
        self.instances
            .note_other(key, proxy, info.kind, info.received);
        self.unregistered += 1;
        true
    }

    /// Records that a writer writes or unregisters an instance whose sample is dropped. If it was the last writer, the
    /// end becomes available.
    pub(crate) fn note_other_writer(&mut self, proxy: u16, info: &SampleInfo) {
        let (key, at) = (info.key_hash.unwrap_or_default(), info.received);
        if self.instances.note_other(key, proxy, info.kind, at) {
            self.show_end(proxy, info.writer, info.key_hash, at);
        }
    }

    /// Processes the removal of a writer; see [`Self::writer_not_alive`].
    pub(crate) fn writer_gone(&mut self, proxy: u16, writer: Guid, now: Instant) {
        self.forget_waiting(proxy);
        self.writer_not_alive(proxy, writer, now);
        // Another writer may reuse its proxy index and must not get these samples.
        for &index in &self.available {
            if let Some(slot) = &mut self.slots[usize::from(index)]
                && slot.proxy == proxy
            {
                slot.proxy = NOBODY;
            }
        }
    }

    /// Unregisters a writer from all its instances. An instance that loses its last writer gets a sample without data
    /// if there is room.
    pub(crate) fn writer_not_alive(&mut self, proxy: u16, writer: Guid, now: Instant) {
        for instance in 0..self.instances.end() {
            if let Some(key) = self.instances.unregister_gone(instance, proxy, now) {
                let key = self.keyed.then_some(key);
                self.show_end(proxy, writer, key, now);
            }
        }
    }

    /// Returns the number of instances that lost their last writer without a sample for lack of room, since the last
    /// call.
    pub(crate) fn take_unseen(&mut self) -> u64 {
        core::mem::take(&mut self.unseen)
    }

    /// Adds the end of an instance without writers as a synthetic sample, if there is room.
    fn show_end(&mut self, proxy: u16, writer: Guid, key_hash: Option<KeyHash>, now: Instant) {
        let info = SampleInfo {
            writer,
            received: now,
            kind: ChangeKind::Unregister,
            instance_state: InstanceState::NotAliveNoWriters,
            key_hash,
            ..SampleInfo::UNSEEN
        };
        let of_sets = self.sets.as_ref().map_or(0, |sets| sets.set_aside());
        let of_waiting = self.waiting_room - self.waiting.len();
        let set_aside = of_waiting + self.held_room - self.held + of_sets;
        let is_shown = self.memory.free_slots() > set_aside && self.push_synthetic(proxy, info);
        self.unseen += u64::from(!is_shown);
    }

    fn push_synthetic(&mut self, proxy: u16, info: SampleInfo) -> bool {
        let Some(slot) = self.fill(proxy, info, &[], false) else {
            return false;
        };
        if let Some(filled) = &mut self.slots[usize::from(slot)] {
            filled.synthetic = true;
        }
        self.note_end_shown(slot);
        self.make_available(slot);
        true
    }
}
