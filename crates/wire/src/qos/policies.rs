//! The policies, each with the standard's default (DDS 1.4 §2.2.3).

use super::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, HistoryKind, LivelinessKind,
    Octets, OwnershipKind, PresentationAccessScope, ReliabilityKind,
};
use crate::{
    limits::{MAX_DATA_REPRESENTATIONS, MAX_PARTITION_BYTES, MAX_PARTITIONS},
    time::Duration,
};

/// As a resource limit: none.
pub const LENGTH_UNLIMITED: i32 = -1;

/// The names of the partitions an endpoint belongs to (DDS 1.4 §2.2.3.13). None at all means the
/// partition with the empty name.
pub type Partition = heapless::Vec<heapless::String<MAX_PARTITION_BYTES>, MAX_PARTITIONS>;

/// The representations an endpoint offers or accepts, the preferred one first (DDS-XTypes 1.3
/// §7.6.3.1). None at all means XCDR1.
pub type DataRepresentations = heapless::Vec<DataRepresentationId, MAX_DATA_REPRESENTATIONS>;

/// RELIABILITY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reliability {
    /// Whether lost samples are repeated.
    pub kind: ReliabilityKind,
    /// How long a write may wait for room; 100 ms.
    pub max_blocking_time: Duration,
}

impl Default for Reliability {
    fn default() -> Self {
        Self {
            kind: ReliabilityKind::default(),
            max_blocking_time: Duration::from_millis(100),
        }
    }
}

/// HISTORY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// How much is kept.
    pub kind: HistoryKind,
    /// Of each instance with KEEP_LAST, in samples; 1.
    pub depth: i32,
}

impl Default for History {
    fn default() -> Self {
        Self {
            kind: HistoryKind::default(),
            depth: 1,
        }
    }
}

/// RESOURCE_LIMITS, each in samples or instances, or [`LENGTH_UNLIMITED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Of all instances together.
    pub max_samples: i32,
    /// How many instances.
    pub max_instances: i32,
    /// Of each instance.
    pub max_samples_per_instance: i32,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            max_samples: LENGTH_UNLIMITED,
            max_instances: LENGTH_UNLIMITED,
            max_samples_per_instance: LENGTH_UNLIMITED,
        }
    }
}

/// DURABILITY_SERVICE: how the service of TRANSIENT and PERSISTENT keeps samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurabilityService {
    /// How long an instance without writers is kept; zero.
    pub cleanup_delay: Duration,
    /// How much of each instance.
    pub history: History,
    /// How much in all.
    pub resource_limits: ResourceLimits,
}

impl Default for DurabilityService {
    fn default() -> Self {
        Self {
            cleanup_delay: Duration::ZERO,
            history: History::default(),
            resource_limits: ResourceLimits::default(),
        }
    }
}

/// LIVELINESS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Liveliness {
    /// Who says that the writer is alive.
    pub kind: LivelinessKind,
    /// How long its silence is suffered; infinite.
    pub lease: Duration,
}

impl Default for Liveliness {
    fn default() -> Self {
        Self {
            kind: LivelinessKind::default(),
            lease: Duration::INFINITE,
        }
    }
}

/// PRESENTATION.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Presentation {
    /// Among what samples the other two hold.
    pub access_scope: PresentationAccessScope,
    /// Whether changes can be grouped to become visible together.
    pub coherent: bool,
    /// Whether changes are seen in the order they were made.
    pub ordered: bool,
}

/// READER_DATA_LIFECYCLE: how long a reader keeps samples of an instance that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderDataLifecycle {
    /// Of one that nobody writes any more; infinite.
    pub autopurge_nowriter_samples_delay: Duration,
    /// Of one that was disposed; infinite.
    pub autopurge_disposed_samples_delay: Duration,
}

impl Default for ReaderDataLifecycle {
    fn default() -> Self {
        Self {
            autopurge_nowriter_samples_delay: Duration::INFINITE,
            autopurge_disposed_samples_delay: Duration::INFINITE,
        }
    }
}

/// One value of each policy that discovery carries, and of READER_DATA_LIFECYCLE, which it does not: of a peer's
/// endpoint that is the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QosPolicies {
    /// Whether lost samples are repeated.
    pub reliability: Reliability,
    /// What readers that come late receive.
    pub durability: DurabilityKind,
    /// How the service of durability keeps samples.
    pub durability_service: DurabilityService,
    /// How much is kept of each instance.
    pub history: History,
    /// How much is kept in all.
    pub resource_limits: ResourceLimits,
    /// How soon each instance is updated again; infinite.
    pub deadline: Duration,
    /// How late a sample may be without harm; zero.
    pub latency_budget: Duration,
    /// Who says that the writer is alive.
    pub liveliness: Liveliness,
    /// How many writers may update an instance.
    pub ownership: OwnershipKind,
    /// How strong a writer is among others that may; 0.
    pub ownership_strength: i32,
    /// Which of two samples is the later.
    pub destination_order: DestinationOrderKind,
    /// What is seen together and in order.
    pub presentation: Presentation,
    /// Which partitions the endpoint belongs to.
    pub partition: Partition,
    /// How long a sample is of use; infinite.
    pub lifespan: Duration,
    /// How often a reader wants an instance at most; zero: no limit.
    pub time_based_filter: Duration,
    /// How long a reader keeps samples of an instance that has ended.
    pub reader_data_lifecycle: ReaderDataLifecycle,
    /// In what form samples travel.
    pub data_representation: DataRepresentations,
    /// How urgent samples are; 0.
    pub transport_priority: i32,
    /// What its user says of the endpoint; nothing.
    pub user_data: Octets,
    /// What its user says of the topic; nothing.
    pub topic_data: Octets,
    /// What its user says of the publisher or subscriber; nothing.
    pub group_data: Octets,
}

/// The defaults of readers and topics, which are best-effort.
impl Default for QosPolicies {
    fn default() -> Self {
        Self {
            reliability: Reliability::default(),
            durability: DurabilityKind::default(),
            durability_service: DurabilityService::default(),
            history: History::default(),
            resource_limits: ResourceLimits::default(),
            deadline: Duration::INFINITE,
            latency_budget: Duration::ZERO,
            liveliness: Liveliness::default(),
            ownership: OwnershipKind::default(),
            ownership_strength: 0,
            destination_order: DestinationOrderKind::default(),
            presentation: Presentation::default(),
            partition: Partition::new(),
            lifespan: Duration::INFINITE,
            time_based_filter: Duration::ZERO,
            reader_data_lifecycle: ReaderDataLifecycle::default(),
            data_representation: DataRepresentations::new(),
            transport_priority: 0,
            user_data: Octets::new(),
            topic_data: Octets::new(),
            group_data: Octets::new(),
        }
    }
}

impl QosPolicies {
    /// How many of USER_DATA, TOPIC_DATA and GROUP_DATA are the first part of what was announced.
    #[must_use]
    pub fn octets_cut(&self) -> u64 {
        let all = [&self.user_data, &self.topic_data, &self.group_data];
        all.iter().filter(|octets| octets.is_cut()).count() as u64
    }

    /// The defaults of readers: best-effort (DDS 1.4 §2.2.3).
    #[must_use]
    pub fn reader_default() -> Self {
        Self::default()
    }

    /// The defaults of writers: as of readers, but reliable (DDS 1.4 §2.2.3).
    #[must_use]
    pub fn writer_default() -> Self {
        let mut policies = Self::default();
        policies.reliability.kind = ReliabilityKind::Reliable;
        policies
    }
}
