//! DEADLINE: a period without a sample is reported at the end that waits for it (DDS 1.4 §2.2.3.7).

use std::time::Duration;

use isolane_rtps::{DeadlineMissed, ReaderStatus, WriterStatus};
use isolane_sim::{LinkConfig, Partition, ReaderHandle, Sample, Topic, World, WriterHandle, seeds};

use crate::support::{SECOND, a_pair, a_pair_in, ahead, ms, values};

const PERIOD: Duration = ms(100);

fn punctual(topic: Topic) -> Topic {
    topic.qos(|qos| qos.deadline = PERIOD.into())
}

fn reliable() -> Topic {
    punctual(Topic::new("Punctual").reliable().keep_all(512))
}

/// Missed deadlines that both ends report.
fn take_missed(
    world: &mut World,
    writer: WriterHandle,
    reader: ReaderHandle,
) -> (DeadlineMissed, DeadlineMissed) {
    let offered = world.take_offered_deadline_missed(writer);
    let requested = world.take_requested_deadline_missed(reader);
    (offered.expect("missed"), requested.expect("missed"))
}

#[test]
fn no_deadline_is_missed_while_samples_come_in_time() {
    for topic in [reliable(), punctual(Topic::new("Punctual"))] {
        let (mut world, _, writer, reader) = a_pair(&topic);
        world.run_for(SECOND);
        world.publish(writer, ms(90), values(50));
        world.run_for(50 * ms(90));
        assert_eq!(world.take_offered_deadline_missed(writer), None);
        assert_eq!(world.take_requested_deadline_missed(reader), None);
    }
}

#[test]
fn each_period_without_a_sample_counts_once_at_both_ends() {
    for topic in [reliable(), punctual(Topic::new("Punctual"))] {
        let (mut world, _, writer, reader) = a_pair(&topic);
        world.enqueue(writer, values(1));
        world.run_for(ms(350));
        let (offered, requested) = take_missed(&mut world, writer, reader);
        assert_eq!((offered.total, offered.change), (3, 3));
        assert_eq!((requested.total, requested.change), (3, 3));
        let at_writer = world.writer_statuses(writer);
        assert!(at_writer.contains(WriterStatus::OFFERED_DEADLINE_MISSED));
        let at_reader = world.reader_statuses(reader);
        assert!(at_reader.contains(ReaderStatus::REQUESTED_DEADLINE_MISSED));

        world.enqueue(writer, [Sample::value(2)]);
        world.run_for(ms(90));
        assert_eq!(world.take_offered_deadline_missed(writer), None);
        world.run_for(ms(20));
        let offered = world.take_offered_deadline_missed(writer).expect("missed");
        assert_eq!((offered.total, offered.change), (4, 1));
    }
}

#[test]
fn a_view_reader_is_notified_too() {
    let topic = punctual(Topic::new("Punctual"));
    let mut world = World::new(1);
    let (a, b) = crate::support::two_nodes(&mut world);
    let writer = world.create_writer(a, &topic);
    let reader = world.create_view_reader(b, &topic);
    world.until_matched(&[writer], &[reader]);
    world.enqueue(writer, values(1));
    world.run_for(ms(250));
    let missed = world
        .take_requested_deadline_missed(reader)
        .expect("missed");
    assert_eq!(missed.total, 2);
}

#[test]
fn what_does_not_come_is_missed_at_the_reader_alone() {
    let (mut world, (a, b), writer, reader) = a_pair(&punctual(Topic::new("Punctual")));
    world.publish(writer, ms(50), values(100));
    world.run_for(SECOND);
    world.partition(Partition::one_way(&[a], &[b]));
    world.run_for(SECOND);
    assert_eq!(world.take_offered_deadline_missed(writer), None);
    let missed = world
        .take_requested_deadline_missed(reader)
        .expect("missed");
    assert_eq!(missed.total, 9);
}

#[test]
fn an_instance_is_watched_until_it_ends() {
    let (mut world, _, writer, reader) = a_pair(&reliable().keyed());
    let samples = [1, 2, 3].map(|key| Sample::keyed(key, 1));
    world.enqueue(writer, samples);
    world.run_for(ms(50));
    world.enqueue(writer, [Sample::dispose(1), Sample::unregister(2)]);
    world.run_for(ms(520));
    let (offered, requested) = take_missed(&mut world, writer, reader);
    assert_eq!((offered.total, requested.total), (5, 5), "of the third");
    let third = isolane_sim::key_of(&Sample::keyed(3, 1).payload(), false).ok();
    assert_eq!(Some(offered.last_instance), third);
    assert_eq!(Some(requested.last_instance), third);
    // The deadline counts again from the next sample on.
    world.enqueue(writer, [Sample::keyed(1, 2), Sample::dispose(3)]);
    world.run_for(ms(150));
    let offered = world.take_offered_deadline_missed(writer).expect("missed");
    assert_eq!(offered.change, 1);
}

