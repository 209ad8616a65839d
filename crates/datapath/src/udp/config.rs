//! How the UDP datapath is set up.

use isolane_wire::level::Level;

use crate::pool::PoolConfig;

/// Which interfaces a participant is reached by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Interfaces {
    /// All that are up and have an IPv4 address, without loopback unless there is no other.
    #[default]
    All,
    /// Those named; each must be up.
    Named(Vec<String>),
    /// Loopback alone: nothing leaves the host, nothing from outside comes in.
    Loopback,
}

/// Settings of [`Udp`](super::Udp).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The domain, which gives ports and groups.
    pub domain: u32,
    /// Which interfaces to be reached by.
    pub interfaces: Interfaces,
    /// Which participant of this host and domain this is; `None` takes the first whose port is
    /// free.
    pub participant_id: Option<u32>,
    /// Join and announce groups.
    pub multicast: bool,
    /// Ports of levels for unicast; `None` lets the kernel choose.
    pub level_ports: [Option<u16>; 8],
    /// Wire class of discovery's datagrams: their SO_PRIORITY and DSCP class selector. `None`: one less
    /// than the highest open level, and at least 1. So announcements and lease renewals pass bulk traffic,
    /// and wait behind the most critical samples.
    pub discovery_level: Option<Level>,
    /// SO_RCVBUF of each socket, in bytes; the kernel grants twice as many of its own memory, of
    /// which some 2 KiB may go for a small datagram. Beyond
    /// `net.core.rmem_max` it takes CAP_NET_ADMIN (SO_RCVBUFFORCE is tried first), else
    /// [`Note::SmallReceiveBuffer`](crate::Note::SmallReceiveBuffer) says what there is. `None`
    /// leaves the system's default. What a lane got: [`Datapath::receive_buffer`](crate::Datapath::receive_buffer).
    pub receive_buffer_bytes: Option<usize>,
    /// SO_BUSY_POLL of each socket, in microseconds.
    pub busy_poll_us: Option<u32>,
    /// Ask the kernel when each datagram arrived (SO_TIMESTAMPNS): stamped where the device's
    /// driver hands it to the network stack, so the time in the socket's queue is behind it.
    /// Costs the kernel a reading of the clock for each packet of the host, whoever it is for,
    /// and this program 32 bytes of control data a datagram and two readings of clocks a burst,
    /// which are no system calls. Off unless asked for.
    pub timestamps: bool,
    /// Frames.
    pub pool: PoolConfig,
}

impl Default for UdpConfig {
    fn default() -> UdpConfig {
        UdpConfig::new(0)
    }
}

impl UdpConfig {
    /// All interfaces, multicast, and the system's own sizes.
    #[must_use]
    pub fn new(domain: u32) -> UdpConfig {
        UdpConfig {
            domain,
            interfaces: Interfaces::All,
            participant_id: None,
            multicast: true,
            level_ports: [None; 8],
            discovery_level: None,
            receive_buffer_bytes: None,
            busy_poll_us: None,
            timestamps: false,
            pool: PoolConfig::default(),
        }
    }
}
