//! LATENCY_BUDGET (DDS 1.4 §2.2.3.8): samples of a writer with a budget leave in one datagram, each within the budget;
//! those of a writer without a budget leave at once.

use std::time::Duration;

use isolane_rtps::limits::MAX_HOLD;
use isolane_sim::{LinkConfig, ReaderHandle, Sample, Topic, World, WriterHandle, seeds};

use crate::support::{PATIENCE, SECOND, a_pair, a_pair_in, ms, taken, values, written};

fn budget(topic: Topic, budget: Duration) -> Topic {
    topic.qos(move |qos| qos.latency_budget = budget.into())
}

fn micros(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}

/// Maximum time from writing a sample to reading it.
fn longest(world: &World, writer: WriterHandle, reader: ReaderHandle) -> Duration {
    let written = world.written(writer);
    let times = world.received_from(reader, writer).map(|received| {
        let of = written
            .iter()
            .find(|it| it.sequence == received.info.sequence);
        received.at.saturating_since(of.expect("it was written").at)
    });
    times.max().unwrap_or_default()
}

/// Number of datagrams on the link until a reader has `count` samples, one written in each `period`; and the maximum
/// latency of a sample.
fn datagrams(topic: &Topic, period: Duration, count: u64) -> (u64, Duration) {
    let (mut world, _, writer, reader) = a_pair(topic);
    world.run_for(SECOND);
    let before = world.link_ledger().sent;
    world.publish(writer, period, values(count));
    world.run_until("all come", PATIENCE, |world| {
        world.reader_ledger(reader).delivered == count
    });
    let sent = world.link_ledger().sent - before;
    assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
    (sent, longest(&world, writer, reader))
}

#[test]
fn samples_of_a_budget_share_datagrams_and_come_within_it() {
    for topic in [
        Topic::new("Traces").keep_last(64),
        Topic::new("Traces").reliable().keep_all(256),
    ] {
        let (alone, at_once) = datagrams(&topic, micros(100), 1_000);
        let (together, held) = datagrams(&budget(topic, ms(4)), micros(100), 1_000);
        assert!(alone >= 1_000, "{alone}");
        assert!(10 * together < alone, "{together} and {alone}");
        assert!(at_once < ms(1), "{at_once:?}");
        assert!(held <= ms(4) && held > ms(1), "{held:?}");
    }
}

#[test]
fn a_single_sample_leaves_when_half_of_the_budget_is_over() {
    for topic in [
        Topic::new("Traces").keep_last(4),
        Topic::new("Traces").reliable().keep_last(4),
    ] {
        let (_, held) = datagrams(&budget(topic, ms(20)), SECOND, 3);
        assert!(held >= ms(10) && held < ms(12), "{held:?}");
    }
}

#[test]
fn a_full_datagram_leaves_at_once() {
    // The budget is ten seconds, but the samples fill a datagram within a few milliseconds.
    let topic = budget(Topic::new("Traces").reliable().keep_all(256), 10 * SECOND);
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.publish(writer, micros(100), values(200));
    world.run_for(ms(25));
    assert!(
        world.reader_ledger(reader).delivered >= 150,
        "{:?}",
        world.reader_ledger(reader)
    );
    // The last samples wait for at most [`MAX_HOLD`].
    world.run_for(MAX_HOLD);
    assert_eq!(world.reader_ledger(reader).delivered, 200);
}

#[test]
fn what_waits_is_flushed_by_the_user() {
    for topic in [
        Topic::new("Traces").keep_last(8),
        Topic::new("Traces").reliable().keep_last(8),
    ] {
        let (mut world, (a, _), writer, reader) = a_pair(&budget(topic, 10 * SECOND));
        world.enqueue(writer, values(3));
        world.run_for(ms(100));
        assert_eq!(world.writer_ledger(writer).pending, 3);
        assert_eq!(world.reader_ledger(reader).delivered, 0);
        let id = world.writer_id(writer);
        world.with_protocol(a, |protocol, _| protocol.flush(id));
        world.run_for(ms(1));
        assert_eq!(world.reader_ledger(reader).delivered, 3);
    }
}

