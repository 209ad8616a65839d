//! Peer of another implementation, simulated by the test.

use std::cell::Cell;

use isolane_sim::{NodeConfig, NodeId, Sample, World};
use isolane_wire::{
    BufferTooSmall,
    builtin_data::{BuiltinEndpoints, EndpointData, LocatorList, ParticipantData},
    guid::{EntityId, EntityKind, Guid, GuidPrefix},
    locator::Locator,
    message::{HEADER_BYTES, Header, MessageWriter, Submessage, Submessages, VERSION},
    qos::{QosPolicies, ReliabilityKind},
    sequence::{SequenceNumber, SequenceNumberSet},
};

pub(crate) use crate::submessages::head;
use crate::{
    submessages::{SEDP_READERS, acknack, end, heartbeat, set},
    support::ms,
};

/// Vendor id of eProsima Fast DDS.
const FAST: [u8; 2] = [1, 15];

pub(crate) const WRITER: EntityId = EntityId::user(1, EntityKind::WRITER_NO_KEY);
pub(crate) const KEYED_WRITER: EntityId = EntityId::user(1, EntityKind::WRITER_WITH_KEY);
pub(crate) const READER: EntityId = EntityId::user(2, EntityKind::READER_NO_KEY);

/// Peer simulated by the test. Its address is that of a node that is down, so the tap shows the datagrams sent to it.
pub(crate) struct Peer {
    pub(crate) prefix: GuidPrefix,
    pub(crate) node: NodeId,
    pub(crate) target: NodeId,
    /// Source address of its datagrams; `None` for the address of its node.
    pub(crate) from: Option<Locator>,
    /// Number of its answers to discovery.
    pub(crate) answers: i32,
    /// Number of bytes that it has sent.
    pub(crate) said_bytes: Cell<u64>,
    /// Sequence numbers of its last announcements of writers and of readers.
    pub(crate) announced: [i64; 2],
}

impl Peer {
    /// A peer that the node `target` knows.
    pub(crate) fn of(world: &mut World, target: NodeId) -> Self {
        Self::announced(world, target, |_| {})
    }

    /// As [`Self::of`], with a changed announcement.
    pub(crate) fn announced(
        world: &mut World,
        target: NodeId,
        change: impl FnOnce(&mut ParticipantData),
    ) -> Self {
        world.tap();
        let node = world.node_down(NodeConfig::default());
        let peer = Self::at(node, target, 9);
        peer.announce_itself(world, change);
        peer.answer_discovery(world);
        peer
    }

    /// A peer that the node knows, and that has not answered yet.
    pub(crate) fn unproven(world: &mut World, target: NodeId) -> Self {
        world.tap();
        let node = world.node_down(NodeConfig::default());
        let peer = Self::at(node, target, 9);
        peer.announce_itself(world, |_| {});
        peer
    }

    /// An unknown peer with the given number in its GUID prefix.
    pub(crate) fn at(node: NodeId, target: NodeId, number: u32) -> Self {
        let mut prefix = [9; 12];
        prefix[..2].copy_from_slice(&FAST);
        prefix[8..].copy_from_slice(&number.to_be_bytes());
        Self {
            prefix: GuidPrefix(prefix),
            node,
            target,
            from: None,
            answers: 1,
            said_bytes: Cell::new(0),
            announced: [0; 2],
        }
    }

    /// Answers discovery from another address.
    pub(crate) fn answer_discovery_from(&mut self, world: &mut World, address: [u8; 4]) {
        let from = self.from.replace(Locator::udpv4(address, 50_000));
        self.answers += 1;
        self.answer_discovery(world);
        self.from = from;
    }

    /// Acknowledges all announcements by the peer's SEDP readers, which validates its source address.
    pub(crate) fn answer_discovery(&self, world: &mut World) {
        for pair in SEDP_READERS {
            self.acknack(world, pair, set(1_000, []), self.answers);
        }
    }

    /// Sends an SPDP announcement.
    pub(crate) fn announce_itself(
        &self,
        world: &mut World,
        change: impl FnOnce(&mut ParticipantData),
    ) {
        self.announce_itself_at_once(world, change);
        world.run_for(ms(1));
    }

    /// As [`Self::announce_itself`], without the advance of time.
    pub(crate) fn announce_itself_at_once(
        &self,
        world: &mut World,
        change: impl FnOnce(&mut ParticipantData),
    ) {
        let mut data = ParticipantData::new(self.prefix);
        data.vendor = FAST;
        data.version = VERSION;
        data.builtin_endpoints = BuiltinEndpoints::PARTICIPANT_ANNOUNCER
            | BuiltinEndpoints::PUBLICATIONS_ANNOUNCER
            | BuiltinEndpoints::PUBLICATIONS_DETECTOR
            | BuiltinEndpoints::SUBSCRIPTIONS_ANNOUNCER
            | BuiltinEndpoints::SUBSCRIPTIONS_DETECTOR;
        data.metatraffic_unicast = LocatorList::from_iter([self.node.discovery_locator()]);
        change(&mut data);
        let mut payload = [0; 512];
        let length = data.emit(&mut payload).expect("it fits");
        let head = head(EntityId::SPDP_WRITER, 1);
        self.inject(world, |message| {
            message.data(&head, &payload[..length]).map(drop)
        });
    }

    /// Sends the SPDP farewell.
    pub(crate) fn leave(&self, world: &mut World) {
        let farewell = end(EntityId::SPDP_WRITER, 2);
        self.say(world, |message| message.data(&farewell, &[]).map(drop));
    }

