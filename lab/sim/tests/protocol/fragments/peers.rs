//! Fragments as other implementations send them, and the requests that isolane answers them with.

use isolane_rtps::limits::ASSEMBLY_PATIENCE;
use isolane_sim::{NodeConfig, ReaderHandle, Sample, World};
use isolane_wire::{
    guid::{EntityId, GuidPrefix},
    message::{DataFragPrefix, HeartbeatFrag, NackFrag, Submessage},
    qos::{DurabilityKind, QosPolicies, ReliabilityKind},
    sequence::SequenceNumber,
};

use super::{large, padded};
use crate::peer::{Peer, WRITER, for_each_submessage};

/// Form of a peer's fragments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) fragment_bytes: u16,
    /// Number of fragments in one submessage.
    pub(super) fragments: u16,
}

pub(super) const CYCLONE: Cut = Cut {
    fragment_bytes: 1_344,
    fragments: 10,
};
const FAST: Cut = Cut {
    fragment_bytes: 65_324,
    fragments: 1,
};
const ONE_BY_ONE: Cut = Cut {
    fragment_bytes: 1_024,
    fragments: 1,
};

/// Returns the fields of a DATA_FRAG in front of its fragments.
pub(super) fn part(
    sequence: i64,
    first: u32,
    fragments: u16,
    cut: Cut,
    bytes: usize,
) -> DataFragPrefix {
    DataFragPrefix {
        reader: EntityId::UNKNOWN,
        writer: WRITER,
        sequence: SequenceNumber(sequence),
        first_fragment: first,
        fragments,
        fragment_size: cut.fragment_bytes,
        sample_size: bytes as u32,
        key_hash: None,
        status: None,
        is_key: false,
    }
}

/// Returns the DATA_FRAGs of a sample.
pub(super) fn parts(sequence: i64, payload: &[u8], cut: Cut) -> Vec<(DataFragPrefix, &[u8])> {
    let size = usize::from(cut.fragment_bytes);
    let of_submessage = payload
        .chunks(size * usize::from(cut.fragments))
        .enumerate();
    of_submessage
        .map(|(nth, bytes)| {
            let first = 1 + nth as u32 * u32::from(cut.fragments);
            let count = bytes.len().div_ceil(size) as u16;
            (part(sequence, first, count, cut, payload.len()), bytes)
        })
        .collect()
}

pub(super) fn say(world: &mut World, peer: &Peer, (head, bytes): (DataFragPrefix, &[u8])) {
    peer.say(world, |message| message.data_frag(&head, bytes).map(drop));
}

pub(super) fn say_all<'a>(
    world: &mut World,
    peer: &Peer,
    parts: impl IntoIterator<Item = (DataFragPrefix, &'a [u8])>,
) {
    for part in parts {
        say(world, peer, part);
    }
}

/// VOLATILE policies of a peer's writer.
pub(super) fn volatile(kind: ReliabilityKind) -> QosPolicies {
    let mut qos = QosPolicies::default();
    qos.reliability.kind = kind;
    qos.durability = DurabilityKind::Volatile;
    qos
}

/// A reader of long samples, and a peer with a matching writer.
pub(super) fn a_reader(kind: ReliabilityKind) -> (World, Peer, ReaderHandle) {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let mut topic = large().keep_all(64);
    if kind == ReliabilityKind::Reliable {
        topic = topic.reliable();
    }
    let topic = topic.name("Foreign");
    let reader = world.create_reader(node, &topic);
    let mut peer = Peer::of(&mut world, node);
    peer.announce(&mut world, WRITER, volatile(kind));
    assert_eq!(world.matched_writers(reader), 1);
    (world, peer, reader)
}

/// Returns the last NACK_FRAG to the peer's writer: sample and missing fragments.
pub(super) fn last_nack_frag(world: &World) -> Option<(i64, Vec<u32>)> {
    let mut last = None;
    for_each_submessage(world, |submessage| {
        if let Submessage::NackFrag(NackFrag {
            sequence, state, ..
        }) = submessage
        {
            last = Some((sequence.get(), state.iter().collect()));
        }
    });
    last
}

