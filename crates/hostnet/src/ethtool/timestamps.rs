//! Time stamps of a device, and its clock.

use super::{Ethtool, bit_names};
use crate::netlink::{Denial, Read};
use serde::{Deserialize, Serialize};

/// Time stamps of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timestamps {
    /// The hardware stamps sent frames.
    pub hardware_tx: bool,
    /// The hardware stamps received frames.
    pub hardware_rx: bool,
    /// The number of its clock: `/dev/ptpN`.
    pub clock: Option<u32>,
}

const GET: u8 = 25;
const MODES: u16 = 2;
const CLOCK: u16 = 5;

impl Ethtool {
    /// What the device stamps.
    pub fn timestamps(&mut self, interface: &str) -> Result<Option<Timestamps>, Denial> {
        self.get(GET, interface, |answer: Read<'_>| {
            let modes = answer.nest(MODES).unwrap_or(Read(&[]));
            let modes: Vec<String> = bit_names(modes).map(|(name, _)| name).collect();
            let has = |name: &str| modes.iter().any(|mode| mode == name);
            Timestamps {
                hardware_tx: has("hardware-transmit"),
                hardware_rx: has("hardware-receive"),
                clock: answer.number(CLOCK),
            }
        })
    }
}
