//! What a reader knows of one writer: the reader's side of the reliable protocol (RTPS 2.5 §8.4.10.4).
//!
//! Which sequence numbers have come, which are known to exist, and so which to ask for. All of it is one window of
//! [`WINDOW`](crate::limits::WINDOW) bits behind the lowest number that is missing.

use alloc::boxed::Box;
use core::ops::Range;

use isolane_wire::{
    guid::Guid,
    locator::Locator,
    rtps::{AckNack, Heartbeat, NackFrag},
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

use super::{
    Reader,
    jump::{Anchor, Claim, Former},
};
use crate::{
    cache::Cache,
    clock::ProxyClock,
    limits::{COUNT_MEMORY, WINDOW},
    presentation::Progress,
    window::{WORDS, words},
    withheld::HeldBack,
};

/// What a HEARTBEAT or GAP calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Nothing,
    AckNack,
}

/// A matched writer, as one reader sees it.
#[derive(Debug)]
pub(crate) struct WriterProxy {
    pub(crate) reader: u16,
    pub(crate) guid: Guid,
    /// Where ACKNACKs go.
    pub(crate) reply_to: Option<Locator>,
    pub(crate) reliable: bool,
    /// The writer keeps history this reader does not want (it is VOLATILE), and cannot be relied
    /// upon to say where that ends. It does not hold any more once a sample has come unasked: the
    /// reader begins with that one.
    pub(crate) skips_history: bool,
    /// What is watched at it by the clock.
    pub(crate) clock: ProxyClock,
    /// How far it is with sets and the order of a group.
    pub(crate) progress: Progress,
    /// The next proxy of the same writer, at another reader.
    pub(crate) next_of_writer: Option<u16>,
    /// The lowest number that has not come.
    pub(crate) expected: SequenceNumber,
    /// Bit (number mod WINDOW) for numbers in `expected..expected + WINDOW` that need not be
    /// asked for.
    pub(crate) received: [u64; WORDS],
    /// What of them the writer has held back because of the reader's content filter.
    pub(crate) held_back: Option<Box<HeldBack>>,
    /// The writer is of another implementation.
    pub(crate) is_foreign: bool,
    /// What has not come below this number, such a writer has said, is not for this reader.
    pub(crate) irrelevant_to: SequenceNumber,
    /// The highest number known to exist.
    pub(crate) last: SequenceNumber,
    /// A first heartbeat has come.
    pub(crate) started: bool,
    /// The last number that it told of.
    pub(crate) history_end: SequenceNumber,
    /// A first sample was taken in, or rejected: what is missing from here on is lost.
    pub(crate) begun: bool,
    /// When its last sample, or fragment of one, came.
    pub(crate) heard: Instant,
    /// Of the last heartbeat that was news, and when that was; and of the last HEARTBEAT_FRAG.
    heartbeat_count: Option<(i32, Instant)>,
    fragments_count: Option<(i32, Instant)>,
    /// A far jump that is not confirmed: of a reliable reader the target, of another the former position.
    pub(super) claim: Option<Claim>,
    pub(super) former: Option<Former>,
    /// Last known sample of the writer's own, at a best-effort reader.
    pub(super) anchor: Anchor,
    /// First GAP beyond the window from an address that is not the writer's, which was ignored.
    pub(super) gap_doubted_since: Option<Instant>,
    /// First HEARTBEAT of the writer's own that ended below the window.
    pub(super) astray_since: Option<Instant>,
    /// When the writer was last asked to confirm a jump.
    pub(super) confirm_asked_at: Option<Instant>,
    /// Samples taken in behind jumps that were taken back.
    pub(super) strays: u64,
    pub(crate) acknack_filed: bool,
    /// The base of the last ACKNACK.
    pub(crate) acknowledged: SequenceNumber,
    pub(super) nacked_until: SequenceNumber,
    nacked_at: Instant,
    /// When fragments were asked for last.
    pub(crate) fragments_asked_at: Instant,
}

impl WriterProxy {
    pub(crate) fn new(reader: u16, guid: Guid, reliable: bool) -> Self {
        Self {
            reader,
            guid,
            reply_to: None,
            reliable,
            skips_history: false,
            clock: ProxyClock::default(),
            progress: Progress::NONE,
            next_of_writer: None,
            expected: SequenceNumber(1),
            received: [0; WORDS],
            held_back: None,
            is_foreign: false,
            irrelevant_to: SequenceNumber(0),
            last: SequenceNumber(0),
            started: false,
            history_end: SequenceNumber(0),
            begun: false,
            heard: Instant::new(0),
            heartbeat_count: None,
            fragments_count: None,
            claim: None,
            former: None,
            anchor: Anchor::NONE,
            gap_doubted_since: None,
            astray_since: None,
            confirm_asked_at: None,
            strays: 0,
            acknack_filed: false,
            acknowledged: SequenceNumber(1),
            nacked_until: SequenceNumber(0),
            nacked_at: Instant::new(0),
            fragments_asked_at: Instant::new(0),
        }
    }

