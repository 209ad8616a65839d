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
//! Here is DATA, and whom it is for; [`extension`] has what a message says of itself as a whole, [`sample`] what one
//! reader does with a sample, [`fragment`] how it comes in parts and is asked for ([`nack_fragment`]), [`missing`]
//! what a writer says of the numbers it has and no longer has, [`acknack`] what a reader says it has and lacks.

mod acknack;
mod extension;
mod fragment;
mod missing;
mod nack_fragment;
mod sample;
mod set_end;

use core::ops::Range;

use isolane_wire::{
    guid::{EntityId, Guid, GuidPrefix},
    locator::Locator,
    rtps::{
        Data, HEADER_BYTES, Header, InfoTimestamp, Submessage, SubmessageId, Submessages, Undecoded,
    },
    sequence::SequenceNumber,
    time::{Instant, Timestamp},
};

use self::sample::{Content, Kept, Unfit, is_due, keep};
use crate::{
    cache::SampleInfo,
    clock::{Judged, judge},
    engine::Engine,
    ids::ReaderId,
    limits::LAST_SEQUENCE,
    reader::{ReaderStatus, Settled},
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
    /// When the datagram arrived, where that is known better than by when it is read.
    arrived: Option<Instant>,
    /// The DATA at `offset` was delivered to some readers, and may be to so many more. 0: it has
    /// not been begun.
    further: u16,
    /// The header was counted among the bytes that call for an answer.
    is_header_counted: bool,
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
            arrived: None,
            further: 0,
            is_header_counted: false,
        }
    }

    /// When the datagram arrived, as its stamp says: samples count as received then
    /// ([`SampleInfo::received`]). Otherwise they count as received when they are read.
    #[must_use]
    pub fn arrived_at(mut self, arrived: Instant) -> Self {
        self.arrived = Some(arrived);
        self
    }

    /// Whether all of a datagram of so many bytes has been read: there is nothing to call
    /// [`Engine::receive`] again for.
    #[inline]
    #[must_use]
    pub fn is_at_end(&self, datagram_bytes: usize) -> bool {
        self.offset == datagram_bytes && self.further == 0
    }

    /// Bytes that came with a submessage of so many: its own, and the first time those of the header.
    fn count(&mut self, submessage_bytes: usize) -> usize {
        match core::mem::replace(&mut self.is_header_counted, true) {
            false => HEADER_BYTES + submessage_bytes,
            true => submessage_bytes,
        }
    }

    /// Who says what follows.
    pub(crate) fn sender(&self) -> GuidPrefix {
        self.prefix
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
    /// Where the payload lies in the datagram, with its encapsulation header; empty where the change carries none.
    pub payload: Range<usize>,
    /// It came in fragments: the payload lies in memory of the reader ([`Engine::lend`]) instead.
    pub is_assembled: bool,
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
                Ok(header) if extension::is_true(bytes) => {
                    message.prefix = header.prefix;
                    message.offset = HEADER_BYTES;
                    self.counters.messages += 1;
                    if self.is_nobodys(header.prefix) {
                        message.offset = bytes.len();
                        return None;
                    }
                }
                _ => {
                    self.counters.malformed_messages += 1;
                    return None;
                }
            }
        }
        let mut submessages = Submessages::new(bytes, message.offset);
        loop {
            let start = submessages.offset();
            let Ok(found) = submessages.next_undecoded()? else {
                self.note_malformed();
                message.offset = submessages.offset();
                continue;
            };
            // DATA and INFO_TS are what samples come as: read here, without the detour by a
            // value that could be any kind.
            match found {
                sample @ Undecoded {
                    id: SubmessageId::DATA,
                    ..
                } => {
                    let delivery = self.receive_sample(now, message, sample);
                    if delivery.is_some() {
                        // Come back to this DATA while it has further readers.
                        message.offset = if message.further > 0 {
                            start
                        } else {
                            submessages.offset()
                        };
                        return delivery;
                    }
                }
                fragment @ Undecoded {
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
                info @ Undecoded {
                    id: SubmessageId::INFO_TS,
                    ..
                } => match InfoTimestamp::parse(info.flags, info.body) {
                    Ok(timestamp) => message.timestamp = timestamp.0,
                    Err(_) => self.note_malformed(),
                },
                other => self.receive_other(now, message, other),
            }
            message.offset = submessages.offset();
        }
    }

    #[cold]
    #[inline(never)]
    fn note_malformed(&mut self) {
        self.counters.malformed_submessages += 1;
    }

    /// DATA. Not a part of the loop over submessages: it has so much to keep at hand that the rest would
    /// find no register.
    #[inline(never)]
    fn receive_sample(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        found: Undecoded<'_>,
    ) -> Option<Delivery> {
        match Data::parse(found.flags, found.body, found.body_offset) {
            Ok(_) if message.for_others => self.counters.for_others += 1,
            Ok(data) => return self.receive_data(now, message, data),
            Err(_) => self.note_malformed(),
        }
        None
    }

    /// Whatever is no sample.
    #[inline(never)]
    fn receive_other(&mut self, now: Instant, message: &mut MessageReceiver, found: Undecoded<'_>) {
        let Ok(submessage) = found.decode() else {
            self.note_malformed();
            return;
        };
        match submessage {
            Submessage::InfoSource(source) => {
                // RTPS 2.5 §8.3.8.10: it ends what INFO_TS said, too.
                message.prefix = match self.is_nobodys(source.prefix) {
                    true => GuidPrefix::UNKNOWN,
                    false => source.prefix,
                };
                message.timestamp = None;
            }
            Submessage::InfoDestination(prefix) => {
                message.for_others = prefix != GuidPrefix::UNKNOWN
                    && prefix != self.guid_prefix()
                    && !self.is_any_start_of_this(prefix);
            }
            // It was looked at before anything else of its message.
            Submessage::HeaderExtension(_) => {}
            _ if message.for_others => self.counters.for_others += 1,
            Submessage::Heartbeat(heartbeat) => self.receive_heartbeat(now, message, &heartbeat),
            Submessage::AckNack(acknack) => self.receive_acknack(now, message, &acknack),
            Submessage::Gap(gap) => self.receive_gap(now, message, &gap),
            Submessage::HeartbeatFrag(heartbeat) => {
                self.receive_heartbeat_frag(now, message, &heartbeat);
            }
            Submessage::NackFrag(nack) => self.receive_nack_frag(now, message, &nack),
            _ => self.counters.skipped_submessages += 1,
        }
    }

    fn receive_data(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        data: Data<'_>,
    ) -> Option<Delivery> {
        if data.sequence > LAST_SEQUENCE {
            self.note_malformed();
            return None;
        }
        if data.writer.is_builtin() {
            match data.writer {
                EntityId::SPDP_WRITER if data.non_standard => {
                    self.counters.malformed_announcements += 1;
                    return None;
                }
                EntityId::SPDP_WRITER => {
                    self.file_participant_announcement(now, message, data);
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
        // In the midst of a DATA it begins again at the head of the chain: a callback may have
        // deleted any reader, or made one. Those that were served have gone on and are passed by;
        // should every callback make a reader, the number there can be ends it.
        let further = core::mem::take(&mut message.further);
        let resumes = further > 0;
        let mut next = self.proxies_of_writer.recall(&writer);
        if next.is_none() {
            next = self.recall_described(now, message, &writer);
        }
        if next.is_none() {
            self.counters.unmatched_data += u64::from(!resumes);
            return None;
        }
        while let Some(index) = next {
            let mut proxy = self.writer_proxies.get_mut(index)?;
            let mut reader = self.readers.get_mut(proxy.reader)?;
            next = proxy.next_of_writer;
            let is_served = resumes && proxy.is_done_with(data.sequence);
            if is_served || !reader.is_meant(data.reader) {
                continue;
            }
            let mut has_confirmed = false;
            if !proxy.reliable && proxy.strays(data.sequence) {
                match self.settle_position(now, message, index, data.sequence) {
                    Settled::Refused => continue,
                    Settled::Taken => {}
                    Settled::Confirmed => has_confirmed = true,
                }
                proxy = self.writer_proxies.get_mut(index)?;
                reader = self.readers.get_mut(proxy.reader)?;
            }
            let Some(has_lost) = is_due(proxy, reader, data.sequence, now) else {
                continue;
            };
            let has_lost = has_lost || has_confirmed;
            let content = match Content::of(reader, &data) {
                Ok(content) => content,
                Err(unfit) => {
                    match data.set_end() {
                        Some(mark) => self.receive_set_end(now, message, index, &data, &mark),
                        None => self.refuse_for_good(index, data.sequence, unfit),
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
                let wall_ns = received.as_nanos().wrapping_add(self.config.wall_offset_ns);
                let expired = &mut self.counters.expired_on_arrival;
                match judge(index, proxy, reader, info(None), &data, wall_ns, expired) {
                    Judged::Take(at) => expires = at,
                    Judged::Done => {
                        self.note_judged(index);
                        continue;
                    }
                }
            }
            if reader.cache.is_some() {
                match keep(index, proxy, reader, info(expires), data.bytes) {
                    Kept::InOrder => self.advance_proxy(index),
                    Kept::Aside => {}
                    Kept::Never(unfit) => self.refuse_for_good(index, data.sequence, unfit),
                }
                if is_watched {
                    self.note_judged(index);
                }
                continue;
            }
            proxy.begun = true;
            proxy.expected = data.sequence.next();
            reader.ledger.account();
            reader.ledger.delivered += 1;
            let reader = proxy.reader;
            if has_lost {
                self.note_reader(reader);
            }
            if is_watched {
                self.note_judged(index);
            }
            if next.is_some() {
                message.further = further.checked_sub(1).unwrap_or(self.readers.end());
            }
            let start = data.payload_offset;
            return Some(Delivery {
                reader: ReaderId(reader),
                payload: start..start + data.bytes.len(),
                is_assembled: false,
                info: info(expires),
            });
        }
        None
    }

    /// The first proxy of a writer that is known by a description and has now said its whole name.
    #[cold]
    #[inline(never)]
    fn recall_described(
        &mut self,
        now: Instant,
        message: &MessageReceiver,
        writer: &Guid,
    ) -> Option<u16> {
        let is_met =
            self.uses_descriptions() && self.meet_static(now, message.prefix, message.source);
        match is_met {
            true => self.proxies_of_writer.recall(writer),
            false => None,
        }
    }

    /// The first proxy from `at` on along a writer's chain whose reader a submessage is meant for,
    /// and the one after it.
    fn meant_proxy(&self, mut at: Option<u16>, meant: EntityId) -> Option<(u16, Option<u16>)> {
        while let Some(index) = at {
            let proxy = self.writer_proxies.get(index)?;
            if self.readers.get(proxy.reader)?.is_meant(meant) {
                return Some((index, proxy.next_of_writer));
            }
            at = proxy.next_of_writer;
        }
        None
    }

    /// A sample that came and cannot be taken in, now or later: it counts, and is not asked for
    /// again.
    #[cold]
    fn refuse_for_good(&mut self, proxy_index: u16, sequence: SequenceNumber, unfit: Unfit) {
        let Some(proxy) = self.writer_proxies.get_mut(proxy_index) else {
            return;
        };
        let reader_index = proxy.reader;
        let Some(reader) = self.readers.get_mut(reader_index) else {
            return;
        };
        // One out of order comes again when its turn has come, and is counted then.
        if sequence == proxy.expected {
            proxy.begun = true;
            proxy.advance();
            reader.ledger.account();
            match unfit {
                Unfit::Rejected(reason) => {
                    reader.count_rejected(proxy.guid, reason);
                    self.counters.count_rejected(reason);
                    reader.status |= ReaderStatus::SAMPLE_REJECTED;
                }
                Unfit::TooLarge(bytes) => {
                    reader.ledger.too_large += 1;
                    reader.too_large_bytes = bytes;
                    reader.status |= ReaderStatus::SAMPLE_LOST;
                    self.counters.samples_too_large += 1;
                    self.last_too_large = Some(reader_index);
                }
            }
            if let Some(cache) = reader.cache.as_mut().filter(|cache| cache.groups()) {
                // A set without it is not whole.
                proxy.progress.lose();
                reader.ledger.incomplete += cache.drop_open_set(proxy_index, &proxy.progress);
            }
            self.advance_proxy(proxy_index);
            self.go_on_with_sets(reader_index);
        }
        self.note_reader(reader_index);
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::rtps::{HEARTBEAT_BYTES, HEARTBEAT_FRAG_BYTES};

    use super::*;

    #[test]
    fn the_header_of_a_message_counts_once_however_much_lies_behind_it() {
        let mut message = MessageReceiver::new(Locator::INVALID);
        let counted = [HEARTBEAT_FRAG_BYTES, HEARTBEAT_FRAG_BYTES, HEARTBEAT_BYTES]
            .map(|bytes| message.count(bytes));
        assert_eq!(counted, [48, 28, 32]);
    }
}
