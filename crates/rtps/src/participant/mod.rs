//! Local participant: its parts, and their creation.
//!
//! The system backs memory page by page at the first write. Without prefaulting ([`LocalParticipant::touch_slots`]),
//! the first sample in a slot pays for a page fault.

mod builtin_endpoints;
pub(crate) mod enable;
pub(crate) mod local_endpoints;

use alloc::collections::VecDeque;
use core::hint::black_box;

use isolane_wire::{
    builtin_data::ParticipantData,
    guid::{EntityId, Guid, GuidPrefix},
    level::Level,
    locator::Locator,
    message::{Header, VENDOR_ID, VERSION},
    qos::Octets,
    time::{Instant, Timestamp},
};

use crate::{
    CreateError,
    config::{ParticipantConfig, Timing},
    counters::Counters,
    discovery::{Discovery, EndpointKind, EndpointRecord, RemoteEndpoint, RemoteParticipant},
    reader::Readers,
    slab::{EndpointId, RemoteParticipantId},
    work_queue::{Noted, Timers, WorkQueue, filed_at_most},
    writer::Writers,
};

/// Built-in local writers (and as many readers).
pub(crate) const BUILTIN_ENDPOINTS: u16 = 3;

/// DDS participant as a state machine. See the [crate] for how to drive it.
#[derive(Debug)]
pub struct LocalParticipant {
    pub(crate) shared: Shared,
    pub(crate) writers: Writers,
    pub(crate) readers: Readers,
    pub(crate) discovery: Discovery,
}

/// State that writers, readers and discovery share: configuration, counters, timers, and the queues of filed work and
/// status changes.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: ParticipantConfig,
    pub(crate) header: Header,
    pub(crate) counters: Counters,
    pub(crate) work_queue: WorkQueue,
    pub(crate) timers: Timers,
    /// Last time passed in by a call that is not a write; waiting samples are judged at this time.
    pub(crate) latest: Instant,
    /// Endpoints whose status has changed.
    pub(crate) changed: VecDeque<Noted>,
    pub(crate) discovery_changed: bool,
    /// A discovery step is filed.
    pub(crate) discovery_filed: bool,
    /// Number of known remote participants.
    pub(crate) remote_participants: usize,
    pub(crate) next_entity: u32,
    /// Bytes of sample memory of the user's endpoints.
    pub(crate) sample_bytes: usize,
    /// Highest level of the user's endpoints, enabled or not; `None` without any.
    pub(crate) highest_level: Option<Level>,
}

/// Read-only tables of other parts, in which readers look up facts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) writers: &'a Writers,
    pub(crate) discovery: &'a Discovery,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(writers: &'a Writers, discovery: &'a Discovery) -> Self {
        Self { writers, discovery }
    }
}

impl LocalParticipant {
    /// Creates a local participant and files its first announcement.
    ///
    /// # Panics
    /// If [`try_new`](LocalParticipant::try_new) fails.
    #[must_use]
    pub fn new(config: ParticipantConfig, now: Instant) -> Self {
        Self::try_new(config, now).expect("memory for the endpoints of discovery")
    }

    /// Creates a local participant and files its first announcement.
    ///
    /// # Errors
    /// [`CreateError::NoMemory`].
    pub fn try_new(mut config: ParticipantConfig, now: Instant) -> Result<Self, CreateError> {
        config.timing = config.timing.bounded();
        config.limits = config.limits.bounded();
        config.announce_to.sort_unstable();
        config.announce_to.dedup();
        if let Some(described) = &config.described {
            let [.., a, b, c, d] = config.guid_prefix.0;
            config.guid_prefix = described.prefix([a, b, c, d]);
        }
        let limits = config.limits;
        let local = usize::from(limits.local_endpoints + BUILTIN_ENDPOINTS);
        let participants = usize::from(limits.participants);
        let is_fixed = limits.fixed_memory;
        let shared = Shared {
            header: Header {
                version: VERSION,
                vendor: VENDOR_ID,
                prefix: config.guid_prefix,
            },
            counters: Counters::default(),
            work_queue: WorkQueue::new(),
            timers: Timers::new(&config.limits),
            latest: now,
            changed: VecDeque::with_capacity(2 * local + 1),
            discovery_changed: false,
            discovery_filed: false,
            remote_participants: 0,
            next_entity: 0,
            sample_bytes: 0,
            highest_level: None,
            config,
        };
        let mut protocol = Self {
            writers: Writers::new(&shared.config),
            readers: Readers::new(&shared.config),
            discovery: Discovery::try_new(&shared.config)?,
            shared,
        };
        if is_fixed {
            let matches = protocol.writers.proxies.room();
            let filed = filed_at_most(2 * local, matches, matches, participants);
            protocol.shared.work_queue.reserve(filed);
        }
        let created = protocol.create_builtin_endpoints();
        created.map_err(|bytes| CreateError::NoMemory { bytes })?;
        if protocol.shared.config.is_enabled {
            protocol
                .discovery
                .begin_announcing(&mut protocol.shared, now);
        }
        Ok(protocol)
    }

