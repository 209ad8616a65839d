//! Fragmentation of samples too long for a datagram, and the progress of their transmission.
//!
//! The history keeps every fragmented sample until its last fragment is sent, at a best-effort writer too. First
//! transmission, repair and history each continue where they stopped, one fragment a step.
//!
//! # Transmission of fragments (RTPS 2.5 §8.3.8.3, §8.4.14)
//!
//! A step sends one fragment, in one datagram that fits an Ethernet frame. First transmissions of fragments run at the
//! protocol priority of their topic's level, as repairs do, below the samples of that level. An activation runs such
//! steps up to the bound of the level's bursts. A sample of an equally critical topic thus waits for one activation at
//! most, however large the fragmented sample is. Fragments do not starve, since the executor gives protocol work a share
//! of its level's data work. They alternate with repairs, HEARTBEATs and other writers' fragments.
//!
//! Samples of one writer stay in order: later samples wait until all fragments of an earlier one are sent.

use isolane_wire::{
    BufferTooSmall,
    guid::{EntityId, Guid},
    message::{
        CoherentSetInfo, DataFragPrefix, Gap, HeartbeatFrag, MessageWriter, PayloadKind, VENDOR_ID,
    },
    sequence::{FragmentNumberSet, SequenceNumber},
    time::{Instant, Timestamp},
};

use crate::{
    limits::{FRAGMENT_BYTES, FRAGMENTS_PER_HEARTBEAT, MIN_FRAGMENT_BYTES},
    participant::Shared,
    reader::is_news,
    slab::{ReaderProxyId, WriterId},
    timed_qos::Expired,
    work::{Filed, Work, WorkKind},
    writer::{
        Writer, Writers,
        write::{data_head, gap},
    },
};

/// Alignment of fragments, so that they have the same alignment in a slot as in their datagram.
const FRAGMENT_ALIGNMENT: usize = 32;

/// Fragment of a change: sequence number and fragment number, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FragmentOf {
    pub(crate) sequence: SequenceNumber,
    pub(crate) number: u32,
}

impl FragmentOf {
    pub(crate) fn first(sequence: SequenceNumber) -> Self {
        Self {
            sequence,
            number: 1,
        }
    }

    pub(crate) fn next(self) -> Self {
        Self {
            number: self.number.saturating_add(1),
            ..self
        }
    }
}

/// Fragmentation state of a writer.
#[derive(Debug)]
pub(crate) struct Fragmenter {
    /// Largest payload in bytes sent as one DATA.
    whole_bytes: usize,
    /// Maximum size of a fragment in bytes.
    max_fragment_bytes: u16,
    /// Some samples of the writer may be longer than `whole_bytes`.
    cuts: bool,
    /// A new sample may replace an unsent one (best effort, KEEP_LAST).
    pub(crate) replaces_unsent: bool,
    /// Next fragment of the current first transmission.
    pub(crate) under_way: Option<FragmentOf>,
    /// Count of the last HEARTBEAT_FRAG.
    heartbeat_count: i32,
}

impl Fragmenter {
    /// Fragmenter of a writer whose samples are all sent as one DATA.
    pub(crate) const NONE: Self = Self {
        whole_bytes: usize::MAX,
        max_fragment_bytes: FRAGMENT_BYTES,
        cuts: false,
        replaces_unsent: false,
        under_way: None,
        heartbeat_count: 0,
    };

    /// Creates a fragmenter for payloads of at most `max_payload_bytes`; payloads above `whole_bytes` are fragmented.
    /// Payloads up to the fragment size are never fragmented, because a sample must not be shorter than its fragments
    /// (RTPS 2.5 §8.3.8.3.3). The fragment size is at most `whole_bytes`, and at least the minimum that readers accept.
    pub(crate) fn new(whole_bytes: usize, max_payload_bytes: usize) -> Self {
        let bounds = (MIN_FRAGMENT_BYTES, FRAGMENT_BYTES);
        let max_fragment_bytes = u16::try_from(whole_bytes).map_or(bounds.1, |whole_bytes| {
            whole_bytes.clamp(bounds.0, bounds.1)
        });
        let whole_bytes = whole_bytes.max(max_fragment_bytes.into());
        Self {
            whole_bytes,
            max_fragment_bytes,
            cuts: max_payload_bytes > whole_bytes,
            ..Self::NONE
        }
    }

