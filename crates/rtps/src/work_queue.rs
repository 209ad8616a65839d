//! Schedule of a participant: the queues of filed work, the timers that file more, and the queue of status changes.
//!
//! The protocol answers nothing while it reads a datagram: it files the work here, and the executor takes it when
//! nothing more urgent is ready. A subject (writer, reader, proxy, participant) has each kind of work filed at most
//! once, and records this itself. So the number of subjects bounds the queues; their room is reserved when a subject is
//! added, at the priorities in use.
//!
//! [`LocalParticipant::poll_transmit`] runs one bounded step of filed work, and [`LocalParticipant::advance`] files the
//! work of expired timers. [`LocalParticipant::next_status`] returns the endpoints with status changes; each is queued
//! at most once.

use alloc::{collections::VecDeque, vec, vec::Vec};
use core::array;

use isolane_wire::{BufferTooSmall, level::Level, message::MessageWriter, time::Instant};

use crate::{
    config::Limits,
    limits::{BATCH_BYTES, FRAGMENT_BYTES, MAX_DATAGRAM_BYTES, MAX_HEAD_BYTES},
    participant::{BUILTIN_ENDPOINTS, Facts, LocalParticipant, Shared},
    reader::Readers,
    slab::{ReaderId, RemoteParticipantId, WriterId},
    status::StatusChange,
    timed_qos::{MESSAGES, PARTICIPANT_LIVELINESS_KINDS},
    work::{Filed, Priority, Queue, Work},
    writer::{WriterStatus, Writers},
};

/// Returns the maximum number of filed work items. Each writer has data, fragments, heartbeat and timed policies; each
/// reader has timed policies. Each reader proxy has repair and history, each writer proxy an ACKNACK. Each participant
/// has an announcement; there is one announcement to all, and one discovery step.
pub(crate) fn filed_at_most(
    local: usize,
    readers: usize,
    writers: usize,
    participants: usize,
) -> usize {
    4 * local + 2 * readers + writers + participants + 2
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
    /// Creates the queues, and reserves room at the priorities that discovery uses.
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

/// Instant that never comes.
const NEVER: Instant = Instant::new(u64::MAX);

/// Timers per block.
const BLOCK: usize = 64;

/// Timer of a participant, by its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timer {
    Announce,
    /// Discovery may send again.
    DiscoveryRate,
    Lease(RemoteParticipantId),
    Heartbeat(WriterId),
    WriterTimedQos(WriterId),
    ReaderTimedQos(ReaderId),
    /// A held batch is due.
    Batch(WriterId),
    /// The next participant message that asserts liveliness is due, for one LIVELINESS kind.
    Message(u8),
}

/// Timers of a participant.
///
/// A flat array: the announcement and the rate limit of discovery, then each kind of timer for all local endpoints,
/// then the leases of remote participants, whose number grows. The earliest instant of each [`BLOCK`] is cached, so
/// finding an expired timer among a thousand scans one block and the block instants. The next instant is known without
/// a scan.
#[derive(Debug)]
pub(crate) struct Timers {
    due: Vec<Instant>,
    /// Lower bound of the instants of each block.
    of_blocks: Vec<Instant>,
    earliest: Instant,
    /// Maximum number of local endpoints.
    endpoints: usize,
}

impl Timers {
    const FIRST_OF_ENDPOINTS: usize = 2;

    /// Creates the timers of local endpoints and, with [`Limits::fixed_memory`], of the maximum number of participants.
    pub(crate) fn new(limits: &Limits) -> Self {
        let mut timers = Self {
            due: Vec::new(),
            of_blocks: Vec::new(),
            earliest: NEVER,
            endpoints: usize::from(limits.local_endpoints) + usize::from(BUILTIN_ENDPOINTS),
        };
        let participants = match limits.fixed_memory {
            true => limits.participants,
            false => 0,
        };
        let count = timers.place(Timer::Lease(RemoteParticipantId(participants)));
        timers.due = vec![NEVER; count];
        timers.of_blocks = vec![NEVER; count.div_ceil(BLOCK)];
        timers
    }

    /// Returns the place of a timer in the array.
    #[inline]
    fn place(&self, timer: Timer) -> usize {
        let of_endpoint = |kind: usize, endpoint: u16| {
            Self::FIRST_OF_ENDPOINTS + kind * self.endpoints + usize::from(endpoint)
        };
        match timer {
            Timer::Announce => 0,
            Timer::DiscoveryRate => 1,
            Timer::Heartbeat(writer) => of_endpoint(0, writer.0),
            Timer::WriterTimedQos(writer) => of_endpoint(1, writer.0),
            Timer::ReaderTimedQos(reader) => of_endpoint(2, reader.0),
            Timer::Batch(writer) => of_endpoint(3, writer.0),
            Timer::Message(kind) => of_endpoint(4, kind.into()),
            Timer::Lease(participant) => {
                let kinds = PARTICIPANT_LIVELINESS_KINDS.len() as u16;
                of_endpoint(4, kinds) + usize::from(participant.0)
            }
        }
    }

