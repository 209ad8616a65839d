//! Builder of topics and their endpoint configurations.

use isolane_rtps::{EndpointConfig, limits::MAX_DATA_PAYLOAD_BYTES};
use isolane_wire::{
    builtin_data::LocatorList,
    level::Level,
    qos::{DurabilityKind, History, HistoryKind, QosPolicies, ReliabilityKind},
};

use crate::{
    node::NodeId,
    sample::{SAMPLE_BYTES, key_of},
};

/// Topic with the QoS policies of one endpoint. Defaults: best-effort, VOLATILE, KEEP_LAST 1, without key, level 0,
/// unicast.
#[derive(Debug, Clone)]
pub struct Topic {
    name: String,
    type_name: String,
    is_keyed: bool,
    is_multicast: bool,
    max_payload_bytes: usize,
    shares_long: bool,
    max_datagram_bytes: usize,
    qos: QosPolicies,
}

impl Topic {
    /// Creates a topic with a name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            type_name: "sim::Sample".to_owned(),
            is_keyed: false,
            is_multicast: false,
            max_payload_bytes: SAMPLE_BYTES,
            shares_long: false,
            max_datagram_bytes: MAX_DATA_PAYLOAD_BYTES,
            qos: QosPolicies::default(),
        }
    }

    /// Sets RELIABILITY RELIABLE.
    #[must_use]
    pub fn reliable(self) -> Self {
        self.qos(|qos| qos.reliability.kind = ReliabilityKind::Reliable)
    }

    /// Sets HISTORY KEEP_ALL, with room for `max_samples` samples.
    #[must_use]
    pub fn keep_all(self, max_samples: u16) -> Self {
        self.qos(|qos| {
            qos.history = History {
                kind: HistoryKind::KeepAll,
                depth: 1,
            };
            qos.resource_limits.max_samples = i32::from(max_samples);
        })
    }

    /// Sets HISTORY KEEP_LAST with a depth.
    #[must_use]
    pub fn keep_last(self, depth: u16) -> Self {
        self.qos(|qos| {
            qos.history = History {
                kind: HistoryKind::KeepLast,
                depth: i32::from(depth),
            };
        })
    }

    /// Sets RESOURCE_LIMITS `max_instances`.
    #[must_use]
    pub fn max_instances(self, instances: u16) -> Self {
        self.qos(|qos| qos.resource_limits.max_instances = i32::from(instances))
    }

    /// Sets DURABILITY TRANSIENT_LOCAL.
    #[must_use]
    pub fn transient_local(self) -> Self {
        self.qos(|qos| qos.durability = DurabilityKind::TransientLocal)
    }

    /// Makes the topic keyed.
    #[must_use]
    pub fn keyed(self) -> Self {
        Self {
            is_keyed: true,
            ..self
        }
    }

    /// Sets the level, 0 to 7.
    #[must_use]
    pub fn level(self, level: u8) -> Self {
        self.qos(|qos| qos.transport_priority = i32::from(level))
    }

    /// Lets readers also join the level's multicast group.
    #[must_use]
    pub fn multicast(self) -> Self {
        Self {
            is_multicast: true,
            ..self
        }
    }

    /// Sets the maximum payload size in bytes.
    #[must_use]
    pub fn max_payload_bytes(self, max_payload_bytes: usize) -> Self {
        Self {
            max_payload_bytes,
            ..self
        }
    }

    /// Sets the maximum size of a sample sent as one datagram, in bytes.
    #[must_use]
    pub fn max_datagram_bytes(self, max_datagram_bytes: usize) -> Self {
        Self {
            max_datagram_bytes,
            ..self
        }
    }

    /// Lets samples longer than an Ethernet frame share pages of memory.
    #[must_use]
    pub fn shares_long(self) -> Self {
        Self {
            shares_long: true,
            ..self
        }
    }

    /// Sets the topic name.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self
        }
    }

    /// Sets the type name.
    #[must_use]
    pub fn type_name(self, type_name: &str) -> Self {
        Self {
            type_name: type_name.to_owned(),
            ..self
        }
    }

    /// Changes other QoS policies.
    #[must_use]
    pub fn qos(mut self, change: impl FnOnce(&mut QosPolicies)) -> Self {
        change(&mut self.qos);
        self
    }

    /// Configuration of a reader on a node.
    #[must_use]
    pub fn config_on(&self, node: NodeId) -> EndpointConfig<'_> {
        self.endpoint(node, true)
    }

    pub(crate) fn is_keyed(&self) -> bool {
        self.is_keyed
    }

    pub(crate) fn is_multicast(&self) -> bool {
        self.is_multicast
    }

    pub(crate) fn at_level(&self) -> Level {
        Level::clamp(self.qos.transport_priority)
    }

    /// Configuration of an endpoint on a node.
    pub(crate) fn endpoint(&self, node: NodeId, is_reader: bool) -> EndpointConfig<'_> {
        let level = self.at_level();
        let unicast = LocatorList::from_iter([node.level_locator(level)]);
        let multicast = (is_reader && self.is_multicast).then(|| NodeId::level_group(level));
        EndpointConfig {
            topic_name: &self.name,
            type_name: &self.type_name,
            keyed: self.is_keyed,
            key_of: self.is_keyed.then_some(key_of),
            qos: self.qos.clone(),
            max_payload_bytes: self.max_payload_bytes,
            shares_long: self.shares_long,
            max_datagram_bytes: self.max_datagram_bytes,
            unicast,
            multicast: multicast.into_iter().collect(),
        }
    }
}
