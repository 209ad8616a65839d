//! `ShapeType`, the type with which every DDS demonstrates itself, and how a shape moves.

use isolane::TopicType;
use isolane::types::BoundedString;

/// A coloured shape somewhere on a small plane. The colour is the key.
///
/// `additional_payload_size` has no bound in the public type; here it has one, so that a reader
/// knows how much memory to take. A longer one is a counted rejection.
#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(appendable)]
pub(crate) struct ShapeType {
    #[topic(key)]
    pub(crate) color: BoundedString<128>,
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) shapesize: i32,
    #[topic(bound = 65_000)]
    pub(crate) additional_payload_size: Vec<u8>,
}

/// Width and height of the plane.
const PLANE: [i32; 2] = [240, 270];

/// The `n`th position of a shape: it goes right and down, and comes in again on the other side. `x`
/// counts the samples as long as there are no more than the plane is wide.
pub(crate) fn position(n: u64) -> [i32; 2] {
    let along = |length: i32| (n % length as u64) as i32;
    [along(PLANE[0]), along(PLANE[1])]
}

/// A sample as shapes programs print it.
pub(crate) fn line(topic: &str, shape: &ShapeType) -> String {
    let ShapeType {
        color,
        x,
        y,
        shapesize,
        additional_payload_size,
    } = shape;
    let payload = match additional_payload_size.last() {
        Some(last) => format!(" {{{last}}}"),
        None => String::new(),
    };
    format!("{topic:<10} {color:<10} {x:03} {y:03} [{shapesize}]{payload}")
}
