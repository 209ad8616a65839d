//! Reassembly of samples that arrive in fragments (RTPS 2.5 §8.4.14).
//!
//! A reader has a few *places* (reassembly slots); their memory is allocated in one piece when the reader is created. A
//! place holds one incomplete sample of one writer: the bytes received, and a bit for each fragment. A complete sample
//! is processed like one that arrived as DATA, and its place becomes free.
//!
//! # Allocation of places
//!
//! A new sample takes, in this order:
//! 1. a free place;
//! 2. a place whose sample is no longer needed, because the reader has passed it or the writer has removed it;
//! 3. the place of the least useful sample of the same writer: at a reliable reader the furthest ahead, because the
//!    nearest is needed first; at a best-effort reader the oldest, because newer samples count;
//! 4. the place of a sample that has had no fragment for a while;
//! 5. if its writer has no place, one of the participant that has most places: another participant that still has more
//!    afterwards, or the writer's own participant if another writer there has several.
//!
//! Otherwise the sample finds no place and is counted. A reliable reader requests it again; at a best-effort reader it
//! is lost. So a participant that begins samples endlessly, with any number of writers, leaves every other participant
//! its share. A sample that progresses is not displaced by one that only begins.
//!
//! # Contradicting fragments
//!
//! The first fragment fixes the sizes of sample and fragments; later ones that differ are not used. If the first was
//! wrong, its sample makes no progress. After a while the next fragment that differs restarts the sample.

use alloc::{boxed::Box, vec, vec::Vec};
use core::ops::Range;

use isolane_wire::{
    ByteOrder,
    guid::GuidPrefix,
    message::{DataFrag, PayloadKind},
    parameter::{ParameterList, pid},
    sequence::{FragmentNumberSet, SequenceNumber},
    time::{Instant, Timestamp},
};

use crate::{
    config::{Zeroed, memory_of},
    limits::{ASSEMBLIES, ASSEMBLY_PATIENCE, MAX_INLINE_QOS_BYTES, MIN_FRAGMENT_BYTES, WINDOW},
    slab::WriterProxyId,
};

/// Result of storing a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// Duplicate, or inconsistent with the first fragment of its sample.
    Unused,
    /// Stored; other fragments are missing.
    Incomplete,
    /// Stored as the last missing fragment of the sample in this place.
    Complete(usize),
}

/// Sample identity: index of the writer's proxy, and sequence number.
pub(crate) type SampleId = (WriterProxyId, SequenceNumber);

#[derive(Debug)]
struct ReassemblySlot {
    of: Option<SampleId>,
    sample_size: u32,
    fragment_size: u16,
    payload: PayloadKind,
    /// Number of fragments of the sample; `received` counts those that have arrived.
    total: u32,
    received: u32,
    /// Highest fragment that the writer is known to have sent.
    sent: u32,
    /// Arrival of the last new fragment.
    progress: Instant,
    timestamp: Option<Timestamp>,
    /// Inline QoS parameters with their sentinel.
    inline_qos: heapless::Vec<u8, MAX_INLINE_QOS_BYTES>,
    order: ByteOrder,
    /// Bit *n - 1* is set if fragment *n* has arrived.
    bits: Box<[u64]>,
}

/// Reassembly places of one reader.
#[derive(Debug)]
pub(crate) struct Reassembly {
    places: Vec<ReassemblySlot>,
    place_bytes: usize,
    /// Bytes of the places; grows, within its capacity, to the last place in use. Empty while lent.
    memory: Vec<u8>,
}

/// Complete sample taken out of its place. The memory is that of all places, and must be given back.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) memory: Vec<u8>,
    /// Range of the sample in `memory`.
    pub(crate) range: Range<usize>,
    pub(crate) payload: PayloadKind,
    pub(crate) timestamp: Option<Timestamp>,
    inline_qos: heapless::Vec<u8, MAX_INLINE_QOS_BYTES>,
    order: ByteOrder,
}

