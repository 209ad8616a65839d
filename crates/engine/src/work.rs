//! Work that waits for its turn, filed by priority.
//!
//! The engine answers nothing while it reads a datagram: it files what is to be done, here, and
//! the executor takes it when nothing more urgent is ready. Each thing to do is filed at most
//! once (the subject remembers that it is), so the board is bounded by the number of subjects, and takes its room when
//! they are entered: at the priorities that are in use.

use alloc::collections::VecDeque;
use core::array;

use heapless::Vec as BoundedVec;
use isolane_wire::{level::Level, locator::Locator};

use crate::{ids::WriterId, limits::MAX_DESTINATIONS, priority::Priority};

/// What one step of [`Engine::next_work`](crate::Engine::next_work) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkKind {
    /// Announced this participant (SPDP).
    Announce,
    /// Took in one announcement of a peer (SPDP or SEDP) and matched what it brought.
    Discovery,
    /// First transmission of a reliable writer's sample.
    Data,
    /// First transmission of a fragment of a sample too long for a datagram.
    Fragment,
    /// HEARTBEAT of a writer.
    Heartbeat,
    /// What time has brought a writer: samples past their LIFESPAN, a DEADLINE, LIVELINESS. Nothing is sent.
    WriterClock,
    /// What time has brought a reader: the same, and what TIME_BASED_FILTER kept back. Nothing is sent.
    ReaderClock,
    /// ACKNACK of a reader.
    AckNack,
    /// A sample, or a GAP in its place, that a reader asked for.
    Repair,
    /// A sample of the history for a reader that joined late.
    History,
}

impl WorkKind {
    /// Every kind, in the order of its number.
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

    /// The kind's place in [`Self::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// A word for tables.
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

/// Where a datagram goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destinations {
    /// The addresses of a writer's matched readers,
    /// [`Engine::destinations`](crate::Engine::destinations).
    Writer(WriterId),
    /// Where participants are announced, [`Engine::announce_to`](crate::Engine::announce_to).
    Announce,
    /// Some of those of a writer, [`Engine::some_destinations`](crate::Engine::some_destinations).
    Subset(WriterId, u64),
    /// These.
    Listed(BoundedVec<Locator, 4>),
}

const _: () = assert!(
    MAX_DESTINATIONS >= 4,
    "a listed destination always fits a writer's list"
);

/// One bounded step that was done; what is left of it is to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// What it was.
    pub kind: WorkKind,
    /// The level of the topic it belongs to; `None` for discovery.
    pub level: Option<Level>,
    /// Bytes of the datagram now in the buffer; 0: there is nothing to send.
    pub bytes: usize,
    /// Where that datagram goes.
    pub to: Destinations,
}

/// Something filed: the kind, and the table index of its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filed {
    pub(crate) kind: WorkKind,
    pub(crate) subject: u16,
}

/// The queues, one a priority.
#[derive(Debug)]
pub(crate) struct Board {
    queues: [VecDeque<Filed>; Priority::COUNT],
    ready: u16,
    room: usize,
    /// Bit *p* is set where priority *p* is in use.
    open: u16,
    /// What of discovery's work sends, and is limited in rate.
    limited: VecDeque<Filed>,
    /// That waits: discovery has sent what it may.
    is_held: bool,
    /// Of discovery's two queues this one is next, where both have work.
    is_turn_of_limited: bool,
}

impl Board {
    /// A board with room for discovery's work.
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
        // What discovery has kept waiting for too long goes first.
        for priority in [Priority::DISCOVERY, Priority::HIGHEST] {
            board.open(priority);
        }
        board
    }

    /// Takes room for `room` things to do at every priority in use. The sum of all subjects times
    /// their kinds is always enough.
    pub(crate) fn reserve(&mut self, room: usize) {
        if room > self.room {
            self.room = room.next_power_of_two();
            for priority in 0..Priority::COUNT {
                self.take_room(priority);
            }
            self.limited.reserve(self.room - self.limited.len());
        }
    }

    /// Takes room for what is to be done at a priority, which an endpoint uses from now on.
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

    /// Bit *p* is set where priority *p* has work.
    #[inline]
    pub(crate) fn ready(&self) -> u16 {
        self.ready
    }

    /// Files `what` behind what waits at `priority`. The caller has made sure that it is not
    /// filed already.
    pub(crate) fn file(&mut self, priority: Priority, what: Filed) {
        let queue = &mut self.queues[usize::from(priority.get())];
        assert!(
            queue.len() < queue.capacity(),
            "a subject files each kind of work once, at a priority that is in use"
        );
        queue.push_back(what);
        self.ready |= 1 << priority.get();
    }

    /// Files discovery's work that is limited in rate.
    pub(crate) fn file_limited(&mut self, what: Filed) {
        self.limited.push_back(what);
        self.refresh_discovery();
    }

    /// Holds what is limited in rate, or lets it go on. Returns whether there is any.
    pub(crate) fn hold_limited(&mut self, is_held: bool) -> bool {
        self.is_held = is_held;
        self.refresh_discovery();
        !self.limited.is_empty()
    }

    /// Whether what is limited in rate comes next at a priority.
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

    /// What has waited longest at `priority`, and stays.
    pub(crate) fn peek(&self, priority: Priority) -> Option<Filed> {
        match self.takes_limited(priority) {
            true => self.limited.front().copied(),
            false => self.queues[usize::from(priority.get())].front().copied(),
        }
    }

    /// Takes what has waited longest at `priority`.
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

    /// The same at discovery's priority: of both queues in turn.
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

    /// Removes everything filed for a subject that goes away.
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
