//! Quality of service: the policies of DDS 1.4 §2.2.3 with which a writer or reader is created.
//!
//! One builder serves writers and readers. TRANSPORT_PRIORITY is the level, which determines the lane, the UDP port,
//! SO_PRIORITY, DSCP and the priority of every job of the topic. RESOURCE_LIMITS determines the memory allocated at
//! creation.

pub(crate) mod mismatch;
pub(crate) mod mutable_qos;

use std::time::Duration;

use isolane_datapath::{Budget, OverBudget, RateLimit};
use isolane_rtps::CreateError;
use isolane_wire::{
    cdr::{Extensibility, Representation, TopicType, max_payload_bytes},
    level::Level,
    qos::{
        DataRepresentationId, DestinationOrderKind, DurabilityKind, History, HistoryKind,
        LENGTH_UNLIMITED, Liveliness, LivelinessKind, OwnershipKind, PolicyId, Presentation,
        PresentationAccessScope, QosPolicies, ReliabilityKind,
    },
};

use crate::{error::BuildError, limits, rate_limit};

/// Policies of a writer or a reader, built from a preset.
///
/// ```
/// use std::time::Duration;
/// use isolane::{Level, Qos};
///
/// let brake = Qos::best_effort().level(Level::new(7).unwrap()).deadline(Duration::from_micros(500));
/// let report = Qos::reliable().keep_all().max_samples(64).transient_local();
/// assert!(report.is_reliable() && !brake.is_reliable());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Qos {
    pub(crate) policies: QosPolicies,
    /// Representation chosen by the user; `None` selects the representation of the type ([`sent`](Self::sent)).
    pub(crate) representation: Option<Representation>,
    /// True if a reader accepts this representation only.
    pub(crate) takes_only: bool,
    /// Maximum sample size chosen by the user; `None` selects the maximum size of the type ([`sized`](Self::sized)).
    pub(crate) max_bytes: Option<usize>,
    pub(crate) max_datagram_bytes: usize,
    pub(crate) max_blocking: Duration,
    pub(crate) response_deadline: Option<Duration>,
    pub(crate) autodispose: bool,
    pub(crate) rate_limit: Option<RateLimit>,
    pub(crate) burst_bound: Option<Duration>,
    /// Partition that exceeds a bound; creation fails with its name.
    pub(crate) excess_partition: Option<String>,
    /// Policy whose octets exceed the bound; creation fails with its name.
    pub(crate) excess_octets: Option<PolicyId>,
}

