//! Discovery events: each is reported once and in order; a note tells if more happened than is kept.

use isolane_rtps::{DiscoveryChange, DiscoveryEvent, limits::MAX_DISCOVERY_EVENTS};
use isolane_sim::{NodeId, Topic, World};

use crate::support::{SECOND, two_nodes};

fn events(world: &mut World, node: NodeId) -> Vec<DiscoveryEvent> {
    world.with_protocol(node, |protocol, _| {
        std::iter::from_fn(|| protocol.next_discovery_event()).collect()
    })
}

#[test]
fn each_endpoint_is_reported_as_found_changed_and_gone() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    world.with_protocol(b, |protocol, _| protocol.watch_discovery());
    let writer = world.create_writer(a, &Topic::new("Found"));
    let reader = world.create_reader(a, &Topic::new("Found"));
    let guids = (world.writer_guid(writer), world.reader_guid(reader));
    world.run_for(SECOND);
    world
        .set_reader_qos(reader, |qos| qos.ownership_strength = 1)
        .unwrap();
    world.run_for(SECOND);
    world.delete_writer(writer);
    world.run_for(SECOND);
    world.leave(a);
    world.run_for(SECOND);
    let recorded = events(&mut world, b);
    let of = |guid| -> Vec<_> {
        let changes = recorded.iter().filter_map(|&event| match event {
            DiscoveryEvent::Writer(it, change) | DiscoveryEvent::Reader(it, change) => {
                (it == guid).then_some(change)
            }
            _ => None,
        });
        changes.collect()
    };
    use DiscoveryChange::{Changed, Found, Gone};
    assert_eq!(of(guids.0), [Found, Gone]);
    assert_eq!(of(guids.1), [Found, Changed, Gone]);
    let of_participants: Vec<_> = recorded
        .iter()
        .filter(|event| matches!(event, DiscoveryEvent::Participant(..)))
        .collect();
    assert_eq!(of_participants.len(), 2, "{of_participants:?}");
    assert!(events(&mut world, b).is_empty());
}

#[test]
fn more_events_than_are_kept_are_reported_as_missed_and_none_are_kept_without_a_listener() {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    world.with_protocol(b, |protocol, _| protocol.watch_discovery());
    let writer = world.create_writer(a, &Topic::new("Found"));
    world.run_for(SECOND);
    for strength in 1..=300 {
        world
            .set_writer_qos(writer, |qos| qos.ownership_strength = strength)
            .unwrap();
        world.run_for(SECOND / 100);
    }
    let recorded = events(&mut world, b);
    assert_eq!(recorded.len(), MAX_DISCOVERY_EVENTS);
    assert_eq!(recorded.last(), Some(&DiscoveryEvent::Missed));
    assert_eq!(
        recorded
            .iter()
            .filter(|&&it| it == DiscoveryEvent::Missed)
            .count(),
        1
    );
    assert!(events(&mut world, a).is_empty());
}
