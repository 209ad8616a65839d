//! A local reader, and what it knows of each writer it is matched with.
//!
//! [`WriterProxy`] is the reader's side of the reliable protocol (RTPS 2.5 §8.4.10.4): which
//! sequence numbers have come, which are known to exist, and so which to ask for. All of it is
//! one window of [`WINDOW`](crate::limits::WINDOW) bits behind the lowest number that is missing.

use alloc::{boxed::Box, vec::Vec};
use core::ops::Range;

use bitflags::bitflags;
use isolane_wire::{
    discovery::EndpointData,
    guid::{EntityId, Guid},
    level::Level,
    locator::Locator,
    rtps::{AckNack, Heartbeat, NackFrag},
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Instant,
};

use crate::{
    assembly::Assemblies,
    cache::{Cache, Refused},
    clock::{LivelinessTally, ProxyClock, ReaderClock},
    content_filter::ContentFilter,
    limits::{COUNT_MEMORY, WINDOW},
    matching::Incompatible,
    presentation::Progress,
    priority::Priority,
    status::{MatchTally, RejectReason},
    window::{WORDS, words},
    withheld::HeldBack,
};

/// The key of a serialised sample or of a serialised key, as a hash (RTPS 2.5 §9.6.4.8); `None` if the
/// bytes are not of the type.
pub type KeyOf = fn(payload: &[u8], key_only: bool) -> Option<[u8; 16]>;

/// How samples reach the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryMode {
    /// As a view of the received frame, while it is being received; nothing is kept. For best
    /// effort only.
    View,
    /// Through the cache.
    Cache,
}

bitflags! {
    /// What has changed at a reader since it was last asked (DDS 1.4 §2.2.4.1).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ReaderStatus: u8 {
        /// Samples are available.
        const DATA_AVAILABLE = 1;
        /// The number of matched writers changed.
        const SUBSCRIPTION_MATCHED = 2;
        /// A writer offers less than is requested.
        const REQUESTED_INCOMPATIBLE_QOS = 4;
        /// A sample will never come.
        const SAMPLE_LOST = 8;
        /// A sample came and was not taken in.
        const SAMPLE_REJECTED = 16;
        /// An instance was not updated for a whole period.
        const REQUESTED_DEADLINE_MISSED = 32;
        /// Writers are no longer alive, or are again.
        const LIVELINESS_CHANGED = 64;
    }
}

/// Where a reader's samples went. `accounted` = the sum of the others but the last four, at
/// every moment; see [`Self::balances`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReaderLedger {
    /// Sequence numbers this reader is done with.
    pub accounted: u64,
    /// Handed to the user.
    pub delivered: u64,
    /// In the cache, not yet taken.
    pub available: u64,
    /// Never came: best effort lost them on the way, or the writer no longer had them.
    pub lost: u64,
    /// Pushed out of the cache by younger ones (KEEP_LAST) before they were taken.
    pub evicted: u64,
    /// Came and were not taken in: no room (best effort), larger than the local limit, or not of
    /// the type.
    pub rejected: u64,
    /// Outlived their LIFESPAN before they were taken, or before they came.
    pub expired: u64,
    /// Came sooner after another of their instance than TIME_BASED_FILTER lets through.
    pub filtered: u64,
    /// Came so, and are kept back until it does.
    pub held: u64,
    /// Came of writers that do not own their instance (OWNERSHIP EXCLUSIVE).
    pub not_owner: u64,
    /// Did not pass the reader's content filter, here or, of what a writer said that it held them back for it,
    /// there.
    pub unwanted: u64,
    /// Older than what was taken in of their instance (DESTINATION_ORDER BY_SOURCE_TIMESTAMP).
    pub outdated: u64,
    /// Of coherent sets of which something is missing, or that are larger than there is room for.
    pub incomplete: u64,
    /// Came and are held until their coherent set has ended.
    pub in_sets: u64,
    /// Ends of coherent sets: no samples, and yet numbers.
    pub set_ends: u64,
    /// Said that a writer writes an instance no longer which others write, or which had ended: taken note of, and
    /// no samples.
    pub unregistered: u64,
    /// Were not taken for so long after the end of their instance that READER_DATA_LIFECYCLE let them go.
    pub purged: u64,
    /// Came and wait for earlier ones; not yet accounted.
    pub waiting: u64,
    /// Came again, or out of order at a best-effort reader; counted beside the balance.
    pub duplicates: u64,
    /// Came and were refused for now, to be asked for again; counted beside the balance.
    pub deferred: u64,
    /// Numbers before the first sample of a writer that came: history that is gone, or was never
    /// for this reader. Counted beside the balance; `accounted` + `skipped` is the sum over all
    /// matches of the numbers this reader is done with.
    pub skipped: u64,
}

impl ReaderLedger {
    /// Whether every sample is accounted for exactly once.
    #[must_use]
    pub fn balances(&self) -> bool {
        // What is lost is what writers say they have written, and so can be anything.
        let came = self.delivered + self.available + self.evicted + self.rejected;
        let timed = self.expired + self.filtered + self.held + self.purged;
        let not_for_it = self.not_owner + self.unwanted + self.outdated;
        let of_sets = self.incomplete + self.in_sets + self.set_ends;
        let not_samples = of_sets + self.unregistered;
        self.accounted
            == self
                .lost
                .wrapping_add(came + timed + not_for_it + not_samples)
    }

    /// Counts one number this reader is done with. Like what is lost, the sum is made of what
    /// writers say, and may come round.
    pub(crate) fn account(&mut self) {
        self.accounted = self.accounted.wrapping_add(1);
    }

