//! From a burst to the device, and what is left of it to the kernel.
//!
//! ```text
//!   each destination ──> its headers are known ──> in front of the frame, into the ring ──> kick
//!                   └──> why not ──> the lane's kernel socket
//! ```
//!
//! The first destination of a frame that the device reaches is sent from the frame itself. Headers
//! differ from one destination to the next and a frame in the kernel's hands is not touched, so
//! each further one is a copy; a group is one destination however many read it.
//!
//! The device comes first and the kernel's sockets after it: what is critical does not wait for what
//! is sent the long way.

use isolane_datapath::limits::{MAX_BURST, MAX_MESSAGES};
use isolane_datapath::pool::Class;
use isolane_datapath::{
    Counted, Frame, Lane, LaneLedger, Pool, Refusal, SendReport, TransmitBurst,
};

use super::device::{Device, DeviceLane};
use crate::egress::{Egress, Flow, Reason, Template, UdpChecksum};
use crate::socket::{Descriptor, Kicked, Side};

/// What becomes of a burst's messages; bit *i* is the *i*-th message, or frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Split {
    /// Messages for the kernel's socket.
    pub(super) kernel: u64,
    /// Messages to groups that the device sends.
    pub(super) groups: u64,
    /// Frames that the device has.
    pub(super) frames: u32,
    pub(super) report: SendReport,
}

/// How what is sent is made.
#[derive(Clone, Copy)]
pub(super) struct Outward {
    pub(super) checksum: UdpChecksum,
    /// Groups are sent to.
    pub(super) groups: bool,
}

/// Descriptors on their way into the ring. Kept from one burst to the next: the room for all that a
/// burst may have is large beside one message.
#[derive(Default)]
pub(super) struct Outgoing {
    descriptors: heapless::Vec<Descriptor, MAX_MESSAGES>,
    bytes: heapless::Vec<u16, MAX_MESSAGES>,
}

impl Device {
    /// Sends what the device reaches, and says what it does not. The frames that it has must be
    /// [kept](Self::keep) before anything else is done with the device, or the lane be closed.
    pub(super) fn send(
        &mut self,
        lane: &mut DeviceLane,
        egress: &mut Egress,
        outward: Outward,
        pool: &Pool,
        ledger: &mut LaneLedger,
        burst: &mut TransmitBurst,
    ) -> Split {
        let mut split = Split::default();
        let mut out = self.outgoing.take().unwrap_or_default();
        let room = lane.transmit.ring.free() as usize;
        for place in 0..burst.messages().len() {
            let message = burst.messages()[place];
            let bit = 1 << place;
            let bytes = burst.frame(&message).len();
            let address = message.to.ipv4();
            let port = u16::try_from(message.to.port).ok().filter(|port| *port > 0);
            let is_sent_to = outward.groups || !message.to.is_multicast();
            let (Some(destination), Some(destination_port), true) = (address, port, is_sent_to)
            else {
                // The kernel's side names it.
                split.kernel |= bit;
                continue;
            };
            let flow = Flow {
                destination,
                destination_port,
                source_port: lane.port,
                level: lane.level,
            };
            let taken = match egress.headers(&flow, bytes) {
                Err(reason) => Err(counted(reason)),
                Ok(_) if out.descriptors.len() == room => Err(Counted::KernelRingFull),
                Ok(template) => {
                    let is_sent = &mut split.frames;
                    let number = message.frame;
                    self.place(
                        template,
                        outward.checksum,
                        lane,
                        pool,
                        burst,
                        number,
                        is_sent,
                        ledger,
                    )
                }
            };
            match taken {
                Ok(descriptor) => {
                    // There is room for as many as a burst has messages.
                    let _ = out.descriptors.push(descriptor);
                    let _ = out.bytes.push(bytes as u16);
                    split.groups |= if message.to.is_multicast() { bit } else { 0 };
                }
                Err(why) => {
                    ledger.counts.note(why, 1);
                    split.kernel |= bit;
                }
            }
        }
        self.push(lane, &out, ledger, &mut split.report);
        out.descriptors.clear();
        out.bytes.clear();
        self.outgoing = Some(out);
        split
    }

    /// Puts headers in front of a payload: in the frame if it is not on its way already, else in a
    /// copy.
    #[expect(clippy::too_many_arguments, reason = "one step of `send`, named")]
    fn place(
        &mut self,
        template: &Template,
        checksum: UdpChecksum,
        lane: &DeviceLane,
        pool: &Pool,
        burst: &mut TransmitBurst,
        number: u8,
        is_sent: &mut u32,
        ledger: &mut LaneLedger,
    ) -> Result<Descriptor, Counted> {
        let frame = &mut burst.frames_mut()[usize::from(number)];
        let has_room = frame.head_room() >= template.header_bytes();
        let is_free = *is_sent & 1 << number == 0;
        if let (Some(chunk), true) = (self.chunk_of(frame), has_room && is_free) {
            *is_sent |= 1 << number;
            return Ok(self.emit(template, checksum, frame, chunk));
        }
        let class = Class::Transmit(Lane::Level(lane.level));
        let mut copy = pool.take(class).ok_or(Counted::KernelNoChunk)?;
        let chunk = self.chunk_of(&copy).ok_or(Counted::KernelNoChunk)?;
        copy.append(frame).map_err(|_| Counted::KernelNoChunk)?;
        ledger.counts.note(Counted::DestinationCopy, 1);
        let descriptor = self.emit(template, checksum, &mut copy, chunk);
        let start = self.umem.start_of(chunk);
        if self.held.hold(Side::Transmit, start, copy).is_err() {
            unreachable!("a frame from the pool is not in the kernel's hands");
        }
        Ok(descriptor)
    }

