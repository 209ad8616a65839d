//! DATA_FRAG and HEARTBEAT_FRAG reception (RTPS 2.5 §8.3.8.3, §8.3.8.7).
//!
//! A submessage with all fragments of a sample is processed as DATA. Otherwise each reader collects the fragments
//! ([`Reassembly`](crate::reader::reassembly::Reassembly)), and the complete sample is processed as DATA. Until then
//! the proxy treats an incomplete sample as missing, for requests and for counters.

use alloc::vec::Vec;

use isolane_wire::{
    guid::Guid,
    message::{Data, DataFrag, HeartbeatFrag, RawSubmessage},
    sequence::SequenceNumber,
    time::Instant,
};

use crate::{
    limits::LAST_SEQUENCE,
    participant::{Facts, LocalParticipant, Shared},
    reader::reassembly::SampleId,
    reader::{
        Reader, Readers, Settled, WriterProxy,
        reassembly::{Put, Reassembly},
    },
    receiver::{Delivery, MessageReceiver, Unfit, begin_unasked, is_due},
    slab::WriterProxyId,
    status::RejectReason,
};

/// Returns whether a reader needs fragments of this sequence number.
fn is_wanted(proxy: &mut WriterProxy, reader: &mut Reader, sequence: SequenceNumber) -> bool {
    if sequence < proxy.expected && !proxy.returns_for(sequence) {
        return false;
    }
    begin_unasked(proxy, reader, sequence);
    !proxy.reliable || proxy.in_window(sequence) && !proxy.has(sequence)
}

/// Returns why a reader can never accept a sample; `None` if it can.
fn why_never(reader: &Reader, fragment: &DataFrag<'_>) -> Option<Unfit> {
    if fragment.non_standard {
        return Some(RejectReason::NotOfType.into());
    }
    let fits = |fragment| {
        let assemblies = reader.assemblies.as_ref();
        assemblies.is_some_and(|assemblies| assemblies.fits(fragment))
    };
    match fits(fragment) {
        true => None,
        false if fragment.sample_size as usize <= reader.max_payload_bytes => {
            Some(RejectReason::ShortFragments.into())
        }
        false => Some(Unfit::TooLarge(fragment.sample_size)),
    }
}

/// Converts a submessage with all fragments of a sample to a DATA.
fn whole<'a>(fragment: &DataFrag<'a>) -> Option<Data<'a>> {
    let is_whole = u32::from(fragment.fragments) == fragment.total_fragments();
    is_whole.then_some(Data {
        reader: fragment.reader,
        writer: fragment.writer,
        sequence: fragment.sequence,
        inline_qos: fragment.inline_qos,
        payload: fragment.payload,
        bytes: fragment.bytes,
        payload_offset: fragment.payload_offset,
        little_endian: fragment.little_endian,
        non_standard: fragment.non_standard,
    })
}

impl LocalParticipant {
    #[inline(never)]
    pub(crate) fn receive_fragment(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        found: RawSubmessage<'_>,
    ) -> Option<Delivery> {
        let fragment = match DataFrag::parse(found.flags, found.body, found.body_offset) {
            Ok(_) if message.for_others => {
                self.shared.counters.for_others += 1;
                return None;
            }
            Ok(fragment) if fragment.sequence <= LAST_SEQUENCE => fragment,
            _ => {
                self.shared.note_malformed();
                return None;
            }
        };
        match whole(&fragment) {
            Some(data) => self.receive_data(now, message, data),
            None => self.receive_part(now, message, &fragment),
        }
    }

    /// Passes fragments to each matched reader. After a delivery to a view reader the same submessage is read again for
    /// the other readers, as for DATA. Readers that have already processed it ignore its sequence number.
    fn receive_part(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        fragment: &DataFrag<'_>,
    ) -> Option<Delivery> {
        let writer = Guid {
            prefix: message.prefix,
            entity: fragment.writer,
        };
        let further = core::mem::take(&mut message.further);
        let resumes = further > 0;
        let mut next = self.readers.by_writer.recall(&writer);
        if next.is_none() {
            self.shared.counters.unmatched_data += u64::from(!resumes);
            return None;
        }
        while let Some((index, after)) = self.readers.addressed_proxy(next, fragment.reader) {
            next = after;
            let at = match self.readers.put_fragment(
                &mut self.shared,
                Facts::of(&self.writers, &self.discovery),
                now,
                message,
                index,
                fragment,
            ) {
                Some(Put::Complete(at)) => at,
                Some(Put::Incomplete) | None => continue,
                Some(Put::Unused) => {
                    self.shared.counters.fragments_unused += u64::from(!resumes);
                    continue;
                }
            };
            if let Some(delivery) = self.finish_sample(now, message, index, at, fragment) {
                if next.is_some() {
                    message.further = further.checked_sub(1).unwrap_or(self.readers.table.end());
                }
                return Some(delivery);
            }
        }
        None
    }

