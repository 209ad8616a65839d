//! Policies and user data that change while their entity exists: what the other side sees, and which changes create or
//! end a match.

use isolane_rtps::SetQosError;
use isolane_sim::{LinkConfig, Topic, World, seeds};
use isolane_wire::{
    builtin_data::EndpointData,
    guid::Guid,
    limits::MAX_OCTETS,
    qos::{
        DataRepresentationId, DestinationOrderKind, DurabilityKind, HistoryKind, LivelinessKind,
        Octets, OwnershipKind, PolicyId, PresentationAccessScope, QosPolicies, ReliabilityKind,
    },
    time,
};

use crate::{
    peer::{Peer, WRITER},
    support::{PATIENCE, SECOND, a_pair, a_pair_in, assert_notified, matched, ms, two_nodes},
};

fn topic() -> Topic {
    Topic::new("Changing").reliable().keep_all(64)
}

fn octets(text: &str) -> Octets {
    Octets::of(text.as_bytes()).expect("a short text")
}

fn millis(millis: u64) -> time::Duration {
    ms(millis).into()
}

/// Returns a node's data of another node's endpoint.
fn known(world: &World, at: isolane_sim::NodeId, guid: Guid) -> Option<EndpointData> {
    let mut endpoints = world.protocol(at).remote_endpoints();
    let found = endpoints.find(|endpoint| endpoint.data.guid == guid)?;
    Some(found.data)
}

#[test]
fn user_topic_and_group_data_reach_peers_and_follow_their_changes() {
    seeds::for_each(0..20, |seed| {
        let said = topic().qos(|qos| {
            qos.user_data = octets("typehash=1;");
            qos.topic_data = octets("of the topic");
            qos.group_data = octets("of the group");
        });
        let (mut world, (a, b), writer, reader) =
            a_pair_in(World::new(seed).link(LinkConfig::lossy(0.2)), &said);
        let guids = [world.writer_guid(writer), world.reader_guid(reader)];
        for (at, guid) in [(b, guids[0]), (a, guids[1])] {
            let qos = &known(&world, at, guid).expect("it is known").qos;
            assert_eq!(qos.user_data.as_slice(), b"typehash=1;");
            assert_eq!(qos.topic_data.as_slice(), b"of the topic");
            assert_eq!(qos.group_data.as_slice(), b"of the group");
        }
        let before = (
            world.protocol(a).matched_readers(world.writer_id(writer)),
            world.matched_writers(reader),
        );
        let change = |qos: &mut QosPolicies| qos.user_data = octets("typehash=2;");
        world.set_writer_qos(writer, change).unwrap();
        world.set_reader_qos(reader, change).unwrap();
        world.with_protocol(a, |protocol, _| protocol.set_user_data(octets("zone left")));
        world.run_until("the changes are known", PATIENCE, |world| {
            let has_changed = |at, guid| {
                known(world, at, guid).is_some_and(|it| it.qos.user_data == octets("typehash=2;"))
            };
            let mut peers = world.protocol(b).remote_participants();
            has_changed(b, guids[0])
                && has_changed(a, guids[1])
                && peers.any(|peer| peer.data.user_data == octets("zone left"))
        });
        let matched = matched(&world, writer, reader);
        assert_eq!((matched, before), ((1, 1), (1, 1)));
    });
}

