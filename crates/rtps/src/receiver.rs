//! RTPS Receiver (RTPS 2.5 §8.3.4): from the bytes of a datagram to a delivered sample, or to filed work.
//!
//! The caller keeps the [`MessageReceiver`] of each datagram. So [`LocalParticipant::receive`] can return a sample as a
//! view of the frame in the middle of a message, and be called again for the rest.
//!
//! The receiver sends no answer. A HEARTBEAT files an ACKNACK, an ACKNACK files a repair, an announcement is queued for
//! the discovery job. The work for a datagram is bounded by its length and the local readers of the writers it names.
//!
//! This file has the header, DATA and its addressing. `reader` has a sample at one reader, fragments, HEARTBEAT and
//! GAP; `writer` has ACKNACK and NACK_FRAG.
//!
//! The header extension (RTPS 2.5 §8.3.7) is validated before any other processing, since a damaged message must not be
//! trusted in any part. The send timestamp is not used: source timestamps are not corrected for clock differences. A
//! checksum costs one pass over the datagram, only if the peer sends one.

use core::ops::Range;

use isolane_wire::{
    guid::{EntityId, Guid, GuidPrefix},
    locator::Locator,
    message::{
        Data, HEADER_BYTES, HEARTBEAT_BYTES, HEARTBEAT_FRAG_BYTES, Header, InfoTimestamp,
        RawSubmessage, Submessage, SubmessageId, Submessages,
    },
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use crate::{
    limits::LAST_SEQUENCE,
    participant::{Facts, LocalParticipant, Shared},
    reader::{
        ReaderStatus, Readers, Settled,
        cache::SampleInfo,
        data::{Content, Stored, Unfit, is_due, keep},
    },
    slab::{ReaderId, WriterProxyId},
    timed_qos::{Check, judge},
};

/// Position in a message, and the receiver state set by its submessages.
#[derive(Debug, Clone)]
pub struct MessageReceiver {
    pub(crate) source: Locator,
    offset: usize,
    pub(crate) prefix: GuidPrefix,
    /// INFO_DST named another participant.
    pub(crate) for_others: bool,
    pub(crate) timestamp: Option<Timestamp>,
    /// Receive time stamp of the datagram; `None` if the time of reading is used instead.
    arrived: Option<Instant>,
    /// Upper bound of the readers that have not yet received the DATA at `offset`; 0 if none has received it.
    pub(crate) further: u16,
    /// The header was counted towards the anti-amplification limit.
    is_header_counted: bool,
}

impl MessageReceiver {
    /// Creates the state at the start of a datagram from `source`.
    #[must_use]
    pub fn new(source: Locator) -> Self {
        Self {
            source,
            offset: 0,
            prefix: GuidPrefix::UNKNOWN,
            for_others: false,
            timestamp: None,
            arrived: None,
            further: 0,
            is_header_counted: false,
        }
    }

    /// Sets the arrival time of the datagram, by its receive time stamp: the reception time of its samples
    /// ([`SampleInfo::received`]). The default is the time of reading.
    #[must_use]
    pub fn arrived_at(mut self, arrived: Instant) -> Self {
        self.arrived = Some(arrived);
        self
    }

    /// Returns whether a datagram of this length was read to its end, and need not be passed to
    /// [`LocalParticipant::receive`] again.
    #[inline]
    #[must_use]
    pub fn is_at_end(&self, datagram_bytes: usize) -> bool {
        self.offset == datagram_bytes && self.further == 0
    }

    /// Returns the bytes that a submessage adds to the anti-amplification limit; the first one also adds the header.
    pub(crate) fn count(&mut self, submessage_bytes: usize) -> usize {
        match core::mem::replace(&mut self.is_header_counted, true) {
            false => HEADER_BYTES + submessage_bytes,
            true => submessage_bytes,
        }
    }

    /// Returns the GUID prefix of the sender of the following submessages.
    pub(crate) fn sender(&self) -> GuidPrefix {
        self.prefix
    }

    /// Returns the source address of the datagram.
    #[must_use]
    pub fn source(&self) -> Locator {
        self.source
    }
}

/// Sample for a reader that takes views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Reader that gets the sample.
    pub reader: ReaderId,
    /// Range of the payload in the datagram, with its encapsulation header; empty without a payload.
    pub payload: Range<usize>,
    /// The sample was fragmented: the payload is in memory of the reader instead ([`LocalParticipant::lend`]).
    pub is_assembled: bool,
    /// Metadata of the sample.
    pub info: SampleInfo,
}

