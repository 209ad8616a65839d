//! Sequence numbers far ahead in a writer's name, from an address that is not the writer's: the flow continues.

use isolane_sim::{NodeConfig, Partition, Sample, Topic, World};
use isolane_wire::{
    builtin_data::{KeyKind, emit_key_guid},
    guid::{EntityId, Guid},
    message::{DataFragPrefix, Submessage},
    sequence::SequenceNumber,
};

use super::Forged;
use crate::{
    peer::{for_each_submessage, head},
    submessages::end,
    support::{SECOND, a_pair, a_pair_in, ms, values},
};

/// A matched pair whose samples are being sent, and a third host that uses the writer's GUID.
fn forged_pair(topic: &Topic) -> Forged {
    let mut world = World::new(1);
    world.tap();
    let (mut world, nodes, writer, reader) = a_pair_in(world, topic);
    world.publish(writer, ms(20), values(100));
    world.run_for(SECOND);
    let attacker = world.node_down(NodeConfig::default());
    Forged {
        attacker: Some(attacker),
        ..Forged::of((world, nodes, writer, reader))
    }
}

impl Forged {
    /// Sends the dispose of an endpoint, as the next announcement of its participant's SEDP writer.
    fn end_endpoint(&mut self, of: usize, sedp: EntityId, guid: Guid) {
        let mut key = [0; 64];
        let length = emit_key_guid(KeyKind::Endpoint, guid, &mut key).expect("it fits");
        let head = end(sedp, self.next_announcement(sedp));
        self.forge(of, |message| message.data(&head, &key[..length]).map(drop));
    }

    /// Checks that all samples arrive, once and in order, and that none counts as lost.
    fn all_arrives(&mut self) {
        self.world.run_for(20 * SECOND);
        let values = self.world.values(self.reader);
        assert_eq!(values, (1..=100).collect::<Vec<_>>());
        let ledger = self.world.reader_ledger(self.reader);
        assert_eq!(ledger.lost, 0, "{ledger:?}");
    }

    /// Sequence number of a participant's next SEDP announcement, if only one of the two announces endpoints of this
    /// kind.
    fn next_announcement(&self, sedp: EntityId) -> i64 {
        let mut last = 0;
        for_each_submessage(&self.world, |submessage| {
            if let Submessage::Data(data) = submessage
                && data.writer == sedp
            {
                last = last.max(data.sequence.get());
            }
        });
        last + 1
    }

    fn doubted(&self) -> u64 {
        self.world.protocol(self.nodes[1]).counters().jumps_doubted
    }
}

fn reliable() -> Topic {
    Topic::new("Forged").reliable().keep_all(64)
}

#[test]
fn a_heartbeat_or_a_gap_far_ahead_from_another_address_ends_no_flow() {
    let far = [1_000_000_000, 1 << 40, i64::MAX - 3];
    for to in far {
        let mut forged = forged_pair(&reliable());
        forged.heartbeat((to, to + 1), 1 << 20);
        forged.all_arrives();
        assert!(forged.doubted() > 0);
        let mut forged = forged_pair(&reliable());
        forged.gap(1, to);
        forged.all_arrives();
        assert!(forged.doubted() > 0);
    }
}

#[test]
fn forged_jumps_without_end_from_another_address_end_no_flow() {
    let mut forged = forged_pair(&reliable());
    for count in 0..100 {
        forged.heartbeat((1 << 40, 1 << 41), (1 << 20) + count);
        forged.gap(1, 1 << 40);
        forged.world.run_for(ms(10));
    }
    forged.all_arrives();
}

#[test]
fn steps_within_the_window_from_another_address_end_no_reliable_flow() {
    let mut forged = forged_pair(&reliable());
    for step in 0..400 {
        let first = 1 + 250 * step;
        forged.heartbeat((first, first + 1), (1 << 20) + step as i32);
    }
    forged.world.run_for(ms(1));
    // The writer's HEARTBEATs correct the position within two seconds, in which a hundred samples are written.
    let had = forged.world.values(forged.reader).len();
    forged.world.publish(forged.writer, ms(20), values(400));
    forged.world.run_for(20 * SECOND);
    let values = forged.world.values(forged.reader);
    assert!(values.len() > had + 250, "{} of 400 arrive", values.len());
    assert_eq!(values.last(), Some(&400));
    assert!(
        values[had..].is_sorted_by(|one, other| one < other),
        "{values:?}"
    );
}

