//! Removal of participants and endpoints, after a farewell, a dispose or the end of a lease.
//!
//! A participant may have hundreds of matches. It is only marked here and then removed one match a step, before any
//! other discovery work. While marked it is not listed and gets no new matches.

use isolane_wire::{guid::Guid, time::Instant};

use super::{
    DiscoveryChange, DiscoveryEvent, EndpointRecord, RemoteParticipant,
    participants::{MESSAGE_ENDPOINTS, SEDP},
};
use crate::{
    engine::{Engine, Subject},
    limits::LEASE_GRACE,
    work::WorkKind,
};

impl Engine {
    /// Returns whether a remote endpoint is being removed.
    pub(crate) fn is_leaving(&self, index: u16, endpoint: &EndpointRecord) -> bool {
        let participant = self.participants.get(endpoint.participant);
        self.leaving_endpoint == Some(index)
            || participant.is_none_or(|participant| participant.leave_from.is_some())
    }

    /// Starts the removal of an endpoint that its participant has disposed.
    pub(super) fn remove_endpoint(&mut self, guid: Guid) {
        if let Some(index) = self.endpoint_by_guid.remove(&guid) {
            self.doubt(index);
            self.leaving_endpoint = Some(index);
            self.note_discovery();
            self.file_discovery();
        }
    }

    /// Starts the removal of a participant, after its farewell or the end of its lease.
    pub(super) fn remove_participant(&mut self, index: u16) {
        let Some(participant) = self.participants.get_mut(index) else {
            return;
        };
        if participant.is_leaving() {
            return;
        }
        participant.leave_from = Some(0);
        self.has_leaving = true;
        participant.follow_from = None;
        let guid = participant.data.guid;
        self.timers
            .disarm(Subject::lease(index, &self.config.limits));
        self.board.withdraw(&[WorkKind::Announce], index + 1);
        self.note_event(DiscoveryEvent::Participant(guid, DiscoveryChange::Gone));
        self.file_discovery();
    }

    /// Removes one match or one record of an entity that is being removed.
    pub(super) fn part_one(&mut self, now: Instant) -> bool {
        if let Some(index) = self.leaving_endpoint {
            self.part_endpoint(now, index);
            return true;
        }
        if !self.has_leaving {
            return false;
        }
        let leaves =
            |(index, peer): (u16, &RemoteParticipant)| peer.leave_from.map(|from| (index, from));
        let Some((index, from)) = self.participants.iter().find_map(leaves) else {
            self.has_leaving = false;
            return false;
        };
        let is_its = |&at: &u16| {
            let endpoint = self.endpoints.get(at);
            endpoint.is_some_and(|endpoint| endpoint.participant == index)
        };
        let next = (from..self.endpoints.end()).find(is_its);
        if let Some(participant) = self.participants.get_mut(index) {
            participant.leave_from = Some(next.unwrap_or(self.endpoints.end()));
        }
        match next {
            Some(endpoint) => {
                self.leaving_endpoint = Some(endpoint);
                self.part_endpoint(now, endpoint);
            }
            None => self.part_participant(now, index),
        }
        true
    }

    /// Records the reception state of the next reader to be unmatched from a writer, unless the whole participant is
    /// being removed.
    fn note_parted(&mut self, index: u16, guid: Guid) {
        let endpoint = self.endpoints.get(index);
        let participant = endpoint.and_then(|it| self.participants.get(it.participant));
        if participant.is_none_or(RemoteParticipant::is_leaving) {
            return;
        }
        let proxy = self.proxies_of_writer.get(&guid);
        if let Some(proxy) = proxy.and_then(|proxy| self.writer_proxies.get(proxy))
            && let Some(reader) = self.readers.get(proxy.reader)
        {
            self.parted.note(proxy, reader.guid);
        }
    }

    fn part_endpoint(&mut self, now: Instant, index: u16) {
        let guid = self.endpoints.get(index).map(|endpoint| endpoint.guid);
        if let Some(guid) = guid {
            self.note_parted(index, guid);
        }
        if guid.is_some_and(|guid| self.unmatch_one(now, guid)) {
            return;
        }
        self.leaving_endpoint = None;
        self.forget_endpoint(index);
    }

