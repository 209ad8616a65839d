//! Participants on a network in memory.

use std::time::Duration;

use isolane_datapath::conformance::{Fixture, Options};
use isolane_datapath::memory::{Memory, Network, NetworkConfig};

/// Participants of one memory network.
pub(crate) struct MemoryNetwork {
    network: Network,
    attached: u8,
}

/// A queue is a property of the network, so a fixture makes its network when it knows.
impl Fixture for MemoryNetwork {
    type Datapath = Memory;

    /// What is sent has arrived when sending returns.
    const PATIENCE: Duration = Duration::ZERO;

    fn new() -> MemoryNetwork {
        MemoryNetwork {
            network: Network::new(1),
            attached: 0,
        }
    }

    fn attach(&mut self, options: &Options) -> Memory {
        if let (0, Some(queue_bytes)) = (self.attached, options.queue_bytes) {
            self.network = Network::with_config(NetworkConfig {
                queue_bytes,
                ..NetworkConfig::new(1)
            });
        }
        self.attached += 1;
        let address = [10, 0, 0, self.attached];
        self.network.attach_with_pool(address, options.pool)
    }
}
