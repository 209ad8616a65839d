//! Counters of AF_XDP lanes, in addition to those of all datapaths, and their names in reports.

use isolane_datapath::{CounterNames, Event, ReceiveDrop, Refusal};

/// Receive ring of the lane full: the reader was too slow.
pub const RING_FULL: ReceiveDrop = ReceiveDrop::own(0);
/// No free chunk of the queue (fill ring empty).
pub const FILL_EMPTY: ReceiveDrop = ReceiveDrop::own(1);
/// Wrong UDP checksum.
pub const CHECKSUM: ReceiveDrop = ReceiveDrop::own(2);
/// Headers contradict each other or the frame's length.
pub const MALFORMED: ReceiveDrop = ReceiveDrop::own(3);
/// Beyond the flow's budget, dropped at the driver.
pub const BUDGET: ReceiveDrop = ReceiveDrop::own(4);
/// Beyond the interface budget available to this flow, dropped at the driver.
pub const INTERFACE_BUDGET: ReceiveDrop = ReceiveDrop::own(5);
/// Dropped at the driver, because few free chunks were left for more critical lanes.
pub const RECYCLED_DRIVER: ReceiveDrop = ReceiveDrop::own(6);
/// Removed from the lane's ring, because few free chunks were left for more critical lanes.
pub const RECYCLED_QUEUE: ReceiveDrop = ReceiveDrop::own(7);
/// Martian source address (RFC 1812 §5.3.7): this host's, 0/8, 127/8, multicast or broadcast. The kernel drops such
/// datagrams before they reach a socket.
pub const MARTIAN_SOURCE: ReceiveDrop = ReceiveDrop::own(8);

/// Frame refused by the device driver (EBUSY).
pub const DEVICE_REFUSED: Refusal = Refusal::own(0);
/// Device removed before it transmitted the frame.
pub const DEVICE_GONE: Refusal = Refusal::own(1);

/// Datagrams received through the lane's ring; the others of `received` came through a kernel socket.
pub const RECEIVED_BY_LANE: Event = Event::own(0);
/// Datagrams received through the lane's ring whose checksum a virtual interface left partial; the partial sum was
/// correct.
pub const PARTIAL_CHECKSUM: Event = Event::own(1);
/// Datagrams received through the lane's ring without a checksum.
pub const NO_CHECKSUM: Event = Event::own(2);
/// Datagrams sent through the lane's ring; the others of `sent` left through a kernel socket.
pub const SENT_BY_LANE: Event = Event::own(3);
/// Frames copied for further destinations, or because the frame is not a device chunk.
pub const DESTINATION_COPY: Event = Event::own(4);
/// Sent through a kernel socket: longer than the interface's MTU, so the kernel fragments the datagram.
pub const KERNEL_TOO_LONG: Event = Event::own(5);
/// Sent through a kernel socket: the destination is this host.
pub const KERNEL_OWN_HOST: Event = Event::own(6);
/// Multicast copies sent through a kernel socket for readers on this host; the lane sent to the network.
pub const KERNEL_LOCAL_GROUP: Event = Event::own(7);
/// Sent through a kernel socket: the neighbour's link-layer address is unknown or stale.
pub const KERNEL_NEIGHBOUR: Event = Event::own(8);
/// Sent through a kernel socket: no route, or one through another interface.
pub const KERNEL_NO_ROUTE: Event = Event::own(9);
/// Sent through a kernel socket: the interface was down or removed.
pub const KERNEL_DOWN: Event = Event::own(10);
/// Sent through a kernel socket: the frame is not a device chunk, and none was free for a copy.
pub const KERNEL_NO_CHUNK: Event = Event::own(11);
/// Sent through a kernel socket: the transmit ring was full.
pub const KERNEL_RING_FULL: Event = Event::own(12);
/// Sent through a kernel socket: lanes do not support the kind of route.
pub const KERNEL_UNSUPPORTED: Event = Event::own(13);
/// System calls that triggered transmission.
pub const KICK: Event = Event::own(14);
/// System calls that triggered transmission, and left entries in the ring.
pub const KICK_UNFINISHED: Event = Event::own(15);
/// Checks that found fewer free chunks than the reserve of the most critical lane. Chunks that the most critical lane
/// itself held count as free.
pub const RESERVE_TOUCHED: Event = Event::own(16);
/// Descriptors from the kernel, invalid or of chunks it did not have: a bug in the kernel or this program.
pub const STRAY: Event = Event::own(17);

/// Names of the counters.
pub static NAMES: CounterNames = CounterNames::new(
    &[
        (RING_FULL, "ring_full"),
        (FILL_EMPTY, "fill_empty"),
        (CHECKSUM, "checksum"),
        (MALFORMED, "malformed"),
        (BUDGET, "budget"),
        (INTERFACE_BUDGET, "interface_budget"),
        (RECYCLED_DRIVER, "recycled_driver"),
        (RECYCLED_QUEUE, "recycled_queue"),
        (MARTIAN_SOURCE, "martian_source"),
    ],
    &[
        (DEVICE_REFUSED, "device_refused"),
        (DEVICE_GONE, "device_gone"),
    ],
    &[
        (RECEIVED_BY_LANE, "received_by_lane"),
        (PARTIAL_CHECKSUM, "partial_checksum"),
        (NO_CHECKSUM, "no_checksum"),
        (SENT_BY_LANE, "sent_by_lane"),
        (DESTINATION_COPY, "destination_copy"),
        (KERNEL_TOO_LONG, "kernel_too_long"),
        (KERNEL_OWN_HOST, "kernel_own_host"),
        (KERNEL_LOCAL_GROUP, "kernel_local_group"),
        (KERNEL_NEIGHBOUR, "kernel_neighbour"),
        (KERNEL_NO_ROUTE, "kernel_no_route"),
        (KERNEL_DOWN, "kernel_down"),
        (KERNEL_NO_CHUNK, "kernel_no_chunk"),
        (KERNEL_RING_FULL, "kernel_ring_full"),
        (KERNEL_UNSUPPORTED, "kernel_unsupported"),
        (KICK, "kick"),
        (KICK_UNFINISHED, "kick_unfinished"),
        (RESERVE_TOUCHED, "reserve_touched"),
        (STRAY, "stray"),
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_its_own_name() {
        assert_eq!(NAMES.duplicate(), None);
    }
}
