//! Work that the participant files instead of doing it at once: its kinds, priorities and results.
//!
//! # Priorities
//!
//! A topic of level *l* has two priorities: samples run at 2·l + 1, their reliability protocol (HEARTBEAT, ACKNACK,
//! repair, history) at 2·l. So a repair delays samples of the same or a higher level by at most the activation already
//! running.

use heapless::Vec as BoundedVec;
use isolane_wire::{guid::EntityId, level::Level, locator::Locator};

use crate::{
    limits::MAX_DESTINATIONS,
    slab::{ReaderId, ReaderProxyId, RemoteParticipantId, WriterId, WriterProxyId},
};

/// Kind of work done by one step of [`LocalParticipant::poll_transmit`](crate::LocalParticipant::poll_transmit).
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
    WriterTimedQos,
    /// Time-based policies of a reader: the same, and TIME_BASED_FILTER. Nothing is sent.
    ReaderTimedQos,
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
        Self::WriterTimedQos,
        Self::ReaderTimedQos,
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
            Self::WriterTimedQos => "writer clock",
            Self::ReaderTimedQos => "reader clock",
            Self::AckNack => "acknack",
            Self::Repair => "repair",
            Self::History => "history",
        }
    }
}

/// Destination of a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destinations {
    /// All addresses of a writer's matched readers,
    /// [`LocalParticipant::destinations`](crate::LocalParticipant::destinations).
    Writer(WriterId),
    /// Destinations of participant announcements,
    /// [`LocalParticipant::announce_to`](crate::LocalParticipant::announce_to).
    Announce,
    /// Some addresses of a writer, [`LocalParticipant::some_destinations`](crate::LocalParticipant::some_destinations).
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

impl Work {
    pub(crate) fn new(
        kind: WorkKind,
        level: Option<Level>,
        bytes: usize,
        to: impl Into<Destinations>,
    ) -> Self {
        let to = to.into();
        Self {
            kind,
            level,
            bytes,
            to,
        }
    }

    /// Step that sends nothing.
    pub(crate) fn nothing(kind: WorkKind, level: Option<Level>) -> Self {
        Self::new(kind, level, 0, None::<Locator>)
    }
}

impl From<WriterId> for Destinations {
    fn from(writer: WriterId) -> Self {
        Self::Writer(writer)
    }
}

/// One address, or none.
impl From<Option<Locator>> for Destinations {
    fn from(locator: Option<Locator>) -> Self {
        Self::Listed(locator.into_iter().collect())
    }
}

/// Filed work, with its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filed {
    /// Announcement to one participant, or to all addresses.
    Announce(Option<RemoteParticipantId>),
    Discovery,
    Data(WriterId),
    Fragment(WriterId),
    Heartbeat(WriterId),
    WriterTimedQos(WriterId),
    ReaderTimedQos(ReaderId),
    AckNack(WriterProxyId),
    Repair(ReaderProxyId),
    History(ReaderProxyId),
}

impl Filed {
    pub(crate) fn kind(self) -> WorkKind {
        match self {
            Self::Announce(_) => WorkKind::Announce,
            Self::Discovery => WorkKind::Discovery,
            Self::Data(_) => WorkKind::Data,
            Self::Fragment(_) => WorkKind::Fragment,
            Self::Heartbeat(_) => WorkKind::Heartbeat,
            Self::WriterTimedQos(_) => WorkKind::WriterTimedQos,
            Self::ReaderTimedQos(_) => WorkKind::ReaderTimedQos,
            Self::AckNack(_) => WorkKind::AckNack,
            Self::Repair(_) => WorkKind::Repair,
            Self::History(_) => WorkKind::History,
        }
    }
}

/// Queue of an endpoint's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Queue of a priority.
    Of(Priority),
    /// Rate-limited queue of SEDP, at [`Priority::DISCOVERY`].
    Sedp,
}

impl Queue {
    /// Returns the queue in which a built-in endpoint files what it sends. Participant messages are not limited.
    pub(crate) fn of_builtin(entity: EntityId) -> Self {
        match entity {
            EntityId::P2P_MESSAGE_WRITER | EntityId::P2P_MESSAGE_READER => {
                Self::Of(Priority::DISCOVERY)
            }
            _ => Self::Sedp,
        }
    }
}

impl From<Priority> for Queue {
    fn from(priority: Priority) -> Self {
        Self::Of(priority)
    }
}

/// Priority of a job, 0 to 15; 15 is most urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// Number of priorities.
    pub const COUNT: usize = 16;
    /// Most urgent priority.
    pub const HIGHEST: Self = Self(Self::COUNT as u8 - 1);
    /// Priority of participant and endpoint discovery.
    pub const DISCOVERY: Self = Self(1);
    /// Priority of statistics and other housekeeping.
    pub const STATISTICS: Self = Self(0);

    /// Creates a priority from its number; `None` above 15.
    #[must_use]
    pub const fn new(value: u8) -> Option<Self> {
        if (value as usize) < Self::COUNT {
            Some(Self(value))
        } else {
            None
        }
    }

    /// Returns the priority of receiving, sending and delivering samples of this level.
    #[must_use]
    pub const fn of_data(level: Level) -> Self {
        Self(2 * level.get() + 1)
    }

    /// Returns the priority of HEARTBEAT, ACKNACK, repair and history of this level.
    #[must_use]
    pub const fn of_protocol(level: Level) -> Self {
        Self(2 * level.get())
    }

    /// Returns the number, 0 to 15.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Iterates over all priorities, most urgent first.
    pub fn descending() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).rev().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_level_come_before_its_repairs_and_after_all_of_the_level_above() {
        for level in Level::ALL {
            assert!(Priority::of_data(level) > Priority::of_protocol(level));
            if let Some(above) = Level::new(level.get() + 1) {
                assert!(Priority::of_protocol(above) > Priority::of_data(level));
            }
        }
    }
}
