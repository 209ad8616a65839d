//! Tests of keys: their members, their form, and their hash.

use isolane_derive::TopicType;
use isolane_wire::cdr::{
    BoundedSequence, BoundedString, CdrError, Representation, TopicType, key_hash,
    key_hash_of_payload, limits::MAX_KEY_BYTES, read_key, read_key_hash, write_key_of_payload,
    write_key_payload, write_payload,
};
use md5::{Digest, Md5};

use crate::support::{ALL_FORMS, Everything, Gear, Note, ShapeType, payload};

fn key_payload<T: TopicType>(value: &T, representation: Representation) -> Vec<u8> {
    let mut out = [0xaa; 512];
    let length = write_key_payload(value, representation, &mut out).unwrap();
    out[..length].to_vec()
}

#[derive(TopicType, Debug, PartialEq)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Numbers {
    before: BoundedString<20>,
    #[topic(key)]
    small: u8,
    between: f64,
    #[topic(key)]
    wide: u64,
}

fn numbers() -> Numbers {
    Numbers {
        before: "abc".try_into().unwrap(),
        small: 1,
        between: 0.5,
        wide: 2,
    }
}

#[test]
fn a_key_of_at_most_16_bytes_is_its_own_hash_in_big_endian_xcdr2() {
    assert_eq!(Numbers::max_key_bytes(), Some(12));
    let hash = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0];
    assert_eq!(key_hash(&numbers()), Ok(hash));
    for form in ALL_FORMS {
        let sample = payload(&numbers(), form);
        assert_eq!(
            key_hash_of_payload::<Numbers>(&sample, false),
            Ok(hash),
            "{form:?}"
        );
    }
}

#[test]
fn a_key_payload_holds_the_key_members_alone() {
    assert_eq!(
        key_payload(&numbers(), Representation::Xcdr1),
        [0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(
        key_payload(&numbers(), Representation::Xcdr2),
        [0, 9, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
    );
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        assert_eq!(
            key_hash_of_payload::<Numbers>(&key_payload(&numbers(), representation), true),
            key_hash(&numbers())
        );
    }
}

#[test]
fn the_key_payload_of_a_payload_is_that_of_its_value() {
    fn check<T: TopicType>(value: &T) {
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let mut sample = [0; 512];
            let length = write_payload(value, representation, &mut sample).unwrap();
            let mut out = [0xaa; 512];
            let written = write_key_of_payload::<T>(&sample[..length], &mut out).unwrap();
            assert_eq!(out[..written], key_payload(value, representation));
            let none = write_key_of_payload::<T>(&sample[..length], &mut out[..written - 1]);
            assert_eq!(none, Err(CdrError::NoRoom));
        }
    }
    check(&numbers());
    check(&ShapeType::new("BLUE", 1, 2, 3));
}

#[derive(TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Keyed {
    noise: u32,
    #[topic(key)]
    id: i16,
}

#[derive(TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Unkeyed {
    a: u8,
    b: u16,
}

#[derive(TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Composite {
    #[topic(key)]
    keyed: Keyed,
    #[topic(key)]
    unkeyed: Unkeyed,
    #[topic(key)]
    gears: [Gear; 1],
}

#[test]
fn of_a_nested_key_only_its_keys_count_or_all_members_if_it_has_none() {
    let value = Composite {
        keyed: Keyed { noise: 99, id: -2 },
        unkeyed: Unkeyed { a: 3, b: 4 },
        gears: [Gear::Drive],
    };
    // Fields: id, a, padding, b, padding, DHEADER of the array, its element; no DHEADER of structures.
    let hash = [0xff, 0xfe, 3, 0, 0, 4, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4];
    assert_eq!(Composite::max_key_bytes(), Some(16));
    assert_eq!(key_hash(&value), Ok(hash));
    for form in ALL_FORMS {
        assert_eq!(
            key_hash_of_payload::<Composite>(&payload(&value, form), false),
            Ok(hash)
        );
    }
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let key = key_payload(&value, representation);
        assert_eq!(key_hash_of_payload::<Composite>(&key, true), Ok(hash));
    }
}