#[test]
fn what_is_lost_of_a_batch_is_repaired() {
    seeds::for_each(0..10, |seed| {
        let topic = budget(Topic::new("Traces").reliable().keep_all(64), ms(4));
        let world = World::new(seed).link(LinkConfig::lossy(0.2));
        let (mut world, _, writer, reader) = a_pair_in(world, &topic);
        world.publish(writer, micros(200), values(500));
        world.run_until("all come", PATIENCE, |world| {
            world.reader_ledger(reader).delivered == 500
        });
        assert_eq!(
            taken(&world, reader, writer),
            written(&world, writer, 1),
            "seed {seed}"
        );
    });
}

#[test]
fn a_best_effort_burst_beyond_what_is_kept_is_counted() {
    // All samples are written at one instant, so the loop does not run between them.
    let topic = budget(Topic::new("Traces").keep_last(8), ms(4));
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.enqueue(writer, values(3_000));
    world.run_for(SECOND);
    let at_writer = world.writer_ledger(writer);
    assert!(
        at_writer.evicted_unsent > 0 && at_writer.balances(),
        "{at_writer:?}"
    );
    // A datagram has more samples than the reader keeps.
    let at_reader = world.reader_ledger(reader);
    assert_eq!(at_reader.delivered + at_reader.evicted, at_writer.sent);
    let last = world
        .received_from(reader, writer)
        .last()
        .and_then(|it| it.sample());
    assert_eq!(last.map(|it| it.value), Some(3_000), "the newest count");
}

#[test]
fn a_budget_that_is_taken_back_lets_go_and_holds_no_more() {
    let topic = budget(Topic::new("Traces").reliable().keep_all(64), 10 * SECOND);
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.enqueue(writer, values(2));
    world.run_for(ms(10));
    assert_eq!(world.reader_ledger(reader).delivered, 0);
    let set = world.set_writer_qos(writer, |qos| qos.latency_budget = Duration::ZERO.into());
    assert_eq!(set, Ok(()));
    world.run_for(ms(1));
    assert_eq!(world.reader_ledger(reader).delivered, 2);
    world.enqueue(writer, [Sample::value(3)]);
    world.run_for(ms(1));
    assert_eq!(world.reader_ledger(reader).delivered, 3);
}

#[test]
fn datagrams_are_as_large_as_the_writer_may_make_them() {
    let topic = budget(Topic::new("Traces").reliable().keep_all(1_024), 10 * SECOND);
    let small = datagrams(&topic, micros(10), 1_000).0;
    let large = datagrams(
        &topic.max_payload_bytes(8_000).max_datagram_bytes(8_000),
        micros(10),
        1_000,
    )
    .0;
    assert!(2 * large < small, "{large} and {small}");
}

#[test]
fn a_sample_is_not_held_for_longer_than_half_of_its_life_or_of_its_deadline() {
    let topic = Topic::new("Traces").reliable().keep_all(64);
    let of_life = topic.clone().qos(|qos| qos.lifespan = ms(20).into());
    let of_deadline = topic.qos(|qos| qos.deadline = ms(20).into());
    for topic in [of_life, of_deadline] {
        let (_, held) = datagrams(&budget(topic, SECOND), ms(15), 40);
        assert!(held >= ms(9) && held < ms(20), "{held:?}");
    }
}

#[test]
fn no_sample_pushes_out_one_of_its_instance_that_is_held() {
    let topic = Topic::new("Traces").reliable().keep_last(1).keyed();
    let (mut world, _, writer, reader) = a_pair(&budget(topic, ms(100)));
    world.run_for(SECOND);
    world.publish(
        writer,
        ms(10),
        (1..=20).map(|value| Sample::keyed(7, value)),
    );
    world.run_for(SECOND);
    assert_eq!(world.writer_ledger(writer).evicted_unsent, 0);
    assert_eq!(taken(&world, reader, writer), written(&world, writer, 1));
}
