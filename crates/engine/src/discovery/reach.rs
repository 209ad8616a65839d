//! What is said to a participant before it has shown that it hears this one.
//!
//! An announcement proves nothing: anybody can send one that names somebody else's address. So until the
//! first ACKNACK of one of its readers has come, a participant is sent at most
//! [`ANSWER_FACTOR`] times the bytes that came in its name, and no samples at all: neither history, nor
//! what best-effort readers would get. A real one answers the first HEARTBEAT of SEDP, a round trip
//! after the two have heard of each other.
//!
//! That an ACKNACK can be forged as well is for authentication to mend, which there is none of yet.

use isolane_wire::{guid::GuidPrefix, locator::Locator, rtps::HEADER_BYTES};

use super::RemoteParticipant;
use crate::{engine::Engine, index::PeerIndex, limits::ANSWER_FACTOR, table::Table};

/// Bytes of a message around one announcement: RTPS header, and DATA without inline QoS (RTPS 2.5
/// §9.4.5.4).
pub(super) const AROUND_ANNOUNCEMENT_BYTES: usize = HEADER_BYTES + 24;

/// Whether a datagram in the name of a participant came from one of its addresses.
pub(crate) fn is_own_address(
    (participants, by_prefix): (&Table<RemoteParticipant>, &PeerIndex<GuidPrefix, u16>),
    prefix: GuidPrefix,
    source: Locator,
) -> bool {
    let Some(&index) = by_prefix.get(&prefix) else {
        // This participant itself.
        return true;
    };
    let Some(participant) = participants.get(index).filter(|peer| peer.is_proven()) else {
        return false;
    };
    let is_it = |locator: &Locator| locator.ipv4() == source.ipv4();
    let data = &participant.data;
    data.metatraffic_unicast.iter().any(is_it) || data.default_unicast.iter().any(is_it)
}

impl Engine {
    /// Whether a datagram in the name of a participant came from one of its addresses.
    pub(crate) fn is_own_address(&self, prefix: GuidPrefix, source: Locator) -> bool {
        let peers = (&self.participants, &self.participant_by_prefix);
        is_own_address(peers, prefix, source)
    }

    /// So many bytes came in the name of a participant.
    pub(crate) fn earn(&mut self, prefix: GuidPrefix, bytes: usize) {
        let Some(&index) = self.participant_by_prefix.get(&prefix) else {
            return;
        };
        if let Some(participant) = self.participants.get_mut(index)
            && !participant.hears_us
        {
            let earned = (bytes as u32).saturating_mul(ANSWER_FACTOR);
            participant.credit_bytes = participant.credit_bytes.saturating_add(earned);
        }
    }

    /// So many bytes are to be sent to a participant: returns them, or 0 if they are to be kept back.
    pub(crate) fn spend(&mut self, prefix: GuidPrefix, bytes: usize) -> usize {
        let found = self.participant_by_prefix.get(&prefix);
        let Some(participant) = found.and_then(|&index| self.participants.get_mut(index)) else {
            // This one itself.
            return bytes;
        };
        if participant.hears_us {
            return bytes;
        }
        match participant.credit_bytes.checked_sub(bytes as u32) {
            Some(left) => {
                participant.credit_bytes = left;
                bytes
            }
            None => {
                self.counters.answers_withheld += 1;
                0
            }
        }
    }

    /// Whether a participant, or this one itself, is known to hear this one.
    pub(crate) fn is_reachable(&self, prefix: GuidPrefix) -> bool {
        let found = self.participant_by_prefix.get(&prefix);
        let participant = found.and_then(|&index| self.participants.get(index));
        participant.map_or(prefix == self.guid_prefix(), |participant| {
            participant.hears_us
        })
    }

    /// A reader of this participant has answered: what it has announced is believed from now on. Its
    /// endpoints are told so one a step.
    pub(crate) fn note_reachable(&mut self, prefix: GuidPrefix) {
        let Some(&index) = self.participant_by_prefix.get(&prefix) else {
            return;
        };
        if let Some(participant) = self.participants.get_mut(index)
            && !core::mem::replace(&mut participant.hears_us, true)
        {
            participant.follow_from = Some(0);
            self.has_following = true;
            self.file_discovery();
        }
    }
}