    /// When its last sample, new HEARTBEAT or new HEARTBEAT_FRAG came.
    pub(crate) fn last_heard(&self) -> Instant {
        let counts = [self.heartbeat_count, self.fragments_count];
        let heard = counts.into_iter().flatten().map(|(_, at)| at);
        heard.fold(self.heard, Instant::max)
    }

    /// Whether this number lies in the window.
    pub(crate) fn in_window(&self, sequence: SequenceNumber) -> bool {
        let ahead = sequence.get().wrapping_sub(self.expected.get());
        (0..i64::from(WINDOW)).contains(&ahead)
    }

    pub(crate) fn has(&self, sequence: SequenceNumber) -> bool {
        let bit = sequence.get() as u64 % u64::from(WINDOW);
        self.received[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// Whether this number has come, or never will.
    #[inline(never)]
    pub(crate) fn is_done_with(&self, sequence: SequenceNumber) -> bool {
        sequence < self.expected || (self.in_window(sequence) && self.has(sequence))
    }

    pub(crate) fn mark(&mut self, sequence: SequenceNumber) {
        let bit = sequence.get() as u64 % u64::from(WINDOW);
        self.received[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    /// Marks a run of numbers, all in the window.
    pub(crate) fn mark_run(&mut self, run: Range<i64>) {
        for (word, marked) in words(run) {
            self.received[word] |= marked;
        }
    }

    pub(crate) fn unmark(&mut self, sequence: SequenceNumber) {
        let bit = sequence.get() as u64 % u64::from(WINDOW);
        self.received[(bit / 64) as usize] &= !(1 << (bit % 64));
    }

    /// Moves past `expected`: it has come, or never will.
    pub(crate) fn advance(&mut self) {
        self.unmark(self.expected);
        self.expected = self.expected.next();
    }

    /// Moves to `sequence` at once, forgetting the window.
    pub(crate) fn jump(&mut self, sequence: SequenceNumber) {
        self.expected = sequence;
        self.received = [0; WORDS];
        if let Some(held_back) = &mut self.held_back {
            **held_back = HeldBack::default();
        }
    }

    /// Moves to `sequence`, which is ahead: what was marked before it is forgotten.
    pub(crate) fn pass(&mut self, sequence: SequenceNumber) {
        let ahead = sequence.get() - self.expected.get();
        if ahead >= i64::from(WINDOW) {
            self.jump(sequence);
            return;
        }
        for (word, passed) in words(self.expected.get()..sequence.get()) {
            self.received[word] &= !passed;
        }
        self.expected = sequence;
    }

    /// Forgets what has come: the writer is asked for all it has once more.
    pub(crate) fn restart(&mut self) {
        self.restart_from(SequenceNumber(1));
        (self.last, self.irrelevant_to) = (SequenceNumber(0), SequenceNumber(0));
        self.started = false;
    }

    /// Forgets what has come from a number on: the writer is asked for that once more.
    pub(crate) fn restart_from(&mut self, sequence: SequenceNumber) {
        self.jump(sequence);
        (self.begun, self.claim) = (false, None);
        self.heartbeat_count = None;
        self.acknowledged = sequence;
        self.nacked_until = SequenceNumber(0);
    }

    pub(crate) fn is_missing_any(&self) -> bool {
        self.lowest_missing().is_some()
    }

    /// Whether something has come since the last ACKNACK.
    pub(crate) fn has_unacknowledged(&self) -> bool {
        self.acknowledged < self.expected
    }

    /// The last number known to exist that lies in the window.
    fn window_last(&self) -> SequenceNumber {
        let window_last = self.expected.get().saturating_add(i64::from(WINDOW) - 1);
        SequenceNumber(self.last.get().min(window_last))
    }

    fn lowest_missing(&self) -> Option<SequenceNumber> {
        let lowest = self.first_unmarked();
        (lowest <= self.window_last()).then_some(lowest)
    }

    /// The first number from `expected` on that has not come; the one behind the window if all
    /// have. Looks at a word of the window at a time, because every GAP asks.
    pub(crate) fn first_unmarked(&self) -> SequenceNumber {
        let end = self.expected.get().saturating_add(i64::from(WINDOW));
        let mut at = self.expected.get();
        while at < end {
            let bit = at as u64 % u64::from(WINDOW);
            let unmarked = !self.received[(bit / 64) as usize] >> (bit % 64);
            if unmarked != 0 {
                return SequenceNumber(at.saturating_add(i64::from(unmarked.trailing_zeros())));
            }
            at = at.saturating_add(64 - (bit % 64) as i64);
        }
        SequenceNumber(end)
    }

    /// Whether all that was asked for has come, and more is missing.
    pub(crate) fn may_ask_for_more(&self) -> bool {
        self.reliable && self.expected > self.nacked_until && self.is_missing_any()
    }

    /// Whether this heartbeat is news (RTPS 2.5 §8.3.8.6.4: `count` increases), or the last that was is long
    /// ago.
    pub(crate) fn accept_heartbeat(&mut self, now: Instant, heartbeat: &Heartbeat) -> bool {
        let is_new = is_news(self.heartbeat_count, heartbeat.count, now);
        if is_new {
            self.heartbeat_count = Some((heartbeat.count, now));
        }
        is_new
    }

    /// The same of a HEARTBEAT_FRAG (§8.3.8.7).
    pub(crate) fn accept_fragments(&mut self, now: Instant, count: i32) -> bool {
        let is_new = is_news(self.fragments_count, count, now);
        if is_new {
            self.fragments_count = Some((count, now));
        }
        is_new
    }

    /// Whether to answer a heartbeat (§8.4.12.2: a final one only when something is missing, and
    /// the same thing not again within the suppression time).
    pub(crate) fn answer(&self, is_final: bool, now: Instant, suppression_ns: u64) -> Answer {
        if !is_final {
            return Answer::AckNack;
        }
        let Some(missing) = self.lowest_missing() else {
            return Answer::Nothing;
        };
        let asked_lately =
            now.saturating_since(self.nacked_at).as_nanos() < u128::from(suppression_ns);
        if asked_lately && missing <= self.nacked_until && self.last <= self.nacked_until {
            Answer::Nothing
        } else {
            Answer::AckNack
        }
    }

    /// The ACKNACK for what is missing now; a blocked reader asks for nothing, because it could not
    /// be kept.
    ///
    /// What has begun to come in fragments is not asked for by it, but by
    /// [`nack_frag`](Self::nack_frag); `index` is this proxy's.
    pub(crate) fn acknack(&mut self, index: u16, reader: &mut Reader, now: Instant) -> AckNack {
        let mut state = SequenceNumberSet::new(self.expected);
        self.acknowledged = self.expected;
        if !reader.blocked && self.claim.is_none() {
            let end = self.window_last();
            let mut room = reader.cache.as_ref().map_or(usize::MAX, Cache::room);
            room = room.min(reader.room_beside_assemblies(index, now));
            if room == 0 {
                // Nothing is asked for, so there is nothing to wait for but room.
                self.nacked_until = SequenceNumber(self.expected.get() - 1);
            }
            for sequence in (self.expected.get()..=end.get()).map(SequenceNumber) {
                if !self.has(sequence) {
                    if reader.has_begun((index, sequence), now) {
                        self.nacked_until = sequence;
                        self.nacked_at = now;
                        continue;
                    }
                    if room == 0 {
                        reader.asked_for_less = true;
                        break;
                    }
                    room -= 1;
                    state.insert(sequence);
                    self.nacked_until = sequence;
                    self.nacked_at = now;
                }
            }
        }
        // Before the first heartbeat, and where one is to confirm a jump, an ACKNACK asks for one: not final.
        let asks = core::mem::take(&mut self.progress.asks) || self.claim.is_some();
        let is_final = self.started && !asks;
        reader.acknack_count = reader.acknack_count.wrapping_add(1);
        AckNack {
            reader: reader.guid.entity,
            writer: self.guid.entity,
            state,
            count: reader.acknack_count,
            is_final,
        }
    }
}

impl WriterProxy {
    /// The NACK_FRAG for what is missing of the nearest sample that has begun to come; `index` is this
    /// proxy's. None, where it could not be kept once it is whole.
    pub(crate) fn nack_frag(&self, index: u16, reader: &mut Reader) -> Option<NackFrag> {
        let has_room = reader.cache.as_ref().is_none_or(|cache| cache.room() > 0);
        let assemblies = reader.assemblies.as_ref().filter(|_| has_room)?;
        let (sequence, state) = assemblies.missing(index, self.expected, self.last)?;
        reader.nack_count = reader.nack_count.wrapping_add(1);
        Some(NackFrag {
            reader: reader.guid.entity,
            writer: self.guid.entity,
            sequence,
            state,
            count: reader.nack_count,
        })
    }
}

impl Reader {
    /// Whether a part of a sample has come, and not so long ago that its writer may not know NACK_FRAG.
    fn has_begun(&self, subject: (u16, SequenceNumber), now: Instant) -> bool {
        let assemblies = self.assemblies.as_ref();
        assemblies.is_some_and(|assemblies| assemblies.gets_on(subject, now))
    }

    /// How many samples more of a writer may begin to come in fragments, where some have: all of those that are
    /// asked for may be such.
    fn room_beside_assemblies(&self, writer: u16, now: Instant) -> usize {
        let assemblies = self.assemblies.as_ref();
        assemblies.map_or(usize::MAX, |assemblies| assemblies.room(writer, now))
    }
}

/// Whether a count is higher than the last one, or that is too long ago to tell.
pub(crate) fn is_news(last: Option<(i32, Instant)>, count: i32, now: Instant) -> bool {
    last.is_none_or(|(last, at)| {
        count.wrapping_sub(last) > 0 || now.saturating_since(at) > COUNT_MEMORY
    })
}
