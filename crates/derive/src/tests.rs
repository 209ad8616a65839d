//! Tests of refused declarations and their messages. `isolane-wire` tests accepted declarations, together with their
//! serialised bytes.

use syn::parse_quote;

/// Error message of a declaration.
macro_rules! refusal {
    ($($declaration:tt)*) => {
        match crate::expand(&parse_quote!($($declaration)*)) {
            Ok(_) => panic!("accepted"),
            Err(error) => error.into_iter().map(|error| error.to_string()).collect::<Vec<_>>(),
        }
    };
}

#[test]
fn generic_types_are_refused() {
    assert!(
        refusal!(
            struct S<T> {
                a: T,
            }
        )[0]
        .contains("cannot be generic")
    );
    assert!(
        refusal!(
            struct S<'a> {
                a: &'a str,
            }
        )[0]
        .contains("cannot be generic")
    );
    assert!(
        refusal!(
            struct S<const N: usize> {
                a: [u8; N],
            }
        )[0]
        .contains("cannot be generic")
    );
}

#[test]
fn unions_and_enums_with_fields_are_refused() {
    assert!(refusal!(union U { a: u32, b: f32 })[0].contains("a union cannot"));
    assert!(
        refusal!(
            enum E {
                A,
                B(u32),
            }
        )[0]
        .contains("enums with fields")
    );
    assert!(
        refusal!(
            enum E {}
        )[0]
        .contains("at least one enumerator")
    );
}

#[test]
fn structs_need_named_members() {
    assert!(
        refusal!(
            struct S(u32);
        )[0]
        .contains("have names")
    );
    assert!(
        refusal!(
            struct S;
        )[0]
        .contains("have names")
    );
    assert!(
        refusal!(
            struct S {}
        )[0]
        .contains("at least one member")
    );
}

#[test]
fn every_unsupported_member_is_named_at_once() {
    let messages = refusal!(
        struct S {
            a: &'static str,
            b: (u8, u8),
            c: u32,
            d: *const u8,
        }
    );
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages[0].contains("owns its value"));
    assert!(messages[1].contains("tuple"));
    assert!(messages[2].contains("no form in DDS"));
}

#[test]
fn types_that_dds_lacks_are_refused_with_their_remedy_also_inside_others() {
    assert!(
        refusal!(
            struct S {
                a: usize,
            }
        )[0]
        .contains("differs between machines")
    );
    assert!(
        refusal!(
            struct S {
                a: [char; 3],
            }
        )[0]
        .contains("Char8")
    );
    assert!(
        refusal!(
            struct S {
                a: Vec<std::option::Option<u8>>,
            }
        )[0]
        .contains("optional")
    );
    assert!(
        refusal!(
            struct S {
                a: Box<u8>,
            }
        )[0]
        .contains("pointer")
    );
}

#[test]
fn a_key_belongs_to_a_member_of_a_struct() {
    assert!(
        refusal!(
            #[topic(key)]
            struct S {
                a: u32,
            }
        )[0]
        .contains("expected `name")
    );
    assert!(
        refusal!(
            enum E {
                #[topic(key)]
                A,
            }
        )[0]
        .contains("no attribute")
    );
}

#[test]
fn a_bound_needs_its_value() {
    assert!(
        refusal!(
            struct S {
                #[topic(bound)]
                a: String,
            }
        )[0]
        .contains("a bound needs its value")
    );
}

#[test]
fn unknown_and_repeated_attributes_are_refused() {
    assert!(
        refusal!(
            struct S {
                #[topic(keyed)]
                a: u32,
            }
        )[0]
        .contains("expected `key`")
    );
    assert!(
        refusal!(
            struct S {
                #[topic(key, key)]
                a: u32,
            }
        )[0]
        .contains("twice")
    );
    assert!(
        refusal!(
            #[topic(appendable, final_)]
            struct S {
                a: u32,
            }
        )[0]
        .contains("twice")
    );
    assert!(
        refusal!(
            #[topic(mutable)]
            struct S {
                a: u32,
            }
        )[0]
        .contains("not supported")
    );
    assert!(
        refusal!(
            #[topic(final_)]
            enum E {
                A,
            }
        )[0]
        .contains("no other attribute")
    );
}

#[test]
fn a_type_name_must_be_one_that_discovery_can_carry() {
    assert!(
        refusal!(
            #[topic(name = "")]
            struct S {
                a: u32,
            }
        )[0]
        .contains("needs a name")
    );
    assert!(
        refusal!(
            #[topic(name = "a\0b")]
            struct S {
                a: u32,
            }
        )[0]
        .contains("NUL")
    );
    let long = "x".repeat(256);
    assert!(
        refusal!(
            #[topic(name = #long)]
            struct S {
                a: u32,
            }
        )[0]
        .contains("at most 255")
    );
}