pub(super) const KINDS: [ReliabilityKind; 2] =
    [ReliabilityKind::BestEffort, ReliabilityKind::Reliable];

#[test]
fn every_way_of_cutting_is_put_together() {
    for kind in KINDS {
        for cut in [CYCLONE, FAST, ONE_BY_ONE] {
            let (mut world, peer, reader) = a_reader(kind);
            for (sequence, bytes) in (1..).zip([100_000, 2_000, 65_324, 65_330, 1_350, 0]) {
                let payload = padded(sequence as u64, bytes).payload();
                for part in parts(sequence, &payload, cut) {
                    // The last fragment of a sample may be shorter than the fragment size, but the whole sample must
                    // not be.
                    let whole = Cut {
                        fragment_bytes: payload.len().min(usize::from(cut.fragment_bytes)) as u16,
                        ..cut
                    };
                    let head = DataFragPrefix {
                        fragment_size: whole.fragment_bytes,
                        ..part.0
                    };
                    say(&mut world, &peer, (head, part.1));
                }
            }
            assert_eq!(world.values(reader), [1, 2, 3, 4, 5, 6], "{kind:?} {cut:?}");
            let all = world.received(reader).iter();
            assert!(
                all.clone().all(|came| came.sample().is_some()),
                "nothing is out of its place"
            );
            assert_eq!(world.protocol(peer.target).counters().fragments_unused, 0);
        }
    }
}

#[test]
fn fragments_may_come_in_any_order_twice_and_overlapping() {
    for kind in KINDS {
        let (mut world, peer, reader) = a_reader(kind);
        let payload = padded(1, 20_000).payload();
        let mut all = parts(1, &payload, ONE_BY_ONE);
        all.reverse();
        let size = usize::from(ONE_BY_ONE.fragment_bytes);
        let overlapping = part(1, 3, 5, ONE_BY_ONE, payload.len());
        let bytes = &payload[2 * size..7 * size];
        say(&mut world, &peer, (overlapping, bytes));
        let twice = all.iter().flat_map(|&part| [part, part]);
        say_all(&mut world, &peer, twice);
        assert_eq!(world.values(reader), [1]);
        assert!(world.received(reader)[0].sample().is_some());
        let unused = world.protocol(peer.target).counters().fragments_unused;
        assert_eq!(
            unused as usize,
            5 + all.len(),
            "each of those that came before"
        );
    }
}

#[test]
fn missing_fragments_are_requested_by_nack_frag_and_missing_samples_by_acknack() {
    let (mut world, peer, reader) = a_reader(ReliabilityKind::Reliable);
    let payloads = [1, 2, 3].map(|value| padded(value, 20_000).payload());
    let first = parts(1, &payloads[0], ONE_BY_ONE);
    for (nth, &part) in first.iter().enumerate() {
        if ![3, 7, 19].contains(&nth) {
            say(&mut world, &peer, part);
        }
    }
    assert_eq!(
        last_nack_frag(&world),
        None,
        "no HEARTBEAT_FRAG has said yet that all was sent"
    );
    peer.heartbeat(&mut world, (1, 2), 1);
    assert_eq!(last_nack_frag(&world), Some((1, vec![4, 8, 20])));
    assert_eq!(peer.last_acknack(&world), Some((1, vec![2])));
    for nth in [3, 7, 19] {
        say(&mut world, &peer, first[nth]);
    }
    assert_eq!(world.values(reader), [1]);
    say_all(&mut world, &peer, parts(2, &payloads[1], CYCLONE));
    assert_eq!(world.values(reader), [1, 2]);
    peer.heartbeat(&mut world, (1, 2), 2);
    assert_eq!(peer.last_acknack(&world), Some((3, vec![])));
}

#[test]
fn the_whole_sample_is_requested_from_a_writer_that_does_not_answer_nack_frags() {
    let (mut world, peer, reader) = a_reader(ReliabilityKind::Reliable);
    let payload = padded(1, 5_000).payload();
    let all = parts(1, &payload, ONE_BY_ONE);
    say(&mut world, &peer, all[0]);
    peer.heartbeat(&mut world, (1, 1), 1);
    assert_eq!(peer.last_acknack(&world), Some((1, vec![])));
    world.run_for(ASSEMBLY_PATIENCE);
    peer.heartbeat(&mut world, (1, 1), 2);
    assert_eq!(peer.last_acknack(&world), Some((1, vec![1])));
    say_all(&mut world, &peer, all);
    assert_eq!(world.values(reader), [1]);
}

