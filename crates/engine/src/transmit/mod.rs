//! Destination list with one address or none.

mod filtered;
mod first;
mod fragment;
mod heartbeat;
mod repair;
mod taken;
mod told;

use heapless::Vec as BoundedVec;
use isolane_wire::{
    guid::EntityId,
    level::Level,
    locator::Locator,
    rtps::{Gap, MessageWriter},
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

use crate::{
    engine::Engine,
    history::Change,
    limits::{BATCH_BYTES, FRAGMENT_BYTES, MAX_DATAGRAM_BYTES, MAX_HEAD_BYTES},
    priority::Priority,
    work::{Destinations, Filed, Work, WorkKind},
    write::WriteSample,
};

/// Destination list with one address or none.
fn to_one(locator: Option<Locator>) -> Destinations {
    Destinations::Listed(locator.into_iter().collect::<BoundedVec<Locator, 4>>())
}

impl Change {
    fn sample(&self) -> WriteSample {
        WriteSample {
            kind: self.kind,
            key_hash: self.key_hash,
            timestamp: self.timestamp,
        }
    }
}

impl Engine {
    /// Runs one step of the work filed at `priority`; `None` if there is none.
    ///
    /// A resulting datagram is written to the start of `buffer`, which should hold
    /// [`MAX_DATAGRAM_BYTES`](crate::limits::MAX_DATAGRAM_BYTES). A datagram that does not fit is counted
    /// ([`Counters::buffer_too_small`](crate::Counters)) and not sent.
    pub fn next_work(
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
    pub fn next_work_between(
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
        let filed = self.board.take(priority)?;
        let Filed { kind, subject } = filed;
        let is_limited = priority == Priority::DISCOVERY && self.is_limited(filed);
        self.latest = now;
        let work = match kind {
            WorkKind::Announce => self.announce(subject, buffer),
            WorkKind::Discovery => self.take_in_announcement(now),
            WorkKind::Data => self.send_data(now, subject, buffer),
            WorkKind::Fragment => self.send_fragment(now, subject, buffer),
            WorkKind::Heartbeat => self.send_heartbeat(subject, buffer),
            WorkKind::WriterClock => self.run_writer_clock(now, subject),
            WorkKind::ReaderClock => self.run_reader_clock(now, subject),
            WorkKind::AckNack if is_between && self.has_untaken(subject) => {
                self.send_taken(subject, buffer)
            }
            WorkKind::AckNack => self.send_acknack(now, subject, buffer),
            WorkKind::Repair => {
                let work = self.send_repair(now, subject, buffer);
                self.spend_on_reader(subject, work)
            }
            WorkKind::History => {
                let work = self.send_history(now, subject, buffer);
                self.spend_on_reader(subject, work)
            }
        };
        if is_limited && let Some(work) = &work {
            self.pay_for_discovery(now, work);
        }
        // A step whose subject no longer exists sends nothing, but counts as a step.
        Some(work.unwrap_or(Work {
            kind,
            level: None,
            bytes: 0,
            to: to_one(None),
        }))
    }

    /// Level of the step that [`Self::next_work`] would run next at `priority`, which determines the frame to use
    /// (`Some(None)`: discovery's). Returns `None` if there is nothing to do. The priority alone is ambiguous, since
    /// level 0 shares its priorities with discovery.
    #[must_use]
    pub fn next_level(&self, priority: Priority) -> Option<Option<Level>> {
        let Filed { kind, subject } = self.board.peek(priority)?;
        let of_writer = |writer| self.writers.get(writer).and_then(|writer| writer.level);
        Some(match kind {
            WorkKind::Announce | WorkKind::Discovery => None,
            WorkKind::Data | WorkKind::Fragment | WorkKind::Heartbeat | WorkKind::WriterClock => {
                of_writer(subject)
            }
            WorkKind::ReaderClock => self.readers.get(subject).and_then(|reader| reader.level),
            WorkKind::AckNack => self
                .writer_proxies
                .get(subject)
                .and_then(|proxy| self.readers.get(proxy.reader)?.level),
            WorkKind::Repair | WorkKind::History => self
                .reader_proxies
                .get(subject)
                .and_then(|proxy| of_writer(proxy.writer)),
        })
    }

    /// Maximum size in bytes of the next datagram at `priority`, for callers with buffers of several sizes. 0 if there
    /// is nothing to do.
    #[must_use]
    pub fn next_bytes(&self, priority: Priority) -> usize {
        let Some(Filed { kind, subject }) = self.board.peek(priority) else {
            return 0;
        };
        let of_slots = |writer| {
            let writer = self.writers.get(writer)?;
            let max_bytes = writer.history.as_ref()?.max_bytes();
            // One sample or fragment, preceded by an INFO_DST and a GAP that a first transmission does not have.
            let largest = max_bytes.min(writer.fragmenter.whole_bytes());
            Some(largest.max(FRAGMENT_BYTES.into()) + 2 * MAX_HEAD_BYTES)
        };
        match kind {
            // All frames of discovery's lane have the largest size.
            WorkKind::Announce | WorkKind::Discovery => MAX_DATAGRAM_BYTES,
            WorkKind::WriterClock | WorkKind::ReaderClock => 0,
            WorkKind::Fragment | WorkKind::Heartbeat | WorkKind::AckNack => BATCH_BYTES,
            WorkKind::Data => {
                self.writers
                    .get(subject)
                    .map_or(0, |writer| match writer.next_part_bytes() {
                        None => writer.next_bytes().max(writer.waiting_bytes()),
                        Some(bytes) => bytes,
                    })
            }
            WorkKind::Repair | WorkKind::History => self
                .reader_proxies
                .get(subject)
                .and_then(|proxy| of_slots(proxy.writer))
                .unwrap_or(0),
        }
    }

    /// Writes one message. A message that does not fit is counted, and its length is 0.
    pub(crate) fn finish(
        &mut self,
        buffer: &mut [u8],
        fill: impl FnOnce(&mut MessageWriter<'_>) -> Result<(), isolane_wire::BufferTooSmall>,
        header: isolane_wire::rtps::Header,
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

fn gap(writer: EntityId, reader: EntityId, start: SequenceNumber, end: SequenceNumber) -> Gap {
    Gap {
        reader,
        writer,
        group: None,
        filtered: None,
        start,
        list: SequenceNumberSet::new(end),
    }
}
