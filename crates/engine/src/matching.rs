//! Who talks with whom: QoS matching (DDS 1.4 §2.2.3), and the proxies that come of a match.
//!
//! A pair matches when topic and type names are equal, both have a key or neither, and each
//! policy of the writer's offers at least what the reader's requests. Endpoints of this
//! participant match each other in the same way: they talk through the same frames.

use isolane_wire::{
    discovery::{EndpointData, LocatorList},
    guid::{Guid, GuidPrefix},
    locator::Locator,
    qos::{
        DataRepresentationId, DurabilityKind, Partition, PolicyId, QosPolicies, ReliabilityKind,
    },
    rtps::VENDOR_ID,
    time::Instant,
};

use crate::{
    config::Network,
    discovery::{EndpointKind, RemoteEndpoint},
    engine::Engine,
    ids::WriterId,
    limits::MAX_DESTINATIONS,
    reader::{ReaderStatus, WriterProxy},
    work::WorkKind,
    writer::{ReaderProxy, WriterStatus},
};

/// A pair that shares a topic and does not match (DDS 1.4 §2.2.4.1, *IncompatibleQosStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incompatible {
    /// The other endpoint found last.
    pub other: Guid,
    /// The first policy on which the two differ.
    pub policy: PolicyId,
    /// How many such endpoints were found.
    pub total: u32,
}

/// The first policy of which less is offered than requested; `None`: they are compatible.
#[must_use]
pub fn incompatible_policy(offered: &QosPolicies, requested: &QosPolicies) -> Option<PolicyId> {
    let checks = [
        (
            offered.durability >= requested.durability,
            PolicyId::DURABILITY,
        ),
        (
            offered.presentation.access_scope >= requested.presentation.access_scope
                && offered.presentation.coherent >= requested.presentation.coherent
                && offered.presentation.ordered >= requested.presentation.ordered,
            PolicyId::PRESENTATION,
        ),
        (offered.deadline <= requested.deadline, PolicyId::DEADLINE),
        (
            offered.latency_budget <= requested.latency_budget,
            PolicyId::LATENCY_BUDGET,
        ),
        (
            offered.ownership == requested.ownership,
            PolicyId::OWNERSHIP,
        ),
        (
            offered.liveliness.kind >= requested.liveliness.kind
                && offered.liveliness.lease <= requested.liveliness.lease,
            PolicyId::LIVELINESS,
        ),
        (
            offered.reliability.kind >= requested.reliability.kind,
            PolicyId::RELIABILITY,
        ),
        (
            offered.destination_order >= requested.destination_order,
            PolicyId::DESTINATION_ORDER,
        ),
        (
            representations_meet(offered, requested),
            PolicyId::DATA_REPRESENTATION,
        ),
    ];
    checks
        .into_iter()
        .find_map(|(compatible, policy)| (!compatible).then_some(policy))
}

