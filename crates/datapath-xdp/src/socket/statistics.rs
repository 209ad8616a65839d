//! Kernel counters of one socket.

use std::io;
use std::os::fd::BorrowedFd;

use super::system;

/// Kernel counters since a socket was bound (`struct xdp_statistics`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Received frames dropped for other reasons than a full receive ring: no chunk in the fill ring, or a frame longer
    /// than a chunk. A frame redirected from another queue than the socket's is also dropped, but not counted anywhere.
    pub dropped: u64,
    /// Fill ring entries that were no chunk address.
    pub invalid_received: u64,
    /// Transmit ring entries that were no frame within a chunk. Kernels differ in whether such entries come back by the
    /// completion ring (6.18 does so).
    pub invalid_transmitted: u64,
    /// Received frames dropped because the socket's receive ring was full.
    pub receive_ring_full: u64,
    /// Times a chunk was needed and the fill ring was empty. The fill ring belongs to the queue: all its sockets report
    /// the same value.
    pub fill_ring_empty: u64,
    /// Times the kernel looked for frames to send and found none.
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
