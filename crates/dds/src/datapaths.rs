//! Kinds of datapaths in this crate, and the choice among factories when a participant is built.

use isolane_datapath::udp::UdpKind;
use isolane_datapath::{Datapath, DatapathFactory, Kinds, NetworkConfig, Warning};
#[cfg(feature = "xdp")]
use isolane_datapath_xdp::xdp::XdpKind;

use crate::error::BuildError;

/// Kinds of datapaths in this crate, best first. A program with its own kinds appends them.
pub const DATAPATHS: Kinds = &[
    #[cfg(feature = "xdp")]
    &XdpKind,
    &UdpKind,
];

/// Opens the first factory whose requirements this machine meets, or else the last one. Returns a warning for each
/// factory that was not used.
pub(crate) fn open_first(
    mut factories: Vec<Box<dyn DatapathFactory>>,
    network: NetworkConfig,
) -> Result<(Box<dyn Datapath>, Vec<Warning>), BuildError> {
    let mut not_used = Vec::new();
    let last = factories.pop().ok_or(BuildError::NoDatapath)?;
    for mut factory in factories {
        match factory.unmet(&network) {
            Some(reason) => {
                let text = format!("the datapath {} is not used: {reason}", factory.name());
                not_used.push(Warning::new("datapath_not_used", text));
            }
            None => {
                // Some obstacles, such as a queue taken meanwhile, show only when a lane is opened.
                factory.tolerate_lane_failure();
                return Ok((factory.open(network)?, not_used));
            }
        }
    }
    Ok((last.open(network)?, not_used))
}
