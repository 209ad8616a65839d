//! Access to single samples of a reader's cache, and queries on endpoints.

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

/// Sample in a reader's cache.
#[derive(Debug, Clone, Copy)]
pub struct CachedSample<'a> {
    /// Metadata of the sample, with its current sample, view and instance state.
    pub info: SampleInfo,
    /// Payload with encapsulation header; a serialised key if the info says that there is no value.
    pub payload: &'a [u8],
}

impl Engine {
    /// Returns the number of available samples of a reader.
    #[must_use]
    pub fn available(&self, id: ReaderId) -> usize {
        let cache = self
            .readers
            .get(id.0)
            .and_then(|reader| reader.cache.as_ref());
        cache.map_or(0, |cache| cache.available())
    }

    /// Returns the `nth` available sample of a reader, oldest first.
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

    /// Removes the oldest available sample from the cache and counts it as delivered. The user has seen it through
    /// [`Self::sample`]. Samples refused for lack of room are requested again.
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

    /// Requests the samples that a reader refused for lack of room; its cache has room again.
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
            // A writer whose samples have all arrived and were acknowledged needs no ACKNACK.
            let is_owed = is_missing || found.is_some_and(WriterProxy::has_unacknowledged);
            if was_blocked && is_owed || found.is_some_and(WriterProxy::may_ask_for_more) {
                self.file_acknack(proxy);
            }
        }
        if groups {
            // All proxies have advanced as far as they can by themselves.
            self.present_all_of(index);
        }
        if !is_missing_any && let Some(reader) = self.readers.get_mut(index) {
            reader.asked_for_less = false;
        }
    }

    /// Counts the sample delivered last, from `writer`, as rejected because it could not be read.
    pub fn reject_delivered(&mut self, id: ReaderId, writer: Guid, reason: RejectReason) {
        if let Some(reader) = self.readers.get_mut(id.0)
            && reader.ledger.delivered > 0
        {
            reader.ledger.delivered -= 1;
            reader.count_rejected(writer, reason);
            self.counters.count_rejected(reason);
        }
    }

    /// Returns the samples that a reader rejected for their encapsulation; `None` if there were none.
    #[must_use]
    pub fn encapsulations_refused(&self, id: ReaderId) -> Option<EncapsulationsRefused> {
        self.readers.get(id.0)?.encapsulations_refused
    }

    /// Returns the topic, type, policies and locators of a reader, as at its creation.
    #[must_use]
    pub fn reader_data(&self, id: ReaderId) -> Option<&EndpointData> {
        self.readers.get(id.0).map(|reader| &reader.data)
    }

    /// Returns the topic, type, policies and locators of a writer, as at its creation.
    #[must_use]
    pub fn writer_data(&self, id: WriterId) -> Option<&EndpointData> {
        self.writers.get(id.0).map(|writer| &writer.data)
    }

    /// Returns the maximum payload size in bytes of a reader.
    #[must_use]
    pub fn reader_max_payload_bytes(&self, id: ReaderId) -> Option<usize> {
        self.readers
            .get(id.0)
            .map(|reader| reader.max_payload_bytes)
    }

    /// Returns the maximum payload size in bytes of a writer.
    #[must_use]
    pub fn writer_max_payload_bytes(&self, id: WriterId) -> Option<usize> {
        self.writers
            .get(id.0)
            .map(crate::writer::Writer::payload_limit)
    }

    /// Iterates over the user's writers, without the built-in ones.
    pub fn local_writers(&self) -> impl Iterator<Item = WriterId> + '_ {
        let of_user = self
            .writers
            .iter()
            .filter(|(_, writer)| writer.level.is_some());
        of_user.map(|(index, _)| WriterId(index))
    }

    /// Iterates over the user's readers, without the built-in ones.
    pub fn local_readers(&self) -> impl Iterator<Item = ReaderId> + '_ {
        let of_user = self
            .readers
            .iter()
            .filter(|(_, reader)| reader.level.is_some());
        of_user.map(|(index, _)| ReaderId(index))
    }

    /// Returns the number of writers that a reader is matched with.
    #[must_use]
    pub fn matched_writers(&self, id: ReaderId) -> usize {
        self.readers
            .get(id.0)
            .map_or(0, |reader| reader.matched.current() as usize)
    }

    /// Iterates over the matched writers of a reader: GUID and number of sequence numbers processed.
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

    /// Iterates over the matched readers of a writer, as [`matched_readers`](Self::matched_readers) counts them: GUID
    /// and lowest unacknowledged number. That number is meaningless for best-effort readers.
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

    /// Returns the topic and GUID of the reliable reader that became silent last
    /// ([`Counters::readers_silent`](crate::Counters)).
    #[must_use]
    pub fn last_silent_reader(&self) -> Option<(&str, Guid)> {
        let (writer, reader) = self.last_silent?;
        Some((&self.writer_data(writer)?.topic_name, reader))
    }

    /// Returns the incompatible reader that a writer has met last.
    #[must_use]
    pub fn offered_incompatible(&self, id: WriterId) -> Option<Incompatible> {
        self.writers.get(id.0)?.incompatible
    }

    /// Returns the incompatible writer that a reader has met last.
    #[must_use]
    pub fn requested_incompatible(&self, id: ReaderId) -> Option<Incompatible> {
        self.readers.get(id.0)?.incompatible
    }

    /// Returns whether every matched reliable reader has acknowledged all written samples.
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

    /// Returns whether the history has room for a write of this instance.
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

    /// Returns whether the history has memory for a sample of `bytes` bytes, or for the longest sample if that is
    /// shorter. An older sample that may be replaced counts as free.
    pub fn has_memory(&mut self, id: WriterId, bytes: usize) -> bool {
        let Some(writer) = self.writers.get_mut(id.0) else {
            return true;
        };
        let history = writer.history.as_mut();
        history.is_none_or(|history| history.fits(bytes))
            || writer.may_replace(writer.lowest_unacknowledged())
    }

    /// Requests a [`WriterStatus::ROOM`] notice for when a full history has room again.
    pub fn request_room_notice(&mut self, id: WriterId) {
        if let Some(writer) = self.writers.get_mut(id.0) {
            writer.status -= WriterStatus::ROOM;
            writer.wants_room = true;
        }
    }
}