    /// Removes the matches of a participant's built-in endpoints, and then the participant, once all its other
    /// endpoints are removed.
    fn part_participant(&mut self, now: Instant, index: u16) {
        let Some(participant) = self.participants.get(index) else {
            return;
        };
        let prefix = participant.data.guid.prefix;
        let entities = SEDP.iter().flat_map(|sedp| [sedp.reader, sedp.writer]);
        for entity in entities.chain(MESSAGE_ENDPOINTS) {
            if self.unmatch_one(now, Guid { prefix, entity }) {
                return;
            }
        }
        self.parted.forget(prefix);
        self.participant_by_prefix.remove(&prefix);
        self.participants.remove(index);
        self.note_static_gone(index);
        self.note_discovery();
    }

    /// Handles an expired lease timer. Announcements may still wait to be read, so nothing is removed yet.
    pub(crate) fn lease_due(&mut self) {
        self.leases_due = true;
        self.file_discovery();
    }

    /// Renews a participant's lease by messages of its matched endpoints. These are received at their own priority
    /// level, even when a flood at the discovery ports hides the announcements. A participant without a validated
    /// address is renewed by announcements alone. So is a statically described one, of which only the described address
    /// is trusted. Cost: one pass over all matches.
    pub(super) fn note_life_of_endpoints(&mut self, index: u16) {
        let participant = self.participants.get(index);
        let Some(participant) = participant.filter(|participant| participant.is_proven()) else {
            return;
        };
        let prefix = participant.data.guid.prefix;
        if !self.is_stranger(prefix) {
            return;
        }
        let writers = self.writer_proxies.iter().map(|(_, proxy)| proxy);
        let readers = self.reader_proxies.iter().map(|(_, proxy)| proxy);
        let heard = writers
            .filter(|proxy| proxy.guid.prefix == prefix)
            .map(|proxy| proxy.last_heard());
        let answered = readers
            .filter(|proxy| proxy.guid.prefix == prefix)
            .filter_map(|proxy| proxy.last_heard());
        let last = heard.chain(answered).max();
        if let (Some(participant), Some(last)) = (self.participants.get_mut(index), last) {
            participant.heard = participant.heard.max(last);
        }
    }

    /// Removes one participant whose lease has expired (RTPS 2.5 §8.5.3.2). It is removed [`LEASE_GRACE`] after the
    /// expiry was found at this same priority, when all announcements received until then are processed.
    pub(super) fn forget_silent_participant(&mut self, now: Instant) -> bool {
        if !self.leases_due {
            return false;
        }
        for index in 0..self.participants.end() {
            let Some(participant) = self.participants.get(index) else {
                continue;
            };
            let is_heard = self.inbox.has(participant.data.guid.prefix);
            let stays = participant.leave_from.is_some() || participant.is_assumed_alive;
            let waited = participant.missed.map(|since| now.saturating_since(since));
            let waits = waited.is_some_and(|waited| waited < LEASE_GRACE);
            if stays || waits || now < participant.lease_ends() {
                continue;
            }
            let subject = Subject::lease(index, &self.config.limits);
            if is_heard {
                // The waiting announcement may turn out to be malformed.
                self.timers.arm(subject, now + LEASE_GRACE);
                continue;
            }
            self.note_life_of_endpoints(index);
            let Some(participant) = self.participants.get_mut(index) else {
                continue;
            };
            let lease_ends = participant.lease_ends();
            let look = match waited {
                _ if now < lease_ends => {
                    participant.missed = None;
                    lease_ends
                }
                Some(waited) if waited <= 2 * LEASE_GRACE => {
                    self.counters.leases_expired += 1;
                    self.remove_participant(index);
                    return true;
                }
                _ => {
                    participant.missed = Some(now);
                    now + LEASE_GRACE
                }
            };
            self.timers.arm(subject, look);
            return true;
        }
        self.leases_due = false;
        false
    }
}
