//! What leaves: frames of writers, steps of the engine's work, and the good-bye.

use isolane_datapath::{Class, Datapath, Frame, Lane, clock::monotonic_now, limits::MAX_MESSAGES};
use isolane_engine::{Announces, Destinations, Engine, Priority, WriterId};
use isolane_wire::{locator::Locator, time::Instant};

use crate::{
    limits::FRAME_RETRY,
    state::{Starved, State},
};

impl State {
    /// Sends a frame to each of these places. Frames nobody listens to go home at once.
    pub(crate) fn send(&mut self, lane: Lane, frame: Frame, to: Addresses<'_>) {
        self.collect(lane, frame, to);
        self.flush(lane);
    }

    /// Puts a frame into the burst of a lane, which is sent first if it has no room.
    // Always: a frame that is written moves into the burst at once.
    #[inline(always)]
    fn collect(&mut self, lane: Lane, frame: Frame, to: Addresses<'_>) {
        let places = to.of(&self.engine);
        if places.is_empty() {
            return;
        }
        let burst = &mut self.transmit;
        if !burst.fits(places.len()) {
            self.transport.send_burst(lane, burst);
        }
        debug_assert!(
            burst.fits(places.len()),
            "every list of places fits a burst"
        );
        burst.push_to(frame, places);
    }

    #[inline]
    fn flush(&mut self, lane: Lane) {
        if !self.transmit.is_empty() {
            self.transport.send_burst(lane, &mut self.transmit);
        }
    }

    /// Does at most `limit` steps of the engine's work at a priority, whose datagrams leave together.
    /// Returns how many: 0 if there was none, or no frame for it; then it is tried again a little
    /// later.
    pub(crate) fn work(&mut self, now: Instant, priority: Priority, limit: usize) -> usize {
        let mut steps = 0;
        let mut burst = None;
        let mut last_kind = None;
        while steps < limit {
            let Some(lane) = self.next_lane(priority) else {
                break;
            };
            // What a call of the datapath sends is of one lane.
            if *burst.get_or_insert(lane) != lane {
                break;
            }
            let class = self.class_for(lane, self.engine.next_bytes(priority));
            let Some(mut frame) = self.take_frame(class) else {
                if steps == 0 {
                    self.starve(now, priority);
                }
                break;
            };
            let head = frame.head_room();
            let buffer = &mut frame.buffer_mut()[head..];
            let work = match self.executor.runs_by_share() {
                true => self.engine.next_work_between(now, priority, buffer),
                false => self.engine.next_work(now, priority, buffer),
            };
            let Some(work) = work else { break };
            if work.bytes > 0 {
                frame.set_range(head..head + work.bytes);
                let subset;
                let addresses = match &work.to {
                    Destinations::Writer(writer) => Addresses::Writer(*writer),
                    Destinations::Announce => Addresses::Announce,
                    Destinations::Subset(writer, places) => {
                        subset = self.engine.some_destinations(*writer, *places);
                        Addresses::Listed(&subset)
                    }
                    Destinations::Listed(list) => Addresses::Listed(list),
                };
                self.collect(lane, frame, addresses);
            }
            self.work_observed[usize::from(priority.get())][work.kind.index()].steps += 1;
            last_kind = Some(work.kind);
            steps += 1;
        }
        if let Some(lane) = burst {
            self.flush(lane);
        }
        if let Some(kind) = last_kind {
            let observed = &mut self.work_observed[usize::from(priority.get())][kind.index()];
            let took = monotonic_now().as_nanos().saturating_sub(now.as_nanos());
            observed.execution_max_ns = observed.execution_max_ns.max(took);
        }
        steps
    }

    /// The lane of what is to be done next at a priority.
    fn next_lane(&self, priority: Priority) -> Option<Lane> {
        let level = self.engine.next_level(priority)?;
        Some(level.map_or(Lane::Discovery, |level| self.lanes.lane(level)))
    }

    /// Work of this priority found no frame.
    fn starve(&mut self, now: Instant, priority: Priority) {
        self.no_frame += 1;
        let starved = self.starved.get_or_insert(Starved {
            priorities: 0,
            until: now + FRAME_RETRY,
        });
        starved.priorities |= 1 << priority.get();
    }

    /// The last thing: what is filed for peers (the ends of endpoints) goes out, within a bound,
    /// then the good-bye.
    pub(crate) fn say_farewell(&mut self) {
        if !self.engine.is_enabled() || self.engine.announces() == Announces::Nothing {
            // Nobody has heard of it, or is to hear.
            return;
        }
        let now = monotonic_now();
        for _ in 0..crate::limits::ACTIVATIONS_PER_POLL {
            let ready = self.engine.ready();
            let most_urgent = Priority::descending().find(|p| ready & (1 << p.get()) != 0);
            if most_urgent.is_none_or(|priority| self.work(now, priority, 1) == 0) {
                break;
            }
        }
        let Some(mut frame) = self.take_frame(Class::Transmit(Lane::Discovery)) else {
            // Peers find out when the lease is over.
            return;
        };
        let head = frame.head_room();
        let bytes = self.engine.farewell(&mut frame.buffer_mut()[head..]);
        frame.set_range(head..head + bytes);
        let everybody: heapless::Vec<Locator, MAX_MESSAGES> =
            self.engine.farewell_to().take(MAX_MESSAGES).collect();
        self.send(Lane::Discovery, frame, Addresses::Listed(&everybody));
    }
}

/// Where a frame goes.
pub(crate) enum Addresses<'a> {
    Writer(WriterId),
    Announce,
    Listed(&'a [Locator]),
}

impl<'a> Addresses<'a> {
    fn of<'b>(&'b self, engine: &'b Engine) -> &'b [Locator]
    where
        'a: 'b,
    {
        match self {
            Self::Writer(writer) => engine.destinations(*writer),
            Self::Announce => engine.announce_to(),
            Self::Listed(list) => list,
        }
    }
}
