//! QoS matching (DDS 1.4 §2.2.3) and the proxies created by a match.
//!
//! Topic and type names must be equal, both endpoints keyed or keyless, and a partition shared. Every policy offered by
//! the writer must be at least what the reader requests. Endpoints of the same participant match in the same way and
//! communicate by the same frames.

mod proxies;
mod qos_compatibility;
mod qos_update;
mod topic_index;

use isolane_wire::{
    builtin_data::EndpointData,
    guid::{EntityId, GuidPrefix},
    message::VENDOR_ID,
    qos::{DurabilityKind, ReliabilityKind},
    time::Instant,
};

use crate::{
    coherent_access::Progress,
    content_filter::FilterText,
    discovery::{Discovery, EndpointKind, EndpointRecord},
    matching::qos_compatibility::{Comparison, compare},
    participant::{LocalParticipant, Shared},
    reader::{ReaderStatus, WriterProxy, filtering::FilteredNumbers},
    slab::{EndpointId, LocalId, ReaderId, RemoteParticipantId, WriterId},
    timed_qos::WriterLiveness,
    writer::{WriterStatus, destinations::Address, reliability::ReaderProxy},
};

pub use self::{
    qos_compatibility::{
        Incompatible, incompatible_policies, incompatible_policy, partitions_match,
    },
    qos_update::{SetQosError, immutable_policy, inconsistent_policy},
};

pub(crate) use self::{
    proxies::{Refusal, RefusedMatches, share_of},
    qos_compatibility::Before,
    topic_index::TopicIndex,
};
pub(crate) use crate::writer::destinations::{choose, choose_own};

/// Remote or local endpoint that a local one is compared with.
struct Counterpart<'a> {
    data: &'a EndpointData,
    /// Unicast and multicast address.
    address: Address,
    /// Earlier result for the pair.
    before: Before<'a>,
    /// Announced content filter.
    filter: Option<&'a FilterText>,
    /// True if statically described; `None` for an endpoint of this participant.
    is_described: Option<bool>,
}

