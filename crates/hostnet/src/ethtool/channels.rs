//! Channels: queue counts of a device.

use serde::{Deserialize, Serialize};

use super::{Ethtool, OMIT_REPLY, of};
use crate::netlink::{AttributeReader, NetlinkError, number};

const GET: u8 = 17;
const SET: u8 = 18;
const RX_MAX: u16 = 2;
const TX_MAX: u16 = 3;
const COMBINED_MAX: u16 = 5;
const RX: u16 = 6;
const TX: u16 = 7;
const COMBINED: u16 = 9;

/// Queue counts of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queues {
    /// Receive-only queues.
    pub rx: u32,
    /// Transmit-only queues.
    pub tx: u32,
    /// Queue pairs, for reception and transmission.
    pub combined: u32,
}

impl Ethtool {
    /// Queue counts, in use and maximum.
    ///
    /// # Errors
    /// [`NetlinkError`]; `EOPNOTSUPP` if the driver does not report them.
    pub fn queues(&mut self, interface: &str) -> Result<Option<(Queues, Queues)>, NetlinkError> {
        self.get(GET, interface, |answer: AttributeReader<'_>| {
            let [now, most] = [[RX, TX, COMBINED], [RX_MAX, TX_MAX, COMBINED_MAX]].map(|kinds| {
                let [rx, tx, combined] = kinds.map(|kind| answer.number(kind).unwrap_or(0));
                Queues { rx, tx, combined }
            });
            (now, most)
        })
    }

    /// Sets the queue counts.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn set_queues(&mut self, interface: &str, queues: Queues) -> Result<(), NetlinkError> {
        let attributes = of(interface, OMIT_REPLY)
            .with(number(RX, queues.rx))
            .with(number(TX, queues.tx))
            .with(number(COMBINED, queues.combined));
        self.set(SET, &attributes)
    }
}
