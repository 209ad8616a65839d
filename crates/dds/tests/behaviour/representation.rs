//! DATA_REPRESENTATION: what a writer offers, what a reader requests, and who meets whom by that.

use isolane::{PolicyId, Qos, Representation, TopicType};
use isolane_wire::qos::DataRepresentationId;

use crate::support::{Site, World};

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(name = "Reading")]
struct Final {
    #[topic(key)]
    number: u8,
    value: f64,
}

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(name = "Reading", appendable)]
struct Appendable {
    #[topic(key)]
    number: u8,
    value: f64,
}

fn offered<T: TopicType>(qos: &Qos) -> Vec<DataRepresentationId> {
    let participant = Site::memory().participant();
    let writer = participant.create_writer::<T>("Readings", qos).unwrap();
    writer.qos().policies().data_representation.to_vec()
}

#[test]
fn a_writer_offers_xcdr1_of_a_final_type_and_xcdr2_of_an_appendable_one() {
    let qos = Qos::reliable();
    assert_eq!(offered::<Final>(&qos), [DataRepresentationId::XCDR1]);
    assert_eq!(offered::<Appendable>(&qos), [DataRepresentationId::XCDR2]);
    let xcdr2 = qos.clone().representation(Representation::Xcdr2);
    assert_eq!(offered::<Final>(&xcdr2), [DataRepresentationId::XCDR2]);
    let xcdr1 = qos.representation(Representation::Xcdr1);
    assert_eq!(offered::<Appendable>(&xcdr1), [DataRepresentationId::XCDR1]);
}

#[test]
fn a_reader_takes_both_representations() {
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let (world, alice, bob) = World::pair(Site::memory());
        let qos = Qos::reliable().representation(representation);
        let writer = alice.create_writer::<Appendable>("Both", &qos).unwrap();
        let reader = bob
            .create_reader::<Appendable>("Both", &Qos::reliable())
            .unwrap();
        world.until_matched(&writer, &reader);
        let value = Appendable {
            number: 3,
            value: 0.5,
        };
        writer.write(&value).unwrap();
        world.until("it has come", || reader.available() == 1);
        assert_eq!(reader.take().unwrap().unwrap().value, Some(value));
    }
}

#[test]
fn a_reader_of_xcdr2_alone_does_not_match_a_writer_of_xcdr1_and_both_are_told() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable();
    let writer = alice.create_writer::<Final>("Apart", &qos).unwrap();
    let only = qos.only_representation(Representation::Xcdr2);
    let reader = bob.create_reader::<Final>("Apart", &only).unwrap();
    world.until("both are told", || {
        writer.incompatible().is_some() && reader.incompatible().is_some()
    });
    let policies =
        [writer.incompatible(), reader.incompatible()].map(|found| found.unwrap().policy);
    assert_eq!(policies, [PolicyId::DATA_REPRESENTATION; 2]);
    assert_eq!((writer.matched_readers(), reader.matched_writers()), (0, 0));
}
