//! Tests of filter expressions on the samples of a type, in both representations.

use isolane::types::{BoundedSequence, BoundedString, Char8, write_payload};
use isolane::{Filter, FilterError, Representation, TopicType, limits::MAX_FILTER_BYTES};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, TopicType)]
enum Gear {
    Neutral,
    Drive = 4,
    Reverse = -1,
}

#[derive(TopicType)]
struct Wheel {
    pressure: f32,
    r#type: BoundedString<8>,
}

#[derive(TopicType)]
struct Vehicle {
    #[topic(key)]
    name: BoundedString<16>,
    odometer: u64,
    offset: i32,
    gear: Gear,
    lights: bool,
    class: Char8,
    wheels: [Wheel; 2],
    codes: BoundedSequence<u8, 4>,
    notes: Vec<String>,
}

fn vehicle() -> Vehicle {
    let wheel = |pressure, kind: &str| Wheel {
        pressure,
        r#type: kind.try_into().unwrap(),
    };
    Vehicle {
        name: "loader".try_into().unwrap(),
        odometer: u64::MAX,
        offset: -12,
        gear: Gear::Drive,
        lights: true,
        class: Char8(b'B'),
        wheels: [wheel(2.5, "front"), wheel(2.75, "rear")],
        codes: BoundedSequence::from_slice(&[7, 200]).unwrap(),
        notes: vec!["new".into(), "north gate".into()],
    }
}

/// Returns whether a vehicle passes the filter, which must be the same in both representations.
fn matches(expression: &str, parameters: &[&str]) -> bool {
    let filter = Filter::<Vehicle>::new(expression, parameters)
        .unwrap_or_else(|error| panic!("{expression}: {error}"));
    let outcome = |representation| {
        let mut payload = [0; 512];
        let length = write_payload(&vehicle(), representation, &mut payload).unwrap();
        filter.matches_payload(&payload[..length]).unwrap()
    };
    let outcomes = [Representation::Xcdr1, Representation::Xcdr2].map(outcome);
    assert_eq!(outcomes[0], outcomes[1], "{expression}");
    outcomes[0]
}

#[test]
fn members_of_every_kind_are_compared() {
    for expression in [
        "name = 'loader'",
        "name > 'load'",
        "name LIKE 'l%_r'",
        "name NOT LIKE 'x%'",
        "odometer = 18446744073709551615",
        "offset = -12",
        "-13 < offset",
        "offset <> 12",
        "offset >= -0xC",
        "gear = Drive",
        "gear > Neutral",
        "gear = 4",
        "Reverse < gear",
        "lights = TRUE",
        "class = 'B'",
        "class < 'C'",
        "wheels[0].pressure = 2.5",
        "wheels[1].pressure > wheels[0].pressure",
        "wheels[1].type = 'rear'",
        "codes[1] > 199",
        "notes[1] LIKE 'north%'",
        "offset BETWEEN -12 AND -12",
        "offset NOT BETWEEN -11 AND 0",
        "offset < wheels[0].pressure",
    ] {
        assert!(matches(expression, &[]), "{expression}");
        assert!(!matches(&format!("NOT {expression}"), &[]), "{expression}");
    }
}

#[test]
fn not_binds_more_tightly_than_and_and_and_more_than_or() {
    let (yes, no) = ("offset = -12", "offset = 0");
    for (expression, expected) in [
        (format!("{yes} OR {no} AND {no}"), true),
        (format!("({yes} OR {no}) AND {no}"), false),
        (format!("NOT {no} AND {no}"), false),
        (format!("NOT ({no} AND {no})"), true),
        (format!("{no} or not {no}"), true),
        (format!("offset BETWEEN -20 AND 0 AND {no}"), false),
    ] {
        assert_eq!(matches(&expression, &[]), expected, "{expression}");
    }
}

#[test]
fn an_element_that_is_not_there_fulfils_nothing() {
    assert!(!matches("codes[2] = 0", &[]));
    assert!(!matches("codes[2] <> 0", &[]));
    assert!(!matches("notes[2] LIKE '%'", &[]));
}

