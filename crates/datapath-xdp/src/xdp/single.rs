//! Fast path for one frame to one destination: the usual transmission of a lane.
//!
//! The general path (`send`) keeps bit sets of messages and frames. For a single message they would be a third of all
//! instructions. So every obstacle is checked before anything is counted or written, and any obstacle makes the burst
//! take the general path unchanged.
//!
//! A lane usually sends where it sent last, since all readers of a level share their participant's port. The lane
//! therefore keeps a handle to the destination's cached headers.

use isolane_datapath::{Lane, LaneLedger, SendReport, TransmitBurst};
use isolane_wire::level::Level;
use isolane_wire::locator::Locator;

use super::Xdp;
use super::device::DeviceLane;
use super::send::{checksum_of, chunk_of, emit, reached};
use crate::egress::{Egress, Flow, Known, MAX_HEADER_BYTES};
use crate::socket::Side;
use crate::xdp::counters;

/// Last destination of `send_single`.
#[derive(Clone, Copy)]
pub(super) struct LastPlace {
    to: Locator,
    headers: Known,
}

impl Xdp {
    /// Sends a burst of one message. `None`, without side effects, if the burst has more or none, or if the device
    /// cannot send this one now from the frame itself.
    #[inline]
    pub(super) fn send_single(
        &mut self,
        level: Level,
        burst: &mut TransmitBurst,
    ) -> Option<SendReport> {
        let way = self.way.as_deref_mut()?;
        let device = way.device.as_deref_mut()?;
        let place = usize::from(level.get());
        let lane = device.lanes[place].as_deref_mut()?;
        let ([frame], [message]) = burst.parts_mut() else {
            return None;
        };
        let chunk = chunk_of(&device.umem, frame)?;
        if frame.head_room() < MAX_HEADER_BYTES || !lane.transmit.ring.has_room() {
            return None;
        }
        let egress = &mut way.egress;
        let headers = match lane.last_place {
            Some(last) if last.to == message.to && egress.is_current(last.headers) => last.headers,
            _ => lane.find_headers(egress, message.to)?,
        };
        let bytes = frame.len();
        let template = egress.known_headers(headers, bytes)?;
        let checksum = checksum_of(&self.options);
        let descriptor = emit(&device.umem, template, checksum, frame, chunk);
        // `held` records the chunk before the kernel sees it, so a failure from here on needs no undo.
        let frame = burst.drain().next()?;
        if device
            .held
            .hold_chunk(Side::Transmit, chunk, frame)
            .is_err()
        {
            unreachable!("a frame of a burst is not in the kernel's hands");
        }
        assert!(lane.transmit.ring.stage(descriptor), "there was room");
        lane.transmit.ring.show();
        let ledger = self.udp.lane_ledger_mut(Lane::Level(level));
        ledger.transmit.note_sent(bytes);
        ledger.events.note(counters::SENT_BY_LANE, 1);
        let report = match lane.kick(ledger) {
            0 => SendReport {
                sent: 1,
                refused: 0,
            },
            _ => refused(ledger, bytes),
        };
        let (queue, left, completed_burst) = (lane.queue, lane.left, lane.completed_burst);
        device.note_left(place, left);
        // A writer that finds the pool empty polls for completions anyway.
        if device.held.count(Side::Transmit) >= completed_burst {
            device.take_completed(queue);
        }
        Some(report)
    }
}

impl DeviceLane {
    /// Finds the cached headers of a unicast destination. Multicast also needs a copy for this host.
    fn find_headers(&mut self, egress: &Egress, to: Locator) -> Option<Known> {
        let (destination, destination_port) = reached(&to).filter(|_| !to.is_multicast())?;
        let headers = egress.find(&Flow {
            destination,
            destination_port,
            source_port: self.port,
            level: self.level,
        })?;
        self.last_place = Some(LastPlace { to, headers });
        Some(headers)
    }
}

/// Corrects the counters after the driver refused the frame.
#[cold]
fn refused(ledger: &mut LaneLedger, bytes: usize) -> SendReport {
    let transmit = &mut ledger.transmit;
    transmit.note_unsent(counters::DEVICE_REFUSED, 1, bytes as u64);
    SendReport {
        sent: 0,
        refused: 1,
    }
}

#[cfg(test)]
mod tests;
