//! Participants, datagrams in flight between them, and virtual time.

use std::{collections::VecDeque, time::Duration};

use isolane_rtps::{
    DeliveryMode, Destinations, EndpointConfig, Limits, LocalParticipant, MessageReceiver, Network,
    ParticipantConfig, Priority, ReaderId, StatusChange, Timing, Work, WorkKind, WriterId,
};
use isolane_wire::{
    builtin_data::LocatorList,
    cdr::{CdrError, KeyHash},
    guid::{EntityId, Guid, GuidPrefix},
    locator::Locator,
    sequence::SequenceNumber,
    time::Instant,
};

use super::{
    check_sent, describe,
    states::{Seen, note_reader_status, note_seen, note_writer_status},
};
use crate::{
    adversary::{Cast, TOPICS, TYPE, qos},
    counting_allocator::allocator_calls_of,
    eavesdropper::Line,
    input::Input,
    limits::{MAX_ENDPOINTS, MAX_FLYING, MAX_STEPS},
    policies,
};

/// Maximum size of a datagram, in bytes.
const DATAGRAM_BYTES: usize = 65_507;
/// Small limits, so that every table fills up quickly.
pub(super) const LIMITS: Limits = Limits {
    local_endpoints: MAX_ENDPOINTS as u16,
    participants: 4,
    remote_endpoints: 12,
    matches: 12,
    fixed_memory: false,
    sample_bytes: 1 << 30,
};
const SPDP_GROUP: Locator = Locator::udpv4([239, 255, 0, 1], 7400);
/// Maximum payload sizes of endpoints: below the size of a fragment, near that of a datagram, and above both.
const PAYLOAD_BYTES: [usize; 4] = [64, 1400, 256, 70_000];

/// Participant with its user's endpoints.
pub(super) struct Node {
    pub(super) protocol: LocalParticipant,
    pub(super) writers: Vec<WriterId>,
    pub(super) readers: Vec<ReaderId>,
    /// Number of datagrams passed to the participant.
    pub(super) received: u64,
    incarnation: u8,
}

/// Datagram in flight.
pub(super) struct Flying {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) flying: VecDeque<Flying>,
    pub(super) now: Instant,
    multicast: bool,
    buffer: Vec<u8>,
}

/// Index of a sender that is no node.
pub(super) const STRANGER: usize = 3;

pub(super) fn address(index: usize) -> Locator {
    Locator::udpv4([10, 0, 0, 1 + index as u8], 7410)
}

/// Returns the key hash of a sample, from the first byte after the encapsulation header.
fn key_of(payload: &[u8], _key_only: bool) -> Result<KeyHash, CdrError> {
    let key = payload.get(4).ok_or(CdrError::Truncated)?;
    Ok([key % 4; 16])
}

impl World {
    /// Creates two or three local participants with the endpoints that the input selects, after mutual discovery.
    pub(super) fn new(input: &mut Input<'_>) -> Self {
        let choice = input.byte();
        let mut world = Self {
            nodes: Vec::new(),
            flying: VecDeque::new(),
            now: Instant::new(1_000_000),
            multicast: choice & 4 != 0,
            buffer: vec![0; DATAGRAM_BYTES],
        };
        for index in 0..2 + usize::from(choice & 1) {
            let node = world.node(index, 1);
            world.nodes.push(node);
        }
        for _ in 0..choice >> 4 & 3 {
            world.create(input, true);
            world.create(input, false);
        }
        if choice & 2 != 0 {
            world.settle();
        }
        world
    }

    fn node(&self, index: usize, incarnation: u8) -> Node {
        let mut config = ParticipantConfig::new(0, prefix(index, incarnation), 7 + index as u64);
        config.metatraffic_unicast = LocatorList::from_iter([address(index)]);
        config.networks = vec![Network {
            address: [10, 0, 0, 1 + index as u8],
            prefix_bits: 24,
        }];
        config.multicast = self.multicast;
        config.limits = LIMITS;
        config.timing = Timing::default();
        config.announce_to = if self.multicast {
            config.metatraffic_multicast = LocatorList::from_iter([SPDP_GROUP]);
            vec![SPDP_GROUP]
        } else {
            (0..3).map(address).collect()
        };
        Node {
            protocol: LocalParticipant::new(config, self.now),
            writers: Vec::new(),
            readers: Vec::new(),
            received: 0,
            incarnation,
        }
    }

