//! Lanes: independent paths through the host.

use core::fmt;

use isolane_wire::level::Level;

/// Path through the host: discovery, or user traffic of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Discovery announcements (RTPS 2.5 §8.5).
    Discovery,
    /// User data of a level, with its HEARTBEATs, ACKNACKs and repairs.
    Level(Level),
}

impl Lane {
    /// Number of lanes.
    pub const COUNT: usize = 9;

    /// All lanes by index.
    pub const ALL: [Lane; Lane::COUNT] = [
        Lane::Discovery,
        Lane::Level(Level::ALL[0]),
        Lane::Level(Level::ALL[1]),
        Lane::Level(Level::ALL[2]),
        Lane::Level(Level::ALL[3]),
        Lane::Level(Level::ALL[4]),
        Lane::Level(Level::ALL[5]),
        Lane::Level(Level::ALL[6]),
        Lane::Level(Level::ALL[7]),
    ];

    /// Set of all lanes.
    pub const ALL_BITS: u16 = (1 << Lane::COUNT) - 1;

    /// Index in tables and bit sets: 0 for discovery, otherwise level + 1.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Lane::Discovery => 0,
            Lane::Level(level) => level.get() as usize + 1,
        }
    }

    /// Returns the lane with an index, if any.
    #[must_use]
    pub fn from_index(index: usize) -> Option<Lane> {
        Lane::ALL.get(index).copied()
    }

    /// Bit of the lane in a set of lanes, as in [`ready_lanes`](crate::Datapath::ready_lanes).
    #[inline]
    #[must_use]
    pub const fn bit(self) -> u16 {
        1 << self.index()
    }

    /// Converts a set of levels, bit *l* for level *l*, to a set of lanes.
    #[inline]
    #[must_use]
    pub const fn of_levels(levels: u8) -> u16 {
        // Lane indices are one more than levels.
        (levels as u16) << 1
    }

    /// Level of user traffic; `None` for discovery.
    #[inline]
    #[must_use]
    pub const fn level(self) -> Option<Level> {
        match self {
            Lane::Discovery => None,
            Lane::Level(level) => Some(level),
        }
    }
}

impl From<Level> for Lane {
    fn from(level: Level) -> Lane {
        Lane::Level(level)
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lane::Discovery => f.write_str("discovery"),
            Lane::Level(level) => write!(f, "level {}", level.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_levels_are_those_of_their_lanes() {
        for level in Level::ALL {
            assert_eq!(Lane::of_levels(1 << level.get()), Lane::Level(level).bit());
        }
        let all = Level::ALL.map(|level| Lane::Level(level).bit());
        assert_eq!(Lane::of_levels(u8::MAX), all.iter().sum());
    }
}
