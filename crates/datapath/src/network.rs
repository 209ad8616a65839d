//! Network configuration of a participant, independent of its datapath.

use isolane_wire::level::Level;

use crate::pool::PoolConfig;

/// Interfaces through which a participant is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Interfaces {
    /// All that are up and have an IPv4 address; loopback only if there is no other.
    #[default]
    All,
    /// Named interfaces; each must be up.
    Named(Vec<String>),
    /// Loopback only: no traffic leaves or enters the host.
    Loopback,
}

/// Number of [fixed ports for samples](NetworkConfig::sample_ports).
pub const SAMPLE_PORTS: u16 = 256;

/// Lowest fixed port for samples: lower ports are privileged.
pub const MIN_SAMPLE_PORT: u16 = 1024;

/// Network configuration of a participant, for its datapath: domain, interfaces, ports and frames. [`Udp`](crate::Udp)
/// uses all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Domain, which determines ports and groups.
    pub domain: u32,
    /// Interfaces to use.
    pub interfaces: Interfaces,
    /// Participant id within host and domain; `None` takes the first whose port is free.
    pub participant_id: Option<u32>,
    /// True to join and announce multicast groups.
    pub multicast: bool,
    /// Unicast ports of the levels; `None` lets the kernel choose.
    pub level_ports: [Option<u16>; 8],
    /// First of [`SAMPLE_PORTS`] fixed unicast ports for samples; `None` lets the kernel choose. Level l has the first
    /// free one of the ports `sample_ports` + l + 8 k, with k below 16. A flow has the first free one of the second half. Ports in
    /// `level_ports` go first.
    pub sample_ports: Option<u16>,
    /// Level of discovery datagrams: their SO_PRIORITY and DSCP class selector. `None`: one less than the highest open
    /// level, at least 1. Announcements and lease renewals then overtake bulk traffic, and wait for the most critical
    /// samples.
    pub discovery_level: Option<Level>,
    /// SO_RCVBUF of each socket, in bytes; `None` leaves the system's default. The kernel grants twice this size,
    /// because it counts its own overhead: a small datagram may take about 2 KiB. A size above `net.core.rmem_max`
    /// needs CAP_NET_ADMIN (SO_RCVBUFFORCE is tried first). Without it, a [warning](crate::Warning) reports the
    /// smaller buffer. [`Datapath::receive_buffer`](crate::Datapath::receive_buffer) returns the granted size.
    pub receive_buffer_bytes: Option<usize>,
    /// True for kernel receive stamps (SO_TIMESTAMPNS), taken when the driver passes a datagram to the network stack,
    /// before it waits in the socket's queue. Stamps cost the kernel a clock reading for each packet of the host, and
    /// this program 32 bytes of control data a datagram and two clock readings (vDSO) a burst. Off by default.
    pub timestamps: bool,
    /// True to send and receive segmented bursts (UDP_SEGMENT, UDP_GRO) where the kernel can. Each socket and each
    /// interface without it falls back to single datagrams.
    pub segmentation: bool,
    /// Frame pool.
    pub pool: PoolConfig,
}

impl Default for NetworkConfig {
    fn default() -> NetworkConfig {
        NetworkConfig::new(0)
    }
}

impl NetworkConfig {
    /// Creates a configuration with all interfaces, multicast, and the system's buffer sizes.
    #[must_use]
    pub fn new(domain: u32) -> NetworkConfig {
        NetworkConfig {
            domain,
            interfaces: Interfaces::All,
            participant_id: None,
            multicast: true,
            level_ports: [None; 8],
            sample_ports: None,
            discovery_level: None,
            receive_buffer_bytes: None,
            timestamps: false,
            segmentation: true,
            pool: PoolConfig::default(),
        }
    }
}