    /// Returns the GUID prefix of this participant.
    #[must_use]
    pub fn guid_prefix(&self) -> GuidPrefix {
        self.shared.guid_prefix()
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Returns the destinations of participant announcements, sorted.
    #[must_use]
    pub fn announce_to(&self) -> &[Locator] {
        &self.shared.config.announce_to
    }

    /// Converts a monotonic instant to a source time stamp of the wall clock.
    #[must_use]
    pub fn timestamp(&self, now: Instant) -> Timestamp {
        self.shared.timestamp(now)
    }

    /// Updates the wall clock's offset from the monotonic clock.
    pub fn set_wall_offset(&mut self, wall_offset_ns: u64) {
        self.shared.config.wall_offset_ns = wall_offset_ns;
    }

    /// Changes USER_DATA of this participant and announces it at once.
    pub fn set_user_data(&mut self, user_data: Octets) {
        if self.shared.config.user_data != user_data {
            self.shared.config.user_data = user_data;
            if self.shared.config.is_enabled {
                self.discovery.announce_now(&mut self.shared);
            }
        }
    }

    /// Looks for the highest level again, after an endpoint was removed.
    pub(crate) fn update_highest_level(&mut self) {
        self.shared.highest_level = self.highest_level_by_search();
    }

    fn highest_level(&self) -> Option<Level> {
        let kept = self.shared.highest_level;
        debug_assert_eq!(kept, self.highest_level_by_search());
        kept
    }

    fn highest_level_by_search(&self) -> Option<Level> {
        let writers = self
            .writers
            .table
            .iter()
            .filter_map(|(_, writer)| writer.level);
        let readers = self
            .readers
            .table
            .iter()
            .filter_map(|(_, reader)| reader.level);
        writers.chain(readers).max()
    }

    /// Returns whether `level` is the highest level in use here, or that of discovery.
    pub(crate) fn is_highest(&self, level: Option<Level>) -> bool {
        level.is_none() || level == self.highest_level()
    }

    /// Returns whether a topic has a local endpoint of the highest level in use.
    pub(crate) fn is_most_critical(&self, topic_name: &str) -> bool {
        let highest = self.highest_level();
        let is_critical = |level: Option<Level>| level.is_some() && level == highest;
        let writers = self.writers.by_topic.first(topic_name);
        let mut writers = core::iter::successors(writers, |&at| self.writers.by_topic.next(at));
        let readers = self.readers.by_topic.first(topic_name);
        let mut readers = core::iter::successors(readers, |&at| self.readers.by_topic.next(at));
        writers.any(|at| is_critical(self.writers.get(at).and_then(|it| it.level)))
            || readers.any(|at| is_critical(self.readers.get(at).and_then(|it| it.level)))
    }

    /// Returns the maximum number of readers, without the built-in ones.
    #[must_use]
    pub fn max_readers(&self) -> usize {
        self.shared.config.limits.local_endpoints.into()
    }

    /// Returns the domain.
    #[must_use]
    pub fn domain(&self) -> u32 {
        self.shared.config.domain
    }

    /// Iterates over the known remote participants.
    pub fn remote_participants(&self) -> impl Iterator<Item = &RemoteParticipant> {
        self.remote_participants_from(0).map(|(_, peer)| peer)
    }

    /// Iterates over the known remote participants with their indexes in the table, from an index on. The table may
    /// change between two such iterations: a participant that stays keeps its index.
    pub fn remote_participants_from(
        &self,
        index: u16,
    ) -> impl Iterator<Item = (u16, &RemoteParticipant)> {
        let participants = &self.discovery.participants;
        let ids = participants.ids_from(RemoteParticipantId(index));
        let known = ids.filter_map(|id| Some((id.0, participants.get(id)?)));
        known.filter(|(_, peer)| !peer.is_leaving())
    }

    /// Iterates over the known remote endpoints.
    pub fn remote_endpoints(&self) -> impl Iterator<Item = RemoteEndpoint> {
        self.remote_endpoints_from(0).map(|(_, endpoint)| endpoint)
    }

    /// Iterates over the known remote endpoints with their indexes in the table, as
    /// [`remote_participants_from`](Self::remote_participants_from).
    pub fn remote_endpoints_from(&self, index: u16) -> impl Iterator<Item = (u16, RemoteEndpoint)> {
        self.remote_endpoints_where(index, |_| true)
    }

    /// Iterates over the known remote endpoints of a kind and topic. Only their announcements are parsed.
    pub fn remote_endpoints_of(
        &self,
        topic_name: &str,
        kind: EndpointKind,
    ) -> impl Iterator<Item = RemoteEndpoint> {
        let topic = self.readers.topic_hash(topic_name);
        let is_wanted = move |it: &EndpointRecord| it.kind == kind && it.topic == topic;
        self.remote_endpoints_where(0, is_wanted)
            .map(|(_, endpoint)| endpoint)
            .filter(move |endpoint| endpoint.data.topic_name == topic_name)
    }

    fn remote_endpoints_where(
        &self,
        index: u16,
        is_wanted: impl Fn(&EndpointRecord) -> bool,
    ) -> impl Iterator<Item = (u16, RemoteEndpoint)> {
        let discovery = &self.discovery;
        let ids = discovery.endpoints.ids_from(EndpointId(index));
        let known = ids.filter_map(|id| Some((id, discovery.endpoints.get(id)?)));
        let stays = known.filter(move |(id, endpoint)| {
            is_wanted(endpoint) && !discovery.is_leaving(*id, endpoint)
        });
        stays.map(|(id, endpoint)| (id.0, endpoint.show(&discovery.announcements)))
    }

    /// Returns the data that this participant announces of itself.
    #[must_use]
    pub fn participant_data(&self) -> ParticipantData {
        self.shared.participant_data()
    }
}

impl Shared {
    pub(crate) fn guid_prefix(&self) -> GuidPrefix {
        self.config.guid_prefix
    }

