//! Sample, view and instance states, and samples selected by them (DDS 1.4 §2.2.2.5.1, §2.2.2.5.3).

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use isolane_rtps::{
    ChangeKind, InstanceSelector, InstanceState, SampleInfo, SampleState, Selection, StateMask,
    ViewState,
};
use isolane_sim::{
    LinkConfig, NodeConfig, NodeId, Random, ReaderHandle, Received, Sample, Take, Then, Topic,
    World, WriterHandle, key_of, seeds,
};
use isolane_wire::{
    cdr::KeyHash,
    qos::{LivelinessKind, OwnershipKind, PresentationAccessScope},
};

use crate::support::{Pair, SECOND, a_pair, a_pair_of, keyed_samples, ms, two_nodes};

const ANY: StateMask = StateMask::empty();

/// A keyed pair whose user takes samples only when the test does so.
struct Looked {
    world: World,
    nodes: (NodeId, NodeId),
    writer: WriterHandle,
    reader: ReaderHandle,
}

fn keyed() -> Topic {
    Topic::new("Keyed").keyed().reliable().keep_all(32)
}

fn looked() -> Looked {
    Looked::of(a_pair(&keyed()))
}

/// The key hash of an instance of the worlds' type.
fn key(number: u32) -> KeyHash {
    key_of(&Sample::dispose(number).payload(), true).expect("a key of ours")
}

fn mask(mask: StateMask) -> Selection<'static> {
    Selection {
        mask,
        ..Selection::default()
    }
}

/// Selects the samples of one instance.
fn of_instance(number: u32) -> Selection<'static> {
    Selection {
        which: InstanceSelector::Instance(key(number)),
        ..Selection::default()
    }
}

impl Looked {
    fn of((mut world, nodes, writer, reader): Pair) -> Self {
        world.set_take(reader, Take::OnRequest);
        Self {
            world,
            nodes,
            writer,
            reader,
        }
    }

    fn write(&mut self, samples: impl IntoIterator<Item = Sample>) {
        self.world.enqueue(self.writer, samples);
        self.world.run_for(SECOND);
    }

    /// Returns the metadata and values of the selected samples.
    fn select(&mut self, selection: &Selection<'_>, then: Then) -> Vec<(SampleInfo, u64)> {
        let selected = self.world.select(self.reader, selection, then).into_iter();
        let value = |received: &Received| received.sample().map_or(0, |sample| sample.value);
        selected
            .map(|received| (received.info, value(&received)))
            .collect()
    }

    fn values(&mut self, selection: &Selection<'_>, then: Then) -> Vec<u64> {
        let selected = self.select(selection, then).into_iter();
        selected.map(|(_, value)| value).collect()
    }
}

#[test]
fn an_instance_is_new_until_it_is_looked_at_and_again_in_each_of_its_lives() {
    let mut looked = looked();
    let lives = [
        (vec![Sample::keyed(7, 1)], (0, 0)),
        (vec![Sample::dispose(7), Sample::keyed(7, 2)], (1, 0)),
        (vec![Sample::unregister(7), Sample::keyed(7, 3)], (1, 1)),
    ];
    for (samples, generations) in lives {
        looked.write(samples);
        let seen = looked.select(&mask(StateMask::NEW), Then::Read);
        let (last, _) = seen.last().expect("it is new");
        assert_eq!(last.view_state, ViewState::New);
        assert_eq!(
            (
                last.disposed_generation_count,
                last.no_writers_generation_count
            ),
            generations
        );
        assert_eq!(last.instance_state, InstanceState::Alive);
        assert!(looked.select(&mask(StateMask::NEW), Then::Leave).is_empty());
        looked.write([Sample::keyed(7, 9)]);
        assert!(looked.select(&mask(StateMask::NEW), Then::Leave).is_empty());
        let unread = looked.select(&mask(StateMask::NOT_READ), Then::Take);
        assert_eq!(unread.len(), 1);
        assert_eq!(unread[0].0.view_state, ViewState::NotNew);
    }
}

