//! Tests of sequences and arrays that are read in place.

use isolane_derive::TopicType;
use isolane_wire::cdr::{BoundedSequence, view_payload};

use crate::support::{ALL_FORMS, Note, payload};

#[derive(TopicType)]
#[topic(crate = "isolane_wire::cdr")]
struct Lists {
    odd: u8,
    numbers: BoundedSequence<f64, 4>,
    flags: BoundedSequence<bool, 4>,
    notes: BoundedSequence<Note, 4>,
    lists: BoundedSequence<BoundedSequence<u16, 3>, 3>,
    grid: [[i16; 2]; 2],
    bytes: [u8; 3],
}

fn note(text: &str, weight: u8) -> Note {
    Note {
        text: text.try_into().unwrap(),
        weight,
    }
}

fn lists() -> Lists {
    Lists {
        odd: 1,
        numbers: BoundedSequence::from_slice(&[0.5, -1.5, 2.5]).unwrap(),
        flags: BoundedSequence::from_slice(&[true, false, true]).unwrap(),
        notes: [note("one", 1), note("", 2), note("three", 3)]
            .into_iter()
            .collect(),
        lists: BoundedSequence::from_slice(&[
            BoundedSequence::from_slice(&[1]).unwrap(),
            BoundedSequence::new(),
            BoundedSequence::from_slice(&[2, 3]).unwrap(),
        ])
        .unwrap(),
        grid: [[1, -2], [3, -4]],
        bytes: [7, 8, 9],
    }
}

#[test]
fn elements_come_in_order_and_by_index() {
    for form in ALL_FORMS {
        let payload = payload(&lists(), form);
        let view = view_payload::<Lists>(&payload).unwrap();
        assert_eq!(view.numbers.iter().collect::<Vec<_>>(), [0.5, -1.5, 2.5]);
        assert_eq!(view.numbers.get(2), Some(2.5));
        assert_eq!(view.numbers.get(3), None);
        assert_eq!(view.flags.get(1), Some(false));
        assert_eq!(view.notes.len(), 3);
        assert_eq!(
            view.notes
                .iter()
                .map(|note| (note.text, note.weight))
                .collect::<Vec<_>>(),
            [("one", 1), ("", 2), ("three", 3)]
        );
        assert_eq!(view.notes.get(2).map(|note| note.text), Some("three"));
        let lists: Vec<Vec<u16>> = view
            .lists
            .into_iter()
            .map(|list| list.into_iter().collect())
            .collect();
        assert_eq!(lists, [vec![1], vec![], vec![2, 3]]);
        assert_eq!(view.grid.get(1).map(|row| row.to_array()), Some([3, -4]));
        assert_eq!(view.grid.iter().len(), 2);
        assert_eq!(view.bytes.as_bytes(), &[7, 8, 9]);
        let mut rows = Vec::new();
        for row in &view.grid {
            assert_eq!(row.len(), 2);
            rows.extend(row);
        }
        assert_eq!(rows, [1, -2, 3, -4]);
        let mut numbers = view.numbers.into_iter();
        assert_eq!(numbers.next(), Some(0.5));
        assert_eq!(numbers.clone().count(), 2, "a copy goes on from here");
        assert!((&view.numbers).into_iter().eq(view.numbers));
        assert!(format!("{numbers:?}").contains("left: 2"), "{numbers:?}");
    }
}

#[test]
fn a_view_prints_its_elements() {
    let payload = payload(&lists(), ALL_FORMS[0]);
    let view = view_payload::<Lists>(&payload).unwrap();
    let text = format!("{view:?}");
    assert!(
        text.starts_with("ListsView { odd: 1, numbers: [0.5, -1.5, 2.5]"),
        "{text}"
    );
    assert!(
        text.contains("NoteView { text: \"three\", weight: 3 }"),
        "{text}"
    );
    assert!(
        text.ends_with("grid: [[1, -2], [3, -4]], bytes: [7, 8, 9] }"),
        "{text}"
    );
}

#[test]
fn views_are_copied_freely_and_outlive_their_decoder() {
    let payload = payload(&lists(), ALL_FORMS[0]);
    let text = {
        let view = view_payload::<Lists>(&payload).unwrap();
        let copy = view;
        assert_eq!(copy.odd, view.odd);
        copy.notes.get(0).unwrap().text
    };
    assert_eq!(text, "one");
}
