//! Tests of the bounds of types and buffers, and of values that a peer may claim.

use isolane_derive::TopicType;
use isolane_wire::cdr::{
    BoundedSequence, BoundedString, CdrError, Encapsulation, EncapsulationId, Representation,
    TopicType, limits::MAX_DEPTH, max_payload_bytes, read_payload, write_key_payload,
    write_payload,
};

use crate::support::{ALL_FORMS, Note, ShapeType, payload, read};

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Narrow {
    text: BoundedString<3>,
    numbers: BoundedSequence<u16, 2>,
    names: BoundedSequence<BoundedString<2>, 2>,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Broad {
    text: BoundedString<30>,
    numbers: BoundedSequence<u16, 20>,
    names: BoundedSequence<BoundedString<20>, 20>,
}

fn broad(text: &str, numbers: &[u16], names: &[&str]) -> Broad {
    Broad {
        text: text.try_into().unwrap(),
        numbers: BoundedSequence::from_slice(numbers).unwrap(),
        names: names
            .iter()
            .map(|name| (*name).try_into().unwrap())
            .collect(),
    }
}

#[test]
fn what_exceeds_a_bound_is_reported_and_what_meets_it_is_read() {
    for form in ALL_FORMS {
        let narrow = |value: &Broad| read::<Narrow>(&payload(value, form));
        assert!(narrow(&broad("abc", &[1, 2], &["ab", "cd"])).is_ok());
        for value in [
            broad("abcd", &[1, 2], &["ab"]),
            broad("abc", &[1, 2, 3], &["ab"]),
            broad("abc", &[1, 2], &["ab", "cd", "ef"]),
            broad("abc", &[1, 2], &["ab", "cde"]),
        ] {
            assert_eq!(narrow(&value), Err(CdrError::BoundExceeded), "{value:?}");
        }
    }
}

#[test]
fn an_encoder_out_of_room_says_so_at_every_length() {
    let mut shape = ShapeType::new("BLUE", 1, 2, 3);
    shape.additional_payload_size.resize(7, 1).unwrap();
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut out = [0; 64];
        let length = write_payload(&shape, representation, &mut out).unwrap();
        for room in 0..length {
            assert_eq!(
                write_payload(&shape, representation, &mut out[..room]),
                Err(CdrError::NoRoom),
                "{room} of {length} bytes"
            );
        }
        assert_eq!(
            write_payload(&shape, representation, &mut out[..length]),
            Ok(length)
        );
        assert_eq!(
            write_key_payload(&shape, representation, &mut out[..8]),
            Err(CdrError::NoRoom)
        );
    }
}

#[test]
fn every_shortened_sample_of_a_final_type_is_truncated() {
    let value = broad("abc", &[1, 2], &["ab"]);
    for form in ALL_FORMS {
        let payload = payload(&value, form);
        for length in 0..payload.len() {
            assert_eq!(
                read::<Broad>(&payload[..length]),
                Err(CdrError::Truncated),
                "{length} bytes of {}, {form:?}",
                payload.len()
            );
        }
    }
}

