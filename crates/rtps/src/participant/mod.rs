//! Local participant: tables, counters and timers, their creation and the advance of time.
//!
//! The system backs memory page by page at the first write. Without prefaulting ([`LocalParticipant::touch_slots`]), the first
//! sample in a slot pays for a page fault.

mod builtin_endpoints;
pub(crate) mod enable;
pub(crate) mod local_endpoints;

use alloc::{collections::VecDeque, vec::Vec};
use core::hint::black_box;

use isolane_wire::{
    guid::{EntityId, Guid, GuidPrefix},
    level::Level,
    locator::Locator,
    message::{Header, VENDOR_ID, VERSION},
    qos::Octets,
    time::{Instant, Timestamp},
};

use crate::{
    CreateError,
    coherent_access::{Publisher, Subscriber},
    config::{ParticipantConfig, Timing},
    counters::Counters,
    discovery::{
        Announcements, Announces, EndpointRecord, Events, Ignored, Inbox, RemoteEndpoint,
        RemoteParticipant, StaticPeer, rate_limit::TokenBucket,
    },
    hash::{Index, PeerIndex, index},
    limits::{DISCOVERY_SLOT_BYTES, MAX_GROUPS, SPDP_INBOX_SLOTS, UNVALIDATED_BYTES_PER_S},
    matching::TopicIndex,
    reader::{EndedMatches, Reader, WriterProxy, writer_proxy::WriterProxyIndex},
    slab::{Slab, WriterId},
    status::Noted,
    timed_qos::Assertions,
    timers::{TimerOwner, Timers},
    work_queue::{Filed, Priority, WorkKind, WorkQueue},
    writer::{Writer, reader_proxy::ReaderProxy},
};

/// Built-in local writers (and as many readers).
pub(crate) const BUILTIN_ENDPOINTS: u16 = 3;

/// Returns the maximum number of filed work items: data, fragments, heartbeat and clock for each writer, a clock for
/// each reader, repair and history for each reader proxy, an ACKNACK for each writer proxy, an announcement for each
/// participant and one to all, one discovery step.
fn filed_at_most(local: usize, readers: usize, writers: usize, participants: usize) -> usize {
    4 * local + 2 * readers + writers + participants + 2
}

