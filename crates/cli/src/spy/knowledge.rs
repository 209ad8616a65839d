//! What discovery has said so far, so that later datagrams have names: whose they are, of which topic
//! and of which level. Bounded; the oldest is forgotten first.

use std::collections::VecDeque;
use std::net::SocketAddrV4;

use isolane_wire::{
    discovery::{EndpointData, ParticipantData},
    guid::{EntityId, Guid, GuidPrefix},
    level::Level,
    locator::LocatorList,
};

use super::message::{Announcement, Item};
use super::network::Datagram;
use crate::limits::{KNOWN_ADDRESSES, KNOWN_ENDPOINTS, KNOWN_PARTICIPANTS};

/// RTPS 2.5 §9.6.2.3: PB and DG.
const PORT_BASE: u16 = 7400;
const DOMAIN_GAIN: u16 = 250;
/// Ports from here on are the kernel's to give away, whatever domain they would belong to.
const FIRST_EPHEMERAL_PORT: u16 = 32_768;
/// The third byte of the group of level 0 (ARCHITECTURE.md, "Who talks with whom").
const LEVEL_GROUP_BASE: u8 = 16;

/// What a datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    Discovery,
    Level(Level),
}

/// What is known.
#[derive(Default)]
pub(crate) struct Knowledge {
    participants: Table<GuidPrefix, Participant>,
    endpoints: Table<Guid, Endpoint>,
    /// What is received at an address; `None`: several levels are.
    addresses: Table<SocketAddrV4, Option<Traffic>>,
}

struct Participant {
    name: String,
    domain: Option<u32>,
}

struct Endpoint {
    topic: String,
    level: Level,
}

impl Knowledge {
    /// Remembers what an item announces.
    pub(crate) fn learn(&mut self, item: &Item<'_>) {
        match &item.announcement {
            Some(Announcement::Participant(data)) => self.learn_participant(data),
            Some(Announcement::Writer(data) | Announcement::Reader(data)) => {
                self.learn_endpoint(data);
            }
            _ => {}
        }
    }

    /// Takes over which writers and readers there are: their GUIDs mean the same at any time of a capture. Names,
    /// domains and addresses are as they were last announced, and stay behind.
    pub(crate) fn learn_endpoints_of(&mut self, later: Self) {
        self.endpoints = later.endpoints;
    }

    fn learn_participant(&mut self, data: &ParticipantData) {
        let ports = data.metatraffic_unicast.iter().filter_map(|locator| {
            let port = u16::try_from(locator.port).ok()?;
            domain_of_port(port)
        });
        let domain = data.domain_id.or(ports.map(u32::from).next());
        let participant = Participant {
            name: data.entity_name.as_str().into(),
            domain,
        };
        let prefix = data.guid.prefix;
        self.participants
            .set(prefix, participant, KNOWN_PARTICIPANTS);
        self.learn_addresses(&data.metatraffic_unicast, Traffic::Discovery);
    }

    fn learn_endpoint(&mut self, data: &EndpointData) {
        let level = Level::clamp(data.qos.transport_priority);
        let topic = String::from(data.topic_name.as_str());
        self.endpoints
            .set(data.guid, Endpoint { topic, level }, KNOWN_ENDPOINTS);
        self.learn_addresses(&data.unicast, Traffic::Level(level));
    }

    fn learn_addresses(&mut self, locators: &LocatorList, traffic: Traffic) {
        for address in locators
            .iter()
            .filter_map(|locator| SocketAddrV4::try_from(*locator).ok())
        {
            let known = self.addresses.get(&address);
            let agreed = known.is_none_or(|known| *known == Some(traffic));
            let entry = agreed.then_some(traffic);
            self.addresses.set(address, entry, KNOWN_ADDRESSES);
        }
    }

    /// The name a participant has given itself.
    pub(crate) fn participant_name(&self, prefix: GuidPrefix) -> Option<&str> {
        let participant = self.participants.get(&prefix)?;
        Some(participant.name.as_str()).filter(|name| !name.is_empty())
    }

