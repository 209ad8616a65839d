//! The memory datapath keeps the contract.

use isolane_datapath::conformance::{Fixture, Options};
use isolane_datapath::memory::{Memory, Network, NetworkConfig};

struct MemoryNetwork {
    network: Network,
    attached: u8,
}

/// A queue is a property of the network, so a fixture makes its network when it knows.
impl Fixture for MemoryNetwork {
    type Datapath = Memory;

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

isolane_datapath::conformance!(unicast, MemoryNetwork);
isolane_datapath::conformance!(multicast, MemoryNetwork);
