//! Creation and deletion of the user's writers and readers.

use alloc::boxed::Box;

use heapless::String as BoundedString;
use isolane_wire::{
    builtin_data::{EndpointData, LocatorList},
    guid::{EntityId, EntityKind, Guid},
    level::Level,
    qos::{DestinationOrderKind, HistoryKind, PolicyId, QosPolicies, ReliabilityKind},
    time::{Instant, Timestamp},
};
use thiserror::Error;

use crate::{
    coherent_access::{Access, WriterPresents},
    content_filter::ContentFilter,
    counters::{ReaderLedger, WriterLedger},
    discovery::{EndpointKind as RemoteKind, PUBLICATIONS, SUBSCRIPTIONS},
    limits::{
        BATCH_BYTES, BATCHED_DATAGRAMS, BATCHED_SAMPLES, DEFAULT_HISTORY_BYTES, DEFAULT_INSTANCES,
        DEFAULT_SAMPLES, ENDS_BYTES, LONG_BYTES, MAX_BATCHED_SAMPLES, MAX_DEFAULT_SAMPLES,
        MAX_LONG_BYTES, MAX_NAME_BYTES, MAX_WAITING, MIN_LARGE_WAITING, MIN_WAITING,
        STAGED_SAMPLES, WAITING_BYTES,
    },
    matching::inconsistent_policy,
    participant::{Facts, LocalParticipant, Shared},
    reader::{
        DeliveryMode, KeyOf, Reader,
        cache::{Cache, Room},
        reassembly::Reassembly,
    },
    sample_memory::Sizes,
    slab::{PublisherId, ReaderId, SubscriberId, WriterId},
    timed_qos::kept_back,
    work::{Filed, Priority},
    work_queue::Timer,
    writer::{
        Writer,
        batching::Batch,
        fragments::Fragmenter,
        history::{ChangeKind, History, HistoryPlan, Keep, with_service},
    },
};

/// Configuration of a writer or a reader.
#[derive(Debug, Clone)]
pub struct EndpointConfig<'a> {
    /// Topic name.
    pub topic_name: &'a str,
    /// Type name, as peers know it.
    pub type_name: &'a str,
    /// True if the type has key members.
    pub keyed: bool,
    /// Key function of the type, required by readers of keyed topics.
    pub key_of: Option<KeyOf>,
    /// QoS policies; `transport_priority` is the level.
    pub qos: QosPolicies,
    /// Maximum payload size in bytes, with the encapsulation header.
    pub max_payload_bytes: usize,
    /// True if payloads longer than an Ethernet frame share memory: [`LONG_BYTES`](crate::limits::LONG_BYTES), or room
    /// for four of the largest. Otherwise every slot has room for the largest payload.
    pub shares_long: bool,
    /// Largest payload in bytes that a writer sends as one DATA; longer ones are sent in fragments. Up to
    /// [`MAX_DATA_PAYLOAD_BYTES`](crate::limits::MAX_DATA_PAYLOAD_BYTES), a DATA fits an Ethernet frame. Readers accept
    /// both.
    pub max_datagram_bytes: usize,
    /// Unicast locators of this endpoint, announced to peers.
    pub unicast: LocatorList,
    /// Multicast locators on which a reader listens; empty for a writer.
    pub multicast: LocatorList,
}

