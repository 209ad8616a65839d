//! What a writer or reader is created with, said in a line.

use isolane_engine::{EndpointConfig, limits::WHOLE_BYTES};
use isolane_wire::{
    discovery::LocatorList,
    level::Level,
    qos::{DurabilityKind, History, HistoryKind, QosPolicies, ReliabilityKind},
};

use crate::{
    node::NodeId,
    sample::{SAMPLE_BYTES, key_of},
};

/// A topic with the policies of one of its ends: best effort, VOLATILE, KEEP_LAST 1, without key,
/// level 0, unicast, unless said otherwise.
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
    /// A topic of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            type_name: "sim::Sample".to_owned(),
            is_keyed: false,
            is_multicast: false,
            max_payload_bytes: SAMPLE_BYTES,
            shares_long: false,
            max_datagram_bytes: WHOLE_BYTES,
            qos: QosPolicies::default(),
        }
    }

    /// RELIABILITY RELIABLE.
    #[must_use]
    pub fn reliable(self) -> Self {
        self.qos(|qos| qos.reliability.kind = ReliabilityKind::Reliable)
    }

    /// HISTORY KEEP_ALL, with room for this many samples.
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

    /// HISTORY KEEP_LAST of this depth.
    #[must_use]
    pub fn keep_last(self, depth: u16) -> Self {
        self.qos(|qos| {
            qos.history = History {
                kind: HistoryKind::KeepLast,
                depth: i32::from(depth),
            };
        })
    }

    /// RESOURCE_LIMITS `max_instances`.
    #[must_use]
    pub fn max_instances(self, instances: u16) -> Self {
        self.qos(|qos| qos.resource_limits.max_instances = i32::from(instances))
    }

    /// DURABILITY TRANSIENT_LOCAL.
    #[must_use]
    pub fn transient_local(self) -> Self {
        self.qos(|qos| qos.durability = DurabilityKind::TransientLocal)
    }

    /// With a key.
    #[must_use]
    pub fn keyed(self) -> Self {
        Self {
            is_keyed: true,
            ..self
        }
    }

    /// Of this level, 0 to 7.
    #[must_use]
    pub fn level(self, level: u8) -> Self {
        self.qos(|qos| qos.transport_priority = i32::from(level))
    }

    /// Readers listen to the level's multicast group also.
    #[must_use]
    pub fn multicast(self) -> Self {
        Self {
            is_multicast: true,
            ..self
        }
    }

    /// Payloads are at most this long.
    #[must_use]
    pub fn max_payload_bytes(self, max_payload_bytes: usize) -> Self {
        Self {
            max_payload_bytes,
            ..self
        }
    }

    /// Samples up to this long leave as one datagram.
    #[must_use]
    pub fn max_datagram_bytes(self, max_datagram_bytes: usize) -> Self {
        Self {
            max_datagram_bytes,
            ..self
        }
    }

    /// With memory in which samples longer than an Ethernet frame share pages.
    #[must_use]
    pub fn shares_long(self) -> Self {
        Self {
            shares_long: true,
            ..self
        }
    }

    /// Of another name.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self
        }
    }

    /// Of another type.
    #[must_use]
    pub fn type_name(self, type_name: &str) -> Self {
        Self {
            type_name: type_name.to_owned(),
            ..self
        }
    }

    /// With other policies changed.
    #[must_use]
    pub fn qos(mut self, change: impl FnOnce(&mut QosPolicies)) -> Self {
        change(&mut self.qos);
        self
    }

    /// As the engine of a node wants it.
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

    /// As the engine of a node wants it.
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
