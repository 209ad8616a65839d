//! Tests of `String` and `Vec`: the same bytes as the bounded types, bounds from attributes, and reuse of memory.

use isolane_derive::TopicType;
use isolane_wire::cdr::{
    BoundedSequence, BoundedString, CdrError, CdrType, Loan, Representation, read_payload,
    read_payload_into, view_payload, write_payload,
};

use crate::support::{ALL_FORMS, payload, read};

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(name = "Log", crate = "isolane_wire::cdr")]
struct Log {
    #[topic(bound = 8)]
    source: String,
    #[topic(bound = 3)]
    values: Vec<u32>,
    #[topic(bound = 4)]
    words: Vec<String>,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(crate = "isolane_wire::cdr")]
struct Entry {
    text: String,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(name = "Log", crate = "isolane_wire::cdr")]
struct InPlace {
    source: BoundedString<90>,
    values: BoundedSequence<u32, 90>,
    words: BoundedSequence<BoundedString<90>, 90>,
    entries: BoundedSequence<InPlaceEntry, 4>,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(crate = "isolane_wire::cdr")]
struct InPlaceEntry {
    text: BoundedString<90>,
}

fn log(source: &str, values: &[u32], words: &[&str], entries: &[&str]) -> Log {
    Log {
        source: source.to_owned(),
        values: values.to_vec(),
        words: words.iter().copied().map(String::from).collect(),
        entries: entries
            .iter()
            .map(|text| Entry {
                text: String::from(*text),
            })
            .collect(),
    }
}

fn in_place(log: &Log) -> InPlace {
    InPlace {
        source: log.source.as_str().try_into().unwrap(),
        values: BoundedSequence::from_slice(&log.values).unwrap(),
        words: log
            .words
            .iter()
            .map(|word| word.as_str().try_into().unwrap())
            .collect(),
        entries: log
            .entries
            .iter()
            .map(|entry| InPlaceEntry {
                text: entry.text.as_str().try_into().unwrap(),
            })
            .collect(),
    }
}

#[test]
fn they_have_the_bytes_of_their_bounded_relatives() {
    let value = log(
        "engine",
        &[1, 2, 3],
        &["a", "bcd"],
        &["longer than any bound", ""],
    );
    for form in ALL_FORMS {
        let bytes = payload(&value, form);
        assert_eq!(bytes, payload(&in_place(&value), form));
        assert_eq!(read(&bytes).as_ref(), Ok(&value));
        assert_eq!(read(&bytes).as_ref(), Ok(&in_place(&value)));
    }
}

#[test]
fn a_stated_bound_holds_for_writing_and_reading() {
    let mut out = [0; 256];
    for value in [
        log("nine byte", &[], &[], &[]),
        log("", &[1, 2, 3, 4], &[], &[]),
        log("", &[], &["a", "b", "c", "d", "e"], &[]),
        // The bound of a member also applies to the strings inside it.
        log("", &[], &["hello"], &[]),
    ] {
        assert_eq!(
            write_payload(&value, Representation::Xcdr1, &mut out),
            Err(CdrError::BoundExceeded),
            "{value:?}"
        );
        for form in ALL_FORMS {
            let bytes = payload(&in_place(&value), form);
            assert_eq!(
                read::<Log>(&bytes),
                Err(CdrError::BoundExceeded),
                "{value:?}"
            );
        }
    }
}

#[test]
fn the_bound_of_a_member_does_not_reach_into_nested_structures() {
    #[derive(Clone, Debug, PartialEq, TopicType)]
    #[topic(crate = "isolane_wire::cdr")]
    struct Logs {
        #[topic(bound = 2)]
        lists: [Vec<Entry>; 2],
    }
    let entry = |text: &str| Entry {
        text: text.to_owned(),
    };
    let value = Logs {
        lists: [
            vec![entry("long text"), entry("longer text")],
            vec![entry("more")],
        ],
    };
    for form in ALL_FORMS {
        assert_eq!(read(&payload(&value, form)).as_ref(), Ok(&value));
    }
    // The bound applies again after the nested structure.
    let mut out = [0; 256];
    let value = Logs {
        lists: [vec![entry("x")], vec![entry(""), entry(""), entry("")]],
    };
    assert_eq!(
        write_payload(&value, Representation::Xcdr1, &mut out),
        Err(CdrError::BoundExceeded)
    );
}

#[test]
fn a_member_without_a_stated_bound_holds_what_the_sample_holds() {
    #[derive(Debug, PartialEq, TopicType)]
    #[topic(name = "Image", crate = "isolane_wire::cdr")]
    struct Image {
        pixels: Vec<u8>,
    }
    let image = Image {
        pixels: vec![3; 921_600],
    };
    let mut out = vec![0; 921_616];
    let length = write_payload(&image, Representation::Xcdr1, &mut out).unwrap();
    assert_eq!(read(&out[..length]), Ok(image));
    assert_eq!(
        read::<Image>(&out[..length - 4]),
        Err(CdrError::Truncated),
        "a length beyond the sample"
    );
}

