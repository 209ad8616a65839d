//! RTPS Receiver (RTPS 2.5 §8.3.4): from the bytes of a datagram to a delivered sample, or to filed work.
//!
//! The caller keeps the [`MessageReceiver`] of each datagram. So [`LocalParticipant::receive`] can return a sample as a
//! view of the frame in the middle of a message, and be called again for the rest.
//!
//! The receiver sends no answer. A HEARTBEAT files an ACKNACK, an ACKNACK files a repair, an announcement is queued for
//! the discovery job. The work for a datagram is bounded by its length and the local readers of the writers it names.
//!
//! This file has the header, the loop over the submessages, and DATA up to its place in a reader's cache. `reader` has
//! fragments, HEARTBEAT and GAP; `writer` has ACKNACK and NACK_FRAG.
//!
//! The header extension (RTPS 2.5 §8.3.7) is validated before any other processing, since a damaged message must not be
//! trusted in any part. The send timestamp is not used: source timestamps are not corrected for clock differences. A
//! checksum costs one pass over the datagram, only if the peer sends one.
//!
//! # From writer to readers
//!
//! Every submessage of a writer needs its chain of proxies, one for each matched local reader: [`WriterProxyIndex`]. A
//! small direct-mapped cache in front of the index, addressed by the low bits of the entity number, avoids hashing.
//! Writers with the same cache entry cost each other only the index lookup, so it does not matter that peers choose the
//! numbers.

use core::ops::Range;

