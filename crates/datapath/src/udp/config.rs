//! How the UDP datapath is set up.

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
    /// SO_RCVBUF of each socket, in bytes of kernel memory (some 2 KiB go for a small
    /// datagram); `None` leaves the system's default.
    pub receive_buffer_bytes: Option<usize>,
    /// SO_BUSY_POLL of each socket, in microseconds.
    pub busy_poll_us: Option<u32>,
    /// Ask the kernel when each datagram arrived. Costs it a reading of the clock a packet, of
    /// all sockets' packets.
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
            receive_buffer_bytes: None,
            busy_poll_us: None,
            timestamps: false,
            pool: PoolConfig::default(),
        }
    }
}
