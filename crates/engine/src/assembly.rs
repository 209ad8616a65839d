//! Samples that come in fragments, until they are whole (RTPS 2.5 §8.4.14).
//!
//! A reader has a few places, all their memory taken when it is created, in one piece. A place holds one incomplete
//! sample of one writer: the bytes that have come, and a bit for each fragment that has. When all have, the sample
//! goes the way of one that came in one piece, and the place is free.
//!
//! # Who gets a place
//!
//! What peers begin costs places, and there are few. So a sample that begins takes, in this order: a free
//! place; one whose sample is done with, because it was overtaken or is gone; of its own writer's the one
//! that is wanted least (the furthest ahead at a reliable reader, which needs the nearest first; the oldest at a
//! best-effort one, where newer samples count); one that has had no fragment for a while; and where its
//! writer has none, one of the participant that has the most: of another if that keeps more even then, of
//! its own if a writer there has several. Otherwise it finds none, and is counted: a reliable reader asks for
//! it again, at a best-effort one it is lost. So a participant that begins samples without end, by however
//! many writers, keeps the others from at most all places but theirs, and what goes on arriving is not pushed
//! out by what only begins.
//!
//! # What is believed
//!
//! The first fragment says how large sample and fragments are; later ones that say otherwise are not taken.
//! If it was the first that lied, the place is given up when nothing more fits it, and the sample begins anew.

use alloc::{boxed::Box, vec, vec::Vec};
use core::ops::Range;

use isolane_wire::{
    ByteOrder,
    guid::GuidPrefix,
    parameter::{ParameterList, pid},
    rtps::{DataFrag, PayloadKind},
    sequence::{FragmentNumberSet, SequenceNumber},
    time::{Instant, Timestamp},
};

use crate::{
    config::{Zeroed, memory_of},
    limits::{ASSEMBLIES, ASSEMBLY_PATIENCE, MAX_INLINE_QOS_BYTES, MIN_FRAGMENT_BYTES, WINDOW},
};

/// What a fragment was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// It had come before, or says something else than the first of its sample.
    Unused,
    /// Others are missing.
    Incomplete,
    /// It was the last that was missing of the sample in this place.
    Complete(usize),
}

/// A writer, by the index of its proxy, and a number of its.
type Subject = (u16, SequenceNumber);

/// One incomplete sample.
#[derive(Debug)]
struct Place {
    of: Option<Subject>,
    sample_size: u32,
    fragment_size: u16,
    payload: PayloadKind,
    /// Fragments there are, and how many of them have come.
    total: u32,
    received: u32,
    /// The writer is known to have sent the fragments up to this one.
    sent: u32,
    /// When the last new one came.
    progress: Instant,
    timestamp: Option<Timestamp>,
    /// Parameters that came along, with their sentinel.
    inline_qos: heapless::Vec<u8, MAX_INLINE_QOS_BYTES>,
    order: ByteOrder,
    /// Bit *n - 1*: fragment *n* has come.
    bits: Box<[u64]>,
}

/// The places of one reader.
#[derive(Debug)]
pub(crate) struct Assemblies {
    places: Vec<Place>,
    /// Bytes of each.
    place_bytes: usize,
    /// Bytes of the places; grows, within its capacity, to the last place that was used. Empty while lent.
    memory: Vec<u8>,
}

/// A whole sample on its way out of its place; the memory, which is that of all places, is given back.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) memory: Vec<u8>,
    /// Where in it the sample lies.
    pub(crate) range: Range<usize>,
    pub(crate) payload: PayloadKind,
    pub(crate) timestamp: Option<Timestamp>,
    inline_qos: heapless::Vec<u8, MAX_INLINE_QOS_BYTES>,
    order: ByteOrder,
}

impl Assembled {
    /// The parameters that came along with one of its fragments.
    pub(crate) fn inline_qos(&self) -> Option<ParameterList<'_>> {
        let parsed = ParameterList::parse(&self.inline_qos, self.order);
        parsed.ok().map(|(list, _)| list)
    }
}

