//! IPv4 neighbours of a link: their Ethernet addresses, learnt by ARP or set by an administrator.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use isolane_wire::ethernet::MacAddress;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::RouteType;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::limits::MAX_NEIGHBOURS;
use crate::netlink::{NetlinkError, Rtnetlink};

/// Reachability state of a neighbour (RFC 4861 §7.3.2, which Linux follows for ARP too).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Recently confirmed, or being confirmed while the old address is in use (REACHABLE, DELAY, PROBE).
    Confirmed,
    /// Unconfirmed for a while; in use until a probe fails (STALE).
    Stale,
    /// Set by an administrator (PERMANENT, NOARP).
    Permanent,
    /// Unresolved: the first request is pending (INCOMPLETE).
    Asked,
    /// Unreachable: no answer (FAILED).
    Failed,
}

impl Certainty {
    pub(crate) fn of(state: NeighbourState) -> Certainty {
        match state {
            NeighbourState::Reachable | NeighbourState::Delay | NeighbourState::Probe => {
                Certainty::Confirmed
            }
            NeighbourState::Stale => Certainty::Stale,
            NeighbourState::Permanent | NeighbourState::Noarp => Certainty::Permanent,
            NeighbourState::Failed => Certainty::Failed,
            _ => Certainty::Asked,
        }
    }
}

/// Neighbour entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Last known Ethernet address, which may be outdated.
    pub mac: Option<MacAddress>,
    /// Reachability state.
    pub certainty: Certainty,
    /// Number of the last dump that contained the neighbour.
    pub round: u32,
}

impl Neighbour {
    /// Address to which frames may be sent now.
    #[must_use]
    pub fn usable(&self) -> Option<MacAddress> {
        match self.certainty {
            Certainty::Confirmed | Certainty::Stale | Certainty::Permanent => self.mac,
            Certainty::Asked | Certainty::Failed => None,
        }
    }
}

/// Neighbours by IPv4 address, at most [`MAX_NEIGHBOURS`].
#[derive(Debug)]
pub struct Neighbours {
    known: HashMap<[u8; 4], Neighbour>,
    refused: u64,
}

impl Neighbours {
    pub(crate) fn new() -> Neighbours {
        Neighbours {
            known: HashMap::with_capacity(MAX_NEIGHBOURS),
            refused: 0,
        }
    }

    /// Adds or updates a neighbour; returns whether the usable address changed.
    pub fn insert(&mut self, address: [u8; 4], neighbour: Neighbour) -> bool {
        if let Some(known) = self.known.get_mut(&address) {
            let has_changed = known.usable() != neighbour.usable();
            *known = neighbour;
            return has_changed;
        }
        if self.known.len() == MAX_NEIGHBOURS {
            self.refused += 1;
            return false;
        }
        self.known.insert(address, neighbour);
        true
    }

    /// Removes a neighbour; returns whether it was known.
    pub(crate) fn remove(&mut self, address: [u8; 4]) -> bool {
        self.known.remove(&address).is_some()
    }

    /// Ends a dump: removes neighbours that the dump did not contain; returns whether there were any.
    pub(crate) fn end_dump(&mut self, round: u32) -> bool {
        let before = self.known.len();
        self.known.retain(|_, neighbour| neighbour.round == round);
        self.known.len() != before
    }

    /// Neighbour of an address.
    #[must_use]
    pub fn get(&self, address: [u8; 4]) -> Option<&Neighbour> {
        self.known.get(&address)
    }

    /// Number of neighbours refused because the table was full.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns whether the table is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.known.len() == MAX_NEIGHBOURS
    }

    /// All neighbours, in no order.
    pub fn iter(&self) -> impl Iterator<Item = ([u8; 4], &Neighbour)> {
        self.known.iter().map(|(address, known)| (*address, known))
    }
}

impl Rtnetlink {
    /// Adds a permanent neighbour, for which no ARP request is sent.
    pub fn add_permanent_neighbour(
        &mut self,
        index: u32,
        neighbour: Ipv4Addr,
        hardware_address: &[u8],
    ) -> Result<(), NetlinkError> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            NeighbourAttribute::Destination(NeighbourAddress::Inet(neighbour)),
            NeighbourAttribute::LinkLayerAddress(hardware_address.to_vec()),
        ];
        let message = RouteNetlinkMessage::NewNeighbour(message);
        self.request(&message, NLM_F_CREATE | NLM_F_REPLACE)
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: [u8; 4] = [10, 0, 0, 2];

    fn neighbour(last: u8, certainty: Certainty) -> Neighbour {
        Neighbour {
            mac: Some(MacAddress([2, 0, 0, 0, 0, last])),
            certainty,
            round: 1,
        }
    }

    #[test]
    fn only_a_change_of_where_frames_go_is_a_change() {
        let mut neighbours = Neighbours::new();
        assert!(neighbours.insert(PEER, neighbour(1, Certainty::Confirmed)));
        assert!(!neighbours.insert(PEER, neighbour(1, Certainty::Stale)));
        assert!(neighbours.insert(PEER, neighbour(2, Certainty::Confirmed)));
        assert!(neighbours.insert(PEER, neighbour(2, Certainty::Failed)));
        assert!(!neighbours.insert(PEER, neighbour(3, Certainty::Asked)));
        assert!(neighbours.remove(PEER));
        assert!(!neighbours.remove(PEER));
    }

    #[test]
    fn a_neighbour_that_failed_or_has_not_answered_is_not_used() {
        for certainty in [Certainty::Failed, Certainty::Asked] {
            assert_eq!(neighbour(1, certainty).usable(), None);
        }
        for certainty in [Certainty::Confirmed, Certainty::Stale, Certainty::Permanent] {
            assert!(neighbour(1, certainty).usable().is_some());
        }
    }

    #[test]
    fn a_full_table_refuses_newcomers_and_keeps_following_those_it_has() {
        let mut neighbours = Neighbours::new();
        for number in 0..MAX_NEIGHBOURS as u32 {
            neighbours.insert(number.to_be_bytes(), neighbour(1, Certainty::Confirmed));
        }
        assert!(!neighbours.insert([1, 0, 0, 0], neighbour(1, Certainty::Confirmed)));
        assert_eq!(neighbours.refused(), 1);
        assert!(neighbours.insert([0, 0, 0, 0], neighbour(2, Certainty::Confirmed)));
    }
}
