//! Notification of listeners about status changes. Changes are marked at the endpoint. A separate job calls one
//! listener per activation, while the participant's state is not borrowed.

pub(crate) mod endpoint_status;
pub(crate) mod status;
pub(crate) mod status_mask;

use isolane_datapath::clock::monotonic_now;
use isolane_executor::{Executor, JobConfig, JobId};
use isolane_rtps::{
    LocalParticipant, Priority, ReaderId, ReaderStatus, RejectReason, WriterId, WriterStatus,
};
use isolane_wire::{guid::Guid, level::Level, time::Instant};

use crate::{
    error::BuildError,
    listener::status::Statuses,
    listener::status_mask::StatusMask,
    participant::discovery_events::DiscoveryListening,
    participant::event_loop::Core,
    participant::jobs::{Jobs, Task},
    participant::state::State,
};

/// Endpoint of this participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Writer(WriterId),
    Reader(ReaderId),
}

/// Kind of status with a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    PublicationMatched,
    OfferedIncompatibleQos,
    SubscriptionMatched,
    RequestedIncompatibleQos,
    SampleLost,
    SampleRejected,
    OfferedDeadlineMissed,
    RequestedDeadlineMissed,
    LivelinessLost,
    LivelinessChanged,
}

impl Kind {
    const COUNT: usize = 10;
    const ALL: [Self; Self::COUNT] = [
        Self::PublicationMatched,
        Self::OfferedIncompatibleQos,
        Self::SubscriptionMatched,
        Self::RequestedIncompatibleQos,
        Self::SampleLost,
        Self::SampleRejected,
        Self::OfferedDeadlineMissed,
        Self::RequestedDeadlineMissed,
        Self::LivelinessLost,
        Self::LivelinessChanged,
    ];

    const fn bit(self) -> u16 {
        1 << self as u8
    }

    /// Returns the kinds in which a writer's status has changed.
    pub(crate) fn of_writer(status: WriterStatus) -> u16 {
        let has = |bit, kind: Self| if status.contains(bit) { kind.bit() } else { 0 };
        has(WriterStatus::PUBLICATION_MATCHED, Self::PublicationMatched)
            | has(
                WriterStatus::OFFERED_INCOMPATIBLE_QOS,
                Self::OfferedIncompatibleQos,
            )
            | has(
                WriterStatus::OFFERED_DEADLINE_MISSED,
                Self::OfferedDeadlineMissed,
            )
            | has(WriterStatus::LIVELINESS_LOST, Self::LivelinessLost)
    }

    /// Returns the kinds in which a reader's status has changed.
    pub(crate) fn of_reader(status: ReaderStatus) -> u16 {
        let has = |bit, kind: Self| if status.contains(bit) { kind.bit() } else { 0 };
        has(
            ReaderStatus::SUBSCRIPTION_MATCHED,
            Self::SubscriptionMatched,
        ) | has(
            ReaderStatus::REQUESTED_INCOMPATIBLE_QOS,
            Self::RequestedIncompatibleQos,
        ) | has(ReaderStatus::SAMPLE_LOST, Self::SampleLost)
            | has(ReaderStatus::SAMPLE_REJECTED, Self::SampleRejected)
            | has(
                ReaderStatus::REQUESTED_DEADLINE_MISSED,
                Self::RequestedDeadlineMissed,
            )
            | has(ReaderStatus::LIVELINESS_CHANGED, Self::LivelinessChanged)
    }
}

/// Application's listener for one kind of status, which it selects from all.
pub(crate) type Listener = Box<dyn FnMut(&Statuses)>;
pub(crate) type ListenerSet = [Option<Listener>; Kind::COUNT];

/// Listeners and pending changes of an endpoint, in a table with the indexes of the RTPS participant.
#[derive(Default)]
pub(crate) struct Listening {
    /// Number of endpoints that have used this slot, so that a listener that outlives its endpoint does not pass to
    /// the next.
    pub(crate) generation: u32,
    listeners: ListenerSet,
    job: Option<JobId>,
    /// Kinds with changes that their listener has not read yet ([`Kind::bit`]).
    pending: u16,
    unread: Statuses,
    /// Statuses with unread changes, with or without a listener.
    pub(crate) changed: StatusMask,
}

impl Listening {
    fn has_listener(&self, kind: Kind) -> bool {
        self.listeners[kind as usize].is_some()
    }

    /// Resets the slot for the next endpoint; returns the job and the listeners to remove.
    fn clear(&mut self) -> (Option<JobId>, ListenerSet) {
        let generation = self.generation.wrapping_add(1);
        let former = core::mem::replace(
            self,
            Self {
                generation,
                ..Self::default()
            },
        );
        (former.job, former.listeners)
    }

