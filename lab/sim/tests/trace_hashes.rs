//! Hashes of every datagram that eight systems send: time, sender, destination and bytes.
//!
//! The crate isolane-rtps is being reordered by entity without a change of the protocol. An equal hash shows that each
//! datagram is still sent at the same time, to the same address, with the same content. This test is removed when that
//! work ends. An intended change of the protocol before then updates the numbers.

use std::{rc::Rc, time::Duration};

use isolane_rtps::{Announces, ChangeKind, ContentFilter, limits::MAX_DATA_PAYLOAD_BYTES};
use isolane_sim::{
    Description, LinkConfig, NodeConfig, NodeId, Partition, Random, Sample, Topic, World,
};
use isolane_wire::{
    builtin_data::ContentFilterProperty,
    qos::{
        DestinationOrderKind, LivelinessKind, OwnershipKind, Presentation, PresentationAccessScope,
    },
};

const SECOND: Duration = Duration::from_secs(1);
const SEEDS: u64 = 3;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn keyed_samples(seed: u64, count: u64, longest: u64) -> Vec<Sample> {
    let mut chance = Random::new(seed);
    let sample = |value| {
        let key = chance.below(3) as u32;
        let padding = chance.below(longest / 4 + 1) as u32 * 4;
        match chance.below(12) {
            0 => Sample::dispose(key),
            1 => Sample::unregister(key),
            _ => Sample::keyed(key, value).padded(padding),
        }
    };
    (1..=count).map(sample).collect()
}

/// Asserts that a system sends the same datagrams as when the hashes were recorded, in two runs of each seed. Its world
/// is lossy, and its datagrams are hashed from the start.
fn assert_trace(hashes: [u64; SEEDS as usize], system: impl Fn(&mut World, u64)) {
    let hash = |seed| {
        let mut world = World::new(seed).link(LinkConfig::lossy(0.15));
        world.hash_trace();
        system(&mut world, seed);
        world.trace_hash().expect("it was started")
    };
    let run = || (0..SEEDS).map(hash).collect::<Vec<_>>();
    let first = run();
    assert_eq!(first, run(), "two runs of the same seeds differ");
    assert_eq!(first, hashes, "{first:#x?}");
}

#[test]
fn best_effort_samples_by_unicast_and_multicast() {
    assert_trace(
        [
            0xcf69_7714_b6d3_2a0e,
            0x1c29_e9c2_dd1c_0dd8,
            0x6fa6_96b3_212a_29d3,
        ],
        |world, seed| {
            let nodes = world.nodes(3, &NodeConfig::default());
            for (topic, period) in [
                (Topic::new("Ticks").keep_last(8).keyed().level(7), ms(3)),
                (Topic::new("Group").keep_last(2).keyed().multicast(), ms(5)),
            ] {
                let writer = world.create_writer(nodes[0], &topic);
                let reader = world.create_reader(nodes[1], &topic);
                let viewer = world.create_view_reader(nodes[2], &topic);
                world.until_matched(&[writer], &[reader, viewer]);
                world.publish(writer, period, keyed_samples(seed, 100, 0));
            }
            world.run_for(2 * SECOND);
        },
    );
}

#[test]
fn reliable_samples_with_history_for_late_readers() {
    assert_trace(
        [
            0xe897_0653_5abd_0f2c,
            0xd73d_3f3e_04cf_174d,
            0x1c11_5dd3_8afe_4bec,
        ],
        |world, seed| {
            let nodes = world.nodes(3, &NodeConfig::default());
            let commands = Topic::new("Commands").reliable().keep_all(16).level(6);
            let state = Topic::new("State")
                .reliable()
                .transient_local()
                .keep_last(2)
                .keyed()
                .max_instances(8)
                .multicast();
            let budget = Topic::new("Batch")
                .reliable()
                .keep_all(64)
                .qos(|qos| qos.latency_budget = ms(4).into());
            for topic in [&commands, &state, &budget] {
                let writer = world.create_writer(nodes[0], topic);
                let reader = world.create_reader(nodes[1], topic);
                world.until_matched(&[writer], &[reader]);
                world.enqueue(writer, keyed_samples(seed, 60, 0));
            }
            world.partition(
                Partition::one_way(&nodes[1..2], &nodes[..1]).during(SECOND..2 * SECOND),
            );
            world.run_for(SECOND);
            for topic in [&commands, &state, &budget] {
                world.create_reader(nodes[2], topic);
            }
            world.run_for(3 * SECOND);
        },
    );
}

