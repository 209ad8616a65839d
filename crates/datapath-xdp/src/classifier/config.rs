//! How a classifier is loaded, what it enforces, and where a frame is taken to arrive.

/// How the program is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassifierConfig {
    /// The time of arrival, nanoseconds of CLOCK_MONOTONIC, is written into the eight bytes in front
    /// of each frame that is handed to a lane. Reading the clock costs as much as all the rest.
    pub stamps: bool,
    /// Budgets are filled up by timers of the kernel, where it has them.
    pub timers: bool,
    /// The program leaves each verdict where [`Classifier::judge`](super::Classifier::judge) finds it:
    /// for tests.
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

/// Mechanisms that can be switched off, to see what they are good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enforcement {
    /// Frames are dropped at a lane's low-water mark; otherwise they are only counted there
    /// ([`Counts::touched_fill`](super::Counts::touched_fill)).
    pub recycling: bool,
    /// The interface's reserve is kept for critical flows; otherwise what others take of it is only
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

/// Where a frame is taken to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The interface, of this network namespace.
    pub interface_index: u32,
    /// One of its receive queues.
    pub queue: u32,
}
