//! When a device interrupts.

use netlink_packet_core::DefaultNla;
use rustix::io::Errno;

use super::{Ethtool, OMIT_REPLY, of};
use crate::facts::Coalescing;
use crate::netlink::{Attributes, Denial, Read};

const GET: u8 = 19;
const SET: u8 = 20;
const RX_USECS: u16 = 2;
const RX_FRAMES: u16 = 3;
const TX_USECS: u16 = 6;
const TX_FRAMES: u16 = 7;
const ADAPTIVE_RX: u16 = 11;
const ADAPTIVE_TX: u16 = 12;

impl Ethtool {
    /// What the driver has of it: the kernel leaves out what it has not.
    pub(crate) fn coalescing(&mut self, interface: &str) -> Result<Option<Coalescing>, Denial> {
        self.get(GET, interface, parse)
    }

    /// Sets what is given; the rest stays as it is. Where queues of both ways share an interrupt, the time of received
    /// frames counts for both, and drivers refuse another one of sent frames (igb, igc): then it is left to follow,
    /// and reading it back tells whether it did.
    pub(crate) fn set_coalescing(
        &mut self,
        interface: &str,
        coalescing: Coalescing,
    ) -> Result<(), Denial> {
        let outcome = self.set(SET, &request(interface, coalescing));
        let is_refused =
            |denial: &Denial| denial.error.raw_os_error() == Some(Errno::INVAL.raw_os_error());
        let received = Coalescing {
            tx_usecs: None,
            ..coalescing
        };
        match outcome {
            Err(denial)
                if is_refused(&denial) && received != coalescing && received.rx_usecs.is_some() =>
            {
                // The first reason is the one that tells what is wrong.
                self.set(SET, &request(interface, received))
                    .map_err(|_| denial)
            }
            outcome => outcome,
        }
    }
}

pub(super) fn parse(answer: Read<'_>) -> Coalescing {
    Coalescing {
        rx_usecs: answer.number(RX_USECS),
        rx_frames: answer.number(RX_FRAMES),
        tx_usecs: answer.number(TX_USECS),
        tx_frames: answer.number(TX_FRAMES),
        adaptive_rx: answer.number(ADAPTIVE_RX).map(|value| value != 0),
        adaptive_tx: answer.number(ADAPTIVE_TX).map(|value| value != 0),
    }
}

/// What is given, and nothing else.
pub(super) fn request(interface: &str, coalescing: Coalescing) -> Attributes {
    let attributes = of(interface, OMIT_REPLY)
        .with_number(RX_USECS, coalescing.rx_usecs)
        .with_number(RX_FRAMES, coalescing.rx_frames)
        .with_number(TX_USECS, coalescing.tx_usecs)
        .with_number(TX_FRAMES, coalescing.tx_frames);
    let attributes = switch(attributes, ADAPTIVE_RX, coalescing.adaptive_rx);
    switch(attributes, ADAPTIVE_TX, coalescing.adaptive_tx)
}

/// Adds a switch of one byte, if it is given.
fn switch(attributes: Attributes, kind: u16, value: Option<bool>) -> Attributes {
    match value {
        Some(value) => attributes.with(DefaultNla::new(kind, vec![u8::from(value)])),
        None => attributes,
    }
}
