//! Transmission to one reader: repairs, history for late joiners and HEARTBEATs.

use isolane_wire::{
    guid::Guid, level::Level, locator::Locator, message::Heartbeat, sequence::SequenceNumber,
    time::Instant,
};

use crate::{
    coherent_access::head_of,
    participant::Shared,
    slab::{ReaderProxyId, WriterId},
    timed_qos::Expired,
    work::{Filed, Work, WorkKind},
    writer::{
        Writers,
        reliability::ReaderProxy,
        write::{data_head, gap},
    },
};

impl Writers {
    /// Sends the lowest requested sample, or a GAP if it is no longer available.
    pub(crate) fn send_repair(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: ReaderProxyId,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let writer_index = self.proxies.get(index)?.writer;
        if self.table.get(writer_index)?.clock.is_some()
            && self.expire_history(shared, now, writer_index) == Expired::Incomplete
        {
            self.proxies.get_mut(index)?.repair_filed = false;
            self.schedule_repair(shared, index);
            return None;
        }
        let proxy = self.proxies.get_mut(index)?;
        proxy.repair_filed = false;
        if proxy.has_unannounced() {
            return self.send_unannounced(shared, index, buffer);
        }
        if proxy.fragments.repair.is_some() {
            return self.send_fragment_repair(shared, index, buffer);
        }
        let Some(sequence) = proxy.requested.iter().next() else {
            return self.send_heartbeat_to(shared, index, buffer);
        };
        proxy.requested.remove(sequence);
        let (start, guid, to) = (proxy.start, proxy.guid, proxy.address());
        // The filter does not apply to samples before the reader's start.
        let is_asked = proxy.filtered_changes.is_some() && sequence >= start;
        if is_asked && let Some(numbers) = self.filtered_run(index, sequence) {
            return self.answer_filtered(shared, index, &numbers, buffer);
        }
        let proxy = self.proxies.get_mut(index)?;
        let next_filtered = proxy.next_filtered(sequence);
        let writer = self.table.get_mut(writer_index)?;
        let level = writer.level;
        // Next sample available for this reader. All samples before it are gone, requested or not.
        let kept = writer
            .history
            .as_ref()
            .and_then(|history| history.at_or_after(sequence.max(start)))
            .map_or(writer.next_unsent, |kept| kept.min(writer.next_unsent));
        // Filtered samples are excluded from the GAP, since they must not count as lost.
        let kept = next_filtered.map_or(kept, |filtered| kept.min(filtered));
        if kept == sequence && writer.is_fragmented(sequence) {
            return self.begin_fragment_repair(shared, index, sequence, buffer);
        }
        let bytes = if kept == sequence {
            writer.ledger.repaired += 1;
            self.emit_sample(shared, writer_index, None, sequence, guid, buffer)
        } else {
            // One GAP covers the whole run, whatever its length.
            let requested = proxy.requested.iter();
            for gone in requested.take_while(|&gone| gone < kept) {
                proxy.requested.remove(gone);
            }
            self.emit_gap(shared, writer_index, sequence, kept, guid, buffer)
        };
        Some(self.repaired(shared, index, level, bytes, to))
    }

    /// Builds the work item of a repair to one reader, and files what the reader is still owed.
    pub(crate) fn repaired(
        &mut self,
        shared: &mut Shared,
        index: ReaderProxyId,
        level: Option<Level>,
        bytes: usize,
        to: Option<Locator>,
    ) -> Work {
        self.schedule_rest_of_repair(shared, index);
        Work::new(WorkKind::Repair, level, bytes, to)
    }

    /// Files a reader's remaining requests.
    pub(crate) fn schedule_rest_of_repair(&mut self, shared: &mut Shared, index: ReaderProxyId) {
        let proxy = self.proxies.get(index);
        let is_owed =
            |proxy: &ReaderProxy| !proxy.requested.is_empty() || proxy.fragments.repair.is_some();
        if proxy.is_some_and(is_owed) {
            self.schedule_repair(shared, index);
        }
    }

