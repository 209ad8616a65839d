//! I/O of a participant: the datapath, its pool, the transmit burst, the datagrams that wait for a frame, and epoll.
//!
//! # Frames
//!
//! Sockets return a sent frame to the pool before the call ends. A device holds frames until it has sent them, and
//! reports their completion in shared memory. The loop looks for completed frames when a writer finds none, and in a
//! job of the highest priority. That job also keeps chunks free for the reception of critical datagrams.
//!
//! # Sleep
//!
//! The loop sleeps in epoll on the datapath's descriptors and on one eventfd for other threads. The event data of each
//! descriptor is a separate bit, so that the result of a wait is the set of readable descriptors. There is no timer
//! descriptor: epoll's timeout, in nanoseconds, is the time to the next release.
//!
//! `epoll_pwait2` requires Linux 5.11, and valgrind 3.19 lacks it. Without it the loop sleeps in `ppoll` on duplicates
//! of the same descriptors. `ppoll` also takes nanoseconds, and costs a little more per descriptor. Event loops of the
//! application get the epoll descriptor either way.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use isolane_datapath::{
    Capabilities, Class, Datapath, Frame, Lane, Pool, TransmitBurst, Wakeup,
    clock::monotonic_now,
    limits::{MAX_DEVICE_QUEUES, MAX_MESSAGES, MAX_SEGMENTS},
};
use isolane_executor::{Executor, JobId};
use isolane_rtps::{
    Announces, Destinations, LocalParticipant, Priority, WorkKind, WriterId,
    limits::{BATCH_BYTES, MAX_HEAD_BYTES, WORK_HEAD_BYTES},
};
use isolane_wire::{locator::Locator, message, time::Instant};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll},
    io::{Errno, fcntl_dupfd_cloexec},
};

use crate::{
    error::BuildError,
    limits::{FRAME_RETRY, MAX_DATAGRAM_SAMPLE_BYTES, SPINS_PER_LOOK},
    participant::event_loop::{BurstBound, BurstUse},
    participant::state::State,
};

/// Priorities whose work found no free frame, and the time of the retry. No event reports that a frame becomes free.
struct Starved {
    /// Bit *p* is set if priority *p* waits.
    priorities: u16,
    until: Instant,
}

/// Datapath of a participant, its pool, and the frames on their way to the datapath.
pub(crate) struct Io {
    // Drop order: the datapath before the pending datagrams and the transmit burst.
    pub(crate) datapath: Box<dyn Datapath>,
    pub(crate) capabilities: Capabilities,
    pub(crate) pool: Pool,
    pub(crate) poller: Poller,
    /// Earliest time of the next recycling: a device needs a while to complete frames.
    recycled_until: Instant,
    /// Time of the next recycling, if one is due.
    recycle_at: Option<Instant>,
    /// Number of polls of the rings alone since the last poll of all sources.
    spins: u32,
    pub(crate) spinning: bool,
    /// True if reserved memory is touched at allocation.
    pub(crate) prefault: bool,
    /// Work steps that found no free frame.
    pub(crate) no_frame: u64,
    starved: Option<Starved>,
    /// Datagrams with more destinations than a burst holds, at most one for each priority, and a bit for each of those
    /// priorities.
    pending: Vec<PendingFanout>,
    pending_priorities: u16,
    /// Empty between two activations.
    transmit: TransmitBurst,
}

impl Io {
    pub(crate) fn new(
        datapath: Box<dyn Datapath>,
        poller: Poller,
        spinning: bool,
        prefault: bool,
    ) -> Self {
        Self {
            capabilities: *datapath.capabilities(),
            pool: datapath.pool().clone(),
            datapath,
            poller,
            recycled_until: Instant::new(0),
            recycle_at: None,
            spins: 0,
            spinning,
            prefault,
            no_frame: 0,
            starved: None,
            pending: Vec::with_capacity(Priority::COUNT),
            pending_priorities: 0,
            transmit: TransmitBurst::new(),
        }
    }

