//! One frame to one place by the device: most of what is sent by a lane.
//!
//! A burst of many is sent by `send`, which keeps sets of messages: which are the device's, which are
//! the kernel's, which frames are on their way. For one message they would be a third of all
//! instructions, and it needs none of them: it is the device's as a whole, or it is not sent here at all. So
//! everything that could stand in its way is looked at before anything is counted or written, and
//! whatever does has the burst sent the other way as if nobody had looked.
//!
//! A lane mostly sends where it sent last, since all readers of a level share their participant's port.
//! So it keeps where that place's headers are remembered, and nothing is searched for.

use isolane_datapath::{Counted, Lane, LaneLedger, Refusal, SendReport, TransmitBurst};
use isolane_wire::level::Level;
use isolane_wire::locator::Locator;

use super::Xdp;
use super::device::DeviceLane;
use super::send::{checksum_of, chunk_of, emit, reached};
use crate::egress::{Egress, Flow, Known, MAX_HEADER_BYTES};
use crate::socket::Side;

/// Where a lane sent last by `send_single`.
#[derive(Clone, Copy)]
pub(super) struct LastPlace {
    to: Locator,
    headers: Known,
}

impl Xdp {
    /// Sends a burst of one message. `None`, and nothing is changed: it has more, or none, or is none
    /// that the device sends now from the frame itself.
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
        // In `held` before the kernel sees it, so there is nothing to be put right, whatever follows.
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
        ledger.counts.note(Counted::SentByLane, 1);
        let report = match lane.kick(ledger) {
            0 => SendReport {
                sent: 1,
                refused: 0,
            },
            _ => refused(ledger, bytes),
        };
        let (queue, left, completed_burst) = (lane.queue, lane.left, lane.completed_burst);
        device.note_left(place, left);
        // A writer that finds no frame at home has them looked for anyway.
        if device.held.count(Side::Transmit) >= completed_burst {
            device.take_completed(queue);
        }
        Some(report)
    }
}

impl DeviceLane {
    /// Where the headers of a place are remembered, if the device reaches it without more ado: it is no
    /// group, of which there is a copy for this host.
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

/// The driver did not take it: what was counted as sent was not.
#[cold]
fn refused(ledger: &mut LaneLedger, bytes: usize) -> SendReport {
    let transmit = &mut ledger.transmit;
    transmit.note_unsent(Refusal::DeviceRefused, 1, bytes as u64);
    SendReport {
        sent: 0,
        refused: 1,
    }
}

#[cfg(test)]
mod tests;
