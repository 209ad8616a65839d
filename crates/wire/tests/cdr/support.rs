//! Types of several tests, and payloads in any representation and byte order.

use isolane_derive::TopicType;
use isolane_wire::cdr::{
    BoundedSequence, BoundedString, ByteOrder, Char8, Encapsulation, Encoder, Representation,
    TopicType, read_payload, view_payload,
};

pub(crate) const ALL_FORMS: [(Representation, ByteOrder); 4] = [
    (Representation::Xcdr1, ByteOrder::Little),
    (Representation::Xcdr1, ByteOrder::Big),
    (Representation::Xcdr2, ByteOrder::Little),
    (Representation::Xcdr2, ByteOrder::Big),
];

/// Type of the public interoperability tests.
#[derive(Clone, Debug, Default, PartialEq, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
pub(crate) struct ShapeType {
    #[topic(key)]
    pub color: BoundedString<128>,
    pub x: i32,
    pub y: i32,
    pub shapesize: i32,
    pub additional_payload_size: BoundedSequence<u8, 256>,
}

impl ShapeType {
    pub(crate) fn new(color: &str, x: i32, y: i32, shapesize: i32) -> Self {
        Self {
            color: color.try_into().unwrap(),
            x,
            y,
            shapesize,
            additional_payload_size: BoundedSequence::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, TopicType)]
#[topic(crate = "isolane_wire::cdr")]
pub(crate) enum Gear {
    Neutral,
    Drive = 4,
    Reverse = -1,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
pub(crate) struct Point {
    pub tag: u8,
    pub x: i16,
}

#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
pub(crate) struct Note {
    pub text: BoundedString<12>,
    pub weight: u8,
}

/// Type with a member of every kind.
#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable, name = "test::Everything", crate = "isolane_wire::cdr")]
pub(crate) struct Everything {
    pub small: u8,
    pub signed: i8,
    pub flag: bool,
    pub letter: Char8,
    pub half: u16,
    pub half_signed: i16,
    #[topic(key)]
    pub word: u32,
    pub word_signed: i32,
    pub double: u64,
    pub double_signed: i64,
    pub single: f32,
    pub precise: f64,
    pub gear: Gear,
    pub name: BoundedString<20>,
    pub point: Point,
    #[topic(key)]
    pub note: Note,
    pub bytes: BoundedSequence<u8, 40>,
    pub flags: BoundedSequence<bool, 9>,
    pub numbers: BoundedSequence<f64, 9>,
    pub gears: BoundedSequence<Gear, 5>,
    pub names: BoundedSequence<BoundedString<8>, 5>,
    pub notes: BoundedSequence<Note, 5>,
    pub lists: BoundedSequence<BoundedSequence<u16, 3>, 4>,
    pub fixed: [u32; 3],
    pub grid: [[i16; 2]; 3],
    pub pair: [Note; 2],
    pub last: u8,
}

/// Payload of a sample with its encapsulation header, in any byte order.
pub(crate) fn payload<T: TopicType>(
    value: &T,
    (representation, order): (Representation, ByteOrder),
) -> Vec<u8> {
    let mut body = vec![0xaa; 64 * 1024];
    let mut encoder = Encoder::new(&mut body, representation, order);
    value.encode(&mut encoder).expect("fits");
    let header = Encapsulation::of(representation, T::EXTENSIBILITY, order).header(0);
    [&header, encoder.written()].concat()
}

/// Payload of a sample without its encapsulation header.
pub(crate) fn body<T: TopicType>(value: &T, form: (Representation, ByteOrder)) -> Vec<u8> {
    payload(value, form).split_off(4)
}

/// Reads a payload as a value and as a view, which must agree whether it is valid.
pub(crate) fn read<T: TopicType>(payload: &[u8]) -> Result<T, isolane_wire::cdr::CdrError> {
    let value = read_payload::<T>(payload);
    let view = view_payload::<T>(payload);
    assert_eq!(
        value.as_ref().err(),
        view.as_ref().err(),
        "view and decode disagree about {payload:02x?}"
    );
    value
}
