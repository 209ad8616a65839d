//! How frames of a class are handed out: worked out once from the configuration, since each frame that
//! is taken asks.

use super::{Class, PoolConfig};

/// Of one class.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    head_room: u32,
    room: u32,
}

impl Shape {
    /// Bytes kept free in front of what is filled in.
    #[inline]
    pub(super) const fn head_room(self) -> usize {
        self.head_room as usize
    }

    /// Bytes behind them.
    #[inline]
    pub(super) const fn room(self) -> usize {
        self.room as usize
    }
}

/// Of all classes.
pub(super) struct Shapes([Shape; Class::COUNT]);

impl Shapes {
    pub(super) fn of(config: &PoolConfig) -> Shapes {
        let mut shapes = [Shape {
            head_room: 0,
            room: 0,
        }; Class::COUNT];
        for class in Class::all() {
            let head_room = config.head_room_of(class);
            // Both are at most a frame's bytes.
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
