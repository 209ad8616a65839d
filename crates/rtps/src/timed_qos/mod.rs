//! Timed QoS policies of an endpoint.
//!
//! The policies are LIFESPAN ([`lifespan`]), TIME_BASED_FILTER ([`time_based_filter`]), DEADLINE ([`deadline`]),
//! LIVELINESS ([`liveliness`], [`participant_message`]), READER_DATA_LIFECYCLE ([`purge`]), OWNERSHIP ([`ownership`])
//! and DESTINATION_ORDER ([`destination_order`]). An endpoint with any of them has one timer, set to the time at which
//! the first of them is due, however many instances and samples there are. On expiry the timer files a step of work
//! (*WriterTimedQos*, *ReaderTimedQos*) at the priority of the topic's protocol work. A step handles a bounded number
//! of instances, or all matched writers of a reader, and files itself again while more are due.
//!
//! An endpoint without such policies has no such timer; its samples cost one comparison. [`sample_checks`] applies the
//! policies to received samples.
//!
//! # Changes at run time (DDS 1.4 §2.2.3, *Changeable*)
//!
//! A change keeps the counts and the monitored instances.
//!
//! The slots for samples held back by TIME_BASED_FILTER are allocated when a reader is created. A reader that gets its
//! first filter later has none: it filters without delivering the last value.

mod deadline;
mod destination_order;
mod event_order;
mod lifespan;
mod liveliness;
mod ownership;
mod participant_message;
mod reader_data_lifecycle;
mod sample_checks;
mod time_based_filter;

use alloc::boxed::Box;
use core::time::Duration;

use isolane_wire::{
    qos::{DestinationOrderKind, LivelinessKind, OwnershipKind, QosPolicies, ReliabilityKind},
    sequence::SequenceNumber,
    time::{self, Instant},
};

use crate::{
    limits::{MIN_PERIOD, WATCHED_INSTANCES},
    participant::{Facts, Shared},
    reader::{Reader, ReaderStatus, Readers},
    slab::{ReaderId, WriterId},
    timed_qos::{
        deadline::Deadline, destination_order::SourceOrder, liveliness::LivelinessAssertion,
        ownership::Owners, time_based_filter::Filter,
    },
    work::{Filed, Work, WorkKind},
    work_queue::Timer,
    writer::{WriterStatus, Writers, write::WriteSample},
};

pub use self::{
    deadline::DeadlineMissed,
    liveliness::{LivelinessChanged, LivelinessLost},
};

pub(crate) use self::{
    lifespan::Expired,
    liveliness::{LivelinessTally, WriterLiveness},
    ownership::Claimant,
    participant_message::{Assertions, MESSAGES, PARTICIPANT_LIVELINESS_KINDS},
    reader_data_lifecycle::Purges,
    sample_checks::{Check, check_held, check_waiting, judge},
};

/// State of a writer's timed policies.
#[derive(Debug)]
pub(crate) struct WriterTimedQos {
    pub(crate) lifespan: Option<Duration>,
    /// Lower bound of the next expiry in the history; `None` if nothing is known to expire.
    next_expiry: Option<Instant>,
    /// First sequence number that may expire. Lower ones were removed, or are ends of instances, which never expire.
    expirable_from: SequenceNumber,
    /// Samples that expired before transmission, with sequence numbers not sent yet.
    pub(crate) expired_unsent: u64,
    pub(crate) deadline: Option<Deadline>,
    /// State of a manual LIVELINESS kind.
    pub(crate) signal: Option<LivelinessAssertion>,
    /// Set if the next HEARTBEAT must assert liveliness.
    pub(crate) asserts: bool,
    is_filed: bool,
}

/// State of a reader's own timed policies.
#[derive(Debug)]
pub(crate) struct ReaderTimedQos {
    pub(crate) filter: Option<Filter>,
    pub(crate) deadline: Option<Deadline>,
    /// Owner of each instance for OWNERSHIP EXCLUSIVE.
    pub(crate) owners: Option<Owners>,
    /// Latest sample of each instance for DESTINATION_ORDER BY_SOURCE_TIMESTAMP.
    pub(crate) source_order: Option<SourceOrder>,
    /// Set if READER_DATA_LIFECYCLE purges samples of ended instances.
    purges: bool,
    /// Latest reception time of a sample.
    latest: Instant,
    /// Samples of instances that could not be monitored for lack of room, not yet added to the counters.
    unwatched: u64,
}

