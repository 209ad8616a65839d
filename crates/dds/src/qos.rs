//! Quality of service: the policies of DDS 1.4 §2.2.3 that a writer or reader is created with.
//!
//! One builder serves writers and readers. Policies have the effect that isolane gives them:
//! TRANSPORT_PRIORITY is the level, and with it the lane, the UDP port, SO_PRIORITY, DSCP and the
//! priority of every job of the topic; RESOURCE_LIMITS is the memory taken at creation.

use std::time::Duration;

use isolane_datapath::{Budget, Over, Protection};
use isolane_engine::CreateError;
use isolane_wire::{
    cdr::Representation,
    level::Level,
    qos::{
        DataRepresentationId, DurabilityKind, History, HistoryKind, LENGTH_UNLIMITED, Liveliness,
        LivelinessKind, OwnershipKind, Presentation, PresentationAccessScope, QosPolicies,
        ReliabilityKind,
    },
};

use crate::{error::BuildError, protection};

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
    pub(crate) representation: Representation,
    pub(crate) max_bytes: usize,
    pub(crate) max_blocking: Duration,
    pub(crate) protection: Option<Protection>,
    /// A partition that does not fit; endpoints are refused by its name.
    excess_partition: Option<String>,
}

impl Qos {
    /// BEST_EFFORT, KEEP_LAST 1, VOLATILE: what is lost is lost, the newest counts.
    #[must_use]
    pub fn best_effort() -> Self {
        let mut policies = QosPolicies::default();
        policies.reliability.kind = ReliabilityKind::BestEffort;
        Self {
            policies,
            representation: Representation::Xcdr1,
            max_bytes: crate::limits::DEFAULT_MAX_BYTES,
            max_blocking: Duration::ZERO,
            protection: None,
            excess_partition: None,
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

    /// The largest serialised sample, with its encapsulation header; slots have this size. A larger
    /// sample is refused by a writer and rejected by a reader. Default
    /// [`DEFAULT_MAX_BYTES`](crate::limits::DEFAULT_MAX_BYTES).
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
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

    /// DEADLINE: offered by a writer, requested by a reader, compared when they match. Nothing
    /// watches yet whether samples keep to it.
    #[must_use]
    pub fn deadline(mut self, period: Duration) -> Self {
        self.policies.deadline = period.into();
        self
    }

    /// PARTITION: one more partition the endpoint belongs to. A writer and a reader meet where they
    /// share one; without any an endpoint is in the one without a name. Names are compared as they
    /// are: wildcards are not expanded yet. [`MAX_PARTITIONS`] names of [`MAX_PARTITION_BYTES`] at
    /// most: endpoints with more are refused at creation.
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
    /// reader, compared when they match. No further effect: samples of a reliable writer that wait leave
    /// together whatever it says, and none is held back for others, so a budget of 0 is kept.
    #[must_use]
    pub fn latency_budget(mut self, budget: Duration) -> Self {
        self.policies.latency_budget = budget.into();
        self
    }

    /// LIVELINESS: who says that a writer is alive, and how long its silence is suffered; compared when
    /// they match. No further effect yet: a writer is taken for alive as long as its participant is.
    #[must_use]
    pub fn liveliness(mut self, kind: LivelinessKind, lease: Duration) -> Self {
        let lease = lease.into();
        self.policies.liveliness = Liveliness { kind, lease };
        self
    }

    /// OWNERSHIP: whether all writers may update an instance or the strongest one; compared when they
    /// match. No further effect yet: a reader takes the samples of all writers also where ownership is
    /// EXCLUSIVE.
    #[must_use]
    pub fn ownership(mut self, kind: OwnershipKind) -> Self {
        self.policies.ownership = kind;
        self
    }

    /// PRESENTATION: among what samples coherence and order hold; compared when they match. No further
    /// effect yet: the samples of each writer are seen in their order, and none are grouped.
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

    /// DATA_REPRESENTATION: what a writer sends. A reader takes both.
    #[must_use]
    pub fn representation(mut self, representation: Representation) -> Self {
        self.representation = representation;
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

    /// The policies of a writer: it offers the one representation it sends.
    pub(crate) fn offered(&self) -> QosPolicies {
        let mut policies = self.policies.clone();
        let id = match self.representation {
            Representation::Xcdr1 => DataRepresentationId::XCDR1,
            Representation::Xcdr2 => DataRepresentationId::XCDR2,
        };
        policies.data_representation.clear();
        // The list holds three; it was just emptied.
        let _ = policies.data_representation.push(id);
        policies
    }

    /// The policies of a reader: it takes both representations.
    pub(crate) fn requested(&self) -> QosPolicies {
        let mut policies = self.policies.clone();
        policies.data_representation.clear();
        for id in [DataRepresentationId::XCDR1, DataRepresentationId::XCDR2] {
            let _ = policies.data_representation.push(id);
        }
        policies
    }
}
