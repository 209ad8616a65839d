//! Fragmentation of samples too long for a datagram, and the progress of their transmission.
//!
//! The history keeps every fragmented sample until its last fragment is sent, at a best-effort writer too. First
//! transmission, repair and history each continue where they stopped, one fragment a step.

use isolane_wire::{
    sequence::{FragmentNumberSet, SequenceNumber},
    time::Instant,
};

use crate::{
    limits::{FRAGMENT_BYTES, MIN_FRAGMENT_BYTES},
    reader::is_news,
};

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
    /// Size in bytes of each fragment but the last.
    pub(crate) fragment_bytes: u16,
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
        fragment_bytes: FRAGMENT_BYTES,
        cuts: false,
        replaces_unsent: false,
        under_way: None,
        heartbeat_count: 0,
    };

    /// Creates a fragmenter for payloads of at most `max_payload_bytes`; payloads above `whole_bytes` are fragmented.
    /// Payloads up to the fragment size never are, because a sample must not be shorter than its fragments (RTPS 2.5
    /// §8.3.8.3.3). The fragment size is at most `whole_bytes`, and at least the minimum that readers accept.
    pub(crate) fn new(whole_bytes: usize, max_payload_bytes: usize) -> Self {
        let bounds = (MIN_FRAGMENT_BYTES, FRAGMENT_BYTES);
        let fragment_bytes = u16::try_from(whole_bytes).map_or(bounds.1, |whole_bytes| {
            whole_bytes.clamp(bounds.0, bounds.1)
        });
        let whole_bytes = whole_bytes.max(fragment_bytes.into());
        Self {
            whole_bytes,
            fragment_bytes,
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
    pub(crate) fn is_cut(&self, payload_bytes: usize) -> bool {
        self.cuts && payload_bytes > self.whole_bytes
    }

    pub(crate) fn whole_bytes(&self) -> usize {
        self.whole_bytes
    }

    pub(crate) fn fragments_of(&self, payload_bytes: usize) -> u32 {
        payload_bytes.div_ceil(usize::from(self.fragment_bytes)) as u32
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

    /// Notes a repaired fragment, one of `total`; returns true if no other of the sample is owed.
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
