//! SEDP: announcements of endpoints, received and sent (RTPS 2.5 §8.5.4).
//!
//! Two ordinary reliable TRANSIENT_LOCAL writers send, with this participant's endpoints as instances. Two ordinary
//! readers receive; their caches are emptied one announcement a step.

use isolane_wire::{
    builtin_data::{EndpointData, KeyKind, emit_key_guid, parse_key_guid},
    guid::Guid,
    locator::Locator,
    sequence::SequenceNumber,
    time::Instant,
};

use crate::{
    content_filter::FilterText,
    discovery::{
        Discovery, DiscoveryChange, DiscoveryEvent, EndpointKind, EndpointRecord, SUBSCRIPTIONS,
        amplification::AROUND_ANNOUNCEMENT_BYTES,
        announcement_store::{PIECES_PER_ENDPOINT, SerializedAnnouncement},
    },
    limits::DISCOVERY_SLOT_BYTES,
    matching::{Before, Refusal, choose_own, share_of},
    participant::{Facts, LocalParticipant, Shared},
    reader::Readers,
    slab::{EndpointId, Full, ReaderId, RemoteParticipantId, WriterId},
    writer::{
        history::ChangeKind,
        write::{WriteError, WriteSample},
    },
};

impl LocalParticipant {
    pub(super) fn take_in_endpoint(
        &mut self,
        now: Instant,
        reader: ReaderId,
        kind: EndpointKind,
    ) -> bool {
        let Some(cache) = self
            .readers
            .get(reader)
            .and_then(|reader| reader.cache.as_ref())
        else {
            return false;
        };
        let Some((info, payload)) = cache.get(0) else {
            return false;
        };
        let (prefix, number) = (info.writer.prefix, info.sequence);
        let bytes = payload.len() + AROUND_ANNOUNCEMENT_BYTES;
        let filter = match kind {
            EndpointKind::Writer => None,
            EndpointKind::Reader => FilterText::of(payload),
        };
        let announced = if info.kind == ChangeKind::Alive {
            let parsed = match kind {
                EndpointKind::Writer => EndpointData::parse_writer(payload),
                EndpointKind::Reader => EndpointData::parse_reader(payload),
            };
            parsed.map(Some)
        } else {
            Ok(None)
        };
        let ended = parse_key_guid(payload).or(info.key_hash.map(Guid::from_bytes));
        self.readers.discard_oldest(
            &mut self.shared,
            Facts::of(&self.writers, &self.discovery),
            reader,
        );
        self.discovery.credit(prefix, bytes);
        match announced {
            Ok(Some(data)) if data.guid.prefix == prefix => {
                self.update_endpoint(now, data, kind, filter, number);
            }
            Ok(None) => {
                if let Some(guid) = ended.filter(|guid| guid.prefix == prefix)
                    && !self.discovery.is_known_by_description(guid)
                {
                    self.discovery.remove_endpoint(&mut self.shared, guid);
                }
            }
            _ => self.shared.counters.malformed_announcements += 1,
        }
        true
    }

    fn update_endpoint(
        &mut self,
        now: Instant,
        data: EndpointData,
        kind: EndpointKind,
        filter: Option<FilterText>,
        number: SequenceNumber,
    ) {
        let guid = data.guid;
        let Some(&participant) = self.discovery.by_prefix.get(&guid.prefix) else {
            return;
        };
        if self.discovery.is_ignored_endpoint(&mut self.shared, &data) {
            return;
        }
        if self.discovery.is_known_by_description(guid) {
            self.discovery.compare_described(&mut self.shared, &data);
            return;
        }
        if let Some(&known) = self.discovery.by_guid.get(&guid) {
            self.change_endpoint(now, known, data, filter, number);
            return;
        }
        let Ok(written) = SerializedAnnouncement::of(&data, filter.as_ref()) else {
            self.shared.counters.malformed_announcements += 1;
            return;
        };
        let fits = |is_highest| {
            self.discovery
                .has_endpoint_room(is_highest, 1, written.pieces())
        };
        let is_highest = self.is_most_critical(&data.topic_name);
        let refused = Refusal::of(fits, is_highest, self.discovery.is_in_share(participant));
        let topic = self.readers.topic_hash(&data.topic_name);
        let (shared, discovery) = (&mut self.shared, &mut self.discovery);
        let entered = match refused.is_empty() {
            true => discovery
                .enter_endpoint(shared, topic, &data, &written, kind, participant)
                .map_err(|_| Refusal::FULL),
            false => Err(refused),
        };
        let index = match entered {
            Ok(index) => index,
            Err(why) => {
                let pieces = written.pieces();
                discovery.note_refused_endpoint(shared, participant, kind, why, true, pieces);
                return;
            }
        };
        self.shared.counters.octets_cut += data.qos.octets_cut();
        if let Some(endpoint) = self.discovery.endpoints.get_mut(index) {
            endpoint.announced_by = Some(number);
        }
        self.match_remote(now, index, Before::New);
    }

