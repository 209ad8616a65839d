//! Removal of participants and endpoints, after a farewell, a dispose or the end of a lease.
//!
//! A participant may have hundreds of matches. It is only marked here and then removed one match a step, before any
//! other discovery work. While marked it is not listed and gets no new matches.
//!
//! # Refused endpoints and matches
//!
//! Endpoints and matches refused because a table was full are retried when there is room. The refused entity itself
//! stores the reason: an endpoint or participant for its matches, a participant for its endpoints. No further table is
//! needed, and a removed entity takes its record along. An entity is retried when its reason no longer holds.

use isolane_wire::{
    guid::{Guid, GuidPrefix},
    time::Instant,
};

use crate::{
    discovery::{
        Discovery, DiscoveryChange, DiscoveryEvent, EndpointKind, EndpointRecord,
        RemoteParticipant,
        participants::{MESSAGE_ENDPOINTS, SEDP, Sedp},
    },
    limits::LEASE_GRACE,
    matching::{Before, Refusal, RefusedMatches},
    participant::{LocalParticipant, Shared},
    reader::{Readers, WriterProxy},
    slab::{EndpointId, ReaderId, RemoteParticipantId},
    work::Filed,
    work_queue::Timer,
};

impl LocalParticipant {
    /// Removes one match or one record of an entity that is being removed.
    pub(super) fn remove_one(&mut self, now: Instant) -> bool {
        if let Some(index) = self.discovery.leaving_endpoint {
            self.remove_marked_endpoint(now, index);
            return true;
        }
        if !self.discovery.has_leaving {
            return false;
        }
        let leaves = |(index, peer): (RemoteParticipantId, &RemoteParticipant)| {
            peer.leave_from.map(|from| (index, from))
        };
        let Some((index, from)) = self.discovery.participants.iter().find_map(leaves) else {
            self.discovery.has_leaving = false;
            return false;
        };
        let is_its = |&at: &EndpointId| {
            let endpoint = self.discovery.endpoints.get(at);
            endpoint.is_some_and(|endpoint| endpoint.participant == index)
        };
        let next = self.discovery.endpoints.ids_from(from).find(is_its);
        if let Some(participant) = self.discovery.participants.get_mut(index) {
            participant.leave_from =
                Some(next.unwrap_or(EndpointId(self.discovery.endpoints.end())));
        }
        match next {
            Some(endpoint) => {
                self.discovery.leaving_endpoint = Some(endpoint);
                self.remove_marked_endpoint(now, endpoint);
            }
            None => self.remove_marked_participant(now, index),
        }
        true
    }

    /// Records the reception state of the next reader to be unmatched from a writer, unless the whole participant is
    /// being removed.
    fn note_parted(&mut self, index: EndpointId, guid: Guid) {
        let endpoint = self.discovery.endpoints.get(index);
        let participant = endpoint.and_then(|it| self.discovery.participants.get(it.participant));
        if participant.is_none_or(RemoteParticipant::is_leaving) {
            return;
        }
        let proxy = self.readers.by_writer.get(&guid);
        if let Some(proxy) = proxy.and_then(|proxy| self.readers.proxies.get(proxy))
            && let Some(reader) = self.readers.get(proxy.reader)
        {
            self.readers.parted.note(proxy, reader.guid);
        }
    }

    fn remove_marked_endpoint(&mut self, now: Instant, index: EndpointId) {
        let guid = self
            .discovery
            .endpoints
            .get(index)
            .map(|endpoint| endpoint.guid);
        if let Some(guid) = guid {
            self.note_parted(index, guid);
        }
        if guid.is_some_and(|guid| self.unmatch_one(now, guid)) {
            return;
        }
        self.discovery.leaving_endpoint = None;
        self.discovery.forget_endpoint(&mut self.shared, index);
    }

    /// Removes the matches of a participant's built-in endpoints, and then the participant, once all its other
    /// endpoints are removed.
    fn remove_marked_participant(&mut self, now: Instant, index: RemoteParticipantId) {
        let participant = &self.discovery.participants[index];
        let prefix = participant.data.guid.prefix;
        let entities = SEDP.iter().flat_map(|sedp| [sedp.reader, sedp.writer]);
        for entity in entities.chain(MESSAGE_ENDPOINTS) {
            if self.unmatch_one(now, Guid { prefix, entity }) {
                return;
            }
        }
        self.readers.parted.forget(prefix);
        self.discovery.by_prefix.remove(&prefix);
        self.discovery.participants.remove(index);
        self.shared.remote_participants = self.discovery.participants.len();
        self.discovery.note_static_gone(index);
        self.shared.note_discovery();
    }

