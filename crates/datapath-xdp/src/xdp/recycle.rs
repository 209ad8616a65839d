//! Return of chunks: completed frames and, when few chunks are free, unread bulk frames.
//!
//! If each lane has its share of chunks (`plan`), nothing is reclaimed. With fewer chunks, recycling keeps the reserve
//! of the most critical lane (as Behnke et al., *Towards a Real-Time IoT*). At low water the classifier drops bulk
//! frames before they take a chunk, and frames already waiting in the rings of less critical lanes are dropped here,
//! least critical first. Datagrams of a queue's most critical lane are never dropped.

use isolane_datapath::{Lane, Pool, Udp};
use isolane_wire::level::Level;

use super::device::{Device, DeviceLane, OpenQueue};
use crate::limits::MAX_RECYCLED;
use crate::socket::{Descriptor, Side};
use crate::xdp::counters;

/// Counts a poll that found a lane's reserve touched.
pub(super) fn note_touched(highest: Level, udp: &mut Udp) {
    let ledger = udp.lane_ledger_mut(Lane::Level(highest));
    ledger.events.note(counters::RESERVE_TOUCHED, 1);
}

impl OpenQueue {
    /// Returns whether other lanes hold chunks reserved for the highest lane. Chunks in the highest lane's own ring do
    /// not count. Nor do those that its reader holds or has released, up to its limit.
    #[cold]
    pub(super) fn has_lost_of(
        &mut self,
        reserve: u32,
        highest: &mut DeviceLane,
        pool: &Pool,
    ) -> bool {
        // Read in this order: the kernel publishes a frame before it shows its chunk as taken, so every chunk is
        // counted at least once.
        let free = self.queue.fill.used();
        let waiting = highest.receive.ring.waiting();
        let let_go = pool.held(Lane::Level(highest.level)) + pool.free(self.class());
        let own = waiting + let_go.min(highest.held_limit) as u32;
        free + own < reserve
    }
}

impl Device {
    /// Returns whether a queue has fewer free chunks than reserved while less critical lanes hold some.
    #[inline]
    pub(super) fn is_low(&mut self, reserve: u32) -> bool {
        let mut queues = self.queues.iter_mut().flatten();
        // Usual case: no queue is low, and the lanes are not examined.
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

    /// Returns completed frames to the pool, and free chunks to the device.
    pub(super) fn take_home(&mut self, pool: &Pool) {
        for place in 0..self.queues.len() {
            self.take_completed(place);
            self.refill(place, pool);
        }
    }

    /// Returns whether frames are left in a transmit ring.
    pub(super) fn has_left(&self) -> bool {
        self.left_levels != 0
    }

    /// Records whether a lane has frames left in its transmit ring.
    #[inline]
    pub(super) fn note_left(&mut self, place: usize, left: u32) {
        let bit = 1 << place;
        self.left_levels = self.left_levels & !bit | if left > 0 { bit } else { 0 };
    }

    /// Reclaims up to [`MAX_RECYCLED`] frames of each queue that is low. Returns true if one is still low.
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

    /// Returns whether less critical lanes of a queue hold some of its reserve.
    fn has_lost(&mut self, place: usize, reserve: u32, pool: &Pool) -> bool {
        let Device { lanes, queues, .. } = self;
        let mut by_urgency = lanes.iter_mut().rev().flatten();
        let highest = by_urgency.find(|lane| lane.queue == place);
        let both = queues[place].as_mut().zip(highest);
        both.is_some_and(|(open, highest)| open.has_lost_of(reserve, highest, pool))
    }

    /// Reclaims frames for the queue of a lane, if it is still low.
    pub(super) fn keep_reserve(&mut self, of: Level, reserve: u32, pool: &Pool, udp: &mut Udp) {
        let lane = self.lanes[usize::from(of.get())].as_deref();
        if let Some(place) = lane.map(|lane| lane.queue) {
            self.give_back(place, reserve, pool, udp);
        }
    }

    /// Reclaims the frames that the reserve lacks, at most [`MAX_RECYCLED`], and gives their chunks to the device.
    fn give_back(&mut self, place: usize, reserve: u32, pool: &Pool, udp: &mut Udp) {
        let missing = reserve.saturating_sub(self.free_chunks(place));
        if missing > 0 {
            self.take_back(place, missing.min(MAX_RECYCLED as u32) as usize, udp);
            self.refill(place, pool);
        }
    }

    /// Drops up to `count` datagrams waiting in less critical lanes of a queue: the least critical lane first, its
    /// oldest datagrams first.
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
                // The chunk returns to the pool, and from there to the device.
                drop(self.held.release(Side::Receive, descriptor.address));
            }
            let ledger = udp.lane_ledger_mut(Lane::Level(lane.level));
            ledger
                .receive
                .note_dropped(counters::RECYCLED_QUEUE, taken as u64);
            left -= taken;
            if left == 0 {
                break;
            }
        }
    }

    /// Kicks lanes with frames left in their transmit rings, most critical first. Makes one system call a lane,
    /// because kicks precede all other work and the frames may be bulk.
    pub(super) fn kick_left(&mut self, udp: &mut Udp) {
        for lane in self.lanes.iter_mut().rev().flatten() {
            if lane.left > 0 {
                let ledger = udp.lane_ledger_mut(Lane::Level(lane.level));
                let refused = u64::from(lane.kick_again(ledger));
                // The kernel does not say which sent frames were refused, so their bytes stay counted.
                let transmit = &mut ledger.transmit;
                transmit.note_unsent(counters::DEVICE_REFUSED, refused, 0);
                let bit = 1 << lane.level.get();
                if lane.left == 0 {
                    self.left_levels &= !bit;
                }
            }
        }
    }
}
