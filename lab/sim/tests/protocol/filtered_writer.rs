//! Content filters that writers evaluate (RTPS 2.5 §8.7.4): samples that no reader wants are not sent, each reader gets
//! the samples that pass its filter, and rejected samples never count as lost.

use isolane_rtps::{ChangeKind, ContentFilter, limits::MAX_FILTERS};
use isolane_sim::{
    LinkConfig, NodeConfig, NodeId, Random, ReaderHandle, Sample, Topic, World, WriterHandle, seeds,
};
use isolane_wire::{builtin_data::ContentFilterProperty, qos::LivelinessKind};

use crate::{
    peer::{Peer, READER},
    support::{PATIENCE, Pair, SECOND, keyed_samples, ms, taken, two_nodes, values, written},
};

fn is_multiple(payload: &[u8], of: u64) -> bool {
    let sample = Sample::parse(ChangeKind::Alive, payload);
    sample.is_some_and(|sample| sample.value.is_multiple_of(of))
}

/// Compiles filters of the language `multiple of N`.
fn compile(property: &ContentFilterProperty<'_>) -> Option<ContentFilter> {
    let of = property
        .expression
        .strip_prefix("multiple of ")?
        .parse()
        .ok()?;
    let filter = ContentFilter::new(move |payload| is_multiple(payload, of));
    // The cost is about that of a comparison.
    Some(filter.taking(64))
}

/// Filter for multiples of `of`, announced as `expression`, whatever that text means.
fn announced(expression: &str, of: u64) -> ContentFilter {
    ContentFilter::new(move |payload| is_multiple(payload, of)).announced(&ContentFilterProperty {
        filtered_topic_name: "Filtered",
        related_topic_name: "Numbers",
        class_name: ContentFilterProperty::DDSSQL,
        expression,
        parameters: Default::default(),
    })
}

pub(crate) fn multiples(of: u64) -> ContentFilter {
    announced(&format!("multiple of {of}"), of)
}

/// Creates a writer that evaluates its readers' filters.
pub(crate) fn evaluating(world: &mut World, node: NodeId, topic: &Topic) -> WriterHandle {
    let writer = world.create_writer(node, topic);
    let id = world.writer_id(writer);
    world.with_protocol(node, |protocol, _| protocol.evaluate_filters(id, compile));
    writer
}

/// Two nodes with a matched writer that evaluates filters, and a reader with a filter.
pub(crate) fn a_pair(mut world: World, topic: &Topic, filter: ContentFilter) -> Pair {
    let (a, b) = two_nodes(&mut world);
    let writer = evaluating(&mut world, a, topic);
    let reader = world.create_reader_with(b, topic, filter);
    world.until_matched(&[writer], &[reader]);
    (world, (a, b), writer, reader)
}

pub(crate) fn all_accounted(world: &mut World, reader: ReaderHandle, count: u64) {
    world.run_until("all are accounted for", PATIENCE, |world| {
        world.reader_ledger(reader).accounted == count
    });
}

/// Asserts how many samples a reader has delivered, has counted as filtered by content, and has lost.
pub(crate) fn assert_account(world: &World, reader: ReaderHandle, expected: (u64, u64, u64)) {
    let ledger = world.reader_ledger(reader);
    let account = (ledger.delivered, ledger.content_filtered, ledger.lost);
    assert_eq!(account, expected, "{ledger:?}");
}

/// Asserts how many samples a writer has sent, and has not sent because of its readers' filters.
pub(crate) fn assert_withheld(world: &World, writer: WriterHandle, expected: (u64, u64)) {
    let ledger = world.writer_ledger(writer);
    assert_eq!(
        (ledger.sent, ledger.content_filtered),
        expected,
        "{ledger:?}"
    );
}

#[test]
fn what_the_only_reader_does_not_want_is_not_sent_and_not_lost() {
    let topic = Topic::new("Numbers").reliable().keep_all(32);
    let (mut world, _, writer, reader) = a_pair(World::new(1), &topic, multiples(3));
    world.publish(writer, ms(2), values(99));
    all_accounted(&mut world, reader, 99);
    assert_withheld(&world, writer, (33, 66));
    let at_writer = world.writer_ledger(writer);
    assert_eq!((at_writer.repaired, at_writer.gaps), (0, 66));
    assert_account(&world, reader, (33, 66, 0));
    assert_eq!(world.reader_ledger(reader).skipped, 0);
}