    /// Processes another announcement of a known endpoint, perhaps with changed QoS.
    fn change_endpoint(
        &mut self,
        now: Instant,
        index: EndpointId,
        data: EndpointData,
        filter: Option<FilterText>,
        number: SequenceNumber,
    ) {
        let Ok(written) = SerializedAnnouncement::of(&data, filter.as_ref()) else {
            self.shared.counters.malformed_announcements += 1;
            return;
        };
        let endpoint = &mut self.discovery.endpoints[index];
        if self.discovery.announcements.says(&endpoint.kept, &written) {
            endpoint.announced_by = Some(number);
            return;
        }
        let (kind, participant) = (endpoint.kind, endpoint.participant);
        let (before, after) = (endpoint.kept.pieces(), written.pieces());
        if after > before {
            let fits = |is_highest| {
                self.discovery
                    .has_endpoint_room(is_highest, 0, after - before)
            };
            let is_highest = self.is_most_critical(&data.topic_name);
            let refused = Refusal::of(fits, is_highest, self.discovery.is_in_share(participant));
            if !refused.is_empty() {
                // The known version remains valid.
                self.discovery.note_refused_endpoint(
                    &mut self.shared,
                    participant,
                    kind,
                    refused,
                    false,
                    after - before,
                );
                return;
            }
        }
        self.discovery.mark_revoked(index);
        let endpoint = &mut self.discovery.endpoints[index];
        let former = endpoint.data(&self.discovery.announcements);
        self.discovery.announcements.release(&endpoint.kept);
        let Ok(kept) = self.discovery.announcements.keep(&written) else {
            debug_assert!(false, "there was room");
            return;
        };
        endpoint.announced_by = Some(number);
        endpoint.kept = kept;
        (endpoint.topic, endpoint.group) =
            (self.readers.by_topic.hash(&data.topic_name), data.group);
        self.shared.counters.octets_cut += data.qos.octets_cut();
        let changed = DiscoveryEvent::endpoint(endpoint.kind, data.guid, DiscoveryChange::Changed);
        self.discovery.note_event(&mut self.shared, changed);
        if let Some(participant) = self.discovery.participants.get_mut(participant) {
            participant.pieces -= counted(before);
            participant.pieces += counted(after);
        }
        self.match_remote(now, index, Before::Was(&former));
    }

