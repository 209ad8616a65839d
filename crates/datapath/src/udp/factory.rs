//! Kind and factory of the UDP datapath.

use super::Udp;
use crate::contract::{Datapath, OpenError};
use crate::factory::DatapathFactory;
use crate::kind::{DatapathKind, OptionError, Options};
use crate::network::NetworkConfig;

/// Options of the datapath over kernel sockets: it has none beyond those of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpOptions;

impl DatapathFactory for UdpOptions {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn open(self: Box<Self>, network: NetworkConfig) -> Result<Box<dyn Datapath>, OpenError> {
        Ok(Box::new(Udp::new(network)?))
    }
}

/// Kind of the datapath over kernel sockets.
#[derive(Debug)]
pub struct UdpKind;

impl DatapathKind for UdpKind {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn summary(&self) -> &'static str {
        "kernel sockets; works on every machine"
    }

    fn configure(&self, _: &Options) -> Result<Box<dyn DatapathFactory>, OptionError> {
        Ok(Box::new(UdpOptions))
    }
}
