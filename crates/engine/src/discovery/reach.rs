//! What is said to a participant before it has shown that it hears this one.
//!
//! An announcement proves nothing: anybody can send one that names somebody else's address. So until the
//! first ACKNACK of one of its readers has come, a participant is sent at most
//! [`ANSWER_FACTOR`] times the bytes that came in its name, and no samples at all: neither history, nor
//! what best-effort readers would get. A real one answers the first HEARTBEAT of SEDP, a round trip
//! after the two have heard of each other.
//!
//! That an ACKNACK can be forged as well is for authentication to mend, which there is none of yet.

use isolane_wire::{guid::GuidPrefix, rtps::HEADER_BYTES};

use crate::{engine::Engine, limits::ANSWER_FACTOR};

/// Bytes of a message around one announcement: RTPS header, and DATA without inline QoS (RTPS 2.5
/// §9.4.5.4).
pub(super) const AROUND_ANNOUNCEMENT_BYTES: usize = HEADER_BYTES + 24;

impl Engine {
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
            self.file_discovery();
        }
    }
}
