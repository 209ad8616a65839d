//! Arbitrary datagrams: a local participant does not panic, its ledgers balance, and it still works afterwards.

use isolane_sim::{LinkConfig, NodeConfig, NodeId, ReaderHandle, Topic, World, WriterHandle};
use isolane_wire::{
    guid::{EntityId, GuidPrefix},
    locator::Locator,
    message::{AckNack, DataPrefix, Gap, Header, Heartbeat, MessageWriter, StatusInfo},
};
use proptest::{collection::vec, prelude::*, sample::select};

use crate::{
    submessages::{acknack, gap, head, heartbeat, set},
    support::{SECOND, a_pair_in, ms, two_nodes, values},
};

const SOMEWHERE: Locator = Locator::udpv4([10, 0, 200, 1], 7410);

/// Two nodes with matched endpoints of several kinds.
struct Victims {
    world: World,
    nodes: [NodeId; 2],
    writers: Vec<WriterHandle>,
    readers: Vec<ReaderHandle>,
}

impl Victims {
    fn new() -> Self {
        let mut world = World::new(1);
        let (a, b) = two_nodes(&mut world);
        let topics = [
            Topic::new("Reliable").reliable().keep_all(8),
            Topic::new("Durable")
                .reliable()
                .transient_local()
                .keep_last(2)
                .keyed(),
            Topic::new("Effort"),
        ];
        let mut writers = Vec::new();
        let mut readers = Vec::new();
        for topic in &topics {
            writers.push(world.create_writer(a, topic));
            readers.push(world.create_reader(b, topic));
            let (writer, reader) = (writers.len() - 1, readers.len() - 1);
            world.until_matched(&writers[writer..], &readers[reader..]);
        }
        Self {
            world,
            nodes: [a, b],
            writers,
            readers,
        }
    }

    /// Sends a datagram to both nodes.
    fn suffer(&mut self, datagram: &[u8]) {
        for node in self.nodes {
            self.world
                .inject(node.discovery_locator(), SOMEWHERE, datagram);
        }
        self.world.run_for(ms(1));
    }

    /// Checks that the ledgers balance, and that samples of an attacked participant reach a new one.
    fn survive(mut self) {
        assert_eq!(self.world.imbalance(), None);
        self.world.run_for(30 * SECOND);
        assert_eq!(self.world.imbalance(), None);
        let newcomer = self.world.node(NodeConfig::default());
        let topic = Topic::new("After").reliable().keep_all(8);
        let writer = self.world.create_writer(self.nodes[0], &topic);
        let reader = self.world.create_reader(newcomer, &topic);
        self.world.until_matched(&[writer], &[reader]);
        self.world.enqueue(writer, values(5));
        self.world.run_for(5 * SECOND);
        assert_eq!(self.world.values(reader), [1, 2, 3, 4, 5]);
    }

    /// Entity ids for forged submessages: those of the nodes' endpoints and of discovery.
    fn entities(&self) -> Vec<EntityId> {
        let writers = self
            .writers
            .iter()
            .map(|&writer| self.world.writer_guid(writer).entity);
        let readers = self
            .readers
            .iter()
            .map(|&reader| self.world.reader_guid(reader).entity);
        let builtin = [
            EntityId::UNKNOWN,
            EntityId::SPDP_WRITER,
            EntityId::SEDP_PUBLICATIONS_WRITER,
            EntityId::SEDP_PUBLICATIONS_READER,
            EntityId::SEDP_SUBSCRIPTIONS_WRITER,
            EntityId::SEDP_SUBSCRIPTIONS_READER,
        ];
        writers.chain(readers).chain(builtin).collect()
    }
}

/// Datagrams of a real conversation, discovery, repairs and ends included.
fn real_datagrams() -> Vec<Vec<u8>> {
    let mut world = World::new(1).link(LinkConfig::lossy(0.3));
    world.tap();
    let topic = Topic::new("Reliable").reliable().keep_all(8);
    let (mut world, (a, _), writer, reader) = a_pair_in(world, &topic);
    world.publish(writer, ms(1), values(20));
    world.run_for(SECOND);
    world.delete_reader(reader);
    world.run_for(SECOND);
    world.leave(a);
    world.tapped().to_vec()
}

