//! Tests of ENTITY_FACTORY and enable: disabled entities, and the order in which they may be enabled.

use std::time::Duration;

use isolane::{BuildError, EnableError, Qos, ReadError, StateMask, WriteError};

use crate::support::{Message, Site, World, take_numbers};

const LONG_ENOUGH: Duration = Duration::from_millis(50);

#[test]
fn a_participant_that_is_not_enabled_neither_discovers_nor_is_discovered() {
    for site in Site::both() {
        let mut world = World::new(site);
        let alice = world.join();
        let bob = world.site.builder().enabled(false).build().unwrap();
        world.drive(&bob);
        let qos = Qos::reliable().keep_all();
        let writer = alice.create_writer::<Message>("Later", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Later", &qos).unwrap();
        world.run_for(LONG_ENOUGH);
        assert!(alice.participants().is_empty() && bob.participants().is_empty());
        assert!(!bob.is_enabled() && !reader.is_enabled());
        assert_eq!(reader.enable(), Err(EnableError::ParticipantDisabled));
        let refused = reader.read_samples(1, StateMask::empty()).unwrap_err();
        assert_eq!(refused, ReadError::NotEnabled);
        assert_eq!(reader.available(), 0);
        let remote = bob.create_writer_handle::<Message>("Later", &qos);
        assert!(matches!(
            remote.err(),
            Some(BuildError::Enable(EnableError::ParticipantDisabled))
        ));

        bob.enable().unwrap();
        assert!(
            bob.is_enabled() && reader.is_enabled(),
            "with what it had created"
        );
        world.until_matched(&writer, &reader);
        writer.write(&Message::number(1)).unwrap();
        world.until("it came", || reader.available() == 1);
        assert_eq!(take_numbers(&reader), [1]);
    }
}

#[test]
fn where_nothing_is_enabled_by_itself_each_endpoint_is_enabled_by_its_own_call() {
    let mut world = World::new(Site::memory());
    let alice = world.join();
    let builder = world.site.builder().enabled(false).autoenable(false);
    let bob = builder.build().unwrap();
    world.drive(&bob);
    for qos in [Qos::reliable().keep_all(), Qos::best_effort()] {
        let writer = bob.create_writer::<Message>("Each", &qos).unwrap();
        let reader = alice.create_reader::<Message>("Each", &qos).unwrap();
        bob.enable().unwrap();
        assert!(!writer.is_enabled());
        world.run_for(LONG_ENOUGH);
        assert_eq!(reader.matched_writers(), 0);
        let refused = writer.write(&Message::number(1)).unwrap_err();
        let not_enabled = WriteError::Protocol(isolane_rtps::WriteError::NotEnabled);
        assert_eq!(refused, not_enabled);
        let deadline = writer.qos().deadline(Duration::from_secs(3_600));
        writer.set_qos(&deadline).unwrap();
        writer.enable().unwrap();
        writer.enable().unwrap();
        world.until_matched(&writer, &reader);
        assert_eq!(writer.qos(), deadline);
        writer.write(&Message::number(2)).unwrap();
        world.until("it came", || reader.available() == 1);
        assert_eq!(take_numbers(&reader), [2]);
    }
    // A writer for another thread has no owner that could enable it, so it is enabled from the start.
    let qos = Qos::reliable();
    let reader = alice.create_reader::<Message>("Remote", &qos).unwrap();
    let mut remote = bob.create_writer_handle::<Message>("Remote", &qos).unwrap();
    world.until("they match", || reader.matched_writers() == 1);
    remote.write(&Message::number(3)).unwrap();
    world.until("it came", || reader.available() == 1);
}