setters! {
    Qos:

    /// TRANSPORT_PRIORITY: the level, 0 to 7, where 7 is most critical. Default: 0.
    level(level: Level) => policies.transport_priority = i32::from(level.get());

    /// HISTORY KEEP_LAST: keeps the last `depth` samples of each instance.
    keep_last(depth: u16) =>
        policies.history.kind = HistoryKind::KeepLast,
        policies.history.depth = i32::from(depth);

    /// HISTORY KEEP_ALL: keeps every sample, up to [`max_samples`](Self::max_samples). Without that limit, there are
    /// slots for 256 KiB of samples ([`DEFAULT_HISTORY_BYTES`](isolane_rtps::limits::DEFAULT_HISTORY_BYTES)), but at
    /// least for 64 samples and at most for 256. If the slots then exceed 4 MiB, there are fewer, but at least four.
    keep_all() => policies.history.kind = HistoryKind::KeepAll;

    /// RESOURCE_LIMITS `max_samples`: number of slots allocated at creation.
    ///
    /// Under KEEP_ALL, give a reader as many as its writers, and a writer at most 256: a reader drops samples for which
    /// it has no room, and samples more than 256 beyond a lost one. The writer sends them again.
    max_samples(samples: u16) => policies.resource_limits.max_samples = i32::from(samples);

    /// RESOURCE_LIMITS `max_samples_per_instance`. Creation fails if the KEEP_LAST depth exceeds it.
    ///
    /// The limit has no further effect yet: KEEP_LAST keeps `depth` samples of an instance, and under KEEP_ALL all
    /// instances share [`max_samples`](Self::max_samples).
    max_samples_per_instance(samples: u16) =>
        policies.resource_limits.max_samples_per_instance = i32::from(samples);

    /// RESOURCE_LIMITS `max_instances`.
    max_instances(instances: u16) => policies.resource_limits.max_instances = i32::from(instances);

    /// Maximum serialised sample size in bytes, including the encapsulation header; at most
    /// [`MAX_SAMPLE_BYTES`](crate::limits::MAX_SAMPLE_BYTES).
    ///
    /// Default: the maximum size of the type if all its strings and sequences are bounded, and at least
    /// [`APPENDABLE_BYTES`](crate::limits::APPENDABLE_BYTES) for an appendable type; otherwise
    /// [`UNBOUNDED_BYTES`](crate::limits::UNBOUNDED_BYTES).
    ///
    /// A writer refuses a larger sample. A reader acknowledges it, counts it
    /// ([`too_large`](isolane_rtps::ReaderLedger::too_large)) and reports SAMPLE_LOST. Matching does not compare
    /// sizes.
    ///
    /// Samples longer than [`max_datagram_bytes`](Self::max_datagram_bytes) are sent in fragments that fit an Ethernet
    /// frame, at a priority below the topic's samples. A sample of a topic of the same level therefore waits for at most
    /// one burst of fragments ([`burst_bound`](Self::burst_bound)).
    max_bytes(bytes: usize) => max_bytes = Some(bytes);

    /// Maximum serialised sample size in bytes that a writer sends as a single datagram.
    ///
    /// Default: [`MAX_DATA_PAYLOAD_BYTES`](isolane_rtps::limits::MAX_DATA_PAYLOAD_BYTES), the capacity of an Ethernet
    /// frame. A smaller value also shortens fragments, to [`MIN_FRAGMENT_BYTES`](crate::limits::MIN_FRAGMENT_BYTES) at    /// least. Otherwise fragments have at most [`FRAGMENT_BYTES`](isolane_rtps::limits::FRAGMENT_BYTES). All fragments of
    /// a sample have about the same size.
    ///
    /// With a larger value, samples up to that size cost one system call. Fragments cost one for each burst over sockets with
    /// segmentation, otherwise up to one each. A best-effort
    /// writer then does not store them. The price is IP fragmentation: more critical datagrams wait until all parts are
    /// sent. AF_XDP lanes do not receive parts. The loss of one part loses the sample.
    max_datagram_bytes(bytes: usize) => max_datagram_bytes = bytes;

    /// DURABILITY TRANSIENT_LOCAL: a late joiner receives the writer's history.
    transient_local() => policies.durability = DurabilityKind::TransientLocal;

    /// DURABILITY VOLATILE, the default: a late joiner starts with the next sample.
    volatile() => policies.durability = DurabilityKind::Volatile;

    /// DEADLINE: maximum period between two samples of an instance. A writer offers a period, a reader requests one,
    /// and matching compares both.
    ///
    /// Each period without a sample is reported on both sides
    /// ([`on_offered_deadline_missed`](crate::DataWriter::on_offered_deadline_missed),
    /// [`on_requested_deadline_missed`](crate::DataReader::on_requested_deadline_missed)), at most once a millisecond.
    /// A keyed topic supervises [`max_instances`](Self::max_instances) instances, or 256 if that is unset. Default:
    /// infinite. Creation fails with a period of zero.
    deadline(period: Duration) => policies.deadline = period.into();

    /// Maximum time from a sample's arrival at this host to the end of its callback, or until it is taken.
    ///
    /// The arrival is the kernel's receive time stamp if there is one
    /// ([`Builder::receive_stamps`](crate::Builder::receive_stamps)). Late samples are delivered, and attributed to
    /// the job that ran when the deadline expired
    /// ([`DataReader::response_deadline`](crate::DataReader::response_deadline)). The deadline is not announced and
    /// has no effect on a writer. Default: none. Creation fails with zero.
    response_deadline(deadline: Duration) => response_deadline = Some(deadline);

    /// Maximum time that more urgent levels wait for one burst of this topic's level: the larger of the burst's time on
    /// the link and its CPU time. The smallest bound of the topics created at the
    /// level applies, also after their deletion.
    ///
    /// Several datagrams (samples, fragments, repairs) that are sent or received without a check for more urgent work
    /// are a burst. On sockets they pass the kernel as one packet (UDP_SEGMENT, UDP_GRO). A burst has at least one
    /// datagram for each destination of one sample, so a bound of zero sends each sample by itself. Received frames are
    /// copied first, which takes about as long again.
    ///
    /// Default: where a level above is in use, one datagram on links up to 100 Mbit/s, and
    /// [`BURST_TIME`](crate::limits::BURST_TIME) on faster ones. The highest level in use has bursts of up to 64 KiB.
    /// Samples of the same level wait for such a burst too.
    burst_bound(bound: Duration) => burst_bound = Some(bound);

    /// LATENCY_BUDGET: acceptable delay from write to delivery. A writer offers a delay, a reader requests one. A match
    /// requires that the offer does not exceed the request.
    ///
    /// A writer with a budget batches small samples. A reliable writer sends them when a datagram is full
    /// ([`BATCH_BYTES`](isolane_rtps::limits::BATCH_BYTES), or [`max_datagram_bytes`](Self::max_datagram_bytes) if
    /// that is larger). A best-effort writer sends them when
    /// [`BATCHED_DATAGRAMS`](isolane_rtps::limits::BATCHED_DATAGRAMS) are full. Both send them after half of the budget,
    /// at most a second. This saves datagrams and system calls.
    /// [`DataWriter::flush`](crate::DataWriter::flush) sends the batch at once. A best-effort writer created with a
    /// budget has room for [`BATCHED_SAMPLES`](isolane_rtps::limits::BATCHED_SAMPLES) unsent samples, or more short ones.
    ///
    /// Default: 0, which sends each sample at once, as critical topics need. A budget below 0.1 ms counts as 0.
    latency_budget(budget: Duration) => policies.latency_budget = budget.into();

    /// LIFESPAN: validity of a sample after it was written. An expired sample is not sent, repaired or delivered, and
    /// its slot becomes free.
    ///
    /// A reader applies the writer's LIFESPAN by its own wall clock, from the source time stamp on. If that time stamp
    /// lies in the future, the clocks differ, and the reader counts from the reception. The policy has no effect on a
    /// reader. Default: infinite.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Obstacle { metres: f32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let fresh = Qos::reliable().keep_all().lifespan(Duration::from_millis(20));
    /// let writer = participant.create_writer::<Obstacle>("Obstacles", &fresh)?;
    /// let reader = participant.create_reader::<Obstacle>("Obstacles", &Qos::reliable().keep_all())?;
    /// writer.write(&Obstacle { metres: 3.5 })?;
    /// std::thread::sleep(Duration::from_millis(30));
    /// participant.run_for(Duration::from_millis(10));
    /// assert!(reader.take()?.is_none(), "it would be stale");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    lifespan(lifespan: Duration) => policies.lifespan = lifespan.into();

    /// TIME_BASED_FILTER: minimum time between two samples of an instance that a reader receives, by its own clock.
    ///
    /// Samples that come sooner are counted (`time_filtered`) and, if reliable, acknowledged. A reliable reader stores
    /// the last such sample and delivers it when the separation has passed, so that the reader has the latest value.
    /// Disposals and unregistrations are delivered at once. Creation fails if the [`deadline`](Self::deadline) is
    /// shorter. The policy has no effect on a writer. Default: zero.
    time_based_filter(minimum_separation: Duration) =>
        policies.time_based_filter = minimum_separation.into();

    /// OWNERSHIP: whether all writers may update an instance (SHARED), or only the strongest one (EXCLUSIVE). Matching
    /// compares the kinds.
    ///
    /// With EXCLUSIVE, a reader accepts samples of an instance from its owner only: the instance's writer with the
    /// highest [`ownership_strength`](Self::ownership_strength). Of equally strong writers, the one with the lower GUID
    /// is the owner. Ownership passes on when the owner unregisters the instance, disappears, loses its
    /// [liveliness](Self::liveliness), or misses the reader's [deadline](Self::deadline). Samples of other writers are
    /// counted (`not_owner`). A keyed topic stores the owners of [`max_instances`](Self::max_instances) instances, or
    /// 256 if that is unset.
    ownership(kind: OwnershipKind) => policies.ownership = kind;

    /// OWNERSHIP_STRENGTH: strength of a writer under EXCLUSIVE [OWNERSHIP](Self::ownership). No effect on a reader.
    /// Default: 0.
    ownership_strength(strength: i32) => policies.ownership_strength = strength;

    /// PRESENTATION: the scope of coherent and ordered access. Matching compares both sides. The members of a
    /// [`Publisher`](crate::Publisher) or [`Subscriber`](crate::Subscriber) share it.
    ///
    /// With INSTANCE, the default, coherence and order hold within an instance. Under every scope, the samples of one
    /// writer are delivered in the order of writing.
    ///
    /// *Coherent*: a coherent set ([`begin_coherent_changes`](crate::Publisher::begin_coherent_changes)) is delivered
    /// as a whole or not at all. The set spans one writer, or with GROUP all writers of the publisher. INSTANCE is
    /// treated as TOPIC, as in other implementations, although DDS 1.4 §2.2.3.6 gives sets no effect under INSTANCE. A
    /// reader stores incomplete sets in separate memory, with as many samples as [`max_samples`](Self::max_samples) or
    /// the history allow. HISTORY KEEP_LAST applies when a set is delivered.
    ///
    /// *Ordered* with GROUP: the samples of a publisher's writers are delivered in the order in which they were written
    /// ([`Subscriber::begin_access`](crate::Subscriber::begin_access)). A sample waits until it is known that no other
    /// writer has written an earlier one. The reader queries a silent writer, which costs a request and a response on
    /// the wire.
    ///
    /// *Ordered* with TOPIC or GROUP: the lists of [`take_samples`](crate::DataReader::take_samples) and its siblings
    /// keep the order across all instances. Otherwise they group samples by instance.
    ///
    /// Coherent and ordered access require RELIABILITY RELIABLE and exclude TIME_BASED_FILTER; creation fails
    /// otherwise.
    presentation(access_scope: PresentationAccessScope, coherent: bool, ordered: bool) =>
        policies.presentation = Presentation { access_scope, coherent, ordered };

    /// DESTINATION_ORDER: which of two samples of an instance counts as the later. Matching compares the kinds;
    /// BY_SOURCE_TIMESTAMP is stronger than BY_RECEPTION_TIMESTAMP, the default.
    ///
    /// With BY_SOURCE_TIMESTAMP a reader drops a sample whose source time stamp is older than that of an accepted
    /// sample of the instance, and counts the sample (`outdated`). With equal time stamps, the sample of the writer
    /// with the lower GUID counts as later, so that all readers end with the same value. A writer's time stamps never
    /// decrease, even if its clock does. The clocks of the writers' hosts should be synchronised. A keyed topic
    /// supervises [`max_instances`](Self::max_instances) instances, or 256 if that is unset.
    destination_order(kind: DestinationOrderKind) => policies.destination_order = kind;

    /// RELIABILITY `max_blocking_time`: how long [`write`](crate::DataWriter::write) may wait for room in a full
    /// history, running the loop meanwhile.
    ///
    /// Default: 0, which returns an error at once. Inside a callback, a full history is always an error at once. The
    /// setting has no effect on a [`WriterHandle`](crate::WriterHandle), which never waits.
    max_blocking_time(time: Duration) =>
        max_blocking = time,
        policies.reliability.max_blocking_time = time.into();

    /// Budget of a reader: maximum number of datagrams in each period, and the treatment of the excess.
    ///
    /// The budget is specific to isolane and not announced. The reader gets its own unicast port within its level, so
    /// writers send to it in addition to the level's multicast group.
    /// [`DataReader::set_budget`](crate::DataReader::set_budget) changes the budget at run time. Enforcement requires
    /// a datapath that counts datagrams before reception (xdp). On others the reader receives everything, and
    /// [`Participant::warnings`](crate::Participant::warnings) reports it. The setting has no effect on a writer.
    ///
    /// Heartbeats and repairs of a reliable topic arrive on the same port and count too: leave room for them. A
    /// reliable reader requests dropped samples again and receives them later.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use isolane::{Budget, Network, OverBudget, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Report { number: u32 }
    ///
    /// let budget = Budget {
    ///     capacity: NonZeroU32::new(20).unwrap(),
    ///     period: Duration::from_millis(10),
    /// };
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let reader = participant
    ///     .create_reader::<Report>("Reports", &Qos::reliable().budget(budget, OverBudget::Drop))?;
    /// // A network in memory has nothing that could count.
    /// assert!(participant.warnings().iter().any(|note| note.contains("is not enforced")));
    /// # Ok::<(), isolane::BuildError>(())
    /// ```
    budget(budget: Budget, over: OverBudget) => rate_limit = Some(RateLimit { budget, over });

    /// DATA_REPRESENTATION that a writer offers. Default: XCDR1 for a final type, XCDR2 for an `appendable` one, which
    /// Cyclone DDS accepts in XCDR2 only. A reader requests both.
    representation(representation: Representation) => representation = Some(representation);

    /// The only DATA_REPRESENTATION that a writer offers or a reader accepts. Readers match only writers that send it.
    only_representation(representation: Representation) =>
        representation = Some(representation),
        takes_only = true;
}