    fn next_pending(&self) -> Option<Kind> {
        Kind::ALL
            .into_iter()
            .find(|kind| self.pending & kind.bit() != 0)
    }
}

/// Listeners and statuses of all endpoints, and the callback for discovery.
#[derive(Default)]
pub(crate) struct Listeners {
    writers: Vec<Listening>,
    readers: Vec<Listening>,
    pub(crate) discovery: DiscoveryListening,
    /// Counter that increases with every change on which a condition may depend.
    pub(crate) changes: u64,
}

impl Listeners {
    pub(crate) fn endpoint(&mut self, of: Endpoint) -> &mut Listening {
        let (table, place) = match of {
            Endpoint::Writer(writer) => (&mut self.writers, writer.index()),
            Endpoint::Reader(reader) => (&mut self.readers, reader.index()),
        };
        &mut table[place]
    }

    /// Creates the slot of a new endpoint.
    pub(crate) fn make(&mut self, of: Endpoint) {
        let (table, place) = match of {
            Endpoint::Writer(writer) => (&mut self.writers, writer.index()),
            Endpoint::Reader(reader) => (&mut self.readers, reader.index()),
        };
        let places = table.len().max(place + 1);
        table.resize_with(places, Listening::default);
    }

    /// Removes and returns the listeners of a deleted endpoint. They may own endpoints, so drop them while the state
    /// is not borrowed.
    pub(crate) fn clear(
        &mut self,
        jobs: &mut Jobs,
        executor: &mut Executor,
        of: Endpoint,
    ) -> ListenerSet {
        let (job, listeners) = self.endpoint(of).clear();
        if let Some(job) = job {
            jobs.remove(executor, job);
        }
        listeners
    }

    /// Removes and returns all listeners; drop them while the state is not borrowed.
    pub(crate) fn clear_all(
        &mut self,
        jobs: &mut Jobs,
        executor: &mut Executor,
    ) -> Vec<ListenerSet> {
        let writers = self.writers.iter_mut();
        let all = writers.chain(&mut self.readers);
        let (removed, listeners): (Vec<_>, Vec<_>) = all.map(Listening::clear).unzip();
        for job in removed.into_iter().flatten() {
            jobs.remove(executor, job);
        }
        listeners
    }

    /// Marks these kinds as changed at an endpoint ([`Kind::bit`]).
    pub(crate) fn note_statuses(
        &mut self,
        executor: &mut Executor,
        now: Instant,
        of: Endpoint,
        kinds: u16,
    ) {
        if kinds == 0 {
            return;
        }
        self.note_change();
        let listening = self.endpoint(of);
        for kind in Kind::ALL {
            if kinds & kind.bit() != 0 {
                listening.changed |= kind.mask();
            }
        }
        let Some(job) = listening.job else { return };
        for kind in Kind::ALL {
            if kinds & kind.bit() != 0 && listening.has_listener(kind) {
                listening.pending |= kind.bit();
            }
        }
        if listening.pending != 0 {
            executor.activate(job, now);
        }
    }

    /// Sets a listener, which is also notified of earlier changes. Returns the former one; drop it while the state is
    /// not borrowed.
    pub(crate) fn listen(
        &mut self,
        jobs: &mut Jobs,
        executor: &mut Executor,
        of: Endpoint,
        kind: Kind,
        (topic, level): (&str, Level),
        listener: Listener,
    ) -> Result<Option<Listener>, BuildError> {
        if self.endpoint(of).job.is_none() {
            let name = format!("status {topic}");
            let config = JobConfig::event(&name, Priority::of_protocol(level).get());
            self.endpoint(of).job = Some(jobs.add(executor, config, Task::Status(of))?);
        }
        let listening = self.endpoint(of);
        let former = listening.listeners[kind as usize].replace(listener);
        // Marked as pending to check for earlier changes; without one the listener is not called.
        listening.pending |= kind.bit();
        if let Some(job) = listening.job {
            executor.activate(job, monotonic_now());
        }
        Ok(former)
    }