    /// Returns the offset of a payload in a frame, after the headers of the datapath and of RTPS.
    pub(crate) fn payload_begin(&self) -> usize {
        self.capabilities.head_room_bytes + MAX_HEAD_BYTES
    }

    /// Returns the maximum sample size in bytes that fits a frame.
    pub(crate) fn max_sample_bytes(&self) -> usize {
        let frame_bytes = self.capabilities.max_frame_bytes;
        let limit = frame_bytes.saturating_sub(WORK_HEAD_BYTES);
        limit.min(MAX_DATAGRAM_SAMPLE_BYTES)
    }

    /// Opens a lane: its sockets and its frames.
    pub(crate) fn open_lane(&mut self, lane: Lane) -> Result<(), BuildError> {
        self.datapath.open_lane(lane)?;
        self.capabilities = *self.datapath.capabilities();
        Ok(())
    }

    /// Returns whether frames of the lane may be segmented bursts.
    #[inline]
    pub(crate) fn is_segmented(&self, lane: Lane) -> bool {
        self.capabilities.segmented_lanes & lane.bit() != 0
    }

    /// Adds the descriptors of an open lane to those on which the loop sleeps.
    pub(crate) fn watch_lane(&mut self, lane: Lane) -> io::Result<()> {
        let descriptors = self.datapath.descriptors().into_iter();
        descriptors
            .filter(|(of, _)| *of == lane)
            .enumerate()
            .try_for_each(|(place, (_, descriptor))| self.poller.add(lane, place, descriptor))
    }

    /// Sends a frame to these destinations. A frame without destinations returns to the pool at once.
    pub(crate) fn send(
        &mut self,
        protocol: &LocalParticipant,
        lane: Lane,
        frame: Frame,
        to: Addresses<'_>,
    ) {
        let places = to.of(protocol);
        if places.len() > MAX_MESSAGES {
            self.send_in_parts(lane, frame, places);
            return;
        }
        self.collect(lane, frame, places);
        self.flush(lane);
    }

