//! The ways through a host that do not share anything.

use core::fmt;

use isolane_wire::level::Level;

/// One way through the host: discovery, or a level's user traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Participants and endpoints announce themselves (RTPS 2.5 §8.5).
    Discovery,
    /// User data of one level, and the heartbeats, ACKNACKs and repairs that belong to it.
    Level(Level),
}

impl Lane {
    /// How many lanes there are.
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

    /// 0 for discovery, level + 1 otherwise: for tables and bit sets.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Lane::Discovery => 0,
            Lane::Level(level) => level.get() as usize + 1,
        }
    }

    /// The lane of an index, if there is one.
    #[must_use]
    pub fn from_index(index: usize) -> Option<Lane> {
        Lane::ALL.get(index).copied()
    }

    /// The lane's bit in a set of lanes, as [`ready_lanes`](crate::Datapath::ready_lanes)
    /// returns it.
    #[inline]
    #[must_use]
    pub const fn bit(self) -> u16 {
        1 << self.index()
    }

    /// The bits of the lanes of levels, of which bit *l* is level *l*.
    #[inline]
    #[must_use]
    pub const fn of_levels(levels: u8) -> u16 {
        // Their indexes are one more.
        (levels as u16) << 1
    }

    /// The level of user data.
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
