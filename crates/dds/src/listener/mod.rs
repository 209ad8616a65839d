//! Notification of listeners about status changes. Changes are marked at the endpoint. A separate job calls one
//! listener per activation, while the participant's state is not borrowed.

pub(crate) mod status;

use isolane_datapath::clock::monotonic_now;
use isolane_executor::{Executor, JobConfig, JobId};
use isolane_rtps::{LocalParticipant, Priority, ReaderId, RejectReason, WriterId};
use isolane_wire::{guid::Guid, level::Level, time::Instant};

use crate::{
    error::BuildError,
    listener::status::{Kind, StatusMask, Statuses},
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

/// Application's listener for one kind of status. The closure selects that status from [`Statuses`].
pub(crate) type Listener = Box<dyn FnMut(&Statuses)>;
pub(crate) type ListenerSet = [Option<Listener>; Kind::COUNT];

/// Listeners and pending changes of an endpoint, in a table with the indexes of the RTPS participant.
#[derive(Default)]
pub(crate) struct Listening {
    /// Number of endpoints that have used this slot. It shows that a listener has outlived its endpoint, and does not
    /// belong to the next one.
    pub(crate) generation: u32,
    listeners: ListenerSet,
    job: Option<JobId>,
    /// Statuses with changes that their listener has not read yet.
    pending: StatusMask,
    unread: Statuses,
    /// Statuses with unread changes, with or without a listener.
    pub(crate) changed: StatusMask,
}

impl Listening {
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
        let mut kinds = Kind::ALL.iter().copied();
        kinds.find(|kind| self.pending.contains(kind.mask()))
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
    /// Returns the table of an endpoint and its index there.
    fn slot(&mut self, of: Endpoint) -> (&mut Vec<Listening>, usize) {
        match of {
            Endpoint::Writer(writer) => (&mut self.writers, writer.index()),
            Endpoint::Reader(reader) => (&mut self.readers, reader.index()),
        }
    }

    pub(crate) fn endpoint(&mut self, of: Endpoint) -> &mut Listening {
        let (table, place) = self.slot(of);
        &mut table[place]
    }

    /// Creates the slot of a new endpoint.
    pub(crate) fn make(&mut self, of: Endpoint) {
        let (table, place) = self.slot(of);
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

    /// Marks these statuses as changed at an endpoint.
    pub(crate) fn note_statuses(
        &mut self,
        executor: &mut Executor,
        now: Instant,
        of: Endpoint,
        statuses: StatusMask,
    ) {
        if statuses.is_empty() {
            return;
        }
        self.note_change();
        let listening = self.endpoint(of);
        listening.changed |= statuses;
        let Some(job) = listening.job else { return };
        for kind in Kind::ALL {
            if listening.listeners[*kind as usize].is_some() {
                listening.pending |= statuses & kind.mask();
            }
        }
        if !listening.pending.is_empty() {
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
        // Marked as pending, so that the job checks for earlier changes. Without a change it calls no listener.
        listening.pending |= kind.mask();
        if let Some(job) = listening.job {
            executor.activate(job, monotonic_now());
        }
        Ok(former)
    }

    /// Takes the change of one kind from the RTPS participant. Returns false if there is none.
    fn take_status(&mut self, protocol: &mut LocalParticipant, of: Endpoint, kind: Kind) -> bool {
        let listening = self.endpoint(of);
        listening.pending -= kind.mask();
        listening.changed -= kind.mask();
        listening.unread.take(protocol, of, kind)
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
            StatusMask::SAMPLE_REJECTED,
        );
    }
}

impl Core {
    /// Sets a listener of an endpoint.
    fn listen(
        &self,
        of: Endpoint,
        kind: Kind,
        topic: (&str, Level),
        listener: Listener,
    ) -> Result<(), BuildError> {
        let former = {
            let State {
                listeners,
                jobs,
                executor,
                ..
            } = &mut *self.state.borrow_mut();
            listeners.listen(jobs, executor, of, kind, topic, listener)?
        };
        // The listener may own a writer, whose deletion borrows the state.
        drop(former);
        Ok(())
    }

    /// Returns the statuses of an endpoint with unread changes.
    fn status_changes(&self, of: Endpoint) -> StatusMask {
        let mut state = self.state.borrow_mut();
        state.take_notes_now();
        state.listeners.endpoint(of).changed
    }

    /// Returns the status of one kind, with the changes since it was last read.
    fn status(&self, of: Endpoint, kind: Kind) -> Statuses {
        let state = &mut *self.state.borrow_mut();
        // Changes that are read now must not count again later.
        state.take_notes_now();
        state.listeners.take_status(&mut state.protocol, of, kind);
        let unread = &mut state.listeners.endpoint(of).unread;
        let now = *unread;
        unread.settle();
        now
    }

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
                return !state.listeners.endpoint(of).pending.is_empty();
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
        !listening.pending.is_empty()
    }
}
