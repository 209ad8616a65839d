//! Participants and endpoints that discovery has announced so far. They supply names, topics, domains and levels for
//! later datagrams.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::SocketAddrV4;

use isolane_wire::builtin_data::{EndpointData, ParticipantData};
use isolane_wire::guid::{Guid, GuidPrefix};
use isolane_wire::level::Level;

use super::message::Item;
use super::network::Datagram;
use crate::limits::{KNOWN_ENDPOINTS, KNOWN_PARTICIPANTS};

/// Parameters PB and DG of the port formulas (RTPS 2.5 9.6.2.3).
const PORT_BASE: u16 = 7400;
const DOMAIN_GAIN: u16 = 250;
/// First ephemeral port of Linux. From this port on, a port number does not show the domain.
const FIRST_EPHEMERAL_PORT: u16 = 32_768;
/// Third byte of the multicast group of level 0 (ARCHITECTURE.md, "Who talks with whom").
const LEVEL_GROUP_BASE: u8 = 16;

/// Purpose of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    Discovery,
    Level(Level),
}

#[derive(Default)]
pub(super) struct Discovery {
    participants: Table<GuidPrefix, Participant>,
    endpoints: Table<Guid, Endpoint>,
}

struct Participant {
    name: String,
    domain: Option<u32>,
}

struct Endpoint {
    topic: String,
    type_name: String,
    level: Level,
}

impl Discovery {
    /// Adds a participant, or replaces its earlier announcement.
    pub(super) fn add_participant(&mut self, data: &ParticipantData) {
        let mut ports = data.metatraffic_unicast.iter().map(|locator| locator.port);
        let by_port = || ports.find_map(|port| domain_of_port(u16::try_from(port).ok()?));
        let participant = Participant {
            name: data.entity_name.as_str().into(),
            domain: data.domain_id.or_else(by_port),
        };
        self.participants
            .set(data.guid.prefix, participant, KNOWN_PARTICIPANTS);
    }

    /// Adds a writer or reader, or replaces its earlier announcement.
    pub(super) fn add_endpoint(&mut self, data: &EndpointData) {
        let endpoint = Endpoint {
            topic: data.topic_name.as_str().into(),
            type_name: data.type_name.as_str().into(),
            level: Level::clamp(data.qos.transport_priority),
        };
        self.endpoints.set(data.guid, endpoint, KNOWN_ENDPOINTS);
    }

    /// Name of a participant, if it has one.
    pub(super) fn participant_name(&self, prefix: GuidPrefix) -> Option<&str> {
        let participant = self.participants.get(&prefix)?;
        Some(participant.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Topic of an endpoint.
    pub(super) fn topic(&self, guid: Guid) -> Option<&str> {
        Some(&self.endpoints.get(&guid)?.topic)
    }

    /// Name of the type of an endpoint.
    pub(super) fn type_name(&self, guid: Guid) -> Option<&str> {
        Some(&self.endpoints.get(&guid)?.type_name)
    }

    /// Domain of a datagram: the announced domain of its sender, else the domain of its ports (RTPS 2.5 9.6.2.3).
    pub(super) fn domain(&self, sender: GuidPrefix, datagram: &Datagram) -> Option<u32> {
        let announced = self.participants.get(&sender).and_then(|it| it.domain);
        let by_port = |address: SocketAddrV4| {
            let is_fixed = address.ip().is_multicast() || address.port() < FIRST_EPHEMERAL_PORT;
            domain_of_port(address.port()).filter(|_| is_fixed)
        };
        announced
            .or_else(|| by_port(datagram.destination))
            .or_else(|| by_port(datagram.source))
    }

    /// Purpose of a datagram, from the first of these that determines it: the multicast group; the writers, if all are
    /// built-in; the announced level of the writers or readers; the DSCP.
    pub(super) fn traffic(&self, datagram: &Datagram, items: &[Item]) -> Option<Traffic> {
        if let Some(traffic) = traffic_of_group(datagram.destination) {
            return Some(traffic);
        }
        let mut writers = items.iter().filter_map(|item| item.writer).peekable();
        if writers.peek().is_some() && writers.all(|writer| writer.entity.is_builtin()) {
            return Some(Traffic::Discovery);
        }
        let level_of = |guid: Option<Guid>| Some(self.endpoints.get(&guid?)?.level);
        let levels = items
            .iter()
            .filter_map(|item| level_of(item.writer).or_else(|| level_of(item.reader)));
        let class = (datagram.dscp & 7 == 0 && datagram.dscp > 0).then_some(datagram.dscp >> 3);
        levels
            .max()
            .or_else(|| class.and_then(Level::new))
            .map(Traffic::Level)
    }
}

/// Purpose of a datagram to a multicast group of discovery or of a level.
fn traffic_of_group(destination: SocketAddrV4) -> Option<Traffic> {
    let offset = destination.port().checked_sub(PORT_BASE)? % DOMAIN_GAIN;
    match (destination.ip().octets(), offset) {
        ([239, 255, 0, 1], 0) => Some(Traffic::Discovery),
        ([239, 255, third, _], 1) => {
            let level = third.checked_sub(LEVEL_GROUP_BASE)?;
            Level::new(level).map(Traffic::Level)
        }
        _ => None,
    }
}

fn domain_of_port(port: u16) -> Option<u32> {
    Some(u32::from(port.checked_sub(PORT_BASE)? / DOMAIN_GAIN))
}

/// Bounded map. If it is full, a new key replaces the oldest key.
struct Table<K, V> {
    values: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self {
            values: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, V> Table<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    fn set(&mut self, key: K, value: V, limit: usize) {
        if self.values.insert(key, value).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn to(address: [u8; 4], port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::from(address), port)
    }

    #[test]
    fn groups_say_what_they_carry() {
        let level = |number| Level::new(number).map(Traffic::Level);
        assert_eq!(
            traffic_of_group(to([239, 255, 0, 1], 7400)),
            Some(Traffic::Discovery)
        );
        assert_eq!(
            traffic_of_group(to([239, 255, 0, 1], 8150)),
            Some(Traffic::Discovery)
        );
        assert_eq!(traffic_of_group(to([239, 255, 23, 0], 7401)), level(7));
        assert_eq!(traffic_of_group(to([239, 255, 24, 0], 7401)), None);
        assert_eq!(traffic_of_group(to([239, 255, 0, 1], 7401)), None);
        assert_eq!(traffic_of_group(to([10, 0, 0, 1], 80)), None);
    }

    #[test]
    fn a_table_forgets_the_oldest() {
        let mut table = Table::default();
        for number in 0..4 {
            table.set(number, number, 3);
        }
        assert_eq!((table.get(&0), table.get(&3)), (None, Some(&3)));
        table.set(1, 9, 3);
        assert_eq!((table.get(&1), table.values.len()), (Some(&9), 3));
    }
}
