//! The way in: from the bytes of a datagram to a sample handed over, or work filed.
//!
//! [`MessageReceiver`] is the state of the same name in RTPS 2.5 §8.3.4: who sent what follows,
//! to whom, when. It is the caller's, beside the datagram, so that [`Engine::receive`] can return
//! in the middle of a message with a sample that is to be delivered as a view of the frame, and
//! be called again for the rest.
//!
//! Nothing is answered here. A HEARTBEAT files an ACKNACK, an ACKNACK files a repair, an
//! announcement goes to a box that the discovery job empties. The work done for a datagram is
//! bounded by its length and by the local readers of the writers it names.

use core::ops::Range;

use isolane_wire::{
    guid::{EntityId, Guid, GuidPrefix},
    locator::Locator,
    rtps::{
        AckNack, Data, Gap, HEADER_BYTES, Header, Heartbeat, PayloadKind, Submessage, Submessages,
    },
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use crate::{
    cache::{Refused, SampleInfo},
    engine::Engine,
    history::ChangeKind,
    ids::ReaderId,
    instance::InstanceState,
    limits::LAST_SEQUENCE,
    reader::{Answer, ReaderStatus},
    work::WorkKind,
    writer::WriterStatus,
};

/// Where in a message the reading stands, and what the submessages so far have said.
#[derive(Debug, Clone)]
pub struct MessageReceiver {
    source: Locator,
    offset: usize,
    prefix: GuidPrefix,
    /// INFO_DST named another participant: what follows is not for us.
    for_others: bool,
    timestamp: Option<Timestamp>,
    /// The DATA at `offset` was delivered to some readers, and may be to so many more. 0: it has
    /// not been begun.
    further: u16,
}

impl MessageReceiver {
    /// The state at the start of a datagram that came from `source`.
    #[must_use]
    pub fn new(source: Locator) -> Self {
        Self {
            source,
            offset: 0,
            prefix: GuidPrefix::UNKNOWN,
            for_others: false,
            timestamp: None,
            further: 0,
        }
    }

    /// Where the datagram came from.
    #[must_use]
    pub fn source(&self) -> Locator {
        self.source
    }
}

/// A sample for a reader that takes views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The reader.
    pub reader: ReaderId,
    /// Where in the datagram the payload lies, with its encapsulation header; empty where the
    /// change carries none.
    pub payload: Range<usize>,
    /// What is known of the sample.
    pub info: SampleInfo,
}

impl Engine {
    /// Reads on in a datagram.
    ///
    /// `Some`: a sample for a view reader; call again with the same arguments for the rest.
    /// `None`: the datagram is done. What a peer sent can be anything: what cannot be read is
    /// counted in [`Counters`](crate::Counters) and skipped.
    pub fn receive(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        bytes: &[u8],
    ) -> Option<Delivery> {
        if message.offset == 0 {
            match Header::parse(bytes) {
                Ok(header) => {
                    message.prefix = header.prefix;
                    message.offset = HEADER_BYTES;
                    self.counters.messages += 1;
                }
                Err(_) => {
                    self.counters.malformed_messages += 1;
                    return None;
                }
            }
        }
        let mut submessages = Submessages::new(bytes, message.offset);
        loop {
            let start = submessages.offset();
            let Ok(submessage) = submessages.next()? else {
                self.counters.malformed_submessages += 1;
                message.offset = submessages.offset();
                continue;
            };
            match submessage {
                Submessage::InfoTimestamp(timestamp) => message.timestamp = timestamp,
                Submessage::InfoSource(source) => {
                    // RTPS 2.5 §8.3.8.9.4: it ends what INFO_TS said, too.
                    message.prefix = source.prefix;
                    message.timestamp = None;
                }
                Submessage::InfoDestination(prefix) => {
                    message.for_others =
                        prefix != GuidPrefix::UNKNOWN && prefix != self.guid_prefix();
                }
                _ if message.for_others => self.counters.for_others += 1,
                Submessage::Data(data) => {
                    if let Some(delivery) = self.receive_data(now, message, &data) {
                        // Come back to this DATA while it has further readers.
                        message.offset = if message.further > 0 {
                            start
                        } else {
                            submessages.offset()
                        };
                        return Some(delivery);
                    }
                }
                Submessage::Heartbeat(heartbeat) => {
                    self.receive_heartbeat(now, message, &heartbeat);
                }
                Submessage::AckNack(acknack) => self.receive_acknack(now, message, &acknack),
                Submessage::Gap(gap) => self.receive_gap(now, message, &gap),
                _ => self.counters.skipped_submessages += 1,
            }
            message.offset = submessages.offset();
        }
    }