    /// Announces a local endpoint, or disposes it.
    pub(crate) fn announce_endpoint(
        &mut self,
        now: Instant,
        builtin: WriterId,
        data: &EndpointData,
        kind: ChangeKind,
    ) -> Result<(), WriteError> {
        if self.shared.is_described(data.guid.entity) {
            return Ok(());
        }
        let key_hash = Some(data.guid.to_bytes());
        let id = builtin;
        let timestamp = self.shared.timestamp(now);
        if !self.has_room(id, key_hash)
            && let Some(writer) = self.writers.get_mut(builtin)
        {
            // Disposes stay in the history while there is room, for peers that were out of reach. The oldest dispose
            // that all peers have acknowledged is removed first.
            let lowest = writer.lowest_unacknowledged();
            if let Some(history) = &mut writer.history {
                history.remove_oldest_end_below(lowest);
                if history.room_for(key_hash).is_err() {
                    // A peer that acknowledges nothing must not block new endpoints; it misses this dispose.
                    history.remove_oldest_end_below(SequenceNumber(i64::MAX));
                }
            }
        }
        let filter = match builtin {
            WriterId(SUBSCRIPTIONS) => self.readers.filter_of_own(data.guid).cloned(),
            _ => None,
        };
        let slot = self.writers.reserve(id, key_hash, 0)?;
        let emitted = match kind {
            ChangeKind::Alive => data.emit_filtered(filter.as_ref().map(FilterText::value), slot),
            _ => emit_key_guid(KeyKind::Endpoint, data.guid, slot),
        };
        let limit = DISCOVERY_SLOT_BYTES;
        let length = emitted.map_err(|_| WriteError::TooLarge { limit })?;
        self.writers.commit(
            &mut self.shared,
            id,
            &WriteSample {
                kind,
                key_hash,
                timestamp,
            },
            length,
        )?;
        Ok(())
    }
}

impl Readers {
    pub(crate) fn topic_hash(&self, topic_name: &str) -> u64 {
        self.by_topic.hash(topic_name)
    }
}

impl Discovery {
    /// Enters a remote endpoint in the table. `topic` is the hash of its topic name.
    pub(super) fn enter_endpoint(
        &mut self,
        shared: &mut Shared,
        topic: u64,
        data: &EndpointData,
        written: &SerializedAnnouncement,
        kind: EndpointKind,
        participant: RemoteParticipantId,
    ) -> Result<EndpointId, Full> {
        if self.endpoints.is_full() {
            return Err(Full);
        }
        let guid = data.guid;
        let index = self.endpoints.insert(EndpointRecord {
            guid,
            kind,
            participant,
            announced_by: None,
            refused: Refusal::empty(),
            is_described: false,
            topic,
            group: data.group,
            kept: self.announcements.keep(written)?,
        })?;
        self.by_guid.insert(guid, index);
        if let Some(participant) = self.participants.get_mut(participant) {
            participant.pieces += counted(written.pieces());
        }
        self.note_event(
            shared,
            DiscoveryEvent::endpoint(kind, guid, DiscoveryChange::Found),
        );
        Ok(index)
    }

    /// Returns whether there is room for `endpoints` more endpoints and `pieces` more announcement pieces. Topics of
    /// the highest level in use may use reserved places. Room for described peers that are currently gone stays
    /// reserved.
    pub(super) fn has_endpoint_room(
        &self,
        is_highest: bool,
        endpoints: usize,
        pieces: usize,
    ) -> bool {
        let missing = self.missing_static_endpoints();
        let kept_pieces = missing * PIECES_PER_ENDPOINT;
        self.endpoints.free_for(is_highest) >= endpoints + missing
            && self.announcements.free_for(is_highest) >= pieces + kept_pieces
    }

    /// Returns whether a participant uses less than its share of endpoints and announcement pieces.
    pub(super) fn is_in_share(&self, participant: RemoteParticipantId) -> bool {
        let participant = self.participants.get(participant);
        let has = participant.map_or(0, |participant| participant.pieces);
        let free_pieces = self.announcements.free_for(true);
        let free = self.endpoints.free().min(free_pieces / PIECES_PER_ENDPOINT);
        has < share_of(free) * PIECES_PER_ENDPOINT
    }

    /// Counts an endpoint, or a change of one, that is refused for lack of room. The announcement is requested again
    /// when there may be room.
    fn note_refused_endpoint(
        &mut self,
        shared: &mut Shared,
        participant: RemoteParticipantId,
        kind: EndpointKind,
        why: Refusal,
        is_new: bool,
        pieces: usize,
    ) {
        let is_share = why == Refusal::SHARE;
        shared.counters.shares_exceeded += u64::from(is_share);
        shared.counters.endpoints_refused += u64::from(!is_share);
        if let Some(participant) = self.participants.get_mut(participant) {
            let nth = usize::from(kind == EndpointKind::Reader);
            participant.refused_endpoints[nth].note(why, is_new, pieces);
        }
    }

