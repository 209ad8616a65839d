//! Writers of a group that send nothing, or do not report their progress: what they cost, and that no reader waits
//! forever.

use isolane_sim::{NodeConfig, ReaderHandle, Sample, World};
use isolane_wire::{
    guid::{EntityId, EntityKind},
    message::{CoherentSetInfo, DataPrefix, Heartbeat, HeartbeatGroup, PayloadKind, Submessage},
    qos::{Presentation, QosPolicies},
    sequence::SequenceNumber,
};

use super::{BOTH_OF_GROUP, COHERENT_GROUP, ORDERED_GROUP, reliable};
use crate::{
    peer::{Peer, for_each_submessage, head},
    submessages::heartbeat,
    support::{SECOND, ms},
};

const PUBLISHER: EntityId = EntityId::user(9, EntityKind::WRITER_GROUP);

/// Writers of one publisher of a peer, and a reader of all of them.
struct Publisher {
    world: World,
    peer: Peer,
    writers: Vec<EntityId>,
    reader: ReaderHandle,
    heartbeats: i32,
}

fn publisher(presentation: Presentation, writers: u32) -> Publisher {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = reliable("Foreign")
        .keep_all(32)
        .qos(|qos| qos.presentation = presentation);
    let reader = world.create_reader(node, &topic);
    let mut peer = Peer::of(&mut world, node);
    let writers: Vec<_> = (1..=writers)
        .map(|number| EntityId::user(number, EntityKind::WRITER_NO_KEY))
        .collect();
    for &writer in &writers {
        peer.announce_with(&mut world, writer, |data| {
            data.qos = QosPolicies {
                presentation,
                ..QosPolicies::writer_default()
            };
            data.group = Some(PUBLISHER);
        });
    }
    let mut publisher = Publisher {
        world,
        peer,
        writers,
        reader,
        heartbeats: 0,
    };
    for nth in 0..publisher.writers.len() {
        publisher.heartbeat(nth, 0, None);
    }
    publisher
}

impl Publisher {
    fn heartbeat(&mut self, writer: usize, last: i64, current: Option<i64>) {
        self.heartbeats += 1;
        let heartbeat = Heartbeat {
            group: current.map(|current| HeartbeatGroup {
                current: SequenceNumber(current),
                first: SequenceNumber(current),
                last: SequenceNumber(current),
                writers: [0; 4],
                secure_writers: [0; 4],
            }),
            is_final: true,
            ..heartbeat(self.writers[writer], (1, last), self.heartbeats)
        };
        self.peer.say(&mut self.world, |message| {
            message.heartbeat(&heartbeat).map(drop)
        });
    }

    /// Sends a sample with this number and value.
    fn say(&mut self, writer: usize, number: i64, value: u64, mark: CoherentSetInfo) {
        let payload = Sample::value(value).payload();
        let head = head(self.writers[writer], number);
        self.peer.say(&mut self.world, |message| {
            message.data_with_set(&head, &mark, &payload).map(drop)
        });
    }

    fn end(&mut self, writer: usize, number: i64) {
        let head = DataPrefix {
            payload: PayloadKind::None,
            ..head(self.writers[writer], number)
        };
        let mark = in_set(SequenceNumber::UNKNOWN.get());
        self.peer.say(&mut self.world, |message| {
            message.data_with_set(&head, &mark, &[]).map(drop)
        });
    }

    fn values(&mut self) -> Vec<u64> {
        self.world.run_for(ms(10));
        self.world.values(self.reader)
    }

    fn unnumbered(&self) -> u64 {
        let protocol = self.world.protocol(self.peer.target);
        protocol.counters().groups_unnumbered
    }

    /// Number of ACKNACKs to a writer so far.
    fn acknacks(&self, writer: usize) -> usize {
        let mut count = 0;
        for_each_submessage(&self.world, |submessage| {
            if let Submessage::AckNack(acknack) = submessage {
                count += usize::from(acknack.writer == self.writers[writer]);
            }
        });
        count
    }
}

/// Metadata of a sample in a set of its writer, without a group sequence number.
fn in_set(set: i64) -> CoherentSetInfo {
    CoherentSetInfo {
        coherent_set: Some(SequenceNumber(set)),
        ..CoherentSetInfo::default()
    }
}

/// Metadata of a sample with this group sequence number.
fn numbered(number: i64) -> CoherentSetInfo {
    CoherentSetInfo {
        group_sequence: Some(SequenceNumber(number)),
        ..CoherentSetInfo::default()
    }
}

