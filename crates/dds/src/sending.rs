//! What leaves: frames of writers, steps of the engine's work, and the good-bye.

use isolane_datapath::{Datapath, Frame, Lane, clock::monotonic_now, limits::MAX_MESSAGES};
use isolane_engine::{Destinations, Engine, Priority, WriterId};
use isolane_wire::{locator::Locator, time::Instant};

use crate::{
    limits::FRAME_RETRY,
    state::{Starved, State},
};

impl State {
    /// Sends a frame to each of these places. Frames nobody listens to go home at once.
    pub(crate) fn send(&mut self, lane: Lane, frame: Frame, to: Addresses<'_>) {
        let places = to.of(&self.engine);
        if places.is_empty() {
            return;
        }
        if self.transmit.push(frame).is_err() {
            unreachable!("the burst is emptied by every send");
        }
        for &place in places {
            let fits = self.transmit.address(place);
            debug_assert!(fits.is_ok(), "every list of places fits a burst");
        }
        self.transport.send_burst(lane, &mut self.transmit);
    }

    /// Does one step of the engine's work at a priority. False: there was none, or no frame for it;
    /// then it is tried again a little later.
    pub(crate) fn work(&mut self, now: Instant, priority: Priority) -> bool {
        let Some(level) = self.engine.next_level(priority) else {
            return false;
        };
        let lane = level.map_or(Lane::Discovery, |level| self.lanes.lane(level));
        let Some(mut frame) = self.transport.pool().take(lane) else {
            self.no_frame += 1;
            let starved = self.starved.get_or_insert(Starved {
                priorities: 0,
                until: now + FRAME_RETRY,
            });
            starved.priorities |= 1 << priority.get();
            return false;
        };
        let Some(work) = self.engine.next_work(now, priority, frame.buffer_mut()) else {
            return false;
        };
        if work.bytes > 0 {
            frame.set_range(0..work.bytes);
            let addresses = match &work.to {
                Destinations::Writer(writer) => Addresses::Writer(*writer),
                Destinations::Announce => Addresses::Announce,
                Destinations::Listed(list) => Addresses::Listed(list),
            };
            self.send(lane, frame, addresses);
        }
        let observed = &mut self.work_observed[usize::from(priority.get())][work.kind.index()];
        observed.steps += 1;
        let took = monotonic_now().as_nanos().saturating_sub(now.as_nanos());
        observed.execution_max_ns = observed.execution_max_ns.max(took);
        true
    }

    /// The last thing: what is filed for peers (the ends of endpoints) goes out, within a bound,
    /// then the good-bye.
    pub(crate) fn say_farewell(&mut self) {
        let now = monotonic_now();
        for _ in 0..crate::limits::ACTIVATIONS_PER_POLL {
            let ready = self.engine.ready();
            let most_urgent = Priority::descending().find(|p| ready & (1 << p.get()) != 0);
            if !most_urgent.is_some_and(|priority| self.work(now, priority)) {
                break;
            }
        }
        let Some(mut frame) = self.transport.pool().take(Lane::Discovery) else {
            // Peers find out when the lease is over.
            return;
        };
        let bytes = self.engine.farewell(frame.buffer_mut());
        frame.set_range(0..bytes);
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
