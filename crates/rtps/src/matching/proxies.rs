//! Proxies of matched endpoints: creation, change of address and removal.
//!
//! A [`ReaderProxy`] represents a matched reader at its writer, a [`WriterProxy`] a matched writer at its reader. All
//! proxies of a kind share a bounded table; refused matches are counted.

use bitflags::bitflags;
use isolane_wire::{
    guid::{Guid, GuidPrefix},
    level::Level,
    time::Instant,
};

use crate::{
    discovery::Discovery,
    limits::GUARANTEED_ENTRIES,
    participant::{Facts, LocalParticipant, Shared},
    reader::{ReaderStatus, Readers, WriterProxy},
    slab::{Id, ReaderId, ReaderProxyId, Slab, WriterId, WriterProxyId},
    work::Filed,
    writer::{WriterStatus, Writers, destinations::Address, reliability::ReaderProxy},
};

bitflags! {
    /// Reasons why a table has no place for an entry of a peer; empty if it has one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub(crate) struct Refusal: u8 {
        /// Only places reserved for the highest level in use are free.
        const COMMON = 1 << 0;
        /// No place is free.
        const FULL = 1 << 1;
        /// The participant has used up its share.
        const SHARE = 1 << 2;
    }
}

impl Refusal {
    /// Determines the reason. `fits(true)` returns whether a place is free for a topic of the highest level in use,
    /// `fits(false)` whether one is free for any other topic.
    pub(crate) fn of(fits: impl Fn(bool) -> bool, is_highest: bool, is_in_share: bool) -> Self {
        if !fits(true) {
            Self::FULL
        } else if !fits(is_highest) {
            Self::COMMON
        } else if !is_in_share {
            Self::SHARE
        } else {
            Self::empty()
        }
    }

    /// Returns whether a refused entry may have a place now.
    pub(crate) fn is_over(self, fits: impl Fn(bool) -> bool, is_in_share: bool) -> bool {
        self.contains(Self::COMMON) && fits(false)
            || self.contains(Self::FULL) && fits(true)
            || self.contains(Self::SHARE) && fits(true) && is_in_share
    }

    /// Returns whether a refused match of a participant that has `has` matches may have a place now.
    pub(crate) fn is_over_in<I: Id, T>(self, matches: &Slab<I, T>, has: usize) -> bool {
        let fits = |is_highest| matches.free_for(is_highest) > 0;
        self.is_over(fits, has < share_of(matches.free()))
    }
}

/// Number of places that one participant may use when `free` are free.
pub(crate) fn share_of(free: usize) -> usize {
    free.max(GUARANTEED_ENTRIES)
}

/// Reasons why matches were refused.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RefusedMatches {
    /// Refused readers of a local writer.
    pub(crate) readers: Refusal,
    /// Refused writers of a local reader.
    pub(crate) writers: Refusal,
}

impl RefusedMatches {
    pub(crate) fn note(&mut self, readers: Refusal, writers: Refusal) {
        self.readers |= readers;
        self.writers |= writers;
    }

    pub(crate) fn is_any(self) -> bool {
        !(self.readers | self.writers).is_empty()
    }
}

/// Peer of a match, and the level of its topic.
type EndedMatch = (Guid, Option<Level>);

impl LocalParticipant {
    /// Adds a matched reader to its writer, or returns why it is refused.
    ///
    /// A reliable reader must answer a HEARTBEAT before it gets any history. A forged announcement thus costs one
    /// HEARTBEAT instead of the whole history.
    pub(crate) fn add_reader_proxy(
        &mut self,
        now: Instant,
        mut proxy: ReaderProxy,
        wants_history: bool,
    ) -> Refusal {
        let writer_index = proxy.writer;
        let writer = &self.writers.table[writer_index];
        let (guid, reliable) = (proxy.guid, proxy.reliable);
        let gets_history = reliable && wants_history && !writer.volatile;
        proxy.wants_history = gets_history;
        // Samples not sent yet reach this reader by their first transmission.
        proxy.start = if gets_history {
            writer.first_kept().min(writer.next_unsent)
        } else {
            writer.next_unsent
        };
        proxy.acknowledged = proxy.start;
        if gets_history && proxy.start < writer.next_unsent {
            proxy.history_next = Some(proxy.start);
            proxy.history_end = writer.next_unsent;
        }
        let level = writer.level;
        let refused = self.refusal_of(guid, level, &self.writers.proxies);
        self.shared.count_refused(refused);
        if !refused.is_empty() {
            return refused;
        }
        let Ok(index) = self.writers.proxies.insert(proxy) else {
            return Refusal::FULL;
        };
        self.discovery.count_match((guid, level), 1);
        self.make_room_to_file();
        self.writers
            .begin_reader_proxy(&mut self.shared, now, index);
        Refusal::empty()
    }

