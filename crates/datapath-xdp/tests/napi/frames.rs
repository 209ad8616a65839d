//! Frames on a chosen queue of the other end.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::hosts::index_of;

/// Not IPv4, not IPv6: of no interest to anybody (an ethertype for experiments).
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];

/// Sends so many frames to everybody by `host-b`, from the core of this number and so on the queue of
/// this number, a millisecond apart.
pub(crate) fn send(queue: usize, count: usize) {
    stay_on(queue);
    // SAFETY: no memory is involved.
    let descriptor =
        unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    assert!(descriptor >= 0, "a packet socket needs CAP_NET_RAW");
    // SAFETY: the descriptor was just made, and is nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
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
    assert_eq!(set, 0);
    // SAFETY: zero is a value of all its fields.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index_of("host-b") as i32;
    let mut frame = [0_u8; 60];
    frame[..6].fill(0xff);
    frame[6] = 2;
    frame[12..14].copy_from_slice(&ETHER_TYPE);
    for _ in 0..count {
        // SAFETY: frame and address are alive during the call, and as long as said.
        let sent = unsafe {
            libc::sendto(
                socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        assert_eq!(
            sent,
            frame.len() as isize,
            "{}",
            std::io::Error::last_os_error()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn stay_on(core: usize) {
    // SAFETY: a set is an array of integers, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the core's number is far below the set's size.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the set is of the stated size and alive during the call.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    assert_eq!(result, 0);
}