#[test]
fn what_is_said_of_states_is_as_of_one_moment_for_all_samples_of_a_selection() {
    let mut looked = looked();
    looked.write([Sample::keyed(7, 1), Sample::keyed(7, 2), Sample::dispose(7)]);
    let seen = looked.select(&Selection::default(), Then::Read);
    for (info, _) in &seen {
        assert_eq!(info.view_state, ViewState::New);
        assert_eq!(info.sample_state, SampleState::NotRead);
        assert_eq!(info.instance_state, InstanceState::NotAliveDisposed);
    }
    let again = looked.select(&Selection::default(), Then::Take);
    for (info, _) in &again {
        assert_eq!(info.view_state, ViewState::NotNew);
        assert_eq!(info.sample_state, SampleState::Read);
    }
    assert_eq!((seen.len(), again.len()), (3, 3));
    assert_eq!(looked.world.reader_ledger(looked.reader).delivered, 3);
}

#[test]
fn ranks_count_what_follows_and_the_lives_in_between() {
    let mut looked = looked();
    looked.write([
        Sample::keyed(7, 1),
        Sample::keyed(8, 10),
        Sample::dispose(7),
        Sample::keyed(7, 2),
        Sample::unregister(7),
        Sample::keyed(7, 3),
        Sample::keyed(8, 11),
    ]);
    let ranks = |looked: &mut Looked, selection: &Selection<'_>| -> Vec<[u32; 3]> {
        let selected = looked.select(selection, Then::Leave).into_iter();
        let ranks = |info: SampleInfo| {
            [
                info.sample_rank,
                info.generation_rank,
                info.absolute_generation_rank,
            ]
        };
        selected.map(|(info, _)| ranks(info)).collect()
    };
    let all = ranks(&mut looked, &Selection::default());
    let of_7 = [[4, 2, 2], [3, 2, 2], [2, 1, 1], [1, 1, 1], [0, 0, 0]];
    assert_eq!(all[..5], of_7);
    assert_eq!(all[5..], [[1, 0, 0], [0, 0, 0]]);
    let first_two = Selection {
        max_samples: 3,
        ..of_instance(7)
    };
    let ranks = ranks(&mut looked, &first_two);
    assert_eq!(ranks, [[2, 1, 2], [1, 1, 2], [0, 0, 1]]);
}

#[test]
fn samples_are_selected_by_state_by_value_by_instance_and_by_number() {
    let mut looked = looked();
    looked.write((1..=6).map(|value| Sample::keyed(value as u32 % 2, value)));
    let of_one = of_instance(1);
    assert_eq!(looked.values(&of_one, Then::Leave), [1, 3, 5]);
    let two = Selection {
        max_samples: 2,
        ..mask(StateMask::NOT_READ)
    };
    assert_eq!(looked.values(&two, Then::Read), [1, 3]);
    assert_eq!(looked.values(&two, Then::Read), [2, 4]);
    assert_eq!(
        looked.values(&mask(StateMask::READ), Then::Leave),
        [1, 3, 2, 4]
    );
    let is_large = |payload: &[u8]| {
        Sample::parse(ChangeKind::Alive, payload).is_some_and(|sample| sample.value > 3)
    };
    let large = Selection {
        query: Some(&is_large),
        ..Selection::default()
    };
    assert_eq!(looked.values(&large, Then::Take), [4, 6, 5]);
    assert!(looked.values(&large, Then::Take).is_empty());
    let unknown = of_instance(9);
    assert!(looked.values(&unknown, Then::Take).is_empty());
    assert_eq!(looked.values(&Selection::default(), Then::Take), [1, 3, 2]);
    looked.write([Sample::dispose(0)]);
    assert!(
        looked.values(&large, Then::Take).is_empty(),
        "it has no value"
    );
    let ended = looked.select(&mask(StateMask::NOT_ALIVE), Then::Take);
    assert_eq!(ended.len(), 1);
}