    /// Returns why a match with a peer's endpoint is refused.
    fn refusal_of<I: Id, T>(
        &self,
        peer: Guid,
        level: Option<Level>,
        matches: &Slab<I, T>,
    ) -> Refusal {
        let participant = self.discovery.by_prefix.get(&peer.prefix);
        let participant = participant.and_then(|&index| self.discovery.participants.get(index));
        let participant = participant.filter(|_| level.is_some());
        let has = participant.map_or(0, |participant| usize::from(participant.matches));
        let fits = |is_highest| matches.free_for(is_highest) > 0;
        let is_in_share = has < share_of(matches.free());
        Refusal::of(fits, self.is_highest(level), is_in_share)
    }

    /// Adds a matched writer to its reader, or returns why it is refused.
    pub(crate) fn add_writer_proxy(&mut self, proxy: WriterProxy) -> Refusal {
        let guid = proxy.guid;
        let level = self
            .readers
            .get(proxy.reader)
            .and_then(|reader| reader.level);
        let refused = self.refusal_of(guid, level, &self.readers.proxies);
        self.shared.count_refused(refused);
        if !refused.is_empty() {
            return refused;
        }
        let Ok(index) = self.readers.proxies.insert(proxy) else {
            return Refusal::FULL;
        };
        self.discovery.count_match((guid, level), 1);
        self.make_room_to_file();
        self.readers.begin_writer_proxy(&mut self.shared, index);
        Refusal::empty()
    }

    /// Changes the address of a matched reader, or updates whether its address is validated.
    pub(super) fn move_reader_proxy(&mut self, index: ReaderProxyId, address: Address) {
        let proxy = &self.writers.proxies[index];
        let (writer, was_ready) = (proxy.writer, proxy.is_ready());
        let is_reachable =
            self.discovery
                .is_validated(&self.shared, proxy.guid.prefix, address.0.or(address.1));
        let proxy = &mut self.writers.proxies[index];
        let is_other =
            (proxy.unicast, proxy.multicast) != address || is_reachable != proxy.is_reachable;
        if !is_other {
            return;
        }
        (proxy.unicast, proxy.multicast) = address;
        let was_reachable = core::mem::replace(&mut proxy.is_reachable, is_reachable);
        let joins = proxy.is_ready() && !was_ready && !proxy.is_joined;
        let begins_history = is_reachable && proxy.waits_for_history();
        self.writers.refresh_destinations(&mut self.shared, writer);
        if joins {
            self.writers.join_reader(&mut self.shared, index);
        }
        if begins_history {
            self.writers.schedule_history(&mut self.shared, index);
        } else if was_reachable && !is_reachable {
            // The reader's answer validates the new address.
            self.writers.schedule_repair(&mut self.shared, index);
        }
    }

    /// Changes the address of a remote endpoint in all its proxies.
    pub(crate) fn follow(&mut self, guid: Guid, address: Address) {
        let mut at = self.readers.by_writer.get(&guid);
        while let Some(index) = at {
            self.readers.move_writer_proxy(index, address);
            at = self
                .readers
                .proxies
                .get(index)
                .and_then(|proxy| proxy.next_of_writer);
        }
        for writer in self.writers.table.ids() {
            if let Some(&index) = self.writers.proxy_by_reader.get(&(writer, guid)) {
                self.move_reader_proxy(index, address);
            }
        }
    }

