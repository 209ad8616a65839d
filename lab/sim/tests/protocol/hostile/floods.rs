//! Endless peers, endless endpoints, meaningless numbers: tables keep their limits, and matched endpoints get all their
//! samples.

use std::time::Duration;

use isolane_sim::{
    LinkConfig, NodeConfig, NodeId, Random, ReaderHandle, Topic, World, WriterHandle, seeds,
};
use isolane_wire::{
    builtin_data::ParticipantData,
    guid::{EntityId, EntityKind},
    message::{AckNack, Heartbeat},
};

use crate::{
    peer::{Peer, WRITER, head},
    submessages::{SEDP_READERS, acknack, full_set, gap, heartbeat, late_joiner},
    support::{PATIENCE, SECOND, a_pair_in, ms, taken, values, written},
};

/// Number of samples that the honest pair exchanges during an attack.
const SAMPLES: u64 = 400;

/// Longer than the longest accepted lease.
const LEASES_OVER: Duration = Duration::from_secs(302);

/// Two honest nodes over a lossy link, with one topic between them, whose samples are being sent.
struct Honest {
    world: World,
    nodes: [NodeId; 2],
    writer: WriterHandle,
    reader: ReaderHandle,
    chance: Random,
}

impl Honest {
    fn new(seed: u64) -> Self {
        // The attackers use this topic too.
        let topic = Topic::new("Foreign").reliable().keep_all(8);
        let (mut world, (a, b), writer, reader) =
            a_pair_in(World::new(seed).link(LinkConfig::lossy(0.1)), &topic);
        world.publish(writer, ms(1), values(SAMPLES));
        let chance = Random::new(seed).fork();
        Self {
            world,
            nodes: [a, b],
            writer,
            reader,
            chance,
        }
    }

    fn target(&mut self) -> NodeId {
        self.chance.pick(&self.nodes)
    }

    /// Checks that all tables are within their limits, and that the ledgers balance.
    fn assert_bounded(&self) {
        let limits = NodeConfig::default().limits;
        for node in self.nodes {
            let protocol = self.world.protocol(node);
            let known = (
                protocol.remote_participants().count(),
                protocol.remote_endpoints().count(),
            );
            assert!(known.0 <= usize::from(limits.participants), "{known:?}");
            assert!(known.1 <= usize::from(limits.remote_endpoints), "{known:?}");
        }
        let matched = (
            self.world.matched_readers(self.writer),
            self.world.matched_writers(self.reader),
        );
        assert!(
            matched.0.max(matched.1) <= usize::from(limits.matches),
            "{matched:?}"
        );
        assert_eq!(self.world.imbalance(), None);
    }

    /// Checks that all samples of the honest writer reach the honest reader, once and in order.
    fn assert_delivered(&mut self) {
        let (writer, reader) = (self.writer, self.reader);
        self.world.run_until("all came", PATIENCE, |world| {
            taken(world, reader, writer).len() as u64 == SAMPLES
        });
        assert_eq!(
            taken(&self.world, reader, writer),
            written(&self.world, writer, 1)
        );
        self.assert_bounded();
    }
}

/// Sum of a counter of both nodes.
fn counted(honest: &Honest, of: impl Fn(&isolane_rtps::Counters) -> u64) -> u64 {
    let nodes = honest.nodes.iter();
    nodes
        .map(|&node| of(honest.world.protocol(node).counters()))
        .sum()
}

#[test]
fn endless_participants_do_not_disturb_others_and_keep_no_newcomer_out() {
    seeds::for_each(0..10, |seed| {
        let mut honest = Honest::new(seed);
        let attacker = honest.world.node_down(NodeConfig::default());
        for number in 0..1_000 {
            let target = honest.target();
            let peer = Peer::at(attacker, target, number);
            peer.announce_itself(&mut honest.world, |data| data.lease = Duration::MAX);
        }
        honest.assert_delivered();
        assert!(counted(&honest, |counters| counters.participants_displaced) > 800);
        assert!(counted(&honest, |counters| counters.leases_shortened) > 0);
        // The attackers' leases still last for minutes, and the new participant replaces one of them.
        let newcomer = honest.world.node(NodeConfig::default());
        let topic = Topic::new("After").reliable().keep_all(8);
        let writer = honest.world.create_writer(honest.nodes[0], &topic);
        let reader = honest.world.create_reader(newcomer, &topic);
        honest.world.until_matched(&[writer], &[reader]);
    });
}

#[test]
fn endless_endpoints_of_one_participant_find_the_tables_full_and_do_not_disturb_others() {
    seeds::for_each(0..10, |seed| {
        let mut honest = Honest::new(seed);
        let mut peers = honest.nodes.map(|node| Peer::of(&mut honest.world, node));
        for number in 1..=700 {
            let which = honest.chance.below(2) as usize;
            let kind = honest
                .chance
                .pick(&[EntityKind::READER_NO_KEY, EntityKind::WRITER_NO_KEY]);
            let is_of_honest_topic = honest.chance.chance(0.5);
            let entity = EntityId::user(number, kind);
            peers[which].announce_with(&mut honest.world, entity, |data| {
                data.qos = late_joiner();
                if !is_of_honest_topic {
                    data.topic_name = "Other".try_into().expect("it fits");
                }
            });
        }
        let refused = |counters: &isolane_rtps::Counters| {
            counters.endpoints_refused + counters.shares_exceeded
        };
        assert!(counted(&honest, refused) > 0);
        honest.assert_delivered();
    });
}

