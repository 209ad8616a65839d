//! How far a reader is with one writer, in the sets and in the group that the writer's samples belong to; and what
//! becomes of a sample whose turn it is among those of its writer.

use isolane_wire::{
    discovery::EndpointData,
    guid::{EntityId, Guid},
    rtps::SetMark,
    sequence::SequenceNumber,
};

use super::Access;
use crate::{
    cache::{Cache, Place, Refused, SampleInfo},
    reader::{Reader, ReaderLedger, WriterProxy},
};

/// A set of which a part has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenSet {
    /// The number of its first sample, as places are numbered.
    pub(crate) set: SequenceNumber,
    /// Nothing of it is missing so far.
    pub(crate) is_whole: bool,
}

/// A set that has ended at one writer, and is neither shown nor dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedSet {
    pub(crate) set: SequenceNumber,
    /// The number of its end.
    pub(crate) end: SequenceNumber,
    pub(crate) is_whole: bool,
}

/// How far a reader is with one writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// The group of the writer.
    pub(crate) publisher: EntityId,
    /// All that the writer wrote up to this number has had its turn.
    pub(crate) horizon: SequenceNumber,
    pub(crate) open: Option<OpenSet>,
    pub(crate) ended: Option<EndedSet>,
    /// Something is missing, none of it beyond this number.
    hole: Option<SequenceNumber>,
    /// Up to which number it was asked how far it is.
    pub(crate) asked: SequenceNumber,
    /// The next ACKNACK asks for a HEARTBEAT.
    pub(crate) asks: bool,
}

impl Progress {
    pub(crate) const NONE: Self = Self {
        publisher: EntityId::UNKNOWN,
        horizon: SequenceNumber(0),
        open: None,
        ended: None,
        hole: None,
        asked: SequenceNumber(0),
        asks: false,
    };

    /// With a writer that has just been met.
    pub(crate) fn with(reader: &Reader, writer: &EndpointData) -> Self {
        let access = reader.cache.as_ref().and_then(Cache::access);
        let is_group = access.is_some_and(|access| access.is_group);
        let group = writer.group.filter(|_| is_group);
        Self {
            publisher: group.unwrap_or(writer.guid.entity),
            ..Self::NONE
        }
    }

    /// All up to this number has had its turn.
    pub(crate) fn reach(&mut self, number: SequenceNumber) {
        self.horizon = self.horizon.max(number);
    }

    /// The writer says that all it has sent, which has had its turn, was written up to this number.
    pub(crate) fn hear(&mut self, number: SequenceNumber) {
        self.reach(number);
        if self.hole.is_some() {
            self.hole = self.hole.map(|hole| hole.min(number));
        }
    }

    /// Something that the writer wrote will never come.
    pub(crate) fn lose(&mut self) {
        self.hole = Some(SequenceNumber(i64::MAX));
        if let Some(open) = &mut self.open {
            open.is_whole = false;
        }
    }

    /// The writer says that a set has ended.
    fn end(&mut self, place: &Place) {
        self.reach(place.number);
        let open = self.open.take();
        let is_whole = match (open, place.set) {
            (Some(open), set) => open.is_whole && set.is_none_or(|set| set == open.set),
            // It had no part in it, unless that is what is missing.
            (None, Some(set)) => self.hole.is_none_or(|hole| hole < set),
            (None, None) => return,
        };
        let set = place.set.or(open.map(|open| open.set));
        self.ended = set.map(|set| EndedSet {
            set,
            end: place.number,
            is_whole,
        });
        self.hole = None;
    }
}

/// What becomes of the sample whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is shown.
    Show,
    /// It is held until its set has ended.
    Hold,
    /// It is done with, and counted.
    Done,
}

/// Takes note of where a sample belongs that is about to be stored at a reader.
pub(crate) fn note_place(
    proxy: &WriterProxy,
    reader: &mut Reader,
    sequence: SequenceNumber,
    mark: &SetMark,
    is_end: bool,
) {
    let Some(cache) = &mut reader.cache else {
        return;
    };
    let Some(access) = cache.access() else { return };
    cache.note_place(place_of(proxy, access, sequence, mark, is_end));
}

