//! What the user does with a reader's cache and asks of endpoints.

use isolane_wire::{discovery::EndpointData, guid::Guid, sequence::SequenceNumber};

use crate::{
    cache::SampleInfo,
    engine::Engine,
    ids::{ReaderId, WriterId},
    matching::Incompatible,
    reader::WriterProxy,
    status::{EncapsulationsRefused, RejectReason},
    writer::WriterStatus,
};

/// A sample in a reader's cache.
#[derive(Debug, Clone, Copy)]
pub struct CachedSample<'a> {
    /// What is known of it, and the states that it and its instance are in now.
    pub info: SampleInfo,
    /// Its payload, with encapsulation header; a key, where the info says there is no value.
    pub payload: &'a [u8],
}

impl Engine {
    /// How many samples a reader has for the user.
    #[must_use]
    pub fn available(&self, id: ReaderId) -> usize {
        let cache = self
            .readers
            .get(id.0)
            .and_then(|reader| reader.cache.as_ref());
        cache.map_or(0, |cache| cache.available())
    }

    /// The `nth` available sample of a reader, oldest first.
    #[must_use]
    pub fn sample(&self, id: ReaderId, nth: usize) -> Option<CachedSample<'_>> {
        let (info, payload) = self.readers.get(id.0)?.cache.as_ref()?.get(nth)?;
        Some(CachedSample { info, payload })
    }

    /// Marks the `nth` available sample as read.
    pub fn mark_read(&mut self, id: ReaderId, nth: usize) {
        if let Some(cache) = self
            .readers
            .get_mut(id.0)
            .and_then(|reader| reader.cache.as_mut())
        {
            cache.mark_read(nth);
        }
    }

    /// Takes the oldest available sample out of the cache, as delivered: the user has seen it
    /// through [`Self::sample`]. What was refused for want of room is asked for again.
    pub fn remove_oldest(&mut self, id: ReaderId) {
        self.discard_oldest(id.0);
    }

    pub(crate) fn discard_oldest(&mut self, index: u16) {
        let Some(reader) = self.readers.get_mut(index) else {
            return;
        };
        let Some(cache) = &mut reader.cache else {
            return;
        };
        if cache.pop() == Some(true) {
            reader.ledger.delivered += 1;
        }
        self.go_on(index);
    }

    /// A reader's cache has room again: what was refused for want of it is asked for.
    pub(crate) fn go_on(&mut self, index: u16) {
        let Some(reader) = self.readers.get_mut(index) else {
            return;
        };
        let is_blocked = core::mem::take(&mut reader.blocked);
        let was_blocked = core::mem::take(&mut reader.put_off) || is_blocked;
        if !was_blocked && !reader.asked_for_less {
            return;
        }
        let (mut is_missing_any, mut groups) = (false, false);
        for at in 0.. {
            let proxy = self
                .readers
                .get(index)
                .and_then(|reader| reader.proxies.get(at));
            let Some(&proxy) = proxy else { break };
            if was_blocked {
                groups |= self.advance_alone(proxy, SequenceNumber(0));
            }
            let found = self.writer_proxies.get(proxy);
            let is_missing = found.is_some_and(WriterProxy::is_missing_any);
            is_missing_any |= is_missing;
            // A writer of which all has come, and was acknowledged, has nothing to be told.
            let is_owed = is_missing || found.is_some_and(WriterProxy::has_unacknowledged);
            if was_blocked && is_owed || found.is_some_and(WriterProxy::may_ask_for_more) {
                self.file_acknack(proxy);
            }
        }
        if groups {
            // All of them have gone on as far as they can by themselves.
            self.present_all_of(index);
        }
        if !is_missing_any && let Some(reader) = self.readers.get_mut(index) {
            reader.asked_for_less = false;
        }
    }

    /// Counts the sample delivered last, which came from `writer`, as rejected: it could not be read.
    pub fn reject_delivered(&mut self, id: ReaderId, writer: Guid, reason: RejectReason) {
        if let Some(reader) = self.readers.get_mut(id.0)
            && reader.ledger.delivered > 0
        {
            reader.ledger.delivered -= 1;
            reader.count_rejected(writer, reason);
            self.counters.count_rejected(reason);
        }
    }

    /// Samples that a reader rejected for their encapsulation; `None`: none so far.
    #[must_use]
    pub fn encapsulations_refused(&self, id: ReaderId) -> Option<EncapsulationsRefused> {
        self.readers.get(id.0)?.encapsulations_refused
    }

    /// The topic, type, policies and addresses an endpoint was created with.
    #[must_use]
    pub fn reader_data(&self, id: ReaderId) -> Option<&EndpointData> {
        self.readers.get(id.0).map(|reader| &reader.data)
    }

    /// As [`Self::reader_data`].
    #[must_use]
    pub fn writer_data(&self, id: WriterId) -> Option<&EndpointData> {
        self.writers.get(id.0).map(|writer| &writer.data)
    }

    /// The largest payload a reader was created for.
    #[must_use]
    pub fn reader_max_payload_bytes(&self, id: ReaderId) -> Option<usize> {
        self.readers
            .get(id.0)
            .map(|reader| reader.max_payload_bytes)
    }

    /// As [`Self::reader_max_payload_bytes`].
    #[must_use]
    pub fn writer_max_payload_bytes(&self, id: WriterId) -> Option<usize> {
        self.writers
            .get(id.0)
            .map(crate::writer::Writer::payload_limit)
    }

    /// The user's writers; those of discovery are not among them.
    pub fn local_writers(&self) -> impl Iterator<Item = WriterId> + '_ {
        let of_user = self
            .writers
            .iter()
            .filter(|(_, writer)| writer.level.is_some());
        of_user.map(|(index, _)| WriterId(index))
    }

    /// The user's readers; those of discovery are not among them.
    pub fn local_readers(&self) -> impl Iterator<Item = ReaderId> + '_ {
        let of_user = self
            .readers
            .iter()
            .filter(|(_, reader)| reader.level.is_some());
        of_user.map(|(index, _)| ReaderId(index))
    }

    /// Writers a reader is matched with now.
    #[must_use]
    pub fn matched_writers(&self, id: ReaderId) -> usize {
        self.readers
            .get(id.0)
            .map_or(0, |reader| reader.matched.current() as usize)
    }

    /// For each matched writer its GUID and how many of its numbers the reader is done with.
    pub fn matched_writer_progress(
        &self,
        id: ReaderId,
    ) -> impl Iterator<Item = (Guid, SequenceNumber)> + '_ {
        let proxies = self
            .readers
            .get(id.0)
            .map_or(&[][..], |reader| &reader.proxies);
        proxies.iter().filter_map(|&proxy| {
            let proxy = self.writer_proxies.get(proxy)?;
            Some((proxy.guid, SequenceNumber(proxy.done() as i64)))
        })
    }

    /// For each matched reader, as [`matched_readers`](Self::matched_readers) counts them: who, and the lowest number it still
    /// owes an acknowledgement for; of a best-effort one that means nothing.
    pub fn matched_reader_progress(
        &self,
        id: WriterId,
    ) -> impl Iterator<Item = (Guid, SequenceNumber)> + '_ {
        let proxies = self
            .writers
            .get(id.0)
            .map_or(&[][..], |writer| &writer.proxies);
        let proxies = proxies.iter().map(|&proxy| self.reader_proxies.get(proxy));
        proxies
            .flatten()
            .filter(|proxy| proxy.is_joined)
            .map(|proxy| (proxy.guid, proxy.done_to()))
    }

    /// The reliable reader that has become silent last ([`Counters::readers_silent`](crate::Counters)), and its topic.
    #[must_use]
    pub fn last_silent_reader(&self) -> Option<(&str, Guid)> {
        let (writer, reader) = self.last_silent?;
        Some((&self.writer_data(writer)?.topic_name, reader))
    }

    /// The last incompatible reader a writer has met.
    #[must_use]
    pub fn offered_incompatible(&self, id: WriterId) -> Option<Incompatible> {
        self.writers.get(id.0)?.incompatible
    }

    /// The last incompatible writer a reader has met.
    #[must_use]
    pub fn requested_incompatible(&self, id: ReaderId) -> Option<Incompatible> {
        self.readers.get(id.0)?.incompatible
    }

    /// Whether every matched reliable reader has acknowledged all that was written.
    #[must_use]
    pub fn all_acknowledged(&self, id: WriterId) -> bool {
        self.writers.get(id.0).is_none_or(|writer| {
            writer.next_unsent > writer.last
                && writer.proxies.iter().all(|&proxy| {
                    self.reader_proxies.get(proxy).is_none_or(|proxy| {
                        !proxy.reliable || proxy.acknowledged.max(proxy.start) > writer.last
                    })
                })
        })
    }

    /// Whether a write of an instance would find room in the history now.
    #[must_use]
    pub fn has_room(&self, id: WriterId, key_hash: Option<[u8; 16]>) -> bool {
        self.writers.get(id.0).is_some_and(|writer| {
            let has_spare = writer
                .history
                .as_ref()
                .is_none_or(|history| history.room_for(key_hash).is_ok());
            has_spare || writer.may_replace(writer.lowest_unacknowledged())
        })
    }

    /// Whether the history has memory for a sample of so many bytes now, or for the longest if that is shorter; also where
    /// an older sample may give way.
    pub fn has_memory(&mut self, id: WriterId, bytes: usize) -> bool {
        let Some(writer) = self.writers.get_mut(id.0) else {
            return true;
        };
        let history = writer.history.as_mut();
        history.is_none_or(|history| history.fits(bytes))
            || writer.may_replace(writer.lowest_unacknowledged())
    }

    /// Asks to be told ([`WriterStatus::ROOM`]) when a full history has room again.
    pub fn request_room_notice(&mut self, id: WriterId) {
        if let Some(writer) = self.writers.get_mut(id.0) {
            writer.status -= WriterStatus::ROOM;
            writer.wants_room = true;
        }
    }
}