/// Reason why an endpoint was not created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CreateError {
    /// The system has no memory left.
    #[error(
        "no {bytes} bytes of memory are left for samples: raise the limit of the process (ulimit -v, or LimitAS= of a systemd unit), or lower max_bytes, max_samples or the history's depth"
    )]
    NoMemory {
        /// Bytes requested.
        bytes: usize,
    },
    /// The participant's sample memory is used up.
    #[error(
        "the endpoint's samples take {asked} bytes of memory, and {left} of the participant's {limit} are left: raise sample_memory (Builder::sample_memory, or sample_memory of the host in isolane.toml), or lower max_bytes, max_samples or the history's depth"
    )]
    SampleMemory {
        /// Bytes of the endpoint's samples.
        asked: usize,
        /// Bytes left.
        left: usize,
        /// Bytes for all endpoints.
        limit: usize,
    },
    /// The table of local endpoints is full.
    #[error("this participant already has its {0} endpoints; raise limits.local_endpoints")]
    TableFull(u16),
    /// Topic or type name is longer than RTPS allows.
    #[error("a topic or type name is longer than 255 bytes")]
    NameTooLong,
    /// A view reader stores nothing, so it cannot request a sample again.
    #[error("a reader that takes samples as views must be best effort")]
    ViewNeedsBestEffort,
    /// HISTORY and RESOURCE_LIMITS contradict each other (DDS 1.4 §2.2.3.19).
    #[error("HISTORY depth or max_samples_per_instance exceeds max_samples, or is zero")]
    InconsistentLimits,
    /// Two policies contradict each other (DDS 1.4 §2.2.3). A DEADLINE shorter than the separation of TIME_BASED_FILTER
    /// is always missed, and samples that the filter defers are in no set and no order. Change one of them.
    #[error(
        "{0} and {1} contradict each other: a deadline shorter than the minimum separation is always missed, and samples that are kept back are neither coherent nor in the order of a group"
    )]
    InconsistentPolicy(PolicyId, PolicyId),
    /// A lost sample would leave sets incomplete and the order of a group unknown.
    #[error(
        "PRESENTATION with coherent access, or with the order of a group, needs RELIABILITY RELIABLE: make the endpoint reliable, or ask for less"
    )]
    PresentationNeedsReliable,
    /// The table of publishers or subscribers is full.
    #[error("this participant already has its {0} publishers or subscribers: use one for several")]
    TooManyGroups(u16),
    /// The publisher or subscriber was deleted.
    #[error("the publisher or subscriber no longer exists")]
    NoSuchGroup,
    /// The history of discovery has no room for the announcement.
    #[error("the endpoint cannot be announced: discovery's history is full")]
    AnnouncementFull,
    /// The configuration differs from the endpoint's static description.
    #[error(
        "the endpoint is described to its peers, and {0} is not what is described: create it as the description says, or change that on all sides"
    )]
    NotAsDescribed(&'static str),
    /// The statically described endpoint exists already.
    #[error(
        "the description has one such endpoint, and this participant has created it already: use that one"
    )]
    DescribedOnce,
    /// The participant announces no endpoints, and this one is not statically described: no peer would learn of it.
    #[error(
        "this participant announces no endpoints, and the description does not have this one: describe it, or have the participant announce all"
    )]
    NotDescribed,
}

/// Derives the history kind and the number of samples from HISTORY and RESOURCE_LIMITS.
fn keep(config: &EndpointConfig<'_>) -> Result<(Keep, u16), CreateError> {
    let (qos, keyed) = (&config.qos, config.keyed);
    // Defaults are lower where samples are large.
    let affordable = affordable_slots(config.slot_bytes());
    let bound = |value: i32| u16::try_from(value).ok().filter(|&value| value > 0);
    let max_samples = bound(qos.resource_limits.max_samples);
    match qos.history.kind {
        HistoryKind::KeepAll => Ok((
            Keep::All,
            match max_samples {
                Some(samples) => samples,
                None => default_samples(config)?.min(affordable),
            },
        )),
        HistoryKind::KeepLast => {
            let depth = bound(qos.history.depth).ok_or(CreateError::InconsistentLimits)?;
            let instances = if keyed {
                bound(qos.resource_limits.max_instances)
                    .unwrap_or(DEFAULT_INSTANCES.min(affordable))
            } else {
                1
            };
            let samples = max_samples.unwrap_or(depth.saturating_mul(instances));
            if samples < depth {
                return Err(CreateError::InconsistentLimits);
            }
            Ok((Keep::Last { depth }, samples))
        }
    }
}

