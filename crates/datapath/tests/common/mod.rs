//! Participants on loopback.

use isolane_datapath::conformance::{Fixture, Options};
use isolane_datapath::{Interfaces, Udp, UdpConfig};

/// A domain that no program on this host uses by default.
const DOMAIN: u32 = 97;

/// Sockets on 127.0.0.1, without groups: nothing leaves the host.
pub(crate) struct UdpOnLoopback;

impl Fixture for UdpOnLoopback {
    type Datapath = Udp;

    fn new() -> UdpOnLoopback {
        UdpOnLoopback
    }

    fn attach(&mut self, options: &Options) -> Udp {
        let config = UdpConfig {
            domain: DOMAIN,
            interfaces: Interfaces::Loopback,
            multicast: false,
            receive_buffer_bytes: options.queue_bytes,
            pool: options.pool,
            ..UdpConfig::default()
        };
        Udp::new(config).expect("loopback is up")
    }
}
