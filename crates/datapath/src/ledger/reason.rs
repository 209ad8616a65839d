//! Reasons of drops and refusals, each with a name and a counter.

/// Reason for not delivering a datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiveDrop {
    /// Longer than a frame.
    Truncated,
    /// Dropped by the kernel at the socket: receive buffer full, or a wrong checksum.
    KernelOverflow,
    /// Queue of the datapath full.
    QueueFull,
    /// Injected: lost in the network.
    FaultLoss,
    /// Injected: arrived while the interface was removed.
    FaultInterfaceGone,
    /// Receive ring of the lane full: the reader was too slow.
    RingFull,
    /// No free chunk of the queue (fill ring empty).
    FillEmpty,
    /// Wrong UDP checksum.
    Checksum,
    /// Headers contradict each other or the frame's length.
    Malformed,
    /// Beyond the flow's budget, dropped at the driver.
    Budget,
    /// Beyond the interface budget available to this flow, dropped at the driver.
    InterfaceBudget,
    /// Dropped at the driver, because few free chunks were left for more critical lanes.
    RecycledDriver,
    /// Removed from the lane's ring, because few free chunks were left for more critical lanes.
    RecycledQueue,
    /// Martian source address (RFC 1812 §5.3.7): this host's, 0/8, 127/8, multicast or broadcast. On sockets the kernel
    /// drops these.
    MartianSource,
}

impl ReceiveDrop {
    /// Number of reasons.
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

    /// Name in reports.
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

/// Reason for not sending an offered datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Lane not open.
    LaneClosed,
    /// Frame without destination.
    NoDestination,
    /// Locator kind not supported by this datapath.
    UnknownDestination,
    /// Multicast destination, and no interface in use supports multicast.
    NoMulticast,
    /// Longer than the datapath's or the system's maximum (EMSGSIZE).
    TooLong,
    /// Send buffer of the socket full (EAGAIN).
    WouldBlock,
    /// Device queue full, or kernel out of memory (ENOBUFS, ENOMEM).
    NoBuffers,
    /// No listener at the destination (ECONNREFUSED).
    ConnectionRefused,
    /// No route or no neighbour (ENETUNREACH, EHOSTUNREACH, ENETDOWN).
    Unreachable,
    /// Forbidden by a firewall or policy (EPERM, EACCES).
    NotPermitted,
    /// Interface removed (ENODEV).
    InterfaceGone,
    /// Other error; its number is in [`TransmitLedger::last_error`](super::TransmitLedger::last_error).
    Other,
    /// Injected: send buffer full.
    FaultWouldBlock,
    /// Injected: no route.
    FaultUnreachable,
    /// Injected: interface removed.
    FaultInterfaceGone,
    /// Frame refused by the device driver (EBUSY).
    DeviceRefused,
    /// Device removed before it transmitted the frame.
    DeviceGone,
}

impl Refusal {
    /// Number of reasons.
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

    /// Name in reports.
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
