//! Writers and readers that know different versions of an appendable type.

use isolane_derive::TopicType;
use isolane_wire::cdr::{
    BoundedSequence, BoundedString, ByteOrder, CdrError, Representation, key_hash,
    key_hash_of_payload, read_key, view_payload,
};

use crate::support::{ALL_FORMS, Gear, payload, read};

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable, name = "Report", crate = "isolane_wire::cdr")]
struct Old {
    #[topic(key)]
    id: u16,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable, name = "Report", crate = "isolane_wire::cdr")]
struct New {
    #[topic(key)]
    id: u16,
    gear: Gear,
    name: BoundedString<8>,
    array: [u8; 3],
    pair: [Gear; 2],
    inner: Old,
    list: BoundedSequence<Old, 2>,
}

fn new() -> New {
    New {
        id: 5,
        gear: Gear::Drive,
        name: "n".try_into().unwrap(),
        array: [1, 2, 3],
        pair: [Gear::Reverse; 2],
        inner: Old { id: 6 },
        list: BoundedSequence::from_slice(&[Old { id: 7 }]).unwrap(),
    }
}

#[test]
fn an_old_reader_skips_the_members_of_a_newer_writer() {
    for form in ALL_FORMS {
        assert_eq!(read(&payload(&new(), form)), Ok(Old { id: 5 }));
    }
}

#[test]
fn a_new_reader_gives_initial_values_to_what_an_older_writer_lacks() {
    let expected = New {
        id: 5,
        gear: Gear::Neutral,
        name: BoundedString::new(),
        array: [0; 3],
        pair: [Gear::Neutral; 2],
        inner: Old { id: 0 },
        list: BoundedSequence::new(),
    };
    for form in ALL_FORMS {
        let payload = payload(&Old { id: 5 }, form);
        assert_eq!(read(&payload).as_ref(), Ok(&expected));

        let mut reused = new();
        isolane_wire::cdr::read_payload_into(&payload, &mut reused).unwrap();
        assert_eq!(reused, expected, "nothing of the last sample is left");

        let view = view_payload::<New>(&payload).unwrap();
        assert_eq!(
            (view.gear, view.name, view.inner.id),
            (Gear::Neutral, "", 0)
        );
        assert_eq!(view.array.as_bytes(), &[0; 3]);
        assert_eq!(view.pair.to_array(), [Gear::Neutral; 2]);
        assert_eq!(view.pair.get(1), Some(Gear::Neutral));
        assert_eq!(view.pair.iter().count(), 2);
        assert!(view.list.is_empty());
    }
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct OldList {
    items: [Old; 2],
    end: u8,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct NewList {
    items: [New; 2],
    end: u8,
}

#[test]
fn in_xcdr2_nested_structures_evolve_as_well() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let form = (Representation::Xcdr2, order);
        let newer = NewList {
            items: [new(), new()],
            end: 9,
        };
        let older = OldList {
            items: [Old { id: 5 }, Old { id: 5 }],
            end: 9,
        };
        assert_eq!(read(&payload(&newer, form)).as_ref(), Ok(&older));
        let read: NewList = read(&payload(&older, form)).unwrap();
        assert_eq!(
            (read.items[1].id, read.items[1].gear, read.end),
            (5, Gear::Neutral, 9)
        );
    }
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(crate = "isolane_wire::cdr")]
struct FinalOld {
    #[topic(key)]
    id: u16,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(crate = "isolane_wire::cdr")]
struct FinalNew {
    id: u16,
    gear: Gear,
}

#[test]
fn a_final_type_must_be_complete() {
    for form in ALL_FORMS {
        let short = payload(&FinalOld { id: 5 }, form);
        assert_eq!(read::<FinalNew>(&short), Err(CdrError::Truncated));
    }
}

