//! LIVELINESS: which writers are alive, which messages assert it, and what happens to silent ones (DDS 1.4 §2.2.3.11,
//! RTPS 2.5 §8.4.13).

use std::time::Duration;

use isolane_rtps::{ChangeKind, InstanceState, ReaderStatus, WriterStatus};
use isolane_sim::{
    LinkConfig, NodeConfig, NodeId, Partition, ReaderHandle, Sample, Topic, World, WriterHandle,
    seeds,
};
use isolane_wire::{
    builtin_data::{BuiltinEndpoints, ParticipantMessage},
    guid::{EntityId, GuidPrefix},
    message::{Heartbeat, Submessage},
    qos::{LivelinessKind, QosPolicies},
};

use crate::{
    peer::{Peer, WRITER, for_each_submessage, head},
    submessages::heartbeat,
    support::{Pair, SECOND, a_pair, a_pair_in, ahead, ms, two_nodes, values},
};

const LEASE: Duration = ms(200);
/// A lease, and an eighth of it for messages that have arrived and were not read.
const LOST: Duration = ms(226);

fn lively(topic: Topic, kind: LivelinessKind) -> Topic {
    topic.qos(|qos| {
        qos.liveliness.kind = kind;
        qos.liveliness.lease = LEASE.into();
    })
}

fn reliable() -> Topic {
    Topic::new("Lively").reliable().keep_all(16)
}

fn a_lively_pair(kind: LivelinessKind) -> Pair {
    a_pair(&lively(reliable(), kind))
}

/// Numbers of writers alive and not alive, if they have changed.
fn changed(world: &mut World, reader: ReaderHandle) -> Option<(u32, u32)> {
    let changed = world.take_liveliness_changed(reader);
    changed.map(|changed| (changed.alive, changed.not_alive))
}

fn lost(world: &mut World, writer: WriterHandle) -> u32 {
    world
        .take_liveliness_lost(writer)
        .map_or(0, |lost| lost.change)
}

/// Number of datagrams to the endpoints of participant messages.
fn messages(world: &World) -> usize {
    let mut count = 0;
    for_each_submessage(world, |submessage| {
        let (reader, writer) = match submessage {
            Submessage::Data(data) => (data.reader, data.writer),
            Submessage::Heartbeat(heartbeat) => (heartbeat.reader, heartbeat.writer),
            Submessage::AckNack(acknack) => (acknack.reader, acknack.writer),
            Submessage::Gap(gap) => (gap.reader, gap.writer),
            _ => return,
        };
        let is_message =
            writer == EntityId::P2P_MESSAGE_WRITER || reader == EntityId::P2P_MESSAGE_READER;
        count += usize::from(is_message);
    });
    count
}

#[test]
fn without_a_lease_nothing_is_sent_and_a_writer_is_alive_while_it_is_matched() {
    let mut world = World::new(1);
    world.tap();
    let (mut world, (a, _), writer, reader) = a_pair_in(world, &reliable());
    let changed = world.take_liveliness_changed(reader).expect("it is alive");
    assert_eq!((changed.alive, changed.alive_change), (1, 1));
    assert_eq!((changed.not_alive, changed.not_alive_change), (0, 0));
    assert_eq!(changed.last, world.writer_guid(writer));
    world.assert_liveliness(writer);
    world.assert_participant(a);
    world.run_for(60 * SECOND);
    assert_eq!(messages(&world), 0);
    world.delete_writer(writer);
    world.run_for(SECOND);
    let changed = world.take_liveliness_changed(reader).expect("it is gone");
    assert_eq!((changed.alive, changed.alive_change), (0, -1));
    assert_eq!(changed.not_alive, 0);
}

