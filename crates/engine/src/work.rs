//! Queues of filed work, by priority.
//!
//! The engine answers nothing while it reads a datagram: it files the work here, and the executor takes it when nothing
//! more urgent is ready. Each subject files each kind of work at most once, which it records itself. So the number of
//! subjects bounds the queues; their room is reserved when a subject is added, at the priorities in use.

use alloc::collections::VecDeque;
use core::array;

use heapless::Vec as BoundedVec;
use isolane_wire::{level::Level, locator::Locator};

use crate::{ids::WriterId, limits::MAX_DESTINATIONS, priority::Priority};

/// Kind of work done by one step of [`Engine::next_work`](crate::Engine::next_work).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkKind {
    /// Announcement of this participant (SPDP).
    Announce,
    /// Processing of one announcement of a peer (SPDP or SEDP), with the matches that follow.
    Discovery,
    /// First transmission of a reliable writer's sample.
    Data,
    /// First transmission of a fragment of a sample too long for a datagram.
    Fragment,
    /// HEARTBEAT of a writer.
    Heartbeat,
    /// Time-based policies of a writer: LIFESPAN, DEADLINE, LIVELINESS. Nothing is sent.
    WriterClock,
    /// Time-based policies of a reader: the same, and TIME_BASED_FILTER. Nothing is sent.
    ReaderClock,
    /// ACKNACK of a reader.
    AckNack,
    /// Requested sample, or a GAP in its place.
    Repair,
    /// Historical sample for a late joiner.
    History,
}

impl WorkKind {
    /// All kinds, by index.
    pub const ALL: [Self; 10] = [
        Self::Announce,
        Self::Discovery,
        Self::Data,
        Self::Fragment,
        Self::Heartbeat,
        Self::WriterClock,
        Self::ReaderClock,
        Self::AckNack,
        Self::Repair,
        Self::History,
    ];

    /// Returns the index in [`Self::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns a short name for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Announce => "announce",
            Self::Discovery => "discovery",
            Self::Data => "data",
            Self::Fragment => "fragment",
            Self::Heartbeat => "heartbeat",
            Self::WriterClock => "writer clock",
            Self::ReaderClock => "reader clock",
            Self::AckNack => "acknack",
            Self::Repair => "repair",
            Self::History => "history",
        }
    }
}

/// Destination of a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destinations {
    /// All addresses of a writer's matched readers, [`Engine::destinations`](crate::Engine::destinations).
    Writer(WriterId),
    /// Destinations of participant announcements, [`Engine::announce_to`](crate::Engine::announce_to).
    Announce,
    /// Some addresses of a writer, [`Engine::some_destinations`](crate::Engine::some_destinations).
    Subset(WriterId, u64),
    /// Listed addresses.
    Listed(BoundedVec<Locator, 4>),
}

const _: () = assert!(
    MAX_DESTINATIONS >= 4,
    "a listed destination always fits a writer's list"
);

/// Result of one bounded step: a datagram to be sent, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Kind of the work.
    pub kind: WorkKind,
    /// Level of its topic; `None` for discovery.
    pub level: Option<Level>,
    /// Length of the datagram in the buffer; 0 if there is nothing to send.
    pub bytes: usize,
    /// Destination of the datagram.
    pub to: Destinations,
}

/// Filed work: kind, and table index of its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filed {
    pub(crate) kind: WorkKind,
    pub(crate) subject: u16,
}

/// Work queues, one for each priority.
#[derive(Debug)]
pub(crate) struct Board {
    queues: [VecDeque<Filed>; Priority::COUNT],
    ready: u16,
    room: usize,
    /// Set of priorities in use, as bit *p* for priority *p*.
    open: u16,
    /// Rate-limited work of discovery.
    limited: VecDeque<Filed>,
    /// The rate limit of discovery is used up.
    is_held: bool,
    /// Round robin between the two queues of discovery.
    is_turn_of_limited: bool,
}

impl Board {
    /// Creates the queues, with the room of discovery.
    pub(crate) fn new() -> Self {
        let mut board = Self {
            queues: array::from_fn(|_| VecDeque::new()),
            ready: 0,
            room: 0,
            open: 0,
            limited: VecDeque::new(),
            is_held: false,
            is_turn_of_limited: false,
        };
        // Discovery work delayed for too long runs at the highest priority.
        for priority in [Priority::DISCOVERY, Priority::HIGHEST] {
            board.open(priority);
        }
        board
    }