impl LocalParticipant {
    /// Continues to read a datagram.
    ///
    /// Returns `Some` with a sample for a view reader; call again with the same arguments for the rest. Returns `None`
    /// at the end. Malformed input is counted in [`Counters`](crate::Counters) and skipped.
    pub fn receive(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        bytes: &[u8],
    ) -> Option<Delivery> {
        if message.offset == 0 {
            match Header::parse(bytes) {
                Ok(header) if header_extension_is_valid(bytes) => {
                    message.prefix = header.prefix;
                    message.offset = HEADER_BYTES;
                    self.shared.counters.messages += 1;
                    if self
                        .discovery
                        .is_unknown_prefix(&mut self.shared, header.prefix)
                    {
                        message.offset = bytes.len();
                        return None;
                    }
                }
                _ => {
                    self.shared.counters.malformed_messages += 1;
                    return None;
                }
            }
        }
        let mut submessages = Submessages::new(bytes, message.offset);
        loop {
            let start = submessages.offset();
            let Ok(found) = submessages.next_raw()? else {
                self.shared.note_malformed();
                message.offset = submessages.offset();
                continue;
            };
            // Samples come as DATA, DATA_FRAG and INFO_TS: parsed here, without the enum of all kinds.
            match found {
                sample @ RawSubmessage {
                    id: SubmessageId::DATA,
                    ..
                } => {
                    let delivery = self.receive_sample(now, message, sample);
                    if delivery.is_some() {
                        // Resume at this DATA while it has further readers.
                        message.offset = if message.further > 0 {
                            start
                        } else {
                            submessages.offset()
                        };
                        return delivery;
                    }
                }
                fragment @ RawSubmessage {
                    id: SubmessageId::DATA_FRAG,
                    ..
                } => {
                    let delivery = self.receive_fragment(now, message, fragment);
                    if delivery.is_some() {
                        message.offset = if message.further > 0 {
                            start
                        } else {
                            submessages.offset()
                        };
                        return delivery;
                    }
                }
                info @ RawSubmessage {
                    id: SubmessageId::INFO_TS,
                    ..
                } => match InfoTimestamp::parse(info.flags, info.body) {
                    Ok(timestamp) => message.timestamp = timestamp.0,
                    Err(_) => self.shared.note_malformed(),
                },
                other => self.receive_other(now, message, other),
            }
            message.offset = submessages.offset();
        }
    }

    /// Receives a DATA. Out of line: inlined, it would leave the submessage loop no registers.
    #[inline(never)]
    fn receive_sample(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        found: RawSubmessage<'_>,
    ) -> Option<Delivery> {
        match Data::parse(found.flags, found.body, found.body_offset) {
            Ok(_) if message.for_others => self.shared.counters.for_others += 1,
            Ok(data) => return self.receive_data(now, message, data),
            Err(_) => self.shared.note_malformed(),
        }
        None
    }

    #[inline(never)]
    fn receive_other(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        found: RawSubmessage<'_>,
    ) {
        let Ok(submessage) = found.decode() else {
            self.shared.note_malformed();
            return;
        };
        match submessage {
            Submessage::InfoSource(source) => {
                // RTPS 2.5 §8.3.8.10: INFO_SRC also resets the time stamp.
                message.prefix = match self
                    .discovery
                    .is_unknown_prefix(&mut self.shared, source.prefix)
                {
                    true => GuidPrefix::UNKNOWN,
                    false => source.prefix,
                };
                message.timestamp = None;
            }
            Submessage::InfoDestination(prefix) => {
                message.for_others = prefix != GuidPrefix::UNKNOWN
                    && prefix != self.shared.guid_prefix()
                    && !self.shared.is_any_start_of_this(prefix);
            }
            // Was checked before the rest of the message.
            Submessage::HeaderExtension(_) => {}
            _ if message.for_others => self.shared.counters.for_others += 1,
            Submessage::Heartbeat(heartbeat) => {
                let writer = Guid {
                    prefix: message.prefix,
                    entity: heartbeat.writer,
                };
                let mut first = self.readers.by_writer.recall(&writer);
                if first.is_none() {
                    first = self.lookup_described(now, message, &writer);
                }
                if self.readers.receive_heartbeat(
                    &mut self.shared,
                    Facts::of(&self.writers, &self.discovery),
                    now,
                    message,
                    first,
                    &heartbeat,
                ) {
                    self.discovery
                        .credit(message.prefix, message.count(HEARTBEAT_BYTES));
                }
            }
            Submessage::AckNack(acknack) => self.receive_acknack(now, message, &acknack),
            Submessage::Gap(gap) => {
                if self.readers.receive_gap(
                    &mut self.shared,
                    Facts::of(&self.writers, &self.discovery),
                    now,
                    message,
                    &gap,
                ) {
                    // The shortest GAP has the same length.
                    self.discovery
                        .credit(message.prefix, message.count(HEARTBEAT_BYTES));
                }
            }
            Submessage::HeartbeatFrag(heartbeat) => {
                if self
                    .readers
                    .receive_heartbeat_frag(&mut self.shared, now, message, &heartbeat)
                {
                    self.discovery
                        .credit(message.prefix, message.count(HEARTBEAT_FRAG_BYTES));
                }
            }
            Submessage::NackFrag(nack) => {
                self.writers
                    .receive_nack_frag(&mut self.shared, now, message, &nack);
            }
            _ => self.shared.counters.skipped_submessages += 1,
        }
    }

