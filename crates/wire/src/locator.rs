//! Locators (RTPS 2.5 §9.3.2.4) and locator lists.

use core::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr, SocketAddrV4},
};

use thiserror::Error;

use crate::{
    ByteOrder, Error,
    bytes::{Reader, Writer},
    limits::MAX_LOCATORS,
};

/// Locator list of an entity.
pub type LocatorList = heapless::Vec<Locator, MAX_LOCATORS>;

/// Size of a locator on the wire in bytes.
pub const LOCATOR_BYTES: usize = 24;

/// Locator: a transport address and port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator {
    /// Transport kind: a `KIND_*` constant, or a vendor's number.
    pub kind: i32,
    /// UDP port; 0 if the transport has no ports.
    pub port: u32,
    /// Address; an IPv4 address is in the last four bytes.
    pub address: [u8; 16],
}

impl Locator {
    /// Invalid locator kind.
    pub const KIND_INVALID: i32 = -1;
    /// UDP over IPv4.
    pub const KIND_UDPV4: i32 = 1;
    /// UDP over IPv6.
    pub const KIND_UDPV6: i32 = 2;
    /// Invalid locator (RTPS 2.5 §9.3.2.4, `LOCATOR_INVALID`).
    pub const INVALID: Self = Self {
        kind: Self::KIND_INVALID,
        port: 0,
        address: [0; 16],
    };

    /// Creates a UDPv4 locator.
    #[inline]
    #[must_use]
    pub const fn udpv4(address: [u8; 4], port: u16) -> Self {
        let [a, b, c, d] = address;
        Self {
            kind: Self::KIND_UDPV4,
            port: port as u32,
            address: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d],
        }
    }

    /// IPv4 address; `None` for other kinds.
    #[inline]
    #[must_use]
    pub const fn ipv4(&self) -> Option<[u8; 4]> {
        match (self.kind, self.address) {
            (Self::KIND_UDPV4, [.., a, b, c, d]) => Some([a, b, c, d]),
            _ => None,
        }
    }

    /// Returns true for a multicast address.
    #[inline]
    #[must_use]
    pub const fn is_multicast(&self) -> bool {
        match self.kind {
            Self::KIND_UDPV4 => self.address[12] & 0xf0 == 0xe0,
            Self::KIND_UDPV6 => self.address[0] == 0xff,
            _ => false,
        }
    }

    /// Returns true for a UDP locator, over IPv4 or IPv6.
    #[inline]
    #[must_use]
    pub const fn is_udp(&self) -> bool {
        matches!(self.kind, Self::KIND_UDPV4 | Self::KIND_UDPV6)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            kind: reader.i32()?,
            port: reader.u32()?,
            address: *reader.array()?,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        writer.i32(self.kind);
        writer.u32(self.port);
        writer.put(&self.address);
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Self::KIND_UDPV6 => {
                let address = Ipv6Addr::from(self.address);
                write!(formatter, "udp/[{address}]:{}", self.port)
            }
            kind => match self.ipv4() {
                Some(address) => {
                    write!(formatter, "udp/{}:{}", Ipv4Addr::from(address), self.port)
                }
                None => write!(formatter, "kind {kind}, port {}", self.port),
            },
        }
    }
}

impl From<SocketAddrV4> for Locator {
    fn from(address: SocketAddrV4) -> Self {
        Self::udpv4(address.ip().octets(), address.port())
    }
}

/// The locator is not a UDPv4 locator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the locator is not a UDP port of an IPv4 address")]
pub struct NotUdpV4;

impl TryFrom<Locator> for SocketAddrV4 {
    type Error = NotUdpV4;

    fn try_from(locator: Locator) -> Result<Self, NotUdpV4> {
        let address = locator.ipv4().ok_or(NotUdpV4)?;
        let port = u16::try_from(locator.port).map_err(|_| NotUdpV4)?;
        Ok(Self::new(address.into(), port))
    }
}

/// Locator list in its wire form. Parsing has checked its length, so iteration cannot fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocatorsView<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> LocatorsView<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let count = reader.u32()? as usize;
        let length = count.checked_mul(LOCATOR_BYTES).ok_or(Error::Truncated)?;
        let bytes = reader.take(length)?;
        let order = reader.order();
        Ok(Self { bytes, order })
    }

    /// Size on the wire in bytes: the count of locators, and the locators.
    pub(crate) fn buffer_len(&self) -> usize {
        4 + self.bytes.len()
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.len() as u32);
        self.iter().for_each(|locator| locator.write(writer));
    }

    /// Number of locators.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / LOCATOR_BYTES
    }

    /// Returns true if the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Iterates over the locators of all kinds, in wire order.
    pub fn iter(&self) -> impl Iterator<Item = Locator> + use<'a> {
        let order = self.order;
        self.bytes
            .chunks_exact(LOCATOR_BYTES)
            .filter_map(move |bytes| Locator::read(&mut Reader::new(bytes, order)).ok())
    }
}