    fn receive_data(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        data: &Data<'_>,
    ) -> Option<Delivery> {
        if data.sequence > LAST_SEQUENCE {
            self.counters.malformed_submessages += 1;
            return None;
        }
        if data.writer == EntityId::SPDP_WRITER {
            if data.non_standard {
                self.counters.malformed_announcements += 1;
                return None;
            }
            self.file_participant_announcement(message.prefix, data);
            return None;
        }
        let writer = Guid {
            prefix: message.prefix,
            entity: data.writer,
        };
        // In the midst of a DATA it begins again at the head of the chain: a callback may have
        // deleted any reader, or made one. Those that were served have gone on and are passed by;
        // should every callback make a reader, the number there can be ends it.
        let resumes = message.further > 0;
        let further = match core::mem::take(&mut message.further) {
            0 => self.readers.end(),
            further => further - 1,
        };
        let mut next = self.proxies_of_writer.get(&writer).copied();
        if next.is_none() && !resumes {
            self.counters.unmatched_data += 1;
        }
        while let Some(index) = next {
            let proxy = self.writer_proxies.get(index)?;
            next = proxy.next_of_writer;
            let reader_index = proxy.reader;
            let is_meant = data.reader == EntityId::UNKNOWN
                || self
                    .readers
                    .get(reader_index)
                    .is_some_and(|reader| reader.guid.entity == data.reader);
            if !is_meant || (resumes && proxy.is_done_with(data.sequence)) {
                continue;
            }
            if let Some(delivery) = self.take_in(now, index, message.timestamp, data) {
                if next.is_some() {
                    message.further = further;
                }
                return Some(delivery);
            }
        }
        None
    }

