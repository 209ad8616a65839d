//! One frame to one place by the device: most of what is sent by a lane.
//!
//! A burst of many is sent by `send`, which keeps sets of messages: which are the device's, which are
//! the kernel's, which frames are on their way. For one message they would be a third of all
//! instructions, and it needs none of them: it is the device's as a whole, or it is not sent here at all. So
//! everything that could stand in its way is looked at before anything is counted or written, and
//! whatever does has the burst sent the other way as if nobody had looked.

use isolane_datapath::{Counted, LaneLedger, Refusal, SendReport, TransmitBurst};
use isolane_wire::level::Level;

use super::device::Device;
use super::send::{Outward, chunk_of, emit, reached};
use crate::egress::{Egress, Flow, MAX_HEADER_BYTES};
use crate::socket::Side;

impl Device {
    /// Sends a burst of one message. `None`, and nothing is changed: it has more, or none, or is none
    /// that the device sends now from the frame itself.
    pub(super) fn send_single(
        &mut self,
        level: Level,
        egress: &mut Egress,
        outward: Outward,
        ledger: &mut LaneLedger,
        burst: &mut TransmitBurst,
    ) -> Option<SendReport> {
        let ([frame], [message]) = burst.parts_mut() else {
            return None;
        };
        let place = usize::from(level.get());
        let lane = self.lanes[place].as_deref_mut()?;
        let (destination, destination_port) = reached(&message.to)?;
        let chunk = chunk_of(&self.umem, frame)?;
        let has_head_room = frame.head_room() >= MAX_HEADER_BYTES;
        if message.to.is_multicast() || !has_head_room || !lane.transmit.ring.has_room() {
            return None;
        }
        let flow = Flow {
            destination,
            destination_port,
            source_port: lane.port,
            level,
        };
        let bytes = frame.len();
        let template = egress.known_headers(&flow, bytes)?;
        let descriptor = emit(&self.umem, template, outward.checksum, frame, chunk);
        // In `held` before the kernel sees it, so there is nothing to be put right, whatever follows.
        let frame = burst.pop()?;
        if self.held.hold_chunk(Side::Transmit, chunk, frame).is_err() {
            unreachable!("a frame of a burst is not in the kernel's hands");
        }
        assert!(lane.transmit.ring.stage(descriptor), "there was room");
        lane.transmit.ring.show();
        ledger.transmit.note_sent(bytes);
        ledger.counts.note(Counted::SentByLane, 1);
        let mut report = SendReport {
            sent: 1,
            refused: 0,
        };
        if lane.kick(ledger) > 0 {
            let transmit = &mut ledger.transmit;
            transmit.note_unsent(Refusal::DeviceRefused, 1, bytes as u64);
            report = SendReport {
                sent: 0,
                refused: 1,
            };
        }
        let (queue, left) = (lane.queue, lane.left);
        self.note_left(place, left);
        self.take_completed(queue);
        Some(report)
    }
}
