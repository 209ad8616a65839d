//! The priorities of middleware work.
//!
//! A topic of level *l* has two: its samples run at 2·l + 1, what keeps them reliable (heartbeat,
//! ACKNACK, repair, history) at 2·l, so that the repair of one level never delays samples of the
//! same or a higher level by more than the activation already running.

use isolane_wire::level::Level;

/// The priority of a job, 0 to 15; 15 is most urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// How many priorities there are.
    pub const COUNT: usize = 16;
    /// The most urgent.
    pub const HIGHEST: Self = Self(Self::COUNT as u8 - 1);
    /// Discovery of participants and endpoints.
    pub const DISCOVERY: Self = Self(1);
    /// Statistics and other housekeeping.
    pub const STATISTICS: Self = Self(0);

    /// The priority with this number, if it is one.
    #[must_use]
    pub const fn new(value: u8) -> Option<Self> {
        if (value as usize) < Self::COUNT {
            Some(Self(value))
        } else {
            None
        }
    }

    /// Receiving, sending and delivering samples of this level.
    #[must_use]
    pub const fn of_data(level: Level) -> Self {
        Self(2 * level.get() + 1)
    }

    /// Heartbeats, ACKNACKs, repairs and history of this level.
    #[must_use]
    pub const fn of_protocol(level: Level) -> Self {
        Self(2 * level.get())
    }

    /// The number, 0 to 15.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// All priorities, most urgent first.
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
