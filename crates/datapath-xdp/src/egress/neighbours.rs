//! The Ethernet addresses of neighbours on the device's link, as the kernel has found them.

use std::collections::HashMap;

use isolane_wire::ethernet::MacAddress;
use netlink_packet_route::neighbour::NeighbourState;

use crate::limits::MAX_NEIGHBOURS;

/// How sure the kernel is of a neighbour (RFC 4861 §7.3.2, which Linux follows for ARP too).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Confirmed of late, or being confirmed while the old address serves.
    Confirmed,
    /// Not confirmed for a while; it serves until a question finds otherwise.
    Stale,
    /// Said by an administrator, for good.
    Permanent,
    /// Being asked for the first time.
    Asked,
    /// It did not answer.
    Failed,
}

impl Certainty {
    pub(super) fn of(state: NeighbourState) -> Certainty {
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

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    /// Its Ethernet address, which may be one that no longer serves.
    pub(super) mac: Option<MacAddress>,
    pub(super) certainty: Certainty,
    /// The reading of the table in which it was last seen.
    pub(super) round: u32,
}

impl Neighbour {
    /// The address that frames may be sent to now.
    pub(super) fn usable(&self) -> Option<MacAddress> {
        match self.certainty {
            Certainty::Confirmed | Certainty::Stale | Certainty::Permanent => self.mac,
            Certainty::Asked | Certainty::Failed => None,
        }
    }
}

/// Neighbours by IPv4 address, within [`MAX_NEIGHBOURS`].
#[derive(Debug)]
pub(super) struct Neighbours {
    known: HashMap<[u8; 4], Neighbour>,
    refused: u64,
}

impl Neighbours {
    pub(super) fn new() -> Neighbours {
        Neighbours {
            known: HashMap::with_capacity(MAX_NEIGHBOURS),
            refused: 0,
        }
    }

    /// Takes in what the kernel says; whether frames go elsewhere now.
    pub(super) fn insert(&mut self, address: [u8; 4], neighbour: Neighbour) -> bool {
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

    /// Forgets a neighbour; whether it was known.
    pub(super) fn remove(&mut self, address: [u8; 4]) -> bool {
        self.known.remove(&address).is_some()
    }

    /// A reading ends: whoever was not seen in it is gone. Whether anybody is.
    pub(super) fn end_reading(&mut self, round: u32) -> bool {
        let before = self.known.len();
        self.known.retain(|_, neighbour| neighbour.round == round);
        self.known.len() != before
    }

    pub(super) fn get(&self, address: [u8; 4]) -> Option<&Neighbour> {
        self.known.get(&address)
    }

    /// How often there was no room for a neighbour.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    pub(super) fn is_full(&self) -> bool {
        self.known.len() == MAX_NEIGHBOURS
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = ([u8; 4], &Neighbour)> {
        self.known.iter().map(|(address, known)| (*address, known))
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
    fn whoever_failed_or_has_not_answered_yet_is_not_sent_to() {
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