#[test]
fn an_automatic_writer_is_alive_while_its_participant_is_also_when_it_writes_nothing() {
    let (mut world, nodes, writer, reader) = a_lively_pair(LivelinessKind::Automatic);
    assert_eq!(changed(&mut world, reader), Some((1, 0)));
    world.run_for(10 * SECOND);
    assert_eq!(changed(&mut world, reader), None);

    world.crash(nodes.0);
    world.run_for(LOST);
    assert_eq!(
        changed(&mut world, reader),
        Some((0, 1)),
        "long before its participant's lease ends"
    );
    assert_eq!(world.matched_writers(reader), 1);
    world.run_for(15 * SECOND);
    assert_eq!(changed(&mut world, reader), Some((0, 0)), "now it is gone");
    let _ = writer;
}

#[test]
fn over_a_bad_link_an_automatic_writer_stays_alive() {
    seeds::for_each(0..20, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.1));
        let topic = lively(reliable(), LivelinessKind::Automatic);
        let (mut world, _, _, reader) = a_pair_in(world, &topic);
        let _ = changed(&mut world, reader);
        world.run_for(20 * SECOND);
        let now = world.take_liveliness_changed(reader);
        // Three consecutive messages are lost once in a thousand times, and are then repaired.
        assert!(now.is_none_or(|now| now.alive == 1), "seed {seed}: {now:?}");
    });
}

#[test]
fn a_stopped_process_is_not_alive_and_is_again_when_it_goes_on() {
    let (mut world, (a, b), writer, reader) = a_lively_pair(LivelinessKind::Automatic);
    let _ = changed(&mut world, reader);
    world.stop_for(a, SECOND);
    world.run_for(LOST);
    assert_eq!(changed(&mut world, reader), Some((0, 1)));
    world.run_for(SECOND);
    assert_eq!(changed(&mut world, reader), Some((1, 0)));
    // The reader's process is stopped for as long. Then it first reads the messages that have arrived meanwhile.
    world.stop_for(b, SECOND);
    world.run_for(3 * SECOND);
    assert_eq!(changed(&mut world, reader), None);
    assert_eq!(lost(&mut world, writer), 0, "automatic is not lost");
}

#[test]
fn a_silent_writer_loses_its_instances_and_has_them_again_when_it_writes() {
    let topic = lively(reliable().keyed(), LivelinessKind::ManualByTopic);
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.enqueue(writer, [Sample::keyed(1, 1)]);
    world.run_for(LOST + ms(1));
    let last = |world: &World| {
        let last = world.last_of_instance(reader, 1);
        last.expect("it came").states()
    };
    let ended = (ChangeKind::Unregister, InstanceState::NotAliveNoWriters);
    assert_eq!(last(&world), ended);
    assert_eq!(world.matched_writers(reader), 1);
    world.enqueue(writer, [Sample::keyed(1, 2)]);
    world.run_for(ms(20));
    assert_eq!(last(&world), (ChangeKind::Alive, InstanceState::Alive));
    assert_eq!(changed(&mut world, reader), Some((1, 0)));
    assert_eq!(world.values(reader), [1, 2]);
}

#[test]
fn a_writer_that_is_not_asserted_loses_its_liveliness_once() {
    for kind in [
        LivelinessKind::ManualByParticipant,
        LivelinessKind::ManualByTopic,
    ] {
        let (mut world, _, writer, reader) = a_lively_pair(kind);
        let _ = changed(&mut world, reader);
        world.run_for(5 * SECOND);
        assert_eq!(lost(&mut world, writer), 1, "{kind:?}");
        let statuses = world.writer_statuses(writer);
        assert!(statuses.contains(WriterStatus::LIVELINESS_LOST));
        assert_eq!(changed(&mut world, reader), Some((0, 1)));
        let statuses = world.reader_statuses(reader);
        assert!(statuses.contains(ReaderStatus::LIVELINESS_CHANGED));

        // Each write asserts liveliness.
        world.publish(writer, ms(150), values(10));
        world.run_for(10 * ms(150));
        assert_eq!(lost(&mut world, writer), 0);
        assert_eq!(changed(&mut world, reader), Some((1, 0)), "{kind:?}");
        world.run_for(SECOND);
        assert_eq!(lost(&mut world, writer), 1);
        assert_eq!(changed(&mut world, reader), Some((0, 1)));
    }
}

