//! Burst transmission: sendmmsg directly from frames.
//!
//! A frame with several destinations becomes several messages with the same bytes. A multicast message becomes one
//! message for each interface, given in its control data (IP_PKTINFO), so one socket and one call suffice.

use std::io;
use std::mem;
use std::ptr;

use libc::{iovec, mmsghdr, sockaddr_in};

use super::socket::{Socket, internet_address, socket_address};
use crate::burst::SendReport;
use crate::ledger::{Refusal, TransmitLedger};
use crate::limits::MAX_MESSAGES;

/// Words of control data: an in_pktinfo (12 bytes) after its header (16).
const CONTROL_WORDS: usize = 4;

/// Interface on which multicast is sent.
#[derive(Clone, Copy)]
pub(super) struct Egress {
    pub(super) index: u32,
    pub(super) address: [u8; 4],
    /// True if the interface existed at the last check.
    pub(super) is_present: bool,
}

/// Arrays of sendmmsg, allocated once. Messages are collected, then sent in one call.
pub(super) struct Sender {
    headers: Box<[mmsghdr; MAX_MESSAGES]>,
    vectors: Box<[iovec; MAX_MESSAGES]>,
    names: Box<[sockaddr_in; MAX_MESSAGES]>,
    controls: Box<[[u64; CONTROL_WORDS]; MAX_MESSAGES]>,
}

/// Messages collected for one call; borrows their bytes.
pub(super) struct Batch<'a> {
    sender: &'a mut Sender,
    socket: &'a Socket,
    ledger: &'a mut TransmitLedger,
    report: &'a mut SendReport,
    count: usize,
}

impl Sender {
    pub(super) fn new() -> Sender {
        // SAFETY: these are plain C structures, for which all zeros are valid.
        let (headers, vectors, names) = unsafe {
            (
                Box::new(mem::zeroed()),
                Box::new(mem::zeroed()),
                Box::new(mem::zeroed()),
            )
        };
        Sender {
            headers,
            vectors,
            names,
            controls: Box::new([[0; CONTROL_WORDS]; MAX_MESSAGES]),
        }
    }

    pub(super) fn batch<'a>(
        &'a mut self,
        socket: &'a Socket,
        ledger: &'a mut TransmitLedger,
        report: &'a mut SendReport,
    ) -> Batch<'a> {
        Batch {
            sender: self,
            socket,
            ledger,
            report,
            count: 0,
        }
    }

    fn prepare(&mut self, place: usize, bytes: &[u8], to: ([u8; 4], u16), by: Option<Egress>) {
        self.names[place] = socket_address(to.0, to.1);
        self.vectors[place] = iovec {
            // The kernel only reads the bytes.
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let header = &mut self.headers[place].msg_hdr;
        header.msg_name = (&raw mut self.names[place]).cast();
        header.msg_namelen = size_of::<sockaddr_in>() as _;
        header.msg_iov = &raw mut self.vectors[place];
        header.msg_iovlen = 1;
        header.msg_control = ptr::null_mut();
        header.msg_controllen = 0;
        if let Some(egress) = by {
            write_egress(header, &mut self.controls[place], egress);
        }
    }
}

/// Writes the interface and source address of a message as control data.
fn write_egress(header: &mut libc::msghdr, control: &mut [u64; CONTROL_WORDS], egress: Egress) {
    let info = libc::in_pktinfo {
        ipi_ifindex: egress.index as libc::c_int,
        ipi_spec_dst: internet_address(egress.address),
        ipi_addr: internet_address([0; 4]),
    };
    let len = size_of_val(&info) as libc::c_uint;
    header.msg_control = control.as_mut_ptr().cast();
    // SAFETY: the control buffer has CMSG_SPACE of an in_pktinfo (checked below), is aligned for the header, and has
    // no other use.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(len) as _;
        let message = libc::CMSG_FIRSTHDR(ptr::from_ref(header));
        (*message).cmsg_level = libc::IPPROTO_IP;
        (*message).cmsg_type = libc::IP_PKTINFO;
        (*message).cmsg_len = libc::CMSG_LEN(len) as _;
        let data = libc::CMSG_DATA(message).cast::<libc::in_pktinfo>();
        data.write_unaligned(info);
    }
}

const _: () = {
    // SAFETY: pure arithmetic.
    let space = unsafe { libc::CMSG_SPACE(size_of::<libc::in_pktinfo>() as _) };
    assert!(space as usize <= CONTROL_WORDS * 8);
};

