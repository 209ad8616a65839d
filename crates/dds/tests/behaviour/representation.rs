//! Tests of DATA_REPRESENTATION: offers of writers, requests of readers, and the resulting matches.

use isolane::{
    PolicyId, Qos, RejectReason, Representation, StateMask, TopicType, types::EncapsulationId,
};
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
fn a_reader_of_one_representation_does_not_match_a_writer_of_the_other_and_both_are_notified() {
    for (sent, taken) in [
        (Representation::Xcdr1, Representation::Xcdr2),
        (Representation::Xcdr2, Representation::Xcdr1),
    ] {
        let (world, alice, bob) = World::pair(Site::memory());
        let qos = Qos::reliable();
        let offers = qos.clone().representation(sent);
        let writer = alice.create_writer::<Final>("Apart", &offers).unwrap();
        let only = qos.only_representation(taken);
        let reader = bob.create_reader::<Final>("Apart", &only).unwrap();
        world.until("both are notified", || {
            writer.incompatible().is_some() && reader.incompatible().is_some()
        });
        let policies =
            [writer.incompatible(), reader.incompatible()].map(|found| found.unwrap().policy);
        assert_eq!(policies, [PolicyId::DATA_REPRESENTATION; 2]);
        assert_eq!((writer.matched_readers(), reader.matched_writers()), (0, 0));
    }
}

/// Structures whose extensibility must be the same on both sides, because each contains another structure.
mod nested {
    use super::TopicType;

    macro_rules! nested {
        ($name:ident, $part:ident, $extensibility:ident, $($key:tt)*) => {
            #[derive(TopicType, Debug, Clone, PartialEq, Default)]
            #[topic($extensibility)]
            pub(super) struct $part {
                number: u8,
            }

            #[derive(TopicType, Debug, Clone, PartialEq, Default)]
            #[topic(name = "Nested", $extensibility)]
            pub(super) struct $name {
                $($key)*
                part: $part,
                value: f64,
            }
        };
    }

    nested!(Final, FinalPart, final_, #[topic(key)]);
    nested!(Appendable, AppendablePart, appendable, #[topic(key)]);
    nested!(FinalKeyless, FinalKeylessPart, final_,);
    nested!(AppendableKeyless, AppendableKeylessPart, appendable,);
}

/// Writes a sample of `W`, and waits until a reader of `R` has rejected it. `look` inspects the reader.
fn rejected<W: TopicType + Default, R: TopicType>(
    look: impl Fn(&isolane::DataReader<R>),
) -> (Option<RejectReason>, u64) {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::reliable().representation(Representation::Xcdr2);
    let writer = alice.create_writer::<W>("Foreign", &qos).unwrap();
    let reader = bob.create_reader::<R>("Foreign", &qos).unwrap();
    world.until_matched(&writer, &reader);
    writer.write(&W::default()).unwrap();
    world.until("it is rejected", || {
        look(&reader);
        reader.ledger().rejected == 1
    });
    assert!(reader.ledger().balances());
    assert_eq!(bob.counters().samples_unreadable, 1);
    let refused = bob.report().readers[0].refused.unwrap();
    assert_eq!(refused.writer.prefix, alice.guid().prefix);
    (reader.sample_rejected_status().last_reason, refused.total)
}

#[test]
fn a_sample_whose_encapsulation_the_type_cannot_have_is_rejected_by_that_name() {
    let is = |identifier| {
        (
            Some(RejectReason::Encapsulation(EncapsulationId(identifier))),
            1,
        )
    };
    let (cdr2_le, d_cdr2_le) = (is(0x0007), is(0x0009));
    // The key cannot be read, so the sample is not stored.
    assert_eq!(
        rejected::<nested::Appendable, nested::Final>(|_| {}),
        d_cdr2_le
    );
    assert_eq!(
        rejected::<nested::Final, nested::Appendable>(|_| {}),
        cdr2_le
    );
    // Without a key, the mismatch is found when the sample is read.
    assert_eq!(
        rejected::<nested::AppendableKeyless, nested::FinalKeyless>(|reader| {
            let _ = reader.take();
        }),
        d_cdr2_le
    );
    assert_eq!(
        rejected::<nested::FinalKeyless, nested::AppendableKeyless>(|reader| {
            let _ = reader.take_into(&mut nested::AppendableKeyless::default());
        }),
        cdr2_le
    );
    assert_eq!(
        rejected::<nested::FinalKeyless, nested::AppendableKeyless>(|reader| {
            let taken = reader.take_samples(8, StateMask::empty()).unwrap();
            assert_eq!(taken.len(), 0);
        }),
        cdr2_le
    );
}

#[test]
fn a_sample_whose_nested_structure_has_another_extensibility_is_rejected_as_not_of_the_type() {
    #[derive(TopicType, Default)]
    #[topic(appendable)]
    struct AppendableName {
        text: String,
    }
    #[derive(TopicType, Default)]
    struct FinalName {
        text: String,
    }
    #[derive(TopicType, Default)]
    #[topic(name = "Named", appendable)]
    struct Written {
        name: AppendableName,
    }
    #[derive(TopicType, Default)]
    #[topic(name = "Named", appendable)]
    struct Read {
        name: FinalName,
    }
    assert_eq!(
        rejected::<Written, Read>(|reader| {
            let _ = reader.take();
        }),
        (Some(RejectReason::NotOfType), 1)
    );
}

#[test]
fn a_view_reader_without_a_callback_rejects_samples_for_that_reason_and_calls_none_unreadable() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort();
    let writer = alice.create_writer::<Final>("Unseen", &qos).unwrap();
    let reader = bob.create_view_reader::<Final>("Unseen", &qos).unwrap();
    world.until_matched(&writer, &reader);
    writer.write(&Final::default()).unwrap();
    world.until("it is rejected", || reader.ledger().rejected == 1);
    let reason = reader.sample_rejected_status().last_reason;
    assert_eq!(reason, Some(RejectReason::NoCallback));
    assert_eq!(bob.counters().samples_unreadable, 0);
}

#[test]
fn a_view_or_a_callback_is_not_shown_what_has_a_foreign_encapsulation() {
    let (world, alice, bob) = World::pair(Site::memory());
    let qos = Qos::best_effort().representation(Representation::Xcdr2);
    let writer = alice
        .create_writer::<nested::AppendableKeyless>("Foreign", &qos)
        .unwrap();
    let view = bob
        .create_view_reader::<nested::FinalKeyless>("Foreign", &qos)
        .unwrap();
    view.on_view(|sample| panic!("shown: {:?}", sample.info));
    let cached = bob
        .create_reader::<nested::FinalKeyless>("Foreign", &qos)
        .unwrap();
    cached
        .on_sample(nested::FinalKeyless::default(), |sample| {
            panic!("shown: {:?}", sample.info)
        })
        .unwrap();
    world.until("they match", || writer.matched_readers() == 2);
    writer.write(&nested::AppendableKeyless::default()).unwrap();
    world.until("both have rejected it", || {
        view.ledger().rejected == 1 && cached.ledger().rejected == 1
    });
    let reason = Some(RejectReason::Encapsulation(EncapsulationId(0x0009)));
    assert_eq!(view.sample_rejected_status().last_reason, reason);
    assert_eq!(cached.sample_rejected_status().last_reason, reason);
}