    /// Returns whether any sample of the writer may be fragmented.
    #[inline]
    pub(crate) fn cuts(&self) -> bool {
        self.cuts
    }

    /// Returns whether a payload of this size is fragmented.
    pub(crate) fn is_fragmented(&self, payload_bytes: usize) -> bool {
        self.cuts && payload_bytes > self.whole_bytes
    }

    pub(crate) fn whole_bytes(&self) -> usize {
        self.whole_bytes
    }

    /// Size in bytes of each fragment of a payload but the last. The last one is about as long, so that the datagrams of
    /// many samples can leave as one segmented burst.
    fn fragment_bytes_of(&self, payload_bytes: usize) -> u16 {
        let most = self.max_fragment_bytes;
        let fragments = payload_bytes.div_ceil(most.into()).max(1);
        let even = payload_bytes.div_ceil(fragments);
        let aligned = even.next_multiple_of(FRAGMENT_ALIGNMENT);
        u16::try_from(aligned).map_or(most, |bytes| bytes.clamp(MIN_FRAGMENT_BYTES, most))
    }

    pub(crate) fn fragments_of(&self, payload_bytes: usize) -> u32 {
        payload_bytes.div_ceil(self.fragment_bytes_of(payload_bytes).into()) as u32
    }

    pub(crate) fn next_heartbeat_count(&mut self) -> i32 {
        self.heartbeat_count = self.heartbeat_count.wrapping_add(1);
        self.heartbeat_count
    }
}

/// Fragments of one sample owed to a reader.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Owed {
    /// All from this one on.
    From(FragmentOf),
    /// A set of fragments of a sample.
    These(SequenceNumber, FragmentNumberSet),
}

impl Owed {
    fn sequence(&self) -> SequenceNumber {
        match *self {
            Self::From(at) => at.sequence,
            Self::These(sequence, _) => sequence,
        }
    }
}

/// Fragments owed to one reader.
#[derive(Debug, Default)]
pub(crate) struct OwedFragments {
    pub(crate) repair: Option<Owed>,
    /// Next fragment of the historical sample in transmission.
    pub(crate) history: Option<FragmentOf>,
    /// Count and arrival of the last accepted NACK_FRAG.
    nack_count: Option<(i32, Instant)>,
}

impl OwedFragments {
    /// Returns whether a NACK_FRAG is new (RTPS 2.5 §8.3.8.12: `count` increases).
    pub(crate) fn accept(&mut self, now: Instant, count: i32) -> bool {
        let is_new = is_news(self.nack_count, count, now);
        if is_new {
            self.nack_count = Some((count, now));
        }
        is_new
    }

    /// Queues requested fragments for repair, unless the whole sample is queued already.
    pub(crate) fn ask_for(&mut self, sequence: SequenceNumber, state: &FragmentNumberSet) {
        if !self.comes(sequence) {
            self.repair = Some(Owed::These(sequence, *state));
        }
    }

    /// Returns whether a whole sample is queued for repair.
    pub(crate) fn comes(&self, sequence: SequenceNumber) -> bool {
        matches!(self.repair, Some(Owed::From(at)) if at.sequence == sequence)
    }

    /// Drops repairs of samples below `base`, which the reader has acknowledged.
    pub(crate) fn acknowledge(&mut self, base: SequenceNumber) {
        self.repair = self.repair.filter(|owed| owed.sequence() >= base);
    }

    pub(crate) fn next_repair(&self) -> Option<FragmentOf> {
        match self.repair? {
            Owed::From(at) => Some(at),
            Owed::These(sequence, ref set) => {
                let number = set.iter().next()?;
                Some(FragmentOf { sequence, number })
            }
        }
    }

    /// Notes a repaired fragment, one of `total`; returns true if no other fragment of the sample is owed.
    pub(crate) fn note_repaired(&mut self, sent: FragmentOf, total: u32) -> bool {
        let is_last = match &mut self.repair {
            None => true,
            Some(Owed::From(at)) => {
                *at = sent.next();
                sent.number >= total
            }
            Some(Owed::These(_, set)) => {
                set.remove(sent.number);
                set.iter().next().is_none_or(|next| next > total)
            }
        };
        if is_last {
            self.repair = None;
        }
        is_last
    }
}

