//! SEDP: what endpoints there are, of peers and to peers (RTPS 2.5 §8.5.4).
//!
//! Going out it is two writers like any other, reliable and TRANSIENT_LOCAL, whose instances are this
//! participant's endpoints. Coming in it is two readers like any other, whose caches are emptied one
//! announcement a step.

use isolane_wire::{
    discovery::{EndpointData, EndpointKey, emit_key_guid, parse_key_guid},
    guid::Guid,
    locator::Locator,
    sequence::SequenceNumber,
    time::Instant,
};

use super::{
    DiscoveryChange, DiscoveryEvent, EndpointKind, RemoteEndpoint, SUBSCRIPTIONS,
    reach::AROUND_ANNOUNCEMENT_BYTES,
};
use crate::{
    content_filter::FilterText,
    engine::Engine,
    history::ChangeKind,
    ids::WriterId,
    limits::DISCOVERY_SLOT_BYTES,
    matching::choose,
    write::{WriteError, WriteSample},
};

impl Engine {
    pub(super) fn take_in_endpoint(
        &mut self,
        now: Instant,
        reader: u16,
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
        self.discard_oldest(reader);
        self.earn(prefix, bytes);
        match announced {
            // A participant announces its own endpoints only.
            Ok(Some(data)) if data.guid.prefix == prefix => {
                self.update_endpoint(now, data, kind, filter, number);
            }
            Ok(None) => {
                if let Some(guid) = ended.filter(|guid| guid.prefix == prefix)
                    && !self.is_known_by_description(guid)
                {
                    self.remove_endpoint(guid);
                }
            }
            _ => self.counters.malformed_announcements += 1,
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
        let Some(&participant) = self.participant_by_prefix.get(&guid.prefix) else {
            return;
        };
        if self.is_ignored_endpoint(&data) {
            return;
        }
        if self.is_known_by_description(guid) {
            self.compare_described(&data);
            return;
        }
        if let Some(&known) = self.endpoint_by_guid.get(&guid) {
            self.change_endpoint(now, known, data, filter, number);
            return;
        }
        self.counters.octets_cut += data.qos.octets_cut();
        let found = RemoteEndpoint {
            data,
            kind,
            participant,
            announced_by: Some(number),
            is_refused: false,
            is_described: false,
            filter,
        };
        let has_place = self.has_endpoint_place();
        let Some(Ok(index)) = has_place.then(|| self.endpoints.insert(found)) else {
            self.counters.endpoints_refused += 1;
            if let Some(participant) = self.participants.get_mut(participant) {
                let nth = usize::from(kind == EndpointKind::Reader);
                participant.are_endpoints_refused[nth] = true;
            }
            return;
        };
        self.endpoint_by_guid.insert(guid, index);
        self.note_event(DiscoveryEvent::endpoint(kind, guid, DiscoveryChange::Found));
        self.match_remote(now, index);
    }

    /// An endpoint is announced that is known already, perhaps with other policies.
    fn change_endpoint(
        &mut self,
        now: Instant,
        index: u16,
        data: EndpointData,
        filter: Option<FilterText>,
        number: SequenceNumber,
    ) {
        let Some(endpoint) = self.endpoints.get_mut(index) else {
            return;
        };
        if endpoint.data == data && endpoint.filter == filter {
            endpoint.announced_by = Some(number);
            return;
        }
        self.doubt(index);
        let Some(endpoint) = self.endpoints.get_mut(index) else {
            return;
        };
        endpoint.announced_by = Some(number);
        endpoint.filter = filter;
        self.counters.octets_cut += data.qos.octets_cut();
        let former = core::mem::replace(&mut endpoint.data, data);
        let (guid, kind) = (former.guid, endpoint.kind);
        let changed = DiscoveryEvent::endpoint(kind, guid, DiscoveryChange::Changed);
        self.note_event(changed);
        self.match_remote_changed(now, index, &former);
    }

    /// Announces a local endpoint, or its end.
    pub(crate) fn announce_endpoint(
        &mut self,
        now: Instant,
        builtin: u16,
        data: &EndpointData,
        kind: ChangeKind,
    ) -> Result<(), WriteError> {
        if self.is_described(data.guid.entity) {
            return Ok(());
        }
        let key_hash = Some(data.guid.to_bytes());
        let id = WriterId(builtin);
        let timestamp = self.timestamp(now);
        if !self.has_room(id, key_hash)
            && let Some(writer) = self.writers.get_mut(builtin)
        {
            // The end of an endpoint is kept as long as there is room, for a peer that has not
            // heard of us for a while and still knows it; of those all others know the oldest goes.
            let lowest = writer.lowest_unacknowledged();
            if let Some(history) = &mut writer.history {
                history.remove_oldest_end_below(lowest);
                if history.room_for(key_hash).is_err() {
                    // A peer that acknowledges nothing must not keep the user from creating
                    // endpoints; it will not learn of that end.
                    history.remove_oldest_end_below(SequenceNumber(i64::MAX));
                }
            }
        }
        let filter = match builtin {
            SUBSCRIPTIONS => self.filter_of_own(data.guid).cloned(),
            _ => None,
        };
        let slot = self.reserve(id, key_hash)?;
        let emitted = match kind {
            ChangeKind::Alive => data.emit_filtered(filter.as_ref().map(FilterText::value), slot),
            _ => emit_key_guid(EndpointKey::Endpoint, data.guid, slot),
        };
        let limit = DISCOVERY_SLOT_BYTES;
        let length = emitted.map_err(|_| WriteError::TooLarge { limit })?;
        self.commit(
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

    /// The address of an endpoint: its own locator, or its participant's default.
    pub(crate) fn address_of(
        &self,
        endpoint: &RemoteEndpoint,
    ) -> (Option<Locator>, Option<Locator>) {
        let networks = &self.config.networks;
        let own = choose(&endpoint.data.unicast, networks);
        let participant = self.participants.get(endpoint.participant);
        let default = participant.and_then(|p| choose(&p.data.default_unicast, networks));
        let unicast = own.or(default);
        let group = self.group_of(&endpoint.data.multicast, unicast);
        match (own, group, participant) {
            (None, None, Some(participant)) => {
                let group = self.group_of(&participant.data.default_multicast, unicast);
                (unicast, group)
            }
            _ => (unicast, group),
        }
    }
}