    /// Renews a participant's lease by messages of its matched endpoints. These are received at their own priority
    /// level, even when a flood at the discovery ports hides the announcements. A participant without a validated
    /// address is renewed by announcements alone. So is a statically described one, of which only the described address
    /// is trusted. Cost: one pass over all matches.
    pub(super) fn note_life_of_endpoints(&mut self, index: RemoteParticipantId) {
        let participant = self.discovery.participants.get(index);
        let Some(participant) = participant.filter(|participant| participant.is_proven()) else {
            return;
        };
        let prefix = participant.data.guid.prefix;
        if !self.discovery.is_undescribed(prefix) {
            return;
        }
        let writers = self.readers.proxies.iter().map(|(_, proxy)| proxy);
        let readers = self.writers.proxies.iter().map(|(_, proxy)| proxy);
        let heard = writers
            .filter(|proxy| proxy.guid.prefix == prefix)
            .map(|proxy| proxy.last_heard());
        let answered = readers
            .filter(|proxy| proxy.guid.prefix == prefix)
            .filter_map(|proxy| proxy.last_heard());
        let last = heard.chain(answered).max();
        if let (Some(participant), Some(last)) = (self.discovery.participants.get_mut(index), last)
        {
            participant.heard = participant.heard.max(last);
        }
    }

    /// Removes one participant whose lease has expired (RTPS 2.5 §8.5.3.2). The first call that finds the expiry only
    /// records it. A call [`LEASE_GRACE`] later removes the participant; by then, all announcements received before the
    /// expiry are processed.
    pub(super) fn expire_lease(&mut self, now: Instant) -> bool {
        if !self.discovery.leases_due {
            return false;
        }
        for index in self.discovery.participants.ids() {
            let Some(participant) = self.discovery.participants.get(index) else {
                continue;
            };
            let is_heard = self.discovery.inbox.has(participant.data.guid.prefix);
            let stays = participant.leave_from.is_some() || participant.is_assumed_alive;
            let waited = participant.missed.map(|since| now.saturating_since(since));
            let waits = waited.is_some_and(|waited| waited < LEASE_GRACE);
            if stays || waits || now < participant.lease_ends() {
                continue;
            }
            let subject = Timer::Lease(index);
            if is_heard {
                // The waiting announcement may turn out to be malformed.
                self.shared.timers.arm(subject, now + LEASE_GRACE);
                continue;
            }
            self.note_life_of_endpoints(index);
            let participant = &mut self.discovery.participants[index];
            let lease_ends = participant.lease_ends();
            let look = match waited {
                _ if now < lease_ends => {
                    participant.missed = None;
                    lease_ends
                }
                Some(waited) if waited <= 2 * LEASE_GRACE => {
                    self.shared.counters.leases_expired += 1;
                    self.discovery.remove_participant(&mut self.shared, index);
                    return true;
                }
                _ => {
                    participant.missed = Some(now);
                    now + LEASE_GRACE
                }
            };
            self.shared.timers.arm(subject, look);
            return true;
        }
        self.discovery.leases_due = false;
        false
    }
}

impl Discovery {
    /// Returns whether a remote endpoint is being removed.
    pub(crate) fn is_leaving(&self, index: EndpointId, endpoint: &EndpointRecord) -> bool {
        let participant = self.participants.get(endpoint.participant);
        self.leaving_endpoint == Some(index)
            || participant.is_none_or(|participant| participant.leave_from.is_some())
    }

    /// Starts the removal of an endpoint that its participant has disposed.
    pub(super) fn remove_endpoint(&mut self, shared: &mut Shared, guid: Guid) {
        if let Some(index) = self.by_guid.remove(&guid) {
            self.mark_revoked(index);
            self.leaving_endpoint = Some(index);
            shared.note_discovery();
            shared.schedule_discovery();
        }
    }

