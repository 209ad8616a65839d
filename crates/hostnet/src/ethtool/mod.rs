//! What drivers say and take by the generic netlink family `ethtool` (Linux 5.6): queues, rings,
//! interrupts, offloads, time stamps.
//!
//! Numbers are those of `linux/ethtool_netlink.h`. Messages are made here, and not taken from a
//! crate, for the one there is sets nothing but queues, and brings an asynchronous runtime's parts.

mod channels;
mod coalescing;
mod features;
pub mod ioctl;
pub mod legacy;
pub mod ntuple;
pub mod offload;
mod rings;
pub mod rss;
mod timestamps;

pub use self::channels::Queues;
pub use self::coalescing::Coalescing;
pub use self::features::Feature;
pub use self::rings::RingSizes;
pub use self::timestamps::Timestamps;
use crate::netlink::{Attributes, Denial, Family, Read, flag, nest, number, text};

/// The header of each request: which device, and how to answer.
const HEADER: u16 = 1;
const DEVICE_NAME: u16 = 2;
const FLAGS: u16 = 3;
/// In FLAGS: what was changed need not be told.
const OMIT_REPLY: u32 = 2;

/// A connection to the family.
pub struct Ethtool(Family);

impl Ethtool {
    pub fn open() -> Result<Self, Denial> {
        Family::open("ethtool").map(Self)
    }

    /// Asks of a device, and has `parse` read the answer.
    fn get<T>(
        &mut self,
        command: u8,
        interface: &str,
        parse: impl Fn(Read<'_>) -> T,
    ) -> Result<Option<T>, Denial> {
        let mut found = None;
        self.0.ask(command, &of(interface, 0), |answer| {
            found = Some(parse(answer));
        })?;
        Ok(found)
    }

    fn set(&mut self, command: u8, attributes: &Attributes) -> Result<(), Denial> {
        self.0.ask(command, attributes, |_| {})
    }
}

/// The header that names a device.
fn of(interface: &str, flags: u32) -> Attributes {
    let mut header = Attributes::new().with(text(DEVICE_NAME, interface));
    if flags != 0 {
        header = header.with(number(FLAGS, flags));
    }
    Attributes::new().with(nest(HEADER, &header))
}

/// Attributes of a set of bits, where each is named.
mod bits {
    pub(super) const BITS: u16 = 3;
    pub(super) const BIT: u16 = 1;
    pub(super) const NAME: u16 = 2;
    pub(super) const VALUE: u16 = 3;
}

/// Names of a set's bits, and whether each is set. In sets without a mask all that are listed are.
fn bit_names(set: Read<'_>) -> impl Iterator<Item = (String, bool)> {
    let list = set.nest(bits::BITS).unwrap_or(Read(&[]));
    list.all()
        .filter(|(kind, _)| *kind == bits::BIT)
        .filter_map(|(_, bit)| {
            let bit = Read(bit);
            Some((bit.text(bits::NAME)?, bit.has(bits::VALUE)))
        })
}

/// A set in which one bit is to be changed.
fn one_bit(name: &str, is_set: bool) -> Attributes {
    let mut bit = Attributes::new().with(text(bits::NAME, name));
    if is_set {
        bit = bit.with(flag(bits::VALUE));
    }
    let list = Attributes::new().with(nest(bits::BIT, &bit));
    Attributes::new().with(nest(bits::BITS, &list))
}

#[cfg(test)]
mod tests;
