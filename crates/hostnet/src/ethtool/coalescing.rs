//! Interrupt coalescing.
//!
//! A driver may reject a whole request because of one field: an unchanged one, or one that contradicts another. So
//! only differences are sent, in an order that all drivers accept. ice and iavf reject times while adaptive moderation
//! is on (`ice_set_rc_coalesce`, `iavf_set_itr_per_queue`). igc and igb, whose queue pairs share an interrupt, copy
//! the receive times to the transmit side and reject other transmit times (`igc_ethtool_set_coalesce`).

use netlink_packet_core::DefaultNla;
use serde::{Deserialize, Serialize};

use super::{Ethtool, OMIT_REPLY, of};
use crate::netlink::{AttributeReader, Attributes, NetlinkError};

/// Interrupt coalescing of a device. A field that its driver lacks is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Coalescing {
    /// Microseconds from a received frame to the interrupt.
    pub rx_usecs: Option<u32>,
    /// Received frames until the interrupt.
    pub rx_frames: Option<u32>,
    /// Microseconds from a sent frame to the interrupt.
    pub tx_usecs: Option<u32>,
    /// Sent frames until the interrupt.
    pub tx_frames: Option<u32>,
    /// True if the driver adapts the receive times to the load.
    pub adaptive_rx: Option<bool>,
    /// True if the driver adapts the transmit times to the load.
    pub adaptive_tx: Option<bool>,
}

impl Coalescing {
    /// Times and frame counts, with their names in ethtool.
    pub fn counts(&self) -> [(&'static str, Option<u32>); 4] {
        [
            ("rx-usecs", self.rx_usecs),
            ("rx-frames", self.rx_frames),
            ("tx-usecs", self.tx_usecs),
            ("tx-frames", self.tx_frames),
        ]
    }

    /// Switches of adaptive moderation, with their names in ethtool.
    pub fn adaptive(&self) -> [(&'static str, Option<bool>); 2] {
        [
            ("adaptive-rx", self.adaptive_rx),
            ("adaptive-tx", self.adaptive_tx),
        ]
    }

    /// Returns this value, with the fields that it lacks taken from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            rx_usecs: self.rx_usecs.or(other.rx_usecs),
            rx_frames: self.rx_frames.or(other.rx_frames),
            tx_usecs: self.tx_usecs.or(other.tx_usecs),
            tx_frames: self.tx_frames.or(other.tx_frames),
            adaptive_rx: self.adaptive_rx.or(other.adaptive_rx),
            adaptive_tx: self.adaptive_tx.or(other.adaptive_tx),
        }
    }
}

const GET: u8 = 19;
const SET: u8 = 20;
const RX_USECS: u16 = 2;
const RX_FRAMES: u16 = 3;
const TX_USECS: u16 = 6;
const TX_FRAMES: u16 = 7;
const ADAPTIVE_RX: u16 = 11;
const ADAPTIVE_TX: u16 = 12;

impl Ethtool {
    /// Current coalescing, without fields that the driver lacks.
    ///
    /// # Errors
    /// [`NetlinkError`]; `EOPNOTSUPP` if the driver does not report it.
    pub fn coalescing(&mut self, interface: &str) -> Result<Option<Coalescing>, NetlinkError> {
        self.get(GET, interface, parse)
    }

    /// Sets the fields that are given. Where a queue pair shares an interrupt (igb, igc), the transmit time follows the
    /// receive time; reading back shows whether it did.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn set_coalescing(
        &mut self,
        interface: &str,
        coalescing: Coalescing,
    ) -> Result<(), NetlinkError> {
        let mut device = Device {
            ethtool: self,
            interface,
        };
        set(&mut device, coalescing)
    }
}

/// Driver, or a model of one.
pub(super) trait Interrupting {
    fn now(&mut self) -> Result<Coalescing, NetlinkError>;
    fn send(&mut self, coalescing: Coalescing) -> Result<(), NetlinkError>;
}

struct Device<'a> {
    ethtool: &'a mut Ethtool,
    interface: &'a str,
}

impl Interrupting for Device<'_> {
    fn now(&mut self) -> Result<Coalescing, NetlinkError> {
        let now = self.ethtool.coalescing(self.interface)?;
        Ok(now.unwrap_or_default())
    }

    fn send(&mut self, coalescing: Coalescing) -> Result<(), NetlinkError> {
        self.ethtool.set(SET, &request(self.interface, coalescing))
    }
}

