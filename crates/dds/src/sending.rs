//! What leaves: frames of writers, steps of the engine's work, and the good-bye.

use isolane_datapath::{Class, Frame, Lane, clock::monotonic_now, limits::MAX_MESSAGES};
use isolane_engine::{Announces, Destinations, Engine, Priority, WriterId};
use isolane_wire::{locator::Locator, time::Instant};

use crate::{
    limits::FRAME_RETRY,
    state::{Starved, State},
};

impl State {
    /// Sends a frame to each of these places. Frames nobody listens to go home at once.
    pub(crate) fn send(&mut self, lane: Lane, frame: Frame, to: Addresses<'_>) {
        if to.of(&self.engine).len() > MAX_MESSAGES {
            self.send_in_parts(lane, frame, to);
            return;
        }
        self.collect(lane, frame, to);
        self.flush(lane);
    }

    /// Sends a frame to more places than a burst has: one burst after the other.
    #[cold]
    fn send_in_parts(&mut self, lane: Lane, frame: Frame, to: Addresses<'_>) {
        let mut first = 0;
        let mut frame = Some(frame);
        while let Some(held) = frame.take() {
            let places = to.of(&self.engine).get(first..).unwrap_or_default();
            let part: Part = places.iter().take(MAX_MESSAGES).copied().collect();
            if places.len() > MAX_MESSAGES {
                frame = self.copy(lane, &held);
                self.no_frame += u64::from(frame.is_none());
            }
            first += part.len();
            self.collect(lane, held, Addresses::Listed(&part));
            self.flush(lane);
        }
    }

    /// Another frame with the same datagram.
    fn copy(&mut self, lane: Lane, frame: &Frame) -> Option<Frame> {
        let mut copy = self.take_frame(self.class_for(lane, frame.len()))?;
        let head = copy.head_room();
        copy.buffer_mut()[head..][..frame.len()].copy_from_slice(frame);
        copy.set_range(head..head + frame.len());
        Some(copy)
    }

    /// Sends what waits of a datagram with more places than a burst has to the next [`MAX_MESSAGES`] of them. False: no
    /// frame is free for it.
    #[cold]
    fn send_rest(&mut self, priority: Priority) -> bool {
        let Some(at) = self.rests.iter().position(|rest| rest.priority == priority) else {
            return true;
        };
        let rest = self.rests.swap_remove(at);
        let places = rest.to.places(&self.engine);
        // The list is sorted: what came to it or left it since then moves no other place out of its turn.
        let first = places.partition_point(|place| rest.after.is_some_and(|after| *place <= after));
        let places = &places[first..];
        let part: Part = places.iter().take(MAX_MESSAGES).copied().collect();
        if places.len() <= MAX_MESSAGES {
            self.rests_ready &= !(1 << priority.get());
            self.collect(rest.lane, rest.frame, Addresses::Listed(&part));
            self.flush(rest.lane);
            return true;
        }
        let copy = self.copy(rest.lane, &rest.frame);
        let is_copied = copy.is_some();
        let after = match copy {
            Some(copy) => {
                self.collect(rest.lane, copy, Addresses::Listed(&part));
                self.flush(rest.lane);
                part.last().copied()
            }
            None => rest.after,
        };
        self.rests.push(Rest { after, ..rest });
        is_copied
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
            self.datapath.send_burst(lane, burst);
        }
        debug_assert!(burst.fits(places.len()), "longer lists are sent in parts");
        burst.push_to(frame, places);
    }

    #[inline]
    fn flush(&mut self, lane: Lane) {
        if !self.transmit.is_empty() {
            self.datapath.send_burst(lane, &mut self.transmit);
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
            if self.rests_ready & (1 << priority.get()) != 0 {
                // Samples keep their order at each place: what waits of the last one goes first.
                if let Some(lane) = burst.take() {
                    self.flush(lane);
                }
                if !self.send_rest(priority) {
                    self.starve(now, priority);
                    break;
                }
                steps += 1;
                continue;
            }
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
                true => self.engine.poll_transmit_between(now, priority, buffer),
                false => self.engine.poll_transmit(now, priority, buffer),
            };
            let Some(work) = work else { break };
            if work.bytes > 0 {
                frame.set_range(head..head + work.bytes);
                let subset;
                let whole = WholeList::of(&work.to);
                if let Some(to) = whole.filter(|to| to.places(&self.engine).len() > MAX_MESSAGES) {
                    self.rests_ready |= 1 << priority.get();
                    self.rests.push(Rest {
                        priority,
                        lane,
                        frame,
                        to,
                        after: None,
                    });
                    self.work_observed[usize::from(priority.get())][work.kind.index()].steps += 1;
                    last_kind = Some(work.kind);
                    continue;
                }
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
        debug_assert!(
            self.transmit.is_empty(),
            "no datagram waits for the next call, which may be of another lane"
        );
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

    /// The last thing: writers of other threads unregister their instances, what is filed for peers (the ends of
    /// endpoints) goes out, within a bound, then the good-bye.
    pub(crate) fn say_farewell(&mut self) {
        for at in 0..self.inlets.len() {
            let inlet = &self.inlets[at];
            self.unregister_instances(inlet.writer, inlet.lane());
        }
        if !self.engine.is_enabled() || self.engine.announces() == Announces::Nothing {
            // Nobody has heard of it, or is to hear.
            return;
        }
        let now = monotonic_now();
        for _ in 0..crate::limits::ACTIVATIONS_PER_POLL {
            let ready = self.engine.ready() | self.rests_ready;
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
        let everybody: Vec<Locator> = self.engine.farewell_to().collect();
        self.send(Lane::Discovery, frame, Addresses::Listed(&everybody));
    }
}

/// Places of one burst.
type Part = heapless::Vec<Locator, MAX_MESSAGES>;

/// A datagram that has more places than a burst, and was sent to some of them: one burst of it leaves in each step.
#[derive(Debug)]
pub(crate) struct Rest {
    priority: Priority,
    lane: Lane,
    frame: Frame,
    to: WholeList,
    /// The last place that it was sent to.
    after: Option<Locator>,
}

/// A list of places that may be longer than a burst, in the order of the addresses.
#[derive(Debug, Clone, Copy)]
enum WholeList {
    Writer(WriterId),
    Announce,
}

impl WholeList {
    fn of(to: &Destinations) -> Option<Self> {
        match to {
            Destinations::Writer(writer) => Some(Self::Writer(*writer)),
            Destinations::Announce => Some(Self::Announce),
            Destinations::Subset(..) | Destinations::Listed(_) => None,
        }
    }

    fn places<'a>(&self, engine: &'a Engine) -> &'a [Locator] {
        match self {
            Self::Writer(writer) => engine.destinations(*writer),
            Self::Announce => engine.announce_to(),
        }
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
