//! Which of a peer's addresses are used, and where a writer's first transmissions go.

use isolane_wire::{discovery::LocatorList, locator::Locator};

use crate::{
    config::Network,
    engine::Engine,
    ids::WriterId,
    limits::{MAX_DESCRIBED_DESTINATIONS, MAX_DESTINATIONS},
};

/// A unicast and a multicast address.
pub(crate) type Address = (Option<Locator>, Option<Locator>);

/// Of several addresses the one in a network of ours, else the first that is one we can use.
pub(crate) fn choose(locators: &LocatorList, networks: &[Network]) -> Option<Locator> {
    let is_near = |locator: &&Locator| {
        locator
            .ipv4()
            .is_some_and(|address| networks.iter().any(|net| net.contains(address)))
    };
    locators
        .iter()
        .find(is_near)
        .or_else(|| locators.iter().find(|locator| locator.ipv4().is_some()))
        .copied()
}

impl Engine {
    /// The group by which a peer is reached: the first that is one we can use, where groups can be
    /// sent to and the peer is near. They are sent to with a TTL of 1, so that one behind a router,
    /// on none of our networks, hears only what is sent to its own address.
    pub(crate) fn group_of(
        &self,
        groups: &LocatorList,
        unicast: Option<Locator>,
    ) -> Option<Locator> {
        let networks = &self.config.networks;
        let is_near = |locator: Locator| {
            networks.is_empty()
                || locator
                    .ipv4()
                    .is_some_and(|address| networks.iter().any(|net| net.contains(address)))
        };
        let is_usable = |locator: &&Locator| locator.is_multicast() && locator.ipv4().is_some();
        groups
            .iter()
            .find(is_usable)
            .filter(|_| self.config.multicast && unicast.is_none_or(is_near))
            .copied()
    }

    /// Works out where first transmissions go: one datagram to a group that two or more of the
    /// readers share, one to each other address. Readers of participants that are not known to hear
    /// this one are left out, and so are silent ones.
    pub(crate) fn refresh_destinations(&mut self, writer_index: u16) {
        let entity = self.writers.get(writer_index).map(|it| it.guid.entity);
        let most = match entity.is_some_and(|entity| self.is_described(entity)) {
            true => MAX_DESCRIBED_DESTINATIONS,
            false => MAX_DESTINATIONS,
        };
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        // A group pays when it saves a datagram: two addresses listen to it. Each with the first of
        // its listeners, and whether there is another.
        let mut groups = heapless::Vec::<(Locator, Option<Locator>, bool), MAX_DESTINATIONS>::new();
        for proxy in &writer.proxies {
            let Some(proxy) = self.reader_proxies.get(*proxy) else {
                continue;
            };
            if !proxy.is_sent_to() {
                continue;
            }
            let Some(multicast) = proxy.multicast else {
                continue;
            };
            match groups.iter_mut().find(|(group, ..)| *group == multicast) {
                Some((_, first, is_shared)) => *is_shared |= *first != proxy.unicast,
                // More groups than destinations: their listeners are reached one by one.
                None => drop(groups.push((multicast, proxy.unicast, false))),
            }
        }
        let mut destinations = heapless::Vec::<Locator, MAX_DESCRIBED_DESTINATIONS>::new();
        for &index in &writer.proxies {
            let Some(proxy) = self.reader_proxies.get(index) else {
                continue;
            };
            let shares_group = groups
                .iter()
                .any(|&(group, _, is_shared)| is_shared && proxy.multicast == Some(group));
            let to = if shares_group {
                proxy.multicast
            } else {
                proxy.address()
            };
            let is_sent_to = proxy.is_sent_to();
            let is_reached = is_sent_to
                && to.is_some_and(|to| {
                    let has_room = destinations.len() < most;
                    destinations.contains(&to) || has_room && destinations.push(to).is_ok()
                });
            if let Some(proxy) = self.reader_proxies.get_mut(index) {
                let was_reached = core::mem::replace(&mut proxy.is_reached, is_reached);
                let is_full = is_sent_to && !is_reached && was_reached;
                self.counters.destinations_full += u64::from(is_full);
            }
        }
        writer.destinations = destinations;
        self.refresh_filters(writer_index);
    }

    /// Some of the addresses of a writer's matched readers: those whose bit is set, by their place among
    /// [`destinations`](Self::destinations).
    #[must_use]
    pub fn some_destinations(
        &self,
        writer: WriterId,
        places: u64,
    ) -> heapless::Vec<Locator, MAX_DESCRIBED_DESTINATIONS> {
        let all = self.destinations(writer).iter().enumerate();
        let some = all.filter(|(place, _)| places >> place & 1 == 1);
        some.map(|(_, locator)| *locator).collect()
    }
}
