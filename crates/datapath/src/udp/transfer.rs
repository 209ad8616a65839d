//! Transfer of bursts: sendmmsg directly from frames, and recvmmsg directly into them.
//!
//! The arrays of both calls are allocated once. Their entries are rewritten before each use, so no pointer is used
//! after its frame is gone.
//!
//! # Sending
//!
//! A frame with several destinations becomes several messages with the same bytes. A multicast message becomes one
//! message for each interface. Control data (IP_PKTINFO) names the interface, so one socket and one call suffice.
//!
//! # Segmented bursts
//!
//! A segmented burst is one message: the kernel passes it through the stack as one packet, and the device or the
//! kernel divides it into datagrams (UDP_SEGMENT, udp(7)). If the kernel refuses, the datagrams are sent singly, and
//! [`Segmentation`] remembers for the interface what was refused. Sockets receive such packets whole (UDP_GRO), and a
//! frame then has several datagrams.
//!
//! # Receiving
//!
//! The sockets of a lane are served in turn, so that none starves. Frames stay armed between calls: only those filled
//! by the last call are replaced, so an empty lane costs one system call and moves no frame.
//!
//! # Receive stamps
//!
//! Both clocks are read once for each socket that delivered datagrams. After a step of the wall clock a socket's stamps
//! are ignored until the socket has been empty, because waiting datagrams may be stamped before the step.

use std::io;
use std::mem;
use std::ptr;

use isolane_wire::locator::Locator;
use isolane_wire::time::Instant;
use libc::{c_int, iovec, mmsghdr, sockaddr_in};

use super::Udp;
use super::interfaces::Interface;
use super::lane::OpenLane;
use super::socket::{Socket, for_each_control, internet_address, socket_address};
use crate::burst::{Message, ReceiveBurst, ReceivedFrame, SendReport, TransmitBurst};
use crate::clock::{ArrivalClock, nanos_of};
use crate::lane::Lane;
use crate::ledger::{Event, EventCounts, LaneLedger, ReceiveDrop, Refusal, TransmitLedger};
use crate::limits::{MAX_BURST, MAX_INTERFACES, MAX_MESSAGES};
use crate::pool::{Class, Frame, Pool};

/// Words of control data of a sent message: an in_pktinfo (12 bytes) and a segment size (2), each after a header (16).
const SEND_CONTROL_WORDS: usize = 7;

/// Words of control data of a received message: drop counter (24 bytes), receive stamp (32) and segment size (24).
const RECEIVE_CONTROL_WORDS: usize = 11;

/// Multicast TTL for the local network: routers do not forward.
pub(super) const ON_THE_NETWORK: u8 = 1;

/// Multicast TTL for readers on this host only.
const ON_THIS_HOST: u8 = 0;

/// Arrays of sendmmsg or recvmmsg for up to `N` messages, each with `WORDS` words of control data.
pub(super) struct MessageArrays<const N: usize, const WORDS: usize> {
    headers: Box<[mmsghdr; N]>,
    vectors: Box<[iovec; N]>,
    names: Box<[sockaddr_in; N]>,
    controls: Box<[[u64; WORDS]; N]>,
}

impl<const N: usize, const WORDS: usize> MessageArrays<N, WORDS> {
    pub(super) fn new() -> Self {
        // SAFETY: these are plain C structures, for which all zeros are valid.
        let (headers, vectors, names) = unsafe {
            (
                Box::new(mem::zeroed()),
                Box::new(mem::zeroed()),
                Box::new(mem::zeroed()),
            )
        };
        Self {
            headers,
            vectors,
            names,
            controls: Box::new([[0; WORDS]; N]),
        }
    }

    /// Points the header of a message to `len` bytes from `start`, to its name, and to `control_bytes` bytes of its
    /// control data. Returns the header.
    #[inline]
    fn point(
        &mut self,
        place: usize,
        start: *mut u8,
        len: usize,
        control_bytes: usize,
    ) -> &mut libc::msghdr {
        self.vectors[place] = iovec {
            iov_base: start.cast(),
            iov_len: len,
        };
        let header = &mut self.headers[place].msg_hdr;
        header.msg_name = (&raw mut self.names[place]).cast();
        header.msg_namelen = size_of::<sockaddr_in>() as _;
        header.msg_iov = &raw mut self.vectors[place];
        header.msg_iovlen = 1;
        header.msg_control = self.controls[place].as_mut_ptr().cast();
        header.msg_controllen = control_bytes as _;
        header
    }
}

