//! Coherent set information in forms that isolane does not write, in messages made by hand.

use isolane_sim::{NodeConfig, ReaderHandle, Sample, World};
use isolane_wire::{
    message::{CoherentSetInfo, DataPrefix, PayloadKind},
    qos::{Presentation, QosPolicies},
    sequence::SequenceNumber,
};

use super::{BOTH_OF_GROUP, COHERENT_TOPIC, reliable};
use crate::{
    peer::{Peer, WRITER, head},
    support::{SECOND, ms},
};

struct Foreign {
    world: World,
    peer: Peer,
    reader: ReaderHandle,
}

fn foreign(presentation: Presentation) -> Foreign {
    let mut world = World::new(1);
    let node = world.node(NodeConfig::default());
    let topic = reliable("Foreign")
        .keep_all(8)
        .qos(|qos| qos.presentation = presentation);
    let reader = world.create_reader(node, &topic);
    let mut peer = Peer::of(&mut world, node);
    let offered = QosPolicies {
        presentation,
        ..QosPolicies::writer_default()
    };
    peer.announce(&mut world, WRITER, offered);
    peer.heartbeat(&mut world, (1, 0), 1);
    Foreign {
        world,
        peer,
        reader,
    }
}

impl Foreign {
    /// Sends a sample whose value is its number.
    fn say(&mut self, number: i64, mark: CoherentSetInfo) {
        let payload = Sample::value(number as u64).payload();
        let head = head(WRITER, number);
        self.peer.say(&mut self.world, |message| {
            message.data_with_set(&head, &mark, &payload).map(drop)
        });
    }

    fn end(&mut self, number: i64, mark: CoherentSetInfo) {
        let head = DataPrefix {
            payload: PayloadKind::None,
            ..head(WRITER, number)
        };
        self.peer.say(&mut self.world, |message| {
            message.data_with_set(&head, &mark, &[]).map(drop)
        });
    }

    fn values(&mut self) -> Vec<u64> {
        self.world.run_for(ms(10));
        self.world.values(self.reader)
    }
}

fn in_set(set: i64) -> CoherentSetInfo {
    CoherentSetInfo {
        coherent_set: Some(SequenceNumber(set)),
        ..CoherentSetInfo::default()
    }
}

#[test]
fn a_set_ends_with_the_first_sample_of_the_next_or_of_none() {
    let mut foreign = foreign(COHERENT_TOPIC);
    foreign.say(1, in_set(1));
    foreign.say(2, in_set(1));
    assert_eq!(foreign.values(), []);
    foreign.say(3, in_set(3));
    assert_eq!(foreign.values(), [1, 2]);
    foreign.say(4, CoherentSetInfo::default());
    assert_eq!(foreign.values(), [1, 2, 3, 4]);
    foreign.say(5, in_set(5));
    foreign.say(6, in_set(SequenceNumber::UNKNOWN.get()));
    assert_eq!(foreign.values(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_set_whose_first_sample_never_came_is_dropped() {
    let mut foreign = foreign(COHERENT_TOPIC);
    foreign.say(1, CoherentSetInfo::default());
    foreign.say(2, in_set(7));
    foreign.say(3, in_set(7));
    foreign.say(4, in_set(i64::MAX));
    foreign.say(5, in_set(i64::MIN));
    assert_eq!(foreign.values(), [1, 5]);
    let ledger = foreign.world.reader_ledger(foreign.reader);
    assert_eq!(ledger.incomplete, 3);
}

#[test]
fn numbers_that_contradict_each_other_cost_their_sender_alone() {
    let mut foreign = foreign(BOTH_OF_GROUP);
    let numbers = [1, i64::MAX, 3, 3, 2, -5, 0, i64::MIN];
    for (nth, &number) in (1..).zip(&numbers) {
        for (of, &set) in (0..).zip(&numbers) {
            let mark = CoherentSetInfo {
                coherent_set: Some(SequenceNumber(set)),
                group_sequence: Some(SequenceNumber(number)),
                group_coherent_set: Some(SequenceNumber(set)),
                writers: Some([7; 4]),
            };
            let sequence = (nth - 1) * 16 + of * 2 + 1;
            foreign.say(sequence, mark);
            let unknown = Some(SequenceNumber::UNKNOWN);
            foreign.end(
                sequence + 1,
                CoherentSetInfo {
                    coherent_set: unknown,
                    ..mark
                },
            );
        }
    }
    foreign.world.run_for(SECOND);
    // The reader continues; the ledgers are checked when the world is dropped.
    let before = foreign.world.reader_ledger(foreign.reader).accounted;
    assert!(before > 0);
}

#[test]
fn an_end_of_nothing_is_no_sample_and_no_harm() {
    let mut foreign = foreign(COHERENT_TOPIC);
    foreign.end(1, in_set(SequenceNumber::UNKNOWN.get()));
    foreign.say(2, in_set(2));
    foreign.end(3, in_set(SequenceNumber::UNKNOWN.get()));
    assert_eq!(foreign.values(), [2]);
    let ledger = foreign.world.reader_ledger(foreign.reader);
    assert_eq!((ledger.set_ends, ledger.rejected), (2, 0));
}