    pub(crate) fn receive_data(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        data: Data<'_>,
    ) -> Option<Delivery> {
        if data.sequence > LAST_SEQUENCE {
            self.shared.note_malformed();
            return None;
        }
        if data.writer.is_builtin() {
            match data.writer {
                EntityId::SPDP_WRITER if data.non_standard => {
                    self.shared.counters.malformed_announcements += 1;
                    return None;
                }
                EntityId::SPDP_WRITER => {
                    self.schedule_participant_announcement(now, message, data);
                    return None;
                }
                EntityId::P2P_MESSAGE_WRITER => self.hear_participant(now, message.prefix, &data),
                _ => {}
            }
        }
        let writer = Guid {
            prefix: message.prefix,
            entity: data.writer,
        };
        // A resumed DATA begins again at the head of the chain, because a callback may have deleted or created any
        // reader. Readers already served have advanced and are skipped; `further` bounds the loop if every callback
        // creates a reader.
        let further = core::mem::take(&mut message.further);
        let resumes = further > 0;
        let mut next = self.readers.by_writer.recall(&writer);
        if next.is_none() {
            next = self.lookup_described(now, message, &writer);
        }
        if next.is_none() {
            self.shared.counters.unmatched_data += u64::from(!resumes);
            return None;
        }
        while let Some(index) = next {
            let mut proxy = self.readers.proxies.get_mut(index)?;
            let mut reader = self.readers.table.get_mut(proxy.reader)?;
            next = proxy.next_of_writer;
            let is_served = resumes && proxy.is_done_with(data.sequence);
            if is_served || !reader.is_addressed(data.reader) {
                continue;
            }
            let mut has_confirmed = false;
            if !proxy.reliable && proxy.strays(data.sequence) {
                match self.readers.settle_position(
                    &mut self.shared,
                    Facts::of(&self.writers, &self.discovery),
                    now,
                    message,
                    index,
                    data.sequence,
                ) {
                    Settled::Refused => continue,
                    Settled::Taken => {}
                    Settled::Confirmed => has_confirmed = true,
                }
                proxy = self.readers.proxies.get_mut(index)?;
                reader = self.readers.table.get_mut(proxy.reader)?;
            }
            let Some(has_lost) = is_due(proxy, reader, data.sequence, now) else {
                continue;
            };
            let has_lost = has_lost || has_confirmed;
            let content = match Content::of(reader, &data) {
                Ok(content) => content,
                Err(unfit) => {
                    match data.set_end() {
                        Some(mark) => self.readers.receive_set_end(
                            &mut self.shared,
                            Facts::of(&self.writers, &self.discovery),
                            (now, message.timestamp),
                            index,
                            &data,
                            &mark,
                        ),
                        None => self.readers.refuse_for_good(
                            &mut self.shared,
                            Facts::of(&self.writers, &self.discovery),
                            index,
                            data.sequence,
                            unfit,
                        ),
                    }
                    continue;
                }
            };
            let mut expires = None;
            let received = message.arrived.map_or(now, |arrived| arrived.min(now));
            let info = |expires| SampleInfo {
                writer,
                sequence: data.sequence,
                source_timestamp: message.timestamp,
                received,
                expires,
                kind: content.kind,
                instance_state: content.instance_state(),
                key_hash: content.key_hash,
                ..SampleInfo::UNSEEN
            };
            let is_watched = proxy.clock.is_watched;
            if is_watched {
                let wall_ns = received
                    .as_nanos()
                    .wrapping_add(self.shared.config.wall_offset_ns);
                let expired = &mut self.shared.counters.expired_on_arrival;
                match judge(index, proxy, reader, info(None), &data, wall_ns, expired) {
                    Check::Take(at) => expires = at,
                    Check::Done => {
                        self.readers.count_checked(
                            &mut self.shared,
                            Facts::of(&self.writers, &self.discovery),
                            index,
                        );
                        continue;
                    }
                }
            }
            if reader.cache.is_some() {
                match keep(index, proxy, reader, info(expires), data.bytes) {
                    Stored::InOrder => self.readers.advance_proxy(
                        &mut self.shared,
                        Facts::of(&self.writers, &self.discovery),
                        index,
                    ),
                    Stored::OutOfOrder => {}
                    Stored::Never(unfit) => self.readers.refuse_for_good(
                        &mut self.shared,
                        Facts::of(&self.writers, &self.discovery),
                        index,
                        data.sequence,
                        unfit,
                    ),
                }
                if is_watched {
                    self.readers.count_checked(
                        &mut self.shared,
                        Facts::of(&self.writers, &self.discovery),
                        index,
                    );
                }
                continue;
            }
            proxy.begun = true;
            proxy.expected = data.sequence.next();
            reader.ledger.account();
            reader.ledger.delivered += 1;
            let reader = proxy.reader;
            if has_lost {
                self.readers.note_reader(&mut self.shared, reader);
            }
            if is_watched {
                self.readers.count_checked(
                    &mut self.shared,
                    Facts::of(&self.writers, &self.discovery),
                    index,
                );
            }
            if next.is_some() {
                message.further = further.checked_sub(1).unwrap_or(self.readers.table.end());
            }
            let start = data.payload_offset;
            return Some(Delivery {
                reader,
                payload: start..start + data.bytes.len(),
                is_assembled: false,
                info: info(expires),
            });
        }
        None
    }