    /// Returns the timer at a place.
    fn at(&self, place: usize) -> Timer {
        let Some(rest) = place.checked_sub(Self::FIRST_OF_ENDPOINTS) else {
            return match place {
                0 => Timer::Announce,
                _ => Timer::DiscoveryRate,
            };
        };
        let first_lease = self.place(Timer::Lease(RemoteParticipantId(0)));
        if let Some(participant) = place.checked_sub(first_lease) {
            return Timer::Lease(RemoteParticipantId(participant as u16));
        }
        let endpoint = (rest % self.endpoints) as u16;
        match rest / self.endpoints {
            0 => Timer::Heartbeat(WriterId(endpoint)),
            1 => Timer::WriterTimedQos(WriterId(endpoint)),
            2 => Timer::ReaderTimedQos(ReaderId(endpoint)),
            3 => Timer::Batch(WriterId(endpoint)),
            _ => Timer::Message(endpoint as u8),
        }
    }

    /// Adds room for a timer whose subject was just created.
    pub(crate) fn reserve(&mut self, timer: Timer) {
        let place = self.place(timer);
        if place >= self.due.len() {
            let count = (place + 1).next_multiple_of(BLOCK);
            self.due.resize(count, NEVER);
            self.of_blocks.resize(count / BLOCK, NEVER);
        }
    }

    pub(crate) fn arm(&mut self, timer: Timer, at: Instant) {
        let place = self.place(timer);
        self.due[place] = at;
        let of_block = &mut self.of_blocks[place / BLOCK];
        *of_block = at.min(*of_block);
        self.earliest = at.min(self.earliest);
    }

    /// Disarms a timer. The cached earliest instant may now be too early; the next [`Self::expire`] corrects it.
    pub(crate) fn disarm(&mut self, timer: Timer) {
        let place = self.place(timer);
        self.due[place] = NEVER;
    }

    /// Arms a timer unless it is due sooner.
    pub(crate) fn bring_forward(&mut self, timer: Timer, at: Instant) {
        if at < self.due[self.place(timer)] {
            self.arm(timer, at);
        }
    }

    #[inline]
    pub(crate) fn is_armed(&self, timer: Timer) -> bool {
        self.due[self.place(timer)] != NEVER
    }

    /// Returns when to call [`Self::expire`] next: never later than the first timer.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.earliest != NEVER).then_some(self.earliest)
    }

    /// Disarms and returns one expired timer.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Timer> {
        if now < self.earliest {
            return None;
        }
        let mut found = None;
        let mut earliest = NEVER;
        let blocks = self.due.chunks_mut(BLOCK).zip(&mut self.of_blocks);
        for (nth, (block, of_block)) in blocks.enumerate() {
            if found.is_none() && *of_block <= now {
                let first = block.iter().position(|due| *due <= now);
                if let Some(place) = first {
                    block[place] = NEVER;
                    found = Some(nth * BLOCK + place);
                }
                *of_block = block.iter().copied().min().unwrap_or(NEVER);
            }
            earliest = earliest.min(*of_block);
        }
        self.earliest = earliest;
        found.map(|place| self.at(place))
    }
}

impl Shared {
    pub(crate) fn schedule(&mut self, queue: impl Into<Queue>, what: Filed) {
        self.work_queue.schedule(queue, what);
    }

    pub(crate) fn schedule_discovery(&mut self) {
        if !core::mem::replace(&mut self.discovery_filed, true) {
            self.schedule(Priority::DISCOVERY, Filed::Discovery);
        }
    }
}

impl Shared {
    /// Writes one message of this participant and returns its length. A message that does not fit is counted, and its
    /// length is 0.
    pub(crate) fn emit_message(
        &mut self,
        buffer: &mut [u8],
        fill: impl for<'m, 'b> FnOnce(
            &'m mut MessageWriter<'b>,
        ) -> Result<&'m mut MessageWriter<'b>, BufferTooSmall>,
    ) -> usize {
        let written = MessageWriter::new(buffer, &self.header).and_then(|mut message| {
            fill(&mut message)?;
            Ok(message.len())
        });
        written.unwrap_or_else(|_| {
            self.counters.buffer_too_small += 1;
            0
        })
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
    /// A KEEP_ALL reader then acknowledges only the samples taken by the user. If it acknowledged all, the writer would
    /// at once send as many again, for which there are no slots. The full ACKNACK stays filed.
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
        Some(work.unwrap_or(Work::nothing(filed.kind(), None)))
    }