/// Period of a policy, at least `MIN_PERIOD`; `None` if infinite.
fn period(asked: time::Duration) -> Option<Duration> {
    asked.to_core().map(|period| period.max(MIN_PERIOD))
}

fn watched_instances(qos: &QosPolicies, keyed: bool) -> u16 {
    if !keyed {
        return 1;
    }
    let asked = u16::try_from(qos.resource_limits.max_instances).ok();
    asked
        .filter(|&asked| asked > 0)
        .unwrap_or(WATCHED_INSTANCES)
}

fn is_filtered(qos: &QosPolicies) -> bool {
    qos.time_based_filter > time::Duration::ZERO
}

/// Maximum number of samples that TIME_BASED_FILTER holds back at a time: the last one of each instance.
pub(crate) fn kept_back(qos: &QosPolicies, keyed: bool) -> u16 {
    let is_reliable = qos.reliability.kind == ReliabilityKind::Reliable;
    match is_reliable && is_filtered(qos) {
        true => watched_instances(qos, keyed),
        false => 0,
    }
}

impl WriterTimedQos {
    fn of(qos: &QosPolicies, keyed: bool, seed: u64, now: Instant) -> Self {
        let instances = watched_instances(qos, keyed);
        let kind = qos.liveliness.kind;
        let is_manual = kind != LivelinessKind::Automatic;
        let lease = period(qos.liveliness.lease).filter(|_| is_manual);
        Self {
            lifespan: qos.lifespan.to_core(),
            // Due now, because an existing history was written with no lifespan or another one.
            next_expiry: qos.lifespan.to_core().map(|_| now),
            expirable_from: SequenceNumber(0),
            expired_unsent: 0,
            deadline: period(qos.deadline).map(|period| Deadline::new(period, instances, seed)),
            signal: lease.map(|lease| LivelinessAssertion::new(kind, lease, now)),
            asserts: false,
            is_filed: false,
        }
    }

    fn is_any(&self) -> bool {
        self.lifespan.is_some() || self.deadline.is_some() || self.signal.is_some()
    }
}

impl ReaderTimedQos {
    fn of(qos: &QosPolicies, keyed: bool, seed: u64) -> Self {
        let instances = watched_instances(qos, keyed);
        let separation = qos.time_based_filter.to_core();
        let separation = separation.filter(|_| is_filtered(qos));
        let is_exclusive = qos.ownership == OwnershipKind::Exclusive;
        let is_by_source = qos.destination_order == DestinationOrderKind::BySourceTimestamp;
        Self {
            filter: separation.map(|separation| Filter::new(separation, instances, seed)),
            deadline: period(qos.deadline).map(|period| Deadline::new(period, instances, seed)),
            owners: is_exclusive.then(|| Owners::new(instances, seed)),
            source_order: is_by_source.then(|| SourceOrder::new(instances, seed)),
            purges: Purges::is_requested(&qos.reader_data_lifecycle),
            latest: Instant::new(0),
            unwatched: 0,
        }
    }

    fn is_any(&self) -> bool {
        let is_timed = self.filter.is_some() || self.deadline.is_some() || self.purges;
        is_timed || self.owners.is_some() || self.source_order.is_some()
    }
}

impl Reader {
    /// Earliest time at which a policy on received samples is due.
    fn next_due(&self) -> Option<Instant> {
        let cache = self.cache.as_ref();
        let clock = self.clock.as_ref();
        let times = [
            cache.and_then(|cache| cache.next_expiry()),
            cache.and_then(|cache| cache.instances.next_purge()),
            clock.and_then(|clock| clock.filter.as_ref()?.next(cache)),
            clock.and_then(|clock| clock.deadline.as_ref()?.next()),
            self.ask_at,
        ];
        times.into_iter().flatten().min()
    }
}

