//! Queues of filed work, by priority.
//!
//! The protocol answers nothing while it reads a datagram: it files the work here, and the executor takes it when
//! nothing more urgent is ready. Each subject files each kind of work at most once, which it records itself. So the
//! number of subjects bounds the queues; their room is reserved when a subject is added, at the priorities in use.
//!
//! # Priorities
//!
//! A topic of level *l* has two: samples run at 2·l + 1, their reliability protocol (HEARTBEAT, ACKNACK, repair,
//! history) at 2·l. So a repair delays samples of the same or a higher level by at most the activation already running.

use alloc::collections::VecDeque;
use core::array;

use heapless::Vec as BoundedVec;
use isolane_wire::{
    guid::EntityId,
    level::Level,
    locator::Locator,
    message::{Gap, MessageWriter},
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

use crate::{
    limits::{BATCH_BYTES, FRAGMENT_BYTES, MAX_DATAGRAM_BYTES, MAX_DESTINATIONS, MAX_HEAD_BYTES},
    participant::{Facts, LocalParticipant, Shared},
    slab::{ReaderId, ReaderProxyId, RemoteParticipantId, WriterId, WriterProxyId},
    writer::{history::Change, write::WriteSample},
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
    fn kind(self) -> WorkKind {
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

/// Work queues, one for each priority.
#[derive(Debug)]
pub(crate) struct WorkQueue {
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

impl WorkQueue {
    /// Creates the queues, with the room of discovery.
    pub(crate) fn new() -> Self {
        let mut work_queue = Self {
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
            work_queue.open(priority);
        }
        work_queue
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

    /// Files work at the end of a queue. The caller ensures that it is not filed already.
    pub(crate) fn schedule(&mut self, queue: impl Into<Queue>, what: Filed) {
        let priority = match queue.into() {
            Queue::Of(priority) => priority,
            Queue::Sedp => {
                self.limited.push_back(what);
                self.refresh_discovery();
                return;
            }
        };
        let queue = &mut self.queues[usize::from(priority.get())];
        assert!(
            queue.len() < queue.capacity(),
            "a subject files each kind of work once, at a priority that is in use"
        );
        queue.push_back(what);
        self.ready |= 1 << priority.get();
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

    /// Takes the oldest work at `priority`, and returns whether it is rate-limited.
    pub(crate) fn take(&mut self, priority: Priority) -> Option<(Filed, bool)> {
        if priority == Priority::DISCOVERY {
            return self.take_at_discovery();
        }
        let queue = &mut self.queues[usize::from(priority.get())];
        let what = queue.pop_front();
        if queue.is_empty() {
            self.ready &= !(1 << priority.get());
        }
        Some((what?, false))
    }

    /// Takes the oldest work of discovery, alternating between both queues.
    fn take_at_discovery(&mut self) -> Option<(Filed, bool)> {
        let is_limited = self.takes_limited(Priority::DISCOVERY);
        self.is_turn_of_limited = !is_limited;
        let what = match is_limited {
            true => self.limited.pop_front(),
            false => self.queues[usize::from(Priority::DISCOVERY.get())].pop_front(),
        };
        self.refresh_discovery();
        Some((what?, is_limited))
    }

    /// Removes work whose subject is deleted.
    pub(crate) fn withdraw(&mut self, gone: &[Filed]) {
        for (priority, queue) in self.queues.iter_mut().enumerate() {
            queue.retain(|filed| !gone.contains(filed));
            if queue.is_empty() {
                self.ready &= !(1 << priority);
            }
        }
        self.limited.retain(|filed| !gone.contains(filed));
        self.refresh_discovery();
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

/// Destination list with one address or none.
pub(crate) fn to_one(locator: Option<Locator>) -> Destinations {
    Destinations::Listed(locator.into_iter().collect::<BoundedVec<Locator, 4>>())
}

impl Change {
    pub(crate) fn sample(&self) -> WriteSample {
        WriteSample {
            kind: self.kind,
            key_hash: self.key_hash,
            timestamp: self.timestamp,
        }
    }
}

impl LocalParticipant {
    /// Runs one step of the work filed at `priority`; `None` if there is none.
    ///
    /// A resulting datagram is written to the start of `buffer`, which should hold
    /// [`MAX_DATAGRAM_BYTES`](crate::limits::MAX_DATAGRAM_BYTES). A datagram that does not fit is counted
    /// ([`Counters::buffer_too_small`](crate::Counters)) and not sent.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        priority: Priority,
        buffer: &mut [u8],
    ) -> Option<Work> {
        self.step(now, priority, buffer, false)
    }

    /// Runs one step between two samples that are delivered to the user, although more urgent work of the level waits.
    /// A KEEP_ALL reader then acknowledges only the samples taken by the user, since the writer would fill the slots of
    /// all others at once. The full ACKNACK stays filed.
    pub fn poll_transmit_between(
        &mut self,
        now: Instant,
        priority: Priority,
        buffer: &mut [u8],
    ) -> Option<Work> {
        self.step(now, priority, buffer, true)
    }

    fn step(
        &mut self,
        now: Instant,
        priority: Priority,
        buffer: &mut [u8],
        is_between: bool,
    ) -> Option<Work> {
        let (filed, is_limited) = self.shared.work_queue.take(priority)?;
        self.shared.latest = now;
        let work = match filed {
            Filed::Announce(subject) => self.discovery.announce(&mut self.shared, subject, buffer),
            Filed::Discovery => self.take_in_announcement(now),
            Filed::Data(subject) => self
                .writers
                .send_data(&mut self.shared, now, subject, buffer),
            Filed::Fragment(subject) => {
                self.writers
                    .send_fragment(&mut self.shared, now, subject, buffer)
            }
            Filed::Heartbeat(subject) => {
                self.writers
                    .send_heartbeat(&mut self.shared, subject, buffer)
            }
            Filed::WriterTimedQos(subject) => {
                self.writers
                    .run_writer_timed_qos(&mut self.shared, now, subject)
            }
            Filed::ReaderTimedQos(subject) => self.readers.run_reader_timed_qos(
                &mut self.shared,
                Facts::of(&self.writers, &self.discovery),
                now,
                subject,
            ),
            Filed::AckNack(subject) if is_between && self.readers.has_untaken(subject) => {
                let work = self.readers.send_taken(&mut self.shared, subject, buffer);
                self.debit_writer(subject, work)
            }
            Filed::AckNack(subject) => {
                let work = self
                    .readers
                    .send_acknack(&mut self.shared, now, subject, buffer);
                self.debit_writer(subject, work)
            }
            Filed::Repair(subject) => {
                let work = self
                    .writers
                    .send_repair(&mut self.shared, now, subject, buffer);
                self.debit_reader(subject, work)
            }
            Filed::History(subject) => {
                let work = self
                    .writers
                    .send_history(&mut self.shared, now, subject, buffer);
                self.debit_reader(subject, work)
            }
        };
        if is_limited && let Some(work) = &work {
            self.pay_for_discovery(now, work);
        }
        // A step whose subject no longer exists sends nothing, but counts as a step.
        Some(work.unwrap_or(Work {
            kind: filed.kind(),
            level: None,
            bytes: 0,
            to: to_one(None),
        }))
    }

    /// Level of the step that [`LocalParticipant::poll_transmit`] would run next at `priority`, which determines the
    /// frame to use (`Some(None)`: discovery's). Returns `None` if there is nothing to do. The priority alone is
    /// ambiguous, since level 0 shares its priorities with discovery.
    #[must_use]
    pub fn next_level(&self, priority: Priority) -> Option<Option<Level>> {
        let filed = self.shared.work_queue.peek(priority)?;
        let of_writer = |writer| {
            self.writers
                .table
                .get(writer)
                .and_then(|writer| writer.level)
        };
        Some(match filed {
            Filed::Announce(_) | Filed::Discovery => None,
            Filed::Data(subject)
            | Filed::Fragment(subject)
            | Filed::Heartbeat(subject)
            | Filed::WriterTimedQos(subject) => of_writer(subject),
            Filed::ReaderTimedQos(subject) => self
                .readers
                .table
                .get(subject)
                .and_then(|reader| reader.level),
            Filed::AckNack(subject) => self
                .readers
                .proxies
                .get(subject)
                .and_then(|proxy| self.readers.table.get(proxy.reader)?.level),
            Filed::Repair(subject) | Filed::History(subject) => self
                .writers
                .proxies
                .get(subject)
                .and_then(|proxy| of_writer(proxy.writer)),
        })
    }

    /// Maximum size in bytes of the next datagram at `priority`, for callers with buffers of several sizes. 0 if there
    /// is nothing to do.
    #[must_use]
    pub fn next_bytes(&self, priority: Priority) -> usize {
        let Some(filed) = self.shared.work_queue.peek(priority) else {
            return 0;
        };
        let of_slots = |writer| {
            let writer = self.writers.table.get(writer)?;
            let max_bytes = writer.history.as_ref()?.max_bytes();
            // One sample or fragment, preceded by an INFO_DST and a GAP that a first transmission does not have.
            let largest = max_bytes.min(writer.fragmenter.whole_bytes());
            Some(largest.max(FRAGMENT_BYTES.into()) + 2 * MAX_HEAD_BYTES)
        };
        match filed {
            // All frames of discovery's lane have the largest size.
            Filed::Announce(_) | Filed::Discovery => MAX_DATAGRAM_BYTES,
            Filed::WriterTimedQos(_) | Filed::ReaderTimedQos(_) => 0,
            Filed::Fragment(_) | Filed::Heartbeat(_) | Filed::AckNack(_) => BATCH_BYTES,
            Filed::Data(subject) => {
                self.writers
                    .table
                    .get(subject)
                    .map_or(0, |writer| match writer.next_part_bytes() {
                        None => writer.next_bytes().max(writer.waiting_bytes()),
                        Some(bytes) => bytes,
                    })
            }
            Filed::Repair(subject) | Filed::History(subject) => self
                .writers
                .proxies
                .get(subject)
                .and_then(|proxy| of_slots(proxy.writer))
                .unwrap_or(0),
        }
    }
}

impl Shared {
    /// Writes one message. A message that does not fit is counted, and its length is 0.
    pub(crate) fn finish(
        &mut self,
        buffer: &mut [u8],
        fill: impl FnOnce(&mut MessageWriter<'_>) -> Result<(), isolane_wire::BufferTooSmall>,
        header: isolane_wire::message::Header,
    ) -> usize {
        let written = MessageWriter::new(buffer, &header).and_then(|mut message| {
            fill(&mut message)?;
            Ok(message.len())
        });
        written.unwrap_or_else(|_| {
            self.counters.buffer_too_small += 1;
            0
        })
    }
}

pub(crate) fn gap(
    writer: EntityId,
    reader: EntityId,
    start: SequenceNumber,
    end: SequenceNumber,
) -> Gap {
    Gap {
        reader,
        writer,
        group: None,
        filtered: None,
        start,
        list: SequenceNumberSet::new(end),
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
