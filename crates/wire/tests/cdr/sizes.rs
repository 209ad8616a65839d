//! Tests of the maximum payload size of a type against values with all members at their bounds.

use isolane_derive::TopicType;
use isolane_wire::cdr::{
    BoundedSequence, BoundedString, Char8, Encapsulation, Encoder, TopicType,
    max_key_payload_bytes, max_payload_bytes,
};

use crate::support::{ALL_FORMS, Everything, Gear, Note, Point, ShapeType, payload};

/// Type with a value of maximum length.
trait Largest {
    fn largest() -> Self;
}

macro_rules! number {
    ($($number:ty),*) => {$(
        impl Largest for $number {
            fn largest() -> Self {
                <$number>::MAX
            }
        }
    )*};
}

number!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl Largest for bool {
    fn largest() -> Self {
        true
    }
}

impl Largest for Char8 {
    fn largest() -> Self {
        Self(0xff)
    }
}

impl Largest for Gear {
    fn largest() -> Self {
        Self::Drive
    }
}

impl<const N: usize> Largest for BoundedString<N> {
    fn largest() -> Self {
        (0..N).map(|_| 'x').collect()
    }
}

impl<T: Largest, const N: usize> Largest for BoundedSequence<T, N> {
    fn largest() -> Self {
        (0..N).map(|_| T::largest()).collect()
    }
}

impl<T: Largest, const N: usize> Largest for [T; N] {
    fn largest() -> Self {
        std::array::from_fn(|_| T::largest())
    }
}

/// Declares types, and for each member its longest value.
macro_rules! structures {
    ($($name:ident { $($member:ident $(: $value:expr)?),* })*) => {$(
        impl Largest for $name {
            fn largest() -> Self {
                Self { $($member: structures!(@value $($value)?)),* }
            }
        }
    )*};
    (@value $value:expr) => { $value };
    (@value) => { Largest::largest() };
}

#[derive(Debug, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Alternating {
    #[topic(key)]
    first: u8,
    #[topic(key)]
    second: u64,
    #[topic(key)]
    third: u8,
    fourth: f64,
    fifth: u16,
}

#[derive(Debug, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Letter {
    letter: u8,
}

#[derive(Debug, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Inner {
    #[topic(key)]
    letter: Letter,
    others: BoundedSequence<Alternating, 3>,
}

#[derive(Debug, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Middle {
    #[topic(key)]
    inner: Inner,
    pair: [Inner; 2],
}

/// Short key in five structures, each with a DHEADER.
#[derive(Debug, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Nested {
    tag: u16,
    #[topic(key)]
    middle: Middle,
}

/// Key of elements, each with a DHEADER.
#[derive(Debug, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Word {
    #[topic(key)]
    letters: BoundedSequence<Letter, 100>,
    #[topic(key)]
    rows: [BoundedSequence<Letter, 3>; 4],
    last: bool,
}

#[derive(Debug, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct Collections {
    bytes: BoundedSequence<u8, 13>,
    points: BoundedSequence<Point, 100>,
    gears: [Gear; 7],
    grid: [[u16; 3]; 5],
    names: BoundedSequence<BoundedString<2>, 50>,
    lists: BoundedSequence<BoundedSequence<f64, 3>, 9>,
    records: [Alternating; 3],
    flags: [bool; 3],
    end: f64,
}

#[derive(Debug, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct Standard {
    #[topic(key, bound = 8)]
    source: String,
    #[topic(bound = 3)]
    values: Vec<u64>,
    #[topic(bound = 4)]
    words: Vec<String>,
    #[topic(key, bound = 5)]
    notes: Vec<Note>,
}

structures! {
    Point { tag, x }
    Note { text, weight }
    ShapeType { color, x, y, shapesize, additional_payload_size }
    Everything {
        small, signed, flag, letter, half, half_signed, word, word_signed, double, double_signed, single, precise,
        gear, name, point, note, bytes, flags, numbers, gears, names, notes, lists, fixed, grid, pair, last
    }
    Alternating { first, second, third, fourth, fifth }
    Letter { letter }
    Inner { letter, others }
    Middle { inner, pair }
    Nested { tag, middle }
    Word { letters, rows, last }
    Collections { bytes, points, gears, grid, names, lists, records, flags, end }
    Standard {
        source: "x".repeat(8),
        values: vec![u64::MAX; 3],
        words: vec!["x".repeat(4); 4],
        notes: vec![Note::largest(); 5]
    }
}

/// Length of the longest value, in the representation in which it is longer, with the padding of transmission.
fn longest(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.max().map_or(0, |bytes| bytes.next_multiple_of(4))
}

/// Payload length of a value's key, in any byte order.
fn key_bytes<T: TopicType>(value: &T) -> usize {
    longest(ALL_FORMS.into_iter().map(|(representation, order)| {
        let mut body = vec![0; 64 * 1024];
        let mut encoder = Encoder::new(&mut body, representation, order);
        value.encode_key(&mut encoder).expect("fits");
        let header = Encapsulation::of(representation, T::EXTENSIBILITY, order).header(0);
        header.len() + encoder.position()
    }))
}

/// Checks that the length is within the type's maximum. The maximum is at most a quarter larger, because each element
/// of a collection counts as if it began at its largest alignment.
fn is_bounded(name: &str, longest: usize, most: Option<usize>) {
    let most = most.expect("all of it is bounded");
    assert!(longest <= most, "{name}: {longest} of {most}");
    assert!(most <= longest + longest / 4, "{name}: {longest} of {most}");
}

fn is_as_large_as_its_type_says<T: TopicType + Largest>() {
    let value = T::largest();
    let forms = ALL_FORMS.into_iter();
    let sample = longest(forms.map(|form| payload(&value, form).len()));
    is_bounded(T::TYPE_NAME, sample, max_payload_bytes::<T>());
    is_bounded(
        T::TYPE_NAME,
        key_bytes(&value),
        max_key_payload_bytes::<T>(),
    );
}

#[test]
fn the_largest_value_of_each_type_is_as_large_as_the_type_says() {
    is_as_large_as_its_type_says::<Point>();
    is_as_large_as_its_type_says::<Note>();
    is_as_large_as_its_type_says::<ShapeType>();
    is_as_large_as_its_type_says::<Everything>();
    is_as_large_as_its_type_says::<Alternating>();
    is_as_large_as_its_type_says::<Letter>();
    is_as_large_as_its_type_says::<Inner>();
    is_as_large_as_its_type_says::<Middle>();
    is_as_large_as_its_type_says::<Nested>();
    is_as_large_as_its_type_says::<Word>();
    is_as_large_as_its_type_says::<Collections>();
    is_as_large_as_its_type_says::<Standard>();
}

#[test]
fn the_bound_of_a_type_without_gaps_between_elements_is_its_largest_value() {
    #[derive(Debug, TopicType)]
    #[topic(appendable, crate = "isolane_wire::cdr")]
    struct Exact {
        point: Point,
        grid: [[u16; 3]; 5],
        points: BoundedSequence<Point, 5>,
        name: BoundedString<9>,
        bytes: BoundedSequence<u8, 11>,
        last: u64,
    }
    structures! { Exact { point, grid, points, name, bytes, last } }
    let forms = ALL_FORMS.into_iter();
    let largest = longest(forms.map(|form| payload(&Exact::largest(), form).len()));
    assert_eq!(max_payload_bytes::<Exact>(), Some(largest));
}