/// Asserts liveliness every 150 ms for three seconds.
fn assert_for_a_while(world: &mut World, mut assert: impl FnMut(&mut World)) {
    for _ in 0..20 {
        assert(world);
        world.run_for(ms(150));
    }
}

#[test]
fn by_topic_a_writer_is_asserted_for_itself_alone_also_where_it_is_best_effort() {
    for topic in [reliable(), Topic::new("Lively")] {
        let topic = lively(topic, LivelinessKind::ManualByTopic);
        let (mut world, (a, _), writer, reader) = a_pair(&topic);
        let silent = world.create_writer(a, &topic);
        world.until_matched(&[writer, silent], &[reader]);
        assert_for_a_while(&mut world, |world| {
            world.assert_liveliness(writer);
            world.assert_participant(a);
        });
        assert_eq!(lost(&mut world, writer), 0);
        assert_eq!(lost(&mut world, silent), 1);
        let now = world
            .take_liveliness_changed(reader)
            .expect("one is silent");
        assert_eq!((now.alive, now.not_alive), (1, 1));
        assert_eq!(now.last, world.writer_guid(silent));
        assert!(world.values(reader).is_empty());
    }
}

#[test]
fn by_participant_one_assertion_asserts_all_writers() {
    let assert_it: [fn(&mut World, NodeId, WriterHandle); 3] = [
        |world, node, _| world.assert_participant(node),
        |world, _, writer| world.assert_liveliness(writer),
        |world, _, writer| world.enqueue(writer, values(1)),
    ];
    for assert_it in assert_it {
        let topic = lively(reliable(), LivelinessKind::ManualByParticipant);
        let (mut world, (a, _), writer, reader) = a_pair(&topic);
        let other = world.create_writer(a, &topic);
        world.until_matched(&[writer, other], &[reader]);
        let _ = changed(&mut world, reader);
        assert_for_a_while(&mut world, |world| assert_it(world, a, writer));
        assert_eq!((lost(&mut world, writer), lost(&mut world, other)), (0, 0));
        assert_eq!(changed(&mut world, reader), None);
        world.run_for(LOST + LEASE);
        assert_eq!((lost(&mut world, writer), lost(&mut world, other)), (1, 1));
        assert_eq!(changed(&mut world, reader), Some((0, 2)));
    }
}

#[test]
fn however_often_it_is_asserted_messages_leave_three_times_a_lease() {
    let mut world = World::new(1);
    world.tap();
    let topic = lively(reliable(), LivelinessKind::ManualByParticipant);
    let (mut world, (a, _), _, _) = a_pair_in(world, &topic);
    let before = messages(&world);
    for _ in 0..2_000 {
        world.assert_participant(a);
        world.run_for(ms(1));
    }
    let sent = messages(&world) - before;
    // Thirty messages, each with a HEARTBEAT and an ACKNACK.
    assert!((30..=100).contains(&sent), "{sent}");
}

#[test]
fn endpoints_of_one_participant_know_of_each_other_without_messages() {
    for kind in [
        LivelinessKind::Automatic,
        LivelinessKind::ManualByParticipant,
    ] {
        let mut world = World::new(1);
        let (a, _) = two_nodes(&mut world);
        let topic = lively(reliable(), kind);
        let writer = world.create_writer(a, &topic);
        let reader = world.create_reader(a, &topic);
        world.until_matched(&[writer], &[reader]);
        let _ = changed(&mut world, reader);
        world.run_for(2 * SECOND);
        let is_automatic = kind == LivelinessKind::Automatic;
        assert_eq!(changed(&mut world, reader).is_none(), is_automatic);
        world.assert_participant(a);
        world.run_for(ms(300));
        world.assert_participant(a);
        world.run_for(ms(20));
        assert!(changed(&mut world, reader).is_none_or(|now| now == (1, 0)));
    }
}

