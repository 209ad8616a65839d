//! Tests of writers with more readers than one call of the datapath can address.

use std::sync::Arc;

use isolane::{Interfaces, Qos};
use isolane_datapath::limits::MAX_MESSAGES;

use crate::support::{Domain, Message, Site, World, level, take_numbers};

/// Number of reading participants, each at its own ports. The last six are in the second call.
const READERS: usize = MAX_MESSAGES + 6;

const SAMPLES: u32 = 20;

/// Checks that each reader gets each sample by its first transmission, in order.
#[track_caller]
fn assert_each_sample_reaches_each_reader(qos: &Qos) {
    let domain = Arc::new(Domain::claim());
    let mut world = World::new(Site::Loopback(Arc::clone(&domain)));
    let builder = || {
        let builder = domain.builder().interfaces(Interfaces::Loopback);
        builder.multicast(false)
    };
    let participant = builder().build().expect("the writing participant");
    world.drive(&participant);
    let writer = participant.create_writer::<Message>("Many", qos).unwrap();
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let builder = builder().peer_at(domain.first_participant());
            let participant = builder.build().expect("a reading participant");
            world.drive(&participant);
            participant.create_reader::<Message>("Many", qos).unwrap()
        })
        .collect();
    world.until("all have matched", || {
        writer.matched_readers() == READERS
            && readers.iter().all(|reader| reader.matched_writers() == 1)
    });
    for number in 0..SAMPLES {
        writer.write(&Message::number(number)).unwrap();
    }
    for (nth, reader) in readers.iter().enumerate() {
        world.until(&format!("reader {nth} has got all"), || {
            reader.available() == SAMPLES as usize
        });
        assert!(take_numbers(reader).into_iter().eq(0..SAMPLES));
    }
    world.until("all is acknowledged", || writer.all_acknowledged());
    assert_eq!(writer.ledger().repaired, 0);
}

#[test]
fn a_best_effort_writer_sends_to_more_readers_than_a_call_has_addresses() {
    let qos = Qos::best_effort().keep_last(32).level(level(7));
    assert_each_sample_reaches_each_reader(&qos);
}

#[test]
fn a_reliable_writer_sends_to_more_readers_than_a_call_has_addresses() {
    let qos = Qos::reliable().keep_all().max_samples(32).level(level(3));
    assert_each_sample_reaches_each_reader(&qos);
}