#[test]
fn of_user_data_of_a_peer_that_is_too_long_the_first_octets_are_kept_and_that_is_counted() {
    let mut world = World::new(1);
    let (a, _) = two_nodes(&mut world);
    let peer = Peer::of(&mut world, a);
    // Announced in the form of another implementation, which has no such bound.
    let mut list = vec![0, 3, 0, 0];
    let mut put = |id: u16, value: &[u8]| {
        list.extend(id.to_le_bytes());
        list.extend((value.len() as u16).to_le_bytes());
        list.extend(value);
    };
    let guid = Guid {
        prefix: peer.prefix,
        entity: WRITER,
    };
    let text = |text: &[u8]| [&(text.len() as u32).to_le_bytes()[..], text].concat();
    put(
        isolane_wire::parameter::pid::ENDPOINT_GUID,
        &guid.to_bytes(),
    );
    put(
        isolane_wire::parameter::pid::TOPIC_NAME,
        &text(b"Foreign\0"),
    );
    put(
        isolane_wire::parameter::pid::TYPE_NAME,
        &text(b"sim::Sample\0"),
    );
    put(isolane_wire::parameter::pid::USER_DATA, &text(&[7; 1000]));
    put(isolane_wire::parameter::pid::SENTINEL, &[]);
    let head = crate::peer::head(isolane_wire::guid::EntityId::SEDP_PUBLICATIONS_WRITER, 1);
    peer.say(&mut world, |message| message.data(&head, &list).map(drop));
    world.run_for(SECOND);
    let user_data = &known(&world, a, guid).expect("it is known").qos.user_data;
    assert_eq!(user_data.as_slice(), [7; MAX_OCTETS]);
    assert!(user_data.is_truncated());
    assert_eq!(world.protocol(a).counters().octets_cut, 1);
}

#[test]
fn a_changed_deadline_breaks_a_match_and_mends_it() {
    let (mut world, (a, b), writer, reader) = a_pair(&topic());
    let deadline = |period| move |qos: &mut QosPolicies| qos.deadline = millis(period);
    // The reader now requests more than the writer offers.
    world.set_reader_qos(reader, deadline(100)).unwrap();
    world.run_for(SECOND);
    assert_eq!(matched(&world, writer, reader), (0, 0));
    let offered = world
        .protocol(a)
        .offered_incompatible(world.writer_id(writer));
    let requested = world
        .protocol(b)
        .requested_incompatible(world.reader_id(reader));
    for found in [offered, requested] {
        let found = found.expect("both are notified");
        assert_eq!((found.policy, found.total), (PolicyId::DEADLINE, 1));
    }
    assert_notified(&world, writer, reader);
    // A further change that leaves the mismatch unchanged is not reported again.
    world
        .set_reader_qos(reader, |qos| qos.user_data = octets("still"))
        .unwrap();
    world.set_writer_qos(writer, deadline(101)).unwrap();
    world.run_for(SECOND);
    let offered = world
        .protocol(a)
        .offered_incompatible(world.writer_id(writer));
    assert_eq!(offered.map(|found| found.total), Some(1));

    world.set_writer_qos(writer, deadline(100)).unwrap();
    world.until_matched(&[writer], &[reader]);
}

#[test]
fn an_unchanged_offer_is_not_announced_again() {
    let (mut world, (a, _), writer, _) = a_pair(&topic());
    world.run_for(SECOND);
    let before = world.protocol(a).ready();
    world.set_writer_qos(writer, |_| {}).unwrap();
    assert_eq!(world.protocol(a).ready(), before);
}

/// Policy that must not change, and a change of it.
type Refused = (PolicyId, fn(&mut QosPolicies));

