//! VLAN tags (IEEE 802.1Q §9.6).

/// Size of a tag in bytes: its ethertype and its control information.
pub const TAG_BYTES: usize = 4;

/// Ethertype of a customer tag, the usual one.
pub const CUSTOMER_TAG: u16 = 0x8100;

/// Ethertype of a service tag, which precedes a customer tag.
pub const SERVICE_TAG: u16 = 0x88a8;

/// Returns true if the ethertype is that of a tag.
#[inline]
#[must_use]
pub const fn is_tag(ether_type: u16) -> bool {
    matches!(ether_type, CUSTOMER_TAG | SERVICE_TAG)
}

/// VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// [`CUSTOMER_TAG`] or [`SERVICE_TAG`].
    pub kind: u16,
    /// Priority code point, 0 to 7.
    pub pcp: u8,
    /// Drop eligible indicator.
    pub drop_eligible: bool,
    /// VLAN identifier, 0 to 4095; 0 for a priority tag without VLAN.
    pub id: u16,
}

impl VlanTag {
    #[inline]
    pub(crate) fn read(&[a, b, c, d]: &[u8; TAG_BYTES]) -> Self {
        let control = u16::from_be_bytes([c, d]);
        Self {
            kind: u16::from_be_bytes([a, b]),
            pcp: (control >> 13) as u8,
            drop_eligible: control & 0x1000 != 0,
            id: control & 0x0fff,
        }
    }

    /// Encodes the lower three bits of the priority and the lower twelve of the identifier.
    #[inline]
    pub(crate) fn to_bytes(self) -> [u8; TAG_BYTES] {
        let [a, b] = self.kind.to_be_bytes();
        let drop_eligible = if self.drop_eligible { 0x1000 } else { 0 };
        let control = u16::from(self.pcp & 7) << 13 | drop_eligible | self.id & 0x0fff;
        let [c, d] = control.to_be_bytes();
        [a, b, c, d]
    }
}