#[test]
fn a_writer_cut_off_is_not_alive_at_its_reader_and_knows_nothing_of_it() {
    let topic = Topic::new("Lively").reliable().keep_last(4);
    let topic = lively(topic, LivelinessKind::ManualByTopic);
    let (mut world, (a, b), writer, reader) = a_pair(&topic);
    let _ = changed(&mut world, reader);
    world.publish(writer, ms(50), values(100));
    world.partition(Partition::one_way(&[a], &[b]));
    world.run_for(SECOND);
    assert_eq!(changed(&mut world, reader), Some((0, 1)));
    assert_eq!(lost(&mut world, writer), 0);
    world.heal();
    world.run_for(SECOND);
    assert_eq!(changed(&mut world, reader), Some((1, 0)));
}

/// A reader, and a peer with a writer of this LIVELINESS kind.
fn a_lively_peer(kind: LivelinessKind) -> (World, Peer, ReaderHandle) {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let reader = world.create_reader(node, &Topic::new("Foreign"));
    let mut peer = Peer::announced(&mut world, node, |data| {
        data.builtin_endpoints |=
            BuiltinEndpoints::P2P_MESSAGE_WRITER | BuiltinEndpoints::P2P_MESSAGE_READER;
    });
    let mut qos = QosPolicies::writer_default();
    qos.liveliness.kind = kind;
    qos.liveliness.lease = LEASE.into();
    peer.announce(&mut world, WRITER, qos);
    assert_eq!(changed(&mut world, reader), Some((1, 0)));
    (world, peer, reader)
}

/// Sends a participant message of the peer.
fn say_alive(world: &mut World, peer: &Peer, number: i64, of: GuidPrefix, kind: [u8; 4]) {
    let message = ParticipantMessage {
        participant: of,
        kind,
        data: &[],
    };
    let mut payload = [0; 24];
    message.emit(&mut payload).expect("it fits");
    let head = head(EntityId::P2P_MESSAGE_WRITER, number);
    peer.say(world, |message| message.data(&head, &payload).map(drop));
}

#[test]
fn messages_of_other_implementations_are_believed_for_their_kind_and_their_own_participant() {
    let automatic = ParticipantMessage::KIND_AUTOMATIC_LIVELINESS;
    let manual = ParticipantMessage::KIND_MANUAL_LIVELINESS;
    for (kind, of_kind, of_other) in [
        (LivelinessKind::Automatic, automatic, manual),
        (LivelinessKind::ManualByParticipant, manual, automatic),
    ] {
        let (mut world, peer, reader) = a_lively_peer(kind);
        let own = peer.prefix;
        let mut numbers = 1..;
        let mut say_for_a_while = |world: &mut World, of: GuidPrefix, said: [u8; 4]| {
            for number in numbers.by_ref().take(8) {
                say_alive(world, &peer, number, of, said);
                world.run_for(ms(100));
            }
        };
        say_for_a_while(&mut world, own, of_kind);
        assert_eq!(changed(&mut world, reader), None);
        say_for_a_while(&mut world, own, of_other);
        assert_eq!(changed(&mut world, reader), Some((0, 1)));
        say_for_a_while(&mut world, own, of_kind);
        assert_eq!(changed(&mut world, reader), Some((1, 0)));
        say_for_a_while(&mut world, GuidPrefix([7; 12]), of_kind);
        assert_eq!(changed(&mut world, reader), Some((0, 1)), "not for itself");
    }
}

#[test]
fn a_heartbeat_with_the_flag_asserts_a_writer_by_topic_and_one_without_does_not() {
    for (liveliness, expected) in [(true, None), (false, Some((0, 1)))] {
        let (mut world, peer, reader) = a_lively_peer(LivelinessKind::ManualByTopic);
        for count in 1..10 {
            let heartbeat = Heartbeat {
                is_final: true,
                liveliness,
                ..heartbeat(WRITER, (1, 0), count)
            };
            peer.say(&mut world, |message| {
                message.heartbeat(&heartbeat).map(drop)
            });
            world.run_for(ms(100));
        }
        assert_eq!(changed(&mut world, reader), expected);
    }
}

