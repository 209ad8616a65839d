//! Packet sockets: whole Ethernet frames in and out of one network device.
//!
//! The metadata that the kernel separates from a frame is received and restored ([`Frame`]).

mod frame;

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::limits::{BATCH_FRAMES, CABLE_RECEIVE_BYTES, CABLE_SEND_BYTES, SLOT_BYTES};

use super::option::{self, Words};
use frame::{OFFLOAD_HEADER_BYTES, TAG_BYTES};

pub(crate) use frame::Frame;
pub(super) use frame::{Asides, CONTROL_WORDS};

/// Packet socket that receives every frame arriving at a device, and none leaving it.
pub(crate) struct Receiver(OwnedFd);

impl Receiver {
    /// Opens a receiver on the device `interface_index` in the calling thread's network namespace.
    pub(crate) fn open(interface_index: u32) -> io::Result<Receiver> {
        let socket = packet_socket()?;
        option::set_receive_buffer(&socket, CABLE_RECEIVE_BYTES)?;
        for wish in [
            libc::PACKET_IGNORE_OUTGOING,
            libc::PACKET_VNET_HDR,
            libc::PACKET_AUXDATA,
        ] {
            option::set(&socket, libc::SOL_PACKET, wish, 1)?;
        }
        option::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // Bound last: frames arrive from then on, and all with these options.
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
        if received < 0 {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                error => Err(error),
            };
        }
        let received = received as usize;
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
        option::set_send_buffer(&socket, CABLE_SEND_BYTES)?;
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
    let statistics: Words<2> = option::get(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
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
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
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
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
