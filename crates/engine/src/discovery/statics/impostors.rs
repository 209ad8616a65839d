//! Who speaks in the name of a described participant, and is not it: nobody has a name without a start, one that
//! announces nothing neither comes nor goes by SPDP, and what another address announces is not believed.

use isolane_wire::{guid::GuidPrefix, locator::Locator, time::Instant};

use super::{
    Announces,
    names::{NOT_HEARD, split, start_of},
};
use crate::engine::Engine;

impl Engine {
    /// Whether a prefix is that of a described participant of which nothing has come. Everybody can work it out, and
    /// until then it is in the tables, but nobody has it: whoever speaks in it has read the description, no more.
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

    /// Whether an announcement is to be looked at: not one in the name of a described participant that comes from
    /// elsewhere, or that is described to make none, and none of strangers where this participant announces nothing
    /// itself.
    pub(in crate::discovery) fn admits(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        source: Locator,
        is_farewell: bool,
    ) -> bool {
        let is_described = self.config.described.is_some();
        if is_described && start_of(self.guid_prefix(), prefix).is_some() {
            // Somebody else has our name.
            self.counters.static_impostors += 1;
            return false;
        }
        let Some((which, start)) = self.static_named(prefix) else {
            return self.announces() != Announces::Nothing;
        };
        let Some(peer) = self.statics.get_mut(which) else {
            return false;
        };
        // A good-bye of one that announces nothing would never be taken back.
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
