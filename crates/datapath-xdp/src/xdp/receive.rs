//! From a lane's ring into a burst.
//!
//! A frame in the ring was written by the kernel or the device, and is the reader's from here on: no
//! byte of it is copied. The reader may hold so many frames of a lane and no more; then what waits
//! stays in the ring, and what comes behind it finds the ring full. So no reader takes what other
//! lanes receive into.

use isolane_datapath::limits::MAX_BURST;
use isolane_datapath::{
    Counted, Frame, Lane, LaneLedger, Pool, ReceiveBurst, ReceiveDrop, ReceivedFrame,
};
use isolane_wire::locator::Locator;
use isolane_wire::time::Instant;

use super::device::{Device, DeviceLane};
use super::headers;
use crate::egress::{Judgement, Partial};
use crate::socket::Side;

/// Bytes in front of a frame that the classifier has written the time to.
const STAMP_BYTES: usize = 8;

/// What receiving looks at in each frame.
#[derive(Clone, Copy)]
pub(super) struct Looks {
    pub(super) stamps: bool,
    pub(super) checksums: bool,
    /// Bytes of a payload at most: those of the pool's frames.
    pub(super) max_bytes: usize,
}

impl Device {
    /// Takes at most `limit` datagrams off a lane's ring. `limit` is no more than the burst's room.
    pub(super) fn receive(
        &mut self,
        lane: &mut DeviceLane,
        limit: usize,
        looks: Looks,
        pool: &Pool,
        ledger: &mut LaneLedger,
        burst: &mut ReceiveBurst,
    ) -> usize {
        if self.refill_in_bursts(lane.queue, pool) > 0 && self.is_waited_for(lane.queue) {
            // Down or gone: then there is nothing.
            let _ = lane.receive.poll_device();
        }
        let of = Lane::Level(lane.level);
        let may_hold = lane.held_limit.saturating_sub(pool.held(of));
        let limit_now = limit.min(may_hold).min(MAX_BURST);
        if limit_now == 0 {
            let waits = limit > 0 && lane.receive.ring.waiting() > 0;
            ledger.receive.starved += u64::from(waits);
            return 0;
        }
        let count = lane.receive.ring.ready(limit_now);
        let stamps = looks.stamps && count > 0 && self.has_stamped_all(lane.queue);
        for _ in 0..count {
            let Some(descriptor) = lane.receive.ring.take() else {
                break;
            };
            // Looked at where it is kept, and moved once, into the burst.
            let holding = self.held.find(Side::Receive, descriptor.address);
            let Some(mut holding) = holding else {
                note_stray(ledger);
                continue;
            };
            let Some(located) = self.umem.locate(descriptor) else {
                // It goes home, where it says that it ends behind its chunk.
                holding.discard();
                note_stray(ledger);
                continue;
            };
            let frame = holding.owner();
            frame.set_range(located.range);
            let arrived = match stamps {
                true => stamp(frame),
                false => None,
            };
            match open_up(frame, lane, looks, ledger) {
                Err(reason) => {
                    ledger.receive.note_dropped(reason, 1);
                    holding.discard();
                }
                Ok(from) => {
                    pool.lend(frame, of);
                    ledger.receive.note_received(frame.len());
                    ledger.receive.unstamped += u64::from(looks.stamps && arrived.is_none());
                    ledger.counts.note(Counted::ReceivedByLane, 1);
                    let received = ReceivedFrame {
                        frame: holding.release(),
                        from,
                        arrived,
                    };
                    // There is room: the limit was no more than that.
                    let _ = burst.push(received);
                }
            }
        }
        if count > 0 {
            lane.receive.ring.give_back();
        }
        let largest = &mut ledger.receive.largest_burst;
        *largest = (*largest).max(count as u64);
        count
    }
}

/// A descriptor that cannot be believed.
#[cold]
fn note_stray(ledger: &mut LaneLedger) {
    ledger.counts.note(Counted::Stray, 1);
    ledger.receive.note_dropped(ReceiveDrop::Malformed, 1);
}

/// The instant that the classifier has written in front of a frame.
#[inline]
fn stamp(frame: &Frame) -> Option<Instant> {
    let start = frame.range().start.checked_sub(STAMP_BYTES)?;
    let bytes = frame.buffer().get(start..)?.first_chunk::<STAMP_BYTES>()?;
    Some(Instant::new(u64::from_ne_bytes(*bytes))).filter(|stamp| stamp.as_nanos() > 0)
}

/// Makes the payload the frame's filled part, and says who sent it.
#[inline]
fn open_up(
    frame: &mut Frame,
    lane: &mut DeviceLane,
    looks: Looks,
    ledger: &mut LaneLedger,
) -> Result<Locator, ReceiveDrop> {
    let partial = looks.checksums.then_some(match lane.expects_partial {
        true => Partial::Expected,
        false => Partial::Unexpected,
    });
    let found = headers::find(frame, partial)?;
    if found.payload.len() > looks.max_bytes {
        return Err(ReceiveDrop::Truncated);
    }
    lane.expects_partial = found.checksum == Judgement::Partial;
    match found.checksum {
        Judgement::Partial => ledger.counts.note(Counted::PartialChecksum, 1),
        Judgement::None if looks.checksums => ledger.counts.note(Counted::NoChecksum, 1),
        _ => {}
    }
    let start = frame.range().start;
    frame.set_range(start + found.payload.start..start + found.payload.end);
    Ok(found.from)
}