#[test]
fn parameters_can_be_replaced_and_a_wrong_one_changes_nothing() {
    let mut payload = [0; 512];
    let length = write_payload(&vehicle(), Representation::Xcdr1, &mut payload).unwrap();
    let payload = &payload[..length];
    let mut filter = Filter::<Vehicle>::new("offset < %0 AND gear = %1", &["0", "Drive"]).unwrap();
    assert_eq!(filter.matches_payload(payload), Some(true));
    filter.set_parameters(&["-12", "Drive"]).unwrap();
    assert_eq!(filter.matches_payload(payload), Some(false));
    filter.set_parameters(&["0", "Park"]).unwrap_err();
    filter.set_parameters(&["0"]).unwrap_err();
    assert_eq!(filter.parameters(), ["-12", "Drive"]);
    assert_eq!(filter.matches_payload(payload), Some(false));
}

#[test]
fn what_is_not_of_the_type_is_neither_let_through_nor_held_back() {
    let filter = Filter::<Vehicle>::new("offset = 0", &[]).unwrap();
    assert_eq!(filter.matches_payload(&[0, 1, 0, 0, 9]), None);
}

#[test]
fn a_mistake_is_named_with_its_place() {
    for (expression, message) in [
        (
            "",
            "at byte 0: a member, a value or a parameter was expected, and there is the end",
        ),
        (
            "offset",
            "at byte 6: =, <>, <, <=, >, >=, LIKE or BETWEEN was expected",
        ),
        (
            "offset = 1 lights = TRUE",
            "at byte 11: AND, OR or the end was expected, and there is `lights`",
        ),
        ("(offset = 1", "at byte 11: `)` was expected"),
        (
            "offset NOT = 1",
            "at byte 11: LIKE or BETWEEN was expected, and there is `=`",
        ),
        ("offset BETWEEN 1 OR 2", "at byte 17: AND and the upper end"),
        ("wheels = 1", "no member `wheels`"),
        ("wheels[2].pressure = 1", "no member `wheels[2].pressure`"),
        ("codes = 1", "no member `codes`"),
        ("gear = Park", "none of its enumerators"),
        ("offset = %0", "parameter %0, and 0 were given"),
    ] {
        let error = Filter::<Vehicle>::new(expression, &[]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(message), "{expression}: {text}");
    }
}

#[test]
fn what_would_take_too_much_to_read_is_refused() {
    let open = "(".repeat(1_000);
    let deep = Filter::<Vehicle>::new(&open, &[]).unwrap_err();
    assert!(matches!(deep, FilterError::TooDeep(_)), "{deep}");
    let not = "NOT ".repeat(1_000);
    let deep = Filter::<Vehicle>::new(&not, &[]).unwrap_err();
    assert!(matches!(deep, FilterError::TooDeep(_)), "{deep}");
    let long = " ".repeat(MAX_FILTER_BYTES + 1);
    let error = Filter::<Vehicle>::new(&long, &[]).unwrap_err();
    assert_eq!(error, FilterError::TooLong(long.len()));
}

/// Words of the language and of the type, in random order.
fn soup() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "offset",
        "name",
        "gear",
        "codes[1]",
        "wheels[0].type",
        "Drive",
        "TRUE",
        "AND",
        "OR",
        "NOT",
        "BETWEEN",
        "LIKE",
        "=",
        "<>",
        "<",
        ">=",
        "(",
        ")",
        "1",
        "-2.5e3",
        "0x1F",
        "'a'",
        "'%'",
        "%0",
        "%1",
    ]);
    prop::collection::vec(word, 0..24).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_text_is_an_expression_or_a_mistake(text in any::<String>()) {
        let _ = Filter::<Vehicle>::new(&text, &[&text]);
    }

    #[test]
    fn any_words_are_an_expression_or_a_mistake(text in soup()) {
        if let Ok(filter) = Filter::<Vehicle>::new(&text, &["'x'", "3"]) {
            let mut payload = [0; 512];
            let length = write_payload(&vehicle(), Representation::Xcdr2, &mut payload).unwrap();
            prop_assert!(filter.matches_payload(&payload[..length]).is_some());
        }
    }
}
