//! Local reader: configuration, cache, status and counters.
//!
//! For *wait_for_historical_data* (DDS 1.4 §2.2.2.5.3.34): the first HEARTBEAT of a matched writer contains the last
//! sequence number of its history (lastSN). The reader has the history when no sequence number up to that one is
//! missing.
//!
//! When discovery announces the end of a writer, the position of each of its readers is kept: the next sequence number
//! expected. Such an announcement can be forged. If the writer is announced again, its readers continue at these
//! positions.

pub(crate) mod cache;
mod data_frag;
pub(crate) mod filtering;
pub(crate) mod instance;
pub(crate) mod read_take;
pub(crate) mod reassembly;
mod reliability;
mod sequence_jump;
pub(crate) mod writer_proxy;

use alloc::{boxed::Box, vec::Vec};

use bitflags::bitflags;
use isolane_wire::{
    builtin_data::EndpointData,
    cdr::{CdrError, KeyHash},
    guid::{EntityId, Guid, GuidPrefix},
    level::Level,
    qos::{DurabilityKind, ReliabilityKind},
    sequence::SequenceNumber,
    time::Instant,
};

use crate::{
    coherent_access::Subscriber,
    config::ParticipantConfig,
    content_filter::ContentFilter,
    counters::ReaderLedger,
    limits::{MAX_GROUPS, UNMATCHED_REMEMBERED},
    matching::{Incompatible, TopicIndex},
    participant::{BUILTIN_ENDPOINTS, Facts, LocalParticipant, Shared},
    reader::{
        cache::{Cache, Refused},
        reassembly::Reassembly,
    },
    receiver::{Unfit, WriterProxyIndex},
    slab::{ReaderId, Slab, SubscriberId, WriterProxyId},
    status::{MatchTally, RejectReason, UnreadableSamples},
    timed_qos::{LivelinessTally, ReaderTimedQos},
    work::{Priority, Queue},
};

pub(crate) use self::{
    sequence_jump::{Origin, Settled, Verdict},
    writer_proxy::{WriterProxy, is_news},
};

/// Returns the key hash (RTPS 2.5 §9.6.4.8) of a serialised sample or key; an error if the bytes are not of the type.
pub type KeyOf = fn(payload: &[u8], key_only: bool) -> Result<KeyHash, CdrError>;

/// Delivery of samples to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryMode {
    /// As a view of the received frame during reception; nothing is stored. Best effort only.
    View,
    /// Through the cache.
    Cache,
}

bitflags! {
    /// Status changes of a reader since they were last read (DDS 1.4 §2.2.4.1).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ReaderStatus: u8 {
        /// Samples are available.
        const DATA_AVAILABLE = 1;
        /// The number of matched writers changed.
        const SUBSCRIPTION_MATCHED = 2;
        /// A writer offers less than requested.
        const REQUESTED_INCOMPATIBLE_QOS = 4;
        /// A sample will never arrive.
        const SAMPLE_LOST = 8;
        /// A sample arrived and was rejected.
        const SAMPLE_REJECTED = 16;
        /// An instance was not updated for a whole period.
        const REQUESTED_DEADLINE_MISSED = 32;
        /// The number of writers alive changed.
        const LIVELINESS_CHANGED = 64;
    }
}

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) guid: Guid,
    pub(crate) data: EndpointData,
    pub(crate) keyed: bool,
    pub(crate) key_of: Option<KeyOf>,
    pub(crate) level: Option<Level>,
    pub(crate) reliable: bool,
    pub(crate) volatile: bool,
    pub(crate) is_enabled: bool,
    pub(crate) max_payload_bytes: usize,
    /// Bytes of its sample memory.
    pub(crate) sample_bytes: usize,
    /// `None` for a reader that takes views.
    pub(crate) cache: Option<Cache>,
    /// Reassembly of fragments; `None` if no sample needs it.
    pub(crate) assemblies: Option<Reassembly>,
    /// Count of the last NACK_FRAG to any writer.
    pub(crate) nack_count: i32,
    pub(crate) proxies: Vec<WriterProxyId>,
    pub(crate) status: ReaderStatus,
    /// The reader is in the queue of status changes.
    pub(crate) noted: bool,
    pub(crate) incompatible: Option<Incompatible>,
    /// State of time-based policies.
    pub(crate) clock: Option<Box<ReaderTimedQos>>,
    pub(crate) content_filter: Option<ContentFilter>,
    pub(crate) clock_filed: bool,
    /// Index of its group.
    pub(crate) subscriber: Option<SubscriberId>,
    /// Next time to check the progress of the writers that the reader waits for.
    pub(crate) ask_at: Option<Instant>,
    pub(crate) liveliness: LivelinessTally,
    pub(crate) matched: MatchTally,
    /// Values of the ledger when the user last took the status.
    pub(crate) reported_lost: u64,
    pub(crate) reported_rejected: u64,
    pub(crate) reported_too_large: u64,
    /// Payload bytes of the last sample that was too large.
    pub(crate) too_large_bytes: u32,
    pub(crate) reject_reason: RejectReason,
    pub(crate) unreadable_samples: Option<UnreadableSamples>,
    pub(crate) ledger: ReaderLedger,
    /// A sample was refused for lack of room; to be requested when there is room.
    pub(crate) refused_for_room: bool,
    /// A sample was refused to leave room for other writers.
    pub(crate) refused_for_share: bool,
    /// For lack of room, fewer samples were requested than are missing; the rest is requested when those have arrived
    /// and were taken.
    pub(crate) requested_partially: bool,
    /// Count of the last ACKNACK to any writer. It outlives the proxies, so that it grows for a writer that was removed
    /// and matched again.
    pub(crate) acknack_count: i32,
}

