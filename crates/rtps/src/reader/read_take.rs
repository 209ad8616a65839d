//! Read and take of samples (DDS 1.4 §2.2.2.5.3), and queries on endpoints.
//!
//! The user [selects](LocalParticipant::select) samples, reads them one by one ([`LocalParticipant::selected`]), and
//! marks all as read ([`LocalParticipant::read_selected`]) or takes them ([`LocalParticipant::take_selected`]). No
//! other call on the reader is allowed in between. Nothing allocates.
//!
//! # Sample, view and instance states (DDS 1.4 §2.2.2.5.1)
//!
//! The *view state* says whether the user has seen an instance since it last became alive. An instance that was not
//! alive becomes alive again with its next sample, and a generation count is incremented for the kind of end (disposed,
//! or no writers). The *generation ranks* of samples are differences of these counts within one instance.

use bitflags::bitflags;
use isolane_wire::{
    builtin_data::EndpointData,
    cdr::KeyHash,
    guid::Guid,
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use crate::{
    matching::Incompatible,
    participant::{Facts, LocalParticipant},
    reader::{
        Readers,
        cache::{Cache, Selection},
        instance::InstanceState,
    },
    slab::{ReaderId, WriterId},
    status::{RejectReason, UnreadableSamples},
    writer::{WriterStatus, history::ChangeKind},
};

/// Sample in a reader's cache.
#[derive(Debug, Clone, Copy)]
pub struct CachedSample<'a> {
    /// Metadata of the sample, with its current sample, view and instance state.
    pub info: SampleInfo,
    /// Payload with encapsulation header; a serialised key if the info says that there is no value.
    pub payload: &'a [u8],
}

impl LocalParticipant {
    /// Counts the sample delivered last, from `writer`, as rejected because it could not be read.
    pub fn reject_delivered(&mut self, id: ReaderId, writer: Guid, reason: RejectReason) {
        if let Some(reader) = self.readers.get_mut(id)
            && reader.ledger.delivered > 0
        {
            reader.ledger.delivered -= 1;
            reader.count_rejected(writer, reason);
            self.shared.counters.count_rejected(reason);
        }
    }

    /// Returns how many samples a reader rejected because they are not of its type, and the last one; `None` if there
    /// were none.
    #[must_use]
    pub fn unreadable_samples(&self, id: ReaderId) -> Option<UnreadableSamples> {
        self.readers.get(id)?.unreadable_samples
    }

    /// Returns the topic, type, policies and locators of a reader, as at its creation.
    #[must_use]
    pub fn reader_data(&self, id: ReaderId) -> Option<&EndpointData> {
        self.readers.get(id).map(|reader| &reader.data)
    }

    /// Returns the topic, type, policies and locators of a writer, as at its creation.
    #[must_use]
    pub fn writer_data(&self, id: WriterId) -> Option<&EndpointData> {
        self.writers.get(id).map(|writer| &writer.data)
    }

    /// Returns the maximum payload size in bytes of a reader.
    #[must_use]
    pub fn reader_max_payload_bytes(&self, id: ReaderId) -> Option<usize> {
        self.readers.get(id).map(|reader| reader.max_payload_bytes)
    }

    /// Returns the maximum payload size in bytes of a writer.
    #[must_use]
    pub fn writer_max_payload_bytes(&self, id: WriterId) -> Option<usize> {
        self.writers
            .get(id)
            .map(crate::writer::Writer::payload_limit)
    }

