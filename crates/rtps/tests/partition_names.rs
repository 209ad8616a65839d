//! Tests of partition names that match each other, in addition to POSIX `fnmatch`.

use std::{
    ffi::CString,
    time::{Duration, Instant},
};

use isolane_rtps::partitions_match;
use isolane_wire::{
    limits::{MAX_PARTITION_BYTES, MAX_PARTITIONS},
    qos::Partition,
};
use proptest::prelude::*;

fn partition(names: &[&str]) -> Partition {
    let names = names.iter().map(|&name| name.try_into());
    names.collect::<Result<_, _>>().expect("short names")
}

fn meet(one: &str, other: &str) -> bool {
    let met = partitions_match(&partition(&[one]), &partition(&[other]));
    let turned = partitions_match(&partition(&[other]), &partition(&[one]));
    assert_eq!(met, turned, "{one:?} and {other:?}");
    met
}

/// Result of the C library's `fnmatch`.
fn fnmatch(pattern: &str, text: &str) -> bool {
    let text_of = |text: &str| CString::new(text).expect("no NUL");
    let (pattern, text) = (text_of(pattern), text_of(text));
    // SAFETY: both are strings that end with a NUL, and outlive the call, which keeps neither.
    unsafe { libc::fnmatch(pattern.as_ptr(), text.as_ptr(), 0) == 0 }
}

fn has_wildcard(name: &str) -> bool {
    let mut rest = name.chars();
    while let Some(character) = rest.next() {
        match character {
            '\\' => drop(rest.next()),
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

#[test]
fn wildcards_stand_for_what_the_standard_says() {
    for (pattern, fitting, others) in [
        ("*", &["", "a", "left/door"][..], &[][..]),
        ("a?c", &["abc", "aöc", "a/c"], &["ac", "abbc", "abcd"]),
        ("left/*", &["left/", "left/door"], &["left", "right/door"]),
        ("*door", &["door", "left/door", "doordoor"], &["doors"]),
        ("a*b*c", &["abc", "aXbYc", "abbcc"], &["ab", "acb"]),
        (
            "zone[0-3]",
            &["zone0", "zone3"],
            &["zone4", "zone", "zone03"],
        ),
        ("zone[!0-3]", &["zone4", "zonex"], &["zone0", "zone"]),
        ("[]x]", &["]", "x"], &["[", ""]),
        ("[a-]", &["a", "-"], &["b"]),
        (r"\a\b*", &["ab", "abc"], &[r"\ab", "a"]),
        ("[", &[][..], &["a", ""]),
        (r"*\a", &["a", r"\a"], &[r"\a\", "b"]),
    ] {
        for name in fitting {
            assert!(meet(pattern, name), "{pattern:?} and {name:?}");
        }
        for name in others {
            assert!(!meet(pattern, name), "{pattern:?} and {name:?}");
        }
    }
}

#[test]
fn names_that_both_have_wildcards_never_meet() {
    for (one, other) in [("*", "*"), ("a*", "a*"), ("a?", "*"), ("[ab]", "[ab]")] {
        assert!(!meet(one, other), "{one:?} and {other:?}");
    }
    // The endpoints match if one of several names matches.
    assert!(partitions_match(
        &partition(&["a*", "left"]),
        &partition(&["a*", "l*"])
    ));
}

#[test]
fn a_name_without_wildcards_is_compared_as_it_is() {
    assert!(meet("left", "left") && meet(r"a\*", r"a\*") && meet("a]b", "a]b"));
    assert!(!meet("left", "Left") && !meet(r"a\b", "ab"));
}

#[test]
fn no_partition_is_the_one_without_a_name() {
    let none = Partition::new();
    assert!(partitions_match(&none, &none));
    assert!(partitions_match(&none, &partition(&["left", ""])));
    assert!(partitions_match(&partition(&["*"]), &none));
    assert!(!partitions_match(&none, &partition(&["left", "?*"])));
}

#[test]
fn the_worst_names_of_a_peer_cost_no_more_than_the_product_of_their_lengths() {
    let long = MAX_PARTITION_BYTES;
    let worst = [
        "*a".repeat(long / 2),
        format!("*{}b", "a".repeat(long - 2)),
        format!("*{}", "[".repeat(long - 1)),
        format!("*[{}]b", "b".repeat(long - 4)),
        "[".repeat(long),
    ];
    let names = ["a".repeat(long), "b".repeat(long), r"\".repeat(long)];
    let begin = Instant::now();
    let mut met = 0;
    for pattern in &worst {
        let patterns = partition(&[pattern.as_str(); MAX_PARTITIONS]);
        for name in &names {
            for _ in 0..10 {
                let names = partition(&[name.as_str(); MAX_PARTITIONS]);
                met += usize::from(partitions_match(&patterns, &names));
            }
        }
    }
    assert_eq!(met, 2 * 10, "the first fits all a, the fourth all b");
    // Exponential cost would take years; bounded cost takes milliseconds.
    assert!(begin.elapsed() < Duration::from_secs(60));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        max_global_rejects: 1_000_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_pattern_fits_what_fnmatch_fits(
        pattern in r"[ab\*\?\[\]!^\\-]{0,10}",
        text in r"[ab!^\]\\-]{0,8}",
    ) {
        prop_assume!(has_wildcard(&pattern) && !has_wildcard(&text));
        // For a set without end, C libraries contradict themselves.
        prop_assume!(!has_open_set(&pattern));
        prop_assert_eq!(meet(&pattern, &text), fnmatch(&pattern, &text));
    }

    #[test]
    fn any_names_at_all_are_compared(one in ".{0,16}", other in ".{0,16}") {
        meet(&one, &other);
    }
}

/// Returns whether some `[` begins no set.
fn has_open_set(pattern: &str) -> bool {
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '\\' => rest = rest.get(1..).unwrap_or(""),
            '[' => match end_of_set(rest) {
                Some(behind) => rest = behind,
                None => return true,
            },
            _ => {}
        }
    }
    false
}

fn end_of_set(set: &str) -> Option<&str> {
    let set = set.strip_prefix(['!', '^']).unwrap_or(set);
    let mut at = set.char_indices();
    let mut is_first = true;
    while let Some((place, character)) = at.next() {
        match character {
            ']' if !is_first => return Some(&set[place + 1..]),
            '\\' => drop(at.next()?),
            _ => {}
        }
        is_first = false;
    }
    None
}