#[test]
fn a_reader_has_what_it_wants_once_and_in_order_whatever_the_link_loses() {
    seeds::for_each(0..20, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.2));
        let topic = Topic::new("Numbers").reliable().keep_all(16).keyed();
        let (mut world, _, writer, reader) = a_pair(world, &topic, multiples(3));
        world.publish(writer, ms(2), keyed_samples(200, &mut Random::new(seed)));
        all_accounted(&mut world, reader, 200);
        let mut expected = written(&world, writer, 1);
        expected.retain(|(_, it)| it.kind != ChangeKind::Alive || it.value.is_multiple_of(3));
        assert_eq!(taken(&world, reader, writer), expected, "seed {seed}");
        let ledger = world.reader_ledger(reader);
        assert_eq!(
            (
                ledger.lost,
                ledger.content_filtered + ledger.delivered + ledger.unregistered
            ),
            (0, 200),
            "seed {seed}"
        );
        assert!(world.writer_ledger(writer).content_filtered > 0);
    });
}

#[test]
fn readers_with_other_wishes_each_get_their_own() {
    seeds::for_each(0..10, |seed| {
        let mut world = World::new(seed).link(LinkConfig::lossy(0.1));
        let nodes = world.nodes(4, &NodeConfig::default());
        let topic = Topic::new("Numbers").reliable().keep_all(16);
        let writer = evaluating(&mut world, nodes[0], &topic);
        let readers = [
            (world.create_reader_with(nodes[1], &topic, multiples(2)), 2),
            (world.create_reader_with(nodes[2], &topic, multiples(5)), 5),
            (world.create_reader(nodes[3], &topic), 1),
        ];
        world.until_matched(&[writer], &readers.map(|(reader, _)| reader));
        world.publish(writer, ms(2), values(200));
        for (reader, of) in readers {
            all_accounted(&mut world, reader, 200);
            let ledger = world.reader_ledger(reader);
            assert_eq!(
                (ledger.delivered, ledger.lost),
                (200 / of, 0),
                "seed {seed}, {of}"
            );
        }
        // One of the readers wants all samples.
        assert_eq!(world.writer_ledger(writer).content_filtered, 0);
    });
}

#[test]
fn who_wants_little_is_sent_little() {
    let mut world = World::new(3);
    let nodes = world.nodes(3, &NodeConfig::default());
    let topic = Topic::new("Numbers").reliable().keep_all(64);
    let writer = evaluating(&mut world, nodes[0], &topic);
    let few = world.create_reader_with(nodes[1], &topic, multiples(100));
    let all = world.create_reader(nodes[2], &topic);
    world.until_matched(&[writer], &[few, all]);
    world.run_for(SECOND);
    let before = [1, 2].map(|at| world.bytes_sent_to(nodes[at]));
    world.publish(writer, ms(5), values(1_000));
    all_accounted(&mut world, few, 1_000);
    all_accounted(&mut world, all, 1_000);
    let sent = [1, 2].map(|at| world.bytes_sent_to(nodes[at]) - before[at - 1]);
    assert!(4 * sent[0] < 3 * sent[1], "{sent:?}");
    assert_eq!(world.reader_ledger(few).delivered, 10);
}

#[test]
fn where_readers_share_a_group_each_judges_for_itself() {
    let mut world = World::new(4);
    let nodes = world.nodes(3, &NodeConfig::default());
    let topic = Topic::new("Numbers").reliable().keep_all(16).multicast();
    let writer = evaluating(&mut world, nodes[0], &topic);
    let readers = [2, 3].map(|of| {
        let reader = world.create_reader_with(nodes[of as usize - 1], &topic, multiples(of));
        (reader, of)
    });
    world.until_matched(&[writer], &readers.map(|(reader, _)| reader));
    world.publish(writer, ms(2), values(120));
    for (reader, of) in readers {
        all_accounted(&mut world, reader, 120);
        assert_eq!(world.reader_ledger(reader).delivered, 120 / of);
    }
    // Samples that neither reader wants are sent to none: filters for 2 and for 3 reject a third of all.
    assert_eq!(world.writer_ledger(writer).content_filtered, 40);
}

#[test]
fn a_run_that_all_filters_reject_holds_no_writer_up() {
    // The history has four places, and only rejected samples fill it.
    let topic = Topic::new("Numbers").reliable().keep_all(4);
    let (mut world, _, writer, reader) = a_pair(World::new(5), &topic, multiples(1_000_000));
    world.publish(writer, ms(1), values(500));
    world.run_for(SECOND);
    assert_eq!(world.unwritten(writer), 0, "it was acknowledged all along");
    all_accounted(&mut world, reader, 500);
    assert_withheld(&world, writer, (0, 500));
}