    /// Sends a message.
    pub(crate) fn say(
        &self,
        world: &mut World,
        fill: impl FnOnce(&mut MessageWriter<'_>) -> Result<(), BufferTooSmall>,
    ) {
        self.inject(world, fill);
        world.run_for(ms(1));
    }

    fn inject(
        &self,
        world: &mut World,
        fill: impl FnOnce(&mut MessageWriter<'_>) -> Result<(), BufferTooSmall>,
    ) {
        self.inject_bytes(world, &self.datagram(fill));
    }

    fn inject_bytes(&self, world: &mut World, datagram: &[u8]) {
        let said_bytes = self.said_bytes.get() + datagram.len() as u64;
        self.said_bytes.set(said_bytes);
        let to = self.target.discovery_locator();
        let from = self.from.unwrap_or(self.node.discovery_locator());
        world.inject(to, from, datagram);
    }

    /// Builds a message of the peer without sending it.
    pub(crate) fn datagram(
        &self,
        fill: impl FnOnce(&mut MessageWriter<'_>) -> Result<(), BufferTooSmall>,
    ) -> Vec<u8> {
        let mut buffer = vec![0; 65_507];
        let header = Header {
            version: [2, 3],
            vendor: FAST,
            prefix: self.prefix,
        };
        let mut message = MessageWriter::new(&mut buffer, &header).expect("it fits");
        fill(&mut message).expect("it fits");
        let length = message.len();
        buffer[..length].to_vec()
    }

    /// Sends a datagram as it is.
    pub(crate) fn say_bytes(&self, world: &mut World, datagram: &[u8]) {
        self.inject_bytes(world, datagram);
        world.run_for(ms(1));
    }

    pub(crate) fn heartbeat(&self, world: &mut World, range: (i64, i64), count: i32) {
        let heartbeat = heartbeat(WRITER, range, count);
        self.say(world, |message| message.heartbeat(&heartbeat).map(drop));
    }

    /// Acknowledges and requests samples in the name of a reader.
    pub(crate) fn acknack(
        &self,
        world: &mut World,
        pair: (EntityId, EntityId),
        state: SequenceNumberSet,
        count: i32,
    ) {
        let acknack = acknack(pair, state, count);
        self.say(world, |message| message.acknack(&acknack).map(drop));
    }

    pub(crate) fn value(&self, world: &mut World, number: i64) {
        let payload = Sample::value(number as u64).payload();
        let head = head(WRITER, number);
        self.say(world, |message| message.data(&head, &payload).map(drop));
    }

    /// Announces an endpoint without a key hash, as Fast DDS and Cyclone DDS do.
    pub(crate) fn announce(&mut self, world: &mut World, entity: EntityId, qos: QosPolicies) {
        self.announce_with(world, entity, |data| data.qos = qos);
    }

    /// As [`Self::announce`], with changed data.
    pub(crate) fn announce_with(
        &mut self,
        world: &mut World,
        entity: EntityId,
        change: impl FnOnce(&mut EndpointData),
    ) {
        self.announce_at_once(world, entity, change);
        world.run_for(ms(1));
    }

    /// As [`Self::announce_with`], without the advance of time.
    pub(crate) fn announce_at_once(
        &mut self,
        world: &mut World,
        entity: EntityId,
        change: impl FnOnce(&mut EndpointData),
    ) {
        let locator = self.node.discovery_locator();
        self.announce_filtered(world, entity, None, |data| {
            data.unicast.push(locator).expect("it fits");
            change(data);
        });
    }

    /// Announces a reliable reader with these bytes as its content filter.
    pub(crate) fn announce_filter(&mut self, world: &mut World, entity: EntityId, filter: &[u8]) {
        self.announce_filtered(world, entity, Some(filter), |data| {
            data.qos.reliability.kind = ReliabilityKind::Reliable;
        });
        world.run_for(ms(1));
    }

    fn announce_filtered(
        &mut self,
        world: &mut World,
        entity: EntityId,
        filter: Option<&[u8]>,
        change: impl FnOnce(&mut EndpointData),
    ) {
        let guid = Guid {
            prefix: self.prefix,
            entity,
        };
        let mut data = EndpointData::new(guid);
        data.topic_name.push_str("Foreign").expect("it fits");
        data.type_name.push_str("sim::Sample").expect("it fits");
        change(&mut data);
        let mut payload = [0; 4096];
        let length = data.emit_filtered(filter, &mut payload);
        let length = length.expect("it fits");
        let is_reader = usize::from(!entity.is_writer());
        self.announced[is_reader] += 1;
        let head = head(SEDP_READERS[is_reader].1, self.announced[is_reader]);
        self.inject(world, |message| {
            message.data(&head, &payload[..length]).map(drop)
        });
    }

    /// Returns the last ACKNACK to a writer of the peer: base and requested numbers.
    pub(crate) fn last_acknack(&self, world: &World) -> Option<(i64, Vec<i64>)> {
        let mut last = None;
        for_each_submessage(world, |submessage| {
            if let Submessage::AckNack(acknack) = submessage
                && acknack.writer == WRITER
            {
                let asked = acknack.state.iter().map(SequenceNumber::get).collect();
                last = Some((acknack.state.base().get(), asked));
            }
        });
        last
    }
}

pub(crate) fn for_each_submessage(world: &World, mut see: impl FnMut(Submessage<'_>)) {
    for datagram in world.tapped() {
        for submessage in Submessages::new(datagram, HEADER_BYTES).flatten() {
            see(submessage);
        }
    }
}