/// Arrays of sendmmsg.
pub(super) struct SendArrays {
    messages: MessageArrays<MAX_MESSAGES, SEND_CONTROL_WORDS>,
    /// Division of each message.
    segments: Box<[Segments; MAX_MESSAGES]>,
}

impl SendArrays {
    pub(super) fn new() -> SendArrays {
        SendArrays {
            messages: MessageArrays::new(),
            segments: Box::new([Segments::NONE; MAX_MESSAGES]),
        }
    }
}

/// Division of a message into datagrams.
#[derive(Clone, Copy)]
struct Segments {
    /// Size of each datagram but the last, in bytes; 0 for a single datagram.
    bytes: u16,
    /// Index of the interface in [`Segmentation`].
    interface: u8,
}

impl Segments {
    const NONE: Segments = Segments {
        bytes: 0,
        interface: 0,
    };

    /// Number of datagrams in a message of this size.
    fn count(self, message_bytes: usize) -> usize {
        match self.bytes {
            0 => 1,
            bytes => message_bytes.div_ceil(bytes.into()),
        }
    }
}

/// Maximum segment size in bytes of each interface. The last entry is for routes through other interfaces.
pub(super) struct Segmentation([u16; MAX_INTERFACES + 1]);

impl Segmentation {
    pub(super) fn new(is_on: bool) -> Segmentation {
        let largest = if is_on { u16::MAX } else { 0 };
        Segmentation([largest; MAX_INTERFACES + 1])
    }

    /// Index of the interface through which an address is reached.
    fn interface_to(&self, address: [u8; 4], interfaces: &[Interface]) -> u8 {
        let place = interfaces.iter().position(|one| one.reaches(address));
        place.unwrap_or(MAX_INTERFACES).min(MAX_INTERFACES) as u8
    }

    /// Index of an interface with this number.
    fn interface_of(&self, index: u32, interfaces: &[Interface]) -> u8 {
        let place = interfaces.iter().position(|one| one.index == index);
        place.unwrap_or(MAX_INTERFACES).min(MAX_INTERFACES) as u8
    }

    /// Returns whether datagrams of this size may leave as a segmented burst.
    fn permits(&self, segments: Segments) -> bool {
        segments.bytes <= self.0[usize::from(segments.interface)]
    }

    /// Notes that the kernel refused a segmented burst.
    fn note_refused(&mut self, segments: Segments, error: Event) {
        self.0[usize::from(segments.interface)] = match error {
            Event::NO_CHECKSUM_OFFLOAD => 0,
            _ => segments.bytes.saturating_sub(1),
        };
    }
}

/// Interface on which multicast is sent.
#[derive(Clone, Copy)]
pub(super) struct Egress {
    pub(super) index: u32,
    pub(super) address: [u8; 4],
    /// True if the interface existed at the last check.
    pub(super) is_present: bool,
}