#[test]
fn a_reader_that_rejects_all_does_not_delay_one_that_accepts_all() {
    let mut world = World::new(13);
    let nodes = world.nodes(3, &NodeConfig::default());
    let topic = Topic::new("Numbers").reliable().keep_all(8);
    let writer = evaluating(&mut world, nodes[0], &topic);
    let none = world.create_reader_with(nodes[1], &topic, multiples(1_000_000));
    let all = world.create_reader(nodes[2], &topic);
    world.until_matched(&[writer], &[none, all]);
    world.publish(writer, ms(1), values(500));
    world.run_for(ms(600));
    assert_eq!(world.unwritten(writer), 0);
    all_accounted(&mut world, none, 500);
    assert_eq!(world.reader_ledger(all).delivered, 500);
}

#[test]
fn a_late_joiner_gets_of_the_history_what_it_wants() {
    let topic = Topic::new("Numbers")
        .reliable()
        .keep_all(64)
        .transient_local();
    let mut world = World::new(6).link(LinkConfig::lossy(0.1));
    let (a, b) = two_nodes(&mut world);
    let writer = evaluating(&mut world, a, &topic);
    world.publish(writer, ms(1), values(60));
    world.run_for(SECOND);
    let reader = world.create_reader_with(b, &topic, multiples(6));
    all_accounted(&mut world, reader, 60);
    assert_account(&world, reader, (10, 50, 0));
    assert_eq!(world.writer_ledger(writer).history, 10);
}

#[test]
fn another_filter_is_announced_and_holds_from_then_on() {
    let topic = Topic::new("Numbers").reliable().keep_all(16);
    let (mut world, (_, b), writer, reader) = a_pair(World::new(7), &topic, multiples(10));
    world.publish(writer, ms(1), values(100));
    all_accounted(&mut world, reader, 100);
    assert_eq!(world.reader_ledger(reader).delivered, 10);
    let id = world.reader_id(reader);
    let set = |world: &mut World, filter| {
        let set = world.with_protocol(b, |protocol, now| {
            protocol.set_reader_filter(now, id, filter)
        });
        assert_eq!(set, Ok(()));
        world.run_for(SECOND);
    };
    set(&mut world, Some(multiples(4)));
    let content_filtered = world.writer_ledger(writer).content_filtered;
    world.publish(writer, ms(1), values(100));
    all_accounted(&mut world, reader, 200);
    assert_eq!(world.reader_ledger(reader).delivered, 10 + 25);
    assert_eq!(
        world.writer_ledger(writer).content_filtered - content_filtered,
        75
    );
    set(&mut world, None);
    world.publish(writer, ms(1), values(100));
    all_accounted(&mut world, reader, 300);
    assert_eq!(world.reader_ledger(reader).delivered, 10 + 25 + 100);
}

#[test]
fn a_filter_that_the_writer_cannot_read_is_the_readers_alone() {
    let topic = Topic::new("Numbers").reliable().keep_all(16);
    let strange = announced("x ~ /a regular expression/", 3);
    let (mut world, _, writer, reader) = a_pair(World::new(8), &topic, strange);
    world.publish(writer, ms(1), values(99));
    all_accounted(&mut world, reader, 99);
    assert_withheld(&world, writer, (99, 0));
    assert_eq!(world.reader_ledger(reader).delivered, 33);
    // A filter too long to be announced is also evaluated only by the reader.
    let long = announced(&format!("multiple of 3{}", " ".repeat(2_000)), 3);
    let (mut world, _, writer, reader) = a_pair(World::new(9), &topic, long);
    world.publish(writer, ms(1), values(99));
    all_accounted(&mut world, reader, 99);
    assert_eq!(world.writer_ledger(writer).content_filtered, 0);
}

#[test]
fn a_best_effort_reader_judges_for_itself_so_that_what_it_lost_is_known() {
    let topic = Topic::new("Numbers").keep_last(4);
    let reliable = topic.clone().reliable();
    let mut world = World::new(10);
    let (a, b) = two_nodes(&mut world);
    let writer = evaluating(&mut world, a, &reliable);
    let reader = world.create_reader_with(b, &topic, multiples(3));
    world.until_matched(&[writer], &[reader]);
    world.publish(writer, ms(5), values(99));
    world.run_for(2 * SECOND);
    assert_account(&world, reader, (33, 66, 0));
    assert_eq!(world.writer_ledger(writer).content_filtered, 0);
}