/// Returns the number of samples of a KEEP_ALL history or cache without RESOURCE_LIMITS. A reader has as many as its
/// writers, because it refuses what a larger history sends ahead of the user.
fn default_samples(config: &EndpointConfig<'_>) -> Result<u16, CreateError> {
    // Readers with coherent or ordered access have slots for the longest sample.
    let slot_bytes = match Access::of_new(&config.qos)? {
        None => config.slot_bytes(),
        Some(_) => config.max_payload_bytes,
    };
    let samples = DEFAULT_HISTORY_BYTES / slot_bytes.max(1);
    let samples = u16::try_from(samples).unwrap_or(u16::MAX);
    Ok(samples.clamp(DEFAULT_SAMPLES, MAX_DEFAULT_SAMPLES))
}

/// Returns the number of samples that a batching best-effort writer keeps. Half of them, of maximum size, fill
/// [`BATCHED_DATAGRAMS`].
fn batched_samples(slot_bytes: usize) -> u16 {
    let samples = 2 * BATCHED_DATAGRAMS * BATCH_BYTES / slot_bytes.max(1);
    let samples = u16::try_from(samples).unwrap_or(u16::MAX);
    samples.clamp(BATCHED_SAMPLES, MAX_BATCHED_SAMPLES)
}

/// Returns the number of slots affordable for samples that the user cannot see yet.
fn affordable_slots(slot_bytes: usize) -> u16 {
    let affordable = WAITING_BYTES / slot_bytes.max(1);
    let affordable = u16::try_from(affordable).unwrap_or(u16::MAX);
    affordable.max(MIN_LARGE_WAITING)
}

impl EndpointConfig<'_> {
    fn sizes(&self, samples: u16) -> Sizes {
        match self.shares_long {
            true => Sizes::shared(self.max_payload_bytes, samples.into(), self.long_bytes()),
            false => Sizes::fixed(self.max_payload_bytes),
        }
    }

    /// Returns the bytes that long samples of up to [`USUAL_LONG_BYTES`](crate::limits::USUAL_LONG_BYTES) share. KEEP_ALL
    /// with RESOURCE_LIMITS gets [`MAX_LONG_BYTES`].
    fn long_bytes(&self) -> usize {
        let keeps_all = self.qos.history.kind == HistoryKind::KeepAll;
        match keeps_all && self.qos.resource_limits.max_samples > 0 {
            true => MAX_LONG_BYTES,
            false => LONG_BYTES,
        }
    }

    fn slot_bytes(&self) -> usize {
        self.sizes(1).slot_bytes()
    }
}

fn no_memory(bytes: usize) -> CreateError {
    CreateError::NoMemory { bytes }
}

impl LocalParticipant {
    /// Returns the bytes of sample memory of all local endpoints.
    #[must_use]
    pub fn sample_bytes(&self) -> usize {
        self.shared.sample_bytes
    }

    /// Creates a writer, allocates its history, and announces it.
    ///
    /// A best-effort writer keeps no history, even if it is TRANSIENT_LOCAL: only reliable readers can be given
    /// history. If its samples can be longer than a datagram, or it has a LATENCY_BUDGET, it keeps them until they are
    /// sent.
    ///
    /// # Errors
    /// [`CreateError`]; nothing was created then.
    pub fn create_writer(
        &mut self,
        now: Instant,
        config: &EndpointConfig<'_>,
    ) -> Result<WriterId, CreateError> {
        self.create_writer_with(now, config, None)
    }

