//! Ends of instances: which of them become samples, and synthetic ends for writers that left or are not alive.
//!
//! An end (dispose or unregister) carries no value, so it never replaces an unread value.

use isolane_wire::{cdr::KeyHash, guid::Guid, time::Instant};

use crate::{
    limits::EXTRA_INSTANCE_ENDS,
    reader::{
        cache::{Cache, Refused},
        instance::InstanceState,
        read_take::SampleInfo,
    },
    slab::WriterProxyId,
    writer::history::{ChangeKind, Keep},
};

/// Proxy index in samples of removed writers.
const NO_PROXY: u16 = u16::MAX;

impl Cache {
    /// Makes room for the end of an instance, which carries no value and must not replace unread values. If the cache
    /// is full, the end replaces an equivalent end or a sample already read. Otherwise it is only recorded: samples
    /// show the current state of their instance anyway (DDS 1.4 §2.2.2.5.1.3).
    #[cold]
    pub(super) fn make_room_for_end(
        &mut self,
        proxy: WriterProxyId,
        info: &SampleInfo,
    ) -> Result<bool, Refused> {
        let key = info.key_hash.unwrap_or_default();
        if self.is_word_only(proxy, info) {
            return Ok(false);
        }
        let is_full = self.available.len() >= self.available_room;
        let extra = if is_full { 0 } else { EXTRA_INSTANCE_ENDS };
        if self.replaced_by_one(key, extra) == 0 {
            self.find_room(proxy)?;
            return Ok(true);
        }
        let repeated = self.end_repeated_by(key, info.kind);
        let replaced = repeated.or_else(|| self.seen_or_end_of(key));
        let replaced = replaced.or_else(|| self.extra_end().filter(|_| is_full));
        match replaced {
            Some(replaced) => self.evict(replaced),
            None => {
                self.instances.note(key, proxy, info.kind, info.received);
                self.evicted += 1;
            }
        }
        Ok(replaced.is_some())
    }

    /// Returns the oldest sample of an instance that was read or has no value.
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

    /// Returns the newest sample of an instance if that sample is an end and a new end of `kind` repeats it.
    fn end_repeated_by(&self, key: KeyHash, kind: ChangeKind) -> Option<u16> {
        let youngest = self.instances.youngest(key)?;
        let former = self.slot(youngest).info.kind;
        kind.repeats(former).then_some(youngest)
    }

    /// Returns the first end beyond the HISTORY depth of its instance under KEEP_LAST. The other samples of the
    /// instance also show its state.
    #[cold]
    pub(super) fn extra_end(&self) -> Option<u16> {
        let Keep::Last { depth } = self.keep else {
            return None;
        };
        let is_extra = |&index: &u16| {
            let slot = self.slot(index);
            let key = slot.info.key_hash.unwrap_or_default();
            !slot.info.valid_data() && self.instances.samples(key) > depth
        };
        self.available.iter().copied().find(is_extra)
    }

    pub(crate) fn has_ended(&self, key: KeyHash) -> bool {
        self.instances.has_ended(key)
    }

    /// Returns whether an end of an instance has no effect. Such an end is recorded, but is not a sample.
    pub(super) fn is_word_only(&mut self, proxy: WriterProxyId, info: &SampleInfo) -> bool {
        let key = info.key_hash.unwrap_or_default();
        if self.instances.is_seen(key, proxy, info.kind) {
            return false;
        }
        self.instances
            .note_other(key, proxy, info.kind, info.received);
        self.unregistered += 1;
        true
    }

    /// Records that a writer wrote or unregistered an instance, although the sample is dropped. If the change
    /// unregistered the last writer, an end becomes available.
    pub(crate) fn note_other_writer(&mut self, proxy: WriterProxyId, info: &SampleInfo) {
        let (key, at) = (info.key_hash.unwrap_or_default(), info.received);
        if self.instances.note_other(key, proxy, info.kind, at) {
            self.show_end(proxy, info.writer, info.key_hash, at);
        }
    }

    /// Processes the removal of a writer; see [`Self::writer_not_alive`].
    pub(crate) fn writer_gone(&mut self, proxy: WriterProxyId, writer: Guid, now: Instant) {
        self.forget_waiting(proxy);
        self.writer_not_alive(proxy, writer, now);
        // Another writer may reuse the proxy index, and must not be taken for the writer of these samples.
        for &index in &self.available {
            if let Some(slot) = &mut self.slots[usize::from(index)]
                && slot.proxy == proxy
            {
                slot.proxy = WriterProxyId(NO_PROXY);
            }
        }
    }

    /// Unregisters a writer from all its instances. An instance that loses its last writer gets a sample without data
    /// if there is room.
    pub(crate) fn writer_not_alive(&mut self, proxy: WriterProxyId, writer: Guid, now: Instant) {
        for instance in 0..self.instances.end() {
            if let Some(key) = self.instances.unregister_gone(instance, proxy, now) {
                let key = self.keyed.then_some(key);
                self.show_end(proxy, writer, key, now);
            }
        }
    }

    /// Returns how many instances have lost their last writer, without room for a sample, since the last call.
    pub(crate) fn take_unseen(&mut self) -> u64 {
        core::mem::take(&mut self.unseen)
    }

    /// Adds the end of an instance without writers as a synthetic sample, if there is room.
    fn show_end(
        &mut self,
        proxy: WriterProxyId,
        writer: Guid,
        key_hash: Option<KeyHash>,
        now: Instant,
    ) {
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

    fn push_synthetic(&mut self, proxy: WriterProxyId, info: SampleInfo) -> bool {
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
