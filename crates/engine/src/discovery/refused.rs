//! Endpoints and matches refused because a table was full, retried when there is room.
//!
//! The refused entity itself stores the reason: an endpoint or participant for its matches, a participant for its
//! endpoints. No further table is needed, and a removed entity takes its record along. An entity is retried when its
//! reason no longer holds.

use isolane_wire::{
    guid::{Guid, GuidPrefix},
    time::Instant,
};

use super::{
    EndpointKind, RemoteParticipant,
    participants::{SEDP, Sedp},
};
use crate::{
    engine::Engine,
    matching::{Refusal, RefusedMatches},
    reader::WriterProxy,
};

/// Refused writers, or refused readers, of one participant.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RefusedEndpoints {
    /// Pieces needed by the shortest refused announcement, for each reason of [`Refusal`]; `None` if none was refused.
    /// Changes, which need no place for an endpoint, come first, then new endpoints.
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

    /// Returns whether one of them may find room now. `fits` returns whether that many endpoints and pieces are free,
    /// for a topic of the highest level in use or for any other.
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

impl Engine {
    /// Schedules a retry of refused matches after a match has ended.
    pub(crate) fn note_place(&mut self) {
        if self.has_refused {
            self.has_place = true;
            self.file_discovery();
        }
    }

    /// Retries the refused matches of one entity if there may be room. An attempt creates a match or finds another
    /// reason for refusal.
    pub(super) fn join_refused(&mut self, now: Instant) -> bool {
        if !self.has_place {
            return false;
        }
        let of_readers = |why: Refusal, has| why.is_over_in(&self.reader_proxies, has);
        let of_writers = |why: Refusal, has| why.is_over_in(&self.writer_proxies, has);
        // Local matches and those of discovery belong to no share.
        let of_both =
            |why: RefusedMatches| of_readers(why.readers, 0) || of_writers(why.writers, 0);
        let participant = self
            .participants
            .find(|peer| of_both(peer.refused) || of_both(peer.messages_refused));
        if let Some(index) = participant {
            self.connect_refused(now, index);
            return true;
        }
        let endpoint = self.endpoints.find(|endpoint| {
            let peer = self.participants.get(endpoint.participant);
            let has = peer.map_or(0, |peer| usize::from(peer.matches));
            match endpoint.kind {
                EndpointKind::Reader => of_readers(endpoint.refused, has),
                EndpointKind::Writer => of_writers(endpoint.refused, has),
            }
        });
        if let Some(index) = endpoint {
            self.match_remote_again(now, index);
            return true;
        }
        if let Some(index) = self.writers.find(|writer| of_both(writer.refused)) {
            self.match_local_readers_again(now, index);
            return true;
        }
        self.has_place = false;
        let is_refused =
            |peer: &RemoteParticipant| peer.refused.is_any() || peer.messages_refused.is_any();
        self.has_refused = self.participants.find(is_refused).is_some()
            || self
                .endpoints
                .find(|endpoint| !endpoint.refused.is_empty())
                .is_some()
            || self
                .writers
                .find(|writer| writer.refused.is_any())
                .is_some();
        false
    }

    fn connect_refused(&mut self, now: Instant, index: u16) {
        self.connect_sedp(now, index);
        let Some(participant) = self.participants.get_mut(index) else {
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

    /// Records that an announcement was replaced or disposed. This may have been forged, so the announcement is
    /// requested once more after the participant's own next announcement.
    pub(super) fn doubt(&mut self, endpoint: u16) {
        let Some(endpoint) = self.endpoints.get(endpoint) else {
            return;
        };
        let nth = usize::from(endpoint.kind == EndpointKind::Reader);
        let participant = self.participants.get_mut(endpoint.participant);
        if let (Some(participant), Some(number)) = (participant, endpoint.announced_by) {
            let doubted = &mut participant.doubted[nth];
            *doubted = Some(doubted.map_or(number, |lowest| lowest.min(number)));
        }
    }

    /// Requests all announcements of a participant again, from the oldest one that was replaced or disposed.
    pub(super) fn ask_for_doubted(&mut self, index: u16) {
        let Some(participant) = self.participants.get_mut(index) else {
            return;
        };
        let prefix = participant.data.guid.prefix;
        let doubted = core::mem::take(&mut participant.doubted);
        for (reader, sedp) in (0u16..).zip(&SEDP) {
            if let Some(number) = doubted[usize::from(reader)] {
                self.ask_sedp_again(reader, sedp, prefix, |proxy| proxy.restart_from(number));
            }
        }
    }

    /// Resets the proxy of a participant's SEDP writer with `forget`, and requests the missing announcements.
    fn ask_sedp_again(
        &mut self,
        reader: u16,
        sedp: &Sedp,
        prefix: GuidPrefix,
        forget: impl FnOnce(&mut WriterProxy),
    ) {
        let entity = sedp.writer;
        let Some(index) = self.proxy_of_writer_at(Guid { prefix, entity }, reader) else {
            return;
        };
        let reader = self.readers.get_mut(reader);
        if let Some(cache) = reader.and_then(|reader| reader.cache.as_mut()) {
            cache.forget_waiting(index);
        }
        if let Some(proxy) = self.writer_proxies.get_mut(index) {
            forget(proxy);
        }
        self.file_acknack(index);
    }

    /// Requests all endpoints of a participant again, if some were refused and there is room for one of them now.
    ///
    /// This happens at most once for each of the participant's own announcements. Otherwise one peer that repeatedly
    /// frees and takes a place could make all others repeat theirs.
    pub(super) fn ask_for_refused(&mut self, index: u16) {
        for (reader, sedp) in (0u16..).zip(&SEDP) {
            let Some(participant) = self.participants.get(index) else {
                return;
            };
            let prefix = participant.data.guid.prefix;
            let refused = participant.refused_endpoints[usize::from(reader)];
            let fits = |is_highest, endpoints, pieces| {
                self.has_endpoint_room(is_highest, endpoints, pieces)
            };
            if !refused.is_over(fits, self.is_in_share(index)) {
                continue;
            }
            if let Some(participant) = self.participants.get_mut(index) {
                participant.refused_endpoints[usize::from(reader)] = RefusedEndpoints::default();
            }
            // All of them were acknowledged, so the proxy must start from nothing.
            self.ask_sedp_again(reader, sedp, prefix, WriterProxy::restart);
        }
    }
}