use isolane_wire::{
    cdr::{CdrError, KeyHash},
    guid::{EntityId, Guid, GuidPrefix},
    locator::Locator,
    message::{
        Data, HEADER_BYTES, HEARTBEAT_BYTES, HEARTBEAT_FRAG_BYTES, Header, InfoTimestamp,
        PayloadKind, RawSubmessage, Submessage, SubmessageId, Submessages,
    },
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use crate::{
    coherent_access::keep_in_turn,
    hash::PeerIndex,
    limits::{LAST_SEQUENCE, REMEMBERED_WRITERS},
    participant::{Facts, LocalParticipant, Shared},
    reader::{
        Reader, ReaderStatus, Settled, WriterProxy, cache::Refused, instance::InstanceState,
        read_take::SampleInfo,
    },
    slab::{ReaderId, WriterProxyId},
    status::RejectReason,
    timed_qos::{Check, judge},
    writer::history::ChangeKind,
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

    /// Continues at the DATA at `start` while it has further readers, else at `next`, the submessage after it.
    #[inline]
    fn resume_at(&mut self, start: usize, next: usize) {
        self.offset = if self.further > 0 { start } else { next };
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
            // DATA, DATA_FRAG and INFO_TS, which carry samples, are parsed here, without the enum of all kinds.
            match found {
                sample @ RawSubmessage {
                    id: SubmessageId::DATA,
                    ..
                } => {
                    let delivery = self.receive_sample(now, message, sample);
                    if delivery.is_some() {
                        message.resume_at(start, submessages.offset());
                        return delivery;
                    }
                }
                fragment @ RawSubmessage {
                    id: SubmessageId::DATA_FRAG,
                    ..
                } => {
                    let delivery = self.receive_fragment(now, message, fragment);
                    if delivery.is_some() {
                        message.resume_at(start, submessages.offset());
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

    /// Receives a DATA. Not inlined, because that would leave the submessage loop no registers.
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
            // The header extension was checked before the rest of the message.
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
                let facts = Facts::of(&self.writers, &self.discovery);
                if self.readers.receive_heartbeat(
                    &mut self.shared,
                    facts,
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
                let facts = Facts::of(&self.writers, &self.discovery);
                if self
                    .readers
                    .receive_gap(&mut self.shared, facts, now, message, &gap)
                {
                    // The shortest GAP is as long as a HEARTBEAT.
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
        let Self {
            shared,
            writers,
            readers,
            discovery,
        } = self;
        let facts = Facts::of(writers, discovery);
        while let Some(index) = next {
            let mut proxy = readers.proxies.get_mut(index)?;
            let mut reader = readers.table.get_mut(proxy.reader)?;
            next = proxy.next_of_writer;
            let is_served = resumes && proxy.is_done_with(data.sequence);
            if is_served || !reader.is_addressed(data.reader) {
                continue;
            }
            let mut has_confirmed = false;
            if !proxy.reliable && proxy.strays(data.sequence) {
                match readers.settle_position(shared, facts, now, message, index, data.sequence) {
                    Settled::Refused => continue,
                    Settled::Taken => {}
                    Settled::Confirmed => has_confirmed = true,
                }
                proxy = readers.proxies.get_mut(index)?;
                reader = readers.table.get_mut(proxy.reader)?;
            }
            let Some(has_lost) = is_due(proxy, reader, data.sequence, now) else {
                continue;
            };
            let has_lost = has_lost || has_confirmed;
            let content = match Content::of(reader, &data) {
                Ok(content) => content,
                Err(unfit) => {
                    match data.set_end() {
                        Some(mark) => readers.receive_set_end(
                            shared,
                            facts,
                            (now, message.timestamp),
                            index,
                            &data,
                            &mark,
                        ),
                        None => readers.refuse_for_good(shared, facts, index, data.sequence, unfit),
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
                    .wrapping_add(shared.config.wall_offset_ns);
                let expired = &mut shared.counters.expired_on_arrival;
                match judge(index, proxy, reader, info(None), &data, wall_ns, expired) {
                    Check::Take(at) => expires = at,
                    Check::Done => {
                        readers.count_checked(shared, facts, index);
                        continue;
                    }
                }
            }
            if reader.cache.is_some() {
                match keep(index, proxy, reader, info(expires), data.bytes) {
                    Stored::InOrder => readers.advance_proxy(shared, facts, index),
                    Stored::OutOfOrder => {}
                    Stored::Never(unfit) => {
                        readers.refuse_for_good(shared, facts, index, data.sequence, unfit);
                    }
                }
                if is_watched {
                    readers.count_checked(shared, facts, index);
                }
                continue;
            }
            proxy.begun = true;
            proxy.expected = data.sequence.next();
            reader.ledger.account();
            reader.ledger.delivered += 1;
            let reader = proxy.reader;
            if has_lost {
                readers.note_reader(shared, reader);
            }
            if is_watched {
                readers.count_checked(shared, facts, index);
            }
            if next.is_some() {
                message.further = further.checked_sub(1).unwrap_or(readers.table.end());
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

impl Shared {
    #[cold]
    #[inline(never)]
    pub(crate) fn note_malformed(&mut self) {
        self.counters.malformed_submessages += 1;
    }
}

/// Checks whether a reader accepts this sequence number. Returns `Some(true)` if it shows earlier samples as lost, and
/// `None` if the sample is dropped and counted.
#[inline]
pub(crate) fn is_due(
    proxy: &mut WriterProxy,
    reader: &mut Reader,
    sequence: SequenceNumber,
    now: Instant,
) -> Option<bool> {
    proxy.heard = now;
    if sequence < proxy.expected {
        reader.ledger.duplicates += 1;
        return None;
    }
    if proxy.last < sequence {
        proxy.last = sequence;
    }
    begin_unasked(proxy, reader, sequence);
    if proxy.reliable {
        return is_requested(proxy, reader, sequence).then_some(false);
    }
    let missing = (sequence.get() - proxy.expected.get()) as u64;
    let has_lost = reader.ledger.lose(missing, proxy.begun);
    if has_lost {
        reader.status |= ReaderStatus::SAMPLE_LOST;
    }
    proxy.expected = sequence;
    Some(has_lost)
}

/// Starts a reader that skips history at the first sample or fragment that arrives without a request.
#[inline]
pub(crate) fn begin_unasked(
    proxy: &mut WriterProxy,
    reader: &mut Reader,
    sequence: SequenceNumber,
) {
    if proxy.skips_history && !proxy.started && !proxy.begun {
        // The sample was not requested, so it is not history.
        let missing = (sequence.get() - proxy.expected.get()) as u64;
        reader.ledger.lose(missing, false);
        proxy.jump(sequence);
        // This holds even if there is no room for the sample now: it is then requested again.
        proxy.skips_history = false;
    }
}

/// Returns whether a reliable reader still needs this sequence number, which may have arrived out of order.
#[inline(never)]
fn is_requested(proxy: &WriterProxy, reader: &mut Reader, sequence: SequenceNumber) -> bool {
    let is_within = proxy.in_window(sequence);
    if is_within && !proxy.has(sequence) {
        return true;
    }
    // A number beyond the window is requested later.
    reader.ledger.duplicates += u64::from(is_within);
    reader.ledger.deferred += u64::from(!is_within);
    false
}

/// Reason why a reader can never accept a sample.
pub(crate) enum Unfit {
    Rejected(RejectReason),
    /// The payload is too large, with its size in bytes.
    TooLarge(u32),
}

impl From<RejectReason> for Unfit {
    fn from(reason: RejectReason) -> Self {
        Self::Rejected(reason)
    }
}

/// Instance and change kind of a DATA.
pub(crate) struct Content {
    pub(crate) kind: ChangeKind,
    pub(crate) key_hash: Option<KeyHash>,
}

impl Content {
    /// Parses what a reader needs before the user reads the payload.
    #[inline]
    pub(crate) fn of(reader: &Reader, data: &Data<'_>) -> Result<Self, Unfit> {
        if data.non_standard {
            // RTPS 2.5 §8.3.8.2: the payload has a vendor-specific format.
            return Err(RejectReason::NotOfType.into());
        }
        let kind = match data.status_info() {
            status if status.disposed && status.unregistered => ChangeKind::DisposeAndUnregister,
            status if status.disposed => ChangeKind::Dispose,
            status if status.unregistered => ChangeKind::Unregister,
            _ => ChangeKind::Alive,
        };
        let key_hash = match reader.keyed {
            true => Some(key_hash(reader, data)?),
            false => None,
        };
        if kind == ChangeKind::Alive && data.payload != PayloadKind::Data {
            return Err(RejectReason::NotOfType.into());
        }
        if data.bytes.len() > reader.max_payload_bytes {
            return Err(Unfit::TooLarge(data.bytes.len() as u32));
        }
        Ok(Self { kind, key_hash })
    }

    #[inline]
    pub(crate) fn instance_state(&self) -> InstanceState {
        match self.kind {
            ChangeKind::Alive => InstanceState::Alive,
            ChangeKind::Dispose | ChangeKind::DisposeAndUnregister => {
                InstanceState::NotAliveDisposed
            }
            ChangeKind::Unregister => InstanceState::NotAliveNoWriters,
        }
    }
}

/// Returns the key hash of a sample, from its payload if possible, else from its inline QoS.
#[inline]
fn key_hash(reader: &Reader, data: &Data<'_>) -> Result<KeyHash, RejectReason> {
    let from_payload = match (reader.key_of, data.payload) {
        (Some(key_of), PayloadKind::Data) => key_of(data.bytes, false),
        (Some(key_of), PayloadKind::Key) => key_of(data.bytes, true),
        _ => return data.key_hash().ok_or(RejectReason::NotOfType),
    };
    from_payload.or_else(|error| without_key(data, error))
}

/// Returns the writer's key hash for a payload whose key cannot be read. A sample with an encapsulation that the type
/// cannot use is rejected nevertheless.
#[cold]
#[inline(never)]
fn without_key(data: &Data<'_>, error: CdrError) -> Result<KeyHash, RejectReason> {
    match (RejectReason::of(error, data.bytes), data.payload) {
        (reason @ RejectReason::Encapsulation(_), PayloadKind::Data) => Err(reason),
        (reason, _) => data.key_hash().ok_or(reason),
    }
}

/// Result of storing a sample in a cache.
pub(crate) enum Stored {
    /// Stored in order; samples waiting for it may follow.
    InOrder,
    /// Waits for earlier samples, or will be resent.
    OutOfOrder,
    /// Never acceptable.
    Never(Unfit),
}

/// Stores a sample in the reader's cache. `index` is that of the proxy.
#[inline(never)]
pub(crate) fn keep(
    index: WriterProxyId,
    proxy: &mut WriterProxy,
    reader: &mut Reader,
    info: SampleInfo,
    payload: &[u8],
) -> Stored {
    let Some(cache) = &mut reader.cache else {
        return Stored::OutOfOrder;
    };
    if cache.groups() {
        return match keep_in_turn(index, proxy, reader, info, payload) {
            Ok(()) => Stored::InOrder,
            Err(Refused::TooLarge) => Stored::Never(Unfit::TooLarge(payload.len() as u32)),
            Err(_) => {
                reader.ledger.deferred += 1;
                // Other samples may have waited for this number.
                Stored::InOrder
            }
        };
    }
    let sequence = info.sequence;
    let is_next = sequence == proxy.expected;
    let stored = if is_next {
        cache.push(index, info, payload)
    } else {
        cache.wait(index, info, payload).map(|displaced| {
            if let Some(displaced) = displaced {
                proxy.unmark(displaced);
                reader.ledger.deferred += 1;
            }
        })
    };
    match stored {
        Ok(()) if is_next => {
            proxy.begun = true;
            proxy.advance();
            reader.ledger.account();
            Stored::InOrder
        }
        Ok(()) => {
            proxy.mark(sequence);
            Stored::OutOfOrder
        }
        Err(Refused::TooLarge) => Stored::Never(Unfit::TooLarge(payload.len() as u32)),
        Err(refused) if proxy.reliable => {
            reader.ledger.deferred += 1;
            // Only the next sample in order blocks further requests until the user takes one. Later samples are
            // requested when their turn comes.
            if is_next {
                reader.refuse(refused);
            }
            Stored::OutOfOrder
        }
        Err(_) => Stored::Never(RejectReason::NoRoom.into()),
    }
}

/// First proxy of each matched writer, by its GUID.
#[derive(Debug)]
pub(crate) struct WriterProxyIndex {
    first: PeerIndex<Guid, WriterProxyId>,
    remembered: [Option<(Guid, WriterProxyId)>; REMEMBERED_WRITERS],
}

impl WriterProxyIndex {
    /// Creates a table for `entries` writers; `is_fixed` allocates all of it now.
    pub(crate) fn new(entries: usize, is_fixed: bool, seed: u64) -> Self {
        Self {
            first: PeerIndex::new(entries, is_fixed, seed),
            remembered: [None; REMEMBERED_WRITERS],
        }
    }

    /// Returns the first proxy of a writer.
    pub(crate) fn get(&self, writer: &Guid) -> Option<WriterProxyId> {
        self.first.get(writer).copied()
    }

    /// Returns the first proxy of a writer, through the cache.
    #[inline]
    pub(crate) fn recall(&mut self, writer: &Guid) -> Option<WriterProxyId> {
        match self.remembered[place(writer)] {
            Some((remembered, first)) if remembered == *writer => Some(first),
            _ => self.look_up(writer),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, writer: &Guid) -> Option<WriterProxyId> {
        let first = self.get(writer)?;
        self.remembered[place(writer)] = Some((*writer, first));
        Some(first)
    }

    /// Sets the first proxy; returns the former one.
    pub(crate) fn insert(&mut self, writer: Guid, first: WriterProxyId) -> Option<WriterProxyId> {
        self.forget(&writer);
        self.first.insert(writer, first)
    }

    /// Removes a writer without proxies.
    pub(crate) fn remove(&mut self, writer: &Guid) {
        self.forget(writer);
        self.first.remove(writer);
    }

    fn forget(&mut self, writer: &Guid) {
        self.remembered[place(writer)] = None;
    }
}

/// Returns the cache entry of a writer.
#[inline]
fn place(writer: &Guid) -> usize {
    // The last byte is the entity kind, which writers share. Participants of the same program have the same numbers, so
    // the prefix is mixed in.
    let [_, _, number, _] = writer.entity.0;
    let [.., participant] = writer.prefix.0;
    usize::from(number ^ participant) % REMEMBERED_WRITERS
}

#[cfg(test)]
mod tests {
    use isolane_wire::{
        guid::EntityKind,
        message::{HEARTBEAT_BYTES, HEARTBEAT_FRAG_BYTES},
    };

    use super::*;

    #[test]
    fn the_header_of_a_message_counts_once_however_much_lies_behind_it() {
        let mut message = MessageReceiver::new(Locator::INVALID);
        let counted = [HEARTBEAT_FRAG_BYTES, HEARTBEAT_FRAG_BYTES, HEARTBEAT_BYTES]
            .map(|bytes| message.count(bytes));
        assert_eq!(counted, [48, 28, 32]);
    }

    fn writer(participant: u8, number: u32) -> Guid {
        Guid {
            prefix: GuidPrefix([participant; 12]),
            entity: EntityId::user(number, EntityKind::WRITER_NO_KEY),
        }
    }

    #[test]
    fn writers_that_share_a_place_are_found_each() {
        let mut chains = WriterProxyIndex::new(3, false, 1);
        let others = 1 + REMEMBERED_WRITERS as u32;
        let writers = [writer(1, 1), writer(2, 2), writer(1, others)];
        for (first, &writer) in (0..).zip(&writers) {
            assert_eq!(chains.recall(&writer), None);
            assert_eq!(chains.insert(writer, WriterProxyId(first)), None);
        }
        for _ in 0..2 {
            for (first, writer) in (0..).zip(&writers) {
                assert_eq!(chains.recall(writer), Some(WriterProxyId(first)));
            }
        }
        assert_eq!(chains.recall(&writer(2, others + 1)), None);
    }

    #[test]
    fn what_changes_is_not_remembered_as_it_was() {
        let mut chains = WriterProxyIndex::new(1, true, 1);
        let writer = writer(1, 1);
        chains.insert(writer, WriterProxyId(3));
        assert_eq!(chains.recall(&writer), Some(WriterProxyId(3)));
        assert_eq!(
            chains.insert(writer, WriterProxyId(4)),
            Some(WriterProxyId(3))
        );
        assert_eq!(chains.recall(&writer), Some(WriterProxyId(4)));
        chains.remove(&writer);
        assert_eq!(chains.recall(&writer), None);
    }

    #[test]
    fn an_unknown_writer_is_not_found_in_an_empty_place() {
        assert_eq!(
            WriterProxyIndex::new(1, true, 1).recall(&Guid::UNKNOWN),
            None
        );
    }
}
