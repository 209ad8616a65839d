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
//!
//! Here is DATA; [`missing`] has what a writer says of the numbers it has and no longer has,
//! [`acknack`] what a reader says it has and lacks.

mod acknack;
mod missing;

use core::ops::Range;

use isolane_wire::{
    guid::{EntityId, Guid, GuidPrefix},
    locator::Locator,
    rtps::{
        Data, HEADER_BYTES, Header, InfoTimestamp, PayloadKind, Submessage, SubmessageId,
        Submessages, Undecoded,
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
    reader::ReaderStatus,
    status::RejectReason,
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

    /// Whether all of a datagram of so many bytes has been read: there is nothing to call
    /// [`Engine::receive`] again for.
    #[inline]
    #[must_use]
    pub fn is_at_end(&self, datagram_bytes: usize) -> bool {
        self.offset == datagram_bytes && self.further == 0
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
            let Ok(found) = submessages.next_undecoded()? else {
                self.counters.malformed_submessages += 1;
                message.offset = submessages.offset();
                continue;
            };
            // DATA and INFO_TS are what samples come as: read here, without the detour by a
            // value that could be any kind.
            match found.id {
                SubmessageId::DATA => {
                    if let Some(delivery) = self.receive_sample(now, message, &found) {
                        // Come back to this DATA while it has further readers.
                        message.offset = if message.further > 0 {
                            start
                        } else {
                            submessages.offset()
                        };
                        return Some(delivery);
                    }
                }
                SubmessageId::INFO_TS => match InfoTimestamp::parse(found.flags, found.body) {
                    Ok(timestamp) => message.timestamp = timestamp.0,
                    Err(_) => self.counters.malformed_submessages += 1,
                },
                _ => self.receive_other(now, message, &found),
            }
            message.offset = submessages.offset();
        }
    }

    /// DATA.
    #[inline]
    fn receive_sample(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        found: &Undecoded<'_>,
    ) -> Option<Delivery> {
        match Data::parse(found.flags, found.body, found.body_offset) {
            Ok(_) if message.for_others => self.counters.for_others += 1,
            Ok(data) => return self.receive_data(now, message, &data),
            Err(_) => self.counters.malformed_submessages += 1,
        }
        None
    }

    /// Whatever is no sample.
    #[inline(never)]
    fn receive_other(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        found: &Undecoded<'_>,
    ) {
        let Ok(submessage) = found.decode() else {
            self.counters.malformed_submessages += 1;
            return;
        };
        match submessage {
            Submessage::InfoSource(source) => {
                // RTPS 2.5 §8.3.8.10: it ends what INFO_TS said, too.
                message.prefix = source.prefix;
                message.timestamp = None;
            }
            Submessage::InfoDestination(prefix) => {
                message.for_others = prefix != GuidPrefix::UNKNOWN && prefix != self.guid_prefix();
            }
            _ if message.for_others => self.counters.for_others += 1,
            Submessage::Heartbeat(heartbeat) => self.receive_heartbeat(now, message, &heartbeat),
            Submessage::AckNack(acknack) => self.receive_acknack(now, message, &acknack),
            Submessage::Gap(gap) => self.receive_gap(now, message, &gap),
            _ => self.counters.skipped_submessages += 1,
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
        while let Some((index, after)) = self.meant_proxy(next, data.reader) {
            next = after;
            let proxy = self.writer_proxies.get(index)?;
            if resumes && proxy.is_done_with(data.sequence) {
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

    /// The first proxy from `at` on along a writer's chain whose reader a submessage is meant for
    /// (RTPS 2.5 §8.3.8: an unknown reader means all), and the one after it.
    fn meant_proxy(&self, mut at: Option<u16>, meant: EntityId) -> Option<(u16, Option<u16>)> {
        while let Some(index) = at {
            let proxy = self.writer_proxies.get(index)?;
            let reader = self.readers.get(proxy.reader)?;
            if meant == EntityId::UNKNOWN || meant == reader.guid.entity {
                return Some((index, proxy.next_of_writer));
            }
            at = proxy.next_of_writer;
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
            // Also if there is no room for it now: then it is asked for again.
            proxy.skips_history = false;
        }
        if proxy.reliable && (!proxy.in_window(sequence) || proxy.has(sequence)) {
            // Beyond the window: it will be asked for when its turn has come.
            reader.ledger.duplicates += u64::from(proxy.in_window(sequence));
            reader.ledger.deferred += u64::from(!proxy.in_window(sequence));
            return None;
        }
        let mut has_lost = false;
        if !proxy.reliable {
            let missing = (sequence.get() - proxy.expected.get()) as u64;
            has_lost = reader.ledger.lose(missing, proxy.begun);
            if has_lost {
                reader.status |= ReaderStatus::SAMPLE_LOST;
            }
            proxy.expected = sequence;
        }

        if data.non_standard {
            // RTPS 2.5 §8.3.8.2: its payload is in a form of the vendor's own.
            return self.reject(proxy_index, sequence, RejectReason::NotOfType);
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
        if !is_readable {
            return self.reject(proxy_index, sequence, RejectReason::NotOfType);
        }
        if data.bytes.len() > reader.max_payload_bytes {
            return self.reject(proxy_index, sequence, RejectReason::TooLarge);
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
            let reader = proxy.reader;
            if has_lost {
                self.note_reader(reader);
            }
            return Some(Delivery {
                reader: ReaderId(reader),
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
            Err(Refused::TooLarge) => {
                return self.reject(proxy_index, sequence, RejectReason::TooLarge);
            }
            Err(Refused::Full) if proxy.reliable => {
                reader.ledger.deferred += 1;
                // Only for the next sample in order is there nothing to ask for until the user
                // has taken one; one that found no place to wait comes when its turn has come.
                reader.blocked |= sequence == proxy.expected;
            }
            Err(Refused::Full) => {
                return self.reject(proxy_index, sequence, RejectReason::NoRoom);
            }
        }
        None
    }

    /// A sample that came and cannot be taken in, now or later: it counts, and is not asked for
    /// again.
    fn reject(
        &mut self,
        proxy_index: u16,
        sequence: SequenceNumber,
        reason: RejectReason,
    ) -> Option<Delivery> {
        let proxy = self.writer_proxies.get_mut(proxy_index)?;
        let reader_index = proxy.reader;
        let reader = self.readers.get_mut(reader_index)?;
        // One out of order comes again when its turn has come, and is counted then.
        if sequence == proxy.expected {
            proxy.begun = true;
            proxy.advance();
            reader.ledger.account();
            reader.ledger.rejected += 1;
            reader.reject_reason = reason;
            reader.status |= ReaderStatus::SAMPLE_REJECTED;
            self.advance_proxy(proxy_index);
        }
        self.note_reader(reader_index);
        None
    }
}