    /// Level of the step that [`LocalParticipant::poll_transmit`] would run next at `priority`, which determines the
    /// frame to use (`Some(None)`: discovery's). Returns `None` if there is nothing to do. The priority alone is
    /// ambiguous, since level 0 shares its priorities with discovery.
    #[must_use]
    pub fn next_level(&self, priority: Priority) -> Option<Option<Level>> {
        let filed = self.shared.work_queue.peek(priority)?;
        let of_writer = |writer| self.writers.get(writer).and_then(|writer| writer.level);
        Some(match filed {
            Filed::Announce(_) | Filed::Discovery => None,
            Filed::Data(subject)
            | Filed::Fragment(subject)
            | Filed::Heartbeat(subject)
            | Filed::WriterTimedQos(subject) => of_writer(subject),
            Filed::ReaderTimedQos(subject) => {
                self.readers.get(subject).and_then(|reader| reader.level)
            }
            Filed::AckNack(subject) => self
                .readers
                .proxies
                .get(subject)
                .and_then(|proxy| self.readers.get(proxy.reader)?.level),
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
            let writer = self.writers.get(writer)?;
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

    /// Reserves room for all work that can be filed; called when a record was added, so that samples allocate nothing.
    pub(crate) fn make_room_to_file(&mut self) {
        let of = usize::from;
        let local = of(self.writers.table.end()) + of(self.readers.table.end());
        self.shared.work_queue.reserve(filed_at_most(
            local,
            of(self.writers.proxies.end()),
            of(self.readers.proxies.end()),
            of(self.discovery.participants.end()),
        ));
    }

    /// Returns the set of priorities with work for [`LocalParticipant::poll_transmit`], as bit *p* for priority *p*.
    #[must_use]
    #[inline]
    pub fn ready(&self) -> u16 {
        self.shared.work_queue.ready()
    }

    /// Returns when to call [`LocalParticipant::advance`] next; `None` if no timer is armed.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Option<Instant> {
        self.shared.timers.next()
    }

    /// Notes the time after a pause of the caller's loop; hold times of new samples count from `now`.
    #[inline]
    pub fn note_time(&mut self, now: Instant) {
        self.shared.latest = self.shared.latest.max(now);
    }

    /// Advances the time to `now` and files all work that is due.
    pub fn advance(&mut self, now: Instant) {
        self.shared.latest = now;
        while let Some(timer) = self.shared.timers.expire(now) {
            match timer {
                Timer::Announce => self.announce_due(now),
                Timer::DiscoveryRate => {
                    let has_waited = self.shared.work_queue.hold_limited(false);
                    self.shared.counters.discovery_limited += u64::from(has_waited);
                }
                Timer::Lease(_) => self.discovery.lease_due(&mut self.shared),
                Timer::Heartbeat(writer) => {
                    self.writers.heartbeat_due(&mut self.shared, now, writer);
                }
                Timer::WriterTimedQos(writer) => self
                    .writers
                    .schedule_writer_timed_qos(&mut self.shared, writer),
                Timer::ReaderTimedQos(reader) => self
                    .readers
                    .schedule_reader_timed_qos(&mut self.shared, reader),
                Timer::Batch(writer) => self.writers.flush_batch(&mut self.shared, writer),
                Timer::Message(which) => {
                    self.writers.message_due(&mut self.shared, now, which);
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    Reader(ReaderId),
    Writer(WriterId),
    Discovery,
}

impl LocalParticipant {
    /// Returns whether [`next_status`](LocalParticipant::next_status) may have a change.
    #[inline]
    #[must_use]
    pub fn has_status(&self) -> bool {
        !self.shared.changed.is_empty()
    }

    /// Returns the next endpoint with status changes, with all its changes at once.
    pub fn next_status(&mut self) -> Option<StatusChange> {
        while let Some(noted) = self.shared.changed.pop_front() {
            match noted {
                Noted::Discovery => {
                    self.shared.discovery_changed = false;
                    return Some(StatusChange::Discovery);
                }
                Noted::Reader(index) => {
                    let Some(reader) = self.readers.get_mut(index) else {
                        continue;
                    };
                    reader.noted = false;
                    let status = core::mem::take(&mut reader.status);
                    if !status.is_empty() {
                        return Some(StatusChange::Reader(index, status));
                    }
                }
                Noted::Writer(index) => {
                    let Some(writer) = self.writers.get_mut(index) else {
                        continue;
                    };
                    writer.noted = false;
                    let status = core::mem::take(&mut writer.status);
                    if !status.is_empty() {
                        return Some(StatusChange::Writer(index, status));
                    }
                }
            }
        }
        None
    }
}

impl Shared {
    pub(crate) fn note_discovery(&mut self) {
        if !core::mem::replace(&mut self.discovery_changed, true) {
            self.changed.push_back(Noted::Discovery);
        }
    }

    /// Removes a deleted reader from the queue.
    pub(crate) fn forget_reader_notes(&mut self, index: ReaderId) {
        self.changed.retain(|noted| *noted != Noted::Reader(index));
    }

    /// Removes a deleted writer from the queue.
    pub(crate) fn forget_writer_notes(&mut self, index: WriterId) {
        self.changed.retain(|noted| *noted != Noted::Writer(index));
    }
}

impl Writers {
    /// Queues the status changes of a writer of the user.
    pub(crate) fn note_writer(&mut self, shared: &mut Shared, index: WriterId) {
        let writer = &mut self.table[index];
        if writer.level.is_none() {
            writer.status = WriterStatus::empty();
        } else if !writer.status.is_empty() && !core::mem::replace(&mut writer.noted, true) {
            shared.changed.push_back(Noted::Writer(index));
        }
    }
}

impl Readers {
    /// Queues the status changes of a reader of the user.
    pub(crate) fn note_reader(&mut self, shared: &mut Shared, index: ReaderId) {
        let reader = &mut self.table[index];
        if reader.level.is_none() {
            // SEDP announcements need a discovery step; participant messages were processed on arrival.
            match index {
                ReaderId(MESSAGES) => self.forget_messages(),
                _ => shared.schedule_discovery(),
            }
        } else if !reader.status.is_empty() && !core::mem::replace(&mut reader.noted, true) {
            shared.changed.push_back(Noted::Reader(index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timers() -> Timers {
        Timers::new(&Limits::default())
    }

    fn lease(participant: u16) -> Timer {
        Timer::Lease(RemoteParticipantId(participant))
    }

    #[test]
    fn timers_expire_once_and_the_next_one_is_known() {
        let mut timers = timers();
        let (announce, heartbeat) = (Timer::Announce, Timer::Heartbeat(WriterId(2)));
        assert_eq!(timers.next(), None);
        timers.arm(announce, Instant::new(30));
        timers.arm(heartbeat, Instant::new(10));
        assert_eq!(timers.next(), Some(Instant::new(10)));
        assert_eq!(timers.expire(Instant::new(9)), None);
        assert_eq!(timers.expire(Instant::new(40)), Some(announce));
        assert_eq!(timers.expire(Instant::new(40)), Some(heartbeat));
        assert_eq!(timers.expire(Instant::new(40)), None);
        assert_eq!(timers.next(), None);
        assert!(!timers.is_armed(heartbeat));
    }

    #[test]
    fn timers_of_all_blocks_expire_and_those_made_room_for_later_too() {
        let mut timers = timers();
        let late = lease(3 * BLOCK as u16);
        timers.reserve(late);
        let batch = Timer::Batch(WriterId(1));
        for (timer, at) in [(late, 30), (Timer::DiscoveryRate, 10), (batch, 20)] {
            timers.arm(timer, Instant::new(at));
        }
        assert_eq!(timers.expire(Instant::new(10)), Some(Timer::DiscoveryRate));
        assert_eq!(timers.next(), Some(Instant::new(20)));
        let now = Instant::new(1_000);
        assert_eq!(timers.expire(now), Some(batch));
        assert_eq!(timers.expire(now), Some(late));
        assert_eq!(timers.expire(now), None);
    }

    #[test]
    fn each_timer_has_a_place_of_its_own() {
        let mut timers = timers();
        timers.reserve(lease(1));
        let of_endpoint = [
            Timer::Heartbeat(WriterId(1)),
            Timer::WriterTimedQos(WriterId(1)),
            Timer::ReaderTimedQos(ReaderId(1)),
            Timer::Batch(WriterId(1)),
        ];
        let others = [
            Timer::Announce,
            Timer::DiscoveryRate,
            Timer::Message(1),
            lease(0),
            lease(1),
        ];
        for timer in of_endpoint.into_iter().chain(others) {
            timers.arm(timer, Instant::new(10));
            assert_eq!(timers.expire(Instant::new(10)), Some(timer));
        }
    }

    #[test]
    fn a_disarmed_timer_does_not_expire() {
        let mut timers = timers();
        timers.arm(Timer::DiscoveryRate, Instant::new(10));
        timers.disarm(Timer::DiscoveryRate);
        assert_eq!(timers.expire(Instant::new(20)), None);
        assert_eq!(timers.next(), None);
    }
}
