//! Ethernet frames, with up to two VLAN tags (IEEE 802.3 §3, IEEE 802.1Q §9).

use core::fmt;

use crate::{
    Error,
    limits::MAX_VLAN_TAGS,
    vlan::{TAG_BYTES, VlanTag, is_tag},
};

/// Size of the header without tags in bytes.
pub const HEADER_BYTES: usize = 14;

/// Offset of the ethertype or the first tag.
const ETHER_TYPE: usize = 12;

/// Ethertypes.
pub struct EtherType;

impl EtherType {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
}

/// MAC address of an interface or of a multicast group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Broadcast address.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Returns the MAC address of an IPv4 multicast group. It has only the lower 23 bits of the IPv4 address (RFC 1112
    /// §6.4).
    #[inline]
    #[must_use]
    pub const fn of_ipv4_group(group: [u8; 4]) -> Self {
        Self([0x01, 0x00, 0x5e, group[1] & 0x7f, group[2], group[3]])
    }

    /// Returns true for the address of a group, broadcast included.
    #[inline]
    #[must_use]
    pub const fn is_multicast(&self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(formatter, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Ethernet frame whose header and tags are checked to be complete.
#[derive(Debug, Clone)]
pub struct Frame<T: AsRef<[u8]>> {
    buffer: T,
    tags: usize,
}

impl<T: AsRef<[u8]>> Frame<T> {
    /// Checks a frame without preamble and frame check sequence. If there are more than two tags,
    /// [`ether_type`](Self::ether_type) returns the ethertype of the third.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    #[inline]
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let bytes = buffer.as_ref();
        let mut tags = 0;
        loop {
            let position = ETHER_TYPE + tags * TAG_BYTES;
            let rest = bytes.get(position..).ok_or(Error::Truncated)?;
            let ether_type = *rest.first_chunk::<2>().ok_or(Error::Truncated)?;
            if tags == MAX_VLAN_TAGS || !is_tag(u16::from_be_bytes(ether_type)) {
                return Ok(Self { buffer, tags });
            }
            tags += 1;
        }
    }

    #[inline]
    fn array<const N: usize>(&self, position: usize) -> [u8; N] {
        // `new_checked` verified that the header is complete.
        self.buffer.as_ref()[position..][..N]
            .try_into()
            .unwrap_or([0; N])
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> MacAddress {
        MacAddress(self.array(0))
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> MacAddress {
        MacAddress(self.array(6))
    }

    /// VLAN tags, outermost first.
    #[inline]
    pub fn tags(&self) -> impl Iterator<Item = VlanTag> {
        (0..self.tags).map(|index| VlanTag::read(&self.array(ETHER_TYPE + index * TAG_BYTES)))
    }

    /// Priority code point of the outermost tag; `None` without a tag.
    #[inline]
    pub fn pcp(&self) -> Option<u8> {
        self.tags().next().map(|tag| tag.pcp)
    }

    /// Ethertype of the payload, after the tags.
    #[inline]
    pub fn ether_type(&self) -> u16 {
        u16::from_be_bytes(self.array(ETHER_TYPE + self.tags * TAG_BYTES))
    }

    /// Size of header and tags in bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        HEADER_BYTES + self.tags * TAG_BYTES
    }
}

impl<'a, T: AsRef<[u8]> + ?Sized> Frame<&'a T> {
    /// Bytes after the header, including padding.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.buffer.as_ref()[self.header_len()..]
    }
}

/// Ethernet header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repr {
    /// Destination address.
    pub destination: MacAddress,
    /// Source address.
    pub source: MacAddress,
    /// VLAN tags, outermost first.
    pub tags: heapless::Vec<VlanTag, MAX_VLAN_TAGS>,
    /// Ethertype of the payload.
    pub ether_type: u16,
}

impl Repr {
    /// Reads the header of a checked frame.
    pub fn parse<T: AsRef<[u8]>>(frame: &Frame<T>) -> Self {
        Self {
            destination: frame.destination(),
            source: frame.source(),
            tags: frame.tags().collect(),
            ether_type: frame.ether_type(),
        }
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[inline]
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        HEADER_BYTES + self.tags.len() * TAG_BYTES
    }

    /// Writes the header to the front of `buffer` and returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len).
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let (addresses, mut rest) = buffer.split_at_mut(ETHER_TYPE);
        addresses[..6].copy_from_slice(&self.destination.0);
        addresses[6..].copy_from_slice(&self.source.0);
        for tag in &self.tags {
            let (head, behind) = rest.split_at_mut(TAG_BYTES);
            head.copy_from_slice(&tag.to_bytes());
            rest = behind;
        }
        rest[..2].copy_from_slice(&self.ether_type.to_be_bytes());
        self.buffer_len()
    }
}