/// A writer sends in the first representation it offers; the reader must take that one
/// (DDS-XTypes 1.3 §7.6.3.1.2). An empty list means XCDR1.
fn representations_meet(offered: &QosPolicies, requested: &QosPolicies) -> bool {
    let sent = offered
        .data_representation
        .first()
        .copied()
        .unwrap_or(DataRepresentationId::XCDR1);
    let taken = &requested.data_representation;
    taken.contains(&sent) || (taken.is_empty() && sent == DataRepresentationId::XCDR1)
}

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

    /// Compares a local writer with a reader; joins or parts them.
    fn match_writer(&mut self, now: Instant, writer_index: u16, reader: &Counterpart<'_>) {
        let guid = reader.data.guid;
        let known = self.proxy_of_reader.get(&(writer_index, guid)).copied();
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        if writer.level.is_none() {
            // Discovery's own is matched with participants.
            return;
        }
        if !same_topic(&writer.data, writer.keyed, reader.data) {
            // They may have met before one of them changed its PARTITION.
            if let Some(proxy) = known {
                self.remove_reader_proxy(now, proxy);
            }
            return;
        }
        if let Some(policy) = incompatible_policy(&writer.data.qos, &reader.data.qos) {
            let total = writer.incompatible.map_or(0, |found| found.total) + 1;
            writer.incompatible = Some(Incompatible {
                other: guid,
                policy,
                total,
            });
            writer.status |= WriterStatus::OFFERED_INCOMPATIBLE_QOS;
            self.note_writer(writer_index);
            if let Some(proxy) = known {
                self.remove_reader_proxy(now, proxy);
            }
            return;
        }
        if let Some(proxy) = known {
            self.move_reader_proxy(proxy, reader.address);
            return;
        }
        let reliable =
            writer.reliable && reader.data.qos.reliability.kind == ReliabilityKind::Reliable;
        let wants_history = reader.data.qos.durability > DurabilityKind::Volatile;
        let mut proxy = ReaderProxy::new(writer_index, guid, reliable);
        (proxy.unicast, proxy.multicast) = reader.address;
        self.add_reader_proxy(now, proxy, wants_history);
    }

    /// Compares a local reader with a writer; joins or parts them.
    fn match_reader(&mut self, now: Instant, reader_index: u16, writer: &Counterpart<'_>) {
        let guid = writer.data.guid;
        let known = self.proxy_of_writer_at(guid, reader_index);
        let says_where_to_begin = self.is_isolane(guid.prefix);
        let Some(reader) = self.readers.get_mut(reader_index) else {
            return;
        };
        if reader.level.is_none() {
            return;
        }
        if !same_topic(&reader.data, reader.keyed, writer.data) {
            if let Some(proxy) = known {
                self.remove_writer_proxy(now, proxy);
            }
            return;
        }
        if let Some(policy) = incompatible_policy(&writer.data.qos, &reader.data.qos) {
            let total = reader.incompatible.map_or(0, |found| found.total) + 1;
            reader.incompatible = Some(Incompatible {
                other: guid,
                policy,
                total,
            });
            reader.status |= ReaderStatus::REQUESTED_INCOMPATIBLE_QOS;
            self.note_reader(reader_index);
            if let Some(proxy) = known {
                self.remove_writer_proxy(now, proxy);
            }
            return;
        }
        if let Some(proxy) = known {
            self.move_writer_proxy(proxy, writer.address);
            return;
        }
        // A best-effort reader of a reliable writer is told nothing and asks for nothing.
        let mut proxy = WriterProxy::new(reader_index, guid, reader.reliable);
        // A writer of isolane answers with a GAP what was written before it knew of the reader.
        // Of others a VOLATILE reader cannot tell history from what was written just after the
        // match: it begins with the first sample that comes unasked, or behind the first heartbeat.
        proxy.skips_history = reader.volatile
            && writer.data.qos.durability > DurabilityKind::Volatile
            && !says_where_to_begin;
        proxy.reply_to = writer.address.0.or(writer.address.1);
        self.add_writer_proxy(proxy);
    }

    /// Whether a participant is this one, or one of isolane.
    fn is_isolane(&self, prefix: GuidPrefix) -> bool {
        let found = self.participant_by_prefix.get(&prefix);
        let participant = found.and_then(|&index| self.participants.get(index));
        participant.map_or(prefix == self.guid_prefix(), |participant| {
            participant.data.vendor == VENDOR_ID
        })
    }

    /// Matches a peer's endpoint with the user's.
    pub(crate) fn match_remote(&mut self, now: Instant, endpoint_index: u16) {
        let Some(endpoint) = self.endpoints.get(endpoint_index) else {
            return;
        };
        let endpoint = endpoint.clone();
        let other = self.as_remote(&endpoint);
        match endpoint.kind {
            EndpointKind::Reader => {
                for writer in 0..self.writers.end() {
                    self.match_writer(now, writer, &other);
                }
            }
            EndpointKind::Writer => {
                for reader in 0..self.readers.end() {
                    self.match_reader(now, reader, &other);
                }
            }
        }
    }

    /// Matches a new writer of the user with all readers known.
    pub(crate) fn match_new_writer(&mut self, now: Instant, writer_index: u16) {
        for index in 0..self.endpoints.end() {
            match self.endpoints.get(index) {
                Some(endpoint) if endpoint.kind == EndpointKind::Reader => {
                    let endpoint = endpoint.clone();
                    let other = self.as_remote(&endpoint);
                    self.match_writer(now, writer_index, &other);
                }
                _ => {}
            }
        }
        for reader in 0..self.readers.end() {
            self.match_local(now, writer_index, reader);
        }
    }

    /// Matches a new reader of the user with all writers known.
    pub(crate) fn match_new_reader(&mut self, now: Instant, reader_index: u16) {
        for index in 0..self.endpoints.end() {
            match self.endpoints.get(index) {
                Some(endpoint) if endpoint.kind == EndpointKind::Writer => {
                    let endpoint = endpoint.clone();
                    let other = self.as_remote(&endpoint);
                    self.match_reader(now, reader_index, &other);
                }
                _ => {}
            }
        }
        for writer in 0..self.writers.end() {
            self.match_local(now, writer, reader_index);
        }
    }

    /// Matches two endpoints of this participant.
    fn match_local(&mut self, now: Instant, writer_index: u16, reader_index: u16) {
        let (Some(writer), Some(reader)) = (
            self.writers.get(writer_index),
            self.readers.get(reader_index),
        ) else {
            return;
        };
        if writer.level.is_none() || reader.level.is_none() {
            return;
        }
        let (writer, reader) = (writer.data.clone(), reader.data.clone());
        let address = |data: &EndpointData| {
            let unicast = choose(&data.unicast, &self.config.networks);
            (unicast, self.group_of(&data.multicast, unicast))
        };
        let (of_writer, of_reader) = (address(&writer), address(&reader));
        self.match_reader(
            now,
            reader_index,
            &Counterpart {
                data: &writer,
                address: of_writer,
            },
        );
        self.match_writer(
            now,
            writer_index,
            &Counterpart {
                data: &reader,
                address: of_reader,
            },
        );
    }

    fn as_remote<'a>(&self, endpoint: &'a RemoteEndpoint) -> Counterpart<'a> {
        Counterpart {
            data: &endpoint.data,
            address: self.address_of(endpoint),
        }
    }

    /// Enters a matched reader at its writer.
    pub(crate) fn add_reader_proxy(
        &mut self,
        now: Instant,
        mut proxy: ReaderProxy,
        wants_history: bool,
    ) {
        let writer_index = proxy.writer;
        let Some(writer) = self.writers.get(writer_index) else {
            return;
        };
        let (guid, reliable) = (proxy.guid, proxy.reliable);
        let gets_history = reliable && wants_history && !writer.volatile;
        proxy.wants_history = gets_history;
        // What is not yet sent goes to this reader with the others.
        proxy.start = if gets_history {
            writer.first_kept().min(writer.next_unsent)
        } else {
            writer.next_unsent
        };
        proxy.acknowledged = proxy.start;
        if gets_history && proxy.start < writer.next_unsent {
            proxy.history_next = Some(proxy.start);
            proxy.history_end = writer.next_unsent;
            proxy.history_filed = true;
        }
        let (sends_history, priority) = (proxy.history_filed, writer.protocol_priority());
        let Ok(index) = self.reader_proxies.insert(proxy) else {
            self.counters.matches_refused += 1;
            return;
        };
        self.proxy_of_reader.insert((writer_index, guid), index);
        if let Some(writer) = self.writers.get_mut(writer_index) {
            writer.proxies.push(index);
            writer.status |= WriterStatus::PUBLICATION_MATCHED;
        }
        self.refresh_lowest(writer_index);
        self.refresh_destinations(writer_index);
        self.note_writer(writer_index);
        if sends_history {
            self.file(priority, WorkKind::History, index);
        } else if reliable {
            // Tells the reader where it begins, and disturbs no other.
            self.file_repair(index);
        }
        self.arm_heartbeat(now, writer_index);
    }

    /// Enters a matched writer at its reader.
    pub(crate) fn add_writer_proxy(&mut self, proxy: WriterProxy) {
        let (reader_index, guid, reliable) = (proxy.reader, proxy.guid, proxy.reliable);
        let Ok(index) = self.writer_proxies.insert(proxy) else {
            self.counters.matches_refused += 1;
            return;
        };
        let next = self.proxies_of_writer.insert(guid, index);
        if let Some(proxy) = self.writer_proxies.get_mut(index) {
            proxy.next_of_writer = next;
        }
        if let Some(reader) = self.readers.get_mut(reader_index) {
            reader.proxies.push(index);
            reader.status |= ReaderStatus::SUBSCRIPTION_MATCHED;
        }
        self.note_reader(reader_index);
        if reliable {
            // Asks the writer for a heartbeat, so that what it wrote before is known at once.
            self.file_acknack(index);
        }
    }

    /// A matched reader is reached elsewhere now.
    fn move_reader_proxy(&mut self, index: u16, address: Address) {
        let Some(proxy) = self.reader_proxies.get_mut(index) else {
            return;
        };
        if (proxy.unicast, proxy.multicast) != address {
            (proxy.unicast, proxy.multicast) = address;
            let writer = proxy.writer;
            self.refresh_destinations(writer);
        }
    }

    fn move_writer_proxy(&mut self, index: u16, (unicast, multicast): Address) {
        if let Some(proxy) = self.writer_proxies.get_mut(index) {
            proxy.reply_to = unicast.or(multicast);
        }
    }

    /// An endpoint of a peer is reached elsewhere now: whoever is matched with it follows.
    pub(crate) fn follow(&mut self, guid: Guid, address: Address) {
        let mut at = self.proxies_of_writer.get(&guid).copied();
        while let Some(index) = at {
            self.move_writer_proxy(index, address);
            at = self
                .writer_proxies
                .get(index)
                .and_then(|proxy| proxy.next_of_writer);
        }
        for writer in 0..self.writers.end() {
            if let Some(&index) = self.proxy_of_reader.get(&(writer, guid)) {
                self.move_reader_proxy(index, address);
            }
        }
    }

    /// Parts an endpoint that is gone from everyone here.
    pub(crate) fn unmatch(&mut self, now: Instant, guid: Guid) {
        while let Some(&proxy) = self.proxies_of_writer.get(&guid) {
            self.remove_writer_proxy(now, proxy);
        }
        for writer in 0..self.writers.end() {
            if let Some(&proxy) = self.proxy_of_reader.get(&(writer, guid)) {
                self.remove_reader_proxy(now, proxy);
            }
        }
    }

    pub(crate) fn remove_reader_proxy(&mut self, now: Instant, index: u16) {
        let Some(proxy) = self.reader_proxies.remove(index) else {
            return;
        };
        self.board
            .withdraw(&[WorkKind::Repair, WorkKind::History], index);
        self.proxy_of_reader.remove(&(proxy.writer, proxy.guid));
        if let Some(writer) = self.writers.get_mut(proxy.writer) {
            writer.proxies.retain(|&other| other != index);
            writer.status |= WriterStatus::PUBLICATION_MATCHED;
        }
        self.refresh_destinations(proxy.writer);
        // What only this reader had not acknowledged is free now.
        self.refresh_lowest(proxy.writer);
        self.release_acknowledged(proxy.writer);
        self.arm_heartbeat(now, proxy.writer);
        self.note_writer(proxy.writer);
    }

    pub(crate) fn remove_writer_proxy(&mut self, now: Instant, index: u16) {
        let Some(proxy) = self.writer_proxies.remove(index) else {
            return;
        };
        self.board.withdraw(&[WorkKind::AckNack], index);
        self.unlink(&proxy, index);
        let Some(reader) = self.readers.get_mut(proxy.reader) else {
            return;
        };
        reader.proxies.retain(|&other| other != index);
        reader.status |= ReaderStatus::SUBSCRIPTION_MATCHED;
        if let Some(cache) = &mut reader.cache {
            self.counters.instance_ends_unseen += cache.writer_gone(index, proxy.guid, now);
            if cache.available() > 0 {
                reader.status |= ReaderStatus::DATA_AVAILABLE;
            }
        }
        self.note_reader(proxy.reader);
    }

    /// Takes a proxy out of its writer's chain.
    fn unlink(&mut self, proxy: &WriterProxy, index: u16) {
        let first = self.proxies_of_writer.get(&proxy.guid).copied();
        if first == Some(index) {
            match proxy.next_of_writer {
                Some(next) => self.proxies_of_writer.insert(proxy.guid, next),
                None => self.proxies_of_writer.remove(&proxy.guid),
            };
            return;
        }
        let mut at = first;
        while let Some(here) = at {
            let Some(before) = self.writer_proxies.get_mut(here) else {
                return;
            };
            if before.next_of_writer == Some(index) {
                before.next_of_writer = proxy.next_of_writer;
                return;
            }
            at = before.next_of_writer;
        }
    }

    /// The proxy of a writer at one reader.
    pub(crate) fn proxy_of_writer_at(&self, writer: Guid, reader: u16) -> Option<u16> {
        let mut at = self.proxies_of_writer.get(&writer).copied();
        while let Some(index) = at {
            let proxy = self.writer_proxies.get(index)?;
            if proxy.reader == reader {
                return Some(index);
            }
            at = proxy.next_of_writer;
        }
        None
    }

    /// Works out where first transmissions go: one datagram to a group that two or more of the
    /// readers share, one to each other address.
    fn refresh_destinations(&mut self, writer_index: u16) {
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
            let Some(multicast) = proxy.multicast else {
                continue;
            };
            match groups.iter_mut().find(|(group, ..)| *group == multicast) {
                Some((_, first, is_shared)) => *is_shared |= *first != proxy.unicast,
                // More groups than destinations: their listeners are reached one by one.
                None => drop(groups.push((multicast, proxy.unicast, false))),
            }
        }
        let mut destinations = heapless::Vec::<Locator, MAX_DESTINATIONS>::new();
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
            let is_reached =
                to.is_some_and(|to| destinations.contains(&to) || destinations.push(to).is_ok());
            if let Some(proxy) = self.reader_proxies.get_mut(index) {
                let was_reached = core::mem::replace(&mut proxy.is_reached, is_reached);
                self.counters.destinations_full += u64::from(was_reached && !is_reached);
            }
        }
        writer.destinations = destinations;
    }

    /// Readers a writer is matched with now. A reliable one counts from its first answer on: then
    /// it is known to know the writer, and gets all that is written.
    #[must_use]
    pub fn matched_readers(&self, writer: WriterId) -> usize {
        let proxies = self
            .writers
            .get(writer.0)
            .map_or(&[][..], |writer| &writer.proxies);
        let is_ready = |&&proxy: &&u16| {
            self.reader_proxies
                .get(proxy)
                .is_some_and(ReaderProxy::is_ready)
        };
        proxies.iter().filter(is_ready).count()
    }
}

/// The other side of a possible match.
struct Counterpart<'a> {
    data: &'a EndpointData,
    /// Its unicast and its multicast address.
    address: Address,
}

/// A unicast and a multicast address.
pub(crate) type Address = (Option<Locator>, Option<Locator>);

fn same_topic(own: &EndpointData, keyed: bool, other: &EndpointData) -> bool {
    own.topic_name == other.topic_name
        && own.type_name == other.type_name
        && keyed == other.guid.entity.is_keyed()
        && partitions_meet(&own.qos.partition, &other.qos.partition)
}

/// PARTITION (DDS 1.4 §2.2.3.13): endpoints meet where they share a partition; no partition is the
/// one without a name. Names are compared as they are: wildcards are not expanded yet. Not to meet
/// is no incompatibility, and nobody is told.
fn partitions_meet(own: &Partition, other: &Partition) -> bool {
    let is_default = |partition: &Partition| {
        partition.is_empty() || partition.iter().any(|name| name.is_empty())
    };
    own.iter().any(|name| other.contains(name)) || (is_default(own) && is_default(other))
}