    /// Replaces the GUID prefix of a participant's endpoints in all proxies.
    pub(crate) fn rename_proxies(&mut self, from: GuidPrefix, to: GuidPrefix) {
        for index in self.readers.proxies.ids() {
            let Some(proxy) = self.readers.proxies.get_mut(index) else {
                continue;
            };
            if proxy.guid.prefix == from {
                let before = proxy.guid;
                proxy.guid.prefix = to;
                let now = proxy.guid;
                // The chain is indexed by its first proxy only.
                if self.readers.by_writer.get(&before) == Some(index) {
                    self.readers.by_writer.remove(&before);
                    self.readers.by_writer.insert(now, index);
                }
            }
        }
        for index in self.writers.proxies.ids() {
            let Some(proxy) = self.writers.proxies.get_mut(index) else {
                continue;
            };
            if proxy.guid.prefix == from {
                self.writers
                    .proxy_by_reader
                    .remove(&(proxy.writer, proxy.guid));
                proxy.guid.prefix = to;
                self.writers
                    .proxy_by_reader
                    .insert((proxy.writer, proxy.guid), index);
            }
        }
    }

    /// Removes all matches of an endpoint.
    pub(crate) fn unmatch(&mut self, now: Instant, guid: Guid) {
        while let Some(proxy) = self.readers.by_writer.get(&guid) {
            self.remove_writer_proxy(now, proxy);
        }
        for writer in self.writers.table.ids() {
            if let Some(&proxy) = self.writers.proxy_by_reader.get(&(writer, guid)) {
                self.remove_reader_proxy(now, proxy);
            }
        }
    }

    /// Removes one match of an endpoint. Returns `false` if it has none.
    pub(crate) fn unmatch_one(&mut self, now: Instant, guid: Guid) -> bool {
        if let Some(proxy) = self.readers.by_writer.get(&guid) {
            self.readers.note_deleted(guid);
            self.remove_writer_proxy(now, proxy);
            return true;
        }
        let of_writer = |writer| self.writers.proxy_by_reader.get(&(writer, guid)).copied();
        let found = self.writers.table.ids().find_map(of_writer);
        if let Some(proxy) = found {
            self.remove_reader_proxy(now, proxy);
        }
        found.is_some()
    }

    pub(crate) fn remove_reader_proxy(&mut self, now: Instant, index: ReaderProxyId) {
        if let Some(ended) = self.writers.end_reader_proxy(&mut self.shared, now, index) {
            self.discovery.count_match(ended, -1);
            self.discovery.note_place(&mut self.shared);
        }
    }

    /// Removes all reader proxies of a writer that is being deleted.
    pub(crate) fn remove_reader_proxies(&mut self, writer: WriterId) {
        while let Some(&index) = self.writers.get(writer).and_then(|it| it.proxies.last()) {
            if let Some((_, ended)) = self.writers.take_reader_proxy(&mut self.shared, index) {
                self.discovery.count_match(ended, -1);
            }
        }
        self.discovery.note_place(&mut self.shared);
    }

    pub(crate) fn remove_writer_proxy(&mut self, now: Instant, index: WriterProxyId) {
        if let Some(ended) = self.readers.end_writer_proxy(
            &mut self.shared,
            Facts::of(&self.writers, &self.discovery),
            now,
            index,
        ) {
            self.discovery.count_match(ended, -1);
            self.discovery.note_place(&mut self.shared);
        }
    }

    /// Number of matched readers known to receive from a writer. A reliable reader counts from its first ACKNACK, a
    /// best-effort one from the validation of its address. PUBLICATION_MATCHED counts both from the match.
    #[must_use]
    pub fn matched_readers(&self, writer: WriterId) -> usize {
        let writer = self.writers.get(writer);
        writer.map_or(0, |writer| writer.joined as usize)
    }

