//! Transmission: frames of writers, steps of the protocol's work, and the final announcement.

use isolane_datapath::{Class, Frame, Lane, clock::monotonic_now, limits::MAX_MESSAGES};
use isolane_rtps::{Announces, Destinations, LocalParticipant, Priority, WriterId};
use isolane_wire::{locator::Locator, time::Instant};

use crate::{
    limits::FRAME_RETRY,
    state::{Starved, State},
};

impl State {
    /// Sends a frame to these destinations. A frame without destinations returns to the pool at once.
    pub(crate) fn send(&mut self, lane: Lane, frame: Frame, to: Addresses<'_>) {
        if to.of(&self.protocol).len() > MAX_MESSAGES {
            self.send_in_parts(lane, frame, to);
            return;
        }
        self.collect(lane, frame, to);
        self.flush(lane);
    }

    /// Sends a frame to more destinations than a burst holds, one burst after the other.
    #[cold]
    fn send_in_parts(&mut self, lane: Lane, frame: Frame, to: Addresses<'_>) {
        let mut first = 0;
        let mut frame = Some(frame);
        while let Some(held) = frame.take() {
            let places = to.of(&self.protocol).get(first..).unwrap_or_default();
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

    /// Copies the datagram into another frame.
    fn copy(&mut self, lane: Lane, frame: &Frame) -> Option<Frame> {
        let mut copy = self.take_frame(self.class_for(lane, frame.len()))?;
        let head = copy.head_room();
        copy.buffer_mut()[head..][..frame.len()].copy_from_slice(frame);
        copy.set_range(head..head + frame.len());
        Some(copy)
    }

    /// Sends a pending datagram with more destinations than a burst holds to the next [`MAX_MESSAGES`] of them.
    /// Returns false if no frame is free for it.
    #[cold]
    fn send_rest(&mut self, priority: Priority) -> bool {
        let Some(at) = self.rests.iter().position(|rest| rest.priority == priority) else {
            return true;
        };
        let rest = self.rests.swap_remove(at);
        let places = rest.to.places(&self.protocol);
        // The list is sorted, so destinations added or removed meanwhile do not change the order of the others.
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

    /// Adds a frame to the burst of a lane, which is sent first if it has no room.
    // Inlined always, so that a written frame moves directly into the burst.
    #[inline(always)]
    fn collect(&mut self, lane: Lane, frame: Frame, to: Addresses<'_>) {
        let places = to.of(&self.protocol);
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

    /// Executes at most `limit` steps of the protocol's work at a priority, and sends their datagrams together. Returns
    /// the number of steps: 0 if there was no work, or no frame for it; that work is retried a little later.
    pub(crate) fn work(&mut self, now: Instant, priority: Priority, limit: usize) -> usize {
        let mut steps = 0;
        let mut burst = None;
        let mut last_kind = None;
        while steps < limit {
            if self.rests_ready & (1 << priority.get()) != 0 {
                // The pending datagram goes first, so that each destination gets samples in order.
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
            // One call of the datapath sends for one lane only.
            if *burst.get_or_insert(lane) != lane {
                break;
            }
            let class = self.class_for(lane, self.protocol.next_bytes(priority));
            let Some(mut frame) = self.take_frame(class) else {
                if steps == 0 {
                    self.starve(now, priority);
                }
                break;
            };
            let head = frame.head_room();
            let buffer = &mut frame.buffer_mut()[head..];
            let work = match self.executor.runs_by_share() {
                true => self.protocol.poll_transmit_between(now, priority, buffer),
                false => self.protocol.poll_transmit(now, priority, buffer),
            };
            let Some(work) = work else { break };
            if work.bytes > 0 {
                frame.set_range(head..head + work.bytes);
                let subset;
                let whole = WholeList::of(&work.to);
                if let Some(to) = whole.filter(|to| to.places(&self.protocol).len() > MAX_MESSAGES)
                {
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
                        subset = self.protocol.some_destinations(*writer, *places);
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

    /// Returns the lane of the next work at a priority.
    fn next_lane(&self, priority: Priority) -> Option<Lane> {
        let level = self.protocol.next_level(priority)?;
        Some(level.map_or(Lane::Discovery, |level| self.lanes.lane(level)))
    }

    /// Schedules a retry of work at this priority that found no frame.
    fn starve(&mut self, now: Instant, priority: Priority) {
        self.no_frame += 1;
        let starved = self.starved.get_or_insert(Starved {
            priorities: 0,
            until: now + FRAME_RETRY,
        });
        starved.priorities |= 1 << priority.get();
    }

    /// Sends the last datagrams. Remote writers unregister their instances; the queued ends of endpoints are sent, up
    /// to a bound; then peers are told that the participant is deleted.
    pub(crate) fn say_farewell(&mut self) {
        for at in 0..self.inlets.len() {
            let inlet = &self.inlets[at];
            self.unregister_instances(inlet.writer, inlet.lane());
        }
        if !self.protocol.is_enabled() || self.protocol.announces() == Announces::Nothing {
            // Peers have not received any announcement, or must not.
            return;
        }
        let now = monotonic_now();
        for _ in 0..crate::limits::ACTIVATIONS_PER_POLL {
            let ready = self.protocol.ready() | self.rests_ready;
            let most_urgent = Priority::descending().find(|p| ready & (1 << p.get()) != 0);
            if most_urgent.is_none_or(|priority| self.work(now, priority, 1) == 0) {
                break;
            }
        }
        let Some(mut frame) = self.take_frame(Class::Transmit(Lane::Discovery)) else {
            // Without a frame for it, peers notice the end when the lease expires.
            return;
        };
        let head = frame.head_room();
        let bytes = self.protocol.farewell(&mut frame.buffer_mut()[head..]);
        frame.set_range(head..head + bytes);
        let everybody: Vec<Locator> = self.protocol.farewell_to().collect();
        self.send(Lane::Discovery, frame, Addresses::Listed(&everybody));
    }
}

/// Destinations of one burst.
type Part = heapless::Vec<Locator, MAX_MESSAGES>;

/// Datagram with more destinations than a burst holds, sent to some of them so far; each step sends one burst of it.
#[derive(Debug)]
pub(crate) struct Rest {
    priority: Priority,
    lane: Lane,
    frame: Frame,
    to: WholeList,
    /// Last destination that it was sent to.
    after: Option<Locator>,
}

/// List of destinations that may be longer than a burst, sorted by address.
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

    fn places<'a>(&self, protocol: &'a LocalParticipant) -> &'a [Locator] {
        match self {
            Self::Writer(writer) => protocol.destinations(*writer),
            Self::Announce => protocol.announce_to(),
        }
    }
}

/// Destinations of a frame.
pub(crate) enum Addresses<'a> {
    Writer(WriterId),
    Announce,
    Listed(&'a [Locator]),
}

impl<'a> Addresses<'a> {
    fn of<'b>(&'b self, protocol: &'b LocalParticipant) -> &'b [Locator]
    where
        'a: 'b,
    {
        match self {
            Self::Writer(writer) => protocol.destinations(*writer),
            Self::Announce => protocol.announce_to(),
            Self::Listed(list) => list,
        }
    }
}