impl Reader {
    pub(crate) fn protocol_priority(&self) -> Priority {
        self.level
            .map_or(Priority::DISCOVERY, Priority::of_protocol)
    }

    pub(crate) fn protocol_queue(&self) -> Queue {
        self.level.map_or_else(
            || Queue::of_builtin(self.guid.entity),
            |level| Queue::Of(Priority::of_protocol(level)),
        )
    }

    /// Returns whether a submessage's readerId addresses this reader (RTPS 2.5 §8.3.8: ENTITYID_UNKNOWN addresses all
    /// matched readers).
    #[inline]
    pub(crate) fn is_addressed(&self, reader: EntityId) -> bool {
        reader == EntityId::UNKNOWN || reader == self.guid.entity
    }

    pub(crate) fn count_rejected(&mut self, writer: Guid, reason: RejectReason) {
        self.ledger.rejected += 1;
        self.reject_reason = reason;
        let identifier = match reason {
            RejectReason::NotOfType => None,
            RejectReason::Encapsulation(identifier) => Some(identifier),
            _ => return,
        };
        let former = self
            .unreadable_samples
            .filter(|former| former.writer == writer);
        self.unreadable_samples = Some(UnreadableSamples {
            total: former.map_or(0, |former| former.total) + 1,
            identifier,
            writer,
        });
    }

    /// Notes why the next in-order sample was refused; it is processed again when there is room.
    pub(crate) fn refuse(&mut self, why: Refused) {
        match why {
            Refused::PutOff => self.refused_for_share = true,
            Refused::Full | Refused::TooLarge => self.refused_for_room = true,
            Refused::Order | Refused::Sets => {}
        }
    }

    pub(crate) fn ledger(&self) -> ReaderLedger {
        let mut ledger = self.ledger;
        if let Some(cache) = &self.cache {
            ledger.available = cache.counted;
            ledger.waiting = cache.waiting() as u64;
            ledger.evicted = cache.evicted;
            ledger.expired += cache.expired;
            ledger.purged = cache.purged;
            ledger.unregistered = cache.unregistered;
            ledger.held = cache.held() as u64;
            ledger.in_sets = cache.in_sets() as u64;
        }
        ledger
    }
}

impl WriterProxy {
    /// Returns whether each sample up to lastSN of the writer's first HEARTBEAT has arrived or will never arrive.
    fn has_history(&self) -> bool {
        !self.reliable || (self.started && self.expected > self.history_end)
    }
}

impl LocalParticipant {
    /// Returns whether a reader has the history of all matched writers. True for VOLATILE and best-effort readers, to
    /// which no history is promised.
    #[must_use]
    pub fn has_history(&self, id: ReaderId) -> bool {
        let Some(reader) = self.readers.get(id) else {
            return true;
        };
        let mut proxies = reader.proxies.iter();
        reader.volatile
            || proxies.all(|&proxy| {
                let proxy = self.readers.proxies.get(proxy);
                proxy.is_none_or(WriterProxy::has_history)
            })
    }
}

#[derive(Debug, Clone, Copy)]
struct Parted {
    writer: Guid,
    reader: Guid,
    expected: SequenceNumber,
}

/// Most recent ended matches. The oldest is replaced first.
#[derive(Debug, Default)]
pub(crate) struct EndedMatches {
    matches: heapless::Vec<Parted, UNMATCHED_REMEMBERED>,
}

impl EndedMatches {
    /// Records a reader's position when its match with a writer ends.
    pub(crate) fn note(&mut self, proxy: &WriterProxy, reader: Guid) {
        if !proxy.begun {
            return;
        }
        if self.matches.is_full() {
            self.matches.remove(0);
        }
        let parted = Parted {
            writer: proxy.guid,
            reader,
            expected: proxy.settled_position(),
        };
        let _ = self.matches.push(parted);
    }

    /// Drops the records of a removed participant, since another start of it may reuse GUIDs and sequence numbers.
    pub(crate) fn forget(&mut self, prefix: GuidPrefix) {
        self.matches.retain(|it| it.writer.prefix != prefix);
    }

    /// Sets a new proxy to the recorded position, if there is one.
    pub(crate) fn resume(&self, proxy: &mut WriterProxy, reader: Guid) {
        let mut matches = self.matches.iter().rev();
        let is_it = |it: &&Parted| it.writer == proxy.guid && it.reader == reader;
        if let Some(parted) = matches.find(is_it) {
            proxy.restart_from(parted.expected);
            proxy.begun = true;
            proxy.skips_history = false;
        }
    }
}

