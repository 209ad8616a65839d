//! OWNERSHIP EXCLUSIVE (DDS 1.4 §2.2.3.9, §2.2.3.10): a reader accepts an instance's samples from its strongest writer
//! only.
//!
//! A writer becomes the owner with its first sample if there is none, or if it is stronger than the owner. Among
//! writers of equal strength the lower GUID wins, so that all readers decide alike. Samples of other writers are
//! received, acknowledged and counted.
//!
//! An instance loses its owner when the owner unregisters it, is not alive, is removed, or misses the reader's
//! DEADLINE. The next writer of a sample then owns the instance, until a stronger one writes. If more instances are
//! written than can be monitored, the instance whose owner has been silent longest loses it.

use isolane_wire::{cdr::KeyHash, guid::Guid, time::Instant};

use crate::slab::WriterProxyId;
use crate::timed_qos::event_order::EventOrder;

/// Writer that may own an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claimant {
    pub(crate) proxy: WriterProxyId,
    pub(crate) guid: Guid,
    pub(crate) strength: i32,
}

impl Claimant {
    fn is_stronger_than(&self, other: &Self) -> bool {
        let by_strength = self.strength.cmp(&other.strength);
        by_strength.then(other.guid.cmp(&self.guid)).is_gt()
    }
}

#[derive(Debug)]
pub(crate) struct Owners {
    instances: EventOrder<Option<Claimant>>,
}

impl Owners {
    pub(crate) fn new(instances: u16, seed: u64) -> Self {
        Self {
            instances: EventOrder::new(instances, seed),
        }
    }

    /// Returns whether the writer of a sample is the owner, or has become it by this sample.
    pub(crate) fn is_owner(&mut self, key: KeyHash, claimant: Claimant, at: Instant) -> bool {
        let owner = self.instances.get(key).and_then(|(_, owner)| *owner);
        let is_other = owner.is_some_and(|owner| owner.proxy != claimant.proxy);
        if is_other && owner.is_some_and(|owner| !claimant.is_stronger_than(&owner)) {
            return false;
        }
        if !self.instances.touch(key, at) {
            if let Some((oldest, _)) = self.instances.oldest() {
                self.instances.remove(oldest);
            }
            self.instances.touch(key, at);
        }
        if let Some(owner) = self.instances.get_mut(key) {
            *owner = Some(claimant);
        }
        true
    }

    /// Removes the owner of an instance.
    pub(crate) fn release(&mut self, key: KeyHash) {
        self.instances.remove(key);
    }

    /// Removes a writer as owner of all instances.
    pub(crate) fn release_all(&mut self, proxy: WriterProxyId) {
        for owner in self.instances.values_mut() {
            owner.take_if(|owner| owner.proxy == proxy);
        }
    }

    pub(crate) fn set_strength(&mut self, proxy: WriterProxyId, strength: i32) {
        for owner in self.instances.values_mut().flatten() {
            if owner.proxy == proxy {
                owner.strength = strength;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimant(number: u8, strength: i32) -> Claimant {
        Claimant {
            proxy: WriterProxyId(number.into()),
            guid: Guid::from_bytes([number; 16]),
            strength,
        }
    }

    #[test]
    fn the_strongest_owns_and_of_equals_the_lower_guid() {
        let mut owners = Owners::new(4, 1);
        let mut claim = |number, strength| {
            owners.is_owner([1; 16], claimant(number, strength), Instant::new(0))
        };
        assert!(claim(5, 1));
        assert!(!claim(6, 1), "the higher GUID");
        assert!(claim(4, 1), "the lower GUID");
        assert!(!claim(5, 1));
        assert!(claim(6, 2));
        assert!(!claim(4, 1));
        assert!(claim(6, 2));
    }

    #[test]
    fn an_instance_without_owner_is_owned_by_the_first_writer() {
        let mut owners = Owners::new(1, 1);
        let at = Instant::new(0);
        assert!(owners.is_owner([1; 16], claimant(1, 9), at));
        owners.release_all(WriterProxyId(1));
        assert!(owners.is_owner([1; 16], claimant(2, 1), at));
        owners.release([1; 16]);
        assert!(owners.is_owner([1; 16], claimant(3, 0), at));
        owners.set_strength(WriterProxyId(3), 5);
        assert!(!owners.is_owner([1; 16], claimant(2, 1), at));
        assert!(owners.is_owner([2; 16], claimant(2, 1), at));
        assert!(owners.is_owner([1; 16], claimant(2, 1), at));
    }
}
