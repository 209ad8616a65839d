//! What the kernel counted of one socket.

use std::io;
use std::os::fd::BorrowedFd;

use super::system;

/// What the kernel counted since a socket was bound (`struct xdp_statistics`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Received frames that were dropped for another reason than a full receive ring: no chunk in
    /// the fill ring, or too long for one. A frame that came on another queue than the socket's is
    /// dropped, too, and counted nowhere.
    pub dropped: u64,
    /// Entries of the fill ring that were no address of a chunk.
    pub invalid_received: u64,
    /// Entries of the transmit ring that were no frame inside a chunk. Kernels differ in whether
    /// such entries come back by the completion ring (6.18 does so).
    pub invalid_transmitted: u64,
    /// Received frames that were dropped because the socket's receive ring was full.
    pub receive_ring_full: u64,
    /// How often a chunk was wanted and the fill ring was empty. The fill ring is the queue's: its
    /// sockets all say the same.
    pub fill_ring_empty: u64,
    /// How often the kernel looked for frames to send and found none.
    pub transmit_ring_empty: u64,
}

impl Statistics {
    pub(super) fn read(socket: BorrowedFd<'_>) -> io::Result<Statistics> {
        let read = system::statistics(socket)?;
        Ok(Statistics {
            dropped: read.rx_dropped,
            invalid_received: read.rx_invalid_descs,
            invalid_transmitted: read.tx_invalid_descs,
            receive_ring_full: read.rx_ring_full,
            fill_ring_empty: read.rx_fill_ring_empty_descs,
            transmit_ring_empty: read.tx_ring_empty_descs,
        })
    }
}
