//! Transmission of a burst: by the device where possible, otherwise by the kernel socket.
//!
//! ```text
//!   each destination ──> headers resolved ──> headers before the payload, into the ring ──> kick
//!                   └──> reason   ──> the lane's kernel socket
//! ```
//!
//! The first of a frame's destinations that the device can reach is sent from the frame itself. Each further
//! destination is sent from a copy: headers differ by destination, and a frame in a ring must not be written. A group
//! is one destination, whatever its number of readers.
//!
//! The device precedes the kernel sockets, so critical frames do not wait for slower sends.
//!
//! # One frame to one destination
//!
//! The general path keeps bit sets of messages and frames. For a single message, the usual transmission of a lane,
//! these would be a third of all instructions. So [`send_single`](Xdp::send_single) checks every obstacle before
//! anything is counted or written, and the burst takes the general path unchanged if there is an obstacle. A lane
//! usually sends where it sent last, since all readers of a level share their participant's port. The lane therefore
//! keeps a handle to the destination's cached headers.

use isolane_datapath::limits::MAX_BURST;
use isolane_datapath::pool::Class;
use isolane_datapath::{Event, Frame, Lane, LaneLedger, Pool, SendReport, TransmitBurst};
use isolane_wire::level::Level;
use isolane_wire::locator::Locator;

use super::Xdp;
use super::device::{Device, DeviceLane};
use super::kind::XdpOptions;
use crate::routing::{CachedHeader, Flow, MAX_HEADER_BYTES, Reason, Router, Template, UdpChecksum};
use crate::socket::{Descriptor, Kicked, Side, Umem};
use crate::xdp::counters;

/// Distribution of a burst's messages; bit *i* is the *i*-th message or frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Split {
    /// Messages for the kernel socket.
    pub(super) kernel: u64,
    /// Multicast messages sent by the device.
    pub(super) groups: u64,
    /// Frames handed to the device.
    pub(super) frames: u32,
    pub(super) report: SendReport,
}

/// Transmission settings.
#[derive(Clone, Copy)]
pub(super) struct Outward {
    pub(super) checksum: UdpChecksum,
    /// Whether multicast is enabled.
    pub(super) groups: bool,
}

impl Device {
    /// Sends the messages that the device can deliver, and returns which these are. The frames handed to the device
    /// must be [kept](Self::keep) before any other use of the device; otherwise the lane must be closed.
    ///
    /// Descriptors go directly into the ring, and are published together. A temporary list would cost a single message
    /// as much as its headers.
    pub(super) fn send(
        &mut self,
        lane: &mut DeviceLane,
        router: &mut Router,
        outward: Outward,
        pool: &Pool,
        ledger: &mut LaneLedger,
        burst: &mut TransmitBurst,
    ) -> Split {
        let mut split = Split::default();
        let (mut by_device, mut count) = (0, 0);
        let (frames, messages) = burst.parts_mut();
        for (place, message) in messages.iter().enumerate() {
            let bit = 1 << place;
            let frame = &mut frames[usize::from(message.frame)];
            let is_group = message.to.is_multicast();
            let Some((destination, destination_port)) =
                reached(&message.to).filter(|_| outward.groups || !is_group)
            else {
                // The kernel socket reports the reason.
                split.kernel |= bit;
                continue;
            };
            let flow = Flow {
                destination,
                destination_port,
                source_port: lane.port,
                level: lane.level,
            };
            let bytes = frame.len();
            let taken = match router.headers(&flow, bytes) {
                Err(reason) => Err(counted(reason)),
                Ok(template) => {
                    let is_sent = &mut split.frames;
                    let number = message.frame;
                    let checksum = outward.checksum;
                    self.place(
                        template, checksum, lane, pool, frame, number, is_sent, ledger,
                    )
                }
            };
            match taken {
                Ok(()) => {
                    by_device |= bit;
                    count += 1;
                    split.groups |= if is_group { bit } else { 0 };
                    ledger.transmit.note_sent(bytes);
                }
                Err(why) => {
                    ledger.events.note(why, 1);
                    split.kernel |= bit;
                }
            }
        }
        if by_device != 0 {
            Device::show(lane, by_device, count, burst, ledger, &mut split.report);
        }
        split
    }

