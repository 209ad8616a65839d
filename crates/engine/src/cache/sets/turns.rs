//! Waiting samples of several writers that share slots.

use isolane_wire::sequence::SequenceNumber;

use super::Place;
use crate::{
    cache::{Cache, Refused, SampleInfo},
    presentation::Turn,
};

impl Cache {
    /// Sets the place of the next sample stored.
    pub(crate) fn note_place(&mut self, place: Place) {
        if let Some(sets) = &mut self.sets {
            sets.next = place;
        }
    }

    pub(crate) fn next_place(&self) -> Option<Place> {
        self.sets.as_ref().map(|sets| sets.next)
    }

    /// Returns the place of a writer's first waiting sample.
    pub(crate) fn first_waiting_place(&self, proxy: u16) -> Option<Place> {
        let slot = *self.waiting.get(self.waiting_of(proxy).start)?;
        (self.slot(slot).proxy == proxy).then(|| self.place(slot))
    }

    pub(crate) fn move_first_waiting(&mut self, proxy: u16, place: Place) {
        let at = self.waiting_of(proxy).start;
        if let (Some(&slot), Some(sets)) = (self.waiting.get(at), &mut self.sets) {
            sets.places[usize::from(slot)] = place;
        }
    }

    /// Returns the number of a writer's first waiting sample; `None` without sets or order.
    pub(crate) fn first_waiting_number(&self, proxy: u16) -> Option<SequenceNumber> {
        self.sets.as_ref()?;
        self.first_waiting_place(proxy).map(|place| place.number)
    }

    /// Stores an out-of-order sample as [`wait`](Self::wait) does, with the slots shared by `writers` writers.
    ///
    /// With `is_next`, other samples may wait for this one forever, so it always finds a slot. The last sample of the
    /// writer with most of them is displaced, and [`take_displaced`](Self::take_displaced) returns it.
    pub(crate) fn wait_within_share(
        &mut self,
        writers: usize,
        is_next: bool,
        proxy: u16,
        info: SampleInfo,
        payload: &[u8],
    ) -> Result<Option<SequenceNumber>, Refused> {
        if payload.len() > self.memory.max_bytes() {
            return Err(Refused::TooLarge);
        }
        let share = (self.waiting_room / writers.max(1)).max(1);
        let own = self.waiting_of(proxy);
        let mut displaced = None;
        if own.len() >= share {
            let furthest = self.slot(self.waiting[own.end - 1]).info.sequence;
            if furthest < info.sequence {
                return Err(Refused::Full);
            }
            self.stop_waiting(own.end - 1);
            displaced = Some(furthest);
        } else if is_next && own.is_empty() && self.waiting.len() >= self.waiting_room {
            self.displace_another();
        }
        let further = self.wait(proxy, info, payload)?;
        let at = self.waiting.partition_point(|&other| {
            let other = self.slot(other);
            (other.proxy, other.info.sequence) < (proxy, info.sequence)
        });
        if let (Some(&slot), Some(sets)) = (self.waiting.get(at), &mut self.sets) {
            sets.places[usize::from(slot)] = sets.next;
        }
        Ok(further.or(displaced))
    }

    /// Displaces the last sample of the writer with most waiting ones. Among equals the highest number goes, since it
    /// is needed last.
    fn displace_another(&mut self) {
        let mut most = None;
        let mut start = 0;
        while let Some(&slot) = self.waiting.get(start) {
            let proxy = self.slot(slot).proxy;
            let of_proxy = |&&slot: &&u16| self.slot(slot).proxy == proxy;
            let count = self.waiting[start..].iter().take_while(of_proxy).count();
            let last = start + count - 1;
            most = most.max(Some((count, self.place(self.waiting[last]).number, last)));
            start += count;
        }
        let Some((.., at)) = most else { return };
        let found = self.slot(self.waiting[at]);
        let displaced = (found.proxy, found.info.sequence);
        self.stop_waiting(at);
        if let Some(sets) = &mut self.sets {
            sets.displaced = Some(displaced);
        }
    }

    /// Returns the proxy and sequence number of a sample displaced by another writer's. It counts as never received.
    pub(crate) fn take_displaced(&mut self) -> Option<(u16, SequenceNumber)> {
        self.sets.as_mut()?.displaced.take()
    }

    /// Makes a writer's first waiting sample available if there is room, or holds it.
    #[inline]
    pub(crate) fn take_turn(
        &mut self,
        turn: Turn,
        proxy: u16,
        sequence: SequenceNumber,
    ) -> Result<(), Refused> {
        if turn == Turn::Hold {
            self.hold_in_set(proxy);
            return Ok(());
        }
        if self.promote(proxy, sequence)? && self.groups() {
            self.note_shown();
        }
        Ok(())
    }
}