#[test]
fn a_message_that_cannot_be_read_is_counted_and_says_nothing() {
    let (mut world, peer, reader) = a_lively_peer(LivelinessKind::Automatic);
    let malformed = |world: &World| {
        let counters = world.protocol(peer.target).counters();
        counters.malformed_announcements
    };
    let before = malformed(&world);
    for (number, length) in (1..).zip([0usize, 3, 12, 23]) {
        let payload = vec![0; length.next_multiple_of(4)];
        let head = head(EntityId::P2P_MESSAGE_WRITER, number);
        peer.say(&mut world, |message| {
            message.data(&head, &payload).map(drop)
        });
    }
    let counted = malformed(&world) - before;
    assert!(counted >= 3, "{counted}");
    world.run_for(LOST);
    assert_eq!(changed(&mut world, reader), Some((0, 1)));
}

#[test]
fn other_implementations_find_the_endpoints_of_messages_connected() {
    let (mut world, peer, _) = a_lively_peer(LivelinessKind::Automatic);
    world.run_for(SECOND);
    let mut asked = 0;
    for_each_submessage(&world, |submessage| match submessage {
        Submessage::AckNack(acknack) if acknack.writer == EntityId::P2P_MESSAGE_WRITER => {
            asked += 1;
        }
        Submessage::Heartbeat(heartbeat) if heartbeat.writer == EntityId::P2P_MESSAGE_WRITER => {
            asked += 1;
        }
        _ => {}
    });
    assert!(
        asked >= 2,
        "its reader and its writer were spoken to: {asked}"
    );
    let _ = peer;
}

/// Announces the peer's writer again, with another lease.
fn announce_lease(world: &mut World, peer: &mut Peer, lease: isolane_wire::time::Duration) {
    let mut qos = QosPolicies::writer_default();
    qos.liveliness.kind = LivelinessKind::ManualByTopic;
    qos.liveliness.lease = lease;
    peer.announce(world, WRITER, qos);
}

#[test]
fn a_silent_writer_whose_lease_becomes_endless_is_alive_and_is_counted_once_when_it_leaves() {
    let (mut world, mut peer, reader) = a_lively_peer(LivelinessKind::ManualByTopic);
    let endless = isolane_wire::time::Duration::INFINITE;
    for _ in 0..2 {
        world.run_for(LOST);
        assert_eq!(changed(&mut world, reader), Some((0, 1)));
        announce_lease(&mut world, &mut peer, endless);
        assert_eq!(changed(&mut world, reader), Some((1, 0)));
        world.run_for(SECOND);
        assert_eq!(changed(&mut world, reader), None);
        announce_lease(&mut world, &mut peer, LEASE.into());
    }
    announce_lease(&mut world, &mut peer, endless);
    peer.leave(&mut world);
    world.run_for(SECOND);
    assert_eq!(world.matched_writers(reader), 0);
    let taken = world.take_liveliness_changed(reader).expect("it is gone");
    assert_eq!((taken.alive, taken.not_alive), (0, 0));
}

#[test]
fn by_participant_what_is_written_when_the_wall_clock_is_set_asserts_all() {
    let topic = lively(reliable(), LivelinessKind::ManualByParticipant);
    let mut world = World::new(1);
    let a = world.node(ahead(60 * SECOND));
    let b = world.node(NodeConfig::default());
    let (writer, other) = (
        world.create_writer(a, &topic),
        world.create_writer(a, &topic),
    );
    let reader = world.create_reader(b, &topic);
    world.until_matched(&[writer, other], &[reader]);
    let _ = changed(&mut world, reader);
    assert_for_a_while(&mut world, |world| world.enqueue(writer, values(1)));
    assert_eq!(changed(&mut world, reader), None);
}
