//! Hostile fragments: their reassembly takes no more than the fixed places, and samples of honest writers arrive.

use isolane_rtps::limits::ASSEMBLY_PATIENCE;
use isolane_sim::{LinkConfig, Random, World, seeds};
use isolane_wire::{
    guid::EntityId,
    message::{DataFragPrefix, HEADER_BYTES, Header, HeartbeatFrag, MessageWriter, NackFrag},
    qos::{QosPolicies, ReliabilityKind},
    sequence::{FragmentNumberSet, SequenceNumber},
};

use super::{
    large, padded,
    peers::{CYCLONE, Cut, KINDS, a_reader, part, parts, say, say_all, volatile},
};
use crate::{
    peer::{Peer, READER, WRITER},
    submessages::set,
    support::{SECOND, a_pair_in, ms, taken, written},
};

#[test]
fn sizes_that_contradict_those_of_the_first_fragment_are_not_taken() {
    for kind in KINDS {
        let (mut world, peer, reader) = a_reader(kind);
        let payload = padded(1, 50_000).payload();
        let all = parts(1, &payload, CYCLONE);
        say(&mut world, &peer, all[0]);
        for (size, bytes) in [(1_344, 50_016), (1_344, 900_000), (1_000, 50_020)] {
            let cut = Cut {
                fragment_bytes: size,
                ..CYCLONE
            };
            let liar = part(1, 11, 1, cut, bytes);
            say(&mut world, &peer, (liar, &vec![0xee; usize::from(size)]));
        }
        assert_eq!(world.protocol(peer.target).counters().fragments_unused, 3);
        say_all(&mut world, &peer, all[1..].iter().copied());
        assert_eq!(world.values(reader), [1]);
        assert!(world.received(reader)[0].sample().is_some());
    }
}

#[test]
fn a_lie_that_comes_first_keeps_its_sample_from_arriving_for_a_while_and_not_for_good() {
    let (mut world, peer, reader) = a_reader(ReliabilityKind::Reliable);
    let payload = padded(1, 50_000).payload();
    let lie = part(1, 1, 1, CYCLONE, 700_000);
    say(&mut world, &peer, (lie, &[0xee; 1_344]));
    for round in 0..2 {
        say_all(&mut world, &peer, parts(1, &payload, CYCLONE));
        assert_eq!(world.values(reader).len(), round);
        world.run_for(ASSEMBLY_PATIENCE);
    }
    assert_eq!(world.values(reader), [1]);
    let counters = world.protocol(peer.target).counters();
    assert_eq!(counters.assemblies_dropped, 1, "the lie");
}

#[test]
fn a_lie_in_a_writers_name_does_not_have_its_reader_ask_again_and_again() {
    let topic = large().reliable().keep_all(8);
    let (mut world, (a, b), writer, reader) = a_pair_in(World::new(1), &topic);
    let lie = DataFragPrefix {
        writer: world.writer_guid(writer).entity,
        ..part(1, 1, 1, CYCLONE, 20_000)
    };
    let header = Header::new(world.protocol(a).guid_prefix());
    let mut buffer = [0; 2_000];
    let mut message = MessageWriter::new(&mut buffer, &header).expect("it fits");
    message.data_frag(&lie, &[0xee; 1_344]).expect("it fits");
    let length = message.len();
    world.inject(
        b.discovery_locator(),
        a.discovery_locator(),
        &buffer[..length],
    );
    world.run_for(ms(1));
    world.enqueue(writer, [padded(1, 10_000)]);
    world.run_for(ms(400));
    assert!(
        world.values(reader).is_empty(),
        "the forged fragment prevents it"
    );
    let repaired = world.writer_ledger(writer).fragments_repaired;
    assert!(
        (1..200).contains(&repaired),
        "{repaired} fragments of eight"
    );
    world.run_for(2 * SECOND);
    assert_eq!(world.values(reader), [1]);
}

#[test]
fn what_can_never_be_taken_in_is_refused_for_good() {
    for kind in KINDS {
        let (mut world, peer, reader) = a_reader(kind);
        let tiny = Cut {
            fragment_bytes: 100,
            fragments: 1,
        };
        let huge = u32::MAX as usize;
        say(&mut world, &peer, (part(1, 1, 1, tiny, 5_000), &[0; 100]));
        let lie = part(2, 1, 1, CYCLONE, huge);
        say(&mut world, &peer, (lie, &[0; 1_344]));
        let lie = part(3, 3_000_000, 1, CYCLONE, huge);
        say(&mut world, &peer, (lie, &[0; 1_344]));
        let ledger = world.reader_ledger(reader);
        assert_eq!((ledger.rejected, ledger.too_large), (1, 2), "{ledger:?}");
        assert_eq!(ledger.accounted, 3);
        let counters = world.protocol(peer.target).counters();
        assert_eq!(counters.fragments_unused, 0, "they are counted already");
        let payload = padded(4, 5_000).payload();
        say_all(&mut world, &peer, parts(4, &payload, CYCLONE));
        assert_eq!(world.values(reader), [4]);
    }
}

