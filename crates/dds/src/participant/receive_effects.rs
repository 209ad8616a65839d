//! Effects of received datagrams: jobs become ready as of the arrival, and their waiting times are recorded.

use isolane_datapath::{Lane, clock::monotonic_now};
use isolane_rtps::{Priority, ReaderStatus, StatusChange, WriterStatus};
use isolane_wire::{level::Level, locator::Locator, time::Instant};

use crate::{
    listener::{Endpoint, status::Kind},
    participant::state::State,
    writer::remote::SendQueue,
};

impl State {
    /// Makes jobs ready for status changes caused by a datagram that arrived at `arrived`. Returns the most critical
    /// level with available samples.
    #[inline]
    pub(crate) fn take_notes(&mut self, now: Instant, arrived: Instant) -> Option<Level> {
        // This runs after every datagram, and usually nothing has changed.
        match self.protocol.has_status() {
            true => self.take_all_notes(now, arrived),
            false => None,
        }
    }

    /// Makes jobs ready for status changes caused by the application's own calls.
    pub(crate) fn take_notes_now(&mut self) {
        let now = monotonic_now();
        self.take_notes(now, now);
    }

    fn take_all_notes(&mut self, now: Instant, arrived: Instant) -> Option<Level> {
        let mut most_critical = None;
        while let Some(change) = self.protocol.next_status() {
            most_critical = most_critical.max(self.take_note(now, arrived, change));
        }
        most_critical
    }

    fn take_note(&mut self, now: Instant, arrived: Instant, change: StatusChange) -> Option<Level> {
        match change {
            StatusChange::Reader(id, status) => {
                let is_incompatible = status.contains(ReaderStatus::REQUESTED_INCOMPATIBLE_QOS);
                self.monitoring.warning_log.has_incompatible |= is_incompatible;
                self.listeners.note_statuses(
                    &mut self.executor,
                    now,
                    Endpoint::Reader(id),
                    Kind::of_reader(status),
                );
                if !status.contains(ReaderStatus::DATA_AVAILABLE) {
                    return None;
                }
                self.listeners.note_data(id);
                let slot = &self.reader_slots[id.index()];
                if let Some(job) = slot.job {
                    self.executor.activate_since(job, arrived, now);
                }
                return Some(slot.level);
            }
            StatusChange::Writer(id, status) => {
                let is_incompatible = status.contains(WriterStatus::OFFERED_INCOMPATIBLE_QOS);
                self.monitoring.warning_log.has_incompatible |= is_incompatible;
                self.listeners.note_statuses(
                    &mut self.executor,
                    now,
                    Endpoint::Writer(id),
                    Kind::of_writer(status),
                );
                if status.intersects(WriterStatus::ROOM | WriterStatus::ALL_ACKNOWLEDGED) {
                    let of_writer = self.send_queues.iter_mut().find(|queue| queue.writer == id);
                    of_writer.into_iter().for_each(SendQueue::wake);
                }
            }
            StatusChange::Discovery => {
                self.listeners
                    .discovery
                    .note_events(&mut self.executor, &self.protocol, now);
            }
        }
        None
    }

    /// Processes the effects of a datagram that the running job, started at `now`, has read: jobs become ready as of
    /// its arrival, and its wait is counted. `viewed` is the most critical level of the views delivered.
    #[inline]
    pub(crate) fn note_datagram(
        &mut self,
        now: Instant,
        lane: Lane,
        from: &Locator,
        arrived: Instant,
        viewed: Option<Level>,
    ) {
        self.monitoring
            .warning_log
            .note_datagram(self.protocol.counters(), from);
        let brought = self.take_notes(now, arrived);
        let level = match self.lanes.is_per_level() {
            true => lane.level(),
            // On a shared lane the samples tell the level.
            false => lane.level().and(brought.max(viewed)),
        };
        let priority = match level {
            Some(level) => Priority::of_data(level),
            None if lane == Lane::Discovery => Priority::DISCOVERY,
            None => return,
        };
        let waited = self.executor.record_arrival(priority.get(), arrived);
        if let Some(level) = level {
            self.monitoring.inversions.note_datagram(level, waited);
        }
    }
}
