//! Selection of a peer's address, and the destinations of a writer's first transmissions.

use isolane_wire::{builtin_data::LocatorList, guid::GuidPrefix, locator::Locator};

use crate::{
    config::Network,
    limits::{MAX_DESTINATIONS, MAX_FILTERED_ADDRESSES},
    participant::{LocalParticipant, Shared},
    slab::{ReaderProxyId, WriterId},
    writer::{Writers, reliability::ReaderProxy},
};

/// Unicast and multicast address.
pub(crate) type Address = (Option<Locator>, Option<Locator>);

/// Selects one of several addresses: validated ones before others, then those in a local network, then the first. Only
/// IPv4 is used.
pub(crate) fn choose(
    locators: &LocatorList,
    networks: &[Network],
    is_validated: impl Fn(&Locator) -> bool,
) -> Option<Locator> {
    let is_near = |locator: &Locator| {
        locator
            .ipv4()
            .is_some_and(|address| networks.iter().any(|net| net.contains(address)))
    };
    let usable = || locators.iter().filter(|locator| locator.ipv4().is_some());
    let rank = |locator: &&Locator| (is_validated(locator), is_near(locator));
    // `max_by_key` returns the last maximum, so this finds the first one.
    usable().rev().max_by_key(rank).copied()
}

/// Selects one of this participant's own addresses.
pub(crate) fn choose_own(locators: &LocatorList, networks: &[Network]) -> Option<Locator> {
    choose(locators, networks, |_| true)
}

impl LocalParticipant {
    /// Returns the destinations of a writer whose bit is set in `places`, by their index in
    /// [`destinations`](LocalParticipant::destinations).
    #[must_use]
    pub fn some_destinations(
        &self,
        writer: WriterId,
        places: u64,
    ) -> heapless::Vec<Locator, MAX_FILTERED_ADDRESSES> {
        let all = self.destinations(writer).iter().enumerate();
        let some = all.filter(|(place, _)| places >> place & 1 == 1);
        some.map(|(_, locator)| *locator).collect()
    }
}

impl Shared {
    /// Selects the multicast group of a peer: the first IPv4 group, if multicast is enabled and the peer is in a local
    /// network. Groups are sent to with a TTL of 1, so a peer behind a router needs unicast.
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
}

impl Writers {
    /// Computes the destinations of first transmissions, sorted by address: a multicast group that two or more
    /// addresses share, otherwise each address. Silent readers, readers at addresses not validated, and addresses of
    /// one participant beyond [`MAX_DESTINATIONS`] are left out.
    pub(crate) fn refresh_destinations(&mut self, shared: &mut Shared, writer_index: WriterId) {
        let writer = &mut self.table[writer_index];
        // A group saves datagrams only if at least two addresses listen. Entries: group, first listener, and whether
        // there is a second.
        let mut groups = heapless::Vec::<(Locator, Option<Locator>, bool), MAX_DESTINATIONS>::new();
        let proxies = |proxy: &ReaderProxyId| self.proxies.get(*proxy);
        for proxy in writer.proxies.iter().filter_map(proxies) {
            let Some(multicast) = proxy.multicast.filter(|_| proxy.is_sent_to()) else {
                continue;
            };
            match groups.iter_mut().find(|(group, ..)| *group == multicast) {
                Some((_, first, is_shared)) => *is_shared |= *first != proxy.unicast,
                // Beyond the limit on groups, listeners are reached by unicast.
                None => drop(groups.push((multicast, proxy.unicast, false))),
            }
        }
        let address = |proxy: &ReaderProxy| {
            let is_shared = |&(group, _, is_shared): &(Locator, Option<Locator>, bool)| {
                is_shared && proxy.multicast == Some(group)
            };
            let to = match groups.iter().any(is_shared) {
                true => proxy.multicast,
                false => proxy.address(),
            };
            to.filter(|_| proxy.is_sent_to())
        };
        let found = writer.proxies.iter().filter_map(proxies);
        let mut of_participants = core::mem::take(&mut self.reached);
        // Reserved at the match, so that an ACKNACK never allocates.
        of_participants.reserve(writer.proxies.len());
        of_participants
            .extend(found.filter_map(|proxy| Some((proxy.guid.prefix, address(proxy)?))));
        of_participants.sort_unstable();
        of_participants.dedup();
        let mut share = (GuidPrefix::UNKNOWN, 0);
        of_participants.retain(|&(prefix, _)| {
            share = (prefix, if share.0 == prefix { share.1 + 1 } else { 1 });
            share.1 <= MAX_DESTINATIONS
        });
        let mut destinations = core::mem::take(&mut writer.destinations);
        destinations.clear();
        destinations.reserve(writer.proxies.len());
        destinations.extend(of_participants.iter().map(|&(_, to)| to));
        destinations.sort_unstable();
        destinations.dedup();
        for &index in &writer.proxies {
            if let Some(proxy) = self.proxies.get_mut(index) {
                let to = address(proxy);
                let is_reached = to.is_some_and(|to| destinations.binary_search(&to).is_ok());
                let was_reached = core::mem::replace(&mut proxy.is_reached, is_reached);
                let is_full = to.is_some() && !is_reached && was_reached;
                shared.counters.destinations_full += u64::from(is_full);
            }
        }
        writer.destinations = destinations;
        of_participants.clear();
        self.reached = of_participants;
        self.refresh_filters(writer_index);
    }
}
