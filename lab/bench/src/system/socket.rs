//! UDP sockets: integer options, and batches of datagrams in one system call (identical payloads when sending, counting
//! only when receiving).

use std::mem::{size_of, zeroed};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::{io, ptr};

use super::{available, count};
use crate::limits::BATCH_FRAMES;

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
    count(result).map(drop)
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
    count(result).map(|_| value)
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

/// Sends `payload` up to `count` times (at most [`BATCH_FRAMES`]) on a connected socket, without waiting. Returns how
/// many datagrams the kernel accepted; an error only if it accepted none.
pub(crate) fn send_copies(socket: &UdpSocket, payload: &[u8], count: usize) -> io::Result<usize> {
    let mut content = libc::iovec {
        iov_base: payload.as_ptr().cast_mut().cast(),
        iov_len: payload.len(),
    };
    let mut messages = messages_over(&raw mut content);
    let count = count.min(BATCH_FRAMES);
    // SAFETY: the first `count` messages are initialised and point to `content`, which points to
    // `payload`; all outlive the call, and sending only reads them.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
        )
    };
    super::count(sent)
}

/// Empties a socket without waiting; returns the number of datagrams. The socket's buffer and what arrives meanwhile
/// bound the work.
pub(crate) fn drain(socket: &UdpSocket, scratch: &mut [u8]) -> io::Result<u64> {
    let mut datagrams = 0;
    loop {
        let batch = receive_batch(socket, scratch)?;
        datagrams += batch as u64;
        if batch < BATCH_FRAMES {
            return Ok(datagrams);
        }
    }
}

/// Receives up to [`BATCH_FRAMES`] datagrams without waiting; returns their number. Each datagram is copied to
/// `scratch`, as a reader would copy it.
fn receive_batch(socket: &UdpSocket, scratch: &mut [u8]) -> io::Result<usize> {
    let mut content = libc::iovec {
        iov_base: scratch.as_mut_ptr().cast(),
        iov_len: scratch.len(),
    };
    let mut messages = messages_over(&raw mut content);
    // SAFETY: every message is initialised and points to `content`, which describes `scratch`; the
    // kernel writes at most its length there, one datagram after the other.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            BATCH_FRAMES as libc::c_uint,
            libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            ptr::null_mut(),
        )
    };
    Ok(available(received)?.unwrap_or(0))
}

/// Batch of messages that all use the buffer `content`.
fn messages_over(content: *mut libc::iovec) -> [libc::mmsghdr; BATCH_FRAMES] {
    // SAFETY: all-zero is a message with no address, no buffers and no control data.
    let mut messages: [libc::mmsghdr; BATCH_FRAMES] = unsafe { zeroed() };
    for message in &mut messages {
        message.msg_hdr.msg_iov = content;
        message.msg_hdr.msg_iovlen = 1;
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_arrives_whole_and_is_counted() {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        from.connect(to.local_addr().unwrap()).unwrap();
        assert_eq!(send_copies(&from, &[7; 100], 10).unwrap(), 10);
        let mut scratch = [0; 2048];
        assert_eq!(drain(&to, &mut scratch).unwrap(), 10);
        assert_eq!(drain(&to, &mut scratch).unwrap(), 0);
        assert_eq!(scratch[99], 7);
    }

    #[test]
    fn datagrams_beyond_the_receive_buffer_are_found_as_overflow() {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        set(&to, libc::SOL_SOCKET, libc::SO_RCVBUF, 4096).unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        from.connect(to.local_addr().unwrap()).unwrap();
        let sent: usize = (0..4)
            .map(|_| send_copies(&from, &[0; 1000], 16).unwrap())
            .sum();
        let received = drain(&to, &mut [0; 2048]).unwrap();
        let lost = overflowed(&to).unwrap();
        assert!(lost > 0);
        assert_eq!(sent as u64, received + lost);
    }
}