#[test]
fn the_type_decides_between_raw_key_and_md5_not_the_value() {
    #[derive(TopicType)]
    #[topic(appendable, crate = "isolane_wire::cdr")]
    struct Short {
        #[topic(key)]
        name: BoundedString<11>,
    }
    #[derive(TopicType)]
    #[topic(appendable, crate = "isolane_wire::cdr")]
    struct Longer {
        #[topic(key)]
        name: BoundedString<12>,
    }
    let serialised = [0, 0, 0, 2, b'a', 0];
    let mut raw = [0; 16];
    raw[..6].copy_from_slice(&serialised);
    assert_eq!(
        key_hash(&Short {
            name: "a".try_into().unwrap()
        }),
        Ok(raw)
    );
    let md5: [u8; 16] = Md5::digest(serialised).into();
    assert_eq!(
        key_hash(&Longer {
            name: "a".try_into().unwrap()
        }),
        Ok(md5)
    );
    assert_eq!(ShapeType::max_key_bytes(), Some(4 + 129));
}

#[test]
fn a_standard_string_is_bounded_as_a_key_only_if_its_member_says_so() {
    #[derive(TopicType)]
    #[topic(appendable, crate = "isolane_wire::cdr")]
    struct Open {
        #[topic(key)]
        name: String,
    }
    #[derive(TopicType)]
    #[topic(appendable, crate = "isolane_wire::cdr")]
    struct Bounded {
        #[topic(key, bound = 5)]
        name: String,
        #[topic(key, bound = 3)]
        bytes: Vec<u8>,
    }
    assert_eq!(Open::max_key_bytes(), None);
    // 4 + 6, padding 2, 4 + 3
    assert_eq!(Bounded::max_key_bytes(), Some(19));
    let long = Open {
        name: "x".repeat(MAX_KEY_BYTES),
    };
    assert_eq!(key_hash(&long), Err(CdrError::KeyTooLong));
}

#[test]
fn a_type_without_key_has_an_empty_key_and_a_hash_of_zeros() {
    let value = Unkeyed { a: 1, b: 2 };
    const { assert!(!Unkeyed::KEYED) };
    assert_eq!(Unkeyed::max_key_bytes(), Some(0));
    assert_eq!(key_hash(&value), Ok([0; 16]));
    assert_eq!(key_payload(&value, Representation::Xcdr1), [0, 1, 0, 0]);
}

#[test]
fn a_key_that_an_older_writer_lacks_has_its_initial_value() {
    let lacking = [0, 1, 0, 0, 9, 0, 0, 0];
    assert_eq!(
        key_hash_of_payload::<Keyed>(&lacking, false),
        key_hash(&Keyed { noise: 0, id: 0 })
    );
}

#[test]
fn the_hash_covers_keys_behind_members_of_every_kind() {
    let value = crate::properties::everything_for_keys();
    for form in ALL_FORMS {
        assert_eq!(
            key_hash_of_payload::<Everything>(&payload(&value, form), false),
            key_hash(&value),
            "{form:?}"
        );
    }
    let mut other = value.clone();
    other.word ^= 1;
    assert_ne!(key_hash(&other), key_hash(&value));
    other = value.clone();
    other.note = Note {
        text: "other".try_into().unwrap(),
        weight: 1,
    };
    assert_ne!(key_hash(&other), key_hash(&value));
    other = value.clone();
    other.bytes = BoundedSequence::new();
    other.last ^= 1;
    assert_eq!(key_hash(&other), key_hash(&value));
}

#[derive(TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Route {
    hops: u32,
    #[topic(key)]
    stations: BoundedSequence<u16, 3>,
    #[topic(key)]
    legs: BoundedSequence<Keyed, 2>,
}

#[test]
fn of_a_sequence_in_a_key_the_length_counts_and_the_keys_of_its_elements() {
    let value = Route {
        hops: 9,
        stations: BoundedSequence::from_slice(&[1, 2]).unwrap(),
        legs: [Keyed { noise: 7, id: -2 }].into_iter().collect(),
    };
    // Length, two stations; DHEADER, length, the element's key.
    let key = [0, 0, 0, 2, 0, 1, 0, 2, 0, 0, 0, 6, 0, 0, 0, 1, 0xff, 0xfe];
    let hash = <[u8; 16]>::from(Md5::digest(key));
    assert!(Route::max_key_bytes() > Some(16));
    assert_eq!(key_hash(&value), Ok(hash));
    for form in ALL_FORMS {
        let hash_of_sample = key_hash_of_payload::<Route>(&payload(&value, form), false);
        assert_eq!(hash_of_sample, Ok(hash), "{form:?}");
    }
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let key = key_payload(&value, representation);
        assert_eq!(key_hash_of_payload::<Route>(&key, true), Ok(hash));
    }
}

#[test]
fn a_sequence_in_a_key_is_no_longer_than_its_bound() {
    let mut key = [0_u8; 24];
    key[..12].copy_from_slice(&[0, 1, 0, 0, 4, 0, 0, 0, 1, 0, 2, 0]);
    let refused = key_hash_of_payload::<Route>(&key, true);
    assert!(refused.is_err(), "{refused:?}");
}