impl Udp {
    /// Sends a burst and empties it; see [`Datapath::send_burst`](crate::Datapath::send_burst).
    #[inline]
    pub(super) fn transmit(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport {
        let mut report = self.send_messages(lane, burst, u64::MAX, None);
        let unaddressed = burst.unaddressed();
        let ledger = &mut self.ledger.lane_mut(lane).transmit;
        let reason = match self.lanes[lane.index()] {
            Some(_) => Refusal::NO_DESTINATION,
            None => Refusal::LANE_CLOSED,
        };
        ledger.note_refused(reason, unaddressed);
        report.refused += unaddressed as u32;
        burst.clear();
        report
    }

    /// Sends selected messages of a burst without changing the burst: bit *i* of `which` selects message *i*. Multicast
    /// is sent on all interfaces but `except`.
    pub fn send_messages(
        &mut self,
        lane: Lane,
        burst: &TransmitBurst,
        which: u64,
        except: Option<u32>,
    ) -> SendReport {
        let mut report = SendReport::default();
        let ledger = self.ledger.lane_mut(lane);
        let Some(open) = self.lanes[lane.index()].as_deref_mut() else {
            let datagrams = |message| burst.frame(message).datagram_count();
            let refused = selected(burst, which).map(datagrams).sum::<usize>() as u32;
            let transmit = &mut ledger.transmit;
            transmit.note_refused(Refusal::LANE_CLOSED, refused.into());
            report.refused = refused;
            return report;
        };
        let is_near = open.hops != ON_THE_NETWORK;
        if is_near && selected(burst, which).any(|message| message.to.is_multicast()) {
            set_hops(open, ON_THE_NETWORK);
        }
        let LaneLedger {
            transmit, events, ..
        } = ledger;
        let mut batch = Batch {
            arrays: &mut self.send_arrays,
            segmentation: &mut self.segmentation,
            interfaces: &self.interfaces,
            socket: &open.own.socket,
            ledger: transmit,
            events,
            report: &mut report,
            count: 0,
        };
        let max_frame_bytes = self.capabilities.max_frame_bytes;
        for message in selected(burst, which) {
            let frame = burst.frame(message);
            match destination(message, frame.len(), max_frame_bytes) {
                Err(reason) => batch.refuse(reason, frame.datagram_count()),
                Ok(to) if !message.to.is_multicast() => batch.push(frame, to, None),
                Ok(_) if self.egress.is_empty() => {
                    batch.refuse(Refusal::NO_MULTICAST, frame.datagram_count());
                }
                Ok(to) => {
                    let others = |egress: &&Egress| Some(egress.index) != except;
                    for egress in self.egress.iter().filter(others) {
                        if egress.is_present {
                            batch.push(frame, to, Some(*egress));
                        } else {
                            batch.refuse(Refusal::INTERFACE_GONE, frame.datagram_count());
                        }
                    }
                }
            }
        }
        batch.flush();
        report
    }

    /// Sends selected multicast messages to readers on this host only, as if received on `interface`: TTL 0 keeps them
    /// from leaving the host. Not counted in a ledger, because the network copies are sent by other means. Returns how
    /// many the kernel accepted.
    pub fn send_to_this_host(
        &mut self,
        lane: Lane,
        burst: &TransmitBurst,
        which: u64,
        interface: u32,
    ) -> u32 {
        let by = self.egress.iter().find(|one| one.index == interface);
        let (Some(by), Some(open)) = (by.copied(), self.lanes[lane.index()].as_deref_mut()) else {
            return 0;
        };
        let (mut ledger, mut report) = (TransmitLedger::default(), SendReport::default());
        set_hops(open, ON_THIS_HOST);
        let mut batch = Batch {
            arrays: &mut self.send_arrays,
            segmentation: &mut self.segmentation,
            interfaces: &self.interfaces,
            socket: &open.own.socket,
            ledger: &mut ledger,
            events: &mut EventCounts::default(),
            report: &mut report,
            count: 0,
        };
        for message in selected(burst, which) {
            let frame = burst.frame(message);
            let to = destination(message, frame.len(), self.capabilities.max_frame_bytes);
            if let Ok(to) = to {
                batch.push(frame, to, Some(by));
            }
        }
        batch.flush();
        report.sent
    }
}

fn selected(burst: &TransmitBurst, which: u64) -> impl Iterator<Item = &Message> {
    let numbered = burst.messages().iter().enumerate();
    numbered
        .filter(move |(place, _)| which & 1 << place != 0)
        .map(|(_, message)| message)
}

/// Sets the multicast TTL; a system call only if it changes.
fn set_hops(open: &mut OpenLane, hops: u8) {
    if open.hops != hops {
        let (level, option) = (libc::IPPROTO_IP, libc::IP_MULTICAST_TTL);
        // Cannot fail: the option was set when the lane was opened.
        let set = open.own.socket.set(level, option, c_int::from(hops));
        if set.is_ok() {
            open.hops = hops;
        }
    }
}

/// Destination address and port of a message, or the reason for refusing it.
fn destination(
    message: &Message,
    bytes: usize,
    max_frame_bytes: usize,
) -> Result<([u8; 4], u16), Refusal> {
    let address = message.to.ipv4().ok_or(Refusal::UNKNOWN_DESTINATION)?;
    let port = u16::try_from(message.to.port).unwrap_or(0);
    if port == 0 {
        return Err(Refusal::UNKNOWN_DESTINATION);
    }
    if bytes > max_frame_bytes {
        return Err(Refusal::TOO_LONG);
    }
    Ok((address, port))
}

/// Messages collected for one call of sendmmsg; borrows their bytes.
struct Batch<'a> {
    arrays: &'a mut SendArrays,
    segmentation: &'a mut Segmentation,
    interfaces: &'a [Interface],
    socket: &'a Socket,
    ledger: &'a mut TransmitLedger,
    events: &'a mut EventCounts,
    report: &'a mut SendReport,
    count: usize,
}

