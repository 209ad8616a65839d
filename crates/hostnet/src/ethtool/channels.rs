//! How many queues a device has.

use super::{Ethtool, OMIT_REPLY, of};
use crate::netlink::{Denial, Read, number};
use serde::{Deserialize, Serialize};

/// Queues of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queues {
    /// That receive only.
    pub rx: u32,
    /// That transmit only.
    pub tx: u32,
    /// Pairs of both.
    pub combined: u32,
}

const GET: u8 = 17;
const SET: u8 = 18;
const RX_MAX: u16 = 2;
const TX_MAX: u16 = 3;
const COMBINED_MAX: u16 = 5;
const RX: u16 = 6;
const TX: u16 = 7;
const COMBINED: u16 = 9;

impl Ethtool {
    /// Queues in use, and the most there can be.
    pub fn queues(&mut self, interface: &str) -> Result<Option<(Queues, Queues)>, Denial> {
        self.get(GET, interface, |answer: Read<'_>| {
            let count = |kind| answer.number(kind).unwrap_or(0);
            let queues = |rx, tx, combined| Queues {
                rx: count(rx),
                tx: count(tx),
                combined: count(combined),
            };
            (
                queues(RX, TX, COMBINED),
                queues(RX_MAX, TX_MAX, COMBINED_MAX),
            )
        })
    }

    pub fn set_queues(&mut self, interface: &str, queues: Queues) -> Result<(), Denial> {
        let attributes = of(interface, OMIT_REPLY)
            .with(number(RX, queues.rx))
            .with(number(TX, queues.tx))
            .with(number(COMBINED, queues.combined));
        self.set(SET, &attributes)
    }
}
