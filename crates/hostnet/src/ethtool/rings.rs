//! Sizes of a device's descriptor rings.

use serde::{Deserialize, Serialize};

use super::{Ethtool, OMIT_REPLY, of};
use crate::netlink::{AttributeReader, NetlinkError, number};

const GET: u8 = 15;
const SET: u8 = 16;
const RX_MAX: u16 = 2;
const TX_MAX: u16 = 5;
const RX: u16 = 6;
const TX: u16 = 9;

/// Ring sizes of a device in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RingSizes {
    /// Receive ring size.
    pub rx: u32,
    /// Transmit ring size.
    pub tx: u32,
}

impl Ethtool {
    /// Ring sizes, current and maximum.
    ///
    /// # Errors
    /// [`NetlinkError`]; `EOPNOTSUPP` if the driver does not report them.
    pub fn rings(
        &mut self,
        interface: &str,
    ) -> Result<Option<(RingSizes, RingSizes)>, NetlinkError> {
        self.get(GET, interface, |answer: AttributeReader<'_>| {
            let [now, most] = [[RX, TX], [RX_MAX, TX_MAX]].map(|kinds| {
                let [rx, tx] = kinds.map(|kind| answer.number(kind).unwrap_or(0));
                RingSizes { rx, tx }
            });
            (now, most)
        })
    }

    /// Sets the ring sizes.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn set_rings(&mut self, interface: &str, rings: RingSizes) -> Result<(), NetlinkError> {
        let attributes = of(interface, OMIT_REPLY)
            .with(number(RX, rings.rx))
            .with(number(TX, rings.tx));
        self.set(SET, &attributes)
    }
}