impl Assemblies {
    /// The places of a reader of such payloads, their memory taken; `None` where all that it takes in comes
    /// in one piece from whoever cuts at [`MIN_FRAGMENT_BYTES`] or above.
    ///
    /// # Errors
    /// How many bytes are not to be had.
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

    /// Bytes that these places have.
    pub(crate) fn bytes_for(max_payload_bytes: usize) -> usize {
        match max_payload_bytes > usize::from(MIN_FRAGMENT_BYTES) {
            true => ASSEMBLIES.saturating_mul(max_payload_bytes),
            false => 0,
        }
    }

    fn try_new(place_bytes: usize, zeroed: Zeroed) -> Option<Self> {
        let fragments = place_bytes.div_ceil(usize::from(MIN_FRAGMENT_BYTES));
        let place = |_| Place {
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

    /// The memory of all places.
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

    /// Where the bytes of a place lie.
    fn range_of(&self, at: usize) -> Range<usize> {
        at * self.place_bytes..(at + 1) * self.place_bytes
    }

    /// Whether a sample of this size, in such fragments, can be put together here.
    pub(crate) fn fits(&self, fragment: &DataFrag<'_>) -> bool {
        fragment.sample_size as usize <= self.place_bytes
            && fragment.fragment_size >= MIN_FRAGMENT_BYTES
    }

    /// The place of a sample that has begun.
    pub(crate) fn find(&self, subject: Subject) -> Option<usize> {
        self.places
            .iter()
            .position(|place| place.of == Some(subject))
    }

    /// Whether a sample has begun, and a fragment of it came within [`ASSEMBLY_PATIENCE`].
    pub(crate) fn gets_on(&self, subject: Subject, now: Instant) -> bool {
        let place = self.find(subject).and_then(|at| self.places.get(at));
        place.is_some_and(|place| !place.is_stalled(now))
    }

    /// Whether a sample has begun, and no new fragment of it came after this.
    pub(crate) fn has_stood_still_since(&self, subject: Subject, at: Instant) -> bool {
        let place = self.find(subject).and_then(|at| self.places.get(at));
        place.is_some_and(|place| place.progress <= at)
    }

    /// How many samples more a writer may be asked for where some places are taken; where none is, there is no
    /// telling whether any sample comes in fragments. What is stalled makes way; and for a writer that has no
    /// place it is one at least: those who have begun much must not keep the others from being asked.
    pub(crate) fn room(&self, writer: u16, now: Instant) -> usize {
        let taken = || self.places.iter().filter(|place| place.of.is_some());
        if taken().next().is_none() {
            return usize::MAX;
        }
        let held = taken().filter(|place| !place.is_stalled(now)).count();
        let has_one = taken().any(|place| place.of.is_some_and(|of| of.0 == writer));
        (self.places.len() - held).max(usize::from(!has_one))
    }

    /// Gives a sample that begins a place. `None`: there is none for it. `Some((place, true))`: another
    /// that was incomplete, and still wanted, had to give way. `participant` says whose a writer is.
    pub(crate) fn open(
        &mut self,
        subject: Subject,
        fragment: &DataFrag<'_>,
        is_reliable: bool,
        now: Instant,
        is_done: impl Fn(Subject) -> bool,
        participant: impl Fn(u16) -> Option<GuidPrefix>,
    ) -> Option<(usize, bool)> {
        self.release(is_done);
        let is_free = |place: &Place| place.of.is_none();
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

    /// Which of the places, all taken, is wanted less than one for a sample of this writer.
    fn least_wanted(
        &self,
        (writer, sequence): Subject,
        is_reliable: bool,
        now: Instant,
    ) -> Option<usize> {
        let places = || {
            let of = |(at, place): (usize, &Place)| place.of.map(|of| (at, of, place.progress));
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
        let of_other = |&(_, of, _): &(usize, Subject, Instant)| of.0 != writer;
        let stalled = || {
            places()
                .filter(of_other)
                .filter(|&(at, ..)| self.places[at].is_stalled(now))
                .min_by_key(|&(.., progress)| progress)
        };
        own.or_else(stalled).map(|(at, ..)| at)
    }

    /// Which of the places, all taken, a writer that has none gets of whoever has the most.
    fn of_greediest(
        &self,
        writer: u16,
        participant: impl Fn(u16) -> Option<GuidPrefix>,
    ) -> Option<usize> {
        let places = || {
            let of = |(at, place): (usize, &Place)| place.of.map(|of| (at, of));
            self.places.iter().enumerate().filter_map(of)
        };
        let count = |writer: u16| places().filter(|(_, of)| of.0 == writer).count();
        let is_of = |one: u16, other: u16| participant(one) == participant(other);
        let share = |writer: u16| places().filter(|(_, of)| is_of(of.0, writer)).count();
        let may_lose = |&(_, of): &(usize, Subject)| match is_of(of.0, writer) {
            true => count(of.0) > 1,
            false => share(of.0) > share(writer) + 1,
        };
        let greedy = places().filter(may_lose).filter(|_| count(writer) == 0);
        let greediest = greedy.max_by_key(|(_, of)| (share(of.0), count(of.0), of.1));
        greediest.map(|(at, _)| at)
    }

    /// Gives a sample up, and begins it anew, that gets on no more and of whose sizes this fragment says
    /// something else than the first. True: what had come of it is dropped.
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

    /// Puts the fragments of a submessage where they belong.
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

    /// The writer says that it has sent the fragments of a sample up to this one. True: that is more than was known.
    pub(crate) fn note_sent(&mut self, subject: Subject, fragment: u32) -> bool {
        let place = self.find(subject).and_then(|at| self.places.get_mut(at));
        place.is_some_and(|place| {
            let before = place.sent;
            place.sent = before.max(fragment.min(place.total));
            place.sent > before
        })
    }

    /// The nearest sample of a writer of which fragments are known to be missing, and which. Of those up to
    /// `last` the writer is known to have sent all.
    pub(crate) fn missing(
        &self,
        writer: u16,
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

    /// The same of a sample that the writer is still sending.
    fn missing_of_last(
        &self,
        writer: u16,
        last: SequenceNumber,
    ) -> Option<(SequenceNumber, FragmentNumberSet)> {
        let mut of_writer = self.places.iter().filter_map(|place| {
            let (_, sequence) = place.of.filter(|of| of.0 == writer && of.1 > last)?;
            Some((sequence, place.missing_to(place.sent)?))
        });
        of_writer.next()
    }

    /// Takes a whole sample out of its place, which is free from now on.
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

    /// Lends out the memory of all places. Until it is given back no fragment is stored.
    pub(crate) fn lend(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.memory)
    }

    /// What lies in the places.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory
    }

    /// Takes the memory back; drops a buffer that is not of these places.
    pub(crate) fn give_back(&mut self, memory: Vec<u8>) {
        if self.memory.capacity() == 0 && memory.capacity() >= Self::bytes_for(self.place_bytes) {
            self.memory = memory;
        }
    }

    /// Frees the places of samples that are done with.
    pub(crate) fn release(&mut self, is_done: impl Fn(Subject) -> bool) {
        for place in &mut self.places {
            place.of = place.of.filter(|&of| !is_done(of));
        }
    }

    /// A writer is gone, and with it what it has begun.
    pub(crate) fn forget(&mut self, writer: u16) {
        for place in &mut self.places {
            if place.of.is_some_and(|of| of.0 == writer) {
                place.of = None;
            }
        }
    }
}

impl Place {
    fn begin(&mut self, subject: Subject, fragment: &DataFrag<'_>, now: Instant) {
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

    /// Whether no new fragment has come for a while.
    fn is_stalled(&self, now: Instant) -> bool {
        now.saturating_since(self.progress) > ASSEMBLY_PATIENCE
    }

    /// Whether a fragment says of its sample what the first of them has said.
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

    /// Copies fragments into the place; false if none of them was missing.
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

    /// Keeps what came along, if it is no more than a sample needs.
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

    /// What of the fragments up to this one has not come, from the first of those on, as many as one
    /// NACK_FRAG can name.
    fn missing_to(&self, end: u32) -> Option<FragmentNumberSet> {
        // A word at a time: of a long sample there are many.
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
