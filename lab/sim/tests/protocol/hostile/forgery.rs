//! Messages in another participant's name. They are accepted, because nothing proves their sender; these tests show the
//! consequences, and the counters that record them. The list is in the module documentation of this folder.

use std::time::Duration;

use isolane_sim::{LinkConfig, Sample, Topic};
use isolane_wire::guid::EntityId;

use super::Forged;
use crate::{
    peer::head,
    submessages::{acknack, end, set},
    support::{SECOND, a_pair, ms, values},
};

/// A matched pair whose reader has three samples.
fn forged_pair() -> Forged {
    let topic = Topic::new("Forged").reliable().keep_all(64);
    let (mut world, nodes, writer, reader) = a_pair(&topic);
    world.enqueue(writer, values(3));
    world.run_for(SECOND);
    Forged::of((world, nodes, writer, reader))
}

impl Forged {
    /// Acknowledges all samples below a number in the reader's name.
    fn acknowledge(&mut self, below: i64, count: i32) {
        let reader = self.world.reader_guid(self.reader).entity;
        let acknack = acknack((reader, self.writer_entity()), set(below, []), count);
        self.forge(1, |message| message.acknack(&acknack).map(drop));
        self.world.run_for(ms(1));
    }

    fn write(&mut self, values: std::ops::RangeInclusive<u64>) {
        self.world.enqueue(self.writer, values.map(Sample::value));
        self.world.run_for(SECOND);
    }
}

#[test]
fn a_gap_in_the_writers_name_loses_samples_and_each_is_counted() {
    let mut forged = forged_pair();
    forged.gap(1, 6);
    forged.world.run_for(ms(1));
    forged.write(4..=8);
    // The two skipped samples arrive, and count as duplicates.
    assert_eq!(forged.world.values(forged.reader), [1, 2, 3, 6, 7, 8]);
    let ledger = forged.world.reader_ledger(forged.reader);
    assert_eq!((ledger.lost, ledger.duplicates), (2, 2));
    let id = forged.world.reader_id(forged.reader);
    let protocol = forged.world.protocol(forged.nodes[1]);
    assert!(
        protocol
            .reader_ledger(id)
            .is_some_and(|ledger| ledger.balances())
    );
}

#[test]
fn a_heartbeat_over_the_whole_range_in_the_writers_name_and_from_its_address_ends_no_flow() {
    let mut forged = forged_pair();
    forged.heartbeat((i64::MAX - 1, i64::MAX - 1), 1 << 20);
    forged.world.run_for(ms(1));
    forged.write(4..=8);
    assert_eq!(
        forged.world.values(forged.reader),
        (1..=8).collect::<Vec<_>>()
    );
    let ledger = forged.world.reader_ledger(forged.reader);
    assert_eq!((ledger.lost, ledger.duplicates), (0, 0));
}

#[test]
fn counts_forged_in_both_names_silence_neither_for_longer_than_a_second() {
    let mut forged = forged_pair();
    forged.heartbeat((1, 3), i32::MAX / 2);
    forged.world.run_for(ms(1));
    forged.acknowledge(4, i32::MAX / 2);
    // So lossy that samples need HEARTBEATs and ACKNACKs.
    forged.world.set_link(LinkConfig::lossy(0.5));
    let reader = forged.reader;
    forged
        .world
        .enqueue(forged.writer, (4..=50).map(Sample::value));
    forged.world.run_until("all came", 60 * SECOND, |world| {
        world.received(reader).len() == 50
    });
}

#[test]
fn an_acknack_in_the_readers_name_gives_up_what_it_lacks_and_that_is_counted() {
    let mut forged = forged_pair();
    // The link is cut, and the attacker acknowledges the samples in the reader's name.
    let cut = isolane_sim::Partition::one_way(&forged.nodes[..1], &forged.nodes[1..]);
    forged.world.partition(cut);
    forged.write(4..=6);
    forged.acknowledge(7, 1 << 20);
    forged.world.heal();
    forged.write(7..=8);
    forged.world.run_for(5 * SECOND);
    assert_eq!(forged.world.values(forged.reader), [1, 2, 3, 7, 8]);
    assert_eq!(forged.world.reader_ledger(forged.reader).lost, 3);
}

#[test]
fn data_in_the_writers_name_is_delivered_and_the_true_sample_is_a_duplicate() {
    let mut forged = forged_pair();
    let payload = Sample::value(666).payload();
    let head = head(forged.writer_entity(), 4);
    forged.forge(0, |message| message.data(&head, &payload).map(drop));
    forged.world.run_for(ms(1));
    forged.write(4..=5);
    assert_eq!(forged.world.values(forged.reader), [1, 2, 3, 666, 5]);
    assert_eq!(forged.world.reader_ledger(forged.reader).duplicates, 1);
}

#[test]
fn a_farewell_in_a_participants_name_parts_it_until_it_announces_itself_again() {
    let mut forged = forged_pair();
    let farewell = end(EntityId::SPDP_WRITER, 1);
    forged.forge(0, |message| message.data(&farewell, &[]).map(drop));
    forged.world.run_for(ms(1));
    assert_eq!(forged.world.matched_writers(forged.reader), 0);
    // The participant's next announcement is at most two seconds away.
    forged.world.run_for(Duration::from_millis(2_500));
    assert_eq!(forged.world.matched_writers(forged.reader), 1);
    forged.write(4..=5);
    assert!(forged.world.values(forged.reader).ends_with(&[4, 5]));
}
