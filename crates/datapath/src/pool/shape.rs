//! Head room and room of each class's frames, precomputed because every request needs them.

use super::{Class, PoolConfig};

/// Layout of the frames of a class.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    head_room: u32,
    room: u32,
}

impl Shape {
    /// Bytes reserved at the front.
    #[inline]
    pub(super) const fn head_room(self) -> usize {
        self.head_room as usize
    }

    /// Bytes after the head room.
    #[inline]
    pub(super) const fn room(self) -> usize {
        self.room as usize
    }
}

/// Layouts of all classes.
pub(super) struct Shapes([Shape; Class::COUNT]);

impl Shapes {
    pub(super) fn of(config: &PoolConfig) -> Shapes {
        let mut shapes = [Shape {
            head_room: 0,
            room: 0,
        }; Class::COUNT];
        for class in Class::all() {
            let head_room = config.head_room_of(class);
            // Both are at most the size of a frame.
            shapes[class.index()] = Shape {
                head_room: head_room as u32,
                room: (config.bytes_of(class) - head_room) as u32,
            };
        }
        Shapes(shapes)
    }

    #[inline]
    pub(super) const fn get(&self, class: Class) -> Shape {
        self.0[class.index()]
    }
}
