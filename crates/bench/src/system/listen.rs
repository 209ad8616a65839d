//! Packet sockets that listen: every frame of the devices of a network namespace, in and out, copied
//! and left alone.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::limits::LISTEN_BUFFER_BYTES;

use super::option::{self, Words};

/// Aligned room for the control messages of a frame (32 bytes for the time, 40 for the tag).
const CONTROL_WORDS: usize = 12;

/// What the kernel says about a frame beside its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aside {
    /// Bytes of the frame; more than were copied if the buffer was too short.
    pub(crate) length: usize,
    /// The device's number.
    pub(crate) interface: u32,
    /// The device's hardware type (ARPHRD).
    pub(crate) hardware: u16,
    /// It left this host.
    pub(crate) is_outgoing: bool,
    /// When the kernel saw it, `CLOCK_REALTIME`.
    pub(crate) time_ns: Option<u64>,
    /// The (protocol, tag control information) of a VLAN tag that was taken out.
    pub(crate) vlan_tag: Option<(u16, u16)>,
}

/// A socket that gets a copy of every frame.
pub(crate) struct Listener(OwnedFd);

impl Listener {
    /// Listens on the device of that number, or on all (0), in the calling thread's network
    /// namespace. Takes CAP_NET_RAW.
    pub(crate) fn open(interface: u32) -> io::Result<Listener> {
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
        // SAFETY: socket returned a new descriptor that nobody else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        option::set_receive_buffer(&socket, LISTEN_BUFFER_BYTES)?;
        option::set(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
        option::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // SAFETY: all-zero is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface as libc::c_int;
        // SAFETY: the pointer and the length describe `address`, which outlives the call.
        let result = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if result == 0 {
            Ok(Listener(socket))
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Copies the next frame into `buffer`, or as much as it holds; `None` if there is none now.
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
        if length < 0 {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error => Err(error),
            };
        }
        let mut aside = Aside {
            length: length as usize,
            interface: address.sll_ifindex as u32,
            hardware: address.sll_hatype,
            is_outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            ..Aside::default()
        };
        aside.read_control(&header);
        Ok(Some(aside))
    }

    /// Frames the kernel dropped before this socket since the last call.
    pub(crate) fn take_drops(&self) -> io::Result<u64> {
        // `struct tpacket_stats`: packets, drops. Reading resets both.
        let statistics: Words<2> = option::get(&self.0, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        Ok(u64::from(statistics.0[1]))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Aside {
    /// Reads the control messages of a frame. `header` was filled by recvmsg.
    fn read_control(&mut self, header: &libc::msghdr) {
        // SAFETY: recvmsg filled `header`, so its control pointer and length describe complete
        // control messages, in memory the caller still borrows.
        let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !message.is_null() {
            // SAFETY: not null, so it points to a complete control message, see above; the kernel
            // puts a value of the type read here behind a header of each kind, at no particular
            // alignment.
            unsafe {
                let data = libc::CMSG_DATA(message);
                match ((*message).cmsg_level, (*message).cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time = ptr::read_unaligned(data.cast::<libc::timespec>());
                        let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                        self.time_ns = Some(ns);
                    }
                    (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                        let data = ptr::read_unaligned(data.cast::<libc::tpacket_auxdata>());
                        self.vlan_tag = super::packet::vlan_tag(&data);
                    }
                    _ => {}
                }
                message = libc::CMSG_NXTHDR(header, message);
            }
        }
    }
}
