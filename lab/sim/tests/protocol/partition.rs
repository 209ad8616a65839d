//! PARTITION: endpoints of a topic match if they share a partition. Partitions may change while the endpoints exist.

use isolane_rtps::SetQosError;
use isolane_sim::{LinkConfig, NodeConfig, Topic, World, seeds};
use isolane_wire::qos::{Partition, PolicyId, QosPolicies};

use crate::support::{PATIENCE, SECOND, a_pair, matched, ms, two_nodes, values};

fn topic() -> Topic {
    Topic::new("Parted").reliable().keep_all(64)
}

fn names(names: &[&str]) -> Partition {
    let names = names.iter().map(|&name| name.try_into());
    names.collect::<Result<_, _>>().expect("short names")
}

fn in_partitions(of: &[&str]) -> Topic {
    topic().qos(|qos| qos.partition = names(of))
}

fn moved(to: &[&str]) -> impl FnOnce(&mut QosPolicies) {
    let partition = names(to);
    move |qos| qos.partition = partition
}

#[test]
fn endpoints_meet_where_they_share_a_partition_on_one_host_and_on_two() {
    for (offered, requested, do_meet) in [
        (&[][..], &[][..], true),
        (&[], &[""], true),
        (&["left"], &[], false),
        (&["left"], &["left"], true),
        (&["left", "right"], &["back", "right"], true),
        (&["left"], &["right"], false),
        (&["zone-*"], &["zone-left"], true),
        (&["zone-left"], &["zone-*"], true),
        (&["zone-[lr]*"], &["zone-back"], false),
        (&["zone-*"], &["zone-*"], false),
        (&["*"], &[], true),
    ] {
        let mut world = World::new(1);
        let (a, b) = two_nodes(&mut world);
        for reader_node in [a, b] {
            let name = format!("{offered:?} {requested:?} {reader_node:?}");
            let of =
                |partition: &[&str]| Topic::new(&name).qos(|qos| qos.partition = names(partition));
            let writer = world.create_writer(a, &of(offered));
            let reader = world.create_reader(reader_node, &of(requested));
            world.run_for(SECOND);
            let met = matched(&world, writer, reader);
            assert_eq!(met, (do_meet.into(), do_meet.into()), "{name}");
            // Different partitions are no QoS mismatch.
            let protocol = world.protocol(a);
            assert_eq!(protocol.offered_incompatible(world.writer_id(writer)), None);
        }
    }
}

#[test]
fn endpoints_that_change_their_partition_part_and_meet_again() {
    seeds::for_each(0..20, |seed| {
        let mut world = World::new(seed).link(LinkConfig::lossy(0.2));
        let (a, b) = two_nodes(&mut world);
        let writer = world.create_writer(a, &in_partitions(&["left"]));
        // One reader is on the writer's own host.
        let readers = [b, a].map(|node| world.create_reader(node, &in_partitions(&["left"])));
        world.until_matched(&[writer], &readers);
        let is_alone = |world: &mut World| {
            world.run_until("they have parted", PATIENCE, |world| {
                let alone = readers.map(|reader| world.matched_writers(reader) == 0);
                world.matched_readers(writer) == 0 && alone == [true; 2]
            });
        };
        world.set_writer_qos(writer, moved(&["right"])).unwrap();
        is_alone(&mut world);
        world
            .set_writer_qos(writer, moved(&["right", "l*"]))
            .unwrap();
        world.until_matched(&[writer], &readers);
        for reader in readers {
            world.set_reader_qos(reader, moved(&["back"])).unwrap();
        }
        is_alone(&mut world);
        for reader in readers {
            world.set_reader_qos(reader, moved(&["right"])).unwrap();
        }
        world.until_matched(&[writer], &readers);
        world.enqueue(writer, values(20));
        world.run_until("all came", PATIENCE, |world| {
            readers.map(|reader| world.received(reader).len()) == [20; 2]
        });
    });
}

#[test]
fn a_change_that_leaves_a_pair_together_costs_it_no_sample() {
    let (mut world, _, writer, reader) = a_pair(&topic());
    world.publish(writer, ms(1), values(200));
    for turn in 0..10 {
        world.run_for(ms(20));
        let partition: &[&str] = if turn % 2 == 0 { &["", "more"] } else { &[] };
        world.set_writer_qos(writer, moved(partition)).unwrap();
        world.set_reader_qos(reader, moved(partition)).unwrap();
    }
    world.run_for(SECOND);
    assert_eq!(world.values(reader), (1..=200).collect::<Vec<_>>());
}

#[test]
fn a_late_joiner_hears_of_the_partition_as_it_is_now() {
    let mut world = World::new(1);
    let (a, _) = two_nodes(&mut world);
    let writer = world.create_writer(a, &in_partitions(&["left"]));
    for turn in 0..300 {
        let name = format!("turn {turn}");
        world.set_writer_qos(writer, moved(&[&name])).unwrap();
        world.run_for(ms(1));
    }
    let late = world.node(NodeConfig::default());
    let readers = ["left", "turn 298", "turn 299"]
        .map(|name| world.create_reader(late, &in_partitions(&[name])));
    world.run_for(SECOND);
    assert_eq!(readers.map(|it| world.matched_writers(it)), [0, 0, 1]);
}

#[test]
fn other_policies_of_matching_cannot_change() {
    let (mut world, _, writer, reader) = a_pair(&topic());
    let refused = world.set_writer_qos(writer, |qos| {
        qos.durability = isolane_wire::qos::DurabilityKind::TransientLocal;
        qos.partition = names(&["elsewhere"]);
    });
    assert_eq!(
        refused,
        Err(SetQosError::ImmutablePolicy(PolicyId::DURABILITY))
    );
    let refused = world.set_reader_qos(reader, |qos| qos.transport_priority = 3);
    let level = SetQosError::ImmutablePolicy(PolicyId::TRANSPORT_PRIORITY);
    assert_eq!(refused, Err(level));
    // The refused change had no effect.
    world.run_for(SECOND);
    assert_eq!(matched(&world, writer, reader), (1, 1));
}