    /// Takes the change of one kind from the RTPS participant. Returns false if there is none.
    fn take_status(&mut self, protocol: &mut LocalParticipant, of: Endpoint, kind: Kind) -> bool {
        let mut unread = match of {
            Endpoint::Writer(writer) => self.writers[writer.index()].unread,
            Endpoint::Reader(reader) => self.readers[reader.index()].unread,
        };
        let taken = match (of, kind) {
            (Endpoint::Writer(id), Kind::PublicationMatched) => protocol
                .take_publication_matched(id)
                .map(|taken| unread.publication_matched = taken.into()),
            (Endpoint::Writer(id), Kind::OfferedIncompatibleQos) => protocol
                .take_offered_incompatible(id)
                .map(|taken| unread.offered_incompatible_qos = taken.into()),
            (Endpoint::Reader(id), Kind::SubscriptionMatched) => protocol
                .take_subscription_matched(id)
                .map(|taken| unread.subscription_matched = taken.into()),
            (Endpoint::Reader(id), Kind::RequestedIncompatibleQos) => protocol
                .take_requested_incompatible(id)
                .map(|taken| unread.requested_incompatible_qos = taken.into()),
            (Endpoint::Reader(id), Kind::SampleLost) => protocol
                .take_sample_lost(id)
                .map(|taken| unread.sample_lost = taken.into()),
            (Endpoint::Reader(id), Kind::SampleRejected) => protocol
                .take_sample_rejected(id)
                .map(|taken| unread.sample_rejected = taken.into()),
            (Endpoint::Writer(id), Kind::OfferedDeadlineMissed) => protocol
                .take_offered_deadline_missed(id)
                .map(|taken| unread.offered_deadline_missed = taken.into()),
            (Endpoint::Reader(id), Kind::RequestedDeadlineMissed) => protocol
                .take_requested_deadline_missed(id)
                .map(|taken| unread.requested_deadline_missed = taken.into()),
            (Endpoint::Writer(id), Kind::LivelinessLost) => protocol
                .take_liveliness_lost(id)
                .map(|taken| unread.liveliness_lost = taken.into()),
            (Endpoint::Reader(id), Kind::LivelinessChanged) => protocol
                .take_liveliness_changed(id)
                .map(|taken| unread.liveliness_changed = taken.into()),
            _ => None,
        };
        let listening = self.endpoint(of);
        listening.unread = unread;
        listening.pending &= !kind.bit();
        listening.changed -= kind.mask();
        taken.is_some()
    }

    /// Counts a change on which a condition may depend, so that wait sets evaluate their conditions again.
    #[inline]
    pub(crate) fn note_change(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }

    /// Notes that samples of a reader have become available.
    #[inline]
    pub(crate) fn note_data(&mut self, reader: ReaderId) {
        self.note_change();
        self.readers[reader.index()].changed |= StatusMask::DATA_AVAILABLE;
    }

    /// Notes an access to a reader, which resets `DATA_AVAILABLE` and changes sample states.
    #[inline]
    pub(crate) fn note_access(&mut self, reader: ReaderId) {
        self.note_change();
        self.readers[reader.index()].changed -= StatusMask::DATA_AVAILABLE;
    }

    pub(crate) fn status_changes(&mut self, of: Endpoint) -> StatusMask {
        self.endpoint(of).changed
    }
}

impl State {
    /// Counts the sample delivered last as rejected, because it was not of the type.
    pub(crate) fn reject_delivered(
        &mut self,
        reader: ReaderId,
        writer: Guid,
        reason: RejectReason,
    ) {
        self.protocol.reject_delivered(reader, writer, reason);
        let of = Endpoint::Reader(reader);
        self.listeners.note_statuses(
            &mut self.executor,
            monotonic_now(),
            of,
            Kind::SampleRejected.bit(),
        );
    }

    /// Returns the status of one kind, with the changes since it was last read.
    pub(crate) fn status(&mut self, of: Endpoint, kind: Kind) -> Statuses {
        // Changes that are read now must not count again later.
        self.take_notes_now();
        self.listeners.take_status(&mut self.protocol, of, kind);
        let unread = &mut self.listeners.endpoint(of).unread;
        let now = *unread;
        unread.settle();
        now
    }
}

impl Core {
    /// Notifies one listener of an endpoint. Returns true if another one is pending.
    pub(crate) fn notify(&self, of: Endpoint) -> bool {
        let (generation, kind, mut listener, statuses) = {
            let state = &mut *self.state.borrow_mut();
            state.take_notes_now();
            let Some(kind) = state.listeners.endpoint(of).next_pending() else {
                return false;
            };
            if !state.listeners.take_status(&mut state.protocol, of, kind) {
                // A getter has read the change meanwhile.
                return state.listeners.endpoint(of).pending != 0;
            }
            let listening = state.listeners.endpoint(of);
            let statuses = listening.unread;
            listening.unread.settle();
            let listener = listening.listeners[kind as usize].take();
            (listening.generation, kind, listener, statuses)
        };
        if let Some(listener) = &mut listener {
            listener(&statuses);
        }

        // Declared after the listener, so that the borrow ends before a removed listener is dropped.
        let mut state = self.state.borrow_mut();
        let listening = state.listeners.endpoint(of);
        if listening.generation != generation {
            return false;
        }
        let place = &mut listening.listeners[kind as usize];
        if place.is_none() {
            *place = listener.take();
        }
        listening.pending != 0
    }
}