#[test]
fn fragments_without_sense_are_malformed_and_counted() {
    type Lie<'a> = &'a dyn Fn(&mut Vec<u8>);
    let (mut world, peer, reader) = a_reader(ReliabilityKind::Reliable);
    let sound = |change: Lie<'_>| {
        let head = part(1, 2, 2, CYCLONE, 5_000);
        let mut datagram = peer.datagram(|message| message.data_frag(&head, &[1; 2_688]).map(drop));
        change(&mut datagram);
        datagram
    };
    // Offset behind the submessage header (4), flags and offset (4), entity ids (8) and sequence number (8).
    const AT: usize = HEADER_BYTES + 24;
    let lies: [Lie<'_>; 7] = [
        &|bytes| bytes[AT..AT + 4].fill(0),
        &|bytes| bytes[AT..AT + 4].fill(0xff),
        &|bytes| bytes[AT + 4..AT + 6].fill(0),
        &|bytes| bytes[AT + 4..AT + 6].fill(0xff),
        &|bytes| bytes[AT + 6..AT + 8].fill(0),
        &|bytes| bytes[AT + 6..AT + 8].fill(0xff),
        &|bytes| bytes[AT + 8..AT + 12].fill(0),
    ];
    for (nth, lie) in (1..).zip(lies) {
        peer.say_bytes(&mut world, &sound(lie));
        let counters = world.protocol(peer.target).counters();
        assert_eq!(counters.malformed_submessages, nth, "lie {nth}");
    }
    assert_eq!(world.reader_ledger(reader).accounted, 0);
}

#[test]
fn samples_begun_without_end_take_no_more_than_the_places_there_are_and_honest_ones_arrive() {
    seeds::for_each(0..4, |seed| {
        let world = World::new(seed).link(LinkConfig::losing(0.02));
        let topic = large().reliable().keep_all(8).name("Foreign");
        let (mut world, (_, b), writer, reader) = a_pair_in(world, &topic);
        let mut peer = Peer::of(&mut world, b);
        peer.announce(&mut world, WRITER, volatile(ReliabilityKind::Reliable));
        world.publish(writer, ms(20), (1..=20).map(|value| padded(value, 100_000)));
        let mut chance = Random::new(seed).fork();
        let mut spent = 0u32;
        while world.received_from(reader, writer).count() < 20 {
            let sequence = 1 + chance.below(250) as i64;
            let first = 1 + chance.below(700) as u32;
            let lie = part(sequence, first, 1, CYCLONE, 1 << 20);
            say(&mut world, &peer, (lie, &[7; 1_344]));
            spent += 1;
            assert!(
                spent < 20_000,
                "honest samples starve\n{}",
                world.describe()
            );
        }
        assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
        let counters = *world.protocol(b).counters();
        assert!(
            counters.assemblies_dropped + counters.assemblies_refused > 100,
            "{counters:?}"
        );
    });
}

#[test]
fn a_reader_that_asks_without_sense_costs_a_bounded_number_of_answers() {
    let mut world = World::new(1);
    let node = world.node(isolane_sim::NodeConfig::default());
    let topic = large()
        .reliable()
        .keep_all(8)
        .transient_local()
        .name("Foreign");
    let writer = world.create_writer(node, &topic);
    let mut peer = Peer::of(&mut world, node);
    let mut qos = QosPolicies::default();
    qos.reliability.kind = ReliabilityKind::Reliable;
    peer.announce(&mut world, READER, qos);
    world.enqueue(writer, [padded(1, 10_000), padded(2, 10_000)]);
    world.run_for(SECOND);
    let mut count = 0;
    let mut ask = |world: &mut World, sequence: i64, base: u32, width: u32| {
        let mut state = FragmentNumberSet::new(base);
        for number in (0..width).filter_map(|bit| base.checked_add(bit)) {
            state.insert(number);
        }
        count += 1;
        let nack = NackFrag {
            reader: READER,
            writer: world.writer_guid(writer).entity,
            sequence: SequenceNumber(sequence),
            state,
            count,
        };
        let before = world.writer_ledger(writer).fragments_repaired;
        peer.say(world, |message| message.nack_frag(&nack).map(drop));
        world.run_for(ms(20));
        world.writer_ledger(writer).fragments_repaired - before
    };
    // The reader has acknowledged nothing yet, so nothing is sent to it.
    assert_eq!(ask(&mut world, 1, 1, 8), 0);
    let pair = (READER, world.writer_guid(writer).entity);
    peer.acknack(&mut world, pair, set(1, []), 1);
    world.run_for(SECOND);
    assert_eq!(ask(&mut world, 1, 2, 3), 3, "what there is is sent");
    assert_eq!(ask(&mut world, 1, 0, 0), 0);
    assert!(ask(&mut world, 1, u32::MAX, 256) <= 1);
    assert!(ask(&mut world, 1, 1, 256) <= 9, "a sample of eight");
    assert_eq!(
        ask(&mut world, 3, 1, 256),
        0,
        "a sample that was not written"
    );
    assert_eq!(ask(&mut world, i64::MAX, 1, 256), 0);
    world.enqueue(writer, [padded(3, 0)]);
    world.run_for(SECOND);
    assert_eq!(
        ask(&mut world, 3, 1, 1),
        0,
        "a sample that went in one piece"
    );
}

#[test]
fn forged_heartbeat_frags_ask_for_what_was_begun_and_for_nothing_else() {
    let (mut world, peer, reader) = a_reader(ReliabilityKind::Reliable);
    for (count, sequence) in (1..).zip([1, 2, 256, 257, 1 << 40, i64::MAX]) {
        let heartbeat = HeartbeatFrag {
            reader: EntityId::UNKNOWN,
            writer: WRITER,
            sequence: SequenceNumber(sequence),
            last_fragment: u32::MAX,
            count,
        };
        peer.say(&mut world, |message| {
            message.heartbeat_frag(&heartbeat).map(drop)
        });
    }
    let payload = padded(1, 5_000).payload();
    say_all(&mut world, &peer, parts(1, &payload, CYCLONE));
    assert_eq!(world.values(reader), [1]);
    assert_eq!(world.reader_ledger(reader).lost, 0);
}