#[test]
fn of_more_filters_than_are_asked_the_others_are_their_readers_alone() {
    let mut world = World::new(11);
    let nodes = world.nodes(3, &NodeConfig::default());
    let topic = Topic::new("Numbers").reliable().keep_all(16);
    let writer = evaluating(&mut world, nodes[0], &topic);
    let readers: Vec<ReaderHandle> = (0..=MAX_FILTERS)
        .map(|number| {
            let of = 1_000 + number as u64;
            world.create_reader_with(nodes[1 + number % 2], &topic, multiples(of))
        })
        .collect();
    world.until_matched(&[writer], &readers);
    world.publish(writer, ms(2), values(70));
    for &reader in &readers {
        all_accounted(&mut world, reader, 70);
        assert_eq!(world.reader_ledger(reader).content_filtered, 70);
    }
    let ledger = world.writer_ledger(writer);
    assert_eq!(
        (ledger.sent, ledger.content_filtered),
        (70, 0),
        "one is not asked, so all is sent"
    );
}

#[test]
fn any_number_of_readers_may_have_the_same_filter() {
    let mut world = World::new(15);
    let nodes = world.nodes(3, &NodeConfig::default());
    let topic = Topic::new("Numbers").reliable().keep_all(16);
    let writer = evaluating(&mut world, nodes[0], &topic);
    let readers: Vec<ReaderHandle> = (0..2 * MAX_FILTERS)
        .map(|number| world.create_reader_with(nodes[1 + number % 2], &topic, multiples(7)))
        .collect();
    world.until_matched(&[writer], &readers);
    world.publish(writer, ms(2), values(70));
    for &reader in &readers {
        all_accounted(&mut world, reader, 70);
        assert_eq!(world.reader_ledger(reader).delivered, 10);
    }
    assert_withheld(&world, writer, (10, 60));
}

#[test]
fn readers_that_come_and_go_leave_no_filter_behind() {
    let topic = Topic::new("Numbers").reliable().keep_all(16);
    let (mut world, _, writer, reader) = a_pair(World::new(12), &topic, multiples(50));
    world.publish(writer, ms(1), values(100));
    all_accounted(&mut world, reader, 100);
    world.delete_reader(reader);
    let third = world.node(NodeConfig::default());
    let other = world.create_reader(third, &topic);
    world.until_matched(&[writer], &[other]);
    let content_filtered = world.writer_ledger(writer).content_filtered;
    world.publish(writer, ms(1), values(100));
    world.run_until("all come", PATIENCE, |world| {
        world.reader_ledger(other).delivered == 100
    });
    assert_eq!(
        world.writer_ledger(writer).content_filtered,
        content_filtered
    );
}

#[test]
fn filters_of_arbitrary_bytes_do_no_harm() {
    let topic = Topic::new("Foreign").reliable().keep_all(16);
    let (mut world, (a, _), writer, reader) = a_pair(World::new(14), &topic, multiples(2));
    let mut peer = Peer::of(&mut world, a);
    let mut chance = Random::new(14);
    for round in 0..1_000 {
        let length = 4 * chance.below(512) as usize;
        // Length fields are small, so that some strings are read to their end.
        let filter: Vec<u8> = (0..length)
            .map(|at| match at % 4 {
                0 => chance.below(40) as u8,
                _ => [0, b'x'][chance.below(2) as usize],
            })
            .collect();
        peer.announce_filter(&mut world, READER, &filter);
        assert_eq!(world.matched_readers(writer), 1, "round {round}");
    }
    let known = world.protocol(a).remote_endpoints().count();
    assert_eq!(
        known, 2,
        "the peer's reader is the same one, changed a thousand times"
    );
    world.publish(writer, ms(50), values(40));
    all_accounted(&mut world, reader, 40);
    let ledger = world.reader_ledger(reader);
    assert_eq!((ledger.delivered, ledger.lost), (20, 0));
}

#[test]
fn a_writer_whose_samples_say_that_it_is_alive_holds_none_back() {
    let topic = Topic::new("Numbers").reliable().keep_all(32);
    let topic = topic.qos(|qos| {
        qos.liveliness.kind = LivelinessKind::ManualByTopic;
        qos.liveliness.lease = ms(200).into();
    });
    let (mut world, _, writer, reader) = a_pair(World::new(1), &topic, multiples(100));
    world.publish(writer, ms(50), values(40));
    all_accounted(&mut world, reader, 40);
    assert_eq!(world.reader_ledger(reader).content_filtered, 40);
    assert_eq!(world.writer_ledger(writer).content_filtered, 0);
}