/// Bytes of a control message with a value of `T`.
const fn control_bytes<T>() -> usize {
    // SAFETY: pure arithmetic.
    unsafe { libc::CMSG_SPACE(size_of::<T>() as libc::c_uint) as usize }
}

/// Appends a control message to the control data of a prepared header.
fn append_control<T: Copy>(header: &mut libc::msghdr, level: c_int, kind: c_int, value: T) {
    // A usize with glibc, a socklen_t with musl.
    #[allow(clippy::unnecessary_cast)]
    let at = header.msg_controllen as usize;
    assert!(at + control_bytes::<T>() <= SEND_CONTROL_WORDS * 8);
    // SAFETY: the header points to SEND_CONTROL_WORDS words of control data without another use. The message lies
    // within them (checked above), and begins at a multiple of the header's alignment, as CMSG_SPACE is one.
    unsafe {
        let message = header.msg_control.add(at).cast::<libc::cmsghdr>();
        (*message).cmsg_level = level;
        (*message).cmsg_type = kind;
        (*message).cmsg_len = libc::CMSG_LEN(size_of::<T>() as libc::c_uint) as _;
        let data = libc::CMSG_DATA(message).cast::<T>();
        data.write_unaligned(value);
    }
    header.msg_controllen = (at + control_bytes::<T>()) as _;
}

const _: () = {
    let both = control_bytes::<libc::in_pktinfo>() + control_bytes::<u16>();
    assert!(both <= SEND_CONTROL_WORDS * 8);
};

impl<'a> Batch<'a> {
    /// Adds a frame; sends the collected messages first if there is no room.
    #[inline]
    fn push(&mut self, frame: &'a Frame, to: ([u8; 4], u16), by: Option<Egress>) {
        match frame.segment_bytes() {
            None => self.push_message(frame, Segments::NONE, to, by),
            Some(bytes) => self.push_burst(frame, bytes.get(), to, by),
        }
    }

    /// Adds a segmented burst, or its datagrams where the interface permits none.
    fn push_burst(
        &mut self,
        burst: &'a [u8],
        segment_bytes: u16,
        to: ([u8; 4], u16),
        by: Option<Egress>,
    ) {
        let segments = Segments {
            bytes: segment_bytes,
            interface: match by {
                Some(egress) => self
                    .segmentation
                    .interface_of(egress.index, self.interfaces),
                None => self.segmentation.interface_to(to.0, self.interfaces),
            },
        };
        if self.segmentation.permits(segments) {
            self.push_message(burst, segments, to, by);
            return;
        }
        for datagram in burst.chunks(segment_bytes.into()) {
            self.push_message(datagram, Segments::NONE, to, by);
        }
    }

