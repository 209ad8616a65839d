//! Work that waits for its turn, filed by priority.
//!
//! The engine answers nothing while it reads a datagram: it files what is to be done, here, and
//! the executor takes it when nothing more urgent is ready. Each thing to do is filed at most
//! once (the subject remembers that it is), so the board is bounded by the number of subjects,
//! and its room is taken when the engine is created.

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
}

impl Board {
    /// Takes room for `room` things to do at every priority. The sum of all subjects times
    /// their kinds is always enough.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            queues: array::from_fn(|_| VecDeque::with_capacity(room)),
            ready: 0,
            room,
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
            queue.len() < self.room,
            "a subject files each kind of work once"
        );
        queue.push_back(what);
        self.ready |= 1 << priority.get();
    }

    /// What has waited longest at `priority`, and stays.
    pub(crate) fn peek(&self, priority: Priority) -> Option<Filed> {
        self.queues[usize::from(priority.get())].front().copied()
    }

    /// Takes what has waited longest at `priority`.
    pub(crate) fn take(&mut self, priority: Priority) -> Option<Filed> {
        let queue = &mut self.queues[usize::from(priority.get())];
        let what = queue.pop_front();
        if queue.is_empty() {
            self.ready &= !(1 << priority.get());
        }
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
    }
}
