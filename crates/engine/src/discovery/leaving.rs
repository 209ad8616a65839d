//! How peers and their endpoints go: by their own word, or because a lease ran out.
//!
//! What goes may have hundreds of matches, so it is only marked, and parted from one match a step, before
//! anything else that discovery does. Until then it is shown to nobody and matched with nothing new.

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
    /// Whether a peer's endpoint is on its way out.
    pub(crate) fn is_leaving(&self, index: u16, endpoint: &EndpointRecord) -> bool {
        let participant = self.participants.get(endpoint.participant);
        self.leaving_endpoint == Some(index)
            || participant.is_none_or(|participant| participant.leave_from.is_some())
    }

    /// A peer has ended an endpoint.
    pub(super) fn remove_endpoint(&mut self, guid: Guid) {
        if let Some(index) = self.endpoint_by_guid.remove(&guid) {
            self.doubt(index);
            self.leaving_endpoint = Some(index);
            self.note_discovery();
            self.file_discovery();
        }
    }

    /// A participant is gone: by its own word, or because its lease ran out.
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

    /// One step of parting from what goes: one match, or one record.
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

    /// Remembers how far the next reader is that parts from a writer, unless the whole participant goes.
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

    /// All its endpoints have gone: its SEDP endpoints follow, and then the participant itself.
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

    /// A lease timer has run out. That decides nothing yet: announcements may wait to be read.
    pub(crate) fn lease_due(&mut self) {
        self.leases_due = true;
        self.file_discovery();
    }

    /// Renews a participant's lease by what its matched endpoints sent, as its announcements do. Endpoints' messages are
    /// read at their own level, so they arrive when a flood at discovery's ports hides the announcements. A participant
    /// without a validated address, and a described one, live by their announcements alone: of a described participant only
    /// the described address is believed. Cost: one look at each match.
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

    /// Forgets one participant whose lease has run out (RTPS 2.5 §8.5.3.2), [`LEASE_GRACE`] after
    /// that was found out at this same priority, all announcements that came until then taken in.
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
                // What it announced may turn out to be malformed.
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