#[test]
fn an_absurd_number_of_elements_ends_at_once() {
    #[derive(Debug, TopicType)]
    #[topic(crate = "isolane_wire::cdr")]
    struct Endless {
        #[topic(bound = usize::MAX)]
        notes: Vec<Note>,
    }
    // In XCDR1 each of these appendable elements may end early, at the end of the payload. Without a check, the loop
    // would run four thousand million times over zero bytes.
    let payload = [0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(
        read::<Endless>(&payload).map(drop),
        Err(CdrError::Truncated)
    );
}

#[test]
fn malformed_strings_are_refused() {
    let with_string = |bytes: &[u8]| {
        let mut payload = vec![0, 1, 0, 0, bytes.len() as u8, 0, 0, 0];
        payload.extend(bytes);
        payload.extend([0; 3]);
        read::<Note>(&payload).map(|note| note.text.as_str().to_owned())
    };
    assert_eq!(with_string(b"ab\0").as_deref(), Ok("ab"));
    assert_eq!(with_string(b"ab"), Err(CdrError::InvalidString), "no NUL");
    assert_eq!(
        with_string(b""),
        Err(CdrError::InvalidString),
        "not even a NUL"
    );
    assert_eq!(
        with_string(b"a\0b\0"),
        Err(CdrError::InvalidString),
        "NUL within"
    );
    assert_eq!(
        with_string(b"\xff\0"),
        Err(CdrError::InvalidString),
        "not UTF-8"
    );
}

#[test]
fn a_string_with_nul_is_not_sent() {
    let mut out = [0; 64];
    let value = Note {
        text: "a\0b".try_into().unwrap(),
        weight: 0,
    };
    assert_eq!(
        write_payload(&value, Representation::Xcdr1, &mut out),
        Err(CdrError::InvalidString)
    );
}

#[test]
fn values_that_are_none_are_refused() {
    #[derive(Debug, PartialEq, TopicType)]
    #[topic(final_, crate = "isolane_wire::cdr")]
    struct Choices {
        flags: BoundedSequence<bool, 4>,
        gear: crate::support::Gear,
    }
    let sample = |flag: u8, gear: u8| {
        read::<Choices>(&[0, 1, 0, 0, 2, 0, 0, 0, 1, flag, 0, 0, gear, 0, 0, 0]).map(drop)
    };
    assert_eq!(sample(0, 4), Ok(()));
    assert_eq!(sample(2, 4), Err(CdrError::InvalidBoolean));
    assert_eq!(sample(0, 3), Err(CdrError::UnknownEnumerator(3)));
}

#[test]
fn only_plain_and_delimited_cdr_are_read() {
    for identifier in 0..=0xffff_u16 {
        let [high, low] = identifier.to_be_bytes();
        let read = read::<Note>(&[high, low, 0, 0]);
        match identifier {
            // There is no member, as in an old version of an appendable type.
            0x0000 | 0x0001 | 0x0006 | 0x0007 => assert!(read.is_ok()),
            // There is no DHEADER.
            0x0008 | 0x0009 => assert_eq!(read, Err(CdrError::Truncated)),
            _ => assert_eq!(read, Err(CdrError::UnknownEncapsulation(identifier))),
        }
        if let Ok(encapsulation) = Encapsulation::from_identifier(identifier) {
            assert_eq!(encapsulation.identifier(), identifier);
        }
    }
}

#[test]
fn an_identifier_has_its_standard_name_and_tells_an_extensibility() {
    let of = |identifier| {
        let found = EncapsulationId(identifier);
        (found.to_string(), found.extensibility())
    };
    assert_eq!(of(0x0001), ("CDR_LE".into(), None));
    assert_eq!(of(0x0003), ("PL_CDR_LE".into(), Some("mutable")));
    assert_eq!(of(0x0007), ("CDR2_LE".into(), Some("final")));
    assert_eq!(of(0x0008), ("D_CDR2_BE".into(), Some("appendable")));
    assert_eq!(of(0x000b), ("PL_CDR2_LE".into(), Some("mutable")));
    assert_eq!(of(0x8001), ("0x8001".into(), None));
    assert_eq!(
        EncapsulationId::of_payload(&[0, 9, 0, 0]),
        Some(EncapsulationId(9))
    );
    assert_eq!(EncapsulationId::of_payload(&[0]), None);
}

#[test]
fn more_padding_than_payload_is_refused() {
    assert_eq!(read::<Note>(&[0, 1, 0, 3, 0, 0]), Err(CdrError::Truncated));
}

/// Type that contains itself, so the data determine its depth.
#[derive(Debug, Default, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Tree {
    #[topic(key)]
    children: Vec<Tree>,
}

#[test]
fn data_cannot_nest_structures_until_the_stack_ends() {
    let tree = |depth: usize| {
        // Each level has one child, and the last one none.
        let mut payload = vec![0, 1, 0, 0];
        payload.extend([1, 0, 0, 0].repeat(depth - 1));
        payload.extend([0; 4]);
        payload
    };
    let deepest = usize::from(MAX_DEPTH);
    assert!(read_payload::<Tree>(&tree(deepest)).is_ok());
    assert_eq!(read::<Tree>(&tree(deepest)).map(drop), Ok(()));
    for depth in [deepest + 1, 1_000_000] {
        assert_eq!(
            read_payload::<Tree>(&tree(depth)).map(drop),
            Err(CdrError::NestedTooDeep)
        );
    }
    assert_eq!(Tree::max_key_bytes(), None);
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Position {
    robot: u16,
    x: f64,
    name: BoundedString<5>,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Track {
    /// Structures in a sequence, each with a DHEADER in XCDR2.
    steps: BoundedSequence<Step, 3>,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Step {
    number: u8,
    metres: f64,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Report {
    number: u32,
    text: String,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Chain {
    #[topic(bound = 2)]
    next: Vec<Chain>,
    number: u32,
}

#[test]
fn a_bounded_type_says_how_large_its_samples_get() {
    let full = Position {
        robot: 1,
        x: 2.0,
        name: "front".try_into().unwrap(),
    };
    let mut out = [0; 256];
    let length = write_payload(&full, Representation::Xcdr1, &mut out).unwrap();
    assert_eq!(max_payload_bytes::<Position>(), Some(length));

    let step = Step {
        number: 1,
        metres: 2.0,
    };
    let full = Track {
        steps: BoundedSequence::from_slice(&[step.clone(), step.clone(), step]).unwrap(),
    };
    let most = max_payload_bytes::<Track>().unwrap();
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let length = write_payload(&full, representation, &mut out).unwrap();
        assert!(length <= most && most <= length + 36, "{length} {most}");
    }
}

#[test]
fn a_type_without_a_bound_says_so() {
    assert_eq!(max_payload_bytes::<Report>(), None);
    assert_eq!(max_payload_bytes::<Chain>(), None, "it contains itself");
}
