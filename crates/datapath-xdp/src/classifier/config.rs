//! Load options, switchable mechanisms, and the simulated arrival of a frame.

/// Load options of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassifierConfig {
    /// Writes the arrival time (CLOCK_MONOTONIC, nanoseconds) into the eight bytes before each
    /// frame handed to a lane. Reading the clock costs as much as the rest of the program.
    pub stamps: bool,
    /// Replenishes budgets by kernel timers, where the kernel has them.
    pub timers: bool,
    /// Traces each verdict for [`Classifier::judge`](super::Classifier::judge). For tests.
    pub traces: bool,
}

impl Default for ClassifierConfig {
    fn default() -> ClassifierConfig {
        ClassifierConfig {
            stamps: false,
            timers: true,
            traces: false,
        }
    }
}

/// Mechanisms that can be switched off to measure their effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enforcement {
    /// Drops frames at a lane's low-water mark. If false, they are only counted
    /// ([`Counts::touched_fill`](super::Counts::touched_fill)).
    pub recycling: bool,
    /// Keeps the interface's reserve for critical flows. If false, use by other flows is only
    /// counted ([`Counts::touched_reserve`](super::Counts::touched_reserve)).
    pub reserve: bool,
}

impl Default for Enforcement {
    fn default() -> Enforcement {
        Enforcement {
            recycling: true,
            reserve: true,
        }
    }
}

/// Simulated arrival point of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Interface index in this network namespace.
    pub interface_index: u32,
    /// Receive queue of the interface.
    pub queue: u32,
}