    pub(crate) fn create_writer_with(
        &mut self,
        now: Instant,
        config: &EndpointConfig<'_>,
        group: Option<(PublisherId, EntityId)>,
    ) -> Result<WriterId, CreateError> {
        let access = Access::of_new(&config.qos)?;
        let reliable = config.qos.reliability.kind == ReliabilityKind::Reliable;
        let (keeps, samples) = with_service(&config.qos, keep(config)?);
        let is_full = self.writers.table.is_full();
        let guid = self.new_guid(RemoteKind::Writer, config, group.is_some(), is_full)?;
        let level = Level::clamp(config.qos.transport_priority);
        let bytes = config.max_payload_bytes;
        let mut fragmenter = Fragmenter::new(config.max_datagram_bytes, bytes);
        fragmenter.replaces_unsent = !reliable && matches!(keeps, Keep::Last { .. });
        // The end of a set must not wait for a batch.
        let batch = match access {
            None => Batch::of(&config.qos, config.max_datagram_bytes),
            Some(_) => None,
        };
        let seed = self.shared.config.seed;
        let ends = match config.keyed {
            true => extra_ends(keeps, samples, config.slot_bytes()),
            false => 0,
        };
        let zeroed = self.shared.config.zeroed;
        let plan = |keep, samples: u16| {
            // Two more: the pinned change, and the one being filled.
            let sizes = config.sizes(samples.saturating_add(2));
            HistoryPlan::new(keep, samples, sizes.taken_from(zeroed))
        };
        let batched = batched_samples(config.slot_bytes());
        let staged = STAGED_SAMPLES.min(affordable_slots(config.slot_bytes()));
        let plan = match (reliable, fragmenter.cuts(), &batch) {
            (true, false, _) => Some(plan(keeps, samples).with_ends(ends)),
            (true, true, _) => Some(plan(keeps, samples).with_pin().with_ends(ends)),
            (false, true, Some(_)) => Some(plan(Keep::All, batched).with_pin()),
            (false, true, None) => Some(plan(Keep::All, staged).with_pin()),
            (false, false, Some(_)) => Some(plan(Keep::All, batched)),
            (false, false, None) => None,
        };
        let sample_bytes = plan.as_ref().map_or(0, HistoryPlan::bytes);
        self.shared.has_sample_bytes(sample_bytes)?;
        let history = plan.map(|plan| History::try_new(plan, seed)).transpose();
        let mut history = history.map_err(no_memory)?;
        if let (Some(access), Some(history)) = (access, &mut history) {
            history.keep_marks(access.is_coherent);
        }
        let data = endpoint_data(guid, config, group.map(|(_, entity)| entity))?;
        let mut writer = self
            .writers
            .writer(&self.shared, guid, data, Some(level), history, bytes);
        writer.fragmenter = fragmenter;
        writer.sample_bytes = sample_bytes;
        writer.batch = batch;
        writer.publisher = group.map(|(index, _)| index);
        writer.presents = access.map(|access| Box::new(WriterPresents::new(access)));
        let is_by_source = config.qos.destination_order == DestinationOrderKind::BySourceTimestamp;
        writer.last_stamp = is_by_source.then_some(Timestamp::ZERO);
        if !self.shared.enables_created() {
            writer.disable();
            let index = self.insert_writer(writer)?;
            self.shared.sample_bytes += sample_bytes;
            return Ok(index);
        }
        let data = writer.data.clone();
        let index = self.insert_writer(writer)?;
        self.publish(now, WriterId(PUBLICATIONS), &data)
            .inspect_err(|_| {
                self.writers.by_entity.remove(&data.guid.entity);
                self.writers.table.remove(index);
                self.update_highest_level();
            })?;
        self.shared.sample_bytes += sample_bytes;
        self.begin_writer(now, index);
        Ok(index)
    }

    /// Creates a reader, allocates its cache, and announces it.
    ///
    /// # Errors
    /// [`CreateError`]; nothing was created then.
    pub fn create_reader(
        &mut self,
        now: Instant,
        config: &EndpointConfig<'_>,
        delivery: DeliveryMode,
    ) -> Result<ReaderId, CreateError> {
        self.create_reader_with(now, config, delivery, None, None)
    }

