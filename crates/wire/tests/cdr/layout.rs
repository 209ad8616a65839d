//! Tests of each rule of XTypes 1.3 §7.4 with bytes written by hand.

use isolane_derive::TopicType;
use isolane_wire::cdr::{
    BoundedSequence, BoundedString, ByteOrder, Char8, Representation, TopicType, write_payload,
};

use crate::support::{Gear, Note, Point, body, payload, read};

const XCDR1: (Representation, ByteOrder) = (Representation::Xcdr1, ByteOrder::Little);
const XCDR2: (Representation, ByteOrder) = (Representation::Xcdr2, ByteOrder::Little);
const XCDR2_BIG: (Representation, ByteOrder) = (Representation::Xcdr2, ByteOrder::Big);

#[derive(Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Wide {
    first: u8,
    wide: u64,
    last: u8,
}

#[test]
fn eight_byte_primitives_are_aligned_to_8_in_xcdr1_and_to_4_in_xcdr2() {
    let value = Wide {
        first: 1,
        wide: 0x0807_0605_0403_0201,
        last: 9,
    };
    assert_eq!(
        body(&value, XCDR1),
        [1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    );
    assert_eq!(body(&value, XCDR2), [1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(
        body(&value, XCDR2_BIG),
        [1, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 9]
    );
}

#[derive(Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Small {
    flag: bool,
    half: i16,
    letter: Char8,
    single: f32,
    precise: f64,
}

#[test]
fn every_primitive_is_aligned_to_its_size() {
    let value = Small {
        flag: true,
        half: -2,
        letter: Char8(b'x'),
        single: 1.0,
        precise: -2.0,
    };
    let expected = [
        1, 0, // bool, padding
        0xfe, 0xff, // i16
        b'x', 0, 0, 0, // char, padding
        0, 0, 0x80, 0x3f, // f32
        0, 0, 0, 0, // padding: 12 -> 16 in XCDR1 only
        0, 0, 0, 0, 0, 0, 0, 0xc0, // f64
    ];
    assert_eq!(body(&value, XCDR1), expected);
    assert_eq!(
        body(&value, XCDR2),
        [&expected[..12], &expected[16..]].concat()
    );
}

#[derive(Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Named {
    name: BoundedString<8>,
    after: u16,
}

#[test]
fn a_string_is_its_length_with_nul_its_bytes_and_nul() {
    let value = Named {
        name: "abc".try_into().unwrap(),
        after: 0x0102,
    };
    assert_eq!(body(&value, XCDR1), [4, 0, 0, 0, b'a', b'b', b'c', 0, 2, 1]);
    let empty = Named {
        name: BoundedString::new(),
        after: 0x0102,
    };
    assert_eq!(body(&empty, XCDR1), [1, 0, 0, 0, 0, 0, 2, 1]);
}

#[derive(Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Geared {
    before: u8,
    gear: Gear,
}

#[test]
fn an_enumeration_is_an_i32() {
    let value = Geared {
        before: 7,
        gear: Gear::Reverse,
    };
    assert_eq!(body(&value, XCDR2), [7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(
        body(&value, XCDR2_BIG),
        [7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]
    );
    let value = Geared {
        before: 7,
        gear: Gear::Drive,
    };
    assert_eq!(body(&value, XCDR2_BIG), [7, 0, 0, 0, 0, 0, 0, 4]);
}

#[derive(Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Nested {
    before: u8,
    point: Point,
    note: Note,
    after: u8,
}

#[test]
fn nested_structures_lie_inline_and_appendable_ones_behind_a_dheader_in_xcdr2() {
    let value = Nested {
        before: 1,
        point: Point { tag: 2, x: 3 },
        note: Note {
            text: "t".try_into().unwrap(),
            weight: 4,
        },
        after: 5,
    };
    // A nested structure adds no alignment: `tag` follows `before` directly.
    assert_eq!(body(&value, XCDR1), [1, 2, 3, 0, 2, 0, 0, 0, b't', 0, 4, 5]);
    assert_eq!(
        body(&value, XCDR2),
        [1, 2, 3, 0, 7, 0, 0, 0, 2, 0, 0, 0, b't', 0, 4, 5]
    );
}

#[derive(Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Collections {
    numbers: BoundedSequence<u16, 4>,
    gears: BoundedSequence<Gear, 4>,
    names: BoundedSequence<BoundedString<4>, 4>,
    notes: [Note; 1],
    grid: [[u8; 2]; 2],
}

