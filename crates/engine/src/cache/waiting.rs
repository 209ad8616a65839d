//! Out-of-order samples, each waiting in a reserved slot until all earlier ones were received.

use core::ops::Range;

use isolane_wire::sequence::SequenceNumber;

use super::{Cache, Refused, SampleInfo};

impl Cache {
    /// Stores an out-of-order sample. If there is no room, a later sample of the same writer is dropped; its number is
    /// returned and counts as never received.
    pub(crate) fn wait(
        &mut self,
        proxy: u16,
        info: SampleInfo,
        payload: &[u8],
    ) -> Result<Option<SequenceNumber>, Refused> {
        if payload.len() > self.memory.max_bytes() {
            return Err(Refused::TooLarge);
        }
        let mut displaced = None;
        if self.waiting.len() >= self.waiting_room {
            let furthest = self.waiting_of(proxy).end;
            let last = furthest.checked_sub(1).filter(|&at| {
                let slot = self.slot(self.waiting[at]);
                slot.proxy == proxy && slot.info.sequence > info.sequence
            });
            // No sample is dropped if the new one would still find no pages.
            let last = last.filter(|_| self.memory.fits_waiting(payload.len()));
            let last = last.ok_or(Refused::Full)?;
            displaced = Some(self.slot(self.waiting[last]).info.sequence);
            self.stop_waiting(last);
        }
        let slot = self.fill(proxy, info, payload, true).ok_or(Refused::Full)?;
        let place = self.waiting.partition_point(|&other| {
            let other = self.slot(other);
            (other.proxy, other.info.sequence) < (proxy, info.sequence)
        });
        self.waiting.insert(place, slot);
        Ok(displaced)
    }

    /// Sequence number of a writer's first waiting sample.
    pub(crate) fn first_waiting(&self, proxy: u16) -> Option<SequenceNumber> {
        let slot = self.slot(*self.waiting.get(self.waiting_of(proxy).start)?);
        (slot.proxy == proxy).then_some(slot.info.sequence)
    }

    /// Makes a writer's waiting sample `sequence` available if there is room. Returns `Ok(false)` if no such sample
    /// waits, or if it is [no sample](Self::make_room).
    pub(crate) fn promote(
        &mut self,
        proxy: u16,
        sequence: SequenceNumber,
    ) -> Result<bool, Refused> {
        let place = self.waiting_of(proxy).start;
        let Some(&slot) = self.waiting.get(place) else {
            return Ok(false);
        };
        let found = *self.slot(slot);
        if found.proxy != proxy || found.info.sequence != sequence {
            return Ok(false);
        }
        let is_sample = self.make_room(proxy, &found.info)?;
        self.waiting.remove(place);
        match is_sample {
            true => self.make_available(slot),
            false => self.empty(slot),
        }
        Ok(is_sample)
    }

    /// Drops all waiting samples of a removed writer.
    pub(crate) fn forget_waiting(&mut self, proxy: u16) {
        for place in self.waiting_of(proxy).rev() {
            let slot = self.waiting.remove(place);
            self.slots[usize::from(slot)] = None;
            self.memory.give_back(slot);
        }
    }

    /// Range of a writer's samples in `waiting`.
    pub(super) fn waiting_of(&self, proxy: u16) -> Range<usize> {
        let start = self
            .waiting
            .partition_point(|&slot| self.slot(slot).proxy < proxy);
        let end = self
            .waiting
            .partition_point(|&slot| self.slot(slot).proxy <= proxy);
        start..end
    }

    pub(super) fn stop_waiting(&mut self, at: usize) {
        let slot = self.waiting.remove(at);
        self.empty(slot);
    }
}
