//! Netlink socket that reports changes of IPv4 addresses (rtnetlink(7), RTMGRP_IPV4_IFADDR).
//!
//! Only the fact of a change is used: [`list`](super::interfaces::list) reads the addresses.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, socklen_t};

use crate::limits::MAX_ADDRESS_CHANGES;

/// Bytes read of a message; the kernel cuts the rest, which is not needed.
const MESSAGE_BYTES: usize = 16;

pub(super) struct AddressChanges {
    fd: OwnedFd,
}

impl AddressChanges {
    /// Subscribes to changes in this network namespace.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn open() -> io::Result<AddressChanges> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: zeros are a valid address.
        let mut name: libc::sockaddr_nl = unsafe { mem::zeroed() };
        name.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        name.nl_groups = libc::RTMGRP_IPV4_IFADDR as u32;
        let len = size_of_val(&name) as socklen_t;
        // SAFETY: `name` is a sockaddr_nl of the length given, for the time of the call.
        let bound = unsafe { libc::bind(fd.as_raw_fd(), (&raw const name).cast(), len) };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(AddressChanges { fd })
    }

    /// Returns true if an address was added or removed since the last call. One system call if there was no change.
    pub(super) fn take(&self) -> bool {
        let mut any = false;
        for _ in 0..MAX_ADDRESS_CHANGES {
            match self.take_message() {
                Ok(()) => any = true,
                // The socket's buffer overflowed: messages are lost, but there were some.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => any = true,
                Err(_) => break,
            }
        }
        any
    }

    fn take_message(&self) -> io::Result<()> {
        let mut message = [0_u8; MESSAGE_BYTES];
        let into: *mut c_void = message.as_mut_ptr().cast();
        let flags: c_int = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: `message` has room for the length given.
        let received = unsafe { libc::recv(self.fd.as_raw_fd(), into, MESSAGE_BYTES, flags) };
        match received {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
