//! State of the monitored link and its IPv4 addresses.

use isolane_wire::ethernet::MacAddress;

use crate::limits::MAX_ADDRESSES;

/// IPv4 address of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// IPv4 address.
    pub address: [u8; 4],
    /// Prefix length of its network.
    pub prefix_bits: u8,
    /// True for a secondary address, after another of the same network: a source only if a route names it.
    pub is_secondary: bool,
    /// Round of the last dump that contained it.
    pub round: u32,
}

impl Address {
    fn shares_network_with(&self, other: [u8; 4]) -> bool {
        let ignored = 32 - u32::from(self.prefix_bits.min(32));
        let difference = u32::from_be_bytes(self.address) ^ u32::from_be_bytes(other);
        // Rust has no shift by all 32 bits.
        difference.checked_shr(ignored).unwrap_or(0) == 0
    }
}

/// Last known state of the link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceState {
    /// Index in this network namespace.
    pub index: u32,
    /// Name, which an administrator may change at any time.
    pub name: String,
    /// True if administratively up (IFF_UP).
    pub is_up: bool,
    /// True if it has a carrier (IFF_LOWER_UP).
    pub has_carrier: bool,
    /// True if it can multicast.
    pub is_multicast: bool,
    /// True if deleted, or moved to another network namespace, which is final: its AF_XDP sockets are dead.
    pub is_gone: bool,
    /// Size of the largest IP packet in bytes.
    pub mtu_bytes: usize,
    /// Ethernet address; `None` if the link is not Ethernet with neighbours.
    pub mac: Option<MacAddress>,
    addresses: Vec<Address>,
}

impl DeviceState {
    pub(crate) fn new(index: u32) -> DeviceState {
        DeviceState {
            index,
            addresses: Vec::with_capacity(MAX_ADDRESSES),
            ..DeviceState::default()
        }
    }

    /// IPv4 addresses, in the kernel's order.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns whether frames can be sent.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_up && self.has_carrier && !self.is_gone
    }

    /// Source address that the kernel would choose towards `neighbour`: the first of the same network, else the first.
    #[must_use]
    pub fn source_for(&self, neighbour: Option<[u8; 4]>) -> Option<[u8; 4]> {
        let mut primary = self.addresses.iter().filter(|known| !known.is_secondary);
        let near = neighbour.and_then(|neighbour| {
            let mut primary = primary.clone();
            primary.find(|known| known.shares_network_with(neighbour))
        });
        near.or_else(|| primary.next())
            .map(|address| address.address)
    }

    /// Adds or updates an address; returns whether anything changed.
    pub fn insert(&mut self, address: Address) -> bool {
        let is_same = |known: &&mut Address| {
            known.address == address.address && known.prefix_bits == address.prefix_bits
        };
        if let Some(known) = self.addresses.iter_mut().find(is_same) {
            let has_changed = known.is_secondary != address.is_secondary;
            *known = address;
            return has_changed;
        }
        let has_room = self.addresses.len() < MAX_ADDRESSES;
        if has_room {
            self.addresses.push(address);
        }
        has_room
    }

    /// Removes an address; returns whether it was known.
    pub fn remove(&mut self, address: [u8; 4], prefix_bits: u8) -> bool {
        let before = self.addresses.len();
        self.addresses
            .retain(|known| known.address != address || known.prefix_bits != prefix_bits);
        self.addresses.len() != before
    }

    /// Ends a dump: removes addresses that it did not contain; returns whether there were any.
    pub(super) fn end_dump(&mut self, round: u32) -> bool {
        let before = self.addresses.len();
        self.addresses.retain(|known| known.round == round);
        self.addresses.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(address: [u8; 4], prefix_bits: u8) -> Address {
        Address {
            address,
            prefix_bits,
            is_secondary: false,
            round: 1,
        }
    }

    #[test]
    fn the_source_is_of_the_neighbours_network_if_there_is_one() {
        let mut device = DeviceState::new(1);
        assert_eq!(device.source_for(None), None);
        device.insert(address([10, 0, 0, 1], 24));
        device.insert(address([192, 0, 2, 1], 24));
        assert_eq!(
            device.source_for(Some([192, 0, 2, 9])),
            Some([192, 0, 2, 1])
        );
        assert_eq!(
            device.source_for(Some([172, 16, 0, 1])),
            Some([10, 0, 0, 1])
        );
        assert_eq!(device.source_for(None), Some([10, 0, 0, 1]));
    }

    #[test]
    fn nothing_is_sent_from_a_secondary_address() {
        let mut device = DeviceState::new(1);
        device.insert(Address {
            is_secondary: true,
            ..address([10, 0, 0, 7], 24)
        });
        assert_eq!(device.source_for(None), None);
        device.insert(address([10, 0, 0, 1], 24));
        assert_eq!(device.source_for(Some([10, 0, 0, 2])), Some([10, 0, 0, 1]));
    }

    #[test]
    fn addresses_come_go_and_are_bounded() {
        let mut device = DeviceState::new(1);
        assert!(device.insert(address([10, 0, 0, 1], 24)));
        assert!(!device.insert(address([10, 0, 0, 1], 24)), "known");
        assert!(device.remove([10, 0, 0, 1], 24));
        for number in 0..MAX_ADDRESSES as u8 {
            assert!(device.insert(address([10, 0, number, 1], 24)));
        }
        assert!(!device.insert(address([10, 1, 0, 1], 24)));
        assert!(device.end_dump(2), "none was seen in the second reading");
        assert!(device.addresses().is_empty());
    }
}
