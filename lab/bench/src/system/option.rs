//! Socket options that are integers or plain kernel structures.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Types for which every bit pattern is valid, so that the kernel may fill them.
///
/// # Safety
/// The implementor has no padding and no invalid bit patterns.
pub(crate) unsafe trait Plain: Copy + Default {}

// SAFETY: an integer has neither padding nor invalid patterns.
unsafe impl Plain for libc::c_int {}
// SAFETY: as above.
unsafe impl<const N: usize> Plain for Words<N> {}

/// Kernel structure of `N` 32-bit words (`tpacket_stats`, `SO_MEMINFO`).
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Words<const N: usize>(pub(crate) [u32; N]);

impl<const N: usize> Default for Words<N> {
    fn default() -> Self {
        Words([0; N])
    }
}

/// Calls `setsockopt` with an integer.
pub(crate) fn set(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Calls `getsockopt` for a plain value. Fields the kernel does not know stay zero.
pub(crate) fn get<T: Plain>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<T> {
    let mut value = T::default();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `value`, any of which are valid (Plain).
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(value)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Requests a receive buffer of `bytes`, beyond the system's limit where permitted.
pub(crate) fn set_receive_buffer(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = bytes as libc::c_int;
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// Requests a send buffer of `bytes`, beyond the system's limit where permitted.
pub(crate) fn set_send_buffer(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = bytes as libc::c_int;
    set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes)
        .or_else(|_| set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes))
}

/// Number of datagrams the kernel dropped because the socket's buffer was full.
pub(crate) fn overflowed(socket: impl AsFd) -> io::Result<u64> {
    // `SK_MEMINFO_DROPS`, the last of nine words of `SO_MEMINFO`.
    const DROPS: usize = 8;
    let memory: Words<9> = get(socket, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    Ok(u64::from(memory.0[DROPS]))
}