    /// Processes a complete sample as DATA for this reader.
    fn finish_sample(
        &mut self,
        now: Instant,
        message: &mut MessageReceiver,
        index: WriterProxyId,
        at: usize,
        fragment: &DataFrag<'_>,
    ) -> Option<Delivery> {
        let reader_index = self.readers.proxies.get(index)?.reader;
        let reader = self.readers.get_mut(reader_index)?;
        let entity = reader.guid.entity;
        let assembled = reader.assemblies.as_mut()?.take(at)?;
        let of_message = message.timestamp;
        message.timestamp = of_message.or(assembled.timestamp);
        let data = Data {
            reader: entity,
            writer: fragment.writer,
            sequence: fragment.sequence,
            inline_qos: assembled.inline_qos(),
            payload: assembled.payload,
            bytes: assembled
                .memory
                .get(assembled.range.clone())
                .unwrap_or_default(),
            payload_offset: 0,
            little_endian: fragment.little_endian,
            non_standard: fragment.non_standard,
        };
        let delivery = self.receive_data(now, message, data);
        (message.timestamp, message.further) = (of_message, 0);
        let reader = self.readers.get_mut(reader_index)?;
        reader.assemblies.as_mut()?.give_back(assembled.memory);
        let requested_partially = reader.requested_partially;
        let proxy = self.readers.proxies.get(index)?;
        if requested_partially && proxy.may_ask_for_more() {
            // A place for another sample has become free.
            self.readers.schedule_acknack(&mut self.shared, index);
        }
        delivery.map(|delivery| {
            let start = assembled.range.start;
            Delivery {
                payload: start + delivery.payload.start..start + delivery.payload.end,
                is_assembled: true,
                ..delivery
            }
        })
    }

    /// Payload of a delivered sample, in the datagram or in the reader's assembly memory.
    #[must_use]
    pub fn payload<'a>(&'a self, delivery: &Delivery, datagram: &'a [u8]) -> &'a [u8] {
        let bytes = match delivery.is_assembled {
            false => datagram,
            true => {
                let reader = self.readers.get(delivery.reader);
                let assemblies = reader.and_then(|reader| reader.assemblies.as_ref());
                assemblies.map_or(&[][..], Reassembly::bytes)
            }
        };
        bytes.get(delivery.payload.clone()).unwrap_or_default()
    }

    /// Lends the memory of a reassembled sample, so that it can be read while the participant is in use. The delivery
    /// gives the range of the payload. The memory must be [returned](LocalParticipant::give_back) before more is
    /// received.
    #[must_use]
    pub fn lend(&mut self, delivery: &Delivery) -> Option<Vec<u8>> {
        let reader = self.readers.get_mut(delivery.reader)?;
        let assemblies = reader.assemblies.as_mut();
        assemblies
            .filter(|_| delivery.is_assembled)
            .map(Reassembly::lend)
    }

    /// Returns lent memory. It is freed if the reader no longer exists.
    pub fn give_back(&mut self, delivery: &Delivery, memory: Vec<u8>) {
        let reader = self.readers.get_mut(delivery.reader);
        if let Some(assemblies) = reader.and_then(|reader| reader.assemblies.as_mut()) {
            assemblies.give_back(memory);
        }
    }
}