impl Assembled {
    /// Returns the inline QoS received with the fragments.
    pub(crate) fn inline_qos(&self) -> Option<ParameterList<'_>> {
        let parsed = ParameterList::parse(&self.inline_qos, self.order);
        parsed.ok().map(|(list, _)| list)
    }
}

impl Reassembly {
    /// Allocates the places of a reader with this maximum payload. Returns `None` if no payload exceeds
    /// [`MIN_FRAGMENT_BYTES`], so that none arrives in fragments.
    ///
    /// # Errors
    /// Number of bytes that could not be allocated.
    pub(crate) fn for_payloads_of(
        max_payload_bytes: usize,
        zeroed: Zeroed,
    ) -> Result<Option<Self>, usize> {
        let bytes = Self::bytes_for(max_payload_bytes);
        match bytes {
            0 => Ok(None),
            _ => Self::try_new(max_payload_bytes, zeroed)
                .map(Some)
                .ok_or(bytes),
        }
    }

    /// Returns the bytes of the places for this maximum payload.
    pub(crate) fn bytes_for(max_payload_bytes: usize) -> usize {
        match max_payload_bytes > usize::from(MIN_FRAGMENT_BYTES) {
            true => ASSEMBLIES.saturating_mul(max_payload_bytes),
            false => 0,
        }
    }

    fn try_new(place_bytes: usize, zeroed: Zeroed) -> Option<Self> {
        let fragments = place_bytes.div_ceil(usize::from(MIN_FRAGMENT_BYTES));
        let place = |_| ReassemblySlot {
            of: None,
            sample_size: 0,
            fragment_size: 0,
            payload: PayloadKind::None,
            total: 0,
            received: 0,
            sent: 0,
            progress: Instant::new(0),
            timestamp: None,
            inline_qos: heapless::Vec::new(),
            order: ByteOrder::Little,
            bits: vec![0; fragments.div_ceil(64)].into_boxed_slice(),
        };
        Some(Self {
            places: (0..ASSEMBLIES).map(place).collect(),
            place_bytes,
            memory: memory_of(Self::bytes_for(place_bytes), zeroed)?,
        })
    }

    pub(crate) fn memory_mut(&mut self) -> &mut [u8] {
        self.grow(self.places.len() - 1);
        &mut self.memory
    }

    /// Extends the memory, within its capacity, to a place that is about to be used.
    fn grow(&mut self, at: usize) {
        let end = (at + 1) * self.place_bytes;
        if end > self.memory.len() && end <= self.memory.capacity() {
            self.memory.resize(end, 0);
        }
    }

    fn range_of(&self, at: usize) -> Range<usize> {
        at * self.place_bytes..(at + 1) * self.place_bytes
    }

    /// Returns whether a sample of this size, in fragments of this size, can be reassembled here.
    pub(crate) fn fits(&self, fragment: &DataFrag<'_>) -> bool {
        fragment.sample_size as usize <= self.place_bytes
            && fragment.fragment_size >= MIN_FRAGMENT_BYTES
    }

    pub(crate) fn find(&self, subject: SampleId) -> Option<usize> {
        self.places
            .iter()
            .position(|place| place.of == Some(subject))
    }

    /// Returns whether a sample has begun and a fragment of it arrived within [`ASSEMBLY_PATIENCE`].
    pub(crate) fn gets_on(&self, subject: SampleId, now: Instant) -> bool {
        let place = self.find(subject).and_then(|at| self.places.get(at));
        place.is_some_and(|place| !place.is_stalled(now))
    }

    /// Returns whether a sample has begun and no new fragment of it arrived after `at`.
    pub(crate) fn has_stood_still_since(&self, subject: SampleId, at: Instant) -> bool {
        let place = self.find(subject).and_then(|at| self.places.get(at));
        place.is_some_and(|place| place.progress <= at)
    }