    /// Number of matched reliable readers that have never answered the writer's HEARTBEATs. They get no samples until
    /// they answer.
    #[must_use]
    pub fn silent_readers(&self, writer: WriterId) -> usize {
        let proxies = self.writers.get(writer).map_or(&[][..], |it| &it.proxies);
        let proxies = proxies
            .iter()
            .filter_map(|&at| self.writers.proxies.get(at));
        let is_silent = |proxy: &&ReaderProxy| proxy.reliable && proxy.is_silent();
        proxies.filter(is_silent).count()
    }
}

impl Shared {
    fn count_refused(&mut self, why: Refusal) {
        let is_share = why == Refusal::SHARE;
        self.counters.shares_exceeded += u64::from(is_share);
        self.counters.matches_refused += u64::from(!is_share && !why.is_empty());
    }
}

impl Writers {
    fn begin_reader_proxy(&mut self, shared: &mut Shared, now: Instant, index: ReaderProxyId) {
        let proxy = &self.proxies[index];
        let (writer_index, guid, is_ready) = (proxy.writer, proxy.guid, proxy.is_ready());
        self.proxy_by_reader.insert((writer_index, guid), index);
        if let Some(writer) = self.table.get_mut(writer_index) {
            writer.proxies.push(index);
            writer.matched.join(guid);
            writer.status |= WriterStatus::PUBLICATION_MATCHED;
        }
        self.note_writer(shared, writer_index);
        self.refresh_lowest(writer_index);
        self.refresh_destinations(shared, writer_index);
        if is_ready {
            self.join_reader(shared, index);
        }
        // Sends a HEARTBEAT to this reader only, with the number at which it starts.
        self.schedule_repair(shared, index);
        self.arm_heartbeat(shared, now, writer_index);
    }

    /// Marks a matched reader as known to receive from the writer.
    pub(crate) fn join_reader(&mut self, shared: &mut Shared, index: ReaderProxyId) {
        let proxy = &mut self.proxies[index];
        let was_joined = core::mem::replace(&mut proxy.is_joined, true);
        let writer_index = proxy.writer;
        if let Some(writer) = self.table.get_mut(writer_index) {
            writer.joined += u32::from(!was_joined);
            writer.status |= WriterStatus::READER_HEARD;
            self.note_writer(shared, writer_index);
        }
    }

    fn end_reader_proxy(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: ReaderProxyId,
    ) -> Option<EndedMatch> {
        let (writer, ended) = self.take_reader_proxy(shared, index)?;
        self.refresh_destinations(shared, writer);
        // Samples that only this reader had not acknowledged can now be released.
        self.refresh_lowest(writer);
        self.release_acknowledged(shared, writer);
        self.arm_heartbeat(shared, now, writer);
        self.note_writer(shared, writer);
        Some(ended)
    }

    /// Removes a reader proxy from the tables and returns its writer, whose derived state the caller must refresh.
    fn take_reader_proxy(
        &mut self,
        shared: &mut Shared,
        index: ReaderProxyId,
    ) -> Option<(WriterId, EndedMatch)> {
        let proxy = self.proxies.remove(index)?;
        if proxy.repair_filed || proxy.history_filed {
            shared
                .work_queue
                .withdraw(&[Filed::Repair(index), Filed::History(index)]);
        }
        self.proxy_by_reader.remove(&(proxy.writer, proxy.guid));
        if let Some(writer) = self.table.get_mut(proxy.writer) {
            if let Some(place) = writer.proxies.iter().rposition(|&other| other == index) {
                writer.proxies.remove(place);
            }
            writer.joined -= u32::from(proxy.is_joined);
            writer.matched.part(proxy.guid);
            writer.status |= WriterStatus::PUBLICATION_MATCHED;
        }
        let level = self.table.get(proxy.writer).and_then(|it| it.level);
        Some((proxy.writer, (proxy.guid, level)))
    }
}

