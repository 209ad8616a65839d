//! Reception from a lane's ring into a burst.
//!
//! The kernel or the device has written the frame, and it moves to the reader without a copy. A reader may hold a
//! limited number of a lane's frames. At the limit, frames stay in the ring, which fills and then refuses later
//! frames. So no reader takes the chunks that other lanes receive into.

use isolane_datapath::{
    Datapath, Lane, LaneLedger, Pool, ReceiveBurst, ReceiveDrop, ReceivedFrame,
};
use isolane_wire::level::Level;
use isolane_wire::time::Instant;

use super::Xdp;
use super::device::{Device, DeviceLane};
use super::headers::{self, Found};
use super::martian::MartianFilter;
use super::recycle::note_touched;
use crate::routing::{ChecksumState, Partial};
use crate::socket::Side;
use crate::xdp::counters;

/// Bytes before a frame in which the classifier stores the arrival time.
const STAMP_BYTES: usize = 8;

/// Checks and limits applied to each received frame.
pub(super) struct Looks {
    /// Whether frames should have stamps.
    pub(super) wants_stamps: bool,
    /// Whether frames can have stamps: false once a frame arrived without room for one.
    pub(super) finds_stamps: bool,
    pub(super) checksums: bool,
    /// Chunks reserved for the most critical lane of a queue.
    pub(super) reserve: u32,
    /// Largest payload in bytes: that of the pool's frames.
    pub(super) max_bytes: usize,
    /// Filter of source addresses.
    pub(super) martians: MartianFilter,
}

/// Result of receiving from a lane's ring.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    /// Datagrams, including dropped ones.
    pub(super) count: usize,
    /// Whether the free chunks were below the reserve before the refill.
    pub(super) is_low: bool,
    /// Whether other lanes hold chunks of the reserve.
    pub(super) is_touched: bool,
}

impl Xdp {
    /// Receives from the lane's ring and from its kernel sockets. `readable` are all readable descriptors, `by_kernel`
    /// those of the sockets.
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
        // The ring is always polled: that costs no system call.
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

    /// Receives from the readable kernel sockets of a lane.
    fn receive_by_sockets(
        &mut self,
        lane: Lane,
        limit: usize,
        readable: u8,
        burst: &mut ReceiveBurst,
    ) -> usize {
        self.udp.set_readable(lane, readable);
        self.udp.receive_burst(lane, limit, burst)
    }

    /// Receives from the lane's ring. Without a ring, tries its sockets, although none was readable.
    pub(super) fn receive_by_lane(
        &mut self,
        level: Level,
        limit: usize,
        burst: &mut ReceiveBurst,
    ) -> usize {
        let lane = Lane::Level(level);
        let device = self
            .interface
            .as_mut()
            .and_then(|it| it.device.as_deref_mut());
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

    /// Restores the reserve of a queue's most critical lane. Does nothing for the queue's other lanes.
    #[cold]
    fn keep_reserve(&mut self, level: Level, is_touched: bool) {
        let reserve = self.options.critical_reserve;
        let device = self
            .interface
            .as_mut()
            .and_then(|it| it.device.as_deref_mut());
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
    /// Takes at most `limit` datagrams off a lane's ring; `None` without a ring. `limit` must not exceed the burst's
    /// room.
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
        // Read before the refill, which would hide the shortage.
        let free_chunks = open.queue.fill.used();
        let is_low = free_chunks < looks.reserve;
        let is_touched = is_low && open.has_lost_of(looks.reserve, lane, pool);
        if open.wants_refill(free_chunks, pool)
            && open.refill(&mut self.held, &self.umem, &self.classifier, pool) > 0
            && open.queue.fill.needs_wakeup()
        {
            // An error means that the interface is down or gone: there are no frames.
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
        // Once a frame of the queue arrived without room for a stamp, the bytes before a frame may be those of an
        // earlier frame. No stamp is read then.
        let stamps = looks.finds_stamps && self.classifier.unstamped_on(open.queue.number()) == 0;
        let (mut received, mut received_bytes) = (0, 0);
        for _ in 0..count {
            let Some(descriptor) = lane.receive.ring.take() else {
                break;
            };
            let Some(located) = self.umem.locate(descriptor) else {
                // The descriptor ends beyond its chunk. The chunk returns to the pool.
                drop(self.held.release(Side::Receive, descriptor.address));
                note_stray(ledger);
                continue;
            };
            // Inspected in place, and moved once, into the burst.
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
            // Cannot fail: the limit is within the burst's room.
            let _ = burst.push(ReceivedFrame {
                frame: holding.release(),
                from: found.from(),
                arrived,
            });
        }
        ledger.receive.note_received_all(received, received_bytes);
        ledger.events.note(counters::RECEIVED_BY_LANE, received);
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

/// Counts an invalid descriptor.
#[cold]
fn note_stray(ledger: &mut LaneLedger) {
    ledger.events.note(counters::STRAY, 1);
    ledger.receive.note_dropped(counters::MALFORMED, 1);
}

/// Arrival time stored before the frame at `start`.
#[inline]
fn stamp(buffer: &[u8], start: usize) -> Option<Instant> {
    let bytes = buffer.get(..start)?.last_chunk::<STAMP_BYTES>()?;
    Some(Instant::new(u64::from_ne_bytes(*bytes))).filter(|stamp| stamp.as_nanos() > 0)
}

/// Finds the datagram in a frame, and counts the kind of its checksum.
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
        return Err(ReceiveDrop::TRUNCATED);
    }
    lane.partial = Partial::Unexpected;
    match found.checksum {
        ChecksumState::Partial => {
            lane.partial = Partial::Expected;
            ledger.events.note(counters::PARTIAL_CHECKSUM, 1);
        }
        ChecksumState::None if looks.checksums => ledger.events.note(counters::NO_CHECKSUM, 1),
        _ => {}
    }
    Ok(found)
}
