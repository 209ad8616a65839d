//! Frames that devices hold: taken, and taken back.
//!
//! Where the datapath is sockets a frame that was sent is at home when the call returns, and none of
//! this has anything to do. A device keeps frames until it has sent them, and says so in memory: they
//! are looked for when a writer finds no frame, and by a job that is the most urgent there is,
//! since it also keeps chunks free for what is critical to be received into.

use isolane_datapath::{Class, Frame, Lane, limits::MAX_DEVICE_QUEUES};
use isolane_wire::time::Instant;

use crate::{
    limits::{FRAME_RETRY, SPINS_PER_LOOK},
    state::State,
};

impl State {
    /// Marks the job ready that takes frames back, if there is something for it.
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

    /// A look at what lies in memory, if this loop spins and has not only done that for too long: the
    /// lanes ([`Lane::bit`]) whose first descriptor has something.
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

    /// Takes frames back. True: there is more to do at once.
    pub(crate) fn recycle(&mut self, now: Instant) -> bool {
        let again = self.datapath.recycle();
        if !again {
            self.recycled_until = now + FRAME_RETRY;
        }
        again
    }

    /// A frame to send in; if none is at home, those come home first that devices are done with.
    #[inline]
    pub(crate) fn take_frame(&mut self, class: Class) -> Option<Frame> {
        if self.pool.free(class) == 0 {
            self.datapath.recycle();
        }
        self.pool.take(class)
    }

    /// The class of frames of a lane that have room for so many bytes behind their head room.
    #[inline]
    pub(crate) fn class_for(&self, lane: Lane, bytes: usize) -> Class {
        match bytes <= self.pool.transmit_room(lane) {
            true => Class::Transmit(lane),
            false => Class::Oversize(lane),
        }
    }

    /// Frames for arriving datagrams that are not at home: armed in the datapath, or being read.
    pub(crate) fn frames_armed(&self) -> usize {
        let pool = &self.pool;
        let of_lanes = Lane::ALL.into_iter().map(Class::Receive);
        let of_queues = (0..MAX_DEVICE_QUEUES as u8).map(Class::Queue);
        let all = of_lanes.chain(of_queues);
        all.map(|class| pool.outstanding_of(class)).sum()
    }
}