    /// Removes a remote endpoint without matches from the table.
    pub(super) fn forget_endpoint(&mut self, shared: &mut Shared, index: EndpointId) {
        if let Some(endpoint) = self.endpoints.remove(index) {
            self.announcements.release(&endpoint.kept);
            self.by_guid.remove(&endpoint.guid);
            if let Some(participant) = self.participants.get_mut(endpoint.participant) {
                participant.pieces -= counted(endpoint.kept.pieces());
            }
            let gone =
                DiscoveryEvent::endpoint(endpoint.kind, endpoint.guid, DiscoveryChange::Gone);
            self.note_event(shared, gone);
        }
    }

    /// Returns the unicast and multicast addresses of an endpoint: its own, or its participant's defaults.
    pub(crate) fn address_of(
        &self,
        shared: &Shared,
        data: &EndpointData,
        participant: RemoteParticipantId,
    ) -> (Option<Locator>, Option<Locator>) {
        let participant = self.participants.get(participant);
        let own = match participant {
            Some(participant) => shared.choose_of(participant, &data.unicast),
            None => choose_own(&data.unicast, &shared.config.networks),
        };
        let default = participant.and_then(|it| shared.choose_of(it, &it.data.default_unicast));
        let unicast = own.or(default);
        let group = shared.group_of(&data.multicast, unicast);
        match (own, group, participant) {
            (None, None, Some(participant)) => {
                let group = shared.group_of(&participant.data.default_multicast, unicast);
                (unicast, group)
            }
            _ => (unicast, group),
        }
    }
}

/// Pieces charged to a participant's share for an announcement.
fn counted(pieces: usize) -> usize {
    pieces.max(PIECES_PER_ENDPOINT)
}

#[cfg(test)]
mod tests {
    use isolane_wire::{
        builtin_data::{LocatorList, ParticipantData},
        guid::{EntityId, EntityKind, GuidPrefix},
        qos::{Octets, QosPolicies},
    };

    use super::*;
    use crate::{
        ParticipantConfig,
        discovery::{RemoteParticipant, announcement_store::StoredAnnouncement},
        limits::MAX_DATA_PAYLOAD_BYTES,
        participant::local_endpoints::EndpointConfig,
    };

    #[test]
    fn a_changed_policy_reads_no_announcement_of_another_topic() {
        let now = Instant::new(1);
        let mut protocol =
            LocalParticipant::new(ParticipantConfig::new(0, GuidPrefix([1; 12]), 1), now);
        let config = EndpointConfig {
            topic_name: "Own",
            type_name: "t::T",
            keyed: false,
            key_of: None,
            qos: QosPolicies::writer_default(),
            max_payload_bytes: 64,
            shares_long: false,
            max_datagram_bytes: MAX_DATA_PAYLOAD_BYTES,
            unicast: LocatorList::new(),
            multicast: LocatorList::new(),
        };
        let writer = protocol.create_writer(now, &config).expect("there is room");
        let prefix = GuidPrefix([2; 12]);
        let peer = RemoteParticipant::new(ParticipantData::new(prefix), now);
        let peer = protocol
            .discovery
            .participants
            .insert(peer)
            .expect("there is room");
        let entity = EntityId::user(1, EntityKind::READER_NO_KEY);
        let mut data = EndpointData::new(Guid { prefix, entity });
        data.topic_name = "Other".try_into().expect("short");
        let written = SerializedAnnouncement::of(&data, None).expect("it fits");
        let (shared, topic) = (&mut protocol.shared, protocol.readers.topic_hash("Other"));
        let entered = protocol.discovery.enter_endpoint(
            shared,
            topic,
            &data,
            &written,
            EndpointKind::Reader,
            peer,
        );
        // The piece is missing: reading the announcement would fail a debug assertion.
        let endpoint = protocol
            .discovery
            .endpoints
            .get_mut(entered.expect("there is room"));
        endpoint.expect("it is there").kept = StoredAnnouncement::NONE;
        let mut qos = config.qos.clone();
        qos.user_data = Octets::of(b"changed").expect("short");
        assert_eq!(protocol.set_writer_qos(now, writer, &qos), Ok(()));
    }
}