struct Fragment<'a> {
    head: DataFragPrefix,
    mark: Option<&'a CoherentSetInfo>,
    timestamp: Timestamp,
    bytes: &'a [u8],
    is_last: bool,
}

impl Writer {
    /// Returns whether a change is sent in fragments.
    pub(crate) fn is_fragmented(&self, sequence: SequenceNumber) -> bool {
        let history = self.history.as_ref().filter(|_| self.fragmenter.cuts());
        let found = history.and_then(|history| history.get_pinned(sequence));
        found.is_some_and(|(_, payload)| self.fragmenter.is_fragmented(payload.len()))
    }

    /// Returns whether a change in the history is sent as one DATA.
    pub(crate) fn goes_whole(&self, sequence: SequenceNumber) -> bool {
        let found = self
            .history
            .as_ref()
            .and_then(|history| history.get_pinned(sequence));
        found.is_some_and(|(_, payload)| !self.fragmenter.is_fragmented(payload.len()))
    }

    /// Returns whether the next first transmission is a fragment.
    fn is_next_cut(&self) -> bool {
        let unsent = || self.history.as_ref()?.at_or_after(self.next_unsent);
        self.fragmenter.under_way.is_some()
            || self.fragmenter.cuts()
                && unsent().is_some_and(|sequence| self.is_fragmented(sequence))
    }

    /// Builds a fragment for one reader or all; `None` if the sample or fragment does not exist.
    fn fragment(&self, of: FragmentOf, reader: EntityId) -> Option<Fragment<'_>> {
        let (change, payload) = self.history.as_ref()?.get_pinned(of.sequence)?;
        let fragment_size = self.fragmenter.fragment_bytes_of(payload.len());
        let start = (of.number.checked_sub(1)? as usize).checked_mul(fragment_size.into())?;
        let rest = payload.get(start..).filter(|rest| !rest.is_empty())?;
        let bytes = &rest[..rest.len().min(fragment_size.into())];
        let sample = change.sample();
        let whole = data_head(self.guid.entity, reader, of.sequence, &sample);
        let mark = self.history.as_ref()?.mark_of(of.sequence);
        let head = DataFragPrefix {
            reader,
            writer: self.guid.entity,
            sequence: of.sequence,
            first_fragment: of.number,
            fragments: 1,
            fragment_size,
            sample_size: payload.len() as u32,
            // Key hash and set mark together would exceed an Ethernet frame. The payload contains the key as well.
            key_hash: whole.key_hash.filter(|_| mark.is_none()),
            status: whole.status,
            is_key: whole.payload == PayloadKind::Key,
        };
        Some(Fragment {
            head,
            mark,
            timestamp: sample.timestamp,
            bytes,
            is_last: bytes.len() == rest.len(),
        })
    }

    /// Number of fragments of a change sent so far.
    fn fragments_sent(&self, sequence: SequenceNumber) -> Option<u32> {
        if let Some(at) = self.fragmenter.under_way
            && at.sequence == sequence
        {
            return Some(at.number - 1);
        }
        let (_, payload) = self.history.as_ref()?.get(sequence)?;
        (sequence < self.next_unsent).then(|| self.fragmenter.fragments_of(payload.len()))
    }

    /// Builds a HEARTBEAT_FRAG (RTPS 2.5 §8.3.8.7) for fragments up to `last`.
    fn heartbeat_frag(
        &mut self,
        reader: EntityId,
        sequence: SequenceNumber,
        last: u32,
    ) -> HeartbeatFrag {
        HeartbeatFrag {
            reader,
            writer: self.guid.entity,
            sequence,
            last_fragment: last,
            count: self.fragmenter.next_heartbeat_count(),
        }
    }
}

impl Writers {
    /// Files the first transmission of the next unsent sample: a whole sample at data priority, a fragment at protocol
    /// priority.
    pub(crate) fn schedule_first(&mut self, shared: &mut Shared, index: WriterId) {
        let writer = &mut self.table[index];
        if writer.next_unsent > writer.last || core::mem::replace(&mut writer.data_filed, true) {
            return;
        }
        if writer.is_next_cut() {
            let priority = writer.protocol_priority();
            shared.schedule(priority, Filed::Fragment(index));
        } else {
            let queue = writer.data_queue();
            shared.schedule(queue, Filed::Data(index));
        }
    }

