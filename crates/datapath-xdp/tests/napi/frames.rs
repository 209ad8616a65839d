//! Frames that arrive on a chosen queue of the other end.

use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::hosts::index_of;
use crate::packet_socket::PacketSocket;

/// Ethertype for experiments, neither IPv4 nor IPv6, which no host answers.
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];

/// Broadcasts `count` frames from `host-b`, one per millisecond. The sending core has the number of the queue, so the
/// frames use that queue.
pub(crate) fn send(queue: usize, count: usize) {
    let mut core = CpuSet::new();
    core.set(queue);
    sched_setaffinity(None, &core).expect("a core for each queue");
    let mut socket = PacketSocket::on(index_of("host-b"));
    let mut frame = [0_u8; 60];
    frame[..6].fill(0xff);
    frame[6] = 2;
    frame[12..14].copy_from_slice(&ETHER_TYPE);
    for _ in 0..count {
        socket.send(&frame);
        std::thread::sleep(Duration::from_millis(1));
    }
}