    /// Returns how many more samples may be requested from a writer. If no place is taken, the number is unlimited,
    /// because the samples need not be fragmented. Stalled samples do not count, because they make way. From a writer
    /// without a place, one sample may always be requested, so that other writers do not block it.
    pub(crate) fn room(&self, writer: WriterProxyId, now: Instant) -> usize {
        let taken = || self.places.iter().filter(|place| place.of.is_some());
        if taken().next().is_none() {
            return usize::MAX;
        }
        let held = taken().filter(|place| !place.is_stalled(now)).count();
        let has_one = taken().any(|place| place.of.is_some_and(|of| of.0 == writer));
        (self.places.len() - held).max(usize::from(!has_one))
    }

    /// Assigns a place to a new sample. Returns `None` if there is none for it, and `Some((place, true))` if another
    /// incomplete sample that was still wanted had to make way. `participant` returns the GUID prefix of a writer.
    pub(crate) fn open(
        &mut self,
        subject: SampleId,
        fragment: &DataFrag<'_>,
        is_reliable: bool,
        now: Instant,
        is_done: impl Fn(SampleId) -> bool,
        participant: impl Fn(WriterProxyId) -> Option<GuidPrefix>,
    ) -> Option<(usize, bool)> {
        self.release(is_done);
        let is_free = |place: &ReassemblySlot| place.of.is_none();
        let (at, gives_way) = match self.places.iter().position(is_free) {
            Some(free) => (free, false),
            None => {
                let least = self.least_wanted(subject, is_reliable, now);
                let least = least.or_else(|| self.of_greediest(subject.0, participant));
                (least?, true)
            }
        };
        self.grow(at);
        self.places[at].begin(subject, fragment, now);
        Some((at, gives_way))
    }

    /// Returns the place whose sample makes way for this sample, if all places are taken.
    fn least_wanted(
        &self,
        (writer, sequence): SampleId,
        is_reliable: bool,
        now: Instant,
    ) -> Option<usize> {
        let places = || {
            let of =
                |(at, place): (usize, &ReassemblySlot)| place.of.map(|of| (at, of, place.progress));
            self.places.iter().enumerate().filter_map(of)
        };
        let own = places().filter(|&(_, of, _)| of.0 == writer);
        let own = match is_reliable {
            true => own
                .max_by_key(|&(_, of, _)| of.1)
                .filter(|&(_, of, _)| of.1 > sequence),
            false => own
                .min_by_key(|&(_, of, _)| of.1)
                .filter(|&(_, of, _)| of.1 < sequence),
        };
        let of_other = |&(_, of, _): &(usize, SampleId, Instant)| of.0 != writer;
        let stalled = || {
            places()
                .filter(of_other)
                .filter(|&(at, ..)| self.places[at].is_stalled(now))
                .min_by_key(|&(.., progress)| progress)
        };
        own.or_else(stalled).map(|(at, ..)| at)
    }

    /// Returns the place that a writer without one gets from the participant with most places, when all are taken.
    fn of_greediest(
        &self,
        writer: WriterProxyId,
        participant: impl Fn(WriterProxyId) -> Option<GuidPrefix>,
    ) -> Option<usize> {
        let places = || {
            let of = |(at, place): (usize, &ReassemblySlot)| place.of.map(|of| (at, of));
            self.places.iter().enumerate().filter_map(of)
        };
        let count = |writer: WriterProxyId| places().filter(|(_, of)| of.0 == writer).count();
        let is_of =
            |one: WriterProxyId, other: WriterProxyId| participant(one) == participant(other);
        let share = |writer: WriterProxyId| places().filter(|(_, of)| is_of(of.0, writer)).count();
        let may_lose = |&(_, of): &(usize, SampleId)| match is_of(of.0, writer) {
            true => count(of.0) > 1,
            false => share(of.0) > share(writer) + 1,
        };
        let greedy = places().filter(may_lose).filter(|_| count(writer) == 0);
        let greediest = greedy.max_by_key(|(_, of)| (share(of.0), count(of.0), of.1));
        greediest.map(|(at, _)| at)
    }

