//! Ends of instances: how they lie beside values, which of them are seen, and those that nobody sent, because writers
//! left or fell silent.

use isolane_wire::{cdr::KeyHash, guid::Guid, time::Instant};

use super::{Cache, SampleInfo};
use crate::{history::ChangeKind, instance::InstanceState};

/// The writer of samples whose writer is gone.
const NOBODY: u16 = u16::MAX;

impl Cache {
    /// Whether this is the end of an instance that ends nothing: it is taken note of then, and no sample.
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

    /// Takes note of what a writer says of an instance whose samples of this writer are not seen: it writes it, or
    /// no longer does. Where it was the last one, that is seen.
    pub(crate) fn note_other_writer(&mut self, proxy: u16, info: &SampleInfo) {
        let (key, at) = (info.key_hash.unwrap_or_default(), info.received);
        if self.instances.note_other(key, proxy, info.kind, at) {
            self.show_end(proxy, info.writer, info.key_hash, at);
        }
    }

    /// Takes note that a writer is gone; see [`Self::writer_not_alive`].
    pub(crate) fn writer_gone(&mut self, proxy: u16, writer: Guid, now: Instant) {
        self.forget_waiting(proxy);
        self.writer_not_alive(proxy, writer, now);
        // The next writer may have its place: what this one leaves behind is not that one's.
        for &index in &self.available {
            if let Some(slot) = &mut self.slots[usize::from(index)]
                && slot.proxy == proxy
            {
                slot.proxy = NOBODY;
            }
        }
    }

    /// Takes note that a writer writes no more; instances it was the last one of are no longer alive,
    /// which becomes visible as a sample without data where there is room for one.
    pub(crate) fn writer_not_alive(&mut self, proxy: u16, writer: Guid, now: Instant) {
        for instance in 0..self.instances.end() {
            if let Some(key) = self.instances.unregister_gone(instance, proxy, now) {
                let key = self.keyed.then_some(key);
                self.show_end(proxy, writer, key, now);
            }
        }
    }

    /// Instances that lost their last writer, and nobody was told for want of room, since this was asked last.
    pub(crate) fn take_unseen(&mut self) -> u64 {
        core::mem::take(&mut self.unseen)
    }

    /// An instance has lost its last writer.
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