    pub(crate) fn timestamp(&self, now: Instant) -> Timestamp {
        Timestamp::from_nanos(now.as_nanos().wrapping_add(self.config.wall_offset_ns))
    }

    pub(crate) fn timing(&self) -> Timing {
        self.config.timing
    }

    /// Returns the next entity id for an endpoint of the user: numbered from 1, with the kind in the last byte (RTPS
    /// 2.5 §9.3.1.2).
    pub(crate) fn next_entity(&mut self, kind: u8) -> EntityId {
        self.next_entity += 1;
        EntityId::user(self.next_entity, kind)
    }

    pub(crate) fn guid(&self, entity: EntityId) -> Guid {
        Guid {
            prefix: self.config.guid_prefix,
            entity,
        }
    }
}

/// Smallest page size of the supported systems, so that no page is missed.
const PAGE_BYTES: usize = 4_096;

impl LocalParticipant {
    /// Writes to every page of all slots without changing their contents. Call it before start only; the time is
    /// proportional to the memory.
    pub fn touch_slots(&mut self) {
        for index in self.writers.table.ids() {
            let writer = self.writers.get_mut(index);
            if let Some(history) = writer.and_then(|writer| writer.history.as_mut()) {
                history.memory_mut().for_each(touch);
            }
        }
        for index in self.readers.table.ids() {
            let reader = self.readers.get_mut(index);
            if let Some(cache) = reader.and_then(|reader| reader.cache.as_mut()) {
                cache.memory_mut().for_each(touch);
            }
            let reader = self.readers.get_mut(index);
            if let Some(assemblies) = reader.and_then(|reader| reader.assemblies.as_mut()) {
                touch(assemblies.memory_mut());
            }
        }
    }
}

fn touch(memory: &mut [u8]) {
    for page in memory.chunks_mut(PAGE_BYTES) {
        // Writes the same value; `black_box` hides this from the compiler.
        page[0] = black_box(page[0]);
    }
    if let Some(last) = memory.last_mut() {
        // The memory need not begin at a page boundary.
        *last = black_box(*last);
    }
}