#[test]
fn sets_of_a_group_that_does_not_number_its_samples_are_those_of_each_writer() {
    for presentation in [COHERENT_GROUP, BOTH_OF_GROUP] {
        let mut foreign = publisher(presentation, 2);
        foreign.say(0, 1, 10, in_set(1));
        foreign.say(1, 1, 20, in_set(1));
        foreign.say(0, 2, 11, in_set(1));
        assert_eq!(foreign.values(), []);
        foreign.end(0, 3);
        assert_eq!(foreign.values(), [10, 11]);
        // The set ends without a message of its own, by the first sample of the next set.
        foreign.say(1, 2, 21, in_set(2));
        assert_eq!(foreign.values(), [10, 11, 20]);
        foreign.say(1, 3, 22, CoherentSetInfo::default());
        assert_eq!(foreign.values(), [10, 11, 20, 21, 22]);
        assert_eq!(foreign.unnumbered(), 2);
        let ledger = foreign.world.reader_ledger(foreign.reader);
        assert_eq!((ledger.incomplete, ledger.in_sets), (0, 0));
    }
}

#[test]
fn samples_without_a_number_have_no_order_and_do_not_wait() {
    let mut foreign = publisher(ORDERED_GROUP, 3);
    foreign.say(0, 1, 10, CoherentSetInfo::default());
    assert_eq!(foreign.values(), [10]);
    foreign.say(1, 1, 20, CoherentSetInfo::default());
    assert_eq!(foreign.values(), [10, 20]);
    assert_eq!(foreign.unnumbered(), 2);
}

#[test]
fn a_writer_that_stops_numbering_leaves_its_group_and_the_others_go_on() {
    let mut foreign = publisher(ORDERED_GROUP, 3);
    foreign.say(0, 1, 10, numbered(2));
    assert_eq!(foreign.values(), [], "the others may have one before");
    foreign.say(1, 1, 20, CoherentSetInfo::default());
    foreign.heartbeat(2, 0, Some(2));
    assert_eq!(foreign.values(), [20, 10]);
    foreign.say(1, 2, 21, numbered(7));
    assert_eq!(foreign.values(), [20, 10, 21], "it is by itself for good");
    assert_eq!(foreign.unnumbered(), 1);
}

#[test]
fn who_answers_and_never_says_how_far_its_group_is_is_waited_for_for_a_while_only() {
    let mut foreign = publisher(ORDERED_GROUP, 2);
    foreign.say(0, 1, 10, numbered(2));
    foreign.heartbeat(1, 0, None);
    assert_eq!(foreign.values(), []);
    for _ in 0..50 {
        foreign.heartbeat(1, 0, None);
        foreign.world.run_for(ms(100));
    }
    assert_eq!(foreign.values(), [10]);
    assert_eq!(foreign.unnumbered(), 1);
}

#[test]
fn who_does_not_answer_is_asked_less_and_less_often() {
    let mut foreign = publisher(ORDERED_GROUP, 2);
    foreign.world.run_for(ms(100));
    let before = foreign.acknacks(1);
    foreign.say(0, 1, 10, numbered(2));
    foreign.world.run_for(10 * SECOND);
    let asked = foreign.acknacks(1) - before;
    assert!((5..=20).contains(&asked), "{asked} in ten seconds");
    foreign.heartbeat(1, 0, Some(2));
    assert_eq!(foreign.values(), [10]);
    // The next HEARTBEAT request is again sent at once.
    let before = foreign.acknacks(1);
    foreign.say(0, 2, 11, numbered(4));
    foreign.world.run_for(ms(50));
    let asked = foreign.acknacks(1) - before;
    assert!((2..=3).contains(&asked), "{asked} in 50 ms");
    foreign.heartbeat(1, 0, Some(4));
    assert_eq!(foreign.values(), [10, 11]);
}

#[test]
fn many_writers_that_are_silent_are_asked_by_one_clock_each_as_often_as_one() {
    let mut foreign = publisher(ORDERED_GROUP, 40);
    foreign.world.run_for(ms(100));
    let before = foreign.acknacks(7);
    foreign.say(0, 1, 10, numbered(2));
    foreign.say(1, 1, 20, numbered(3));
    foreign.world.run_for(10 * SECOND);
    let asked = foreign.acknacks(7) - before;
    assert!((5..=20).contains(&asked), "{asked} in ten seconds");
    for writer in 2..40 {
        foreign.heartbeat(writer, 0, Some(3));
    }
    foreign.heartbeat(1, 1, Some(3));
    assert_eq!(foreign.values(), [10, 20]);
}
