//! Capturing packet sockets: a copy of every frame of a network namespace's devices, in both directions.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::limits::LISTEN_BUFFER_BYTES;

use super::option;
use super::packet::{self, Asides, CONTROL_WORDS};

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
    /// Kernel timestamp, `CLOCK_REALTIME`.
    pub(crate) time_ns: Option<u64>,
    /// Protocol and tag control information of a VLAN tag the kernel removed.
    pub(crate) vlan_tag: Option<(u16, u16)>,
}

/// Packet socket that receives a copy of every frame.
pub(crate) struct Listener(OwnedFd);

impl Listener {
    /// Opens a socket on the device with index `interface`, or on all (0), in the calling thread's network namespace.
    /// Needs CAP_NET_RAW.
    pub(crate) fn open(interface: u32) -> io::Result<Listener> {
        let socket = packet::packet_socket()?;
        option::set_receive_buffer(&socket, LISTEN_BUFFER_BYTES)?;
        option::set(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
        option::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        packet::bind(&socket, interface, libc::ETH_P_ALL as u16)?;
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
        if length < 0 {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error => Err(error),
            };
        }
        let beside = Asides::of(&header);
        Ok(Some(Aside {
            length: length as usize,
            interface: address.sll_ifindex as u32,
            hardware: address.sll_hatype,
            is_outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            time_ns: beside.arrived_realtime_ns,
            vlan_tag: beside.vlan_tag,
        }))
    }

    /// Frames the kernel dropped before this socket since the last call.
    pub(crate) fn take_drops(&self) -> io::Result<u64> {
        packet::take_drops(&self.0)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
