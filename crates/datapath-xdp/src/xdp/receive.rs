//! From a lane's ring into a burst.
//!
//! A frame in the ring was written by the kernel or the device, and is the reader's from here on: no
//! byte of it is copied. The reader may hold so many frames of a lane and no more; then what waits
//! stays in the ring, and what comes behind it finds the ring full. So no reader takes what other
//! lanes receive into.

use isolane_datapath::{
    Counted, Datapath, Lane, LaneLedger, Pool, ReceiveBurst, ReceiveDrop, ReceivedFrame,
};
use isolane_wire::level::Level;
use isolane_wire::time::Instant;

use super::Xdp;
use super::device::{Device, DeviceLane};
use super::headers::{self, Found};
use super::martian::MartianFilter;
use super::recycle::note_touched;
use crate::egress::{Judgement, Partial};
use crate::socket::Side;

/// Bytes in front of a frame that the classifier has written the time to.
const STAMP_BYTES: usize = 8;

/// What receiving looks at in each frame.
pub(super) struct Looks {
    /// Frames are to have stamps.
    pub(super) wants_stamps: bool,
    /// And may have some: those that arrive with no room for one do not.
    pub(super) finds_stamps: bool,
    pub(super) checksums: bool,
    /// Chunks that are reserved for the most critical lane of a queue.
    pub(super) reserve: u32,
    /// Bytes of a payload at most: those of the pool's frames.
    pub(super) max_bytes: usize,
    /// Sources that frames must not have.
    pub(super) martians: MartianFilter,
}

/// What a call took off a lane's ring.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    /// Datagrams, those that were dropped included.
    pub(super) count: usize,
    /// The kernel had fewer chunks left to receive into than are reserved, before any were given back.
    pub(super) is_low: bool,
    /// And it was not the lane itself that had the others.
    pub(super) is_touched: bool,
}

impl Xdp {
    /// Receives from the lane's ring and by the kernel's sockets, whatever there is of both. `by_kernel` of
    /// the descriptors that are `readable` are the sockets'.
    #[inline(never)]
    pub(super) fn receive_by_both(
        &mut self,
        lane: Lane,
        limit: usize,
        readable: u8,
        by_kernel: u8,
        burst: &mut ReceiveBurst,
    ) -> usize {
        let Some(level) = lane.level().filter(|_| self.is_on_device(lane)) else {
            if lane == Lane::Discovery && readable & 1 != 0 {
                self.follow_news();
            }
            return self.receive_by_sockets(lane, limit, by_kernel, burst);
        };
        // A look at the ring costs no system call, so there always is one.
        let kernel_first = self.take_turn(level);
        let mut taken = 0;
        for is_kernel in [kernel_first, !kernel_first] {
            let left = limit - taken;
            taken += match is_kernel {
                _ if left == 0 => 0,
                false => self.receive_by_lane(level, left, burst),
                true if by_kernel == 0 => 0,
                true => self.receive_by_sockets(lane, left, by_kernel, burst),
            };
        }
        taken
    }

    /// Receives by the kernel's sockets of a lane, of which these are readable.
    fn receive_by_sockets(
        &mut self,
        lane: Lane,
        limit: usize,
        readable: u8,
        burst: &mut ReceiveBurst,
    ) -> usize {
        self.udp.seen_readable(lane, readable);
        self.udp.receive_burst(lane, limit, burst)
    }

    /// Receives from the lane's ring; if it has none, by its sockets, of which none is readable.
    pub(super) fn receive_by_lane(
        &mut self,
        level: Level,
        limit: usize,
        burst: &mut ReceiveBurst,
    ) -> usize {
        let lane = Lane::Level(level);
        let device = self.way.as_mut().and_then(|way| way.device.as_deref_mut());
        let taken = device.and_then(|device| {
            let ledger = self.udp.lane_ledger_mut(lane);
            device.receive(level, limit, &self.looks, &self.pool, ledger, burst)
        });
        let Some(taken) = taken else {
            return self.receive_by_sockets(lane, limit, 0, burst);
        };
        if taken.is_low {
            self.keep_reserve(level, taken.is_touched);
        }
        taken.count
    }

    /// A queue had fewer chunks left than are reserved for its most critical lane, when this lane was
    /// looked at. Does nothing for the others of the queue.
    #[cold]
    fn keep_reserve(&mut self, level: Level, is_touched: bool) {
        let reserve = self.options.critical_reserve;
        let device = self.way.as_mut().and_then(|way| way.device.as_deref_mut());
        let Some(device) = device.filter(|device| device.is_highest(level)) else {
            return;
        };
        if is_touched {
            note_touched(level, &mut self.udp);
        }
        if self.options.recycling {
            device.keep_reserve(level, reserve, &self.pool, &mut self.udp);
        }
    }
}