    /// Sends the next fragment of a first transmission to all readers, or a GAP for removed samples before it.
    pub(crate) fn send_fragment(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: WriterId,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let writer = self.table.get_mut(index)?;
        let is_between = writer.clock.is_some() && writer.fragmenter.under_way.is_none();
        let is_held_up =
            is_between && self.expire_history(shared, now, index) == Expired::Incomplete;
        let writer = self.table.get_mut(index)?;
        writer.data_filed = false;
        if is_held_up {
            self.schedule_first(shared, index);
            return None;
        }
        if writer.fragmenter.under_way.is_none() && writer.holds_for_window() {
            return None;
        }
        let level = writer.level;
        let gone = writer.skip_gone();
        let bytes = if let Some(gone) = gone {
            shared.emit_message(buffer, |message| message.gap(&gone))
        } else {
            writer.begin_fragments();
            match writer.fragmenter.under_way {
                Some(at) => self.send_first_fragment(shared, now, index, at, buffer),
                None => {
                    // There are no readers, or all unsent samples were replaced or have expired.
                    self.arm_heartbeat(shared, now, index);
                    0
                }
            }
        };
        self.schedule_first(shared, index);
        self.release_acknowledged(shared, index);
        Some(Work::new(WorkKind::Fragment, level, bytes, index))
    }

    fn send_first_fragment(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        index: WriterId,
        at: FragmentOf,
        buffer: &mut [u8],
    ) -> usize {
        let header = shared.header;
        let writer = &mut self.table[index];
        if writer.destinations.is_empty() {
            writer.end_fragments(at.sequence, false);
            return 0;
        }
        let begins_run = writer.highest_acknowledged >= writer.next_unsent;
        let Some(fragment) = writer.fragment(at, EntityId::UNKNOWN) else {
            writer.end_fragments(at.sequence, false);
            return 0;
        };
        let (timestamp, is_last) = (fragment.timestamp, fragment.is_last);
        let written = MessageWriter::new(buffer, &header).and_then(|mut message| {
            fragment.emit(&mut message)?;
            Ok(message)
        });
        writer.ledger.fragments += 1;
        writer.fragmenter.under_way = Some(at.next());
        if is_last {
            writer.end_fragments(at.sequence, true);
        }
        let bytes = match written {
            Ok(mut message) => {
                if is_last {
                    writer.complete(&mut message, timestamp);
                } else if writer.has_reliable_reader()
                    && at.number.is_multiple_of(FRAGMENTS_PER_HEARTBEAT)
                {
                    let heartbeat =
                        writer.heartbeat_frag(EntityId::UNKNOWN, at.sequence, at.number);
                    // If it does not fit, a HEARTBEAT follows the last fragment.
                    let _ = message.heartbeat_frag(&heartbeat);
                }
                message.len()
            }
            Err(_) => {
                shared.counters.buffer_too_small += 1;
                0
            }
        };
        if is_last {
            self.arm_heartbeat(shared, now, index);
            if begins_run {
                self.hasten_heartbeat(shared, now, index);
            }
        }
        bytes
    }

    /// Sends the next fragment that a reader requested, or a GAP if the sample is gone.
    pub(crate) fn send_fragment_repair(
        &mut self,
        shared: &mut Shared,
        index: ReaderProxyId,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let proxy = self.proxies.get(index)?;
        let Some(at) = proxy.fragments.next_repair() else {
            self.proxies.get_mut(index)?.fragments.repair = None;
            return None;
        };
        let (writer_index, guid, to) = (proxy.writer, proxy.guid, proxy.address());
        let start = proxy.start;
        let writer = self.table.get_mut(writer_index)?;
        let level = writer.level;
        let sent = writer.fragments_sent(at.sequence);
        let bytes = match sent.filter(|_| at.sequence >= start) {
            Some(total) => {
                writer.ledger.fragments_repaired += 1;
                let proxy = self.proxies.get_mut(index)?;
                let is_last = proxy.fragments.note_repaired(at, total);
                let announced = is_last.then_some(total);
                if is_last && guid.prefix.0[..2] != VENDOR_ID {
                    // A HEARTBEAT follows for readers of other vendors; isolane readers answer the HEARTBEAT_FRAG.
                    // Cyclone DDS requests the fragments of the next sample only after a HEARTBEAT. Without it, such a
                    // reader would lag by a heartbeat period a sample.
                    self.schedule_repair(shared, index);
                }
                match at.number <= total {
                    true => self.emit_fragment(shared, writer_index, at, guid, announced, buffer),
                    false => 0,
                }
            }
            None => {
                self.proxies.get_mut(index)?.fragments.repair = None;
                self.emit_gone(shared, writer_index, at.sequence, start, guid, buffer)
            }
        };
        Some(self.repaired(shared, index, level, bytes, to))
    }

