//! Hardware time stamps of a device, and its clock.

use serde::{Deserialize, Serialize};

use super::{Ethtool, bit_names};
use crate::netlink::{AttributeReader, NetlinkError};

const GET: u8 = 25;
const MODES: u16 = 2;
const CLOCK: u16 = 5;

/// Time-stamping capabilities of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timestamps {
    /// True if the hardware stamps sent frames.
    pub hardware_tx: bool,
    /// True if the hardware stamps received frames.
    pub hardware_rx: bool,
    /// Number of the hardware clock, `/dev/ptpN`.
    pub clock: Option<u32>,
}

impl Ethtool {
    /// Time-stamping capabilities of a device.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn timestamps(&mut self, interface: &str) -> Result<Option<Timestamps>, NetlinkError> {
        self.get(GET, interface, |answer: AttributeReader<'_>| {
            let modes = answer.nest(MODES).unwrap_or(AttributeReader(&[]));
            let has = |name: &str| bit_names(modes).any(|(mode, _)| mode == name);
            Timestamps {
                hardware_tx: has("hardware-transmit"),
                hardware_rx: has("hardware-receive"),
                clock: answer.number(CLOCK),
            }
        })
    }
}