#[test]
fn the_next_instance_is_the_one_with_the_next_key_that_has_such_samples() {
    let mut looked = looked();
    looked.write([5, 2, 9, 2, 7].map(|number| Sample::keyed(number, number.into())));
    let after = |previous: Option<u32>, mask| Selection {
        which: InstanceSelector::After(previous.map(key)),
        mask,
        ..Selection::default()
    };
    assert_eq!(looked.values(&after(None, ANY), Then::Read), [2, 2]);
    assert_eq!(looked.values(&after(Some(2), ANY), Then::Take), [5]);
    // The handle's instance no longer exists, but still determines the next one.
    assert_eq!(looked.values(&after(Some(5), ANY), Then::Leave), [7]);
    assert_eq!(looked.values(&after(Some(8), ANY), Then::Leave), [9]);
    assert!(looked.values(&after(Some(9), ANY), Then::Leave).is_empty());
    let read = after(None, StateMask::READ);
    assert_eq!(looked.values(&read, Then::Take), [2, 2]);
    assert!(looked.values(&read, Then::Leave).is_empty());
    let id = looked.world.reader_id(looked.reader);
    let protocol = looked.world.protocol(looked.nodes.1);
    assert!(protocol.knows_instance(id, key(9)) && !protocol.knows_instance(id, key(8)));
}

#[test]
fn taking_from_the_middle_gives_its_room_back() {
    let mut looked = Looked::of(a_pair(&keyed().keep_all(4)));
    looked.write((0..12).map(|value| Sample::keyed(value as u32 % 2, value)));
    let of_one = of_instance(1);
    assert_eq!(looked.values(&of_one, Then::Take), [1, 3]);
    looked.world.run_for(SECOND);
    assert_eq!(
        looked.values(&Selection::default(), Then::Take),
        [0, 2, 4, 5]
    );
    looked.world.run_for(SECOND);
    assert_eq!(
        looked.values(&Selection::default(), Then::Take),
        [6, 8, 7, 9]
    );
}

#[test]
fn a_writer_that_loses_its_liveliness_ends_its_instances_and_begins_them_anew() {
    let lively = keyed().qos(|qos| {
        qos.liveliness.kind = LivelinessKind::ManualByTopic;
        qos.liveliness.lease = ms(80).into();
    });
    let (mut world, nodes, writer, reader) = a_pair(&lively);
    world.enqueue(writer, [Sample::keyed(7, 1)]);
    world.run_for(ms(50));
    assert_eq!(
        world.last_of_instance(reader, 7).map(|it| it.states().1),
        Some(InstanceState::Alive)
    );
    world.run_for(SECOND);
    let end = world.last_of_instance(reader, 7).expect("its end came");
    assert_eq!(end.info.instance_state, InstanceState::NotAliveNoWriters);
    assert!(!end.was_sent());
    world.enqueue(writer, [Sample::keyed(7, 2)]);
    world.run_for(ms(50));
    let again = world.last_of_instance(reader, 7).expect("it came").info;
    assert_eq!(again.instance_state, InstanceState::Alive);
    assert_eq!(
        (again.view_state, again.no_writers_generation_count),
        (ViewState::New, 1)
    );
    assert_eq!(world.protocol(nodes.1).counters().instance_ends_unseen, 0);
}