    /// Starts the repair of all fragments of a sample that a reader requested by ACKNACK.
    pub(crate) fn begin_fragment_repair(
        &mut self,
        shared: &mut Shared,
        index: ReaderProxyId,
        sequence: SequenceNumber,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let proxy = self.proxies.get_mut(index)?;
        proxy.fragments.repair = Some(Owed::From(FragmentOf::first(sequence)));
        let writer = self.table.get_mut(proxy.writer)?;
        writer.ledger.repaired += 1;
        self.send_fragment_repair(shared, index, buffer)
    }

    /// Sends the next fragment of a history sample to a late joiner. A GAP for removed samples precedes the first one.
    pub(crate) fn send_history_fragment(
        &mut self,
        shared: &mut Shared,
        index: ReaderProxyId,
        cursor: SequenceNumber,
        sequence: SequenceNumber,
        buffer: &mut [u8],
    ) -> Option<Work> {
        let proxy = self.proxies.get_mut(index)?;
        let (writer_index, guid, to) = (proxy.writer, proxy.guid, proxy.address());
        let begun = proxy.fragments.history.filter(|at| at.sequence == sequence);
        let at = begun.unwrap_or(FragmentOf::first(sequence));
        let writer = self.table.get_mut(writer_index)?;
        let (level, queue) = (writer.level, writer.protocol_queue());
        let bytes = if begun.is_none() && cursor < sequence {
            writer.ledger.gaps += (sequence.get() - cursor.get()) as u64;
            let gone = gap(writer.guid.entity, guid.entity, cursor, sequence);
            let proxy = self.proxies.get_mut(index)?;
            proxy.history_next = Some(sequence);
            shared.emit_message(buffer, |message| {
                message.info_destination(guid.prefix)?.gap(&gone)
            })
        } else {
            let total = writer.fragments_sent(sequence).unwrap_or(0);
            let is_last = at.number >= total;
            writer.ledger.history += u64::from(is_last);
            let proxy = self.proxies.get_mut(index)?;
            proxy.fragments.history = (!is_last).then(|| at.next());
            proxy.history_next = Some(if is_last { sequence.next() } else { sequence });
            let announced = is_last.then_some(total);
            self.emit_fragment(shared, writer_index, at, guid, announced, buffer)
        };
        self.proxies.get_mut(index)?.history_filed = true;
        shared.schedule(queue, Filed::History(index));
        Some(Work::new(WorkKind::History, level, bytes, to))
    }

    /// Writes a fragment for one reader. With `announced`, the total number of fragments, a HEARTBEAT_FRAG follows so
    /// that the reader can request missing ones at once.
    fn emit_fragment(
        &mut self,
        shared: &mut Shared,
        writer_index: WriterId,
        at: FragmentOf,
        reader: Guid,
        announced: Option<u32>,
        buffer: &mut [u8],
    ) -> usize {
        let writer = &mut self.table[writer_index];
        let heartbeat = announced
            .filter(|&total| total > 0)
            .map(|total| writer.heartbeat_frag(reader.entity, at.sequence, total));
        let Some(fragment) = writer.fragment(at, reader.entity) else {
            return 0;
        };
        shared.emit_message(buffer, |message| {
            message.info_destination(reader.prefix)?;
            fragment.emit(message)?;
            if let Some(heartbeat) = &heartbeat {
                message.heartbeat_frag(heartbeat)?;
            }
            Ok(message)
        })
    }
}

impl Fragment<'_> {
    fn emit(&self, message: &mut MessageWriter<'_>) -> Result<(), BufferTooSmall> {
        message.info_timestamp(self.timestamp)?;
        match self.mark {
            None => message.data_frag(&self.head, self.bytes),
            Some(mark) => message.data_frag_with_set(&self.head, mark, self.bytes),
        }
        .map(drop)
    }
}

