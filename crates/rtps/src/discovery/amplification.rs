//! Address validation and anti-amplification.
//!
//! Anybody can announce somebody else's address. An announced IPv4 address is therefore validated only by an ACKNACK
//! that comes from it; the port is ignored, because implementations send from other ports than they receive on. An
//! ACKNACK from the loopback address, or an address of this host, validates all addresses of its participant, since a
//! local process can send anywhere by itself. (Linux drops datagrams from outside that carry an own source address.)
//! Addresses of described participants are validated by their description.
//!
//! Samples are sent to validated addresses only, and a validated address of a peer is preferred. Other messages to
//! addresses that are not validated are limited to [`AMPLIFICATION_FACTOR`] times the bytes received in the
//! participant's name. All such addresses together get at most [`UNVALIDATED_BYTES_PER_S`]. Excess messages are counted
//! and dropped.
//!
//! A host can forge a source address on its own network: see `docs/explanation/threats.md`.

use heapless::Vec as BoundedVec;
use isolane_wire::{
    builtin_data::{LocatorList, ParticipantData},
    guid::GuidPrefix,
    locator::Locator,
    message::HEADER_BYTES,
};

use crate::{
    config::Network,
    discovery::{Discovery, RemoteParticipant},
    limits::{AMPLIFICATION_FACTOR, MAX_VALIDATED_ADDRESSES, UNVALIDATED_BYTES_PER_S},
    matching::choose,
    participant::{Facts, LocalParticipant, Shared},
    slab::{EndpointId, ReaderProxyId, WriterProxyId},
    work::Work,
};

/// Bytes of a message around one announcement: RTPS header and DATA submessage without inline QoS (RTPS 2.5 §9.4.5.4).
pub(super) const AROUND_ANNOUNCEMENT_BYTES: usize = HEADER_BYTES + 24;

/// Validated addresses of a participant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Validated {
    addresses: BoundedVec<[u8; 4], MAX_VALIDATED_ADDRESSES>,
    are_all: bool,
}

impl Validated {
    /// All addresses of a described participant.
    pub(super) fn described(address: [u8; 4]) -> Self {
        Self {
            addresses: BoundedVec::from_iter([address]),
            are_all: true,
        }
    }

    pub(crate) fn is_any(&self) -> bool {
        self.are_all || !self.addresses.is_empty()
    }

    /// Returns whether a locator is a validated address. A multicast group counts as validated if any unicast address
    /// is.
    pub(crate) fn covers(&self, locator: &Locator) -> bool {
        match locator.ipv4() {
            _ if self.are_all => true,
            Some(_) if locator.is_multicast() => !self.addresses.is_empty(),
            Some(address) => self.addresses.contains(&address),
            None => false,
        }
    }

    /// Adds an address. When the list is full it replaces an address that is no longer announced; returns `false` if
    /// there is none.
    fn enter(&mut self, address: [u8; 4], is_announced: impl Fn([u8; 4]) -> bool) -> bool {
        match self.addresses.push(address) {
            Ok(()) => true,
            Err(_) => {
                let mut known = self.addresses.iter_mut();
                let stale = known.find(|known| !is_announced(**known));
                stale.map(|stale| *stale = address).is_some()
            }
        }
    }
}

/// Returns whether a participant lists an address among its metatraffic or default unicast locators.
fn announces(data: &ParticipantData, address: [u8; 4]) -> bool {
    let is_it = |locator: &Locator| locator.ipv4() == Some(address);
    data.metatraffic_unicast.iter().any(is_it) || data.default_unicast.iter().any(is_it)
}

/// Returns whether an address belongs to this host, so that only a process of this host sends from it.
fn is_of_this_host(networks: &[Network], address: [u8; 4]) -> bool {
    address[0] == 127 || networks.iter().any(|network| network.address == address)
}

impl LocalParticipant {
    /// Charges an ACKNACK to the credit of the participant that it answers; see [`LocalParticipant::debit_reader`].
    pub(crate) fn debit_writer(
        &mut self,
        index: WriterProxyId,
        work: Option<Work>,
    ) -> Option<Work> {
        let proxy = self.readers.proxies.get(index)?;
        let (prefix, to) = (proxy.guid.prefix, proxy.reply_to);
        let mut work = work?;
        work.bytes = self
            .discovery
            .debit(&mut self.shared, prefix, to.as_ref(), work.bytes);
        Some(work)
    }

    /// Charges work for one matched reader to its participant's credit. If the address is not validated and the credit
    /// is used up, nothing is sent: the work's bytes become 0.
    pub(crate) fn debit_reader(
        &mut self,
        index: ReaderProxyId,
        work: Option<Work>,
    ) -> Option<Work> {
        let proxy = self.writers.proxies.get(index)?;
        if proxy.is_reachable {
            return work;
        }
        let (prefix, to) = (proxy.guid.prefix, proxy.address());
        let mut work = work?;
        let bytes = self
            .discovery
            .debit(&mut self.shared, prefix, to.as_ref(), work.bytes);
        if bytes < work.bytes
            && let Some(proxy) = self.writers.proxies.get_mut(index)
        {
            proxy.forget_requests();
        }
        work.bytes = bytes;
        Some(work)
    }

