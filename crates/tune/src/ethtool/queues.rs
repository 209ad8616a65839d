//! How many queues a device has.

use super::{Ethtool, OMIT_REPLY, of};
use crate::facts::Queues;
use crate::netlink::{Denial, Read, number};

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
    pub(crate) fn queues(&mut self, interface: &str) -> Result<Option<(Queues, Queues)>, Denial> {
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

    pub(crate) fn set_queues(&mut self, interface: &str, queues: Queues) -> Result<(), Denial> {
        let attributes = of(interface, OMIT_REPLY)
            .with(number(RX, queues.rx))
            .with(number(TX, queues.tx))
            .with(number(COMBINED, queues.combined));
        self.set(SET, &attributes)
    }
}