#[test]
fn policies_that_the_standard_does_not_let_change_are_refused_by_name() {
    let refused: [Refused; 11] = [
        (PolicyId::DURABILITY, |qos| {
            qos.durability = DurabilityKind::Persistent;
        }),
        (PolicyId::DURABILITY_SERVICE, |qos| {
            qos.durability_service.history.depth = 2;
        }),
        (PolicyId::PRESENTATION, |qos| {
            qos.presentation.access_scope = PresentationAccessScope::Group;
        }),
        (PolicyId::OWNERSHIP, |qos| {
            qos.ownership = OwnershipKind::Exclusive;
        }),
        (PolicyId::LIVELINESS, |qos| {
            qos.liveliness.kind = LivelinessKind::ManualByTopic;
        }),
        (PolicyId::RELIABILITY, |qos| {
            qos.reliability.kind = ReliabilityKind::BestEffort;
        }),
        (PolicyId::TRANSPORT_PRIORITY, |qos| {
            qos.transport_priority = 1;
        }),
        (PolicyId::DESTINATION_ORDER, |qos| {
            qos.destination_order = DestinationOrderKind::BySourceTimestamp;
        }),
        (PolicyId::HISTORY, |qos| {
            qos.history.kind = HistoryKind::KeepLast;
        }),
        (PolicyId::RESOURCE_LIMITS, |qos| {
            qos.resource_limits.max_samples = 5;
        }),
        (PolicyId::DATA_REPRESENTATION, |qos| {
            qos.data_representation
                .extend([DataRepresentationId::XCDR2]);
        }),
    ];
    let (mut world, _, writer, reader) = a_pair(&topic());
    for (policy, change) in refused {
        let immutable = Err(SetQosError::ImmutablePolicy(policy));
        assert_eq!(world.set_writer_qos(writer, change), immutable);
        assert_eq!(world.set_reader_qos(reader, change), immutable);
    }
    let inconsistent = world.set_reader_qos(reader, |qos| {
        qos.deadline = millis(10);
        qos.time_based_filter = millis(20);
    });
    assert_eq!(
        inconsistent,
        Err(SetQosError::InconsistentPolicy(PolicyId::DEADLINE))
    );
    world.run_for(SECOND);
    assert_eq!(matched(&world, writer, reader), (1, 1));
}

#[test]
fn the_others_may_change_all_at_once() {
    let (mut world, (a, b), writer, reader) = a_pair(&topic());
    let change = |qos: &mut QosPolicies| {
        qos.deadline = millis(100);
        qos.latency_budget = millis(1);
        qos.ownership_strength = 5;
        qos.lifespan = millis(1000);
        qos.time_based_filter = millis(50);
        qos.group_data = octets("changed");
    };
    // The writer changes first, because a reader that requested more meanwhile would end the match.
    world
        .set_writer_qos(writer, |qos| {
            change(qos);
            qos.latency_budget = time::Duration::ZERO;
        })
        .unwrap();
    world.set_reader_qos(reader, change).unwrap();
    world.run_for(SECOND);
    assert_eq!(matched(&world, writer, reader), (1, 1));
    let of_writer = &known(&world, b, world.writer_guid(writer))
        .expect("it is known")
        .qos;
    assert_eq!(
        (of_writer.ownership_strength, of_writer.lifespan),
        (5, millis(1000))
    );
    let of_reader = &known(&world, a, world.reader_guid(reader))
        .expect("it is known")
        .qos;
    assert_eq!(
        (of_reader.deadline, of_reader.time_based_filter),
        (millis(100), millis(50))
    );
}

#[test]
fn a_peer_that_changes_what_it_announces_is_matched_by_what_it_says_now() {
    let mut world = World::new(1);
    let (a, _) = two_nodes(&mut world);
    let reader = world.create_reader(a, &Topic::new("Foreign"));
    let mut peer = Peer::of(&mut world, a);
    for (partition, matched) in [("", 1), ("elsewhere", 0), ("*", 1), ("left", 0), ("", 1)] {
        let mut qos = QosPolicies::writer_default();
        qos.partition.push(partition.try_into().unwrap()).unwrap();
        peer.announce(&mut world, WRITER, qos);
        world.run_for(ms(10));
        assert_eq!(world.matched_writers(reader), matched, "{partition:?}");
    }
}

#[test]
fn whatever_an_endpoint_says_of_itself_can_be_announced() {
    let name = "n".repeat(255);
    let mut partitions = QosPolicies::default().partition;
    for number in 0..isolane_wire::limits::MAX_PARTITIONS {
        let partition = format!("{number:0>64}");
        partitions
            .push(partition.as_str().try_into().expect("it fits"))
            .expect("it fits");
    }
    let most = Octets::of(&[7; MAX_OCTETS]).expect("it fits");
    let long = Topic::new(&name).reliable().qos(|qos| {
        qos.partition = partitions;
        qos.user_data = most.clone();
        qos.topic_data = most.clone();
        qos.group_data = most;
    });
    let (_, _, _, _) = a_pair(&long);
}