impl Qos {
    /// BEST_EFFORT, KEEP_LAST 1, VOLATILE: lost samples are not repaired, and only the newest is kept.
    #[must_use]
    pub fn best_effort() -> Self {
        let mut policies = QosPolicies::default();
        policies.reliability.kind = ReliabilityKind::BestEffort;
        Self {
            policies,
            representation: None,
            takes_only: false,
            max_bytes: None,
            max_datagram_bytes: isolane_rtps::limits::MAX_DATA_PAYLOAD_BYTES,
            max_blocking: Duration::ZERO,
            response_deadline: None,
            autodispose: true,
            rate_limit: None,
            burst_bound: None,
            excess_partition: None,
            excess_octets: None,
        }
    }

    /// RELIABLE, KEEP_LAST 1, VOLATILE.
    #[must_use]
    pub fn reliable() -> Self {
        let mut qos = Self::best_effort();
        qos.policies.reliability.kind = ReliabilityKind::Reliable;
        qos
    }

    /// Returns whether samples are batched (LATENCY_BUDGET above zero).
    pub(crate) fn is_batched(&self) -> bool {
        self.policies.latency_budget != isolane_wire::time::Duration::ZERO
    }

    /// Returns the policies of an endpoint of type `T`, with [`max_bytes`](Self::max_bytes) derived from the type if
    /// unset.
    pub(crate) fn sized<T: TopicType>(&self) -> Self {
        let of_type = || {
            let floor = match T::EXTENSIBILITY {
                Extensibility::Final => limits::LEAST_BYTES,
                Extensibility::Appendable => limits::APPENDABLE_BYTES,
            };
            match max_payload_bytes::<T>() {
                Some(bytes) => bytes.max(floor).min(limits::MAX_SAMPLE_BYTES),
                None => limits::UNBOUNDED_BYTES,
            }
        };
        let mut sized = self.clone();
        sized.max_bytes = Some(self.max_bytes.unwrap_or_else(of_type));
        sized
    }