#[test]
fn fragments() {
    assert_trace(
        [
            0xe00f_9121_ff47_b96b,
            0x63b4_dcae_3c7d_7232,
            0xea5e_a916_7f4c_ae3d,
        ],
        |world, seed| {
            let nodes = world.nodes(3, &NodeConfig::default());
            let images = Topic::new("Images")
                .reliable()
                .keep_last(2)
                .keyed()
                .max_instances(8)
                .max_payload_bytes(24_020);
            let maps = Topic::new("Maps")
                .keep_last(1)
                .keyed()
                .shares_long()
                .max_datagram_bytes(MAX_DATA_PAYLOAD_BYTES / 2)
                .max_payload_bytes(24_020);
            for topic in [images, maps] {
                let writer = world.create_writer(nodes[0], &topic);
                let readers = [1, 2].map(|at| world.create_reader(nodes[at], &topic));
                world.until_matched(&[writer], &readers);
                world.publish(writer, ms(20), keyed_samples(seed, 40, 24_000));
            }
            world.run_for(4 * SECOND);
        },
    );
}

#[test]
fn discovery_with_crashes_partitions_and_restarts() {
    assert_trace(
        [
            0xd4e3_221d_d9e7_bf75,
            0xfa4d_95f2_1083_949f,
            0x09b7_d3ed_46bf_663e,
        ],
        |world, seed| {
            let peers: Vec<_> = (0..5).map(NodeId).collect();
            let config = match seed {
                0 => NodeConfig::with_peers(&peers),
                _ => NodeConfig::default(),
            };
            let nodes = world.nodes(5, &config);
            let topic = |at: usize| Topic::new(&format!("Topic {at}")).reliable().keep_all(8);
            let furnish = |world: &mut World, at: usize| {
                world.create_writer(nodes[at], &topic(at));
                world.create_reader(nodes[at], &topic((at + 1) % 5));
                world.create_reader(nodes[at], &topic((at + 2) % 5));
            };
            for at in 0..5 {
                furnish(world, at);
            }
            world.run_for(2 * SECOND);
            world.crash(nodes[0]);
            world.leave(nodes[1]);
            let now = world.elapsed();
            world.partition(
                Partition::between(&nodes[2..3], &nodes[3..]).during(now..now + 14 * SECOND),
            );
            world.run_for(5 * SECOND);
            world.restart(nodes[0]);
            furnish(world, 0);
            world.run_for(12 * SECOND);
            world.restart_as_before(nodes[1]);
            furnish(world, 1);
            world.move_node(nodes[4]);
            world.note_address(nodes[4]);
            world.run_for(15 * SECOND);
        },
    );
}

#[test]
fn static_discovery() {
    assert_trace(
        [
            0x3795_27b7_0546_2830,
            0x8933_99c5_43ef_3cb1,
            0x41c6_c9d3_367d_6db4,
        ],
        |world, seed| {
            let announces = [Announces::All, Announces::Itself, Announces::Nothing][seed as usize];
            let brake = Topic::new("Brake").level(7);
            let report = Topic::new("Report").level(3).reliable().keep_all(64);
            let both = [brake.clone(), report.clone()];
            let described = Description::new()
                .with(NodeId(0), announces, &both, &[])
                .with(NodeId(1), announces, &[], &both);
            let described = Rc::new(described);
            let nodes = world.nodes(
                2,
                &NodeConfig {
                    described: Some(described),
                    ..NodeConfig::default()
                },
            );
            for topic in &both {
                let writer = world.create_writer(nodes[0], topic);
                world.create_reader(nodes[1], topic);
                world.publish(writer, ms(10), (1..=100).map(Sample::value));
            }
            world.run_for(3 * SECOND);
            world.restart(nodes[1]);
            for topic in &both {
                world.create_reader(nodes[1], topic);
            }
            world.run_for(15 * SECOND);
        },
    );
}

#[test]
fn time_based_policies() {
    assert_trace(
        [
            0xa35b_0ab0_d914_6d64,
            0x36fa_93bc_888a_beaa,
            0xbefd_6c2d_ef24_39b5,
        ],
        |world, seed| {
            let nodes = world.nodes(3, &NodeConfig::default());
            let timed = Topic::new("Timed")
                .reliable()
                .transient_local()
                .keep_last(4)
                .keyed()
                .max_instances(8)
                .qos(|qos| {
                    qos.deadline = ms(40).into();
                    qos.lifespan = ms(300).into();
                    qos.liveliness.kind = LivelinessKind::ManualByTopic;
                    qos.liveliness.lease = ms(500).into();
                    qos.destination_order = DestinationOrderKind::BySourceTimestamp;
                });
            let owned = Topic::new("Owned").keyed().keep_last(4).qos(|qos| {
                qos.ownership = OwnershipKind::Exclusive;
                qos.liveliness.kind = LivelinessKind::ManualByParticipant;
                qos.liveliness.lease = ms(700).into();
            });
            let automatic = Topic::new("Automatic")
                .reliable()
                .keep_all(32)
                .qos(|qos| qos.liveliness.lease = ms(900).into());
            for topic in [timed, owned, automatic] {
                let filtered = topic.clone().qos(|qos| {
                    if qos.deadline > ms(100).into() {
                        qos.time_based_filter = ms(30).into();
                    }
                });
                let strong = topic.clone().qos(|qos| qos.ownership_strength = 5);
                let writers = [
                    world.create_writer(nodes[0], &topic),
                    world.create_writer(nodes[1], &strong),
                ];
                let readers = [
                    world.create_reader(nodes[1], &topic),
                    world.create_reader(nodes[2], &filtered),
                ];
                world.until_matched(&writers, &readers);
                for (writer, period) in writers.into_iter().zip([ms(15), ms(35)]) {
                    world.publish(writer, period, keyed_samples(seed, 40, 0));
                    world.assert_liveliness(writer);
                }
            }
            world.assert_participant(nodes[0]);
            world.run_for(3 * SECOND);
            world.create_reader(nodes[0], &Topic::new("Automatic").reliable());
            world.run_for(5 * SECOND);
        },
    );
}