    /// Reserves `room` items at every priority in use. The number of subjects times their kinds always suffices.
    pub(crate) fn reserve(&mut self, room: usize) {
        if room > self.room {
            self.room = room.next_power_of_two();
            for priority in 0..Priority::COUNT {
                self.take_room(priority);
            }
            self.limited.reserve(self.room - self.limited.len());
        }
    }

    /// Reserves room at a priority that an endpoint begins to use.
    pub(crate) fn open(&mut self, priority: Priority) {
        self.open |= 1 << priority.get();
        self.take_room(priority.get().into());
    }

    fn take_room(&mut self, priority: usize) {
        let queue = &mut self.queues[priority];
        if self.open >> priority & 1 == 1 {
            queue.reserve(self.room.saturating_sub(queue.len()));
        }
    }

    /// Returns the set of priorities with work, as bit *p* for priority *p*.
    #[inline]
    pub(crate) fn ready(&self) -> u16 {
        self.ready
    }

    /// Files work at the end of the queue of `priority`. The caller ensures that it is not filed already.
    pub(crate) fn file(&mut self, priority: Priority, what: Filed) {
        let queue = &mut self.queues[usize::from(priority.get())];
        assert!(
            queue.len() < queue.capacity(),
            "a subject files each kind of work once, at a priority that is in use"
        );
        queue.push_back(what);
        self.ready |= 1 << priority.get();
    }

    pub(crate) fn file_limited(&mut self, what: Filed) {
        self.limited.push_back(what);
        self.refresh_discovery();
    }

    /// Holds or releases the rate-limited work; returns whether there is any.
    pub(crate) fn hold_limited(&mut self, is_held: bool) -> bool {
        self.is_held = is_held;
        self.refresh_discovery();
        !self.limited.is_empty()
    }

    /// Returns whether the rate-limited queue is next at a priority.
    fn takes_limited(&self, priority: Priority) -> bool {
        priority == Priority::DISCOVERY
            && !self.is_held
            && !self.limited.is_empty()
            && (self.is_turn_of_limited || self.queues[usize::from(priority.get())].is_empty())
    }

    fn refresh_discovery(&mut self) {
        let priority = Priority::DISCOVERY.get();
        let has_limited = !self.is_held && !self.limited.is_empty();
        let has_work = has_limited || !self.queues[usize::from(priority)].is_empty();
        self.ready = self.ready & !(1 << priority) | u16::from(has_work) << priority;
    }

    /// Returns the oldest work at `priority` without taking it.
    pub(crate) fn peek(&self, priority: Priority) -> Option<Filed> {
        match self.takes_limited(priority) {
            true => self.limited.front().copied(),
            false => self.queues[usize::from(priority.get())].front().copied(),
        }
    }

    /// Takes the oldest work at `priority`.
    pub(crate) fn take(&mut self, priority: Priority) -> Option<Filed> {
        if priority == Priority::DISCOVERY {
            return self.take_at_discovery();
        }
        let queue = &mut self.queues[usize::from(priority.get())];
        let what = queue.pop_front();
        if queue.is_empty() {
            self.ready &= !(1 << priority.get());
        }
        what
    }

    /// Takes the oldest work of discovery, alternating between both queues.
    fn take_at_discovery(&mut self) -> Option<Filed> {
        let is_limited = self.takes_limited(Priority::DISCOVERY);
        self.is_turn_of_limited = !is_limited;
        let what = match is_limited {
            true => self.limited.pop_front(),
            false => self.queues[usize::from(Priority::DISCOVERY.get())].pop_front(),
        };
        self.refresh_discovery();
        what
    }

    /// Removes all work of these kinds for a subject that is deleted.
    pub(crate) fn withdraw(&mut self, kinds: &[WorkKind], subject: u16) {
        for (priority, queue) in self.queues.iter_mut().enumerate() {
            queue.retain(|filed| filed.subject != subject || !kinds.contains(&filed.kind));
            if queue.is_empty() {
                self.ready &= !(1 << priority);
            }
        }
        self.limited
            .retain(|filed| filed.subject != subject || !kinds.contains(&filed.kind));
        self.refresh_discovery();
    }
}
