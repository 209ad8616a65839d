//! Lane of each level.

use isolane_datapath::Lane;
use isolane_executor::Order;
use isolane_wire::level::Level;

/// Assignment of levels to lanes, and so to sockets, port, frames and receive job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// Each level has its own lane.
    PerLevel,
    /// All levels share one lane (baseline).
    Shared,
}

impl Lanes {
    /// Shared lane of all levels: the lowest, so that neither host nor network prefers its datagrams.
    const SHARED: Lane = Lane::Level(Level::ALL[0]);

    /// Returns the assignment for an order of jobs. With FIFO order, samples of all levels arrive through one socket.
    pub(crate) fn of(order: Order) -> Self {
        match order {
            Order::Priority => Self::PerLevel,
            Order::Fifo => Self::Shared,
        }
    }

    pub(crate) fn lane(self, level: Level) -> Lane {
        match self {
            Self::PerLevel => Lane::Level(level),
            Self::Shared => Self::SHARED,
        }
    }
}