fn place_of(
    proxy: &WriterProxy,
    access: Access,
    sequence: SequenceNumber,
    mark: &SetMark,
    is_end: bool,
) -> Place {
    let numbered = mark.group_sequence.filter(|number| number.get() > 0);
    let (entity, number, set) = match numbered.filter(|_| access.is_group) {
        Some(number) => {
            let set = mark.group_coherent_set.filter(|set| set.get() > 0);
            (proxy.progress.publisher, number, set)
        }
        None => (proxy.guid.entity, sequence, mark.set()),
    };
    Place {
        publisher: Guid {
            prefix: proxy.guid.prefix,
            entity,
        },
        number,
        set: set.filter(|_| access.is_coherent),
        first: mark.set(),
        // Who does not number its samples has no order to be kept.
        is_ordered: access.is_ordered && numbered.is_some(),
        is_end,
        shown: 0,
    }
}

/// Stores a sample, or the end of a set, until its turn has come, which is to be looked at then.
pub(crate) fn keep_in_turn(
    index: u16,
    proxy: &mut WriterProxy,
    reader: &mut Reader,
    info: SampleInfo,
    payload: &[u8],
) -> Result<(), Refused> {
    let sequence = info.sequence;
    let writers = reader.proxies.len();
    let Some(cache) = &mut reader.cache else {
        return Ok(());
    };
    if sequence == proxy.expected
        && let Some(before) = cache.number_before_next()
    {
        proxy.progress.reach(before);
    }
    let displaced = cache.wait_within_share(writers, index, info, payload)?;
    if let Some(displaced) = displaced {
        proxy.unmark(displaced);
        reader.ledger.deferred += 1;
    }
    proxy.mark(sequence);
    Ok(())
}

/// What becomes of the sample that a writer's proxy expects, which waits in the cache; `index` is the proxy's.
///
/// # Errors
/// Its turn has not come: others are before it, or there is no room.
pub(crate) fn admit(
    index: u16,
    proxy: &mut WriterProxy,
    cache: &mut Cache,
    ledger: &mut ReaderLedger,
) -> Result<Turn, Refused> {
    let Some(place) = cache.first_waiting_place(index) else {
        return Ok(Turn::Show);
    };
    let progress = &mut proxy.progress;
    if progress.ended.is_some() {
        return Err(Refused::Order);
    }
    progress.reach(SequenceNumber(place.number.get() - 1));
    if place.is_end {
        progress.end(&place);
        cache.forget_first_waiting(index);
        ledger.set_ends += 1;
        return Ok(Turn::Done);
    }
    if let Some(open) = progress.open.filter(|open| place.set != Some(open.set)) {
        // It has ended without a word.
        progress.open = None;
        progress.ended = Some(EndedSet {
            set: open.set,
            end: SequenceNumber(place.number.get() - 1),
            is_whole: open.is_whole,
        });
        return Err(Refused::Order);
    }
    let Some(set) = place.set else {
        let has_turn = !place.is_ordered || place.number <= cache.permitted();
        if has_turn {
            progress.hole = None;
        }
        return has_turn.then_some(Turn::Show).ok_or(Refused::Order);
    };
    let is_first = place.first == Some(proxy.expected);
    let open = progress.open.get_or_insert(OpenSet {
        set,
        is_whole: is_first,
    });
    progress.hole = None;
    if open.is_whole && !cache.has_set_room() {
        if cache.available() > 0 {
            return Err(Refused::Full);
        }
        // All there is room for is taken by sets that go on.
        open.is_whole = false;
    }
    if !open.is_whole {
        progress.reach(place.number);
        ledger.incomplete += 1 + cache.drop_sets_of(index);
        cache.forget_first_waiting(index);
        return Ok(Turn::Done);
    }
    Ok(Turn::Hold)
}