#[test]
fn a_heartbeat_frag_says_how_much_of_a_sample_can_be_missing() {
    let (mut world, peer, reader) = a_reader(ReliabilityKind::Reliable);
    let payload = padded(1, 20_000).payload();
    let all = parts(1, &payload, ONE_BY_ONE);
    let announce = |world: &mut World, last_fragment, count| {
        let heartbeat = HeartbeatFrag {
            reader: EntityId::UNKNOWN,
            writer: WRITER,
            sequence: SequenceNumber(1),
            last_fragment,
            count,
        };
        peer.say(world, |message| {
            message.heartbeat_frag(&heartbeat).map(drop)
        });
    };
    announce(&mut world, 5, 1);
    assert_eq!(last_nack_frag(&world), None, "nothing of it has come");
    say(&mut world, &peer, all[1]);
    announce(&mut world, 5, 2);
    assert_eq!(last_nack_frag(&world), Some((1, vec![1, 3, 4, 5])));
    announce(&mut world, 1_000_000, 3);
    assert_eq!(
        last_nack_frag(&world).map(|(_, lacks)| lacks.len()),
        Some(19)
    );
    say_all(&mut world, &peer, all);
    assert_eq!(world.values(reader), [1]);
}

#[test]
fn key_and_status_may_come_with_one_fragment_only() {
    use isolane_rtps::ChangeKind;
    use isolane_sim::key_of;
    use isolane_wire::message::StatusInfo;

    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = large().keep_all(8).keyed().name("Foreign");
    let reader = world.create_reader(node, &topic);
    let mut peer = Peer::of(&mut world, node);
    let writer = crate::peer::KEYED_WRITER;
    peer.announce(&mut world, writer, QosPolicies::default());
    let alive = Sample::keyed(7, 1).padded(5_000).payload();
    for (head, bytes) in parts(1, &alive, ONE_BY_ONE) {
        let head = DataFragPrefix { writer, ..head };
        say(&mut world, &peer, (head, bytes));
    }
    // The key of an instance's end, followed by superfluous bytes.
    let mut key = Sample::dispose(7).payload();
    let hash = key_of(&key, true).ok();
    key.resize(3_000, 0);
    for (nth, (head, bytes)) in parts(2, &key, ONE_BY_ONE).into_iter().enumerate() {
        let head = DataFragPrefix {
            writer,
            is_key: true,
            key_hash: hash.filter(|_| nth == 0),
            status: (nth == 0).then_some(StatusInfo {
                disposed: true,
                unregistered: false,
            }),
            ..head
        };
        say(&mut world, &peer, (head, bytes));
    }
    let kinds: Vec<_> = world
        .received(reader)
        .iter()
        .map(|came| came.info.kind)
        .collect();
    assert_eq!(kinds, [ChangeKind::Alive, ChangeKind::Dispose]);
    assert_eq!(world.received(reader)[1].info.key_hash, hash);
}

#[test]
fn fragments_for_another_participant_or_of_an_unknown_writer_are_left_alone() {
    let (mut world, peer, reader) = a_reader(ReliabilityKind::Reliable);
    let payload = padded(1, 5_000).payload();
    let all = parts(1, &payload, ONE_BY_ONE);
    let (head, bytes) = all[0];
    peer.say(&mut world, |message| {
        message
            .info_destination(GuidPrefix([7; 12]))?
            .data_frag(&head, bytes)?;
        Ok(())
    });
    assert_eq!(world.protocol(peer.target).counters().for_others, 1);
    let writer = EntityId::user(77, 3);
    let unknown = DataFragPrefix { writer, ..head };
    say(&mut world, &peer, (unknown, bytes));
    assert_eq!(world.protocol(peer.target).counters().unmatched_data, 1);
    assert!(world.received(reader).is_empty());
}