#[test]
fn a_gap_from_another_address_skips_nothing_that_the_writer_has() {
    let mut forged = forged_pair(&reliable());
    let [a, b] = forged.nodes;
    // The reader is more than the window behind the writer.
    forged.world.partition(Partition::one_way(&[a], &[b]));
    forged.world.publish(forged.writer, ms(1), values(60));
    forged.world.run_for(ms(500));
    forged.heartbeat((1, 1_000), 1 << 20);
    forged.gap(1, 900);
    forged.world.heal();
    forged.world.run_for(10 * SECOND);
    let ledger = forged.world.reader_ledger(forged.reader);
    assert_eq!(ledger.lost, 0, "{ledger:?}");
    assert!(forged.doubted() > 0);
}

#[test]
fn a_heartbeat_far_ahead_before_the_first_sample_is_followed_back() {
    let mut forged = Forged::of(a_pair(&reliable()));
    forged.attacker = Some(forged.world.node_down(NodeConfig::default()));
    forged.heartbeat((1 << 40, 1 << 40), 1 << 20);
    forged.gap(1, 1 << 41);
    forged.world.run_for(2 * SECOND);
    forged.world.publish(forged.writer, ms(20), values(100));
    forged.all_arrives();
}

#[test]
fn a_sample_far_ahead_from_another_address_ends_no_best_effort_flow() {
    let mut forged = forged_pair(&Topic::new("Forged"));
    let payload = Sample::value(666).payload();
    for number in [1 << 40, 1 << 41, (1 << 41) + 1] {
        let head = head(forged.writer_entity(), number);
        forged.forge(0, |message| message.data(&head, &payload).map(drop));
        forged.world.run_for(ms(1));
    }
    forged.world.run_for(10 * SECOND);
    let (forgeries, own): (Vec<_>, Vec<_>) = forged
        .world
        .values(forged.reader)
        .into_iter()
        .partition(|&value| value == 666);
    assert_eq!(own, (1..=100).collect::<Vec<_>>());
    assert!(forgeries.len() <= 3);
    let ledger = forged.world.reader_ledger(forged.reader);
    assert_eq!((ledger.lost, ledger.duplicates), (0, 0), "{ledger:?}");
}

#[test]
fn runs_of_samples_from_another_address_end_no_best_effort_flow() {
    for period in [ms(20), ms(100), ms(1_500)] {
        let mut forged = forged_pair(&Topic::new("Forged"));
        let payload = Sample::value(666).payload();
        forged.world.publish(forged.writer, period, values(600));
        for second in 0..3 {
            // Fewer datagrams at a time than the reader's socket holds.
            for number in 1..1_500 {
                let head = head(forged.writer_entity(), second * 700 + number);
                forged.forge(0, |message| message.data(&head, &payload).map(drop));
                if number % 100 == 0 {
                    forged.world.run_for(ms(1));
                }
            }
            let far = head(forged.writer_entity(), 1 << 40 | second);
            forged.forge(0, |message| message.data(&far, &payload).map(drop));
            forged.world.run_for(ms(1_100));
        }
        assert!(forged.doubted() > 100, "{period:?}");
        forged.world.run_for(600 * period);
        let values = forged.world.values(forged.reader);
        let after = values.iter().rposition(|&value| value == 666);
        let after = values.len() - after.map_or(0, |at| at + 1);
        assert!(after >= 100, "{period:?}: {after} follow the last forgery");
        assert_eq!(values.last(), Some(&600), "{period:?}");
    }
}