#[test]
fn an_owned_instance_ends_with_the_last_of_its_writers_not_with_its_owner() {
    let owned = |strength| {
        keyed().qos(|qos| {
            qos.ownership = OwnershipKind::Exclusive;
            qos.ownership_strength = strength;
        })
    };
    let mut world = World::new(1);
    let nodes = world.nodes(3, &NodeConfig::default());
    let weak = world.create_writer(nodes[0], &owned(1));
    let strong = world.create_writer(nodes[1], &owned(2));
    let reader = world.create_reader(nodes[2], &owned(0));
    world.until_matched(&[weak, strong], &[reader]);
    world.enqueue(strong, [Sample::keyed(7, 1)]);
    world.run_for(ms(50));
    world.enqueue(weak, [Sample::keyed(7, 2)]);
    world.run_for(ms(50));
    world.delete_writer(strong);
    world.run_for(SECOND);
    let state = |world: &World| world.last_of_instance(reader, 7).map(|it| it.states().1);
    assert_eq!(state(&world), Some(InstanceState::Alive));
    world.delete_writer(weak);
    world.run_for(SECOND);
    assert_eq!(state(&world), Some(InstanceState::NotAliveNoWriters));
}

/// A writer that disposes and unregisters at once, as WRITER_DATA_LIFECYCLE has it by default.
#[test]
fn an_instance_that_is_disposed_and_unregistered_at_once_is_disposed_and_has_lost_its_writer() {
    let mut looked = looked();
    let other = looked.world.create_writer(looked.nodes.0, &keyed());
    looked
        .world
        .until_matched(&[looked.writer, other], &[looked.reader]);
    looked.write([Sample::keyed(7, 1)]);
    looked.write([dispose_and_unregister(7)]);
    let seen = looked.select(&Selection::default(), Then::Take);
    let (end, _) = seen.last().expect("its end came");
    assert_eq!(end.kind, ChangeKind::DisposeAndUnregister);
    assert_eq!(end.instance_state, InstanceState::NotAliveDisposed);
    looked
        .world
        .enqueue(other, [Sample::keyed(7, 2), Sample::unregister(7)]);
    looked.world.run_for(SECOND);
    let seen = looked.select(&Selection::default(), Then::Take);
    let (end, _) = seen.last().expect("its end came");
    assert_eq!(end.instance_state, InstanceState::NotAliveNoWriters);
}

/// States of an instance through its generations, change by change.
#[derive(Default)]
struct Life {
    state: InstanceState,
    generations: (u32, u32),
}

impl Life {
    fn note(&mut self, kind: ChangeKind) {
        use InstanceState::{Alive, NotAliveDisposed, NotAliveNoWriters};
        let (disposed, no_writers) = &mut self.generations;
        self.state = match (kind, self.state) {
            (ChangeKind::Alive, NotAliveDisposed) => {
                *disposed += 1;
                Alive
            }
            (ChangeKind::Alive, NotAliveNoWriters) => {
                *no_writers += 1;
                Alive
            }
            (ChangeKind::Alive, Alive) => Alive,
            (ChangeKind::Unregister, NotAliveDisposed) => NotAliveDisposed,
            (ChangeKind::Unregister, _) => NotAliveNoWriters,
            _ => NotAliveDisposed,
        };
    }
}

#[test]
fn over_bad_links_the_lives_of_instances_are_those_that_their_writer_has_written() {
    let all_unregistered = AtomicU64::new(0);
    seeds::for_each(0..40, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.2));
        let topic = Topic::new("Keyed").keyed().reliable().keep_all(16);
        let (mut world, _, writer, reader) = crate::support::a_pair_in(world, &topic);
        let samples = keyed_samples(200, &mut Random::new(seed));
        world.publish(writer, ms(2), samples);
        world.run_for(20 * SECOND);
        let mut lives = BTreeMap::<_, Life>::new();
        let received = world.received(reader);
        let unregistered = world.reader_ledger(reader).unregistered;
        assert_eq!(received.len() as u64 + unregistered, 200, "seed {seed}");
        all_unregistered.fetch_add(unregistered, Ordering::Relaxed);
        for received in received {
            let life = lives.entry(received.info.key_hash).or_default();
            life.note(received.info.kind);
            let info = &received.info;
            let reported = (
                info.disposed_generation_count,
                info.no_writers_generation_count,
            );
            assert_eq!(reported, life.generations, "seed {seed}: {info:?}");
        }
        for number in 0..3 {
            let last = world.last_of_instance(reader, number).expect("some came");
            let life = &lives[&last.info.key_hash];
            assert_eq!(last.info.instance_state, life.state, "seed {seed}");
        }
    });
    assert!(all_unregistered.into_inner() > 0, "some had ended before");
}