    /// Creates a reader with a content filter: see [`ContentFilter`]. Writers learn of it if it is
    /// [announced](ContentFilter::announced).
    ///
    /// # Errors
    /// [`CreateError`]; nothing was created then.
    pub fn create_filtered_reader(
        &mut self,
        now: Instant,
        config: &EndpointConfig<'_>,
        delivery: DeliveryMode,
        filter: ContentFilter,
    ) -> Result<ReaderId, CreateError> {
        self.create_reader_with(now, config, delivery, Some(filter), None)
    }

    pub(crate) fn create_reader_with(
        &mut self,
        now: Instant,
        config: &EndpointConfig<'_>,
        delivery: DeliveryMode,
        content_filter: Option<ContentFilter>,
        group: Option<(SubscriberId, EntityId)>,
    ) -> Result<ReaderId, CreateError> {
        let access = Access::of_new(&config.qos)?;
        let reliable = config.qos.reliability.kind == ReliabilityKind::Reliable;
        let (keeps, samples) = keep(config)?;
        if let Some(policy) = inconsistent_policy(&config.qos) {
            return Err(CreateError::InconsistentPolicy(
                policy,
                PolicyId::TIME_BASED_FILTER,
            ));
        }
        if delivery == DeliveryMode::View && reliable {
            return Err(CreateError::ViewNeedsBestEffort);
        }
        let is_full = self.readers.table.is_full();
        let guid = self.new_guid(RemoteKind::Reader, config, group.is_some(), is_full)?;
        let level = Level::clamp(config.qos.transport_priority);
        // Best effort needs one slot for the sample that reports an instance without writers.
        let waiting = if reliable {
            samples
                .clamp(MIN_WAITING, MAX_WAITING)
                .min(affordable_slots(config.slot_bytes()))
        } else {
            1
        };
        let held = kept_back(&config.qos, config.keyed);
        let held = held.min(affordable_slots(config.slot_bytes()));
        // A set may be as large as the number of available samples.
        let in_sets = match access.filter(|access| access.is_coherent) {
            Some(_) => samples,
            None => 0,
        };
        let room = Room {
            samples,
            waiting,
            held: held.saturating_add(in_sets),
            // The user cannot make room by taking samples that are held for their set.
            sizes: match (access, held) {
                (None, 0) => config.sizes(samples.saturating_add(waiting)),
                (None, _) => config
                    .sizes(samples.saturating_add(waiting))
                    .with_kept_back(),
                (Some(_), _) => Sizes::fixed(config.max_payload_bytes),
            }
            .taken_from(self.shared.config.zeroed),
        };
        let is_cached = delivery == DeliveryMode::Cache;
        let of_cache = if is_cached { room.bytes() } else { 0 };
        let of_places = Reassembly::bytes_for(config.max_payload_bytes);
        let sample_bytes = of_cache.saturating_add(of_places);
        self.shared.has_sample_bytes(sample_bytes)?;
        let cache =
            is_cached.then(|| Cache::try_new(keeps, config.keyed, room, self.shared.config.seed));
        let mut cache = cache.transpose().map_err(no_memory)?;
        let assemblies =
            Reassembly::for_payloads_of(config.max_payload_bytes, self.shared.config.zeroed)
                .map_err(no_memory)?;
        if let Some(cache) = &mut cache {
            cache.present(&config.qos.presentation);
        }
        if let (Some(access), Some(cache)) = (access, &mut cache) {
            cache.group(access, in_sets);
        }
        let data = endpoint_data(guid, config, group.map(|(_, entity)| entity))?;
        let mut reader = self.readers.reader(
            &self.shared,
            guid,
            data,
            Some(level),
            cache,
            config.max_payload_bytes,
        );
        (reader.keyed, reader.key_of) = (config.keyed, config.key_of);
        (reader.assemblies, reader.sample_bytes) = (assemblies, sample_bytes);
        reader.content_filter = content_filter;
        reader.subscriber = group.map(|(index, _)| index);
        reader.is_enabled = self.shared.enables_created();
        let (data, is_enabled) = (reader.data.clone(), reader.is_enabled);
        let index = self
            .readers
            .table
            .insert(reader)
            .map_err(|_| self.table_full())?;
        self.shared.highest_level = self.shared.highest_level.max(Some(level));
        self.shared.work_queue.open(Priority::of_protocol(level));
        self.make_room_to_file();
        if is_enabled {
            self.publish(now, WriterId(SUBSCRIPTIONS), &data)
                .inspect_err(|_| {
                    self.readers.table.remove(index);
                    self.update_highest_level();
                })?;
            self.begin_reader(now, index);
        }
        self.shared.sample_bytes += sample_bytes;
        Ok(index)
    }