    /// Iterates over the user's writers, without the built-in ones.
    pub fn local_writers(&self) -> impl Iterator<Item = WriterId> + '_ {
        self.local_writers_from(0).map(|(_, id)| id)
    }

    /// Iterates over the user's writers with their indexes in the table, from an index on. The table may change between
    /// two such iterations: a writer that stays keeps its index.
    pub fn local_writers_from(&self, index: u16) -> impl Iterator<Item = (u16, WriterId)> + '_ {
        let table = &self.writers.table;
        let ids = table.ids_from(WriterId(index));
        let of_user = ids.filter(|id| table.get(*id).is_some_and(|it| it.level.is_some()));
        of_user.map(|id| (id.0, id))
    }

    /// Iterates over the user's readers, without the built-in ones.
    pub fn local_readers(&self) -> impl Iterator<Item = ReaderId> + '_ {
        self.local_readers_from(0).map(|(_, id)| id)
    }

    /// Iterates over the user's readers with their indexes in the table, as
    /// [`local_writers_from`](Self::local_writers_from).
    pub fn local_readers_from(&self, index: u16) -> impl Iterator<Item = (u16, ReaderId)> + '_ {
        let table = &self.readers.table;
        let ids = table.ids_from(ReaderId(index));
        let of_user = ids.filter(|id| table.get(*id).is_some_and(|it| it.level.is_some()));
        of_user.map(|id| (id.0, id))
    }

    /// Returns the number of writers that a reader is matched with.
    #[must_use]
    pub fn matched_writers(&self, id: ReaderId) -> usize {
        self.readers
            .get(id)
            .map_or(0, |reader| reader.matched.current() as usize)
    }

    /// Iterates over the matched writers of a reader: GUID and number of sequence numbers processed.
    pub fn matched_writer_progress(
        &self,
        id: ReaderId,
    ) -> impl Iterator<Item = (Guid, SequenceNumber)> + '_ {
        let proxies = self
            .readers
            .get(id)
            .map_or(&[][..], |reader| &reader.proxies);
        proxies.iter().filter_map(|&proxy| {
            let proxy = self.readers.proxies.get(proxy)?;
            Some((proxy.guid, SequenceNumber(proxy.done() as i64)))
        })
    }

    /// Iterates over the matched readers of a writer, as [`matched_readers`](LocalParticipant::matched_readers) counts
    /// them: GUID and lowest unacknowledged number. That number is meaningless for best-effort readers.
    pub fn matched_reader_progress(
        &self,
        id: WriterId,
    ) -> impl Iterator<Item = (Guid, SequenceNumber)> + '_ {
        let proxies = self
            .writers
            .get(id)
            .map_or(&[][..], |writer| &writer.proxies);
        let proxies = proxies.iter().map(|&proxy| self.writers.proxies.get(proxy));
        proxies
            .flatten()
            .filter(|proxy| proxy.is_joined)
            .map(|proxy| (proxy.guid, proxy.done_to()))
    }

    /// Returns the topic and GUID of the reliable reader that became silent last
    /// ([`Counters::readers_silent`](crate::Counters)).
    #[must_use]
    pub fn last_silent_reader(&self) -> Option<(&str, Guid)> {
        let (writer, reader) = self.writers.last_silent?;
        Some((&self.writer_data(writer)?.topic_name, reader))
    }

    /// Returns the incompatible reader that a writer has met last.
    #[must_use]
    pub fn offered_incompatible(&self, id: WriterId) -> Option<Incompatible> {
        self.writers.get(id)?.incompatible
    }

    /// Returns the incompatible writer that a reader has met last.
    #[must_use]
    pub fn requested_incompatible(&self, id: ReaderId) -> Option<Incompatible> {
        self.readers.get(id)?.incompatible
    }

    /// Returns whether every matched reliable reader has acknowledged all written samples.
    #[must_use]
    pub fn all_acknowledged(&self, id: WriterId) -> bool {
        self.writers.get(id).is_none_or(|writer| {
            writer.next_unsent > writer.last
                && writer.proxies.iter().all(|&proxy| {
                    self.writers.proxies.get(proxy).is_none_or(|proxy| {
                        !proxy.reliable || proxy.acknowledged.max(proxy.start) > writer.last
                    })
                })
        })
    }

    /// Returns whether the history has room for a write of this instance.
    #[must_use]
    pub fn has_room(&self, id: WriterId, key_hash: Option<[u8; 16]>) -> bool {
        self.writers.get(id).is_some_and(|writer| {
            let has_spare = writer
                .history
                .as_ref()
                .is_none_or(|history| history.room_for(key_hash).is_ok());
            has_spare || writer.may_replace(writer.lowest_unacknowledged())
        })
    }

    /// Returns whether the history has memory for a sample of `bytes` bytes, or for the longest possible sample if that
    /// is shorter. An older sample that may be replaced counts as free.
    pub fn has_memory(&mut self, id: WriterId, bytes: usize) -> bool {
        let Some(writer) = self.writers.get_mut(id) else {
            return true;
        };
        let history = writer.history.as_mut();
        history.is_none_or(|history| history.fits(bytes))
            || writer.may_replace(writer.lowest_unacknowledged())
    }

    /// Requests a [`WriterStatus::ROOM`] notice for when a full history has room again.
    pub fn request_room_notice(&mut self, id: WriterId) {
        if let Some(writer) = self.writers.get_mut(id) {
            writer.status -= WriterStatus::ROOM;
            writer.wants_room = true;
        }
    }
}

impl LocalParticipant {
    /// Selects samples of a reader; returns their number.
    pub fn select(&mut self, id: ReaderId, selection: &Selection<'_>) -> usize {
        let cache = self.readers.cache_mut(id);
        cache.map_or(0, |cache| cache.select(selection))
    }

    /// Returns whether a selection has any sample.
    #[must_use]
    pub fn has_any(&self, id: ReaderId, selection: &Selection<'_>) -> bool {
        self.readers
            .cache(id)
            .is_some_and(|cache| cache.has_any(selection))
    }

