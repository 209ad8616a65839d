//! Packet sockets: whole Ethernet frames in and out of one network device, and copies of every frame for a capture.
//!
//! A relay must restore all that the kernel separates from a frame ([`Frame`]): a checksum the sending host offloaded
//! to hardware that a veth lacks (`PACKET_VNET_HDR`), and a VLAN tag the kernel removed (`PACKET_AUXDATA`). The receive
//! timestamp (`SO_TIMESTAMPNS`) lets the relay read a frame later than it arrived.

use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::{io, ptr};

use super::socket::{self, Words};
use super::{available, count};
use crate::clock::NANOS_PER_SECOND;
use crate::limits::{
    BATCH_FRAMES, CABLE_RECEIVE_BYTES, CABLE_SEND_BYTES, LISTEN_BUFFER_BYTES, SLOT_BYTES,
};

/// Packet socket that receives every frame arriving at a device, and none leaving it.
pub(crate) struct Receiver(OwnedFd);

impl Receiver {
    /// Opens a receiver on the device `interface_index` in the calling thread's network namespace.
    pub(crate) fn open(interface_index: u32) -> io::Result<Receiver> {
        let socket = packet_socket()?;
        socket::set_receive_buffer(&socket, CABLE_RECEIVE_BYTES)?;
        for wish in [
            libc::PACKET_IGNORE_OUTGOING,
            libc::PACKET_VNET_HDR,
            libc::PACKET_AUXDATA,
        ] {
            socket::set(&socket, libc::SOL_PACKET, wish, 1)?;
        }
        socket::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // The socket is bound last, so that all frames arrive with these options.
        bind(&socket, interface_index, libc::ETH_P_ALL as u16)?;
        Ok(Receiver(socket))
    }

