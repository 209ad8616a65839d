//! Inbox of received SPDP announcements.
//!
//! It fills up when the discovery job gets no time, or when peers announce faster than one a step. No peer can fill it
//! alone: of each participant only its latest announcement and its farewell wait. Unknown participants share half of
//! the slots, so that a crowd of them, real or forged, cannot block the lease renewals of known ones. Announcements
//! that find no slot are counted; they are periodic and arrive again.

use alloc::{boxed::Box, vec, vec::Vec};

use isolane_wire::{guid::GuidPrefix, locator::Locator};

use crate::{config::Zeroed, limits::DISCOVERY_SLOT_BYTES};

/// Ring of SPDP announcements that wait for the discovery job, oldest first.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    slots: Vec<Waiting>,
    first: usize,
    used: usize,
}

/// Slot in use.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    sender: Sender,
    length: usize,
    is_farewell: bool,
}

/// Sender of an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) prefix: GuidPrefix,
    /// Source address of the datagram.
    pub(super) source: Locator,
    /// True if the participant was known on arrival.
    pub(super) is_known: bool,
}

/// Result of `Inbox::put`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// Stored in a free slot.
    Kept,
    /// Stored in place of an older announcement of the same participant.
    Replaced,
    /// Dropped: no slot is free for it.
    Refused,
}

impl Inbox {
    /// Creates an inbox with `slots` slots; `None` if memory is exhausted.
    pub(crate) fn try_new(slots: usize, zeroed: Zeroed) -> Option<Self> {
        let empty = Waiting {
            sender: Sender {
                prefix: GuidPrefix::UNKNOWN,
                source: Locator::INVALID,
                is_known: false,
            },
            length: 0,
            is_farewell: false,
        };
        Some(Self {
            bytes: zeroed(slots * DISCOVERY_SLOT_BYTES)?,
            slots: vec![empty; slots],
            first: 0,
            used: 0,
        })
    }

    /// Indices of the slots in use, oldest first.
    fn places(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.used).map(|nth| (self.first + nth) % self.slots.len())
    }

    /// Stores an announcement.
    pub(super) fn put(&mut self, sender: Sender, payload: &[u8], is_farewell: bool) -> Put {
        if payload.len() > DISCOVERY_SLOT_BYTES {
            return Put::Refused;
        }
        let is_its = |&at: &usize| self.slots[at].sender.prefix == sender.prefix;
        let mut of_sender = self.places().rev().filter(is_its);
        let newest = of_sender.next();
        let is_another = of_sender.next().is_some();
        drop(of_sender);
        if let Some(at) = newest.filter(|&at| self.slots[at].is_farewell == is_farewell) {
            self.fill(at, sender, payload, is_farewell);
            return Put::Replaced;
        }
        let is_unknown = |&at: &usize| !self.slots[at].sender.is_known;
        let are_strangers_full =
            !sender.is_known && self.places().filter(is_unknown).count() >= self.slots.len() / 2;
        if is_another || are_strangers_full || self.used == self.slots.len() {
            return Put::Refused;
        }
        let at = (self.first + self.used) % self.slots.len();
        self.fill(at, sender, payload, is_farewell);
        self.used += 1;
        Put::Kept
    }

    fn fill(&mut self, at: usize, sender: Sender, payload: &[u8], is_farewell: bool) {
        self.bytes[at * DISCOVERY_SLOT_BYTES..][..payload.len()].copy_from_slice(payload);
        self.slots[at] = Waiting {
            sender,
            length: payload.len(),
            is_farewell,
        };
    }

    pub(super) fn oldest(&self) -> Option<(Sender, &[u8], bool)> {
        if self.used == 0 {
            return None;
        }
        let waiting = &self.slots[self.first];
        let payload = &self.bytes[self.first * DISCOVERY_SLOT_BYTES..][..waiting.length];
        Some((waiting.sender, payload, waiting.is_farewell))
    }

    pub(super) fn remove_oldest(&mut self) {
        self.first = (self.first + 1) % self.slots.len();
        self.used -= 1;
    }

    /// Returns whether an announcement of a participant waits.
    pub(super) fn has(&self, prefix: GuidPrefix) -> bool {
        self.places()
            .any(|at| self.slots[at].sender.prefix == prefix)
    }
}