/// Sequence numbers at the limits of the protocol and of a proxy's window.
fn edge() -> impl Strategy<Value = i64> {
    let edges = [
        1,
        2,
        3,
        64,
        255,
        256,
        257,
        258,
        512,
        1 << 31,
        1 << 32,
        1 << 62,
        i64::MAX - 257,
        i64::MAX - 256,
        i64::MAX - 1,
        i64::MAX,
    ];
    prop_oneof![select(edges.to_vec()), 1..600i64]
}

/// Forged submessage, with indices into the lists of entity ids and GUID prefixes.
#[derive(Debug, Clone)]
struct Lie {
    kind: u8,
    prefix: usize,
    writer: usize,
    reader: usize,
    numbers: (i64, i64),
    bits: Vec<u8>,
    count: i32,
    is_final: bool,
}

fn lie() -> impl Strategy<Value = Lie> {
    (
        (0..4u8, 0..2usize, 0..12usize, 0..12usize),
        (edge(), edge()),
        vec(any::<u8>(), 0..8),
        select(vec![i32::MIN, -1, 0, 1, 2, 1000, i32::MAX]),
        any::<bool>(),
    )
        .prop_map(
            |((kind, prefix, writer, reader), numbers, bits, count, is_final)| Lie {
                kind,
                prefix,
                writer,
                reader,
                numbers,
                bits,
                count,
                is_final,
            },
        )
}

impl Lie {
    /// Datagram in the name of one of these participants.
    fn datagram(&self, prefixes: &[GuidPrefix], entities: &[EntityId]) -> Vec<u8> {
        let mut buffer = [0; 1024];
        let header = Header::new(prefixes[self.prefix]);
        let mut message = MessageWriter::new(&mut buffer, &header).expect("it fits");
        let reader = entities[self.reader % entities.len()];
        let writer = entities[self.writer % entities.len()];
        let (low, high) = (self.numbers.0, self.numbers.1);
        let base = high.min(i64::MAX - 257);
        let state = set(base, self.bits.iter().map(|&bit| base + i64::from(bit)));
        let written = match self.kind {
            0 => message.heartbeat(&Heartbeat {
                reader,
                is_final: self.is_final,
                ..heartbeat(writer, (low, high), self.count)
            }),
            1 => message.acknack(&AckNack {
                is_final: self.is_final,
                ..acknack((reader, writer), state, self.count)
            }),
            2 => message.gap(&Gap {
                reader,
                ..gap(writer, low, state)
            }),
            _ => message.data(
                &DataPrefix {
                    reader,
                    key_hash: self.is_final.then_some([self.count as u8; 16]),
                    status: (self.count < 0).then_some(StatusInfo {
                        disposed: true,
                        unregistered: self.is_final,
                    }),
                    ..head(writer, low)
                },
                &self.bits,
            ),
        };
        written.expect("it fits");
        let length = message.len();
        buffer[..length].to_vec()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_do_no_harm(
        datagrams in vec(vec(any::<u8>(), 0..300), 1..40),
        has_header in any::<bool>(),
    ) {
        let mut victims = Victims::new();
        for bytes in &datagrams {
            let mut datagram = if has_header { b"RTPS\x02\x05\x01\xee".to_vec() } else { Vec::new() };
            datagram.extend(bytes);
            victims.suffer(&datagram);
        }
        victims.survive();
    }

    #[test]
    fn mutated_real_datagrams_do_no_harm(
        mutations in vec((any::<prop::sample::Index>(), vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), 0..64usize), 1..120),
    ) {
        let real = real_datagrams();
        let mut victims = Victims::new();
        for (which, changes, cut) in mutations {
            let mut datagram = real[which.index(real.len())].clone();
            for (at, value) in changes {
                let at = at.index(datagram.len());
                datagram[at] = value;
            }
            // Most datagrams keep their length.
            let length = datagram.len() - cut.saturating_sub(48).min(datagram.len());
            victims.suffer(&datagram[..length]);
        }
        // The real datagrams include a node's farewell, which is accepted.
        let imbalance = victims.world.imbalance();
        prop_assert_eq!(imbalance, None);
        victims.world.run_for(10 * SECOND);
    }

    #[test]
    fn well_formed_lies_of_matched_peers_do_no_harm(lies in vec(lie(), 1..80)) {
        let mut victims = Victims::new();
        let prefixes = victims.nodes.map(|node| victims.world.protocol(node).guid_prefix());
        let entities = victims.entities();
        for lie in &lies {
            victims.suffer(&lie.datagram(&prefixes, &entities));
        }
        victims.survive();
    }
}
