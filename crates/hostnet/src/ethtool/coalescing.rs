//! When a device interrupts.
//!
//! Drivers look at a whole request, and refuse it for a field that says nothing new, or that another
//! one of it forbids. So only what differs is sent, in an order that all of them take: ice and iavf
//! let nobody set times while the driver moves them (`ice_set_rc_coalesce`, `iavf_set_itr_per_queue`);
//! igc and igb, whose queues share an interrupt, have the times of sending follow those of receiving,
//! and let nobody set them (`igc_ethtool_set_coalesce`).

use netlink_packet_core::DefaultNla;

use super::{Ethtool, OMIT_REPLY, of};
use crate::netlink::{Attributes, Denial, Read};
use serde::{Deserialize, Serialize};

/// When a device interrupts. A field that its driver does not have is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Coalescing {
    /// Microseconds after a received frame.
    pub rx_usecs: Option<u32>,
    /// Received frames.
    pub rx_frames: Option<u32>,
    /// Microseconds after a sent frame.
    pub tx_usecs: Option<u32>,
    /// Sent frames.
    pub tx_frames: Option<u32>,
    /// Whether the driver moves the receiving ones with the load.
    pub adaptive_rx: Option<bool>,
    /// Whether it moves the sending ones.
    pub adaptive_tx: Option<bool>,
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
    /// What the driver has of it: the kernel leaves out what it has not.
    pub fn coalescing(&mut self, interface: &str) -> Result<Option<Coalescing>, Denial> {
        self.get(GET, interface, parse)
    }

    /// Sets what is given; the rest stays as it is. Where queues of both ways share an interrupt, the time of received
    /// frames counts for both, and drivers refuse another one of sent frames (igb, igc): then it is left to follow,
    /// and reading it back tells whether it did.
    pub fn set_coalescing(
        &mut self,
        interface: &str,
        coalescing: Coalescing,
    ) -> Result<(), Denial> {
        let mut device = Device {
            ethtool: self,
            interface,
        };
        set(&mut device, coalescing)
    }
}

/// What takes requests: a driver, or a model of one.
pub(super) trait Interrupting {
    fn now(&mut self) -> Result<Coalescing, Denial>;
    fn send(&mut self, coalescing: Coalescing) -> Result<(), Denial>;
}

struct Device<'a> {
    ethtool: &'a mut Ethtool,
    interface: &'a str,
}

impl Interrupting for Device<'_> {
    fn now(&mut self) -> Result<Coalescing, Denial> {
        let now = self.ethtool.coalescing(self.interface)?;
        Ok(now.unwrap_or_default())
    }

    fn send(&mut self, coalescing: Coalescing) -> Result<(), Denial> {
        self.ethtool.set(SET, &request(self.interface, coalescing))
    }
}

/// Receiving first, and then what of sending has not followed.
pub(super) fn set(device: &mut dyn Interrupting, wanted: Coalescing) -> Result<(), Denial> {
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

/// What there is of each direction.
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

/// What brings a direction from what stands to what is wanted: at most two requests.
fn changes(now: Times, wanted: Times) -> impl Iterator<Item = Times> {
    let times = Times {
        usecs: changed(now.usecs, wanted.usecs),
        frames: changed(now.frames, wanted.frames),
        adaptive: None,
    };
    // Whether the driver is to move them afterwards, also if nothing is said of that.
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

/// What is wanted, if it does not stand already.
fn changed<T: PartialEq>(now: Option<T>, wanted: Option<T>) -> Option<T> {
    wanted.filter(|wanted| now.as_ref() != Some(wanted))
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
