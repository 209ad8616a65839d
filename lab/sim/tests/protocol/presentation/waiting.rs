//! Complete sets that wait for users: none of them is dropped, however long the users take.

use isolane_sim::{PublisherHandle, Sample, Take, World, WriterHandle};

use super::{COHERENT_GROUP, Groups, alike, groups, reliable};
use crate::support::{SECOND, ms};

/// Readers of the named topics, with room for two samples each; a second publisher also writes the first topic.
struct Blocked {
    group: Groups,
    other: (PublisherHandle, WriterHandle),
}

fn blocked(names: &[&str]) -> Blocked {
    let topics: Vec<_> = names
        .iter()
        .map(|name| {
            let (offered, requested) = alike(reliable(name));
            (offered.keep_all(64), requested.keep_all(2))
        })
        .collect();
    let mut group = groups(World::new(1), COHERENT_GROUP, &topics);
    for &reader in &group.readers {
        group.world.set_take(reader, Take::OnRequest);
    }
    let publisher = group.world.create_publisher(group.nodes.0, COHERENT_GROUP);
    let writer = group.world.create_writer_in(publisher, &topics[0].0);
    let writers = [group.writers[0], writer];
    group.world.until_matched(&writers, &[group.readers[0]]);
    let other = (publisher, writer);
    Blocked { group, other }
}

impl Blocked {
    fn write_set_of_other(&mut self, value: u64) {
        let (publisher, writer) = self.other;
        self.group.world.begin_set(publisher);
        self.group.world.enqueue(writer, [Sample::value(value)]);
        let ended = self.group.world.end_set(publisher);
        ended.expect("there is room for the end");
    }

    fn take(&mut self, reader: usize) -> Vec<u64> {
        let reader = self.group.readers[reader];
        let before = self.group.world.values(reader).len();
        self.group.world.take(reader, 99);
        let values = self.group.world.values(reader)[before..].to_vec();
        self.group.world.run_for(ms(50));
        values
    }

    fn incomplete(&self) -> u64 {
        let readers = self.group.readers.iter();
        let ledgers = readers.map(|&reader| self.group.world.reader_ledger(reader));
        ledgers.map(|ledger| ledger.incomplete).sum()
    }
}

#[test]
fn a_set_that_waits_for_room_at_another_reader_is_not_dropped_for_one_that_comes_later() {
    let mut it = blocked(&["Left", "Right"]);
    let (left, right) = (0, 1);
    let of = |writer, value| (writer, Sample::value(value));
    it.group.write_set([of(right, 1), of(right, 2)]);
    it.group.world.run_for(ms(50));
    it.group.write_set([of(left, 3), of(left, 4), of(right, 5)]);
    it.group.world.run_for(ms(50));
    it.write_set_of_other(6);
    it.group.world.run_for(2 * SECOND);
    assert_eq!(it.incomplete(), 0);
    assert_eq!(
        it.take(left),
        [],
        "the other reader has no room for its part"
    );
    assert_eq!(it.take(right), [1, 2, 5]);
    assert_eq!(it.take(left), [3, 4, 6]);
    assert_eq!(it.incomplete(), 0);
}

#[test]
fn a_set_that_waits_for_a_user_who_looks_is_not_dropped_for_one_that_comes_later() {
    let mut it = blocked(&["Left"]);
    assert!(it.group.world.begin_access(it.group.subscriber));
    it.group
        .write_set([(0, Sample::value(1)), (0, Sample::value(2))]);
    it.group.world.run_for(ms(50));
    it.write_set_of_other(3);
    it.group.world.run_for(2 * SECOND);
    assert_eq!((it.take(0), it.incomplete()), (vec![], 0));
    assert!(it.group.world.end_access(it.group.subscriber));
    it.group.world.run_for(ms(50));
    assert_eq!(it.take(0), [1, 2, 3]);
    assert_eq!(it.incomplete(), 0);
}
