//! Tests of samples selected by states, instances and conditions, and of the ends of instances. Tests in virtual time
//! cover the states themselves (`lab/sim/tests/protocol`).

use std::time::Duration;

use isolane::{
    ChangeKind, DataReader, DataWriter, Filter, FilterError, InstanceHandle, InstanceState,
    KeyError, Qos, ReadError, SampleState, StateMask, Timestamp, TopicType, ViewState,
    types::BoundedString,
};

use crate::support::{Message, Site, World};

const ALL: usize = usize::MAX;
const ANY: StateMask = StateMask::empty();

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Shape {
    #[topic(key)]
    color: BoundedString<64>,
    x: i32,
}

fn shape(color: &str, x: i32) -> Shape {
    let color = color.try_into().unwrap();
    Shape { color, x }
}

/// A writer, and a reader that has these samples.
fn with_samples(qos: &Qos, samples: &[Shape]) -> (World, DataWriter<Shape>, DataReader<Shape>) {
    let (world, alice, bob) = World::pair(Site::memory());
    let writer = alice.create_writer::<Shape>("Shapes", qos).unwrap();
    let reader = bob.create_reader::<Shape>("Shapes", qos).unwrap();
    world.until_matched(&writer, &reader);
    for sample in samples {
        writer.write(sample).unwrap();
    }
    world.until("all came", || reader.available() == samples.len());
    (world, writer, reader)
}

fn places(samples: &[isolane::Sample<Shape>]) -> Vec<i32> {
    let values = samples.iter().filter_map(|sample| sample.value.as_ref());
    values.map(|shape| shape.x).collect()
}

#[test]
fn samples_are_read_and_taken_by_their_states_and_number() {
    let qos = Qos::reliable().keep_all();
    let samples = [shape("RED", 1), shape("BLUE", 2), shape("RED", 3)];
    let (_world, _writer, reader) = with_samples(&qos, &samples);
    let first = reader.read_samples(2, StateMask::NOT_READ).unwrap();
    assert_eq!(places(&first), [1, 3], "of an instance behind one another");
    assert_eq!(first[0].info.sample_state, SampleState::NotRead);
    assert_eq!(first[0].info.view_state, ViewState::New);
    let rest = reader.take_samples(ALL, StateMask::NOT_READ).unwrap();
    assert_eq!(places(&rest), [2]);
    assert_eq!(rest[0].info.view_state, ViewState::New);
    let again = reader.take_samples(ALL, StateMask::READ).unwrap();
    assert_eq!(places(&again), [1, 3]);
    assert_eq!(again[0].info.view_state, ViewState::NotNew);
    assert!(reader.take_samples(ALL, ANY).unwrap().is_empty());
    assert_eq!(reader.ledger().delivered, 3);
}

#[test]
fn instances_are_walked_through_one_by_one_and_found_by_their_key() {
    let qos = Qos::reliable().keep_all();
    let samples = ["RED", "BLUE", "RED", "GREEN"].map(|color| shape(color, 1));
    let (_world, writer, reader) = with_samples(&qos, &samples);
    let red = reader.lookup_instance(&shape("RED", 0)).expect("it came");
    assert_eq!(writer.register_instance(&shape("RED", 9)), Ok(red));
    assert_eq!(reader.lookup_instance(&shape("BLACK", 0)), None);
    assert_eq!(reader.read_instance(red, ALL, ANY).unwrap().len(), 2);
    let unknown = [0xff; 16];
    let refused = reader.take_instance(unknown, ALL, ANY).unwrap_err();
    assert_eq!(refused, ReadError::UnknownInstance);

    let mut handles = Vec::<InstanceHandle>::new();
    let mut count = 0;
    loop {
        let previous = handles.last().copied();
        let read = reader.read_next_instance(previous, ALL, ANY).unwrap();
        let taken = reader.take_next_instance(previous, ALL, ANY).unwrap();
        assert_eq!(places(&read), places(&taken));
        let Some(first) = taken.first() else { break };
        let handle = first.info.instance_handle();
        assert!(taken.iter().all(|it| it.info.instance_handle() == handle));
        handles.push(handle);
        count += taken.len();
    }
    assert_eq!((handles.len(), count), (3, 4));
    assert!(handles.is_sorted() && handles.contains(&red));
    assert_eq!(reader.available(), 0);
}