    /// Replaces the participant of a node by a new one, without a departure announcement.
    pub(super) fn restart(&mut self, index: usize) {
        let incarnation = self.nodes[index].incarnation.wrapping_add(1);
        self.nodes[index] = self.node(index, incarnation);
    }

    /// Creates an endpoint on some node. The participant may refuse it with an error.
    pub(super) fn create(&mut self, input: &mut Input<'_>, is_writer: bool) {
        let now = self.now;
        let index = input.index(self.nodes.len());
        let multicast = self.multicast;
        let node = &mut self.nodes[index];
        let topic_name = input.pick(&TOPICS);
        let choice = input.byte();
        let config = EndpointConfig {
            topic_name,
            type_name: TYPE,
            // Only the topic decides, so all nodes agree.
            keyed: topic_name == TOPICS[1],
            key_of: (topic_name == TOPICS[1]).then_some(key_of),
            qos: {
                let mut qos = qos(input);
                policies::add(&mut qos, choice >> 4);
                qos
            },
            max_payload_bytes: PAYLOAD_BYTES[usize::from(choice & 3)],
            shares_long: false,
            max_datagram_bytes: isolane_rtps::limits::MAX_DATA_PAYLOAD_BYTES,
            unicast: LocatorList::from_iter([address(index)]),
            multicast: if multicast && choice & 4 != 0 {
                LocatorList::from_iter([Locator::udpv4([239, 255, 16, 0], 7401)])
            } else {
                LocatorList::new()
            },
        };
        let is_filtered = policies::is_filtered(choice >> 4);
        if is_writer && node.writers.len() < MAX_ENDPOINTS {
            let created = node.protocol.create_writer(now, &config).ok();
            if let Some(writer) = created.filter(|_| is_filtered) {
                node.protocol.evaluate_filters(writer, policies::compile);
            }
            node.writers.extend(created);
        } else if !is_writer && node.readers.len() < MAX_ENDPOINTS {
            let delivery = if choice & 8 != 0 {
                DeliveryMode::View
            } else {
                DeliveryMode::Cache
            };
            let protocol = &mut node.protocol;
            let created = match is_filtered {
                true => protocol.create_filtered_reader(now, &config, delivery, policies::filter()),
                false => protocol.create_reader(now, &config, delivery),
            };
            node.readers.extend(created.ok());
        }
    }

    /// Returns the entities that adversarial messages may name now.
    pub(super) fn cast(&self) -> Cast {
        let mut cast = Cast {
            entities: Cast::builtin(),
            ..Cast::default()
        };
        for (index, node) in self.nodes.iter().enumerate() {
            cast.prefixes.push(node.protocol.guid_prefix());
            cast.locators.push(address(index));
            let writers = node
                .writers
                .iter()
                .filter_map(|&id| node.protocol.writer_data(id));
            let readers = node
                .readers
                .iter()
                .filter_map(|&id| node.protocol.reader_data(id));
            let guids = writers.chain(readers).map(|data| data.guid.entity);
            cast.entities.extend(guids);
        }
        // Participants and an address of the adversary itself.
        cast.prefixes
            .extend([GuidPrefix([0xa1; 12]), GuidPrefix([0xa2; 12])]);
        cast.locators.push(Locator::udpv4([10, 0, 0, 66], 7410));
        let kinds = [0x02, 0x03, 0x04, 0x07];
        cast.entities
            .extend(kinds.map(|kind| EntityId::user(9, kind)));
        cast
    }

