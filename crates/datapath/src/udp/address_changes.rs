//! A netlink socket that the kernel tells of changes of IPv4 addresses (rtnetlink(7), RTMGRP_IPV4_IFADDR).
//!
//! Only that something has changed is taken from it: the addresses are read by [`list`](super::interfaces::list).

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, socklen_t};

use crate::limits::MAX_ADDRESS_CHANGES;

/// Bytes that are read of a message: the rest is of no interest, and cut by the kernel.
const MESSAGE_BYTES: usize = 16;

pub(super) struct AddressChanges {
    fd: OwnedFd,
}

impl AddressChanges {
    /// Changes in this network namespace from now on.
    ///
    /// # Errors
    /// What the system said.
    pub(super) fn open() -> io::Result<AddressChanges> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
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

    /// Whether an address was added or removed since the last call. One system call where none was.
    pub(super) fn take(&self) -> bool {
        let mut any = false;
        for _ in 0..MAX_ADDRESS_CHANGES {
            match self.take_message() {
                Ok(()) => any = true,
                // More messages than the socket holds: they are lost, and there were some.
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
