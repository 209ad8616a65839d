//! READER_DATA_LIFECYCLE: samples of an ended instance are removed after the delay (DDS 1.4 §2.2.3.22).

use std::time::Duration;

use isolane_rtps::{InstanceState, ReaderId, Selection, ViewState, limits::DEFAULT_SAMPLES};
use isolane_sim::{NodeId, ReaderHandle, Sample, Take, Topic, World, WriterHandle};

use crate::support::{SECOND, a_pair, ms};

const DELAY: Duration = ms(100);

fn keyed(samples: u16) -> Topic {
    Topic::new("Ended").keyed().reliable().keep_all(samples)
}

fn purging(topic: Topic, nowriter: Option<Duration>, disposed: Option<Duration>) -> Topic {
    topic.qos(|qos| {
        let lifecycle = &mut qos.reader_data_lifecycle;
        if let Some(delay) = nowriter {
            lifecycle.autopurge_nowriter_samples_delay = delay.into();
        }
        if let Some(delay) = disposed {
            lifecycle.autopurge_disposed_samples_delay = delay.into();
        }
    })
}

struct Ended {
    world: World,
    nodes: (NodeId, NodeId),
    writer: WriterHandle,
    reader: ReaderHandle,
}

fn pair(topic: &Topic) -> Ended {
    let (mut world, nodes, writer, reader) = a_pair(topic);
    world.set_take(reader, Take::OnRequest);
    Ended {
        world,
        nodes,
        writer,
        reader,
    }
}

impl Ended {
    fn write(&mut self, samples: impl IntoIterator<Item = Sample>) {
        self.world.enqueue(self.writer, samples);
        self.world.run_for(ms(10));
    }

    fn id(&self) -> ReaderId {
        self.world.reader_id(self.reader)
    }

    fn available(&self) -> usize {
        self.world.protocol(self.nodes.1).available(self.id())
    }

    fn purged(&self) -> u64 {
        self.world.reader_ledger(self.reader).purged
    }
}

#[test]
fn samples_of_an_instance_without_writers_go_after_the_delay_and_no_others() {
    let mut ended = pair(&purging(keyed(32), Some(DELAY), None));
    ended.write([1, 2, 1].map(|key| Sample::keyed(key, 1)));
    ended.write([
        Sample::unregister(1),
        Sample::keyed(2, 2),
        Sample::dispose(3),
    ]);
    assert_eq!(ended.available(), 6);
    ended.world.run_for(DELAY - ms(20));
    assert_eq!((ended.available(), ended.purged()), (6, 0));
    ended.world.run_for(ms(40));
    assert_eq!((ended.available(), ended.purged()), (3, 3));
    ended.world.run_for(SECOND);
    assert_eq!(ended.available(), 3);
}

#[test]
fn what_a_deleted_writer_leaves_behind_goes_too_with_the_word_that_it_is_gone() {
    let mut ended = pair(&purging(keyed(32), Some(DELAY), None));
    ended.write([Sample::keyed(1, 1), Sample::keyed(1, 2)]);
    ended.world.delete_writer(ended.writer);
    ended.world.run_for(DELAY / 2);
    assert_eq!(ended.available(), 3, "two samples, and the end");
    ended.world.run_for(DELAY);
    assert_eq!((ended.available(), ended.purged()), (0, 3));
}

#[test]
fn disposed_instances_have_a_delay_of_their_own_and_a_new_life_ends_it() {
    let mut ended = pair(&purging(keyed(32), None, Some(DELAY)));
    ended.write([Sample::keyed(1, 1), Sample::dispose(1)]);
    ended.write([Sample::keyed(2, 1), Sample::dispose(2), Sample::keyed(3, 1)]);
    ended.write([Sample::unregister(3)]);
    ended.world.run_for(DELAY / 2);
    ended.write([Sample::keyed(2, 2)]);
    ended.world.run_for(SECOND);
    assert_eq!((ended.available(), ended.purged()), (5, 2));
}