    pub(crate) fn sample_bytes(&self) -> usize {
        self.max_bytes.unwrap_or(limits::UNBOUNDED_BYTES)
    }

    /// Returns whether the longest samples are sent in fragments.
    pub(crate) fn is_cut(&self) -> bool {
        self.sample_bytes() > self.whole_bytes()
    }

    /// Returns the maximum serialised sample size in bytes that is sent as a single datagram.
    pub(crate) fn whole_bytes(&self) -> usize {
        let whole_bytes = self
            .max_datagram_bytes
            .max(limits::MIN_FRAGMENT_BYTES.into());
        self.sample_bytes().min(whole_bytes)
    }

    /// PARTITION: adds a partition to which the endpoint belongs.
    ///
    /// A writer and a reader match if they share a partition. An endpoint without any is in the partition with the
    /// empty name. A name may have the wildcards of POSIX `fnmatch` (`*`, `?`, `[a-z]`, `[!a-z]`, and `\` as the escape
    /// character) and then matches every name that fits. Two names with wildcards never match. Creation fails with more
    /// than [`MAX_PARTITIONS`] names, or with a name longer than [`MAX_PARTITION_BYTES`]. The policy can be changed
    /// later: [`partitions`](Self::partitions), [`DataWriter::set_qos`](crate::DataWriter::set_qos).
    ///
    /// [`MAX_PARTITIONS`]: isolane_wire::limits::MAX_PARTITIONS
    /// [`MAX_PARTITION_BYTES`]: isolane_wire::limits::MAX_PARTITION_BYTES
    #[must_use]
    pub fn partition(mut self, name: &str) -> Self {
        let bounded = heapless::String::try_from(name).ok();
        let added = bounded.and_then(|name| self.policies.partition.push(name).ok());
        if added.is_none() {
            self.excess_partition = Some(name.into());
        }
        self
    }