#[test]
fn a_fragment_far_ahead_from_another_address_ends_no_best_effort_flow() {
    let mut forged = forged_pair(&Topic::new("Forged"));
    let head = DataFragPrefix {
        reader: EntityId::UNKNOWN,
        writer: forged.writer_entity(),
        sequence: SequenceNumber(1 << 40),
        first_fragment: 1,
        fragments: 1,
        fragment_size: 1,
        sample_size: 2,
        key_hash: None,
        status: None,
        is_key: false,
    };
    forged.forge(0, |message| message.data_frag(&head, &[0]).map(drop));
    forged.all_arrives();
}

#[test]
fn a_true_jump_is_followed_after_one_round_trip() {
    // KEEP_LAST 1: of the samples written while the link is cut, only the last remains.
    let topic = Topic::new("Jump").reliable();
    let (mut world, (a, b), writer, reader) = a_pair(&topic);
    world.publish(writer, ms(1), values(2_000));
    world.run_for(ms(100));
    world.partition(Partition::one_way(&[a], &[b]));
    world.run_for(ms(1_000));
    let had = world.values(reader).len();
    world.heal();
    world.run_for(ms(5));
    assert!(world.values(reader).len() > had, "it goes on");
    world.run_for(5 * SECOND);
    let values = world.values(reader);
    assert_eq!(values.last(), Some(&2_000));
    assert!(values.is_sorted_by(|one, other| one < other));
}

#[test]
fn a_true_jump_of_a_best_effort_writer_costs_nothing() {
    let (mut world, (a, b), writer, reader) = a_pair(&Topic::new("Jump"));
    world.publish(writer, ms(1), values(2_000));
    world.run_for(ms(100));
    world.partition(Partition::one_way(&[a], &[b]));
    world.run_for(ms(1_000));
    let had = world.values(reader).len();
    world.heal();
    world.run_for(5 * SECOND);
    let values = world.values(reader);
    let next = values[had];
    assert_eq!(values[had..], (next..=2_000).collect::<Vec<_>>());
    let ledger = world.reader_ledger(reader);
    assert_eq!(ledger.lost, next - values[had - 1] - 1);
}

#[test]
fn a_forged_farewell_of_an_endpoint_holds_until_the_participants_next_announcement() {
    for topic in [
        reliable(),
        reliable().transient_local(),
        Topic::new("Forged"),
    ] {
        let mut forged = forged_pair(&topic);
        let guid = forged.world.writer_guid(forged.writer);
        forged.end_endpoint(0, EntityId::SEDP_PUBLICATIONS_WRITER, guid);
        forged.world.run_for(ms(1));
        assert_eq!(forged.world.matched_writers(forged.reader), 0);
        // The next announcement is at most two seconds away.
        forged.world.run_for(ms(2_100));
        assert_eq!(forged.world.matched_writers(forged.reader), 1);
        forged.world.run_for(10 * SECOND);
        let values = forged.world.values(forged.reader);
        assert!(values.is_sorted_by(|one, other| one < other), "{values:?}");
        assert!(values.contains(&99) && values.contains(&100), "{values:?}");
        // The next endpoint is announced with the sequence number that the forgery used.
        let node = forged.nodes[0];
        let late = forged.world.create_writer(node, &Topic::new("Late"));
        let reader = forged
            .world
            .create_reader(forged.nodes[1], &Topic::new("Late"));
        forged.world.until_matched(&[late], &[reader]);
    }
}

#[test]
fn a_forged_farewell_of_a_reader_holds_until_the_participants_next_announcement() {
    for topic in [reliable(), Topic::new("Forged")] {
        let mut forged = forged_pair(&topic);
        let guid = forged.world.reader_guid(forged.reader);
        forged.end_endpoint(1, EntityId::SEDP_SUBSCRIPTIONS_WRITER, guid);
        forged.world.run_for(ms(1));
        assert_eq!(forged.world.matched_readers(forged.writer), 0);
        // The next announcement is at most two seconds away.
        forged.world.run_for(ms(2_100));
        assert_eq!(forged.world.matched_readers(forged.writer), 1);
        forged.world.enqueue(forged.writer, [Sample::value(1_000)]);
        forged.world.run_for(10 * SECOND);
        let values = forged.world.values(forged.reader);
        assert!(values.is_sorted_by(|one, other| one < other), "{values:?}");
        assert_eq!(values.last(), Some(&1_000));
    }
}
