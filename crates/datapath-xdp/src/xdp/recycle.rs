//! Frames that come back: those the device has sent, and, when few chunks are free, those of bulk
//! that nobody has read yet.
//!
//! Where each lane has its share of chunks nothing is ever taken back. It is what keeps the reserve of
//! the most critical lane where there are fewer chunks than that (paper 004): at low water the
//! classifier drops bulk before it costs a chunk, and what waits already in the rings of less
//! critical lanes is dropped here, the least critical first. A datagram of the most critical lane of a
//! queue is never taken.

use isolane_datapath::{Counted, Lane, Pool, ReceiveDrop, Refusal, Udp};
use isolane_wire::level::Level;

use super::device::{Device, DeviceLane, OpenQueue};
use crate::limits::MAX_RECYCLED;
use crate::socket::{Descriptor, Side};

/// Counts a look that found the reserve of a lane touched.
pub(super) fn note_touched(highest: Level, udp: &mut Udp) {
    let ledger = udp.lane_ledger_mut(Lane::Level(highest));
    ledger.counts.note(Counted::ReserveTouched, 1);
}

impl OpenQueue {
    /// Whether others than the lane that chunks are reserved for have some of them. What it has itself is no loss:
    /// what waits for it, and what its reader holds or has let go, no more than it may hold.
    #[cold]
    pub(super) fn has_lost_of(
        &mut self,
        reserve: u32,
        highest: &mut DeviceLane,
        pool: &Pool,
    ) -> bool {
        // In the kernel's order: it shows a frame before it shows that a chunk was taken, so none is in neither.
        let free = self.queue.fill.used();
        let waiting = highest.receive.ring.waiting();
        let let_go = pool.held(Lane::Level(highest.level)) + pool.free(self.class());
        let own = waiting + let_go.min(highest.held_limit) as u32;
        free + own < reserve
    }
}

impl Device {
    /// Whether a queue has fewer free chunks than are reserved while less critical lanes have some.
    #[inline]
    pub(super) fn is_low(&mut self, reserve: u32) -> bool {
        let mut queues = self.queues.iter_mut().flatten();
        // Mostly none has, and the lanes are not looked at.
        queues.any(|open| open.queue.fill.used() < reserve) && self.bulk_waits_for(reserve)
    }

    #[cold]
    fn bulk_waits_for(&mut self, reserve: u32) -> bool {
        (0..self.queues.len()).any(|place| {
            self.queues[place].is_some()
                && self.free_chunks(place) < reserve
                && self.bulk_waits(place)
        })
    }

    fn bulk_waits(&mut self, place: usize) -> bool {
        let highest = self.highest_on(place);
        let lanes = self.lanes.iter_mut().flatten();
        let mut bulk = lanes.filter(|lane| lane.queue == place && Some(lane.level) != highest);
        bulk.any(|lane| lane.receive.ring.waiting() > 0)
    }

    /// Lets frames go home that the device has sent, and gives it the chunks that came home.
    pub(super) fn take_home(&mut self, pool: &Pool) {
        for place in 0..self.queues.len() {
            self.take_completed(place);
            self.refill(place, pool);
        }
    }

    /// Frames are left in a transmit ring.
    pub(super) fn has_left(&self) -> bool {
        self.left_levels != 0
    }

    /// Keeps which lanes have frames left in their transmit rings.
    #[inline]
    pub(super) fn note_left(&mut self, place: usize, left: u32) {
        let bit = 1 << place;
        self.left_levels = self.left_levels & !bit | if left > 0 { bit } else { 0 };
    }

    /// Takes back up to [`MAX_RECYCLED`] frames of each queue that is low. True: one still is.
    pub(super) fn recycle(&mut self, reserve: u32, pool: &Pool, udp: &mut Udp) -> bool {
        let mut is_low = false;
        for place in 0..self.queues.len() {
            if self.queues[place].is_none() || self.free_chunks(place) >= reserve {
                continue;
            }
            if self.has_lost(place, reserve, pool)
                && let Some(highest) = self.highest_on(place)
            {
                note_touched(highest, udp);
            }
            self.give_back(place, reserve, pool, udp);
            is_low |= self.free_chunks(place) < reserve && self.bulk_waits(place);
        }
        is_low
    }

    /// Whether less critical lanes of a queue have some of what is reserved.
    fn has_lost(&mut self, place: usize, reserve: u32, pool: &Pool) -> bool {
        let Device { lanes, queues, .. } = self;
        let mut by_urgency = lanes.iter_mut().rev().flatten();
        let highest = by_urgency.find(|lane| lane.queue == place);
        let both = queues[place].as_mut().zip(highest);
        both.is_some_and(|(open, highest)| open.has_lost_of(reserve, highest, pool))
    }

    /// Takes some back for the queue of a lane, if it is low still.
    pub(super) fn keep_reserve(&mut self, of: Level, reserve: u32, pool: &Pool, udp: &mut Udp) {
        let lane = self.lanes[usize::from(of.get())].as_deref();
        if let Some(place) = lane.map(|lane| lane.queue) {
            self.give_back(place, reserve, pool, udp);
        }
    }

    /// Takes back up to [`MAX_RECYCLED`] frames of what the reserve misses, and gives their chunks to the device.
    fn give_back(&mut self, place: usize, reserve: u32, pool: &Pool, udp: &mut Udp) {
        let missing = reserve.saturating_sub(self.free_chunks(place));
        if missing > 0 {
            self.take_back(place, missing.min(MAX_RECYCLED as u32) as usize, udp);
            self.refill(place, pool);
        }
    }

    /// Drops up to so many datagrams that wait in less critical lanes of a queue, the oldest of the
    /// least critical first.
    fn take_back(&mut self, place: usize, count: usize, udp: &mut Udp) {
        let highest = self.highest_on(place);
        let mut left = count;
        for lane in self.lanes.iter_mut().flatten() {
            if lane.queue != place || Some(lane.level) == highest {
                continue;
            }
            let mut descriptors = [Descriptor::default(); MAX_RECYCLED];
            let taken = lane.receive.ring.pop(&mut descriptors[..left]);
            for descriptor in &descriptors[..taken] {
                // It goes home, and from there to the device.
                drop(self.held.release(Side::Receive, descriptor.address));
            }
            let ledger = udp.lane_ledger_mut(Lane::Level(lane.level));
            ledger
                .receive
                .note_dropped(ReceiveDrop::RecycledQueue, taken as u64);
            left -= taken;
            if left == 0 {
                break;
            }
        }
    }

    /// Has the kernel take what it left in transmit rings, the most critical first. Little of each: this
    /// is done before anything else, and what is left may be of bulk.
    pub(super) fn kick_left(&mut self, udp: &mut Udp) {
        for lane in self.lanes.iter_mut().rev().flatten() {
            if lane.left > 0 {
                let ledger = udp.lane_ledger_mut(Lane::Level(lane.level));
                let refused = u64::from(lane.kick_again(ledger));
                // They count as sent since they were put into the ring; it is not told which they are.
                let transmit = &mut ledger.transmit;
                transmit.note_unsent(Refusal::DeviceRefused, refused, 0);
                let bit = 1 << lane.level.get();
                if lane.left == 0 {
                    self.left_levels &= !bit;
                }
            }
        }
    }
}
