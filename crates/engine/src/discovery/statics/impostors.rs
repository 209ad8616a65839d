//! Rejection of messages that impersonate a described participant. No valid sender has a prefix without a start. A
//! participant that announces nothing sends no SPDP. Only the described source address is trusted.

use isolane_wire::{guid::GuidPrefix, locator::Locator, time::Instant};

use super::{
    Announces,
    names::{NOT_HEARD, split, start_of},
};
use crate::engine::Engine;

impl Engine {
    /// Returns whether a prefix is that of a described participant without a start. It is in the tables until the first
    /// datagram arrives, but no real sender has it: anybody who knows the description can compute it.
    #[inline]
    pub(crate) fn is_nobodys(&mut self, prefix: GuidPrefix) -> bool {
        split(prefix).1 == NOT_HEARD && self.is_described_name(prefix)
    }

    #[cold]
    #[inline(never)]
    fn is_described_name(&mut self, prefix: GuidPrefix) -> bool {
        let is_described = self.static_named(prefix).is_some() || self.is_any_start_of_this(prefix);
        self.counters.static_impostors += u64::from(is_described);
        is_described
    }

    /// Returns whether an SPDP announcement is accepted. Announcements in the name of a described participant are
    /// rejected if they come from another address, or if the participant is described to announce nothing.
    /// Announcements of other participants are rejected if this one announces nothing itself.
    pub(in crate::discovery) fn admits(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        source: Locator,
        is_farewell: bool,
    ) -> bool {
        let is_described = self.config.described.is_some();
        if is_described && start_of(self.guid_prefix(), prefix).is_some() {
            // Another participant uses our own name.
            self.counters.static_impostors += 1;
            return false;
        }
        let Some((which, start)) = self.static_named(prefix) else {
            return self.announces() != Announces::Nothing;
        };
        let Some(peer) = self.statics.get_mut(which) else {
            return false;
        };
        // Nothing would ever revoke a forged farewell of a participant that announces nothing.
        let is_silent = peer.described.announces == Announces::Nothing;
        if is_silent || source.ipv4() != Some(peer.described.address) {
            self.counters.static_impostors += 1;
            return false;
        }
        if !is_farewell {
            self.meet(now, prefix, source, true);
            return true;
        }
        let is_its = peer.start == start;
        if is_its {
            peer.left = Some(start);
        }
        is_its
    }
}