    /// Returns the matches of a node, as known to an eavesdropper.
    pub(super) fn lines(&self, of: usize) -> Vec<Line> {
        let protocol = &self.nodes[of].protocol;
        let mut lines = Vec::new();
        for &id in &self.nodes[of].readers {
            let Some(data) = protocol.reader_data(id) else {
                continue;
            };
            let line = |(writer, done): (Guid, SequenceNumber)| Line {
                writer,
                reader: data.guid,
                next: done.get() + 1,
                is_to_reader: true,
            };
            lines.extend(protocol.matched_writer_progress(id).map(line));
        }
        for &id in &self.nodes[of].writers {
            let Some(data) = protocol.writer_data(id) else {
                continue;
            };
            let line = |(reader, next): (Guid, SequenceNumber)| Line {
                writer: data.guid,
                reader,
                next: next.get(),
                is_to_reader: false,
            };
            lines.extend(protocol.matched_reader_progress(id).map(line));
        }
        lines
    }

    /// Sends a datagram from a node to every node that an address reaches.
    pub(super) fn send(&mut self, from: usize, to: &[Locator], bytes: &[u8]) {
        for locator in to {
            for index in 0..self.nodes.len() {
                let reaches = locator.is_multicast() || locator.ipv4() == address(index).ipv4();
                if reaches && self.flying.len() < MAX_FLYING {
                    let bytes = bytes.to_vec();
                    self.flying.push_back(Flying {
                        from,
                        to: index,
                        bytes,
                    });
                }
            }
        }
    }

    /// Delivers a datagram from a node, or from the address of [`STRANGER`].
    pub(super) fn arrive(&mut self, from: usize, to: usize, bytes: &[u8]) {
        let now = self.now;
        let node = &mut self.nodes[to];
        let from = address(from);
        node.received += 1;
        let mut message = MessageReceiver::new(from);
        // Each pair of a submessage and a reader is delivered at most once, which bounds the number of deliveries.
        let bound = (bytes.len() / 4 + 1) * (node.readers.len() + 1);
        for _ in 0..=bound {
            let mut delivery = None;
            let calls = allocator_calls_of(|| {
                delivery = node.protocol.receive(now, &mut message, bytes);
            });
            assert_eq!(calls, 0, "receiving takes or returns memory");
            let Some(delivery) = delivery else {
                return;
            };
            let payload = node.protocol.payload(&delivery, bytes);
            assert_eq!(payload.len(), delivery.payload.len(), "{delivery:?}");
            note_seen(match delivery.is_assembled {
                true => Seen::WholeView,
                false => Seen::View,
            });
            // As for a user's callback, the memory of an assembled sample is lent.
            let calls = allocator_calls_of(|| {
                if let Some(lent) = node.protocol.lend(&delivery) {
                    node.protocol.give_back(&delivery, lent);
                }
            });
            assert_eq!(calls, 0, "lending takes or returns memory");
            assert!(node.readers.contains(&delivery.reader));
        }
        panic!(
            "a datagram of {} bytes is delivered without end",
            bytes.len()
        );
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.settle();
    }

    /// Runs local participants and delivers datagrams until nothing is due.
    pub(super) fn settle(&mut self) {
        let mut steps = 0;
        loop {
            let before = steps;
            for index in 0..self.nodes.len() {
                steps += self.work(index);
            }
            if let Some(Flying { from, to, bytes }) = self.flying.pop_front() {
                self.arrive(from, to, &bytes);
                steps += 1;
            }
            if steps == before {
                return;
            }
            assert!(
                steps < MAX_STEPS,
                "work without end: {}",
                describe(&self.nodes)
            );
        }
    }