    /// Starts the removal of a participant, after its farewell or the end of its lease.
    pub(super) fn remove_participant(&mut self, shared: &mut Shared, index: RemoteParticipantId) {
        let Some(participant) = self.participants.get_mut(index) else {
            return;
        };
        if participant.is_leaving() {
            return;
        }
        participant.leave_from = Some(EndpointId(0));
        self.has_leaving = true;
        participant.follow_from = None;
        let guid = participant.data.guid;
        shared.timers.disarm(Timer::Lease(index));
        shared.work_queue.withdraw(&[Filed::Announce(Some(index))]);
        self.note_event(
            shared,
            DiscoveryEvent::Participant(guid, DiscoveryChange::Gone),
        );
        shared.schedule_discovery();
    }

    /// Handles an expired lease timer. Announcements may still wait to be read, so nothing is removed yet.
    pub(crate) fn lease_due(&mut self, shared: &mut Shared) {
        self.leases_due = true;
        shared.schedule_discovery();
    }
}

/// Refused writers, or refused readers, of one participant.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RefusedEndpoints {
    /// Pieces needed by the shortest refused announcement, for each reason of [`Refusal`]; `None` if none was refused.
    /// Index 0 is for changed endpoints, which need no further place for an endpoint, and index 1 for new endpoints.
    pieces: [[Option<u16>; 3]; 2],
}

impl RefusedEndpoints {
    /// Records an announcement that needs `pieces`, of a new or a known endpoint.
    pub(super) fn note(&mut self, why: Refusal, is_new: bool, pieces: usize) {
        let pieces = u16::try_from(pieces).unwrap_or(u16::MAX);
        let noted = &mut self.pieces[usize::from(is_new)];
        for (least, reason) in noted.iter_mut().zip(Refusal::all().iter()) {
            if why.contains(reason) {
                *least = Some(least.map_or(pieces, |least| least.min(pieces)));
            }
        }
    }