/// A keyed pair with a KEEP_LAST 1 reader whose user takes samples only when the test does so. The writer keeps more.
fn last_only() -> Looked {
    let topic = Topic::new("Keyed").keyed().reliable();
    Looked::of(a_pair_of(
        World::new(1),
        &topic.clone().keep_last(8).max_instances(32),
        &topic.keep_last(1).max_instances(4),
    ))
}

#[test]
fn the_end_of_an_instance_leaves_its_last_value_to_be_seen() {
    let mut looked = last_only();
    looked.write([Sample::keyed(7, 1), Sample::keyed(7, 2)]);
    looked.write([Sample::dispose(7), Sample::unregister(7)]);
    let seen = looked.select(&Selection::default(), Then::Leave);
    let kinds: Vec<ChangeKind> = seen.iter().map(|(info, _)| info.kind).collect();
    assert_eq!(seen[0].1, 2);
    assert_eq!(kinds, [ChangeKind::Alive, ChangeKind::Dispose]);
    assert_eq!(looked.world.reader_ledger(looked.reader).unregistered, 1);
    assert_eq!(
        seen[0].0.instance_state,
        InstanceState::NotAliveDisposed,
        "as it is now"
    );
    // A later value replaces all of them.
    looked.write([Sample::keyed(7, 3)]);
    assert_eq!(looked.values(&Selection::default(), Then::Leave), [3]);
}

#[test]
fn ends_stored_next_to_values_give_way_to_other_instances() {
    let mut looked = last_only();
    for key in [1, 2] {
        looked.write([Sample::keyed(key, key.into()), Sample::dispose(key)]);
    }
    looked.write([Sample::keyed(3, 3), Sample::keyed(4, 4)]);
    let mut values = looked.values(&Selection::default(), Then::Leave);
    values.sort_unstable();
    assert_eq!(values, [1, 2, 3, 4]);
    assert!(looked.world.reader_ledger(looked.reader).balances());
}

#[test]
fn in_a_full_reader_an_end_pushes_out_no_value_that_was_not_seen() {
    let mut looked = last_only();
    looked.write((1..=4).map(|key| Sample::keyed(key, key.into())));
    looked.write([Sample::dispose(1)]);
    let seen = looked.select(&Selection::default(), Then::Read);
    let values: Vec<u64> = seen.iter().map(|&(_, value)| value).collect();
    assert_eq!(values, [1, 2, 3, 4]);
    assert_eq!(seen[0].0.instance_state, InstanceState::NotAliveDisposed);
    let ledger = looked.world.reader_ledger(looked.reader);
    assert!(ledger.evicted == 1 && ledger.balances(), "{ledger:?}");
    // A sample that was read is replaced.
    looked.write([Sample::dispose(2)]);
    let news = looked.select(&mask(StateMask::NOT_READ), Then::Leave);
    let kinds: Vec<ChangeKind> = news.iter().map(|(info, _)| info.kind).collect();
    assert_eq!(kinds, [ChangeKind::Dispose]);
    let left = looked.values(&Selection::default(), Then::Leave);
    assert!(!left.contains(&2), "{left:?}");
}

#[test]
fn ends_of_every_kind_push_out_no_value_that_was_not_seen() {
    let mut looked = last_only();
    looked.write([Sample::keyed(7, 1)]);
    for _ in 0..3 {
        looked.write([dispose_and_unregister(7)]);
        looked.write([Sample::dispose(7)]);
    }
    let seen = looked.values(&Selection::default(), Then::Leave);
    assert_eq!((seen.len(), seen[0]), (3, 1));
    assert!(looked.world.reader_ledger(looked.reader).balances());
}

