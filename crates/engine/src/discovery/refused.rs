//! What found a table full, and is tried again when there is room.
//!
//! What was refused remembers it by itself: an endpoint or a participant that its matches found no place,
//! a participant that some of its endpoints did. So nothing is kept beside the tables, and what goes away
//! takes its note along.

use isolane_wire::{guid::Guid, time::Instant};

use super::{EndpointKind, RemoteParticipant, participants::SEDP};
use crate::{engine::Engine, reader::WriterProxy};

impl Engine {
    /// A place among the matches is free: whoever was refused one is tried again by discovery.
    pub(crate) fn note_place(&mut self) {
        if self.has_refused {
            self.file_discovery();
        }
    }

    /// Tries the matches of one that was refused, if there is room for it now.
    pub(super) fn join_refused(&mut self, now: Instant) -> bool {
        let has_reader_place = !self.reader_proxies.is_full();
        let has_writer_place = !self.writer_proxies.is_full();
        if !self.has_refused || !(has_reader_place || has_writer_place) {
            return false;
        }
        let has_both = has_reader_place && has_writer_place;
        let was_refused =
            |peer: &RemoteParticipant| peer.is_refused || peer.messages_refused.is_any();
        let participant = self.participants.find(|peer| was_refused(peer) && has_both);
        if let Some(index) = participant {
            self.connect_refused(now, index);
            return true;
        }
        let endpoint = self.endpoints.find(|endpoint| {
            endpoint.is_refused
                && match endpoint.kind {
                    EndpointKind::Reader => has_reader_place,
                    EndpointKind::Writer => has_writer_place,
                }
        });
        if let Some(index) = endpoint {
            self.match_remote_again(now, index);
            return true;
        }
        let writer = self.writers.find(|writer| writer.is_refused && has_both);
        if let Some(index) = writer {
            self.match_local_readers_again(now, index);
            return true;
        }
        self.has_refused = self.participants.find(was_refused).is_some()
            || self
                .endpoints
                .find(|endpoint| endpoint.is_refused)
                .is_some()
            || self.writers.find(|writer| writer.is_refused).is_some();
        false
    }

    /// Connects the built-in endpoints of a participant that found no place.
    fn connect_refused(&mut self, now: Instant, index: u16) {
        self.connect_sedp(now, index);
        let Some(participant) = self.participants.get_mut(index) else {
            return;
        };
        let prefix = participant.data.guid.prefix;
        // What finds no place again is noted again.
        let refused = core::mem::take(&mut participant.messages_refused);
        if refused.reader {
            self.connect_message_reader(prefix);
        }
        if refused.writer {
            self.connect_message_writer(now, prefix);
        }
    }

    /// Asks a participant for all its endpoints once more, if some were refused and there is room now.
    ///
    /// That is at most once for each of its own announcements: else one peer that gives up a place and
    /// takes it again could make all the others repeat themselves.
    pub(super) fn ask_for_refused(&mut self, index: u16) {
        if self.endpoints.is_full() {
            return;
        }
        let Some(participant) = self.participants.get_mut(index) else {
            return;
        };
        let prefix = participant.data.guid.prefix;
        let refused = core::mem::take(&mut participant.are_endpoints_refused);
        for (reader, sedp) in (0u16..).zip(&SEDP) {
            if !refused[usize::from(reader)] {
                continue;
            }
            let entity = sedp.writer;
            let Some(proxy) = self.proxy_of_writer_at(Guid { prefix, entity }, reader) else {
                continue;
            };
            if let Some(cache) = self
                .readers
                .get_mut(reader)
                .and_then(|it| it.cache.as_mut())
            {
                cache.forget_waiting(proxy);
            }
            // It has acknowledged them all: it begins again as one that knows nothing.
            if let Some(proxy) = self.writer_proxies.get_mut(proxy) {
                WriterProxy::restart(proxy);
            }
            self.file_acknack(proxy);
        }
    }
}