/// Steps of a first transmission in fragments.
impl Writer {
    /// Passes removed samples before the next one. Returns the GAP for readers that wait for them.
    fn skip_gone(&mut self) -> Option<Gap> {
        if self.fragmenter.under_way.is_some() {
            return None;
        }
        let kept = self
            .history
            .as_ref()
            .and_then(|history| history.at_or_after(self.next_unsent));
        let next = kept.unwrap_or(self.last.next());
        let skipped = self.next_unsent;
        if next <= skipped {
            return None;
        }
        self.pass_unsent(next);
        let is_announced = self.reliable && kept.is_some() && !self.destinations.is_empty();
        is_announced.then(|| gap(self.guid.entity, EntityId::UNKNOWN, skipped, next))
    }

    /// Starts sending the next sample in fragments, if it is to be fragmented.
    fn begin_fragments(&mut self) {
        if self.fragmenter.under_way.is_some() || !self.is_next_cut() {
            return;
        }
        let sequence = self.next_unsent;
        if self.destinations.is_empty() {
            self.note_first(sequence, 0, false);
        } else if let Some(history) = &mut self.history {
            history.pin(sequence);
            self.fragmenter.under_way = Some(FragmentOf::first(sequence));
        }
    }

    /// Finishes a fragmented sample: all fragments are sent, or the rest will not be.
    fn end_fragments(&mut self, sequence: SequenceNumber, is_sent: bool) {
        self.fragmenter.under_way = None;
        let mut bytes = 0;
        if let Some(history) = &mut self.history {
            history.unpin();
            bytes = history
                .get(sequence)
                .map_or(0, |(_, payload)| payload.len());
        }
        self.note_first(sequence, bytes, is_sent);
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec::Vec};

    use super::*;

    /// Sizes of the fragments of a payload.
    fn sizes(fragmenter: &Fragmenter, payload_bytes: usize) -> Vec<usize> {
        let bytes = usize::from(fragmenter.fragment_bytes_of(payload_bytes));
        let begins = (0..payload_bytes).step_by(bytes);
        begins.map(|at| bytes.min(payload_bytes - at)).collect()
    }

    #[test]
    fn fragments_have_about_the_same_size_and_are_as_many_as_of_the_largest_size() {
        for most in [
            MIN_FRAGMENT_BYTES,
            600,
            800,
            1_024,
            FRAGMENT_BYTES - 1,
            FRAGMENT_BYTES,
        ] {
            let fragmenter = Fragmenter::new(most.into(), 1 << 20);
            let most = usize::from(most);
            let long = [65_535, 65_536, 100_000, 1 << 20];
            for payload in (most + 1..20_000).step_by(13).chain(long) {
                let case = format!("{payload} bytes in fragments of at most {most}");
                let sizes = sizes(&fragmenter, payload);
                let (last, others) = sizes.split_last().expect("a fragment");
                assert_eq!(sizes.iter().sum::<usize>(), payload, "{case}");
                assert_eq!(sizes.len(), payload.div_ceil(most), "{case}");
                assert_eq!(
                    fragmenter.fragments_of(payload) as usize,
                    sizes.len(),
                    "{case}"
                );
                let size = others[0];
                assert!(others.iter().all(|one| *one == size), "{case}");
                assert!(size <= most, "{case}: {size}");
                assert!(size >= MIN_FRAGMENT_BYTES.into(), "{case}: {size}");
                // The minimum size leaves less for the last one.
                let is_even = size > MIN_FRAGMENT_BYTES.into();
                let missing = size - last;
                assert!(
                    !is_even || missing < FRAGMENT_ALIGNMENT * sizes.len(),
                    "{case}: the last one lacks {missing} bytes of {size}"
                );
            }
        }
    }

    #[test]
    fn a_payload_below_the_least_fragment_is_one_fragment_of_the_least_size() {
        let fragmenter = Fragmenter::new(0, 10_000);
        for payload in [0, 1, 511, 512] {
            assert_eq!(fragmenter.fragment_bytes_of(payload), MIN_FRAGMENT_BYTES);
            assert!(fragmenter.fragments_of(payload) <= 1);
        }
    }
}