    /// The chunk of this device that a frame is. By its place, since frames of another pool than the
    /// device's may have numbers too.
    fn chunk_of(&self, frame: &Frame) -> Option<u32> {
        let address = self.umem.address_of(frame.buffer().as_ptr())?;
        self.umem.chunk_of(address)
    }

    /// Writes headers and says where the whole lies. The payload stays the frame's filled part.
    fn emit(
        &self,
        template: &Template,
        checksum: UdpChecksum,
        frame: &mut Frame,
        chunk: u32,
    ) -> Descriptor {
        let payload = frame.range();
        let end = payload.end;
        let start = template.emit(frame.buffer_mut(), payload, checksum);
        Descriptor {
            address: self.umem.start_of(chunk) + start as u64,
            length: (end - start) as u32,
            options: 0,
        }
    }

    /// Shows the kernel what is to be sent, and counts what became of it.
    fn push(
        &mut self,
        lane: &mut DeviceLane,
        out: &Outgoing,
        ledger: &mut LaneLedger,
        report: &mut SendReport,
    ) {
        let count = out.descriptors.len();
        if count == 0 {
            return;
        }
        let pushed = lane.transmit.ring.push(&out.descriptors);
        debug_assert_eq!(pushed, count, "there was room");
        for bytes in &out.bytes {
            ledger.transmit.note_sent(usize::from(*bytes));
        }
        ledger.counts.note(Counted::SentByLane, count as u64);
        report.sent += count as u32;
        let refused = lane.kick(ledger).min(count as u32);
        if refused > 0 {
            // The last ones, for want of knowing which.
            let last = out.bytes.iter().rev().take(refused as usize);
            let bytes = last.map(|bytes| u64::from(*bytes)).sum();
            let transmit = &mut ledger.transmit;
            transmit.note_unsent(Refusal::DeviceRefused, refused.into(), bytes);
            report.sent -= refused;
            report.refused += refused;
        }
    }

    /// Keeps the frames that the device has and lets the others go home.
    pub(super) fn keep(&mut self, sent: u32, burst: &mut TransmitBurst) {
        let mut number = burst.len().min(MAX_BURST);
        for frame in burst.drain() {
            number -= 1;
            if sent & 1 << number == 0 {
                continue;
            }
            let chunk = self.chunk_of(&frame);
            let chunk = chunk.expect("only chunks are sent by the device");
            let start = self.umem.start_of(chunk);
            if self.held.hold(Side::Transmit, start, frame).is_err() {
                unreachable!("a frame of a burst is not in the kernel's hands");
            }
        }
    }
}

impl DeviceLane {
    /// Has the kernel take what is in the ring; returns how many frames the driver refused.
    fn kick(&mut self, ledger: &mut LaneLedger) -> u32 {
        let kicked = self.transmit.kick();
        self.note_kicked(kicked, ledger)
    }

    /// Has it take some of what was left there, by one system call.
    pub(super) fn kick_again(&mut self, ledger: &mut LaneLedger) -> u32 {
        let kicked = self.transmit.kick_at_most(1);
        self.note_kicked(kicked, ledger)
    }

    fn note_kicked(&mut self, kicked: Kicked, ledger: &mut LaneLedger) -> u32 {
        self.left = kicked.left;
        let counts = &mut ledger.counts;
        counts.note(Counted::Kick, kicked.calls.into());
        counts.note(Counted::KickUnfinished, u64::from(kicked.left > 0));
        kicked.refused
    }
}

/// How the ledger calls a reason to take the kernel's way.
fn counted(reason: Reason) -> Counted {
    match reason {
        Reason::OwnHost => Counted::KernelOwnHost,
        Reason::TooLong => Counted::KernelTooLong,
        Reason::NeighbourUnknown | Reason::NeighbourFailed => Counted::KernelNeighbour,
        Reason::OtherInterface | Reason::NoRoute => Counted::KernelNoRoute,
        Reason::Down | Reason::Gone | Reason::NoSource => Counted::KernelDown,
        Reason::Rules | Reason::Unsupported | Reason::Synchronising | Reason::TableFull => {
            Counted::KernelUnsupported
        }
    }
}
