//! QoS policies, each with the standard's default (DDS 1.4 §2.2.3).

use core::fmt;

use super::{
    DataRepresentationId, DestinationOrderKind, DurabilityKind, HistoryKind, LivelinessKind,
    OwnershipKind, PresentationAccessScope, ReliabilityKind,
};
use crate::{
    limits::{MAX_DATA_REPRESENTATIONS, MAX_OCTETS, MAX_PARTITION_BYTES, MAX_PARTITIONS},
    time::Duration,
};

/// Value of an unlimited resource.
pub const LENGTH_UNLIMITED: i32 = -1;

/// PARTITION: names of the endpoint's partitions (DDS 1.4 §2.2.3.13). An empty list means the partition with
/// the empty name.
pub type Partition = heapless::Vec<heapless::String<MAX_PARTITION_BYTES>, MAX_PARTITIONS>;

/// DATA_REPRESENTATION: representations that an endpoint offers or accepts, the preferred one first
/// (DDS-XTypes 1.3 §7.6.3.1). An empty list means XCDR1.
pub type DataRepresentations = heapless::Vec<DataRepresentationId, MAX_DATA_REPRESENTATIONS>;

/// RELIABILITY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reliability {
    /// Best-effort or reliable.
    pub kind: ReliabilityKind,
    /// Maximum time that a write blocks; default 100 ms.
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
    /// Keep last or keep all.
    pub kind: HistoryKind,
    /// Maximum number of samples of each instance with KEEP_LAST; default 1.
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

/// RESOURCE_LIMITS; each limit can be [`LENGTH_UNLIMITED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Samples of all instances together.
    pub max_samples: i32,
    /// Instances.
    pub max_instances: i32,
    /// Samples of each instance.
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

/// DURABILITY_SERVICE: history of the service for TRANSIENT and PERSISTENT durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurabilityService {
    /// Time that an instance without writers is kept; default zero.
    pub cleanup_delay: Duration,
    /// HISTORY of the service.
    pub history: History,
    /// RESOURCE_LIMITS of the service.
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
    /// Source of the assertions.
    pub kind: LivelinessKind,
    /// Maximum time between assertions; default infinite.
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
    /// Scope of coherence and order.
    pub access_scope: PresentationAccessScope,
    /// True for coherent access: a set of changes becomes visible as a whole.
    pub coherent: bool,
    /// True for ordered access.
    pub ordered: bool,
}

/// READER_DATA_LIFECYCLE: time that a reader keeps samples of an instance that is not alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderDataLifecycle {
    /// Delay after the last writer of the instance is gone; default infinite.
    pub autopurge_nowriter_samples_delay: Duration,
    /// Delay after the disposal of the instance; default infinite.
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

/// Opaque octets of USER_DATA, TOPIC_DATA and GROUP_DATA (DDS 1.4 §2.2.3.1 to §2.2.3.3), at most [`MAX_OCTETS`]. Longer
/// data of a peer is cut ([`is_truncated`](Self::is_truncated)), because refusing it would make the peer unreachable.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Octets {
    kept: heapless::Vec<u8, MAX_OCTETS>,
    is_truncated: bool,
}

impl Octets {
    /// Creates an empty value.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            kept: heapless::Vec::new(),
            is_truncated: false,
        }
    }

    /// Copies `octets`; `None` if longer than [`MAX_OCTETS`].
    #[must_use]
    pub fn of(octets: &[u8]) -> Option<Self> {
        let kept = heapless::Vec::from_slice(octets).ok()?;
        Some(Self {
            kept,
            is_truncated: false,
        })
    }

    /// Marks these octets as the first part of a longer value ([`is_truncated`](Self::is_truncated)).
    #[must_use]
    pub fn truncated(self) -> Self {
        Self {
            is_truncated: true,
            ..self
        }
    }

    /// The octets.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.kept
    }

    /// Returns true if there are no octets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns true if the peer announced more octets than these.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }
}

/// Formats the octets as escaped ASCII, because most values are text.
impl fmt::Debug for Octets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = if self.is_truncated { ", cut" } else { "" };
        write!(formatter, "Octets(\"{}\"{cut})", self.kept.escape_ascii())
    }
}

/// QoS policies of discovery data, and READER_DATA_LIFECYCLE, which is not announced. The value parsed from a peer's
/// announcement has the default of READER_DATA_LIFECYCLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QosPolicies {
    /// RELIABILITY.
    pub reliability: Reliability,
    /// DURABILITY.
    pub durability: DurabilityKind,
    /// DURABILITY_SERVICE.
    pub durability_service: DurabilityService,
    /// HISTORY.
    pub history: History,
    /// RESOURCE_LIMITS.
    pub resource_limits: ResourceLimits,
    /// DEADLINE: maximum time between updates of an instance; default infinite.
    pub deadline: Duration,
    /// LATENCY_BUDGET; default zero.
    pub latency_budget: Duration,
    /// LIVELINESS.
    pub liveliness: Liveliness,
    /// OWNERSHIP.
    pub ownership: OwnershipKind,
    /// OWNERSHIP_STRENGTH; default 0.
    pub ownership_strength: i32,
    /// DESTINATION_ORDER.
    pub destination_order: DestinationOrderKind,
    /// PRESENTATION.
    pub presentation: Presentation,
    /// PARTITION.
    pub partition: Partition,
    /// LIFESPAN: time until a sample expires; default infinite.
    pub lifespan: Duration,
    /// TIME_BASED_FILTER: minimum time between samples of an instance. The default is zero: no filter.
    pub time_based_filter: Duration,
    /// READER_DATA_LIFECYCLE.
    pub reader_data_lifecycle: ReaderDataLifecycle,
    /// DATA_REPRESENTATION.
    pub data_representation: DataRepresentations,
    /// TRANSPORT_PRIORITY; default 0.
    pub transport_priority: i32,
    /// USER_DATA; default empty.
    pub user_data: Octets,
    /// TOPIC_DATA; default empty.
    pub topic_data: Octets,
    /// GROUP_DATA; default empty.
    pub group_data: Octets,
}

/// Defaults of readers and topics: best-effort.
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
    /// Number of policies among USER_DATA, TOPIC_DATA and GROUP_DATA whose announced value was cut.
    #[must_use]
    pub fn octets_cut(&self) -> u64 {
        let all = [&self.user_data, &self.topic_data, &self.group_data];
        all.iter().filter(|octets| octets.is_truncated()).count() as u64
    }

    /// Returns the defaults of readers: best-effort (DDS 1.4 §2.2.3).
    #[must_use]
    pub fn reader_default() -> Self {
        Self::default()
    }

    /// Returns the defaults of writers: as those of readers, but reliable (DDS 1.4 §2.2.3).
    #[must_use]
    pub fn writer_default() -> Self {
        let mut policies = Self::default();
        policies.reliability.kind = ReliabilityKind::Reliable;
        policies
    }
}