#[test]
fn an_instance_whose_writers_are_gone_is_missed_no_more() {
    let (mut world, (a, _), writer, reader) = a_pair(&reliable().keyed());
    let other = world.create_writer(a, &reliable().keyed());
    world.until_matched(&[writer, other], &[reader]);
    world.enqueue(writer, [Sample::keyed(1, 1), Sample::keyed(2, 1)]);
    world.enqueue(other, [Sample::keyed(2, 2)]);
    world.run_for(ms(50));
    world.delete_writer(writer);
    world.run_for(SECOND);
    let missed = world
        .take_requested_deadline_missed(reader)
        .expect("missed");
    assert_eq!(missed.total, 10, "the other still has the second");
    world.delete_writer(other);
    world.run_for(ms(50));
    let _ = world.take_requested_deadline_missed(reader);
    world.run_for(SECOND);
    assert_eq!(world.take_requested_deadline_missed(reader), None);
}

/// One timer serves all instances.
#[test]
fn many_instances_are_watched_each_for_itself() {
    const INSTANCES: u32 = 200;
    let topic = reliable().keyed().max_instances(INSTANCES as u16);
    let (mut world, _, writer, reader) = a_pair(&topic);
    let all = |value| (0..INSTANCES).map(move |key| Sample::keyed(key, value));
    world.enqueue(writer, all(1));
    world.run_for(ms(80));
    // Every second instance is written again.
    world.enqueue(writer, all(2).step_by(2));
    world.run_for(ms(50));
    let missed = u64::from(INSTANCES / 2);
    let (offered, requested) = take_missed(&mut world, writer, reader);
    assert_eq!((offered.total, requested.total), (missed, missed));
    world.run_for(ms(110));
    let offered = world.take_offered_deadline_missed(writer).expect("missed");
    assert_eq!(
        offered.total,
        3 * missed,
        "each once more, and the others once"
    );
}

#[test]
fn instances_beyond_what_is_watched_are_counted() {
    let topic = reliable().keyed().max_instances(4);
    let (mut world, (a, b), writer, reader) = a_pair(&topic);
    world.enqueue(writer, (0..6).map(|key| Sample::keyed(key, 1)));
    world.run_for(ms(150));
    let (offered, requested) = take_missed(&mut world, writer, reader);
    assert_eq!((offered.total, requested.total), (4, 4));
    for node in [a, b] {
        assert_eq!(world.protocol(node).counters().unwatched, 2);
    }
}

/// Over a lossy link, a reader counts as missed each whole period between two delivered samples, and after the last
/// one.
#[test]
fn over_bad_links_every_silence_is_counted() {
    let missed: u64 = seeds::for_each(0..40, |seed| {
        let world = World::new(seed).link(LinkConfig::losing(0.4));
        let topic = punctual(Topic::new("Punctual"));
        let (mut world, _, writer, reader) = a_pair_in(world, &topic);
        world.publish(writer, ms(60), values(100));
        world.run_for(100 * ms(60));
        let mut silences = 0;
        let received = world.received(reader);
        for pair in received.windows(2) {
            let silence = pair[1].at.saturating_since(pair[0].at);
            silences += (silence.as_nanos() - 1) / PERIOD.as_nanos();
        }
        let last = received.last().map_or(world.now(), |last| last.at);
        silences += world.now().saturating_since(last).as_nanos() / PERIOD.as_nanos();
        let missed = world.take_requested_deadline_missed(reader);
        let missed = missed.map_or(0, |missed| missed.total);
        assert_eq!(u128::from(missed), silences, "seed {seed}");
        missed
    })
    .into_iter()
    .sum();
    assert!(missed > 100, "{missed}");
}

#[test]
fn missed_deadlines_are_reported_after_the_deadline_is_removed_and_counted_on() {
    let (mut world, _, writer, reader) = a_pair(&reliable());
    let deadline = |period| move |qos: &mut isolane_wire::qos::QosPolicies| qos.deadline = period;
    world.enqueue(writer, values(1));
    world.run_for(ms(250));
    let endless = isolane_wire::time::Duration::INFINITE;
    world.set_reader_qos(reader, deadline(endless)).unwrap();
    world.set_writer_qos(writer, deadline(endless)).unwrap();
    let (offered, requested) = take_missed(&mut world, writer, reader);
    assert_eq!((offered.total, offered.change), (2, 2));
    assert_eq!((requested.total, requested.change), (2, 2));
    world.run_for(SECOND);
    assert_eq!(world.take_offered_deadline_missed(writer), None);
    assert_eq!(world.take_requested_deadline_missed(reader), None);

    // Time without a DEADLINE does not count afterwards.
    world
        .set_writer_qos(writer, deadline(PERIOD.into()))
        .unwrap();
    world
        .set_reader_qos(reader, deadline(PERIOD.into()))
        .unwrap();
    world.enqueue(writer, values(1));
    world.run_for(ms(150));
    let (offered, requested) = take_missed(&mut world, writer, reader);
    assert_eq!((offered.total, offered.change), (3, 1));
    assert_eq!((requested.total, requested.change), (3, 1));
}

#[test]
fn a_time_stamp_far_ahead_hides_no_period_without_a_sample() {
    let mut world = World::new(1);
    let a = world.node(ahead(3_600 * SECOND));
    let writer = world.create_writer(a, &reliable());
    world.enqueue(writer, values(1));
    world.run_for(10 * SECOND);
    let missed = world.take_offered_deadline_missed(writer);
    assert!(missed.is_some_and(|missed| missed.total > 50), "{missed:?}");
}