#[test]
fn what_is_shown_when_its_writer_is_not_alive_any_more_leaves_its_instance_without_writers() {
    let topic = keyed().qos(|qos| {
        qos.liveliness.kind = LivelinessKind::Automatic;
        qos.liveliness.lease = ms(200).into();
    });
    let (mut world, (a, b), writer, reader) =
        a_pair_of(World::new(1), &topic, &topic.clone().keep_all(2));
    world.set_take(reader, Take::OnRequest);
    // The first sample is lost. The others wait for it, and the last of these is what the user gets.
    world.set_link_between(a, b, LinkConfig::losing(1.0));
    world.enqueue(writer, [Sample::keyed(7, 1)]);
    world.run_for(ms(1));
    world.set_link_between(a, b, LinkConfig::default());
    world.enqueue(writer, [2, 3].map(|value| Sample::keyed(7, value)));
    world.run_for(ms(100));
    world.crash(a);
    world.run_for(SECOND);
    while world.take(reader, 1) > 0 {
        world.run_for(ms(1));
    }
    assert_eq!(world.values(reader), [1, 2, 3]);
    // There was no room for the instance's end, so it is delivered with the last value.
    let (_, state) = world.last_of_instance(reader, 7).expect("it came").states();
    assert_eq!(state, InstanceState::NotAliveNoWriters);
    assert!(world.reader_ledger(reader).balances());
}

#[test]
fn an_end_that_is_said_again_and_again_leaves_the_last_value_too() {
    let mut looked = last_only();
    looked.write([Sample::keyed(7, 1)]);
    for _ in 0..5 {
        looked.write([Sample::dispose(7)]);
    }
    let seen = looked.select(&Selection::default(), Then::Leave);
    assert_eq!((seen.len(), seen[0].1), (3, 1));
    assert!(looked.world.reader_ledger(looked.reader).balances());
}

/// Dispose and unregister in one change, as is the default of WRITER_DATA_LIFECYCLE.
fn dispose_and_unregister(key: u32) -> Sample {
    Sample {
        kind: ChangeKind::DisposeAndUnregister,
        ..Sample::dispose(key)
    }
}

/// HISTORY counts values. The end of an instance replaces no value in the writer's history, however little room there
/// is.
#[test]
fn a_reader_that_comes_late_gets_the_last_value_of_an_instance_and_then_its_end() {
    seeds::for_each(0..20, |seed| {
        let mut world = World::new(seed).link(LinkConfig::lossy(0.2));
        let (a, b) = two_nodes(&mut world);
        let topic = Topic::new("Keyed").keyed().reliable().transient_local();
        let writer = world.create_writer(a, &topic.clone().keep_last(1).max_instances(2));
        world.enqueue(
            writer,
            [
                Sample::keyed(7, 1),
                Sample::keyed(7, 2),
                dispose_and_unregister(7),
                Sample::keyed(8, 3),
                Sample::unregister(8),
            ],
        );
        world.run_for(SECOND);
        let late = world.create_reader(b, &topic.keep_last(4).max_instances(4));
        world.run_for(20 * SECOND);
        let came = world.received(late).iter();
        let came: Vec<_> = came
            .map(|it| (it.sample().map(|it| (it.key, it.value)), it.states().0))
            .collect();
        let expected = [
            (Some((7, 2)), ChangeKind::Alive),
            (Some((7, 0)), ChangeKind::DisposeAndUnregister),
            (Some((8, 3)), ChangeKind::Alive),
            (Some((8, 0)), ChangeKind::Unregister),
        ];
        assert_eq!(came, expected, "seed {seed}");
    });
}

