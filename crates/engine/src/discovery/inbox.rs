//! The box in which SPDP announcements wait for the discovery job.
//!
//! It is full when the discovery job gets no time, or when peers announce faster than one a step; what finds
//! no place is counted and comes again by itself.

use alloc::{boxed::Box, vec, vec::Vec};

use isolane_wire::guid::GuidPrefix;

use crate::limits::DISCOVERY_SLOT_BYTES;

/// SPDP announcements that wait for the discovery job, oldest first.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    /// Prefix of the sender, length, and whether it says good-bye.
    slots: Vec<(GuidPrefix, usize, bool)>,
    first: usize,
    used: usize,
}

impl Inbox {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            bytes: vec![0; slots * DISCOVERY_SLOT_BYTES].into_boxed_slice(),
            slots: vec![(GuidPrefix::UNKNOWN, 0, false); slots],
            first: 0,
            used: 0,
        }
    }

    /// Whether there was room.
    pub(super) fn put(&mut self, prefix: GuidPrefix, payload: &[u8], is_farewell: bool) -> bool {
        if self.used == self.slots.len() || payload.len() > DISCOVERY_SLOT_BYTES {
            return false;
        }
        let at = (self.first + self.used) % self.slots.len();
        self.bytes[at * DISCOVERY_SLOT_BYTES..][..payload.len()].copy_from_slice(payload);
        self.slots[at] = (prefix, payload.len(), is_farewell);
        self.used += 1;
        true
    }

    pub(super) fn oldest(&self) -> Option<(GuidPrefix, &[u8], bool)> {
        if self.used == 0 {
            return None;
        }
        let (prefix, length, is_farewell) = self.slots[self.first];
        let payload = &self.bytes[self.first * DISCOVERY_SLOT_BYTES..][..length];
        Some((prefix, payload, is_farewell))
    }

    pub(super) fn remove_oldest(&mut self) {
        self.first = (self.first + 1) % self.slots.len();
        self.used -= 1;
    }

    /// Whether something of this participant waits.
    pub(super) fn has(&self, prefix: GuidPrefix) -> bool {
        (0..self.used).any(|nth| self.slots[(self.first + nth) % self.slots.len()].0 == prefix)
    }
}