impl Device {
    /// Takes at most `limit` datagrams off a lane's ring; `None` if it has none. `limit` is no more
    /// than the burst's room.
    #[inline]
    pub(super) fn receive(
        &mut self,
        level: Level,
        limit: usize,
        looks: &Looks,
        pool: &Pool,
        ledger: &mut LaneLedger,
        burst: &mut ReceiveBurst,
    ) -> Option<Taken> {
        let lane = self.lanes[usize::from(level.get())].as_deref_mut()?;
        let open = self.queues[lane.queue].as_mut()?;
        // What was eaten since the last look shows here only: behind the refill it is there again.
        let free_chunks = open.queue.fill.used();
        let is_low = free_chunks < looks.reserve;
        let is_touched = is_low && open.has_lost_of(looks.reserve, lane, pool);
        if open.wants_refill(free_chunks, pool)
            && open.refill(&mut self.held, &self.umem, &self.classifier, pool) > 0
            && open.queue.fill.needs_wakeup()
        {
            // Down or gone: then there is nothing.
            let _ = lane.receive.poll_device();
        }
        let of = Lane::Level(level);
        let may_hold = lane.held_limit.saturating_sub(pool.held(of));
        let limit_now = limit.min(may_hold);
        let count = lane.receive.ring.ready(limit_now);
        if count == 0 {
            let waits = limit > 0 && limit_now == 0 && lane.receive.ring.waiting() > 0;
            ledger.receive.starved += u64::from(waits);
            return Some(Taken {
                count,
                is_low,
                is_touched,
            });
        }
        // Where there was no room for a stamp in front of each frame that the queue's rings have shown so
        // far, bytes of an earlier frame may lie there: then none is taken for one.
        let stamps = looks.finds_stamps && self.classifier.unstamped_on(open.queue.number()) == 0;
        let (mut received, mut received_bytes) = (0, 0);
        for _ in 0..count {
            let Some(descriptor) = lane.receive.ring.take() else {
                break;
            };
            let Some(located) = self.umem.locate(descriptor) else {
                // It goes home, where it says that it ends behind its chunk.
                drop(self.held.release(Side::Receive, descriptor.address));
                note_stray(ledger);
                continue;
            };
            // Looked at where it is kept, and moved once, into the burst.
            let Some(mut holding) = self.held.find_chunk(Side::Receive, located.chunk) else {
                note_stray(ledger);
                continue;
            };
            let frame = holding.owner();
            let (buffer, start) = (frame.buffer(), located.range.start);
            let bytes = &buffer[located.range];
            let arrived = match stamps {
                true => stamp(buffer, start),
                false => None,
            };
            let found = match open_up(bytes, lane, looks, ledger) {
                Ok(found) => found,
                Err(reason) => {
                    ledger.receive.note_dropped(reason, 1);
                    holding.discard();
                    continue;
                }
            };
            if looks.wants_stamps && arrived.is_none() {
                ledger.receive.unstamped += 1;
            }
            received += 1;
            received_bytes += found.bytes();
            frame.set_range(start + found.payload.start..start + found.payload.end);
            pool.lend(frame, of);
            // There is room: the limit was no more than that.
            let _ = burst.push(ReceivedFrame {
                frame: holding.release(),
                from: found.from(),
                arrived,
            });
        }
        ledger.receive.note_received_all(received, received_bytes);
        ledger.counts.note(Counted::ReceivedByLane, received);
        lane.receive.ring.give_back();
        let largest = &mut ledger.receive.largest_burst;
        *largest = (*largest).max(count as u64);
        Some(Taken {
            count,
            is_low,
            is_touched,
        })
    }
}

/// A descriptor that cannot be believed.
#[cold]
fn note_stray(ledger: &mut LaneLedger) {
    ledger.counts.note(Counted::Stray, 1);
    ledger.receive.note_dropped(ReceiveDrop::Malformed, 1);
}

/// The instant that the classifier has written in front of a frame that begins there.
#[inline]
fn stamp(buffer: &[u8], start: usize) -> Option<Instant> {
    let bytes = buffer.get(..start)?.last_chunk::<STAMP_BYTES>()?;
    Some(Instant::new(u64::from_ne_bytes(*bytes))).filter(|stamp| stamp.as_nanos() > 0)
}

/// Finds the datagram in a frame, and counts what is to be said of its checksum.
#[inline]
fn open_up(
    bytes: &[u8],
    lane: &mut DeviceLane,
    looks: &Looks,
    ledger: &mut LaneLedger,
) -> Result<Found, ReceiveDrop> {
    let partial = looks.checksums.then_some(lane.partial);
    let found = headers::find(bytes, partial, &looks.martians)?;
    if found.bytes() > looks.max_bytes {
        return Err(ReceiveDrop::Truncated);
    }
    lane.partial = Partial::Unexpected;
    match found.checksum {
        Judgement::Partial => {
            lane.partial = Partial::Expected;
            ledger.counts.note(Counted::PartialChecksum, 1);
        }
        Judgement::None if looks.checksums => ledger.counts.note(Counted::NoChecksum, 1),
        _ => {}
    }
    Ok(found)
}
