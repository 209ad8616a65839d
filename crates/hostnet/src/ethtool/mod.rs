//! Settings of a network driver: the generic netlink family `ethtool` (Linux 5.6), and ioctls for what it lacks.
//!
//! [`Ethtool`] reads and sets channels, rings, interrupt coalescing and offloads by netlink, with the numbers of
//! `linux/ethtool_netlink.h`. Three things use the ioctl: ntuple rules ([`ntuple`]), which netlink lacks; RSS
//! ([`rss`]), which netlink reads since Linux 6.3 and sets since 6.17; and the driver's name ([`driver`]).

mod coalescing;
mod ioctl;
pub mod ntuple;
pub mod rss;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use self::coalescing::Coalescing;
pub use self::ioctl::driver;
pub use self::ntuple::{FlowRule, FlowRules};
pub use self::rss::ReceiveHash;
use crate::netlink::{AttributeReader, Attributes, Family, NetlinkError, flag, nest, number, text};

/// Header of each request: the device, and flags.
const HEADER: u16 = 1;
const DEVICE_NAME: u16 = 2;
const FLAGS: u16 = 3;
/// Value of FLAGS: a change is not repeated in the answer.
const OMIT_REPLY: u32 = 2;

/// Commands and attributes of channels, rings, features and time stamps.
const CHANNELS_GET: u8 = 17;
const CHANNELS_SET: u8 = 18;
const CHANNELS_RX_MAX: u16 = 2;
const CHANNELS_TX_MAX: u16 = 3;
const CHANNELS_COMBINED_MAX: u16 = 5;
const CHANNELS_RX: u16 = 6;
const CHANNELS_TX: u16 = 7;
const CHANNELS_COMBINED: u16 = 9;
const RINGS_GET: u8 = 15;
const RINGS_SET: u8 = 16;
const RINGS_RX_MAX: u16 = 2;
const RINGS_TX_MAX: u16 = 5;
const RINGS_RX: u16 = 6;
const RINGS_TX: u16 = 9;
const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
/// All features; a bit is set where the device can change it (`hw_features`).
const FEATURES_CHANGEABLE: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
/// Features that cannot be changed.
const FEATURES_FIXED: u16 = 5;
const TIMESTAMPS_GET: u8 = 25;
const TIMESTAMPS_MODES: u16 = 2;
const TIMESTAMPS_CLOCK: u16 = 5;

/// Connection to the family, in the network namespace of the thread that opened it.
pub struct Ethtool(Family);

impl Ethtool {
    /// Opens the connection.
    ///
    /// # Errors
    /// [`NetlinkError`]; `ENOENT` if the kernel lacks the family.
    pub fn open() -> Result<Self, NetlinkError> {
        Family::open("ethtool").map(Self)
    }