    /// Runs the due timers and all filed work of one participant; returns the number of steps.
    fn work(&mut self, index: usize) -> usize {
        let now = self.now;
        let mut buffer = std::mem::take(&mut self.buffer);
        let protocol = &mut self.nodes[index].protocol;
        let calls = allocator_calls_of(|| protocol.advance(now));
        assert_eq!(calls, 0, "time takes or returns memory");
        assert!(
            protocol.next_time().is_none_or(|next| next > now),
            "a timer is due again at once"
        );
        let mut steps = 0;
        while let Some(priority) = most_urgent(&self.nodes[index].protocol) {
            let protocol = &mut self.nodes[index].protocol;
            assert!(
                protocol.next_level(priority).is_some(),
                "ready without work"
            );
            let mut work = None;
            let calls =
                allocator_calls_of(|| work = protocol.poll_transmit(now, priority, &mut buffer));
            // After start, only the content filter of a remote reader allocates, when the reader is discovered.
            let is_discovery = |work: &Work| work.kind == WorkKind::Discovery;
            assert!(
                calls == 0 || work.as_ref().is_some_and(is_discovery),
                "{work:?} takes or returns memory"
            );
            let work = work.expect("what is ready can be done");
            let datagram = &buffer[..work.bytes];
            if !datagram.is_empty() {
                check_sent(datagram, protocol.guid_prefix());
                let to = match &work.to {
                    Destinations::Writer(writer) => protocol.destinations(*writer).to_vec(),
                    Destinations::Announce => protocol.announce_to().to_vec(),
                    Destinations::Subset(writer, places) => {
                        protocol.some_destinations(*writer, *places).to_vec()
                    }
                    Destinations::Listed(listed) => listed.to_vec(),
                };
                self.send(index, &to, datagram);
            }
            steps += 1;
            assert!(
                steps < MAX_STEPS,
                "work without end: {}",
                describe(&self.nodes)
            );
        }
        while let Some(change) = self.nodes[index].protocol.next_status() {
            self.hear_news(index, change);
            steps += 1;
            assert!(steps < MAX_STEPS, "news without end");
        }
        self.buffer = buffer;
        steps
    }

    /// Processes a status change reported to a user.
    fn hear_news(&mut self, index: usize, change: StatusChange) {
        match change {
            StatusChange::Discovery => {}
            StatusChange::Writer(_, status) => note_writer_status(status),
            StatusChange::Reader(id, status) => {
                note_reader_status(status);
                let protocol = &mut self.nodes[index].protocol;
                if let Some(changed) = protocol.take_liveliness_changed(id) {
                    if changed.not_alive_change > 0 {
                        note_seen(Seen::NotAlive);
                    } else if changed.not_alive_change < 0 && changed.alive_change > 0 {
                        note_seen(Seen::AliveAgain);
                    }
                }
            }
        }
    }

    /// Lends the datagram buffer to `fill`.
    pub(super) fn with_buffer<T>(&mut self, fill: impl FnOnce(&mut Self, &mut [u8]) -> T) -> T {
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = fill(self, &mut buffer);
        self.buffer = buffer;
        result
    }

    /// Ends the world: deletes all endpoints, lets time pass, and checks the ledgers again.
    pub(super) fn finish(mut self) {
        self.settle();
        self.check();
        let now = self.now;
        for node in &mut self.nodes {
            for writer in node.writers.drain(..) {
                node.protocol.delete_writer(now, writer);
            }
            for reader in node.readers.drain(..) {
                node.protocol.delete_reader(now, reader);
            }
            let left =
                node.protocol.local_writers().count() + node.protocol.local_readers().count();
            assert_eq!(left, 0, "an endpoint was not deleted");
        }
        self.settle();
        self.pass(Duration::from_secs(1));
        self.check();
    }
}

pub(super) fn prefix(index: usize, incarnation: u8) -> GuidPrefix {
    let mut prefix = [0; 12];
    prefix[..2].copy_from_slice(&isolane_wire::message::VENDOR_ID);
    prefix[10] = index as u8;
    prefix[11] = incarnation;
    GuidPrefix(prefix)
}

fn most_urgent(protocol: &LocalParticipant) -> Option<Priority> {
    Priority::descending().find(|priority| protocol.ready() >> priority.get() & 1 == 1)
}