impl Writers {
    /// Applies the timed policies to a sample just written.
    #[inline(never)]
    pub(crate) fn note_written(
        &mut self,
        shared: &mut Shared,
        index: WriterId,
        sample: &WriteSample,
    ) {
        let (at, latest) = (shared.written_about(sample.timestamp), shared.latest);
        let writer = &mut self.table[index];
        let Some(clock) = &mut writer.clock else {
            return;
        };
        // Samples that are not stored need no expiry.
        if let (Some(lifespan), Some(history)) = (clock.lifespan, &mut writer.history) {
            history.note_written(at);
            clock.next_expiry.get_or_insert(at + lifespan);
        }
        if let Some(deadline) = &mut clock.deadline {
            let is_watched = deadline.note_written(sample, at.max(latest));
            shared.counters.unwatched += u64::from(!is_watched);
        }
        let deadline = clock.deadline.as_ref().and_then(Deadline::next);
        let due = [clock.next_expiry, deadline].into_iter().flatten().min();
        let asserts = clock.signal.is_some();
        if let Some(due) = due {
            let timer = Timer::WriterTimedQos(index);
            shared.timers.bring_forward(timer, due);
        }
        if asserts {
            self.assert_writer(shared, at, index);
        }
    }

    /// Sets a writer's timer to the time at which the first policy is due.
    pub(crate) fn arm_writer(&mut self, shared: &mut Shared, now: Instant, index: WriterId) {
        let by_participant = self.assertions.at();
        let Some(clock) = self
            .table
            .get(index)
            .and_then(|writer| writer.clock.as_ref())
        else {
            return;
        };
        let times = [
            clock.next_expiry,
            clock.deadline.as_ref().and_then(Deadline::next),
            clock
                .signal
                .as_ref()
                .and_then(|signal| signal.ends(by_participant)),
        ];
        match times.into_iter().flatten().min() {
            Some(due) if due <= now => self.schedule_writer_timed_qos(shared, index),
            Some(due) => {
                let timer = Timer::WriterTimedQos(index);
                shared.timers.bring_forward(timer, due);
            }
            None => {}
        }
    }

    pub(crate) fn schedule_writer_timed_qos(&mut self, shared: &mut Shared, index: WriterId) {
        let Some(writer) = self.table.get_mut(index) else {
            return;
        };
        let priority = writer.protocol_priority();
        if let Some(clock) = &mut writer.clock
            && !core::mem::replace(&mut clock.is_filed, true)
        {
            shared.schedule(priority, Filed::WriterTimedQos(index));
        }
    }

    pub(crate) fn run_writer_timed_qos(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: WriterId,
    ) -> Option<Work> {
        let by_participant = self.assertions.at();
        let writer = self.table.get_mut(index)?;
        let clock = writer.clock.as_mut()?;
        clock.is_filed = false;
        let deadline = clock.deadline.as_mut();
        if deadline.is_some_and(|deadline| deadline.miss(now, |_| false, |_| {})) {
            writer.status |= WriterStatus::OFFERED_DEADLINE_MISSED;
        }
        let signal = clock.signal.as_mut();
        if signal.is_some_and(|signal| signal.is_lost_now(now, by_participant)) {
            writer.status |= WriterStatus::LIVELINESS_LOST;
        }
        let level = writer.level;
        let _ = self.expire_history(shared, now, index);
        self.note_writer(shared, index);
        self.arm_writer(shared, now, index);
        Some(Work::nothing(WorkKind::WriterTimedQos, level))
    }
}

impl Readers {
    /// Sets a reader's timer to the time at which the first policy is due, given the samples received.
    pub(crate) fn arm_reader(&mut self, shared: &mut Shared, index: ReaderId) {
        let due = self.table.get(index).and_then(Reader::next_due);
        if let Some(due) = due {
            let timer = Timer::ReaderTimedQos(index);
            shared.timers.bring_forward(timer, due);
        }
    }

    pub(crate) fn schedule_reader_timed_qos(&mut self, shared: &mut Shared, index: ReaderId) {
        let Some(reader) = self.table.get_mut(index) else {
            return;
        };
        let priority = reader.protocol_priority();
        if !core::mem::replace(&mut reader.clock_filed, true) {
            shared.schedule(priority, Filed::ReaderTimedQos(index));
        }
    }

