//! Batches of UDP datagrams in one system call: identical payloads when sending, counting only when receiving.

use std::io;
use std::mem::zeroed;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::ptr;

use crate::limits::BATCH_FRAMES;

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
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(sent as usize)
    }
}

/// Receives up to [`BATCH_FRAMES`] datagrams without waiting; returns their number and bytes. Each datagram is copied
/// to `scratch`, as a reader would copy it.
pub(crate) fn receive_and_count(
    socket: &UdpSocket,
    scratch: &mut [u8],
) -> io::Result<(usize, u64)> {
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
    if received < 0 {
        return match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok((0, 0)),
            error => Err(error),
        };
    }
    let received = received as usize;
    let bytes = messages[..received]
        .iter()
        .map(|m| u64::from(m.msg_len))
        .sum();
    Ok((received, bytes))
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
    use crate::system::option;

    #[test]
    fn a_batch_arrives_whole_and_is_counted() {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        from.connect(to.local_addr().unwrap()).unwrap();
        assert_eq!(send_copies(&from, &[7; 100], 10).unwrap(), 10);
        let mut scratch = [0; 2048];
        assert_eq!(receive_and_count(&to, &mut scratch).unwrap(), (10, 1000));
        assert_eq!(receive_and_count(&to, &mut scratch).unwrap(), (0, 0));
        assert_eq!(scratch[99], 7);
    }

    #[test]
    fn datagrams_beyond_the_receive_buffer_are_found_as_overflow() {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        option::set(&to, libc::SOL_SOCKET, libc::SO_RCVBUF, 4096).unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        from.connect(to.local_addr().unwrap()).unwrap();
        let sent: usize = (0..4)
            .map(|_| send_copies(&from, &[0; 1000], 16).unwrap())
            .sum();
        let (received, _) = receive_and_count(&to, &mut [0; 2048]).unwrap();
        let lost = option::overflowed(&to).unwrap();
        assert!(lost > 0);
        assert_eq!(sent as u64, received as u64 + lost);
    }
}
