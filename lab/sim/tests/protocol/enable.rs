//! Disabled endpoints (DDS 1.4 §2.2.2.1.1.7), and *wait_for_historical_data* (§2.2.2.5.3.34).

use isolane_rtps::{ContentFilter, EnableError, WriteError};
use isolane_sim::{LinkConfig, NodeId, Sample, Topic, World, seeds};

use crate::support::{PATIENCE, SECOND, endpoints, ms, two_nodes, values};

fn reliable() -> Topic {
    Topic::new("Later").reliable().keep_all(8)
}

/// Two nodes, of which the first enables no endpoint by itself.
fn without_autoenable() -> (World, NodeId, NodeId) {
    let mut world = World::new(1);
    let (a, b) = two_nodes(&mut world);
    world.with_protocol(a, |protocol, _| protocol.set_autoenable(false));
    (world, a, b)
}

#[test]
fn an_endpoint_that_is_not_enabled_is_neither_announced_nor_matched() {
    let (mut world, a, b) = without_autoenable();
    let writer = world.create_writer(a, &reliable());
    let of_own = world.create_reader(a, &reliable());
    let reader = world.create_reader(b, &reliable());
    world.run_for(5 * SECOND);
    assert_eq!((endpoints(&world, a), endpoints(&world, b)), (1, 0));
    assert_eq!(world.matched_readers(writer), 0);
    let written = world.write(writer, Sample::value(1));
    assert_eq!(written, Err(WriteError::NotEnabled));
    assert_eq!(world.writer_ledger(writer).refused, 1);

    let (writer_id, own_id) = (world.writer_id(writer), world.reader_id(of_own));
    let enabled = world.with_protocol(a, |protocol, now| protocol.enable_writer(now, writer_id));
    assert_eq!(enabled, Ok(()));
    world.until_matched(&[writer], &[reader]);
    world.enqueue(writer, values(3));
    world.run_for(SECOND);
    assert_eq!(world.values(reader), [1, 2, 3]);
    assert!(world.values(of_own).is_empty());
    let enabled = world.with_protocol(a, |protocol, now| protocol.enable_reader(now, own_id));
    assert_eq!(enabled, Ok(()));
    world.until_matched(&[writer], &[reader, of_own]);
    world.enqueue(writer, [Sample::value(4)]);
    world.run_for(SECOND);
    assert_eq!(
        (world.values(reader).len(), world.values(of_own)),
        (4, vec![4])
    );
    // Enabling again has no effect.
    let again = world.with_protocol(a, |protocol, now| protocol.enable_writer(now, writer_id));
    assert_eq!(again, Ok(()));
    assert_eq!(endpoints(&world, b), 2);
}

#[test]
fn a_best_effort_writer_that_is_not_enabled_refuses_and_one_that_goes_so_says_nothing() {
    let (mut world, a, b) = without_autoenable();
    let topic = Topic::new("Later");
    let writer = world.create_writer(a, &topic);
    let reader = world.create_reader(b, &topic);
    let written = world.write(writer, Sample::value(1));
    assert_eq!(written, Err(WriteError::NotEnabled));
    let id = world.writer_id(writer);
    let limit = world.protocol(a).max_payload_bytes(id);
    let enabled = world.with_protocol(a, |protocol, now| protocol.enable_writer(now, id));
    assert_eq!(
        (enabled, world.protocol(a).max_payload_bytes(id)),
        (Ok(()), limit)
    );
    world.until_matched(&[writer], &[reader]);
    world.enqueue(writer, [Sample::value(2)]);
    world.run_for(SECOND);
    assert_eq!(world.values(reader), [2]);

    let never = world.create_writer(a, &topic.name("Never"));
    world.run_for(SECOND);
    world.tap();
    world.delete_writer(never);
    let before = world.tapped().len();
    world.run_for(ms(10));
    assert_eq!(world.tapped().len(), before, "no peer knew it");
    let gone = world.writer_id(never);
    let enabled = world.with_protocol(a, |protocol, now| protocol.enable_writer(now, gone));
    assert_eq!(enabled, Err(EnableError::Gone));
}

#[test]
fn policies_of_an_endpoint_that_is_not_enabled_change_before_anybody_hears_of_it() {
    let (mut world, a, b) = without_autoenable();
    let writer = world.create_writer(a, &reliable());
    let deadline = |topic: Topic| topic.qos(|qos| qos.deadline = SECOND.into());
    let reader = world.create_reader(b, &deadline(reliable()));
    let changed = world.set_writer_qos(writer, |qos| qos.deadline = ms(500).into());
    assert_eq!(changed, Ok(()));
    world.run_for(SECOND);
    assert_eq!(endpoints(&world, b), 0);
    let id = world.writer_id(writer);
    let enabled = world.with_protocol(a, |protocol, now| protocol.enable_writer(now, id));
    assert_eq!(enabled, Ok(()));
    world.until_matched(&[writer], &[reader]);
}

#[test]
fn a_late_reader_has_its_history_when_it_says_so_and_not_before() {
    seeds::for_each(0..20, |seed| {
        let mut world = World::new(seed).link(LinkConfig::lossy(0.2));
        let (a, b) = two_nodes(&mut world);
        let topic = Topic::new("History")
            .reliable()
            .keep_last(50)
            .transient_local();
        let writer = world.create_writer(a, &topic);
        world.enqueue(writer, values(50));
        world.run_for(3 * SECOND);
        let reader = world.create_reader(b, &topic);
        let volatile = world.create_reader(b, &Topic::new("History").reliable());
        let ids = [reader, volatile].map(|reader| world.reader_id(reader));
        let has_history = |world: &World, at: usize| world.protocol(b).has_history(ids[at]);
        assert!(has_history(&world, 1), "it is promised none");
        world.run_until("it is matched", PATIENCE, |world| {
            world.matched_writers(reader) == 1
        });
        assert!(!has_history(&world, 0), "nothing was heard of it yet");
        world.run_until("it has its history", PATIENCE, |world| {
            has_history(world, 0)
        });
        assert_eq!(world.values(reader), (1..=50).collect::<Vec<_>>());
    });
}

#[test]
fn another_filter_of_a_reader_that_is_not_enabled_is_not_announced() {
    let (mut world, a, b) = without_autoenable();
    let filtered = world.create_reader_with(a, &reliable(), ContentFilter::new(|_| true));
    let id = world.reader_id(filtered);
    let filter = Some(ContentFilter::new(|_| false));
    let changed = world.with_protocol(a, |protocol, now| {
        protocol.set_reader_filter(now, id, filter)
    });
    assert_eq!(changed, Ok(()));
    world.run_for(SECOND);
    assert_eq!(endpoints(&world, b), 0);
}

#[test]
fn a_budget_that_is_taken_back_before_the_writer_is_enabled_holds_nothing_back() {
    let (mut world, a, b) = without_autoenable();
    let topic = reliable().qos(|qos| qos.latency_budget = SECOND.into());
    let writer = world.create_writer(a, &topic);
    let reader = world.create_reader(b, &topic);
    let id = world.writer_id(writer);
    world.with_protocol(a, |protocol, now| {
        let mut qos = protocol.writer_data(id).expect("it exists").qos.clone();
        qos.latency_budget = ms(0).into();
        assert_eq!(protocol.set_writer_qos(now, id, &qos), Ok(()));
        assert_eq!(protocol.enable_writer(now, id), Ok(()));
    });
    world.until_matched(&[writer], &[reader]);
    world.enqueue(writer, values(1));
    world.run_for(ms(20));
    assert_eq!(world.values(reader), [1]);
}