/// DDS participant as a state machine. See the [crate] for how to drive it.
#[derive(Debug)]
pub struct LocalParticipant {
    pub(crate) config: ParticipantConfig,
    pub(crate) header: Header,
    pub(crate) writers: Slab<Writer>,
    pub(crate) readers: Slab<Reader>,
    pub(crate) publishers: Slab<Publisher>,
    pub(crate) subscribers: Slab<Subscriber>,
    pub(crate) reader_proxies: Slab<ReaderProxy>,
    pub(crate) writer_proxies: Slab<WriterProxy>,
    pub(crate) proxies_of_writer: WriterProxyIndex,
    /// Proxies by local writer and remote reader.
    pub(crate) proxy_of_reader: PeerIndex<(u16, Guid), u16>,
    pub(crate) writer_by_entity: Index<EntityId, u16>,
    pub(crate) writer_topics: TopicIndex,
    pub(crate) reader_topics: TopicIndex,
    pub(crate) participants: Slab<RemoteParticipant>,
    pub(crate) participant_by_prefix: PeerIndex<GuidPrefix, u16>,
    pub(crate) endpoints: Slab<EndpointRecord>,
    /// Announced data of `endpoints`.
    pub(crate) announcements: Announcements,
    pub(crate) endpoint_by_guid: PeerIndex<Guid, u16>,
    pub(crate) work_queue: WorkQueue,
    /// Rate limit for all unvalidated addresses together.
    pub(crate) unvalidated: TokenBucket,
    pub(crate) discovery_rate: TokenBucket,
    pub(crate) timers: Timers,
    pub(crate) inbox: Inbox,
    pub(crate) ignored: Ignored,
    pub(crate) parted: EndedMatches,
    pub(crate) statics: Vec<StaticPeer>,
    pub(crate) events: Events,
    pub(crate) next_entity: u32,
    pub(crate) announcements_sent: u32,
    /// Announcements are in this participant's own phase of the period.
    pub(crate) is_in_phase: bool,
    pub(crate) counters: Counters,
    pub(crate) announce_filed: bool,
    pub(crate) discovery_filed: bool,
    /// Discovery task that had its turn last.
    pub(crate) discovery_turn: u8,
    /// Next local endpoint to announce with new locators, writers before readers; `None` when all are announced.
    pub(crate) move_from: Option<u32>,
    /// Endpoint of a peer that is being removed.
    pub(crate) leaving_endpoint: Option<u16>,
    /// Some match was refused.
    pub(crate) has_refused: bool,
    /// A match has ended since, so a refused one may find room.
    pub(crate) has_place: bool,
    /// Some participant may be leaving.
    pub(crate) has_leaving: bool,
    pub(crate) has_following: bool,
    /// Some participant's lease may have expired.
    pub(crate) leases_due: bool,
    /// Last time passed in, except with samples; waiting samples are judged by it.
    pub(crate) latest: Instant,
    /// Liveliness assertions of the user for all writers.
    pub(crate) assertions: Assertions,
    /// Counter that orders samples made available in group order.
    pub(crate) shown: u64,
    /// Number of the present pass over the rings of proxies with group access.
    pub(crate) looks: u64,
    pub(crate) noted: VecDeque<Noted>,
    pub(crate) discovery_noted: bool,
    /// Reader that became silent last, and its writer.
    pub(crate) last_silent: Option<(WriterId, Guid)>,
    /// Reader of the last sample that was too large.
    pub(crate) last_too_large: Option<u16>,
    /// Bytes of sample memory of the user's endpoints.
    pub(crate) sample_bytes: usize,
    /// Scratch space for a writer's destinations; empty between calls.
    pub(crate) reached: Vec<(GuidPrefix, Locator)>,
}

