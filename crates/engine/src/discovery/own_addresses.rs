//! Address changes of this host while the participant runs, for example by DHCP or roaming.
//!
//! Ports stay, so an endpoint's new unicast locators are its port at each new address. SPDP announces the participant
//! again at once and repeats this as often as at its start (RTPS 2.5 §8.5.3). SEDP announces the endpoints again
//! (§8.5.4), one a discovery step. Statically described endpoints are not announced and keep their described locators.

use alloc::vec::Vec;

use isolane_wire::{
    discovery::{EndpointData, LocatorList},
    locator::Locator,
    time::Instant,
};

use super::{PUBLICATIONS, SUBSCRIPTIONS};
use crate::{
    config::Network,
    engine::{Engine, Subject},
    history::ChangeKind,
    matching::choose_own,
};

impl Engine {
    /// Replaces the networks of this host after a change of its addresses. Announces the new locators and selects each
    /// peer's address again.
    pub fn set_networks(&mut self, now: Instant, networks: Vec<Network>) {
        if self.config.networks == networks {
            return;
        }
        let own = &mut self.config;
        for locators in [&mut own.metatraffic_unicast, &mut own.default_unicast] {
            *locators = moved(locators, &networks);
        }
        own.networks = networks;
        for index in 0..self.participants.end() {
            let participant = self.participants.get_mut(index);
            if let Some(participant) = participant.filter(|peer| !peer.is_leaving()) {
                participant.follow_from = Some(0);
            }
        }
        self.has_following = true;
        self.move_from = Some(0);
        self.file_discovery();
        if self.is_enabled() {
            self.announcements_sent = 0;
            self.announce_now();
            let period = self.announce_period();
            self.timers.arm(Subject::ANNOUNCE, now + period);
        }
    }

    /// Announces the next user endpoint with its new locators. Returns `false` if none is left, or if the SEDP history
    /// is full; the step is then retried after the participant's next announcement.
    pub(super) fn move_own_endpoint(&mut self, now: Instant) -> bool {
        let Some(from) = self.move_from else {
            return false;
        };
        let writers = u32::from(self.writers.end());
        let end = writers + u32::from(self.readers.end());
        for place in from..end {
            let (kind, index) = match place.checked_sub(writers) {
                None => (PUBLICATIONS, place as u16),
                Some(reader) => (SUBSCRIPTIONS, reader as u16),
            };
            let Some((data, is_enabled)) = self.own_endpoint(kind, index) else {
                continue;
            };
            let unicast = moved(&data.unicast, &self.config.networks);
            if unicast == data.unicast || self.is_described(data.guid.entity) {
                continue;
            }
            let data = EndpointData {
                unicast,
                ..data.clone()
            };
            if is_enabled
                && self
                    .announce_endpoint(now, kind, &data, ChangeKind::Alive)
                    .is_err()
            {
                self.move_from = Some(place);
                return false;
            }
            let unicast = choose_own(&data.unicast, &self.config.networks);
            let address = (unicast, self.group_of(&data.multicast, unicast));
            self.follow(data.guid, address);
            match kind {
                PUBLICATIONS => self.writers.get_mut(index).map(|it| it.data = data),
                _ => self.readers.get_mut(index).map(|it| it.data = data),
            };
            self.move_from = Some(place + 1);
            return true;
        }
        self.move_from = None;
        false
    }

    /// Returns a user endpoint and whether it is enabled.
    fn own_endpoint(&self, kind: u16, index: u16) -> Option<(&EndpointData, bool)> {
        match kind {
            PUBLICATIONS => {
                let writer = self.writers.get(index).filter(|it| it.level.is_some())?;
                Some((&writer.data, writer.is_enabled()))
            }
            _ => {
                let reader = self.readers.get(index).filter(|it| it.level.is_some())?;
                Some((&reader.data, reader.is_enabled))
            }
        }
    }
}

/// Replaces the addresses of `locators` by this host's current ones, with the port kept, up to the list's capacity.
fn moved(locators: &LocatorList, networks: &[Network]) -> LocatorList {
    let Some(port) = locators.first().map(|locator| locator.port) else {
        return LocatorList::new();
    };
    let port = u16::try_from(port).unwrap_or(0);
    let at = |network: &Network| Locator::udpv4(network.address, port);
    let announced = networks.iter().take(locators.capacity());
    announced.map(at).collect()
}