#[test]
fn an_end_that_is_written_at_once_does_not_take_the_place_of_an_unsent_value() {
    let topic = Topic::new("Keyed").keyed().reliable();
    let (mut world, _, writer, reader) = a_pair_of(
        World::new(1),
        &topic.clone().keep_last(1).max_instances(1),
        &topic.keep_last(1).max_instances(4),
    );
    world.enqueue(writer, [Sample::keyed(7, 1), dispose_and_unregister(7)]);
    world.run_for(SECOND);
    assert_eq!(world.values(reader), [1]);
    assert_eq!(world.writer_ledger(writer).evicted_unsent, 0);
    // A later value replaces both, whether they were sent or not.
    world.enqueue(writer, [dispose_and_unregister(7), Sample::keyed(7, 2)]);
    world.run_for(SECOND);
    assert_eq!(world.values(reader), [1, 2]);
    assert_eq!(world.writer_ledger(writer).evicted_unsent, 1);
}

/// Samples of several instances, in the order of writing.
fn interleaved() -> Vec<Sample> {
    let keys = [3, 1, 3, 2, 1, 3];
    let samples = keys.into_iter().zip(1..);
    samples
        .map(|(key, value)| Sample::keyed(key, value))
        .collect()
}

#[test]
fn samples_of_an_instance_are_behind_one_another_the_one_waiting_longest_first() {
    let mut looked = looked();
    looked.write(interleaved());
    let all = Selection::default();
    assert_eq!(looked.values(&all, Then::Leave), [1, 3, 6, 2, 5, 4]);
    let four = Selection {
        max_samples: 4,
        ..all
    };
    assert_eq!(looked.values(&four, Then::Take), [1, 3, 6, 2]);
    looked.write([Sample::keyed(3, 7)]);
    assert_eq!(looked.values(&all, Then::Take), [4, 5, 7]);
}

#[test]
fn with_ordered_access_samples_of_all_instances_keep_their_order() {
    let scopes = [
        (PresentationAccessScope::Instance, [1, 3, 6, 2, 5, 4]),
        (PresentationAccessScope::Topic, [1, 2, 3, 4, 5, 6]),
    ];
    for (scope, expected) in scopes {
        let topic = keyed().qos(|qos| {
            qos.presentation.access_scope = scope;
            qos.presentation.ordered = true;
        });
        let mut looked = Looked::of(a_pair(&topic));
        looked.write(interleaved());
        let seen = looked.values(&Selection::default(), Then::Take);
        assert_eq!(seen, expected, "{scope:?}");
    }
}

#[test]
fn the_end_of_a_writer_shows_as_if_it_had_unregistered_each_of_its_instances() {
    let ends = [true, false].map(|is_deleted| {
        let mut looked = looked();
        let other = looked.world.create_writer(looked.nodes.0, &keyed());
        looked
            .world
            .until_matched(&[looked.writer, other], &[looked.reader]);
        looked.write([
            Sample::keyed(1, 1),
            Sample::keyed(2, 2),
            Sample::keyed(3, 3),
            Sample::dispose(3),
        ]);
        looked.world.enqueue(other, [Sample::keyed(2, 4)]);
        looked.world.run_for(SECOND);
        looked.select(&Selection::default(), Then::Take);
        match is_deleted {
            true => looked.world.delete_writer(looked.writer),
            false => looked
                .world
                .enqueue(looked.writer, (1..=3).map(Sample::unregister)),
        }
        looked.world.run_for(SECOND);
        looked
            .world
            .enqueue(other, [Sample::keyed(1, 5), Sample::keyed(3, 6)]);
        looked.world.run_for(SECOND);
        let seen = looked.select(&Selection::default(), Then::Take).into_iter();
        let states = seen.map(|(info, value)| {
            (
                info.key_hash,
                value,
                info.kind,
                info.view_state,
                info.instance_state,
                info.disposed_generation_count,
                info.no_writers_generation_count,
            )
        });
        states.collect::<Vec<_>>()
    });
    assert_eq!(ends[0].len(), 3, "one end, and two values: {:?}", ends[0]);
    assert_eq!(ends[0], ends[1]);
}
