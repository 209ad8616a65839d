//! Tests of writers with more readers than one call of the datapath can address.

use std::sync::Arc;

use isolane::{Interfaces, Qos, TopicType};
use isolane_datapath::limits::MAX_MESSAGES;

use crate::support::{Domain, Message, Site, World, level};

/// Number of reading participants, each at its own ports. The last six are in the second call.
const READERS: usize = MAX_MESSAGES + 6;

const SAMPLES: u32 = 20;

/// Sample that fills most of a datagram.
#[derive(TopicType)]
struct Block {
    number: u32,
    #[topic(bound = 1_000)]
    bytes: Vec<u8>,
}

/// Job that sends the samples of level 3.
const SENDING: &str = "protocol work, priority 7";

/// Checks that each reader gets each sample by its first transmission, in order. Returns the number of activations in
/// which the samples were sent. With `critical`, a more urgent writer exists.
#[track_caller]
fn assert_each_sample_reaches_each_reader(qos: &Qos, critical: Option<&Qos>) -> u64 {
    let domain = Arc::new(Domain::claim());
    let mut world = World::new(Site::Loopback(Arc::clone(&domain)));
    let builder = || {
        let builder = domain.builder().interfaces(Interfaces::Loopback);
        builder.multicast(false)
    };
    let participant = builder().build().expect("the writing participant");
    world.drive(&participant);
    let writer = participant.create_writer::<Block>("Many", qos).unwrap();
    let _critical = critical.map(|qos| participant.create_writer::<Message>("Brake", qos));
    let activations = || {
        let report = participant.report();
        let job = report.jobs.iter().find(|job| job.name == SENDING);
        job.map_or(0, |job| job.statistics.activations)
    };
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let builder = builder().peer_at(domain.first_participant());
            let participant = builder.build().expect("a reading participant");
            world.drive(&participant);
            participant.create_reader::<Block>("Many", qos).unwrap()
        })
        .collect();
    world.until("all have matched", || {
        writer.matched_readers() == READERS
            && readers.iter().all(|reader| reader.matched_writers() == 1)
    });
    let before = activations();
    for number in 0..SAMPLES {
        let bytes = vec![7; 1_000];
        writer.write(&Block { number, bytes }).unwrap();
    }
    for (nth, reader) in readers.iter().enumerate() {
        world.until(&format!("reader {nth} has got all"), || {
            reader.available() == SAMPLES as usize
        });
        for number in 0..SAMPLES {
            let sample = reader.take().unwrap().expect("it has got all");
            assert_eq!(sample.value.map(|block| block.number), Some(number));
        }
    }
    world.until("all is acknowledged", || writer.all_acknowledged());
    assert_eq!(writer.ledger().repaired, 0);
    activations() - before
}

#[test]
fn a_best_effort_writer_sends_to_more_readers_than_a_call_has_addresses() {
    let qos = Qos::best_effort().keep_last(32).level(level(7));
    assert_each_sample_reaches_each_reader(&qos, None);
}

#[test]
fn a_reliable_writer_sends_to_more_readers_than_a_call_has_addresses() {
    let qos = Qos::reliable().keep_all().max_samples(32).level(level(3));
    assert_each_sample_reaches_each_reader(&qos, None);
    let critical = Qos::best_effort().level(level(7));
    let below = assert_each_sample_reaches_each_reader(&qos, Some(&critical));
    // Each copy counts for the bound of a burst. The copies of one sample exceed it.
    assert!(below >= u64::from(SAMPLES), "{below}");
}