    /// Sends a frame to more destinations than a burst holds, one burst after the other.
    #[cold]
    fn send_in_parts(&mut self, lane: Lane, frame: Frame, places: &[Locator]) {
        let mut frame = Some(frame);
        let mut parts = places.chunks(MAX_MESSAGES).peekable();
        while let (Some(held), Some(part)) = (frame.take(), parts.next()) {
            if parts.peek().is_some() {
                frame = self.copy(lane, &held);
                self.no_frame += u64::from(frame.is_none());
            }
            self.collect(lane, held, part);
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

    /// Sends a pending datagram, which has more destinations than a burst holds, to the next [`MAX_MESSAGES`]
    /// destinations. Returns its lane, its size in bytes, and their number; `None` if no frame is free for it.
    #[cold]
    fn send_pending(
        &mut self,
        protocol: &LocalParticipant,
        priority: Priority,
    ) -> Option<(Lane, usize, usize)> {
        let mut all = self.pending.iter();
        let at = all.position(|pending| pending.priority == priority)?;
        let pending = self.pending.swap_remove(at);
        let places = pending.to.places(protocol);
        // The list is sorted, so destinations added or removed meanwhile do not change the order of the others.
        let first =
            places.partition_point(|place| pending.after.is_some_and(|after| *place <= after));
        let places = &places[first..];
        let part = &places[..places.len().min(MAX_MESSAGES)];
        let sent = (pending.lane, pending.frame.len(), part.len());
        if places.len() <= MAX_MESSAGES {
            self.pending_priorities &= !(1 << priority.get());
            self.collect(pending.lane, pending.frame, part);
            self.flush(pending.lane);
            return Some(sent);
        }
        let copy = self.copy(pending.lane, &pending.frame);
        let is_copied = copy.is_some();
        let after = match copy {
            Some(copy) => {
                self.collect(pending.lane, copy, part);
                self.flush(pending.lane);
                part.last().copied()
            }
            None => pending.after,
        };
        self.pending.push(PendingFanout { after, ..pending });
        is_copied.then_some(sent)
    }

    /// Stores a datagram for later steps of work, each of which sends it to one burst of destinations.
    fn defer(&mut self, pending: PendingFanout) {
        self.pending_priorities |= 1 << pending.priority.get();
        self.pending.push(pending);
    }

    /// Adds a frame to the burst of a lane. A full burst is sent first.
    // Inlined always, so that a written frame moves directly into the burst.
    #[inline(always)]
    fn collect(&mut self, lane: Lane, frame: Frame, places: &[Locator]) {
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

    /// Returns whether the next datagram, of at most `bytes` bytes, can be appended to the last frame of the burst. If so, a
    /// free frame remains, to which the datagram moves if its destinations differ.
    #[inline]
    fn has_room_behind(&mut self, lane: Lane, class: Class, bytes: usize) -> bool {
        let is_segmented = self.is_segmented(lane);
        self.transmit.last_mut().is_some_and(|last| {
            is_segmented
                && self.pool.free(class) > 0
                && last.class() == class
                && last.datagram_count() < MAX_SEGMENTS
                && last.range().end + missing_bytes(last) + bytes
                    <= self.capabilities.max_frame_bytes.min(last.capacity())
                && complete(last)
        })
    }

    /// Returns the room for the next datagram: that of its frame, or behind the last frame of the burst.
    #[inline]
    fn room_for_next<'a>(&'a mut self, frame: Option<&'a mut Frame>) -> Option<&'a mut [u8]> {
        let (frame, start) = match frame {
            Some(frame) => {
                let head = frame.head_room();
                (frame, head)
            }
            None => {
                let last = self.transmit.last_mut()?;
                let end = last.range().end;
                (last, end)
            }
        };
        let end = frame
            .capacity()
            .min(self.capabilities.max_frame_bytes + frame.head_room());
        frame.buffer_mut().get_mut(start..end)
    }

    /// Adds a datagram written behind the last frame of the burst to that frame. Returns false if the datagram has
    /// other destinations, or is longer than the frame's segments.
    #[inline]
    fn extend_burst(&mut self, bytes: usize, places: &[Locator]) -> bool {
        if !self.transmit.last_goes_to(places) {
            return false;
        }
        let Some(last) = self.transmit.last_mut() else {
            return false;
        };
        let fits = |segment_bytes: &u16| bytes <= (*segment_bytes).into();
        let segment_bytes = u16::try_from(segment_bytes(last)).ok().filter(fits);
        let Some(segment_bytes) = segment_bytes else {
            return false;
        };
        let range = last.range();
        last.set_range(range.start..range.end + bytes);
        last.set_segment_bytes(segment_bytes);
        true
    }

    /// Returns the frame that holds the next datagram: its own, or one to which it moves from behind the last frame of
    /// the burst.
    fn frame_of_next(&mut self, own: Option<Frame>, class: Class, bytes: usize) -> Option<Frame> {
        let mut frame = match own {
            Some(frame) => frame,
            None => {
                let taken = self.pool.take(class);
                self.no_frame += u64::from(taken.is_none());
                let mut frame = taken?;
                let last = self.transmit.last()?;
                let written = &last.buffer()[last.range().end..][..bytes];
                let head = frame.head_room();
                frame.buffer_mut()[head..head + bytes].copy_from_slice(written);
                frame
            }
        };
        let head = frame.head_room();
        frame.set_range(head..head + bytes);
        Some(frame)
    }

    #[inline]
    fn flush(&mut self, lane: Lane) {
        if !self.transmit.is_empty() {
            self.datapath.send_burst(lane, &mut self.transmit);
        }
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

    /// Sends the datagrams that unregister the instances of a writer before its deletion, at most as many as a writer
    /// may have (`REGISTERED_INSTANCES` of isolane-rtps). The function stops if no frame is free; readers then notice
    /// the end of the writer.
    pub(crate) fn unregister_instances(
        &mut self,
        protocol: &mut LocalParticipant,
        id: WriterId,
        lane: Lane,
    ) {
        loop {
            let class = self.class_for(lane, BATCH_BYTES);
            let Some(mut frame) = self.take_frame(class) else {
                return;
            };
            let head = frame.head_room();
            let buffer = &mut frame.buffer_mut()[head..];
            let Some(bytes) = protocol.next_unregister(monotonic_now(), id, buffer) else {
                return;
            };
            frame.set_range(head..head + bytes);
            self.send(protocol, lane, frame, Addresses::Writer(id));
        }
    }

    /// Activates the recycling job if it has something to do.
    #[inline]
    pub(crate) fn activate_recycling(&mut self, now: Instant, executor: &mut Executor, job: JobId) {
        self.recycle_at = None;
        if self.datapath.wants_recycling() {
            if self.recycled_until <= now {
                executor.activate(job, now);
            } else {
                self.recycle_at = Some(self.recycled_until);
            }
        }
    }

    /// Returns the time of the next retry or recycling.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let retry = self.starved.as_ref().map(|starved| starved.until);
        retry.into_iter().chain(self.recycle_at).min()
    }

    #[inline]
    pub(crate) fn is_starved(&self) -> bool {
        self.starved.is_some()
    }

    /// Allows the retry of work that found no frame, if its time has come.
    pub(crate) fn retry_starved(&mut self, now: Instant) {
        if self.starved.as_ref().is_some_and(|it| it.until <= now) {
            self.starved = None;
        }
    }

    /// Returns the priorities at which the RTPS participant or a pending datagram has work.
    #[inline]
    pub(crate) fn all_work(&self, protocol: &LocalParticipant) -> u16 {
        protocol.ready() | self.pending_priorities
    }

    /// Returns the priorities at which work may be tried now.
    pub(crate) fn work_ready(&self, protocol: &LocalParticipant) -> u16 {
        let starved = self.starved.as_ref();
        self.all_work(protocol) & !starved.map_or(0, |starved| starved.priorities)
    }

    /// Returns whether a datagram of this priority has been sent to some of its destinations only.
    #[inline]
    pub(crate) fn has_pending(&self, priority: Priority) -> bool {
        self.pending_priorities & (1 << priority.get()) != 0
    }

    /// Returns whether a source of the datapath is ready that no descriptor reports.
    pub(crate) fn has_ready_lane(&mut self) -> bool {
        !self.has_descriptors() && self.datapath.ready_lanes() != 0
    }

    /// Polls the rings in memory, if this loop spins, at most [`SPINS_PER_LOOK`] times in a row. Returns the lanes
    /// ([`Lane::bit`]) whose first descriptor is ready.
    #[inline]
    pub(crate) fn spin(&mut self) -> Option<u16> {
        if !self.spinning || self.spins >= SPINS_PER_LOOK {
            self.spins = 0;
            return None;
        }
        let seen = self.datapath.peek_lanes()?;
        self.spins += 1;
        Some(seen)
    }

    /// Takes frames back from the device. Returns true if more can be taken at once.
    pub(crate) fn recycle(&mut self, now: Instant) -> bool {
        let again = self.datapath.recycle();
        if !again {
            self.recycled_until = now + FRAME_RETRY;
        }
        again
    }

    /// Takes a frame for sending; if none is free, first takes back completed frames.
    #[inline]
    pub(crate) fn take_frame(&mut self, class: Class) -> Option<Frame> {
        if self.pool.free(class) == 0 {
            self.datapath.recycle();
        }
        self.pool.take(class)
    }

    /// Returns the class of frames of a lane that fit this number of bytes after their head room.
    #[inline]
    pub(crate) fn class_for(&self, lane: Lane, bytes: usize) -> Class {
        match bytes <= self.pool.transmit_room(lane) {
            true => Class::Transmit(lane),
            false => Class::Oversize(lane),
        }
    }

    /// Returns the number of receive frames outside the pool: waiting for reception in the datapath, or being read.
    pub(crate) fn frames_armed(&self) -> usize {
        let pool = &self.pool;
        let of_lanes = Lane::ALL.into_iter().map(Class::Receive);
        let of_queues = (0..MAX_DEVICE_QUEUES as u8).map(Class::Queue);
        let all = of_lanes.chain(of_queues);
        all.map(|class| pool.outstanding_of(class)).sum()
    }

    /// Returns whether epoll reports readable lanes; otherwise the datapath does.
    fn has_descriptors(&self) -> bool {
        self.capabilities.wakeup == Wakeup::Descriptors
    }

    /// Wakes the loop once when a socket for lists of discovered entities is ready. Returns false if the loop does not
    /// sleep in epoll: then it is not woken.
    pub(crate) fn watch_once(&self, socket: &OwnedFd, flags: epoll::EventFlags) -> bool {
        self.has_descriptors() && self.poller.watch_once(socket.as_fd(), flags)
    }

    /// Waits for a source. Returns the readable lanes, and their descriptors if the datapath has descriptors.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> (u16, Option<Readable>) {
        let has_descriptors = self.has_descriptors();
        if !has_descriptors && timeout == Some(Duration::ZERO) {
            return (self.datapath.ready_lanes(), None);
        }
        let waited = self.poller.wait(timeout);
        let readable = waited.expect("epoll on descriptors of our own, none of which is closed");
        match has_descriptors {
            true => (readable.lanes(), Some(readable)),
            false => (self.datapath.ready_lanes(), None),
        }
    }
}

impl State {
    /// Executes at most `limit` steps of protocol work at a priority, and sends their datagrams together. Steps that
    /// send samples continue up to `bound`, by default that of the lane. Returns the number of steps: 0 if there was no
    /// work, or no frame for the work, which is then retried a little later.
    pub(crate) fn work(
        &mut self,
        now: Instant,
        priority: Priority,
        limit: usize,
        bound: Option<BurstBound>,
    ) -> usize {
        let mut steps = 0;
        let mut burst = None;
        let mut used = BurstUse::default();
        let mut last_kind = None;
        while steps < limit || last_kind.is_some_and(sends_samples) {
            if self.io.has_pending(priority) {
                // The pending datagram goes first, so that each destination gets samples in order.
                if let Some(lane) = burst.take() {
                    self.io.flush(lane);
                }
                let Some((lane, bytes, places)) = self.io.send_pending(&self.protocol, priority)
                else {
                    self.io.starve(now, priority);
                    break;
                };
                steps += 1;
                used.add_to(places, bytes);
                let bound = bound.unwrap_or(self.scheduling.bound_of(lane));
                match steps < limit && !used.reaches(&bound) {
                    true => continue,
                    false => break,
                }
            }
            let Some(lane) = self.next_lane(priority) else {
                break;
            };
            // One call of the datapath sends for one lane only.
            if *burst.get_or_insert(lane) != lane {
                break;
            }
            let bound = bound.unwrap_or(self.scheduling.bound_of(lane));
            if used.reaches(&bound) {
                break;
            }
            let bytes = self.protocol.next_bytes(priority);
            let class = self.io.class_for(lane, bytes);
            let mut frame = None;
            if !self.io.has_room_behind(lane, class, bytes) {
                frame = self.io.take_frame(class);
                if frame.is_none() {
                    if steps == 0 {
                        self.io.starve(now, priority);
                    }
                    break;
                }
            }
            let Some(buffer) = self.io.room_for_next(frame.as_mut()) else {
                break;
            };
            let work = match self.executor.runs_by_share() {
                true => self.protocol.poll_transmit_between(now, priority, buffer),
                false => self.protocol.poll_transmit(now, priority, buffer),
            };
            let Some(work) = work else { break };
            if work.bytes == 0 {
                // A sample without readers, for example.
                used.add(0);
            } else {
                let subset;
                let whole = WholeList::of(&work.to);
                if let Some(to) = whole.filter(|to| to.places(&self.protocol).len() > MAX_MESSAGES)
                {
                    let Some(frame) = self.io.frame_of_next(frame, class, work.bytes) else {
                        break;
                    };
                    self.io.defer(PendingFanout {
                        priority,
                        lane,
                        frame,
                        to,
                        after: None,
                    });
                    self.monitoring.work[usize::from(priority.get())][work.kind.index()].steps += 1;
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
                let places = addresses.of(&self.protocol);
                used.add_to(places.len(), work.bytes);
                if frame.is_some() || !self.io.extend_burst(work.bytes, places) {
                    let Some(frame) = self.io.frame_of_next(frame, class, work.bytes) else {
                        break;
                    };
                    self.io.collect(lane, frame, places);
                }
            }
            self.monitoring.work[usize::from(priority.get())][work.kind.index()].steps += 1;
            last_kind = Some(work.kind);
            steps += 1;
        }
        if let Some(lane) = burst {
            self.io.flush(lane);
        }
        debug_assert!(
            self.io.transmit.is_empty(),
            "no datagram waits for the next call, which may be of another lane"
        );
        if let Some(kind) = last_kind {
            let observed = &mut self.monitoring.work[usize::from(priority.get())][kind.index()];
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

    /// Sends filed samples and announcements: at most `ITEMS_PER_POLL` datagrams, while there are frames.
    pub(crate) fn send_filed(&mut self) {
        let now = monotonic_now();
        for _ in 0..crate::limits::ITEMS_PER_POLL {
            let ready = self.io.all_work(&self.protocol);
            let most_urgent = Priority::descending().find(|p| ready & (1 << p.get()) != 0);
            let single = Some(BurstBound::SINGLE);
            if most_urgent.is_none_or(|priority| self.work(now, priority, 1, single) == 0) {
                return;
            }
        }
    }

    /// Sends the last datagrams: the queued ends of endpoints, and the announcement of the participant's own deletion.
    pub(crate) fn send_disposal(&mut self) {
        // The send queues are still open if a panic inside a step has ended the participant.
        self.close_send_queues();
        if !self.protocol.is_enabled() || self.protocol.announces() == Announces::Nothing {
            // Peers have received no announcement, or this participant must not send any.
            return;
        }
        self.send_filed();
        let Some(mut frame) = self.io.take_frame(Class::Transmit(Lane::Discovery)) else {
            // Without a frame for this announcement, peers notice the end when the lease expires.
            return;
        };
        let head = frame.head_room();
        let bytes = self.protocol.farewell(&mut frame.buffer_mut()[head..]);
        frame.set_range(head..head + bytes);
        let everybody: Vec<Locator> = self.protocol.farewell_to().collect();
        self.io.send(
            &self.protocol,
            Lane::Discovery,
            frame,
            Addresses::Listed(&everybody),
        );
    }
}

/// Size in bytes of each datagram of a frame but the last.
fn segment_bytes(frame: &Frame) -> usize {
    let segment_bytes = frame.segment_bytes();
    segment_bytes.map_or(frame.len(), |bytes| bytes.get().into())
}

/// Bytes by which the last datagram of a frame is shorter than the others.
fn missing_bytes(frame: &Frame) -> usize {
    let segment_bytes = segment_bytes(frame);
    frame.len().next_multiple_of(segment_bytes.max(1)) - frame.len()
}

/// Pads the last datagram of a frame to the length of the others, so that another one can follow. Returns false if it
/// would grow by more than an eighth.
fn complete(frame: &mut Frame) -> bool {
    let missing = missing_bytes(frame);
    if missing == 0 {
        return true;
    }
    let (range, most) = (frame.range(), segment_bytes(frame) / 8);
    let end = range.end + missing;
    let room = frame.buffer_mut().get_mut(range.end..end);
    let is_padded = missing <= most && room.is_some_and(message::pad);
    if is_padded {
        frame.set_range(range.start..end);
    }
    is_padded
}

/// Returns whether a step of this kind sends a sample or a part of one. Such steps share an activation.
fn sends_samples(kind: WorkKind) -> bool {
    use WorkKind::{Data, Fragment, History, Repair};
    matches!(kind, Data | Fragment | Repair | History)
}

/// Datagram with more destinations than a burst holds, sent to some of them so far. Each step sends one burst.
#[derive(Debug)]
pub(crate) struct PendingFanout {
    priority: Priority,
    lane: Lane,
    frame: Frame,
    to: WholeList,
    /// Last destination to which the datagram was sent.
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

/// Event data of the eventfd; lanes use the lower bits.
const WAKE_BIT: u64 = 1 << 63;

/// Index after those of the lanes, of the sockets for lists of discovered entities.
pub(crate) const DISCOVERED_INDEX: usize = Lane::COUNT;

/// Maximum number of descriptors, and so bits, of a lane: a device's ring (for discovery, the netlink socket for routes
/// and neighbours), two sockets, one descriptor for the ports of single topics, and the eventfd of fault injection.
const PER_LANE: usize = 5;

/// Maximum number of events of a wait: the descriptors of all lanes, a socket for lists of discovered entities, and the
/// eventfd.
const EVENTS: usize = PER_LANE * Lane::COUNT + 2;

const _: () = assert!(
    PER_LANE * (Lane::COUNT + 1) < 63,
    "the descriptors of all lanes are one word"
);

/// Set of readable descriptors of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Readable(u64);

impl Readable {
    /// First descriptor of each lane.
    pub(crate) const FIRSTS: Self = {
        let (mut firsts, mut lane) = (0, 0);
        while lane < Lane::COUNT {
            firsts |= 1 << (PER_LANE * lane);
            lane += 1;
        }
        Self(firsts)
    };

    /// Returns the readable descriptors of the lane with this index; bit *i* is the *i*-th.
    #[inline]
    pub(crate) fn of(self, lane: usize) -> u8 {
        (self.0 >> (PER_LANE * lane)) as u8 & ((1 << PER_LANE) - 1)
    }

    /// Returns the lanes with a readable descriptor ([`Lane::bit`]).
    fn lanes(self) -> u16 {
        let mut lanes = 0;
        let mut left = self.0;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            lanes |= 1 << (bit / PER_LANE);
        }
        lanes
    }
}

/// Descriptors on which the loop sleeps.
pub(crate) struct Poller {
    epoll: Rc<OwnedFd>,
    wake: Arc<OwnedFd>,
    events: Vec<epoll::Event>,
    /// Watched descriptors with their event data, for systems without `epoll_pwait2`.
    watched: Option<Vec<(u64, OwnedFd)>>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut events = Vec::<epoll::Event>::with_capacity(1);
        let buffer = rustix::buffer::spare_capacity(&mut events);
        let tried = epoll::wait(&epoll, buffer, Some(&Timespec::default()));
        Self::with(epoll, tried != Err(Errno::NOSYS))
    }

    fn with(epoll: OwnedFd, has_epoll_pwait2: bool) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let mut poller = Self {
            epoll: Rc::new(epoll),
            wake: Arc::new(wake),
            events: Vec::with_capacity(EVENTS),
            watched: (!has_epoll_pwait2).then(|| Vec::with_capacity(EVENTS)),
        };
        let wake = poller.wake_descriptor();
        poller.watch(WAKE_BIT, wake.as_fd())?;
        Ok(poller)
    }

    /// Adds the `place`-th descriptor of a lane.
    fn add(&mut self, lane: Lane, place: usize, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        assert!(place < PER_LANE, "a lane has five descriptors at most");
        self.watch(1 << (PER_LANE * lane.index() + place), descriptor)
    }

    fn watch(&mut self, data: u64, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        if let Some(watched) = &mut self.watched {
            watched.push((data, fcntl_dupfd_cloexec(descriptor, 0)?));
        }
        let event_data = epoll::EventData::new_u64(data);
        epoll::add(&*self.epoll, descriptor, event_data, epoll::EventFlags::IN)?;
        Ok(())
    }

    /// Wakes the loop once when a socket for lists of discovered entities is ready. Returns false without
    /// `epoll_pwait2`: then the loop is not woken.
    fn watch_once(&self, descriptor: BorrowedFd<'_>, flags: epoll::EventFlags) -> bool {
        let data = epoll::EventData::new_u64(1 << (PER_LANE * DISCOVERED_INDEX));
        let flags = flags | epoll::EventFlags::ONESHOT;
        let watch = || {
            epoll::modify(&*self.epoll, descriptor, data, flags)
                .or_else(|_| epoll::add(&*self.epoll, descriptor, data, flags))
        };
        self.watched.is_none() && watch().is_ok()
    }

    /// Returns the descriptor that is readable when the loop has something to do, except for timers.
    pub(crate) fn descriptor(&self) -> Rc<OwnedFd> {
        Rc::clone(&self.epoll)
    }

    /// Returns the eventfd that other threads write.
    pub(crate) fn wake_descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.wake)
    }

    /// Polls, and sleeps up to `timeout` (`None`: forever) if nothing is readable. Returns the readable descriptors.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Readable> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let waited = match &self.watched {
            None => self.wait_in_epoll(timeout.as_ref()),
            Some(watched) => wait_in_ppoll(watched, timeout.as_ref()),
        };
        let ready = match waited {
            // After a signal the loop checks its stop condition and waits again.
            Err(Errno::INTR) => 0,
            waited => waited?,
        };
        if ready & WAKE_BIT != 0 {
            let mut count = [0; 8];
            // An empty eventfd is no error: data handed over is in the rings.
            let _ = rustix::io::read(&*self.wake, &mut count);
        }
        Ok(Readable(ready & !WAKE_BIT))
    }

    fn wait_in_epoll(&mut self, timeout: Option<&Timespec>) -> rustix::io::Result<u64> {
        self.events.clear();
        let buffer = rustix::buffer::spare_capacity(&mut self.events);
        epoll::wait(&*self.epoll, buffer, timeout)?;
        let ready = self.events.iter().map(|event| event.data.u64());
        Ok(ready.fold(0, |all, data| all | data))
    }
}