    /// Returns the `nth` selected sample. Instances come in the order of their oldest samples, and the samples of an
    /// instance in order of arrival. With ordered access of TOPIC or GROUP scope (PRESENTATION), all samples are in
    /// order of arrival (DDS 1.4 §2.2.2.5.3.8).
    #[must_use]
    pub fn selected(&self, id: ReaderId, nth: usize) -> Option<CachedSample<'_>> {
        let (info, payload) = self.readers.cache(id)?.selected(nth)?;
        Some(CachedSample { info, payload })
    }

    /// Marks the selected samples as read; they stay in the cache.
    pub fn read_selected(&mut self, id: ReaderId) {
        if let Some(cache) = self.readers.cache_mut(id) {
            cache.mark_selected();
        }
    }

    /// Takes the selected samples out of the cache and counts them as delivered. Samples refused for lack of room are
    /// requested again.
    pub fn take_selected(&mut self, id: ReaderId) {
        let Some(reader) = self.readers.get_mut(id) else {
            return;
        };
        let Some(cache) = &mut reader.cache else {
            return;
        };
        reader.ledger.delivered += cache.take_selected();
        self.readers.resume(
            &mut self.shared,
            Facts::of(&self.writers, &self.discovery),
            id,
        );
    }

    /// Applies `find` to the samples of an instance, oldest first, and returns its first result.
    pub fn find_in_instance<T>(
        &self,
        id: ReaderId,
        instance: KeyHash,
        find: impl FnMut(CachedSample<'_>) -> Option<T>,
    ) -> Option<T> {
        let samples = self.readers.cache(id)?.of_instance(instance);
        let mut samples = samples.map(|(info, payload)| CachedSample { info, payload });
        samples.find_map(find)
    }

    /// Returns the oldest change of an instance in a writer's history: `true` and its value, or `false` and its key.
    #[must_use]
    pub fn kept_change(&self, id: WriterId, instance: KeyHash) -> Option<(bool, &[u8])> {
        let history = self.writers.get(id)?.history.as_ref()?;
        let (change, payload) = history.oldest_of(instance)?;
        Some((change.kind == ChangeKind::Alive, payload))
    }

    /// Returns whether a reader knows an instance, with or without samples.
    #[must_use]
    pub fn knows_instance(&self, id: ReaderId, instance: KeyHash) -> bool {
        let cache = self.readers.cache(id);
        cache.is_some_and(|cache| cache.instances.known(instance).is_some())
    }
}

impl Readers {
    fn cache_mut(&mut self, id: ReaderId) -> Option<&mut Cache> {
        self.table.get_mut(id)?.cache.as_mut()
    }

    fn cache(&self, id: ReaderId) -> Option<&Cache> {
        self.table.get(id)?.cache.as_ref()
    }
}

/// Information about a sample (DDS 1.4 §2.2.2.5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleInfo {
    /// GUID of the writer.
    pub writer: Guid,
    /// Sequence number of the writer.
    pub sequence: SequenceNumber,
    /// Source timestamp; `None` if the writer sent none.
    pub source_timestamp: Option<Timestamp>,
    /// Reception time by this participant's clock: the kernel's timestamp of the datagram, or else the time at which it
    /// was read.
    pub received: Instant,
    /// End of the LIFESPAN by this participant's clock; `None` if the sample never expires.
    pub expires: Option<Instant>,
    /// Value, or end of the instance with only a key.
    pub kind: ChangeKind,
    /// Read state of the sample.
    pub sample_state: SampleState,
    /// New until a sample of the instance's current generation is read. Always new without a cache.
    pub view_state: ViewState,
    /// Current state of the instance; without a cache the state this sample sets.
    pub instance_state: InstanceState,
    /// Number of times that the instance had become alive after a dispose when the sample was received.
    pub disposed_generation_count: u32,
    /// Number of times that the instance had become alive after the loss of all writers when the sample was received.
    pub no_writers_generation_count: u32,
    /// Number of samples of the instance that follow in the same [selection](crate::Selection).
    pub sample_rank: u32,
    /// Generations between this sample and the last one of its instance in the same selection.
    pub generation_rank: u32,
    /// Generations between this sample and now.
    pub absolute_generation_rank: u32,
    /// Key hash of the instance; `None` for topics without a key.
    pub key_hash: Option<KeyHash>,
}

impl SampleInfo {
    /// Initial state of a received sample.
    pub(crate) const UNSEEN: Self = Self {
        writer: Guid::UNKNOWN,
        sequence: SequenceNumber::UNKNOWN,
        source_timestamp: None,
        received: Instant::new(0),
        expires: None,
        kind: ChangeKind::Alive,
        sample_state: SampleState::NotRead,
        view_state: ViewState::New,
        instance_state: InstanceState::Alive,
        disposed_generation_count: 0,
        no_writers_generation_count: 0,
        sample_rank: 0,
        generation_rank: 0,
        absolute_generation_rank: 0,
        key_hash: None,
    };