    /// Sends a GAP in place of a sample that is gone or not for this reader, up to the next available one.
    pub(crate) fn emit_gone(
        &mut self,
        shared: &mut Shared,
        writer_index: WriterId,
        sequence: SequenceNumber,
        start: SequenceNumber,
        reader: Guid,
        buffer: &mut [u8],
    ) -> usize {
        let writer = &self.table[writer_index];
        let history = writer.history.as_ref();
        let kept = history.and_then(|history| history.at_or_after(sequence.max(start)));
        let end = kept.map_or(writer.next_unsent, |kept| kept.min(writer.next_unsent));
        let proxy = self.proxy_by_reader.get(&(writer_index, reader));
        let proxy = proxy.and_then(|&proxy| self.proxies.get(proxy));
        let filtered = proxy.and_then(|proxy| proxy.next_filtered(sequence));
        let end = filtered.map_or(end, |filtered| end.min(filtered));
        if end <= sequence {
            return 0;
        }
        self.emit_gap(shared, writer_index, sequence, end, reader, buffer)
    }

    /// Sends a HEARTBEAT to one reader that is new, has requested a HEARTBEAT, or is at none of the writer's
    /// destinations. The HEARTBEAT tells the reader which samples to request.
    fn send_heartbeat_to(
        &mut self,
        shared: &mut Shared,
        index: ReaderProxyId,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let proxy = self.proxies.get(index)?;
        let (guid, to, writer_index) = (proxy.guid, proxy.address(), proxy.writer);
        let is_reachable = proxy.is_reachable;
        // Messages to an address that is not validated are kept short.
        let group = self.heartbeat_group(writer_index).filter(|_| is_reachable);
        let writer = self.table.get_mut(writer_index)?;
        let level = writer.level;
        let heartbeat = Heartbeat {
            group,
            ..writer.heartbeat_to(guid.entity)
        };
        let bytes = shared.emit_message(buffer, |message| {
            message.info_destination(guid.prefix)?.heartbeat(&heartbeat)
        });
        Some(Work::new(WorkKind::Heartbeat, level, bytes, to))
    }

    /// Sends the next history sample to a late joiner; at the end files a HEARTBEAT, so that the reader detects losses
    /// at once.
    pub(crate) fn send_history(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: ReaderProxyId,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let writer_index = self.proxies.get(index)?.writer;
        let writer = self.table.get(writer_index)?;
        if writer.clock.is_some() {
            let queue = writer.protocol_queue();
            if self.expire_history(shared, now, writer_index) == Expired::Incomplete {
                shared.schedule(queue, Filed::History(index));
                return None;
            }
        }
        let proxy = self.proxies.get_mut(index)?;
        proxy.history_filed = false;
        let (writer_index, guid) = (proxy.writer, proxy.guid);
        // Samples requested and acknowledged meanwhile are skipped.
        let cursor = proxy.history_next?.max(proxy.acknowledged);
        let end = proxy.history_end;
        let writer = self.table.get_mut(writer_index)?;
        let found = writer
            .history
            .as_ref()
            .and_then(|history| history.at_or_after(cursor))
            .filter(|&sequence| sequence < end);
        let Some(sequence) = found else {
            self.proxies.get_mut(index)?.history_next = None;
            self.schedule_repair(shared, index);
            self.arm_heartbeat(shared, now, writer_index);
            return None;
        };
        let filtered = self.proxies.get(index)?.next_filtered(cursor);
        let filtered = filtered.map_or(sequence, |filtered| filtered.min(sequence));
        if let Some(numbers) = self.filtered_run(index, filtered) {
            // Samples from `cursor` to the filtered ones are gone, and must not count as filtered.
            let bytes = self.emit_filtered_gap(shared, index, cursor, &numbers, buffer);
            return self.go_on_with_history(shared, index, numbers.end, bytes);
        }
        let writer = self.table.get(writer_index)?;
        if writer.is_fragmented(sequence) {
            return self.send_history_fragment(shared, index, cursor, sequence, buffer);
        }
        let writer = self.table.get_mut(writer_index)?;
        writer.ledger.history += 1;
        writer.ledger.gaps += (sequence.get() - cursor.get()) as u64;
        let bytes = self.emit_sample(shared, writer_index, Some(cursor), sequence, guid, buffer);
        self.go_on_with_history(shared, index, sequence.next(), bytes)
    }

