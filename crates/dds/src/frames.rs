//! Frames that devices hold, and their return to the pool.
//!
//! With sockets, a sent frame is back in the pool when the call returns, and nothing here has an effect. A device
//! holds frames until it has sent them, and reports completion in memory. The loop looks for completed frames when a
//! writer finds none, and in a job of the highest priority. That job also keeps chunks free for the reception of
//! critical datagrams.

use isolane_datapath::{Class, Frame, Lane, limits::MAX_DEVICE_QUEUES};
use isolane_wire::time::Instant;

use crate::{
    limits::{FRAME_RETRY, SPINS_PER_LOOK},
    state::State,
};

impl State {
    /// Activates the recycling job if it has something to do.
    #[inline]
    pub(crate) fn gather_recycling(&mut self, now: Instant) {
        self.recycle_at = None;
        if self.datapath.wants_recycling() {
            if self.recycled_until <= now {
                self.executor.activate(self.recycle_job, now);
            } else {
                self.recycle_at = Some(self.recycled_until);
            }
        }
    }

    /// Polls the rings in memory, if this loop spins and has not done only that for too long. Returns the lanes
    /// ([`Lane::bit`]) whose first descriptor is ready.
    #[inline]
    pub(crate) fn spin(&mut self) -> Option<u16> {
        if !self.spinning || self.spins >= SPINS_PER_LOOK {
            self.spins = 0;
            return None;
        }
        let seen = self.datapath.peek_lanes()?;
        self.spins += 1;
        Some(seen)
    }

    /// Takes frames back from the device. Returns true if more can be taken at once.
    pub(crate) fn recycle(&mut self, now: Instant) -> bool {
        let again = self.datapath.recycle();
        if !again {
            self.recycled_until = now + FRAME_RETRY;
        }
        again
    }

    /// Takes a frame for sending; if none is free, it first takes back completed ones.
    #[inline]
    pub(crate) fn take_frame(&mut self, class: Class) -> Option<Frame> {
        if self.pool.free(class) == 0 {
            self.datapath.recycle();
        }
        self.pool.take(class)
    }

    /// Returns the class of frames of a lane that fit this number of bytes after their head room.
    #[inline]
    pub(crate) fn class_for(&self, lane: Lane, bytes: usize) -> Class {
        match bytes <= self.pool.transmit_room(lane) {
            true => Class::Transmit(lane),
            false => Class::Oversize(lane),
        }
    }

    /// Returns the number of receive frames outside the pool: armed in the datapath, or being read.
    pub(crate) fn frames_armed(&self) -> usize {
        let pool = &self.pool;
        let of_lanes = Lane::ALL.into_iter().map(Class::Receive);
        let of_queues = (0..MAX_DEVICE_QUEUES as u8).map(Class::Queue);
        let all = of_lanes.chain(of_queues);
        all.map(|class| pool.outstanding_of(class)).sum()
    }
}