    /// Returns whether one of the refused announcements may find room now. `fits` takes whether the topic has the
    /// highest level in use, and the numbers of endpoints and pieces; it returns whether these are free.
    fn is_over(&self, fits: impl Fn(bool, usize, usize) -> bool, is_in_share: bool) -> bool {
        (0..).zip(&self.pieces).any(|(endpoints, noted)| {
            let mut reasons = noted.iter().zip(Refusal::all().iter());
            reasons.any(|(least, reason)| {
                least.is_some_and(|pieces| {
                    let fits = |is_highest| fits(is_highest, endpoints, pieces.into());
                    reason.is_over(fits, is_in_share)
                })
            })
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.iter().flatten().all(Option::is_none)
    }
}

impl LocalParticipant {
    /// Retries the refused matches of one entity if there may be room. An attempt creates a match or finds another
    /// reason for refusal.
    pub(super) fn join_refused(&mut self, now: Instant) -> bool {
        if !self.discovery.has_place {
            return false;
        }
        let of_readers = |why: Refusal, has| why.is_over_in(&self.writers.proxies, has);
        let of_writers = |why: Refusal, has| why.is_over_in(&self.readers.proxies, has);
        // Local matches and those of discovery belong to no share.
        let of_both =
            |why: RefusedMatches| of_readers(why.readers, 0) || of_writers(why.writers, 0);
        let participant = self
            .discovery
            .participants
            .find(|peer| of_both(peer.refused) || of_both(peer.messages_refused));
        if let Some(index) = participant {
            self.connect_refused(now, index);
            return true;
        }
        let endpoint = self.discovery.endpoints.find(|endpoint| {
            let peer = self.discovery.participants.get(endpoint.participant);
            let has = peer.map_or(0, |peer| usize::from(peer.matches));
            match endpoint.kind {
                EndpointKind::Reader => of_readers(endpoint.refused, has),
                EndpointKind::Writer => of_writers(endpoint.refused, has),
            }
        });
        if let Some(index) = endpoint {
            self.match_remote(now, index, Before::Unchanged);
            return true;
        }
        if let Some(index) = self.writers.table.find(|writer| of_both(writer.refused)) {
            self.match_local_readers(now, index, Before::Unchanged);
            return true;
        }
        self.discovery.has_place = false;
        let is_refused =
            |peer: &RemoteParticipant| peer.refused.is_any() || peer.messages_refused.is_any();
        self.discovery.has_refused = self.discovery.participants.find(is_refused).is_some()
            || self
                .discovery
                .endpoints
                .find(|endpoint| !endpoint.refused.is_empty())
                .is_some()
            || self
                .writers
                .table
                .find(|writer| writer.refused.is_any())
                .is_some();
        false
    }

    fn connect_refused(&mut self, now: Instant, index: RemoteParticipantId) {
        self.connect_sedp(now, index);
        let Some(participant) = self.discovery.participants.get_mut(index) else {
            return;
        };
        let prefix = participant.data.guid.prefix;
        // Repeated refusals are recorded again.
        let refused = core::mem::take(&mut participant.messages_refused);
        if !refused.writers.is_empty() {
            self.connect_message_reader(prefix);
        }
        if !refused.readers.is_empty() {
            self.connect_message_writer(now, prefix);
        }
    }

    /// Requests all announcements of a participant again, from the oldest one that was replaced or disposed.
    pub(super) fn request_revoked(&mut self, index: RemoteParticipantId) {
        let Some(participant) = self.discovery.participants.get_mut(index) else {
            return;
        };
        let prefix = participant.data.guid.prefix;
        let revoked = core::mem::take(&mut participant.revoked);
        for (reader, sedp) in (0u16..).zip(&SEDP) {
            if let Some(number) = revoked[usize::from(reader)] {
                self.readers.ask_sedp_again(
                    &mut self.shared,
                    ReaderId(reader),
                    sedp,
                    prefix,
                    |proxy| proxy.restart_from(number),
                );
            }
        }
    }

    /// Requests all endpoints of a participant again, if some were refused and there is room for one of them now.
    ///
    /// This happens at most once for each of the participant's own announcements. Otherwise one peer that repeatedly
    /// frees and takes a place could make all other peers repeat their announcements.
    pub(super) fn ask_for_refused(&mut self, index: RemoteParticipantId) {
        for (reader, sedp) in (0u16..).zip(&SEDP) {
            let Some(participant) = self.discovery.participants.get(index) else {
                return;
            };
            let prefix = participant.data.guid.prefix;
            let refused = participant.refused_endpoints[usize::from(reader)];
            let fits = |is_highest, endpoints, pieces| {
                self.discovery
                    .has_endpoint_room(is_highest, endpoints, pieces)
            };
            if !refused.is_over(fits, self.discovery.is_in_share(index)) {
                continue;
            }
            if let Some(participant) = self.discovery.participants.get_mut(index) {
                participant.refused_endpoints[usize::from(reader)] = RefusedEndpoints::default();
            }
            // All announcements were acknowledged, so the proxy must start from the first number.
            self.readers.ask_sedp_again(
                &mut self.shared,
                ReaderId(reader),
                sedp,
                prefix,
                WriterProxy::restart,
            );
        }
    }
}

impl Readers {
    /// Resets the proxy of a participant's SEDP writer with `forget`, and requests the missing announcements.
    fn ask_sedp_again(
        &mut self,
        shared: &mut Shared,
        reader: ReaderId,
        sedp: &Sedp,
        prefix: GuidPrefix,
        forget: impl FnOnce(&mut WriterProxy),
    ) {
        let entity = sedp.writer;
        let Some(index) = self.proxy_of_writer_at(Guid { prefix, entity }, reader) else {
            return;
        };
        let reader = self.table.get_mut(reader);
        if let Some(cache) = reader.and_then(|reader| reader.cache.as_mut()) {
            cache.forget_waiting(index);
        }
        if let Some(proxy) = self.proxies.get_mut(index) {
            forget(proxy);
        }
        self.schedule_acknack(shared, index);
    }
}

impl Discovery {
    /// Schedules a retry of refused matches after a match has ended.
    pub(crate) fn note_place(&mut self, shared: &mut Shared) {
        if self.has_refused {
            self.has_place = true;
            shared.schedule_discovery();
        }
    }

    /// Records that an announcement was replaced or disposed. This may have been forged, so the announcement is
    /// requested once more after the participant's own next announcement.
    pub(super) fn mark_revoked(&mut self, endpoint: EndpointId) {
        let endpoint = &self.endpoints[endpoint];
        let nth = usize::from(endpoint.kind == EndpointKind::Reader);
        let participant = self.participants.get_mut(endpoint.participant);
        if let (Some(participant), Some(number)) = (participant, endpoint.announced_by) {
            let revoked = &mut participant.revoked[nth];
            *revoked = Some(revoked.map_or(number, |lowest| lowest.min(number)));
        }
    }
}