#[test]
fn coherent_sets_of_topics_and_groups() {
    assert_trace(
        [
            0x0118_4423_38c6_5c77,
            0x8dce_1c48_ab27_39e6,
            0x24d4_e0e2_e58e_d204,
        ],
        |world, seed| {
            let nodes = world.nodes(2, &NodeConfig::default());
            let scopes = [
                (PresentationAccessScope::Topic, false),
                (PresentationAccessScope::Group, false),
                (PresentationAccessScope::Group, true),
            ];
            let (access_scope, ordered) = scopes[seed as usize];
            let presentation = Presentation {
                access_scope,
                coherent: true,
                ordered,
            };
            let publisher = world.create_publisher(nodes[0], presentation);
            let subscriber = world.create_subscriber(nodes[1], presentation);
            let topics = ["Left", "Right"].map(|name| Topic::new(name).reliable().keep_all(64));
            let writers = topics
                .each_ref()
                .map(|topic| world.create_writer_in(publisher, topic));
            let readers = topics
                .each_ref()
                .map(|topic| world.create_reader_in(subscriber, topic));
            for (writer, reader) in writers.into_iter().zip(readers) {
                world.until_matched(&[writer], &[reader]);
            }
            let mut chance = Random::new(seed);
            for set in 0..30 {
                world.begin_set(publisher);
                for at in 0..chance.below(5) {
                    let writer = chance.pick(&writers);
                    world.enqueue(writer, [Sample::value(set * 10 + at)]);
                }
                // A full history refuses the end of a set; the next set ends it.
                let _ = world.end_set(publisher);
                let pause = chance.up_to(ms(60));
                world.run_for(pause);
                if set == 15 {
                    world.delete_writer(writers[0]);
                    world.create_writer_in(publisher, &topics[0]);
                    world.begin_set(publisher);
                    let _ = world.end_set(publisher);
                    break;
                }
            }
            world.run_for(4 * SECOND);
        },
    );
}

fn compile(property: &ContentFilterProperty<'_>) -> Option<ContentFilter> {
    let of = property.expression.strip_prefix("multiple of ")?;
    multiples(of.parse().ok()?)
}

fn multiples(of: u64) -> Option<ContentFilter> {
    let filter = ContentFilter::new(move |payload| {
        let sample = Sample::parse(ChangeKind::Alive, payload);
        sample.is_some_and(|sample| sample.value.is_multiple_of(of))
    });
    Some(filter.taking(64).announced(&ContentFilterProperty {
        filtered_topic_name: "Filtered",
        related_topic_name: "Numbers",
        class_name: ContentFilterProperty::DDSSQL,
        expression: &format!("multiple of {of}"),
        parameters: Default::default(),
    }))
}

#[test]
fn content_filters_evaluated_by_the_writer() {
    assert_trace(
        [
            0x37e4_056f_1512_a091,
            0x34d2_5099_86f3_49e0,
            0xc886_220b_e848_fc19,
        ],
        |world, seed| {
            let nodes = world.nodes(4, &NodeConfig::default());
            let reliable = Topic::new("Numbers").reliable().keep_all(32).keyed();
            let history = Topic::new("History").reliable().transient_local();
            let history = history.keep_all(128).keyed().max_payload_bytes(6_000);
            let best_effort = Topic::new("Ticks").keep_last(8).keyed();
            for topic in [reliable, history, best_effort] {
                let writer = world.create_writer(nodes[0], &topic);
                let id = world.writer_id(writer);
                world.with_protocol(nodes[0], |protocol, _| {
                    protocol.evaluate_filters(id, compile);
                });
                let readers = [2, 3].map(|of| {
                    let filter = multiples(of).expect("it compiles");
                    world.create_reader_with(nodes[of as usize - 1], &topic, filter)
                });
                world.until_matched(&[writer], &readers);
                let longest = if topic.config_on(nodes[0]).max_payload_bytes > 100 {
                    5_000
                } else {
                    0
                };
                world.publish(writer, ms(4), keyed_samples(seed, 100, longest));
                world.run_for(SECOND / 10);
                let filter = multiples(5).expect("it compiles");
                world.create_reader_with(nodes[3], &topic, filter);
            }
            world.run_for(5 * SECOND);
        },
    );
}