    /// Receives up to [`BATCH_FRAMES`] frames into the front of `frames` without waiting; returns how many.
    pub(crate) fn receive(&self, frames: &mut [Frame]) -> io::Result<usize> {
        let count = frames.len().min(BATCH_FRAMES);
        // SAFETY: all-zero is a valid iovec and a valid message without buffers.
        let (mut parts, mut messages): (
            [[libc::iovec; 2]; BATCH_FRAMES],
            [libc::mmsghdr; BATCH_FRAMES],
        ) = unsafe { (zeroed(), zeroed()) };
        for ((frame, parts), message) in frames.iter_mut().zip(&mut parts).zip(&mut messages) {
            parts[0].iov_base = frame.0.offload_header.as_mut_ptr().cast();
            parts[0].iov_len = OFFLOAD_HEADER_BYTES;
            parts[1].iov_base = frame.0.bytes[TAG_BYTES..].as_mut_ptr().cast();
            parts[1].iov_len = SLOT_BYTES - TAG_BYTES;
            message.msg_hdr.msg_iov = parts.as_mut_ptr();
            message.msg_hdr.msg_iovlen = 2;
            message.msg_hdr.msg_control = frame.0.control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
        }
        // SAFETY: the first `count` messages point to buffers of as many distinct frames, which are
        // mutably borrowed for the call; lengths are those of the buffers.
        let received = unsafe {
            libc::recvmmsg(
                self.0.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        let received = available(received)?.unwrap_or(0);
        for (frame, message) in frames.iter_mut().zip(&messages[..received]) {
            let header = &message.msg_hdr;
            let asides = Asides::of(header);
            frame.settle(message.msg_len as usize, header.msg_flags, &asides);
        }
        Ok(received)
    }

    /// Frames the kernel dropped before this socket since the last call.
    pub(crate) fn take_drops(&self) -> io::Result<u64> {
        take_drops(&self.0)
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Packet socket that sends frames out of a device and receives nothing.
pub(crate) struct Sender(OwnedFd);

impl Sender {
    /// Opens a sender on the device `interface_index` in the calling thread's network namespace.
    pub(crate) fn open(interface_index: u32) -> io::Result<Sender> {
        let socket = packet_socket()?;
        socket::set_send_buffer(&socket, CABLE_SEND_BYTES)?;
        bind(&socket, interface_index, 0)?;
        Ok(Sender(socket))
    }

    /// Sends all `frames` in order without waiting; returns how many the kernel refused.
    pub(crate) fn send(&self, frames: &[Frame]) -> u64 {
        let mut refused = 0;
        for batch in frames.chunks(BATCH_FRAMES) {
            let mut rest = batch;
            while !rest.is_empty() {
                // Skips a refused frame, so that those behind it are still sent.
                let taken = self.send_batch(rest);
                refused += u64::from(taken == 0);
                rest = &rest[taken.max(1)..];
            }
        }
        refused
    }

    /// Sends at most [`BATCH_FRAMES`] frames in one system call; returns how many were accepted.
    fn send_batch(&self, frames: &[Frame]) -> usize {
        let count = frames.len().min(BATCH_FRAMES);
        // SAFETY: all-zero is a valid iovec and a valid message without buffers.
        let (mut parts, mut messages): (
            [libc::iovec; BATCH_FRAMES],
            [libc::mmsghdr; BATCH_FRAMES],
        ) = unsafe { (zeroed(), zeroed()) };
        for ((frame, part), message) in frames.iter().zip(&mut parts).zip(&mut messages) {
            part.iov_base = frame.as_bytes().as_ptr().cast_mut().cast();
            part.iov_len = frame.as_bytes().len();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: the first `count` messages describe frames borrowed for the call, which only
        // reads them.
        let sent = unsafe {
            libc::sendmmsg(
                self.0.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(sent).unwrap_or(0)
    }
}

/// Frames the kernel dropped before a packet socket since the last call.
pub(super) fn take_drops(socket: &OwnedFd) -> io::Result<u64> {
    // `struct tpacket_stats`: packets, drops. Reading resets both.
    let statistics: Words<2> = socket::get(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
    Ok(u64::from(statistics.0[1]))
}

/// Opens a packet socket that receives nothing before it is bound.
pub(super) fn packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointers. Protocol 0: nothing is received before `bind` names one.
    let socket = unsafe {
        libc::socket(
            libc::AF_PACKET,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            0,
        )
    };
    count(socket)?;
    // SAFETY: socket returned a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Binds a packet socket to the device `interface_index`, or to all (0), for frames of `protocol`.
pub(super) fn bind(socket: &OwnedFd, interface_index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface_index as libc::c_int;
    // SAFETY: the pointer and the length describe `address`, which outlives the call.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    count(result).map(drop)
}

/// Bytes reserved in front of a received frame, for the restored VLAN tag.
pub(crate) const TAG_BYTES: usize = 4;
/// Length of both MAC addresses, in front of a VLAN tag.
const ADDRESSES_BYTES: usize = 12;
/// Size of `struct virtio_net_hdr`.
pub(super) const OFFLOAD_HEADER_BYTES: usize = 10;
/// Aligned space for a frame's control messages, in 64-bit words (32 bytes for the time, 40 for the tag).
pub(in crate::system) const CONTROL_WORDS: usize = 12;

/// Handle to a frame in memory reserved at start; cheap to move.
pub(crate) struct Frame(pub(super) Box<Slot>);

pub(super) struct Slot {
    pub(super) bytes: [u8; SLOT_BYTES],
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) offload_header: [u8; OFFLOAD_HEADER_BYTES],
    pub(super) control: [u64; CONTROL_WORDS],
    arrived_realtime_ns: Option<u64>,
    /// True when the frame exceeds a slot or holds several segments: invalid on a link with this MTU.
    oversize: bool,
}

impl Frame {
    pub(crate) fn new() -> Frame {
        Frame(Box::new(Slot {
            bytes: [0; SLOT_BYTES],
            start: TAG_BYTES,
            end: TAG_BYTES,
            offload_header: [0; OFFLOAD_HEADER_BYTES],
            control: [0; CONTROL_WORDS],
            arrived_realtime_ns: None,
            oversize: false,
        }))
    }

    /// Frame bytes as on the wire, from the destination address on, without the frame check sequence.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        let slot = &*self.0;
        &slot.bytes[slot.start..slot.end]
    }

    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        let slot = &mut *self.0;
        &mut slot.bytes[slot.start..slot.end]
    }

    /// Time of arrival at the device, by the kernel's `CLOCK_REALTIME`.
    pub(crate) fn arrived_realtime_ns(&self) -> Option<u64> {
        self.0.arrived_realtime_ns
    }

    pub(crate) fn is_oversize(&self) -> bool {
        self.0.oversize
    }

    /// Returns the offloaded checksum as (first byte to sum, position of the checksum), both relative to
    /// [`Frame::as_bytes`].
    pub(crate) fn take_unfinished_checksum(&mut self) -> Option<(usize, usize)> {
        const NEEDS_CHECKSUM: u8 = 1;
        let [
            flags,
            _,
            _,
            _,
            _,
            _,
            start_low,
            start_high,
            offset_low,
            offset_high,
        ] = self.0.offload_header;
        if flags & NEEDS_CHECKSUM == 0 {
            return None;
        }
        self.0.offload_header[0] = 0;
        // The kernel counts from the untagged start of the frame.
        let tag = TAG_BYTES - self.0.start;
        let start = usize::from(u16::from_ne_bytes([start_low, start_high])) + tag;
        let offset = usize::from(u16::from_ne_bytes([offset_low, offset_high]));
        Some((start, start + offset))
    }

    /// Replaces the frame's content with `bytes`.
    #[cfg(test)]
    pub(crate) fn fill(&mut self, bytes: &[u8]) {
        self.0.start = TAG_BYTES;
        self.0.end = TAG_BYTES + bytes.len();
        self.as_bytes_mut().copy_from_slice(bytes);
    }

    /// Applies the kernel's metadata to a received frame. `asides` were read before the call, because the message
    /// header points into this frame's slot, which the call borrows exclusively.
    pub(super) fn settle(&mut self, length: usize, flags: libc::c_int, asides: &Asides) {
        let slot = &mut *self.0;
        let length = length.saturating_sub(OFFLOAD_HEADER_BYTES);
        slot.start = asides.restore_tag(&mut slot.bytes, length);
        slot.end = (TAG_BYTES + length).min(SLOT_BYTES);
        let segmented = slot.offload_header[1] != 0;
        slot.oversize = segmented || flags & libc::MSG_TRUNC != 0;
        slot.arrived_realtime_ns = asides.arrived_realtime_ns;
    }
}

/// Kernel metadata of a received frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asides {
    /// Kernel timestamp, `CLOCK_REALTIME`.
    pub(crate) arrived_realtime_ns: Option<u64>,
    /// Protocol and tag control information of the removed VLAN tag.
    vlan_tag: Option<(u16, u16)>,
}

impl Asides {
    /// Puts the removed VLAN tag back into a frame that was received behind [`TAG_BYTES`] of `buffer`, and returns the
    /// start of the frame.
    pub(crate) fn restore_tag(&self, buffer: &mut [u8], received_bytes: usize) -> usize {
        let Some((protocol, tag)) = self.vlan_tag else {
            return TAG_BYTES;
        };
        if received_bytes < ADDRESSES_BYTES {
            return TAG_BYTES;
        }
        buffer.copy_within(TAG_BYTES..TAG_BYTES + ADDRESSES_BYTES, 0);
        let ([a, b], [c, d]) = (protocol.to_be_bytes(), tag.to_be_bytes());
        buffer[ADDRESSES_BYTES..][..TAG_BYTES].copy_from_slice(&[a, b, c, d]);
        0
    }

    /// Reads the control messages of a frame. `header` was filled by recvmsg or recvmmsg.
    fn of(header: &libc::msghdr) -> Asides {
        let mut asides = Asides::default();
        // SAFETY: the kernel filled `header`, so its control pointer and length describe complete
        // control messages, in memory the caller still borrows.
        let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !message.is_null() {
            // SAFETY: not null, so it points to a complete control message, see above.
            let kind = unsafe { ((*message).cmsg_level, (*message).cmsg_type) };
            // SAFETY: as above; the kernel puts a value of the type read here behind a header of
            // each kind, at no particular alignment.
            unsafe {
                let data = libc::CMSG_DATA(message);
                match kind {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time = ptr::read_unaligned(data.cast::<libc::timespec>());
                        let ns = time.tv_sec as u64 * NANOS_PER_SECOND + time.tv_nsec as u64;
                        asides.arrived_realtime_ns = Some(ns);
                    }
                    (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                        let data = ptr::read_unaligned(data.cast::<libc::tpacket_auxdata>());
                        asides.vlan_tag = vlan_tag(&data);
                    }
                    _ => {}
                }
                message = libc::CMSG_NXTHDR(header, message);
            }
        }
        asides
    }
}

fn vlan_tag(data: &libc::tpacket_auxdata) -> Option<(u16, u16)> {
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let protocol = if data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
        libc::ETH_P_8021Q as u16
    } else {
        data.tp_vlan_tpid
    };
    Some((protocol, data.tp_vlan_tci))
}

/// Kernel metadata of a captured frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aside {
    /// Frame length in bytes; more than was copied if the buffer is too short.
    pub(crate) length: usize,
    /// Index of the device.
    pub(crate) interface: u32,
    /// Hardware type of the device (ARPHRD).
    pub(crate) hardware: u16,
    /// True when the frame left this host.
    pub(crate) is_outgoing: bool,
    /// Metadata that every received frame has.
    pub(crate) asides: Asides,
}

/// Packet socket that receives a copy of every frame.
pub(crate) struct Listener(OwnedFd);

impl Listener {
    /// Opens a socket on the device with index `interface`, or on all (0), in the calling thread's network namespace.
    /// Needs CAP_NET_RAW.
    pub(crate) fn open(interface: u32) -> io::Result<Listener> {
        let socket = packet_socket()?;
        socket::set_receive_buffer(&socket, LISTEN_BUFFER_BYTES)?;
        socket::set(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
        socket::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        bind(&socket, interface, libc::ETH_P_ALL as u16)?;
        Ok(Listener(socket))
    }

    /// Copies the next frame into `buffer`, as far as it fits; `None` if there is none now.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Aside>> {
        let mut control = [0_u64; CONTROL_WORDS];
        let mut part = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        // SAFETY: all-zero is a valid sockaddr_ll and a valid message without buffers.
        let (mut address, mut header): (libc::sockaddr_ll, libc::msghdr) =
            unsafe { (zeroed(), zeroed()) };
        header.msg_name = (&raw mut address).cast();
        header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
        // SAFETY: the header points to an address, a buffer and control memory that outlive the
        // call, with their lengths. MSG_TRUNC makes the result the frame's own length.
        let length = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, libc::MSG_TRUNC) };
        let Some(length) = available(length)? else {
            return Ok(None);
        };
        Ok(Some(Aside {
            length,
            interface: address.sll_ifindex as u32,
            hardware: address.sll_hatype,
            is_outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            asides: Asides::of(&header),
        }))
    }

    /// Frames the kernel dropped before this socket since the last call.
    pub(crate) fn take_drops(&self) -> io::Result<u64> {
        take_drops(&self.0)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_was_taken_out_is_put_back_behind_the_addresses() {
        let mut frame = Frame::new();
        let received: Vec<u8> = (0..60).collect();
        frame.fill(&received);
        let asides = Asides {
            arrived_realtime_ns: Some(7),
            vlan_tag: Some((0x8100, 0xe001)),
        };
        frame.settle(OFFLOAD_HEADER_BYTES + received.len(), 0, &asides);
        let (addresses, rest) = received.split_at(ADDRESSES_BYTES);
        let tagged = [addresses, &[0x81, 0, 0xe0, 1], rest].concat();
        assert_eq!(frame.as_bytes(), tagged);
        assert_eq!(frame.arrived_realtime_ns(), Some(7));
        assert!(!frame.is_oversize());
    }

    #[test]
    fn a_frame_that_was_cut_or_is_several_segments_is_oversize() {
        let mut frame = Frame::new();
        frame.settle(
            OFFLOAD_HEADER_BYTES + 60,
            libc::MSG_TRUNC,
            &Asides::default(),
        );
        assert!(frame.is_oversize());
        frame.settle(OFFLOAD_HEADER_BYTES + 60, 0, &Asides::default());
        assert!(!frame.is_oversize());
        frame.0.offload_header[1] = 1;
        frame.settle(OFFLOAD_HEADER_BYTES + 60, 0, &Asides::default());
        assert!(frame.is_oversize());
    }
}