    /// Returns the generation of the instance that the sample belongs to.
    pub(crate) fn generation(&self) -> u32 {
        self.disposed_generation_count
            .wrapping_add(self.no_writers_generation_count)
    }

    /// Returns whether the sample has a value (DDS 1.4: `valid_data`).
    #[must_use]
    pub fn valid_data(&self) -> bool {
        self.kind == ChangeKind::Alive
    }

    /// Handle of the instance at the reader; zeros for topics without a key.
    #[must_use]
    pub fn instance_handle(&self) -> KeyHash {
        self.key_hash.unwrap_or_default()
    }

    /// Handle of the writer.
    #[must_use]
    pub fn publication_handle(&self) -> Guid {
        self.writer
    }
}

/// Sample state (DDS 1.4 §2.2.2.5.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SampleState {
    /// The sample was not read.
    #[default]
    NotRead,
    /// The sample was read, and stayed in the cache.
    Read,
}

/// View state of an instance (§2.2.2.5.1.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ViewState {
    /// No sample was accessed since the instance last became alive.
    #[default]
    New,
    /// Samples of the instance were accessed.
    NotNew,
}

bitflags! {
    /// Mask of sample, view and instance states. If no bit of a kind of state is set, all states of that kind are
    /// selected. So the empty mask selects everything.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct StateMask: u8 {
        /// Samples already read.
        const READ = 1;
        /// Samples not read yet.
        const NOT_READ = 2;
        /// Samples of instances not accessed before.
        const NEW = 4;
        /// Samples of instances accessed before.
        const NOT_NEW = 8;
        /// Samples of instances that are alive.
        const ALIVE = 16;
        /// Samples of disposed instances.
        const NOT_ALIVE_DISPOSED = 32;
        /// Samples of instances without writers.
        const NOT_ALIVE_NO_WRITERS = 64;
        /// Samples of instances that are not alive.
        const NOT_ALIVE = 32 | 64;
    }
}

impl StateMask {
    const SAMPLES: Self = Self::READ.union(Self::NOT_READ);
    const VIEWS: Self = Self::NEW.union(Self::NOT_NEW);
    const INSTANCES: Self = Self::ALIVE.union(Self::NOT_ALIVE);

    fn of(info: &SampleInfo) -> Self {
        let sample = match info.sample_state {
            SampleState::Read => Self::READ,
            SampleState::NotRead => Self::NOT_READ,
        };
        let view = match info.view_state {
            ViewState::New => Self::NEW,
            ViewState::NotNew => Self::NOT_NEW,
        };
        let instance = match info.instance_state {
            InstanceState::Alive => Self::ALIVE,
            InstanceState::NotAliveDisposed => Self::NOT_ALIVE_DISPOSED,
            InstanceState::NotAliveNoWriters => Self::NOT_ALIVE_NO_WRITERS,
        };
        sample | view | instance
    }

    /// Returns whether the mask selects a sample with these states.
    #[must_use]
    pub fn takes(self, info: &SampleInfo) -> bool {
        let states = Self::of(info);
        let kinds = [Self::SAMPLES, Self::VIEWS, Self::INSTANCES];
        kinds.into_iter().all(|kind| {
            let asked = self & kind;
            asked.is_empty() || asked.intersects(states)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_names_states_of_some_kinds_and_means_all_of_the_others() {
        let fresh = SampleInfo::UNSEEN;
        let seen = SampleInfo {
            sample_state: SampleState::Read,
            view_state: ViewState::NotNew,
            instance_state: InstanceState::NotAliveDisposed,
            ..fresh
        };
        let takes = |mask: StateMask| (mask.takes(&fresh), mask.takes(&seen));
        assert_eq!(takes(StateMask::empty()), (true, true));
        assert_eq!(takes(StateMask::all()), (true, true));
        assert_eq!(takes(StateMask::NOT_READ), (true, false));
        assert_eq!(takes(StateMask::NOT_NEW), (false, true));
        assert_eq!(takes(StateMask::NOT_ALIVE), (false, true));
        assert_eq!(takes(StateMask::NOT_ALIVE_NO_WRITERS), (false, false));
        assert_eq!(
            takes(StateMask::NOT_READ | StateMask::NOT_ALIVE),
            (false, false)
        );
        assert_eq!(
            takes(StateMask::READ | StateMask::NOT_ALIVE_DISPOSED),
            (false, true)
        );
    }
}