impl Readers {
    /// Stores fragments at one reader. Returns `None` if the sample is refused and counted.
    fn put_fragment(
        &mut self,
        shared: &mut Shared,
        facts: Facts<'_>,
        now: Instant,
        message: &MessageReceiver,
        index: WriterProxyId,
        fragment: &DataFrag<'_>,
    ) -> Option<Put> {
        let sequence = fragment.sequence;
        let mut proxy = self.proxies.get_mut(index)?;
        let mut reader = self.table.get_mut(proxy.reader)?;
        if !is_wanted(proxy, reader, sequence) {
            return Some(Put::Unused);
        }
        if let Some(unfit) = why_never(reader, fragment) {
            if !proxy.reliable && proxy.strays(sequence) {
                if self.settle_position(shared, facts, now, message, index, sequence)
                    == Settled::Refused
                {
                    return None;
                }
                proxy = self.proxies.get_mut(index)?;
                reader = self.table.get_mut(proxy.reader)?;
            }
            if is_due(proxy, reader, sequence, now).is_some() {
                self.refuse_for_good(shared, facts, index, sequence, unfit);
            }
            return None;
        }
        let (is_reliable, is_next) = (proxy.reliable, sequence == proxy.expected);
        let assemblies = reader.assemblies.as_mut()?;
        let at = match assemblies.find((index, sequence)) {
            Some(at) => {
                let is_anew = assemblies.begin_anew(at, fragment, now);
                shared.counters.assemblies_dropped += u64::from(is_anew);
                at
            }
            None if reader
                .cache
                .as_ref()
                .is_some_and(|cache| is_reliable && cache.room() == 0) =>
            {
                // The complete sample would find no room. It is requested again when there is some.
                reader.refused_for_room |= is_next;
                reader.ledger.deferred += u64::from(fragment.first_fragment == 1);
                return None;
            }
            None => {
                let proxies = &self.proxies;
                let is_done = |(index, sequence): SampleId| {
                    let proxy = proxies.get(index);
                    proxy.is_none_or(|proxy| proxy.is_done_with(sequence))
                };
                let participant = |index| proxies.get(index).map(|proxy| proxy.guid.prefix);
                let opened = assemblies.open(
                    (index, sequence),
                    fragment,
                    is_reliable,
                    now,
                    is_done,
                    participant,
                );
                let Some((at, gave_way)) = opened else {
                    shared.counters.assemblies_refused += 1;
                    return None;
                };
                shared.counters.assemblies_dropped += u64::from(gave_way);
                at
            }
        };
        let put = assemblies.put(at, fragment, message.timestamp, now);
        if put != Put::Unused {
            self.hear_by_fragment(shared, now, index);
        }
        Some(put)
    }

    /// Records new fragments as a sign of life, since a sample may take longer than the lease to complete.
    fn hear_by_fragment(&mut self, shared: &mut Shared, now: Instant, index: WriterProxyId) {
        let proxy = &mut self.proxies[index];
        proxy.heard = now;
        let Some(lease) = &mut proxy.clock.lease else {
            return;
        };
        lease.hear(now);
        let (reader, is_alive) = (proxy.reader, proxy.clock.is_alive());
        if !is_alive {
            self.schedule_reader_timed_qos(shared, reader);
        }
    }

    /// Processes a HEARTBEAT_FRAG: requests fragments that were sent but not received. Returns true if there are any.
    pub(crate) fn receive_heartbeat_frag(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        message: &MessageReceiver,
        heartbeat: &HeartbeatFrag,
    ) -> bool {
        let writer = Guid {
            prefix: message.prefix,
            entity: heartbeat.writer,
        };
        let suppression = shared.timing().nack_suppression;
        let mut next = self.by_writer.recall(&writer);
        let mut is_answered = false;
        while let Some((index, after)) = self.addressed_proxy(next, heartbeat.reader) {
            next = after;
            let proxy = &mut self.proxies[index];
            let reader = &mut self.table[proxy.reader];
            let sequence = heartbeat.sequence;
            let is_missing = proxy.reliable && proxy.in_window(sequence) && !proxy.has(sequence);
            if !is_missing || !proxy.accept_fragments(now, heartbeat.count) {
                continue;
            }
            let Some(assemblies) = &mut reader.assemblies else {
                continue;
            };
            // A sample of which nothing has arrived is requested by ACKNACK instead.
            let is_news = assemblies.note_sent((index, sequence), heartbeat.last_fragment);
            // The last requested fragments brought nothing new. Requesting them again at once could repeat forever.
            let asked_at = proxy.fragments_asked_at;
            let retries_exhausted = !is_news
                && assemblies.has_stood_still_since((index, sequence), asked_at)
                && now.saturating_since(asked_at) < suppression;
            let missing = assemblies.missing(index, proxy.expected, proxy.last);
            if missing.is_some() && !retries_exhausted {
                self.schedule_acknack(shared, index);
                is_answered = true;
            }
        }
        is_answered
    }

    /// Frees assemblies of finished samples at a proxy's reader.
    pub(crate) fn release_assemblies(&mut self, index: WriterProxyId) {
        let proxies = &self.proxies;
        let reader = proxies.get(index).map(|proxy| proxy.reader);
        let reader = reader.and_then(|reader| self.table.get_mut(reader));
        if let Some(assemblies) = reader.and_then(|reader| reader.assemblies.as_mut()) {
            assemblies.release(|(index, sequence)| {
                let proxy = proxies.get(index);
                proxy.is_none_or(|proxy| proxy.is_done_with(sequence))
            });
        }
    }
}