    /// Files the next step of the history, from `next` on.
    fn go_on_with_history(
        &mut self,
        shared: &mut Shared,
        index: ReaderProxyId,
        next: SequenceNumber,
        bytes: usize,
    ) -> Option<Work> {
        let proxy = self.proxies.get_mut(index)?;
        proxy.history_next = Some(next);
        proxy.history_filed = true;
        let to = proxy.address();
        let writer = self.table.get(proxy.writer)?;
        let (level, queue) = (writer.level, writer.protocol_queue());
        shared.schedule(queue, Filed::History(index));
        Some(Work::new(WorkKind::History, level, bytes, to))
    }

    /// Writes a sample for one reader, preceded by a GAP for samples removed since `after`.
    fn emit_sample(
        &mut self,
        shared: &mut Shared,
        writer_index: WriterId,
        after: Option<SequenceNumber>,
        sequence: SequenceNumber,
        reader: Guid,
        buffer: &mut [u8],
    ) -> usize {
        let writer = &self.table[writer_index];
        let Some((change, payload)) = writer
            .history
            .as_ref()
            .and_then(|history| history.get(sequence))
        else {
            return 0;
        };
        let sample = change.sample();
        let head = data_head(writer.guid.entity, reader.entity, sequence, &sample);
        let mark = writer.history.as_ref().and_then(|it| it.mark_of(sequence));
        let head = mark.map_or(head, |mark| head_of(head, mark));
        let hole = after.filter(|&after| after < sequence);
        shared.emit_message(buffer, |message| {
            message.info_destination(reader.prefix)?;
            if let Some(hole) = hole {
                message.gap(&gap(writer.guid.entity, reader.entity, hole, sequence))?;
            }
            message.info_timestamp(sample.timestamp)?;
            match mark {
                None => message.data(&head, payload)?,
                Some(mark) => message.data_with_set(&head, mark, payload)?,
            };
            Ok(message)
        })
    }

    fn emit_gap(
        &mut self,
        shared: &mut Shared,
        writer_index: WriterId,
        start: SequenceNumber,
        end: SequenceNumber,
        reader: Guid,
        buffer: &mut [u8],
    ) -> usize {
        let writer = &mut self.table[writer_index];
        writer.ledger.gaps += (end.get() - start.get()) as u64;
        let gap = gap(writer.guid.entity, reader.entity, start, end);
        shared.emit_message(buffer, |message| {
            message.info_destination(reader.prefix)?.gap(&gap)
        })
    }

    /// Files the history for a late joiner.
    pub(crate) fn schedule_history(&mut self, shared: &mut Shared, index: ReaderProxyId) {
        let proxy = &mut self.proxies[index];
        let writer = &self.table[proxy.writer];
        if !core::mem::replace(&mut proxy.history_filed, true) {
            let queue = writer.protocol_queue();
            shared.schedule(queue, Filed::History(index));
        }
    }

    /// Files the repair of a reader's requests, or a HEARTBEAT if there are none.
    pub(crate) fn schedule_repair(&mut self, shared: &mut Shared, proxy_index: ReaderProxyId) {
        let proxy = &mut self.proxies[proxy_index];
        let writer = &self.table[proxy.writer];
        if proxy.reliable && !core::mem::replace(&mut proxy.repair_filed, true) {
            let queue = writer.protocol_queue();
            shared.schedule(queue, Filed::Repair(proxy_index));
        }
    }
}