    /// Writes the headers before a payload and stages the frame. A frame that is already staged is copied.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "one step of `send`, named")]
    fn place(
        &mut self,
        template: &Template,
        checksum: UdpChecksum,
        lane: &mut DeviceLane,
        pool: &Pool,
        frame: &mut Frame,
        number: u8,
        is_sent: &mut u32,
        ledger: &mut LaneLedger,
    ) -> Result<(), Event> {
        let has_room = frame.head_room() >= template.header_bytes();
        let bit = 1 << number;
        if has_room
            && *is_sent & bit == 0
            && let Some(chunk) = chunk_of(&self.umem, frame)
        {
            let descriptor = emit(&self.umem, template, checksum, frame, chunk);
            if !lane.transmit.ring.stage(descriptor) {
                return Err(counters::KERNEL_RING_FULL);
            }
            *is_sent |= bit;
            return Ok(());
        }
        self.place_copy(template, checksum, lane, pool, frame, ledger)
    }

    /// Stages a copy of the frame.
    #[cold]
    fn place_copy(
        &mut self,
        template: &Template,
        checksum: UdpChecksum,
        lane: &mut DeviceLane,
        pool: &Pool,
        frame: &Frame,
        ledger: &mut LaneLedger,
    ) -> Result<(), Event> {
        if lane.transmit.ring.free() == 0 {
            return Err(counters::KERNEL_RING_FULL);
        }
        let class = Class::Transmit(Lane::Level(lane.level));
        if pool.free(class) == 0 {
            // Completions of single frames are not polled at once.
            self.take_completed(lane.queue);
        }
        let mut copy = pool.take(class).ok_or(counters::KERNEL_NO_CHUNK)?;
        let chunk = chunk_of(&self.umem, &copy).ok_or(counters::KERNEL_NO_CHUNK)?;
        copy.append(frame).map_err(|_| counters::KERNEL_NO_CHUNK)?;
        ledger.events.note(counters::DESTINATION_COPY, 1);
        let descriptor = emit(&self.umem, template, checksum, &mut copy, chunk);
        if self.held.hold_chunk(Side::Transmit, chunk, copy).is_err() {
            unreachable!("a frame from the pool is not in the kernel's hands");
        }
        assert!(lane.transmit.ring.stage(descriptor), "there was room");
        Ok(())
    }

    /// Publishes the staged frames and counts the result. `by_device` selects the `count` messages of these frames;
    /// they count as sent.
    #[inline]
    fn show(
        lane: &mut DeviceLane,
        by_device: u64,
        count: u32,
        burst: &TransmitBurst,
        ledger: &mut LaneLedger,
        report: &mut SendReport,
    ) {
        lane.transmit.ring.show();
        ledger.events.note(counters::SENT_BY_LANE, count.into());
        report.sent += count;
        let refused = lane.kick(ledger).min(count);
        if refused > 0 {
            // The last messages count as refused, because the kernel does not tell which frames were.
            let messages = burst.messages().iter().enumerate().rev();
            let shown = messages.filter(|(place, _)| by_device & 1 << place != 0);
            let last = shown.take(refused as usize);
            let bytes = last.map(|(_, message)| burst.frame(message).len() as u64);
            let transmit = &mut ledger.transmit;
            transmit.note_unsent(counters::DEVICE_REFUSED, refused.into(), bytes.sum());
            report.sent -= refused;
            report.refused += refused;
        }
    }

    /// Holds the frames handed to the device and returns the others to the pool.
    #[inline]
    pub(super) fn keep(&mut self, sent: u32, burst: &mut TransmitBurst) {
        let mut number = burst.len().min(MAX_BURST);
        for frame in burst.drain() {
            number -= 1;
            if sent & 1 << number == 0 {
                continue;
            }
            // Only chunks of this device are staged (checked by address), so the chunk number is valid.
            let chunk = frame.chunk();
            let chunk = chunk.expect("only chunks are sent by the device");
            if self.held.hold_chunk(Side::Transmit, chunk, frame).is_err() {
                unreachable!("a frame of a burst is not in the kernel's hands");
            }
        }
    }
}

impl DeviceLane {
    /// Kicks the transmit ring; returns the number of frames the driver refused.
    #[inline]
    pub(super) fn kick(&mut self, ledger: &mut LaneLedger) -> u32 {
        let kicked = self.transmit.kick();
        self.note_kicked(kicked, ledger)
    }

