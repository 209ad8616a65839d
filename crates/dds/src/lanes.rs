//! Lane of each level.

use isolane_datapath::Lane;
use isolane_executor::Order;
use isolane_wire::level::Level;

/// Which lane a level's samples take, and so which sockets, port, frames and job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// Each level has its own.
    PerLevel,
    /// All levels share one: the baseline.
    Shared,
}

impl Lanes {
    /// The one lane of all levels. The lowest, so that nothing on the way prefers its datagrams.
    const SHARED: Lane = Lane::Level(Level::ALL[0]);

    /// What belongs to an order of jobs: where they run as they became ready, samples of all
    /// levels come through one socket as they arrived.
    pub(crate) fn of(order: Order) -> Self {
        match order {
            Order::Priority => Self::PerLevel,
            Order::Fifo => Self::Shared,
        }
    }

    /// The lane of a level.
    pub(crate) fn lane(self, level: Level) -> Lane {
        match self {
            Self::PerLevel => Lane::Level(level),
            Self::Shared => Self::SHARED,
        }
    }
}
