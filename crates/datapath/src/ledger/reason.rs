//! Why a datagram was dropped or refused: each reason has a name and a count of its own.

/// Why a datagram that arrived was not handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiveDrop {
    /// Longer than a frame.
    Truncated,
    /// The kernel dropped it at the socket: receive buffer full, or a wrong checksum.
    KernelOverflow,
    /// The datapath's own queue was full.
    QueueFull,
    /// Injected: lost on the way, as a test asked for.
    FaultLoss,
    /// Injected: arrived while the interface was gone.
    FaultInterfaceGone,
    /// The kernel found the lane's receive ring full: its reader was behind.
    RingFull,
    /// The kernel found no free chunk of the queue to receive into.
    FillEmpty,
    /// The UDP checksum was wrong.
    Checksum,
    /// Headers that contradict one another or the frame's length.
    Malformed,
    /// Beyond the flow's budget, dropped at the driver.
    Budget,
    /// Beyond what the interface's budget leaves to flows like this, dropped at the driver.
    InterfaceBudget,
    /// Dropped at the driver, because few free chunks were left for more critical lanes.
    RecycledDriver,
    /// Taken back out of the lane's ring, because few free chunks were left for more critical lanes.
    RecycledQueue,
    /// A lane's frame with a martian source (RFC 1812 §5.3.7): an address of this host, 0/8, 127/8, the multicast range or
    /// a broadcast address. For sockets the kernel drops it.
    MartianSource,
}

impl ReceiveDrop {
    /// How many reasons there are.
    pub const COUNT: usize = 14;
    /// All reasons, by index.
    pub const ALL: [ReceiveDrop; ReceiveDrop::COUNT] = [
        ReceiveDrop::Truncated,
        ReceiveDrop::KernelOverflow,
        ReceiveDrop::QueueFull,
        ReceiveDrop::FaultLoss,
        ReceiveDrop::FaultInterfaceGone,
        ReceiveDrop::RingFull,
        ReceiveDrop::FillEmpty,
        ReceiveDrop::Checksum,
        ReceiveDrop::Malformed,
        ReceiveDrop::Budget,
        ReceiveDrop::InterfaceBudget,
        ReceiveDrop::RecycledDriver,
        ReceiveDrop::RecycledQueue,
        ReceiveDrop::MartianSource,
    ];

    /// As reports print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ReceiveDrop::Truncated => "truncated",
            ReceiveDrop::KernelOverflow => "kernel_overflow",
            ReceiveDrop::QueueFull => "queue_full",
            ReceiveDrop::FaultLoss => "fault_loss",
            ReceiveDrop::FaultInterfaceGone => "fault_interface_gone",
            ReceiveDrop::RingFull => "ring_full",
            ReceiveDrop::FillEmpty => "fill_empty",
            ReceiveDrop::Checksum => "checksum",
            ReceiveDrop::Malformed => "malformed",
            ReceiveDrop::Budget => "budget",
            ReceiveDrop::InterfaceBudget => "interface_budget",
            ReceiveDrop::RecycledDriver => "recycled_driver",
            ReceiveDrop::RecycledQueue => "recycled_queue",
            ReceiveDrop::MartianSource => "martian_source",
        }
    }
}

/// Why a datagram that was offered for sending was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The lane was not opened.
    LaneClosed,
    /// The frame had no destination.
    NoDestination,
    /// The destination is of a kind this datapath does not reach.
    UnknownDestination,
    /// The destination is a group, and no interface in use takes part in multicast.
    NoMulticast,
    /// Longer than the datapath's maximum, or than the system lets pass (EMSGSIZE).
    TooLong,
    /// The socket's send buffer is full (EAGAIN).
    WouldBlock,
    /// The device's queue is full, or the kernel is out of memory (ENOBUFS, ENOMEM).
    NoBuffers,
    /// Nobody listens there (ECONNREFUSED).
    ConnectionRefused,
    /// No route or no neighbour (ENETUNREACH, EHOSTUNREACH, ENETDOWN).
    Unreachable,
    /// A firewall or the system's policy forbids it (EPERM, EACCES).
    NotPermitted,
    /// The interface it was to leave by is not there any more (ENODEV).
    InterfaceGone,
    /// Any other error; its number is in [`TransmitLedger::last_error`](super::TransmitLedger::last_error).
    Other,
    /// Injected: as if the socket's send buffer were full.
    FaultWouldBlock,
    /// Injected: as if there were no route.
    FaultUnreachable,
    /// Injected: as if the interface were gone.
    FaultInterfaceGone,
    /// The device's driver did not take the frame (EBUSY).
    DeviceRefused,
    /// Was in the ring to a device that went away before it took the frame.
    DeviceGone,
}

impl Refusal {
    /// How many reasons there are.
    pub const COUNT: usize = 17;
    /// All reasons, by index.
    pub const ALL: [Refusal; Refusal::COUNT] = [
        Refusal::LaneClosed,
        Refusal::NoDestination,
        Refusal::UnknownDestination,
        Refusal::NoMulticast,
        Refusal::TooLong,
        Refusal::WouldBlock,
        Refusal::NoBuffers,
        Refusal::ConnectionRefused,
        Refusal::Unreachable,
        Refusal::NotPermitted,
        Refusal::InterfaceGone,
        Refusal::Other,
        Refusal::FaultWouldBlock,
        Refusal::FaultUnreachable,
        Refusal::FaultInterfaceGone,
        Refusal::DeviceRefused,
        Refusal::DeviceGone,
    ];

    /// As reports print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::LaneClosed => "lane_closed",
            Refusal::NoDestination => "no_destination",
            Refusal::UnknownDestination => "unknown_destination",
            Refusal::NoMulticast => "no_multicast",
            Refusal::TooLong => "too_long",
            Refusal::WouldBlock => "would_block",
            Refusal::NoBuffers => "no_buffers",
            Refusal::ConnectionRefused => "connection_refused",
            Refusal::Unreachable => "unreachable",
            Refusal::NotPermitted => "not_permitted",
            Refusal::InterfaceGone => "interface_gone",
            Refusal::Other => "other",
            Refusal::FaultWouldBlock => "fault_would_block",
            Refusal::FaultUnreachable => "fault_unreachable",
            Refusal::FaultInterfaceGone => "fault_interface_gone",
            Refusal::DeviceRefused => "device_refused",
            Refusal::DeviceGone => "device_gone",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_name_and_an_index_of_its_own() {
        for (index, reason) in ReceiveDrop::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index, "{}", reason.name());
        }
        for (index, reason) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index, "{}", reason.name());
        }
    }
}
