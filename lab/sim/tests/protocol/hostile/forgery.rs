//! Messages in another participant's name. They are accepted, because nothing proves their sender; these tests show the
//! consequences, and the counters that record them. The list is in the module documentation of this folder.

use std::time::Duration;

use isolane_sim::{LinkConfig, NodeId, ReaderHandle, Sample, Topic, World, WriterHandle};
use isolane_wire::{
    guid::{EntityId, GuidPrefix},
    message::{AckNack, Gap, Header, Heartbeat, MessageWriter, PayloadKind, StatusInfo},
    sequence::{SequenceNumber, SequenceNumberSet},
};

use crate::{
    peer::head,
    support::{SECOND, a_pair, ms, values},
};

/// A matched pair, and an attacker that uses its GUIDs.
struct Forged {
    world: World,
    nodes: [NodeId; 2],
    writer: WriterHandle,
    reader: ReaderHandle,
}

impl Forged {
    fn new() -> Self {
        let topic = Topic::new("Forged").reliable().keep_all(64);
        let (mut world, (a, b), writer, reader) = a_pair(&topic);
        world.enqueue(writer, values(3));
        world.run_for(SECOND);
        Self {
            world,
            nodes: [a, b],
            writer,
            reader,
        }
    }

    fn prefix(&self, node: usize) -> GuidPrefix {
        self.world.protocol(self.nodes[node]).guid_prefix()
    }

    fn writer_entity(&self) -> EntityId {
        self.world.writer_guid(self.writer).entity
    }

    /// Sends a message to one node in the name of the other.
    fn forge(
        &mut self,
        to: usize,
        fill: impl FnOnce(&mut MessageWriter<'_>) -> Result<(), isolane_wire::BufferTooSmall>,
    ) {
        let mut buffer = [0; 256];
        let header = Header::new(self.prefix(1 - to));
        let mut message = MessageWriter::new(&mut buffer, &header).expect("it fits");
        fill(&mut message).expect("it fits");
        let length = message.len();
        let [a, b] = self.nodes;
        let (to, from) = if to == 0 { (a, b) } else { (b, a) };
        let from = from.discovery_locator();
        self.world
            .inject(to.discovery_locator(), from, &buffer[..length]);
        self.world.run_for(ms(1));
    }

    fn write(&mut self, values: std::ops::RangeInclusive<u64>) {
        self.world.enqueue(self.writer, values.map(Sample::value));
        self.world.run_for(SECOND);
    }

    fn heartbeat(&self, first: i64, last: i64, count: i32) -> Heartbeat {
        Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: self.writer_entity(),
            group: None,
            first: SequenceNumber(first),
            last: SequenceNumber(last),
            count,
            is_final: false,
            liveliness: false,
        }
    }
}

#[test]
fn a_gap_in_the_writers_name_loses_samples_and_each_is_counted() {
    let mut forged = Forged::new();
    let gap = Gap {
        reader: EntityId::UNKNOWN,
        writer: forged.writer_entity(),
        group: None,
        filtered: None,
        start: SequenceNumber(1),
        list: SequenceNumberSet::new(SequenceNumber(6)),
    };
    forged.forge(1, |message| message.gap(&gap).map(drop));
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
    let mut forged = Forged::new();
    let heartbeat = forged.heartbeat(i64::MAX - 1, i64::MAX - 1, 1 << 20);
    forged.forge(1, |message| message.heartbeat(&heartbeat).map(drop));
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
    let mut forged = Forged::new();
    let heartbeat = forged.heartbeat(1, 3, i32::MAX / 2);
    forged.forge(1, |message| message.heartbeat(&heartbeat).map(drop));
    let acknack = AckNack {
        reader: forged.world.reader_guid(forged.reader).entity,
        writer: forged.writer_entity(),
        state: SequenceNumberSet::new(SequenceNumber(4)),
        count: i32::MAX / 2,
        is_final: true,
    };
    forged.forge(0, |message| message.acknack(&acknack).map(drop));
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
    let mut forged = Forged::new();
    // The link is cut, and the attacker acknowledges the samples in the reader's name.
    let cut = isolane_sim::Partition::one_way(&forged.nodes[..1], &forged.nodes[1..]);
    forged.world.partition(cut);
    forged.write(4..=6);
    let acknack = AckNack {
        reader: forged.world.reader_guid(forged.reader).entity,
        writer: forged.writer_entity(),
        state: SequenceNumberSet::new(SequenceNumber(7)),
        count: 1 << 20,
        is_final: true,
    };
    forged.forge(0, |message| message.acknack(&acknack).map(drop));
    forged.world.heal();
    forged.write(7..=8);
    forged.world.run_for(5 * SECOND);
    assert_eq!(forged.world.values(forged.reader), [1, 2, 3, 7, 8]);
    assert_eq!(forged.world.reader_ledger(forged.reader).lost, 3);
}

#[test]
fn data_in_the_writers_name_is_delivered_and_the_true_sample_is_a_duplicate() {
    let mut forged = Forged::new();
    let payload = Sample::value(666).payload();
    let head = head(forged.writer_entity(), 4);
    forged.forge(1, |message| message.data(&head, &payload).map(drop));
    forged.write(4..=5);
    assert_eq!(forged.world.values(forged.reader), [1, 2, 3, 666, 5]);
    assert_eq!(forged.world.reader_ledger(forged.reader).duplicates, 1);
}

#[test]
fn a_farewell_in_a_participants_name_parts_it_until_it_announces_itself_again() {
    let mut forged = Forged::new();
    let farewell = isolane_wire::message::DataPrefix {
        status: Some(StatusInfo {
            disposed: true,
            unregistered: true,
        }),
        payload: PayloadKind::Key,
        ..head(EntityId::SPDP_WRITER, 1)
    };
    forged.forge(1, |message| message.data(&farewell, &[]).map(drop));
    assert_eq!(forged.world.matched_writers(forged.reader), 0);
    // The participant's next announcement is at most two seconds away.
    forged.world.run_for(Duration::from_millis(2_500));
    assert_eq!(forged.world.matched_writers(forged.reader), 1);
    forged.write(4..=5);
    assert!(forged.world.values(forged.reader).ends_with(&[4, 5]));
}
