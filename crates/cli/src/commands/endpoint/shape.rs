//! `ShapeType`, the common demonstration type of DDS implementations, and the motion of a shape.

use isolane::TopicType;
use isolane::types::BoundedString;

/// Coloured shape on a small plane. Its key is the colour.
///
/// Writers send XCDR1 unless `--representation xcdr2` is given. In XCDR1, final and appendable types have the same
/// bytes. Other implementations expect these bytes: Cyclone DDS makes an IDL type without annotations final, and Fast
/// DDS 2.9 accepts only XCDR1. In XCDR2, the bytes are those of an appendable type.
///
/// `additional_payload_size` has no bound of its own, but `--max-bytes` bounds the sample.
#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(appendable)]
pub(crate) struct ShapeType {
    #[topic(key)]
    pub(crate) color: BoundedString<128>,
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) shapesize: i32,
    pub(crate) additional_payload_size: Vec<u8>,
}

/// Width and height of the plane.
const PLANE: [i32; 2] = [240, 270];

/// Position of a shape after `n` samples. The shape moves right and down by one, and starts again at the edge.
pub(crate) fn position(n: u64) -> [i32; 2] {
    let along = |length: i32| (n % length as u64) as i32;
    [along(PLANE[0]), along(PLANE[1])]
}

/// Line of text for a sample, in the format of the shapes demonstrations of other DDS implementations.
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

#[cfg(test)]
mod tests {
    use isolane_wire::cdr::{Representation, read_payload, write_payload};

    use super::*;

    /// `ShapeType` as most programs declare it: without `@appendable`, and so final in isolane.
    #[derive(TopicType, Debug, Clone, PartialEq, Default)]
    struct FinalShape {
        #[topic(key)]
        color: BoundedString<128>,
        x: i32,
        y: i32,
        shapesize: i32,
        #[topic(bound = 65_000)]
        additional_payload_size: Vec<u8>,
    }

    /// XCDR1 bytes are the same for final and appendable types; XCDR2 bytes differ. A reader takes all these forms.
    #[test]
    fn xcdr1_is_the_same_for_final_and_appendable_shapes_and_each_form_is_read() {
        let shape = ShapeType {
            color: "BLUE".try_into().expect("it is short"),
            x: 7,
            y: 9,
            shapesize: 20,
            additional_payload_size: vec![1, 2],
        };
        let of_others = FinalShape {
            color: shape.color.clone(),
            x: 7,
            y: 9,
            shapesize: 20,
            additional_payload_size: vec![1, 2],
        };
        let mut bytes = [[0; 64]; 4];
        let [own, plain, own_2, plain_2] = &mut bytes;
        let (one, two) = (Representation::Xcdr1, Representation::Xcdr2);
        let lengths = [
            write_payload(&shape, one, own),
            write_payload(&of_others, one, plain),
            write_payload(&shape, two, own_2),
            write_payload(&of_others, two, plain_2),
        ];
        assert_eq!((own[..2].to_vec(), &own), (vec![0, 1], &plain), "CDR_LE");
        assert_eq!(own_2[..2], [0, 9], "D_CDR2_LE");
        for (bytes, length) in bytes.iter().zip(lengths) {
            let bytes = &bytes[..length.expect("it fits")];
            assert_eq!(read_payload::<ShapeType>(bytes), Ok(shape.clone()));
        }
    }
}