impl<'a> Batch<'a> {
    /// Adds a message; sends the collected ones first if there is no room.
    pub(super) fn push(&mut self, bytes: &'a [u8], to: ([u8; 4], u16), by: Option<Egress>) {
        if self.count == MAX_MESSAGES {
            self.flush();
        }
        self.sender.prepare(self.count, bytes, to, by);
        self.count += 1;
    }

    /// Counts messages that are not sent.
    pub(super) fn refuse(&mut self, reason: Refusal, count: usize) {
        self.ledger.note_refused(reason, count as u64);
        self.report.refused += count as u32;
    }

    /// Sends the collected messages. Each system call settles at least one message, or is the one retry after the error
    /// of an earlier datagram.
    pub(super) fn flush(&mut self) {
        let count = mem::take(&mut self.count);
        let mut next = 0;
        let mut repeated = None;
        while next < count {
            let error = match self.call(next, count) {
                Ok(sent) if sent > 0 => {
                    self.note_sent(next, sent);
                    next += sent;
                    if next < count {
                        // The call does not report what stopped it. The error of an earlier datagram is now cleared,
                        // but still in the error queue.
                        self.ledger.bounced += self.socket.take_errors();
                    }
                    continue;
                }
                Ok(_) => 0,
                Err(error) => error.raw_os_error().unwrap_or(0),
            };
            if is_of_an_earlier_datagram(error) && repeated != Some(next) {
                self.ledger.bounced += self.socket.take_errors();
                repeated = Some(next);
                continue;
            }
            let reason = refusal_of(error);
            // A full send buffer refuses all following messages as well.
            let refused = match reason {
                Refusal::WOULD_BLOCK => count - next,
                _ => 1,
            };
            if reason == Refusal::OTHER {
                self.ledger.last_error = error;
            }
            self.refuse(reason, refused);
            next += refused;
        }
    }

    fn call(&mut self, next: usize, count: usize) -> io::Result<usize> {
        let headers = self.sender.headers[next..count].as_mut_ptr();
        let messages = (count - next) as libc::c_uint;
        // SAFETY: headers from `next` to `count` were prepared for this batch. Each points to its own vector, name and
        // control data, which do not move, and to bytes that the batch borrows for 'a.
        let sent =
            unsafe { libc::sendmmsg(self.socket.raw(), headers, messages, libc::MSG_DONTWAIT) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    fn note_sent(&mut self, first: usize, sent: usize) {
        for vector in &self.sender.vectors[first..first + sent] {
            self.ledger.note_sent(vector.iov_len);
        }
        self.report.sent += sent as u32;
    }
}

/// Returns true for errors that ICMP may have caused for an earlier datagram: the kernel reports them once, instead of
/// sending. An error of the current datagram repeats.
fn is_of_an_earlier_datagram(error: i32) -> bool {
    matches!(
        error,
        libc::ECONNREFUSED
            | libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::ENONET
            | libc::ENOPROTOOPT
            | libc::EOPNOTSUPP
            | libc::EPROTO
            | libc::EMSGSIZE
            | libc::EACCES
    )
}

fn refusal_of(error: i32) -> Refusal {
    match error {
        libc::EAGAIN => Refusal::WOULD_BLOCK,
        libc::ENOBUFS | libc::ENOMEM => Refusal::NO_BUFFERS,
        libc::ECONNREFUSED => Refusal::CONNECTION_REFUSED,
        libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN => {
            Refusal::UNREACHABLE
        }
        libc::ENODEV | libc::ENXIO => Refusal::INTERFACE_GONE,
        libc::EMSGSIZE => Refusal::TOO_LONG,
        libc::EPERM | libc::EACCES => Refusal::NOT_PERMITTED,
        _ => Refusal::OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_sending_has_a_name() {
        let cases = [
            (libc::EAGAIN, Refusal::WOULD_BLOCK),
            (libc::ENOBUFS, Refusal::NO_BUFFERS),
            (libc::ECONNREFUSED, Refusal::CONNECTION_REFUSED),
            (libc::ENETUNREACH, Refusal::UNREACHABLE),
            (libc::EHOSTUNREACH, Refusal::UNREACHABLE),
            (libc::ENODEV, Refusal::INTERFACE_GONE),
            (libc::EMSGSIZE, Refusal::TOO_LONG),
            (libc::EPERM, Refusal::NOT_PERMITTED),
            (libc::EINVAL, Refusal::OTHER),
        ];
        for (error, refusal) in cases {
            assert_eq!(refusal_of(error), refusal, "{error}");
        }
    }
}