fn wait_in_ppoll(
    watched: &[(u64, OwnedFd)],
    timeout: Option<&Timespec>,
) -> rustix::io::Result<u64> {
    let mut descriptors: heapless::Vec<PollFd<'_>, EVENTS> = watched
        .iter()
        .map(|(_, descriptor)| PollFd::new(descriptor, PollFlags::IN))
        .collect();
    poll(&mut descriptors, timeout)?;
    let looked_at = watched.iter().zip(&descriptors);
    let ready = looked_at.filter(|(_, looked_at)| !looked_at.revents().is_empty());
    Ok(ready.fold(0, |all, ((data, _), _)| all | data))
}

#[cfg(test)]
mod tests {
    use std::{net::UdpSocket, time::Instant};

    use super::*;

    #[test]
    fn with_and_without_epoll_pwait2_a_wait_ends_in_time_by_a_lane_and_by_the_doorbell() {
        for has_epoll_pwait2 in [true, false] {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
            let mut poller = Poller::with(epoll, has_epoll_pwait2).unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let lane = Lane::ALL[3];
            poller.add(lane, 1, socket.as_fd()).unwrap();

            let short = Duration::from_micros(300);
            let begin = Instant::now();
            assert_eq!(poller.wait(Some(short)).unwrap(), Readable::default());
            assert!(begin.elapsed() >= short);

            let to = socket.local_addr().unwrap();
            socket.send_to(&[1], to).unwrap();
            let readable = poller.wait(None).unwrap();
            assert_eq!(readable.of(lane.index()), 1 << 1);
            assert_eq!(readable.lanes(), lane.bit());
            socket.recv(&mut [0]).unwrap();

            rustix::io::write(&*poller.wake_descriptor(), &1u64.to_ne_bytes()).unwrap();
            let long = Some(Duration::from_secs(60));
            assert_eq!(poller.wait(long).unwrap(), Readable::default());
            assert!(begin.elapsed() < Duration::from_secs(30));
            let again = poller.wait(Some(Duration::ZERO));
            assert_eq!(again.unwrap(), Readable::default());
            assert!(!is_readable(&poller), "one ring is heard once");
        }
    }

    fn is_readable(poller: &Poller) -> bool {
        let descriptor = poller.descriptor();
        let mut descriptors = [PollFd::new(&*descriptor, PollFlags::IN)];
        poll(&mut descriptors, Some(&Timespec::default())).unwrap() > 0
    }
}