    fn get<T>(
        &mut self,
        command: u8,
        interface: &str,
        parse: impl Fn(AttributeReader<'_>) -> T,
    ) -> Result<Option<T>, NetlinkError> {
        let answers = self.0.request(command, &of(interface, 0))?;
        Ok(answers.last().map(|answer| parse(AttributeReader(answer))))
    }

    fn set(&mut self, command: u8, attributes: &Attributes) -> Result<(), NetlinkError> {
        self.0.request(command, attributes).map(drop)
    }
}

/// Header that names a device.
fn of(interface: &str, flags: u32) -> Attributes {
    let header = Attributes::new()
        .with(text(DEVICE_NAME, interface))
        .with_number(FLAGS, Some(flags).filter(|flags| *flags != 0));
    Attributes::new().with(nest(HEADER, &header))
}

/// Attributes of a bit set in the verbose format, a list of bits with their names.
mod bits {
    pub(super) const BITS: u16 = 3;
    pub(super) const BIT: u16 = 1;
    pub(super) const NAME: u16 = 2;
    pub(super) const VALUE: u16 = 3;
}

/// Names of a set's bits, and the value of each. A set without a mask lists only bits that are set.
fn bit_names(set: AttributeReader<'_>) -> impl Iterator<Item = (String, bool)> {
    let list = set.nest(bits::BITS).unwrap_or(AttributeReader(&[]));
    list.all()
        .filter(|(kind, _)| *kind == bits::BIT)
        .filter_map(|(_, bit)| {
            let bit = AttributeReader(bit);
            Some((bit.text(bits::NAME)?, bit.has(bits::VALUE)))
        })
}

/// Bit set that changes these bits alone.
fn bits_to(names: &[&str], is_set: bool) -> Attributes {
    let mut list = Attributes::new();
    for name in names {
        let mut bit = Attributes::new().with(text(bits::NAME, name));
        if is_set {
            bit = bit.with(flag(bits::VALUE));
        }
        list = list.with(nest(bits::BIT, &bit));
    }
    Attributes::new().with(nest(bits::BITS, &list))
}

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
        self.get(CHANNELS_GET, interface, |answer: AttributeReader<'_>| {
            let [now, most] = [
                [CHANNELS_RX, CHANNELS_TX, CHANNELS_COMBINED],
                [CHANNELS_RX_MAX, CHANNELS_TX_MAX, CHANNELS_COMBINED_MAX],
            ]
            .map(|kinds| {
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
            .with(number(CHANNELS_RX, queues.rx))
            .with(number(CHANNELS_TX, queues.tx))
            .with(number(CHANNELS_COMBINED, queues.combined));
        self.set(CHANNELS_SET, &attributes)
    }
}

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
        self.get(RINGS_GET, interface, |answer: AttributeReader<'_>| {
            let [now, most] = [[RINGS_RX, RINGS_TX], [RINGS_RX_MAX, RINGS_TX_MAX]].map(|kinds| {
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
            .with(number(RINGS_RX, rings.rx))
            .with(number(RINGS_TX, rings.tx));
        self.set(RINGS_SET, &attributes)
    }
}

/// State of an offload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Feature {
    /// True if the offload is on.
    pub is_on: bool,
    /// True if the offload can be switched.
    pub is_changeable: bool,
}

impl Ethtool {
    /// Offloads by kernel name. Those that are off and fixed are omitted: the kernel lists them although the device
    /// lacks them.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn features(&mut self, interface: &str) -> Result<BTreeMap<String, Feature>, NetlinkError> {
        Ok(self
            .get(FEATURES_GET, interface, parse_features)?
            .unwrap_or_default())
    }

    /// Switches offloads; those the device cannot switch are left unchanged.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn set_features(
        &mut self,
        interface: &str,
        names: &[&str],
        is_on: bool,
    ) -> Result<(), NetlinkError> {
        let wanted = nest(FEATURES_WANTED, &bits_to(names, is_on));
        self.set(FEATURES_SET, &of(interface, OMIT_REPLY).with(wanted))
    }
}

fn parse_features(answer: AttributeReader<'_>) -> BTreeMap<String, Feature> {
    let set = |kind| answer.nest(kind).unwrap_or(AttributeReader(&[]));
    let names = |kind| bit_names(set(kind)).map(|(name, _)| name).collect();
    let [active, fixed]: [BTreeSet<String>; 2] = [names(FEATURES_ACTIVE), names(FEATURES_FIXED)];
    bit_names(set(FEATURES_CHANGEABLE))
        .map(|(name, can_be_switched)| {
            let feature = Feature {
                is_on: active.contains(&name),
                is_changeable: can_be_switched && !fixed.contains(&name),
            };
            (name, feature)
        })
        .filter(|(_, feature)| feature.is_on || feature.is_changeable)
        .collect()
}

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
        self.get(TIMESTAMPS_GET, interface, |answer: AttributeReader<'_>| {
            let modes = answer
                .nest(TIMESTAMPS_MODES)
                .unwrap_or(AttributeReader(&[]));
            let has = |name: &str| bit_names(modes).any(|(mode, _)| mode == name);
            Timestamps {
                hardware_tx: has("hardware-transmit"),
                hardware_rx: has("hardware-receive"),
                clock: answer.number(TIMESTAMPS_CLOCK),
            }
        })
    }
}

#[cfg(test)]
mod tests;