    /// Deletes a writer and announces the deletion. At readers this unregisters the writer from its instances, but does
    /// not dispose them.
    pub fn delete_writer(&mut self, now: Instant, id: WriterId) {
        let Some(writer) = self.writers.get(id) else {
            return;
        };
        if writer.level.is_none() {
            return;
        }
        let (data, was_enabled) = (writer.data.clone(), writer.is_enabled());
        self.shared.sample_bytes -= writer.sample_bytes;
        self.writers.leave_publisher(id);
        self.remove_reader_proxies(id);
        self.readers.note_deleted(data.guid);
        self.unmatch(now, data.guid);
        for timer in [
            Timer::Heartbeat(id),
            Timer::WriterTimedQos(id),
            Timer::Batch(id),
        ] {
            self.shared.timers.disarm(timer);
        }
        self.shared.work_queue.withdraw(&[
            Filed::Data(id),
            Filed::Fragment(id),
            Filed::Heartbeat(id),
            Filed::WriterTimedQos(id),
        ]);
        self.shared.forget_writer_notes(id);
        self.writers.by_entity.remove(&data.guid.entity);
        self.writers.by_topic.remove(&data.topic_name, id);
        self.writers.table.remove(id);
        self.update_highest_level();
        if was_enabled {
            self.retract(now, WriterId(PUBLICATIONS), &data);
        }
    }

    /// Deletes a reader and announces the deletion.
    pub fn delete_reader(&mut self, now: Instant, id: ReaderId) {
        let Some(reader) = self.readers.get(id) else {
            return;
        };
        if reader.level.is_none() {
            return;
        }
        let (data, was_enabled) = (reader.data.clone(), reader.is_enabled);
        self.shared.sample_bytes -= reader.sample_bytes;
        self.readers.leave_circles(
            &mut self.shared,
            Facts::of(&self.writers, &self.discovery),
            id,
        );
        for index in self.readers.proxies.ids() {
            if self
                .readers
                .proxies
                .get(index)
                .is_some_and(|proxy| proxy.reader == id)
            {
                self.remove_writer_proxy(now, index);
            }
        }
        self.unmatch(now, data.guid);
        self.shared.timers.disarm(Timer::ReaderTimedQos(id));
        self.shared
            .work_queue
            .withdraw(&[Filed::ReaderTimedQos(id)]);
        self.shared.forget_reader_notes(id);
        self.readers.leave_subscriber(id);
        self.readers.by_topic.remove(&data.topic_name, id);
        self.readers.table.remove(id);
        self.update_highest_level();
        if was_enabled {
            self.retract(now, WriterId(SUBSCRIPTIONS), &data);
        }
    }

    /// Returns the sample counts of a writer.
    #[must_use]
    pub fn writer_ledger(&self, id: WriterId) -> Option<WriterLedger> {
        self.writers.get(id).map(Writer::ledger)
    }

    /// Returns the sample counts of a reader.
    #[must_use]
    pub fn reader_ledger(&self, id: ReaderId) -> Option<ReaderLedger> {
        self.readers.get(id).map(Reader::ledger)
    }