#[test]
fn the_encapsulation_decides_whether_the_outermost_structure_has_a_dheader() {
    // One side declares the type final, the other appendable.
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let form = (Representation::Xcdr2, order);
        assert_eq!(read(&payload(&Old { id: 5 }, form)), Ok(FinalOld { id: 5 }));
        assert_eq!(read(&payload(&FinalOld { id: 5 }, form)), Ok(Old { id: 5 }));
        assert_eq!(
            key_hash_of_payload::<Old>(&payload(&FinalOld { id: 5 }, form), false),
            key_hash(&Old { id: 5 })
        );
    }
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(crate = "isolane_wire::cdr")]
struct FinalOuter {
    #[topic(key)]
    inner: FinalOld,
    behind: [u16; 3],
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Outer {
    #[topic(key)]
    inner: Old,
    behind: [u16; 3],
}

#[test]
fn a_nested_structure_of_another_extensibility_is_refused_instead_of_misread() {
    // Read as final, the DHEADER of `inner` would be taken for its id.
    let (id, behind) = (5, [6, 7, 8]);
    let appendable = Outer {
        inner: Old { id },
        behind,
    };
    let of_final = FinalOuter {
        inner: FinalOld { id },
        behind,
    };
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let form = (Representation::Xcdr2, order);
        let refused = CdrError::OtherExtensibility;
        assert_eq!(
            read::<FinalOuter>(&payload(&appendable, form)),
            Err(refused)
        );
        assert_eq!(read::<Outer>(&payload(&of_final, form)), Err(refused));
        let key = key_hash_of_payload::<FinalOuter>(&payload(&appendable, form), false);
        assert_eq!(key, Err(refused));
        // XCDR1 has the same bytes for both.
        let form = (Representation::Xcdr1, order);
        assert_eq!(read(&payload(&appendable, form)), Ok(of_final.clone()));
        assert_eq!(read(&payload(&of_final, form)), Ok(appendable.clone()));
    }
}

#[test]
fn the_key_of_an_appendable_type_is_read_without_dheaders_too() {
    // Form of a dispose of Cyclone DDS 0.10.2: D_CDR2_LE without a DHEADER.
    #[derive(Clone, Debug, PartialEq, TopicType)]
    #[topic(appendable, crate = "isolane_wire::cdr")]
    struct Named {
        #[topic(key)]
        name: BoundedString<8>,
        #[topic(key)]
        inner: Old,
        value: u8,
    }
    let named = Named {
        name: "left".try_into().unwrap(),
        inner: Old { id: 3 },
        value: 0,
    };
    let sent = b"\x00\x09\x00\x00\x05\x00\x00\x00left\x00\x00\x03\x00";
    assert_eq!(key_hash_of_payload::<Named>(sent, true), key_hash(&named));
    assert_eq!(read_key(sent, true), Ok(named));
}

#[test]
fn nothing_is_read_past_what_a_dheader_announces() {
    // The DHEADER ends inside `id`, so the next byte must not become part of `id`.
    let payload = [0, 9, 0, 0, 1, 0, 0, 0, 5, 6, 7, 8];
    assert_eq!(read::<Old>(&payload), Err(CdrError::Truncated));
    // A DHEADER that exceeds the payload is rejected.
    let payload = [0, 9, 0, 0, 5, 0, 0, 0, 5, 6, 7, 8];
    assert_eq!(read::<Old>(&payload), Err(CdrError::Truncated));
    let payload = [0, 9, 0, 0, 0xff, 0xff, 0xff, 0xff, 5, 6, 7, 8];
    assert_eq!(read::<Old>(&payload), Err(CdrError::Truncated));
}

#[test]
fn announced_padding_is_not_taken_for_a_member() {
    #[derive(Debug, PartialEq, TopicType)]
    #[topic(appendable, crate = "isolane_wire::cdr")]
    struct Grown {
        id: u16,
        flag: u8,
    }
    // The padding is not zero, so that it would be noticed.
    let payload = [0, 1, 0, 2, 5, 0, 0xee, 0xee];
    assert_eq!(read(&payload), Ok(Grown { id: 5, flag: 0 }));
}
