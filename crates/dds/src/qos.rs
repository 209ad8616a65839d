//! Quality of service: the policies of DDS 1.4 §2.2.3 that a writer or reader is created with.
//!
//! One builder serves writers and readers. Policies have the effect that isolane gives them:
//! TRANSPORT_PRIORITY is the level, and with it the lane, the UDP port, SO_PRIORITY, DSCP and the
//! priority of every job of the topic; RESOURCE_LIMITS is the memory taken at creation.

use std::time::Duration;

use isolane_datapath::{Budget, Over, Protection};
use isolane_engine::CreateError;
use isolane_wire::{
    cdr::{Extensibility, Representation, TopicType, max_payload_bytes},
    level::Level,
    qos::{
        DataRepresentationId, DestinationOrderKind, DurabilityKind, History, HistoryKind,
        LENGTH_UNLIMITED, Liveliness, LivelinessKind, OwnershipKind, PolicyId, Presentation,
        PresentationAccessScope, QosPolicies, ReliabilityKind,
    },
};

use crate::{error::BuildError, limits, protection};

/// The policies of a writer or a reader.
///
/// Made from a preset, then adjusted:
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
    /// `None`: that of the type ([`sent`](Self::sent)).
    pub(crate) representation: Option<Representation>,
    /// A reader takes this representation alone.
    pub(crate) takes_only: bool,
    /// `None`: what the type comes to ([`sized`](Self::sized)).
    pub(crate) max_bytes: Option<usize>,
    pub(crate) max_datagram_bytes: usize,
    pub(crate) max_blocking: Duration,
    pub(crate) response_deadline: Option<Duration>,
    pub(crate) autodispose: bool,
    pub(crate) protection: Option<Protection>,
    /// A partition that does not fit; endpoints are refused by its name.
    pub(crate) excess_partition: Option<String>,
    /// A policy with more octets than are announced; endpoints are refused by its name.
    pub(crate) excess_octets: Option<PolicyId>,
}