#[test]
fn the_lengths_of_a_value_are_named_by_its_members() {
    let value = log("robot", &[1, 2], &["a", "bcd"], &["first"]);
    let mut found = Vec::new();
    value.lengths(&mut |member| found.push((member.name, member.length, member.bound)));
    let expected = [
        ("source", 5, Some(8)),
        ("values", 2, Some(3)),
        // Longest length of the sequence and its strings.
        ("words", 3, Some(4)),
        ("entries", 1, None),
        ("text", 5, None),
    ];
    assert_eq!(found, expected);
    let mut found = Vec::new();
    in_place(&value).lengths(&mut |member| found.push((member.name, member.bound)));
    assert_eq!(found[0], ("source", Some(90)), "the bound of its type");
}

#[test]
fn decoding_into_a_value_reuses_its_memory() {
    let form = ALL_FORMS[0];
    let mut value = log("12345678", &[9; 3], &["abcd", "efgh"], &["first", "second"]);
    let places = |value: &Log| {
        (
            value.source.as_ptr(),
            value.values.as_ptr(),
            value.words.as_ptr(),
            value.words[0].as_ptr(),
            value.entries[0].text.as_ptr(),
        )
    };
    let before = places(&value);
    let next = log("1", &[8; 2], &["x"], &["y"]);
    read_payload_into(&payload(&next, form), &mut value).unwrap();
    assert_eq!(value, next);
    assert_eq!(places(&value), before);
}

#[test]
fn a_claimed_length_takes_no_memory_before_its_bytes_were_seen() {
    #[derive(Debug, PartialEq, TopicType)]
    #[topic(crate = "isolane_wire::cdr")]
    struct Numbers {
        #[topic(bound = usize::MAX)]
        numbers: Vec<u64>,
    }
    // The payload claims 2^31 numbers and has one. Allocating memory for the claim would take 16 GiB.
    let mut bytes = vec![0, 7, 0, 0, 0, 0, 0, 0x80];
    bytes.extend([0; 8]);
    assert_eq!(read_payload::<Numbers>(&bytes), Err(CdrError::Truncated));
}

#[derive(Debug, PartialEq, TopicType)]
#[topic(appendable, name = "Picture", crate = "isolane_wire::cdr")]
struct Picture {
    width: u8,
    #[topic(bound = 9)]
    pixels: Vec<u8>,
    exposure: u32,
}

/// [`Picture`] whose pixels are written in place.
#[derive(Debug, TopicType)]
#[topic(appendable, name = "Picture", crate = "isolane_wire::cdr")]
struct LoanedPicture {
    width: u8,
    #[topic(bound = 9)]
    pixels: Loan,
    exposure: u32,
}

fn loaned(pixels: Loan) -> LoanedPicture {
    LoanedPicture {
        width: 3,
        pixels,
        exposure: 70_000,
    }
}

#[test]
fn a_loan_is_the_same_bytes_as_a_vec_and_reads_as_one() {
    for length in 0..=9_u8 {
        let pixels = Vec::from_iter(0..length);
        let usual = Picture {
            width: 3,
            pixels: pixels.clone(),
            exposure: 70_000,
        };
        for form in ALL_FORMS {
            let expected = payload(&usual, form);
            let loan = loaned(Loan::from(pixels.clone()));
            assert_eq!(payload(&loan, form), expected);
            assert_eq!(read::<Picture>(&expected).as_ref(), Ok(&usual));
            let read = read::<LoanedPicture>(&expected).expect("the same type");
            assert_eq!(read.pixels.to_vec(), pixels);
            let view = view_payload::<LoanedPicture>(&expected).expect("the same type");
            assert_eq!(view.pixels.as_bytes(), pixels);
            assert_eq!(view.exposure, 70_000);
        }
    }
}

#[test]
fn a_loan_is_lent_its_length_and_only_where_there_is_room_and_no_bound_is_exceeded() {
    let fill = |octets: &mut [u8]| {
        assert_eq!(octets.len(), 5);
        octets.fill(7);
    };
    let mut room = [1; 40];
    let write = |length, room: &mut [u8]| {
        let never = |_: &mut [u8]| panic!("it is not lent");
        let pixels = match length {
            5 if room.len() == 40 => Loan::new(5, fill),
            _ => Loan::new(length, never),
        };
        write_payload(&loaned(pixels), Representation::Xcdr1, room)
    };
    assert_eq!(write(10, &mut room), Err(CdrError::BoundExceeded));
    assert_eq!(write(5, &mut room[..12]), Err(CdrError::NoRoom));
    assert_eq!(write(5, &mut room), Ok(24));
    let [.., before, one, two, three, four, five] = room[..17] else {
        unreachable!("17 bytes")
    };
    assert_eq!([before, one, two, three, four, five], [0, 7, 7, 7, 7, 7]);
}