    /// Restarts a stalled sample whose sizes differ from those in this fragment. Returns true if it did, and the
    /// fragments received so far are dropped.
    pub(crate) fn begin_anew(&mut self, at: usize, fragment: &DataFrag<'_>, now: Instant) -> bool {
        let place = self.places.get_mut(at);
        let Some(place) = place.filter(|place| place.is_stalled(now)) else {
            return false;
        };
        let Some(of) = place.of.filter(|_| !place.is_of_same(fragment)) else {
            return false;
        };
        place.begin(of, fragment, now);
        true
    }

    pub(crate) fn put(
        &mut self,
        at: usize,
        fragment: &DataFrag<'_>,
        timestamp: Option<Timestamp>,
        now: Instant,
    ) -> Put {
        let range = self.range_of(at);
        let bytes = self.memory.get_mut(range);
        let (Some(place), Some(bytes)) = (self.places.get_mut(at), bytes) else {
            return Put::Unused;
        };
        if !place.put(bytes, fragment, timestamp, now) {
            return Put::Unused;
        }
        match place.received == place.total {
            true => Put::Complete(at),
            false => Put::Incomplete,
        }
    }

    /// Notes that the writer has sent the fragments up to this one; returns true if that is new.
    pub(crate) fn note_sent(&mut self, subject: SampleId, fragment: u32) -> bool {
        let place = self.find(subject).and_then(|at| self.places.get_mut(at));
        place.is_some_and(|place| {
            let before = place.sent;
            place.sent = before.max(fragment.min(place.total));
            place.sent > before
        })
    }

    /// Returns the lowest sample of a writer with missing fragments, and the set of these fragments. The writer is
    /// known to have sent all fragments of the samples up to `last`.
    pub(crate) fn missing(
        &self,
        writer: WriterProxyId,
        from: SequenceNumber,
        last: SequenceNumber,
    ) -> Option<(SequenceNumber, FragmentNumberSet)> {
        let of_writer = self.places.iter().filter_map(|place| {
            let (_, sequence) = place
                .of
                .filter(|of| of.0 == writer && (from..=last).contains(&of.1))?;
            Some((sequence, place))
        });
        of_writer
            .filter_map(|(sequence, place)| Some((sequence, place.missing_to(place.total)?)))
            .min_by_key(|&(sequence, _)| sequence)
            .or_else(|| self.missing_of_last(writer, last))
    }

    /// Returns the missing fragments of a sample that the writer is still sending.
    fn missing_of_last(
        &self,
        writer: WriterProxyId,
        last: SequenceNumber,
    ) -> Option<(SequenceNumber, FragmentNumberSet)> {
        let mut of_writer = self.places.iter().filter_map(|place| {
            let (_, sequence) = place.of.filter(|of| of.0 == writer && of.1 > last)?;
            Some((sequence, place.missing_to(place.sent)?))
        });
        of_writer.next()
    }

    /// Takes a complete sample out of its place, which becomes free.
    pub(crate) fn take(&mut self, at: usize) -> Option<Assembled> {
        let start = self.range_of(at).start;
        let place = self.places.get_mut(at)?;
        place.of = None;
        Some(Assembled {
            memory: core::mem::take(&mut self.memory),
            range: start..start + place.sample_size as usize,
            payload: place.payload,
            timestamp: place.timestamp,
            inline_qos: place.inline_qos.clone(),
            order: place.order,
        })
    }

    /// Lends out the memory of all places. No fragment is stored until it is given back.
    pub(crate) fn lend(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.memory)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory
    }

    /// Takes the lent memory back; drops a buffer that does not belong to these places.
    pub(crate) fn give_back(&mut self, memory: Vec<u8>) {
        if self.memory.capacity() == 0 && memory.capacity() >= Self::bytes_for(self.place_bytes) {
            self.memory = memory;
        }
    }

    /// Frees the places of finished samples.
    pub(crate) fn release(&mut self, is_done: impl Fn(SampleId) -> bool) {
        for place in &mut self.places {
            place.of = place.of.filter(|&of| !is_done(of));
        }
    }

    pub(crate) fn forget(&mut self, writer: WriterProxyId) {
        for place in &mut self.places {
            if place.of.is_some_and(|of| of.0 == writer) {
                place.of = None;
            }
        }
    }
}