    /// Returns the GUID of a new endpoint: the described one, or one with the next entity id. Endpoints of a group are
    /// not described.
    fn new_guid(
        &mut self,
        kind: RemoteKind,
        config: &EndpointConfig<'_>,
        is_in_group: bool,
        is_table_full: bool,
    ) -> Result<Guid, CreateError> {
        if is_table_full {
            return Err(self.table_full());
        }
        if !is_in_group && let Some(entity) = self.described_entity(kind, config)? {
            return Ok(self.shared.guid(entity));
        }
        let entity_kind = match (kind, config.keyed) {
            (RemoteKind::Writer, true) => EntityKind::WRITER_WITH_KEY,
            (RemoteKind::Writer, false) => EntityKind::WRITER_NO_KEY,
            (RemoteKind::Reader, true) => EntityKind::READER_WITH_KEY,
            (RemoteKind::Reader, false) => EntityKind::READER_NO_KEY,
        };
        let entity = self.shared.next_entity(entity_kind);
        Ok(self.shared.guid(entity))
    }

    fn table_full(&self) -> CreateError {
        CreateError::TableFull(self.shared.config.limits.local_endpoints)
    }

    /// Announces an endpoint for the first time.
    pub(crate) fn publish(
        &mut self,
        now: Instant,
        builtin: WriterId,
        data: &EndpointData,
    ) -> Result<(), CreateError> {
        let announced = self.announce_endpoint(now, builtin, data, ChangeKind::Alive);
        announced.map_err(|_| CreateError::AnnouncementFull)
    }

    fn retract(&mut self, now: Instant, builtin: WriterId, data: &EndpointData) {
        // Under KEEP_LAST 1 the dispose replaces the announcement, so there is always room for it.
        let retracted = self.announce_endpoint(now, builtin, data, ChangeKind::Dispose);
        debug_assert_eq!(retracted, Ok(()));
    }

    pub(crate) fn insert_writer(&mut self, writer: Writer) -> Result<WriterId, CreateError> {
        let entity = writer.guid.entity;
        let index = self
            .writers
            .table
            .insert(writer)
            .map_err(|_| self.table_full())?;
        self.writers.by_entity.insert(entity, index);
        if let Some(writer) = self.writers.get(index) {
            self.shared.highest_level = self.shared.highest_level.max(writer.level);
            self.shared.work_queue.open(writer.data_priority());
            self.shared.work_queue.open(writer.protocol_priority());
        }
        self.make_room_to_file();
        Ok(index)
    }
}

impl Shared {
    /// Checks that the participant has this many bytes of sample memory left.
    fn has_sample_bytes(&self, asked: usize) -> Result<(), CreateError> {
        let limit = self.config.limits.sample_bytes;
        let left = limit.saturating_sub(self.sample_bytes);
        match asked <= left {
            true => Ok(()),
            false => Err(CreateError::SampleMemory { asked, left, limit }),
        }
    }
}

/// Returns the number of instance ends kept in addition to the values.
fn extra_ends(keeps: Keep, samples: u16, slot_bytes: usize) -> u16 {
    let Keep::Last { depth } = keeps else {
        return 0;
    };
    let affordable = (ENDS_BYTES / slot_bytes.max(1)).max(1);
    let instances = samples / depth;
    u16::try_from(affordable).map_or(instances, |affordable| instances.min(affordable))
}

pub(crate) fn endpoint_data(
    guid: Guid,
    config: &EndpointConfig<'_>,
    group: Option<EntityId>,
) -> Result<EndpointData, CreateError> {
    let name = |name: &str| {
        if name.len() > MAX_NAME_BYTES {
            return Err(CreateError::NameTooLong);
        }
        BoundedString::try_from(name).map_err(|_| CreateError::NameTooLong)
    };
    Ok(EndpointData {
        topic_name: name(config.topic_name)?,
        type_name: name(config.type_name)?,
        qos: config.qos.clone(),
        unicast: config.unicast.clone(),
        multicast: config.multicast.clone(),
        group,
        ..EndpointData::new(guid)
    })
}