    /// Processes an ACKNACK of a matched reader whose address is not validated, or that came from another address than
    /// the last one. If the participant announces that address, it is validated, and the participant's endpoints are
    /// updated one a step.
    #[cold]
    pub(crate) fn note_answer(&mut self, index: ReaderProxyId, source: Locator) {
        let proxy = &mut self.writers.proxies[index];
        let (writer, prefix, to) = (proxy.writer, proxy.guid.prefix, proxy.address());
        let was_reachable = proxy.is_reachable;
        let networks = &self.shared.config.networks;
        if let Some(&place) = self.discovery.by_prefix.get(&prefix)
            && let Some(participant) = self.discovery.participants.get_mut(place)
            && !participant.validated.covers(&source)
        {
            let data = &participant.data;
            let is_announced = |address| {
                announces(data, address) || to.is_some_and(|to| to.ipv4() == Some(address))
            };
            let is_entered = match source.ipv4() {
                Some(address) if is_of_this_host(networks, address) => {
                    participant.validated.are_all = true;
                    true
                }
                Some(address) if is_announced(address) => {
                    participant.validated.enter(address, is_announced)
                }
                _ => false,
            };
            if !is_entered {
                self.shared.counters.answers_elsewhere += u64::from(!was_reachable);
                if let Some(proxy) = self
                    .writers
                    .proxies
                    .get_mut(index)
                    .filter(|_| was_reachable)
                {
                    // The next ACKNACK from there costs one comparison only.
                    proxy.answered_from = source.ipv4();
                }
                return;
            }
            participant.follow_from = Some(EndpointId(0));
            self.discovery.has_following = true;
            self.shared.schedule_discovery();
        }
        let is_reachable = self.discovery.is_validated(&self.shared, prefix, to);
        let proxy = &mut self.writers.proxies[index];
        proxy.answered_from = source.ipv4();
        if is_reachable && !core::mem::replace(&mut proxy.is_reachable, true) {
            let waits_for_history = proxy.waits_for_history();
            self.writers.refresh_destinations(&mut self.shared, writer);
            if waits_for_history {
                self.writers.schedule_history(&mut self.shared, index);
            }
        }
    }
}

impl Shared {
    /// Selects the address used among several of a participant, a validated one if there is any.
    pub(crate) fn choose_of(
        &self,
        participant: &RemoteParticipant,
        locators: &LocatorList,
    ) -> Option<Locator> {
        let is_validated = |locator: &Locator| participant.validated.covers(locator);
        choose(locators, &self.config.networks, is_validated)
    }
}

impl Discovery {
    fn participant(&self, prefix: GuidPrefix) -> Option<&RemoteParticipant> {
        let &index = self.by_prefix.get(&prefix)?;
        self.participants.get(index)
    }

    /// Credits a participant with [`AMPLIFICATION_FACTOR`] times the bytes received from it that call for an answer.
    pub(crate) fn credit(&mut self, prefix: GuidPrefix, bytes: usize) {
        let Some(&index) = self.by_prefix.get(&prefix) else {
            return;
        };
        if let Some(participant) = self.participants.get_mut(index) {
            let earned = (bytes as u32).saturating_mul(AMPLIFICATION_FACTOR);
            let credit_bytes = participant.credit_bytes.saturating_add(earned);
            participant.credit_bytes = credit_bytes.min(UNVALIDATED_BYTES_PER_S);
        }
    }

    /// Returns how many bytes of a datagram may be sent to a participant's address: all, or 0 if the address is not
    /// validated and the credit is used up.
    pub(crate) fn debit(
        &mut self,
        shared: &mut Shared,
        prefix: GuidPrefix,
        to: Option<&Locator>,
        bytes: usize,
    ) -> usize {
        let found = self.by_prefix.get(&prefix);
        let Some(participant) = found.and_then(|&index| self.participants.get_mut(index)) else {
            // The prefix is that of this participant.
            return bytes;
        };
        if to.is_none_or(|to| participant.validated.covers(to)) {
            return bytes;
        }
        let Some(left) = participant.credit_bytes.checked_sub(bytes as u32) else {
            shared.counters.answers_withheld += 1;
            return 0;
        };
        if !self.unvalidated.take(shared.latest, bytes) {
            shared.counters.unvalidated_limited += 1;
            return 0;
        }
        participant.credit_bytes = left;
        bytes
    }

    /// Returns whether an address of a participant is validated; without an address, whether the participant has any
    /// validated one. All addresses of this participant are validated.
    pub(crate) fn is_validated(
        &self,
        shared: &Shared,
        prefix: GuidPrefix,
        to: Option<Locator>,
    ) -> bool {
        let Some(participant) = self.participant(prefix) else {
            return prefix == shared.guid_prefix();
        };
        match to {
            Some(to) => participant.validated.covers(&to),
            None => participant.is_proven(),
        }
    }

    /// Returns whether a participant has a validated address other than this one.
    pub(crate) fn answers_elsewhere(
        &self,
        shared: &Shared,
        prefix: GuidPrefix,
        to: Option<Locator>,
    ) -> bool {
        let participant = self.participant(prefix);
        participant.is_some_and(|participant| participant.is_proven())
            && !self.is_validated(shared, prefix, to)
    }
}

impl Facts<'_> {
    /// Returns whether a datagram of a participant came from one of its addresses.
    pub(crate) fn is_own_address(
        &self,
        shared: &Shared,
        prefix: GuidPrefix,
        source: Locator,
    ) -> bool {
        let Some(address) = source.ipv4() else {
            return false;
        };
        let networks = &shared.config.networks;
        let Some(&index) = self.discovery.by_prefix.get(&prefix) else {
            // The prefix is that of this participant.
            return networks.is_empty() || is_of_this_host(networks, address);
        };
        let participant = self
            .discovery
            .participants
            .get(index)
            .filter(|peer| peer.is_proven());
        participant.is_some_and(|participant| {
            let validated = &participant.validated;
            announces(&participant.data, address)
                || validated.addresses.contains(&address)
                || validated.are_all && is_of_this_host(networks, address)
        })
    }
}