impl Readers {
    fn begin_writer_proxy(&mut self, shared: &mut Shared, index: WriterProxyId) {
        let proxy = &mut self.proxies[index];
        let (reader_index, guid, reliable) = (proxy.reader, proxy.guid, proxy.reliable);
        proxy.next_of_writer = self.by_writer.insert(guid, index);
        if let Some(reader) = self.table.get_mut(reader_index) {
            reader.proxies.push(index);
            reader.matched.join(guid);
            reader.liveliness.join(guid);
            reader.status |= ReaderStatus::SUBSCRIPTION_MATCHED | ReaderStatus::LIVELINESS_CHANGED;
        }
        self.join_group(index);
        self.note_reader(shared, reader_index);
        if reliable {
            // Preemptive ACKNACK: requests a HEARTBEAT, to learn the available samples at once.
            self.schedule_acknack(shared, index);
        }
    }

    pub(super) fn move_writer_proxy(
        &mut self,
        index: WriterProxyId,
        (unicast, multicast): Address,
    ) {
        if let Some(proxy) = self.proxies.get_mut(index) {
            proxy.reply_to = unicast.or(multicast);
        }
    }

    fn end_writer_proxy(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        now: Instant,
        index: WriterProxyId,
    ) -> Option<EndedMatch> {
        let other = self.part_sets(shared, facts, index);
        let proxy = self.proxies.remove(index)?;
        if proxy.acknack_filed {
            shared.work_queue.withdraw(&[Filed::AckNack(index)]);
        }
        self.unlink(&proxy, index);
        let level = self.table.get(proxy.reader).and_then(|it| it.level);
        let ended = (proxy.guid, level);
        let reader = &mut self.table[proxy.reader];
        reader.proxies.retain(|&other| other != index);
        reader.matched.part(proxy.guid);
        reader.liveliness.part(proxy.guid, proxy.clock.is_alive());
        reader.status |= ReaderStatus::SUBSCRIPTION_MATCHED | ReaderStatus::LIVELINESS_CHANGED;
        if let Some(assemblies) = &mut reader.assemblies {
            assemblies.forget(index);
        }
        reader.forget_held(index);
        reader.release_owner(index);
        if let Some(cache) = &mut reader.cache {
            cache.count_as_shown(self.shown);
            cache.writer_gone(index, proxy.guid, now);
            shared.counters.instance_ends_unseen += cache.take_unseen();
            if cache.available() > 0 {
                reader.status |= ReaderStatus::DATA_AVAILABLE;
            }
        }
        self.note_reader(shared, proxy.reader);
        if let Some(other) = other {
            // Samples of the other proxy no longer wait for the removed writer.
            self.present(shared, facts, other);
        }
        if proxy.clock.is_watched {
            // Samples of its ended instances may have a purge delay.
            self.arm_reader(shared, proxy.reader);
        }
        Some(ended)
    }

    /// Removes a proxy from the chain of its writer.
    fn unlink(&mut self, proxy: &WriterProxy, index: WriterProxyId) {
        let first = self.by_writer.get(&proxy.guid);
        if first == Some(index) {
            match proxy.next_of_writer {
                Some(next) => {
                    self.by_writer.insert(proxy.guid, next);
                }
                None => self.by_writer.remove(&proxy.guid),
            }
            return;
        }
        let mut at = first;
        while let Some(here) = at {
            let before = &mut self.proxies[here];
            if before.next_of_writer == Some(index) {
                before.next_of_writer = proxy.next_of_writer;
                return;
            }
            at = before.next_of_writer;
        }
    }

    pub(crate) fn proxy_of_writer_at(
        &self,
        writer: Guid,
        reader: ReaderId,
    ) -> Option<WriterProxyId> {
        let mut at = self.by_writer.get(&writer);
        while let Some(index) = at {
            let proxy = self.proxies.get(index)?;
            if proxy.reader == reader {
                return Some(index);
            }
            at = proxy.next_of_writer;
        }
        None
    }
}

impl Discovery {
    /// Adds `change` to a participant's number of matches. Matches of built-in endpoints do not count.
    fn count_match(&mut self, (peer, level): EndedMatch, change: i16) {
        let participant = self.by_prefix.get(&peer.prefix);
        let participant = participant.and_then(|&index| self.participants.get_mut(index));
        if let Some(participant) = participant.filter(|_| level.is_some()) {
            participant.matches = participant.matches.saturating_add_signed(change);
        }
    }
}