    /// One DATA for one reader.
    fn take_in(
        &mut self,
        now: Instant,
        proxy_index: u16,
        timestamp: Option<Timestamp>,
        data: &Data<'_>,
    ) -> Option<Delivery> {
        let proxy = self.writer_proxies.get_mut(proxy_index)?;
        let reader = self.readers.get_mut(proxy.reader)?;
        let sequence = data.sequence;
        if sequence < proxy.expected {
            reader.ledger.duplicates += 1;
            return None;
        }
        if proxy.last < sequence {
            proxy.last = sequence;
        }
        if proxy.skips_history && !proxy.started && !proxy.begun {
            // It came unasked, so it is no history: this reader begins with it.
            let missing = (sequence.get() - proxy.expected.get()) as u64;
            reader.ledger.lose(missing, false);
            proxy.jump(sequence);
        }
        if proxy.reliable && (!proxy.in_window(sequence) || proxy.has(sequence)) {
            // Beyond the window: it will be asked for when its turn has come.
            reader.ledger.duplicates += u64::from(proxy.in_window(sequence));
            reader.ledger.deferred += u64::from(!proxy.in_window(sequence));
            return None;
        }
        if !proxy.reliable {
            let missing = (sequence.get() - proxy.expected.get()) as u64;
            if reader.ledger.lose(missing, proxy.begun) {
                reader.status |= ReaderStatus::SAMPLE_LOST;
            }
            proxy.expected = sequence;
        }

        if data.non_standard {
            // RTPS 2.5 §8.3.8.2: its payload is in a form of the vendor's own.
            return self.reject(proxy_index, sequence);
        }
        let kind = match (data.status_info(), data.payload) {
            (status, _) if status.disposed => ChangeKind::Dispose,
            (status, _) if status.unregistered => ChangeKind::Unregister,
            _ => ChangeKind::Alive,
        };
        let key_hash = if reader.keyed {
            let from_payload = reader.key_of.and_then(|key_of| match data.payload {
                PayloadKind::Data => key_of(data.bytes, false),
                PayloadKind::Key => key_of(data.bytes, true),
                PayloadKind::None => None,
            });
            from_payload.or_else(|| data.key_hash())
        } else {
            None
        };
        let is_readable = (kind != ChangeKind::Alive || data.payload == PayloadKind::Data)
            && (!reader.keyed || key_hash.is_some());
        if !is_readable || data.bytes.len() > reader.max_payload_bytes {
            return self.reject(proxy_index, sequence);
        }
        let info = SampleInfo {
            writer: proxy.guid,
            sequence,
            source_timestamp: timestamp,
            received: now,
            kind,
            instance_state: match kind {
                ChangeKind::Alive => InstanceState::Alive,
                ChangeKind::Dispose => InstanceState::NotAliveDisposed,
                ChangeKind::Unregister => InstanceState::NotAliveNoWriters,
            },
            key_hash,
        };
        let Some(cache) = &mut reader.cache else {
            proxy.begun = true;
            proxy.expected = sequence.next();
            reader.ledger.account();
            reader.ledger.delivered += 1;
            let start = data.payload_offset;
            let payload = start..start + data.bytes.len();
            return Some(Delivery {
                reader: ReaderId(proxy.reader),
                payload,
                info,
            });
        };
        let stored = if sequence == proxy.expected {
            cache.push(proxy_index, info, data.bytes).map(|()| true)
        } else {
            cache.wait(proxy_index, info, data.bytes).map(|displaced| {
                if let Some(displaced) = displaced {
                    proxy.unmark(displaced);
                    reader.ledger.deferred += 1;
                }
                false
            })
        };
        match stored {
            Ok(true) => {
                proxy.begun = true;
                proxy.advance();
                reader.ledger.account();
                self.advance_proxy(proxy_index);
            }
            Ok(false) => proxy.mark(sequence),
            Err(Refused::TooLarge) => return self.reject(proxy_index, sequence),
            Err(Refused::Full) if proxy.reliable => {
                reader.ledger.deferred += 1;
                // Only for the next sample in order is there nothing to ask for until the user
                // has taken one; one that found no place to wait comes when its turn has come.
                reader.blocked |= sequence == proxy.expected;
            }
            Err(Refused::Full) => return self.reject(proxy_index, sequence),
        }
        None
    }

    /// A sample that came and cannot be taken in, now or later: it counts, and is not asked for
    /// again.
    fn reject(&mut self, proxy_index: u16, sequence: SequenceNumber) -> Option<Delivery> {
        let proxy = self.writer_proxies.get_mut(proxy_index)?;
        let reader_index = proxy.reader;
        let reader = self.readers.get_mut(reader_index)?;
        reader.status |= ReaderStatus::SAMPLE_REJECTED;
        // One out of order comes again when its turn has come, and is counted then.
        if sequence == proxy.expected {
            proxy.begun = true;
            proxy.advance();
            reader.ledger.account();
            reader.ledger.rejected += 1;
            self.advance_proxy(proxy_index);
        }
        self.note_reader(reader_index);
        None
    }

    /// Moves a reliable proxy past everything that has come, and makes it available.
    pub(crate) fn advance_proxy(&mut self, proxy_index: u16) {
        self.advance_to(proxy_index, SequenceNumber(0));
    }