#[derive(TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Endless {
    #[topic(key)]
    tags: Vec<String>,
    #[topic(key)]
    last: u64,
}

#[test]
fn a_key_that_may_be_very_long_is_hashed_however_short_it_is() {
    let value = Endless {
        tags: Vec::new(),
        last: 1,
    };
    let key = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(key_hash(&value), Ok(Md5::digest(key).into()));
}

/// A value with the key of [`numbers`], and other members empty.
fn key_of_numbers() -> Numbers {
    Numbers {
        before: BoundedString::new(),
        between: 0.0,
        ..numbers()
    }
}

#[test]
fn a_key_is_read_from_a_sample_from_what_ends_an_instance_and_from_a_hash_that_is_one() {
    for form in ALL_FORMS {
        let sample = payload(&numbers(), form);
        assert_eq!(read_key(&sample, false), Ok(key_of_numbers()), "{form:?}");
    }
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let key = key_payload(&numbers(), representation);
        assert_eq!(read_key(&key, true), Ok(key_of_numbers()));
        // This is four bytes shorter, the length of the form without DHEADER.
        let cut = &key[..key.len() - 5];
        assert_eq!(read_key::<Numbers>(cut, true), Err(CdrError::Truncated));
    }
    let hash = key_hash(&numbers()).unwrap();
    assert_eq!(read_key_hash(&hash), Some(Ok(key_of_numbers())));
}

/// Structures inside a key, appendable, so that they are delimited in a payload and not in a hash.
#[derive(TopicType, Debug, Clone, PartialEq)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Cell {
    #[topic(key)]
    row: u8,
    is_lit: bool,
    #[topic(key)]
    column: u8,
}

#[derive(TopicType, Debug, PartialEq)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Board {
    #[topic(key)]
    corner: Cell,
    #[topic(key)]
    pair: [Cell; 2],
    text: BoundedString<8>,
}

#[derive(TopicType, Debug, PartialEq)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Path {
    number: u32,
    #[topic(key)]
    cells: BoundedSequence<Cell, 9>,
    #[topic(key, bound = 3)]
    more: Vec<Cell>,
    #[topic(key)]
    name: BoundedString<8>,
}

fn cell(row: u8, column: u8, is_lit: bool) -> Cell {
    Cell {
        row,
        is_lit,
        column,
    }
}

#[test]
fn of_structures_in_a_key_what_is_theirs_of_the_key_is_read() {
    let board = |is_lit, text: &str| Board {
        corner: cell(1, 2, is_lit),
        pair: [cell(3, 4, is_lit), cell(5, 6, is_lit)],
        text: text.try_into().unwrap(),
    };
    let (lit, key) = (board(true, "lit"), board(false, ""));
    assert_eq!(Board::max_key_bytes(), Some(12));
    let path = |is_lit, number| Path {
        number,
        cells: [cell(1, 2, is_lit), cell(3, 4, is_lit)]
            .into_iter()
            .collect(),
        more: vec![cell(5, 6, is_lit)],
        name: "way".try_into().unwrap(),
    };
    let (lit_path, path_key) = (path(true, 7), path(false, 0));
    for form in ALL_FORMS {
        assert_eq!(
            read_key::<Board>(&payload(&lit, form), false).as_ref(),
            Ok(&key)
        );
        let read = read_key::<Path>(&payload(&lit_path, form), false);
        assert_eq!(read.as_ref(), Ok(&path_key));
    }
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let payload = key_payload(&lit, representation);
        assert_eq!(read_key::<Board>(&payload, true).as_ref(), Ok(&key));
        let payload = key_payload(&lit_path, representation);
        assert_eq!(read_key::<Path>(&payload, true).as_ref(), Ok(&path_key));
    }
    let hash = key_hash(&lit).unwrap();
    assert_eq!(read_key_hash::<Board>(&hash), Some(Ok(key)));
    let digest = key_hash(&lit_path).unwrap();
    assert!(
        read_key_hash::<Path>(&digest).is_none(),
        "a digest cannot be read back"
    );
}

#[derive(TopicType, Debug, PartialEq)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Keyless {
    number: u32,
}

#[test]
fn a_type_without_a_key_has_no_members_in_it() {
    assert_eq!(read_key(&[], true), Ok(Keyless { number: 0 }));
    assert_eq!(read_key_hash(&[9; 16]), Some(Ok(Keyless { number: 0 })));
}