    /// LIVELINESS: how a writer is asserted alive, and the lease after which it counts as not alive. Matching compares
    /// both.
    ///
    /// With AUTOMATIC, isolane asserts liveliness while the participant's loop runs. With the manual kinds the
    /// application does, by writing or by [`DataWriter::assert_liveliness`](crate::DataWriter::assert_liveliness).
    /// [`Participant::assert_liveliness`](crate::Participant::assert_liveliness) asserts all MANUAL_BY_PARTICIPANT
    /// writers at once.
    ///
    /// When the lease of a writer expires, it no longer counts as a writer of its instances, and both sides report the
    /// change ([`on_liveliness_lost`](crate::DataWriter::on_liveliness_lost),
    /// [`on_liveliness_changed`](crate::DataReader::on_liveliness_changed)). Default: AUTOMATIC with an infinite lease.
    /// Such a writer sends no assertions and is alive as long as its participant.
    #[must_use]
    pub fn liveliness(mut self, kind: LivelinessKind, lease: Duration) -> Self {
        let lease = lease.into();
        self.policies.liveliness = Liveliness { kind, lease };
        self
    }

    /// Returns whether RELIABILITY is RELIABLE.
    #[must_use]
    pub fn is_reliable(&self) -> bool {
        self.policies.reliability.kind == ReliabilityKind::Reliable
    }

