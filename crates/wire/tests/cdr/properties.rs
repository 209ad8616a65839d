//! Property tests for any value and for any bytes.

use isolane_wire::cdr::{
    BoundedSequence, BoundedString, Char8, Representation, key_hash, key_hash_of_payload,
    max_payload_bytes, read_payload, read_payload_into, view_payload, write_key_payload,
    write_payload,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::support::{ALL_FORMS, Everything, Gear, Note, Point, ShapeType, payload, read};

fn text<const N: usize>() -> impl Strategy<Value = BoundedString<N>> {
    "[^\0]{0,30}".prop_map(|text| {
        let mut bounded = BoundedString::new();
        for letter in text.chars() {
            if bounded.push(letter).is_err() {
                break;
            }
        }
        bounded
    })
}

fn sequence<T: std::fmt::Debug, const N: usize>(
    element: impl Strategy<Value = T>,
) -> impl Strategy<Value = BoundedSequence<T, N>> {
    vec(element, 0..=N).prop_map(|values| values.into_iter().collect())
}

fn gear() -> impl Strategy<Value = Gear> {
    prop_oneof![Just(Gear::Neutral), Just(Gear::Drive), Just(Gear::Reverse)]
}

fn note() -> impl Strategy<Value = Note> {
    (text(), any::<u8>()).prop_map(|(text, weight)| Note { text, weight })
}

fn everything() -> impl Strategy<Value = Everything> {
    let small = (any::<(u8, i8, bool, u8)>(), any::<(u16, i16, u32, i32)>());
    let numbers = any::<(u64, i64)>();
    // NaN is excluded, because it does not equal itself.
    let floats = (-1.0e9_f32..1.0e9, -1.0e99_f64..1.0e99);
    let nested = (gear(), text(), any::<(u8, i16)>(), note());
    let sequences = (
        sequence(any::<u8>()),
        sequence(any::<bool>()),
        sequence(-1.0e99_f64..1.0e99),
        sequence(gear()),
        sequence(text()),
        sequence(note()),
        sequence(sequence(any::<u16>())),
    );
    let arrays = (
        any::<[u32; 3]>(),
        any::<[[i16; 2]; 3]>(),
        [note(), note()],
        any::<u8>(),
    );
    (small, numbers, floats, nested, sequences, arrays).prop_map(
        |(small, numbers, floats, nested, sequences, arrays)| Everything {
            small: small.0.0,
            signed: small.0.1,
            flag: small.0.2,
            letter: Char8(small.0.3),
            half: small.1.0,
            half_signed: small.1.1,
            word: small.1.2,
            word_signed: small.1.3,
            double: numbers.0,
            double_signed: numbers.1,
            single: floats.0,
            precise: floats.1,
            gear: nested.0,
            name: nested.1,
            point: Point {
                tag: nested.2.0,
                x: nested.2.1,
            },
            note: nested.3,
            bytes: sequences.0,
            flags: sequences.1,
            numbers: sequences.2,
            gears: sequences.3,
            names: sequences.4,
            notes: sequences.5,
            lists: sequences.6,
            fixed: arrays.0,
            grid: arrays.1,
            pair: arrays.2,
            last: arrays.3,
        },
    )
}

/// One value of this type, the same in every run.
pub(crate) fn everything_for_keys() -> Everything {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    everything()
        .new_tree(&mut runner)
        .expect("no filter")
        .current()
}

/// Runs every function that reads bytes of a peer.
fn look_at(bytes: &[u8]) {
    // Printing a view visits every element that was checked.
    if let Ok(view) = view_payload::<Everything>(bytes) {
        let _ = format!("{view:?}");
    }
    if let Ok(value) = read::<Everything>(bytes) {
        let mut out = vec![0; 8192];
        write_payload(&value, Representation::Xcdr2, &mut out).expect("what was read can be sent");
        write_key_payload(&value, Representation::Xcdr1, &mut out).expect("and its key");
        assert_eq!(
            key_hash_of_payload::<Everything>(bytes, false),
            key_hash(&value),
            "{bytes:02x?}"
        );
    }
    let _ = read::<ShapeType>(bytes);
    let _ = key_hash_of_payload::<Everything>(bytes, true);
    let _ = key_hash_of_payload::<ShapeType>(bytes, true);
    let mut reused = everything_for_keys();
    let _ = read_payload_into(bytes, &mut reused);
}

proptest! {
    #[test]
    fn what_is_written_is_read_in_every_form(value in everything(), other in everything()) {
        for form in ALL_FORMS {
            let bytes = payload(&value, form);
            prop_assert_eq!(&read::<Everything>(&bytes).unwrap(), &value);
            let mut reused = other.clone();
            read_payload_into(&bytes, &mut reused).unwrap();
            prop_assert_eq!(&reused, &value);
            prop_assert_eq!(key_hash_of_payload::<Everything>(&bytes, false), key_hash(&value));
        }
    }

    #[test]
    fn no_payload_is_larger_than_its_type_says(value in everything()) {
        let most = max_payload_bytes::<Everything>().expect("all of it is bounded");
        for form in ALL_FORMS {
            prop_assert!(payload(&value, form).len() <= most);
        }
    }

    #[test]
    fn a_key_payload_gives_the_same_hash_as_the_sample(value in everything()) {
        let mut out = [0; 1024];
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let length = write_key_payload(&value, representation, &mut out).unwrap();
            prop_assert_eq!(length % 4, 0);
            prop_assert_eq!(
                key_hash_of_payload::<Everything>(&out[..length], true),
                key_hash(&value)
            );
        }
    }

    #[test]
    fn a_view_says_what_decoding_says(value in everything()) {
        for form in ALL_FORMS {
            let bytes = payload(&value, form);
            let view = view_payload::<Everything>(&bytes).unwrap();
            prop_assert_eq!(view.bytes.as_bytes(), value.bytes.as_slice());
            prop_assert!(view.numbers.iter().eq(value.numbers.iter().copied()));
            prop_assert!(view.gears.iter().eq(value.gears.iter().copied()));
            prop_assert!(view.names.iter().eq(value.names.iter().map(|name| name.as_str())));
            prop_assert!(
                view.notes
                    .iter()
                    .map(|note| (note.text, note.weight))
                    .eq(value.notes.iter().map(|note| (note.text.as_str(), note.weight)))
            );
            prop_assert_eq!(view.fixed.to_array(), value.fixed);
            prop_assert_eq!(view.last, value.last);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        identifier in prop_oneof![0_u8..=1, 6_u8..=9],
        body in vec(any::<u8>(), 0..600),
    ) {
        look_at(&body);
        look_at(&[&[0, identifier, 0, 0], body.as_slice()].concat());
    }

    #[test]
    fn damaged_samples_never_panic(
        value in everything(),
        form in prop::sample::select(ALL_FORMS.to_vec()),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        length in any::<prop::sample::Index>(),
    ) {
        let mut bytes = payload(&value, form);
        look_at(&bytes[..length.index(bytes.len())]);
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        look_at(&bytes);
    }

    #[test]
    fn a_payload_is_a_multiple_of_4_and_reads_back(value in everything()) {
        let mut out = vec![0xaa; 8192];
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let length = write_payload(&value, representation, &mut out).unwrap();
            prop_assert_eq!(length % 4, 0);
            prop_assert_eq!(&read_payload::<Everything>(&out[..length]).unwrap(), &value);
        }
    }
}