#[test]
fn an_instance_that_went_with_its_writers_is_forgotten_and_begins_as_new() {
    let mut ended = pair(&purging(keyed(32), Some(DELAY), Some(DELAY)));
    ended.write([Sample::keyed(1, 1), Sample::unregister(1)]);
    ended.write([Sample::keyed(2, 1), Sample::dispose(2)]);
    let id = ended.id();
    ended.world.with_protocol(ended.nodes.1, |protocol, _| {
        assert_eq!(protocol.select(id, &Selection::default()), 4);
        protocol.read_selected(id);
    });
    ended.world.run_for(SECOND);
    assert_eq!((ended.available(), ended.purged()), (0, 4));
    ended.write([Sample::keyed(1, 2), Sample::keyed(2, 2)]);
    let infos = ended.world.with_protocol(ended.nodes.1, |protocol, _| {
        [0, 1].map(|nth| protocol.sample(id, nth).expect("it came").info)
    });
    for info in infos {
        assert_eq!(info.instance_state, InstanceState::Alive);
        assert_eq!(info.view_state, ViewState::New);
        assert_eq!(info.no_writers_generation_count, 0);
    }
    let generations = infos.map(|info| info.disposed_generation_count);
    assert_eq!(generations, [0, 1], "a disposed one is still known");
}

#[test]
fn what_goes_makes_room_for_what_was_held_up() {
    let mut ended = pair(&purging(keyed(4), None, Some(DELAY)));
    ended.write((1..=3).map(|value| Sample::keyed(1, value)));
    ended.write([Sample::dispose(1)]);
    ended.write((1..=4).map(|value| Sample::keyed(2, value)));
    assert_eq!(ended.available(), 4, "it is full");
    ended.world.run_for(SECOND);
    assert_eq!((ended.available(), ended.purged()), (4, 4));
    ended.world.take(ended.reader, 4);
    assert_eq!(ended.world.values(ended.reader), [1, 2, 3, 4]);
}

#[test]
fn however_many_end_together_all_go() {
    let mut ended = pair(&purging(keyed(200), Some(DELAY), None));
    ended.write((0..100).map(|key| Sample::keyed(key, 1)));
    ended.world.delete_writer(ended.writer);
    ended.world.run_for(SECOND);
    // The writer sends the ends of 64 instances, which are samples. The other instances end with the writer.
    let sent = u64::from(DEFAULT_SAMPLES);
    assert_eq!((ended.available(), ended.purged()), (0, 100 + sent));
}

#[test]
fn the_delay_may_change_and_counts_from_the_change() {
    let mut ended = pair(&keyed(32));
    ended.write([Sample::keyed(1, 1), Sample::dispose(1)]);
    ended.world.run_for(SECOND);
    assert_eq!(ended.available(), 2, "by default all stays");
    let changed = ended.world.set_reader_qos(ended.reader, |qos| {
        qos.reader_data_lifecycle.autopurge_disposed_samples_delay = DELAY.into();
    });
    assert_eq!(changed, Ok(()));
    ended.world.run_for(DELAY / 2);
    assert_eq!(ended.available(), 2);
    ended.world.run_for(2 * SECOND);
    assert_eq!((ended.available(), ended.purged()), (0, 2));
    assert_eq!(ended.world.matched_writers(ended.reader), 1);
}

#[test]
fn a_reader_that_takes_in_time_loses_nothing() {
    let topic = purging(keyed(32), Some(DELAY), Some(DELAY));
    let (mut world, _, writer, reader) = a_pair(&topic);
    world.enqueue(
        writer,
        (0..10).flat_map(|key| [Sample::keyed(key, 1), Sample::dispose(key)]),
    );
    world.run_for(SECOND);
    let ledger = world.reader_ledger(reader);
    assert_eq!((ledger.delivered, ledger.purged), (20, 0));
}

#[test]
fn an_end_that_comes_after_the_purge_goes_too_and_one_that_is_repeated_does_not_put_it_off() {
    let mut ended = pair(&purging(keyed(32), None, Some(DELAY)));
    ended.write([Sample::keyed(1, 1), Sample::dispose(1)]);
    ended.world.run_for(2 * DELAY);
    assert_eq!((ended.available(), ended.purged()), (0, 2));
    ended.write([Sample::dispose(1)]);
    assert_eq!(ended.available(), 1);
    for _ in 0..4 {
        ended.world.run_for(DELAY / 4);
        ended.write([Sample::dispose(1)]);
    }
    ended.world.run_for(DELAY / 4);
    assert!(ended.purged() > 2, "{}", ended.purged());
    ended.world.run_for(2 * DELAY);
    assert_eq!(ended.available(), 0);
}