/// Sets the receive side first, then the transmit fields that have not followed.
pub(super) fn set(device: &mut dyn Interrupting, wanted: Coalescing) -> Result<(), NetlinkError> {
    for direction in [Direction::Receiving, Direction::Sending] {
        let now = direction.of(device.now()?);
        for change in changes(now, direction.of(wanted)) {
            device.send(direction.alone(change))?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Direction {
    Receiving,
    Sending,
}

/// Coalescing of one direction.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    usecs: Option<u32>,
    frames: Option<u32>,
    adaptive: Option<bool>,
}

impl Direction {
    fn of(self, coalescing: Coalescing) -> Times {
        match self {
            Self::Receiving => Times {
                usecs: coalescing.rx_usecs,
                frames: coalescing.rx_frames,
                adaptive: coalescing.adaptive_rx,
            },
            Self::Sending => Times {
                usecs: coalescing.tx_usecs,
                frames: coalescing.tx_frames,
                adaptive: coalescing.adaptive_tx,
            },
        }
    }

    fn alone(self, times: Times) -> Coalescing {
        match self {
            Self::Receiving => Coalescing {
                rx_usecs: times.usecs,
                rx_frames: times.frames,
                adaptive_rx: times.adaptive,
                ..Coalescing::default()
            },
            Self::Sending => Coalescing {
                tx_usecs: times.usecs,
                tx_frames: times.frames,
                adaptive_tx: times.adaptive,
                ..Coalescing::default()
            },
        }
    }
}

/// Requests that take a direction from `now` to `wanted`: at most two.
fn changes(now: Times, wanted: Times) -> impl Iterator<Item = Times> {
    let times = Times {
        usecs: changed(now.usecs, wanted.usecs),
        frames: changed(now.frames, wanted.frames),
        adaptive: None,
    };
    // The final adaptive setting, even if none is requested.
    let is_moved_then = wanted.adaptive.or(now.adaptive);
    let is_set_while_off = times != Times::default() && is_moved_then == Some(true);
    let (first, is_moved_now) = match is_set_while_off {
        true => (changed(now.adaptive, Some(false)), Some(false)),
        false => (changed(now.adaptive, wanted.adaptive), is_moved_then),
    };
    let first = Times {
        adaptive: first,
        ..times
    };
    let second = Times {
        adaptive: changed(is_moved_now, is_moved_then),
        ..Times::default()
    };
    let is_some = |change: &Times| *change != Times::default();
    [first, second].into_iter().filter(is_some)
}

/// Wanted value, if it differs.
fn changed<T: PartialEq>(now: Option<T>, wanted: Option<T>) -> Option<T> {
    wanted.filter(|wanted| now.as_ref() != Some(wanted))
}

pub(super) fn parse(answer: AttributeReader<'_>) -> Coalescing {
    Coalescing {
        rx_usecs: answer.number(RX_USECS),
        rx_frames: answer.number(RX_FRAMES),
        tx_usecs: answer.number(TX_USECS),
        tx_frames: answer.number(TX_FRAMES),
        adaptive_rx: answer.number(ADAPTIVE_RX).map(|value| value != 0),
        adaptive_tx: answer.number(ADAPTIVE_TX).map(|value| value != 0),
    }
}

/// Request that sets the given fields alone.
pub(super) fn request(interface: &str, coalescing: Coalescing) -> Attributes {
    let attributes = of(interface, OMIT_REPLY)
        .with_number(RX_USECS, coalescing.rx_usecs)
        .with_number(RX_FRAMES, coalescing.rx_frames)
        .with_number(TX_USECS, coalescing.tx_usecs)
        .with_number(TX_FRAMES, coalescing.tx_frames);
    let attributes = switch(attributes, ADAPTIVE_RX, coalescing.adaptive_rx);
    switch(attributes, ADAPTIVE_TX, coalescing.adaptive_tx)
}

/// Appends a switch of one byte, if it is given.
fn switch(attributes: Attributes, kind: u16, value: Option<bool>) -> Attributes {
    match value {
        Some(value) => attributes.with(DefaultNla::new(kind, vec![u8::from(value)])),
        None => attributes,
    }
}