    /// The topic of an item: that of its writer, or of its reader, or the one that is announced.
    pub(crate) fn topic_of<'a>(&'a self, item: &'a Item<'_>) -> Option<&'a str> {
        if let Some(Announcement::Writer(data) | Announcement::Reader(data)) = &item.announcement {
            return Some(&data.topic_name);
        }
        let of = |guid: &Option<Guid>| self.endpoints.get(guid.as_ref()?);
        of(&item.writer)
            .or_else(|| of(&item.reader))
            .map(|endpoint| endpoint.topic.as_str())
    }

    /// The domain of a datagram: its sender's, or the one its ports belong to.
    pub(crate) fn domain_of(&self, prefix: GuidPrefix, datagram: &Datagram<'_>) -> Option<u32> {
        let announced = self
            .participants
            .get(&prefix)
            .and_then(|participant| participant.domain);
        let by_port = |address: &SocketAddrV4| {
            let is_fixed = address.ip().is_multicast() || address.port() < FIRST_EPHEMERAL_PORT;
            domain_of_port(address.port()).filter(|_| is_fixed)
        };
        announced
            .or_else(|| by_port(&datagram.destination).map(u32::from))
            .or_else(|| by_port(&datagram.source).map(u32::from))
    }

    /// What a datagram is for: by its group; by whom its submessages are about; by what was announced
    /// of its destination; by its DSCP; by its port: the surest first.
    pub(crate) fn traffic_of(
        &self,
        datagram: &Datagram<'_>,
        items: &[Item<'_>],
    ) -> Option<Traffic> {
        if let Some(traffic) = traffic_of_group(datagram.destination) {
            return Some(traffic);
        }
        let entities = items.iter().filter_map(|item| Some(item.writer?.entity));
        // Some implementations receive discovery and samples at one port.
        if entities.clone().next().is_some() && entities.clone().all(EntityId::is_builtin) {
            return Some(Traffic::Discovery);
        }
        let announced = items.iter().filter_map(|item| self.level_of(item)).max();
        if let Some(level) = announced {
            return Some(Traffic::Level(level));
        }
        if let Some(Some(traffic @ Traffic::Level(_))) = self.addresses.get(&datagram.destination) {
            return Some(*traffic);
        }
        let class = (datagram.dscp & 7 == 0 && datagram.dscp > 0).then_some(datagram.dscp >> 3);
        if let Some(level) = class.and_then(Level::new) {
            return Some(Traffic::Level(level));
        }
        if entities.clone().next().is_some() {
            return None;
        }
        let port = datagram.destination.port();
        let offset = port.checked_sub(PORT_BASE)? % DOMAIN_GAIN;
        let is_metatraffic =
            port < FIRST_EPHEMERAL_PORT && offset >= 10 && offset.is_multiple_of(2);
        is_metatraffic.then_some(Traffic::Discovery)
    }

    /// The level of an item's writer, or else of its reader, as discovery has said.
    fn level_of(&self, item: &Item<'_>) -> Option<Level> {
        let of = |guid: Option<Guid>| Some(self.endpoints.get(&guid?)?.level);
        of(item.writer).or_else(|| of(item.reader))
    }
}

/// What is sent to a group: discovery's, or a level's (definitions: ports).
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

fn domain_of_port(port: u16) -> Option<u16> {
    Some(port.checked_sub(PORT_BASE)? / DOMAIN_GAIN)
}

/// A bounded table: what was put in first is forgotten first.
struct Table<K, V>(VecDeque<(K, V)>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K: PartialEq, V> Table<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        let found = self.0.iter().rev().find(|(known, _)| known == key);
        found.map(|(_, value)| value)
    }

    fn set(&mut self, key: K, value: V, limit: usize) {
        if let Some((_, known)) = self.0.iter_mut().find(|(known, _)| *known == key) {
            *known = value;
            return;
        }
        if self.0.len() == limit {
            self.0.pop_front();
        }
        self.0.push_back((key, value));
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
        assert_eq!((table.get(&1), table.0.len()), (Some(&9), 3));
    }
}
