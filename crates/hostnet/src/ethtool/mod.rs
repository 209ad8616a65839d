//! Settings of a network driver: the generic netlink family `ethtool` (Linux 5.6), and ioctls where it falls short.
//!
//! [`Ethtool`] reads and sets channels, rings, interrupt coalescing and offloads by netlink, with the numbers of
//! `linux/ethtool_netlink.h`. Three things use the ioctl: ntuple rules ([`ntuple`]), which netlink lacks; RSS
//! ([`rss`]), which it reads since Linux 6.3 and sets since 6.17; and the driver's name ([`driver`]).

mod channels;
mod coalescing;
mod features;
mod ioctl;
pub mod ntuple;
mod rings;
pub mod rss;
mod timestamps;

pub use self::channels::Queues;
pub use self::coalescing::Coalescing;
pub use self::features::Feature;
pub use self::ioctl::driver;
pub use self::ntuple::{FlowRule, FlowRules};
pub use self::rings::RingSizes;
pub use self::rss::ReceiveHash;
pub use self::timestamps::Timestamps;
use crate::netlink::{AttributeReader, Attributes, Family, NetlinkError, flag, nest, text};

/// Header of each request: the device, and flags.
const HEADER: u16 = 1;
const DEVICE_NAME: u16 = 2;
const FLAGS: u16 = 3;
/// Value of FLAGS: a change is not repeated in the answer.
const OMIT_REPLY: u32 = 2;

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

/// Attributes of a bit set in its verbose form, where each bit is named.
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

#[cfg(test)]
mod tests;