    /// Counts numbers that the writer has held back because of the reader's filter.
    pub(crate) fn withhold(&mut self, count: u64) {
        self.unwanted = self.unwanted.wrapping_add(count);
        self.accounted = self.accounted.wrapping_add(count);
    }

    /// Counts numbers that will never come; the user is to be told if `true`.
    pub(crate) fn lose(&mut self, count: u64, has_begun: bool) -> bool {
        if has_begun {
            self.lost = self.lost.wrapping_add(count);
            self.accounted = self.accounted.wrapping_add(count);
        } else {
            self.skipped = self.skipped.wrapping_add(count);
        }
        has_begun && count > 0
    }
}

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) guid: Guid,
    pub(crate) data: EndpointData,
    pub(crate) keyed: bool,
    pub(crate) key_of: Option<KeyOf>,
    pub(crate) level: Option<Level>,
    pub(crate) reliable: bool,
    pub(crate) volatile: bool,
    pub(crate) is_enabled: bool,
    pub(crate) max_payload_bytes: usize,
    /// `None`: samples are delivered as views.
    pub(crate) cache: Option<Cache>,
    /// Samples that come in fragments; `None`: there is no room for any.
    pub(crate) assemblies: Option<Assemblies>,
    /// Of the last NACK_FRAG to any writer.
    pub(crate) nack_count: i32,
    pub(crate) proxies: Vec<u16>,
    pub(crate) status: ReaderStatus,
    /// It is on the list of endpoints with something to tell.
    pub(crate) noted: bool,
    pub(crate) incompatible: Option<Incompatible>,
    /// What its policies of time need.
    pub(crate) clock: Option<Box<ReaderClock>>,
    pub(crate) content_filter: Option<ContentFilter>,
    pub(crate) clock_filed: bool,
    /// The group it belongs to.
    pub(crate) subscriber: Option<u16>,
    /// When it is looked at again how far others are that it waits for.
    pub(crate) ask_at: Option<Instant>,
    pub(crate) liveliness: LivelinessTally,
    pub(crate) matched: MatchTally,
    /// What the user was told of the ledger's lost and rejected.
    pub(crate) told_lost: u64,
    pub(crate) told_rejected: u64,
    pub(crate) reject_reason: RejectReason,
    pub(crate) ledger: ReaderLedger,
    /// A sample was refused for want of room: ask again when there is some.
    pub(crate) blocked: bool,
    /// A sample was refused so that those of other writers find room.
    pub(crate) put_off: bool,
    /// Less was asked for than is missing, for want of room: ask for more when what was asked for
    /// has come and been taken.
    pub(crate) asked_for_less: bool,
    /// Of the last ACKNACK to any writer. It outlives the proxies, so that a writer that was
    /// forgotten and found again, and has forgotten nothing itself, sees it grow.
    pub(crate) acknack_count: i32,
}

impl Reader {
    pub(crate) fn protocol_priority(&self) -> Priority {
        self.level
            .map_or(Priority::DISCOVERY, Priority::of_protocol)
    }

    /// Whether what a submessage's reader is called means this one (RTPS 2.5 §8.3.8: an unknown reader means
    /// all that match).
    #[inline]
    pub(crate) fn is_meant(&self, reader: EntityId) -> bool {
        reader == EntityId::UNKNOWN || reader == self.guid.entity
    }

    /// The next sample in order found no place; what then comes of it is worked out when one is free.
    pub(crate) fn refuse(&mut self, why: Refused) {
        match why {
            Refused::PutOff => self.put_off = true,
            Refused::Full | Refused::TooLarge => self.blocked = true,
            Refused::Order | Refused::Sets => {}
        }
    }

    pub(crate) fn ledger(&self) -> ReaderLedger {
        let mut ledger = self.ledger;
        if let Some(cache) = &self.cache {
            ledger.available = cache.counted;
            ledger.waiting = cache.waiting() as u64;
            ledger.evicted = cache.evicted;
            ledger.expired += cache.expired;
            ledger.purged = cache.purged;
            ledger.unregistered = cache.unregistered;
            ledger.held = cache.held() as u64;
            ledger.in_sets = cache.in_sets() as u64;
        }
        ledger
    }
}

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
    /// The highest number known to exist.
    pub(crate) last: SequenceNumber,
    /// A first heartbeat has come.
    pub(crate) started: bool,
    /// The last number that it told of.
    pub(crate) history_end: SequenceNumber,
    /// A first sample was taken in, or rejected: what is missing from here on is lost.
    pub(crate) begun: bool,
    /// Of the last heartbeat that was news, and when that was; and of the last HEARTBEAT_FRAG.
    heartbeat_count: Option<(i32, Instant)>,
    fragments_count: Option<(i32, Instant)>,
    pub(crate) acknack_filed: bool,
    /// The base of the last ACKNACK.
    pub(crate) acknowledged: SequenceNumber,
    nacked_until: SequenceNumber,
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
            last: SequenceNumber(0),
            started: false,
            history_end: SequenceNumber(0),
            begun: false,
            heartbeat_count: None,
            fragments_count: None,
            acknack_filed: false,
            acknowledged: SequenceNumber(1),
            nacked_until: SequenceNumber(0),
            nacked_at: Instant::new(0),
            fragments_asked_at: Instant::new(0),
        }
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
        self.jump(SequenceNumber(1));
        self.last = SequenceNumber(0);
        (self.started, self.begun) = (false, false);
        self.heartbeat_count = None;
        self.acknowledged = SequenceNumber(1);
        self.nacked_until = SequenceNumber(0);
    }

    pub(crate) fn is_missing_any(&self) -> bool {
        self.lowest_missing().is_some()
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
        if !reader.blocked {
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
        // Before the first heartbeat an ACKNACK asks for one: not final.
        let is_final = self.started && !core::mem::take(&mut self.progress.asks);
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