impl LocalParticipant {
    /// Compares a local writer with a reader, and matches or unmatches them. Returns why a compatible pair was refused.
    fn match_writer(
        &mut self,
        now: Instant,
        writer_index: WriterId,
        reader: &Counterpart<'_>,
    ) -> Refusal {
        let guid = reader.data.guid;
        let known = self
            .writers
            .proxy_by_reader
            .get(&(writer_index, guid))
            .copied();
        let (unicast, multicast) = reader.address;
        let to = unicast.or(multicast);
        let is_reachable = self.discovery.is_validated(&self.shared, guid.prefix, to);
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return Refusal::empty();
        };
        if writer.level.is_none() || !writer.is_enabled() {
            // Built-in endpoints are matched when a participant is discovered.
            return Refusal::empty();
        }
        let entity = writer.guid.entity;
        if !self.shared.may_match(entity, reader.is_described) {
            return Refusal::empty();
        }
        let writer = &mut self.writers.table[writer_index];
        let found = compare(&writer.data, reader.data);
        if let Comparison::Differ(policy) = found
            && reader.before.is_news(found, &writer.data, reader.data)
        {
            writer.incompatible = Some(Incompatible::after(writer.incompatible, guid, policy));
            writer.status |= WriterStatus::OFFERED_INCOMPATIBLE_QOS;
        }
        if found != Comparison::Fit {
            self.writers.note_writer(&mut self.shared, writer_index);
            // A known pair stops matching when one side changes PARTITION or another policy.
            if let Some(proxy) = known {
                self.remove_reader_proxy(now, proxy);
            }
            return Refusal::empty();
        }
        if let Some(proxy) = known {
            self.move_reader_proxy(proxy, reader.address);
            self.writers.set_proxy_filter(proxy, reader.filter);
            return Refusal::empty();
        }
        let reliable =
            writer.reliable && reader.data.qos.reliability.kind == ReliabilityKind::Reliable;
        let wants_history = reader.data.qos.durability > DurabilityKind::Volatile;
        let mut proxy = ReaderProxy::new(writer_index, guid, reliable);
        proxy.is_reachable = is_reachable;
        (proxy.unicast, proxy.multicast) = reader.address;
        let answers_elsewhere = self
            .discovery
            .answers_elsewhere(&self.shared, guid.prefix, to);
        self.shared.counters.readers_unvalidated += u64::from(answers_elsewhere);
        let refused = self.add_reader_proxy(now, proxy, wants_history);
        if let Some(&proxy) = self.writers.proxy_by_reader.get(&(writer_index, guid))
            && reader.filter.is_some()
        {
            self.writers.set_proxy_filter(proxy, reader.filter);
        }
        self.connect_for_liveliness(now, writer_index, guid.prefix);
        refused
    }

    /// Compares a local reader with a writer, and matches or unmatches them. Returns why a compatible pair was refused.
    fn match_reader(
        &mut self,
        now: Instant,
        reader_index: ReaderId,
        writer: &Counterpart<'_>,
    ) -> Refusal {
        let guid = writer.data.guid;
        let known = self.readers.proxy_of_writer_at(guid, reader_index);
        let is_foreign = !self.discovery.is_isolane(&self.shared, guid.prefix);
        let Some(reader) = self.readers.get_mut(reader_index) else {
            return Refusal::empty();
        };
        if reader.level.is_none() || !reader.is_enabled {
            return Refusal::empty();
        }
        let entity = reader.guid.entity;
        if !self.shared.may_match(entity, writer.is_described) {
            return Refusal::empty();
        }
        let reader = &mut self.readers.table[reader_index];
        let found = compare(writer.data, &reader.data);
        if let Comparison::Differ(policy) = found
            && writer.before.is_news(found, writer.data, &reader.data)
        {
            reader.incompatible = Some(Incompatible::after(reader.incompatible, guid, policy));
            reader.status |= ReaderStatus::REQUESTED_INCOMPATIBLE_QOS;
        }
        if found != Comparison::Fit {
            self.readers.note_reader(&mut self.shared, reader_index);
            if let Some(proxy) = known {
                self.remove_writer_proxy(now, proxy);
            }
            return Refusal::empty();
        }
        let clock = WriterLiveness::of(reader, &writer.data.qos, now);
        if let Some(proxy) = known {
            self.readers.move_writer_proxy(proxy, writer.address);
            self.watch_writer(now, proxy, clock);
            return Refusal::empty();
        }
        // A best-effort reader of a reliable writer ignores HEARTBEATs and sends no ACKNACKs.
        let mut proxy = WriterProxy::new(reader_index, guid, reader.reliable);
        proxy.held_back = FilteredNumbers::of(reader);
        proxy.is_foreign = is_foreign;
        proxy.progress = Progress::with(reader, writer.data);
        // An isolane writer answers with a GAP for samples written before the match. With other writers a VOLATILE
        // reader cannot tell history from samples written just after the match. It starts with the first sample not
        // requested, or after the first HEARTBEAT.
        proxy.skips_history =
            reader.volatile && writer.data.qos.durability > DurabilityKind::Volatile && is_foreign;
        proxy.reply_to = writer.address.0.or(writer.address.1);
        self.readers.parted.resume(&mut proxy, reader.guid);
        let refused = self.add_writer_proxy(proxy);
        if let Some(proxy) = self.readers.proxy_of_writer_at(guid, reader_index) {
            self.watch_writer(now, proxy, clock);
        }
        refused
    }

    /// Compares a remote endpoint with the endpoints of the user, and matches or unmatches accordingly.
    pub(crate) fn match_remote(&mut self, now: Instant, index: EndpointId, before: Before<'_>) {
        let Some(endpoint) = self.discovery.endpoints.get(index) else {
            return;
        };
        let (data, filter, kind) = self.discovery.as_announced(endpoint);
        let other = self
            .discovery
            .as_remote(&self.shared, index, (&data, filter.as_ref()), before);
        let mut refused = Refusal::empty();
        let is_new = matches!(before, Before::New);
        match kind {
            // A new endpoint can only match its own topic.
            EndpointKind::Reader if is_new => {
                let mut next = self.writers.by_topic.first(&data.topic_name);
                while let Some(writer) = next {
                    next = self.writers.by_topic.next(writer);
                    refused |= self.match_writer(now, writer, &other);
                }
            }
            EndpointKind::Writer if is_new => {
                let mut next = self.readers.by_topic.first(&data.topic_name);
                while let Some(reader) = next {
                    next = self.readers.by_topic.next(reader);
                    refused |= self.match_reader(now, reader, &other);
                }
            }
            EndpointKind::Reader => {
                for writer in self.writers.table.ids() {
                    refused |= self.match_writer(now, writer, &other);
                }
            }
            EndpointKind::Writer => {
                for reader in self.readers.table.ids() {
                    refused |= self.match_reader(now, reader, &other);
                }
            }
        }
        self.discovery.has_refused |= !refused.is_empty();
        if let Some(endpoint) = self.discovery.endpoints.get_mut(index) {
            endpoint.refused = refused;
        }
    }

    fn topic_of(&self, own: LocalId) -> Option<&str> {
        let data = match own {
            LocalId::Writer(writer) => &self.writers.get(writer)?.data,
            LocalId::Reader(reader) => &self.readers.get(reader)?.data,
        };
        Some(&data.topic_name)
    }

    /// Compares a user endpoint with all remote endpoints of the other kind.
    fn match_remotes(&mut self, now: Instant, own: LocalId, before: Before<'_>) {
        let topic = self.topic_of(own).map(|name| self.readers.topic_hash(name));
        let kind = match own {
            LocalId::Writer(_) => EndpointKind::Reader,
            LocalId::Reader(_) => EndpointKind::Writer,
        };
        for index in self.discovery.endpoints.ids() {
            let Some(endpoint) = self.discovery.endpoints.get(index) else {
                continue;
            };
            // A local endpoint never changes its topic.
            let is_other_topic = topic != Some(endpoint.topic);
            if endpoint.kind != kind || is_other_topic || self.discovery.is_leaving(index, endpoint)
            {
                continue;
            }
            let (data, filter, _) = self.discovery.as_announced(endpoint);
            let other =
                self.discovery
                    .as_remote(&self.shared, index, (&data, filter.as_ref()), before);
            let refused = match own {
                LocalId::Writer(writer) => self.match_writer(now, writer, &other),
                LocalId::Reader(reader) => self.match_reader(now, reader, &other),
            };
            self.discovery.has_refused |= !refused.is_empty();
            if let Some(endpoint) = self.discovery.endpoints.get_mut(index) {
                endpoint.refused |= refused;
            }
        }
    }

    /// Compares a user writer with all known readers.
    pub(crate) fn match_local_writer(
        &mut self,
        now: Instant,
        writer_index: WriterId,
        before: Before<'_>,
    ) {
        self.match_remotes(now, LocalId::Writer(writer_index), before);
        self.match_local_readers(now, writer_index, before);
    }

    /// Compares a user reader with all known writers.
    pub(crate) fn match_local_reader(
        &mut self,
        now: Instant,
        reader_index: ReaderId,
        before: Before<'_>,
    ) {
        self.match_remotes(now, LocalId::Reader(reader_index), before);
        for writer in self.writers.table.ids() {
            self.match_local(now, writer, reader_index, before);
        }
    }

    /// Compares a user writer with the readers of this participant.
    pub(crate) fn match_local_readers(
        &mut self,
        now: Instant,
        writer_index: WriterId,
        before: Before<'_>,
    ) {
        if let Some(writer) = self.writers.get_mut(writer_index) {
            writer.refused = RefusedMatches::default();
        }
        for reader in self.readers.table.ids() {
            self.match_local(now, writer_index, reader, before);
        }
    }

    /// Compares two endpoints of this participant.
    fn match_local(
        &mut self,
        now: Instant,
        writer_index: WriterId,
        reader_index: ReaderId,
        before: Before<'_>,
    ) {
        let (Some(writer), Some(reader)) = (
            self.writers.get(writer_index),
            self.readers.get(reader_index),
        ) else {
            return;
        };
        if writer.level.is_none() || reader.level.is_none() {
            return;
        }
        if !writer.is_enabled() || !reader.is_enabled {
            return;
        }
        let filter = reader.filter_text().cloned();
        let (writer, reader) = (writer.data.clone(), reader.data.clone());
        if self.discovery.is_ignored_here(&writer) || self.discovery.is_ignored_here(&reader) {
            return;
        }
        let of_writer = self.shared.as_local(&writer, before);
        let of_reader = Counterpart {
            filter: filter.as_ref(),
            ..self.shared.as_local(&reader, before)
        };
        let writers = self.match_reader(now, reader_index, &of_writer);
        let readers = self.match_writer(now, writer_index, &of_reader);
        if let Some(writer) = self.writers.get_mut(writer_index) {
            writer.refused.note(readers, writers);
            self.discovery.has_refused |= writer.refused.is_any();
        }
    }
}