    /// Moves a reliable proxy to `to`, because the writer says that what has not come below never
    /// will, and on past everything that has come.
    ///
    /// A run of numbers without a waiting sample is one step, however long.
    fn advance_to(&mut self, proxy_index: u16, to: SequenceNumber) {
        let Some(proxy) = self.writer_proxies.get_mut(proxy_index) else {
            return;
        };
        let reader_index = proxy.reader;
        let Some(reader) = self.readers.get_mut(reader_index) else {
            return;
        };
        if let Some(cache) = &mut reader.cache {
            let mut waiting = cache.first_waiting(proxy_index);
            while proxy.reliable {
                if waiting == Some(proxy.expected) {
                    if cache.promote(proxy_index, proxy.expected).is_err() {
                        // Full: the rest goes on when the user has taken one.
                        reader.blocked = true;
                        break;
                    }
                    proxy.begun = true;
                    proxy.advance();
                    reader.ledger.account();
                    waiting = cache.first_waiting(proxy_index);
                    continue;
                }
                let end = proxy.first_unmarked().max(to);
                let end = waiting.map_or(end, |waiting| end.min(waiting));
                if end <= proxy.expected {
                    break;
                }
                let missing = (end.get() - proxy.expected.get()) as u64;
                if reader.ledger.lose(missing, proxy.begun) {
                    reader.status |= ReaderStatus::SAMPLE_LOST;
                }
                proxy.pass(end);
            }
            if cache.available() > 0 {
                reader.status |= ReaderStatus::DATA_AVAILABLE;
            }
        }
        self.note_reader(reader_index);
    }

    fn receive_heartbeat(
        &mut self,
        now: Instant,
        message: &MessageReceiver,
        heartbeat: &Heartbeat,
    ) {
        let writer = Guid {
            prefix: message.prefix,
            entity: heartbeat.writer,
        };
        let mut next = self.proxies_of_writer.get(&writer).copied();
        let suppression_ns = self.timing().nack_suppression.as_nanos() as u64;
        while let Some(index) = next {
            let Some(proxy) = self.writer_proxies.get_mut(index) else {
                return;
            };
            next = proxy.next_of_writer;
            let Some(reader) = self.readers.get_mut(proxy.reader) else {
                return;
            };
            let is_meant =
                heartbeat.reader == EntityId::UNKNOWN || heartbeat.reader == reader.guid.entity;
            if !is_meant || !proxy.reliable || !proxy.accept_heartbeat(heartbeat) {
                continue;
            }
            let last = heartbeat.last;
            if !core::mem::replace(&mut proxy.started, true) {
                // Where this reader begins: at what the writer still has, or, where that is history
                // the reader does not want, behind it. Nothing before was ever for it.
                let begin = if proxy.skips_history && !proxy.begun {
                    last.next()
                } else {
                    heartbeat.first
                };
                if begin > proxy.expected && reader.cache.is_some() {
                    let missing = (begin.get() - proxy.expected.get()) as u64;
                    reader.ledger.lose(missing, proxy.begun);
                    proxy.jump(begin);
                    if let Some(cache) = &mut reader.cache {
                        cache.forget_waiting(index);
                    }
                }
            } else if heartbeat.first > proxy.expected {
                self.advance_to(index, heartbeat.first);
            }
            let Some(proxy) = self.writer_proxies.get_mut(index) else {
                return;
            };
            if proxy.last < last {
                proxy.last = last;
            }
            if proxy.answer(heartbeat.is_final, now, suppression_ns) == Answer::AckNack {
                self.file_acknack(index);
            }
        }
    }