    /// Returns the level given by TRANSPORT_PRIORITY.
    #[must_use]
    pub fn transport_level(&self) -> Level {
        Level::clamp(self.policies.transport_priority)
    }

    /// Returns all policies in the form that discovery announces.
    #[must_use]
    pub fn policies(&self) -> &QosPolicies {
        &self.policies
    }

    /// Checks the policies against bounds and for consistency.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        if let Some(name) = &self.excess_partition {
            return Err(BuildError::Partition { name: name.clone() });
        }
        if let Some(policy) = self.excess_octets {
            return Err(BuildError::Octets { policy });
        }
        let zero = [
            (
                "deadline",
                self.policies.deadline == isolane_wire::time::Duration::ZERO,
            ),
            (
                "response_deadline",
                self.response_deadline == Some(Duration::ZERO),
            ),
        ];
        if let Some((setting, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(BuildError::ZeroDeadline { setting });
        }
        if let Some(rate_limit) = &self.rate_limit {
            rate_limit::check(&rate_limit.budget)?;
        }
        let History { kind, depth } = self.policies.history;
        let per_instance = self.policies.resource_limits.max_samples_per_instance;
        let is_deeper = per_instance != LENGTH_UNLIMITED && depth > per_instance;
        if kind == HistoryKind::KeepLast && is_deeper {
            return Err(CreateError::InconsistentLimits.into());
        }
        Ok(())
    }

    /// Returns the representation that a writer of a type with this extensibility sends.
    pub(crate) fn sent(&self, extensibility: Extensibility) -> Representation {
        self.representation.unwrap_or(match extensibility {
            Extensibility::Final => Representation::Xcdr1,
            Extensibility::Appendable => Representation::Xcdr2,
        })
    }

    /// Returns the policies of a writer, which offers the one representation it sends.
    pub(crate) fn offered(&self, extensibility: Extensibility) -> QosPolicies {
        self.with_representations(&[self.sent(extensibility)])
    }

    /// Returns the policies of a reader, which accepts both representations unless restricted to one.
    pub(crate) fn requested(&self) -> QosPolicies {
        match (self.takes_only, self.representation) {
            (true, Some(only)) => self.with_representations(&[only]),
            _ => self.with_representations(&[Representation::Xcdr1, Representation::Xcdr2]),
        }
    }

    fn with_representations(&self, representations: &[Representation]) -> QosPolicies {
        let mut policies = self.policies.clone();
        policies.data_representation.clear();
        for representation in representations {
            let id = match representation {
                Representation::Xcdr1 => DataRepresentationId::XCDR1,
                Representation::Xcdr2 => DataRepresentationId::XCDR2,
            };
            // The list is empty here, and has room for three.
            let _ = policies.data_representation.push(id);
        }
        policies
    }
}