    /// Kicks the frames left in the transmit ring, with one system call.
    pub(super) fn kick_again(&mut self, ledger: &mut LaneLedger) -> u32 {
        let kicked = self.transmit.kick_at_most(1);
        self.note_kicked(kicked, ledger)
    }

    fn note_kicked(&mut self, kicked: Kicked, ledger: &mut LaneLedger) -> u32 {
        self.left = kicked.left;
        let counts = &mut ledger.events;
        counts.note(counters::KICK, kicked.calls.into());
        counts.note(counters::KICK_UNFINISHED, u64::from(kicked.left > 0));
        kicked.refused
    }
}

/// UDP checksum policy of sent datagrams.
#[inline]
pub(super) fn checksum_of(options: &XdpOptions) -> UdpChecksum {
    match options.make_checksums {
        true => UdpChecksum::Made,
        false => UdpChecksum::None,
    }
}

/// Chunk number of a frame in this UMEM. Found by address, since frames of another pool may have chunk numbers too.
#[inline]
pub(super) fn chunk_of(umem: &Umem, frame: &Frame) -> Option<u32> {
    umem.chunk_at(frame.buffer().as_ptr())
}

/// Writes headers and returns the descriptor of the whole frame. The frame's filled range stays the payload.
// Inlined always: moving its arguments and result would cost a fifth of its run time.
#[inline(always)]
pub(super) fn emit(
    umem: &Umem,
    template: &Template,
    checksum: UdpChecksum,
    frame: &mut Frame,
    chunk: u32,
) -> Descriptor {
    let payload = frame.range();
    let end = payload.end;
    let start = template.emit(frame.buffer_mut(), payload, checksum);
    Descriptor {
        address: umem.start_of(chunk) + start as u64,
        length: (end - start) as u32,
        options: 0,
    }
}

/// Address and port of a message to an IPv4 destination.
#[inline]
pub(super) fn reached(to: &Locator) -> Option<([u8; 4], u16)> {
    let port = u16::try_from(to.port).ok().filter(|port| *port > 0)?;
    Some((to.ipv4()?, port))
}

/// Ledger counter of a reason to use the kernel socket.
fn counted(reason: Reason) -> Event {
    match reason {
        Reason::OwnHost => counters::KERNEL_OWN_HOST,
        Reason::TooLong => counters::KERNEL_TOO_LONG,
        Reason::NeighbourUnknown | Reason::NeighbourFailed => counters::KERNEL_NEIGHBOUR,
        Reason::OtherInterface | Reason::NoRoute => counters::KERNEL_NO_ROUTE,
        Reason::Down | Reason::Gone | Reason::NoSource => counters::KERNEL_DOWN,
        Reason::Rules | Reason::Unsupported | Reason::Synchronising | Reason::TableFull => {
            counters::KERNEL_UNSUPPORTED
        }
    }
}

/// Last destination of `send_single`.
#[derive(Clone, Copy)]
pub(super) struct LastPlace {
    to: Locator,
    headers: CachedHeader,
}

impl Xdp {
    /// Sends a burst of one message. `None`, without side effects, if the burst has another number of messages, or if
    /// the device cannot send the message now from the frame itself.
    #[inline]
    pub(super) fn send_single(
        &mut self,
        level: Level,
        burst: &mut TransmitBurst,
    ) -> Option<SendReport> {
        let interface = self.interface.as_deref_mut()?;
        let device = interface.device.as_deref_mut()?;
        let place = usize::from(level.get());
        let lane = device.lanes[place].as_deref_mut()?;
        let ([frame], [message]) = burst.parts_mut() else {
            return None;
        };
        let chunk = chunk_of(&device.umem, frame)?;
        if frame.head_room() < MAX_HEADER_BYTES || !lane.transmit.ring.has_room() {
            return None;
        }
        let router = &mut interface.router;
        let headers = match lane.last_place {
            Some(last) if last.to == message.to && router.is_current(last.headers) => last.headers,
            _ => lane.find_headers(router, message.to)?,
        };
        let bytes = frame.len();
        let template = router.known_headers(headers, bytes)?;
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
    /// Finds the cached headers of a unicast destination. `None` for multicast, which also needs a copy for this host.
    fn find_headers(&mut self, router: &Router, to: Locator) -> Option<CachedHeader> {
        let (destination, destination_port) = reached(&to).filter(|_| !to.is_multicast())?;
        let headers = router.find(&Flow {
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