#[test]
fn in_xcdr2_collections_of_anything_but_primitives_have_a_dheader() {
    let value = Collections {
        numbers: BoundedSequence::from_slice(&[0x0102]).unwrap(),
        gears: BoundedSequence::from_slice(&[Gear::Drive]).unwrap(),
        names: BoundedSequence::from_slice(&["a".try_into().unwrap()]).unwrap(),
        notes: [Note {
            text: BoundedString::new(),
            weight: 9,
        }],
        grid: [[1, 2], [3, 4]],
    };
    #[rustfmt::skip]
    let xcdr1 = [
        1, 0, 0, 0, 2, 1, 0, 0,                     // numbers, padding
        1, 0, 0, 0, 4, 0, 0, 0,                     // gears
        1, 0, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0,      // names, padding
        1, 0, 0, 0, 0, 9,                           // notes
        1, 2, 3, 4,                                 // grid
    ];
    #[rustfmt::skip]
    let xcdr2 = [
        1, 0, 0, 0, 2, 1, 0, 0,                     // numbers: primitives, no DHEADER
        8, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0,         // gears: enumerations are not primitives
        10, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0,
        10, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 9,  // notes: the array's, the element's
        1, 2, 3, 4,                                 // grid: an array of primitives
    ];
    assert_eq!(body(&value, XCDR1), xcdr1);
    assert_eq!(body(&value, XCDR2), xcdr2);
    for form in [XCDR1, XCDR2, XCDR2_BIG] {
        assert_eq!(read(&payload(&value, form)).as_ref(), Ok(&value));
    }
}

#[derive(Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct EmptyWide {
    numbers: BoundedSequence<f64, 4>,
    after: u8,
}

#[test]
fn an_empty_sequence_is_not_followed_by_its_elements_alignment() {
    let value = EmptyWide {
        numbers: BoundedSequence::new(),
        after: 1,
    };
    assert_eq!(body(&value, XCDR1), [0, 0, 0, 0, 1]);
    assert_eq!(read(&payload(&value, XCDR1)), Ok(value));
}

#[test]
fn a_payload_is_header_body_and_padding_whose_count_the_options_carry() {
    fn written<T: TopicType>(value: &T, representation: Representation) -> Vec<u8> {
        let mut out = [0xaa; 64];
        let length = write_payload(value, representation, &mut out).unwrap();
        out[..length].to_vec()
    }
    let point = Point { tag: 1, x: 2 };
    assert_eq!(
        written(&point, Representation::Xcdr1),
        [0, 1, 0, 0, 1, 0, 2, 0]
    );
    assert_eq!(
        written(&point, Representation::Xcdr2),
        [0, 7, 0, 0, 1, 0, 2, 0]
    );
    let note = Note {
        text: BoundedString::new(),
        weight: 9,
    };
    assert_eq!(
        written(&note, Representation::Xcdr1),
        [0, 1, 0, 2, 1, 0, 0, 0, 0, 9, 0, 0]
    );
    assert_eq!(
        written(&note, Representation::Xcdr2),
        [0, 9, 0, 2, 6, 0, 0, 0, 1, 0, 0, 0, 0, 9, 0, 0]
    );
}

#[test]
fn padding_never_shows_what_the_buffer_held_before() {
    // `support::payload` fills the buffer with 0xaa first.
    let value = Wide {
        first: 0,
        wide: 0,
        last: 0,
    };
    for form in [XCDR1, XCDR2] {
        assert!(body(&value, form).iter().all(|byte| *byte == 0));
    }
}

#[test]
fn the_name_is_the_structs_own_unless_given() {
    assert_eq!(Wide::TYPE_NAME, "Wide");
    assert_eq!(crate::support::Everything::TYPE_NAME, "test::Everything");
}
