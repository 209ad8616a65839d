//! How many frames a device's rings hold.

use super::{Ethtool, OMIT_REPLY, of};
use crate::netlink::{Denial, Read, number};
use serde::{Deserialize, Serialize};

/// Frames of a device's rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RingSizes {
    /// Of a receive ring.
    pub rx: u32,
    /// Of a transmit ring.
    pub tx: u32,
}

const GET: u8 = 15;
const SET: u8 = 16;
const RX_MAX: u16 = 2;
const TX_MAX: u16 = 5;
const RX: u16 = 6;
const TX: u16 = 9;

impl Ethtool {
    /// Sizes of the rings, and the most there can be.
    pub fn rings(&mut self, interface: &str) -> Result<Option<(RingSizes, RingSizes)>, Denial> {
        self.get(GET, interface, |answer: Read<'_>| {
            let count = |kind| answer.number(kind).unwrap_or(0);
            let rings = |rx, tx| RingSizes {
                rx: count(rx),
                tx: count(tx),
            };
            (rings(RX, TX), rings(RX_MAX, TX_MAX))
        })
    }

    pub fn set_rings(&mut self, interface: &str, rings: RingSizes) -> Result<(), Denial> {
        let attributes = of(interface, OMIT_REPLY)
            .with(number(RX, rings.rx))
            .with(number(TX, rings.tx));
        self.set(SET, &attributes)
    }
}