    pub(crate) fn run_reader_timed_qos(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        now: Instant,
        index: ReaderId,
    ) -> Option<Work> {
        self.table.get_mut(index)?.clock_filed = false;
        // Samples beyond the bound of this step stay due.
        self.remove_samples(shared, facts, index, |cache| cache.expire_some(now) > 0);
        self.ask_writers_again(shared, facts, now, index);
        self.make_set_room(shared, facts, now, index);
        self.remove_samples(shared, facts, index, |cache| cache.purge(now) > 0);
        let reader = self.table.get_mut(index)?;
        let level = reader.level;
        if let Some(clock) = &mut reader.clock {
            let cache = &mut reader.cache;
            if let (Some(filter), Some(cache)) = (&mut clock.filter, cache.as_mut())
                && filter.release(now, cache)
            {
                reader.status |= ReaderStatus::DATA_AVAILABLE;
            }
            let has_ended = |key| cache.as_ref().is_some_and(|cache| cache.has_ended(key));
            let owners = &mut clock.owners;
            // The owner missed its deadline: the next writer of the instance becomes the owner.
            let is_missed = |key| owners.iter_mut().for_each(|owners| owners.release(key));
            let deadline = clock.deadline.as_mut();
            if deadline.is_some_and(|deadline| deadline.miss(now, has_ended, is_missed)) {
                reader.status |= ReaderStatus::REQUESTED_DEADLINE_MISSED;
            }
        }
        // Peers choose the leases. All are checked together, at most once a minimum period.
        let of_leases = self.look_at_leases(shared, facts, now, index);
        let of_leases = of_leases.map(|due| due.max(now + MIN_PERIOD));
        self.note_reader(shared, index);
        let of_samples = self.table.get(index).and_then(Reader::next_due);
        match of_leases.into_iter().chain(of_samples).min() {
            Some(due) if due <= now => self.schedule_reader_timed_qos(shared, index),
            Some(due) => {
                let timer = Timer::ReaderTimedQos(index);
                shared.timers.bring_forward(timer, due);
            }
            None => {}
        }
        Some(Work::nothing(WorkKind::ReaderTimedQos, level))
    }
}

/// Applies a new period to a deadline.
fn follow(before: Option<Deadline>, next: Option<Deadline>) -> Option<Deadline> {
    match (before, next) {
        (Some(before), next) => Some(before.followed_by(next)),
        (None, next) => next,
    }
}

impl WriterTimedQos {
    fn followed_by(self, next: Self) -> Self {
        Self {
            lifespan: next.lifespan,
            next_expiry: next.next_expiry,
            deadline: follow(self.deadline, next.deadline),
            ..self
        }
    }
}

impl ReaderTimedQos {
    fn followed_by(self, next: Self) -> Self {
        let filter = match (self.filter, next.filter) {
            (Some(before), next) => Some(before.followed_by(next)),
            (None, next) => next,
        };
        Self {
            filter,
            deadline: follow(self.deadline, next.deadline),
            purges: next.purges,
            ..self
        }
    }
}

impl Writers {
    /// Applies a writer's current policies to its timed-QoS state, and sets its timer.
    pub(crate) fn set_writer_clock(&mut self, shared: &mut Shared, now: Instant, index: WriterId) {
        let seed = shared.config.seed;
        let Some(writer) = self.table.get_mut(index) else {
            return;
        };
        let keyed = writer.guid.entity.is_keyed();
        let next = WriterTimedQos::of(&writer.data.qos, keyed, seed, now);
        writer.clock = match writer.clock.take() {
            Some(before) => Some(Box::new(before.followed_by(next))),
            None => next.is_any().then(|| Box::new(next)),
        };
        self.arm_writer(shared, now, index);
        self.arm_messages(shared, now, index);
    }
}

impl Readers {
    /// Applies a reader's current policies to its timed-QoS state, and sets its timer. Its matched writers are checked
    /// afterwards.
    pub(crate) fn set_reader_clock(&mut self, shared: &mut Shared, now: Instant, index: ReaderId) {
        let seed = shared.config.seed;
        let Some(reader) = self.table.get_mut(index) else {
            return;
        };
        let lifecycle = &reader.data.qos.reader_data_lifecycle;
        let before = reader.clock.as_ref().is_some_and(|clock| clock.purges);
        if let Some(cache) = &mut reader.cache
            && (before || Purges::is_requested(lifecycle))
        {
            cache.instances.set_purges(lifecycle, seed, now);
        }
        let next = ReaderTimedQos::of(&reader.data.qos, reader.keyed, seed);
        reader.clock = match reader.clock.take() {
            Some(before) => Some(Box::new(before.followed_by(next))),
            None => next.is_any().then(|| Box::new(next)),
        };
        self.arm_reader(shared, index);
    }
}