    fn push_message(
        &mut self,
        bytes: &'a [u8],
        segments: Segments,
        to: ([u8; 4], u16),
        by: Option<Egress>,
    ) {
        if self.count == MAX_MESSAGES {
            self.flush();
        }
        let messages = &mut self.arrays.messages;
        messages.names[self.count] = socket_address(to.0, to.1);
        // The kernel only reads the bytes.
        let start = bytes.as_ptr().cast_mut();
        let header = messages.point(self.count, start, bytes.len(), 0);
        if let Some(egress) = by {
            let info = libc::in_pktinfo {
                ipi_ifindex: egress.index as c_int,
                ipi_spec_dst: internet_address(egress.address),
                ipi_addr: internet_address([0; 4]),
            };
            append_control(header, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
        if segments.bytes > 0 {
            append_control(header, libc::SOL_UDP, libc::UDP_SEGMENT, segments.bytes);
        }
        self.arrays.segments[self.count] = segments;
        self.count += 1;
    }

    /// Counts messages that are not sent.
    fn refuse(&mut self, reason: Refusal, count: usize) {
        self.ledger.note_refused(reason, count as u64);
        self.report.refused += count as u32;
    }

    /// Sends the collected messages. Each system call settles at least one message, or is the one retry after the error
    /// of an earlier datagram.
    fn flush(&mut self) {
        let count = mem::take(&mut self.count);
        let mut next = 0;
        let mut repeated = None;
        while next < count {
            let error = match self.call(next, count) {
                Ok(sent) if sent > 0 => {
                    self.note_sent(next, sent);
                    next += sent;
                    if next < count {
                        // The call does not report what stopped it. The error of an earlier datagram is now cleared,
                        // but still in the error queue.
                        self.ledger.bounced += self.socket.take_errors();
                    }
                    continue;
                }
                Ok(_) => 0,
                Err(error) => error.raw_os_error().unwrap_or(0),
            };
            if is_of_an_earlier_datagram(error) && repeated != Some(next) {
                self.ledger.bounced += self.socket.take_errors();
                repeated = Some(next);
                continue;
            }
            if let Some(event) = refused_segmentation(error)
                && self.arrays.segments[next].bytes > 0
            {
                self.send_singly(next, event);
                next += 1;
                continue;
            }
            // A full send buffer refuses all following messages as well.
            let refused = match refusal_of(error) {
                Refusal::WOULD_BLOCK => next..count,
                _ => next..next + 1,
            };
            next = refused.end;
            let datagrams = refused.map(|place| self.datagrams_of(place)).sum();
            self.refuse_for(error, datagrams);
        }
    }

    /// Number of datagrams in a collected message.
    fn datagrams_of(&self, place: usize) -> usize {
        self.arrays.segments[place].count(self.arrays.messages.vectors[place].iov_len)
    }

    /// Counts datagrams refused with this error.
    fn refuse_for(&mut self, error: i32, datagrams: usize) {
        let reason = refusal_of(error);
        if reason == Refusal::OTHER {
            self.ledger.last_error = error;
        }
        self.refuse(reason, datagrams);
    }

    /// Sends the datagrams of a segmented burst one by one, after the kernel has refused the burst. If it takes any, the
    /// interface's segments are smaller from then on.
    #[cold]
    fn send_singly(&mut self, place: usize, event: Event) {
        let segments = self.arrays.segments[place];
        let mut is_any_sent = false;
        let mut header = self.arrays.messages.headers[place].msg_hdr;
        // The segment size is the last control message.
        // A usize with glibc, a socklen_t with musl.
        #[allow(clippy::unnecessary_cast)]
        let control = header.msg_controllen as usize - control_bytes::<u16>();
        header.msg_controllen = control as _;
        let iovec {
            iov_base: start,
            iov_len: len,
        } = self.arrays.messages.vectors[place];
        for at in (0..len).step_by(segments.bytes.into()) {
            let mut vector = iovec {
                // SAFETY: `at` is below the length of the burst.
                iov_base: unsafe { start.add(at) },
                iov_len: (len - at).min(segments.bytes.into()),
            };
            header.msg_iov = &raw mut vector;
            // SAFETY: the header points to `vector`, whose bytes lie in the burst that the batch borrows for 'a, and to
            // its own name and control data.
            match unsafe { self.send_one(&header) } {
                Ok(()) => {
                    self.ledger.note_sent(vector.iov_len);
                    self.report.sent += 1;
                    is_any_sent = true;
                }
                Err(error) if refusal_of(error) == Refusal::WOULD_BLOCK => {
                    self.refuse_for(error, segments.count(len - at));
                    break;
                }
                Err(error) => self.refuse_for(error, 1),
            }
        }
        // Otherwise the error has another cause, which holds for single datagrams as well.
        if is_any_sent {
            self.segmentation.note_refused(segments, event);
            self.events.note(event, 1);
        }
    }

    /// Sends one message. Retries once after the error of an earlier datagram, as [`flush`](Self::flush) does.
    ///
    /// # Safety
    /// The header and what it points to are valid for reads.
    unsafe fn send_one(&mut self, header: &libc::msghdr) -> Result<(), i32> {
        let mut is_repeated = false;
        loop {
            // SAFETY: promised by the caller.
            let sent = unsafe { libc::sendmsg(self.socket.raw(), header, libc::MSG_DONTWAIT) };
            if sent >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            if is_repeated || !is_of_an_earlier_datagram(error) {
                return Err(error);
            }
            self.ledger.bounced += self.socket.take_errors();
            is_repeated = true;
        }
    }

    fn call(&mut self, next: usize, count: usize) -> io::Result<usize> {
        let headers = self.arrays.messages.headers[next..count].as_mut_ptr();
        let messages = (count - next) as libc::c_uint;
        // SAFETY: headers from `next` to `count` were prepared for this batch. Each points to its own vector, name and
        // control data, which do not move, and to bytes that the batch borrows for 'a.
        let sent =
            unsafe { libc::sendmmsg(self.socket.raw(), headers, messages, libc::MSG_DONTWAIT) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    fn note_sent(&mut self, first: usize, sent: usize) {
        for place in first..first + sent {
            let bytes = self.arrays.messages.vectors[place].iov_len;
            let mut datagrams = 1;
            if self.arrays.segments[place].bytes > 0 {
                datagrams = self.datagrams_of(place);
                self.events.note(Event::SEGMENTED, 1);
            }
            self.ledger.note_sent_all(datagrams as u64, bytes);
            self.report.sent += datagrams as u32;
        }
    }
}

/// Returns how the kernel refuses segmentation with this error; `None` for errors that have other causes.
fn refused_segmentation(error: i32) -> Option<Event> {
    match error {
        libc::EIO => Some(Event::NO_CHECKSUM_OFFLOAD),
        libc::EINVAL | libc::EMSGSIZE => Some(Event::SEGMENTS_REFUSED),
        _ => None,
    }
}

/// Returns true for errors that ICMP may have caused for an earlier datagram: the kernel reports them once, instead of
/// sending. An error of the current datagram repeats.
fn is_of_an_earlier_datagram(error: i32) -> bool {
    matches!(
        error,
        libc::ECONNREFUSED
            | libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::ENONET
            | libc::ENOPROTOOPT
            | libc::EOPNOTSUPP
            | libc::EPROTO
            | libc::EMSGSIZE
            | libc::EACCES
    )
}

fn refusal_of(error: i32) -> Refusal {
    match error {
        libc::EAGAIN => Refusal::WOULD_BLOCK,
        libc::ENOBUFS | libc::ENOMEM => Refusal::NO_BUFFERS,
        libc::ECONNREFUSED => Refusal::CONNECTION_REFUSED,
        libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN => {
            Refusal::UNREACHABLE
        }
        libc::ENODEV | libc::ENXIO => Refusal::INTERFACE_GONE,
        libc::EMSGSIZE => Refusal::TOO_LONG,
        libc::EPERM | libc::EACCES => Refusal::NOT_PERMITTED,
        _ => Refusal::OTHER,
    }
}

/// Socket to receive from.
pub(super) struct Source {
    pub(super) socket: Socket,
    /// Value of the kernel's drop counter already in the ledger.
    drops_seen: u32,
    /// Number of wall-clock steps when the socket was last empty.
    steps_settled: u32,
}

impl Source {
    pub(super) fn new(socket: Socket) -> Source {
        Source {
            socket,
            drops_seen: 0,
            steps_settled: 0,
        }
    }

    /// Datagrams dropped by the kernel since the last received one, not in the ledger yet.
    pub(super) fn drops_unseen(&self) -> u64 {
        let drops = self.socket.kernel_drops().unwrap_or(self.drops_seen);
        u64::from(drops.wrapping_sub(self.drops_seen))
    }

    /// Records the drop counter of a datagram, which only grows, modulo 2^32.
    fn note_drops(&mut self, drops: u32, ledger: &mut LaneLedger) {
        let new = drops.wrapping_sub(self.drops_seen);
        self.drops_seen = drops;
        let ledger = &mut ledger.receive;
        ledger.note_dropped(ReceiveDrop::KERNEL_OVERFLOW, u64::from(new));
    }
}

/// Control data of a datagram.
#[derive(Default)]
struct Extras {
    drops: Option<u32>,
    wall_ns: Option<u64>,
    segment_bytes: Option<u16>,
}

/// Armed frames of a lane, and the messages of recvmmsg.
pub(super) struct Receiver {
    class: Class,
    /// Frame i receives datagram i of a call. Armed frames are kept at the front.
    frames: [Option<Frame>; MAX_BURST],
    arrays: MessageArrays<MAX_BURST, RECEIVE_CONTROL_WORDS>,
    /// Bit i: header i points to frame i, and no call has written to header i since. Most calls use one place of
    /// sixteen, and the other places need no work.
    prepared: u32,
    /// Clock for receive stamps, if enabled.
    clock: Option<ArrivalClock>,
}

impl OpenLane {
    /// Receives at most `limit` datagrams from the lane's sockets; see
    /// [`Datapath::receive_burst`](crate::Datapath::receive_burst).
    #[inline]
    pub(super) fn receive(
        &mut self,
        limit: usize,
        pool: &Pool,
        ledger: &mut LaneLedger,
        burst: &mut ReceiveBurst,
    ) -> usize {
        let limit = limit.min(burst.capacity() - burst.len());
        let readable = mem::replace(&mut self.readable, u8::MAX);
        let flows_bit = 1 << (1 + u8::from(self.group.is_some()));
        let flows = self.flows.as_mut().filter(|_| readable & flows_bit != 0);
        let flows = flows.map_or(&mut [][..], |flows| &mut flows.open);
        let places = 2 + flows.len();
        // The index may be beyond the end after a flow was closed.
        let begin = if self.first < places { self.first } else { 0 };
        self.first = begin + 1;
        let mut taken = 0;
        for place in (begin..places).chain(0..begin) {
            let source = match place {
                0 => Some(&mut self.own).filter(|_| readable & 1 != 0),
                1 => self.group.as_mut().filter(|_| readable & 2 != 0),
                flow => flows[flow - 2].as_mut().map(|flow| &mut flow.source),
            };
            if let (Some(source), true) = (source, taken < limit) {
                let left = limit - taken;
                taken += self.receiver.receive(source, left, pool, ledger, burst);
            }
        }
        taken
    }
}

impl Receiver {
    pub(super) fn new(class: Class, timestamps: bool) -> Receiver {
        Receiver {
            class,
            frames: [const { None }; MAX_BURST],
            arrays: MessageArrays::new(),
            prepared: 0,
            clock: timestamps.then(ArrivalClock::new),
        }
    }

    /// Receives at most `limit` datagrams from a socket. `limit` is at most the burst's room.
    fn receive(
        &mut self,
        source: &mut Source,
        limit: usize,
        pool: &Pool,
        ledger: &mut LaneLedger,
        burst: &mut ReceiveBurst,
    ) -> usize {
        let armed = self.arm(limit, pool);
        if armed == 0 {
            ledger.receive.starved += u64::from(limit > 0);
            return 0;
        }
        let steps = self.clock.map(|clock| clock.steps());
        let count = self.call_twice(source, armed, ledger);
        let clock = self.look_at_clock(source, count);
        if let (Some(steps), true) = (steps, count < armed) {
            source.steps_settled = steps;
        }
        let before = ledger.receive.received;
        for place in 0..count {
            self.finish(place, source, clock, ledger, burst);
        }
        let taken = ledger.receive.received - before;
        let largest = &mut ledger.receive.largest_burst;
        *largest = (*largest).max(taken);
        count
    }

    /// Clock to convert this call's stamps with, if the stamps are valid.
    fn look_at_clock(&mut self, source: &Source, count: usize) -> Option<ArrivalClock> {
        let clock = self.clock.as_mut().filter(|_| count > 0)?;
        clock.look();
        (source.steps_settled == clock.steps()).then_some(*clock)
    }

    /// Arms up to `limit` frames at the front and returns their number. Only unprepared places are visited: those that
    /// the last call filled.
    fn arm(&mut self, limit: usize, pool: &Pool) -> usize {
        let wanted = (1 << limit) - 1;
        loop {
            let missing = wanted & !self.prepared;
            if missing == 0 {
                return limit;
            }
            let place = missing.trailing_zeros() as usize;
            if self.frames[place].is_none() {
                let Some(frame) = pool.take(self.class).or_else(|| self.take_behind(place)) else {
                    return place;
                };
                self.frames[place] = Some(frame);
            }
            self.prepare(place);
        }
    }

    /// Takes an armed frame from a later place, when the pool is empty.
    fn take_behind(&mut self, place: usize) -> Option<Frame> {
        let behind = place + 1..MAX_BURST;
        let from = behind
            .into_iter()
            .find(|&from| self.frames[from].is_some())?;
        self.prepared &= !(1 << from);
        self.frames[from].take()
    }

    /// Receives; retries once if the first call returned only the error of an earlier send.
    fn call_twice(&mut self, source: &Source, armed: usize, ledger: &mut LaneLedger) -> usize {
        for _ in 0..2 {
            match self.call(&source.socket, armed) {
                Ok(count) => return count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return 0,
                Err(_) => ledger.transmit.bounced += source.socket.take_errors(),
            }
        }
        0
    }

    fn call(&mut self, socket: &Socket, armed: usize) -> io::Result<usize> {
        debug_assert_eq!(
            self.prepared.trailing_ones().min(armed as u32),
            armed as u32
        );
        let headers = self.arrays.headers.as_mut_ptr();
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: the first `armed` headers are prepared (`arm`; a failed call changes none). Each points to its own
        // vector, name and control data. The vector points to the frame armed at the same place. None of these moves
        // or is accessed during the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.raw(),
                headers,
                armed as libc::c_uint,
                flags,
                ptr::null_mut(),
            )
        };
        match usize::try_from(count) {
            Ok(count) => {
                self.prepared &= u32::MAX << count;
                Ok(count)
            }
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// Points header `place` to the frame armed there.
    fn prepare(&mut self, place: usize) {
        let Some(frame) = &mut self.frames[place] else {
            return;
        };
        let buffer = frame.buffer_mut();
        let (start, len) = (buffer.as_mut_ptr(), buffer.len());
        let control_bytes = size_of::<[u64; RECEIVE_CONTROL_WORDS]>();
        let header = self.arrays.point(place, start, len, control_bytes);
        header.msg_flags = 0;
        self.prepared |= 1 << place;
    }

    /// Delivers the datagram of a place, or counts the reason for dropping it and keeps its frame armed.
    fn finish(
        &mut self,
        place: usize,
        source: &mut Source,
        clock: Option<ArrivalClock>,
        ledger: &mut LaneLedger,
        burst: &mut ReceiveBurst,
    ) {
        let extras = self.extras(place);
        if let Some(drops) = extras.drops {
            source.note_drops(drops, ledger);
        }
        let header = &self.arrays.headers[place];
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            ledger.receive.note_dropped(ReceiveDrop::TRUNCATED, 1);
            return;
        }
        let Some(mut frame) = self.frames[place].take() else {
            return;
        };
        let bytes = header.msg_len as usize;
        frame.set_range(0..bytes);
        let mut datagrams = 1;
        if let Some(segment_bytes) = extras.segment_bytes {
            frame.set_segment_bytes(segment_bytes);
            datagrams = frame.datagram_count() as u64;
            ledger.events.note(Event::COALESCED, 1);
        }
        ledger.receive.note_received_all(datagrams, bytes);
        let arrived = arrival(clock, extras.wall_ns);
        if self.clock.is_some() && arrived.is_none() {
            ledger.receive.unstamped += datagrams;
        }
        let received = ReceivedFrame {
            frame,
            from: locator_of(&self.arrays.names[place]),
            arrived,
        };
        // Cannot fail: the limit is at most the burst's room.
        let _ = burst.push(received);
    }

    fn extras(&self, place: usize) -> Extras {
        let mut extras = Extras::default();
        // SAFETY: the kernel filled this header in the call that has just returned.
        unsafe {
            for_each_control(
                &self.arrays.headers[place].msg_hdr,
                |level, kind, data, len| match (level, kind) {
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) if len >= 4 => {
                        extras.drops = Some(data.cast::<u32>().read_unaligned());
                    }
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)
                        if len >= size_of::<libc::timespec>() =>
                    {
                        let stamp = data.cast::<libc::timespec>().read_unaligned();
                        extras.wall_ns = Some(nanos_of(&stamp));
                    }
                    (libc::SOL_UDP, libc::UDP_GRO) if len >= size_of::<c_int>() => {
                        let bytes = data.cast::<c_int>().read_unaligned();
                        extras.segment_bytes = u16::try_from(bytes).ok();
                    }
                    _ => {}
                },
            );
        }
        extras
    }
}

fn arrival(clock: Option<ArrivalClock>, wall_ns: Option<u64>) -> Option<Instant> {
    Some(clock?.instant_of(wall_ns?))
}

fn locator_of(name: &sockaddr_in) -> Locator {
    Locator::udpv4(
        name.sin_addr.s_addr.to_ne_bytes(),
        u16::from_be(name.sin_port),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_sending_has_a_name() {
        let cases = [
            (libc::EAGAIN, Refusal::WOULD_BLOCK),
            (libc::ENOBUFS, Refusal::NO_BUFFERS),
            (libc::ECONNREFUSED, Refusal::CONNECTION_REFUSED),
            (libc::ENETUNREACH, Refusal::UNREACHABLE),
            (libc::EHOSTUNREACH, Refusal::UNREACHABLE),
            (libc::ENODEV, Refusal::INTERFACE_GONE),
            (libc::EMSGSIZE, Refusal::TOO_LONG),
            (libc::EPERM, Refusal::NOT_PERMITTED),
            (libc::EINVAL, Refusal::OTHER),
        ];
        for (error, refusal) in cases {
            assert_eq!(refusal_of(error), refusal, "{error}");
        }
    }
}