#[test]
fn a_query_chooses_by_value_and_refuses_to_sort() {
    let qos = Qos::reliable().keep_all();
    let samples = [1, 5, 9, 5].map(|x| shape("RED", x));
    let (_world, _writer, reader) = with_samples(&qos, &samples);
    let far = Filter::new("x > %0", &["4"]).unwrap();
    let far = reader.create_query_condition(ANY, far);
    let by = far.as_read_condition();
    assert_eq!(places(&reader.read_w_condition(by, 2).unwrap()), [5, 9]);
    far.set_query_parameters(&["8"]).unwrap();
    assert_eq!(far.query_parameters(), ["8"]);
    assert_eq!(places(&reader.take_w_condition(by, ALL).unwrap()), [9]);
    assert!(!by.trigger_value());
    far.set_query_parameters(&["0"]).unwrap();
    let next = reader
        .take_next_instance_w_condition(None, by, ALL)
        .unwrap();
    assert_eq!(places(&next), [1, 5, 5]);
    assert!(far.set_query_parameters(&["'far'"]).is_err());
    assert_eq!(far.query_parameters(), ["0"]);

    let sorted = Filter::<Shape>::new("x > 4 ORDER BY x", &[]).unwrap_err();
    assert_eq!(sorted, FilterError::OrderBy(6));
}

#[test]
fn a_condition_is_good_for_the_reader_that_made_it() {
    let qos = Qos::reliable().keep_all();
    let (world, _writer, reader) = with_samples(&qos, &[shape("RED", 1)]);
    let participant = world.site.participant();
    let other = participant.create_reader::<Shape>("Other", &qos).unwrap();
    let condition = reader.create_read_condition(ANY);
    let refused = other.take_w_condition(&condition, ALL).unwrap_err();
    assert_eq!(refused, ReadError::ForeignCondition);
    assert!(condition.trigger_value());
    drop(reader);
    assert!(!condition.trigger_value(), "its reader is gone");
}

#[test]
fn what_is_not_of_the_type_is_left_out_and_counted() {
    let (world, alice, bob) = World::pair(Site::memory());
    #[derive(TopicType)]
    #[topic(name = "Message")]
    struct Other {
        number: u32,
        length: u32,
    }
    let qos = Qos::reliable().keep_all();
    let good = alice.create_writer::<Message>("Mixed", &qos).unwrap();
    let reader = bob.create_reader::<Message>("Mixed", &qos).unwrap();
    let carol = world.site.participant();
    let bad = carol.create_writer::<Other>("Mixed", &qos).unwrap();
    world.until("both match", || {
        carol.poll();
        reader.matched_writers() == 2 && bad.matched_readers() == 1
    });
    good.write(&Message::number(1)).unwrap();
    let (number, length) = (2, 1 << 30);
    bad.write(&Other { number, length }).unwrap();
    world.until("both came", || {
        carol.poll();
        reader.available() == 2
    });
    let read = reader.read_samples(ALL, ANY).unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!(reader.ledger().rejected, 0);
    assert_eq!(reader.take_samples(ALL, ANY).unwrap().len(), 1);
    let ledger = reader.ledger();
    assert_eq!((ledger.delivered, ledger.rejected), (1, 1));
    assert_eq!(reader.sample_rejected_status().total_count, 1);
}

#[test]
fn unregistering_disposes_unless_it_is_not_to_and_deleting_never_does() {
    let ends = |qos: &Qos| {
        let samples = [shape("RED", 1), shape("BLUE", 1)];
        let (world, writer, reader) = with_samples(qos, &samples);
        reader.take_samples(ALL, ANY).unwrap();
        writer.unregister(&shape("RED", 0)).unwrap();
        world.until("the end came", || reader.available() == 1);
        let unregistered = reader.take().unwrap().unwrap().info;
        drop(writer);
        world.until("the other end came", || reader.available() == 1);
        let deleted = reader.take().unwrap().unwrap().info;
        assert_eq!(deleted.instance_state, InstanceState::NotAliveNoWriters);
        (unregistered.kind, unregistered.instance_state)
    };
    let qos = Qos::reliable().keep_all();
    let both = ChangeKind::DisposeAndUnregister;
    assert_eq!(ends(&qos), (both, InstanceState::NotAliveDisposed));
    let left = (ChangeKind::Unregister, InstanceState::NotAliveNoWriters);
    assert_eq!(ends(&qos.autodispose(false)), left);
}