impl ReassemblySlot {
    fn begin(&mut self, subject: SampleId, fragment: &DataFrag<'_>, now: Instant) {
        self.of = Some(subject);
        self.sample_size = fragment.sample_size;
        self.fragment_size = fragment.fragment_size;
        self.payload = fragment.payload;
        self.total = fragment.total_fragments();
        self.received = 0;
        self.sent = 0;
        self.progress = now;
        self.timestamp = None;
        self.inline_qos.clear();
        let words = (self.total as usize).div_ceil(64);
        for word in self.bits.iter_mut().take(words) {
            *word = 0;
        }
    }

    /// Returns whether no new fragment has arrived for a while.
    fn is_stalled(&self, now: Instant) -> bool {
        now.saturating_since(self.progress) > ASSEMBLY_PATIENCE
    }

    /// Returns whether a fragment agrees with the first one of the sample.
    fn is_of_same(&self, fragment: &DataFrag<'_>) -> bool {
        fragment.sample_size == self.sample_size
            && fragment.fragment_size == self.fragment_size
            && fragment.payload == self.payload
    }

    fn has(&self, fragment: u32) -> bool {
        let bit = fragment as usize - 1;
        let word = self.bits.get(bit / 64).copied().unwrap_or_default();
        word >> (bit % 64) & 1 == 1
    }

    /// Copies fragments into the place; returns false if none of them was missing.
    fn put(
        &mut self,
        bytes: &mut [u8],
        fragment: &DataFrag<'_>,
        timestamp: Option<Timestamp>,
        now: Instant,
    ) -> bool {
        let is_same = self.is_of_same(fragment);
        let start = fragment.sample_offset();
        let room = bytes.get_mut(start..start + fragment.bytes.len());
        let (Some(room), true) = (room, is_same) else {
            return false;
        };
        let end = fragment.first_fragment - 1 + u32::from(fragment.fragments);
        let before = self.received;
        for bit in fragment.first_fragment as usize - 1..end as usize {
            let Some(word) = self.bits.get_mut(bit / 64) else {
                return false;
            };
            let mask = 1 << (bit % 64);
            self.received += u32::from(*word & mask == 0);
            *word |= mask;
        }
        if self.received == before {
            return false;
        }
        room.copy_from_slice(fragment.bytes);
        self.sent = self.sent.max(end);
        self.progress = now;
        self.timestamp = self.timestamp.or(timestamp);
        if self.inline_qos.is_empty()
            && let Some(list) = &fragment.inline_qos
        {
            self.keep(list);
        }
        true
    }

    /// Stores the inline QoS if it fits.
    fn keep(&mut self, list: &ParameterList<'_>) {
        self.order = list.order();
        let sentinel = match self.order {
            ByteOrder::Big => pid::SENTINEL.to_be_bytes(),
            ByteOrder::Little => pid::SENTINEL.to_le_bytes(),
        };
        let mut kept = heapless::Vec::new();
        let fits = kept.extend_from_slice(list.as_bytes()).is_ok()
            && kept.extend_from_slice(&sentinel).is_ok()
            && kept.extend_from_slice(&[0, 0]).is_ok();
        if fits {
            self.inline_qos = kept;
        }
    }

    /// Returns the missing fragments up to `end`, as many as one NACK_FRAG can name.
    fn missing_to(&self, end: u32) -> Option<FragmentNumberSet> {
        // Searches by words, because a long sample has many fragments.
        let incomplete = self.bits.iter().position(|&word| word != u64::MAX)?;
        let first = 64 * incomplete as u32 + self.bits[incomplete].trailing_ones() + 1;
        if first > end {
            return None;
        }
        let mut missing = FragmentNumberSet::new(first);
        let last = end.min(first.saturating_add(WINDOW - 1));
        for fragment in (first..=last).filter(|&fragment| !self.has(fragment)) {
            missing.insert(fragment);
        }
        Some(missing)
    }
}