    fn receive_gap(&mut self, now: Instant, message: &MessageReceiver, gap: &Gap) {
        let writer = Guid {
            prefix: message.prefix,
            entity: gap.writer,
        };
        let mut next = self.proxies_of_writer.get(&writer).copied();
        let suppression_ns = self.timing().nack_suppression.as_nanos() as u64;
        while let Some(index) = next {
            let Some(proxy) = self.writer_proxies.get_mut(index) else {
                return;
            };
            next = proxy.next_of_writer;
            let Some(reader) = self.readers.get(proxy.reader) else {
                return;
            };
            let is_meant = gap.reader == EntityId::UNKNOWN || gap.reader == reader.guid.entity;
            if !is_meant || !proxy.reliable {
                continue;
            }
            let base = gap.list.base();
            if gap.start <= proxy.expected {
                self.advance_to(index, base);
            } else {
                let window_end = proxy
                    .expected
                    .get()
                    .saturating_add(i64::from(crate::limits::WINDOW));
                let end = base.get().min(window_end);
                for sequence in (gap.start.get()..end).map(SequenceNumber) {
                    proxy.mark(sequence);
                }
            }
            let Some(proxy) = self.writer_proxies.get_mut(index) else {
                return;
            };
            for sequence in gap.list.iter() {
                if proxy.in_window(sequence) {
                    proxy.mark(sequence);
                }
            }
            self.advance_proxy(index);
            let Some(proxy) = self.writer_proxies.get(index) else {
                return;
            };
            if proxy.is_missing_any() && proxy.answer(true, now, suppression_ns) == Answer::AckNack
            {
                self.file_acknack(index);
            }
        }
    }

    pub(crate) fn file_acknack(&mut self, proxy_index: u16) {
        let Some(proxy) = self.writer_proxies.get_mut(proxy_index) else {
            return;
        };
        let Some(reader) = self.readers.get(proxy.reader) else {
            return;
        };
        if !core::mem::replace(&mut proxy.acknack_filed, true) {
            let priority = reader.protocol_priority();
            self.file(priority, WorkKind::AckNack, proxy_index);
        }
    }

    fn receive_acknack(&mut self, now: Instant, message: &MessageReceiver, acknack: &AckNack) {
        let reader = Guid {
            prefix: message.prefix,
            entity: acknack.reader,
        };
        let Some(&writer_index) = self.writer_by_entity.get(&acknack.writer) else {
            self.counters.unmatched_acknacks += 1;
            return;
        };
        let Some(&index) = self.proxy_of_reader.get(&(writer_index, reader)) else {
            self.counters.unmatched_acknacks += 1;
            return;
        };
        let Some(proxy) = self.reader_proxies.get_mut(index) else {
            return;
        };
        let Some(writer) = self.writers.get_mut(writer_index) else {
            return;
        };
        let was_ready = proxy.is_ready();
        if !proxy.reliable || !proxy.accept_acknack(acknack) {
            return;
        }
        if !was_ready {
            writer.status |= WriterStatus::PUBLICATION_MATCHED;
        }
        // A peer cannot acknowledge what was not sent.
        let base = acknack.state.base().min(writer.next_unsent);
        let before = proxy.done_to();
        let progress = proxy.acknowledge(base);
        let after = proxy.done_to();
        let lowest = writer.lowest_acknowledged;
        writer.highest_acknowledged = writer.highest_acknowledged.max(base);
        let mut requested = isolane_wire::sequence::SequenceNumberSet::new(
            acknack.state.base().max(SequenceNumber(1)),
        );
        for sequence in acknack.state.iter() {
            if sequence < writer.next_unsent {
                requested.insert(sequence);
            }
        }
        let asks = !requested.is_empty();
        if asks {
            proxy.requested = requested;
        }
        if asks || !acknack.is_final {
            // Where nothing is asked for it answers with a HEARTBEAT.
            self.file_repair(index);
        }
        if before != after && (before <= lowest || after < lowest) {
            // It was this reader that all the others wait for, or is now.
            self.refresh_lowest(writer_index);
        }
        if progress || !was_ready {
            self.release_acknowledged(writer_index);
            self.note_writer(writer_index);
        }
        // Always, since a reader may also have gone back to the beginning.
        self.arm_heartbeat(now, writer_index);
        if progress {
            self.hasten_heartbeat(now, writer_index);
        }
    }
}