impl Qos {
    /// BEST_EFFORT, KEEP_LAST 1, VOLATILE: what is lost is lost, the newest counts.
    #[must_use]
    pub fn best_effort() -> Self {
        let mut policies = QosPolicies::default();
        policies.reliability.kind = ReliabilityKind::BestEffort;
        Self {
            policies,
            representation: None,
            takes_only: false,
            max_bytes: None,
            max_datagram_bytes: isolane_engine::limits::MAX_DATA_PAYLOAD_BYTES,
            max_blocking: Duration::ZERO,
            response_deadline: None,
            autodispose: true,
            protection: None,
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

    /// TRANSPORT_PRIORITY: the level, 0 to 7, 7 most critical. Default 0.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.policies.transport_priority = i32::from(level.get());
        self
    }

    /// HISTORY KEEP_LAST: the last `depth` samples of each instance.
    #[must_use]
    pub fn keep_last(mut self, depth: u16) -> Self {
        self.policies.history.kind = HistoryKind::KeepLast;
        self.policies.history.depth = i32::from(depth);
        self
    }

    /// HISTORY KEEP_ALL: every sample, within [`max_samples`](Self::max_samples).
    #[must_use]
    pub fn keep_all(mut self) -> Self {
        self.policies.history.kind = HistoryKind::KeepAll;
        self
    }

    /// RESOURCE_LIMITS `max_samples`: slots taken at creation.
    #[must_use]
    pub fn max_samples(mut self, samples: u16) -> Self {
        self.policies.resource_limits.max_samples = i32::from(samples);
        self
    }

    /// RESOURCE_LIMITS `max_samples_per_instance`; a KEEP_LAST depth beyond it is refused at creation.
    /// No further effect yet: KEEP_LAST keeps `depth` samples of an instance, KEEP_ALL shares
    /// [`max_samples`](Self::max_samples) among all.
    #[must_use]
    pub fn max_samples_per_instance(mut self, samples: u16) -> Self {
        self.policies.resource_limits.max_samples_per_instance = i32::from(samples);
        self
    }

    /// RESOURCE_LIMITS `max_instances`.
    #[must_use]
    pub fn max_instances(mut self, instances: u16) -> Self {
        self.policies.resource_limits.max_instances = i32::from(instances);
        self
    }

    /// The largest serialised sample in bytes, with its encapsulation header, at most
    /// [`MAX_SAMPLE_BYTES`](crate::limits::MAX_SAMPLE_BYTES). Default: what the type comes to, where all its strings
    /// and sequences are bounded, but for an appendable type at least
    /// [`APPENDABLE_BYTES`](crate::limits::APPENDABLE_BYTES);
    /// [`UNBOUNDED_BYTES`](crate::limits::UNBOUNDED_BYTES) otherwise.
    ///
    /// A writer refuses a larger sample. A reader acknowledges it, counts it as
    /// [too large](isolane_engine::ReaderLedger::too_large) and reports it by SAMPLE_LOST. Sizes are not compared when
    /// endpoints match.
    ///
    /// Samples longer than [`max_datagram_bytes`](Self::max_datagram_bytes) leave in fragments of an Ethernet
    /// frame each, one a step of the loop and below the topic's samples, so that no sample of any topic
    /// as critical waits for more than one of them.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// The largest serialised sample that a writer sends as a single datagram. Default
    /// [`MAX_DATA_PAYLOAD_BYTES`](isolane_engine::limits::MAX_DATA_PAYLOAD_BYTES): what an Ethernet frame carries. With
    /// less, fragments are as short, [`MIN_FRAGMENT_BYTES`](crate::limits::MIN_FRAGMENT_BYTES) at least; else they have
    /// [`FRAGMENT_BYTES`](isolane_engine::limits::FRAGMENT_BYTES).
    ///
    /// With more, samples up to that size cost one system call in place of one a fragment, and those of a
    /// best-effort writer are not kept until they are sent. IP cuts them: the link is busy with all parts
    /// of one before anything more critical, they take no lane, and one lost part is the loss of all.
    #[must_use]
    pub fn max_datagram_bytes(mut self, bytes: usize) -> Self {
        self.max_datagram_bytes = bytes;
        self
    }

    /// Whether samples are kept back until they leave together.
    pub(crate) fn is_batched(&self) -> bool {
        self.policies.latency_budget != isolane_wire::time::Duration::ZERO
    }

    /// The policies of an endpoint of a type: [`max_bytes`](Self::max_bytes) is that of the type unless it was set.
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

    /// The largest serialised sample.
    pub(crate) fn sample_bytes(&self) -> usize {
        self.max_bytes.unwrap_or(limits::UNBOUNDED_BYTES)
    }

    /// Whether some samples leave in fragments.
    pub(crate) fn is_cut(&self) -> bool {
        self.sample_bytes() > self.whole_bytes()
    }

    /// The largest serialised sample that leaves as a single datagram.
    pub(crate) fn whole_bytes(&self) -> usize {
        let whole_bytes = self
            .max_datagram_bytes
            .max(limits::MIN_FRAGMENT_BYTES.into());
        self.sample_bytes().min(whole_bytes)
    }

    /// DURABILITY TRANSIENT_LOCAL: a late joiner gets the writer's history.
    #[must_use]
    pub fn transient_local(mut self) -> Self {
        self.policies.durability = DurabilityKind::TransientLocal;
        self
    }

    /// DURABILITY VOLATILE: a late joiner begins with the next sample. The default.
    #[must_use]
    pub fn volatile(mut self) -> Self {
        self.policies.durability = DurabilityKind::Volatile;
        self
    }

    /// DEADLINE: each instance is written, or received, once in this period at least; offered by a writer,
    /// requested by a reader, compared when they match. Each period that passes without a sample is told at
    /// either end ([`on_offered_deadline_missed`](crate::DataWriter::on_offered_deadline_missed),
    /// [`on_requested_deadline_missed`](crate::DataReader::on_requested_deadline_missed)), at a millisecond at
    /// the shortest. Of a keyed topic [`max_instances`](Self::max_instances) instances are watched, 256 if
    /// that is not set. Default: none. A period of zero is refused at creation.
    #[must_use]
    pub fn deadline(mut self, period: Duration) -> Self {
        self.policies.deadline = period.into();
        self
    }

    /// Longest time from a sample's arrival at this host (the kernel's stamp, where there is one:
    /// [`Builder::receive_stamps`](crate::Builder::receive_stamps)) to the end of its callback, or until it is taken.
    /// Samples that take longer are delivered, and counted with the job that ran when the deadline fell
    /// ([`DataReader::response_deadline`](crate::DataReader::response_deadline)). Not announced; without effect at a
    /// writer. Default: none. Zero is refused at creation.
    #[must_use]
    pub fn response_deadline(mut self, deadline: Duration) -> Self {
        self.response_deadline = Some(deadline);
        self
    }

    /// PARTITION: one more partition the endpoint belongs to. A writer and a reader meet where they
    /// share one; without any an endpoint is in the one without a name. A name may have the wildcards of
    /// POSIX `fnmatch` (`*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a character that is to stand for itself)
    /// and then stands for every name it fits; two names with wildcards never meet. [`MAX_PARTITIONS`]
    /// names of [`MAX_PARTITION_BYTES`] at most: endpoints with more are refused. It may change while the
    /// endpoint lives: [`partitions`](Self::partitions), [`DataWriter::set_qos`](crate::DataWriter::set_qos).
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

    /// LATENCY_BUDGET: how late samples may be without harm; offered by a writer, requested by a
    /// reader, compared when they match: a writer may not offer more than a reader asks for.
    ///
    /// A writer with one keeps small samples back, for half of it and a second at most, until a datagram is full of
    /// them ([`BATCH_BYTES`](isolane_engine::limits::BATCH_BYTES), or [`max_datagram_bytes`](Self::max_datagram_bytes)
    /// where that is more): fewer datagrams and system calls for the same samples.
    /// [`DataWriter::flush`](crate::DataWriter::flush) lets them go at once. A best-effort writer that was created
    /// with a budget keeps up to [`BATCHED_SAMPLES`](isolane_engine::limits::BATCHED_SAMPLES) that wait to be sent.
    /// Default: 0, with which nothing is kept back, as critical topics need it; a budget below 0.1 ms counts as 0.
    #[must_use]
    pub fn latency_budget(mut self, budget: Duration) -> Self {
        self.policies.latency_budget = budget.into();
        self
    }

    /// LIFESPAN: how long a sample is of use after it was written. One that has expired is not sent, not
    /// repaired and not handed out, and its room is free again. A reader counts by its own wall clock
    /// from the writer's time stamp, with the LIFESPAN of the writer; from the reception where the time stamp
    /// lies in the future, since then the clocks differ. On a reader it has no effect. Default: for ever.
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
    #[must_use]
    pub fn lifespan(mut self, lifespan: Duration) -> Self {
        self.policies.lifespan = lifespan.into();
        self
    }

    /// TIME_BASED_FILTER: a reader sees at most one sample of each instance in this time, by when they are
    /// received. What comes sooner is counted (`filtered`) and, where reliable, acknowledged; a reliable reader
    /// keeps the last one back and sees it when the time is over, so that it ends with the last value. Ends of
    /// instances are seen at once. A [`deadline`](Self::deadline) shorter than it is refused at creation. On a
    /// writer it has no effect. Default: none.
    #[must_use]
    pub fn time_based_filter(mut self, minimum_separation: Duration) -> Self {
        self.policies.time_based_filter = minimum_separation.into();
        self
    }

    /// LIVELINESS: who says that a writer is alive, and how long its silence is suffered; compared when
    /// they match. AUTOMATIC: isolane says so while the participant's loop runs. The manual kinds: the user,
    /// by writing or by [`DataWriter::assert_liveliness`](crate::DataWriter::assert_liveliness), and for
    /// MANUAL_BY_PARTICIPANT once for all such writers also by
    /// [`Participant::assert_liveliness`](crate::Participant::assert_liveliness). Instances of a writer that is
    /// silent for longer have lost it, and both ends are told
    /// ([`on_liveliness_lost`](crate::DataWriter::on_liveliness_lost),
    /// [`on_liveliness_changed`](crate::DataReader::on_liveliness_changed)). Default: AUTOMATIC and for ever,
    /// for which nothing is sent: a writer is alive as long as its participant is.
    #[must_use]
    pub fn liveliness(mut self, kind: LivelinessKind, lease: Duration) -> Self {
        let lease = lease.into();
        self.policies.liveliness = Liveliness { kind, lease };
        self
    }

    /// OWNERSHIP: whether all writers may update an instance or the strongest one alone; compared when they
    /// match. Where it is EXCLUSIVE a reader takes the samples of each instance from its owner: the strongest
    /// of those that write it ([`ownership_strength`](Self::ownership_strength)), of equals the one with the
    /// lower GUID. Another follows when the owner unregisters the instance, is gone, loses its
    /// [liveliness](Self::liveliness), or lets the reader's [deadline](Self::deadline) pass. What others write
    /// is counted (`not_owner`). Of a keyed topic the owners of [`max_instances`](Self::max_instances)
    /// instances are remembered, 256 if that is not set.
    #[must_use]
    pub fn ownership(mut self, kind: OwnershipKind) -> Self {
        self.policies.ownership = kind;
        self
    }

    /// OWNERSHIP_STRENGTH: how strong a writer is where [OWNERSHIP](Self::ownership) is EXCLUSIVE. On a reader
    /// it has no effect. Default: 0.
    #[must_use]
    pub fn ownership_strength(mut self, strength: i32) -> Self {
        self.policies.ownership_strength = strength;
        self
    }

    /// PRESENTATION: among what samples coherence and order hold; compared when they match, and shared by the
    /// members of a [`Publisher`](crate::Publisher) or [`Subscriber`](crate::Subscriber). With INSTANCE, the default,
    /// each instance is for itself; the samples of each writer are seen in their order whatever it says.
    ///
    /// *Coherent*: what is written in a set
    /// ([`begin_coherent_changes`](crate::Publisher::begin_coherent_changes)) is seen whole or not at all, of each
    /// writer or with GROUP of all of a publisher. INSTANCE does as TOPIC here, as other implementations do (DDS 1.4
    /// §2.2.3.6 has sets without effect there). A reader holds sets in memory of their own, as many samples as
    /// [`max_samples`](Self::max_samples) or the history come to; HISTORY KEEP_LAST applies when a set is seen.
    /// *Ordered* with GROUP: the samples of a publisher's writers are seen in the order they were
    /// written ([`Subscriber::begin_access`](crate::Subscriber::begin_access)). One waits until each of the others is
    /// known to have none before it, so a writer that is silent is asked: a question and its answer on the wire.
    /// With TOPIC, too, the lists of [`take_samples`](crate::DataReader::take_samples) and its siblings keep the order
    /// of all instances, else samples of an instance are behind one another there.
    ///
    /// Both need RELIABILITY RELIABLE on both sides, and do not go with TIME_BASED_FILTER: other endpoints are refused.
    #[must_use]
    pub fn presentation(
        mut self,
        access_scope: PresentationAccessScope,
        coherent: bool,
        ordered: bool,
    ) -> Self {
        self.policies.presentation = Presentation {
            access_scope,
            coherent,
            ordered,
        };
        self
    }

    /// DESTINATION_ORDER: which of two samples of an instance is the later; compared when they match,
    /// BY_SOURCE_TIMESTAMP being more than BY_RECEPTION_TIMESTAMP, the default. Where it is BY_SOURCE_TIMESTAMP a
    /// reader takes in no sample that is older than one of its instance it has taken in, by the writers' clocks, of
    /// equals of two writers the one of the lower GUID being the later: so all readers end with the same value. What it
    /// drops is counted (`outdated`). A writer's time stamps do not go back then, whatever its clock does. The clocks
    /// of the writers' hosts should agree. Of a keyed topic [`max_instances`](Self::max_instances) instances are
    /// watched, 256 if that is not set.
    #[must_use]
    pub fn destination_order(mut self, kind: DestinationOrderKind) -> Self {
        self.policies.destination_order = kind;
        self
    }

    /// RELIABILITY `max_blocking_time`: how long [`write`](crate::DataWriter::write) may wait for room
    /// in a full history, driving the participant meanwhile. Default 0: full is an error at
    /// once. Inside a callback it is always an error at once. On a
    /// [`RemoteWriter`](crate::RemoteWriter), which never waits, it has no effect.
    #[must_use]
    pub fn max_blocking_time(mut self, time: Duration) -> Self {
        self.max_blocking = time;
        self.policies.reliability.max_blocking_time = time.into();
        self
    }

    /// What a reader spends on the topic at most: so many datagrams in each period, whatever arrives, and
    /// what becomes of the others. Not a policy of the standard: no peer hears of it. The reader gets a
    /// port of its own within its level, by unicast, so that a writer sends to it beside the group of
    /// the level's other readers. It can be changed while the participant runs
    /// ([`DataReader::set_budget`](crate::DataReader::set_budget)), and needs a datapath that counts
    /// datagrams before they are received (xdp); on others the reader takes what comes, and
    /// [`Participant::notes`](crate::Participant::notes) say so. On a writer it has no effect.
    ///
    /// A reliable topic's heartbeats and repairs come by the same port and count too: leave room for
    /// them. What is dropped of it is asked for again, and comes later.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use isolane::{Budget, Network, Over, Participant, Qos, TopicType};
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
    ///     .create_reader::<Report>("Reports", &Qos::reliable().budget(budget, Over::Drop))?;
    /// // A network in memory has nothing that could count.
    /// assert!(participant.notes().iter().any(|note| note.contains("is not enforced")));
    /// # Ok::<(), isolane::BuildError>(())
    /// ```
    #[must_use]
    pub fn budget(mut self, budget: Budget, over: Over) -> Self {
        self.protection = Some(Protection { budget, over });
        self
    }

    /// DATA_REPRESENTATION: the one that a writer offers. Default: XCDR1 for a final type, XCDR2 for an
    /// `appendable` one, which Cyclone DDS takes in XCDR2 only. A reader requests both.
    #[must_use]
    pub fn representation(mut self, representation: Representation) -> Self {
        self.representation = Some(representation);
        self
    }

    /// DATA_REPRESENTATION: the only one, on either side: a reader of it does not match writers that send another.
    #[must_use]
    pub fn only_representation(mut self, representation: Representation) -> Self {
        self.representation = Some(representation);
        self.takes_only = true;
        self
    }

    /// Whether RELIABILITY is RELIABLE.
    #[must_use]
    pub fn is_reliable(&self) -> bool {
        self.policies.reliability.kind == ReliabilityKind::Reliable
    }

    /// The level of TRANSPORT_PRIORITY.
    #[must_use]
    pub fn transport_level(&self) -> Level {
        Level::clamp(self.policies.transport_priority)
    }

    /// All policies, in the form discovery carries.
    #[must_use]
    pub fn policies(&self) -> &QosPolicies {
        &self.policies
    }

    /// Whether what was asked for can be had at all.
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
        if let Some(protection) = &self.protection {
            protection::check(&protection.budget)?;
        }
        let History { kind, depth } = self.policies.history;
        let per_instance = self.policies.resource_limits.max_samples_per_instance;
        let is_deeper = per_instance != LENGTH_UNLIMITED && depth > per_instance;
        if kind == HistoryKind::KeepLast && is_deeper {
            return Err(CreateError::InconsistentLimits.into());
        }
        Ok(())
    }

    /// The representation that a writer of such a type sends.
    pub(crate) fn sent(&self, extensibility: Extensibility) -> Representation {
        self.representation.unwrap_or(match extensibility {
            Extensibility::Final => Representation::Xcdr1,
            Extensibility::Appendable => Representation::Xcdr2,
        })
    }

    /// The policies of a writer of such a type: it offers the one representation it sends.
    pub(crate) fn offered(&self, extensibility: Extensibility) -> QosPolicies {
        self.with_representations(&[self.sent(extensibility)])
    }

    /// The policies of a reader: it takes both representations, unless it was said to take one.
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
            // The list holds three; it was just emptied.
            let _ = policies.data_representation.push(id);
        }
        policies
    }
}
