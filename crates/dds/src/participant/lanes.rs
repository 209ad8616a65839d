//! Lane of each level.

use isolane_datapath::Lane;
use isolane_wire::level::Level;

/// Lane of each level's samples: their sockets, port, frames and receive job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes {
    levels: [Level; Level::COUNT],
    is_per_level: bool,
}

impl Lanes {
    /// Evaluates [`Builder::level_mapping`](crate::Builder::level_mapping).
    pub(crate) fn new(level_mapping: fn(Level) -> Level) -> Self {
        let levels = Level::ALL.map(level_mapping);
        Self {
            levels,
            is_per_level: levels == Level::ALL,
        }
    }

    /// Returns the lane of a level.
    pub(crate) fn lane(self, level: Level) -> Lane {
        Lane::Level(self.levels[usize::from(level.get())])
    }

    /// Whether each level has its own lane.
    #[inline]
    pub(crate) fn is_per_level(self) -> bool {
        self.is_per_level
    }
}
