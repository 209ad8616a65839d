//! Link-layer headers of Linux "cooked" captures, versions 1 and 2 (LINKTYPE_LINUX_SLL and
//! LINKTYPE_LINUX_SLL2 of the tcpdump.org registry), as written by `tcpdump -i any`.
//!
//! A cooked header replaces the Ethernet header and gives the ethertype. VLAN tags may follow, as in an Ethernet frame.

use crate::{
    Error,
    limits::MAX_VLAN_TAGS,
    vlan::{TAG_BYTES, VlanTag, is_tag},
};

/// Size of a version 1 header in bytes.
pub const VERSION_1_BYTES: usize = 16;

/// Size of a version 2 header in bytes.
pub const VERSION_2_BYTES: usize = 20;

/// Version of the cooked header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SllVersion {
    /// LINKTYPE_LINUX_SLL.
    One,
    /// LINKTYPE_LINUX_SLL2.
    Two,
}

impl SllVersion {
    const fn header_bytes(self) -> usize {
        match self {
            Self::One => VERSION_1_BYTES,
            Self::Two => VERSION_2_BYTES,
        }
    }

    /// Offset of the ethertype.
    const fn protocol(self) -> usize {
        match self {
            Self::One => VERSION_1_BYTES - 2,
            Self::Two => 0,
        }
    }
}

/// Parsed cooked packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SllPacket<'a> {
    /// VLAN tags, outermost first.
    pub tags: heapless::Vec<VlanTag, MAX_VLAN_TAGS>,
    /// Ethertype of the payload.
    pub ether_type: u16,
    /// Bytes after header and tags.
    pub payload: &'a [u8],
}

impl<'a> SllPacket<'a> {
    /// Parses the header and up to two tags. If there are more tags, `ether_type` is the ethertype of the third.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn parse(version: SllVersion, bytes: &'a [u8]) -> Result<Self, Error> {
        let (header, mut payload) = bytes
            .split_at_checked(version.header_bytes())
            .ok_or(Error::Truncated)?;
        let at = version.protocol();
        let mut kind = [header[at], header[at + 1]];
        let mut tags = heapless::Vec::new();
        while is_tag(u16::from_be_bytes(kind)) && !tags.is_full() {
            let (tag, rest) = payload.split_first_chunk().ok_or(Error::Truncated)?;
            let [control_high, control_low, next_high, next_low] = *tag;
            let written: [u8; TAG_BYTES] = [kind[0], kind[1], control_high, control_low];
            // The loop condition checked the capacity.
            let _ = tags.push(VlanTag::read(&written));
            kind = [next_high, next_low];
            payload = rest;
        }
        Ok(Self {
            tags,
            ether_type: u16::from_be_bytes(kind),
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ethernet::EtherType;

    /// Builds a header of either version followed by the given bytes.
    fn cooked<const N: usize>(version: SllVersion, protocol: u16, behind: &[u8]) -> [u8; N] {
        let mut bytes = [0x55; N];
        let at = version.protocol();
        bytes[at..at + 2].copy_from_slice(&protocol.to_be_bytes());
        bytes[version.header_bytes()..].copy_from_slice(behind);
        bytes
    }

    #[test]
    fn both_versions_name_what_follows_them() {
        let one = cooked::<18>(SllVersion::One, EtherType::IPV4, b"ab");
        let two = cooked::<22>(SllVersion::Two, EtherType::IPV4, b"ab");
        for packet in [
            SllPacket::parse(SllVersion::One, &one),
            SllPacket::parse(SllVersion::Two, &two),
        ] {
            let packet = packet.unwrap();
            assert_eq!(packet.ether_type, EtherType::IPV4);
            assert_eq!(packet.payload, b"ab");
            assert!(packet.tags.is_empty());
        }
    }

    #[test]
    fn tags_stand_between_header_and_packet() {
        let tagged = [0xe0, 0x05, 0x08, 0x00, b'x'];
        let bytes = cooked::<21>(SllVersion::One, crate::vlan::CUSTOMER_TAG, &tagged);
        let packet = SllPacket::parse(SllVersion::One, &bytes).unwrap();
        assert_eq!((packet.tags[0].pcp, packet.tags[0].id), (7, 5));
        assert_eq!(packet.ether_type, EtherType::IPV4);
        assert_eq!(packet.payload, b"x");
    }

    #[test]
    fn what_is_cut_in_header_or_tag_is_truncated() {
        let tagged = [0xe0, 0x05, 0x08, 0x00];
        let bytes = cooked::<24>(SllVersion::Two, crate::vlan::CUSTOMER_TAG, &tagged);
        for length in 0..bytes.len() {
            let cut = SllPacket::parse(SllVersion::Two, &bytes[..length]);
            assert_eq!(cut, Err(Error::Truncated), "{length}");
        }
    }
}