/// Local readers, their groups, and their proxies of matched writers.
#[derive(Debug)]
pub(crate) struct Readers {
    pub(crate) table: Slab<ReaderId, Reader>,
    pub(crate) proxies: Slab<WriterProxyId, WriterProxy>,
    pub(crate) by_writer: WriterProxyIndex,
    pub(crate) by_topic: TopicIndex<ReaderId>,
    pub(crate) subscribers: Slab<SubscriberId, Subscriber>,
    pub(crate) parted: EndedMatches,
    /// Counter that orders samples made available in group order.
    pub(crate) shown: u64,
    /// Number of the present pass over the rings of proxies (`coherent_access::coherent_group`). A pass visits each
    /// ring once.
    pub(crate) looks: u64,
    /// Reader of the last sample that was too large.
    pub(crate) last_too_large: Option<ReaderId>,
}

impl Readers {
    #[inline]
    pub(crate) fn get(&self, id: ReaderId) -> Option<&Reader> {
        self.table.get(id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: ReaderId) -> Option<&mut Reader> {
        self.table.get_mut(id)
    }

    pub(crate) fn new(config: &ParticipantConfig) -> Self {
        let limits = &config.limits;
        let is_fixed = limits.fixed_memory;
        let local = usize::from(limits.local_endpoints + BUILTIN_ENDPOINTS);
        let proxies = Slab::with_kept(limits.matches.into(), is_fixed);
        // Includes the entries reserved for the highest level.
        let matches = proxies.room();
        Self {
            table: Slab::new(local, is_fixed),
            proxies,
            by_writer: WriterProxyIndex::new(matches, is_fixed, config.salted_seed(1)),
            by_topic: TopicIndex::new(local, config.salted_seed(7)),
            subscribers: Slab::new(MAX_GROUPS.into(), is_fixed),
            parted: EndedMatches::default(),
            shown: 0,
            looks: 0,
            last_too_large: None,
        }
    }

    /// Creates a reader that has received nothing.
    pub(crate) fn reader(
        &self,
        shared: &Shared,
        guid: Guid,
        data: EndpointData,
        level: Option<Level>,
        cache: Option<Cache>,
        max_payload_bytes: usize,
    ) -> Reader {
        Reader {
            guid,
            keyed: true,
            key_of: None,
            level,
            reliable: data.qos.reliability.kind == ReliabilityKind::Reliable,
            volatile: data.qos.durability == DurabilityKind::Volatile,
            data,
            is_enabled: true,
            max_payload_bytes,
            cache,
            assemblies: None,
            sample_bytes: 0,
            nack_count: 0,
            proxies: Vec::with_capacity(shared.matches_at_start(self.proxies.room())),
            status: ReaderStatus::empty(),
            noted: false,
            incompatible: None,
            clock: None,
            content_filter: None,
            clock_filed: false,
            subscriber: None,
            ask_at: None,
            liveliness: LivelinessTally::default(),
            matched: MatchTally::default(),
            reported_lost: 0,
            reported_rejected: 0,
            reported_too_large: 0,
            too_large_bytes: 0,
            reject_reason: RejectReason::default(),
            unreadable_samples: None,
            ledger: ReaderLedger::default(),
            refused_for_room: false,
            refused_for_share: false,
            requested_partially: false,
            acknack_count: 0,
        }
    }
}

impl Readers {
    /// Counts a sample that can never be stored; it is not requested again.
    #[cold]
    pub(crate) fn refuse_for_good(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        proxy_index: WriterProxyId,
        sequence: SequenceNumber,
        unfit: Unfit,
    ) {
        let proxy = &mut self.proxies[proxy_index];
        let reader_index = proxy.reader;
        let reader = &mut self.table[reader_index];
        // An out-of-order sample is requested again, and counted when it is next in order.
        if sequence == proxy.expected {
            proxy.begun = true;
            proxy.advance();
            reader.ledger.account();
            match unfit {
                Unfit::Rejected(reason) => {
                    reader.count_rejected(proxy.guid, reason);
                    shared.counters.count_rejected(reason);
                    reader.status |= ReaderStatus::SAMPLE_REJECTED;
                }
                Unfit::TooLarge(bytes) => {
                    reader.ledger.too_large += 1;
                    reader.too_large_bytes = bytes;
                    reader.status |= ReaderStatus::SAMPLE_LOST;
                    shared.counters.samples_too_large += 1;
                    self.last_too_large = Some(reader_index);
                }
            }
            if let Some(cache) = reader.cache.as_mut().filter(|cache| cache.groups()) {
                // The set is incomplete without the sample.
                proxy.progress.lose();
                reader.ledger.incomplete += cache.drop_open_set(proxy_index, &proxy.progress);
            }
            self.advance_proxy(shared, facts, proxy_index);
            self.go_on_with_sets(shared, reader_index);
        }
        self.note_reader(shared, reader_index);
    }
}