impl LocalParticipant {
    /// Creates a local participant and files its first announcement.
    ///
    /// # Panics
    /// If [`try_new`](Self::try_new) fails.
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
        let matches = usize::from(limits.matches);
        let participants = usize::from(limits.participants);
        let remote = usize::from(limits.remote_endpoints);
        let is_fixed = limits.fixed_memory;
        let seed = |salt: u64| config.seed.wrapping_add(salt);
        let header = Header {
            version: VERSION,
            vendor: VENDOR_ID,
            prefix: config.guid_prefix,
        };
        let reader_proxies = Slab::with_kept(matches, is_fixed);
        let writer_proxies = Slab::with_kept(matches, is_fixed);
        let endpoints = Slab::with_kept(remote, is_fixed);
        // With the entries reserved for the highest level.
        let (matches, known) = (reader_proxies.room(), endpoints.room());
        let mut protocol = Self {
            header,
            writers: Slab::new(local, is_fixed),
            readers: Slab::new(local, is_fixed),
            publishers: Slab::new(MAX_GROUPS.into(), is_fixed),
            subscribers: Slab::new(MAX_GROUPS.into(), is_fixed),
            reader_proxies,
            writer_proxies,
            proxies_of_writer: WriterProxyIndex::new(matches, is_fixed, seed(1)),
            proxy_of_reader: PeerIndex::new(matches, is_fixed, seed(2)),
            writer_by_entity: index(local, seed(3)),
            writer_topics: TopicIndex::new(local, seed(6)),
            reader_topics: TopicIndex::new(local, seed(7)),
            participants: Slab::new(participants, is_fixed),
            participant_by_prefix: PeerIndex::new(participants, is_fixed, seed(4)),
            endpoints,
            announcements: Announcements::new(remote, is_fixed),
            endpoint_by_guid: PeerIndex::new(known, is_fixed, seed(5)),
            work_queue: WorkQueue::new(),
            unvalidated: TokenBucket::new(UNVALIDATED_BYTES_PER_S.into()),
            discovery_rate: TokenBucket::new(config.discovery_bytes_per_s),
            timers: Timers::new(TimerOwner::count(&limits)),
            inbox: Inbox::try_new(SPDP_INBOX_SLOTS, config.zeroed).ok_or(
                CreateError::NoMemory {
                    bytes: SPDP_INBOX_SLOTS * DISCOVERY_SLOT_BYTES,
                },
            )?,
            ignored: Ignored::new(),
            parted: EndedMatches::default(),
            statics: Vec::new(),
            events: Events::default(),
            next_entity: 0,
            announcements_sent: 0,
            is_in_phase: false,
            counters: Counters::default(),
            noted: VecDeque::with_capacity(2 * local + 1),
            discovery_noted: false,
            last_silent: None,
            last_too_large: None,
            sample_bytes: 0,
            reached: Vec::new(),
            latest: now,
            shown: 0,
            looks: 0,
            assertions: Assertions::default(),
            announce_filed: false,
            discovery_filed: false,
            discovery_turn: 0,
            move_from: None,
            leaving_endpoint: None,
            has_refused: false,
            has_place: false,
            has_leaving: false,
            has_following: false,
            leases_due: false,
            config,
        };
        if is_fixed {
            protocol
                .work_queue
                .reserve(filed_at_most(2 * local, matches, matches, participants));
            protocol.reached.reserve(matches);
        }
        let created = protocol.create_builtin_endpoints();
        created.map_err(|bytes| CreateError::NoMemory { bytes })?;
        if protocol.config.is_enabled {
            protocol.begin_announcing(now);
        }
        Ok(protocol)
    }

    /// Returns the GUID prefix of this participant.
    #[must_use]
    pub fn guid_prefix(&self) -> GuidPrefix {
        self.config.guid_prefix
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the destinations of participant announcements, sorted.
    #[must_use]
    pub fn announce_to(&self) -> &[Locator] {
        &self.config.announce_to
    }

    /// Converts a monotonic instant to a source time stamp of the wall clock.
    #[must_use]
    pub fn timestamp(&self, now: Instant) -> Timestamp {
        Timestamp::from_nanos(now.as_nanos().wrapping_add(self.config.wall_offset_ns))
    }

    /// Updates the wall clock's offset from the monotonic clock.
    pub fn set_wall_offset(&mut self, wall_offset_ns: u64) {
        self.config.wall_offset_ns = wall_offset_ns;
    }

    /// Changes USER_DATA of this participant and announces it at once.
    pub fn set_user_data(&mut self, user_data: Octets) {
        if self.config.user_data != user_data {
            self.config.user_data = user_data;
            if self.config.is_enabled {
                self.announce_now();
            }
        }
    }

    pub(crate) fn timing(&self) -> Timing {
        self.config.timing
    }

    /// Reserves room for all work that can be filed; called when a record was added, so that samples allocate nothing.
    pub(crate) fn make_room_to_file(&mut self) {
        let of = usize::from;
        let local = of(self.writers.end()) + of(self.readers.end());
        self.work_queue.reserve(filed_at_most(
            local,
            of(self.reader_proxies.end()),
            of(self.writer_proxies.end()),
            of(self.participants.end()),
        ));
    }

    /// Returns the set of priorities with work for [`Self::poll_transmit`], as bit *p* for priority *p*.
    #[must_use]
    #[inline]
    pub fn ready(&self) -> u16 {
        self.work_queue.ready()
    }

    /// Returns when to call [`Self::advance`] next; `None` if no timer is armed.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Notes the time after a pause of the caller's loop; hold times of new samples count from it.
    #[inline]
    pub fn note_time(&mut self, now: Instant) {
        self.latest = self.latest.max(now);
    }

    /// Advances the time to `now` and files all work that is due.
    pub fn advance(&mut self, now: Instant) {
        self.latest = now;
        while let Some(timer) = self.timers.expire(now) {
            match TimerOwner::of(timer, &self.config.limits) {
                TimerOwner::Announce => self.announce_due(now),
                TimerOwner::DiscoveryRate => {
                    let has_waited = self.work_queue.hold_limited(false);
                    self.counters.discovery_limited += u64::from(has_waited);
                }
                TimerOwner::Lease(_) => self.lease_due(),
                TimerOwner::Heartbeat(writer) => self.heartbeat_due(now, writer),
                TimerOwner::WriterTimedQos(writer) => self.schedule_writer_timed_qos(writer),
                TimerOwner::ReaderTimedQos(reader) => self.schedule_reader_timed_qos(reader),
                TimerOwner::Batch(writer) => self.flush_batch(writer),
                TimerOwner::Message(which) => self.message_due(now, which),
            }
        }
    }

    fn announce_due(&mut self, now: Instant) {
        let period = self.announce_period();
        self.timers.arm(TimerOwner::ANNOUNCE, now + period);
        self.ask_silent_peers();
        if self.move_from.is_some() {
            self.schedule_discovery();
        }
        if self.announces() == Announces::Nothing {
            self.announcements_sent = self.announcements_sent.saturating_add(1);
            return;
        }
        if self.announce_filed {
            // More urgent work has delayed the announcement for a whole period. Peers would consider this participant
            // gone and drop the very topics that keep it busy; one datagram a period is cheaper.
            self.work_queue.withdraw(&[WorkKind::Announce], 0);
            self.schedule(Priority::HIGHEST, WorkKind::Announce, 0);
        } else {
            self.schedule_announcement(0);
        }
        self.schedule_announcements_to_unlisted();
    }

    pub(crate) fn schedule(&mut self, priority: Priority, kind: WorkKind, subject: u16) {
        let filed = Filed { kind, subject };
        match priority == Priority::DISCOVERY && self.is_limited(filed) {
            true => self.work_queue.schedule_limited(filed),
            false => self.work_queue.schedule(priority, filed),
        }
    }

    fn highest_level(&self) -> Option<Level> {
        let writers = self.writers.iter().filter_map(|(_, writer)| writer.level);
        let readers = self.readers.iter().filter_map(|(_, reader)| reader.level);
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
        let writers = self.writer_topics.first(topic_name);
        let mut writers = core::iter::successors(writers, |&at| self.writer_topics.next(at));
        let readers = self.reader_topics.first(topic_name);
        let mut readers = core::iter::successors(readers, |&at| self.reader_topics.next(at));
        writers.any(|at| is_critical(self.writers.get(at).and_then(|it| it.level)))
            || readers.any(|at| is_critical(self.readers.get(at).and_then(|it| it.level)))
    }

    /// Iterates over the known remote participants.
    pub fn remote_participants(&self) -> impl Iterator<Item = &RemoteParticipant> {
        let stays = |peer: &&RemoteParticipant| !peer.is_leaving();
        self.participants.iter().map(|(_, peer)| peer).filter(stays)
    }

    /// Iterates over the known remote endpoints.
    pub fn remote_endpoints(&self) -> impl Iterator<Item = RemoteEndpoint> {
        let stays = |&(index, endpoint): &(u16, &EndpointRecord)| !self.is_leaving(index, endpoint);
        let all = self.endpoints.iter().filter(stays);
        all.map(|(_, endpoint)| endpoint.show(&self.announcements))
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
        for index in 0..self.writers.end() {
            let writer = self.writers.get_mut(index);
            if let Some(history) = writer.and_then(|writer| writer.history.as_mut()) {
                history.memory_mut().for_each(touch);
            }
        }
        for index in 0..self.readers.end() {
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
        // The same value; `black_box` hides that from the compiler.
        page[0] = black_box(page[0]);
    }
    if let Some(last) = memory.last_mut() {
        // The memory need not begin at a page boundary.
        *last = black_box(*last);
    }
}
