//! Sends whole frames on a device, in the calling thread's namespace.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Packet socket that only sends.
pub(crate) struct PacketSocket(File);

impl PacketSocket {
    /// On a device, past its queueing discipline: a frame's queue is the sending core's.
    ///
    /// # Panics
    /// Where the machine does not allow it.
    pub(crate) fn on(interface_index: u32) -> PacketSocket {
        let fails = || -> ! { panic!("a packet socket: {}", io::Error::last_os_error()) };
        // SAFETY: no memory is involved.
        let socket =
            unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            fails();
        }
        // SAFETY: the descriptor was just made, and is not shared.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let yes: libc::c_int = 1;
        // SAFETY: the option's value is an int, alive during the call.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_QDISC_BYPASS,
                (&raw const yes).cast(),
                size_of_val(&yes) as libc::socklen_t,
            )
        };
        // SAFETY: zero is a value of all its fields.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = interface_index as i32;
        // SAFETY: the address is as long as said, and alive during the call.
        let bound = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        if (set, bound) != (0, 0) {
            fails();
        }
        PacketSocket(socket.into())
    }

    /// Sends a frame, with its Ethernet header.
    ///
    /// # Panics
    /// If the device does not take it.
    pub(crate) fn send(&mut self, frame: &[u8]) {
        let sent = self.0.write(frame).expect("the device takes the frame");
        assert_eq!(sent, frame.len());
    }
}
