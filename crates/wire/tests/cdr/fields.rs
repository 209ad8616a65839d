//! Tests of members by the names that filters use.

use isolane_derive::TopicType;
use isolane_wire::cdr::{
    BoundedSequence, BoundedString, CdrType, Char8, FieldKind, FieldPath, FieldValue, view_payload,
};

use crate::support::{ALL_FORMS, Gear, Note, Point, payload};

#[derive(TopicType)]
#[topic(crate = "isolane_wire::cdr")]
struct Wheel {
    pressure: f32,
    loads: BoundedSequence<u16, 3>,
}

#[derive(TopicType)]
#[topic(crate = "isolane_wire::cdr")]
struct Vehicle {
    name: BoundedString<8>,
    speed: i64,
    odometer: u32,
    locked: bool,
    class: Char8,
    gear: Gear,
    wheels: [Wheel; 2],
    notes: BoundedSequence<Note, 2>,
    place: Point,
}

fn vehicle() -> Vehicle {
    let wheel = |pressure| Wheel {
        pressure,
        loads: BoundedSequence::from_slice(&[7, 8]).unwrap(),
    };
    Vehicle {
        name: "one".try_into().unwrap(),
        speed: -40_000_000_000,
        odometer: 4_000_000_000,
        locked: true,
        class: Char8(b'b'),
        gear: Gear::Reverse,
        wheels: [wheel(2.5), wheel(2.25)],
        notes: [Note {
            text: "oil".try_into().unwrap(),
            weight: 3,
        }]
        .into_iter()
        .collect(),
        place: Point { tag: 1, x: -2 },
    }
}

#[test]
fn every_member_that_can_be_compared_is_found_by_its_name_in_every_form() {
    let expected = [
        ("name", FieldValue::Text("one")),
        ("speed", FieldValue::Integer(-40_000_000_000)),
        ("odometer", FieldValue::Integer(4_000_000_000)),
        ("locked", FieldValue::Boolean(true)),
        ("class", FieldValue::Character('b')),
        ("gear", FieldValue::Integer(-1)),
        ("wheels[1].pressure", FieldValue::Float(2.25)),
        ("wheels[0].loads[1]", FieldValue::Integer(8)),
        ("notes[0].text", FieldValue::Text("oil")),
        ("notes[0].weight", FieldValue::Integer(3)),
        ("place.x", FieldValue::Integer(-2)),
    ];
    for form in ALL_FORMS {
        let payload = payload(&vehicle(), form);
        let view = view_payload::<Vehicle>(&payload).unwrap();
        for (name, value) in expected {
            assert_eq!(
                Vehicle::field(view, FieldPath::new(name)),
                Some(value),
                "{name}"
            );
        }
        // These members exist in the type, but not in this sample.
        for name in ["wheels[0].loads[2]", "notes[1].weight"] {
            assert!(
                Vehicle::field_kind(FieldPath::new(name)).is_some(),
                "{name}"
            );
            assert_eq!(Vehicle::field(view, FieldPath::new(name)), None, "{name}");
        }
    }
}

#[test]
fn what_a_name_leads_to_is_known_without_a_sample() {
    let kinds = [
        ("name", FieldKind::Text),
        ("speed", FieldKind::Integer),
        ("locked", FieldKind::Boolean),
        ("class", FieldKind::Character),
        ("wheels[1].pressure", FieldKind::Float),
        ("wheels[0].loads[0]", FieldKind::Integer),
        ("notes[0].text", FieldKind::Text),
    ];
    for (name, kind) in kinds {
        assert_eq!(
            Vehicle::field_kind(FieldPath::new(name)),
            Some(kind),
            "{name}"
        );
    }
    let gear = Vehicle::field_kind(FieldPath::new("gear"));
    assert!(
        matches!(gear, Some(FieldKind::Enumeration([("Neutral", 0), ..]))),
        "{gear:?}"
    );
}

#[test]
fn structures_collections_and_what_is_not_there_lead_nowhere() {
    let payload = payload(&vehicle(), ALL_FORMS[0]);
    let view = view_payload::<Vehicle>(&payload).unwrap();
    for name in [
        "place",
        "wheels",
        "notes",
        "wheels[2].pressure",
        "wheels.pressure",
        "name.x",
        "name[0]",
        "speed[0]",
        "locked.x",
        "nothing",
        "place.y",
        "",
    ] {
        assert_eq!(Vehicle::field_kind(FieldPath::new(name)), None, "{name}");
        assert_eq!(Vehicle::field(view, FieldPath::new(name)), None, "{name}");
    }
}
