//! Test hosts in separate network namespaces, joined by a bridge in another namespace.
//!
//! ```text
//!   host 0           host 1           host 2
//!   10.79.0.1        10.79.0.2        10.79.0.3
//!   host ==veth==.   host ==veth==.   host ==veth==.
//!             port-0           port-1           port-2
//!            `------------- bridge -------------------'
//! ```
//!
//! As with a [`Testbed`](super::Testbed), the namespaces are anonymous: the kernel removes them when this process and
//! all processes inside have ended.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::Arc;

use super::TestbedConfig;
use super::command_inside;
use super::error::TestbedError;
use super::setup::{Namespace, add_port, configure_host, join, make_bridge};

/// Name of the bridge device.
const BRIDGE: &str = "bridge";

/// Namespaces of the hosts and the bridge, held by this process.
#[derive(Debug)]
pub struct BridgedHosts {
    hosts: Vec<Arc<OwnedFd>>,
    _bridge: OwnedFd,
}

impl BridgedHosts {
    /// Name of each host's network device.
    pub const INTERFACE: &str = "host";

    /// Makes `count` hosts and the bridge. The calling thread stays in its namespace.
    pub fn new(count: u8) -> Result<BridgedHosts, TestbedError> {
        let config = TestbedConfig {
            queues: 1,
            ..TestbedConfig::default()
        };
        let mut bridge = Namespace::new()?;
        make_bridge(&mut bridge, BRIDGE)?;
        let mut hosts = Vec::new();
        for number in 0..count {
            let mut host = Namespace::new()?;
            let port = format!("port-{number}");
            join([&mut host, &mut bridge], [Self::INTERFACE, &port], &config)?;
            add_port(&mut bridge, BRIDGE, &port)?;
            configure_host(&mut host, Self::INTERFACE, Self::address(number))?;
            hosts.push(Arc::new(host.descriptor));
        }
        Ok(BridgedHosts {
            hosts,
            _bridge: bridge.descriptor,
        })
    }

    /// IPv4 address of a host, counted from 0.
    pub const fn address(host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 79, 0, host + 1)
    }

    /// Makes `command` start its program on a host, counted from 0, and die with the thread that spawns it.
    ///
    /// # Panics
    /// If the host does not exist.
    pub fn command(&self, host: usize, command: Command) -> Command {
        command_inside(&self.hosts[host], command)
    }
}
