//! Injected exhaustion of a pool, for the fault datapath.

use std::cell::Cell;

use super::Class;
use crate::chance::Generator;
use crate::lane::Lane;

/// Configured failures of frame requests, and their counts. When off, a request costs one more comparison.
pub(super) struct Failing {
    per_million: Cell<u32>,
    lanes: Cell<u16>,
    generator: Cell<Generator>,
    failed: [Cell<u64>; Lane::COUNT],
}

impl Failing {
    pub(super) fn off() -> Failing {
        Failing {
            per_million: Cell::new(0),
            lanes: Cell::new(0),
            generator: Cell::new(Generator::new(0, 0)),
            failed: std::array::from_fn(|_| Cell::new(0)),
        }
    }

    /// Fails transmit frame requests of these lanes with a probability of `per_million` in a million.
    pub(super) fn set(&self, per_million: u32, lanes: u16, generator: Generator) {
        self.lanes.set(lanes);
        self.generator.set(generator);
        self.per_million.set(per_million);
    }

    pub(super) fn failed(&self, lane: Lane) -> u64 {
        self.failed[lane.index()].get()
    }

    #[inline]
    pub(super) fn fails(&self, class: Class) -> bool {
        self.per_million.get() != 0 && self.draw(class)
    }

    #[cold]
    fn draw(&self, class: Class) -> bool {
        let Class::Transmit(lane) = class else {
            return false;
        };
        if self.lanes.get() & lane.bit() == 0 {
            return false;
        }
        let mut generator = self.generator.get();
        let fails = generator.happens(self.per_million.get());
        self.generator.set(generator);
        let failed = &self.failed[lane.index()];
        failed.set(failed.get() + u64::from(fails));
        fails
    }
}
