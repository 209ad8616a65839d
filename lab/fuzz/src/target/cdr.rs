//! Target `cdr`: payloads of several types (nested, collections of collections, appendable, keyed, with strings bounded
//! by type and by attribute). Reading as a view, as a value and into a value must agree. A value that is written and
//! read again must be unchanged. The hash of the key must be the same from the whole sample and from the key alone.

use isolane::{
    Representation, TopicType,
    types::{
        self, BoundedSequence, BoundedString, CdrError, KeyHash, read_payload, read_payload_into,
        view_payload, write_key_payload, write_payload,
    },
};

use crate::limits::MAX_INPUT_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, TopicType)]
enum Gear {
    Neutral,
    Drive = 4,
    Reverse = -1,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(final_)]
struct Point {
    tag: u8,
    x: i16,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable)]
struct Note {
    text: BoundedString<12>,
    weight: u8,
}

/// Struct with a member of every kind.
#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable)]
struct Everything {
    small: u8,
    flag: bool,
    half: i16,
    #[topic(key)]
    word: u32,
    double: u64,
    gear: Gear,
    name: BoundedString<20>,
    point: Point,
    #[topic(key)]
    note: Note,
    bytes: BoundedSequence<u8, 40>,
    flags: BoundedSequence<bool, 9>,
    gears: BoundedSequence<Gear, 5>,
    names: BoundedSequence<BoundedString<8>, 5>,
    notes: BoundedSequence<Note, 5>,
    lists: BoundedSequence<BoundedSequence<u16, 3>, 4>,
    grid: [[i16; 2]; 3],
    pair: [Note; 2],
    last: u8,
}

/// Struct whose members allocate at most as much as their attributes' bounds and the payload's length allow.
#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(final_)]
struct Growing {
    #[topic(key, bound = 64)]
    name: String,
    #[topic(bound = 100)]
    numbers: Vec<u32>,
    #[topic(bound = 16)]
    names: Vec<String>,
    notes: Vec<Note>,
}

/// Struct with a key of more than sixteen bytes, in a nested structure.
#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(final_)]
struct Keyed {
    value: i64,
    #[topic(key)]
    note: Note,
    #[topic(key)]
    name: BoundedString<30>,
}

/// Runs the target. The first byte selects the type, the others are the payload.
pub fn cdr(input: &[u8]) {
    let Some((choice, payload)) = input.split_first() else {
        return;
    };
    match choice % 5 {
        0 => check::<Everything>(payload),
        1 => check::<Growing>(payload),
        2 => check::<Keyed>(payload),
        3 => check::<Point>(payload),
        _ => check::<Note>(payload),
    }
}

fn check<T: TopicType + PartialEq + Clone + std::fmt::Debug>(payload: &[u8]) {
    let view = view_payload::<T>(payload).map(|view| format!("{view:?}"));
    let value = read_payload::<T>(payload);
    assert_eq!(
        view.as_ref().err(),
        value.as_ref().err(),
        "a view and a value disagree"
    );
    let key = types::key_hash_of_payload::<T>(payload, false);
    let _ = types::key_hash_of_payload::<T>(payload, true);
    let Ok(mut value) = value else {
        return;
    };
    assert_eq!(key, types::key_hash(&value), "the key of what was read");
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        write_and_read(&value, representation, key);
    }
    let read = value.clone();
    read_payload_into(payload, &mut value).expect("it was read before");
    assert_eq!(value, read);
}

fn write_and_read<T: TopicType + PartialEq + std::fmt::Debug>(
    value: &T,
    representation: Representation,
    key: Result<KeyHash, CdrError>,
) {
    // Padding and DHEADERs of nested structures can make the written payload longer than the input.
    let mut buffer = vec![0; 16 * MAX_INPUT_BYTES];
    let length = write_payload(value, representation, &mut buffer);
    let length = length.expect("what was read can be written");
    let again = read_payload::<T>(&buffer[..length]);
    assert_eq!(again.as_ref(), Ok(value));
    let length = write_key_payload(value, representation, &mut buffer);
    let length = length.expect("and so can its key");
    assert_eq!(
        types::key_hash_of_payload::<T>(&buffer[..length], true),
        key,
        "the key alone"
    );
}

/// Seeds: a sample of each type in each representation.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let note = |text: &str, weight| Note {
        text: text.try_into().unwrap_or_default(),
        weight,
    };
    let point = Point { tag: 3, x: -9 };
    let everything = Everything {
        small: 1,
        flag: true,
        half: -2,
        word: 3,
        double: 4,
        gear: Gear::Drive,
        name: "name".try_into().unwrap_or_default(),
        point: point.clone(),
        note: note("note", 5),
        bytes: [1, 2, 3].into_iter().collect(),
        flags: [true, false].into_iter().collect(),
        gears: [Gear::Neutral, Gear::Reverse].into_iter().collect(),
        names: ["a", "bc"]
            .into_iter()
            .flat_map(TryInto::try_into)
            .collect(),
        notes: [note("x", 1), note("", 2)].into_iter().collect(),
        lists: [[7].into_iter().collect()].into_iter().collect(),
        grid: [[1, 2], [3, 4], [5, 6]],
        pair: [note("p", 1), note("q", 2)],
        last: 9,
    };
    let growing = Growing {
        name: "growing".into(),
        numbers: vec![1, 2, 3],
        names: vec!["one".into(), String::new()],
        notes: vec![note("n", 1)],
    };
    let keyed = Keyed {
        value: -1,
        note: note("key", 1),
        name: "key".try_into().unwrap_or_default(),
    };
    let mut inputs = Vec::new();
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        inputs.extend([
            sample(0, &everything, representation),
            sample(1, &growing, representation),
            sample(2, &keyed, representation),
            sample(3, &point, representation),
            sample(4, &everything.note, representation),
        ]);
    }
    inputs
}

fn sample<T: TopicType>(choice: u8, value: &T, representation: Representation) -> Vec<u8> {
    let mut input = vec![0; MAX_INPUT_BYTES];
    input[0] = choice;
    let length = write_payload(value, representation, &mut input[1..]).unwrap_or(0);
    input.truncate(1 + length);
    input
}