#[test]
fn endpoints_that_come_and_go_without_end_leave_nothing_behind() {
    let mut honest = Honest::new(1);
    let attacker = honest.world.node_down(NodeConfig::default());
    let target = honest.nodes[1];
    for number in 0..200 {
        let mut peer = Peer::at(attacker, target, number);
        peer.announce_itself(&mut honest.world, |_| {});
        for entity in 1..=5 {
            let entity = EntityId::user(entity, EntityKind::WRITER_NO_KEY);
            peer.announce(&mut honest.world, entity, late_joiner());
        }
        peer.leave(&mut honest.world);
    }
    honest.assert_delivered();
    let protocol = honest.world.protocol(target);
    assert_eq!(protocol.remote_participants().count(), 1);
    assert_eq!(protocol.counters().participants_refused, 0);
    assert_eq!(honest.world.matched_writers(honest.reader), 1);
}

/// Sequence numbers that no honest writer sends.
const ABSURD: [i64; 6] = [
    1 << 32,
    1 << 62,
    i64::MAX - 257,
    i64::MAX - 256,
    i64::MAX - 1,
    i64::MAX,
];

#[test]
fn absurd_numbers_of_a_matched_peer_disturb_only_what_it_says_itself() {
    seeds::for_each(0..20, |seed| {
        let mut honest = Honest::new(seed);
        let (world, node) = (&mut honest.world, honest.nodes[1]);
        let mut peer = Peer::of(world, node);
        peer.announce(world, WRITER, late_joiner());
        let discovery = SEDP_READERS.map(|(_, writer)| writer);
        for round in 0..60 {
            let chance = &mut honest.chance;
            let writer = chance.pick(&[WRITER, WRITER, discovery[0], discovery[1]]);
            let mut number = || match chance.below(3) {
                0 => chance.between(1, 600) as i64,
                _ => chance.pick(&ABSURD),
            };
            let (one, other) = (number(), number());
            let list = full_set(other.min(i64::MAX - 257));
            let heartbeat = Heartbeat {
                is_final: round % 2 == 0,
                ..heartbeat(writer, (one, other), round)
            };
            let gap = gap(writer, one, list);
            let acknack = AckNack {
                is_final: false,
                ..acknack(SEDP_READERS[0], list, round)
            };
            peer.say(world, |message| {
                match round % 4 {
                    0 => message.heartbeat(&heartbeat)?,
                    1 => message.gap(&gap)?,
                    2 => message.acknack(&acknack)?,
                    _ => message.data(&head(writer, one), &[0, 1, 0, 0])?,
                };
                Ok(())
            });
        }
        honest.assert_delivered();
    });
}

#[test]
fn heartbeats_with_ever_larger_counts_draw_one_answer_each_and_no_more() {
    let mut honest = Honest::new(1);
    let (world, node) = (&mut honest.world, honest.nodes[1]);
    let mut peer = Peer::unproven(world, node);
    peer.announce(world, WRITER, late_joiner());
    // Answers to unknown writers: none, after the answers to the announcements have been sent.
    world.run_for(5 * SECOND);
    let stranger = Peer::at(peer.node, node, 77);
    let before = world.bytes_sent_to(peer.node);
    for round in 0..100 {
        stranger.heartbeat(world, (1, i64::MAX), round);
    }
    assert_eq!(world.bytes_sent_to(peer.node), before);
    // Answers to a matched writer: one ACKNACK, if it is not too long for the bytes received.
    let (mut said, mut drawn) = (peer.said_bytes.get(), before);
    for round in 0..100 {
        peer.heartbeat(world, (1, i64::MAX), round * 1_000);
    }
    said = peer.said_bytes.get() - said;
    drawn = world.bytes_sent_to(peer.node) - drawn;
    assert!(drawn > said / 2 && drawn <= 3 * said, "{drawn} for {said}");
    honest.assert_delivered();
}

#[test]
fn zero_and_infinite_leases_do_not_disturb_others() {
    seeds::for_each(0..10, |seed| {
        let mut honest = Honest::new(seed);
        let leases = [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_secs(1),
            Duration::MAX,
        ];
        let attacker = honest.world.node_down(NodeConfig::default());
        for number in 0..400 {
            let target = honest.target();
            let lease = honest.chance.pick(&leases);
            // Forty participants are announced repeatedly, each time with another lease.
            let peer = Peer::at(attacker, target, number % 40);
            let with = |data: &mut ParticipantData| data.lease = lease;
            peer.announce_itself(&mut honest.world, with);
        }
        honest.assert_delivered();
        honest.world.run_for(LEASES_OVER);
        for node in honest.nodes {
            let protocol = honest.world.protocol(node);
            assert_eq!(protocol.remote_participants().count(), 1, "the honest one");
        }
        assert!(counted(&honest, |counters| counters.leases_expired) >= 40);
    });
}

#[test]
fn acknacks_with_huge_sets_draw_what_is_kept_and_do_not_disturb_others() {
    const ACKNACKS: i32 = 400;
    let mut honest = Honest::new(1);
    let (world, node) = (&mut honest.world, honest.nodes[0]);
    let mut peer = Peer::of(world, node);
    let reader = EntityId::user(7, EntityKind::READER_NO_KEY);
    peer.announce(world, reader, late_joiner());
    let before = world.writer_ledger(honest.writer);
    for count in 1..=ACKNACKS {
        // Acknowledges all sent samples but one, and requests as many as a set can have.
        let written = world.written(honest.writer).len() as i64;
        let pair = (reader, world.writer_guid(honest.writer).entity);
        peer.acknack(world, pair, full_set((written - 8).max(1)), count);
    }
    let after = world.writer_ledger(honest.writer);
    // Samples that do not exist are not repaired, and a sample requested again before its repair is sent is repaired
    // once.
    let drawn = after.repaired - before.repaired;
    assert!(drawn > 0 && drawn <= 9 * ACKNACKS as u64, "{drawn} repairs");
    peer.leave(&mut honest.world);
    honest.assert_delivered();
}
