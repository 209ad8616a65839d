//! Priorities of middleware work.
//!
//! A topic of level *l* has two: samples run at 2·l + 1, their reliability protocol (HEARTBEAT, ACKNACK, repair,
//! history) at 2·l. So a repair delays samples of the same or a higher level by at most the activation already running.

use isolane_wire::level::Level;

/// Priority of a job, 0 to 15; 15 is most urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// Number of priorities.
    pub const COUNT: usize = 16;
    /// Most urgent priority.
    pub const HIGHEST: Self = Self(Self::COUNT as u8 - 1);
    /// Priority of participant and endpoint discovery.
    pub const DISCOVERY: Self = Self(1);
    /// Priority of statistics and other housekeeping.
    pub const STATISTICS: Self = Self(0);

    /// Creates a priority from its number; `None` above 15.
    #[must_use]
    pub const fn new(value: u8) -> Option<Self> {
        if (value as usize) < Self::COUNT {
            Some(Self(value))
        } else {
            None
        }
    }

    /// Returns the priority of receiving, sending and delivering samples of this level.
    #[must_use]
    pub const fn of_data(level: Level) -> Self {
        Self(2 * level.get() + 1)
    }

    /// Returns the priority of HEARTBEAT, ACKNACK, repair and history of this level.
    #[must_use]
    pub const fn of_protocol(level: Level) -> Self {
        Self(2 * level.get())
    }

    /// Returns the number, 0 to 15.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Iterates over all priorities, most urgent first.
    pub fn descending() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).rev().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_level_come_before_its_repairs_and_after_all_of_the_level_above() {
        for level in Level::ALL {
            assert!(Priority::of_data(level) > Priority::of_protocol(level));
            if let Some(above) = Level::new(level.get() + 1) {
                assert!(Priority::of_protocol(above) > Priority::of_data(level));
            }
        }
    }
}
