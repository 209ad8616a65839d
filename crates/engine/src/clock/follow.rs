//! Changes of an endpoint's timed policies, at creation and at run time (DDS 1.4 §2.2.3, *Changeable*). Counts and
//! monitored instances are kept.
//!
//! The slots for samples held back by TIME_BASED_FILTER are allocated when a reader is created. A reader that gets its
//! first filter later has none: it filters without delivering the last value.

use alloc::boxed::Box;

use isolane_wire::time::Instant;

use super::{Purges, ReaderClock, WriterClock, deadline::Deadline};
use crate::engine::Engine;

/// Applies a new period to a deadline.
fn follow(before: Option<Deadline>, next: Option<Deadline>) -> Option<Deadline> {
    match (before, next) {
        (Some(before), next) => Some(before.followed_by(next)),
        (None, next) => next,
    }
}

impl WriterClock {
    fn followed_by(self, next: Self) -> Self {
        Self {
            lifespan: next.lifespan,
            next_expiry: next.next_expiry,
            deadline: follow(self.deadline, next.deadline),
            ..self
        }
    }
}

impl ReaderClock {
    fn followed_by(self, next: Self) -> Self {
        let filter = match (self.filter, next.filter) {
            (Some(before), next) => Some(before.followed_by(next)),
            (None, next) => next,
        };
        Self {
            filter,
            deadline: follow(self.deadline, next.deadline),
            purges: next.purges,
            ..self
        }
    }
}

impl Engine {
    /// Applies a writer's current policies to its clock and arms it.
    pub(crate) fn set_writer_clock(&mut self, now: Instant, index: u16) {
        let seed = self.config.seed;
        let Some(writer) = self.writers.get_mut(index) else {
            return;
        };
        let keyed = writer.guid.entity.is_keyed();
        let next = WriterClock::of(&writer.data.qos, keyed, seed, now);
        writer.clock = match writer.clock.take() {
            Some(before) => Some(Box::new(before.followed_by(next))),
            None => next.is_any().then(|| Box::new(next)),
        };
        self.wind_writer(now, index);
        self.wind_messages(now, index);
    }

    /// Applies a reader's current policies to its clock and arms it. Its matched writers are checked afterwards.
    pub(crate) fn set_reader_clock(&mut self, now: Instant, index: u16) {
        let seed = self.config.seed;
        let Some(reader) = self.readers.get_mut(index) else {
            return;
        };
        let lifecycle = &reader.data.qos.reader_data_lifecycle;
        let before = reader.clock.as_ref().is_some_and(|clock| clock.purges);
        if let Some(cache) = &mut reader.cache
            && (before || Purges::is_asked_for(lifecycle))
        {
            cache.instances.set_purges(lifecycle, seed, now);
        }
        let next = ReaderClock::of(&reader.data.qos, reader.keyed, seed);
        reader.clock = match reader.clock.take() {
            Some(before) => Some(Box::new(before.followed_by(next))),
            None => next.is_any().then(|| Box::new(next)),
        };
        self.wind_reader(index);
    }
}
