//! How a writer cuts samples that are too long for a datagram, and what of that is under way.
//!
//! All that is sent in fragments is the engine's: the history keeps the sample until the last has left, at a
//! best-effort writer too. First transmission, repair and history each go on where they stopped, one
//! fragment a step.

use isolane_wire::{
    sequence::{FragmentNumberSet, SequenceNumber},
    time::Instant,
};

use crate::{
    limits::{FRAGMENT_BYTES, MIN_FRAGMENT_BYTES},
    reader::is_news,
};

/// A fragment of a change: its number in the history, and that of the fragment, from 1 up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FragmentOf {
    pub(crate) sequence: SequenceNumber,
    pub(crate) number: u32,
}

impl FragmentOf {
    /// The first of a change.
    pub(crate) fn first(sequence: SequenceNumber) -> Self {
        Self {
            sequence,
            number: 1,
        }
    }

    /// The one behind it.
    pub(crate) fn next(self) -> Self {
        Self {
            number: self.number.saturating_add(1),
            ..self
        }
    }
}

/// A writer's part.
#[derive(Debug)]
pub(crate) struct Fragmenter {
    /// The largest payload that goes as one DATA.
    whole_bytes: usize,
    /// Bytes of each fragment but a last one.
    pub(crate) fragment_bytes: u16,
    /// Some of its samples are longer.
    cuts: bool,
    /// A new sample may take the place of one that was not sent: best effort and KEEP_LAST.
    pub(crate) replaces_unsent: bool,
    /// The next fragment of the first transmission that is under way.
    pub(crate) under_way: Option<FragmentOf>,
    /// Of the last HEARTBEAT_FRAG.
    heartbeat_count: i32,
}

impl Fragmenter {
    /// Of a writer all of whose samples go as one DATA each.
    pub(crate) const NONE: Self = Self {
        whole_bytes: usize::MAX,
        fragment_bytes: FRAGMENT_BYTES,
        cuts: false,
        replaces_unsent: false,
        under_way: None,
        heartbeat_count: 0,
    };

    /// Of a writer whose payloads are at most so long, where those above `whole_bytes` are cut. What is no
    /// longer than a fragment never is: a sample must not be shorter than those it comes in
    /// (RTPS 2.5 §8.3.8.3.3). Fragments are no longer than `whole_bytes` either, down to a reader's bound.
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

    /// Whether any of the writer's samples is sent in fragments.
    #[inline]
    pub(crate) fn cuts(&self) -> bool {
        self.cuts
    }

    /// Whether a payload of so many bytes is.
    pub(crate) fn is_cut(&self, payload_bytes: usize) -> bool {
        self.cuts && payload_bytes > self.whole_bytes
    }

    /// The largest payload of a single DATA.
    pub(crate) fn whole_bytes(&self) -> usize {
        self.whole_bytes
    }

    /// How many fragments a payload has.
    pub(crate) fn fragments_of(&self, payload_bytes: usize) -> u32 {
        payload_bytes.div_ceil(usize::from(self.fragment_bytes)) as u32
    }

    pub(crate) fn next_heartbeat_count(&mut self) -> i32 {
        self.heartbeat_count = self.heartbeat_count.wrapping_add(1);
        self.heartbeat_count
    }
}

/// Which fragments of one sample are owed to a reader.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Owed {
    /// From this one on all.
    From(FragmentOf),
    /// These, of the sample.
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

/// What one reader is owed in fragments.
#[derive(Debug, Default)]
pub(crate) struct OwedFragments {
    pub(crate) repair: Option<Owed>,
    /// The next fragment of the history's sample that is being sent.
    pub(crate) history: Option<FragmentOf>,
    /// Of the last NACK_FRAG that was news, and when that was.
    nack_count: Option<(i32, Instant)>,
}

impl OwedFragments {
    /// Whether a NACK_FRAG is news (RTPS 2.5 §8.3.8.12: `count` increases).
    pub(crate) fn accept(&mut self, now: Instant, count: i32) -> bool {
        let is_new = is_news(self.nack_count, count, now);
        if is_new {
            self.nack_count = Some((count, now));
        }
        is_new
    }

    /// A reader asks for these fragments. Where all of the sample is on its way to it they come with it.
    pub(crate) fn ask_for(&mut self, sequence: SequenceNumber, state: &FragmentNumberSet) {
        if !self.comes(sequence) {
            self.repair = Some(Owed::These(sequence, *state));
        }
    }

    /// Whether all of a sample is on its way to the reader.
    pub(crate) fn comes(&self, sequence: SequenceNumber) -> bool {
        matches!(self.repair, Some(Owed::From(at)) if at.sequence == sequence)
    }

    /// The reader has all samples below `base`.
    pub(crate) fn acknowledge(&mut self, base: SequenceNumber) {
        self.repair = self.repair.filter(|owed| owed.sequence() >= base);
    }

    /// The sample and fragment that is repaired next.
    pub(crate) fn next_repair(&self) -> Option<FragmentOf> {
        match self.repair? {
            Owed::From(at) => Some(at),
            Owed::These(sequence, ref set) => {
                let number = set.iter().next()?;
                Some(FragmentOf { sequence, number })
            }
        }
    }

    /// One of `total` fragments was repaired; true: no other of that sample is owed.
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