#[test]
fn samples_of_an_instance_that_has_ended_go_after_the_delay() {
    let delay = Duration::from_millis(20);
    let qos = Qos::reliable()
        .keep_all()
        .autopurge_disposed_samples(delay)
        .autopurge_nowriter_samples(delay);
    let (world, writer, reader) = with_samples(&qos, &[shape("RED", 1), shape("BLUE", 2)]);
    writer.dispose(&shape("RED", 0)).unwrap();
    world.until("they went", || reader.ledger().purged == 2);
    assert_eq!(reader.available(), 1);
    drop(writer);
    world.until("the others went", || reader.available() == 0);
    assert_eq!(
        reader.ledger().purged,
        4,
        "a value, and the end that the writer sent"
    );
}

#[test]
fn a_time_stamp_of_the_users_own_comes_with_the_sample() {
    let qos = Qos::reliable().keep_all();
    let (world, writer, reader) = with_samples(&qos, &[]);
    let second = |number: u64| Timestamp::from_nanos(number * 1_000_000_000);
    let red = shape("RED", 1);
    writer.write_w_timestamp(&red, second(10)).unwrap();
    writer.dispose_w_timestamp(&red, second(11)).unwrap();
    writer.unregister_w_timestamp(&red, second(12)).unwrap();
    world.until("all came", || reader.available() == 3);
    let taken = reader.take_samples(ALL, ANY).unwrap();
    let stamps: Vec<_> = taken.iter().map(|it| it.info.source_timestamp).collect();
    assert_eq!(stamps, [10, 11, 12].map(|number| Some(second(number))));
}

#[test]
fn a_late_reader_waits_for_its_history() {
    let (world, alice, bob) = World::pair(Site::loopback());
    let qos = Qos::reliable().keep_last(20).transient_local();
    let writer = alice.create_writer::<Message>("History", &qos).unwrap();
    for number in 0..20 {
        writer.write(&Message::number(number)).unwrap();
    }
    world.run_for(Duration::from_millis(20));
    let reader = bob.create_reader::<Message>("History", &qos).unwrap();
    // Bob alone would wait for Alice, which this thread runs, too.
    assert!(reader.matched_writers() == 0 || !reader.wait_for_historical_data(Duration::ZERO));
    world.until("it is there", || {
        reader.matched_writers() == 1 && reader.wait_for_historical_data(Duration::ZERO)
    });
    assert_eq!(reader.available(), 20);
}

/// Type whose key is no longer than a handle.
#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Valve {
    #[topic(key)]
    line: u16,
    #[topic(key)]
    number: u32,
    is_open: bool,
}

#[test]
fn a_handle_that_is_a_key_gives_it_back_as_long_as_the_instance_is_known() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().keep_all();
    let writer = alice.create_writer::<Valve>("Valves", &qos).unwrap();
    let reader = bob.create_reader::<Valve>("Valves", &qos).unwrap();
    world.until_matched(&writer, &reader);
    let valve = |is_open| Valve {
        line: 3,
        number: 70_000,
        is_open,
    };
    writer.write(&valve(true)).unwrap();
    world.until("it came", || reader.available() == 1);
    let handle = reader.take().unwrap().unwrap().info.instance_handle();
    assert_eq!(reader.get_key_value(handle), Ok(valve(false)));
    assert_eq!(writer.lookup_instance(&valve(true)), Some(handle));
    assert_eq!(writer.get_key_value(handle), Ok(valve(false)));
    let unknown = reader.get_key_value([0xff; 16]);
    assert_eq!(unknown, Err(KeyError::UnknownInstance));
}

#[test]
fn a_longer_key_is_read_from_what_is_left_of_the_instance() {
    let qos = Qos::reliable().keep_last(1).transient_local();
    let (world, writer, reader) = with_samples(&qos, &[shape("RED", 1)]);
    let red = reader.lookup_instance(&shape("RED", 0)).expect("it came");
    assert_eq!(reader.get_key_value(red), Ok(shape("RED", 0)));
    assert_eq!(writer.get_key_value(red), Ok(shape("RED", 0)));
    reader.take().unwrap().expect("it is there");
    assert_eq!(reader.get_key_value(red), Err(KeyError::NotKept));
    writer.unregister(&shape("RED", 0)).unwrap();
    world.until("its end came", || reader.available() == 1);
    let key = reader.get_key_value(red);
    assert_eq!(
        key,
        Ok(shape("RED", 0)),
        "the end of an instance has its key"
    );
    let never = writer.lookup_instance(&shape("BLACK", 0)).unwrap();
    assert_eq!(writer.get_key_value(never), Err(KeyError::NotKept));
}
