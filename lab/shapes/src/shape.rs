//! `ShapeType`, and the motion of a shape.

use isolane::TopicType;
use isolane::types::BoundedString;

/// Maximum length of the additional payload, in bytes.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 1 << 20;

/// Coloured shape on a plane of 240 x 270, with the colour as key.
#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(appendable)]
pub(crate) struct ShapeType {
    #[topic(key)]
    pub(crate) color: BoundedString<128>,
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) shapesize: i32,
    #[topic(bound = 1_048_576)]
    pub(crate) additional_payload_size: Vec<u8>,
}

const _: () = assert!(MAX_PAYLOAD_BYTES == 1_048_576);

/// Width and height of the plane.
const PLANE: [i32; 2] = [240, 270];
/// Step of a shape between two samples.
const STEP: [i32; 2] = [5, 3];

/// Position and direction of a shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Motion {
    place: [i32; 2],
    step: [i32; 2],
}

impl Motion {
    /// Creates the motion of a publisher's `nth` shape. Each shape has its own starting point.
    pub(crate) fn of(nth: u32) -> Self {
        let along = |length: i32, stride: u32| (nth.wrapping_mul(stride) % length as u32) as i32;
        Self {
            place: [along(PLANE[0], 37), along(PLANE[1], 53)],
            step: STEP,
        }
    }

    /// Moves the shape one step, and turns its direction at an edge.
    pub(crate) fn advance(&mut self) {
        for ((place, step), edge) in self.place.iter_mut().zip(&mut self.step).zip(PLANE) {
            if !(0..=edge).contains(&(*place + *step)) {
                *step = -*step;
            }
            *place += *step;
        }
    }

    pub(crate) fn place(&self) -> [i32; 2] {
        self.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_moves_with_every_sample_and_never_leaves_the_plane() {
        for nth in 0..300 {
            let mut motion = Motion::of(nth);
            for _ in 0..1_000 {
                let before = motion.place();
                motion.advance();
                let [x, y] = motion.place();
                assert!(
                    (0..=240).contains(&x) && (0..=270).contains(&y),
                    "{nth}: {x} {y}"
                );
                assert_ne!(motion.place(), before);
            }
        }
    }
}
