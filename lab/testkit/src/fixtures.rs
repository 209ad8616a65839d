//! Fixtures: participants on a memory network and on loopback sockets.

use std::time::Duration;

use isolane_datapath::memory::{Memory, MemoryConfig, Network};
use isolane_datapath::{Interfaces, NetworkConfig, Udp};

use crate::conformance::{Fixture, Options};

/// Domain id not used by default by programs on this host.
const DOMAIN: u32 = 97;

/// Participants of one memory network. The first one's options set the queue size of all.
pub struct MemoryNetwork {
    network: Network,
    attached: u8,
}

impl Fixture for MemoryNetwork {
    type Datapath = Memory;

    /// Zero: a datagram has arrived when sending returns.
    const PATIENCE: Duration = Duration::ZERO;

    fn new() -> MemoryNetwork {
        MemoryNetwork {
            network: Network::new(1),
            attached: 0,
        }
    }

    fn attach(&mut self, options: &Options) -> Memory {
        if let (0, Some(queue_bytes)) = (self.attached, options.queue_bytes) {
            self.network = Network::with_config(MemoryConfig {
                queue_bytes,
                ..MemoryConfig::new(1)
            });
        }
        self.attached += 1;
        let address = [10, 0, 0, self.attached];
        self.network.attach_with_pool(address, options.pool)
    }
}

/// Sockets on 127.0.0.1 without multicast groups: nothing leaves the host.
pub struct UdpOnLoopback;

impl Fixture for UdpOnLoopback {
    type Datapath = Udp;

    fn new() -> UdpOnLoopback {
        UdpOnLoopback
    }

    fn attach(&mut self, options: &Options) -> Udp {
        let config = NetworkConfig {
            domain: DOMAIN,
            interfaces: Interfaces::Loopback,
            multicast: false,
            receive_buffer_bytes: options.queue_bytes,
            pool: options.pool,
            ..NetworkConfig::default()
        };
        Udp::new(config).expect("loopback is up")
    }
}