impl Shared {
    /// Returns whether a local endpoint may match another one. A described endpoint is never announced, so across
    /// participants both must be described or neither.
    fn may_match(&self, own: EntityId, other_is_described: Option<bool>) -> bool {
        other_is_described.is_none_or(|other| other == self.is_described(own))
    }

    fn as_local<'a>(&self, data: &'a EndpointData, before: Before<'a>) -> Counterpart<'a> {
        let unicast = choose_own(&data.unicast, &self.config.networks);
        Counterpart {
            data,
            address: (unicast, self.group_of(&data.multicast, unicast)),
            before,
            filter: None,
            is_described: None,
        }
    }
}

impl Discovery {
    /// Returns whether a participant is this one, or a remote one of isolane.
    pub(crate) fn is_isolane(&self, shared: &Shared, prefix: GuidPrefix) -> bool {
        let found = self.by_prefix.get(&prefix);
        let participant = found.and_then(|&index| self.participants.get(index));
        participant.map_or(prefix == shared.guid_prefix(), |participant| {
            participant.data.vendor == VENDOR_ID
        })
    }

    /// Announced data of a remote endpoint.
    fn as_announced(
        &self,
        endpoint: &EndpointRecord,
    ) -> (EndpointData, Option<FilterText>, EndpointKind) {
        let data = endpoint.data(&self.announcements);
        let filter = endpoint.filter(&self.announcements);
        (data, filter, endpoint.kind)
    }

    fn as_remote<'a>(
        &self,
        shared: &Shared,
        index: EndpointId,
        (data, filter): (&'a EndpointData, Option<&'a FilterText>),
        before: Before<'a>,
    ) -> Counterpart<'a> {
        let endpoint = self.endpoints.get(index);
        let participant = endpoint.map_or(RemoteParticipantId(u16::MAX), |endpoint| {
            endpoint.participant
        });
        Counterpart {
            data,
            address: self.address_of(shared, data, participant),
            before,
            filter,
            is_described: endpoint.map(|endpoint| endpoint.is_described),
        }
    }
}
