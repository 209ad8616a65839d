//! The way out: one bounded step of filed work at a time.
//!
//! [`Engine::next_work`] takes what has waited longest at one priority and does one step of it: at
//! most one datagram comes of it, written into the caller's buffer. What is not done after one
//! step files itself again, behind what else waits at that priority.

use heapless::Vec as BoundedVec;
use isolane_wire::{
    guid::{EntityId, Guid},
    level::Level,
    locator::Locator,
    rtps::{Gap, Heartbeat, MessageWriter},
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

use crate::{
    engine::{Engine, Subject},
    history::Change,
    ids::WriterId,
    priority::Priority,
    work::{Destinations, Filed, Work, WorkKind},
    write::{WriteSample, data_head},
    writer::{Writer, WriterStatus},
};

/// One place to send to, or none.
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
    /// Does one step of the work filed at `priority`; `None` if there is none.
    ///
    /// A datagram that comes of it is written to the start of `buffer`, which should hold
    /// [`MAX_DATAGRAM_BYTES`](crate::limits::MAX_DATAGRAM_BYTES); what does not fit is counted
    /// ([`Counters::buffer_too_small`](crate::Counters)) and not sent.
    pub fn next_work(
        &mut self,
        now: Instant,
        priority: Priority,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let Filed { kind, subject } = self.board.take(priority)?;
        let work = match kind {
            WorkKind::Announce => self.announce(subject, buffer),
            WorkKind::Discovery => self.take_in_announcement(now),
            WorkKind::Data => self.send_data(now, subject, buffer),
            WorkKind::Heartbeat => self.send_heartbeat(subject, buffer),
            WorkKind::AckNack => self.send_acknack(now, subject, buffer),
            WorkKind::Repair => self.send_repair(subject, buffer),
            WorkKind::History => self.send_history(now, subject, buffer),
        };
        // A step whose subject has gone meanwhile sends nothing, but it was one.
        Some(work.unwrap_or(Work {
            kind,
            level: None,
            bytes: 0,
            to: to_one(None),
        }))
    }

    /// The level of what [`Self::next_work`] would do next at `priority`: whose frame it is to be
    /// given (`Some(None)`: discovery's). `None`: there is nothing to do. Level 0 shares its
    /// priorities with discovery, so the priority alone does not say.
    #[must_use]
    pub fn next_level(&self, priority: Priority) -> Option<Option<Level>> {
        let Filed { kind, subject } = self.board.peek(priority)?;
        let of_writer = |writer| self.writers.get(writer).and_then(|writer| writer.level);
        Some(match kind {
            WorkKind::Announce | WorkKind::Discovery => None,
            WorkKind::Data | WorkKind::Heartbeat => of_writer(subject),
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

    /// First transmission of the next unsent sample.
    fn send_data(&mut self, now: Instant, index: u16, buffer: &mut [u8]) -> Option<Work> {
        let header = self.header;
        let writer = self.writers.get_mut(index)?;
        writer.data_filed = false;
        let history = writer.history.as_ref()?;
        let Some(sequence) = history.at_or_after(writer.next_unsent) else {
            // All that was unsent has been pushed out.
            writer.ledger.evicted_unsent +=
                (writer.last.get() + 1 - writer.next_unsent.get()) as u64;
            writer.next_unsent = writer.last.next();
            return None;
        };
        let skipped = writer.next_unsent;
        let begins_run = writer.highest_acknowledged >= skipped;
        writer.ledger.evicted_unsent += (sequence.get() - skipped.get()) as u64;
        let (change, payload) = history.get(sequence)?;
        let (sample, level) = (change.sample(), writer.level);
        let mut bytes = 0;
        if !writer.destinations.is_empty() {
            let head = data_head(writer.guid.entity, EntityId::UNKNOWN, sequence, &sample);
            let written = MessageWriter::new(buffer, &header).and_then(|mut message| {
                if skipped < sequence {
                    message.gap(&gap(
                        writer.guid.entity,
                        EntityId::UNKNOWN,
                        skipped,
                        sequence,
                    ))?;
                }
                message
                    .info_timestamp(sample.timestamp)?
                    .data(&head, payload)?;
                Ok(message)
            });
            match written {
                Ok(mut message) => {
                    writer.next_unsent = sequence.next();
                    writer.ledger.sent += 1;
                    writer.since_demand += 1;
                    // The last of a run tells what there is, so that a loss before it shows at
                    // once; a quarter of the history sent demands an acknowledgement.
                    let is_last = writer.next_unsent > writer.last;
                    let demands = writer.since_demand >= writer.demand_after();
                    if writer.reliable && (is_last || demands) {
                        let heartbeat = writer.heartbeat(!demands);
                        // Where it finds no room the timer's heartbeat follows.
                        let _ = message.heartbeat(&heartbeat);
                    }
                    bytes = message.len();
                }
                Err(_) => {
                    writer.next_unsent = sequence.next();
                    writer.ledger.sent += 1;
                    self.counters.buffer_too_small += 1;
                }
            }
        } else {
            writer.next_unsent = sequence.next();
            writer.ledger.unmatched += 1;
        }
        if writer.next_unsent <= writer.last {
            writer.data_filed = true;
            let priority = writer.data_priority();
            self.file(priority, WorkKind::Data, index);
        }
        self.release_acknowledged(index);
        self.arm_heartbeat(now, index);
        if begins_run {
            self.hasten_heartbeat(now, index);
        }
        Some(Work {
            kind: WorkKind::Data,
            level,
            bytes,
            to: Destinations::Writer(WriterId(index)),
        })
    }

    fn send_heartbeat(&mut self, index: u16, buffer: &mut [u8]) -> Option<Work> {
        let header = self.header;
        let writer = self.writers.get_mut(index)?;
        writer.heartbeat_filed = false;
        if writer.destinations.is_empty() {
            return None;
        }
        let heartbeat = writer.heartbeat(false);
        let level = writer.level;
        let bytes = self.finish(
            buffer,
            |message| message.heartbeat(&heartbeat).map(|_| ()),
            header,
        );
        let to = Destinations::Writer(WriterId(index));
        Some(Work {
            kind: WorkKind::Heartbeat,
            level,
            bytes,
            to,
        })
    }

    fn send_acknack(&mut self, now: Instant, index: u16, buffer: &mut [u8]) -> Option<Work> {
        let header = self.header;
        let proxy = self.writer_proxies.get_mut(index)?;
        proxy.acknack_filed = false;
        let reader = self.readers.get_mut(proxy.reader)?;
        let acknack = proxy.acknack(reader, now);
        let (to, level, prefix) = (proxy.reply_to, reader.level, proxy.guid.prefix);
        let bytes = self.finish(
            buffer,
            |message| {
                message
                    .info_destination(prefix)?
                    .acknack(&acknack)
                    .map(|_| ())
            },
            header,
        );
        Some(Work {
            kind: WorkKind::AckNack,
            level,
            bytes,
            to: to_one(to),
        })
    }

    /// The lowest number a reader asked for: the sample, or a GAP where it is gone.
    fn send_repair(&mut self, index: u16, buffer: &mut [u8]) -> Option<Work> {
        let proxy = self.reader_proxies.get_mut(index)?;
        proxy.repair_filed = false;
        let writer_index = proxy.writer;
        let Some(sequence) = proxy.requested.iter().next() else {
            return self.send_heartbeat_to(index, buffer);
        };
        proxy.requested.remove(sequence);
        let (start, guid, to) = (proxy.start, proxy.guid, proxy.address());
        let writer = self.writers.get_mut(writer_index)?;
        let level = writer.level;
        // The next number there is for this reader: everything up to it is gone, asked for or not.
        let kept = writer
            .history
            .as_ref()
            .and_then(|history| history.at_or_after(sequence.max(start)))
            .map_or(writer.next_unsent, |kept| kept.min(writer.next_unsent));
        let bytes = if kept == sequence {
            writer.ledger.repaired += 1;
            self.emit_sample(writer_index, None, sequence, guid, buffer)
        } else {
            // One GAP for the whole run, however long.
            let requested = proxy.requested.iter();
            for gone in requested.take_while(|&gone| gone < kept) {
                proxy.requested.remove(gone);
            }
            self.emit_gap(writer_index, sequence, kept, guid, buffer)
        };
        let proxy = self.reader_proxies.get_mut(index)?;
        if !proxy.requested.is_empty() {
            proxy.repair_filed = true;
            let priority = self.writers.get(writer_index)?.protocol_priority();
            self.file(priority, WorkKind::Repair, index);
        }
        Some(Work {
            kind: WorkKind::Repair,
            level,
            bytes,
            to: to_one(to),
        })
    }

    /// A HEARTBEAT for one reader alone, that is new, has asked for one, or is reached by none of the
    /// writer's destinations: by it the reader learns what to ask for.
    fn send_heartbeat_to(&mut self, index: u16, buffer: &mut [u8]) -> Option<Work> {
        let header = self.header;
        let proxy = self.reader_proxies.get(index)?;
        let (guid, to) = (proxy.guid, proxy.address());
        let writer = self.writers.get_mut(proxy.writer)?;
        let level = writer.level;
        // The others are not asked by it.
        let since_demand = writer.since_demand;
        let heartbeat = Heartbeat {
            reader: guid.entity,
            ..writer.heartbeat(false)
        };
        writer.since_demand = since_demand;
        let bytes = self.finish(
            buffer,
            |message| {
                message
                    .info_destination(guid.prefix)?
                    .heartbeat(&heartbeat)
                    .map(|_| ())
            },
            header,
        );
        Some(Work {
            kind: WorkKind::Heartbeat,
            level,
            bytes,
            to: to_one(to),
        })
    }

    /// The next sample of the history for a reader that joined late; then a HEARTBEAT, so that it
    /// learns at once what it missed.
    fn send_history(&mut self, now: Instant, index: u16, buffer: &mut [u8]) -> Option<Work> {
        let proxy = self.reader_proxies.get_mut(index)?;
        proxy.history_filed = false;
        let (writer_index, guid, to) = (proxy.writer, proxy.guid, proxy.address());
        // What it has asked for and got meanwhile need not be sent again.
        let cursor = proxy.history_next?.max(proxy.acknowledged);
        let end = proxy.history_end;
        let writer = self.writers.get_mut(writer_index)?;
        let level = writer.level;
        let found = writer
            .history
            .as_ref()
            .and_then(|history| history.at_or_after(cursor))
            .filter(|&sequence| sequence < end);
        let priority = writer.protocol_priority();
        let Some(sequence) = found else {
            self.reader_proxies.get_mut(index)?.history_next = None;
            self.file_repair(index);
            self.arm_heartbeat(now, writer_index);
            return None;
        };
        writer.ledger.history += 1;
        writer.ledger.gaps += (sequence.get() - cursor.get()) as u64;
        let bytes = self.emit_sample(writer_index, Some(cursor), sequence, guid, buffer);
        let proxy = self.reader_proxies.get_mut(index)?;
        proxy.history_next = Some(sequence.next());
        proxy.history_filed = true;
        self.file(priority, WorkKind::History, index);
        Some(Work {
            kind: WorkKind::History,
            level,
            bytes,
            to: to_one(to),
        })
    }

    /// A sample for one reader alone; in front of it a GAP over what is gone since `after`.
    fn emit_sample(
        &mut self,
        writer_index: u16,
        after: Option<SequenceNumber>,
        sequence: SequenceNumber,
        reader: Guid,
        buffer: &mut [u8],
    ) -> usize {
        let header = self.header;
        let Some(writer) = self.writers.get(writer_index) else {
            return 0;
        };
        let Some((change, payload)) = writer
            .history
            .as_ref()
            .and_then(|history| history.get(sequence))
        else {
            return 0;
        };
        let sample = change.sample();
        let head = data_head(writer.guid.entity, reader.entity, sequence, &sample);
        let hole = after.filter(|&after| after < sequence);
        let written = MessageWriter::new(buffer, &header).and_then(|mut message| {
            message.info_destination(reader.prefix)?;
            if let Some(hole) = hole {
                message.gap(&gap(writer.guid.entity, reader.entity, hole, sequence))?;
            }
            message
                .info_timestamp(sample.timestamp)?
                .data(&head, payload)?;
            Ok(message.len())
        });
        written.unwrap_or_else(|_| {
            self.counters.buffer_too_small += 1;
            0
        })
    }

    fn emit_gap(
        &mut self,
        writer_index: u16,
        start: SequenceNumber,
        end: SequenceNumber,
        reader: Guid,
        buffer: &mut [u8],
    ) -> usize {
        let header = self.header;
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return 0;
        };
        writer.ledger.gaps += (end.get() - start.get()) as u64;
        let gap = gap(writer.guid.entity, reader.entity, start, end);
        self.finish(
            buffer,
            |message| {
                message
                    .info_destination(reader.prefix)?
                    .gap(&gap)
                    .map(|_| ())
            },
            header,
        )
    }

    /// Writes one message; counts one that does not fit, as 0 bytes.
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

    /// Files what one reader has asked for; a HEARTBEAT if that is nothing.
    pub(crate) fn file_repair(&mut self, proxy_index: u16) {
        let Some(proxy) = self.reader_proxies.get_mut(proxy_index) else {
            return;
        };
        let Some(writer) = self.writers.get(proxy.writer) else {
            return;
        };
        if proxy.reliable && !core::mem::replace(&mut proxy.repair_filed, true) {
            let priority = writer.protocol_priority();
            self.file(priority, WorkKind::Repair, proxy_index);
        }
    }

    /// Files a HEARTBEAT to all readers.
    pub(crate) fn file_heartbeat(&mut self, writer_index: u16) {
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        if !writer.reliable {
            return;
        }
        let priority = writer.protocol_priority();
        if !core::mem::replace(&mut writer.heartbeat_filed, true) {
            self.file(priority, WorkKind::Heartbeat, writer_index);
        }
        for at in 0.. {
            let writer = self.writers.get(writer_index);
            let Some(&index) = writer.and_then(|writer| writer.proxies.get(at)) else {
                return;
            };
            let proxy = self.reader_proxies.get(index);
            if proxy.is_some_and(|proxy| !proxy.is_reached) {
                self.file_repair(index);
            }
        }
    }

    /// Whether something sent is not acknowledged by all, or a reader has not yet answered at all.
    fn owes_heartbeat(&self, writer: &Writer) -> bool {
        writer.reliable
            && writer.has_reliable_reader()
            && writer.proxies.iter().any(|&proxy| {
                self.reader_proxies.get(proxy).is_some_and(|proxy| {
                    proxy.reliable && (!proxy.is_ready() || proxy.done_to() < writer.next_unsent)
                })
            })
    }

    /// Starts the heartbeat timer if a heartbeat is owed. One that runs is left alone: when it has
    /// run out it is seen whether one is owed still.
    pub(crate) fn arm_heartbeat(&mut self, now: Instant, writer_index: u16) {
        let timer = Subject::heartbeat(writer_index, &self.config.limits);
        if self.timers.is_armed(timer) {
            return;
        }
        let writer = self.writers.get(writer_index);
        if let Some(writer) = writer.filter(|writer| self.owes_heartbeat(writer)) {
            let period = core::time::Duration::from_nanos(writer.heartbeat_period_ns);
            self.timers.arm(timer, now + period);
        }
    }

    /// Stops the heartbeat timer when all is acknowledged, so that nobody is woken for nothing.
    fn rest_heartbeat(&mut self, writer_index: u16) {
        let timer = Subject::heartbeat(writer_index, &self.config.limits);
        let writer = self.writers.get(writer_index);
        if self.timers.is_armed(timer) && writer.is_some_and(|writer| !self.owes_heartbeat(writer))
        {
            self.timers.disarm(timer);
        }
    }

    /// Some reader lives: what is owed is asked for after the shortest period again. One that is
    /// dead and has let the period grow must not make the others wait for what they have lost.
    pub(crate) fn hasten_heartbeat(&mut self, now: Instant, writer_index: u16) {
        let period = self.config.timing.heartbeat_period;
        let timer = Subject::heartbeat(writer_index, &self.config.limits);
        if let Some(writer) = self.writers.get_mut(writer_index) {
            writer.heartbeat_period_ns = period.as_nanos() as u64;
            if self.timers.is_armed(timer) {
                self.timers.bring_forward(timer, now + period);
            }
        }
    }

    /// The heartbeat timer has run out: ask, and wait twice as long for the next answer.
    pub(crate) fn heartbeat_due(&mut self, now: Instant, writer_index: u16) {
        let max_ns = self.config.timing.heartbeat_period_max.as_nanos() as u64;
        let writer = self.writers.get(writer_index);
        if writer.is_none_or(|writer| !self.owes_heartbeat(writer)) {
            return;
        }
        self.file_heartbeat(writer_index);
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        writer.heartbeat_period_ns = writer.heartbeat_period_ns.saturating_mul(2).min(max_ns);
        self.arm_heartbeat(now, writer_index);
    }

    /// Works out again how far all reliable readers have come: one has come, gone or moved.
    pub(crate) fn refresh_lowest(&mut self, writer_index: u16) {
        if let Some(writer) = self.writers.get_mut(writer_index) {
            writer.lowest_acknowledged = writer.lowest_of(&self.reader_proxies);
        }
    }

    /// Removes from the history what all reliable readers have and no late joiner will ask for.
    pub(crate) fn release_acknowledged(&mut self, writer_index: u16) {
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        debug_assert_eq!(
            writer.lowest_acknowledged,
            writer.lowest_of(&self.reader_proxies)
        );
        let lowest = writer.lowest_unacknowledged();
        let all_acknowledged = lowest > writer.last;
        let mut removed = 0;
        if writer.volatile
            && let Some(history) = &mut writer.history
        {
            removed = history.remove_below(lowest);
        }
        if all_acknowledged {
            writer.status |= WriterStatus::ALL_ACKNOWLEDGED;
        }
        if writer.wants_room && (removed > 0 || writer.may_replace(lowest)) {
            writer.wants_room = false;
            writer.status |= WriterStatus::ROOM;
        }
        if !writer.status.is_empty() {
            self.note_writer(writer_index);
        }
        if all_acknowledged {
            self.rest_heartbeat(writer_index);
        }
    }
}

/// A GAP over `start..end`.
fn gap(writer: EntityId, reader: EntityId, start: SequenceNumber, end: SequenceNumber) -> Gap {
    Gap {
        reader,
        writer,
        start,
        list: SequenceNumberSet::new(end),
    }
}