    /// Returns the first proxy of a writer of a static peer whose incarnation becomes known with this message.
    #[cold]
    #[inline(never)]
    pub(crate) fn lookup_described(
        &mut self,
        now: Instant,
        message: &MessageReceiver,
        writer: &Guid,
    ) -> Option<WriterProxyId> {
        let is_met = self.discovery.uses_descriptions(&self.shared)
            && self.match_static_peer(now, message.prefix, message.source);
        match is_met {
            true => self.readers.by_writer.recall(writer),
            false => None,
        }
    }
}

impl Shared {
    #[cold]
    #[inline(never)]
    pub(crate) fn note_malformed(&mut self) {
        self.counters.malformed_submessages += 1;
    }
}

impl Readers {
    /// Follows a writer's chain of proxies from `at` to the first one whose reader is addressed. Returns that proxy and
    /// the one after it.
    pub(crate) fn addressed_proxy(
        &self,
        mut at: Option<WriterProxyId>,
        meant: EntityId,
    ) -> Option<(WriterProxyId, Option<WriterProxyId>)> {
        while let Some(index) = at {
            let proxy = self.proxies.get(index)?;
            if self.table.get(proxy.reader)?.is_addressed(meant) {
                return Some((index, proxy.next_of_writer));
            }
            at = proxy.next_of_writer;
        }
        None
    }

    /// Counts a sample that can never be stored; it is not requested again.
    #[cold]
    pub(crate) fn refuse_for_good(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        proxy_index: WriterProxyId,
        sequence: SequenceNumber,
        unfit: Unfit,
    ) {
        let proxy = &mut self.proxies[proxy_index];
        let reader_index = proxy.reader;
        let reader = &mut self.table[reader_index];
        // An out-of-order sample is requested again, and counted when it is next in order.
        if sequence == proxy.expected {
            proxy.begun = true;
            proxy.advance();
            reader.ledger.account();
            match unfit {
                Unfit::Rejected(reason) => {
                    reader.count_rejected(proxy.guid, reason);
                    shared.counters.count_rejected(reason);
                    reader.status |= ReaderStatus::SAMPLE_REJECTED;
                }
                Unfit::TooLarge(bytes) => {
                    reader.ledger.too_large += 1;
                    reader.too_large_bytes = bytes;
                    reader.status |= ReaderStatus::SAMPLE_LOST;
                    shared.counters.samples_too_large += 1;
                    self.last_too_large = Some(reader_index);
                }
            }
            if let Some(cache) = reader.cache.as_mut().filter(|cache| cache.groups()) {
                // The set is incomplete without the sample.
                proxy.progress.lose();
                reader.ledger.incomplete += cache.drop_open_set(proxy_index, &proxy.progress);
            }
            self.advance_proxy(shared, facts, proxy_index);
            self.go_on_with_sets(shared, reader_index);
        }
        self.note_reader(shared, reader_index);
    }
}

/// Returns whether the message is consistent with its header extension; true without one.
#[inline]
fn header_extension_is_valid(message: &[u8]) -> bool {
    message.get(HEADER_BYTES) != Some(&SubmessageId::HEADER_EXTENSION)
        || length_and_checksum_match(message)
}

#[cold]
fn length_and_checksum_match(message: &[u8]) -> bool {
    match Submessages::new(message, HEADER_BYTES).next() {
        Some(Ok(Submessage::HeaderExtension(extension))) => extension.verify(message).is_ok(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::message::{HEARTBEAT_BYTES, HEARTBEAT_FRAG_BYTES};

    use super::*;

    #[test]
    fn the_header_of_a_message_counts_once_however_much_lies_behind_it() {
        let mut message = MessageReceiver::new(Locator::INVALID);
        let counted = [HEARTBEAT_FRAG_BYTES, HEARTBEAT_FRAG_BYTES, HEARTBEAT_BYTES]
            .map(|bytes| message.count(bytes));
        assert_eq!(counted, [48, 28, 32]);
    }
}
